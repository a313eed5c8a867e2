//! The meaning of registers: each bit that software can write, on and off.

use tlplab_cfgspace::*;
use tlplab_units::{Bdf, Duration, Generation, Mps, Mrrs, Width};

const PCIE: u16 = 0x40;

fn link() -> LinkPart {
    LinkPart::new(Generation::Gen4, Width::new(8).unwrap())
}

fn end_point(bars: [Option<Bar>; 6]) -> ConfigSpace {
    let header = Type0 { bars, rom: Some(1 << 16), ..Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00)) };
    let layout = Layout::new(header)
        .capability_at(PCIE, Pcie::new(PortType::EndPoint, link()))
        .capability_at(0x90, PowerManagement::default())
        .extended(SrIov { total: 3, first_offset: 0x101, stride: 2, device: 1, bars: [None; 6] });
    ConfigSpace::new(&layout).unwrap()
}

fn bridge(change: impl FnOnce(&mut Type1)) -> ConfigSpace {
    let mut header = Type1::new(Identity::new(0x71AB, 2, 0x06_04_00));
    header.io = Some(IoWindow::Bits32);
    change(&mut header);
    let pcie = Pcie {
        slot: Some(Slot { hot_plug: true, ..Slot::default() }),
        ..Pcie::new(PortType::RootPort, link())
    };
    ConfigSpace::new(&Layout::new(header).capability_at(PCIE, pcie)).unwrap()
}

#[test]
fn the_command_register() {
    let mut space = end_point([None; 6]);
    assert_eq!(space.command(), Command::default());
    type Change = fn(&mut Command);
    let cases: [(u32, Change); 6] = [
        (0x001, |command| command.io = true),
        (0x002, |command| command.memory = true),
        (0x004, |command| command.bus_master = true),
        (0x040, |command| command.parity_response = true),
        (0x100, |command| command.serr = true),
        (0x400, |command| command.intx_disable = true),
    ];
    for (bits, change) in cases {
        let mut expected = Command::default();
        change(&mut expected);
        space.write(0x04, 0b11, bits);
        assert_eq!(space.command(), expected, "{bits:#x}");
    }
}

#[test]
fn bars_decode_only_enabled_spaces() {
    let wide = Bar::memory64(1 << 33).prefetchable();
    let mut space =
        end_point([Some(Bar::io(32)), Some(wide), None, Some(Bar::memory32(1 << 12)), None, None]);
    for (register, value) in
        [(0x10, 0xD0E0), (0x14, 0xFFFF_FFFF), (0x18, 0x0000_0135), (0x1C, 0xABCD_E000), (0x30, 0x1234_0001)]
    {
        space.write(register, 0xF, value);
    }
    let window = |base, bar: Bar| Some(BarWindow { base, size: bar.size, kind: bar.kind });
    let io = window(0xD0E0, Bar::io(32));
    let memory = [window(0x134_0000_0000, wide), None, window(0xABCD_E000, Bar::memory32(1 << 12))];
    let rom = window(0x1234_0000, Bar::memory32(1 << 16));
    assert_eq!((space.bars(), space.rom()), ([None; 6], None));
    space.write(0x04, 0b11, 0x1);
    assert_eq!((space.bars(), space.rom()), ([io, None, None, None, None, None], None));
    space.write(0x04, 0b11, 0x2);
    assert_eq!((space.bars(), space.rom()), ([None, memory[0], None, memory[2], None, None], rom));
    space.write(0x30, 0xF, 0x1234_0000);
    assert_eq!(space.rom(), None, "its enable is off");
    // A bridge has two, and its ROM elsewhere; there may be none.
    let mut bridge = bridge(|header| {
        header.bars = [Some(Bar::memory32(1 << 14)), Some(Bar::memory32(1 << 20))];
        header.rom = Some(1 << 11);
    });
    for (register, value) in [(0x04, 0x2), (0x10, 0x8000_4000), (0x14, 0x8010_0000), (0x38, 0xFFFF_0801)] {
        bridge.write(register, 0xF, value);
    }
    let [first, second, ..] = bridge.bars();
    assert_eq!(first, window(0x8000_4000, Bar::memory32(1 << 14)));
    assert_eq!(second, window(0x8010_0000, Bar::memory32(1 << 20)));
    assert_eq!(bridge.rom(), window(0xFFFF_0800, Bar::memory32(1 << 11)));
    let mut none = self::bridge(|_| ());
    none.write(0x04, 0b11, 0x2);
    none.write(0x38, 0xF, u32::MAX);
    assert_eq!((none.bars(), none.rom()), ([None; 6], None));
}

