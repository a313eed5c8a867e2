//! Replays `vectors/*.json`: bytes from independent sources, and their meaning.

use serde_json::{Map, Value, json};
use tlplab_units::{Bdf, Tag};
use tlplab_wire::tlp::{
    AddressType, AtomicOp, Attributes, Code, Completion, Kind, Message, Packet, ParseOptions, Repr, Routing,
    TagWidth, TransactionId,
};
use tlplab_wire::{Error, crc, dllp, nettlp};

const TLP: &str = include_str!("../../../../vectors/tlp.json");
const DLLP: &str = include_str!("../../../../vectors/dllp.json");
const CRC: &str = include_str!("../../../../vectors/crc.json");
const NETTLP: &str = include_str!("../../../../vectors/nettlp.json");

fn vectors(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).expect("a JSON file");
    file["vectors"].as_array().expect("a list of vectors").clone()
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("a string of hex digits");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn assert_error(error: &Error, vector: &Value) {
    let name = vector["name"].as_str().unwrap();
    let found = json!({"field": error.field, "offset": error.offset});
    assert_eq!(found, vector["error"], "{name}: {error}");
    assert!(error.section.contains('§') || error.section.contains("NetTLP"), "{name}: no section in {error}");
}

fn options(vector: &Value) -> ParseOptions {
    let options = &vector["options"];
    let tags = match options["tag_bits"].as_u64() {
        Some(5) => TagWidth::Five,
        Some(8) => TagWidth::Eight,
        None => TagWidth::Ten,
        other => panic!("{other:?} is not a width of tags"),
    };
    ParseOptions { tags, truncated: options["truncated"].as_bool().unwrap_or(false) }
}

/// The meaning of a TLP as the vectors write it.
fn meaning(repr: &Repr) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    put("kind", json!(repr.name()));
    let id = repr.transaction_id();
    put("requester", json!(id.requester.to_string()));
    put("tag", json!(id.tag.value()));
    match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => {
            put("address", json!(format!("{:#x}", span.address())));
            put("length", json!(span.length().dw()));
            put("first_be", json!(span.enables().first()));
            put("last_be", json!(span.enables().last()));
        }
        Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => {
            put("address", json!(format!("{:#x}", port.address())));
            put("first_be", json!(port.enables()));
        }
        Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => {
            put("target", json!(target.function().to_string()));
            put("register", json!(format!("{:#x}", target.register())));
            put("first_be", json!(target.enables()));
        }
        Kind::AtomicOp { target, .. } => {
            put("address", json!(format!("{:#x}", target.address())));
            put("operand", json!(target.operand_bytes()));
            let operands = if target.op() == AtomicOp::CompareAndSwap { 2 } else { 1 };
            assert_eq!(repr.payload_bytes(), operands * target.operand_bytes());
        }
        Kind::Message(message) => {
            put("code", json!(message.code().name()));
            put("routing", json!(message.routing().name()));
            if message.payload_dw() > 0 {
                put("length", json!(message.payload_dw()));
            }
            if message.content() != [0; 8] {
                put("content", json!(text(&message.content())));
            }
        }
        Kind::Completion(completion) => put_completion(&mut put, completion),
    }
    put_attributes(&mut put, repr.attributes());
    if !repr.prefixes().is_empty() {
        let prefixes: Vec<String> = repr.prefixes().iter().map(|prefix| text(&prefix.bytes())).collect();
        put("prefixes", json!(prefixes));
    }
    Value::Object(map)
}

fn put_completion(put: &mut impl FnMut(&str, Value) -> Option<Value>, completion: &Completion) {
    put("completer", json!(completion.completer().to_string()));
    put("status", json!(completion.status().name()));
    put("byte_count", json!(completion.byte_count()));
    put("lower_address", json!(completion.lower_address()));
    if let Some(length) = completion.length() {
        put("length", json!(length.dw()));
    }
    if completion.is_byte_count_modified() {
        put("bcm", json!(true));
    }
}

fn put_attributes(put: &mut impl FnMut(&str, Value) -> Option<Value>, attributes: &Attributes) {
    let named = [
        (attributes.relaxed_ordering, "RO"),
        (attributes.id_based_ordering, "IDO"),
        (attributes.no_snoop, "NS"),
    ];
    let set: Vec<&str> = named.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect();
    if !set.is_empty() {
        put("attr", json!(set));
    }
    if attributes.tc.value() != 0 {
        put("tc", json!(attributes.tc.value()));
    }
    match attributes.at {
        AddressType::Untranslated => None,
        AddressType::TranslationRequest => put("at", json!("translation request")),
        AddressType::Translated => put("at", json!("translated")),
    };
    if attributes.poisoned {
        put("poisoned", json!(true));
    }
    if attributes.digest {
        put("digest", json!(true));
    }
    if let Some(hints) = attributes.hints {
        put("hint", json!({"ph": hints.hint as u8, "st": hints.steering_tag}));
    }
}

