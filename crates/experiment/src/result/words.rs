//! The names that a document has for what there are several kinds of: one enum for each set, which the JSON Schema lists.
//!
//! A name stays as it is once it was written; another kind is another name.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::fmt;
use tlplab_cfgspace::enumerate::ProblemKind as Unable;
use tlplab_cfgspace::{ErrorKind, ErrorMessage};
use tlplab_fabric::FaultReason;
use tlplab_fabric::config;
use tlplab_fabric::errors;
use tlplab_fabric::probe::BusOutcome;
use tlplab_fabric::registers::ChangedBy;
use tlplab_wire::tlp::CompletionStatus;

/// Declares sets of names: each an enum whose values are written as the names beside them.
macro_rules! words {
    ($($(#[$about:meta])* $set:ident { $($(#[$what:meta])* $word:ident = $name:literal,)* })*) => { $(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
        $(#[$about])*
        pub enum $set {
            $($(#[$what])* #[schemars(rename = $name)] $word,)*
        }

        impl $set {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$word),*];

            /// Its name in documents.
            pub const fn token(self) -> &'static str {
                match self { $(Self::$word => $name,)* }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.token() == name)
            }
        }

        /// The first, for documents that are not filled in.
        impl Default for $set {
            fn default() -> Self {
                Self::ALL[0]
            }
        }

        impl fmt::Display for $set {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.token())
            }
        }

        impl Serialize for $set {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.token())
            }
        }
    )* };
}

