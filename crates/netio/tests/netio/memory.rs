//! The other end for these tests: a megabyte of memory that answers reads where they came from, as an adapter would.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use tlplab_netio::{Stop, Transport, Udp, Wait, drive};
use tlplab_nettlp::datagram::emit;
use tlplab_nettlp::{Datagram, Engine, Outgoing, Undeliverable};
use tlplab_transaction::{Completer, CompletionPolicy, Payload, memory_access, padding_before};
use tlplab_units::{Bdf, Duration, Mps, Rcb, Time};
use tlplab_wire::nettlp::{Header, parse_udp_payload};
use tlplab_wire::tlp::{CompletionStatus, Kind, Repr};

/// First byte of the memory; reads elsewhere are refused.
pub(crate) const BASE: u64 = 0x1_0000_0000 - 0x8_0000;
/// Its size: half of it is above 4 GiB.
pub(crate) const SIZE: usize = 0x10_0000;

/// What stands in the memory before anybody writes.
pub(crate) fn content(address: u64) -> u8 {
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8
}

/// The memory, as an engine.
pub(crate) struct Memory {
    bytes: Vec<u8>,
    waiting: VecDeque<(SocketAddrV4, u16, Repr, Payload)>,
}

impl Default for Memory {
    fn default() -> Self {
        let bytes = (BASE..BASE + SIZE as u64).map(content).collect();
        Self { bytes, waiting: VecDeque::new() }
    }
}

impl Memory {
    fn range(&self, address: u64, bytes: u32) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(address.checked_sub(BASE)?).ok()?;
        (start + bytes as usize <= SIZE).then(|| start..start + bytes as usize)
    }
}

impl Engine for Memory {
    fn handle_datagram(&mut self, _: Time, datagram: Datagram<'_>) {
        let Ok((_, tlp)) = parse_udp_payload(datagram.payload) else { return };
        let Ok(request) = Repr::parse(&tlp) else { return };
        let payload = tlp.payload();
        let Some(access) = memory_access(&request) else { return };
        let range = self.range(access.address, access.bytes);
        let completer =
            Completer { id: Bdf(0), rcb: Rcb::ALL[0], mps: Mps::ALL[1], policy: CompletionPolicy::Rcb };
        let (to, port) = (datagram.from, datagram.port);
        match (request.kind(), range) {
            (Kind::MemWrite { .. }, Some(range)) => {
                let start = padding_before(&request) as usize;
                let length = range.len();
                self.bytes[range].copy_from_slice(&payload[start..start + length]);
            }
            (Kind::MemRead { .. }, Some(range)) => {
                let all = Payload::from(&self.bytes[range]);
                self.waiting.extend(
                    completer
                        .succeed(&request)
                        .map(|part| (to, port, part.repr, all.slice(part.offset.into(), part.bytes.into()))),
                );
            }
            _ => {
                let refusal = completer.refuse(&request, CompletionStatus::UnsupportedRequest);
                self.waiting.extend(refusal.map(|repr| (to, port, repr, Payload::EMPTY)));
            }
        }
    }
    fn poll_transmit(&mut self, _: Time, buffer: &mut [u8]) -> Option<Outgoing> {
        let (to, from_port, repr, data) = self.waiting.pop_front()?;
        let len = emit(buffer, Header::default(), &repr, &data).unwrap();
        Some(Outgoing { to, from_port, len })
    }
    fn deadline(&self) -> Option<Time> {
        None
    }
    fn handle_timeout(&mut self, _: Time) {}
    fn handle_undeliverable(&mut self, _: Time, _: SocketAddrV4, _: Undeliverable) {}
    fn rebase(&mut self, _: Duration) {}
}

/// An engine in a thread: the memory, unless said otherwise.
pub(crate) struct Served {
    stop: Stop,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    /// Serves the ports of these tags at `address`.
    pub(crate) fn new(address: std::net::Ipv4Addr, tags: std::ops::RangeInclusive<u8>) -> Self {
        Self::on(Udp::open(address, tags.map(|tag| 0x3000 + u16::from(tag)), None).unwrap())
    }
    /// Serves on this transport.
    pub(crate) fn on(transport: impl Transport + 'static) -> Self {
        Self::engine(Memory::default(), transport)
    }
    /// Another engine in its place.
    pub(crate) fn engine(engine: impl Engine + Send + 'static, transport: impl Transport + 'static) -> Self {
        let stop = Stop::default();
        let ends = stop.clone();
        let run = move || drop(drive(engine, transport, Wait::Sleep, &ends).unwrap());
        Self { stop, thread: Some(std::thread::spawn(run)) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(Err(panic)) = self.thread.take().map(std::thread::JoinHandle::join) {
            // A test that is failing already says so itself.
            if !std::thread::panicking() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Calls this when it is dropped: ends loops, also when a test fails whose scope would wait for them without end.
pub(crate) struct Ends<F: Fn()>(pub(crate) F);

impl<F: Fn()> Drop for Ends<F> {
    fn drop(&mut self) {
        self.0();
    }
}