#[test]
fn tlps() {
    let vectors = vectors(TLP);
    assert!(vectors.len() >= 180, "only {} vectors", vectors.len());
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let bytes = hex(&vector["bytes"]);
        let packet = Packet::new(&bytes);
        let options = options(&vector);
        match Repr::parse_with(&packet, options) {
            Err(error) if vector.get("error").is_some() => assert_error(&error, &vector),
            Err(error) => panic!("{name}: {error}"),
            Ok(repr) => {
                assert_eq!(meaning(&repr), vector["meaning"], "{name}");
                assert_ne!(packet.ecrc_matches(), Some(false), "{name}: digest");
                if options.truncated {
                    let mut header = [0; 36];
                    let end = repr.emit_header(&mut header).unwrap();
                    assert_eq!(text(&header[..end]), text(&bytes[..end]), "{name}");
                    continue;
                }
                let mut emitted = vec![0xff; repr.wire_bytes() as usize];
                let end = repr.emit(&mut emitted, packet.payload()).unwrap();
                assert_eq!(end, emitted.len(), "{name}");
                let expected = vector.get("canonical").map_or_else(|| bytes.clone(), hex);
                assert_eq!(text(&emitted), text(&expected), "{name}");
            }
        }
    }
}

fn dllp_meaning(repr: &dllp::Repr) -> Value {
    let kind = repr.name();
    match repr {
        dllp::Repr::Ack(sequence) | dllp::Repr::Nak(sequence) => {
            json!({"kind": kind, "sequence": sequence.value()})
        }
        dllp::Repr::FlowControl(fc) => json!({
            "kind": kind, "vc": fc.vc.value(),
            "header_scale": fc.header_scale as u8, "header": fc.header,
            "data_scale": fc.data_scale as u8, "data": fc.data(),
        }),
        dllp::Repr::Feature { ack, supported } => {
            json!({"kind": kind, "ack": ack, "supported": supported.bits()})
        }
        dllp::Repr::Vendor(body) => json!({"kind": kind, "body": text(body)}),
        dllp::Repr::Pm(_) | dllp::Repr::Nop => json!({"kind": kind}),
    }
}

#[test]
fn dllps() {
    for vector in vectors(DLLP) {
        let name = vector["name"].as_str().unwrap();
        let bytes = hex(&vector["bytes"]);
        match dllp::Repr::parse(&dllp::Packet::new(&bytes)) {
            Err(error) if vector.get("error").is_some() => assert_error(&error, &vector),
            Err(error) => panic!("{name}: {error}"),
            Ok(repr) => {
                assert_eq!(dllp_meaning(&repr), vector["meaning"], "{name}");
                let expected = vector.get("canonical").map_or_else(|| bytes.clone(), hex);
                assert_eq!(text(&repr.emit()), text(&expected), "{name}");
            }
        }
    }
}

#[test]
fn checksums() {
    for vector in vectors(CRC) {
        let bytes = hex(&vector["bytes"]);
        let found = match vector["kind"].as_str().unwrap() {
            "crc32" => crc::Crc32::new().update(&bytes).finish().to_le_bytes().to_vec(),
            "lcrc" => crc::lcrc(vector["sequence"].as_u64().unwrap() as u16, &bytes).to_le_bytes().to_vec(),
            "ecrc" => crc::ecrc(&bytes).to_le_bytes().to_vec(),
            "dllp" => crc::dllp(bytes.try_into().expect("four bytes")).to_le_bytes().to_vec(),
            other => panic!("{other} is no checksum"),
        };
        assert_eq!(text(&found), vector["crc"], "{}", vector["name"]);
    }
}

#[test]
fn nettlp_datagrams() {
    for vector in vectors(NETTLP) {
        let name = vector["name"].as_str().unwrap();
        let bytes = hex(&vector["bytes"]);
        match nettlp::parse_udp_payload(&bytes) {
            Err(error) => assert_error(&error, &vector),
            Ok((header, packet)) => {
                assert_eq!(u64::from(header.sequence), vector["sequence"], "{name}");
                assert_eq!(u64::from(header.timestamp), vector["timestamp"], "{name}");
                assert_eq!(text(packet.bytes()), vector["tlp"], "{name}");
                assert_eq!(header.emit(), bytes[..6], "{name}");
                let port = vector["port"].as_u64().unwrap() as u16;
                assert!(nettlp::is_tlp_port(port), "{name}: port {port}");
            }
        }
    }
}

fn list(text: &str, key: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).expect("a JSON file");
    file[key].as_array().expect("a list of vectors").clone()
}

