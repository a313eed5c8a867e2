//! Writes of the DMA engine: out of the device's memory, one operation after the other, and towards the link.

use crate::bench_engine::step::Step;
use crate::bench_engine::transmitter::{Kind, Request, Transmitter};
use crate::bench_engine::{DmaEngine, WriteUnit};
use crate::contract::Context;
use std::collections::VecDeque;
use tlplab_transaction::split::{RequestPolicy, split_request};
use tlplab_units::{Duration, Time};

pub(super) struct Writes {
    unit: WriteUnit,
    engine: DmaEngine,
    device_offset: u64,
    /// Operations on their way to the engine, and those on the way out of the device's memory: address and bytes.
    descriptors: VecDeque<(u64, u64)>,
    passing: VecDeque<(u64, u64)>,
    pass_free: Time,
    /// Operations that wait for the link, oldest first: none is over before.
    not_before: VecDeque<Time>,
}

impl Writes {
    pub(super) fn new(engine: DmaEngine, device_offset: u64) -> Self {
        Self {
            unit: engine.writes,
            engine,
            device_offset,
            descriptors: VecDeque::new(),
            passing: VecDeque::new(),
            pass_free: Time::ZERO,
            not_before: VecDeque::new(),
        }
    }

    /// An operation begins.
    pub(super) fn begin(&mut self, cx: &mut Context<'_>, address: u64, bytes: u64) {
        self.descriptors.push_back((address, bytes));
        Step::WriteTaken.after(cx, self.unit.overhead.issue);
    }

    /// The engine has taken the oldest descriptor: its data are next on the way out of the device's memory.
    pub(super) fn taken(&mut self, cx: &mut Context<'_>) {
        let Some((address, bytes)) = self.descriptors.pop_front() else { return };
        self.passing.push_back((address, bytes));
        let time = self.engine.write_passes(self.device_offset, bytes);
        self.pass_free = self.pass_free.max(cx.now()) + time;
        cx.timer(self.pass_free, Step::WritePassed.id());
    }

    /// The data of the oldest operation are out.
    pub(super) fn has_passed(&mut self, cx: &mut Context<'_>, way: &mut Transmitter) {
        let Some((address, bytes)) = self.passing.pop_front() else { return };
        self.not_before.push_back(cx.now() + self.unit.least);
        for chunk in split_request(address, bytes, self.unit.mps, RequestPolicy::Aligned) {
            let end = chunk.offset + u64::from(chunk.bytes);
            let idle = self.unit.idle(chunk.offset, end, bytes);
            let kind = Kind::Write { idle, last: end == bytes };
            way.push(cx, Request { address: chunk.address, bytes: chunk.bytes.into(), kind });
        }
    }

    /// The link has accepted the last TLP of an operation.
    pub(super) fn accepted(&mut self, cx: &mut Context<'_>) {
        let least =
            self.not_before.pop_front().map_or(Duration::ZERO, |time| time.saturating_since(cx.now()));
        Step::WriteOver.after(cx, least.max(self.unit.overhead.completion));
    }
}
