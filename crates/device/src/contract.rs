//! The device contract: what a device is told, and what it may do.
//!
//! A [`Device`] is a state machine. Its driver (the simulator, a socket, a guest) calls [`Device::handle`] with one [`Event`] at a time;
//! the device answers by recording [`Action`]s in its [`Context`]. A handler runs to its end before the next event of the
//! device is handled, and events come in the order of their arrival.

use crate::host::DeviceInfo;
use crate::identity::Identity;
use crate::network::{FrameCounts, NetworkStatistics};
use tlplab_cfgspace::{InterruptMode, Layout};
use tlplab_transaction::{CompletionError, Payload, RequestError, RequestPolicy};
use tlplab_units::{Duration, Mps, Mrrs, Time};

/// A PCI Express function.
pub trait Device: Send {
    /// Its identity in configuration space. Asked once, before anything else.
    fn identity(&self) -> Identity;

    /// Its configuration space. The fabric fits link, payload size and tags to where the device is.
    fn layout(&self) -> Layout {
        self.identity().layout()
    }

    /// Something happened.
    fn handle(&mut self, cx: &mut Context<'_>, event: Event);

    /// The names of its flows to the host, by the numbers of their streams: see [`streams!`](crate::streams).
    fn streams(&self) -> &'static [Stream] {
        &[]
    }

    /// The counters of the network behind it, if there is one.
    fn network(&self) -> Option<NetworkStatistics> {
        None
    }

    /// Its frames, if it is an Ethernet controller.
    fn frame_counts(&self) -> Option<FrameCounts> {
        None
    }

    /// The origin of time moves on, since [`Time`] ends after 5.1 hours and a device may be served for longer: every instant that the device
    /// keeps is now `by` earlier ([`Time::earlier`]). One that keeps none has nothing to do; its timers are its driver's.
    fn rebase(&mut self, _by: Duration) {}

    /// A copy that goes on from here as this device does; none, if part of its state is elsewhere.
    fn snapshot(&self) -> Option<Box<dyn Device>> {
        None
    }

    /// True if a vector has one message signalled interrupt at most that waits to leave: one that is raised meanwhile is the same. For a
    /// device whose causes appear when what they report has left.
    fn merges_messages(&self) -> bool {
        false
    }

    /// The addresses at which its transfers are cut into requests.
    fn request_policy(&self) -> RequestPolicy {
        RequestPolicy::Aligned
    }
}

/// An operation a device or host program started. Unique within its [`Context`]'s owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A read that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyToken(pub u64);

/// A stream of a device: what it is called, and what its operations do (`read`, `write`). A device's stand in the order of their numbers.
pub type Stream = (&'static str, &'static str);

/// An event of a device.
#[derive(Clone, Debug)]
pub enum Event {
    /// The device is configured and may act: at first, after each reset, and when software lets it master the bus again after an operation was
    /// refused for want of that ([`DmaError::BusMasterDisabled`]).
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
        /// The data.
        data: Payload,
    },
    /// A DMA read is over.
    DmaReadDone {
        /// The operation.
        op: OpId,
        /// Its data, or why there are none.
        result: Result<Payload, DmaError>,
    },
    /// The last TLP of a DMA write was accepted for sending. Nobody says when it arrives: it is posted.
    DmaWriteAccepted {
        /// The operation.
        op: OpId,
    },
    /// A time that was asked for has come.
    Timer {
        /// As given to [`Context::timer`].
        id: u64,
    },
    /// A reset, of the function or of all that is below a link that went down (PCIe 5.0 §6.6): all operations and timers are gone, no
    /// event of theirs will come.
    Reset,
}

/// The reason that a DMA or MMIO operation failed.
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
    /// The link that acknowledges TLPs was lost, or could not be set up.
    #[error(
        "the adapter acknowledges no TLPs: it has stopped, or is not tlplab's (the published card and programs have no acknowledged link)"
    )]
    Unacknowledged,
}

/// The refusal of a read by a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// UR: there is nothing at this offset.
    UnsupportedRequest,
    /// CA: there is, but it failed.
    CompleterAbort,
}

