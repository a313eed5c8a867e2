//! Registers bit by bit, as PCIe 5.0 §7.5 to §7.9 and §9.3.3 have them: their values after a reset, and the behaviour of their bits.

use crate::*;
use tlplab_units::{Generation, Mps, Width};

/// A register's offset in its piece; its value after a reset; the bits that are RW, RW1C, hardware's until a reset, sticky, and kept in
/// a function-level reset.
type Register = (u16, u32, u32, u32, u32, u32, u32);

fn check(layout: &Layout, base: u16, registers: &[Register]) {
    let space = ConfigSpace::new(layout).unwrap();
    for (offset, expected) in registers.iter().map(|register| (base + register.0, *register)) {
        let rules = space.rules[usize::from(offset / 4)];
        let (initial, writable, clearable) = (space.read(offset), rules.writable, rules.clearable);
        let found = (expected.0, initial, writable, clearable, rules.logged, rules.sticky, rules.kept);
        assert_eq!(found, expected, "{offset:#x}: found {found:#x?}, expected {expected:#x?}");
        assert_eq!(rules.initial, initial);
    }
}

fn header() -> Type0 {
    Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00))
}

fn with(capability: impl Into<Capability>) -> Layout {
    Layout::new(header()).capability_at(0x40, capability)
}

fn extended(capability: impl Into<ExtendedCapability>) -> Layout {
    Layout::new(header()).extended(capability)
}

#[test]
fn the_pci_express_capability_of_a_root_port() {
    let link = LinkPart { port: 3, ..LinkPart::new(Generation::Gen4, Width::new(8).unwrap()) };
    let slot = Slot { number: 0x1FFF, hot_plug: true, surprise: true, power_limit: 75 };
    let port = Pcie {
        slot: Some(slot),
        interrupt_vector: 0x2B, // of which the register has five bits
        ltr: true,
        read_boundary_128: true,
        ..Pcie::new(PortType::RootPort, link)
    };
    let layout = Layout::new(Type1::new(Identity::new(0x71AB, 1, 0x06_04_00))).capability_at(0x40, port);
    check(
        &layout,
        0x40,
        &[
            // Version 2, root port, slot, vector 11.
            (0x00, 0x1742_0010, 0, 0, 0, 0, 0),
            // 512 B, 8 bits of tag, role-based errors.
            (0x04, 0x0000_8022, 0, 0, 0, 0, 0),
            // Relaxed ordering, no snoop, reads of 512 B. The payload size is kept.
            (0x08, 0x0000_2810, 0x0000_79FF, 0x000F_0000, 0, 0, 0x0000_00E0),
            // Gen4, eight lanes, surprise down and link active reported, ASPM optional, port 3.
            (0x0C, 0x0358_0084, 0, 0, 0, 0, 0),
            // The boundary of 128 B is the root port's own; ASPM, disable, common clock, extended synch.
            (0x10, 0x1084_0008, 0x0000_00D3, 0, 0, 0, 0x0000_00CB),
            // Surprise, hot plug, 75 W, no command completed, slot 8191.
            (0x14, 0xFFFC_25E0, 0, 0, 0, 0, 0),
            // Indicators off; presence, hot-plug interrupt and link changes enabled, and told.
            (0x18, 0x0000_03C0, 0x0000_1028, 0x0108_0000, 0, 0, 0),
            (0x1C, 0x0001_0000, 0x0000_001F, 0, 0, 0, 0),
            (0x20, 0, 0, 0x0001_0000, 0, 0, 0),
            // All ranges of timeouts, ARI forwarding, LTR, 10 bits of tag both ways.
            (0x24, 0x0003_083F, 0, 0, 0, 0, 0),
            (0x28, 0, 0x0000_173F, 0, 0, 0, 0),
            // 2.5 to 16 GT/s.
            (0x2C, 0x0000_001E, 0, 0, 0, 0, 0),
            (0x30, 0x0000_0004, 0x0000_002F, 0, 0, 0x0000_002F, 0),
            (0x34, 0, 0, 0, 0, 0, 0),
            (0x38, 0, 0, 0, 0, 0, 0),
        ],
    );
}

