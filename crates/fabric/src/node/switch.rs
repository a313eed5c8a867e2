//! Switches: routing by bridge registers, forwarding, and what becomes of TLPs nobody claims.

use crate::config::Forwarding;
use crate::kernel::ids::{NodeId, PortId};
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::node::answer::{Answer, register_completer};
use crate::node::bridges::Bridges;
use crate::node::config_request::{ConfigWay, config_target, convert, way_down};
use crate::node::error_messages::message_of;
use crate::node::function::{Function, Functions};
use crate::node::switch_core::SwitchCore;
use crate::node::wires::{take_local_message, tell_above};
use crate::observe::errors::PeerRefusal;
use crate::observe::registers::ChangedBy;
use crate::observe::topology::Topology;
use crate::packet::access::PeerWay;
use crate::packet::routing::{BridgeRegisters, Route, claims, registers_of, route_of};
use crate::packet::slab::{TlpHandle, shape_of};
use crate::packet::wires::Wires;
use tlplab_cfgspace::{ErrorMessage, MessageWrite, Reset, Written, error};
use tlplab_datalink::Integrity;
use tlplab_transaction::{Completer, Payload};
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::tlp::message::Code;
use tlplab_wire::tlp::{CfgTarget, CompletionStatus, Repr, TransactionId};

/// A switch: port 0 is the upstream port, the others are downstream ports with a bridge each.
#[derive(Clone)]
pub(crate) struct Switch {
    pub(crate) node: NodeId,
    pub(crate) latency: Duration,
    /// By port, for what comes in there.
    pub(crate) forwarding: Vec<Forwarding>,
    pub(crate) ports: Vec<PortId>,
    /// By port: its function, a bridge.
    pub(crate) functions: Vec<Function>,
    /// By port: what its function's registers say of routing.
    pub(crate) bridges: Vec<BridgeRegisters>,
    /// ID of the upstream port, which answers for the switch.
    pub(crate) id: Bdf,
    /// The core between its ingresses and egresses, if that has limits.
    pub(crate) core: Option<SwitchCore>,
    /// Downstream ports of the other partitions of its chip.
    pub(crate) inside: Vec<PortId>,
}

/// The destination of a TLP from an ingress.
#[derive(Clone)]
enum Way {
    To(usize),
    /// To a port of another partition of the chip.
    Inside(PortId),
    /// Up, unless a bridge stops it: a message to the root complex.
    ToRoot,
    /// To every downstream port.
    Broadcast,
    /// It ends here.
    Here,
    /// Nobody claims it.
    Nowhere,
    /// By the port that it came by, which sends nothing back.
    Back,
    /// Access control forbids it.
    Forbidden(PeerRefusal),
}

impl Switch {
    fn way(&self, topology: &Topology, ingress: usize, repr: &Repr) -> Way {
        let route = route_of(repr);
        let from = &self.bridges[ingress];
        if ingress != 0 && !from.admits(repr) {
            return Way::Forbidden(from.objection_to(repr));
        }
        match route {
            Route::ToRoot if ingress != 0 => return Way::ToRoot,
            Route::FromRoot if ingress == 0 => return Way::Broadcast,
            Route::ToRoot | Route::FromRoot => return Way::Nowhere,
            Route::Here => return Way::Here,
            _ => {}
        }
        if ingress != 0 && !from.passes_up(route) {
            return Way::Nowhere;
        }
        let down = (1..self.bridges.len()).find(|&port| claims(&self.bridges[port], route));
        match down {
            // A bridge does not send back what came from below.
            Some(port) if port == ingress && from.forwards_up() => self.way_up(route),
            Some(port) if port == ingress => Way::Back,
            Some(port) if ingress == 0 => Way::To(port),
            // Ports are numbered by their place.
            Some(port) => match from.way_to_peer(repr, port) {
                PeerWay::Direct => Way::To(port),
                PeerWay::Redirected => self.way_up(route),
                PeerWay::Forbidden => Way::Forbidden(PeerRefusal::EgressControl),
            },
            None if ingress != 0 => match self.way_inside(topology, route) {
                Some(port) => Way::Inside(port),
                None if claims(&self.bridges[0], route) => Way::Nowhere,
                None => self.way_up(route),
            },
            None => Way::Nowhere,
        }
    }

    /// The port of another partition of the chip that claims what has come from below.
    fn way_inside(&self, topology: &Topology, route: Route) -> Option<PortId> {
        let claims =
            |port: &PortId| topology.ports[port.index()].bridge.is_some_and(|bridge| claims(&bridge, route));
        self.inside.iter().copied().find(claims)
    }

    /// The way up of what has come from below.
    fn way_up(&self, route: Route) -> Way {
        if self.bridges[0].passes_up(route) { Way::To(0) } else { Way::Nowhere }
    }
}

