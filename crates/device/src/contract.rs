//! The device contract: what a device is told, and what it may do.
//!
//! A [`Device`] is a state machine. Its driver (the simulator, a socket, a guest) calls [`Device::handle`] with one [`Event`] at a time;
//! the device answers by recording [`Action`]s in its [`Context`]. A handler runs to its end before the next event of the
//! device is handled, and events come in the order of their arrival.

use crate::host::DeviceInfo;
use tlplab_transaction::{CompletionError, Payload, RequestError, RequestPolicy};
use tlplab_units::Time;

/// A PCI Express function.
pub trait Device: Send {
    /// What its configuration space says of it. Asked once, before anything else.
    fn identity(&self) -> Identity;

    /// Something happened.
    fn handle(&mut self, cx: &mut Context<'_>, event: Event);

    /// Where its transfers are cut into requests.
    fn request_policy(&self) -> RequestPolicy {
        RequestPolicy::Aligned
    }
}

/// What configuration space tells of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Class code: base class, subclass, programming interface; 24 bits.
    pub class: u32,
    /// Revision ID.
    pub revision: u8,
    /// Subsystem vendor and subsystem ID.
    pub subsystem: (u16, u16),
    /// Base address registers.
    pub bars: Vec<BarSpec>,
    /// MSI-X vectors, 0 to 2048.
    pub msix_vectors: u16,
    /// MSI vectors: 0, or a power of two up to 32.
    pub msi_vectors: u8,
    /// It can raise a legacy interrupt: it has an interrupt pin.
    pub intx: bool,
}

/// A base address register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarSpec {
    /// Its number, 0 to 5. A 64-bit one takes the next number as well.
    pub index: u8,
    /// Bytes of memory behind it: a power of two, at least 16.
    pub size: u64,
    /// Reads have no side effects.
    pub prefetchable: bool,
    /// It may lie above 4 GiB.
    pub is_64_bit: bool,
    /// It is in I/O space: at most 256 bytes, neither prefetchable nor 64-bit.
    pub io: bool,
}

impl BarSpec {
    /// A 64-bit, prefetchable BAR.
    pub fn memory(index: u8, size: u64) -> Self {
        Self { index, size, prefetchable: true, is_64_bit: true, io: false }
    }
    /// A 32-bit BAR whose reads may have side effects.
    pub fn registers(index: u8, size: u64) -> Self {
        Self { index, size, prefetchable: false, is_64_bit: false, io: false }
    }
    /// Registers in I/O space.
    pub fn io(index: u8, size: u64) -> Self {
        Self { index, size, prefetchable: false, is_64_bit: false, io: true }
    }
}

/// Why an identity cannot be put into configuration space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// BAR numbers are 0 to 5, and 0 to 4 for a 64-bit one.
    #[error("BAR {0} does not exist: a type 0 header has BARs 0 to 5, and a 64-bit one takes two")]
    BarNumber(u8),
    /// Two BARs share a register.
    #[error("BAR {0} is used twice; a 64-bit BAR also takes the next number")]
    BarTwice(u8),
    /// A size that no BAR can have.
    #[error(
        "BAR {index} has {size} B; its size must be a power of two, at least 16, below 4 GiB unless 64-bit, and 4 to 256 in I/O space"
    )]
    BarSize {
        /// Which.
        index: u8,
        /// Its size.
        size: u64,
    },
    /// An I/O BAR that is none.
    #[error(
        "BAR {0} is in I/O space, where a BAR has 4 to 256 B, a power of two, and is neither prefetchable nor 64-bit"
    )]
    IoBar(u8),
    /// More MSI-X vectors than a table holds.
    #[error("{0} MSI-X vectors; a table holds 2048")]
    Vectors(u16),
    /// A number of MSI vectors that the capability cannot say.
    #[error("{0} MSI vectors; there can be none, 1, 2, 4, 8, 16 or 32")]
    MsiVectors(u8),
    /// More than 24 bits of class code.
    #[error("class code {0:#x} has more than 24 bits")]
    Class(u32),
}

impl Identity {
    /// A function with these IDs and nothing else: revision 0, no BARs, no interrupts; the subsystem has the same IDs.
    pub const fn new(vendor: u16, device: u16, class: u32) -> Self {
        Self {
            vendor,
            device,
            class,
            revision: 0,
            subsystem: (vendor, device),
            bars: Vec::new(),
            msix_vectors: 0,
            msi_vectors: 0,
            intx: false,
        }
    }

