//! What the fuzz target `guest`, and `crates/uml/tests`, feed bytes to: a guest's messages on its sockets, and what it has in the memory where its
//! virtqueues are. Whatever they are, nothing panics, what is said is bounded, time does not go back, and nothing outside of the rings and buffers
//! that the guest has named is written.

#[path = "choices.rs"]
mod choices;

pub(crate) use choices::Choices;
use std::collections::VecDeque;
use tlplab_uml::pcidev::Access;
use tlplab_uml::vhost::{self, Header};
use tlplab_uml::{Failure, Guest, GuestMemory, Interrupt, Machine, Output, calendar};
use tlplab_units::{Duration, Time};

/// Where the memory begins, and its length: so small that what is long cannot be.
const BASE: u64 = 0x1000;
const BYTES: usize = 4096;
/// Sizes of a queue, possible ones and others; none so long that a bell takes seconds.
const SIZES: [u32; 8] = [1, 2, 4, 8, 16, 0, 3, 0x1_0000];
/// Where a queue has its rings and data, of each queue's half of the memory.
const RINGS: [u64; 3] = [0, 0x200, 0x300];
const DATA: u64 = 0x400;

struct Memory(Vec<u8>);

impl Memory {
    fn range(address: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
        let first = usize::try_from(address.checked_sub(BASE)?).ok()?;
        let end = first.checked_add(bytes)?;
        (end <= BYTES).then_some(first..end)
    }

    fn store(&mut self, address: u64, data: &[u8]) {
        self.0[Self::range(address, data.len()).expect("in memory")].copy_from_slice(data);
    }
}

impl GuestMemory for Memory {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        Self::range(address, out.len()).is_some_and(|range| {
            out.copy_from_slice(&self.0[range]);
            true
        })
    }
    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        Self::range(address, data.len()).is_some_and(|range| {
            self.0[range].copy_from_slice(data);
            true
        })
    }
}

/// A machine that does things after a while.
struct Whiles {
    now: Time,
    latency: Duration,
    /// When the access that has begun is over.
    over: Option<Time>,
    next: Option<Time>,
    interrupts: VecDeque<Interrupt>,
    accesses: u64,
}

impl Machine for Whiles {
    type Error = &'static str;

    fn now(&mut self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time) -> Result<(), Self::Error> {
        assert!(until >= self.now, "back to {until} at {}", self.now);
        if let Some(at) = self.next.filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.interrupts.push_back(Interrupt::Message { data: 5 });
            self.next = None;
        } else if until != Time::NEVER {
            self.now = until;
        }
        Ok(())
    }

    fn access(&mut self, access: &Access, limit: Time) -> Result<Option<Vec<u8>>, Self::Error> {
        let over = *self.over.get_or_insert(self.now + self.latency);
        self.now = over.min(limit).max(self.now);
        if over > limit {
            return Ok(None);
        }
        self.over = None;
        self.accesses += 1;
        match access {
            Access::ConfigRead { bytes, .. } | Access::MemoryRead { bytes, .. } => {
                Ok(Some(vec![0xFF; *bytes as usize]))
            }
            Access::ConfigWrite { data, .. } | Access::MemoryWrite { data, .. } => {
                assert!((1..=16 << 20).contains(&data.len()), "a write of {} B", data.len());
                Ok(Some(Vec::new()))
            }
        }
    }

    fn interrupts(&mut self) -> &mut VecDeque<Interrupt> {
        &mut self.interrupts
    }
}

/// A guest's end, whatever the guest says.
pub(crate) struct GuestUnderFire {
    guest: Guest,
    memory: Memory,
    machine: Whiles,
    /// The last time that the guest was told.
    told: u64,
    called: bool,
    /// The latest leave to run.
    sequence: u32,
    /// Nothing was said yet; most begin with their queues.
    new: bool,
    /// Accesses, interrupts, errors.
    pub(crate) counts: [u64; 3],
}

impl GuestUnderFire {
    pub(crate) fn new() -> Self {
        let machine = Whiles {
            now: Time::ZERO,
            latency: Duration::ZERO,
            over: None,
            next: None,
            interrupts: VecDeque::new(),
            accesses: 0,
        };
        let memory = Memory(vec![0; BYTES]);
        Self {
            guest: Guest::new(),
            memory,
            machine,
            told: 0,
            called: false,
            sequence: 0,
            new: true,
            counts: [0; 3],
        }
    }