words! {
    /// Reason that a run ended.
    #[schemars(rename = "StopReason")]
    Stopped {
        /// It goes on.
        Running = "running",
        /// Its stop time came.
        StopTime = "stop-time",
        /// As many transactions ended as it was to do.
        Transactions = "transactions",
        /// All loads and programs are done.
        LoadsDone = "loads-done",
        /// No event is left, though not all are done: the waiting components would wait for ever.
        NothingMore = "nothing-more",
        /// Nothing has ended for longer than any request can wait.
        Stuck = "stuck",
        /// The guest that was the host's software powered off, or died.
        GuestOff = "guest-off",
        /// It was interrupted.
        Interrupted = "interrupted",
        /// The wall-clock time that it was given is over.
        TimeLimit = "time-limit",
        /// A device or a driver of the user's own raised.
        Failed = "failed",
    }
    /// Ending of a guest.
    GuestEnding {
        /// It did not: it was interrupted, or its run could not go on.
        Running = "running",
        /// Its kernel powered off.
        PoweredOff = "powered-off",
        /// Its kernel died.
        Died = "died",
        /// The run was over before it was.
        LostPower = "lost-power",
    }
    /// Operation that a program of the host waits for.
    WaitedFor {
        /// A time.
        Timer = "timer",
        /// The answer to a read of a register, of memory of a device, or of configuration space.
        MmioRead = "mmio_read",
        /// Until a write has left the processor.
        MmioWrite = "mmio_write",
        /// An interrupt.
        Irq = "irq",
    }
    /// Ending of a transaction.
    Ending {
        /// All its data arrived.
        Done = "done",
        /// Unsupported request.
        Ur = "ur",
        /// Completer abort.
        Ca = "ca",
        /// Completion timeout.
        Timeout = "timeout",
        /// Its data came marked as bad.
        Poisoned = "poisoned",
        /// A reset of its requester ended it, or it was posted and went down with a link, or no component claimed it.
        Lost = "lost",
        /// A completion contradicts its request.
        Malformed = "malformed",
    }
    /// An error of PCIe 5.0 §6.2, by the specification's name.
    ErrorName {
        /// The data link layer received an impossible DLLP, such as the acknowledgement of a TLP that was never sent.
        DataLinkProtocol = "Data Link Protocol Error",
        /// The link below went down without being told to.
        SurpriseDown = "Surprise Down",
        /// A TLP arrived whose data are known to be bad.
        Poisoned = "Poisoned TLP Received",
        /// Credits were wrong.
        FlowControlProtocol = "Flow Control Protocol Error",
        /// A request was not answered in time.
        CompletionTimeout = "Completion Timeout",
        /// A request was refused for a reason of the device's own.
        CompleterAbort = "Completer Abort",
        /// A completion arrived without a request for it.
        UnexpectedCompletion = "Unexpected Completion",
        /// A TLP arrived for which there was no room.
        ReceiverOverflow = "Receiver Overflow",
        /// A TLP broke the rules.
        MalformedTlp = "Malformed TLP",
        /// The end-to-end CRC was wrong.
        Ecrc = "ECRC Error",
        /// A request was not for this function, or it cannot do that.
        UnsupportedRequest = "Unsupported Request",
        /// Access control forbids it.
        AcsViolation = "ACS Violation",
        /// Something broke inside.
        UncorrectableInternal = "Uncorrectable Internal Error",
        /// A bad symbol.
        Receiver = "Receiver Error",
        /// The LCRC of a TLP, or its sequence number, was wrong.
        BadTlp = "Bad TLP",
        /// The CRC of a DLLP was wrong.
        BadDllp = "Bad DLLP",
        /// The same TLPs were due to be replayed for the fourth time in a row.
        ReplayNumRollover = "REPLAY_NUM Rollover",
        /// No acknowledgement came in time.
        ReplayTimer = "Replay Timer Timeout",
        /// Something broke inside, and was repaired.
        CorrectedInternal = "Corrected Internal Error",
        /// There was an error whose header could not be logged.
        HeaderLogOverflow = "Header Log Overflow",
    }
    /// A message that reports an error to the root complex.
    MessageName {
        /// Hardware has dealt with it.
        Correctable = "ERR_COR",
        /// The transaction is lost, the link is not.
        NonFatal = "ERR_NONFATAL",
        /// The link cannot be relied on.
        Fatal = "ERR_FATAL",
    }
    /// A direction of a link.
    Way {
        /// Towards the root complex.
        Up = "up",
        /// Away from it.
        Down = "down",
    }
    /// Damage by a fault: the key `damage`, or `ber`.
    FaultDamage {
        /// Bits arrive inverted, at a rate.
        Ber = "ber",
        /// A unit arrives with a bad CRC.
        Corrupt = "corrupt",
        /// A unit does not arrive.
        Drop = "drop",
        /// A TLP is marked as bad.
        Poison = "poison",
        /// A TLP has a wrong digest.
        Ecrc = "ecrc",
        /// A TLP has a type that there is not.
        Type = "type",
        /// A TLP's length is not that of its data.
        Length = "length",
        /// A TLP has more data than Max_Payload_Size.
        Payload = "payload",
        /// A request crosses a boundary of 4 KiB.
        Boundary = "boundary",
        /// A completion has another tag.
        Tag = "tag",
        /// A completion has another requester.
        Requester = "requester",
        /// A completion has another byte count.
        ByteCount = "byte-count",
        /// A request has an address that no component claims.
        Address = "address",
        /// A request is answered with CA.
        Abort = "abort",
        /// A request is answered with UR.
        Refuse = "refuse",
        /// A request is answered with RRS.
        Retry = "retry",
        /// A TLP is lost for good.
        Lose = "lose",
        /// A TLP comes late, while others pass.
        Late = "late",
        /// A TLP comes twice.
        Twice = "twice",
        /// A completion's data are all ones.
        Ones = "ones",
        /// Bits of a TLP's data are inverted.
        Data = "data",
        /// An UpdateFC takes credits back.
        TakeBack = "take-back",
        /// An UpdateFC grants more credits than there are.
        Overgrant = "overgrant",
        /// An Ack acknowledges a TLP that was not sent.
        Unsent = "unsent",
    }
    /// Units that a fault counts.
    FaultOf {
        /// TLPs.
        Tlp = "tlp",
        /// DLLPs.
        Dllp = "dllp",
        /// Flits.
        Flit = "flit",
        /// Memory read requests.
        MRd = "MRd",
        /// Memory writes.
        MWr = "MWr",
        /// Configuration reads of a function on this bus.
        CfgRd0 = "CfgRd0",
        /// Configuration writes to a function on this bus.
        CfgWr0 = "CfgWr0",
        /// Configuration reads of a function further down.
        CfgRd1 = "CfgRd1",
        /// Configuration writes to a function further down.
        CfgWr1 = "CfgWr1",
        /// I/O reads.
        IORd = "IORd",
        /// I/O writes.
        IOWr = "IOWr",
        /// Messages.
        Msg = "Msg",
        /// Completions without data.
        Cpl = "Cpl",
        /// Completions with data.
        CplD = "CplD",
        /// Acks.
        Ack = "Ack",
        /// Naks.
        Nak = "Nak",
        /// UpdateFCs of all classes.
        UpdateFc = "UpdateFC",
        /// The first round of InitFCs.
        InitFc1 = "InitFC1",
        /// The second round of InitFCs.
        InitFc2 = "InitFC2",
    }
    /// Problem of the software that enumerates.
    ProblemName {
        /// A device was not ready in time.
        NeverReady = "never-ready",
        /// A function stopped answering.
        NoAnswer = "no-answer",
        /// A header has a type that there is not.
        HeaderType = "header-type",
        /// The list of capabilities leads nowhere.
        CapabilityChain = "capability-chain",
        /// The writable bits of a BAR are not a size.
        BarSize = "bar-size",
        /// There is no address left for a BAR.
        NoAddress = "no-address",
        /// A BAR does not keep the address that is written to it.
        BarUnkept = "bar-unkept",
        /// The table of MSI-X is not within a BAR.
        MsixTable = "msix-table",
        /// There is no bus number left for the bus below.
        NoBusNumber = "no-bus-number",
        /// Several virtual functions would have the same ID.
        VirtualIds = "virtual-ids",
        /// There is no bus number left for the virtual functions.
        NoVirtualBus = "no-virtual-bus",
    }
    /// Reason that a port refuses a TLP its way to a peer (PCIe 5.0 §6.12).
    PeerRefusal {
        /// The requester is on no bus below the port, and `source-validation` is on.
        SourceValidation = "source-validation",
        /// The address is translated, or the request asks for a translation, and `translation-blocking` is on.
        TranslationBlocking = "translation-blocking",
        /// The port of the peer is in `acs_forbids`, `egress-control` is on, and `request-redirect` is not.
        EgressControl = "egress-control",
        /// The destination is below the same port, and `upstream-forwarding` is not on.
        NoUpstreamForwarding = "no-upstream-forwarding",
        /// `host.p2p` is `"off"`.
        RootComplex = "root-complex",
    }
    /// Reason that the IOMMU refuses an access.
    RefusalReason {
        /// Nothing is mapped there.
        NotMapped = "not-mapped",
        /// It may not be read.
        NoRead = "no-read",
        /// It may not be written.
        NoWrite = "no-write",
        /// The address is said to be translated, which it may not be.
        Translated = "translated",
        /// A translation was asked for by a function that may not ask.
        Asked = "translation-request",
    }
    /// Operation of an access.
    Access {
        /// It reads.
        Read = "read",
        /// It writes.
        Write = "write",
    }
    /// Cause of a change of a register.
    RegisterCause {
        /// A configuration write.
        Write = "write",
        /// A reset of the function.
        Reset = "reset",
        /// The hardware of the function, or its device: errors, links, slots, interrupts.
        Hardware = "hardware",
        /// Changes that are not told one by one.
        Several = "several",
    }
    /// Framing of the units of a link.
    Framing {
        /// TLPs and DLLPs have frames of their own.
        NonFlit = "non-flit",
        /// Flits of 256 bytes.
        Flit = "flit",
    }
    /// Kind of a resource over time.
    ResourceKind {
        /// Tags of a requester.
        Tags = "tags",
        /// Credits that a transmitter has spent.
        Credits = "credits",
        /// TLPs in a buffer.
        Buffer = "buffer",
        /// TLPs in a replay buffer.
        Replay = "replay",
    }
    /// The operation of a flow's requests. The operation of a device in Python or in a library is `dma`.
    Operation {
        /// Reads of memory by a device.
        Read = "read",
        /// Writes to memory by a device.
        Write = "write",
        /// Reads and writes of a device that copies memory of the host.
        Copy = "copy",
        /// Requests of a device, of any kind.
        Dma = "dma",
        /// Requests of a captured trace.
        Replay = "replay",
        /// Blocks read from a storage device.
        DdRead = "dd-read",
        /// Blocks written to a storage device.
        DdWrite = "dd-write",
        /// Transfers from the host to a DMA card, through its driver.
        ToCard = "to-card",
        /// Transfers from a DMA card to the host, through its driver.
        FromCard = "from-card",
        /// Register accesses of a driver, of both kinds.
        Mmio = "mmio",
        /// Register reads by the host.
        MmioRead = "mmio-read",
        /// Register writes by the host.
        MmioWrite = "mmio-write",
        /// Configuration requests of a guest.
        Config = "config",
        /// Configuration requests of the enumeration in simulated time.
        Configuration = "configuration",
        /// Requests between devices that the root complex sends on, in a run whose host has no other flow.
        Peer = "peer",
    }
    /// The time at which a switch forwards a TLP: the key `forwarding` of the switch. A port may have another.
    Forwarding {
        /// After its header.
        CutThrough = "cut-through",
        /// After its header; to a faster port, after its last byte.
        CutThroughUnlessFaster = "cut-through-unless-faster",
        /// After its last byte.
        StoreAndForward = "store-and-forward",
        /// After its header, which has a checksum of its own.
        HeaderChecked = "header-checked",
    }
    /// The arbitration of a switch between its ports: the key `arbitration`.
    Arbitration {
        /// One TLP of each port in turn.
        RoundRobin = "round-robin",
        /// As many TLPs of each port in turn as its weight.
        Weighted = "weighted",
    }
    /// Role of a TLP in its transaction.
    PacketRole {
        /// A request whose answer has data: reads and atomic operations.
        Read = "read",
        /// A request whose answer, if there is one, has none: writes and messages.
        Write = "write",
        /// A completion.
        Completion = "completion",
    }
    /// Status with which a completion ends its request.
    #[schemars(rename = "CompletionStatus")]
    CompletionWord {
        /// Successful completion.
        Success = "SC",
        /// Unsupported request.
        UnsupportedRequest = "UR",
        /// Configuration request retry status.
        RetryStatus = "CRS",
        /// Completer abort.
        CompleterAbort = "CA",
    }
    /// Outcome of a transaction of a bus.
    Outcome {
        /// Data were moved.
        Data = "data",
        /// The target answers in a transaction of its own.
        Split = "split",
        /// The master has to come again.
        Retry = "retry",
        /// No target claimed it.
        Abort = "abort",
    }
}

