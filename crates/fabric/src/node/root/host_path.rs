//! The stages between the root complex, host memory and the processor: an I/O cache, a memory bus, a bridge.
//!
//! ```text
//! devices ── root complex ── I/O cache ── memory bus ── memory
//!                 └───────── bridge ────── memory bus ── processor
//! ```
//!
//! A request of a device passes the I/O cache and the memory bus, its answer the same stages back. The processor's requests pass the memory
//! bus and the bridge, and completions for it come back by them. Each stage that is absent takes no time. A stage takes the data one after
//! the other at its rate, in each direction, and then its latency. It holds `entries` requests of devices, each until its answer has
//! passed back (a posted write: until memory has taken it); further ones wait before it in their order, the first stage's in the root
//! complex. Nothing passes a posted write: a completion for the processor waits until the writes before it are in memory.

use crate::config::{HostConfig, HostStageConfig};
use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::node::answer::Answer;
use crate::node::initiator::Initiate;
use crate::node::root::Root;
use crate::packet::attribution::{Cause, Place};
use crate::packet::slab::TlpHandle;
use std::collections::VecDeque;
use tlplab_transaction::{Payload, memory_access};
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::{Kind, Repr};

/// The place of a TLP on its way, and the stage that it passes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    InByCache,
    InByBus,
    OutByBus,
    OutByCache,
    CpuByBridge,
    CpuByBus,
}

impl Step {
    const ALL: [Self; 6] =
        [Self::InByCache, Self::InByBus, Self::OutByBus, Self::OutByCache, Self::CpuByBridge, Self::CpuByBus];

    const fn stage(self) -> usize {
        match self {
            Self::InByCache | Self::OutByCache => HostPath::IO_CACHE,
            Self::InByBus | Self::OutByBus | Self::CpuByBus => HostPath::MEMORY_BUS,
            Self::CpuByBridge => HostPath::BRIDGE,
        }
    }
    const fn next(self) -> Option<Self> {
        match self {
            Self::InByCache => Some(Self::InByBus),
            Self::OutByBus => Some(Self::OutByCache),
            Self::CpuByBridge => Some(Self::CpuByBus),
            Self::InByBus | Self::OutByCache | Self::CpuByBus => None,
        }
    }
    /// Towards devices.
    const fn is_outward(self) -> bool {
        matches!(self, Self::OutByBus | Self::OutByCache)
    }
}

/// Data one after the other, in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    free: Time,
}

impl Lane {
    /// The time at which `bytes` that come now are through.
    fn pass(&mut self, now: Time, bytes: u64, rate: Option<u64>) -> Time {
        let Some(rate) = rate else { return now };
        let fs = (u128::from(bytes) * 8 * 1_000_000_000_000_000).div_ceil(u128::from(rate));
        self.free = self.free.max(now) + Duration::from_fs(fs as u64);
        self.free
    }
}

/// A stage of the way.
#[derive(Clone, Debug)]
struct Stage {
    config: HostStageConfig,
    place: Place,
    /// Towards memory and processor, and towards devices.
    lanes: [Lane; 2],
    held: u16,
    waiting: VecDeque<(TlpHandle, PortId)>,
}

impl Stage {
    fn has_room(&self) -> bool {
        self.config.entries.is_none_or(|entries| self.held < entries)
    }
    /// The time at which `bytes` that come now leave.
    fn pass(&mut self, now: Time, bytes: u64, outward: bool) -> Time {
        self.lanes[usize::from(outward)].pass(now, bytes, self.config.rate) + self.config.latency
    }
}

/// All stages.
#[derive(Clone, Debug)]
pub(crate) struct HostPath {
    stages: [Option<Stage>; 3],
    /// Posted writes and interrupts that came here, and those that arrived.
    came: u64,
    arrived: u64,
    /// Completions and messages behind so many of them.
    behind: VecDeque<(u64, TlpHandle, PortId)>,
}

impl HostPath {
    const IO_CACHE: usize = 0;
    const MEMORY_BUS: usize = 1;
    const BRIDGE: usize = 2;
    /// Their names after the host's, in the order of their places.
    const NAMES: [&str; 3] = ["io_cache", "memory_bus", "bridge"];

    /// The stages of a host, whose places are numbered from `first`.
    pub(crate) fn new(host: &HostConfig, first: u16) -> Self {
        let mut places = first..;
        let stages = [host.io_cache, host.memory_bus, host.bridge].map(|config| {
            let (config, place) = (config?, Place(places.next()?));
            Some(Stage { config, place, lanes: [Lane::default(); 2], held: 0, waiting: VecDeque::new() })
        });
        Self { stages, came: 0, arrived: 0, behind: VecDeque::new() }
    }