    /// Something happens.
    pub(crate) fn step(&mut self, choices: &mut Choices<'_>) {
        if std::mem::take(&mut self.new) && choices.byte() < 240 {
            for queue in 0..2 {
                let _ = self.set_up(queue, choices);
            }
            self.hear();
        }
        let what = choices.byte();
        let result = match what {
            _ if self.guest.waits() && what & 7 != 0 => {
                let limit = match choices.byte() {
                    byte @ 0..=60 => Time::from_fs((self.told + u64::from(byte)) * 1_000_000),
                    _ => Time::NEVER,
                };
                self.guest.advance(&mut self.machine, &mut self.memory, limit)
            }
            0..=39 => self.say_to_calendar(choices),
            40..=42 => self.say_to_device(choices),
            43..=59 => {
                let queue = choices.byte() & 1;
                self.set_up(queue.into(), choices)
            }
            60..=129 => self.offer(choices),
            130..=149 => self.bell(u64::from(choices.byte()).saturating_sub(250)),
            160..=163 => {
                let at = BASE + u64::from(choices.half()) % (BYTES as u64 - 8);
                let bytes: Vec<u8> = (0..choices.byte() % 8).map(|_| choices.byte()).collect();
                self.memory.store(at, &bytes);
                Ok(())
            }
            164..=189 => {
                self.machine.latency = Duration::from_fs(u64::from(choices.half()) * 100_000);
                self.machine.next = Some(self.machine.now + Duration::from_fs(choices.half().into()));
                Ok(())
            }
            190..=209 => self.answer_call(choices),
            _ => Ok(()),
        };
        self.hear();
        if result.is_err() {
            // It is not asked again.
            let memory = std::mem::replace(&mut self.memory, Memory(Vec::new()));
            let mut counts = self.counts;
            counts[0] += self.machine.accesses;
            counts[2] += 1;
            *self = Self { memory, counts, ..Self::new() };
        }
    }

    fn say_to_calendar(&mut self, choices: &mut Choices<'_>) -> Result<(), Failure<&'static str>> {
        let operation = match choices.byte() {
            0 => u32::from(choices.half()),
            byte => [0, 0, 1, 2, 2, 2, 3, 4, 5, 8, 9][usize::from(byte) % 11],
        };
        let sequence = if operation == 0 { self.sequence } else { u32::from(choices.byte()) };
        let time = match choices.byte() {
            0 => u64::MAX,
            1 => i64::MAX as u64,
            2 => 1 << 40,
            byte => self.told.saturating_add(u64::from(byte)).saturating_sub(20),
        };
        // The simulator has five hours.
        let time = if self.told > 1 << 40 { 0 } else { time };
        let mut bytes = [0; calendar::BYTES];
        bytes[..4].copy_from_slice(&operation.to_le_bytes());
        bytes[4..8].copy_from_slice(&sequence.to_le_bytes());
        bytes[8..].copy_from_slice(&time.to_le_bytes());
        Ok(self.guest.handle_calendar(&mut self.machine, &bytes)?)
    }

    /// A message of the device's socket.
    fn tell(&mut self, request: u32, flags: u32, payload: &[u8]) -> Result<(), Failure<&'static str>> {
        let mut header = [0; vhost::HEADER];
        header[..4].copy_from_slice(&request.to_le_bytes());
        header[4..8].copy_from_slice(&flags.to_le_bytes());
        header[8..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        let header = Header::parse(&header)?;
        Ok(self.guest.handle_device(header, payload, 1)?)
    }

    fn bell(&mut self, queue: u64) -> Result<(), Failure<&'static str>> {
        self.tell(35, 9, &queue.to_le_bytes())
    }

