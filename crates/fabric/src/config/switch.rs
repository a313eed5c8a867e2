//! Switches, as plain data.

use super::LinkConfig;
use tlplab_units::Duration;

/// A switch: one upstream port, one downstream port for each component that names it in `under`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// The component's name, unique in the fabric.
    pub name: String,
    /// The link of its upstream port.
    pub uplink: LinkConfig,
    /// From the arrival of a TLP (its last byte, or with cut-through its header) to the egress queue.
    pub latency: Duration,
    /// The start of forwarding.
    pub forwarding: Forwarding,
    /// Shares of the egress among the ingresses.
    pub arbitration: Arbitration,
    /// Room of each port in TLPs. Under [`FlowControl::DropAndReplay`](super::FlowControl::DropAndReplay) a port queues so many requests that leave by it, and accepts
    /// so many non-posted requests whose response has not gone back by it; for responses there is always room. `None`: no limit.
    /// Under [`FlowControl::Credits`](super::FlowControl::Credits) it is what the ports advertise of each class, unless [`PortConfig::buffers`](super::PortConfig::buffers) says otherwise.
    pub port_buffer: Option<u16>,
    /// The core between ingresses and egresses. `None`: a TLP waits for its egress as soon as it may, and each ingress has a queue of its own
    /// at each egress, limited by its receive buffer alone.
    pub core: Option<SwitchCoreConfig>,
    /// The chip that it is a partition of, with all others that name it: what comes in by a downstream port of one for what is below a downstream
    /// port of another goes there inside of the chip, without root complex and access control. `None`: it is a chip of its own.
    pub chip: Option<String>,
}

/// The core between the ingresses and the egresses of a switch. Each ingress has one queue, whose first TLPs hold up those behind them, as far as the
/// ordering rules let none pass. A TLP that was stored goes on when all of it has passed; one that cuts through when its header has, and as soon as the
/// core is ahead of the egress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCoreConfig {
    /// Bits per second of TLPs, headers and data, of all ingresses together; `None`: without limit.
    pub rate: Option<u64>,
    /// TLPs of a class that wait for one egress; `None`: without limit.
    pub egress: Option<u16>,
    /// TLPs of a class that wait for all egresses together, each of which has one place besides; `None`: without limit.
    pub shared: Option<u16>,
}

impl SwitchConfig {
    /// A cut-through switch without latency that serves its ingresses in turn.
    pub fn new(name: &str, uplink: LinkConfig) -> Self {
        Self {
            name: name.into(),
            uplink,
            latency: Duration::ZERO,
            forwarding: Forwarding::CutThrough,
            arbitration: Arbitration::RoundRobin,
            port_buffer: None,
            core: None,
            chip: None,
        }
    }
}

/// The point at which a switch starts to forward a TLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// After its last byte has arrived and its LCRC is good.
    StoreAndForward,
    /// After its header; a TLP that turns out bad is nullified. It leaves by a faster egress when its last byte will be there in time.
    #[default]
    CutThrough,
    /// As [`CutThrough`](Self::CutThrough), but where the egress is faster than the ingress, as [`StoreAndForward`](Self::StoreAndForward): what chips
    /// of switches do.
    CutThroughUnlessFaster,
    /// After its header, which has a checksum of its own behind it, of [`HEADER_CHECK`](super::HEADER_CHECK) bytes, on every framed link of the switch. What has a
    /// bad header goes nowhere; what turns out bad behind it is nullified, as with cut-through. This is no PCIe; Miller et al. (ANCS 2009,
    /// section 6.1) propose it.
    HeaderChecked,
}

/// The choice of an egress port among ingresses, TLP by TLP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Arbitration {
    /// One TLP each in turn.
    #[default]
    RoundRobin,
    /// `weight` TLPs each in turn, by the name of the component behind the ingress; others have weight 1.
    Weighted(Vec<(String, u16)>),
}
