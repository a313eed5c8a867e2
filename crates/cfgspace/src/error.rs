//! Errors: the reaction of a function that detects one, and of a root port that hears of one (PCIe 5.0 §6.2).

use crate::registers::{aer, bridge_control, command, header, pcie, status};
use crate::space::ConfigSpace;
use tlplab_units::Bdf;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// The data link layer saw something that cannot be, such as the acknowledgement of a TLP that was never sent.
    DataLinkProtocol,
    /// The link below went down without being told to.
    SurpriseDown,
    /// A TLP arrived whose data are known to be bad.
    Poisoned {
        /// The receiver can go on, because the TLP goes to someone else or because it copes.
        handled: bool,
    },
    /// Credits were wrong.
    FlowControlProtocol,
    /// A request was not answered in time.
    CompletionTimeout,
    /// A request was refused for a reason of the device's own.
    CompleterAbort {
        /// It was a posted request, which has no completion to say so.
        posted: bool,
    },
    /// A completion arrived that nobody asked for.
    UnexpectedCompletion,
    /// A TLP arrived for which there was no room.
    ReceiverOverflow,
    /// A TLP that breaks the rules.
    Malformed,
    /// The end-to-end CRC is wrong.
    Ecrc,
    /// A request was not for this function, or it cannot do that.
    UnsupportedRequest {
        /// It was a posted request, which has no completion to say so.
        posted: bool,
    },
    /// Access control forbids it.
    AcsViolation,
    /// Something broke inside.
    UncorrectableInternal,
    /// A bad symbol.
    Receiver,
    /// The LCRC of a TLP, or its sequence number, is wrong.
    BadTlp,
    /// The CRC of a DLLP is wrong.
    BadDllp,
    /// The same TLPs were due to be replayed for the fourth time in a row.
    ReplayNumRollover,
    /// No acknowledgement came in time.
    ReplayTimer,
    /// Something broke inside, and was repaired.
    CorrectedInternal,
    /// There was an error whose header could not be logged.
    HeaderLogOverflow,
}

/// The messages that report errors to the root complex, in ascending severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorMessage {
    /// ERR_COR: hardware has dealt with it.
    Correctable,
    /// ERR_NONFATAL: the transaction is lost, the link is not.
    NonFatal,
    /// ERR_FATAL: the link cannot be relied on.
    Fatal,
}

/// A bit of the uncorrectable or of the correctable status register (PCIe 5.0 §7.8.4.2, §7.8.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bit {
    Uncorrectable(u32),
    Correctable(u32),
}

pub(crate) const UNCORRECTABLE_BITS: u32 = 0x007F_F030;
/// The errors that are fatal unless software decides otherwise.
pub(crate) const FATAL_BITS: u32 = 0x0046_2030;
pub(crate) const CORRECTABLE_BITS: u32 = 0x0000_F1C1;
/// The correctable errors that are not reported unless software decides otherwise.
pub(crate) const CORRECTABLE_MASKED: u32 = 0x0000_E000;
const ADVISORY: u32 = 1 << 13;

// Device Status (PCIe 5.0 §7.5.3.5); Device Control enables the messages with the same bits.
const CORRECTABLE_DETECTED: u16 = 1 << 0;
const NON_FATAL_DETECTED: u16 = 1 << 1;
const FATAL_DETECTED: u16 = 1 << 2;
const UNSUPPORTED_DETECTED: u16 = 1 << 3;

