//! Packets seen field by field, whatever their bytes are, and the little protocols beside NetTLP's datagrams, by hand.

use tlplab_units::{Bdf, FcClass, Tag, TrafficClass};
use tlplab_wire::nettlp::config_api::{Command, ConfigAccess};
use tlplab_wire::nettlp::message_api::{self, Request};
use tlplab_wire::nettlp::registers::{Operation, Register, RegisterAccess};
use tlplab_wire::nettlp::{self, Header, Issuer, PortScheme};
use tlplab_wire::tlp::{
    AtomicOp, Attributes, CfgTarget, CfgType, Code, Completion, CompletionStatus, DwLength, Kind, Message,
    Packet, Pasid, Prefix, Repr, Routing, Span, TransactionId,
};
use tlplab_wire::{dllp, flit};

const ID: TransactionId = TransactionId::new(Bdf(0x0108), Tag::new(0x2A).unwrap());

#[test]
fn a_dllp_shows_every_field_that_is_there() {
    let ack = dllp::Repr::Ack(dllp::Sequence::new(0xABC)).emit();
    let nak = [0x10, 0xFF, 0xFA, 0xBC, 0, 0];
    for (bytes, kind, sequence) in [(ack, 0x00, 0xABC), (nak, 0x10, 0xABC)] {
        let packet = dllp::Packet::new(&bytes);
        assert_eq!((packet.type_bits(), packet.sequence()), (Some(kind), Some(sequence)));
        assert_eq!(packet.content(), Some([bytes[0], bytes[1], bytes[2], bytes[3]]));
        assert_eq!(packet.crc(), Some(u16::from_le_bytes([bytes[4], bytes[5]])));
        assert_eq!(packet.crc_matches(), Some(bytes == ack));
    }
    // What ends too early shows what is there.
    let fields = |have: usize| {
        let packet = dllp::Packet::new(&ack[..have]);
        [
            packet.type_bits().is_some(),
            packet.content().is_some(),
            packet.sequence().is_some(),
            packet.crc().is_some(),
            packet.crc_matches().is_some(),
        ]
    };
    let shown: Vec<_> = (0..=6).map(|have| fields(have).map(u8::from)).collect();
    let [nothing, kind, content, all] = [[0; 5], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0], [1; 5]];
    assert_eq!(shown, [nothing, kind, kind, kind, content, content, all]);
}

#[test]
fn flits_name_the_byte_of_a_bad_dllp() {
    let dw0 = flit::HeaderDw0::new([0x40, 0b0111_0110, 0b1010_1000, 0x10]);
    assert_eq!((dw0.tc(), dw0.ohc(), dw0.ts(), dw0.attr(), dw0.length().dw()), (3, 0b10110, 5, 2, 0x10));
    let mut bytes = [0; flit::BYTES];
    bytes[238] = 0x7F;
    let error = flit::Repr::parse(&flit::Packet::new(&bytes).unwrap()).unwrap_err();
    assert_eq!((error.field, error.offset), ("DLLP Type", Some(238)));
}

/// A bridge takes a request over under its own ID, and gives its completion back.
#[test]
fn another_requester_takes_over() {
    let other = TransactionId::new(Bdf(0x0700), Tag::from(3));
    let target = CfgTarget::new(Bdf(0x0300), 0x40, 15, CfgType::Type1).unwrap();
    let completion = Completion::new(Bdf(8), ID, CompletionStatus::Success, 4, 0).unwrap();
    for repr in [
        Repr::mem_read(ID, 0x1000, 4).unwrap(),
        Repr::mem_write(ID, 0x1000, 4).unwrap(),
        Repr::deferrable_mem_write(ID, 0x1000, 4).unwrap(),
        Repr::io_read(ID, 0x60, 1).unwrap(),
        Repr::io_write(ID, 0x60, 1).unwrap(),
        Repr::cfg_read(ID, target),
        Repr::cfg_write(ID, target),
        Repr::atomic(ID, AtomicOp::Swap, 0x1000, 4).unwrap(),
        Kind::Completion(completion).into(),
    ] {
        let taken = repr.with_transaction_id(other);
        assert_eq!((taken.transaction_id(), taken.name()), (other, repr.name()));
        assert_eq!(taken.with_transaction_id(ID), repr);
    }
    let message = Repr::message(Bdf(0x0108), Code::PmPme).unwrap();
    assert_eq!(message.with_transaction_id(other), message, "a message keeps its own");
}

