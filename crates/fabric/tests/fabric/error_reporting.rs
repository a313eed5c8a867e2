//! What software learns of each error (PCIe 5.0 §6.2): a program on the host reads the registers over the links, and the messages are
//! looked for on the wires.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::script::{Place, Script, Step, read, write};
use crate::bench::{Bench, Watch, ns};
use tlplab_fabric::Fabric;
use tlplab_fabric::config::*;
use tlplab_fabric::errors::{ErrorKind, ErrorMessage};
use tlplab_units::{Bdf, Duration, LinkMode, Time};
use tlplab_wire::tlp::{CompletionStatus, Kind};

const ROOT_PORT: Bdf = Bdf(0x0008);
const UPSTREAM: Bdf = Bdf(0x0100);
/// The switch's ports above `dev` and `mem`.
const ABOVE_DEV: Bdf = Bdf(0x0200);
const ABOVE_MEM: Bdf = Bdf(0x0208);
const DEV: Bdf = Bdf(0x0300);
const MEM: Bdf = Bdf(0x0400);

/// The capability of advanced error reporting, and its registers (PCIe 5.0 §7.8.4).
const AER: u16 = 0x100;
const UNCORRECTABLE: u16 = AER + 0x04;
const UNCORRECTABLE_MASK: u16 = AER + 0x08;
const CORRECTABLE: u16 = AER + 0x10;
const CONTROL: u16 = AER + 0x18;
const HEADER: u16 = AER + 0x1C;
const ROOT_STATUS: u16 = AER + 0x30;
const SOURCES: u16 = AER + 0x34;

const FEW_BUFFERS: Buffers = Buffers {
    posted_headers: 2,
    posted_data: 64,
    non_posted_headers: 2,
    non_posted_data: 2,
    completion_headers: 0,
    completion_data: 0,
};

/// A device below a switch writes and reads host memory, and the processor writes and reads `mem` beside it, with a fault on the
/// link above `below`; a program does `before`, and long after that reads the registers of `at` and of the root port.
struct Trial {
    below: &'static str,
    fault: Fault,
    at: Bdf,
    before: Vec<Step>,
    reporting: bool,
}

/// What the program read, and what was seen on the wires.
struct Told {
    uncorrectable: u32,
    correctable: u32,
    first: u32,
    header: [u8; 16],
    root: u32,
    sources: u32,
    /// Root ports that interrupted.
    ports: Vec<Bdf>,
    /// Error messages on the uplink of the switch: code and requester.
    messages: Vec<(u8, Bdf)>,
    fabric: Fabric,
}

fn look(at: Bdf) -> Vec<Step> {
    let registers = [AER, UNCORRECTABLE, CORRECTABLE, CONTROL, HEADER, HEADER + 4, HEADER + 8, HEADER + 12];
    let own = registers.map(|register| read(Place::Function(at, register), 4));
    let root = [ROOT_STATUS, SOURCES].map(|register| read(Place::Function(ROOT_PORT, register), 4));
    own.into_iter().chain(root).collect()
}

impl Trial {
    fn new(below: &'static str, fault: Fault, at: Bdf) -> Self {
        Self { below, fault, at, before: Vec::new(), reporting: true }
    }

