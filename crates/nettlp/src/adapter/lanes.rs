//! The acknowledged links of one device: one for each of its lanes that has asked for one.

use crate::engine::Outgoing;
use crate::link::{Link, emit_message};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::nettlp::link::{self, LinkMessage, NUMBERS};
use tlplab_wire::nettlp::{DEVICE_PORTS, HOST_PORTS, Header};

/// Links that one device may have, and messages that wait for it: more are not kept.
const MOST: usize = 16;

/// A lane of the device.
#[derive(Clone, Debug)]
struct Lane {
    tags: std::ops::RangeInclusive<u8>,
    host_ports: u16,
    accepted: link::Lane,
    link: Link<()>,
}

impl Lane {
    /// The port of its messages.
    fn port(&self) -> u16 {
        DEVICE_PORTS.start() + u16::from(*self.tags.start())
    }

    fn has(&self, port: u16) -> bool {
        if HOST_PORTS.contains(&port) {
            return self.host_ports >> (port - HOST_PORTS.start()) & 1 == 1;
        }
        let tag = port.checked_sub(*DEVICE_PORTS.start()).and_then(|tag| u8::try_from(tag).ok());
        tag.is_some_and(|tag| self.tags.contains(&tag))
    }
}

/// The links of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// Answers that wait, each with the port that it leaves by.
    messages: VecDeque<(u16, LinkMessage)>,
    /// TLPs that were sent again.
    pub(super) repeated: u64,
}

impl Lanes {
    /// The link of a port, if its lane has one.
    pub(super) fn link(&mut self, port: u16) -> Option<&mut Link<()>> {
        self.lanes.iter_mut().find(|lane| lane.has(port)).map(|lane| &mut lane.link)
    }

    /// True if TLPs may leave for every lane. A lane cannot be chosen before the owner of the TLP is known.
    pub(super) fn have_room(&self) -> bool {
        self.lanes.iter().all(|lane| lane.link.has_room())
    }

    /// The number of TLPs kept for them.
    pub(super) fn backlog(&self) -> usize {
        self.messages.len() + self.lanes.iter().map(|lane| lane.link.kept()).sum::<usize>()
    }

    /// A message of the device has come to `port`.
    pub(super) fn handle(&mut self, now: Time, port: u16, message: LinkMessage) {
        match message {
            LinkMessage::Connect(lane) => self.connect(now, lane),
            LinkMessage::Ack { epoch, acknowledged, beyond } => {
                if let Some(link) = self.link(port).filter(|link| link.epoch() == epoch) {
                    link.handle_ack(now, acknowledged, beyond, |()| {});
                }
            }
            LinkMessage::Accept(_) | LinkMessage::Reset { .. } => {}
        }
    }

    /// A TLP has come for which there is no link.
    pub(super) fn refuse(&mut self, port: u16, sequence: u32) {
        self.say(port, LinkMessage::Reset { sequence });
    }

    /// The program at a lane has ended: another one sends TLPs without a link, or nobody listens any more.
    pub(super) fn end(&mut self, port: u16) {
        self.lanes.retain(|lane| !lane.has(port));
    }

    fn connect(&mut self, now: Time, asked: link::Lane) {
        let port = DEVICE_PORTS.start() + u16::from(asked.first_tag);
        // The acceptance was lost, or took longer than the device waited.
        if let Some(lane) = self.lanes.iter().find(|lane| lane.link.epoch() == asked.epoch) {
            let accepted = lane.accepted;
            return self.say(port, LinkMessage::Accept(accepted));
        }
        let others = |tags: &std::ops::RangeInclusive<u8>| {
            *tags.end() < asked.first_tag || *tags.start() > asked.last_tag
        };
        self.lanes.retain(|lane| others(&lane.tags));
        self.lanes.iter_mut().for_each(|lane| lane.host_ports &= !asked.host_ports);
        if self.lanes.len() >= MOST {
            self.lanes.remove(0);
        }
        let ours = asked.epoch.rotate_left(12) % NUMBERS;
        let accepted = link::Lane { sequence: ours, ..asked };
        self.lanes.push(Lane {
            tags: asked.tags(),
            host_ports: asked.host_ports,
            accepted,
            link: Link::new(now, asked.epoch, ours, asked.sequence),
        });
        self.say(port, LinkMessage::Accept(accepted));
    }

    fn say(&mut self, port: u16, message: LinkMessage) {
        if self.messages.len() < MOST {
            self.messages.push_back((port, message));
        }
    }

    /// The next datagram besides new TLPs: an answer, an acknowledgement, or a retransmission.
    pub(super) fn poll(
        &mut self,
        now: Time,
        peer: Ipv4Addr,
        id: Bdf,
        buffer: &mut [u8],
        mut header: impl FnMut() -> Header,
    ) -> Option<Outgoing> {
        let due = |lane: &mut Lane| lane.link.poll_ack(now).map(|ack| (lane.port(), ack));
        let message = self.messages.pop_front().or_else(|| self.lanes.iter_mut().find_map(due));
        if let Some((port, message)) = message {
            let len = emit_message(buffer, header(), id, message);
            return Some(Outgoing::same_port(peer, port, len));
        }
        let mut again = |lane: &mut Lane| lane.link.poll_again(now, buffer, &mut header);
        let (port, len) = self.lanes.iter_mut().find_map(&mut again)?;
        self.repeated += 1;
        Some(Outgoing::same_port(peer, port, len))
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.lanes.iter().filter_map(|lane| lane.link.deadline()).min()
    }

    /// Time has passed. Lanes that acknowledge nothing any more are gone.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.lanes.iter_mut().for_each(|lane| lane.link.handle_timeout(now));
        self.lanes.retain(|lane| !lane.link.is_alone(now));
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.lanes.iter_mut().for_each(|lane| lane.link.rebase(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(epoch: u32, tags: [u8; 2], host_ports: u16) -> LinkMessage {
        let [first_tag, last_tag] = tags;
        LinkMessage::Connect(link::Lane { epoch, first_tag, last_tag, host_ports, sequence: 5 })
    }

    #[test]
    fn lanes_that_overlap_end_and_others_stay() {
        let mut lanes = Lanes::default();
        lanes.handle(Time::ZERO, 0x3000, lane(1, [0, 7], 0x00ff));
        lanes.handle(Time::ZERO, 0x3008, lane(2, [8, 15], 0xff00));
        assert_eq!(lanes.link(0x3007).map(|link| link.epoch()), Some(1));
        assert_eq!(lanes.link(0x400f).map(|link| link.epoch()), Some(2));
        lanes.handle(Time::ZERO, 0x3000, lane(3, [4, 7], 0x8001));
        assert_eq!(lanes.link(0x3000).map(|link| link.epoch()), None);
        assert_eq!(lanes.link(0x4000).map(|link| link.epoch()), Some(3));
        assert_eq!(lanes.link(0x400f).map(|link| link.epoch()), Some(3));
        assert_eq!(lanes.link(0x4008).map(|link| link.epoch()), Some(2));
        lanes.end(0x3004);
        assert_eq!(lanes.link(0x3004).map(|link| link.epoch()), None);
        for number in 0..40 {
            lanes.handle(Time::ZERO, 0x3000, lane(100 + number, [100 + number as u8; 2], 0));
        }
        assert!(lanes.backlog() <= MOST && lanes.lanes.len() == MOST);
    }
}