    /// Is it possible?
    ///
    /// # Errors
    /// What is not.
    pub fn check(&self) -> Result<(), IdentityError> {
        let mut used = [false; 6];
        for bar in &self.bars {
            let registers = usize::from(bar.index)..usize::from(bar.index) + 1 + usize::from(bar.is_64_bit);
            if registers.end > used.len() {
                return Err(IdentityError::BarNumber(bar.index));
            }
            let (least, limit) = match bar {
                BarSpec { io: true, prefetchable: false, is_64_bit: false, .. } => (4, 256),
                BarSpec { io: true, .. } => return Err(IdentityError::IoBar(bar.index)),
                BarSpec { is_64_bit: true, .. } => (16, 1 << 63),
                _ => (16, 1 << 31),
            };
            if !bar.size.is_power_of_two() || !(least..=limit).contains(&bar.size) {
                return Err(IdentityError::BarSize { index: bar.index, size: bar.size });
            }
            for register in registers {
                if std::mem::replace(&mut used[register], true) {
                    return Err(IdentityError::BarTwice(register as u8));
                }
            }
        }
        if self.msix_vectors > 2048 {
            return Err(IdentityError::Vectors(self.msix_vectors));
        }
        if self.msi_vectors > 32 || self.msi_vectors > 0 && !self.msi_vectors.is_power_of_two() {
            return Err(IdentityError::MsiVectors(self.msi_vectors));
        }
        if self.class >> 24 != 0 {
            return Err(IdentityError::Class(self.class));
        }
        Ok(())
    }
}

/// How software lets a function interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterruptMode {
    /// By MSI-X messages.
    MsiX,
    /// By MSI messages.
    Msi,
    /// By its legacy interrupt pin.
    Intx,
    /// Not at all.
    #[default]
    Disabled,
}

/// An operation a device or host program started. Unique within its [`Context`]'s owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A read that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyToken(pub u64);

/// What a device is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// The device is configured and may act.
    Start,
    /// A read of a BAR. It must be answered with `reply`, now or later; if it never is, the reader times out.
    MmioRead {
        /// Number of the BAR.
        bar: u8,
        /// First byte in it.
        offset: u64,
        /// Length; 0 for a zero-length read, which is answered with no data.
        bytes: u32,
        /// To answer with.
        reply: ReplyToken,
    },
    /// A write to a BAR.
    MmioWrite {
        /// Number of the BAR.
        bar: u8,
        /// First byte in it.
        offset: u64,
        /// What is written.
        data: Payload,
    },
    /// A DMA read is over.
    DmaReadDone {
        /// Which.
        op: OpId,
        /// Its data, or why there are none.
        result: Result<Payload, DmaError>,
    },
    /// The last TLP of a DMA write was accepted for sending. Nobody says when it arrives: it is posted.
    DmaWriteAccepted {
        /// Which.
        op: OpId,
    },
    /// A time that was asked for has come.
    Timer {
        /// As given to [`Context::timer`].
        id: u64,
    },
    /// A function-level reset (PCIe 5.0 §6.6.2): all operations and timers are gone, no event of theirs will come.
    Reset,
}

/// Why a DMA or MMIO operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DmaError {
    /// It was sent, and its completions tell of an error, or did not come.
    #[error(transparent)]
    Completion(#[from] CompletionError),
    /// It could not be sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The Bus Master Enable bit is clear (PCIe 5.0 §7.5.1.1.3).
    #[error("the function may not issue memory requests: Bus Master Enable is clear")]
    BusMasterDisabled,
}

/// How a device refuses a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// UR: there is nothing at this offset.
    UnsupportedRequest,
    /// CA: there is, but it failed.
    CompleterAbort,
}

/// What a device does, for its driver to carry out in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read memory.
    DmaRead {
        /// Comes back in [`Event::DmaReadDone`].
        op: OpId,
        /// Operations of a stream keep their order.
        stream: u16,
        /// First byte.
        address: u64,
        /// Length; 0 to flush.
        bytes: u64,
        /// The data are needed even in a length-only run: descriptors and the like.
        carry: bool,
    },
    /// Write memory.
    DmaWrite {
        /// Comes back in [`Event::DmaWriteAccepted`].
        op: OpId,
        /// Operations of a stream keep their order.
        stream: u16,
        /// First byte.
        address: u64,
        /// What to write.
        data: Payload,
    },
    /// A message signalled interrupt: a posted write, behind the earlier writes of its stream. With MSI instead of MSI-X the vector is
    /// taken modulo those that software granted; with neither enabled nothing happens.
    Msix {
        /// Its stream.
        stream: u16,
        /// Vector, below the identity's `msix_vectors` (or `msi_vectors`).
        vector: u16,
    },
    /// The level of the legacy interrupt: Assert_INTx or Deassert_INTx where it changes (PCIe 5.0 §2.2.8.1), behind the earlier writes
    /// of its stream. Nothing is sent while MSI or MSI-X is enabled, or the Interrupt Disable bit is set.
    Intx {
        /// Its stream.
        stream: u16,
        /// Asserted until it is deasserted.
        asserted: bool,
    },
    /// Answer a read.
    Reply {
        /// Which.
        token: ReplyToken,
        /// As many bytes as were asked for.
        data: Payload,
    },
    /// Refuse a read.
    ReplyError {
        /// Which.
        token: ReplyToken,
        /// How.
        refusal: Refusal,
    },
    /// Call back.
    Timer {
        /// When; not before now.
        at: Time,
        /// Comes back in [`Event::Timer`].
        id: u64,
    },
    /// The device has done all it was asked to do: a run that waits for it may end.
    Finished,
    /// The device cannot go on: the run fails with this message.
    Fault(String),
}