#[test]
fn the_pci_express_capability_of_others() {
    let link = LinkPart::new(Generation::Gen1, Width::ALL[0]);
    let card = Pcie {
        version: PcieVersion::V1,
        mps: Mps::ALL[0],
        extended_tag: false,
        ..Pcie::new(PortType::EndPoint, link)
    };
    check(
        &with(card),
        0x40,
        &[
            (0x00, 0x0001_0010, 0, 0, 0, 0, 0),
            // 128 B, role-based errors, function-level reset.
            (0x04, 0x1000_8000, 0, 0, 0, 0, 0),
            (0x08, 0x0000_2810, 0x0000_78FF, 0x000F_0000, 0, 0, 0x0000_00E0),
            // An end point reports no link below it. It is told its root complex's boundary.
            (0x0C, 0x0040_0011, 0, 0, 0, 0, 0),
            (0x10, 0x1011_0000, 0x0000_00CB, 0, 0, 0, 0x0000_00CB),
            (0x14, 0, 0, 0, 0, 0, 0),
        ],
    );
    let plain =
        Pcie { ten_bit_completer: false, ten_bit_requester: false, ..Pcie::new(PortType::EndPoint, link) };
    check(
        &with(plain),
        0x40,
        &[
            (0x24, 0x0000_001F, 0, 0, 0, 0, 0),
            (0x28, 0, 0x0000_031F, 0, 0, 0, 0),
            (0x2C, 0x0000_0002, 0, 0, 0, 0, 0),
        ],
    );
    let quiet = LinkPart { surprise_down_reporting: false, ..link };
    let slot = Slot { number: 1, hot_plug: false, surprise: false, power_limit: 1 };
    let below = Pcie { slot: Some(slot), ..Pcie::new(PortType::Downstream, quiet) };
    check(
        &with(below),
        0x40,
        &[
            (0x0C, 0x0050_0011, 0, 0, 0, 0, 0),
            (0x10, 0x1011_0000, 0x0000_00D3, 0, 0, 0, 0x0000_00CB),
            (0x14, 0x000C_0080, 0, 0, 0, 0, 0),
            (0x18, 0x0000_03C0, 0, 0, 0, 0, 0),
            (0x1C, 0, 0, 0, 0, 0, 0),
        ],
    );
    let upstream = Pcie::new(PortType::Upstream, link);
    check(&with(upstream), 0x40, &[(0x10, 0x1011_0000, 0x0000_00C3, 0, 0, 0, 0x0000_00CB)]);
    let bridge = Pcie::new(PortType::BridgeToPci, link);
    check(&with(bridge), 0x40, &[(0x10, 0x1011_0000, 0x0000_00CB, 0, 0, 0, 0x0000_00CB)]);
}

#[test]
fn power_management() {
    // D1; wakes from D0 and D3cold, whose bits survive.
    check(
        &with(PowerManagement { d1: true, d2: false, wakes_from: 0b1_0001 }),
        0x40,
        &[
            (0x00, 0x8A03_0001, 0, 0, 0, 0, 0),
            (0x04, 0x0000_0008, 0x0000_0103, 0x0000_8000, 0, 0x0000_8100, 0),
        ],
    );
    // D2; wakes from all but D3cold. The field has five bits.
    check(
        &with(PowerManagement { d1: false, d2: true, wakes_from: 0x2F }),
        0x40,
        &[(0x00, 0x7C03_0001, 0, 0, 0, 0, 0), (0x04, 0x0000_0008, 0x0000_0103, 0x0000_8000, 0, 0, 0)],
    );
    check(&with(PowerManagement::default()), 0x40, &[(0x04, 0x0000_0008, 0x0000_0003, 0, 0, 0, 0)]);
}

