//! TLPs that leave for one device: in bounded queues that take turns, under one sequence counter.

use super::port::Errand;
use crate::datagram::{emit, with_digest};
use crate::engine::Outgoing;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_transaction::completer::Completions;
use tlplab_transaction::{Bytes, Classes, Payload, PostedMark, Requester};
use tlplab_units::{Duration, FcClass, Tag, Time};
use tlplab_wire::nettlp::{HEADER_BYTES, Header, Issuer, PortScheme};
use tlplab_wire::tlp::{Packet, Repr};

/// The clock that the card writes into its datagrams: ticks of 6.4 ns since it was started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// The time before the origin of `Time`, in femtoseconds below [`Clock::ROUND`].
    before: u64,
}

impl Clock {
    /// Femtoseconds until the 32 bits begin again.
    const ROUND: u64 = Header::TICK.as_fs() << 32;

    fn ticks(self, now: Time) -> u32 {
        ((now.as_fs() % Self::ROUND + self.before) / Header::TICK.as_fs()) as u32
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.before = (self.before + by.as_fs() % Self::ROUND) % Self::ROUND;
    }
}

/// An answer to a request of the device.
#[derive(Debug)]
pub(super) enum Reply {
    /// Completions with these data, and with digests if the request had one.
    Data { completions: Completions, data: Payload, digest: bool },
    /// One completion without.
    Status(Repr),
}

/// An answer of one of the services, to the port that asked.
#[derive(Debug)]
pub(super) struct ServiceReply {
    pub(super) to: SocketAddrV4,
    pub(super) from_port: u16,
    pub(super) bytes: Vec<u8>,
}

/// The reason that [`emit`] cannot fail here.
const ROOM: &str = "a buffer of MAX_DATAGRAM bytes, and tags of eight bits";

/// The queues of one device. Each is filled by one cause, so that none finds its queue full because of another.
#[derive(Debug)]
pub(super) struct Egress {
    limit: usize,
    /// Each with the writes of the host before it: it does not pass them (PCIe 5.0 table 2-39), so that a device that reads a flag has had
    /// the doorbell that was rung before.
    replies: VecDeque<(Reply, PostedMark)>,
    services: VecDeque<ServiceReply>,
    /// TLPs of other devices as they came, by device.
    passed: Vec<VecDeque<Bytes>>,
    turn: usize,
    sequence: u16,
}

/// A datagram, and the posted errand that is over with it.
pub(super) struct Sent {
    pub(super) outgoing: Outgoing,
    /// It carries a TLP.
    pub(super) tlp: bool,
    pub(super) done: Option<Errand>,
}

/// A queue that has no room.
#[derive(Debug)]
pub(super) struct Full;

impl Egress {
    /// Answers of the services are short and come one at a time.
    const SERVICES: usize = 64;

    pub(super) fn new(devices: usize, limit: usize) -> Self {
        Self {
            limit,
            replies: VecDeque::new(),
            services: VecDeque::new(),
            passed: vec![VecDeque::new(); devices],
            turn: 0,
            sequence: 0,
        }
    }

    /// Answers that wait.
    pub(super) fn replies(&self) -> usize {
        self.replies.len()
    }

    /// Everything that waits.
    pub(super) fn backlog(&self) -> usize {
        self.replies.len() + self.services.len() + self.passed.iter().map(VecDeque::len).sum::<usize>()
    }

    pub(super) fn reply(&mut self, reply: Reply, after: PostedMark) {
        self.replies.push_back((reply, after));
    }

    pub(super) fn serve(&mut self, reply: ServiceReply) -> Result<(), Full> {
        if self.services.len() >= Self::SERVICES {
            return Err(Full);
        }
        self.services.push_back(reply);
        Ok(())
    }

    pub(super) fn pass(&mut self, from: usize, tlp: &[u8]) -> Result<(), Full> {
        let queue = &mut self.passed[from];
        if queue.len() >= self.limit {
            return Err(Full);
        }
        queue.push_back(Bytes::copy_from_slice(tlp));
        Ok(())
    }

    /// The bytes before the next TLP that leaves by another way.
    pub(super) fn next_header(&mut self, now: Time, clock: Clock) -> Header {
        let header = Header { sequence: self.sequence, timestamp: clock.ticks(now) };
        self.sequence = self.sequence.wrapping_add(1);
        header
    }

