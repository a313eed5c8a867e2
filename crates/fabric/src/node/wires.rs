//! Legacy interrupts: four virtual wires to every link, which messages raise and lower. Every bridge joins the wires below it and turns
//! them by the number of the device they come from (PCIe 5.0 §2.2.8.1, §6.1.2); at the root complex they are levels.

use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::agenda::Task;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::packet::slab::{TlpHandle, shape_of};
use crate::packet::wires::Wires;
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration};
use tlplab_wire::tlp::{Kind, Message, Repr, message::Code};

/// The time of an interrupt handler of the host: if its wire is still asserted then, the interrupt controller calls it again.
const HANDLER: Duration = Duration::from_us(2);
/// So often the handlers of a wire are called that nobody lowers; then the host gives it up.
const NOBODY_CARED: u32 = 100_000;

/// The interrupt controller's side of the wires, after the turn at the root ports.
#[derive(Clone, Default)]
pub(crate) struct WireController {
    wires: Wires,
    /// By wire: how often it was raised, and how often its handlers were called since.
    raised: [u32; 4],
    calls: [u32; 4],
}

const ASSERT: [Code; 4] = [Code::AssertIntA, Code::AssertIntB, Code::AssertIntC, Code::AssertIntD];
const DEASSERT: [Code; 4] = [Code::DeassertIntA, Code::DeassertIntB, Code::DeassertIntC, Code::DeassertIntD];

/// The message that tells of a wire. Of the requester's ID bus and device count.
pub(crate) fn message(requester: Bdf, wire: u8, asserted: bool) -> Repr {
    let code = if asserted { ASSERT } else { DEASSERT }[usize::from(wire)];
    let message = Message::simple(requester, code).expect("these codes have no content");
    Repr::from(Kind::Message(message))
}

/// The wire a message tells of, and its level.
pub(crate) fn wire_of(code: Code) -> Option<(u8, bool)> {
    let find = |codes: [Code; 4]| (0..4).find(|wire| codes[usize::from(*wire)] == code);
    find(ASSERT).map(|wire| (wire, true)).or_else(|| find(DEASSERT).map(|wire| (wire, false)))
}

/// The wire a TLP tells of, and its level.
pub(crate) fn told_by(repr: &Repr) -> Option<(u8, bool)> {
    match repr.kind() {
        Kind::Message(message) => wire_of(message.code()),
        _ => None,
    }
}

/// A message that ends at its receiver has reached a bridge or the processor. True if it changed the wires below `port`.
pub(crate) fn take_local_message(cx: &mut Context, port: PortId, handle: TlpHandle) -> bool {
    let tlp = cx.tlps.get(handle);
    let told = told_by(&tlp.repr).filter(|_| !tlp.orphaned);
    cx.consume(port, handle);
    if let Some((wire, asserted)) = told {
        cx.links.set_wire_below(port, wire, asserted);
    }
    told.is_some()
}

/// Tells the port above what a bridge asserts, by messages behind what came from the source `cause`.
pub(crate) fn tell_above(cx: &mut Context, upstream: PortId, cause: usize, id: Bdf, wires: Wires) {
    let Some(before) = cx.links.tell_wires(upstream, wires) else { return };
    for (wire, level) in wires.changes_since(before) {
        let repr = cx.with_digest(upstream, message(id, wire, level));
        let tlp = cx.tlps.insert(repr, Payload::EMPTY, cx.host.messages);
        cx.tlps.get_mut(tlp).maker = Some(cx.links.node(upstream));
        cx.enqueue_at_egress(upstream, cause, Waiting::own(tlp, shape_of(&repr)));
    }
}

impl WireController {
    /// The wires have changed: handlers are called of those that are asserted now.
    pub(crate) fn set(&mut self, cx: &mut Context, wires: Wires) {
        let before = std::mem::replace(&mut self.wires, wires);
        for (wire, asserted) in wires.changes_since(before) {
            if asserted {
                cx.observe.counts.interrupts += 1;
                self.raised[usize::from(wire)] += 1;
                self.calls[usize::from(wire)] = 0;
                self.call_handlers(cx, wire);
            }
        }
    }

    /// Calls the handlers of all functions that share the wire, and looks again when they should have lowered it.
    fn call_handlers(&mut self, cx: &mut Context, wire: u8) {
        let calls = &mut self.calls[usize::from(wire)];
        *calls += 1;
        if *calls == NOBODY_CARED {
            return;
        }
        let raised = self.raised[usize::from(wire)];
        cx.agenda.push(Task::Wire { wire });
        let at = cx.node_event(cx.host.node);
        let data = u64::from(wire) | u64::from(raised) << 8;
        cx.schedule(cx.now() + HANDLER, EventKind::HandlerOver, at, data);
    }

    /// The handlers of a wire have had their time.
    pub(crate) fn handler_over(&mut self, cx: &mut Context, data: u64) {
        let (wire, raised) = (data as u8, (data >> 8) as u32);
        if self.wires.is_asserted(wire) && self.raised[usize::from(wire)] == raised {
            self.call_handlers(cx, wire);
        }
    }
}
