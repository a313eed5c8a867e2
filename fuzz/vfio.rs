//! What the fuzz target `vfio_user`, and `crates/vfio/tests`, feed bytes to: messages of a client, actions of a device, replies, times. Whatever they
//! are, nothing panics, each command has one reply at most, and no memory is accessed but what the client has mapped, as it has mapped it.

#[path = "choices.rs"]
mod choices;

use choices::Choices;
use std::collections::VecDeque;
use tlplab_device::{Action, BarSpec, Event, Identity, OpId, Refusal, ReplyToken};
use tlplab_units::{Duration, Time};
use tlplab_vfio::message::{HEADER, Header};
use tlplab_vfio::{DmaRange, Host, Irq, Port, PortEvent};

/// Numbers of which fields of messages are made, so that some fit each other.
const NUMBERS: [u64; 16] =
    [0, 1, 2, 4, 7, 8, 16, 32, 36, 0x1000, 0x2000, 0x3000, 4096, 0xFF0, u64::MAX, u64::MAX - 0xFFF];

#[derive(Default)]
struct Memory {
    ranges: Vec<DmaRange>,
    accesses: u64,
}

impl Memory {
    fn holds(&self, address: u64, bytes: usize, write: bool) -> bool {
        self.ranges.iter().any(|range| {
            let left = address.checked_sub(range.address).and_then(|at| range.bytes.checked_sub(at));
            left.is_some_and(|left| bytes as u64 <= left)
                && if write { range.writable } else { range.readable }
        })
    }
}

impl Host for Memory {
    fn map(&mut self, range: &DmaRange, file: usize) -> bool {
        assert!(range.mapped && range.bytes > 0 && file == 0);
        // No machine has as much.
        let fits = range.bytes <= 1 << 20;
        self.ranges.extend(fits.then_some(*range));
        fits
    }
    fn unmap(&mut self, range: &DmaRange) {
        self.ranges.retain(|mapped| mapped != range);
    }
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        assert!(self.holds(address, out.len(), false), "a read of {} B at {address:#x}", out.len());
        true
    }
    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        assert!(self.holds(address, data.len(), true), "a write of {} B at {address:#x}", data.len());
        self.accesses += 1;
        true
    }
    fn set_trigger(&mut self, irq: Irq, vector: u32, file: Option<usize>) {
        assert!(vector < 4 && file.is_none_or(|file| file < 4), "{irq:?} {vector}");
    }
    fn trigger(&mut self, _: Irq, vector: u32) -> bool {
        vector.is_multiple_of(2)
    }
}

struct UnderFire {
    port: Port,
    memory: Memory,
    now: Time,
    /// What the server has asked for.
    asked: VecDeque<Header>,
    /// Commands that wait for their reply.
    waiting: u64,
}

impl UnderFire {
    fn new() -> Self {
        let identity = Identity {
            bars: vec![BarSpec::memory(0, 4096)],
            msix_vectors: 4,
            msi_vectors: 4,
            intx: true,
            ..Identity::new(0x71AB, 1, 0xFF_0000)
        };
        let port = Port::new(&identity.layout()).expect("it has room");
        Self { port, memory: Memory::default(), now: Time::ZERO, asked: VecDeque::new(), waiting: 0 }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 8 {
            0 | 1 => self.command(choices),
            2 => self.reply(choices),
            3 => {
                self.now += Duration::from_ns(1000 * u64::from(choices.half()));
                self.port.handle_timeout(self.now);
            }
            4 if choices.byte() == 0 => self.disconnect(),
            _ => self.act(choices),
        }
        while let Some(event) = self.port.take_event() {
            if matches!(event, PortEvent::UnmaskIntx) {
                self.port.unmask_intx(&mut self.memory);
            }
            if let PortEvent::Device(Event::MmioRead { bytes, reply, .. }) = event
                && bytes % 2 == 0
            {
                let data = vec![1; bytes as usize].into();
                self.port.act(self.now, Action::Reply { token: reply, data }, &mut self.memory);
            }
        }
        while let Some(message) = self.port.take_message() {
            let (header, _) = message.split_first_chunk::<HEADER>().expect("a header");
            let header = Header::parse(header).expect("of a size that can be");
            assert_eq!(header.size as usize, message.len());
            if header.is_reply {
                self.waiting = self.waiting.checked_sub(1).expect("one reply for each command");
            } else {
                self.asked.push_back(header);
            }
        }
    }

