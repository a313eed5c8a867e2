//! Registers that do something: sizes of BARs, requests in control registers, and the state of links and slots that hardware shows.

use tlplab_cfgspace::*;
use tlplab_units::{Generation, Width};

const PCIE: u16 = 0x40;

fn link() -> LinkPart {
    LinkPart::new(Generation::Gen4, Width::ALL[0])
}

#[test]
fn a_bar_takes_the_sizes_it_can() {
    let mut header = Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00));
    header.bars[2] = Some(Bar::memory64(1 << 20).prefetchable());
    // 1 MiB, 4 MiB and 16 GiB.
    let resizable = Resizable { bar: 2, sizes: 1 << 14 | 0b101, size: 0 };
    let layout = Layout::new(header).extended(ResizableBar { bars: vec![resizable] });
    let mut space = ConfigSpace::new(&layout).unwrap();
    space.write(0x18, 0xF, 0x1230_0000);
    space.write(0x1C, 0xF, 0x45);
    space.write(0x04, 0b1, 0x2);
    let bar = |space: &ConfigSpace| space.bars()[2].map(|bar| (bar.base, bar.size));
    assert_eq!(bar(&space), Some((0x45_1230_0000, 1 << 20)));
    let mut resize = |size: u32| (space.write(0x108, 0b10, size << 8).bars, bar(&space));
    assert_eq!(resize(2), (true, Some((0x45_1200_0000, 4 << 20))));
    assert_eq!(resize(14), (true, Some((0x44_0000_0000, 16 << 30))));
    for other in [1, 13, 15, 28, 63] {
        assert_eq!(resize(other), (false, Some((0x44_0000_0000, 16 << 30))), "{other} is none of its sizes");
    }
    assert_eq!(resize(0), (true, Some((0x44_0000_0000, 1 << 20))));
    resize(14);
    space.reset(Reset::FunctionLevel);
    space.write(0x18, 0xF, u32::MAX);
    assert_eq!(space.read(0x18), 0xFFF0_000C, "the first size again");
}

#[test]
fn writes_report_the_registers_that_their_owner_checks() {
    let header = Type1::new(Identity::new(0x71AB, 2, 0x06_04_00));
    let slot = Slot { hot_plug: true, ..Slot::default() };
    let port = Layout::new(header)
        .capability(Pcie { slot: Some(slot), ..Pcie::new(PortType::RootPort, link()) })
        .capability_at(0xC0, PowerManagement::default())
        .capability_at(0xD0, Msi { vectors: 1, wide: false, masking: false })
        .extended(Aer { root: true, ecrc: false });
    let card = Layout::new(Type0 { interrupt_pin: 1, ..Type0::new(Identity::new(0x71AB, 2, 0)) })
        .capability(Pcie::new(PortType::EndPoint, link()))
        .extended(SrIov { total: 1, first_offset: 1, stride: 1, device: 1, bars: [None; 6] });
    let (port, card) = (ConfigSpace::new(&port).unwrap(), ConfigSpace::new(&card).unwrap());
    let nothing = Written::default();
    let device_control = Written { device_control: true, ..nothing };
    let cases = [
        (&port, 0x04, 0x0002, Written { command: true, ..nothing }),
        (&port, 0x04, 0x0402, Written { command: true, interrupts: true, ..nothing }),
        (&port, 0x18, 0x0001_0100, Written { bridge: true, ..nothing }),
        (&port, 0x3C, 0x0040_0000, Written { bridge_control: true, ..nothing }),
        (&port, 0x3C, 0x0000_00FF, nothing), // the interrupt line is software's own
        (&port, PCIE + 0x08, 0x0001, device_control),
        (&port, PCIE + 0x08, 0x8000, nothing), // a bridge has no function-level reset
        (&port, PCIE + 0x10, 0x0010, Written { link_control: true, ..nothing }),
        (&port, PCIE + 0x10, 0x0020, Written { retrain_link: true, ..nothing }),
        (&port, PCIE + 0x18, 0x1000, Written { slot: true, ..nothing }),
        (&port, PCIE + 0x1C, 0x0010, Written { root: true, ..nothing }),
        (&port, PCIE + 0x28, 0x0010, device_control),
        (&port, PCIE + 0x30, 0x0003, Written { link_control: true, ..nothing }),
        (&port, 0xC4, 0x0003, Written { power: true, ..nothing }),
        (&port, 0xD0, 0x0001_0000, Written { interrupts: true, ..nothing }),
        (&port, 0x12C, 0x0001, Written { root: true, ..nothing }),
        (&card, PCIE + 0x08, 0x8000, Written { function_level_reset: true, ..nothing }),
        (&card, PCIE + 0x10, 0x0020, nothing), // only who is above the link can retrain it
        (&card, 0x108, 0x0001, Written { virtual_functions: true, ..nothing }),
    ];
    for (space, offset, value, expected) in cases {
        let mut space = space.clone();
        let old = space.read(offset);
        // Only the register in question, which is the low half except in two cases.
        let enables = if value >> 16 == 0 { 0b0011 } else { 0b1111 };
        let value = if offset == PCIE + 0x08 { old & 0x7FFF ^ value } else { value };
        assert_eq!(space.write(offset, enables, value), expected, "{value:#x} to {offset:#x}");
        assert!(!space.write(offset, 0, u32::MAX).any(), "no byte is enabled");
    }
}

