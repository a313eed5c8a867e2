//! The Wireshark dissector: its logic is written by hand, in `dissector`; names, codes, the places of fields and the tables of CRCs come
//! from `tlplab_wire`.

mod fields;

use crate::control_names;
use std::fmt::{Display, Write};
use tlplab_trace::linkunit;
use tlplab_wire::nettlp::{Header, is_tlp_port, link};
use tlplab_wire::tlp::{
    Code, CompletionStatus, Kind, Message, Packet, ParseOptions, Prefix, Repr, Routing, TransactionId,
};
use tlplab_wire::{crc, dllp};

/// The names of the files and what is in them; all go into one folder.
pub fn files() -> Vec<(&'static str, String)> {
    let by_hand = BY_HAND.map(|(name, text)| (name, text.to_owned()));
    by_hand.into_iter().chain([("tlplab_tables.lua", tables())]).collect()
}

/// The first is what Wireshark is told to load; it loads the others.
const BY_HAND: [(&str, &str); 8] = [
    ("tlplab.lua", include_str!("../../../../dissector/tlplab.lua")),
    ("tlplab_bytes.lua", include_str!("../../../../dissector/tlplab_bytes.lua")),
    ("tlplab_control.lua", include_str!("../../../../dissector/tlplab_control.lua")),
    ("tlplab_conversations.lua", include_str!("../../../../dissector/tlplab_conversations.lua")),
    ("tlplab_fields.lua", include_str!("../../../../dissector/tlplab_fields.lua")),
    ("tlplab_link.lua", include_str!("../../../../dissector/tlplab_link.lua")),
    ("tlplab_numbers.lua", include_str!("../../../../dissector/tlplab_numbers.lua")),
    ("tlplab_tlp.lua", include_str!("../../../../dissector/tlplab_tlp.lua")),
];

/// The tables of the codecs, in Lua.
pub fn tables() -> String {
    let mut lua =
        String::from("-- Generated from crates/wire by `tlplab dissector`; do not edit.\nreturn {\n");
    list(&mut lua, "types", (0..=255).filter_map(tlp_type));
    list(&mut lua, "messages", Code::ALL.iter().map(|&code| (hex(code as u8), message(code))));
    list(
        &mut lua,
        "routings",
        (0..8).filter_map(|bits| Some((bits.to_string(), quoted(Routing::from_bits(bits)?.name())))),
    );
    let statuses =
        || (0..8u8).filter_map(|bits| Some((bits.to_string(), CompletionStatus::from_bits(bits)?)));
    list(&mut lua, "statuses", statuses().map(|(bits, status)| (bits, quoted(status.name()))));
    list(&mut lua, "status_meanings", statuses().map(|(bits, status)| (bits, quoted(status.meaning()))));
    let address_types = ["untranslated", "translation request", "translated", "reserved"];
    list(
        &mut lua,
        "address_types",
        (0..).zip(address_types).map(|(bits, name): (u8, _)| (bits.to_string(), quoted(name))),
    );
    list(&mut lua, "prefixes", (0..=255).filter_map(prefix));
    list(&mut lua, "dllps", (0..=255).filter_map(dllp_type));
    let units = [(linkunit::DLLP, "DLLP"), (linkunit::FLIT, "flit")];
    list(&mut lua, "link_units", units.into_iter().map(|(kind, name)| (kind.to_string(), quoted(name))));
    ports(&mut lua);
    let (mark, before, behind) = (link::MARK, link::NUMBERS_BYTES, link::CHECK_BYTES);
    put(&mut lua, format_args!("\tlink = {{ mark = {mark}, numbers = {before}, check = {behind} }},"));
    list(
        &mut lua,
        "requests",
        control_names::requests().map(|(code, name)| (code.to_string(), quoted(name))),
    );
    list(&mut lua, "registers", control_names::registers().map(|(number, name)| (hex(number), quoted(name))));
    put(&mut lua, format_args!("\ttick_ns = {},", Header::TICK.as_fs() as f64 / 1e6));
    layouts(&mut lua);
    numbers(&mut lua, "crc32", &crc::table_32().map(|entry| format!("0x{entry:08x}")));
    numbers(&mut lua, "crc16", &crc::table_16().map(|entry| format!("0x{entry:04x}")));
    lua.push_str("}\n");
    lua
}

/// The places of fields, by the kind of header.
fn layouts(lua: &mut String) {
    put(lua, "\tlayouts = {");
    for (kind, header, fields) in fields::KINDS {
        put(lua, format_args!("\t\t{kind} = {{"));
        for (name, codec) in fields {
            put(lua, format_args!("\t\t\t{name} = {},", fields::in_lua(header, *codec)));
        }
        put(lua, "\t\t},");
    }
    put(lua, "\t},");
}

/// Adds a line; a `String` takes everything.
fn put(lua: &mut String, line: impl Display) {
    let _ = writeln!(lua, "{line}");
}