#[test]
fn msi_and_msix() {
    check(
        &with(Msi { vectors: 8, wide: true, masking: true }),
        0x40,
        &[
            (0x00, 0x0186_0005, 0x0071_0000, 0, 0, 0, 0),
            (0x04, 0, 0xFFFF_FFFC, 0, 0, 0, 0),
            (0x08, 0, 0xFFFF_FFFF, 0, 0, 0, 0),
            (0x0C, 0, 0x0000_FFFF, 0, 0, 0, 0),
            (0x10, 0, 0x0000_00FF, 0, 0, 0, 0),
            (0x14, 0, 0, 0, 0x0000_00FF, 0, 0),
        ],
    );
    check(
        &with(Msi { vectors: 32, wide: false, masking: true }),
        0x40,
        &[
            (0x00, 0x010A_0005, 0x0071_0000, 0, 0, 0, 0),
            (0x08, 0, 0x0000_FFFF, 0, 0, 0, 0),
            (0x0C, 0, 0xFFFF_FFFF, 0, 0, 0, 0),
            (0x10, 0, 0, 0, 0xFFFF_FFFF, 0, 0),
        ],
    );
    let bars = [None, None, Some(Bar::memory32(1 << 16)), Some(Bar::memory32(1 << 16)), None, None];
    let table = MsiX { vectors: 2048, table: (2, 0x18), pending: (3, 0x9008) };
    let layout = Layout::new(Type0 { bars, ..header() }).capability_at(0x40, table);
    check(
        &layout,
        0x40,
        &[
            (0x00, 0x07FF_0011, 0xC000_0000, 0, 0, 0, 0),
            (0x04, 0x0000_001A, 0, 0, 0, 0, 0),
            (0x08, 0x0000_900B, 0, 0, 0, 0, 0),
        ],
    );
    assert_eq!(ConfigSpace::new(&layout).unwrap().msix(), Some(table));
}

#[test]
fn headers() {
    let identity = Identity { revision: 0xA5, ..Identity::new(0x8086, 0x10D3, 0xFF_FF_FF) };
    let bars = [
        Some(Bar::memory32(1 << 31)),
        Some(Bar::io(256)),
        Some(Bar::memory64(1 << 40).prefetchable()),
        None,
        Some(Bar::memory32(16).prefetchable()),
        Some(Bar::memory32(64)),
    ];
    let card = Type0 {
        bars,
        subsystem: (0x1234, 0x5678),
        rom: Some(1 << 24),
        interrupt_pin: 4,
        multi_function: true,
        ..Type0::new(identity)
    };
    assert!(!Header::from(card.clone()).is_bridge());
    check(
        &Layout::new(card),
        0,
        &[
            (0x00, 0x10D3_8086, 0, 0, 0, 0, 0),
            (0x04, 0, 0x0000_0547, 0xF900_0000, 0x0008_0000, 0, 0),
            (0x08, 0xFFFF_FFA5, 0, 0, 0, 0, 0),
            (0x0C, 0x0080_0000, 0x0000_00FF, 0, 0, 0, 0),
            (0x10, 0x0000_0000, 0x8000_0000, 0, 0, 0, 0),
            (0x14, 0x0000_0001, 0xFFFF_FF00, 0, 0, 0, 0),
            (0x18, 0x0000_000C, 0x0000_0000, 0, 0, 0, 0),
            (0x1C, 0, 0xFFFF_FF00, 0, 0, 0, 0),
            (0x20, 0x0000_0008, 0xFFFF_FFF0, 0, 0, 0, 0),
            (0x24, 0x0000_0000, 0xFFFF_FFC0, 0, 0, 0, 0),
            (0x2C, 0x5678_1234, 0, 0, 0, 0, 0),
            (0x30, 0, 0xFF00_0001, 0, 0, 0, 0),
            (0x34, 0, 0, 0, 0, 0, 0),
            (0x3C, 0x0000_0400, 0x0000_00FF, 0, 0, 0, 0),
        ],
    );
    let bridge = Type1 { io: Some(IoWindow::Bits32), rom: Some(1 << 11), ..Type1::new(identity) };
    assert!(Header::from(bridge.clone()).is_bridge());
    check(
        &Layout::new(bridge),
        0,
        &[
            (0x0C, 0x0001_0000, 0x0000_00FF, 0, 0, 0, 0),
            (0x18, 0, 0x00FF_FFFF, 0, 0, 0, 0),
            (0x1C, 0x0000_0101, 0x0000_F0F0, 0xF900_0000, 0, 0, 0),
            (0x20, 0, 0xFFF0_FFF0, 0, 0, 0, 0),
            (0x24, 0x0001_0001, 0xFFF0_FFF0, 0, 0, 0, 0),
            (0x28, 0, 0xFFFF_FFFF, 0, 0, 0, 0),
            (0x2C, 0, 0xFFFF_FFFF, 0, 0, 0, 0),
            (0x30, 0, 0xFFFF_FFFF, 0, 0, 0, 0),
            (0x38, 0, 0xFFFF_F801, 0, 0, 0, 0),
            (0x3C, 0, 0x005F_00FF, 0, 0, 0, 0),
        ],
    );
    let plain = Type1 { io: None, prefetchable: false, ..Type1::new(identity) };
    check(
        &Layout::new(plain),
        0,
        &[
            (0x1C, 0, 0, 0xF900_0000, 0, 0, 0),
            (0x24, 0, 0, 0, 0, 0, 0),
            (0x28, 0, 0, 0, 0, 0, 0),
            (0x30, 0, 0, 0, 0, 0, 0),
        ],
    );
}

