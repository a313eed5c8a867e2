//! A host for the controller alone: memory, doorbells, and an order of accesses as bad as PCI Express allows. Reads end out of order; writes
//! are accepted one after the other and reach memory in that order, some time later, before the interrupts that follow them.

use std::collections::BTreeMap;
use tlplab_device::nvme::{Nvme, NvmeConfig, regs};
use tlplab_device::*;
use tlplab_units::{Duration, Time};

/// Memory pages of the host are as large.
pub(crate) const PAGE: u64 = 4096;

enum Happening {
    Event(Event),
    Read(OpId, u64, u64, bool),
    Write(u64, Payload),
    Interrupt(u16),
    Pin(bool),
}

/// What a completion says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) queue: u16,
    pub(crate) id: u16,
    pub(crate) status: u16,
    pub(crate) result: u32,
    pub(crate) at: Time,
}

impl Done {
    /// Status code type and status code.
    pub(crate) fn code(&self) -> u16 {
        self.status & 0x7FF
    }
}

struct Pair {
    submission: u64,
    completion: u64,
    entries: u32,
    tail: u32,
    head: u32,
    phase: bool,
    next_id: u16,
}

pub(crate) struct Bench {
    pub(crate) nvme: Nvme,
    pub(crate) ram: HostRam,
    pub(crate) now: Time,
    pub(crate) mode: InterruptMode,
    pub(crate) length_only: bool,
    /// Vectors of the messages, in order.
    pub(crate) messages: Vec<u16>,
    pub(crate) pin: bool,
    /// Every access: `r` or `w`, address, bytes.
    pub(crate) log: Vec<(char, u64, u64)>,
    /// Reads at this address fail.
    pub(crate) poison: Option<u64>,
    /// Completions that nobody has looked at are left in their queues.
    pub(crate) lazy: bool,
    pub(crate) done: Vec<Done>,
    pub(crate) under_way: usize,
    pub(crate) most_under_way: usize,
    agenda: BTreeMap<(Time, u64), Happening>,
    sequence: u64,
    next_op: u64,
    last_write: Time,
    random: u64,
    pairs: BTreeMap<u16, Pair>,
    answer: Option<Payload>,
}

impl Bench {
    pub(crate) fn new(config: NvmeConfig) -> Self {
        let media = config.sparse_media();
        Self::with(Nvme::new(config, media), 1)
    }

    pub(crate) fn with(nvme: Nvme, seed: u64) -> Self {
        nvme.identity().check().expect("a possible identity");
        Self {
            nvme,
            ram: HostRam::new(0x10_0000, 1 << 30),
            now: Time::ZERO,
            mode: InterruptMode::MsiX,
            length_only: false,
            messages: vec![],
            pin: false,
            log: vec![],
            poison: None,
            lazy: false,
            done: vec![],
            under_way: 0,
            most_under_way: 0,
            agenda: BTreeMap::new(),
            sequence: 0,
            next_op: 0,
            last_write: Time::ZERO,
            random: seed | 1,
            pairs: BTreeMap::new(),
            answer: None,
        }
    }

    /// xorshift64.
    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    pub(crate) fn alloc(&mut self, bytes: u64) -> u64 {
        self.ram.alloc(bytes, PAGE).expect("memory")
    }

    fn at(&mut self, time: Time, happening: Happening) {
        self.agenda.insert((time, self.sequence), happening);
        self.sequence += 1;
    }

