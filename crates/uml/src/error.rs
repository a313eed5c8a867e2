//! The mistakes of a guest.

/// A guest said something that its protocols do not have. The run cannot go on: what the guest meant is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The time-travel protocol has no such operation.
    #[error("time travel: unknown operation {0}; expected at most 9 (broadcast)")]
    Calendar(u32),
    /// A calendar message at a time when there can be none.
    #[error("time travel: {0} while {1}")]
    OutOfTurn(&'static str, &'static str),
    /// vhost-user has no such request, or this device has no use for it.
    #[error("vhost-user: unsupported request {0}: the device has no configuration space, log or IOTLB")]
    Request(u32),
    /// A vhost-user message whose flags are not those of a request of version 1.
    #[error(
        "vhost-user: request {request} has flags {flags:#x}; version 1 is expected, with or without a reply"
    )]
    Flags {
        /// The request.
        request: u32,
        /// Its flags.
        flags: u32,
    },
    /// A vhost-user message of another length than its request has.
    #[error("vhost-user: request {request} has {found} B of payload instead of {expected}")]
    Length {
        /// The request.
        request: u32,
        /// Bytes that came.
        found: u32,
        /// Bytes that it has.
        expected: u32,
    },
    /// A vhost-user message came without the file descriptors that it hands over.
    #[error("vhost-user: request {0} must carry a file descriptor, but has none")]
    NoDescriptor(u32),
    /// There are two queues: commands and interrupts.
    #[error("vhost-user: unknown queue {0}; expected 0 (commands) or 1 (interrupts)")]
    Queue(u32),
    /// A queue was rung before it was set up.
    #[error("vhost-user: queue {0} was kicked before it had a size and addresses")]
    QueueNotReady(u32),
    /// The size of a queue is a power of two up to 32768 (virtio 1.2, section 2.7).
    #[error("vhost-user: queue {queue} cannot have {size} entries; expected a power of two up to 32768")]
    QueueSize {
        /// The queue.
        queue: u32,
        /// Its size.
        size: u32,
    },
    /// A ring or buffer is not in the memory that the guest shares.
    #[error("virtqueue: {bytes} B at {address:#x} are not in the memory that the guest shares")]
    Memory {
        /// The address.
        address: u64,
        /// The size.
        bytes: u64,
    },
    /// A chain of descriptors that has no end, or an index outside of its table.
    #[error("virtqueue: descriptor {0} is outside of its table, or its chain has no end")]
    Chain(u16),
    /// More than any access has in one buffer.
    #[error(
        "virtqueue: the buffer that begins with descriptor {0} has more than 32 MiB, above the size of any access"
    )]
    Buffer(u16),
    /// The available index is further ahead than the queue is long.
    #[error("virtqueue: {0} new buffers are announced in a queue of {1}")]
    Available(u16, u16),
    /// The guest offers a buffer for an interrupt that is too small for one.
    #[error("PCI over virtio: a buffer for interrupts has {0} B, but an interrupt has up to 20")]
    InterruptBuffer(u32),
    /// The tunnel has no such command.
    #[error("PCI over virtio: unknown command {0}")]
    Command(u8),
    /// A command of a length or size that it cannot have.
    #[error("PCI over virtio: command {op} names {size} B, but carries {sent} B with room for {room}")]
    CommandSize {
        /// The command.
        op: u8,
        /// Bytes that it says it is about.
        size: u32,
        /// Bytes after its header.
        sent: u64,
        /// Bytes that the guest has room for in its answer.
        room: u64,
    },
    /// A command about one device, where the whole hierarchy is tunnelled.
    #[error(
        "PCI over virtio: an access to BAR {0} of a single device arrived; the kernel was started without um_pci_tunnel, or lacks its patch"
    )]
    NotTunnelled(u8),
}
