//! Order of posted writes across root ports, kept by waiting: what comes in by a root port for another destination than the write before it waits until
//! all before it have left by theirs, and as long as it takes to hear of that.
//!
//! ```text
//! rp0 ── writes: rp1 rp1 | rp2 | rp1 … ──▶ |: all before have left, and the turnaround is over
//! ```
//!
//! Nothing published says that a root complex does so; it is one of the explanations of what GPUs measured that write to several root ports. Writes with
//! Relaxed Ordering need no order, and neither wait nor are waited for. Reads and completions wait behind writes as the ordering rules want it.

use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::link::egress::{Egress, Waiting};
use crate::node::root::Root;
use crate::packet::attribution::Cause;
use crate::packet::routing::route_of;
use crate::packet::slab::{Hold, TlpHandle};
use tlplab_transaction::OrderingAttributes;
use tlplab_units::{Duration, FcClass, Time};
use tlplab_wire::tlp::Repr;

/// Places and events of turns are numbered from here on; before are the passages of domains.
const FIRST: u8 = 128;

/// Writes that come in by a root port.
#[derive(Clone)]
struct Turn {
    queue: Egress,
    /// The root port to which the latest went.
    to: Option<usize>,
    /// So many have not left by it.
    under_way: u32,
    /// Then it is known that all have left.
    known: Time,
}

/// By root port; none, where the root complex does not wait.
#[derive(Clone, Default)]
pub(crate) struct Turns {
    turnaround: Duration,
    ports: Vec<Turn>,
}

impl Turns {
    pub(crate) fn new(turnaround: Option<Duration>, ports: usize) -> Self {
        let turn = |_| Turn {
            queue: Egress::new(std::iter::once(1), false),
            to: None,
            under_way: 0,
            known: Time::ZERO,
        };
        let ports = turnaround.map_or(0, |_| ports);
        Self { turnaround: turnaround.unwrap_or_default(), ports: (0..ports).map(turn).collect() }
    }

    pub(crate) fn wait(&self) -> bool {
        !self.ports.is_empty()
    }
}

/// True if a TLP has to keep its order with others.
fn is_ordered(class: FcClass, repr: &Repr) -> bool {
    class == FcClass::Posted && !repr.attributes().relaxed_ordering
}

impl Root {
    /// A TLP that has come in by `ingress` for another root port waits for its turn.
    pub(crate) fn wait_for_turn(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let tlp = cx.tlps.get(handle);
        let waiting = Waiting { ingress: Some(ingress), ..Waiting::own(handle, tlp.shape) };
        let (port, attributes) = (cx.links.index(ingress), OrderingAttributes::of(&tlp.repr));
        self.turns.ports[port].queue.push(0, attributes, waiting);
        self.serve_turn(cx, port);
    }

    fn serve_turn(&mut self, cx: &mut Context, port: usize) {
        loop {
            let (now, place) = (cx.now(), cx.place_of(self.node));
            let turn = &mut self.turns.ports[port];
            let (to, under_way, known) = (turn.to, turn.under_way, turn.known);
            // The queue is taken out, because the way of a TLP is the root complex's to say.
            let mut queue = std::mem::replace(&mut turn.queue, Egress::new(std::iter::empty(), false));
            let may_go = |class, waiting: &Waiting| {
                let repr = &cx.tlps.get(waiting.tlp).repr;
                let all_left = under_way == 0 && known <= now;
                !is_ordered(class, repr) || all_left || self.port_for(route_of(repr)) == to
            };
            let taken = queue.take(may_go);
            self.turns.ports[port].queue = queue;
            let Some(Waiting { tlp: handle, shape, ingress: Some(ingress), .. }) = taken else { return };
            let tlp = cx.tlps.get_mut(handle);
            if tlp.tracked {
                tlp.ledger.charge(now, place, Cause::Queueing);
            }
            let (repr, ordered) = (tlp.repr, is_ordered(shape.class, &tlp.repr));
            let Some(egress) = self.port_for(route_of(&repr)) else {
                // Software has moved the target meanwhile.
                self.refuse_request(cx, ingress, handle);
                continue;
            };
            if ordered {
                let turn = &mut self.turns.ports[port];
                (turn.to, turn.under_way) = (Some(egress), turn.under_way + 1);
                cx.tlps.get_mut(handle).held = Some(hold(self.node, port));
            }
            self.send_to_port(cx, ingress, egress, handle);
        }
    }

    /// A write has left, or is gone.
    pub(crate) fn left_turn(&mut self, cx: &mut Context, hold: Hold) {
        let turnaround = self.turns.turnaround;
        let turn = &mut self.turns.ports[usize::from(hold.at - FIRST)];
        turn.under_way -= 1;
        if turn.under_way == 0 {
            turn.known = cx.now() + turnaround;
            let (at, known) = (cx.node_event(self.node), turn.known);
            cx.schedule(known, EventKind::PassageFree, at, u64::from(hold.at));
        }
    }

    /// That all have left may be known by now.
    pub(crate) fn heard_of_turn(&mut self, cx: &mut Context, at: u8) {
        self.serve_turn(cx, usize::from(at - FIRST));
    }
}

/// The place that a write takes which has come in by a root port.
fn hold(node: NodeId, port: usize) -> Hold {
    Hold { node, at: FIRST + port as u8, class: FcClass::Posted }
}

/// True if a place, or an event, is that of a turn.
pub(crate) fn is_turn(at: u8) -> bool {
    at >= FIRST
}
