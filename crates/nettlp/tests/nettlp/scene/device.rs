//! A device for tests: memory behind its BAR 4, and a program that reads and writes everybody's memory and judges what it gets.

use crate::network::Node;
use std::net::Ipv4Addr;
use tlplab_device::{Pages, Random, Refusal};
use tlplab_nettlp::Engine;
use tlplab_nettlp::endpoint::{Endpoint, EndpointConfig, Event, Window};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration, Time};

/// In every memory: bytes that never change, and behind them a place for each writer, where bytes are as they were or as he wrote them.
pub(crate) const FIXED: u64 = 0x10_000;
pub(crate) const PLACE: u64 = 0x8_000;
/// The part of a place where nobody answers for what is written.
const SLACK: u64 = 0x1_000;

/// What stands at a byte of the memory at `base`: never zero.
pub(crate) fn pattern(base: u64, offset: u64) -> u8 {
    let mixed = (base ^ offset).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 56) as u8 | 1
}

pub(crate) fn bytes_of(base: u64, offset: u64, len: u64) -> Vec<u8> {
    (offset..offset + len).map(|at| pattern(base, at)).collect()
}

/// What a read is to give.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    base: u64,
    offset: u64,
    bytes: u64,
    /// It may be zero instead.
    maybe: bool,
}

pub(crate) struct TestDevice {
    address: Ipv4Addr,
    pub(crate) endpoint: Endpoint<u64>,
    number: u64,
    /// Own memory.
    base: u64,
    pub(crate) memory: Pages,
    /// Memories that it uses.
    pub(crate) targets: Vec<u64>,
    random: Random,
    reads: Vec<Expected>,
    pub(crate) operations: usize,
    pub(crate) at_once: usize,
    waiting: usize,
    pub(crate) right: usize,
    pub(crate) failed: usize,
    pub(crate) finished: Time,
}

impl TestDevice {
    pub(crate) fn new(
        address: Ipv4Addr,
        adapter: Ipv4Addr,
        bdf: Bdf,
        number: u64,
        base: u64,
        seed: u64,
    ) -> Self {
        let config = EndpointConfig {
            windows: vec![Window { base, size: 256 << 20 }],
            completion_timeout: Duration::from_ms(2),
            quarantine: Duration::from_ms(3),
            ..EndpointConfig::new(adapter, bdf)
        };
        let mut memory = Pages::new();
        memory.write(0, &bytes_of(base, 0, FIXED));
        Self {
            address,
            endpoint: Endpoint::new(config),
            number,
            base,
            memory,
            targets: Vec::new(),
            random: Random::keyed(seed, &format!("device {number}"), "program"),
            reads: Vec::new(),
            operations: 0,
            at_once: 8,
            waiting: 0,
            right: 0,
            failed: 0,
            finished: Time::ZERO,
        }
    }

    /// Its program begins.
    pub(crate) fn start(&mut self, operations: usize) {
        self.operations = operations;
        self.turn(Time::ZERO);
    }

    fn issue(&mut self, now: Time) {
        self.operations -= 1;
        let base = self.targets[self.random.below(self.targets.len() as u64) as usize];
        let bytes = match self.random.below(8) {
            0 => 0,
            1..=4 => 1 + self.random.below(300),
            _ => 1 + self.random.below(3000),
        };
        let place = FIXED + self.number * PLACE;
        let (start, room) = if self.random.below(3) == 0 { (place, PLACE - SLACK) } else { (0, FIXED) };
        let offset = start + self.random.below(room - bytes);
        if start == place && self.random.below(2) == 0 {
            let data = Payload::from(bytes_of(base, offset, bytes));
            self.endpoint.write(now, u64::MAX, base + offset, data).expect("far from the end");
            return;
        }
        let token = self.reads.len() as u64;
        self.reads.push(Expected { base, offset, bytes, maybe: start == place });
        self.endpoint.read(now, token, base + offset, bytes).expect("far from the end");
        self.waiting += 1;
    }

    fn judge(&mut self, now: Time, expected: Expected, data: &Payload) {
        let Expected { base, offset, bytes, maybe } = expected;
        let data = data.bytes().unwrap_or_default();
        let wanted = if bytes == 0 { data.len() as u64 } else { bytes };
        assert_eq!(data.len() as u64, wanted, "a read of {bytes} B at {base:#x} + {offset:#x}");
        for (at, byte) in (offset..offset + bytes).zip(data) {
            let right = *byte == pattern(base, at) || maybe && *byte == 0;
            assert!(right, "{byte:#x} at {base:#x} + {at:#x}, in a read of {bytes} B at {offset:#x}");
        }
        self.right += 1;
        self.finished = now;
    }
}

impl Node for TestDevice {
    fn address(&self) -> Ipv4Addr {
        self.address
    }
    fn engine(&mut self) -> &mut dyn Engine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::HostRead(read) => {
                    let offset = read.address - self.base;
                    let mut data = vec![0; read.bytes as usize];
                    self.memory.read(offset, &mut data);
                    let refused = offset >= 1 << 27;
                    let answer = if refused { Err(Refusal::CompleterAbort) } else { Ok(data.into()) };
                    self.endpoint.answer(read.token, answer).expect("it was just asked");
                }
                Event::HostWrite(write) => {
                    self.memory.write(write.address - self.base, write.data.bytes().unwrap_or_default());
                }
                Event::ReadDone { token, result } => {
                    self.waiting -= 1;
                    match result {
                        Ok(data) => self.judge(now, self.reads[token as usize], &data),
                        Err(_) => self.failed += 1,
                    }
                }
                Event::WriteSent { .. } | Event::Failed { .. } | Event::Other { .. } => {}
            }
        }
        while self.operations > 0 && self.waiting < self.at_once {
            self.issue(now);
        }
    }
}
