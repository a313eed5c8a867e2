//! The status in a command's completion (NVMe 1.4 §4.6.1).

/// The status field of a completion: status code, status code type, Do Not Retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

/// Do Not Retry: the same command would fail again.
const DNR: u16 = 1 << 14;

impl Status {
    /// The command did what it was to do.
    pub const SUCCESS: Self = Self(0);
    /// No such command.
    pub const INVALID_OPCODE: Self = Self(0x01 | DNR);
    /// A field holds what it may not, or what this controller does not offer.
    pub const INVALID_FIELD: Self = Self(0x02 | DNR);
    /// Another command of the queue has this identifier.
    pub const ID_CONFLICT: Self = Self(0x03 | DNR);
    /// Host memory could not be read or written.
    pub const DATA_TRANSFER_ERROR: Self = Self(0x04);
    /// An Abort command took it back.
    pub const ABORT_REQUESTED: Self = Self(0x07);
    /// No such namespace, or not for this command.
    pub const INVALID_NAMESPACE: Self = Self(0x0B | DNR);
    /// Not now, in this order.
    pub const SEQUENCE_ERROR: Self = Self(0x0C | DNR);
    /// A (last) segment descriptor that may not stand where it does, or has an impossible length.
    pub const SGL_INVALID_SEGMENT: Self = Self(0x0D | DNR);
    /// A segment with no or with too many descriptors.
    pub const SGL_INVALID_COUNT: Self = Self(0x0E | DNR);
    /// The data blocks of an SGL are not as long as the transfer.
    pub const SGL_INVALID_LENGTH: Self = Self(0x0F | DNR);
    /// A kind of SGL descriptor that this controller does not take.
    pub const SGL_INVALID_TYPE: Self = Self(0x11 | DNR);
    /// A PRP entry with an offset that it may not have.
    pub const PRP_INVALID_OFFSET: Self = Self(0x13 | DNR);
    /// Blocks beyond the end of the namespace.
    pub const LBA_OUT_OF_RANGE: Self = Self(0x80 | DNR);
    /// The completion queue of a new submission queue does not exist.
    pub const COMPLETION_QUEUE_INVALID: Self = Self(0x100 | DNR);
    /// No queue can have, or has, this identifier.
    pub const INVALID_QUEUE: Self = Self(0x101 | DNR);
    /// A queue cannot have this size.
    pub const INVALID_QUEUE_SIZE: Self = Self(0x102 | DNR);
    /// More Asynchronous Event Requests than the controller holds.
    pub const EVENT_LIMIT: Self = Self(0x105 | DNR);
    /// No such interrupt vector.
    pub const INVALID_VECTOR: Self = Self(0x108 | DNR);
    /// No such log page.
    pub const INVALID_LOG_PAGE: Self = Self(0x109 | DNR);
    /// No such LBA format.
    pub const INVALID_FORMAT: Self = Self(0x10A | DNR);
    /// A completion queue that submission queues still use.
    pub const INVALID_QUEUE_DELETION: Self = Self(0x10C | DNR);
    /// This feature is not kept over power cycles.
    pub const NOT_SAVEABLE: Self = Self(0x10D | DNR);
    /// The medium did not take what was written.
    pub const WRITE_FAULT: Self = Self(0x280);
    /// The data on the medium differ from those of the host.
    pub const COMPARE_FAILURE: Self = Self(0x285 | DNR);

    /// As in a completion, without the phase tag: status code in bits 7:0, type in bits 10:8, Do Not Retry in bit 14.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// The command did what it was to do.
    pub const fn is_success(self) -> bool {
        self.0 & 0x7FF == 0
    }
}
