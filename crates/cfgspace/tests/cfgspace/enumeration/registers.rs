//! The registers of one machine after enumeration, worked out by hand; and the words for its problems.

use super::machine::{Machine, Node, link};
use tlplab_cfgspace::enumerate::{
    Enumerator, Function, Hierarchy, InterruptPolicy, Problem, ProblemKind, Request, Settings, Step,
};
use tlplab_cfgspace::error::{self, ErrorKind};
use tlplab_cfgspace::*;
use tlplab_units::{Bdf, Duration, Mps};

pub(crate) const PCIE: u16 = 0x40;
const OTHER: u16 = 0x80;

pub(crate) fn bridge(kind: PortType, change: impl Fn(&mut Type1, &mut Pcie)) -> Layout {
    let mut header = Type1::new(Identity::new(0x71AB, 0x14, 0x06_04_00));
    let mut pcie = Pcie { mps: Mps::ALL[3], ..Pcie::new(kind, link()) };
    header.io = Some(IoWindow::Bits32);
    change(&mut header, &mut pcie);
    Layout::new(header).capability_at(PCIE, pcie)
}

pub(crate) fn same(_: &mut Type1, _: &mut Pcie) {}

pub(crate) fn card(bars: &[(usize, Bar)], mps: Mps) -> Layout {
    let mut header = Type0 { interrupt_pin: 1, ..Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00)) };
    bars.iter().for_each(|(index, bar)| header.bars[*index] = Some(*bar));
    Layout::new(header).capability_at(PCIE, Pcie { mps, ..Pcie::new(PortType::EndPoint, link()) })
}

/// A root port, a switch, and two cards; everything has seen an error.
fn machine() -> Machine {
    let table = MsiX { vectors: 2, table: (0, 0x100), pending: (0, 0x800) };
    let a = card(
        &[(0, Bar::memory32(1 << 20)), (1, Bar::io(32)), (2, Bar::memory64(1 << 33).prefetchable())],
        Mps::ALL[1],
    );
    let a = a.capability_at(OTHER, table).extended(Aer { root: false, ecrc: true });
    let b = card(&[(0, Bar::memory32(2 << 20)), (5, Bar::io(32))], Mps::ALL[2]);
    let b = b.capability_at(OTHER, Msi { vectors: 4, wide: true, masking: false });
    let root = bridge(PortType::RootPort, |_, pcie| pcie.read_boundary_128 = true);
    let root = root.extended(Aer { root: true, ecrc: true });
    let erring = |layout: &Layout| {
        let mut node = Node::new(layout);
        error::report(&mut node.space, ErrorKind::UnsupportedRequest { posted: true }, Some([7; 16]));
        error::report(&mut node.space, ErrorKind::BadTlp, None);
        assert_ne!(node.space.read(PCIE + 0x08) >> 16, 0);
        // What firmware has set besides: ASPM and the common clock, a range of timeouts, 8 bits of tag.
        for (register, value) in [(0x08, 0x2910), (0x10, 0x0043), (0x28, 0x0005)] {
            node.space.write(PCIE + register, 0b11, value);
        }
        node
    };
    let below = bridge(PortType::Downstream, same);
    let switch = erring(&bridge(PortType::Upstream, same))
        .with(0, erring(&below).with(0, erring(&a)))
        .with(1, erring(&below).with(0, erring(&b)));
    Machine::new([((1, 0), erring(&root).with(0, switch))])
}

pub(crate) fn settings() -> Settings {
    Settings {
        memory: (0xC120_0000, 0xE000_0000),
        high_memory: (0x123_4000_0000, 0x200_0000_0000),
        io: (0x1_F000, 0x3_0000),
        ecrc: true,
        ..Settings::default()
    }
}

pub(crate) fn at<'a>(found: &'a Hierarchy, name: &str) -> &'a Function {
    found.functions.iter().find(|function| function.bdf.to_string() == name).expect(name)
}