    fn run(self) -> Told {
        let mut bench = Bench::new();
        bench.config.host.ecrc = matches!(self.fault.kind, FaultKind::Tamper { how: Tamper::Ecrc, .. });
        bench.config.host.error_reporting = self.reporting;
        bench.config.host.completion_timeout = Duration::from_us(40);
        let faults = |name: &str| if name == self.below { vec![self.fault.clone()] } else { Vec::new() };
        let switch = bench.switch("sw0", "host.rp0", 3, 4);
        (switch.uplink.recovery, switch.uplink.faults) = (ns(2000), faults("sw0"));
        if matches!(self.fault.kind, FaultKind::Forge { how: Forgery::Overgrant(_), .. }) {
            // Little room, which a slow memory keeps occupied.
            switch.uplink.upper.buffers = Some(FEW_BUFFERS);
            bench.config.host.memory.bandwidth = Some(1_000_000_000);
        }
        let both = |i: u64| [Move::Write { at: i * 512, bytes: 512 }, Move::Read { at: i * 512, bytes: 512 }];
        let moves: Vec<_> = (0..6).flat_map(both).collect();
        let (mover, _) = Mover::new(Base::Address(0x10_0000), 2, moves.clone());
        let flits = matches!(self.fault.kind, FaultKind::Nth { unit: FaultUnit::Flit, .. });
        let device = bench.device("dev", "sw0", 3, 4).config(|d| {
            d.completion_timeout = Duration::from_us(40);
            d.link.faults = faults("dev");
            d.link.mode = if flits { LinkMode::Flit } else { LinkMode::NonFlit };
        });
        device.finishing(Box::new(mover.unchecked()));
        bench.device("mem", "sw0", 3, 4).config(|d| d.link.faults = faults("mem")).memory(1 << 16);
        let (mover, _) = Mover::new(Base::Bar("mem".into(), 0), 2, moves);
        bench.finishing_program(Box::new(mover.unchecked()));
        let mut steps = self.before;
        steps.push(Step::Wait(Duration::from_us(400)));
        let skip = steps.iter().filter(|step| matches!(step, Step::Read(..))).count();
        steps.extend(look(self.at));
        let (script, heard) = Script::new(steps);
        bench.finishing_program(script);
        let watch = Watch::everything();
        let mut fabric = bench.build_watched(watch.probe());
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(4)) {}
        assert!(fabric.is_done(), "{} transactions under way", fabric.transactions_live());
        let message = |(unit, repr): (crate::bench::watch::Unit, tlplab_wire::tlp::Repr)| match repr.kind() {
            Kind::Message(m) if !unit.bad => Some((m.code() as u8, m.id().requester)),
            _ => None,
        };
        let messages = watch.tlps(&fabric, "sw0", 0).into_iter().filter_map(message).collect();
        let heard = heard.lock().unwrap();
        let values: Vec<u32> = heard.values()[skip..].iter().map(|value| *value as u32).collect();
        assert_eq!(values[0] & 0xFFFF, 0x0001, "advanced error reporting is where this test looks");
        let header: Vec<u8> = values[4..8].iter().flat_map(|dword| dword.to_be_bytes()).collect();
        Told {
            uncorrectable: values[1],
            correctable: values[2],
            first: values[3] & 0x1F,
            header: header.try_into().unwrap(),
            root: values[8],
            sources: values[9],
            ports: heard.ports.clone(),
            messages,
            fabric,
        }
    }
}

/// What a function's registers say of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    /// A bit of the uncorrectable status, the message for it, and whether there is a header.
    Uncorrectable(u32, ErrorMessage, bool),
    /// A bit of the correctable status.
    Correctable(u32),
    /// Somebody else is told already, so this is a correctable error, whose message is masked until software wants it.
    Advisory,
}

fn tamper(direction: Direction, name: &'static str, how: Tamper) -> Fault {
    Fault { direction, kind: FaultKind::Tamper { only: Some(name), n: 2, count: 1, how } }
}

fn nth(direction: Direction, unit: FaultUnit, n: u64, count: u64, damage: Damage) -> Fault {
    Fault { direction, kind: FaultKind::Nth { unit, n, count, damage } }
}

fn forge(direction: Direction, how: Forgery) -> Fault {
    Fault { direction, kind: FaultKind::Forge { n: 2, count: 1, how } }
}

fn surprise() -> Fault {
    let (at, until) = (Time::ZERO + ns(700), Some(Time::ZERO + ns(9000)));
    Fault { direction: Direction::Up, kind: FaultKind::Down { at, until } }
}

