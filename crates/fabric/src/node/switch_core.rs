//! The core of a switch: what is between ingresses and egresses, where it has limits of its own.
//!
//! ```text
//! ingress ── queue ─┐                 ┌─▶ egress queue (at most `egress`)
//! ingress ── queue ─┼─ core, `rate` ──┤
//! ingress ── queue ─┘                 └─▶ egress queue          (all: at most `shared`)
//! ```
//!
//! A TLP joins its ingress's queue when it (with cut-through, its header) has arrived and passed the switch's latency. The core takes from the queues in
//! turn, as many as their weights say, what the ordering rules let go first and what has room further on; a TLP for an egress that is full holds up all of its class behind it. Room is
//! counted by class, and each egress has one place of each class whatever else waits, so that no class and no direction waits for another for ever.
//!
//! The rate is shared by all ingresses: a TLP whose tail is still coming takes of the core's time what its bytes take, and no more.

use crate::config::SwitchCoreConfig;
use crate::kernel::ids::PortId;
use crate::kernel::queue::{Event, EventKind};
use crate::link::context::Context;
use crate::link::egress::{Egress, Waiting};
use crate::link::receive::early;
use crate::node::switch::Switch;
use crate::packet::attribution::Cause;
use crate::packet::slab::{Hold, TlpHandle};
use tlplab_datalink::Integrity;
use tlplab_transaction::OrderingAttributes;
use tlplab_units::{FcClass, LinkRate, Time};

#[derive(Clone)]
pub(crate) struct SwitchCore {
    /// A source for each ingress.
    queues: Egress,
    rate: Option<LinkRate>,
    egress: Option<u16>,
    shared: Option<u16>,
    /// By egress and class: TLPs that wait for it.
    held: Vec<[u16; 3]>,
    /// By class: of all egresses.
    all: [u16; 3],
    /// One is on its way through.
    busy: bool,
}

impl SwitchCore {
    /// `weights`: by port, of what comes in there.
    pub(crate) fn new(config: SwitchCoreConfig, weights: &[u16]) -> Self {
        Self {
            queues: Egress::new(weights.iter().copied(), false),
            rate: config.rate.map(LinkRate::of_bits_per_second),
            egress: config.egress,
            shared: config.shared,
            held: vec![[0; 3]; weights.len()],
            all: [0; 3],
            busy: false,
        }
    }

    fn is_limited(&self) -> bool {
        self.egress.is_some() || self.shared.is_some()
    }

    fn has_room(&self, egress: usize, class: FcClass) -> bool {
        let (held, all) = (self.held[egress][class.index()], self.all[class.index()]);
        held == 0
            || self.egress.is_none_or(|limit| held < limit) && self.shared.is_none_or(|limit| all < limit)
    }
}

/// A TLP on its way through the core.
#[derive(Clone, Copy)]
struct Passing {
    tlp: TlpHandle,
    ingress: PortId,
    /// Its tail may still be coming.
    early: bool,
    /// It has turned out bad, and goes on as a copy that is nullified.
    nullified: bool,
}

impl Passing {
    fn of(waiting: &Waiting) -> Option<Self> {
        let early = waiting.tail > Time::ZERO;
        let (tlp, ingress) = (waiting.tlp, waiting.ingress?);
        Some(Self { tlp, ingress, early, nullified: waiting.nullified })
    }

    fn to_event(self) -> u64 {
        let flags = u64::from(self.early) | u64::from(self.nullified) << 1;
        self.tlp.to_event() | u64::from(self.ingress.0) << 32 | flags << 48
    }

    fn from_event(data: u64) -> Self {
        Self {
            tlp: TlpHandle::from_event(data & 0xFFFF_FFFF),
            ingress: PortId((data >> 32) as u16),
            early: data >> 48 & 1 == 1,
            nullified: data >> 49 & 1 == 1,
        }
    }

    /// It ends here.
    fn vanish(self, cx: &mut Context) {
        if self.nullified {
            // A copy occupies no receive buffer.
            cx.leave_hold(self.tlp);
            cx.drop_tlp(self.tlp);
        } else {
            cx.consume(self.ingress, self.tlp);
        }
    }
}

impl Switch {
    /// A TLP that is there in full joins the queue of its ingress.
    pub(crate) fn enter_core(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let shape = cx.tlps.get(handle).shape;
        self.wait_for_core(cx, ingress, Waiting { ingress: Some(ingress), ..Waiting::own(handle, shape) });
    }

    /// A TLP whose tail may still be coming joins it.
    pub(crate) fn enter_core_early(&mut self, cx: &mut Context, ingress: PortId, data: u64) {
        let (handle, integrity) = early(data);
        let tail = cx.pass_early(ingress, handle).max(cx.now());
        let shape = cx.tlps.get(handle).shape;
        let nullified = integrity == Integrity::Bad;
        let waiting = Waiting { ingress: Some(ingress), tail, nullified, ..Waiting::own(handle, shape) };
        self.wait_for_core(cx, ingress, waiting);
    }

    fn wait_for_core(&mut self, cx: &mut Context, ingress: PortId, waiting: Waiting) {
        let Some(core) = &mut self.core else { return };
        let attributes = OrderingAttributes::of(&cx.tlps.get(waiting.tlp).repr);
        core.queues.push(cx.links.index(ingress), attributes, waiting);
        self.serve_core(cx);
    }