#[test]
fn windows_of_a_bridge() {
    let mut space = bridge(|_| ());
    assert_eq!(end_point([None; 6]).bridge(), None);
    for (register, value) in [
        (0x04, 0x0007),
        (0x18, 0x0007_0301),
        (0x1C, 0x0000_50A0),
        (0x30, 0x0013_0012),
        (0x20, 0xC170_C120),
        (0x24, 0x0010_FFF0),
        (0x28, 0x0000_0123),
        (0x2C, 0x0000_0124),
        (0x3C, 0x0040_0000),
    ] {
        space.write(register, 0xF, value);
    }
    let all = Bridge {
        primary: 1,
        secondary: 3,
        subordinate: 7,
        io: Some(0x12_A000..=0x13_5FFF),
        memory: Some(0xC120_0000..=0xC17F_FFFF),
        prefetchable: Some(0x123_FFF0_0000..=0x124_001F_FFFF),
        bus_master: true,
        secondary_reset: true,
    };
    assert_eq!(space.bridge(), Some(all.clone()));
    for (bus, below) in [(0, false), (2, false), (3, true), (7, true), (8, false)] {
        assert_eq!(all.holds_bus(bus), below, "{bus}");
    }
    for (address, down) in [
        (0xC11F_FFFF, false),
        (0xC120_0000, true),
        (0xC17F_FFFF, true),
        (0xC180_0000, false),
        (0x123_FFF0_0000, true),
        (0x124_0020_0000, false),
    ] {
        assert_eq!(all.claims(address), down, "{address:#x}");
    }
    space.write(0x3C, 0xF, 0);
    for (command, io, memory) in [(0, false, false), (1, true, false), (2, false, true)] {
        space.write(0x04, 0b11, command);
        let now = space.bridge().unwrap();
        assert_eq!(
            (now.io.is_some(), now.memory.is_some(), now.prefetchable.is_some()),
            (io, memory, memory)
        );
        assert!(!now.bus_master && !now.secondary_reset);
    }
    // One granule; and closed, by one granule.
    space.write(0x04, 0b11, 0x3);
    for (values, open) in [
        ([0x1010, 0x0002_0002, 0xC120_C120, 0x0010_0010, 5, 5], true),
        ([0x1020, 0x0002_0002, 0xC110_C120, 0x0010_0020, 5, 5], false),
        ([0x1010, 0x0001_0002, 0xC110_C120, 0x0010_0010, 6, 5], false),
    ] {
        for (register, value) in [0x1C, 0x30, 0x20, 0x24, 0x28, 0x2C].into_iter().zip(values) {
            space.write(register, if register == 0x1C { 0b11 } else { 0xF }, value);
        }
        let now = space.bridge().unwrap();
        assert_eq!(
            [now.io.is_some(), now.memory.is_some(), now.prefetchable.is_some()],
            [open; 3],
            "{values:x?}"
        );
    }
    // One that forwards neither I/O nor prefetchable memory, and before enumeration no bus.
    let mut less = bridge(|header| (header.io, header.prefetchable) = (None, false));
    less.write(0x04, 0b11, 0x3);
    let now = less.bridge().unwrap();
    assert_eq!((now.io.clone(), now.prefetchable.clone()), (None, None));
    assert_eq!(now.memory, Some(0..=0xF_FFFF));
    assert!(!now.holds_bus(0));
}

