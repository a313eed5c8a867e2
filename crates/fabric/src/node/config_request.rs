//! Configuration requests: routed by bus numbers, turned from type 1 into type 0 at their bus (PCIe 5.0 §7.3.3).

use crate::kernel::ids::PortId;
use crate::link::context::Context;
use crate::packet::routing::BridgeRegisters;
use crate::packet::slab::TlpHandle;
use tlplab_units::Bdf;
use tlplab_wire::tlp::{CfgTarget, Kind, Repr};

/// The destination of a configuration request that a switch or the root complex sends to a function below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigWay {
    /// It is one of the node's own functions.
    Own(usize),
    /// Down this port (an index among the node's).
    Down {
        /// The port.
        port: usize,
        /// It goes on as type 1: its bus is further down.
        type1: bool,
    },
    /// Nobody has that number.
    Nowhere,
}

/// Below a downstream port there is one device, number 0, unless what would be its number belongs to the function's (PCIe 5.0 §6.13).
pub(crate) fn way_down(port: usize, bridge: &BridgeRegisters, function: Bdf) -> ConfigWay {
    let type1 = function.bus() != bridge.secondary;
    let no_device = !type1 && function.device() != 0 && !bridge.ari;
    if no_device { ConfigWay::Nowhere } else { ConfigWay::Down { port, type1 } }
}

/// The target of a configuration request.
pub(crate) fn config_target(repr: &Repr) -> Option<CfgTarget> {
    match repr.kind() {
        Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => Some(*target),
        _ => None,
    }
}

/// A type 1 request has reached its bus: it goes on as type 0.
pub(crate) fn convert(cx: &mut Context, ingress: PortId, handle: TlpHandle, target: CfgTarget) -> TlpHandle {
    let original = cx.tlps.get(handle);
    let target = target.at_its_bus();
    let kind = match *original.repr.kind() {
        Kind::CfgWrite { id, .. } => Kind::CfgWrite { id, target },
        _ => Kind::CfgRead { id: original.repr.transaction_id(), target },
    };
    let repr = Repr::from(kind).with_attributes(*original.repr.attributes());
    let repr = repr.expect("the attributes of a request of the same kind");
    cx.replace_tlp(ingress, handle, repr)
}
