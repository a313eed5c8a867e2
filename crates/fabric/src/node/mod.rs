//! The nodes that links connect.

pub(crate) mod answer;
pub(crate) mod bus;
pub(crate) mod config_request;
pub(crate) mod end_point;
pub(crate) mod error_messages;
pub mod errors;
pub(crate) mod function;
pub(crate) mod initiator;
pub(crate) mod interrupt;
pub(crate) mod intx;
pub(crate) mod root;
pub(crate) mod routing;
pub(crate) mod switch;

use crate::node::bus::Bridge;
use crate::node::end_point::EndPoint;
use crate::node::root::Root;
use crate::node::switch::Switch;
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