#[test]
fn each_error_is_logged_and_reported_by_its_function() {
    use Damage::{Corrupt, Drop};
    use Direction::{Down, Up};
    use ErrorMessage::{Fatal, NonFatal};
    use FaultUnit::{Called, Flit, Tlp};
    use Log::{Advisory, Correctable, Uncorrectable};
    let aborted = Tamper::Refuse(CompletionStatus::CompleterAbort);
    let cases: Vec<(&str, Fault, Bdf, Log)> = vec![
        // Poison: noted on the way, an error where it ends.
        ("dev", tamper(Up, "MWr", Tamper::Poison), ROOT_PORT, Uncorrectable(12, NonFatal, true)),
        ("dev", tamper(Up, "MWr", Tamper::Poison), ABOVE_DEV, Advisory),
        ("sw0", tamper(Down, "CplD", Tamper::Poison), DEV, Uncorrectable(12, NonFatal, true)),
        (
            "dev",
            tamper(Up, "MWr", Tamper::Malform(Malformation::Payload)),
            ABOVE_DEV,
            Uncorrectable(18, Fatal, true),
        ),
        (
            "dev",
            tamper(Down, "CplD", Tamper::Malform(Malformation::Type)),
            DEV,
            Uncorrectable(18, Fatal, true),
        ),
        ("sw0", tamper(Up, "MRd", Tamper::Lose), DEV, Uncorrectable(14, NonFatal, false)),
        ("sw0", tamper(Up, "CplD", Tamper::Lose), ROOT_PORT, Uncorrectable(14, NonFatal, false)),
        ("sw0", tamper(Down, "CplD", Tamper::Tag), DEV, Advisory),
        ("dev", tamper(Up, "MWr", Tamper::Address), ROOT_PORT, Uncorrectable(20, NonFatal, true)),
        ("sw0", tamper(Down, "MRd", Tamper::Address), UPSTREAM, Advisory),
        ("dev", tamper(Up, "MRd", aborted), ROOT_PORT, Advisory),
        ("sw0", tamper(Down, "MRd", Tamper::Ecrc), MEM, Uncorrectable(19, NonFatal, true)),
        ("sw0", forge(Down, Forgery::AckUnsent), UPSTREAM, Uncorrectable(4, Fatal, false)),
        ("sw0", forge(Up, Forgery::TakeBack), ROOT_PORT, Uncorrectable(13, Fatal, false)),
        ("sw0", forge(Down, Forgery::Overgrant(4)), ROOT_PORT, Uncorrectable(17, Fatal, false)),
        ("mem", surprise(), ABOVE_MEM, Uncorrectable(5, Fatal, false)),
        ("dev", nth(Up, Flit, 2, 1, Corrupt), ABOVE_DEV, Correctable(0)),
        ("dev", nth(Up, Tlp, 2, 1, Corrupt), ABOVE_DEV, Correctable(6)),
        ("sw0", nth(Down, Called("UpdateFC"), 1, 1, Corrupt), UPSTREAM, Correctable(7)),
        ("sw0", nth(Down, Called("Ack"), 1, 3, Drop), UPSTREAM, Correctable(12)),
        ("sw0", nth(Down, Called("Ack"), 1, 80, Drop), UPSTREAM, Correctable(8)),
    ];
    for (below, fault, at, log) in cases {
        let what = format!("{below} {fault:?} {at}");
        let told = Trial::new(below, fault, at).run();
        let message = match log {
            Uncorrectable(bit, message, header) => {
                assert_eq!((told.uncorrectable >> bit & 1, told.first), (1, bit), "{what}");
                assert_eq!(told.header != [0; 16], header, "{what}");
                let logged = told.fabric.errors().filter_map(|error| error.header).any(|h| h == told.header);
                assert_eq!(logged, header, "{what}");
                Some(message)
            }
            Correctable(bit) => {
                assert_eq!(told.correctable >> bit & 1, 1, "{what}: {:#x}", told.correctable);
                Some(ErrorMessage::Correctable)
            }
            Advisory => {
                assert_eq!(told.correctable, 1 << 13, "{what}");
                None
            }
        };
        let seen = |message: ErrorMessage| told.messages.contains(&(message.code(), at));
        let Some(message) = message else {
            assert!(!seen(ErrorMessage::Correctable), "{what}: masked");
            continue;
        };
        // A root port has no link on its way to itself.
        assert_eq!(seen(message), at != ROOT_PORT, "{what}: {:x?}", told.messages);
        let (received, class) = match message {
            ErrorMessage::Correctable => (1, 0),
            ErrorMessage::NonFatal => (1 << 2, 1 << 5),
            ErrorMessage::Fatal => (1 << 2, 1 << 6),
        };
        assert_eq!(told.root & (received | class), received | class, "{what}: {:#x}", told.root);
        let reported: Vec<_> =
            told.fabric.reported_errors().filter(|r| (r.source, r.message) == (at, message)).collect();
        assert_eq!(reported.len(), 1, "{what}");
        // The slot of a link that went down interrupts besides.
        let interrupts = |port: &Bdf| *port == ROOT_PORT || *port == ABOVE_MEM && below == "mem";
        assert!(told.ports.contains(&ROOT_PORT) && told.ports.iter().all(interrupts), "{what}");
        // The sources are those of the first of each kind.
        let source =
            if message == ErrorMessage::Correctable { told.sources } else { told.sources >> 16 } as u16;
        let first = told
            .fabric
            .reported_errors()
            .filter(|r| (r.message == ErrorMessage::Correctable) == (message == ErrorMessage::Correctable));
        assert_eq!(Some(source), first.min_by_key(|r| r.first).map(|r| r.source.0), "{what}");
    }
}

