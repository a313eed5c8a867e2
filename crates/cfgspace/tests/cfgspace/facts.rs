//! Facts of dumped registers: as much as the views of the whole space, no more than was dumped, whatever the bytes.

use proptest::prelude::*;
use tlplab_cfgspace::facts::{Express, Facts, Found, Link, port_name};
use tlplab_cfgspace::*;
use tlplab_units::{Generation, Width};

fn end_point(lanes: u8, relaxed: bool) -> ConfigSpace {
    let width = Width::new(lanes).unwrap();
    let layout = Layout::new(Type0::new(Identity::new(0x8086, 0x10D3, 0x02_00_00)))
        .capability_at(0x60, PowerManagement::default())
        .capability_at(0x90, Pcie::new(PortType::EndPoint, LinkPart::new(Generation::Gen4, width)))
        .extended(Aer::default())
        .extended_at(0x300, Acs::new(AcsControls::from_bits(0x5F)));
    let mut space = ConfigSpace::new(&layout).unwrap();
    space.write(0x98, 0x3, 0x5000 | 0x20 | u32::from(relaxed) << 4);
    space.write(0x304, 0xC, 0x1D << 16);
    space.set_link(LinkState {
        speed: Generation::Gen3,
        width: Width::new(2).unwrap(),
        active: true,
        training: false,
    });
    space
}

#[test]
fn facts_of_a_whole_space_match_its_views() {
    for (lanes, relaxed) in [(4, true), (16, false)] {
        let space = end_point(lanes, relaxed);
        let facts = Facts::new(space.bytes()).unwrap();
        let (view, link) = (space.pcie().unwrap(), space.link().unwrap());
        let express = facts.express().unwrap();
        assert_eq!(facts.ids(), (0x8086, 0x10D3));
        assert_eq!((facts.class(), facts.header_type(), facts.buses()), (0x02_00_00, 0, None));
        assert_eq!(port_name(express.kind), "end point");
        assert_eq!(express.mps.map(u32::from), Some(view.mps.bytes()));
        assert_eq!(express.mrrs.map(u32::from), Some(view.mrrs.bytes()));
        assert_eq!((express.relaxed_ordering, relaxed), (view.relaxed_ordering, view.relaxed_ordering));
        let found = express.link.unwrap();
        assert_eq!((found.speed, found.width), (link.current.0.number(), link.current.1.lanes()));
        assert_eq!((found.speed_possible, found.width_possible), (4, lanes));
        assert_eq!(facts.access_control(), Some((0x5F, 0x1D)));
        assert_eq!(facts.errors(), Some((0, 0)));
        assert!(facts.capabilities_known && facts.extended_known);
        assert_eq!(facts.extended.iter().map(|found| found.offset).collect::<Vec<_>>(), [0x100, 0x300]);
    }
}

#[test]
fn registers_beyond_the_dump_are_unknown() {
    let space = end_point(4, true);
    assert_eq!(Facts::new(&space.bytes()[..63]), None);
    let header = Facts::new(&space.bytes()[..64]).unwrap();
    assert!(!header.capabilities_known && !header.extended_known);
    assert_eq!((header.express(), header.power_state()), (None, None));
    let pci = Facts::new(&space.bytes()[..256]).unwrap();
    assert!(pci.capabilities_known && !pci.extended_known);
    assert!(pci.express().is_some() && pci.power_state() == Some(0));
    assert_eq!((pci.access_control(), pci.errors()), (None, None));
}

#[test]
fn kinds_of_ports_have_names() {
    let names = (0..=11).map(port_name).collect::<Vec<_>>();
    let expected = [
        "end point",
        "legacy end point",
        "reserved",
        "reserved",
        "root port",
        "upstream port",
        "downstream port",
        "PCIe-to-PCI bridge",
        "PCI-to-PCIe bridge",
        "integrated end point",
        "event collector",
        "reserved",
    ];
    assert_eq!(names, expected);
}