#[test]
fn extended_capabilities() {
    // The next capability is 12 bytes on.
    let pair =
        extended(ExtendedCapability::SerialNumber(0x0123_4567_89AB_CDEF)).extended(ExtendedCapability::Ltr);
    check(
        &pair,
        0x100,
        &[
            (0x00, 0x10C1_0003, 0, 0, 0, 0, 0),
            (0x04, 0x89AB_CDEF, 0, 0, 0, 0, 0),
            (0x08, 0x0123_4567, 0, 0, 0, 0, 0),
            (0x0C, 0x0001_0018, 0, 0, 0, 0, 0),
            (0x10, 0, 0x1FFF_1FFF, 0, 0, 0, 0),
        ],
    );
    check(&extended(Aer::default()), 0x100, &[(0x00, 0x0002_0001, 0, 0, 0, 0, 0)]);
    check(
        &extended(Acs::new(AcsControls::from_bits(0x5F))),
        0x100,
        &[(0x00, 0x0001_000D, 0, 0, 0, 0, 0), (0x04, 0x0000_005F, 0x005F_0000, 0, 0, 0, 0)],
    );
    // A switch with 32 downstream ports: their numbers go up to 32.
    let acs = Acs {
        enabled: AcsControls::EGRESS_CONTROL | AcsControls::UPSTREAM_FORWARDING,
        ports: 33,
        forbidden: 1 << 32 | 1 << 3,
        ..Acs::new(AcsControls::ALL)
    };
    check(
        &extended(acs),
        0x100,
        &[
            (0x00, 0x0001_000D, 0, 0, 0, 0, 0),
            (0x04, 0x0030_217F, 0x007F_0000, 0, 0, 0, 0),
            (0x08, 0x0000_0008, 0xFFFF_FFFF, 0, 0, 0, 0),
            (0x0C, 0x0000_0001, 0x0000_0001, 0, 0, 0, 0),
        ],
    );
    check(
        &extended(ExtendedCapability::Ari { next_function: 5 }),
        0x100,
        &[(0x00, 0x0001_000E, 0, 0, 0, 0, 0), (0x04, 0x0000_0500, 0, 0, 0, 0, 0)],
    );
    // 32 invalidations are written as 0.
    for (queue_depth, register) in [(1, 0x21), (31, 0x3F), (32, 0x20)] {
        check(
            &extended(ExtendedCapability::Ats { queue_depth }),
            0x100,
            &[(0x00, 0x0001_000F, 0, 0, 0, 0, 0), (0x04, register, 0x801F_0000, 0, 0, 0, 0)],
        );
    }
    check(
        &extended(ExtendedCapability::Pasid { width: 20 }),
        0x100,
        &[(0x00, 0x0001_001B, 0, 0, 0, 0, 0), (0x04, 0x0000_1406, 0x0007_0000, 0, 0, 0, 0)],
    );
    // Three lanes take six bytes, and with padding eight.
    let lanes = extended(ExtendedCapability::SecondaryPcie { lanes: 3 }).extended(ExtendedCapability::Ltr);
    check(
        &lanes,
        0x100,
        &[
            (0x00, 0x1141_0019, 0, 0, 0, 0, 0),
            (0x04, 0, 0x0000_0003, 0, 0, 0, 0),
            (0x08, 0, 0, 0x0000_0007, 0, 0xFFFF_FFFF, 0),
            (0x0C, 0x7F7F_7F7F, 0, 0, 0, 0, 0),
            (0x10, 0x0000_7F7F, 0, 0, 0, 0, 0),
            (0x14, 0x0001_0018, 0, 0, 0, 0, 0),
        ],
    );
    // 16 take 32.
    let lanes = extended(ExtendedCapability::SecondaryPcie { lanes: 16 }).extended(ExtendedCapability::Ltr);
    check(
        &lanes,
        0x100,
        &[
            (0x00, 0x12C1_0019, 0, 0, 0, 0, 0),
            (0x08, 0, 0, 0x0000_FFFF, 0, 0xFFFF_FFFF, 0),
            (0x28, 0x7F7F_7F7F, 0, 0, 0, 0, 0),
            (0x2C, 0x0001_0018, 0, 0, 0, 0, 0),
        ],
    );
    let own = ExtendedCapability::VendorSpecific { id: 0xABCD, revision: 15, bytes: vec![1, 2, 3, 4, 5] };
    check(
        &extended(own).extended(ExtendedCapability::Ltr),
        0x100,
        &[
            (0x00, 0x1101_000B, 0, 0, 0, 0, 0),
            (0x04, 0x00DF_ABCD, 0, 0, 0, 0, 0),
            (0x08, 0x0403_0201, 0, 0, 0, 0, 0),
            (0x0C, 0x0000_0005, 0, 0, 0, 0, 0),
        ],
    );
}

