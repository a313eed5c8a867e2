//! One run of transfers over a channel: calls, descriptors, completions, checks.

use super::buffer::{Buffer, content};
use super::load::{Descriptors, TransferLoad, Wait};
use crate::host::{Calls, HostContext};
use crate::tlpdma::regs::{self, Descriptor, Record, ch};
use std::collections::VecDeque;
use tlplab_units::{Duration, Time};

/// The interval of a program that polls.
const POLL: Duration = Duration::from_ns(20);

/// The purpose of a timer of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// The run begins.
    Begin,
    /// Software has done its part of a call.
    Called,
    /// The interrupt handler runs.
    Handler,
    /// Time to look at the record.
    Poll,
    /// The processor is done with a store.
    Stored,
}

impl Alarm {
    pub(super) const ALL: [Self; 5] = [Self::Begin, Self::Called, Self::Handler, Self::Poll, Self::Stored];
}

/// A piece of a buffer and its counterpart in the card's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) buffer: Buffer,
    /// First byte in buffer and content.
    pub(super) at: u64,
    pub(super) local: u64,
    pub(super) bytes: u64,
    /// The number of the data there.
    pub(super) content: u64,
}

/// The work of a run: transfer after transfer, each at the next place.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) load: TransferLoad,
    pub(super) places: Vec<Place>,
    /// The load whose figures these are; `None` for what is beside the measurement.
    pub(super) measures: Option<u16>,
    pub(super) stream: u16,
    /// Each transfer has data of its own, instead of its place's.
    pub(super) renews: bool,
    /// Data are written and checked.
    pub(super) checks: bool,
}

/// The addresses of the channel's structures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wiring {
    /// Address of the channel's registers.
    pub(super) registers: u64,
    pub(super) ring: u64,
    pub(super) record: u64,
    /// Descriptors that the card can take ahead.
    pub(super) capacity: u32,
}

/// A call that is under way.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: u64,
    begun: Time,
    /// Descriptors that are done when it is.
    end: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) work: Work,
    wiring: Wiring,
    channel: u64,
    calls: VecDeque<Call>,
    begun: u64,
    /// The processor is at a call, or at a store (the word of the descriptor that is next).
    calling: bool,
    storing: Option<usize>,
    waiting: VecDeque<Descriptor>,
    queued: u32,
    posted: u32,
    head: u32,
    /// The handler, or the next look, is on its way.
    pending: bool,
    pub(super) done: u64,
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) figures: Calls,
}