    fn command(&mut self, choices: &mut Choices<'_>) {
        let command = choices.half() % 20;
        let mut payload = Vec::new();
        for _ in 0..choices.byte() % 7 {
            let number = choices.of(&NUMBERS);
            match choices.byte() % 3 {
                0 => payload.extend_from_slice(&number.to_le_bytes()),
                _ => payload.extend_from_slice(&(number as u32).to_le_bytes()),
            }
        }
        let no_reply = choices.byte().is_multiple_of(4);
        let size = (HEADER + payload.len()) as u32;
        let header = Header { id: choices.half(), command, size, is_reply: false, no_reply, error: None };
        self.waiting += u64::from(!no_reply);
        let files = usize::from(choices.byte() % 4);
        if self.port.handle_message(self.now, &header, &payload, files, &mut self.memory).is_err() {
            self.disconnect();
        }
    }

    fn reply(&mut self, choices: &mut Choices<'_>) {
        let Some(header) = self.asked.pop_front() else { return };
        let error = choices.byte().is_multiple_of(4).then_some(14);
        let payload = vec![0; usize::from(choices.byte())];
        let header = Header { is_reply: true, error, ..header };
        if self.port.handle_message(self.now, &header, &payload, 0, &mut self.memory).is_err() {
            self.disconnect();
        }
    }

    fn disconnect(&mut self) {
        self.port.disconnect(&mut self.memory);
        assert_eq!(self.memory.ranges, []);
        while self.port.take_message().is_some() {}
        self.asked.clear();
        self.waiting = 0;
    }

    fn act(&mut self, choices: &mut Choices<'_>) {
        let (op, stream) = (OpId(choices.byte().into()), 0);
        let address = choices.of(&NUMBERS).wrapping_add(u64::from(choices.byte()));
        let bytes = u64::from(choices.half() % 0x1200);
        let token = ReplyToken(choices.byte().into());
        let action = match choices.byte() % 7 {
            0 => Action::DmaRead { op: self.port.next_op(), stream, address, bytes, carry: true },
            1 => {
                let data = vec![1; bytes as usize].into();
                Action::DmaWrite { op: self.port.next_op(), stream, address, data }
            }
            2 => Action::Msix { stream, vector: u16::from(choices.byte() % 4) },
            3 => Action::Intx { stream, asserted: bytes % 2 == 0 },
            4 => Action::ReplyError { token, refusal: Refusal::CompleterAbort },
            5 => Action::Reply { token, data: vec![0; 4].into() },
            _ => Action::Timer { at: self.now + Duration::from_ns(bytes), id: op.0 },
        };
        self.port.act(self.now, action, &mut self.memory);
    }
}

/// What comes of it; the number of writes to memory.
pub(crate) fn vfio_user(bytes: &[u8]) -> u64 {
    let mut choices = Choices(bytes);
    let mut fire = UnderFire::new();
    // Most runs get beyond the first message, and have a bus master with memory.
    if choices.byte() % 8 != 0 {
        let range = [0x3_0000_0020, 0, 0x1000, 0x2000].map(u64::to_le_bytes).concat();
        for (command, payload) in [
            (1, b"\0\0\0\0{}\0".to_vec()),
            (2, range),
            (10, [&[4, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0][..], &[6, 0]].concat()),
        ] {
            let size = (HEADER + payload.len()) as u32;
            let header = Header { id: 0, command, size, is_reply: false, no_reply: true, error: None };
            fire.port
                .handle_message(fire.now, &header, &payload, 1, &mut fire.memory)
                .expect("it makes sense");
            while fire.port.take_message().is_some() {}
        }
    }
    while !choices.is_used_up() {
        fire.step(&mut choices);
    }
    fire.memory.accesses
}