impl From<tlplab_fabric::Ending> for Ending {
    fn from(ending: tlplab_fabric::Ending) -> Self {
        use tlplab_fabric::Ending as Ended;
        match ending {
            Ended::Done => Self::Done,
            Ended::Unsupported => Self::Ur,
            Ended::Aborted => Self::Ca,
            Ended::TimedOut => Self::Timeout,
            Ended::Poisoned => Self::Poisoned,
            Ended::Lost => Self::Lost,
            Ended::Malformed => Self::Malformed,
        }
    }
}

impl From<ErrorKind> for ErrorName {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::DataLinkProtocol => Self::DataLinkProtocol,
            ErrorKind::SurpriseDown => Self::SurpriseDown,
            ErrorKind::Poisoned { .. } => Self::Poisoned,
            ErrorKind::FlowControlProtocol => Self::FlowControlProtocol,
            ErrorKind::CompletionTimeout => Self::CompletionTimeout,
            ErrorKind::CompleterAbort { .. } => Self::CompleterAbort,
            ErrorKind::UnexpectedCompletion => Self::UnexpectedCompletion,
            ErrorKind::ReceiverOverflow => Self::ReceiverOverflow,
            ErrorKind::Malformed => Self::MalformedTlp,
            ErrorKind::Ecrc => Self::Ecrc,
            ErrorKind::UnsupportedRequest { .. } => Self::UnsupportedRequest,
            ErrorKind::AcsViolation => Self::AcsViolation,
            ErrorKind::UncorrectableInternal => Self::UncorrectableInternal,
            ErrorKind::Receiver => Self::Receiver,
            ErrorKind::BadTlp => Self::BadTlp,
            ErrorKind::BadDllp => Self::BadDllp,
            ErrorKind::ReplayNumRollover => Self::ReplayNumRollover,
            ErrorKind::ReplayTimer => Self::ReplayTimer,
            ErrorKind::CorrectedInternal => Self::CorrectedInternal,
            ErrorKind::HeaderLogOverflow => Self::HeaderLogOverflow,
        }
    }
}