fn list(lua: &mut String, name: &str, entries: impl Iterator<Item = (String, String)>) {
    put(lua, format_args!("\t{name} = {{"));
    entries.for_each(|(key, value)| put(lua, format_args!("\t\t[{key}] = {value},")));
    put(lua, "\t},");
}

fn numbers(lua: &mut String, name: &str, values: &[String]) {
    put(lua, format_args!("\t{name} = {{"));
    values.chunks(8).for_each(|row| put(lua, format_args!("\t\t{},", row.join(", "))));
    put(lua, "\t},");
}

fn hex(byte: u8) -> String {
    format!("0x{byte:02x}")
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// The parser's reading of a byte of Fmt and Type, found by giving it headers that differ in the fields that decide.
fn tlp_type(byte: u8) -> Option<(String, String)> {
    // Lengths that some kind needs; codes of messages; an address above 4 GiB, at which no atomic is misaligned.
    let lengths = [1, 2];
    let codes = Code::ALL.iter().map(|&code| code as u8).chain([0x0f]);
    let parsed = codes.flat_map(|code| lengths.map(|length| (code, length))).map(|(code, length)| {
        let header = [byte, 0, 0, length, 0, 0, 0, code, 0, 0, 0, 1, 0, 0, 0, 0];
        let options = ParseOptions { truncated: true, ..ParseOptions::default() };
        Repr::parse_with(&Packet::new(&header), options)
    });
    let parsed: Vec<_> = parsed.collect();
    let Some(repr) = parsed.iter().find_map(|parsed| parsed.ok()) else {
        // A message with a routing that is reserved, or that no code has.
        let routing = parsed.iter().any(|parsed| matches!(parsed, Err(error) if error.field == "Type"));
        let name = if byte & 0x40 == 0 { "Msg" } else { "MsgD" };
        return routing.then(|| (hex(byte), format!("{{ name = {name:?}, class = \"message\" }}")));
    };
    let class = match repr.kind() {
        Kind::MemRead { .. } | Kind::MemWrite { .. } | Kind::DeferrableMemWrite { .. } => "memory",
        Kind::IoRead { .. } | Kind::IoWrite { .. } => "io",
        Kind::CfgRead { .. } | Kind::CfgWrite { .. } => "configuration",
        Kind::AtomicOp { .. } => "atomic",
        Kind::Message(_) => "message",
        Kind::Completion(_) => "completion",
    };
    Some((hex(byte), format!("{{ name = {:?}, class = {class:?} }}", repr.name())))
}

fn message(code: Code) -> String {
    let routings = code.routings();
    let takes = |dw: u32| Message::new(TransactionId::default(), code, routings[0], [0; 8], dw).is_ok();
    let set = |items: Vec<String>| {
        items.iter().map(|item| format!("[{item}] = true")).collect::<Vec<_>>().join(", ")
    };
    let payloads = set((0..=2).filter(|&dw| takes(dw)).map(|dw| dw.to_string()).collect());
    let ways = set(routings.iter().map(|&routing| (routing as u8).to_string()).collect());
    format!(
        "{{ name = {:?}, content = {}, vendor = {}, tc = {}, any = {}, payload = {{ {payloads} }}, routings = {{ {ways} }} }}",
        code.name(),
        code.has_content(),
        code.is_vendor_defined(),
        code.may_have_traffic_class(),
        takes(1024),
    )
}

fn prefix(byte: u8) -> Option<(String, String)> {
    let name = match Prefix::from_bytes([byte, 0, 0, 0]).ok()? {
        Prefix::MrIov(_) => "MR-IOV",
        Prefix::VendorLocal { .. } => "vendor, local",
        Prefix::Tph { .. } => "TPH",
        Prefix::Pasid(_) => "PASID",
        Prefix::VendorEndToEnd { .. } => "vendor, end to end",
    };
    Some((hex(byte), quoted(name)))
}

fn dllp_type(byte: u8) -> Option<(String, String)> {
    let repr = dllp::Repr::from_content([byte, 0, 0, 0]).ok()?;
    let class = match repr {
        dllp::Repr::Ack(_) | dllp::Repr::Nak(_) => "sequence",
        dllp::Repr::FlowControl(_) => "credits",
        dllp::Repr::Feature { .. } => "feature",
        dllp::Repr::Vendor(_) => "vendor",
        dllp::Repr::Pm(_) | dllp::Repr::Nop => "plain",
    };
    Some((hex(byte), format!("{{ name = {:?}, class = {class:?} }}", repr.name())))
}

/// Ranges of ports that carry TLPs, and ports of the interfaces beside them.
fn ports(lua: &mut String) {
    put(lua, "\ttlp_ports = {");
    let mut first = None;
    for port in 0..=u16::MAX {
        match (first, is_tlp_port(port)) {
            (None, true) => first = Some(port),
            (Some(begin), false) => {
                put(lua, format_args!("\t\t{{ {begin}, {} }},", port - 1));
                first = None;
            }
            _ => {}
        }
    }
    put(lua, "\t},");
    list(lua, "control_ports", control_names::ports().map(|(port, name)| (port.to_string(), quoted(name))));
}