#[test]
fn a_completion_holds_no_more_than_remains() {
    // Lower address, DW, bytes that remain: valid bytes, and is it the last?
    for (lower, dw, remain, valid, last) in [
        (0, 1, 4, 4, true),
        (0, 1, 5, 4, false),
        (1, 1, 3, 3, true),
        (1, 2, 4, 4, true),
        (3, 2, 5, 5, true),
        (3, 2, 4, 4, true),
        (0, 2, 9, 8, false),
    ] {
        let length = DwLength::new(dw).unwrap();
        let completion = Completion::with_data(Bdf(0), ID, remain, lower, length).unwrap();
        assert_eq!((completion.data_bytes(), completion.is_last()), (valid, last), "{completion:?}");
    }
}

/// Messages that the specification defines have neither RO nor NS, each by itself.
#[test]
fn defined_messages_have_no_ordering_attributes() {
    let message = Repr::message(Bdf(0x1B00), Code::AssertIntA).unwrap();
    let plain = *message.attributes();
    for attributes in [
        Attributes { relaxed_ordering: true, ..plain },
        Attributes { no_snoop: true, ..plain },
        Attributes { relaxed_ordering: true, no_snoop: true, ..plain },
    ] {
        assert!(message.with_attributes(attributes).is_err(), "{attributes:?}");
    }
}

/// The highest tag of ten bits can be written; the next needs a flit.
#[test]
fn tags_end_with_ten_bits() {
    let emit = |tag: u16| {
        let id = TransactionId::new(Bdf(0x1B00), Tag::new(tag).unwrap());
        Repr::mem_read(id, 0x1000, 4).unwrap().emit(&mut [0; 64], &[])
    };
    assert_eq!((emit(0x3FF).is_ok(), emit(0x400).is_ok()), (true, false));
}

/// Each prefix is as its four bytes say.
#[test]
fn prefixes_of_vendors_and_processes() {
    let body = [1, 2, 3];
    let all = [
        (Prefix::VendorLocal { second: false, body }, [0x8E, 1, 2, 3]),
        (Prefix::VendorLocal { second: true, body }, [0x8F, 1, 2, 3]),
        (Prefix::VendorEndToEnd { second: false, body }, [0x9E, 1, 2, 3]),
        (Prefix::VendorEndToEnd { second: true, body }, [0x9F, 1, 2, 3]),
        (Prefix::Pasid(Pasid::new(0xA_BCDE).unwrap().with_privileged(true)), [0x91, 0x2A, 0xBC, 0xDE]),
        (Prefix::Pasid(Pasid::new(0xF_FFFF).unwrap().with_execute(true)), [0x91, 0x1F, 0xFF, 0xFF]),
    ];
    for (prefix, bytes) in all {
        assert_eq!((prefix.bytes(), Prefix::from_bytes(bytes)), (bytes, Ok(prefix)));
    }
}

