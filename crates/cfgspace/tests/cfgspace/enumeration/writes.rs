//! The writes of software to functions, and those that it leaves out: registers that they have, and that others may have set before.

use super::limits::{enumerate, root, watch};
use super::machine::{Machine, Node, link};
use super::registers::{PCIE, at, bridge, card, check, same, settings};
use std::sync::Arc;
use tlplab_cfgspace::enumerate::{InterruptPolicy, ProblemKind, Request, Settings};
use tlplab_cfgspace::error::log_at_root;
use tlplab_cfgspace::*;
use tlplab_units::{Bdf, Mps};

/// The offset of MSI or MSI-X in the cards.
const OTHER: u16 = 0x80;

/// Firmware may have set the read completion boundary, wide tags and ECRC already: they stay set.
#[test]
fn rcb_tags_and_ecrc_set_by_firmware_stay_on() {
    let port = bridge(PortType::RootPort, |_, pcie| pcie.read_boundary_128 = true);
    let mut end = Node::new(&card(&[], Mps::ALL[0]).extended(Aer { root: false, ecrc: true }));
    for (register, value) in [(PCIE + 0x10, 0x0008), (PCIE + 0x28, 0x1000), (0x118, 0x0140)] {
        end.space.write(register, 0b11, value);
    }
    let mut machine = Machine::new([((1, 0), Node::new(&port).with(0, end))]);
    let (found, _) = enumerate(&mut machine, settings());
    check(
        &mut machine,
        &found,
        "01:00.0",
        &[(PCIE + 0x10, 0x1043_0008), (PCIE + 0x28, 0x1000), (0x118, 0x01E0)],
    );
}

/// Behind a structure of version 1 is another's register where Device Control 2 would be: here, an address of MSI.
#[test]
fn ten_bits_of_tag_are_switched_on_nowhere_else() {
    let header = Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00));
    let pcie = Pcie { version: PcieVersion::V1, ..Pcie::new(PortType::EndPoint, link()) };
    let end = Layout::new(header)
        .capability_at(PCIE, pcie)
        .capability_at(PCIE + 0x24, Msi { vectors: 1, wide: false, masking: false });
    let mut machine = Machine::new([((1, 0), root(Node::new(&end)))]);
    let (found, _) = enumerate(&mut machine, Settings { interrupts: InterruptPolicy::Intx, ..settings() });
    check(&mut machine, &found, "01:00.0", &[(PCIE + 0x28, 0)]);
}

/// ECRC is switched on as far as a function has it, and registers of a root port are written in a root port (PCIe 5.0 §7.8.4.7, §7.8.4.9).
#[test]
fn advanced_error_reporting_is_set_up_as_far_as_it_is_there() {
    let aer = |root| Aer { root, ecrc: false };
    let header = Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00));
    let part =
        Layout::new(header).capability_at(PCIE, Pcie::new(PortType::RcIntegrated, None)).extended(aer(false));
    let mut port = Node::new(&bridge(PortType::RootPort, same).extended(aer(true)));
    log_at_root(&mut port.space, ErrorMessage::Fatal, Bdf(0x0100));
    log_at_root(&mut port.space, ErrorMessage::Correctable, Bdf(0x0100));
    assert_ne!(port.space.read(0x130), 0);
    let mut end = Node::new(&card(&[], Mps::ALL[0]).extended(aer(false)));
    // It can add digests, and check none.
    end.broken.insert(0x118, 0x20);
    let mut machine = Machine::new([((1, 0), port.with(0, end)), ((2, 0), Node::new(&part))]);
    let mut written = Vec::new();
    let found = watch(&mut machine, settings(), |_, request, answer| {
        if let Request::Write { function, offset: offset @ 0x118..0x138, value, .. } = request {
            written.push((function.to_string(), offset, value));
        }
        answer
    });
    let expected = [
        ("00:01.0", 0x118, 0),
        ("00:01.0", 0x130, u32::MAX),
        ("00:01.0", 0x12C, 0b111),
        ("01:00.0", 0x118, 0x60),
        ("00:02.0", 0x118, 0),
    ];
    assert_eq!(written, expected.map(|(name, offset, value)| (name.to_owned(), offset, value)));
    check(&mut machine, &found, "00:01.0", &[(0x130, 0)]);
}

