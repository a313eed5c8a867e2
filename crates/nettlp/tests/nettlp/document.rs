//! docs/nettlp.md says what the code does.

use std::collections::BTreeSet;
use tlplab_nettlp::adapter::CARD;
use tlplab_nettlp::endpoint::Counters;
use tlplab_units::Tag;
use tlplab_wire::nettlp::config_api::{self, ConfigAccess};
use tlplab_wire::nettlp::registers::{self, MAGIC, Operation, Register, RegisterAccess};
use tlplab_wire::nettlp::{DEVICE_PORTS, HEADER_BYTES, HOST_PORTS, Header, Issuer, PortScheme, message_api};

const PAGE: &str = include_str!("../../../../docs/nettlp.md");

/// The rows of the table under a heading, cell by cell.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).expect("the section");
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_counter_is_in_the_table_and_the_other_way_round() {
    let table = table("Detected errors");
    let told: BTreeSet<&str> = table.iter().flat_map(|row| quoted(row[2])).collect();
    // What is no trouble.
    let traffic = ["datagrams_in", "datagrams_out", "completions", "host_reads", "host_writes", "other"];
    let counters = Counters::default();
    let counted: BTreeSet<&str> = counters.rows().map(|(name, _)| name).into_iter().collect();
    let expected: BTreeSet<&str> = counted.into_iter().filter(|name| !traffic.contains(name)).collect();
    assert_eq!(told, expected);
}

#[test]
fn ports_on_the_page_match_the_codec() {
    for place in [
        format!("| {:#x} + tag, 8 bits |", DEVICE_PORTS.start()),
        format!("| {:#x} + tag, low 4 bits | requests of the host", HOST_PORTS.start()),
        format!("| {} | both, in the first version |", 14198),
        format!("| {:#x}, and {:#x} as the library has it |", config_api::PORT, config_api::LIBRARY_PORT),
        format!("| {} | message API", message_api::PORT),
        format!("| {:#x} | the adapter's registers", registers::PORT),
        format!("({:04x}:{:04x})", CARD.0, CARD.1),
        format!("in ticks of {} ns", Header::TICK.as_fs() as f64 / 1e6),
        format!("| {HEADER_BYTES}– | the TLP"),
    ] {
        assert!(PAGE.contains(&place), "{place}");
    }
    let tag = Tag::from(0x47);
    let port = |scheme: PortScheme, issuer| scheme.port(issuer, tag).unwrap();
    assert_eq!(port(PortScheme::ByIssuer, Issuer::Device), 0x3000 + 0x47);
    assert_eq!(port(PortScheme::ByIssuer, Issuer::Host), 0x4000 + 0x7);
    assert_eq!(port(PortScheme::FourBits, Issuer::Host), 0x3000 + 0x7);
    assert_eq!(port(PortScheme::Single, Issuer::Host), 14198);
}

#[test]
fn examples_on_the_page_match_the_codec() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let ids = ConfigAccess::read(0).unwrap();
    let magic = RegisterAccess { operation: Operation::Read, register: Register::Magic, data: 0 };
    let examples = [
        hex(&ids.emit()),
        hex(&ids.answer(u32::from(CARD.1) << 16 | u32::from(CARD.0)).emit()),
        hex(&magic.emit()),
        hex(&RegisterAccess { data: MAGIC, ..magic }.emit()),
    ];
    let section = PAGE.split("\n## ").find(|section| section.starts_with("Other datagrams")).unwrap();
    let shown: Vec<&str> = quoted(section).filter(|text| text.len() == 12).collect();
    assert_eq!(shown, examples);
}
