//! Errors: the bits that each kind sets, the message that it sends, and the reaction of bridges and root ports to the message.

use tlplab_cfgspace::error::{FailedCompletion, forward, log_at_root, receive_completion, report};
use tlplab_cfgspace::{
    Aer, ConfigSpace, ErrorKind, ErrorMessage, Identity, Layout, LinkPart, Pcie, PortType, Type0, Type1,
};
use tlplab_units::{Bdf, Generation, Width};

use ErrorMessage::{Correctable, Fatal, NonFatal};

/// The offsets of PCI Express and advanced error reporting in the layouts below.
const PCIE: u16 = 0x40;
const AER: u16 = 0x100;
const UNCORRECTABLE: u16 = AER + 0x04;
const MASK: u16 = AER + 0x08;
const SEVERITY: u16 = AER + 0x0C;
const CORRECTABLE: u16 = AER + 0x10;
const CORRECTABLE_MASK: u16 = AER + 0x14;
const CONTROL: u16 = AER + 0x18;
const ROOT_COMMAND: u16 = AER + 0x2C;
const ROOT_STATUS: u16 = AER + 0x30;
const SOURCES: u16 = AER + 0x34;
const HEADER: [u8; 16] = [0x40, 0, 0, 1, 0x12, 0x34, 0x56, 0x0F, 0xFE, 0xB0, 0, 0, 0xCA, 0xFE, 0, 0];
/// [`HEADER`] as the header log has it.
const LOG: [u32; 4] = [0x4000_0001, 0x1234_560F, 0xFEB0_0000, 0xCAFE_0000];

fn link() -> LinkPart {
    LinkPart::new(Generation::Gen3, Width::ALL[0])
}

fn end_point() -> ConfigSpace {
    let layout = Layout::new(Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00)))
        .capability(Pcie::new(PortType::EndPoint, link()))
        .extended(Aer::default());
    ConfigSpace::new(&layout).unwrap()
}

fn port(kind: PortType) -> ConfigSpace {
    let layout = Layout::new(Type1::new(Identity::new(0x71AB, 2, 0x06_04_00)))
        .capability(Pcie::new(kind, link()))
        .extended(Aer { root: kind == PortType::RootPort, ecrc: false });
    ConfigSpace::new(&layout).unwrap()
}

/// Device Control: the errors that are reported, as the bits correctable, non-fatal, fatal, unsupported request.
fn reporting(space: &mut ConfigSpace, bits: u32) {
    space.write(PCIE + 8, 0b0011, space.read(PCIE + 8) & 0xFFF0 | bits);
}

fn device_status(space: &ConfigSpace) -> u32 {
    space.read(PCIE + 8) >> 16 & 0xF
}

fn header_log(space: &ConfigSpace) -> [u32; 4] {
    [0x1C, 0x20, 0x24, 0x28].map(|at| space.read(AER + at))
}

/// The uncorrectable kinds with their bits, the severity that they have at first, and true for those that somebody else reports
/// (PCIe 5.0 §7.8.4.2, §7.8.4.4, §6.2.3.2.4, table 6-5).
const UNCORRECTABLE_KINDS: [(ErrorKind, u32, ErrorMessage, bool); 16] = [
    (ErrorKind::DataLinkProtocol, 4, Fatal, false),
    (ErrorKind::SurpriseDown, 5, Fatal, false),
    (ErrorKind::Poisoned { handled: false }, 12, NonFatal, false),
    (ErrorKind::Poisoned { handled: true }, 12, NonFatal, true),
    (ErrorKind::FlowControlProtocol, 13, Fatal, false),
    (ErrorKind::CompletionTimeout, 14, NonFatal, false),
    (ErrorKind::CompleterAbort { posted: true }, 15, NonFatal, false),
    (ErrorKind::CompleterAbort { posted: false }, 15, NonFatal, true),
    (ErrorKind::UnexpectedCompletion, 16, NonFatal, true),
    (ErrorKind::ReceiverOverflow, 17, Fatal, false),
    (ErrorKind::Malformed, 18, Fatal, false),
    (ErrorKind::Ecrc, 19, NonFatal, false),
    (ErrorKind::UnsupportedRequest { posted: true }, 20, NonFatal, false),
    (ErrorKind::UnsupportedRequest { posted: false }, 20, NonFatal, true),
    (ErrorKind::AcsViolation, 21, NonFatal, false),
    (ErrorKind::UncorrectableInternal, 22, Fatal, false),
];