    pub(crate) fn tell(&mut self, event: Event) {
        let mut actions = Vec::new();
        let mut cx = Context::new(self.now, &[], &mut self.next_op, &mut actions)
            .with_length_only(self.length_only)
            .with_interrupts(self.mode);
        self.nvme.handle(&mut cx, event);
        actions.into_iter().for_each(|action| self.act(action));
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::DmaRead { op, address, bytes, carry, .. } => {
                self.log.push(('r', address, bytes));
                self.begin();
                let after = Duration::from_ns(300 + self.random(900));
                self.at(self.now + after, Happening::Read(op, address, bytes, carry));
            }
            Action::DmaWrite { op, stream, address, data } => {
                assert_eq!(stream, 3);
                self.log.push(('w', address, data.len()));
                self.begin();
                self.last_write = self.last_write.max(self.now) + Duration::from_ns(5);
                self.at(self.last_write, Happening::Event(Event::DmaWriteAccepted { op }));
                self.at(self.last_write + Duration::from_ns(500), Happening::Write(address, data));
            }
            Action::Msix { stream, vector } => {
                assert_eq!(stream, 3);
                assert!(matches!(self.mode, InterruptMode::MsiX | InterruptMode::Msi));
                let at = self.last_write.max(self.now) + Duration::from_ns(500);
                self.at(at, Happening::Interrupt(vector));
            }
            Action::Intx { stream, asserted } => {
                assert_eq!(stream, 3);
                let at = self.last_write.max(self.now) + Duration::from_ns(500);
                self.at(at, Happening::Pin(asserted));
            }
            Action::Reply { data, .. } => self.answer = Some(data),
            Action::Timer { at, id } => self.at(at, Happening::Event(Event::Timer { id })),
            other => panic!("{other:?}"),
        }
    }

    fn begin(&mut self) {
        self.under_way += 1;
        self.most_under_way = self.most_under_way.max(self.under_way);
    }

    /// One thing happens, if there is any that does before `until`.
    pub(crate) fn step(&mut self, until: Time) -> bool {
        let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= until) else {
            self.now = if until == Time::NEVER { self.now } else { until };
            return false;
        };
        self.now = entry.key().0;
        match entry.remove() {
            Happening::Event(event) => {
                self.under_way -= usize::from(matches!(event, Event::DmaWriteAccepted { .. }));
                self.tell(event);
            }
            Happening::Read(op, address, bytes, carry) => {
                self.under_way -= 1;
                let result = if self.poison == Some(address) {
                    Err(tlplab_transaction::CompletionError::Poisoned { address }.into())
                } else if self.length_only && !carry {
                    Ok(Payload::Length(bytes))
                } else {
                    let mut data = vec![0; bytes as usize];
                    self.ram.read(address, &mut data);
                    Ok(data.into())
                };
                self.tell(Event::DmaReadDone { op, result });
            }
            Happening::Write(address, data) => {
                if let Some(bytes) = data.bytes() {
                    self.ram.write(address, bytes);
                }
            }
            Happening::Interrupt(vector) => self.messages.push(vector),
            Happening::Pin(asserted) => {
                assert_ne!(self.pin, asserted, "the level changes");
                self.pin = asserted;
            }
        }
        if !self.lazy {
            self.reap();
        }
        true
    }

    /// Goes on until nothing happens any more.
    pub(crate) fn settle(&mut self) {
        while self.step(Time::NEVER) {}
    }
    pub(crate) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
    }

    pub(crate) fn write32(&mut self, offset: u64, value: u32) {
        self.tell(Event::MmioWrite { bar: 0, offset, data: value.to_le_bytes().into() });
    }
    pub(crate) fn write64(&mut self, offset: u64, value: u64) {
        self.tell(Event::MmioWrite { bar: 0, offset, data: value.to_le_bytes().into() });
    }
    pub(crate) fn read64(&mut self, offset: u64) -> u64 {
        self.tell(Event::MmioRead { bar: 0, offset, bytes: 8, reply: ReplyToken(0) });
        let data = self.answer.take().expect("it answers at once");
        u64::from_le_bytes(data.bytes().expect("bytes").try_into().expect("8"))
    }
    pub(crate) fn read32(&mut self, offset: u64) -> u32 {
        self.tell(Event::MmioRead { bar: 0, offset, bytes: 4, reply: ReplyToken(0) });
        let data = self.answer.take().expect("it answers at once");
        u32::from_le_bytes(data.bytes().expect("bytes").try_into().expect("4"))
    }

    /// Adds a queue pair that the controller may not know of yet; returns the addresses of its two queues.
    pub(crate) fn pair(&mut self, queue: u16, entries: u32) -> (u64, u64) {
        let submission = self.alloc(u64::from(entries) * 64);
        let completion = self.alloc(u64::from(entries) * 16);
        let pair = Pair { submission, completion, entries, tail: 0, head: 0, phase: true, next_id: 0 };
        self.pairs.insert(queue, pair);
        (submission, completion)
    }

    /// Configuration: enabled, entries of 64 and 16 B.
    pub(crate) const ENABLED: u32 = 1 | 6 << 16 | 4 << 20;

    /// Enables the controller with admin queues of 32 entries, and waits until it is ready.
    pub(crate) fn enable(&mut self) {
        let (submission, completion) = self.pair(0, 32);
        self.write32(regs::AQA.offset(), 31 << 16 | 31);
        self.write64(regs::ASQ.offset(), submission);
        self.write64(regs::ACQ.offset(), completion);
        self.write32(regs::CC.offset(), Self::ENABLED);
        while self.read32(regs::CSTS.offset()) & 1 == 0 {
            assert!(self.step(Time::NEVER), "it becomes ready");
        }
    }

    /// Creates an I/O queue pair.
    pub(crate) fn create(&mut self, queue: u16, entries: u32, vector: u16) {
        let (submission, completion) = self.pair(queue, entries);
        let size = (entries - 1) << 16 | u32::from(queue);
        let created = self.admin(Entry::new(5).prp(completion, 0).words(size, u32::from(vector) << 16 | 3));
        assert_eq!(created.status, 0);
        let created = self.admin(Entry::new(1).prp(submission, 0).words(size, u32::from(queue) << 16 | 1));
        assert_eq!(created.status, 0);
    }

    /// Puts a command into a queue, without a doorbell. Returns its identifier.
    pub(crate) fn put(&mut self, queue: u16, entry: Entry) -> u16 {
        let pair = self.pairs.get_mut(&queue).expect("a queue");
        let id = pair.next_id;
        pair.next_id = id.wrapping_add(1);
        let mut bytes = entry.0;
        bytes[2..4].copy_from_slice(&id.to_le_bytes());
        self.ram.write(pair.submission + u64::from(pair.tail) * 64, &bytes);
        pair.tail = (pair.tail + 1) % pair.entries;
        id
    }
    pub(crate) fn ring(&mut self, queue: u16) {
        let tail = self.pairs[&queue].tail;
        self.write32(regs::DOORBELLS + u64::from(queue) * 8, tail);
    }
    pub(crate) fn submit(&mut self, queue: u16, entry: Entry) -> u16 {
        let id = self.put(queue, entry);
        self.ring(queue);
        id
    }

    /// Takes the completions that there are, and rings the doorbells.
    pub(crate) fn reap(&mut self) {
        let queues: Vec<u16> = self.pairs.keys().copied().collect();
        for queue in queues {
            while self.reap_one(queue) {}
        }
    }
    pub(crate) fn reap_one(&mut self, queue: u16) -> bool {
        let pair = self.pairs.get_mut(&queue).expect("a queue");
        let mut entry = [0; 16];
        self.ram.read(pair.completion + u64::from(pair.head) * 16, &mut entry);
        let half = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        if (half(14) & 1 == 1) != pair.phase {
            return false;
        }
        pair.head = (pair.head + 1) % pair.entries;
        pair.phase ^= pair.head == 0;
        let head = pair.head;
        let result = u32::from_le_bytes(entry[..4].try_into().expect("4"));
        let done = Done { queue: half(10), id: half(12), status: half(14) >> 1, result, at: self.now };
        assert!(u32::from(half(8)) < self.pairs[&done.queue].entries, "the head of its queue");
        self.done.push(done);
        self.write32(regs::DOORBELLS + u64::from(queue) * 8 + 4, head);
        true
    }

    /// Submits a command and waits for its completion.
    pub(crate) fn command(&mut self, queue: u16, entry: Entry) -> Done {
        let id = self.submit(queue, entry);
        loop {
            if let Some(place) = self.done.iter().position(|done| (done.queue, done.id) == (queue, id)) {
                return self.done.remove(place);
            }
            assert!(self.step(Time::NEVER), "command {id} of queue {queue} ends");
        }
    }
    pub(crate) fn admin(&mut self, entry: Entry) -> Done {
        self.command(0, entry)
    }

    pub(crate) fn bytes(&self, address: u64, bytes: u64) -> Vec<u8> {
        let mut data = vec![0; bytes as usize];
        self.ram.read(address, &mut data);
        data
    }

    /// Power fails and comes back: everything on the agenda is gone, and so are the queues.
    pub(crate) fn lose_power(&mut self) {
        self.nvme.lose_power();
        self.agenda.clear();
        self.pairs.clear();
        self.done.clear();
        (self.under_way, self.pin) = (0, false);
    }
    /// The function is reset.
    pub(crate) fn reset(&mut self) {
        self.agenda.clear();
        self.pairs.clear();
        self.done.clear();
        (self.under_way, self.pin) = (0, false);
        self.tell(Event::Reset);
    }
}