#[test]
fn a_slot_reports_insertion_and_removal_of_its_card() {
    let header = Type1::new(Identity::new(0x71AB, 2, 0x06_04_00));
    let slot = Slot { hot_plug: true, surprise: true, ..Slot::default() };
    let layout =
        Layout::new(header).capability(Pcie { slot: Some(slot), ..Pcie::new(PortType::Downstream, link()) });
    let mut port = ConfigSpace::new(&layout).unwrap();
    let link =
        |active| LinkState { speed: Generation::Gen2, width: Width::ALL[0], active, training: !active };
    let status = |port: &ConfigSpace| port.read(PCIE + 0x18) >> 16;
    port.set_presence(true);
    assert!(!port.slot_interrupt(), "nobody has asked to be told");
    assert_eq!(status(&port), 1 << 6 | 1 << 3, "but it is written down");
    port.write(PCIE + 0x18, 0b1100, u32::MAX);
    assert_eq!(status(&port), 1 << 6);
    port.write(PCIE + 0x18, 0b0011, 0x1028); // link state and presence, by interrupt
    port.set_link(link(true));
    assert!(port.slot_interrupt());
    port.set_presence(false);
    assert!(port.slot_interrupt(), "one interrupt for both");
    assert_eq!(status(&port), 1 << 8 | 1 << 3);
    port.write(PCIE + 0x18, 0b1100, 1 << 24);
    assert!(port.slot_interrupt(), "the other event is still there");
    port.write(PCIE + 0x18, 0b1100, 1 << 19);
    assert!(!port.slot_interrupt());
    port.set_link(link(true));
    assert!(!port.slot_interrupt(), "no change");
    port.set_link(link(false));
    assert!(port.slot_interrupt());
    // Speed and width as they are; training, and no longer active.
    assert_eq!(port.read(PCIE + 0x10) >> 16, 1 << 12 | 1 << 11 | 1 << 4 | 2);
    // Software that resets the bridge does not take the card out, nor the link down.
    port.set_presence(true);
    port.reset(Reset::Hot);
    assert_eq!(status(&port) >> 6 & 1, 1);
    assert_eq!(port.read(PCIE + 0x10) >> 16 & 0x3FF, 1 << 4 | 2);
    assert!(!port.slot_interrupt(), "its permissions are gone");
}

