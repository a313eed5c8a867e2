//! The parameters of a measurement: a [`Case`] is one row of a data set.

use serde::{Deserialize, Serialize};
use tlplab_device::bench_engine::{Interface as EngineInterface, Measure};

/// One measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The measured quantity.
    pub test: Test,
    /// By which interface of the device.
    #[serde(default)]
    pub interface: Interface,
    /// Order of the addresses.
    #[serde(default)]
    pub pattern: Pattern,
    /// The content of the host's cache when the measurement begins.
    #[serde(default)]
    pub cache: Cache,
    /// The node of the buffer.
    #[serde(default)]
    pub node: Node,
    /// First byte of a transfer in its unit of the buffer.
    #[serde(default)]
    pub host_offset: u64,
    /// First byte of a transfer in the device's memory.
    #[serde(default)]
    pub device_offset: u64,
    /// Bytes of the buffer.
    pub window: u64,
    /// Bytes of a transfer.
    pub size: u64,
    /// Operations that are measured; `None`: as many as give a steady figure.
    #[serde(default)]
    pub count: Option<u64>,
    /// Seed of the random order, and of what is random in the host.
    #[serde(default = "one")]
    pub seed: u64,
    /// Transfers at once, of a bandwidth; `None`: as many as the device can.
    #[serde(default)]
    pub at_once: Option<u32>,
}

fn one() -> u64 {
    1
}

/// The benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Latency of a read.
    LatRd,
    /// Latency of a write and a read of the same address behind it.
    LatWrrd,
    /// Bandwidth of reads.
    BwRd,
    /// Bandwidth of writes.
    BwWr,
    /// Bandwidth in each direction of reads and writes in turn.
    BwRdwr,
}

/// By which way of the device operations reach the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// The command interface: small operations without a descriptor.
    Command,
    /// The DMA engine.
    #[default]
    Dma,
}

/// Order of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Unit after unit.
    #[default]
    Sequential,
    /// Any unit.
    Random,
}

/// The content of the host's last-level cache when a measurement begins. Of a window larger than the cache, the part touched last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// Nothing of the buffer: the host has thrashed its cache.
    Cold,
    /// The buffer, written by the host.
    #[default]
    HostWarm,
    /// The host has thrashed its cache, then the device has written the buffer.
    DeviceWarm,
    /// The host has thrashed its cache, then the device has written other memory, more than its part of the cache holds.
    DeviceThrash,
}

/// The node of the buffer, seen from the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Node {
    /// The memory of the processor that the device is connected to.
    #[default]
    Local,
    /// The memory of another processor.
    Remote,
}

impl Case {
    /// Host-warm sequential DMA of `size` bytes in a window of 8 KiB, local, without offsets.
    pub fn new(test: Test, size: u64) -> Self {
        Self {
            test,
            interface: Interface::Dma,
            pattern: Pattern::Sequential,
            cache: Cache::HostWarm,
            node: Node::Local,
            host_offset: 0,
            device_offset: 0,
            window: 8192,
            size,
            count: None,
            seed: 1,
            at_once: None,
        }
    }

    /// Bytes of a unit of the buffer: the offset and the transfer, up to the next cache line.
    pub fn unit(&self) -> u64 {
        (self.host_offset + self.size).next_multiple_of(LINE)
    }

    /// Units in the window.
    pub fn units(&self) -> u64 {
        self.window / self.unit()
    }

    /// Operations that are measured, and those before them that are not.
    pub fn counts(&self) -> (u64, u64) {
        let (usual, warmup) = if self.test.is_latency() {
            (4096, 8)
        } else {
            // Large transfers are many TLPs, and vary less.
            ((BANDWIDTH_BYTES / self.size).clamp(1024, 8192), 512)
        };
        (self.count.unwrap_or(usual), warmup)
    }