/// The correctable kinds with their bits, and true for those that are masked at first (PCIe 5.0 §7.8.4.5, §7.8.4.6).
const CORRECTABLE_KINDS: [(ErrorKind, u32, bool); 7] = [
    (ErrorKind::Receiver, 0, false),
    (ErrorKind::BadTlp, 6, false),
    (ErrorKind::BadDllp, 7, false),
    (ErrorKind::ReplayNumRollover, 8, false),
    (ErrorKind::ReplayTimer, 12, false),
    (ErrorKind::CorrectedInternal, 14, true),
    (ErrorKind::HeaderLogOverflow, 15, true),
];

fn is_unsupported(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnsupportedRequest { .. })
}

/// The bits of Device Status for a message of that severity, and for an unsupported request.
fn detected(message: ErrorMessage, kind: ErrorKind) -> u32 {
    1 << message as u32 | u32::from(is_unsupported(kind)) << 3
}

#[test]
fn uncorrectable_errors_are_logged_and_reported_by_their_severity() {
    for (kind, bit, severity, advisory) in UNCORRECTABLE_KINDS {
        // Advisory errors are correctable ones to the root complex, once software has unmasked them.
        for (chosen, expected) in [(severity, severity), (NonFatal, NonFatal), (Fatal, Fatal)] {
            let expected = if advisory && expected == NonFatal { Correctable } else { expected };
            let mut space = end_point();
            assert_eq!(space.read(SEVERITY) >> bit & 1 == 1, severity == Fatal, "{kind:?} at first");
            space.write(CORRECTABLE_MASK, 0xF, 0);
            space.write(SEVERITY, 0xF, u32::from(chosen == Fatal) << bit);
            let mut silent = space.clone();
            reporting(&mut space, 0xF);
            assert_eq!(report(&mut space, kind, Some(HEADER)), Some(expected), "{kind:?}");
            assert_eq!(space.read(UNCORRECTABLE), 1 << bit, "{kind:?}");
            assert_eq!(space.read(CORRECTABLE), u32::from(expected == Correctable) << 13, "{kind:?}");
            assert_eq!(space.read(CONTROL) & 0x1F, bit, "{kind:?}");
            assert_eq!(header_log(&space), LOG);
            assert_eq!(device_status(&space), detected(expected, kind), "{kind:?}");
            // Nobody is told who is not to be told; all is written down nevertheless.
            assert_eq!(report(&mut silent, kind, Some(HEADER)), None, "{kind:?}");
            assert_eq!(silent.read(UNCORRECTABLE), 1 << bit);
            assert_eq!(device_status(&silent), detected(expected, kind));
        }
    }
}

