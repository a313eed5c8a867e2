//! Parallel buses: PCI and PCI-X below a bridge, and what is particular about devices on them.

use crate::config::LinkConfig;
use tlplab_units::Duration;

/// A forward bridge from PCI Express to a parallel bus, and that bus. Devices are on it that have a [`BusDevice`] and name it in `under`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusConfig {
    /// The component's name, unique in the fabric.
    pub name: String,
    /// The link above the bridge.
    pub uplink: LinkConfig,
    /// Protocol and clock.
    pub mode: BusMode,
    /// Bytes per data phase of a burst, 4 or 8. Address phases and single doublewords use 4.
    pub width: BusWidth,
    /// The bridge.
    pub bridge: BridgeConfig,
}

impl BusConfig {
    /// A bus of 32 bits below a bridge with the defaults of [`BridgeConfig`].
    pub fn new(name: &str, uplink: LinkConfig, mode: BusMode) -> Self {
        let width = BusWidth::Bits32;
        Self { name: name.into(), uplink, mode, width, bridge: BridgeConfig::default() }
    }

    /// Its mode and width as people write them: `PCI-X 133 64b`.
    pub fn label(&self) -> String {
        format!("{} {}b", self.mode.name().to_uppercase(), 8 * self.width.bytes())
    }

    /// Bits per second of its data phases.
    pub(crate) fn bits_per_second(&self) -> u64 {
        let bits = u128::from(8 * self.width.bytes()) * 1_000_000_000_000_000;
        (bits / u128::from(self.mode.cycle().as_fs())) as u64
    }
}

/// Protocol and clock of a parallel bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusMode {
    /// Conventional PCI, 33⅓ MHz.
    Pci33,
    /// Conventional PCI, 66⅔ MHz.
    Pci66,
    /// PCI-X, 66⅔ MHz.
    PciX66,
    /// PCI-X, 100 MHz.
    PciX100,
    /// PCI-X, 133⅓ MHz.
    PciX133,
}

impl BusMode {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Pci33, Self::Pci66, Self::PciX66, Self::PciX100, Self::PciX133];

    /// Its name in experiments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pci33 => "pci 33",
            Self::Pci66 => "pci 66",
            Self::PciX66 => "pci-x 66",
            Self::PciX100 => "pci-x 100",
            Self::PciX133 => "pci-x 133",
        }
    }

    /// A clock.
    pub const fn cycle(self) -> Duration {
        Duration::from_ps(match self {
            Self::Pci33 => 30_000,
            Self::Pci66 | Self::PciX66 => 15_000,
            Self::PciX100 => 10_000,
            Self::PciX133 => 7_500,
        })
    }

    /// True for PCI-X, with an attribute phase and split transactions; false for conventional PCI.
    pub const fn is_pci_x(self) -> bool {
        matches!(self, Self::PciX66 | Self::PciX100 | Self::PciX133)
    }
}

/// Lines for data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusWidth {
    /// 32.
    #[default]
    Bits32,
    /// 64.
    Bits64,
}

impl BusWidth {
    /// Bytes per data phase.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }
}

/// The bridge above a parallel bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// From the arrival of a TLP, or the end of a transaction of the bus, to the queue of the other side.
    pub latency: Duration,
    /// The time of each transaction on top of its clocks, between the bus's clock and the bridge's: before those that the bridge begins, after those
    /// that are for the bridge.
    pub synchronisation: Duration,
    /// Clocks from a request in its queue to the address phase on an idle bus: synchronisation with the clock's edges comes on top.
    pub overhead: u16,
    /// The speed of its claims for the upstream side.
    pub device_select: DeviceSelect,
    /// Posted requests from the bus that it holds for its link, at least 1; further ones have to come again.
    pub posted: u16,
    /// Reads from the bus that it holds at a time, until their data have been fetched; at least 1.
    pub reads: u16,
}

impl Default for BridgeConfig {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            synchronisation: Duration::ZERO,
            overhead: 4,
            device_select: DeviceSelect::Fast,
            posted: 8,
            reads: 8,
        }
    }
}

/// The clocks after the address (and attribute) phase at which a device claims a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceSelect {
    /// One.
    Fast,
    /// Two.
    #[default]
    Medium,
    /// Three.
    Slow,
}

impl DeviceSelect {
    /// Clocks.
    pub const fn clocks(self) -> u32 {
        match self {
            Self::Fast => 1,
            Self::Medium => 2,
            Self::Slow => 3,
        }
    }
}

/// The behaviour of a device on a parallel bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusDevice {
    /// The speed of its claims.
    pub device_select: DeviceSelect,
    /// Clocks that it is not ready before the first data phase.
    pub wait_states: u16,
    /// The completion of reads of its memory. Its configuration registers answer at once.
    pub completion: BusCompletion,
    /// Clocks from a request or split completion in its queue to the address phase on an idle bus.
    pub overhead: u16,
}

impl Default for BusDevice {
    fn default() -> Self {
        Self {
            device_select: DeviceSelect::default(),
            wait_states: 0,
            completion: BusCompletion::Immediate,
            overhead: 4,
        }
    }
}

/// The response of the target to a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusCompletion {
    /// In the same transaction, which waits for them.
    #[default]
    Immediate,
    /// The master has to come again until they are there (PCI 2.2 §3.3.3.3).
    Delayed,
    /// In a transaction of the target's own (PCI-X).
    Split,
}