#[test]
fn resizable_bars_and_virtual_functions() {
    let bars = [Some(Bar::memory32(1 << 20)), None, Some(Bar::memory64(1 << 47)), None, None, None];
    let resizable = |bar, sizes, size| Resizable { bar, sizes, size };
    let pair = ResizableBar { bars: vec![resizable(0, 0b11, 1), resizable(2, 1 << 27, 27)] };
    let layout = Layout::new(Type0 { bars, ..header() }).extended(pair);
    check(
        &layout,
        0x100,
        &[
            (0x00, 0x0001_0015, 0, 0, 0, 0, 0),
            (0x04, 0x0000_0030, 0, 0, 0, 0, 0),
            (0x08, 0x0000_0140, 0x0000_3F00, 0, 0, 0, 0),
            (0x0C, 0x8000_0000, 0, 0, 0, 0, 0),
            (0x10, 0x0000_1B42, 0x0000_3F00, 0, 0, 0, 0),
        ],
    );
    let bars = [
        Some(Bar::memory32(4096)),
        None,
        Some(Bar::memory64(1 << 33)),
        None,
        None,
        Some(Bar::memory32(1 << 31)),
    ];
    let virtual_functions = SrIov { total: 1, first_offset: 0x10, stride: 2, device: 0xBEEF, bars };
    check(
        &extended(virtual_functions),
        0x100,
        &[
            (0x00, 0x0001_0010, 0, 0, 0, 0, 0),
            (0x04, 0, 0, 0, 0, 0, 0),
            (0x08, 0, 0x0000_0019, 0, 0, 0, 0),
            (0x0C, 0x0001_0001, 0, 0, 0, 0, 0),
            (0x10, 0, 0x0000_FFFF, 0, 0, 0, 0),
            (0x14, 0x0002_0010, 0, 0, 0, 0, 0),
            (0x18, 0xBEEF_0000, 0, 0, 0, 0, 0),
            (0x1C, 0x0000_0553, 0, 0, 0, 0, 0),
            (0x20, 0x0000_0001, 0x0000_0553, 0, 0, 0, 0),
            (0x24, 0, 0xFFFF_F000, 0, 0, 0, 0),
            (0x2C, 0x0000_0004, 0, 0, 0, 0, 0),
            (0x30, 0, 0xFFFF_FFFE, 0, 0, 0, 0),
            (0x38, 0, 0x8000_0000, 0, 0, 0, 0),
        ],
    );
}