/// A mask silences one error, and a host that does not want reports silences all; the status bits are set all the same.
#[test]
fn masked_or_disabled_errors_send_no_message() {
    let fault = || tamper(Direction::Up, "MWr", Tamper::Malform(Malformation::Payload));
    let late = Fault {
        kind: FaultKind::Tamper {
            only: Some("MWr"),
            n: 12,
            count: 1,
            how: Tamper::Malform(Malformation::Payload),
        },
        ..fault()
    };
    let mask = write(Place::Function(ABOVE_DEV, UNCORRECTABLE_MASK), &(1u32 << 18).to_le_bytes());
    let masked = Trial { before: vec![mask], ..Trial::new("dev", late.clone(), ABOVE_DEV) }.run();
    assert_eq!((masked.uncorrectable, masked.header), (1 << 18, [0; 16]), "a masked error is not logged");
    let off = Trial { reporting: false, ..Trial::new("dev", fault(), ABOVE_DEV) }.run();
    assert_eq!((off.uncorrectable, off.first), (1 << 18, 18));
    for told in [masked, off] {
        assert_eq!((told.messages.len(), told.root, told.sources), (0, 0, 0));
        assert_eq!((told.ports.len(), told.fabric.reported_errors().count()), (0, 0));
        assert_eq!(told.fabric.errors().filter(|e| e.kind == ErrorKind::Malformed).count(), 1);
        assert!(told.fabric.errors().all(|error| error.messages.is_none()));
    }
    let sent = Trial::new("dev", late, ABOVE_DEV).run();
    assert!(!sent.messages.is_empty(), "without the mask it is");
}

/// The header and the pointer of the first error stay until software clears its bit.
#[test]
fn the_first_error_stays_in_the_log() {
    let malformed = |n, count| {
        let how = Tamper::Malform(Malformation::Payload);
        Fault { direction: Direction::Up, kind: FaultKind::Tamper { only: Some("MWr"), n, count, how } }
    };
    let one = Trial::new("dev", malformed(2, 1), ABOVE_DEV).run();
    let three = Trial::new("dev", malformed(2, 3), ABOVE_DEV).run();
    assert_eq!((three.first, three.header), (18, one.header));
    assert!(three.fabric.errors().any(|error| error.kind == ErrorKind::Malformed && error.count == 3));
}

