//! The forward bridge: a node with a link above and a bus below.
//!
//! Towards its link it is like the upstream port of a switch. Reads from the bus it makes its own: a conventional bus knows neither
//! requester nor tag, so what goes up carries the bridge's (PCI Express to PCI/PCI-X Bridge 1.0 §2.2.3), and what comes down is given
//! back to the one who asked. On PCI-X both are in the attributes and go through.

use crate::kernel::ids::{NodeId, PortId};
use crate::link::bus::FROM_BUS;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::link::port_buffer::ends_its_request;
use crate::node::answer::{Answer, register_completer};
use crate::node::config_request::{ConfigWay, config_target, convert};
use crate::node::error_messages::message_of;
use crate::node::function::{Function, Functions};
use crate::node::wires::{take_local_message, tell_above};
use crate::observe::registers::ChangedBy;
use crate::packet::routing::{BridgeRegisters, Route, claims, registers_of, route_of};
use crate::packet::slab::TlpHandle;
use crate::packet::wires::Wires;
use tlplab_cfgspace::{Reset, Written, error};
use tlplab_datalink::Integrity;
use tlplab_transaction::Completer;
use tlplab_units::{Bdf, Duration, FcClass, Tag, Time};
use tlplab_wire::tlp::{CfgTarget, CompletionStatus, Kind, Repr, TransactionId};

/// A bridge: port 0 is its link's, the others lead to one device each on the bus.
#[derive(Clone)]
pub(crate) struct Bridge {
    pub(crate) node: NodeId,
    pub(crate) latency: Duration,
    pub(crate) ports: Vec<PortId>,
    pub(crate) function: Function,
    /// The routing in its registers.
    pub(crate) registers: BridgeRegisters,
}

impl Answer for Bridge {
    fn node(&self) -> NodeId {
        self.node
    }
    fn answer_time(&self) -> Duration {
        self.latency
    }
    fn completer(&self, cx: &Context, port: PortId, _request: &Repr) -> (Completer, usize) {
        (register_completer(self.function.id), cx.links.index(port))
    }
}

impl Functions for Bridge {
    fn function(&mut self, _index: usize) -> &mut Function {
        &mut self.function
    }

    fn set_id(&mut self, cx: &mut Context, _index: usize, id: Bdf) {
        self.function.id = id;
        cx.topology.nodes[self.node.index()].id = id;
    }

    fn obey_registers(&mut self, cx: &mut Context, _index: usize, written: Written) {
        self.registers = self.function.follow_bridge_registers(cx, self.ports[0], written);
        if written.interrupts {
            self.update_wires(cx);
        }
    }
}

impl Bridge {
    /// TLPs from the bus go up, unless they are for the bus itself or a register forbids it.
    fn passes_up(&self, route: Route) -> bool {
        self.registers.passes_up(route) && !claims(&self.registers, route)
    }

    /// The way of a configuration request from above: the port of the device that its number names.
    pub(crate) fn config_way(&self, function: Bdf, type1: bool) -> ConfigWay {
        if !type1 {
            return if function.0 as u8 == 0 { ConfigWay::Own(0) } else { ConfigWay::Nowhere };
        }
        let port = usize::from(function.device()) + 1;
        let exists = function.bus() == self.registers.secondary && port < self.ports.len();
        if exists { ConfigWay::Down { port, type1: false } } else { ConfigWay::Nowhere }
    }

    /// A TLP has passed the bridge's processing.
    pub(crate) fn handle_tlp(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let index = cx.links.index(ingress);
        let repr = cx.tlps.get(handle).repr;
        let route = route_of(&repr);
        let class = cx.tlps.get(handle).shape.class;
        if index > 0 && !matches!(repr.kind(), Kind::Message(_)) {
            let arriving = &mut cx.bus(self.node).room.arriving[class.index()];
            *arriving = arriving.saturating_sub(1); // a reset has forgotten them
        }
        match (config_target(&repr), repr.kind()) {
            (Some(target), _) if index == 0 => self.config_request(cx, ingress, handle, target),
            (_, Kind::Message(_)) if index == 0 => cx.consume(ingress, handle),
            (_, Kind::Message(_)) if route == Route::ToRoot => self.pass_to_root(cx, ingress, handle),
            (_, Kind::Message(_)) => {
                if take_local_message(cx, ingress, handle) {
                    self.update_wires(cx);
                }
            }
            (None, _) if index == 0 && claims(&self.registers, route) => {
                self.send_to_bus(cx, ingress, handle);
            }
            (None, _) if index > 0 && self.passes_up(route) => self.forward_from_bus(cx, ingress, handle),
            _ => self.refuses(cx, ingress, handle, CompletionStatus::UnsupportedRequest),
        }
    }

    fn refuses(&self, cx: &mut Context, ingress: PortId, handle: TlpHandle, status: CompletionStatus) {
        let id = cx.answers_for(ingress);
        cx.refuse(ingress, handle, id, status);
    }