#[test]
fn the_pci_express_registers() {
    let mut space = bridge(|_| ());
    // Device Control, Link Control, Slot Control, Root Control, Device Control 2, Link Control 2.
    let registers = [0x08, 0x10, 0x18, 0x1C, 0x28, 0x30].map(|register| PCIE + register);
    let mut write = |values: [u32; 6]| {
        registers
            .into_iter()
            .zip(values)
            .for_each(|(register, value)| _ = space.write(register, 0b11, value));
        space.pcie().unwrap()
    };
    let off = PcieView {
        port: Some(PortType::RootPort),
        mps: Mps::ALL[0],
        mrrs: Mrrs::ALL[0],
        tag_bits: 5,
        relaxed_ordering: false,
        no_snoop: false,
        id_ordering: false,
        completion_timeout: Some(Duration::from_ms(50)),
        ari_forwarding: false,
        retry_visibility: false,
        read_boundary_128: false,
        link_disabled: false,
        target_speed: 0,
        hot_plug_interrupt: false,
    };
    assert_eq!(write([0; 6]), off);
    type Change = fn(&mut PcieView);
    let cases: [([u32; 6], Change); 14] = [
        ([0x0040, 0, 0, 0, 0, 0], |view| view.mps = Mps::ALL[2]),
        ([0x00E0, 0, 0, 0, 0, 0], |view| view.mps = Mps::ALL[5]),
        ([0x5000, 0, 0, 0, 0, 0], |view| view.mrrs = Mrrs::ALL[5]),
        ([0x7000, 0, 0, 0, 0, 0], |view| view.mrrs = Mrrs::ALL[5]),
        ([0x0100, 0, 0, 0, 0, 0], |view| view.tag_bits = 8),
        ([0x0100, 0, 0, 0, 0x1000, 0], |view| view.tag_bits = 10),
        ([0x0010, 0, 0, 0, 0, 0], |view| view.relaxed_ordering = true),
        ([0x0800, 0, 0, 0, 0, 0], |view| view.no_snoop = true),
        ([0, 0x0010, 0, 0, 0, 0], |view| view.link_disabled = true),
        ([0, 0, 0x0020, 0, 0, 0], |view| view.hot_plug_interrupt = true),
        ([0, 0, 0, 0x0010, 0, 0], |view| view.retry_visibility = true),
        ([0, 0, 0, 0, 0x0100, 0], |view| view.id_ordering = true),
        ([0, 0, 0, 0, 0x0020, 0], |view| view.ari_forwarding = true),
        ([0, 0, 0, 0, 0, 0x0005], |view| view.target_speed = 5),
    ];
    for (values, change) in cases {
        let mut expected = off;
        change(&mut expected);
        assert_eq!(write(values), expected, "{values:x?}");
    }
    let us = Duration::from_us;
    let ranges = [
        (0b0001, us(100)),
        (0b0010, us(10_000)),
        (0b0101, us(55_000)),
        (0b0110, us(210_000)),
        (0b1001, us(900_000)),
        (0b1010, us(3_500_000)),
        (0b1101, us(13_000_000)),
        (0b1110, us(64_000_000)),
        (0b0011, us(50_000)),
        (0b1111, us(50_000)),
    ];
    for (bits, limit) in ranges {
        assert_eq!(write([0, 0, 0, 0, bits, 0]).completion_timeout, Some(limit), "{bits:#b}");
        assert_eq!(write([0, 0, 0, 0, bits | 0x10, 0]).completion_timeout, None, "switched off");
    }
    let of = (Generation::Gen4, Width::new(8).unwrap());
    assert_eq!(space.link(), Some(LinkView { capable: of, current: of }));
    space.set_link(LinkState {
        speed: Generation::Gen1,
        width: Width::ALL[0],
        active: true,
        training: false,
    });
    assert_eq!(space.link().unwrap().current, (Generation::Gen1, Width::ALL[0]));
    // Registers that a structure does not have are zeros, whatever is behind it.
    let old = Pcie { version: PcieVersion::V1, ..Pcie::new(PortType::EndPoint, link()) };
    let layout = Layout::new(Type0::new(Identity::new(0x71AB, 1, 0)))
        .capability_at(PCIE, old)
        .capability_at(PCIE + 0x14, Capability::Vendor(vec![0xFF; 40]));
    let view = ConfigSpace::new(&layout).unwrap().pcie().unwrap();
    assert!(
        !view.hot_plug_interrupt && !view.retry_visibility && !view.ari_forwarding && view.target_speed == 0
    );
    assert_eq!((view.completion_timeout, view.tag_bits), (Some(us(50_000)), 5));
    // A downstream port's ends before Root Control; behind it, where that would be, is MSI-X, whose ID has the bit of retry visibility.
    let header = Type1 {
        bars: [Some(Bar::memory32(1 << 12)), None],
        ..Type1::new(Identity::new(0x71AB, 2, 0x06_04_00))
    };
    let old = Pcie { version: PcieVersion::V1, ..Pcie::new(PortType::Downstream, link()) };
    let layout = Layout::new(header)
        .capability_at(PCIE, old)
        .capability_at(PCIE + 0x1C, MsiX { vectors: 1, table: (0, 0), pending: (0, 0x800) });
    assert!(!ConfigSpace::new(&layout).unwrap().pcie().unwrap().retry_visibility);
    let none = ConfigSpace::new(&Layout::new(Type0::new(Identity::new(0x71AB, 1, 0)))).unwrap();
    assert_eq!((none.pcie(), none.link(), none.power_state()), (None, None, PowerState::D0));
}