impl Switch {
    /// The way of a request that comes from above.
    pub(crate) fn config_way(&self, function: Bdf, type1: bool) -> ConfigWay {
        if !type1 {
            // What would be a device number may be the upper bits of a function's: there is function 0 only.
            return if function.0 as u8 == 0 { ConfigWay::Own(0) } else { ConfigWay::Nowhere };
        }
        if function.bus() == self.bridges[0].secondary {
            let port = usize::from(function.device()) + 1;
            let exists = port < self.ports.len() && function.function() == 0;
            return if exists { ConfigWay::Own(port) } else { ConfigWay::Nowhere };
        }
        let claims = |port: &usize| self.bridges[*port].claims_bus(function.bus());
        match (1..self.bridges.len()).find(claims) {
            Some(port) => way_down(port, &self.bridges[port], function),
            None => ConfigWay::Nowhere,
        }
    }
}

impl Answer for Switch {
    fn node(&self) -> NodeId {
        self.node
    }
    fn answer_time(&self) -> Duration {
        self.latency
    }
    /// Its ports answer configuration requests.
    fn completer(&self, cx: &Context, port: PortId, request: &Repr) -> (Completer, usize) {
        let id = config_target(request).map_or(self.id, CfgTarget::function);
        (register_completer(id), cx.links.index(port))
    }
}

impl Functions for Switch {
    fn function(&mut self, index: usize) -> &mut Function {
        &mut self.functions[index]
    }

    fn set_id(&mut self, cx: &mut Context, index: usize, id: Bdf) {
        if self.functions[index].id == id {
            return;
        }
        self.functions[index].id = id;
        if index == 0 {
            self.id = id;
            cx.topology.nodes[self.node.index()].id = id;
        }
    }

    fn obey_registers(&mut self, cx: &mut Context, index: usize, written: Written) {
        self.bridges[index] = self.functions[index].follow_bridge_registers(cx, self.ports[index], written);
        self.obey_bridge_control(cx, index, written);
    }
}

impl Bridges for Switch {
    /// A downstream port's own interrupt goes up over the switch's bus.
    fn send_port_message(&mut self, cx: &mut Context, index: usize, message: MessageWrite) {
        if !self.bridges[0].upstream {
            return; // what goes up over the switch's bus needs its upstream port's Bus Master Enable
        }
        let (egress, id) = (self.ports[0], self.functions[index].id);
        let Ok(repr) = Repr::mem_write(TransactionId::new(id, Tag::default()), message.address, 4) else {
            return;
        };
        let (repr, data) = (cx.with_digest(egress, repr), Payload::from(message.data.to_le_bytes()));
        let tlp = cx.tlps.insert(repr, data, cx.host.interrupts);
        cx.enqueue_at_egress(egress, index, Waiting::own(tlp, shape_of(&repr)));
    }

    fn send_pme(&mut self, cx: &mut Context, index: usize) {
        let egress = self.ports[0];
        let Ok(repr) = Repr::message(self.functions[index].id, Code::PmPme) else { return };
        let repr = cx.with_digest(egress, repr);
        let tlp = cx.tlps.insert(repr, Payload::EMPTY, cx.host.messages);
        cx.enqueue_at_egress(egress, index, Waiting::own(tlp, shape_of(&repr)));
    }

    /// The wires that the upstream port asserts, after a change at a port: the message goes behind the writes from there.
    fn update_wires(&mut self, cx: &mut Context, index: usize) {
        let mut wires = Wires::of(&self.functions[0].space);
        for (device, (port, function)) in (0..).zip(self.ports.iter().zip(&self.functions).skip(1)) {
            let below = cx.links.wires_below(*port).with(Wires::of(&function.space));
            wires = wires.with(below.turned(device));
        }
        tell_above(cx, self.ports[0], index, self.id, wires);
    }

    /// Below the upstream port are all downstream ports.
    fn obey_secondary_bus_reset(&mut self, cx: &mut Context) {
        let all = self.functions[0].resets_below();
        for (port, own) in self.ports.iter().zip(&self.functions).skip(1) {
            cx.reset_below(*port, all || own.resets_below());
        }
    }
}

impl Switch {
    /// The egress of a TLP, if it has just one.
    pub(crate) fn route(&self, topology: &Topology, ingress: usize, repr: &Repr) -> Option<PortId> {
        if config_target(repr).is_some() {
            return None; // it may have to be changed on the way
        }
        match self.way(topology, ingress, repr) {
            Way::To(egress) => Some(self.ports[egress]),
            Way::Inside(egress) => Some(egress),
            _ => None,
        }
    }

    /// The egress that a TLP will wait for; `None` if it ends here, or goes to several.
    pub(crate) fn egress_of(&self, topology: &Topology, ingress: usize, repr: &Repr) -> Option<usize> {
        if let Some(target) = config_target(repr) {
            return match self.config_way(target.function(), target.is_type1()) {
                ConfigWay::Down { port, .. } if ingress == 0 => Some(port),
                _ => None,
            };
        }
        match self.way(topology, ingress, repr) {
            Way::To(egress) => Some(egress),
            Way::ToRoot => Some(0),
            _ => None,
        }
    }