#[test]
fn nettlp_config_api() {
    use nettlp::config_api::{BYTES, Command, ConfigAccess};
    for vector in list(NETTLP, "config_api") {
        let bytes = hex(&vector["bytes"]);
        let access = match ConfigAccess::parse(&bytes) {
            Ok(access) => access,
            Err(error) => {
                assert_error(&error, &vector);
                continue;
            }
        };
        let command = if access.command() == Command::Read { "read" } else { "write" };
        assert_eq!(command, vector["command"], "{vector}");
        let (enables, register) = (access.enables(), access.register());
        let fields = [u64::from(enables), u64::from(register), u64::from(access.data)];
        assert_eq!(json!(fields), json!([vector["enables"], vector["register"], vector["data"]]), "{vector}");
        assert_eq!(access.emit(), bytes[..BYTES], "{vector}");
        let again = match access.command() {
            Command::Read => ConfigAccess::read(register).unwrap().answer(access.data),
            Command::Write => ConfigAccess::write(register, enables, access.data).unwrap(),
        };
        assert_eq!(again, access);
    }
    assert!(ConfigAccess::read(4096).is_err() && ConfigAccess::read(2).is_err());
    assert!(ConfigAccess::write(0, 16, 0).is_err());
}

#[test]
fn nettlp_message_api() {
    use nettlp::message_api::{self as api, Message, Request};
    let message = |m: Message| json!({"address": format!("{:#x}", m.address), "data": m.data});
    for vector in list(NETTLP, "message_api") {
        let request = match Request::parse(&hex(&vector["request"])) {
            Ok(request) => request,
            Err(error) => {
                assert_error(&error, &vector);
                continue;
            }
        };
        assert_eq!(text(&request.emit()), vector["request"]);
        let answer = hex(&vector["answer"]);
        match request {
            Request::Bar4Base => {
                let base = api::parse_bar4_base(&answer).unwrap();
                assert_eq!(format!("{base:#x}"), vector["bar4_base"]);
                assert!(api::parse_bar4_base(&answer[1..]).is_err());
            }
            Request::DeviceId => {
                assert_eq!(api::parse_device_id(&answer).unwrap().to_string(), vector["device_id"]);
                assert!(api::parse_device_id(&[0; 3]).is_err());
            }
            Request::Written => {
                let written = api::Written::parse(&answer).unwrap();
                assert_eq!(json!([written.requests, written.bytes]), vector["written"]);
                assert_eq!(written.emit()[..], answer);
                assert!(api::Written::parse(&answer[1..]).is_err() && api::Written::parse(&[0; 24]).is_err());
            }
            Request::MsixTable => match api::parse_msix_table(&answer) {
                Ok(table) => {
                    let ends = json!([message(table[0]), message(table[15])]);
                    assert_eq!(ends, json!([vector["first"], vector["last"]]));
                    assert_eq!(api::emit_msix_table(&table)[..], answer);
                }
                Err(error) => {
                    let found = json!({"field": error.field, "offset": error.offset});
                    assert_eq!(found, vector["answer_error"], "{error}");
                }
            },
        }
    }
}

#[test]
fn nettlp_registers() {
    use nettlp::registers::{BYTES, Operation, RegisterAccess};
    for vector in list(NETTLP, "registers") {
        let bytes = hex(&vector["bytes"]);
        match RegisterAccess::parse(&bytes) {
            Ok(access) => {
                let operation = if access.operation == Operation::Read { "read" } else { "write" };
                assert_eq!(operation, vector["operation"], "{vector}");
                let fields = json!([access.register as u8, access.data]);
                assert_eq!(fields, json!([vector["register"], vector["data"]]), "{vector}");
                assert_eq!(access.emit(), bytes[..BYTES], "{vector}");
            }
            Err(error) => assert_error(&error, &vector),
        }
    }
}