/// Registers written byte by byte, as a dump has them.
#[test]
fn header_and_sriov_registers_are_decoded() {
    let mut bytes = [0; 4096];
    (bytes[0x08], bytes[0x04]) = (0x5A, 0b0000_0100);
    // A PCI Express capability, without which there is no chain from 100h on.
    (bytes[0x06], bytes[0x34], bytes[0x40]) = (0x10, 0x40, 0x10);
    bytes[0x100..0x104].copy_from_slice(&0x0001_0010_u32.to_le_bytes());
    bytes[0x108] = 1; // VF Enable
    (bytes[0x110], bytes[0x114], bytes[0x116]) = (7, 4, 2);
    let facts = Facts::new(&bytes).unwrap();
    assert_eq!((facts.revision(), facts.bus_master()), (0x5A, true));
    assert_eq!(facts.virtual_functions(), Some([7, 4, 2]));
    let mut off = bytes;
    (off[0x108], off[0x04]) = (0xFE, 0b1111_1011);
    let facts = Facts::new(&off).unwrap();
    assert_eq!((facts.bus_master(), facts.virtual_functions()), (false, Some([0, 4, 2])));
    assert_eq!(Facts::new(&bytes[..0x110]).unwrap().virtual_functions(), None);
}

#[test]
fn a_chain_in_circles_ends() {
    let mut bytes = [0; 4096];
    (bytes[6], bytes[0x34]) = (0x10, 0x40);
    (bytes[0x40], bytes[0x41], bytes[0x50], bytes[0x51]) = (0x01, 0x50, 0x10, 0x40);
    bytes[0x100..0x104].copy_from_slice(&0x1001_0001_u32.to_le_bytes());
    let facts = Facts::new(&bytes).unwrap();
    assert_eq!((facts.capabilities.len(), facts.extended.len()), (2, 1));
}