#[test]
fn a_resizable_bar_is_one_that_is_there() {
    let mut header = Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00));
    header.bars[0] = Some(Bar::memory32(1 << 20));
    header.bars[1] = Some(Bar::io(32));
    let with = |bar, sizes| {
        let bars = vec![Resizable { bar, sizes, size: 0 }];
        let made = ConfigSpace::new(&Layout::new(header.clone()).extended(ResizableBar { bars }));
        made.map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(with(0, 0xFFF), Ok(()));
    for (bar, sizes, complaint) in [
        (1, 1, "resizable BAR: BAR is 0x1; it must be a BAR in memory"),
        (2, 1, "resizable BAR: BAR is 0x2; it must be a BAR in memory"),
        (0, 0x1001, "resizable BAR: sizes is 0x1001; it must be at most 2 GiB (bit 11) for a BAR of 32 bits"),
        (0, 0b10, "resizable BAR: size is 0x0; it must be one of its sizes"),
    ] {
        assert_eq!(with(bar, sizes), Err(complaint.to_owned()));
    }
}

/// An event of a slot interrupts if it, and interrupts at all, are enabled; a slot without hot plug has no events.
#[test]
fn events_of_a_slot_interrupt() {
    let port = |slot| {
        let header = Type1::new(Identity::new(0x71AB, 2, 0x06_04_00));
        let pcie = Pcie { slot, ..Pcie::new(PortType::RootPort, link()) };
        ConfigSpace::new(&Layout::new(header).capability_at(PCIE, pcie)).unwrap()
    };
    let slot = |hot_plug| Some(Slot { hot_plug, ..Slot::default() });
    let up = LinkState { speed: Generation::Gen4, width: Width::ALL[0], active: true, training: true };
    let (presence, link_change, interrupt) = (1 << 3, 1 << 12, 1 << 5);
    for (enabled, card, link_up, expected) in [
        (presence | link_change | interrupt, false, false, false),
        (presence | link_change | interrupt, true, false, true),
        (presence | link_change | interrupt, false, true, true),
        (presence | link_change, true, true, false),
        (presence | interrupt, false, true, false),
        (presence | interrupt, true, false, true),
        (link_change | interrupt, true, false, false),
        (link_change | interrupt, false, true, true),
        (interrupt, true, true, false),
    ] {
        let mut space = port(slot(true));
        space.write(PCIE + 0x18, 0b11, enabled);
        space.set_presence(card);
        if link_up {
            space.set_link(up);
        }
        assert_eq!(space.slot_interrupt(), expected, "{enabled:#x} {card} {link_up}");
        let events = u32::from(card) << 3 | u32::from(card) << 6 | u32::from(link_up) << 8;
        assert_eq!(space.read(PCIE + 0x18) >> 16, events);
        // What is there already is no event.
        space.write(PCIE + 0x18, 0b1100, 0x0108 << 16);
        space.set_presence(card);
        if link_up {
            space.set_link(up);
        }
        assert!(!space.slot_interrupt());
    }
    for slot in [slot(false), None] {
        let mut space = port(slot);
        space.write(PCIE + 0x18, 0b11, presence | link_change | interrupt);
        space.set_presence(true);
        space.set_link(up);
        assert!(!space.slot_interrupt());
        assert_eq!(space.read(PCIE + 0x18) >> 16, u32::from(slot.is_some()) << 6, "presence alone");
        // Gen4 x1, training, active.
        assert_eq!(space.read(PCIE + 0x10) >> 16, 0x3814);
        space.set_link(LinkState { active: false, training: false, ..up });
        assert_eq!(space.read(PCIE + 0x10) >> 16, 0x1014);
    }
    let mut card = ConfigSpace::new(
        &Layout::new(Type0::new(Identity::new(0x71AB, 1, 0)))
            .capability_at(PCIE, Pcie::new(PortType::EndPoint, link())),
    )
    .unwrap();
    card.set_link(up);
    assert_eq!(card.read(PCIE + 0x10) >> 16, 0x1014, "an end point reports neither");
}

