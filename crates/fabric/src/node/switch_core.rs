//! The core of a switch: what is between ingresses and egresses, where it has limits of its own.
//!
//! ```text
//! ingress ── queue ─┐                 ┌─▶ egress queue (at most `egress`)
//! ingress ── queue ─┼─ core, `rate` ──┤
//! ingress ── queue ─┘                 └─▶ egress queue          (all: at most `shared`)
//! ```
//!
//! A TLP joins its ingress's queue when it has arrived and passed the switch's latency. The core takes from the queues in turn what the ordering rules
//! let go first and what has room further on; a TLP for an egress that is full holds up all of its class behind it. Room is counted by class, and each
//! egress has one place of each class whatever else waits, so that no class and no direction waits for another for ever.

use crate::config::SwitchCoreConfig;
use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::link::egress::{Egress, Waiting};
use crate::node::switch::Switch;
use crate::packet::attribution::Cause;
use crate::packet::slab::{Hold, TlpHandle};
use tlplab_transaction::OrderingAttributes;
use tlplab_units::{Duration, FcClass, LinkRate};

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
    pub(crate) fn new(config: SwitchCoreConfig, ports: usize) -> Self {
        Self {
            queues: Egress::new(std::iter::repeat_n(1, ports), false),
            rate: config.rate.map(LinkRate::of_bits_per_second),
            egress: config.egress,
            shared: config.shared,
            held: vec![[0; 3]; ports],
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

/// The TLP that an event of the core is about, and its ingress.
fn through(data: u64) -> (TlpHandle, PortId) {
    (TlpHandle::from_event(data & 0xFFFF_FFFF), PortId((data >> 32) as u16))
}

impl Switch {
    /// A TLP joins the queue of its ingress.
    pub(crate) fn enter_core(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let Some(core) = &mut self.core else { return };
        let tlp = cx.tlps.get(handle);
        let waiting = Waiting { ingress: Some(ingress), ..Waiting::own(handle, tlp.shape) };
        core.queues.push(cx.links.index(ingress), OrderingAttributes::of(&tlp.repr), waiting);
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
            core.queues = queues;
            let Some(Waiting { tlp: handle, ingress: Some(ingress), .. }) = taken else { return };
            let (now, place, at) = (cx.now(), cx.place_of(self.node), cx.node_event(self.node));
            let tlp = cx.tlps.get_mut(handle);
            if tlp.tracked {
                tlp.ledger.charge(now, place, Cause::Queueing);
            }
            let bytes = u64::from(tlp.repr.header_bytes() + tlp.repr.payload_bytes());
            let takes = core.rate.map_or(Duration::ZERO, |rate| rate.time_of(bytes));
            self.take_hold(cx, ingress, handle);
            if takes.is_zero() {
                self.send_on(cx, ingress, handle);
            } else {
                if let Some(core) = &mut self.core {
                    core.busy = true;
                }
                let data = handle.to_event() | u64::from(ingress.0) << 32;
                cx.schedule(now + takes, EventKind::PassedCore, at, data);
            }
        }
    }

    /// A TLP that the core takes has its place among those that wait for its egress.
    fn take_hold(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let egress = self.egress_of(&cx.topology, cx.links.index(ingress), &cx.tlps.get(handle).repr);
        let (Some(egress), Some(core)) = (egress, &mut self.core) else { return };
        if core.is_limited() {
            let tlp = cx.tlps.get_mut(handle);
            let class = tlp.shape.class;
            core.held[egress][class.index()] += 1;
            core.all[class.index()] += 1;
            tlp.held = Some(Hold { node: self.node, at: egress as u8, class });
        }
    }

    /// A TLP has passed the core.
    pub(crate) fn passed_core(&mut self, cx: &mut Context, data: u64) {
        let (handle, ingress) = through(data);
        let (now, place) = (cx.now(), cx.place_of(self.node));
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Processing);
        }
        if let Some(core) = &mut self.core {
            core.busy = false;
        }
        self.send_on(cx, ingress, handle);
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
        let waiting: Vec<_> = core.queues.drain().collect();
        for entry in waiting {
            if let Some(ingress) = entry.ingress {
                cx.consume(ingress, entry.tlp);
            }
        }
        core.busy = false;
        let at = cx.node_event(self.node);
        for event in cx.kernel.cancel(|event| event.kind == EventKind::PassedCore && event.at == at) {
            let (handle, ingress) = through(event.data);
            cx.consume(ingress, handle);
        }
    }
}
