//! One message after the other. What the engine says is read by own code, from the kernel's headers.

use crate::memory::{BASE, BYTES, Memory};
use crate::ring::{Part, Ring};
use crate::script::{Broken, Script};
use tlplab_uml::vhost::{self, Header, Region};
use tlplab_uml::{Failure, Guest, Output, ProtocolError};
use tlplab_units::Time;

pub(crate) const REPLY_WANTED: u32 = 1 | 1 << 3;
pub(crate) const NO_REPLY: u32 = 1;

pub(crate) const START: u32 = 1;
pub(crate) const REQUEST: u32 = 2;
pub(crate) const WAIT: u32 = 3;
pub(crate) const GET: u32 = 4;
pub(crate) const UPDATE: u32 = 5;
pub(crate) const GET_TOD: u32 = 8;
pub(crate) const BROADCAST: u32 = 9;

pub(crate) const KICK: u32 = 35;

/// What the engine says, or does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Ack { sequence: u32, time: u64 },
    Run { sequence: u32, time: u64 },
    Answer { request: u32, number: u64 },
    Call { queue: u64 },
    BackChannel,
    Map(Vec<Region>),
    Broadcast(u64),
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 B"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 B"))
}

impl Said {
    pub(crate) fn read(output: &Output) -> Self {
        match output {
            Output::Calendar(bytes) => {
                let (sequence, time) = (word(bytes, 4), long(bytes, 8));
                match word(bytes, 0) {
                    0 => Self::Ack { sequence, time },
                    6 => Self::Run { sequence, time },
                    other => panic!("the calendar never says {other}"),
                }
            }
            Output::Device(bytes) => {
                assert_eq!((word(bytes, 4), word(bytes, 8), bytes.len()), (1 | 1 << 2, 8, 20));
                Self::Answer { request: word(bytes, 0), number: long(bytes, 12) }
            }
            Output::Call(bytes) => {
                assert_eq!((word(bytes, 0), word(bytes, 4), word(bytes, 8)), (4, REPLY_WANTED, 8));
                assert_eq!(bytes.len(), 20);
                Self::Call { queue: long(bytes, 12) }
            }
            Output::BackChannel => Self::BackChannel,
            Output::Map(regions) => Self::Map(regions.clone()),
            Output::Broadcast(number) => Self::Broadcast(*number),
        }
    }
}

/// A message on the calendar's socket.
pub(crate) fn calendar_message(operation: u32, sequence: u32, time: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&operation.to_le_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_le_bytes());
    bytes[8..].copy_from_slice(&time.to_le_bytes());
    bytes
}

/// A message on a socket of vhost-user.
pub(crate) fn device_message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let words = [request, flags, payload.len() as u32];
    words.iter().flat_map(|word| word.to_le_bytes()).chain(payload.iter().copied()).collect()
}