impl Run {
    pub(super) fn new(work: Work, wiring: Wiring) -> Self {
        Self {
            channel: u64::from(!work.load.to_card),
            work,
            wiring,
            calls: VecDeque::new(),
            begun: 0,
            calling: false,
            storing: None,
            waiting: VecDeque::new(),
            queued: 0,
            posted: 0,
            head: 0,
            pending: false,
            done: 0,
            from: Time::ZERO,
            to: Time::ZERO,
            figures: Calls::default(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.done == self.work.load.count
    }

    fn place(&self, number: u64) -> Place {
        let place = self.work.places[(number % self.work.places.len() as u64) as usize];
        let content = if self.work.renews { number } else { place.content };
        Place { content, ..place }
    }

    pub(super) fn alarm(&self, cx: &mut HostContext<'_>, at: Time, alarm: Alarm) {
        cx.timer(at, self.channel << 8 | alarm as u64);
    }

    pub(super) fn handle(&mut self, cx: &mut HostContext<'_>, alarm: Alarm) {
        match alarm {
            Alarm::Begin => {
                self.from = cx.now();
                self.call(cx);
            }
            Alarm::Called => self.called(cx),
            Alarm::Handler | Alarm::Poll => {
                self.pending = false;
                self.look(cx);
            }
            Alarm::Stored => self.stored(cx),
        }
    }

    /// The channel interrupts.
    pub(super) fn interrupted(&mut self, cx: &mut HostContext<'_>) {
        self.figures.interrupts += 1;
        if let Wait::Interrupt { delay } = self.work.load.wait
            && !std::mem::replace(&mut self.pending, true)
        {
            self.alarm(cx, cx.now() + delay, Alarm::Handler);
        }
    }

    /// Software begins the next call, if it may.
    fn call(&mut self, cx: &mut HostContext<'_>) {
        let load = &self.work.load;
        if self.calling || self.begun == load.count || self.calls.len() as u64 >= load.outstanding {
            return;
        }
        self.calling = true;
        self.calls.push_back(Call { number: self.begun, begun: cx.now(), end: None });
        self.begun += 1;
        match load.call_cost.is_zero() {
            true => self.called(cx),
            false => self.alarm(cx, cx.now() + load.call_cost, Alarm::Called),
        }
    }

    /// The last call becomes descriptors.
    fn called(&mut self, cx: &mut HostContext<'_>) {
        self.calling = false;
        let Some(call) = self.calls.back().copied() else { return };
        let place = self.place(call.number);
        if self.work.load.to_card && self.work.checks {
            place.buffer.write(cx.memory(), place.at, &content(place.content, place.at, place.bytes));
        }
        let before = self.waiting.len();
        let mut local = place.local;
        for (host, bytes) in place.buffer.pieces(place.at, place.bytes) {
            self.waiting.push_back(Descriptor {
                host,
                local: local as u32,
                bytes: bytes as u32,
                ..Descriptor::default()
            });
            local += bytes;
        }
        // Software must hear of room before the card runs dry.
        let every = (self.wiring.capacity / 2).max(1);
        for descriptor in self.waiting.range_mut(before..) {
            self.queued = self.queued.wrapping_add(1);
            if self.queued.is_multiple_of(every) {
                signal(descriptor, self.work.load.wait);
            }
        }
        if let Some(last) = self.waiting.back_mut() {
            signal(last, self.work.load.wait);
        }
        if let Some(call) = self.calls.back_mut() {
            call.end = Some(self.queued);
        }
        self.post(cx);
        if self.work.load.wait == Wait::Poll && !std::mem::replace(&mut self.pending, true) {
            self.alarm(cx, cx.now() + POLL, Alarm::Poll);
        }
        self.call(cx);
    }

    /// Gives the card as many descriptors as it has room for.
    fn post(&mut self, cx: &mut HostContext<'_>) {
        let room = self.wiring.capacity - self.posted.wrapping_sub(self.head);
        if let Descriptors::Pio { .. } = self.work.load.descriptors {
            if room > 0 && self.storing.is_none() && !self.waiting.is_empty() {
                self.store(cx, 0);
            }
            return;
        }
        let new = room.min(self.waiting.len() as u32);
        for descriptor in self.waiting.drain(..new as usize) {
            let slot = u64::from(self.posted % self.wiring.capacity);
            cx.memory().write(self.wiring.ring + slot * Descriptor::BYTES as u64, &descriptor.to_bytes());
            self.posted = self.posted.wrapping_add(1);
        }
        if new > 0 {
            self.write(cx, ch::TAIL.offset(), self.posted.to_le_bytes());
        }
    }

    /// One of the four stores of the next descriptor.
    fn store(&mut self, cx: &mut HostContext<'_>, word: usize) {
        let Descriptors::Pio { interval } = self.work.load.descriptors else { return };
        let Some(descriptor) = self.waiting.front() else { return };
        let bytes = descriptor.to_bytes();
        self.write(cx, ch::PIO_DESCRIPTOR.offset() + 4 * word as u64, bytes.as_chunks().0[word]);
        self.storing = Some(word);
        if word == 3 {
            // The last one pushes it.
            self.waiting.pop_front();
            self.posted = self.posted.wrapping_add(1);
        }
        match interval.is_zero() {
            true => self.stored(cx),
            false => self.alarm(cx, cx.now() + interval, Alarm::Stored),
        }
    }

    fn stored(&mut self, cx: &mut HostContext<'_>) {
        match self.storing.take() {
            Some(3) => {
                self.see(cx);
                self.post(cx);
            }
            Some(word) => self.store(cx, word + 1),
            None => {}
        }
    }

    fn write(&self, cx: &mut HostContext<'_>, register: u64, value: [u8; 4]) {
        cx.mmio_write(self.work.stream, self.wiring.registers + register, value.into());
    }

    /// The progress of the card, by its record.
    fn see(&mut self, cx: &mut HostContext<'_>) -> Record {
        let mut bytes = [0; Record::BYTES];
        cx.memory().read(self.wiring.record, &mut bytes);
        let record = Record::from_bytes(bytes);
        if record.head.wrapping_sub(self.head) > self.posted.wrapping_sub(self.head) {
            cx.fault(format!(
                "the card reports {} descriptors done, but {} were posted",
                record.head, self.posted
            ));
        } else {
            self.head = record.head;
        }
        record
    }

    /// Ends the calls that are over.
    pub(super) fn look(&mut self, cx: &mut HostContext<'_>) {
        let record = self.see(cx);
        if record.status & Record::HALTED != 0 {
            let why = regs::error_name(record.status);
            return cx.fault(format!(
                "the channel {} halted at descriptor {}: {why}",
                self.way(),
                record.head
            ));
        }
        while let Some(call) = self.calls.front().copied()
            && call.end.is_some_and(|end| self.head.wrapping_sub(end) as i32 >= 0)
        {
            self.calls.pop_front();
            self.done += 1;
            self.to = cx.now();
            self.figures.add(cx.now() - call.begun);
            self.check(cx, call.number);
        }
        self.post(cx);
        self.call(cx);
        if self.work.load.wait == Wait::Poll && !self.is_over() && !std::mem::replace(&mut self.pending, true)
        {
            self.alarm(cx, cx.now() + POLL, Alarm::Poll);
        }
    }

    fn way(&self) -> &'static str {
        if self.work.load.to_card { "to the card" } else { "from the card" }
    }

    /// Checks that the received data are those that lay on the card.
    fn check(&self, cx: &mut HostContext<'_>, number: u64) {
        if self.work.load.to_card || !self.work.checks {
            return;
        }
        let place = self.place(number);
        let parts = match self.work.measures {
            Some(_) => self.work.load.verify.parts(place.bytes),
            None => vec![(0, place.bytes)],
        };
        for (at, bytes) in parts {
            let at = place.at + at;
            let found = place.buffer.read(cx.memory(), at, bytes);
            let wanted = content(place.content, at, bytes);
            if let Some(wrong) = found.iter().zip(&wanted).position(|(found, right)| found != right) {
                let byte = at + wrong as u64;
                return cx
                    .fault(format!("transfer {number} {} is wrong from byte {byte} onwards", self.way()));
            }
        }
        // What is found once must be moved again to be found again.
        place.buffer.write(cx.memory(), place.at, &vec![0; place.bytes as usize]);
    }
}

/// Asks for what tells software of a descriptor's end.
fn signal(descriptor: &mut Descriptor, wait: Wait) {
    match wait {
        Wait::Interrupt { .. } => descriptor.interrupt = true,
        Wait::Poll => descriptor.write_back = true,
    }
}