/// An action of a device, for its driver to carry out in this order.
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
        /// The data to write.
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
    /// From now on software reads these bytes of configuration space, as of hardware whose vendor ID, serial number or capabilities are its own
    /// to say. Bits that software writes or clears stay as they are, and the function obeys its registers as they were laid out: a device
    /// that shows another table of MSI-X has the same.
    SetConfig {
        /// First byte.
        offset: u16,
        /// The values read from there on. The run fails where a byte is not the device's to change, and behind NetTLP, whose card keeps its own.
        data: Vec<u8>,
    },
    /// Answer a read.
    Reply {
        /// The read.
        token: ReplyToken,
        /// As many bytes as were asked for; the run fails if not, and if the read is over already.
        data: Payload,
    },
    /// Refuse a read.
    ReplyError {
        /// The read.
        token: ReplyToken,
        /// The refusal.
        refusal: Refusal,
    },
    /// Call back.
    Timer {
        /// The time; not before now.
        at: Time,
        /// Comes back in [`Event::Timer`].
        id: u64,
    },
    /// The device has done all it was asked to do: a run that waits for it may end.
    Finished,
    /// The device cannot go on: the run fails with this message.
    Fault(String),
}

/// The actions open to a device while it handles an event. Only records; the driver takes the actions afterwards.
#[derive(Debug)]
pub struct Context<'a> {
    now: Time,
    length_only: bool,
    interrupts: InterruptMode,
    request_sizes: (Mps, Mrrs),
    peers: &'a [DeviceInfo],
    next_op: &'a mut u64,
    actions: &'a mut Vec<Action>,
}

impl<'a> Context<'a> {
    /// For drivers: `peers` are the devices that `peer` can find (empty if there are none), `next_op` counts the operations of this
    /// device, `actions` (reused between calls) receives what it does. Interrupts go by MSI-X until
    /// [`with_interrupts`](Self::with_interrupts) says otherwise, payloads have 256 bytes and reads ask for 512 until
    /// [`with_request_sizes`](Self::with_request_sizes) does; bulk data are carried unless [`with_length_only`](Self::with_length_only) says
    /// that lengths are.
    pub fn new(
        now: Time,
        peers: &'a [DeviceInfo],
        next_op: &'a mut u64,
        actions: &'a mut Vec<Action>,
    ) -> Self {
        let request_sizes = (Mps::ALL[1], Mrrs::ALL[2]);
        let (length_only, interrupts) = (false, InterruptMode::MsiX);
        Self { now, length_only, interrupts, request_sizes, peers, next_op, actions }
    }

    /// For drivers: whether this run carries lengths instead of bulk data.
    #[must_use]
    pub fn with_length_only(mut self, length_only: bool) -> Self {
        self.length_only = length_only;
        self
    }

    /// For drivers: how software lets this function interrupt.
    #[must_use]
    pub fn with_interrupts(mut self, mode: InterruptMode) -> Self {
        self.interrupts = mode;
        self
    }

    /// For drivers: Max_Payload_Size and Max_Read_Request_Size in Device Control.
    #[must_use]
    pub fn with_request_sizes(mut self, mps: Mps, mrrs: Mrrs) -> Self {
        self.request_sizes = (mps, mrrs);
        self
    }

    /// Max_Payload_Size and Max_Read_Request_Size that software has set. The fabric cuts transfers accordingly; a device only shows them.
    pub fn request_sizes(&self) -> (Mps, Mrrs) {
        self.request_sizes
    }

    /// The kind of interrupt that software lets this function use, as its configuration space is now.
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
    /// True if this run carries lengths instead of bulk data.
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
    /// Asserts the legacy interrupt, behind the earlier writes of `stream`.
    pub fn assert_intx(&mut self, stream: u16) {
        self.set_intx(stream, true);
    }
    /// Deasserts it.
    pub fn deassert_intx(&mut self, stream: u16) {
        self.set_intx(stream, false);
    }
    /// Sets its level to what a device has worked out.
    pub fn set_intx(&mut self, stream: u16, asserted: bool) {
        self.actions.push(Action::Intx { stream, asserted });
    }
    /// Changes what software reads of its configuration space: see [`Action::SetConfig`].
    pub fn set_config(&mut self, offset: u16, data: &[u8]) {
        self.actions.push(Action::SetConfig { offset, data: data.to_vec() });
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