/// The numbers of a payload, of 8 bytes each.
pub(crate) fn longs(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Two numbers of 4 bytes, the first being a queue's.
pub(crate) fn pair(queue: u32, number: u32) -> Vec<u8> {
    longs(&[u64::from(number) << 32 | u64::from(queue)])
}

/// A command: `struct virtio_pcidev_msg`, and its data.
pub(crate) fn command(op: u8, bar: u8, size: u32, address: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![op, bar, 0, 0];
    bytes.extend(size.to_le_bytes());
    bytes.extend(address.to_le_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// The engine, and the kernel's memory and counters.
pub(crate) struct Dialogue {
    pub(crate) guest: Guest,
    pub(crate) machine: Script,
    pub(crate) memory: Memory,
    pub(crate) commands: Ring,
    pub(crate) interrupts: Ring,
    sequence: u32,
}

impl Dialogue {
    /// A kernel that has said nothing yet.
    pub(crate) fn bare(machine: Script) -> Self {
        let mut memory = Memory::new();
        let commands = Ring::new(&mut memory, 0, 16, 4096);
        let interrupts = Ring::new(&mut memory, 1, 4, 64);
        Self { guest: Guest::new(), machine, memory, commands, interrupts, sequence: 1000 }
    }

    /// A kernel that is up, with its two queues and buffers for four interrupts.
    pub(crate) fn up(machine: Script) -> Self {
        let mut dialogue = Self::bare(machine);
        for (queue, size) in [(0, 16), (1, 4)] {
            dialogue.set_up(queue, size).expect("a queue");
        }
        for _ in 0..4 {
            dialogue.interrupts.offer(&mut dialogue.memory, &[Part::Room(64)]);
        }
        dialogue.said();
        dialogue
    }

    /// Size, base and addresses of a queue, and its use.
    pub(crate) fn set_up(&mut self, queue: u32, size: u32) -> Result<(), Failure<Broken>> {
        let ring = if queue == 0 { &self.commands } else { &self.interrupts };
        let addresses = longs(&[queue.into(), ring.descriptors, ring.used, ring.available, 0]);
        self.device(8, &pair(queue, size))?;
        self.device(10, &pair(queue, 0))?;
        self.device(9, &addresses)?;
        self.device(18, &pair(queue, 1))
    }

    /// The kernel says something on the calendar's socket. Its sequence number is the next.
    pub(crate) fn calendar(&mut self, operation: u32, time: u64) -> Result<u32, ProtocolError> {
        self.sequence += 1;
        let message = calendar_message(operation, self.sequence, time);
        self.guest.handle_calendar(&mut self.machine, &message)?;
        Ok(self.sequence)
    }

    /// The kernel has heard a message of the calendar.
    pub(crate) fn ack(&mut self, sequence: u32) {
        let ack = calendar_message(0, sequence, 0);
        self.guest.handle_calendar(&mut self.machine, &ack).expect("an answer");
    }

    /// The kernel asks its device for something, and wants an answer.
    pub(crate) fn device(&mut self, request: u32, payload: &[u8]) -> Result<(), Failure<Broken>> {
        self.device_with(request, REPLY_WANTED, payload, 0)
    }

    pub(crate) fn device_with(
        &mut self,
        request: u32,
        flags: u32,
        payload: &[u8],
        descriptors: usize,
    ) -> Result<(), Failure<Broken>> {
        let bytes = device_message(request, flags, payload);
        let header = bytes.first_chunk::<{ vhost::HEADER }>().expect("a header");
        let header = Header::parse(header)?;
        assert_eq!(header.size as usize, payload.len());
        self.guest.handle_device(header, payload, descriptors)?;
        while self.guest.is_accessing() {
            self.advance()?;
        }
        Ok(())
    }

    /// Rings the bell of a queue.
    pub(crate) fn bell(&mut self, queue: u64) -> Result<(), Failure<Broken>> {
        self.device(KICK, &longs(&[queue]))
    }

    /// Offers a command.
    pub(crate) fn offer(&mut self, parts: &[Part]) -> u16 {
        self.commands.offer(&mut self.memory, parts)
    }

    /// Offers a read: of configuration space (1) or memory (3).
    pub(crate) fn offer_read(&mut self, op: u8, address: u64, bytes: u32) -> u16 {
        let bar = if op == 1 { 0 } else { 7 };
        self.offer(&[Part::Sent(command(op, bar, bytes, address, &[])), Part::Room(bytes)])
    }

    /// The next command that is done with.
    pub(crate) fn done(&mut self) -> Option<(u16, Vec<u8>)> {
        self.commands.done(&self.memory)
    }

    /// All that the engine has to say.
    pub(crate) fn said(&mut self) -> Vec<Said> {
        std::iter::from_fn(|| self.guest.poll_output()).map(|output| Said::read(&output)).collect()
    }

    pub(crate) fn advance(&mut self) -> Result<(), Failure<Broken>> {
        self.guest.advance(&mut self.machine, &mut self.memory, Time::NEVER)
    }

    /// The kernel answers a call.
    pub(crate) fn answer_call(&mut self, number: u64) -> Result<(), ProtocolError> {
        let bytes = device_message(4, 1 | 1 << 2, &longs(&[number]));
        self.guest.handle_call_answer(bytes.as_slice().try_into().expect("20 B"))
    }

    /// The kernel wants to sleep until a time, in nanoseconds.
    pub(crate) fn sleep(&mut self, until: u64) {
        for (operation, time) in [(REQUEST, until), (WAIT, u64::MAX)] {
            let sequence = self.calendar(operation, time).expect("it may sleep");
            assert_eq!(self.said(), [Said::Ack { sequence, time: 0 }]);
        }
        assert!(self.guest.waits());
    }

    /// What is in the buffers for interrupts that were filled.
    pub(crate) fn taken_interrupts(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.interrupts.done(&self.memory)).map(|(_, bytes)| bytes).collect()
    }
}

/// The memory that the kernel shares, as it stands in a message: number of ranges, then address, bytes, own address, offset in the file.
pub(crate) fn memory_table() -> Vec<u8> {
    longs(&[1, BASE, BYTES as u64, BASE, 0x20_0000])
}