    /// Takes what may go next, while the core is free.
    fn serve_core(&mut self, cx: &mut Context) {
        loop {
            let Some(core) = self.core.as_mut().filter(|core| !core.busy) else { return };
            // The queues are taken out, because the way of a TLP is the switch's to say.
            let mut queues = std::mem::replace(&mut core.queues, Egress::new(std::iter::empty(), false));
            let taken = queues.take(|class, waiting| {
                let (Some(ingress), Some(core)) = (waiting.ingress, &self.core) else { return true };
                let egress =
                    self.egress_of(&cx.topology, cx.links.index(ingress), &cx.tlps.get(waiting.tlp).repr);
                egress.is_none_or(|egress| core.has_room(egress, class))
            });
            let Some(core) = &mut self.core else { return };
            let rate = core.rate;
            core.queues = queues;
            let Some(passing) = taken.as_ref().and_then(Passing::of) else { return };
            let (now, place) = (cx.now(), cx.place_of(self.node));
            let tlp = cx.tlps.get_mut(passing.tlp);
            if tlp.tracked {
                tlp.ledger.charge(now, place, Cause::Queueing);
            }
            self.take_hold(cx, passing);
            match rate {
                Some(rate) => self.pass_core(cx, passing, rate),
                None => self.leave_core(cx, passing),
            }
        }
    }

    /// A TLP sets out through a core that takes its bytes at `rate`. One that was stored comes out as a whole, another as soon as its header is through
    /// and its egress will not run dry.
    fn pass_core(&mut self, cx: &mut Context, passing: Passing, rate: LinkRate) {
        let (now, at) = (cx.now(), cx.node_event(self.node));
        let repr = cx.tlps.get(passing.tlp).repr;
        let header = u64::from(repr.header_bytes());
        let free = now + rate.time_of(header + u64::from(repr.payload_bytes()));
        let out = match self.route(&cx.topology, cx.links.index(passing.ingress), &repr) {
            Some(egress) if passing.early => {
                let serialisation = cx.links.time_on_wire(egress, cx.tlps.get(passing.tlp).shape.bytes);
                let ahead = now + (free - now).saturating_sub(serialisation);
                (now + rate.time_of(header)).max(ahead)
            }
            _ => free,
        };
        if let Some(core) = &mut self.core {
            core.busy = true;
        }
        cx.schedule(out, EventKind::PassedCore, at, passing.to_event());
        cx.schedule(free, EventKind::CoreFree, at, 0);
    }

    /// A TLP that the core takes has its place among those that wait for its egress.
    fn take_hold(&mut self, cx: &mut Context, passing: Passing) {
        let ingress = cx.links.index(passing.ingress);
        let egress = self.egress_of(&cx.topology, ingress, &cx.tlps.get(passing.tlp).repr);
        let (Some(egress), Some(core)) = (egress, &mut self.core) else { return };
        if core.is_limited() {
            let tlp = cx.tlps.get_mut(passing.tlp);
            let class = tlp.shape.class;
            core.held[egress][class.index()] += 1;
            core.all[class.index()] += 1;
            tlp.held = Some(Hold { node: self.node, at: egress as u8, class });
        }
    }

    /// A TLP has passed the core, or its header has.
    pub(crate) fn passed_core(&mut self, cx: &mut Context, data: u64) {
        let passing = Passing::from_event(data);
        let (now, place) = (cx.now(), cx.place_of(self.node));
        let tlp = cx.tlps.get_mut(passing.tlp);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Processing);
        }
        self.leave_core(cx, passing);
    }

    fn leave_core(&mut self, cx: &mut Context, passing: Passing) {
        let Passing { tlp, ingress, early, nullified } = passing;
        if !early {
            return self.send_on(cx, ingress, tlp);
        }
        let egress = self.route(&cx.topology, cx.links.index(ingress), &cx.tlps.get(tlp).repr);
        match egress {
            Some(egress) => {
                let integrity = if nullified { Integrity::Bad } else { Integrity::Good };
                let tail = cx.tail_of(ingress, tlp);
                cx.forward_to(ingress, egress, tlp, integrity, tail);
            }
            // Software has changed its way meanwhile.
            None if nullified => passing.vanish(cx),
            None => self.send_on(cx, ingress, tlp),
        }
    }

    /// The core may take the next TLP.
    pub(crate) fn free_core(&mut self, cx: &mut Context) {
        if let Some(core) = &mut self.core {
            core.busy = false;
        }
        self.serve_core(cx);
    }

    /// A TLP that waited for an egress has left, or is gone.
    pub(crate) fn free_entry(&mut self, cx: &mut Context, hold: Hold) {
        if let Some(core) = &mut self.core {
            core.held[usize::from(hold.at)][hold.class.index()] -= 1;
            core.all[hold.class.index()] -= 1;
        }
        self.serve_core(cx);
    }

    /// The switch is reset: what waits before the core is gone, and so is what is on its way through.
    pub(crate) fn empty_core(&mut self, cx: &mut Context) {
        let Some(core) = &mut self.core else { return };
        let waiting: Vec<_> = core.queues.drain().filter_map(|waiting| Passing::of(&waiting)).collect();
        core.busy = false;
        let at = cx.node_event(self.node);
        let of_core = |event: &Event| {
            event.at == at && matches!(event.kind, EventKind::PassedCore | EventKind::CoreFree)
        };
        let cancelled = cx.kernel.cancel(of_core).into_iter();
        let through = cancelled.filter(|event| event.kind == EventKind::PassedCore);
        let through: Vec<_> = through.map(|event| Passing::from_event(event.data)).collect();
        waiting.into_iter().chain(through).for_each(|passing| passing.vanish(cx));
    }
}