impl From<ErrorMessage> for MessageName {
    fn from(message: ErrorMessage) -> Self {
        match message {
            ErrorMessage::Correctable => Self::Correctable,
            ErrorMessage::NonFatal => Self::NonFatal,
            ErrorMessage::Fatal => Self::Fatal,
        }
    }
}

impl From<&Unable> for ProblemName {
    fn from(kind: &Unable) -> Self {
        match kind {
            Unable::NeverReady => Self::NeverReady,
            Unable::NoAnswer => Self::NoAnswer,
            Unable::HeaderType(_) => Self::HeaderType,
            Unable::CapabilityChain(_) => Self::CapabilityChain,
            Unable::BarSize { .. } => Self::BarSize,
            Unable::NoAddress { .. } => Self::NoAddress,
            Unable::BarUnkept { .. } => Self::BarUnkept,
            Unable::MsixTable => Self::MsixTable,
            Unable::NoBusNumber => Self::NoBusNumber,
            Unable::VirtualIds { .. } => Self::VirtualIds,
            Unable::NoVirtualBus => Self::NoVirtualBus,
        }
    }
}

impl From<ChangedBy> for RegisterCause {
    fn from(by: ChangedBy) -> Self {
        match by {
            ChangedBy::Write => Self::Write,
            ChangedBy::Reset => Self::Reset,
            ChangedBy::Hardware => Self::Hardware,
            ChangedBy::Several => Self::Several,
        }
    }
}