impl ErrorKind {
    /// The specification's name (PCIe 5.0 §6.2.7).
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataLinkProtocol => "Data Link Protocol Error",
            Self::SurpriseDown => "Surprise Down",
            Self::Poisoned { .. } => "Poisoned TLP Received",
            Self::FlowControlProtocol => "Flow Control Protocol Error",
            Self::CompletionTimeout => "Completion Timeout",
            Self::CompleterAbort { .. } => "Completer Abort",
            Self::UnexpectedCompletion => "Unexpected Completion",
            Self::ReceiverOverflow => "Receiver Overflow",
            Self::Malformed => "Malformed TLP",
            Self::Ecrc => "ECRC Error",
            Self::UnsupportedRequest { .. } => "Unsupported Request",
            Self::AcsViolation => "ACS Violation",
            Self::UncorrectableInternal => "Uncorrectable Internal Error",
            Self::Receiver => "Receiver Error",
            Self::BadTlp => "Bad TLP",
            Self::BadDllp => "Bad DLLP",
            Self::ReplayNumRollover => "REPLAY_NUM Rollover",
            Self::ReplayTimer => "Replay Timer Timeout",
            Self::CorrectedInternal => "Corrected Internal Error",
            Self::HeaderLogOverflow => "Header Log Overflow",
        }
    }

    fn bit(self) -> Bit {
        use Bit::{Correctable, Uncorrectable};
        match self {
            Self::DataLinkProtocol => Uncorrectable(4),
            Self::SurpriseDown => Uncorrectable(5),
            Self::Poisoned { .. } => Uncorrectable(12),
            Self::FlowControlProtocol => Uncorrectable(13),
            Self::CompletionTimeout => Uncorrectable(14),
            Self::CompleterAbort { .. } => Uncorrectable(15),
            Self::UnexpectedCompletion => Uncorrectable(16),
            Self::ReceiverOverflow => Uncorrectable(17),
            Self::Malformed => Uncorrectable(18),
            Self::Ecrc => Uncorrectable(19),
            Self::UnsupportedRequest { .. } => Uncorrectable(20),
            Self::AcsViolation => Uncorrectable(21),
            Self::UncorrectableInternal => Uncorrectable(22),
            Self::Receiver => Correctable(0),
            Self::BadTlp => Correctable(6),
            Self::BadDllp => Correctable(7),
            Self::ReplayNumRollover => Correctable(8),
            Self::ReplayTimer => Correctable(12),
            Self::CorrectedInternal => Correctable(14),
            Self::HeaderLogOverflow => Correctable(15),
        }
    }

    /// Somebody else is told by other means, so that it is not an error to report as such (PCIe 5.0 §6.2.3.2.4).
    fn is_advisory(self) -> bool {
        match self {
            Self::UnsupportedRequest { posted } | Self::CompleterAbort { posted } => !posted,
            Self::Poisoned { handled } => handled,
            Self::UnexpectedCompletion => true,
            _ => false,
        }
    }

    fn is_unsupported(self) -> bool {
        matches!(self, Self::UnsupportedRequest { .. })
    }
}

impl ErrorMessage {
    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Correctable => "ERR_COR",
            Self::NonFatal => "ERR_NONFATAL",
            Self::Fatal => "ERR_FATAL",
        }
    }
    /// The message's code (PCIe 5.0 §2.2.8.3).
    pub const fn code(self) -> u8 {
        match self {
            Self::Correctable => 0x30,
            Self::NonFatal => 0x31,
            Self::Fatal => 0x33,
        }
    }
    /// The message with that code.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0x30 => Some(Self::Correctable),
            0x31 => Some(Self::NonFatal),
            0x33 => Some(Self::Fatal),
            _ => None,
        }
    }
    /// Its bit in Device Control, in Device Status, and in the commands of a root port.
    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Records an error that `space`'s function detected, with the header of the TLP in question, in the order of its bytes on the