/// A submission queue entry.
#[derive(Clone, Copy)]
pub(crate) struct Entry(pub(crate) [u8; 64]);

impl Entry {
    pub(crate) fn new(opcode: u8) -> Self {
        let mut bytes = [0; 64];
        bytes[0] = opcode;
        Self(bytes)
    }
    pub(crate) fn word(mut self, place: usize, value: u32) -> Self {
        self.0[4 * place..4 * place + 4].copy_from_slice(&value.to_le_bytes());
        self
    }
    /// Command dwords 10 and 11.
    pub(crate) fn words(self, ten: u32, eleven: u32) -> Self {
        self.word(10, ten).word(11, eleven)
    }
    pub(crate) fn namespace(self, namespace: u32) -> Self {
        self.word(1, namespace)
    }
    pub(crate) fn prp(mut self, first: u64, second: u64) -> Self {
        self.0[24..32].copy_from_slice(&first.to_le_bytes());
        self.0[32..40].copy_from_slice(&second.to_le_bytes());
        self
    }
    /// An SGL descriptor: address, bytes, type.
    pub(crate) fn sgl(mut self, descriptor: [u8; 16]) -> Self {
        self.0[1] |= 1 << 6;
        self.0[24..40].copy_from_slice(&descriptor);
        self
    }
    /// A command about blocks of namespace 1.
    pub(crate) fn blocks(opcode: u8, first: u64, blocks: u32) -> Self {
        let entry = Self::new(opcode).namespace(1).words(first as u32, (first >> 32) as u32);
        entry.word(12, blocks - 1)
    }
    /// Force unit access.
    pub(crate) fn through(self) -> Self {
        let word = u32::from_le_bytes(self.0[48..52].try_into().expect("4"));
        self.word(12, word | 1 << 30)
    }
}

pub(crate) fn descriptor(address: u64, bytes: u32, kind: u8) -> [u8; 16] {
    let mut descriptor = [0; 16];
    descriptor[..8].copy_from_slice(&address.to_le_bytes());
    descriptor[8..12].copy_from_slice(&bytes.to_le_bytes());
    descriptor[15] = kind;
    descriptor
}