    /// The stages that the processor's own requests pass, each with its latency.
    pub(crate) fn of_processor(&self) -> [Option<(Place, Duration)>; 2] {
        [Self::MEMORY_BUS, Self::BRIDGE]
            .map(|stage| self.stages[stage].as_ref().map(|stage| (stage.place, stage.config.latency)))
    }

    /// True if requests of devices reach memory at once.
    pub(crate) fn is_direct(&self) -> bool {
        self.first(Step::InByCache).is_none()
    }

    fn first(&self, from: Step) -> Option<Step> {
        let next = |step: &Step| step.next();
        std::iter::successors(Some(from), next).find(|step| self.stages[step.stage()].is_some())
    }
}

/// Names of the stages that a host has, in the order of their places.
pub(crate) fn names_of(host: &HostConfig) -> Vec<String> {
    let present = [host.io_cache, host.memory_bus, host.bridge];
    let named = HostPath::NAMES.iter().zip(present).filter(|(_, stage)| stage.is_some());
    named.map(|(name, _)| format!("{}.{name}", host.name)).collect()
}

/// Bytes of data that a request carries.
fn carried(repr: &Repr) -> u64 {
    match repr.kind() {
        Kind::MemRead { .. } => 0,
        _ => memory_access(repr).map_or(0, |access| u64::from(access.bytes)),
    }
}

impl Root {
    /// A request of a device for memory, or an interrupt, sets out from the root complex. False if there is nothing on its way.
    pub(crate) fn enter_host_path(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) -> bool {
        let Some(step) = self.path.first(Step::InByCache) else { return false };
        self.arrive_at_stage(cx, step, ingress, handle);
        true
    }

    /// A posted write or an interrupt is at the root complex. Those are counted where they may be on their way for some time.
    pub(crate) fn count_posted_write(&mut self) {
        let Self { path, memory_system, domains, .. } = self;
        let translates = memory_system.as_ref().is_some_and(|system| system.holds_writes());
        path.came += u64::from(translates || domains.hold_memory() || !path.is_direct());
    }

    /// TLPs that would pass posted writes queue behind them. False if there are none on their way.
    pub(crate) fn queue_behind_writes(&mut self, ingress: PortId, handle: TlpHandle) -> bool {
        let path = &mut self.path;
        let waits = path.arrived < path.came;
        if waits {
            path.behind.push_back((path.came, handle, ingress));
        }
        waits
    }