    /// Checks that it can be measured.
    ///
    /// # Errors
    /// The fact and the fix.
    pub fn check(&self) -> Result<(), CaseError> {
        if self.size == 0 {
            return Err(CaseError::Empty);
        }
        if self.size > MOST_BYTES || self.host_offset > MOST_BYTES || self.device_offset > MOST_BYTES {
            return Err(CaseError::TooLarge);
        }
        if self.units() == 0 {
            return Err(CaseError::Window { window: self.window, unit: self.unit() });
        }
        if self.window > MOST_WINDOW {
            return Err(CaseError::WindowTooLarge(self.window));
        }
        if self.count == Some(0) {
            return Err(CaseError::NoCount);
        }
        if self.count.is_some_and(|count| count > MOST_OPERATIONS) {
            return Err(CaseError::TooMany);
        }
        if self.interface == Interface::Command && !self.test.is_latency() {
            return Err(CaseError::CommandBandwidth);
        }
        match self.at_once {
            Some(_) if self.test.is_latency() => Err(CaseError::LatenciesAtOnce),
            Some(at_once) if at_once == 0 || at_once > MOST_AT_ONCE => Err(CaseError::AtOnce(at_once)),
            _ => Ok(()),
        }
    }
}

/// Bytes of a cache line.
pub const LINE: u64 = 64;
/// Bytes of a transfer at most, and of an offset.
const MOST_BYTES: u64 = 1 << 20;
/// Operations that are measured at most: months of computing.
const MOST_OPERATIONS: u64 = 1 << 40;
/// Transfers at once at most, as of a device's profile.
const MOST_AT_ONCE: u32 = 1 << 16;
/// Bytes of a window at most.
const MOST_WINDOW: u64 = 1 << 34;
/// Bytes that a bandwidth is measured with, unless that would be very many or few transfers.
const BANDWIDTH_BYTES: u64 = 2 << 20;

/// The reason that a case cannot be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// A transfer of no bytes.
    #[error("the size is 0 B; expected at least 1 B")]
    Empty,
    /// More than can be meant.
    #[error("a size or an offset is above 1 MiB, the limit of one transfer")]
    TooLarge,
    /// The window holds no transfer.
    #[error(
        "a window of {window} B is too small for a transfer, which takes {unit} B with its offset, in whole cache lines; make the window larger"
    )]
    Window {
        /// Bytes of the window.
        window: u64,
        /// Bytes of a unit.
        unit: u64,
    },
    /// More than a host has.
    #[error("a window of {0} B is above the limit of 16 GiB")]
    WindowTooLarge(u64),
    /// A latency is that of one operation alone.
    #[error(
        "latency is measured with one transfer at a time; leave the number of concurrent transfers out, or measure bandwidth"
    )]
    LatenciesAtOnce,
    /// None at all, or more than a device has.
    #[error("{0} transfers at once; expected 1 to 65536")]
    AtOnce(u32),
    /// Nothing is measured.
    #[error("the count is 0; measure at least one operation")]
    NoCount,
    /// More than anybody can wait for.
    #[error("the count is above the limit of 2^40 operations")]
    TooMany,
    /// The buffer does not fit into the host's memory.
    #[error(
        "a buffer of {window} B that begins at {base} B does not fit into the host's memory of {memory} B; use a smaller window, or a host with more memory (host.memory.size)"
    )]
    Memory {
        /// Bytes of the window.
        window: u64,
        /// The start of the buffer.
        base: u64,
        /// Bytes of the host's memory.
        memory: u64,
    },
    /// The command interface has no bandwidth test.
    #[error(
        "the command interface is for latency (lat_rd, lat_wrrd); bandwidth is measured with the DMA engine"
    )]
    CommandBandwidth,
    /// More than a command carries.
    #[error("the command interface carries at most {limit} B, not {size} B; use the DMA engine")]
    CommandSize {
        /// Bytes of a transfer.
        size: u64,
        /// The device's limit.
        limit: u64,
    },
}

impl Test {
    /// True if it is about latency. Else about bandwidth.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::LatRd | Self::LatWrrd)
    }
}

impl From<Test> for Measure {
    fn from(test: Test) -> Self {
        match test {
            Test::LatRd => Self::ReadLatency,
            Test::LatWrrd => Self::WriteReadLatency,
            Test::BwRd => Self::ReadBandwidth,
            Test::BwWr => Self::WriteBandwidth,
            Test::BwRdwr => Self::ReadWriteBandwidth,
        }
    }
}

impl From<Interface> for EngineInterface {
    fn from(interface: Interface) -> Self {
        match interface {
            Interface::Command => Self::Command,
            Interface::Dma => Self::Dma,
        }
    }
}