/// What a device may do while it handles an event. Only records; the driver takes the actions afterwards.
#[derive(Debug)]
pub struct Context<'a> {
    now: Time,
    length_only: bool,
    interrupts: InterruptMode,
    peers: &'a [DeviceInfo],
    next_op: &'a mut u64,
    actions: &'a mut Vec<Action>,
}

impl<'a> Context<'a> {
    /// For drivers: `peers` are the devices that `peer` can find (empty if there are none), `next_op` counts the operations of this
    /// device, `actions` (reused between calls) receives what it does. Interrupts go by MSI-X until
    /// [`with_interrupts`](Self::with_interrupts) says otherwise.
    pub fn new(
        now: Time,
        length_only: bool,
        peers: &'a [DeviceInfo],
        next_op: &'a mut u64,
        actions: &'a mut Vec<Action>,
    ) -> Self {
        Self { now, length_only, interrupts: InterruptMode::MsiX, peers, next_op, actions }
    }

    /// For drivers: how software lets this function interrupt.
    #[must_use]
    pub fn with_interrupts(mut self, mode: InterruptMode) -> Self {
        self.interrupts = mode;
        self
    }

    /// How software lets this function interrupt, as its configuration space is now.
    pub fn interrupt_mode(&self) -> InterruptMode {
        self.interrupts
    }

    /// Another device, by name, for peer-to-peer. A stand-in for its driver, which would tell the device where its peer is.
    pub fn peer(&self, name: &str) -> Option<&'a DeviceInfo> {
        self.peers.iter().find(|peer| peer.name == name)
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Does this run carry lengths instead of bulk data?
    pub fn length_only(&self) -> bool {
        self.length_only
    }

    /// Reads `bytes` at `address`; 0 bytes flush the earlier writes of the stream. In a length-only run the result is a length.
    pub fn dma_read(&mut self, stream: u16, address: u64, bytes: u64) -> OpId {
        self.start(|op| Action::DmaRead { op, stream, address, bytes, carry: false })
    }
    /// Reads control data, such as descriptors: bytes even in a length-only run.
    pub fn dma_read_control(&mut self, stream: u16, address: u64, bytes: u64) -> OpId {
        self.start(|op| Action::DmaRead { op, stream, address, bytes, carry: true })
    }
    /// Writes `data` at `address`. Bytes are carried even in a length-only run; give a [`Payload::Length`] for bulk data there.
    pub fn dma_write(&mut self, stream: u16, address: u64, data: Payload) -> OpId {
        self.start(|op| Action::DmaWrite { op, stream, address, data })
    }
    /// Raises message signalled interrupt `vector`, behind the earlier writes of `stream`.
    pub fn msix(&mut self, stream: u16, vector: u16) {
        self.actions.push(Action::Msix { stream, vector });
    }
    /// Sets the level of the legacy interrupt, behind the earlier writes of `stream`.
    pub fn intx(&mut self, stream: u16, asserted: bool) {
        self.actions.push(Action::Intx { stream, asserted });
    }
    /// Answers a read with as many bytes as it asked for.
    pub fn reply(&mut self, token: ReplyToken, data: Payload) {
        self.actions.push(Action::Reply { token, data });
    }
    /// Refuses a read.
    pub fn reply_error(&mut self, token: ReplyToken, refusal: Refusal) {
        self.actions.push(Action::ReplyError { token, refusal });
    }
    /// Asks for [`Event::Timer`] at `at` (now, if that has passed).
    pub fn timer(&mut self, at: Time, id: u64) {
        let at = at.max(self.now);
        self.actions.push(Action::Timer { at, id });
    }
    /// Tells that all work is done.
    pub fn finished(&mut self) {
        self.actions.push(Action::Finished);
    }

    /// Ends the run with a message: what went wrong, where, and what would be right.
    pub fn fault(&mut self, message: String) {
        self.actions.push(Action::Fault(message));
    }

    fn start(&mut self, action: impl FnOnce(OpId) -> Action) -> OpId {
        let op = OpId(*self.next_op);
        *self.next_op += 1;
        self.actions.push(action(op));
        op
    }
}