pub(crate) fn check(machine: &mut Machine, found: &Hierarchy, name: &str, registers: &[(u16, u32)]) {
    let space = &machine.node(at(found, name).bdf).unwrap().space;
    for (offset, expected) in registers {
        let read = space.read(*offset);
        assert_eq!(read, *expected, "{name}, {offset:#x}: {read:#x}, not {expected:#x}");
    }
}

#[test]
fn registers_of_a_switch_and_two_cards() {
    let mut machine = machine();
    let found = machine.run(Enumerator::new(settings()));
    assert_eq!(found.problems, []);
    // B's 2 MiB come first, then A's 1 MiB; A's 8 GiB are aligned; I/O goes beyond 128 KiB.
    let windows_of_both = [
        (0x1C, 0x0000_01F1),
        (0x20, 0xC140_C120),
        (0x24, 0xFFF1_0001),
        (0x28, 0x0000_0124),
        (0x2C, 0x0000_0125),
        (0x30, 0x0002_0001),
    ];
    for name in ["00:01.0", "01:00.0"] {
        check(&mut machine, &found, name, &windows_of_both);
    }
    // 256 B for all; requests of 2 KiB, errors reported, 8 bits of tag, relaxed ordering and no snoop. No error is left.
    for name in ["00:01.0", "03:00.0", "04:00.0"] {
        check(&mut machine, &found, name, &[(PCIE + 0x08, 0x0000_493F)]);
    }
    // The ports of a switch read nothing: 128 B stand there.
    for name in ["01:00.0", "02:00.0", "02:01.0"] {
        check(&mut machine, &found, name, &[(PCIE + 0x08, 0x0000_093F)]);
    }
    let bridges = [
        ("00:01.0", 0x0004_0100),
        ("01:00.0", 0x0004_0201),
        ("02:00.0", 0x0003_0302),
        ("02:01.0", 0x0004_0402),
    ];
    for (name, buses) in bridges {
        check(&mut machine, &found, name, &[(0x04, 0x0010_0107), (0x18, buses), (0x3C, 0x0002_0000)]);
    }
    check(
        &mut machine,
        &found,
        "02:00.0",
        &[
            (0x1C, 0x0000_F1F1),
            (0x20, 0xC140_C140),
            (0x24, 0xFFF1_0001),
            (0x28, 0x0000_0124),
            (0x2C, 0x0000_0125),
            (0x30, 0x0001_0001),
        ],
    );
    // Nothing prefetchable: closed.
    check(
        &mut machine,
        &found,
        "02:01.0",
        &[
            (0x1C, 0x0000_0101),
            (0x20, 0xC130_C120),
            (0x24, 0x0001_FFF1),
            (0x28, 0),
            (0x2C, 0),
            (0x30, 0x0002_0002),
        ],
    );
    // The root port adds and checks ECRC, and interrupts for all errors. The pointer stays at the error that was seen.
    check(
        &mut machine,
        &found,
        "00:01.0",
        &[(0x104, 0), (0x110, 0), (0x118, 0x0000_01F4), (0x12C, 0x0000_0007), (0x130, 0)],
    );
    check(
        &mut machine,
        &found,
        "03:00.0",
        &[
            (0x04, 0x0010_0507),
            (0x10, 0xC140_0000),
            (0x14, 0x0001_F001),
            (0x18, 0x0000_000C),
            (0x1C, 0x0000_0124),
            // INTA, which is B on the root complex: device 1 on bus 0.
            (0x3C, 0x0000_0101),
            // The root port's boundary; ten bits of tag.
            (PCIE + 0x10, 0x1043_004B),
            (PCIE + 0x28, 0x0000_1005),
            (OTHER, 0x8001_0011),
            (0x104, 0),
            (0x110, 0),
            (0x118, 0x0000_01F4),
        ],
    );
    let table: Vec<u32> = (0..8).map(|dword| machine.memory[&(0xC140_0100 + 4 * dword)]).collect();
    assert_eq!(table, [0xFEE0_3000, 0, 0, 0, 0xFEE0_3000, 0, 1, 0]);
    check(
        &mut machine,
        &found,
        "04:00.0",
        &[
            (0x04, 0x0010_0507),
            (0x10, 0xC120_0000),
            (0x24, 0x0002_0001),
            // Device 1 on the switch's bus as well.
            (0x3C, 0x0000_0102),
            // All four vectors.
            (OTHER, 0x00A5_0005),
            (OTHER + 4, 0xFEE0_4000),
            (OTHER + 8, 0),
            (OTHER + 12, 0),
        ],
    );
    let children = |parent: &str| -> Vec<String> {
        found.children(Some(at(&found, parent).bdf)).map(|function| function.bdf.to_string()).collect()
    };
    assert_eq!(children("01:00.0"), ["02:00.0", "02:01.0"]);
    assert_eq!(found.children(None).count(), 1);
    assert_eq!(at(&found, "03:00.0").class, 0xFF_00_00);
}