    fn config_request(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle, target: CfgTarget) {
        let (function, secondary) = (target.function(), self.registers.secondary);
        match self.config_way(function, target.is_type1()) {
            ConfigWay::Own(index) => self.take_config_request(cx, ingress, handle, index, target),
            // On the bus nobody may be there either; then nobody claims it.
            _ if target.is_type1() && function.bus() == secondary => {
                let type0 = convert(cx, ingress, handle, target);
                self.send_to_bus(cx, ingress, type0);
            }
            _ => self.refuses(cx, ingress, handle, CompletionStatus::UnsupportedRequest),
        }
    }

    /// TLPs from above wait for the bus, a completion in the place of the request.
    fn send_to_bus(&mut self, cx: &mut Context, ingress: PortId, mut handle: TlpHandle) {
        let repr = cx.tlps.get(handle).repr;
        if let Kind::Completion(completion) = repr.kind() {
            let (id, last) = (completion.id(), ends_its_request(&repr));
            let Some(asked) = self.asked_by(cx, id, last) else {
                return self.refuses(cx, ingress, handle, CompletionStatus::UnsupportedRequest);
            };
            if asked != id {
                handle = cx.replace_tlp(ingress, handle, repr.with_transaction_id(asked));
            }
        }
        cx.note_poison(ingress, handle);
        let shape = cx.tlps.get(handle).shape;
        let bus = cx.bus(self.node).entry();
        let waiting = Waiting { ingress: Some(ingress), ..Waiting::own(handle, shape) };
        cx.enqueue_at_egress(bus, 0, waiting);
    }

    /// The ID of the device's request that a completion from above answers; the request is over with its last completion.
    fn asked_by(&mut self, cx: &mut Context, id: TransactionId, last: bool) -> Option<TransactionId> {
        let bus = cx.bus(self.node);
        let own = !bus.is_pci_x();
        let reads = &mut bus.room.reads;
        let place = match own {
            true => reads.get_mut(usize::from(id.tag.value())).filter(|read| read.is_some())?,
            false => reads.iter_mut().find(|read| **read == Some(id))?,
        };
        if last { place.take() } else { *place }
    }

    /// TLPs of a device go up; of a conventional bus, as the bridge's own.
    fn forward_from_bus(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        cx.note_poison(ingress, handle);
        let tlp = cx.tlps.get(handle);
        let (repr, shape) = (tlp.repr, tlp.shape);
        let bus = cx.bus(self.node);
        let own = !bus.is_pci_x();
        let mut tag = Tag::default();
        if shape.class == FcClass::NonPosted {
            let Some(place) = bus.room.reads.iter().position(Option::is_none) else {
                return self.refuses(cx, ingress, handle, CompletionStatus::CompleterAbort);
            };
            bus.room.reads[place] = Some(repr.transaction_id());
            tag = Tag::new(place as u16).unwrap_or_default();
        }
        if own && shape.class != FcClass::Completion {
            let id = TransactionId::new(Bdf(u16::from(self.registers.secondary) << 8), tag);
            cx.tlps.get_mut(handle).repr = repr.with_transaction_id(id);
        }
        let waiting = Waiting { ingress: Some(ingress), ..Waiting::own(handle, shape) };
        cx.enqueue_at_egress(self.ports[0], FROM_BUS, waiting);
    }

    /// A message to the root complex comes from the bus.
    fn pass_to_root(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let space = self.function.space.change(cx.now(), ChangedBy::Hardware);
        let passes =
            message_of(cx.tlps.get(handle)).is_none_or(|(message, _)| error::forward(space, message));
        if passes {
            cx.forward_to(ingress, self.ports[0], handle, Integrity::Good, Time::ZERO);
        } else {
            cx.consume(ingress, handle);
        }
    }

    /// The wires that the bridge asserts: its own, and those of the devices on its bus. The message goes behind the writes from there.
    pub(crate) fn update_wires(&mut self, cx: &mut Context) {
        let mut wires = Wires::of(&self.function.space);
        for (device, port) in (0..).zip(&self.ports[1..]) {
            wires = wires.with(cx.links.wires_below(*port).turned(device));
        }
        tell_above(cx, self.ports[0], 1, self.function.id, wires);
    }

    /// The bridge is reset, and nothing is on its bus any more.
    pub(crate) fn reset(&mut self, cx: &mut Context) {
        self.function.space.change(cx.now(), ChangedBy::Reset).reset(Reset::Hot);
        self.function.id = Bdf(0);
        self.registers = registers_of(&self.function.space);
        cx.topology.ports[self.ports[0].index()].bridge = Some(BridgeRegisters::RESET);
        cx.topology.nodes[self.node.index()].id = Bdf(0);
        cx.reset_bus(self.node);
    }
}