#[test]
fn masked_errors_leave_a_bit_and_no_more() {
    for (kind, bit, severity, advisory) in UNCORRECTABLE_KINDS {
        let mut space = end_point();
        reporting(&mut space, 0xF);
        space.write(0x04, 0b10, 0x100); // SERR#
        if advisory {
            // So they are after a reset: the mask of advisory errors hides them all.
            assert_eq!(report(&mut space, kind, Some(HEADER)), None);
            assert_eq!((space.read(UNCORRECTABLE), space.read(CORRECTABLE)), (0, 1 << 13), "{kind:?}");
            continue;
        }
        space.write(MASK, 0xF, 1 << bit);
        assert_eq!(report(&mut space, kind, Some(HEADER)), None, "{kind:?}");
        assert_eq!(space.read(UNCORRECTABLE), 1 << bit);
        assert_eq!((space.read(CONTROL) & 0x1F, header_log(&space)), (0, [0; 4]), "{kind:?}");
        assert_eq!(device_status(&space), detected(severity, kind));
        // The next one, which is not masked, is the first that counts.
        let other = if bit == 18 { ErrorKind::ReceiverOverflow } else { ErrorKind::Malformed };
        assert_eq!(report(&mut space, other, Some(HEADER)), Some(Fatal));
        assert_eq!(header_log(&space), LOG);
        // The pointer of a past error does not make a masked one of the same kind the first.
        let third = if bit == 19 { ErrorKind::CompletionTimeout } else { ErrorKind::Ecrc };
        let mut space = end_point();
        space.write(CORRECTABLE_MASK, 0xF, 0);
        reporting(&mut space, 0xF);
        report(&mut space, kind, Some(HEADER.map(|byte| !byte)));
        space.write(UNCORRECTABLE, 0xF, u32::MAX);
        space.write(MASK, 0xF, 1 << bit);
        report(&mut space, kind, Some(HEADER.map(|byte| !byte)));
        report(&mut space, third, Some(HEADER));
        assert_ne!(space.read(CONTROL) & 0x1F, bit, "{kind:?}");
        assert_eq!(header_log(&space), LOG, "{kind:?}");
    }
}

#[test]
fn correctable_errors_are_counted_by_bit_only() {
    for (kind, bit, masked) in CORRECTABLE_KINDS {
        let mut space = end_point();
        reporting(&mut space, 0b0001);
        assert_eq!(report(&mut space, kind, None), (!masked).then_some(Correctable), "{kind:?}");
        assert_eq!(space.read(CORRECTABLE), 1 << bit);
        assert_eq!((space.read(UNCORRECTABLE), device_status(&space)), (0, 0b0001));
        space.write(CORRECTABLE_MASK, 0xF, if masked { 0 } else { 1 << bit });
        assert_eq!(report(&mut space, kind, None), masked.then_some(Correctable), "{kind:?}");
        reporting(&mut space, 0b1110);
        space.write(CORRECTABLE_MASK, 0xF, 0);
        space.write(0x04, 0b10, 0x100); // SERR# is for the uncorrectable ones
        assert_eq!(report(&mut space, kind, None), None, "{kind:?}");
    }
}

#[test]
fn the_first_error_is_kept_until_software_clears_it() {
    let mut space = end_point();
    reporting(&mut space, 0xF);
    let second = HEADER.map(|byte| !byte);
    assert_eq!(report(&mut space, ErrorKind::Malformed, Some(HEADER)), Some(Fatal));
    assert_eq!(report(&mut space, ErrorKind::CompletionTimeout, Some(second)), Some(NonFatal));
    assert_eq!(space.read(UNCORRECTABLE), 1 << 18 | 1 << 14);
    assert_eq!((space.read(CONTROL) & 0x1F, header_log(&space)), (18, LOG), "the second is not logged");
    space.write(UNCORRECTABLE, 0xF, 1 << 14); // not the first
    report(&mut space, ErrorKind::Ecrc, Some(second));
    assert_eq!((space.read(CONTROL) & 0x1F, header_log(&space)), (18, LOG));
    space.write(UNCORRECTABLE, 0xF, 1 << 18);
    report(&mut space, ErrorKind::CompletionTimeout, Some(second));
    assert_eq!((space.read(CONTROL) & 0x1F, header_log(&space)), (14, LOG.map(|dword| !dword)));
    // An error without a TLP has no header.
    space.write(UNCORRECTABLE, 0xF, u32::MAX);
    report(&mut space, ErrorKind::SurpriseDown, None);
    assert_eq!((space.read(CONTROL) & 0x1F, header_log(&space)), (5, [0; 4]));
}