/// Only where software lets them, and end points only.
#[test]
fn end_points_ask_for_translations_where_they_may() {
    for translation in [true, false] {
        let card = card(&[], Mps::ALL[1]).extended(ExtendedCapability::Ats { queue_depth: 32 });
        let root = bridge(PortType::RootPort, same);
        let mut machine = Machine::new([((1, 0), Node::new(&root).with(0, Node::new(&card)))]);
        let found = machine.run(Enumerator::new(Settings { translation, ..settings() }));
        let control = if translation { 0x8000_0020 } else { 0x20 };
        check(&mut machine, &found, "01:00.0", &[(0x100, 0x0001_000F), (0x104, control)]);
        let view = machine.node(at(&found, "01:00.0").bdf).unwrap().space.translation();
        let expected = TranslationView { enabled: translation, unit: 4096, queue_depth: 32 };
        assert_eq!(view, Some(expected));
    }
}

#[test]
fn intx_without_error_reporting_sets_its_registers() {
    let mut machine = machine();
    let settings =
        Settings { interrupts: InterruptPolicy::Intx, error_reporting: false, ecrc: false, ..settings() };
    let found = machine.run(Enumerator::new(settings));
    for name in ["03:00.0", "04:00.0"] {
        assert_eq!(at(&found, name).interrupts, InterruptMode::Intx);
        check(&mut machine, &found, name, &[(0x04, 0x0010_0007), (PCIE + 0x08, 0x0000_4930)]);
    }
    check(
        &mut machine,
        &found,
        "00:01.0",
        &[(0x04, 0x0010_0007), (0x3C, 0), (0x118, 0x0000_00B4), (0x12C, 0)],
    );
}

/// A base address in a space that a bridge cannot forward has no address, or goes where other memory does.
#[test]
fn bridges_that_forward_less() {
    let bars = [(0, Bar::memory32(4096)), (1, Bar::io(32)), (2, Bar::memory64(1 << 20).prefetchable())];
    let switch = |port: &Layout| {
        let card = Node::new(&card(&bars, Mps::ALL[0]));
        Node::new(&bridge(PortType::Upstream, same)).with(0, Node::new(port).with(0, card))
    };
    let root = |below| Node::new(&bridge(PortType::RootPort, same)).with(0, below);
    let less = bridge(PortType::Downstream, |header, _| (header.io, header.prefetchable) = (None, false));
    let all = bridge(PortType::Downstream, same);
    let mut machine = Machine::new([((1, 0), root(switch(&less))), ((2, 0), root(switch(&all)))]);
    let found = machine.run(Enumerator::new(settings()));
    let addresses =
        |name: &str| -> Vec<Option<u64>> { at(&found, name).bars.iter().map(|bar| bar.address).collect() };
    // The second card's 1 MiB is high; both cards' 4 KiB, and the first one's 1 MiB, are in windows of 1 MiB.
    assert_eq!(addresses("03:00.0"), [Some(0xC130_0000), None, Some(0xC120_0000)]);
    assert_eq!(addresses("06:00.0"), [Some(0xC140_0000), Some(0x1_F000), Some(0x123_4000_0000)]);
    check(
        &mut machine,
        &found,
        "02:00.0",
        &[(0x1C, 0), (0x20, 0xC130_C120), (0x24, 0), (0x28, 0), (0x2C, 0), (0x30, 0)],
    );
    // Nothing of I/O is below the first root port.
    check(&mut machine, &found, "00:01.0", &[(0x1C, 0x0000_01F1), (0x30, 0)]);
    assert_eq!(at(&found, "00:01.0").bridge.as_ref().unwrap().io, None);
    check(&mut machine, &found, "03:00.0", &[(0x04, 0x0010_0106), (0x14, 0x0000_0001)]);
}