    /// The answer to a request sets out from memory; at once if nothing is on its way.
    pub(crate) fn return_from_memory(
        &mut self,
        cx: &mut Context,
        ingress: PortId,
        handle: TlpHandle,
        data: Payload,
    ) {
        let Some(step) = self.path.first(Step::OutByBus) else {
            return self.answer(cx, ingress, handle, Ok(data));
        };
        let (now, place) = (cx.now(), cx.place_of(self.node));
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Completer);
        }
        let bytes = data.len();
        tlp.payload = data;
        self.passes(cx, step, ingress, handle, bytes);
    }

    /// A completion sets out for the processor. False if there is nothing on its way.
    pub(crate) fn send_to_processor(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) -> bool {
        let Some(step) = self.path.first(Step::CpuByBridge) else { return false };
        let bytes = cx.tlps.get(handle).payload.len();
        self.passes(cx, step, ingress, handle, bytes);
        true
    }

    /// Before a stage, on the way in: it waits here while the stage is full.
    fn arrive_at_stage(&mut self, cx: &mut Context, step: Step, ingress: PortId, handle: TlpHandle) {
        let Some(stage) = &mut self.path.stages[step.stage()] else { return };
        if stage.has_room() && stage.waiting.is_empty() {
            self.enter_stage(cx, step, ingress, handle);
        } else {
            stage.waiting.push_back((handle, ingress));
        }
    }

    fn enter_stage(&mut self, cx: &mut Context, step: Step, ingress: PortId, handle: TlpHandle) {
        let now = cx.now();
        let path = &mut self.path;
        let is_first = path.first(Step::InByCache) == Some(step);
        let Some(stage) = &mut path.stages[step.stage()] else { return };
        stage.held += 1;
        let place = stage.place;
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Queueing);
        }
        let (shape, bytes) = (tlp.shape, carried(&tlp.repr));
        if is_first {
            cx.leave_request_queue(handle);
            cx.leave_hold(handle);
            if shape.class != tlplab_units::FcClass::Posted {
                cx.release_buffer(ingress, &shape);
            }
        }
        self.passes(cx, step, ingress, handle, bytes);
    }

    fn passes(&mut self, cx: &mut Context, step: Step, ingress: PortId, handle: TlpHandle, bytes: u64) {
        let (now, at) = (cx.now(), cx.node_event(self.node));
        let Some(stage) = &mut self.path.stages[step.stage()] else { return };
        let leaves = stage.pass(now, bytes, step.is_outward());
        let data = handle.to_event() | u64::from(ingress.0) << 32 | (step as u64) << 48;
        cx.schedule(leaves, EventKind::HostStage, at, data);
    }

    /// A TLP leaves a stage.
    pub(crate) fn leave_stage(&mut self, cx: &mut Context, data: u64) {
        let (handle, ingress) = (TlpHandle::from_event(data & 0xFFFF_FFFF), PortId((data >> 32) as u16));
        let step = Step::ALL[(data >> 48) as usize];
        let now = cx.now();
        let path = &mut self.path;
        let next = step.next().and_then(|next| path.first(next));
        let Some(place) = path.stages[step.stage()].as_ref().map(|stage| stage.place) else { return };
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Processing);
        }
        match (step, next) {
            (Step::InByCache | Step::InByBus, Some(next)) => self.arrive_at_stage(cx, next, ingress, handle),
            (Step::InByCache | Step::InByBus, None) => self.access_memory(cx, ingress, handle),
            (_, next) => {
                if step.is_outward() {
                    self.free_stage_entry(cx, step.stage());
                }
                match next {
                    Some(next) => self.passes(cx, next, ingress, handle, cx.tlps.get(handle).payload.len()),
                    None => self.leave_host_path(cx, step, ingress, handle),
                }
            }
        }
    }

    fn leave_host_path(&mut self, cx: &mut Context, step: Step, ingress: PortId, handle: TlpHandle) {
        match step {
            Step::CpuByBridge | Step::CpuByBus => self.take_completion(cx, ingress, handle),
            _ => {
                let data = std::mem::replace(&mut cx.tlps.get_mut(handle).payload, Payload::EMPTY);
                self.answer(cx, ingress, handle, Ok(data));
            }
        }
    }

    /// A posted write is in memory, or an interrupt with the processor: its places are free, and what waited behind it goes on.
    pub(crate) fn release_posted_write(&mut self, cx: &mut Context) {
        let path = &mut self.path;
        if path.arrived == path.came {
            return;
        }
        path.arrived += 1;
        for stage in [HostPath::IO_CACHE, HostPath::MEMORY_BUS] {
            self.free_stage_entry(cx, stage);
        }
        self.deliver_behind_writes(cx);
    }

    /// A posted write that was counted does not go to memory: nothing waits for it any more. `behind`: those that were counted after it.
    pub(crate) fn forget_posted_write(&mut self, cx: &mut Context, behind: u64) {
        let path = &mut self.path;
        if path.arrived == path.came {
            return;
        }
        let place = path.came - behind;
        path.came -= 1;
        for (waits_for, ..) in path.behind.iter_mut().filter(|(waits_for, ..)| *waits_for >= place) {
            *waits_for -= 1;
        }
        self.deliver_behind_writes(cx);
    }

    /// TLPs that waited behind posted writes go on, as far as the writes are in memory.
    fn deliver_behind_writes(&mut self, cx: &mut Context) {
        while let path = &mut self.path
            && let Some(&(behind, handle, ingress)) = path.behind.front()
            && behind <= path.arrived
        {
            path.behind.pop_front();
            self.deliver_to_processor(cx, ingress, handle);
        }
    }

    fn free_stage_entry(&mut self, cx: &mut Context, stage: usize) {
        let step = if stage == HostPath::IO_CACHE { Step::InByCache } else { Step::InByBus };
        let Some(stage) = &mut self.path.stages[stage] else { return };
        stage.held -= 1;
        if let Some((handle, ingress)) = stage.waiting.pop_front() {
            self.enter_stage(cx, step, ingress, handle);
        }
    }

    /// The time of the processor's own request to the root complex.
    pub(crate) fn pass_processor_stages(&mut self, now: Time, bytes: u64) -> Duration {
        let stages = &mut self.path.stages;
        let mut at = now;
        for stage in [HostPath::MEMORY_BUS, HostPath::BRIDGE] {
            if let Some(stage) = &mut stages[stage] {
                at = stage.pass(at, bytes, true);
            }
        }
        at - now
    }
}