#[test]
fn an_unsupported_request_needs_its_own_permission() {
    for posted in [false, true] {
        let kind = ErrorKind::UnsupportedRequest { posted };
        let mut space = end_point();
        space.write(CORRECTABLE_MASK, 0xF, 0);
        reporting(&mut space, 0b0111);
        assert_eq!(report(&mut space, kind, Some(HEADER)), None, "posted: {posted}");
        assert_eq!(device_status(&space) >> 3, 1);
        assert_eq!(space.read(UNCORRECTABLE), 1 << 20);
        reporting(&mut space, 0b1000);
        assert_eq!(report(&mut space, kind, Some(HEADER)), None, "it is not enough, either");
        // SERR# stands for both permissions, but not for that of correctable errors.
        space.write(0x04, 0b10, 0x100);
        assert_eq!(report(&mut space, kind, Some(HEADER)), posted.then_some(NonFatal));
        assert_eq!(space.read(0x04) >> 30 & 1 == 1, posted, "signaled system error");
    }
}

#[test]
fn without_advanced_reporting_severities_are_fixed_and_advisories_silent() {
    for (kind, _, severity, advisory) in UNCORRECTABLE_KINDS {
        let layout = Layout::new(Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00)))
            .capability(Pcie::new(PortType::EndPoint, link()));
        let mut space = ConfigSpace::new(&layout).unwrap();
        reporting(&mut space, 0xF);
        let expected = (!advisory).then_some(severity);
        assert_eq!(report(&mut space, kind, Some(HEADER)), expected, "{kind:?}");
        assert_eq!(device_status(&space), detected(expected.unwrap_or(Correctable), kind), "{kind:?}");
    }
    let mut bare = ConfigSpace::new(&Layout::new(Type0::new(Identity::new(1, 1, 0)))).unwrap();
    assert_eq!(report(&mut bare, ErrorKind::Malformed, None), None);
    bare.write(0x04, 0b10, 0x100);
    assert_eq!(report(&mut bare, ErrorKind::Malformed, None), Some(Fatal), "SERR# is enough");
}

#[test]
fn software_of_old_sees_its_status_bits() {
    let mut space = end_point();
    report(&mut space, ErrorKind::Poisoned { handled: true }, None);
    report(&mut space, ErrorKind::CompleterAbort { posted: false }, None);
    assert_eq!(space.read(0x04) >> 16 & 0xF900, 1 << 15 | 1 << 11, "parity error, target abort signaled");
    let cases = [(FailedCompletion::UnsupportedRequest, 13), (FailedCompletion::CompleterAbort, 12)];
    for (completion, bit) in cases {
        let mut space = end_point();
        receive_completion(&mut space, completion);
        assert_eq!(space.read(0x04) >> 16 & 0xF900, 1 << bit);
    }
    let mut space = end_point();
    receive_completion(&mut space, FailedCompletion::Poisoned);
    assert_eq!(space.read(0x04) >> 24 & 1, 0, "it does not respond to parity");
    space.write(0x04, 0b1, 0x40);
    receive_completion(&mut space, FailedCompletion::Poisoned);
    assert_eq!(space.read(0x04) >> 24 & 1, 1);
}

#[test]
fn serr_and_reporting_bits_decide_forwarded_error_messages() {
    // Bridge Control: SERR#; Command: SERR#; Device Control: the message's own bit. The first, and one of the others.
    for message in [Correctable, NonFatal, Fatal] {
        for settings in 0..8 {
            let [bridge_serr, serr, own] = [0, 1, 2].map(|bit| settings >> bit & 1 == 1);
            let mut bridge = port(PortType::Downstream);
            bridge.write(0x3C, 0b0100, u32::from(bridge_serr) << 17);
            bridge.write(0x04, 0b0010, u32::from(serr) << 8);
            reporting(&mut bridge, if own { 1 << message as u32 } else { 0b111 & !(1 << message as u32) });
            let serious = message != Correctable;
            let expected = bridge_serr && (own || serious && serr);
            assert_eq!(forward(&mut bridge, message), expected, "{message:?} {settings:03b}");
            let received = bridge.read(0x1C) >> 30 & 1 == 1;
            assert_eq!(received, serious, "received system error");
            let signaled = bridge.read(0x04) >> 30 & 1 == 1;
            assert_eq!(signaled, serious && bridge_serr && serr, "signaled system error");
        }
    }
    assert!([Correctable, NonFatal, Fatal].iter().all(|m| ErrorMessage::from_code(m.code()) == Some(*m)));
}