/// Bits of status that software clears are nothing to look at, and neither is a write that changes nothing.
#[test]
fn status_is_no_control() {
    let mut header = Type0 { interrupt_pin: 1, ..Type0::new(Identity::new(0x71AB, 2, 0)) };
    header.bars[0] = Some(Bar::memory32(1 << 12));
    let layout = Layout::new(header)
        .capability_at(PCIE, Pcie::new(PortType::EndPoint, link()))
        .capability_at(0xD0, Msi { vectors: 1, wide: false, masking: false })
        .capability_at(0xE0, PowerManagement::default())
        .extended(Aer::default())
        .extended(SrIov { total: 1, first_offset: 1, stride: 1, device: 1, bars: [None; 6] });
    let mut card = ConfigSpace::new(&layout).unwrap();
    error::report(&mut card, ErrorKind::Poisoned { handled: false }, None);
    for (register, enables) in [(0x04, 0b1100), (PCIE + 0x08, 0b1100), (0x104, 0b1111)] {
        let before = card.read(register);
        let written = card.write(register, enables, u32::MAX);
        assert_ne!(card.read(register), before, "{register:#x} had something to clear");
        assert!(!written.any(), "{register:#x}: {written:?}");
    }
    // The interrupt line is software's own; the rest is as it was.
    assert!(!card.write(0x3C, 0b1, 0x5A).any());
    for register in [
        0x04,
        0x10,
        0x30,
        PCIE + 0x08,
        PCIE + 0x10,
        PCIE + 0x28,
        PCIE + 0x30,
        0xD0,
        0xD4,
        0xE4,
        0x108,
        0x150,
        0x158,
    ] {
        let same = card.read(register) & 0x0000_FFFF;
        assert!(!card.write(register, 0b11, same).any(), "{register:#x}");
    }
    assert!(card.write(0x10, 0xF, 0x1000).bars);
    let port = Type1 { rom: Some(1 << 11), ..Type1::new(Identity::new(0x71AB, 2, 0x06_04_00)) };
    let slot = Slot { hot_plug: true, ..Slot::default() };
    let layout = Layout::new(port)
        .capability_at(PCIE, Pcie { slot: Some(slot), ..Pcie::new(PortType::RootPort, link()) })
        .extended(Aer { root: true, ecrc: false });
    let mut port = ConfigSpace::new(&layout).unwrap();
    for register in [0x10, 0x18, 0x1C, 0x20, 0x38, 0x3C, PCIE + 0x18, PCIE + 0x1C, PCIE + 0x20, 0x12C, 0x130]
    {
        let same = port.read(register);
        assert!(!port.write(register, 0xF, same).any(), "{register:#x}");
    }
    // The masks of errors are nobody's; the commands of the root are.
    assert!(!port.write(0x108, 0xF, u32::MAX).any());
    assert!(port.write(0x12C, 0xF, 7).root);
    assert!(port.write(0x38, 0xF, 0x1000).bars);
    assert!(port.write(0x20, 0xF, 0x0010_0010).bridge);
}

/// The first register of a capability belongs to it, even where another capability ends right before it.
#[test]
fn adjacent_capabilities_are_distinguished() {
    let layout = Layout::new(Type0::new(Identity::new(0x71AB, 1, 0)))
        .capability_at(PCIE, Pcie::new(PortType::EndPoint, link()))
        .capability_at(PCIE + 0x3C, Msi { vectors: 1, wide: false, masking: false });
    let mut space = ConfigSpace::new(&layout).unwrap();
    let interrupts = Written { interrupts: true, ..Written::default() };
    assert_eq!(space.write(PCIE + 0x3C, 0b1100, 0x0001_0000), interrupts);
}

/// The registers of a bridge's numbers and windows are base addresses of an end point.
#[test]
fn writes_to_end_point_base_addresses_are_reported_as_bars() {
    let bars = [Some(Bar::memory32(4096)); 6];
    let header = Type0 { bars, rom: Some(1 << 11), ..Type0::new(Identity::new(0x71AB, 1, 0)) };
    let card = ConfigSpace::new(&Layout::new(header)).unwrap();
    for register in (0x10..0x28).step_by(4).chain([0x30]) {
        let bars = Written { bars: true, ..Written::default() };
        assert_eq!(card.clone().write(register, 0xF, 0x8000_0000), bars, "{register:#x}");
    }
}
