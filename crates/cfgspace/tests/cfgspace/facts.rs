//! What dumped registers say: as much as the views of the whole space, no more than was dumped, whatever the bytes.

use proptest::prelude::*;
use tlplab_cfgspace::facts::{Facts, port_name};
use tlplab_cfgspace::*;
use tlplab_units::{Generation, Width};

fn end_point(lanes: u8, relaxed: bool) -> ConfigSpace {
    let width = Width::new(lanes).unwrap();
    let layout = Layout::new(Type0::new(Identity::new(0x8086, 0x10D3, 0x02_00_00)))
        .capability_at(0x60, PowerManagement::default())
        .capability_at(0x90, Pcie::new(PortType::EndPoint, LinkPart::new(Generation::Gen4, width)))
        .extended(Aer::default())
        .extended_at(0x300, ExtendedCapability::Acs { controls: 0x5F });
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
fn the_whole_space_says_what_its_views_say() {
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
fn what_was_not_dumped_is_unknown() {
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
fn what_the_header_and_sriov_say() {
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
            let _ = (facts.express(), facts.errors(), facts.access_control(), facts.virtual_functions(), facts.buses());
            prop_assert!(facts.capabilities.iter().all(|found| (0x40..0x100).contains(&found.offset)));
            prop_assert!(facts.extended.iter().all(|found| (0x100..0x1000).contains(&found.offset)));
        }
    }
}