/// A message reaches a root port from below; `true`: it interrupts.
fn receive(root_port: &mut ConfigSpace, message: ErrorMessage, source: Bdf) -> bool {
    forward(root_port, message) && log_at_root(root_port, message, source)
}

/// A root port that hears of all errors, and interrupts for those in `command`.
fn listening_root(command: u32) -> ConfigSpace {
    let mut root = port(PortType::RootPort);
    root.write(0x3C, 0b0100, 1 << 17);
    reporting(&mut root, 0b0111);
    root.write(ROOT_COMMAND, 0xF, command);
    root
}

#[test]
fn the_root_port_keeps_first_sources_and_flags_multiple_errors() {
    let (one, two) = (Bdf(0x0100), Bdf(0x0208));
    type Messages<'a> = &'a [(ErrorMessage, Bdf)];
    // The messages in their order, the root error status, and whose IDs are kept (uncorrectable, correctable).
    let cases: [(Messages<'_>, u32, [Bdf; 2]); 7] = [
        (&[(Correctable, one)], 0b000_0001, [Bdf(0), one]),
        (&[(Correctable, one), (Correctable, two)], 0b000_0011, [Bdf(0), one]),
        (&[(NonFatal, one)], 0b010_0100, [one, Bdf(0)]),
        (&[(Fatal, two)], 0b101_0100, [two, Bdf(0)]),
        (&[(NonFatal, one), (Fatal, two)], 0b110_1100, [one, Bdf(0)]),
        (&[(Fatal, one), (NonFatal, two)], 0b111_1100, [one, Bdf(0)]),
        (&[(Correctable, one), (Fatal, two)], 0b101_0101, [two, one]),
    ];
    for (messages, status, [uncorrectable, correctable]) in cases {
        let mut root = listening_root(0);
        for (message, source) in messages {
            assert!(!receive(&mut root, *message, *source), "no interrupt is enabled");
        }
        assert_eq!(root.read(ROOT_STATUS), status, "{messages:?}");
        assert_eq!(root.read(SOURCES), u32::from(uncorrectable.0) << 16 | u32::from(correctable.0));
    }
}

#[test]
fn the_root_port_interrupts_when_there_is_a_new_reason() {
    let source = Bdf(0x0100);
    for (command, wakes) in [(0b001, Correctable), (0b010, NonFatal), (0b100, Fatal)] {
        for message in [Correctable, NonFatal, Fatal] {
            let mut root = listening_root(command);
            assert_eq!(receive(&mut root, message, source), message == wakes);
        }
        let mut root = listening_root(command);
        assert!(receive(&mut root, wakes, source));
        assert!(!receive(&mut root, wakes, source), "it is up already");
        // A driver that clears what it saw will be told again.
        root.write(ROOT_STATUS, 0xF, root.read(ROOT_STATUS));
        assert!(receive(&mut root, wakes, source));
    }
    let mut root = listening_root(0b111);
    assert!(receive(&mut root, Correctable, source));
    assert!(!receive(&mut root, Fatal, source), "one wire for all");
    // What the port may not forward it does not log.
    let mut deaf = listening_root(0b111);
    deaf.write(0x3C, 0b0100, 0);
    assert!(!receive(&mut deaf, Fatal, source));
    assert_eq!(deaf.read(ROOT_STATUS), 0);
    // Its own errors need no permission of its secondary side.
    assert!(log_at_root(&mut deaf, Fatal, source));
    // Elsewhere these registers are reserved.
    let mut downstream = port(PortType::Downstream);
    assert!(!log_at_root(&mut downstream, Fatal, source));
    assert_eq!(downstream.read(ROOT_STATUS), 0);
}

/// The names of PCIe 5.0 §6.2.7, and the codes of §2.2.8.3.
#[test]
fn errors_and_messages_have_the_names_of_the_specification() {
    let names = [
        (ErrorKind::DataLinkProtocol, "Data Link Protocol Error"),
        (ErrorKind::SurpriseDown, "Surprise Down"),
        (ErrorKind::Poisoned { handled: true }, "Poisoned TLP Received"),
        (ErrorKind::FlowControlProtocol, "Flow Control Protocol Error"),
        (ErrorKind::CompletionTimeout, "Completion Timeout"),
        (ErrorKind::CompleterAbort { posted: true }, "Completer Abort"),
        (ErrorKind::UnexpectedCompletion, "Unexpected Completion"),
        (ErrorKind::ReceiverOverflow, "Receiver Overflow"),
        (ErrorKind::Malformed, "Malformed TLP"),
        (ErrorKind::Ecrc, "ECRC Error"),
        (ErrorKind::UnsupportedRequest { posted: false }, "Unsupported Request"),
        (ErrorKind::AcsViolation, "ACS Violation"),
        (ErrorKind::UncorrectableInternal, "Uncorrectable Internal Error"),
        (ErrorKind::Receiver, "Receiver Error"),
        (ErrorKind::BadTlp, "Bad TLP"),
        (ErrorKind::BadDllp, "Bad DLLP"),
        (ErrorKind::ReplayNumRollover, "REPLAY_NUM Rollover"),
        (ErrorKind::ReplayTimer, "Replay Timer Timeout"),
        (ErrorKind::CorrectedInternal, "Corrected Internal Error"),
        (ErrorKind::HeaderLogOverflow, "Header Log Overflow"),
    ];
    for (kind, name) in names {
        assert_eq!(kind.name(), name);
    }
    for (message, name, code) in
        [(Correctable, "ERR_COR", 0x30), (NonFatal, "ERR_NONFATAL", 0x31), (Fatal, "ERR_FATAL", 0x33)]
    {
        assert_eq!((message.name(), message.code()), (name, code));
    }
    let codes: Vec<u8> = (0..=u8::MAX).filter(|code| ErrorMessage::from_code(*code).is_some()).collect();
    assert_eq!(codes, [0x30, 0x31, 0x33]);
    assert!(codes.iter().all(|code| ErrorMessage::from_code(*code).unwrap().code() == *code));
}

/// A port above a link shows in its secondary status the ends of requests down that link, and data parity if Bridge Control says so
/// (PCIe 5.0 §7.5.1.3.7, §7.5.1.3.13).
#[test]
fn requests_down_a_link_end_in_the_secondary_status() {
    for kind in [PortType::RootPort, PortType::Downstream] {
        // Parity Error Response Enable of Bridge Control, among other bits, and that of the other side.
        for (control, command, parity) in [(0x0002, 0x40, false), (0x0001, 0x00, true), (0x005F, 0x40, true)]
        {
            let cases = [
                (FailedCompletion::UnsupportedRequest, 1 << 13),
                (FailedCompletion::CompleterAbort, 1 << 12),
                (FailedCompletion::Poisoned, u32::from(parity) << 8),
            ];
            for (completion, expected) in cases {
                let mut port = port(kind);
                port.write(0x3C, 0b1100, control << 16);
                port.write(0x04, 0b11, command);
                receive_completion(&mut port, completion);
                assert_eq!(port.read(0x1C) >> 16, expected, "{kind:?}, {completion:?}, {control:#x}");
                assert_eq!(port.read(0x04) >> 16 & 0xF900, 0, "the primary side has seen nothing");
            }
        }
    }
}