    /// The next datagram for the device at `peer`: a queue, or what the host asks of it, has its turn.
    pub(super) fn poll(
        &mut self,
        now: Time,
        clock: Clock,
        peer: Ipv4Addr,
        requester: &mut Requester<Errand>,
        buffer: &mut [u8],
    ) -> Option<Sent> {
        let header = Header { sequence: self.sequence, timestamp: clock.ticks(now) };
        let turns = 3 + self.passed.len();
        for turn in (self.turn..turns).chain(0..self.turn) {
            let mut done = None;
            let to_peer = |(port, len)| Outgoing::same_port(peer, port, len);
            let outgoing = match turn {
                0 => self.next_reply(header, requester, buffer).map(to_peer),
                1 => self.next_service(buffer),
                2 => requester.poll_request(now, Classes::ALL).map(|request| {
                    let over = request.last_of_op && request.repr.fc_class() == FcClass::Posted;
                    done = over.then_some(request.op);
                    let data = request.payload.unwrap_or(Payload::EMPTY);
                    let len = emit(buffer, header, &request.repr, &data).expect(ROOM);
                    to_peer((host_port(request.repr.transaction_id().tag), len))
                }),
                _ => self.next_passed(turn - 3, header, buffer).map(to_peer),
            };
            if let Some(outgoing) = outgoing {
                self.turn = (turn + 1) % turns;
                self.sequence = self.sequence.wrapping_add(u16::from(turn != 1));
                return Some(Sent { outgoing, tlp: turn != 1, done });
            }
        }
        None
    }

    /// The next completion.
    fn next_reply(
        &mut self,
        header: Header,
        requester: &Requester<Errand>,
        buffer: &mut [u8],
    ) -> Option<(u16, usize)> {
        loop {
            let (reply, after) = self.replies.front_mut()?;
            if !requester.has_sent(*after) {
                return None;
            }
            let (repr, data, last) = match reply {
                Reply::Status(repr) => (*repr, Payload::EMPTY, true),
                Reply::Data { completions, data, digest } => match completions.next() {
                    Some(next) => {
                        let repr = with_digest(next.repr, *digest);
                        (repr, data.slice(next.offset.into(), next.bytes.into()), next.last)
                    }
                    None => {
                        self.replies.pop_front();
                        continue;
                    }
                },
            };
            if last {
                self.replies.pop_front();
            }
            let len = emit(buffer, header, &repr, &data).expect(ROOM);
            return Some((device_port(repr.transaction_id().tag), len));
        }
    }

    fn next_service(&mut self, buffer: &mut [u8]) -> Option<Outgoing> {
        let reply = self.services.pop_front()?;
        let len = reply.bytes.len();
        buffer[..len].copy_from_slice(&reply.bytes);
        Some(Outgoing { to: reply.to, from_port: reply.from_port, len })
    }

    /// The next TLP that device `from` sent to this one.
    fn next_passed(&mut self, from: usize, header: Header, buffer: &mut [u8]) -> Option<(u16, usize)> {
        let tlp = self.passed[from].pop_front()?;
        let len = HEADER_BYTES + tlp.len();
        buffer[..HEADER_BYTES].copy_from_slice(&header.emit());
        buffer[HEADER_BYTES..len].copy_from_slice(&tlp);
        let packet = Packet::new(&tlp);
        let tag = packet.tag().unwrap_or_default();
        let answers = packet.is_completion() == Some(true);
        Some((if answers { device_port(tag) } else { host_port(tag) }, len))
    }
}

/// The destination of the answer to a device's request.
fn device_port(tag: Tag) -> u16 {
    PortScheme::ByIssuer.port(Issuer::Device, tag).unwrap_or(0x3000)
}

/// The destination of a request to a device.
fn host_port(tag: Tag) -> u16 {
    PortScheme::ByIssuer.port(Issuer::Host, tag).unwrap_or(0x4000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 6.4 ns a tick, 27.5 s a round, and no step where the origin moves.
    #[test]
    fn the_clock_ticks_on() {
        let mut clock = Clock::default();
        let at = |s: u64| Time::ZERO + Duration::from_ms(1000 * s);
        assert_eq!(clock.ticks(Time::ZERO + Duration::from_ns(32)), 5);
        assert_eq!(clock.ticks(at(1)), 156_250_000);
        let later = clock.ticks(at(3600));
        assert_eq!(u64::from(later), 3600 * 156_250_000 % (1 << 32));
        clock.rebase(Duration::from_ms(3_599_000) + Duration::from_fs(1));
        clock.rebase(Duration::from_ms(999));
        assert_eq!(clock.ticks(Time::ZERO + Duration::from_fs(999_999_999_999)), later);
        assert_eq!(clock.ticks(Time::ZERO + Duration::from_fs(999_999_999_998)), later - 1);
    }
}
