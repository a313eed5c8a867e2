//! Reads of the DMA engine: which requests leave when, and the way of their data into the device's memory.
//!
//! Operations are cut into requests that leave in order, as far as requests at once and the buffer allow. Data pass into the device's
//! memory in the order of the requests, whenever they come; then the request and its place in the buffer are free again. An operation
//! is over no sooner than if all its data had passed after the last had come: seen alone it is stored and then forwarded.

use crate::bench_engine::step::Step;
use crate::bench_engine::transmitter::{Kind, Request as Tlp, Transmitter};
use crate::bench_engine::{DmaEngine, ReadBuffer, ReadUnit};
use crate::contract::{Context, OpId};
use std::collections::VecDeque;
use tlplab_transaction::split::{Chunk, RequestChunks, RequestPolicy, split_request};
use tlplab_units::{Duration, Time};

/// A request that is under way, or whose data wait to pass.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// By which it comes back; known when it has left.
    op: Option<OpId>,
    blocks: u32,
    /// The time that its data keep those of others from passing.
    occupies: Duration,
    /// Of the last request of an operation: how long all its data take to pass.
    whole: Option<Duration>,
    /// The arrival of its last data.
    arrived: Option<Time>,
}

/// The operation that is cut into requests.
#[derive(Debug)]
struct Cutting {
    requests: RequestChunks,
    bytes: u64,
    /// The time that its data keep those of others from passing, and the time that they take to pass once all are there.
    occupies: Duration,
    passes: Duration,
}

pub(super) struct Reads {
    unit: ReadUnit,
    engine: DmaEngine,
    device_offset: u64,
    /// Operations on their way to the engine, and those it has taken: address and bytes.
    descriptors: VecDeque<(u64, u64)>,
    taken: VecDeque<(u64, u64)>,
    cutting: Option<Cutting>,
    /// Requests that have left, oldest first.
    requests: VecDeque<Request>,
    ring: Ring,
    /// Operations of which a request has left, and those whose data have passed.
    operations_begun: u64,
    operations_passed: u64,
    /// No request leaves before; a timer will tell when it is time.
    next_leaves: Time,
    waits_to_leave: bool,
    /// The way into the device's memory is free then; a timer will tell when the oldest data have passed.
    way_in_free: Time,
    on_way_in: bool,
}

impl Reads {
    pub(super) fn new(engine: DmaEngine, device_offset: u64) -> Self {
        Self {
            unit: engine.reads,
            engine,
            device_offset,
            descriptors: VecDeque::new(),
            taken: VecDeque::new(),
            cutting: None,
            requests: VecDeque::new(),
            ring: Ring::default(),
            operations_begun: 0,
            operations_passed: 0,
            next_leaves: Time::ZERO,
            waits_to_leave: false,
            way_in_free: Time::ZERO,
            on_way_in: false,
        }
    }

    /// An operation begins.
    pub(super) fn begin(&mut self, cx: &mut Context<'_>, address: u64, bytes: u64) {
        self.descriptors.push_back((address, bytes));
        Step::ReadTaken.after(cx, self.unit.overhead.issue);
    }

    /// The engine has taken the oldest descriptor.
    pub(super) fn taken(&mut self, cx: &mut Context<'_>, way: &mut Transmitter) {
        self.taken.extend(self.descriptors.pop_front());
        self.issue(cx, way);
    }

    /// Requests leave as long as they can.
    fn issue(&mut self, cx: &mut Context<'_>, way: &mut Transmitter) {
        while !self.waits_to_leave && self.next_operation() {
            if self.requests.len() >= self.unit.requests as usize {
                return;
            }
            if self.next_leaves > cx.now() {
                self.waits_to_leave = true;
                return cx.timer(self.next_leaves, Step::ReadIssue.id());
            }
            let Some(cutting) = &mut self.cutting else { return };
            let Some(chunk) = cutting.requests.peek() else { return };
            let blocks = self.unit.buffer.map_or(0, |buffer| {
                let skew = (self.device_offset + chunk.offset) % self.engine.alignment;
                (skew + u64::from(chunk.bytes)).div_ceil(buffer.block) as u32
            });
            if let Some(buffer) = self.unit.buffer {
                let before = self.operations_begun - u64::from(chunk.offset > 0);
                if !self.ring.has_room(&buffer, blocks, before, self.operations_passed) {
                    return;
                }
            }
            self.leaves(cx, way, chunk, blocks);
        }
    }

    /// The timer of `issue` has come.
    pub(super) fn issue_again(&mut self, cx: &mut Context<'_>, way: &mut Transmitter) {
        self.waits_to_leave = false;
        self.issue(cx, way);
    }

