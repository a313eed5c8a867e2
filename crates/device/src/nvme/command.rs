//! Commands as they stand in submission queues, and what is under way of them.

use super::pointer::Walk;
use super::status::Status;

/// Bytes of a submission queue entry.
pub(super) const ENTRY: u64 = 64;
/// Bytes of a completion queue entry.
pub(super) const COMPLETION: u64 = 16;
/// The namespace identifier that means all of them.
pub(super) const ALL_NAMESPACES: u32 = u32::MAX;

/// A submission queue entry (NVMe 1.4 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Submission(pub(super) [u8; ENTRY as usize]);

impl Submission {
    pub(super) fn opcode(&self) -> u8 {
        self.0[0]
    }
    /// It is half of a fused operation.
    pub(super) fn is_fused(&self) -> bool {
        self.0[1] & 3 != 0
    }
    /// The kind of the data pointer: 0 for PRPs, 1 for an SGL.
    pub(super) fn pointer_kind(&self) -> u8 {
        self.0[1] >> 6
    }
    pub(super) fn id(&self) -> u16 {
        u16::from_le_bytes([self.0[2], self.0[3]])
    }
    pub(super) fn namespace(&self) -> u32 {
        self.word(1)
    }
    /// Command dword `n`.
    pub(super) fn word(&self, n: usize) -> u32 {
        u32::from_le_bytes(self.0[4 * n..4 * n + 4].try_into().expect("4 bytes"))
    }
    /// Command dwords `n` and the next.
    pub(super) fn long(&self, n: usize) -> u64 {
        u64::from(self.word(n)) | u64::from(self.word(n + 1)) << 32
    }
    /// The data pointer: PRP 1 and PRP 2, or an SGL descriptor.
    pub(super) fn pointer(&self) -> [u8; 16] {
        self.0[24..40].try_into().expect("16 bytes")
    }
    pub(super) fn prp1(&self) -> u64 {
        self.long(6)
    }
}

/// Bytes of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// Index of the namespace.
    pub(super) namespace: usize,
    /// First byte.
    pub(super) at: u64,
    /// Their number.
    pub(super) bytes: u64,
}

/// The part of a command that takes time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// These bytes to the host.
    Tell(Vec<u8>),
    /// A feature whose value is in host memory, of that many bytes.
    Feature { id: u8, bytes: u64 },
    /// Blocks to the host.
    Read(Range),
    /// Blocks from the host; not acknowledged before they are on the medium if `through`.
    Write { range: Range, through: bool },
    /// The blocks that came are programmed.
    Program(Range),
    /// The blocks that came wait for room in the cache.
    Cache(Range),
    /// Blocks against those of the host, which come first.
    Compare(Range),
    /// The host's blocks are here; the medium's are read.
    Check(Range),
    /// Blocks are read, and go nowhere.
    Verify(Range),
    /// Blocks become zero.
    Zero(Range),
    /// As many ranges as the host lists become zero.
    Deallocate { namespace: usize, ranges: u64 },
    /// The whole cache goes to the medium.
    Flush,
    /// The same, and then the cache is off.
    DisableCache,
    /// Namespaces become empty, with blocks of that many bytes.
    Format { first: usize, count: usize, block: u64 },
    /// It waits for an event, or for the last command of a queue, or for its end.
    Wait,
}

impl Work {
    /// Bytes between the host and the controller.
    pub(super) fn transfer(&self) -> u64 {
        match self {
            Self::Tell(data) => data.len() as u64,
            Self::Feature { bytes, .. } => *bytes,
            Self::Read(range) | Self::Compare(range) | Self::Write { range, .. } => range.bytes,
            Self::Deallocate { ranges, .. } => ranges * 16,
            _ => 0,
        }
    }
    /// They are more than data: bytes even in a length-only run.
    pub(super) fn is_control(&self) -> bool {
        matches!(self, Self::Feature { .. } | Self::Deallocate { .. })
    }
}

/// A command that was fetched and is not completed.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// Its submission queue.
    pub(super) queue: u16,
    pub(super) entry: Submission,
    /// The controller has begun with it.
    pub(super) begun: bool,
    pub(super) work: Work,
    /// The places of its data in host memory, as far as they are known.
    pub(super) walk: Walk,
    /// DMA and accesses to the medium that are not over.
    pub(super) open: u32,
    /// The data from the host.
    pub(super) data: Vec<u8>,
    /// The first error.
    pub(super) status: Status,
}

impl Command {
    pub(super) fn new(queue: u16, entry: Submission) -> Self {
        Self {
            queue,
            entry,
            begun: false,
            work: Work::Wait,
            walk: Walk::default(),
            open: 0,
            data: Vec::new(),
            status: Status::SUCCESS,
        }
    }
    /// Something went wrong; the first of it is told.
    pub(super) fn fail(&mut self, status: Status) {
        if self.status.is_success() {
            self.status = status;
        }
    }
}