fn complaint(layout: &Layout) -> String {
    ConfigSpace::new(layout).map_or_else(|error| error.to_string(), |_| String::new())
}

/// The largest and the smallest that a field holds, and values one beyond.
#[test]
fn layouts_refuse_values_beyond_the_limits_of_a_field() {
    let with_bars = |bars| Layout::new(Type0 { bars, ..header() });
    let one = |bar| with_bars([Some(bar), None, None, None, None, None]);
    let last = |bar| with_bars([None, None, None, None, None, Some(bar)]);
    let rom = |bytes| Layout::new(Type0 { rom: Some(bytes), ..header() });
    let class = |class| Layout::new(Type0::new(Identity::new(0x71AB, 1, class)));
    let slot = |number| {
        let slot = Slot { number, ..Slot::default() };
        let link = LinkPart::new(Generation::Gen1, Width::ALL[0]);
        with(Pcie { slot: Some(slot), ..Pcie::new(PortType::Downstream, link) })
    };
    let msi = |vectors| with(Msi { vectors, wide: false, masking: false });
    let own = |revision| extended(ExtendedCapability::VendorSpecific { id: 1, revision, bytes: vec![] });
    let memory = [Some(Bar::memory32(1 << 20)), None, None, None, None, Some(Bar::memory32(1 << 20))];
    let msix = |bar, table, pending| {
        let part = MsiX { vectors: 64, table: (bar, table), pending: (bar, pending) };
        with_bars(memory).capability(part)
    };
    let resizable = |bar, sizes, size| {
        with_bars(memory).extended(ResizableBar { bars: vec![Resizable { bar, sizes, size }] })
    };
    let functions = |total, bars| extended(SrIov { total, first_offset: 1, stride: 1, device: 1, bars });
    let nth = |index: usize, bar| {
        let mut bars = [None; 6];
        bars[index] = Some(bar);
        functions(1, bars)
    };
    let wide = Bar::memory64(4096);
    let right = [
        class(0xFF_FFFF),
        slot(8191),
        msi(1),
        msi(32),
        own(15),
        rom(1 << 11),
        rom(1 << 24),
        one(Bar::io(4)),
        one(Bar::io(256)),
        one(Bar::memory32(16)),
        one(Bar::memory32(1 << 31)),
        one(Bar::memory64(1 << 63)),
        // Right behind each other, in either order.
        msix(5, 0, 0x400),
        msix(5, 8, 0),
        msix(0, 0x1000, 0xFF8),
        resizable(5, 0b1, 0),
        resizable(0, 1 << 11, 11),
        functions(1, [None; 6]),
        nth(5, Bar::memory32(4096)),
        nth(0, Bar::memory32(1 << 31)),
        nth(4, Bar::memory64(1 << 63)),
        functions(1, [Some(wide), None, Some(wide), None, Some(wide), None]),
    ]; // fmt: skip
    for (number, layout) in right.iter().enumerate() {
        assert_eq!(complaint(layout), "", "{number}");
    }
    let wrong = [
        (class(1 << 24), "header: class is 0x1000000"),
        (slot(8192), "PCI Express: slot number is 0x2000"),
        (msi(0), "MSI: vectors is 0x0"),
        (msi(3), "MSI: vectors is 0x3"),
        (msi(64), "MSI: vectors is 0x40"),
        (own(16), "vendor-specific extended: revision is 0x10"),
        (rom(1 << 10), "header: expansion ROM size is 0x400"),
        (rom(3 << 11), "header: expansion ROM size is 0x1800"),
        (rom(1 << 25), "header: expansion ROM size is 0x2000000"),
        (one(Bar::io(2)), "header: BAR size is 0x2"),
        (one(Bar::io(512)), "header: BAR size is 0x200"),
        (one(Bar::io(24)), "header: BAR size is 0x18"),
        (one(Bar::memory32(8)), "header: BAR size is 0x8"),
        (one(Bar::memory32(1 << 32)), "header: BAR size is 0x100000000"),
        (last(Bar::memory64(4096)), "header: BAR is 0x5"),
        (with_bars([Some(wide), Some(wide), None, None, None, None]), "header: BAR is 0x1"),
        (msix(5, 0, 0x3F8), "MSI-X: the bytes 0x0 to 0x400 of BAR 5"),
        (msix(5, 0, 0), "MSI-X: the bytes 0x0 to 0x400 of BAR 5"),
        (msix(0, 0x1000, 0x13F8), "MSI-X: the bytes 0x1000 to 0x1400 of BAR 0"),
        (msix(6, 0, 0x400), "MSI-X: BAR is 0x6"),
        (resizable(6, 0b1, 0), "resizable BAR: BAR is 0x6"),
        (resizable(0, 0b1, 1), "resizable BAR: size is 0x1"),
        (resizable(0, u32::MAX, 28), "resizable BAR: size is 0x1c"),
        (functions(0, [None; 6]), "SR-IOV: total functions is 0x0"),
        (nth(5, wide), "SR-IOV: VF BAR is 0x5"),
        (
            functions(1, [Some(wide), Some(Bar::memory32(4096)), None, None, None, None]),
            "SR-IOV: VF BAR is 0x1",
        ),
        (nth(0, Bar::memory32(2048)), "SR-IOV: VF BAR size is 0x800"),
        (nth(0, Bar::memory32(12288)), "SR-IOV: VF BAR size is 0x3000"),
        (nth(0, Bar::memory32(1 << 32)), "SR-IOV: VF BAR size is 0x100000000"),
        (nth(0, Bar::io(4096)), "SR-IOV: VF BAR size is 0x1000"),
    ]; // fmt: skip
    for (layout, expected) in wrong {
        let found = complaint(&layout);
        assert!(
            found.starts_with(&format!("{expected};")) || found.starts_with(&format!("{expected},")),
            "{found}"
        );
    }
}