/// An advisory error is reported if software has enabled it, and a bridge passes only messages that software has enabled.
#[test]
fn software_enables_advisory_errors_and_message_forwarding() {
    let late = |how| Fault {
        direction: Direction::Up,
        kind: FaultKind::Tamper { only: Some("MWr"), n: 12, count: 1, how },
    };
    let unmask = write(Place::Function(ABOVE_DEV, CORRECTABLE + 4), &[0; 4]);
    let told = Trial { before: vec![unmask], ..Trial::new("dev", late(Tamper::Poison), ABOVE_DEV) }.run();
    assert_eq!((told.uncorrectable, told.correctable, told.first), (1 << 12, 1 << 13, 12));
    assert_eq!(told.messages, [(0x30, ABOVE_DEV)]);
    // Bridge control of the upstream port: the switch's downstream ports are below that bridge.
    let stop = write(Place::Function(UPSTREAM, 0x3E), &[0; 2]);
    let how = Tamper::Malform(Malformation::Payload);
    let told = Trial { before: vec![stop], ..Trial::new("dev", late(how), ABOVE_DEV) }.run();
    assert_eq!((told.uncorrectable, told.first), (1 << 18, 18));
    assert_eq!((told.messages.len(), told.root), (0, 0));
}

/// A write that no function of a device claims is in the logs of all of them; one message reports it (PCIe 5.0 §6.2.4).
#[test]
fn an_unclaimed_write_is_logged_by_all_functions_and_reported_once() {
    let mut bench = Bench::new();
    let stray = tamper(Direction::Down, "MWr", Tamper::Address);
    bench.device("mem", "host.rp0", 3, 4).config(|d| d.link.faults.push(stray)).memory(1 << 16);
    for number in [1, 2] {
        let of = Some(FunctionOf { device: "mem".into(), number });
        let name = format!("mem{number}");
        bench.device(&name, "unused", 1, 1).config(|d| d.function_of = of).memory(1 << 16);
    }
    let moves = (0..6).map(|i| Move::Write { at: i * 64, bytes: 64 }).collect();
    let (mover, _) = Mover::new(Base::Bar("mem".into(), 0), 1, moves);
    bench.finishing_program(Box::new(mover.unchecked()));
    let watch = Watch::everything();
    let mut fabric = bench.build_watched(watch.probe());
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(4)) {}
    fabric.run_until(fabric.now() + Duration::from_us(10));
    let spaces = fabric.config_spaces();
    let functions: Vec<_> = spaces.iter().filter(|(id, _)| id.bus() == 1).collect();
    assert_eq!(functions.len(), 3);
    let header = |at: usize| [0, 4, 8, 12].map(|dword| functions[at].1.read(HEADER + dword));
    for (at, (id, space)) in functions.iter().enumerate() {
        assert_eq!((space.read(UNCORRECTABLE), space.read(CONTROL) & 0x1F), (1 << 20, 20), "{id}");
        assert_eq!(header(at), header(0), "{id}");
    }
    assert_ne!(header(0), [0; 4]);
    let messages = watch.tlps(&fabric, "mem", 0).into_iter().filter_map(|(_, repr)| match repr.kind() {
        Kind::Message(m) => Some((m.code() as u8, m.id().requester)),
        _ => None,
    });
    assert_eq!(messages.collect::<Vec<_>>(), [(0x31, functions[0].0)]);
}

/// The registers of all functions, root ports and switches included, show that TLPs have end-to-end CRCs (PCIe 5.0 §7.8.4.7).
#[test]
fn aer_registers_show_ecrc_generation_and_checking() {
    for (ecrc, expected) in [(false, 0), (true, 0b1_1110_0000)] {
        let mut bench = Bench::new();
        bench.config.host.ecrc = ecrc;
        bench.switch("sw0", "host.rp0", 3, 4);
        bench.device("mem", "sw0", 3, 4).memory(1 << 16);
        let moves = vec![Move::Write { at: 0, bytes: 64 }];
        let (mover, _) = Mover::new(Base::Bar("mem".into(), 0), 1, moves);
        bench.finishing_program(Box::new(mover));
        let mut fabric = bench.build();
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(4)) {}
        let spaces = fabric.config_spaces();
        let controls = spaces.iter().filter(|(_, space)| space.read(AER) as u16 == 1);
        let controls: Vec<_> = controls.map(|(_, space)| space.read(CONTROL) & 0x1E0).collect();
        assert_eq!(controls, [expected; 4]);
    }
}