#[test]
fn nettlp_link() {
    use nettlp::link::{Numbers, SEAL_BYTES, open, seal};
    for vector in list(NETTLP, "link") {
        let bytes = hex(&vector["bytes"]);
        let Some((numbers, tlp)) = open(&bytes) else {
            assert_eq!(vector["sealed"], false, "{vector}");
            continue;
        };
        assert_eq!(
            json!([numbers.sequence, numbers.acknowledged]),
            json!([vector["sequence"], vector["acknowledged"]])
        );
        assert_eq!(text(tlp), vector["tlp"], "{vector}");
        let len = bytes.len() - SEAL_BYTES;
        let mut again = vec![0; bytes.len()];
        again[..6].copy_from_slice(&bytes[..6]);
        again[6..len].copy_from_slice(tlp);
        assert_eq!(seal(&mut again, len, numbers), Ok(bytes.len()));
        assert_eq!(again, bytes, "{vector}");
        assert!(seal(&mut again[1..], len, numbers).is_err() && seal(&mut again, 6, numbers).is_err());
        // No bit of it may be turned, no end be cut off, and none of either makes a TLP that nobody sealed.
        for bit in 0..8 * bytes.len() {
            let mut turned = bytes.clone();
            turned[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&turned), None, "bit {bit}");
            assert!(Repr::parse(&Packet::new(&turned[6..])).is_err(), "bit {bit}");
        }
        for end in 0..bytes.len() {
            assert_eq!(open(&bytes[..end]), None, "{end} bytes");
            assert!(Repr::parse(&Packet::new(&bytes[6.min(end)..end])).is_err(), "{end} bytes");
        }
        let beyond = Numbers { sequence: numbers.sequence + nettlp::link::NUMBERS, ..numbers };
        again.copy_within(14..len + 8, 6);
        seal(&mut again, len, beyond).unwrap();
        assert_eq!(again, bytes, "numbers begin again");
    }
}

#[test]
fn nettlp_link_messages() {
    use nettlp::link::LinkMessage::{self, Accept, Ack, Connect, Reset};
    for vector in list(NETTLP, "link_messages") {
        let (content, payload) = (hex(&vector["content"]), hex(&vector["payload"]));
        let dw = payload.len() as u32 / 4;
        let message = Message::new(
            TransactionId::default(),
            Code::VendorType1,
            Routing::Local,
            content.try_into().unwrap(),
            dw,
        );
        let message = message.unwrap();
        assert!(LinkMessage::is(&message));
        let found = match LinkMessage::parse(&message, &payload) {
            Ok(found) => found,
            Err(error) => {
                assert_eq!(json!(error.field), vector["error"]["field"], "{vector}");
                continue;
            }
        };
        let (kind, said) = match found {
            Connect(lane) | Accept(lane) => (
                if matches!(found, Connect(_)) { "connect" } else { "accept" },
                json!([lane.epoch, lane.tags().start(), lane.tags().end(), lane.host_ports, lane.sequence]),
            ),
            Ack { epoch, acknowledged, beyond } => {
                ("ack", json!([epoch, acknowledged, format!("{beyond:#x}")]))
            }
            Reset { sequence } => ("reset", json!([sequence])),
        };
        let meant = match kind {
            "ack" => json!([vector["epoch"], vector["acknowledged"], vector["beyond"]]),
            "reset" => json!([vector["sequence"]]),
            _ => {
                let tags = &vector["tags"];
                json!([vector["epoch"], tags[0], tags[1], vector["host_ports"], vector["sequence"]])
            }
        };
        assert_eq!((json!(kind), said), (vector["kind"].clone(), meant), "{vector}");
        assert_eq!((found.message(Bdf(0)), &found.payload()[..]), (message, &payload[..]), "{vector}");
    }
    let others = [(Code::VendorType0, Routing::Local), (Code::VendorType1, Routing::Broadcast)];
    for (code, routing) in others {
        let content = [0, 0, 0x37, 0x76, 1, 3, 0, 0];
        let message = Message::new(TransactionId::default(), code, routing, content, 4).unwrap();
        assert!(!LinkMessage::is(&message), "{code:?}");
    }
    let asked = Reset { sequence: 1 }.message(Bdf(0x1b00));
    assert_eq!(asked.id().requester, Bdf(0x1b00));
    let lane = nettlp::link::Lane { epoch: 1, first_tag: 7, last_tag: 7, host_ports: 1, sequence: 0 };
    let one = Connect(lane);
    assert_eq!(LinkMessage::parse(&one.message(Bdf(0)), &one.payload()), Ok(one), "a lane of one tag");
}

#[test]
fn link_numbers_go_round() {
    use nettlp::link::distance;
    assert_eq!((distance(5, 7), distance(0xff_ffff, 2), distance(7, 5)), (2, 3, 0xff_fffe));
}

#[test]
fn nettlp_ports() {
    let file: Value = serde_json::from_str(NETTLP).unwrap();
    for vector in file["ports"].as_array().unwrap() {
        let scheme = match vector["scheme"].as_str().unwrap() {
            "single" => nettlp::PortScheme::Single,
            "four bits" => nettlp::PortScheme::FourBits,
            _ => nettlp::PortScheme::ByIssuer,
        };
        let issuer = if vector["issuer"] == "device" { nettlp::Issuer::Device } else { nettlp::Issuer::Host };
        let tag = Tag::new(vector["tag"].as_u64().unwrap() as u16).unwrap();
        match scheme.port(issuer, tag) {
            Ok(port) => assert_eq!(u64::from(port), vector["port"], "{vector}"),
            Err(error) => assert_eq!(error.field, vector["error"], "{vector}"),
        }
    }
}