#[test]
fn datagrams_of_header_and_tlp() {
    let header = Header { sequence: 0x0102, timestamp: 0x0304_0506 };
    let read = Repr::mem_read(ID, 0x1000, 4).unwrap();
    let mut buffer = [0xEE; 20];
    assert_eq!(nettlp::emit_udp_payload(&mut buffer, header, &read, &[]), Ok(18));
    assert_eq!((buffer[..6].to_vec(), buffer[18..].to_vec()), (vec![1, 2, 3, 4, 5, 6], vec![0xEE; 2]));
    let (seen, tlp) = nettlp::parse_udp_payload(&buffer[..18]).unwrap();
    assert_eq!((seen, tlp.bytes()), (header, &buffer[6..18]));
    for (room, text) in [
        (5, "Buffer: 6 bytes are needed, there are 5 (NetTLP header (NSDI 2020))"),
        (17, "Buffer: 12 bytes are needed, there are 11 (PCIe 5.0 §2.2.1)"),
    ] {
        let error = nettlp::emit_udp_payload(&mut buffer[..room], header, &read, &[]).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    for (have, text) in [
        (5, "NetTLP header at byte 5: 6 bytes are needed, there are 5 (NetTLP header (NSDI 2020))"),
        (6, "TLP at byte 6: 18 bytes are needed, there are 6 (NetTLP header (NSDI 2020))"),
    ] {
        assert_eq!(nettlp::parse_udp_payload(&buffer[..have]).unwrap_err().to_string(), text);
    }
}

#[test]
fn ports_of_each_scheme() {
    let port = |scheme: PortScheme, issuer, tag| scheme.port(issuer, Tag::new(tag).unwrap()).ok();
    use Issuer::{Device, Host};
    for (issuer, tag, single, four, by_issuer) in [
        (Device, 0x00, 14198, 0x3000, Some(0x3000)),
        (Device, 0x2F, 14198, 0x300F, Some(0x302F)),
        (Device, 0xFF, 14198, 0x300F, Some(0x30FF)),
        (Device, 0x100, 14198, 0x3000, None),
        (Host, 0x2F, 14198, 0x300F, Some(0x400F)),
        (Host, 0x101, 14198, 0x3001, Some(0x4001)),
    ] {
        assert_eq!(port(PortScheme::Single, issuer, tag), Some(single));
        assert_eq!(port(PortScheme::FourBits, issuer, tag), Some(four));
        assert_eq!(port(PortScheme::ByIssuer, issuer, tag), by_issuer);
    }
    for (port, is) in [
        (14197, false),
        (14198, true),
        (14199, false),
        (0x2FFF, false),
        (0x3000, true),
        (0x30FF, true),
        (0x3100, false),
        (0x3FFF, false),
        (0x4000, true),
        (0x400F, true),
        (0x4010, false),
    ] {
        assert_eq!(nettlp::is_tlp_port(port), is, "{port:#x}");
    }
}

/// Byte 0 holds command, enables and the upper bits of the register's number, byte 1 its lower ones.
#[test]
fn accesses_of_the_config_api() {
    let write = ConfigAccess::write(0x0ABC, 0b0110, 0x0102_0304).unwrap();
    assert_eq!(write.emit(), [0b0101_1010, 0xAF, 1, 2, 3, 4]);
    let read = ConfigAccess::read(0x0FFC).unwrap();
    assert_eq!(read.emit(), [0b0011_1111, 0xFF, 0, 0, 0, 0]);
    for access in [write, read] {
        assert_eq!(ConfigAccess::parse(&access.emit()), Ok(access));
    }
    assert_eq!((write.command(), write.register(), write.enables()), (Command::Write, 0x0ABC, 0b0110));
    let answer = read.answer(7);
    assert_eq!((answer.data, answer.register()), (7, 0x0FFC));
    let elsewhere = ConfigAccess::read(0x10).unwrap();
    let asked = [(read, answer), (read, elsewhere), (read, write), (write, write), (write, read)];
    assert_eq!(asked.map(|(asked, reply)| asked.is_answered_by(reply)), [true, false, false, false, false]);
    for (register, enables) in [(4096, 15), (2, 15), (0, 16)] {
        assert!(ConfigAccess::write(register, enables, 0).is_err(), "{register} {enables}");
    }
    let command = ConfigAccess::parse(&[0x80, 0, 0, 0, 0, 0]).unwrap_err();
    assert_eq!((command.field, command.offset), ("Command", Some(0)));
    assert_eq!(ConfigAccess::parse(&[0; 5]).unwrap_err().offset, Some(5));
}

#[test]
fn requests_of_the_message_api() {
    for (request, number) in [(Request::Bar4Base, 1), (Request::DeviceId, 2), (Request::MsixTable, 3)] {
        assert_eq!((request.emit(), Request::parse(&[number, 0, 0, 0])), ([number, 0, 0, 0], Ok(request)));
    }
    for bytes in [&[0, 0, 0, 0][..], &[4, 0, 0, 0], &[1, 0, 0, 1]] {
        assert_eq!(Request::parse(bytes).unwrap_err().field, "Request");
    }
    let told = |bytes: &[u8]| Request::parse(bytes).unwrap_err().to_string();
    let section = "(NetTLP adapter, docs/nettlp.md)";
    assert_eq!(told(&[1, 0, 0]), format!("Request at byte 3: 4 bytes are needed, there are 3 {section}"));
    assert_eq!(
        told(&[1; 5]),
        format!("Request at byte 4: the packet ends after 4 bytes, there are 5 {section}")
    );
    assert_eq!(message_api::parse_bar4_base(&[8, 7, 6, 5, 4, 3, 2, 1]), Ok(0x0102_0304_0506_0708));
    assert_eq!(message_api::parse_bar4_base(&[0; 7]).unwrap_err().field, "BAR4 base");
    assert_eq!(message_api::parse_device_id(&[8, 1]), Ok(Bdf(0x0108)));
    assert_eq!(message_api::parse_device_id(&[0; 3]).unwrap_err().field, "Device ID");
    let mut table = [message_api::Message::default(); message_api::VECTORS];
    table[1] = message_api::Message { address: 0xFEE0_0000, data: 0x21 };
    table[15] = message_api::Message { address: u64::MAX, data: 1 << 31 };
    let bytes = message_api::emit_msix_table(&table);
    assert_eq!(
        (bytes.len(), bytes[12..24].to_vec()),
        (192, vec![0, 0, 0xE0, 0xFE, 0, 0, 0, 0, 0x21, 0, 0, 0])
    );
    assert_eq!(message_api::parse_msix_table(&bytes), Ok(table));
    for length in [180, 191, 193, 204] {
        assert_eq!(message_api::parse_msix_table(&[0; 204][..length]).unwrap_err().field, "MSI-X table");
    }
}

#[test]
fn accesses_of_the_adapters_registers() {
    for (number, register) in [0, 1, 2, 3, 4, 5, 6, 7, 8, 0x10].into_iter().zip(Register::ALL) {
        for (code, operation) in [(0x10, Operation::Read), (0x11, Operation::Write)] {
            let access = RegisterAccess { operation, register, data: 0x0403_0201 };
            assert_eq!(access.emit(), [code, number, 1, 2, 3, 4]);
            assert_eq!(RegisterAccess::parse(&[code, number, 1, 2, 3, 4, 0xEE]), Ok(access));
        }
    }
    for (bytes, field, offset) in [
        (&[0x10, 0, 0, 0, 0][..], "Register request", 5),
        (&[0x12, 0, 0, 0, 0, 0], "Opcode", 0),
        (&[0x10, 9, 0, 0, 0, 0], "Register", 1),
    ] {
        let error = RegisterAccess::parse(bytes).unwrap_err();
        assert_eq!((error.field, error.offset), (field, Some(offset)));
    }
}

type Field = fn(&Packet<'_>) -> Option<u64>;

/// Every field of a header by its place (PCIe 5.0 §2.2), whatever it means to this kind: a request with 3 DW and data, one with 4 DW and a
/// digest. And the number of bytes of the first that are needed to see it.
#[test]
fn a_tlp_shows_every_field_that_is_there() {
    let three = [0x40, 0xD5, 0x66, 0x01, 0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE, 0xF2];
    let four = [0x32, 0x2A, 0x98, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x0A, 0x0B, 0x0F, 0xEE, 0xEE, 0xEE, 0xEE];
    let id = |id: Option<Bdf>| id.map(|id| u64::from(id.0));
    assert_eq!(
        [Packet::new(&three), Packet::new(&four)].map(|p| id(p.requester())),
        [Some(0x1234), Some(0x0102)]
    );
    let rows: [(&str, Field, u64, u64, usize); 28] = [
        ("Fmt/Type", |p| p.fmt_type().map(u64::from), 0x40, 0x32, 1),
        ("Fmt", |p| p.fmt().map(u64::from), 2, 1, 1),
        ("Type", |p| p.type_bits().map(u64::from), 0, 0x12, 1),
        ("data", |p| p.has_data().map(u64::from), 1, 0, 1),
        ("header", |p| p.header_len().map(|n| n as u64), 12, 16, 1),
        ("TC", |p| p.tc().map(u64::from), 5, 2, 2),
        ("LN", |p| p.ln().map(u64::from), 0, 1, 2),
        ("TH", |p| p.th().map(u64::from), 1, 0, 2),
        ("T9, T8", |p| p.t9_t8().map(u64::from), 2, 1, 2),
        ("TD", |p| p.td().map(u64::from), 0, 1, 3),
        ("EP", |p| p.ep().map(u64::from), 1, 0, 3),
        ("Attr", |p| p.attr().map(u64::from), 0b110, 0b001, 3),
        ("AT", |p| p.at().map(u64::from), 1, 2, 3),
        ("Length field", |p| p.length_field().map(u64::from), 0x201, 0, 4),
        ("Length", |p| p.length().map(|n| u64::from(n.dw())), 513, 1024, 4),
        ("all", |p| p.expected_len().map(|n| n as u64), 12 + 513 * 4, 20, 4),
        ("Requester ID", |p| p.requester().map(|id| u64::from(id.0)), 0x1234, 0x0102, 6),
        ("Completer ID", |p| p.completer().map(|id| u64::from(id.0)), 0x1234, 0x0102, 6),
        ("Tag byte", |p| p.tag_byte().map(u64::from), 0x56, 3, 7),
        ("Tag", |p| p.tag().map(|tag| u64::from(tag.value())), 0x256, 0x103, 7),
        ("Status", |p| p.status().map(u64::from), 2, 0, 7),
        ("BCM", |p| p.bcm().map(u64::from), 1, 0, 7),
        ("byte 7", |p| p.byte7().map(u64::from), 0x78, 4, 8),
        ("Byte Count", |p| p.byte_count().map(u64::from), 0x678, 0x304, 8),
        ("target", |p| p.target().map(|id| u64::from(id.0)), 0x9ABC, 0x0506, 10),
        ("Register", |p| p.register().map(u64::from), 0xEF0, 0x708, 12),
        ("Lower Address", |p| p.lower_address().map(u64::from), 0x72, 8, 12),
        ("Address", |p| p.address(), 0x9ABC_DEF0, 0x0506_0708_090A_0B0C, 12),
    ];
    for (name, field, of_three, of_four, needed) in rows {
        assert_eq!(field(&Packet::new(&three)), Some(of_three), "{name}");
        assert_eq!(field(&Packet::new(&four)), Some(of_four), "{name}");
        let seen: Vec<bool> = (0..=12).map(|have| field(&Packet::new(&three[..have])).is_some()).collect();
        assert_eq!(seen, (0..=12).map(|have| have >= needed).collect::<Vec<_>>(), "{name}");
    }
    let [a, b, short] = [&three[..], &four[..], &four[..15]].map(Packet::new);
    assert_eq!([a.ph(), b.ph(), short.ph()], [Some(2), Some(3), None]);
    assert_eq!((b.message_content(), a.message_content()), (Some([5, 6, 7, 8, 9, 0x0A, 0x0B, 0x0F]), None));
    assert_eq!((short.address(), short.message_content()), (None, None));
    assert_eq!([a, b].map(|p| p.is_completion()), [Some(false); 2]);
}

/// A completion has its requester and tag elsewhere.
#[test]
fn a_completion_shows_its_fields() {
    for (kind, is) in
        [(0x4A, true), (0x4B, true), (0x0A, true), (0x0B, true), (0x4C, false), (0x48, false), (0x42, false)]
    {
        let bytes = [kind, 0x88, 0, 1, 0, 8, 0b1001_0000, 0, 3, 0, 0x2A, 0xC4, 1, 2, 3, 4];
        let packet = Packet::new(&bytes);
        assert_eq!(packet.is_completion(), Some(is), "{kind:#x}");
        let (requester, tag) = if is { (0x0300, 0x32A) } else { (0x0008, 0x390) };
        assert_eq!((packet.requester(), packet.tag().map(Tag::value)), (Some(Bdf(requester)), Some(tag)));
        assert_eq!((packet.completer(), packet.status(), packet.bcm()), (Some(Bdf(8)), Some(4), Some(true)));
        assert_eq!((packet.byte_count(), packet.lower_address()), (Some(4096), Some(0x44)));
    }
}

/// The messages that may have a traffic class other than 0 (PCIe 5.0 §2.2.8), by code.
#[test]
fn messages_by_their_codes() {
    for &code in Code::ALL {
        let byte = code as u8;
        let (vendor, ignored) = (byte >= 0x7E, (0x40..=0x48).contains(&byte));
        let ats = [1, 2, 4, 5].contains(&byte);
        let asked = (code.is_vendor_defined(), code.is_ignored(), code.may_have_traffic_class());
        assert_eq!(asked, (vendor, ignored, vendor || ignored || ats), "{}", code.name());
        let message = Repr::message(Bdf(0x0108), code);
        assert_eq!(message.is_ok(), !code.has_content(), "{}", code.name());
        let Ok(message) = message else { continue };
        let payload = if code == Code::SetSlotPowerLimit { 1 } else { 0 };
        assert_eq!((message.payload_dw(), message.transaction_id().requester), (payload, Bdf(0x0108)));
        let tc = TrafficClass::new(1).unwrap();
        let with = message.with_attributes(Attributes { tc, ..Attributes::default() });
        assert_eq!(with.is_ok(), ignored, "{}", code.name());
    }
    for (bits, name) in
        ["to root complex", "by address", "by id", "broadcast", "local", "gather"].into_iter().enumerate()
    {
        let routing = Routing::from_bits(bits as u8).unwrap();
        assert_eq!((routing.name(), routing as usize), (name, bits));
    }
    assert_eq!([Routing::from_bits(6), Routing::from_bits(7)], [None; 2]);
    let latency = Message::latency_tolerance(Bdf(0x0108), None, None);
    let time = Message::ptm_response(Bdf(0x0110), 1);
    assert_eq!([latency, time].map(|message| message.id().requester), [Bdf(0x0108), Bdf(0x0110)]);
    assert_eq!(time.payload_dw(), 0);
}

#[test]
fn small_fields() {
    assert_eq!(ID.to_string(), "01:01.0 tag 0x2a");
    let statuses = [0, 1, 2, 4].map(|bits| CompletionStatus::from_bits(bits).unwrap());
    let names = statuses.map(|status| (status.name(), status.meaning()));
    let expected = [
        ("SC", "successful completion"),
        ("UR", "unsupported request"),
        ("CRS", "configuration request retry status"),
        ("CA", "completer abort"),
    ];
    assert_eq!(names, expected);
    assert_eq!([3, 5, 6, 7, 8].map(CompletionStatus::from_bits), [None; 5]);
    let spans = [(0x1000, 0, true), (0x1000, 1, false), (0x1003, 1, false), (0x1000, 8, false)];
    for (address, len, zero) in spans {
        assert_eq!(Span::new(address, len).unwrap().is_zero_length(), zero);
    }
    assert_eq!(Pasid::new(0xF_FFFF).map(Pasid::value), Ok(0xF_FFFF));
    assert!(Pasid::new(0x10_0000).is_err());
    let target = CfgTarget::new(Bdf(0x0300), 0x40, 0b0011, CfgType::Type1).unwrap();
    for (repr, first, last) in [
        (Repr::mem_read(ID, 0x1003, 9).unwrap(), 0b1000, 0b1111),
        (Repr::mem_write(ID, 0x1000, 5).unwrap(), 0b1111, 0b0001),
        (Repr::deferrable_mem_write(ID, 0x1001, 2).unwrap(), 0b0110, 0),
        (Repr::io_read(ID, 0x3F9, 2).unwrap(), 0b0110, 0),
        (Repr::io_write(ID, 0x3F8, 1).unwrap(), 0b0001, 0),
        (Repr::cfg_read(ID, target), 0b0011, 0),
        (Repr::cfg_write(ID, target), 0b0011, 0),
        (Repr::atomic(ID, AtomicOp::Swap, 0x1000, 4).unwrap(), 0, 0),
    ] {
        let enables = repr.kind().enables();
        assert_eq!((enables.first(), enables.last()), (first, last), "{repr}");
    }
    use FcClass::{Completion as Cpl, NonPosted, Posted};
    for (repr, class) in [
        (Repr::completion(Bdf(0), ID, CompletionStatus::Success, 4, 0).unwrap(), Cpl),
        (Repr::message(Bdf(0), Code::PmPme).unwrap(), Posted),
        (Repr::deferrable_mem_write(ID, 0, 4).unwrap(), NonPosted),
        (Repr::cfg_write(ID, target), NonPosted),
    ] {
        assert_eq!(repr.fc_class(), class);
    }
}