/// link, and returns the message that must go to the root complex (PCIe 5.0 §6.2.5, figure 6-2).
pub fn report(space: &mut ConfigSpace, error: ErrorKind, header: Option<[u8; 16]>) -> Option<ErrorMessage> {
    set_legacy_status(space, error);
    if error.is_unsupported() {
        space.raise_device_status(UNSUPPORTED_DETECTED);
    }
    let bit = match error.bit() {
        Bit::Correctable(bit) => {
            space.raise_device_status(CORRECTABLE_DETECTED);
            let masked = space.log_correctable(1 << bit);
            return (!masked && space.reports(ErrorMessage::Correctable))
                .then_some(ErrorMessage::Correctable);
        }
        Bit::Uncorrectable(bit) => bit,
    };
    let severities = space.aer(aer::SEVERITY).unwrap_or(FATAL_BITS);
    let fatal = severities >> bit & 1 == 1;
    if !fatal && error.is_advisory() {
        space.raise_device_status(CORRECTABLE_DETECTED);
        // Without advanced error reporting nothing is sent (PCIe 5.0 §6.2.3.2.4).
        if space.positions.aer.is_none() || space.log_correctable(ADVISORY) {
            return None;
        }
        space.log_uncorrectable(bit, header);
        let silenced = error.is_unsupported() && !space.reports_unsupported();
        return (!silenced && space.reports(ErrorMessage::Correctable)).then_some(ErrorMessage::Correctable);
    }
    let (message, detected) = if fatal {
        (ErrorMessage::Fatal, FATAL_DETECTED)
    } else {
        (ErrorMessage::NonFatal, NON_FATAL_DETECTED)
    };
    space.raise_device_status(detected);
    if space.log_uncorrectable(bit, header) {
        return None;
    }
    let serr = space.read16(header::COMMAND) & command::SERR != 0;
    let silenced = error.is_unsupported() && !space.reports_unsupported();
    let sent = serr || space.reports(message) && !silenced;
    if serr {
        space.raise_status(header::STATUS, status::SYSTEM_ERROR);
    }
    sent.then_some(message)
}

/// Sets the status bits that PCI software looks at.
fn set_legacy_status(space: &mut ConfigSpace, error: ErrorKind) {
    let register = space.link_status_register();
    match error {
        ErrorKind::Poisoned { .. } => space.raise_status(register, status::DETECTED_PARITY),
        ErrorKind::CompleterAbort { .. } => space.raise_status(register, status::SIGNALED_TARGET_ABORT),
        _ => {}
    }
}

/// The end of a request of this function that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedCompletion {
    /// With the status Unsupported Request.
    UnsupportedRequest,
    /// With the status Completer Abort.
    CompleterAbort,
    /// With poisoned data.
    Poisoned,
}

/// Records in the status register that a request of this function ended so.
pub fn receive_completion(space: &mut ConfigSpace, completion: FailedCompletion) {
    let register = space.link_status_register();
    let responds = if register == header::STATUS {
        space.read16(header::COMMAND) & command::PARITY_RESPONSE != 0
    } else {
        space.read16(header::BRIDGE_CONTROL) & bridge_control::PARITY_RESPONSE != 0
    };
    let bit = match completion {
        FailedCompletion::UnsupportedRequest => status::RECEIVED_MASTER_ABORT,
        FailedCompletion::CompleterAbort => status::RECEIVED_TARGET_ABORT,
        FailedCompletion::Poisoned if responds => status::MASTER_DATA_PARITY,
        FailedCompletion::Poisoned => return,
    };
    space.raise_status(register, bit);
}

/// A bridge received an error message from below; true if the message may go on (PCIe 5.0 §6.2.6, figure 6-3).
pub fn forward(bridge: &mut ConfigSpace, message: ErrorMessage) -> bool {
    let serious = message != ErrorMessage::Correctable;
    if serious {
        bridge.raise_status(header::SECONDARY_STATUS, status::SYSTEM_ERROR);
    }
    if bridge.read16(header::BRIDGE_CONTROL) & bridge_control::SERR == 0 {
        return false;
    }
    let serr = bridge.read16(header::COMMAND) & command::SERR != 0;
    if serious && serr {
        bridge.raise_status(header::STATUS, status::SYSTEM_ERROR);
    }
    serious && serr || bridge.reports(message)
}

/// Records in a root port an error message that has got there: one it received and let pass, or one of its own. `true`: it must
/// raise its interrupt (PCIe 5.0 §6.2.4.1.2, §7.8.4.10).
pub fn log_at_root(root_port: &mut ConfigSpace, message: ErrorMessage, source: Bdf) -> bool {
    let Some(old) = root_port.aer(aer::ROOT_STATUS).filter(|_| root_port.has_root_errors()) else {
        return false;
    };
    let (first, sources_shift) = if message == ErrorMessage::Correctable { (0, 0) } else { (2, 16) };
    let mut new = 1u32 << first;
    if old >> first & 1 == 1 {
        new |= 1 << (first + 1);
    } else {
        let source = u32::from(source.0) << sources_shift;
        root_port.update_aer(aer::SOURCES, 0xFFFF << sources_shift, source);
        if message == ErrorMessage::Fatal {
            new |= 1 << 4; // the first uncorrectable one is fatal
        }
    }
    new |= match message {
        ErrorMessage::Correctable => 0,
        ErrorMessage::NonFatal => 1 << 5,
        ErrorMessage::Fatal => 1 << 6,
    };
    let before = root_port.error_interrupt();
    root_port.update_aer(aer::ROOT_STATUS, new, new);
    !before && root_port.error_interrupt()
}

