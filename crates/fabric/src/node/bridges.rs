//! The common part of root ports and the ports of switches: a link below with a slot for hot-plug, and its handling by software.
//!
//! A card is present while the physical layer finds somebody at the other end of the link (in-band presence, PCIe 5.0 §7.5.3.11).

use crate::kernel::ids::PortId;
use crate::link::context::Context;
use crate::node::function::{Function, Functions};
use crate::observe::registers::ChangedBy;
use crate::packet::routing::{BridgeRegisters, registers_of};
use tlplab_cfgspace::interrupt::raise;
use tlplab_cfgspace::{LinkState, MessageWrite, Signal, Written};

/// A node whose functions are bridges with links below.
pub(crate) trait Bridges: Functions {
    /// The interrupt of a port's own goes to the host.
    fn send_port_message(&mut self, cx: &mut Context, index: usize, message: MessageWrite);
    /// The legacy interrupts of the node may have changed, because of one of its functions or a component below it.
    fn update_wires(&mut self, cx: &mut Context, index: usize);
    /// A port sleeps and has something to tell: a power management event goes to the root complex (PCIe 5.0 §5.3.3.2).
    fn send_pme(&mut self, cx: &mut Context, index: usize);
    /// Secondary Bus Reset of Bridge Control is set, which resets all that is below the bridge's links, or clear (PCIe 5.0 §7.5.1.3.13).
    fn obey_secondary_bus_reset(&mut self, cx: &mut Context);

    /// Software has written registers of one of its bridges, whose link and routing have followed.
    fn obey_bridge_control(&mut self, cx: &mut Context, index: usize, written: Written) {
        self.update_slot(cx, index);
        if written.bridge_control {
            self.obey_secondary_bus_reset(cx);
        }
        if written.interrupts {
            self.update_wires(cx, index);
        }
    }

    /// The registers of a port follow how its link is.
    fn show_link(&mut self, cx: &mut Context, index: usize, present: bool, state: LinkState) {
        let space = self.function(index).space.change(cx.now(), ChangedBy::Hardware);
        space.set_presence(present);
        space.set_link(state);
        self.update_slot(cx, index);
    }

    /// The slot's interrupt is a level, as its wire is; a message goes when it rises (PCIe 5.0 §6.7.3.4).
    fn update_slot(&mut self, cx: &mut Context, index: usize) {
        let function = self.function(index);
        let wakes = function.space.slot_wakes();
        if wakes && !std::mem::replace(&mut function.slot_wakes, wakes) {
            function.space.change(cx.now(), ChangedBy::Hardware).set_pme_status();
            self.send_pme(cx, index);
        }
        let function = self.function(index);
        function.slot_wakes = wakes;
        let level = function.space.slot_interrupt();
        if level == std::mem::replace(&mut function.slot_interrupt, level) {
            return;
        }
        let space = function.space.change(cx.now(), ChangedBy::Hardware);
        let signal = if level { raise(space, None, 0) } else { Signal::Nothing };
        space.set_interrupt_status(level);
        match signal {
            Signal::Write(message) => self.send_port_message(cx, index, message),
            _ => self.update_wires(cx, index),
        }
    }
}

impl Function {
    /// Software has written registers of a bridge at `port`: the link's payload and the topology follow. Gives the registers of routing.
    pub(crate) fn follow_bridge_registers(
        &self,
        cx: &mut Context,
        port: PortId,
        written: Written,
    ) -> BridgeRegisters {
        if written.device_control
            && let Some(pcie) = self.space.pcie()
        {
            cx.links.set_max_payload(port, pcie.mps);
        }
        let registers = registers_of(&self.space);
        cx.topology.ports[port.index()].bridge = Some(registers);
        registers
    }

    /// True if it holds all below it in reset.
    pub(crate) fn resets_below(&self) -> bool {
        self.space.bridge().is_some_and(|bridge| bridge.secondary_reset)
    }
}
