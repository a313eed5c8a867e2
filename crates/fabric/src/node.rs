//! The nodes that links connect.

use crate::bus::Bridge;
use crate::end_point::EndPoint;
use crate::root::Root;
use crate::switch::Switch;
use tlplab_units::Duration;

pub(crate) enum Node {
    Switch(Switch),
    Root(Box<Root>),
    EndPoint(Box<EndPoint>),
    Bridge(Box<Bridge>),
}

impl Node {
    /// From the arrival of a TLP to the node's decision about it.
    pub(crate) fn latency(&self) -> Duration {
        match self {
            Self::Switch(switch) => switch.latency,
            Self::Root(root) => root.latency,
            Self::EndPoint(end_point) => end_point.latency,
            Self::Bridge(bridge) => bridge.latency,
        }
    }
}