impl ConfigSpace {
    /// True if this root port has heard of errors whose interrupt is enabled.
    fn error_interrupt(&self) -> bool {
        let (Some(status), Some(command)) = (self.aer(aer::ROOT_STATUS), self.aer(aer::ROOT_COMMAND)) else {
            return false;
        };
        let waiting = status & 1 | status >> 4 & 0b110;
        command & waiting != 0
    }
    /// The status register of the side on which this function's link is.
    fn link_status_register(&self) -> u16 {
        if self.is_downstream_port() { header::SECONDARY_STATUS } else { header::STATUS }
    }
    fn raise_status(&mut self, register: u16, bit: u16) {
        if register == header::STATUS || self.is_bridge() {
            self.update16(register, bit, bit);
        }
    }
    fn raise_device_status(&mut self, bit: u16) {
        if let Some(span) = self.positions.pcie {
            self.update16(span.start + pcie::DEVICE_STATUS, bit, bit);
        }
    }
    fn reports(&self, message: ErrorMessage) -> bool {
        self.pcie_register(pcie::DEVICE_CONTROL) as u16 & message.bit() != 0
    }
    fn reports_unsupported(&self) -> bool {
        self.pcie_register(pcie::DEVICE_CONTROL) as u16 & UNSUPPORTED_DETECTED != 0
    }
    fn aer(&self, register: u16) -> Option<u32> {
        Some(self.read(self.positions.aer?.start + register))
    }
    /// True if advanced error reporting has the registers of a root port. Elsewhere they are reserved.
    fn has_root_errors(&self) -> bool {
        let status = self.positions.aer.map(|span| usize::from((span.start + aer::ROOT_STATUS) / 4));
        status.is_some_and(|word| self.rules[word].clearable != 0)
    }
    fn update_aer(&mut self, register: u16, mask: u32, value: u32) {
        if let Some(span) = self.positions.aer {
            self.update32(span.start + register, mask, value);
        }
    }
    /// Sets a bit of the correctable status; `true` if it is masked.
    fn log_correctable(&mut self, bit: u32) -> bool {
        self.update_aer(aer::CORRECTABLE_STATUS, bit, bit);
        self.aer(aer::CORRECTABLE_MASK).is_some_and(|mask| mask & bit != 0)
    }
    /// Sets a bit of the uncorrectable status, and logs the header if no earlier error has done so; `true` if it is masked.
    fn log_uncorrectable(&mut self, bit: u32, header: Option<[u8; 16]>) -> bool {
        let (Some(earlier), Some(mask), Some(control)) =
            (self.aer(aer::UNCORRECTABLE_STATUS), self.aer(aer::UNCORRECTABLE_MASK), self.aer(aer::CONTROL))
        else {
            return false;
        };
        self.update_aer(aer::UNCORRECTABLE_STATUS, 1 << bit, 1 << bit);
        if mask >> bit & 1 == 1 {
            return true;
        }
        // The first error pointer is valid as long as software has not cleared the bit it points to. Masked errors set theirs without
        // being logged, and the pointer may still say their number.
        let logged = (earlier & !mask) >> (control & aer::FIRST_ERROR) & 1 == 1;
        if !logged {
            self.update_aer(aer::CONTROL, aer::FIRST_ERROR, bit);
            let header = header.unwrap_or_default();
            for (register, dword) in (aer::HEADER_LOG..).step_by(4).zip(header.chunks_exact(4)) {
                let value = u32::from_be_bytes([dword[0], dword[1], dword[2], dword[3]]);
                self.update_aer(register, u32::MAX, value);
            }
        }
        false
    }
}