#[test]
fn a_table_of_msix_ends_within_its_bar() {
    for (offset, fits) in [(0xFC0, true), (0xFC8, false)] {
        let table = MsiX { vectors: 4, table: (0, 0xFC0), pending: (0, 0) };
        let end = card(&[(0, Bar::memory32(4096))], Mps::ALL[0]).capability_at(OTHER, table);
        let mut node = Node::new(&end);
        node.broken.insert(OTHER + 4, offset);
        let mut machine = Machine::new([((1, 0), root(node))]);
        let message = Arc::new(|_, vector| (0x12_FEE0_1000, 0xAB40 + u32::from(vector)));
        let (found, problems) = enumerate(&mut machine, Settings { message, ..settings() });
        let problem = ("01:00.0".to_owned(), ProblemKind::MsixTable);
        assert_eq!(problems, if fits { vec![] } else { vec![problem] });
        let mode = at(&found, "01:00.0").interrupts;
        assert_eq!(mode, if fits { InterruptMode::MsiX } else { InterruptMode::Intx });
        let base = at(&found, "01:00.0").bars[0].address.unwrap() + 0xFC0;
        let dwords = (0..16).map(|dword| machine.memory.get(&(base + 4 * dword)).copied());
        let entries = (0..4).flat_map(|vector| [0xFEE0_1000, 0x12, 0xAB40 + vector, 0].map(Some));
        assert!(if fits { dwords.eq(entries) } else { machine.memory.is_empty() });
    }
}

#[test]
fn the_message_of_msi_is_written_where_the_capability_has_it() {
    for (wide, masking) in [(false, false), (false, true), (true, false), (true, true)] {
        let end = card(&[], Mps::ALL[0]).capability_at(OTHER, Msi { vectors: 4, wide, masking });
        let mut machine = Machine::new([((1, 0), root(Node::new(&end)))]);
        let address = if wide { 0x12_FEE0_1000 } else { 0xFEE0_1000 };
        let message = Arc::new(move |_, vector| (address, 0xAB40 + u32::from(vector)));
        let (found, problems) = enumerate(&mut machine, Settings { message, ..settings() });
        assert_eq!((problems, at(&found, "01:00.0").interrupts), (vec![], InterruptMode::Msi));
        let [second, third] = if wide { [0x12, 0xAB40] } else { [0xAB40, 0] };
        check(
            &mut machine,
            &found,
            "01:00.0",
            &[(OTHER + 4, 0xFEE0_1000), (OTHER + 8, second), (OTHER + 12, third)],
        );
    }
}

/// Root ports show software the functions that are not ready (RRS Software Visibility, PCIe 5.0 §7.5.3.12); others have no such register.
#[test]
fn only_root_ports_enable_rrs_software_visibility() {
    let below = Node::new(&bridge(PortType::Downstream, same)).with(0, Node::new(&card(&[], Mps::ALL[0])));
    let switch = Node::new(&bridge(PortType::Upstream, same)).with(0, below);
    let mut machine = Machine::new([((1, 0), root(switch))]);
    let mut written = Vec::new();
    let found = watch(&mut machine, settings(), |_, request, answer| {
        if let Request::Write { function, offset, .. } = request
            && offset == PCIE + 0x1C
        {
            written.push(function.to_string());
        }
        answer
    });
    check(&mut machine, &found, "00:01.0", &[(PCIE + 0x1C, 0x0001_0010)]);
    assert_eq!(written, ["00:01.0"]);
    assert_eq!(at(&found, "03:00.0").ids, (0x71AB, 1));
    assert_eq!(at(&found, "00:01.0").ids, (0x71AB, 0x14));
}

/// Events of a slot before it was looked into are past, and later ones interrupt, whoever has enabled that before.
#[test]
fn a_slot_is_watched_from_a_clean_start() {
    for enabled in [0, 0x1028] {
        let slot = Slot { number: 7, hot_plug: true, ..Slot::default() };
        let mut port = Node::new(&bridge(PortType::RootPort, |_, pcie| pcie.slot = Some(slot)));
        port.space.write(PCIE + 0x18, 0b11, enabled);
        port.space.set_presence(true);
        assert_eq!(port.space.slot_interrupt(), enabled != 0);
        let mut machine = Machine::new([((1, 0), port)]);
        let mut written = Vec::new();
        let found = watch(&mut machine, settings(), |_, request, answer| {
            if let Request::Write { offset, enables: 0b11, value, .. } = request
                && offset == PCIE + 0x18
            {
                written.push(value);
            }
            answer
        });
        // A card is there; the indicators are off, as they were.
        check(&mut machine, &found, "00:01.0", &[(PCIE + 0x18, 0x0040_13E8)]);
        assert_eq!(written, [0x13E8]);
        let space = &mut machine.node(at(&found, "00:01.0").bdf).unwrap().space;
        assert!(!space.slot_interrupt());
        space.set_presence(false);
        assert!(space.slot_interrupt());
    }
}