impl From<errors::PeerRefusal> for PeerRefusal {
    fn from(reason: errors::PeerRefusal) -> Self {
        match reason {
            errors::PeerRefusal::SourceValidation => Self::SourceValidation,
            errors::PeerRefusal::TranslationBlocking => Self::TranslationBlocking,
            errors::PeerRefusal::EgressControl => Self::EgressControl,
            errors::PeerRefusal::NoUpstreamForwarding => Self::NoUpstreamForwarding,
            errors::PeerRefusal::RootComplex => Self::RootComplex,
        }
    }
}

impl From<FaultReason> for RefusalReason {
    fn from(reason: FaultReason) -> Self {
        match reason {
            FaultReason::NotMapped => Self::NotMapped,
            FaultReason::NoRead => Self::NoRead,
            FaultReason::NoWrite => Self::NoWrite,
            FaultReason::Translated => Self::Translated,
            FaultReason::Asked => Self::Asked,
        }
    }
}

impl From<CompletionStatus> for CompletionWord {
    fn from(status: CompletionStatus) -> Self {
        match status {
            CompletionStatus::Success => Self::Success,
            CompletionStatus::UnsupportedRequest => Self::UnsupportedRequest,
            CompletionStatus::RetryStatus => Self::RetryStatus,
            CompletionStatus::CompleterAbort => Self::CompleterAbort,
        }
    }
}

impl From<config::Forwarding> for Forwarding {
    fn from(forwarding: config::Forwarding) -> Self {
        match forwarding {
            config::Forwarding::CutThrough => Self::CutThrough,
            config::Forwarding::CutThroughUnlessFaster => Self::CutThroughUnlessFaster,
            config::Forwarding::StoreAndForward => Self::StoreAndForward,
            config::Forwarding::HeaderChecked => Self::HeaderChecked,
        }
    }
}

impl From<&config::Arbitration> for Arbitration {
    fn from(arbitration: &config::Arbitration) -> Self {
        match arbitration {
            config::Arbitration::RoundRobin => Self::RoundRobin,
            config::Arbitration::Weighted(_) => Self::Weighted,
        }
    }
}

impl From<BusOutcome> for Outcome {
    fn from(outcome: BusOutcome) -> Self {
        match outcome {
            BusOutcome::Data => Self::Data,
            BusOutcome::Split => Self::Split,
            BusOutcome::Retry => Self::Retry,
            BusOutcome::Abort => Self::Abort,
        }
    }
}