    /// A TLP has arrived in full and passed the switch's processing.
    pub(crate) fn handle_tlp(&mut self, cx: &mut Context, ingress: PortId, tlp: TlpHandle) {
        match self.core {
            Some(_) => self.enter_core(cx, ingress, tlp),
            None => self.send_on(cx, ingress, tlp),
        }
    }

    /// A TLP goes on.
    pub(crate) fn send_on(&mut self, cx: &mut Context, ingress: PortId, tlp: TlpHandle) {
        let repr = &cx.tlps.get(tlp).repr;
        if let Some(target) = config_target(repr) {
            return self.config_request(cx, ingress, tlp, target);
        }
        match self.way(&cx.topology, cx.links.index(ingress), repr) {
            Way::Inside(egress) => cx.forward_to(ingress, egress, tlp, Integrity::Good, Time::ZERO),
            Way::To(egress) => cx.forward_to(ingress, self.ports[egress], tlp, Integrity::Good, Time::ZERO),
            Way::ToRoot => self.pass_to_root(cx, ingress, tlp),
            Way::Broadcast => self.broadcast(cx, ingress, tlp),
            Way::Here => {
                if take_local_message(cx, ingress, tlp) {
                    self.update_wires(cx, cx.links.index(ingress));
                }
            }
            Way::Nowhere => cx.refuse(ingress, tlp, self.id, CompletionStatus::UnsupportedRequest),
            Way::Back => {
                cx.note_refused_peer(ingress, tlp, PeerRefusal::NoUpstreamForwarding);
                cx.refuse(ingress, tlp, self.id, CompletionStatus::UnsupportedRequest);
            }
            Way::Forbidden(reason) => cx.refuse_access(ingress, tlp, self.id, reason),
        }
    }

    fn config_request(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle, target: CfgTarget) {
        let way = if cx.links.index(ingress) == 0 {
            self.config_way(target.function(), target.is_type1())
        } else {
            ConfigWay::Nowhere // configuration requests only go down
        };
        match way {
            ConfigWay::Own(index) => self.take_config_request(cx, ingress, handle, index, target),
            ConfigWay::Down { port, type1 } => {
                let forwarded = if type1 { handle } else { convert(cx, ingress, handle, target) };
                cx.forward_to(ingress, self.ports[port], forwarded, Integrity::Good, Time::ZERO);
            }
            ConfigWay::Nowhere => {
                cx.refuse(ingress, handle, self.id, CompletionStatus::UnsupportedRequest);
            }
        }
    }

    fn broadcast(&mut self, cx: &mut Context, ingress: PortId, tlp: TlpHandle) {
        let source = cx.links.index(ingress);
        for egress in &self.ports[1..] {
            let original = cx.tlps.get(tlp);
            let (repr, payload, flow) = (original.repr, original.payload.clone(), original.flow);
            let copy = cx.tlps.insert(repr, payload, flow);
            cx.enqueue_at_egress(*egress, source, Waiting::own(copy, shape_of(&repr)));
        }
        cx.consume(ingress, tlp);
    }

    /// A message to the root complex comes in from below: every bridge on its way may stop it.
    fn pass_to_root(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let index = cx.links.index(ingress);
        let now = cx.now();
        let passes = message_of(cx.tlps.get(handle)).is_none_or(|(message, _)| {
            let space = self.functions[index].space.change(now, ChangedBy::Hardware);
            error::forward(space, message) && self.upstream_port_passes(now, index, message)
        });
        if passes {
            cx.forward_to(ingress, self.ports[0], handle, Integrity::Good, Time::ZERO);
        } else {
            cx.consume(ingress, handle);
        }
    }

    /// Below the upstream port is a bus of the downstream ports: their messages go over that bridge.
    pub(crate) fn upstream_port_passes(&mut self, now: Time, from: usize, message: ErrorMessage) -> bool {
        from == 0 || error::forward(self.functions[0].space.change(now, ChangedBy::Hardware), message)
    }

    /// The switch is reset, with all its ports.
    pub(crate) fn reset(&mut self, cx: &mut Context) {
        for function in &mut self.functions {
            function.space.change(cx.now(), ChangedBy::Reset).reset(Reset::Hot);
            (function.id, function.slot_interrupt, function.slot_wakes) = (Bdf(0), false, false);
        }
        self.bridges = self.functions.iter().map(|function| registers_of(&function.space)).collect();
        self.id = Bdf(0);
        for port in &self.ports {
            cx.topology.ports[port.index()].bridge = Some(BridgeRegisters::RESET);
        }
        cx.topology.nodes[self.node.index()].id = Bdf(0);
        // Of its own resets it knows nothing any more.
        self.obey_secondary_bus_reset(cx);
    }
}