#[test]
fn sizes_that_firmware_leaves_change_nothing_else() {
    for (mps, mrrs, written) in [(0, 0, 0x0000), (1, 2, 0x2020), (2, 5, 0x5040), (5, 1, 0x10A0)] {
        let mut space = end_point([None; 6]);
        space.write(PCIE + 0x08, 0b11, 0x7FFF);
        let before = *space.bytes();
        space.set_request_sizes(Mps::ALL[mps], Mrrs::ALL[mrrs]);
        let view = space.pcie().unwrap();
        assert_eq!((view.mps, view.mrrs), (Mps::ALL[mps], Mrrs::ALL[mrrs]));
        let at = usize::from(PCIE) + 8;
        let mut expected = before;
        let control = u16::from_le_bytes([before[at], before[at + 1]]) & !0x70E0 | written;
        expected[at..at + 2].copy_from_slice(&control.to_le_bytes());
        assert_eq!(*space.bytes(), expected);
    }
    // A function without the capability has none.
    let mut plain = ConfigSpace::new(&Layout::new(Type0::new(Identity::new(1, 2, 3)))).unwrap();
    let before = *plain.bytes();
    plain.set_request_sizes(Mps::ALL[1], Mrrs::ALL[1]);
    assert_eq!(*plain.bytes(), before);
}

#[test]
fn power_states_and_virtual_functions() {
    let mut space = end_point([None; 6]);
    for (bits, state) in
        [(1, PowerState::D1), (2, PowerState::D2), (3, PowerState::D3Hot), (0, PowerState::D0)]
    {
        space.write(0x94, 0b1, bits);
        assert_eq!(space.power_state(), state);
    }
    let own = Bdf::new(1, 0, 0).unwrap();
    let mut ids = |control, count| -> Vec<String> {
        space.write(0x108, 0b11, control);
        space.write(0x110, 0b11, count);
        space.virtual_functions(own).map(|bdf| bdf.to_string()).collect()
    };
    assert_eq!(ids(0x0, 3), [""; 0]);
    assert_eq!(ids(0x8, 3), [""; 0], "memory alone");
    assert_eq!(ids(0x1, 3), ["02:00.1", "02:00.3", "02:00.5"]);
    assert_eq!(ids(0x1, 0), [""; 0]);
}
