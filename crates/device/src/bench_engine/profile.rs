//! The properties that distinguish one benchmark device from another.

use tlplab_units::Duration;

/// The engine of a device that runs benchmarks: what it costs, and how much it does at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineProfile {
    /// From the end of a measured operation to the beginning of the next.
    pub between: Duration,
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
    /// Of reads.
    pub read: Overhead,
    /// Of writes.
    pub write: Overhead,
}

/// The cost of an operation that is alone in the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// From the beginning of an operation until the engine takes it (a descriptor is written and fetched).
    pub issue: Duration,
    /// From the last byte of a read, or the acceptance of a write by the link, until the operation is over.
    pub completion: Duration,
}

/// An engine that takes descriptors and moves data between the host and a memory of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaEngine {
    /// Descriptors that it holds of each direction: operations at once.
    pub slots: u32,
    /// Alignment of the device's memory in bytes.
    pub alignment: u64,
    /// The unit that does reads.
    pub reads: ReadUnit,
    /// The unit that does writes.
    pub writes: WriteUnit,
    /// The way to the link.
    pub transmission: Transmission,
}

/// The way to the link, which all TLPs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Width in bytes: a TLP takes whole beats.
    pub beat: u64,
    /// Time of a beat; with none, TLPs wait for nothing but the link.
    pub beat_time: Duration,
    /// Besides its own, a read request takes a beat for each so many bytes it asks for: the Acks of their completions. 0: none.
    pub answered: u64,
}

/// Reads: requests, a buffer for what comes back, and the way from it into the device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadUnit {
    /// Of an operation.
    pub overhead: Overhead,
    /// Max_Read_Request_Size: where operations are cut.
    pub mrrs: u32,
    /// Requests at once.
    pub requests: u32,
    /// From the last request of an operation to the first of the next.
    pub interval: Duration,
    /// From one request of an operation to the next.
    pub interval_within: Duration,
    /// The buffer where data wait; `None`: without limit.
    pub buffer: Option<ReadBuffer>,
    /// Passing of data that begin and end at the alignment of the device's memory: of each operation by itself, they keep nobody waiting.
    pub aligned: Passing,
    /// Passing of other data, one operation after the other: chunks are counted of the words before the one with the last byte.
    pub unaligned: Passing,
}

/// A ring of blocks. A request takes as many as its data will fill, one after the other; what does not fit before the end of the ring
/// begins again at its start. There the engine waits until the buffer is empty but for the operation before the present one, except if
/// the buffer is full anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBuffer {
    /// Bytes of a block.
    pub block: u64,
    /// Blocks.
    pub blocks: u32,
    /// The buffer is full when no more blocks than these would be left.
    pub margin: u32,
}

/// The time that data occupy the path into the device's memory: a start, and a time for each chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passing {
    /// For an operation.
    pub start: Duration,
    /// For a chunk.
    pub chunk_time: Duration,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Bytes of a segment: an operation that is unaligned at both ends takes one chunk more for each; 0: none.
    pub segment: u64,
}

/// Writes: out of the device's memory, onto the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteUnit {
    /// Of an operation.
    pub overhead: Overhead,
    /// From when its data are out of the device's memory, an operation takes at least so long to be over.
    pub least: Duration,
    /// Max_Payload_Size: where operations are cut.
    pub mps: u32,
    /// The time that an operation occupies the path out of the device's memory. Chunks begin at multiples of the alignment.
    pub passing: Passing,
    /// The link gets an operation in segments of so many bytes.
    pub segment: u64,
    /// Beats after a whole segment in which nothing goes.
    pub idle_after_segment: u32,
    /// Beats after a part of one.
    pub idle_after_part: u32,
}

impl Default for DmaEngine {
    /// No cost at all, 32 operations at once, MPS 256, MRRS 512.
    fn default() -> Self {
        let free = Passing { chunk: 4096, ..Passing::default() };
        Self {
            slots: 32,
            alignment: 1,
            reads: ReadUnit {
                overhead: Overhead::default(),
                mrrs: 512,
                requests: 256,
                interval: Duration::ZERO,
                interval_within: Duration::ZERO,
                buffer: None,
                aligned: free,
                unaligned: free,
            },
            writes: WriteUnit {
                overhead: Overhead::default(),
                least: Duration::ZERO,
                mps: 256,
                passing: free,
                segment: 4096,
                idle_after_segment: 0,
                idle_after_part: 0,
            },
            transmission: Transmission { beat: 16, beat_time: Duration::ZERO, answered: 0 },
        }
    }
}

impl Transmission {
    /// Beats that the Acks of the answer to so many bytes take.
    pub fn acks(&self, bytes: u64) -> u64 {
        if self.answered == 0 { 0 } else { bytes.div_ceil(self.answered) }
    }
}

impl WriteUnit {
    /// Idle beats that follow the bytes from `begin` to `end` of an operation: after the segments that end there.
    pub fn idle(&self, begin: u64, end: u64, bytes: u64) -> u64 {
        let whole = end / self.segment - begin / self.segment;
        let part = end == bytes && !bytes.is_multiple_of(self.segment);
        whole * u64::from(self.idle_after_segment) + u64::from(part) * u64::from(self.idle_after_part)
    }
}

impl DmaEngine {
    /// The time of the data of a read into the device's memory, once all have come.
    pub fn read_passes(&self, offset: u64, bytes: u64) -> Duration {
        let ReadUnit { aligned, unaligned, .. } = &self.reads;
        if self.is_aligned(offset, bytes) {
            return aligned.time_of(bytes.div_ceil(aligned.chunk));
        }
        let (head, tail) = (offset % self.alignment, (offset + bytes) % self.alignment);
        let before_last = bytes - 1;
        let chunks = (before_last - before_last % self.alignment).div_ceil(unaligned.chunk).max(1);
        let segments =
            if head > 0 && tail > 0 && unaligned.segment > 0 { bytes.div_ceil(unaligned.segment) } else { 0 };
        unaligned.time_of(chunks + segments)
    }

    /// The time that the data of a read keep those of others from the device's memory. Aligned data pass as they come.
    pub fn read_occupies(&self, offset: u64, bytes: u64) -> Duration {
        if self.is_aligned(offset, bytes) { Duration::ZERO } else { self.read_passes(offset, bytes) }
    }

    fn is_aligned(&self, offset: u64, bytes: u64) -> bool {
        let (head, tail) = (offset % self.alignment, (offset + bytes) % self.alignment);
        // Of a single word it does not matter where in it the bytes are.
        head == 0 && tail == 0 || head + bytes <= self.alignment
    }

    /// The time that the data of a write occupy the path out of the device's memory.
    pub fn write_passes(&self, offset: u64, bytes: u64) -> Duration {
        let passing = &self.writes.passing;
        passing.time_of((offset % self.alignment + bytes).div_ceil(passing.chunk))
    }
}

impl Passing {
    fn time_of(&self, chunks: u64) -> Duration {
        self.start + self.chunk_time * chunks
    }
}