    /// True if an operation has requests left to make.
    fn next_operation(&mut self) -> bool {
        if self.cutting.is_none()
            && let Some((address, bytes)) = self.taken.pop_front()
        {
            let requests = split_request(address, bytes, self.unit.mrrs, RequestPolicy::Aligned);
            let occupies = self.engine.read_occupies(self.device_offset, bytes);
            let passes = self.engine.read_passes(self.device_offset, bytes);
            self.cutting = Some(Cutting { requests, bytes, occupies, passes });
        }
        self.cutting.is_some()
    }

    fn leaves(&mut self, cx: &mut Context<'_>, way: &mut Transmitter, chunk: Chunk, blocks: u32) {
        let Some(cutting) = &mut self.cutting else { return };
        cutting.requests.next();
        // The time of an operation is spread over its requests.
        let until = |bytes: u64| share(cutting.occupies, bytes, cutting.bytes);
        let occupies = until(chunk.offset + u64::from(chunk.bytes)) - until(chunk.offset);
        let whole = cutting.requests.is_finished().then_some(cutting.passes);
        let (address, bytes) = (chunk.address, chunk.bytes.into());
        way.push(cx, Tlp { address, bytes, kind: Kind::Read });
        self.requests.push_back(Request { op: None, blocks, occupies, whole, arrived: None });
        self.ring.takes(blocks);
        self.operations_begun += u64::from(chunk.offset == 0);
        let interval = if whole.is_some() { self.unit.interval } else { self.unit.interval_within };
        self.next_leaves = cx.now() + interval;
        if whole.is_some() {
            self.cutting = None;
        }
    }

    /// The data of a request have come.
    pub(super) fn arrived(&mut self, cx: &mut Context<'_>, way: &mut Transmitter, op: OpId) {
        while let Some(left) = way.next_left() {
            if let Some(request) = self.requests.iter_mut().find(|request| request.op.is_none()) {
                request.op = Some(left);
            }
        }
        if let Some(request) = self.requests.iter_mut().find(|request| request.op == Some(op)) {
            request.arrived = Some(cx.now());
        }
        self.pass(cx, way);
    }

    /// The oldest data pass if they are there.
    fn pass(&mut self, cx: &mut Context<'_>, way: &mut Transmitter) {
        while !self.on_way_in
            && let Some(request) = self.requests.front().filter(|request| request.arrived.is_some())
        {
            self.way_in_free = self.way_in_free.max(cx.now()) + request.occupies;
            if self.way_in_free > cx.now() {
                self.on_way_in = true;
                cx.timer(self.way_in_free, Step::ReadPassed.id());
            } else {
                self.retire(cx, way);
            }
        }
    }

    /// The timer of `pass` has come.
    pub(super) fn has_passed(&mut self, cx: &mut Context<'_>, way: &mut Transmitter) {
        self.on_way_in = false;
        self.retire(cx, way);
        self.pass(cx, way);
    }

    /// The oldest data are in the device's memory.
    fn retire(&mut self, cx: &mut Context<'_>, way: &mut Transmitter) {
        let Some(request) = self.requests.pop_front() else { return };
        self.ring.frees(request.blocks);
        if let (Some(whole), Some(arrived)) = (request.whole, request.arrived) {
            self.operations_passed += 1;
            let forwarded = (arrived + whole).saturating_since(cx.now());
            Step::ReadOver.after(cx, forwarded + self.unit.overhead.completion);
        }
        self.issue(cx, way);
    }
}

/// The blocks of a read buffer that are taken.
#[derive(Debug, Default)]
struct Ring {
    taken: u32,
    /// The start of the next request's blocks.
    next: u32,
    /// The next request is at the start of the ring again, when so many operations have passed.
    starts_over_after: Option<u64>,
}

impl Ring {
    /// True if there is room for the next request, whose operation followed `before` operations. At the end of the ring all of these but the last
    /// have to pass, unless the buffer is full.
    fn has_room(&mut self, buffer: &ReadBuffer, blocks: u32, before: u64, passed: u64) -> bool {
        if self.starts_over_after.is_none() && self.next + blocks > buffer.blocks {
            let full = self.taken + blocks > buffer.blocks - buffer.margin;
            self.starts_over_after = Some(if full { 0 } else { before.saturating_sub(1) });
            self.next = 0;
        }
        self.starts_over_after.is_none_or(|before| passed >= before) && self.taken + blocks <= buffer.blocks
    }

    fn takes(&mut self, blocks: u32) {
        self.starts_over_after = None;
        self.next += blocks;
        self.taken += blocks;
    }

    fn frees(&mut self, blocks: u32) {
        self.taken -= blocks;
    }
}

/// The part of a time that belongs to the first `part` of `whole`.
fn share(time: Duration, part: u64, whole: u64) -> Duration {
    Duration::from_fs((u128::from(time.as_fs()) * u128::from(part) / u128::from(whole)) as u64)
}