#[test]
fn enumeration_waits_for_links_to_settle() {
    let settings = Settings { settle: Duration::from_ms(7), ..settings() };
    let Step::Ask(first) = Enumerator::new(settings).step(None) else { panic!("it has not begun") };
    assert_eq!(first, Request::Wait(Duration::from_ms(7)));
}

#[test]
fn problems_have_a_name_a_place_and_a_text() {
    let function = Bdf::new(3, 0, 1).unwrap();
    for (kind, token, exhaustion, text) in [
        (ProblemKind::NeverReady, "never-ready", false, "was not ready in time; left out"),
        (ProblemKind::NoAnswer, "no-answer", false, "did not answer; left out"),
        (
            ProblemKind::HeaderType(2),
            "header-type",
            false,
            "has header type 0x02, which should be 0 or 1; left out",
        ),
        (
            ProblemKind::CapabilityChain(0x44),
            "capability-chain",
            false,
            "has a broken chain of capabilities at 0x44; the rest of it is left out",
        ),
        (
            ProblemKind::BarSize { index: 6, mask: 0x30 },
            "bar-size",
            false,
            "BAR 6 keeps the address bits 0x0000000000000030 of ones, which is not a size; left out",
        ),
        (
            ProblemKind::NoAddress { index: 7, size: 1536, low_memory: true },
            "no-address",
            true,
            "no address below 4 GiB is left for VF BAR 0 of 1536 bytes; that space stays off",
        ),
        (
            ProblemKind::NoAddress { index: 2, size: 3 << 40, low_memory: false },
            "no-address",
            true,
            "no address is left for BAR 2 of 3 TiB; that space stays off",
        ),
        (
            ProblemKind::NoAddress { index: 0, size: 1 << 52, low_memory: false },
            "no-address",
            true,
            "no address is left for BAR 0 of 4096 TiB; that space stays off",
        ),
        (
            ProblemKind::NoAddress { index: 0, size: 64 << 20, low_memory: false },
            "no-address",
            true,
            "no address is left for BAR 0 of 64 MiB; that space stays off",
        ),
        (
            ProblemKind::BarUnkept { index: 0, found: 0x1000 },
            "bar-unkept",
            false,
            "BAR 0 reads 0x1000, not the address that was written; that space stays off",
        ),
        (
            ProblemKind::MsixTable,
            "msix-table",
            false,
            "the MSI-X table is not within a BAR; another kind of interrupt is used",
        ),
        (
            ProblemKind::NoBusNumber,
            "no-bus-number",
            true,
            "no bus number is left for the bus below; left out",
        ),
        (
            ProblemKind::VirtualIds { offset: 1, stride: 0 },
            "virtual-ids",
            false,
            "virtual functions at offset 1 with stride 0 have no IDs of their own; left out",
        ),
        (
            ProblemKind::NoVirtualBus,
            "no-virtual-bus",
            true,
            "no bus number is left for all its virtual functions; they are left out",
        ),
    ] {
        assert_eq!((kind.token(), kind.is_exhaustion()), (token, exhaustion));
        assert_eq!(Problem { function, kind }.to_string(), format!("03:00.1: {text}"));
    }
}
