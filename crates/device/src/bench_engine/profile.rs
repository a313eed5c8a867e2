//! What distinguishes one benchmark device from another.

use tlplab_units::Duration;

/// The engine of a device that runs benchmarks: what it costs, and how much it does at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineProfile {
    /// From the end of a measured operation to the beginning of the next.
    pub between: Duration,
    /// Max_Payload_Size: its writes are cut at multiples of it.
    pub mps: u32,
    /// Transmits at most so many bits of TLPs per second, headers and framing among them; `None`: as fast as the link.
    pub transmit: Option<u64>,
    /// Operations without a descriptor, of a few bytes.
    pub command: CommandInterface,
    /// The DMA engine.
    pub dma: DmaEngine,
}

/// Operations that a processor of the device issues one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandInterface {
    /// Bytes of an operation at most.
    pub limit: u64,
    /// From the beginning of an operation to its first TLP.
    pub issue: Duration,
    /// From the last byte of a read, or the acceptance of a write, to its end.
    pub completion: Duration,
    /// Operations at once.
    pub slots: u32,
}

/// An engine that takes descriptors and moves data between the host and a memory of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaEngine {
    /// From the beginning of an operation (its descriptor is written) to its first TLP.
    pub issue: Duration,
    /// From the last byte of a read, or the acceptance of a write, to its end.
    pub completion: Duration,
    /// The engine begins no operation sooner than this after another, plus what the chunks of that one take.
    pub interval: Duration,
    /// The device's memory is accessed in chunks of so many bytes, counted from the last address before the first byte that is a
    /// multiple of `alignment`.
    pub chunk: u64,
    /// Time of a chunk.
    pub chunk_interval: Duration,
    /// Alignment of the device's memory in bytes.
    pub alignment: u64,
    /// Operations at once.
    pub slots: u32,
    /// Data move inside the device at so many bits per second after they have come and before they go; `None`: at once.
    pub internal_rate: Option<u64>,
}

impl DmaEngine {
    /// Chunks of `bytes` at `offset` in the device's memory.
    pub fn chunks(&self, offset: u64, bytes: u64) -> u64 {
        (offset % self.alignment + bytes).div_ceil(self.chunk)
    }

    /// How long an operation keeps the engine from beginning another.
    pub fn occupies(&self, offset: u64, bytes: u64) -> Duration {
        self.interval + self.chunk_interval * self.chunks(offset, bytes)
    }
}

impl EngineProfile {
    /// No cost at all: what is left is what link and host cost.
    pub fn ideal() -> Self {
        Self {
            between: Duration::ZERO,
            mps: 256,
            transmit: None,
            command: CommandInterface {
                limit: 64,
                issue: Duration::ZERO,
                completion: Duration::ZERO,
                slots: 32,
            },
            dma: DmaEngine {
                issue: Duration::ZERO,
                completion: Duration::ZERO,
                interval: Duration::ZERO,
                chunk: 4096,
                chunk_interval: Duration::ZERO,
                alignment: 1,
                slots: 32,
                internal_rate: None,
            },
        }
    }
}

/// Time of `bytes` at a rate in bits per second, rounded up; none without a rate.
pub(super) fn time_of(bytes: u64, rate: Option<u64>) -> Duration {
    let Some(rate) = rate else { return Duration::ZERO };
    let fs = (u128::from(bytes) * 8 * 1_000_000_000_000_000).div_ceil(u128::from(rate));
    Duration::from_fs(fs as u64)
}