    fn say_to_device(&mut self, choices: &mut Choices<'_>) -> Result<(), Failure<&'static str>> {
        let request = match choices.byte() {
            0 => u32::from(choices.half()),
            byte => [1, 2, 3, 5, 8, 9, 10, 15, 16, 18, 21, 35][usize::from(byte) % 12],
        };
        let flags = choices.of(&[1u32, 9, 9, 9, 9, 9, 9, 5, 0]);
        let len = choices.of(&[0u8, 8, 8, 8, 40, 40, 72, 7, 73]);
        let mut payload: Vec<u8> = (0..len).map(|_| choices.byte()).collect();
        if request == 8 && payload.len() == 8 {
            payload[4..].copy_from_slice(&choices.of(&SIZES).to_le_bytes());
        }
        self.tell(request, flags, &payload)
    }

    fn set_up(&mut self, queue: u32, choices: &mut Choices<'_>) -> Result<(), Failure<&'static str>> {
        let half = BASE + u64::from(queue) * (BYTES as u64 / 2);
        let size = choices.of(&[16, 16, 16, 16, 16, 16, 8, 1]);
        let both = |number: u32| [queue.to_le_bytes(), number.to_le_bytes()].concat();
        self.tell(8, 9, &both(size))?;
        let mut addresses = vec![u64::from(queue)];
        for offset in [RINGS[0], RINGS[2], RINGS[1]] {
            let place = half + offset;
            addresses.push(if choices.byte() == 255 { u64::MAX - u64::from(choices.byte()) } else { place });
        }
        addresses.push(0);
        let addresses: Vec<u8> = addresses.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.tell(9, 9, &addresses)?;
        self.memory.store(half + RINGS[1], &[0; 4]);
        self.tell(18, 9, &both(1))
    }

    /// A buffer of the guest, nearly as it should be: a command, or room for an interrupt.
    fn offer(&mut self, choices: &mut Choices<'_>) -> Result<(), Failure<&'static str>> {
        let queue = u64::from(choices.byte() & 1);
        let half = BASE + queue * (BYTES as u64 / 2);
        let index = choices.byte() % 16;
        let op = choices.of(&[1u8, 2, 3, 4, 5, 3, 1, 2, 3, 4, 5, 3, 3, 3, 0, 9]);
        let size = u32::from(choices.of(&[4u8, 4, 4, 1, 2, 8, 4, 4, 1, 1, 2, 8, 3, 0, 64]));
        let mut command = vec![op, if op < 3 { 0 } else { 7 }, 0, 0];
        command.extend(size.to_le_bytes());
        command.extend(u64::from(choices.half()).to_le_bytes());
        command.extend([choices.byte(); 16]);
        let place = half + DATA + u64::from(index) * 0x20;
        self.memory.store(place, &command);
        let writes = matches!(op, 1 | 3);
        let first =
            if queue == 0 { (place, 32, u16::from(writes), (index + 1) % 16) } else { (place, 32, 2, 0) };
        let second =
            (half + DATA, size, choices.of(&[2u16, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 0, 1]), choices.byte() % 17);
        for (index, (address, length, flags, next)) in [(index, first), ((index + 1) % 16, second)] {
            let mut bytes = address.to_le_bytes().to_vec();
            bytes.extend(length.to_le_bytes());
            bytes.extend(flags.to_le_bytes());
            bytes.extend(u16::from(next).to_le_bytes());
            self.memory.store(half + RINGS[0] + 16 * u64::from(index), &bytes);
        }
        let mut offered = [0; 2];
        assert!(self.memory.read(half + RINGS[1] + 2, &mut offered));
        let offered = u16::from_le_bytes(offered);
        let slot = u64::from(offered % 16);
        self.memory.store(half + RINGS[1] + 4 + 2 * slot, &u16::from(index).to_le_bytes());
        self.memory.store(half + RINGS[1] + 2, &offered.wrapping_add(1).to_le_bytes());
        if choices.byte() < 200 { self.bell(queue) } else { Ok(()) }
    }

    fn answer_call(&mut self, choices: &mut Choices<'_>) -> Result<(), Failure<&'static str>> {
        if !self.called && choices.byte() < 250 {
            return Ok(());
        }
        let mut bytes = vhost::answer(4, 0);
        if choices.byte() == 0 {
            bytes[usize::from(choices.byte() % 20)] ^= 1;
        }
        self.called = false;
        let answer = bytes.first_chunk::<{ vhost::CALL_ANSWER }>().expect("an answer");
        Ok(self.guest.handle_call_answer(answer)?)
    }

    /// What is said is little, and time goes on.
    fn hear(&mut self) {
        let mut count = 0;
        while let Some(output) = self.guest.poll_output() {
            count += 1;
            match output {
                Output::Calendar(bytes) => {
                    let message = calendar::Message::parse(&bytes).expect("a message");
                    if message.operation == calendar::Operation::Run {
                        assert!(message.time >= self.told, "{} after {}", message.time, self.told);
                        let passed = self.machine.now.as_fs();
                        assert_eq!(u128::from(message.time) * 1_000_000, passed.into(), "whole nanoseconds");
                        (self.told, self.sequence) = (message.time, message.sequence);
                    }
                }
                Output::Call(_) => {
                    self.called = true;
                    self.counts[1] += 1;
                }
                Output::Map(regions) => assert!(regions.len() <= 2),
                Output::Device(bytes) => assert_eq!(bytes.len(), 20),
                Output::BackChannel | Output::Broadcast(_) => {}
            }
        }
        assert!(count <= 8, "{count} messages come of one");
    }

    /// How many accesses there were.
    pub(crate) fn accesses(&self) -> u64 {
        self.counts[0] + self.machine.accesses
    }
}

/// What a guest says; how many accesses come of it.
pub(crate) fn guest(bytes: &[u8]) -> u64 {
    let mut choices = Choices(bytes);
    let mut fire = GuestUnderFire::new();
    while !choices.is_used_up() {
        fire.step(&mut choices);
    }
    fire.accesses()
}
