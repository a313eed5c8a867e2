//! Reasons that a configuration is not a fabric.

use super::HostMemoryError;
use tlplab_cfgspace::LayoutError;
use tlplab_device::IdentityError;

/// The reason that a configuration is not a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Two components have one name.
    #[error("there are two components called {0:?}")]
    DuplicateName(String),
    /// The parent does not exist, or is no switch or root port.
    #[error("{component}: unknown parent {under:?}; expected a switch, bus or root port")]
    UnknownParent {
        /// The component.
        component: String,
        /// The parent that it names.
        under: String,
    },
    /// A parallel bus that cannot be.
    #[error("{bus}: {why}")]
    Bus {
        /// The bus.
        bus: String,
        /// The reason.
        why: &'static str,
    },
    /// Two components under one root port, which is one end of one link.
    #[error("{first} and {second} are both under {port}; a root port has one link: put a switch between")]
    PortTaken {
        /// The root port.
        port: String,
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// Switches under each other in a circle.
    #[error("{0} is not connected to the host: its parents form a loop")]
    Loop(String),
    /// A function of a device that it cannot be.
    #[error("{component}: it cannot be a function of {device:?}: {why}")]
    Function {
        /// The component.
        component: String,
        /// The device that would own the function.
        device: String,
        /// The reason.
        why: &'static str,
    },
    /// A function's configuration space cannot be laid out.
    #[error("{component}: configuration space: {error}")]
    ConfigSpace {
        /// The component.
        component: String,
        /// The mistake.
        error: LayoutError,
    },
    /// A device's identity cannot be.
    #[error("{component}: {error}")]
    Identity {
        /// The component.
        component: String,
        /// The mistake.
        error: IdentityError,
    },
    /// A port's buffers or policies cannot be.
    #[error("{component}, {end} port: {error}")]
    Port {
        /// The component below the link.
        component: String,
        /// "upper" or "lower".
        end: &'static str,
        /// The mistake.
        error: tlplab_datalink::ConfigError,
    },
    /// The egress control vector of a port names what has no port beside it.
    #[error(
        "{component}: its port cannot forbid requests to {peer:?}, which is not under the same switch or root complex"
    )]
    NoPeer {
        /// The component below the port.
        component: String,
        /// The peer that is named.
        peer: String,
    },
    /// Partitions of a chip whose hierarchies have different payloads.
    #[error("{first} and {second} share chip {chip:?}, and have payloads of {} B and {} B; inside a chip TLPs are not cut: give both hierarchies the same mps", payloads.0, payloads.1)]
    Chip {
        /// The chip.
        chip: String,
        /// One partition.
        first: String,
        /// The other.
        second: String,
        /// Their payloads in bytes.
        payloads: (u32, u32),
    },
    /// A domain of the host that cannot be.
    #[error("host domain {domain}: {why}")]
    Domain {
        /// The domain.
        domain: String,
        /// The reason.
        why: String,
    },
    /// A part of the host in front of its memory is impossible.
    #[error("host: {0}")]
    HostMemory(#[from] HostMemoryError),
    /// A custom part in a place where it cannot work.
    #[error("{component}: {why}")]
    Custom {
        /// The component, or the one below the link.
        component: String,
        /// The reason.
        why: &'static str,
    },
    /// More than bus numbers or address space allow.
    #[error("{0}")]
    TooLarge(&'static str),
    /// A device was given without its configuration or the other way round.
    #[error("device {0:?} has a model but no configuration, or a configuration but no model")]
    Unpaired(String),
}

impl BuildError {
    /// The component that it is about, if it is about one.
    pub fn component(&self) -> Option<&str> {
        match self {
            Self::DuplicateName(component) | Self::Loop(component) | Self::Unpaired(component) => {
                Some(component)
            }
            Self::UnknownParent { component, .. }
            | Self::Bus { bus: component, .. }
            | Self::Custom { component, .. }
            | Self::PortTaken { second: component, .. }
            | Self::Function { component, .. }
            | Self::ConfigSpace { component, .. }
            | Self::Identity { component, .. }
            | Self::NoPeer { component, .. }
            | Self::Chip { second: component, .. }
            | Self::Port { component, .. } => Some(component),
            Self::Domain { .. } | Self::HostMemory(_) | Self::TooLarge(_) => None,
        }
    }
}