#[test]
fn pieces_are_put_where_there_is_room() {
    let vendor = |bytes: usize| Capability::Vendor(vec![0; bytes]);
    // Behind what has a place, and right before it where it fits.
    let layout = with(vendor(1)).capability_at(0x60, vendor(1)).capability(vendor(25)).capability(vendor(1));
    let space = ConfigSpace::new(&layout).unwrap();
    let mut chain = vec![(space.read(0x34) & 0xFF) as u16];
    while let next @ 1.. = (space.read(*chain.last().unwrap()) >> 8 & 0xFF) as u16 {
        chain.push(next);
    }
    assert_eq!(chain, [0x40, 0x60, 0x44, 0x64]);
    let beyond = Layout::new(header()).capability_at(0xFC, vendor(2));
    assert_eq!(
        complaint(&beyond),
        "vendor specific (8 bytes) does not fit at 0xfc; expected a multiple of 4 from 0x40 to 0xfc, or from 0x100 for an extended capability"
    );
    let full = with(vendor(180)).capability(vendor(100));
    assert_eq!(complaint(&full), "vendor specific (104 bytes) does not fit behind the others");
    let late = Layout::new(header()).extended_at(0x104, ExtendedCapability::Ltr);
    assert_eq!(complaint(&late), "LTR is at 0x104, but the first extended capability must be at 0x100");
}