/// The bytes of a function with capabilities at 50h (PCI Express), 40h (power management) and 100h.
fn dumped(express: &[(usize, u32)]) -> [u8; 4096] {
    let mut bytes = [0; 4096];
    (bytes[0x06], bytes[0x34], bytes[0x40], bytes[0x41], bytes[0x50]) = (0x10, 0x43, 0x01, 0x50, 0x10);
    for (offset, value) in express {
        bytes[0x50 + offset..][..4].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// Fields by hand (PCIe 5.0 §7.5.3), each bit on in one image and off in another.
#[test]
fn the_pci_express_capability_is_decoded() {
    let downstream = dumped(&[
        (0x00, 0x0162_0010),
        (0x04, 0x0000_8022),
        (0x08, 0x00A5_5130),
        (0x0C, 0x8310_0904),
        (0x10, 0x4883_0019),
        (0x28, 0x0000_1000),
        (0x30, 0x0000_0033),
    ]);
    let link = Link {
        speed_possible: 4,
        width_possible: 16,
        port_number: 0x83,
        aspm_supported: 2,
        aspm: 1,
        rcb: None,
        disabled: true,
        speed: 3,
        width: 8,
        training: true,
        active: Some(false),
        bandwidth_changed: true,
        autonomous_changed: false,
        target_speed: Some(3),
    };
    let express = Express {
        offset: 0x50,
        version: 2,
        kind: 6,
        slot: Some(true),
        mps_supported: Some(512),
        mps: Some(256),
        mrrs: Some(4096),
        extended_tags_supported: true,
        extended_tags: true,
        relaxed_ordering: true,
        no_snoop: false,
        ten_bit_tags: Some(true),
        detected: 5,
        link: Some(link),
    };
    assert_eq!(Facts::new(&downstream).unwrap().express(), Some(express));
    let root = dumped(&[
        (0x00, 0x0042_0010),
        (0x04, 0x0000_8005),
        (0x08, 0x000A_0800),
        (0x0C, 0x0010_0012),
        (0x10, 0xA011_0008),
        (0x28, 0x0000_EFFF),
        (0x30, 0x0000_FFF2),
    ]);
    let link = Link {
        speed_possible: 2,
        width_possible: 1,
        port_number: 0,
        aspm_supported: 0,
        aspm: 0,
        rcb: Some(128),
        disabled: false,
        speed: 1,
        width: 1,
        training: false,
        active: Some(true),
        bandwidth_changed: false,
        autonomous_changed: true,
        target_speed: Some(2),
    };
    let express = Express {
        kind: 4,
        slot: Some(false),
        mps_supported: Some(4096),
        mps: Some(128),
        mrrs: Some(128),
        extended_tags_supported: false,
        extended_tags: false,
        relaxed_ordering: false,
        no_snoop: true,
        ten_bit_tags: Some(false),
        detected: 10,
        link: Some(link),
        ..express
    };
    assert_eq!(Facts::new(&root).unwrap().express(), Some(express));
    // Of version 1: what follows is another's. Sizes of 8 KiB and 16 KiB are reserved.
    let old = dumped(&[
        (0x00, 0x0001_0010),
        (0x04, 0x0000_0006),
        (0x08, 0x0000_60E0),
        (0x0C, 0x0000_0FF1),
        (0x10, 0x23F1_0002),
        (0x28, u32::MAX),
        (0x30, u32::MAX),
    ]);
    let link = Link {
        speed_possible: 1,
        width_possible: 63,
        port_number: 0,
        aspm_supported: 3,
        aspm: 2,
        rcb: Some(64),
        disabled: false,
        speed: 1,
        width: 63,
        training: false,
        active: None,
        bandwidth_changed: false,
        autonomous_changed: false,
        target_speed: None,
    };
    let express = Express {
        version: 1,
        kind: 0,
        slot: None,
        mps_supported: None,
        mps: None,
        mrrs: None,
        no_snoop: false,
        ten_bit_tags: None,
        detected: 0,
        link: Some(link),
        ..express
    };
    assert_eq!(Facts::new(&old).unwrap().express(), Some(express));
    let integrated = dumped(&[(0x00, 0x0092_0010)]);
    let express = Facts::new(&integrated).unwrap().express().unwrap();
    assert_eq!(express.link, None);
    // Device Control is all zeros: reads of 128 bytes, and nothing is on.
    assert_eq!((express.mps, express.mrrs), (Some(128), Some(128)));
    assert!(!express.no_snoop && !express.relaxed_ordering && !express.extended_tags);
}

#[test]
fn headers_capability_chains_and_errors_are_decoded() {
    let mut bytes = dumped(&[]);
    // D2; a bridge of several functions, buses 1 to 3; errors; a version and a place with bits on both sides.
    (bytes[0x44], bytes[0x0E]) = (0xFE, 0x81);
    bytes[0x18..0x1C].copy_from_slice(&[1, 2, 3, 0xFF]);
    bytes[0x100..0x104].copy_from_slice(&0x5542_0001_u32.to_le_bytes());
    bytes[0x104..0x108].copy_from_slice(&0x0010_0020_u32.to_le_bytes());
    bytes[0x110..0x114].copy_from_slice(&0x0000_2041_u32.to_le_bytes());
    bytes[0x554..0x558].copy_from_slice(&0x00FA_BEEF_u32.to_le_bytes());
    let facts = Facts::new(&bytes).unwrap();
    assert_eq!((facts.power_state(), facts.header_type(), facts.buses()), (Some(2), 1, Some([1, 2, 3])));
    assert_eq!(facts.errors(), Some((0x0010_0020, 0x2041)));
    let found = |id, version, offset| Found { id, version, offset };
    assert_eq!(facts.capabilities, [found(0x01, 0, 0x40), found(0x10, 0, 0x50)]);
    assert_eq!(facts.extended, [found(0x01, 2, 0x100), found(0xBEEF, 10, 0x554)]);
    // All ones end a chain as zeros do.
    for end in [0, u32::MAX] {
        let mut ended = bytes;
        ended[0x554..0x558].copy_from_slice(&end.to_le_bytes());
        let facts = Facts::new(&ended).unwrap();
        assert_eq!((facts.extended.len(), facts.extended_known), (1, true));
    }
    // Without its bit in the status register a pointer is none.
    let mut none = bytes;
    none[0x06] = 0xEF;
    let facts = Facts::new(&none).unwrap();
    assert_eq!((facts.capabilities.len(), facts.capabilities_known, facts.express()), (0, true, None));
    // A CardBus bridge has the pointer elsewhere; an end point has no buses.
    let mut cardbus = bytes;
    (cardbus[0x0E], cardbus[0x34], cardbus[0x14]) = (0x02, 0, 0x50);
    let facts = Facts::new(&cardbus).unwrap();
    assert_eq!((facts.header_type(), facts.buses(), facts.capabilities.len()), (2, Some([1, 2, 3]), 1));
    let mut end_point = bytes;
    end_point[0x0E] = 0x80;
    assert_eq!(Facts::new(&end_point).unwrap().buses(), None);
}

/// Egress control vectors by hand: of 33 and of 256 ports, of none, and in dumps that end before the vector does.
#[test]
fn access_control_and_address_translation_are_decoded() {
    let mut bytes = dumped(&[]);
    let mut write = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    write(0x100, 0x1401_000D);
    write(0x140, 0x0001_000F);
    write(0x104, 0x0024_217F);
    write(0x108, 0x8000_0008);
    write(0x10C, 0x0000_0003);
    write(0x124, 0x8000_0000);
    write(0x144, 0x8003_0025);
    let facts = Facts::new(&bytes).unwrap();
    assert_eq!(facts.access_control(), Some((0x217F, 0x24)));
    assert_eq!(facts.egress_forbidden(), Some(vec![3, 31, 32]), "bit 33 is behind the vector");
    assert_eq!(facts.address_translation(), Some((true, 3)));
    assert_eq!(Facts::new(&bytes[..0x10F]).unwrap().egress_forbidden(), None);
    assert_eq!(Facts::new(&bytes[..0x110]).unwrap().egress_forbidden(), Some(vec![3, 31, 32]));
    bytes[0x105] = 0;
    assert_eq!(Facts::new(&bytes).unwrap().egress_forbidden(), Some(vec![3, 31, 32, 33, 255]));
    // Without egress control what is behind the registers is another's; without bit 15 translation is off.
    bytes[0x104] = 0x5F;
    bytes[0x147] = 0x7F;
    let facts = Facts::new(&bytes).unwrap();
    assert_eq!((facts.egress_forbidden(), facts.address_translation()), (None, Some((false, 3))));
    let none = Facts::new(&bytes[..0x100]).unwrap();
    assert_eq!((none.egress_forbidden(), none.address_translation()), (None, None));
}

proptest! {
    /// Bytes of any length with any content are told of without a panic, and capabilities are where they may be.
    #[test]
    fn any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..4200), express in 0x40_usize..0x100) {
        // Some of them shall have the capability that most is read from.
        if bytes.len() > express + 1 {
            bytes[6] |= 0x10;
            bytes[0x34] = express as u8;
            bytes[express & 0xFC] = 0x10;
        }
        let facts = Facts::new(&bytes);
        prop_assert_eq!(facts.is_some(), bytes.len() >= 64);
        if let Some(facts) = facts {
            let _ = (facts.egress_forbidden(), facts.address_translation());
            let _ = (facts.express(), facts.errors(), facts.access_control(), facts.virtual_functions(), facts.buses());
            prop_assert!(facts.capabilities.iter().all(|found| (0x40..0x100).contains(&found.offset)));
            prop_assert!(facts.extended.iter().all(|found| (0x100..0x1000).contains(&found.offset)));
        }
    }
}
