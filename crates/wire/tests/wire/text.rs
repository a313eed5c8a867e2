//! Packets and errors as lines of text, every kind by hand, as dumps, ladders and messages show them.

use tlplab_units::{Bdf, FcClass, Tag, TrafficClass, Vc};
use tlplab_wire::dllp::{self, FcPhase, FeatureBits, FlowControl, PmCode, Scale, Sequence};
use tlplab_wire::tlp::{
    AddressType, AtomicOp, Attributes, CfgTarget, CfgType, Code, Completion, CompletionStatus, DwLength,
    Hint, Kind, Message, Packet, Pasid, Prefix, Prefixes, ProcessingHint, Repr, Routing, Span, TransactionId,
};

const ID: TransactionId = TransactionId::new(Bdf(0x0108), Tag::new(0x2A).unwrap());

#[test]
fn a_tlp_of_each_kind() {
    let target = CfgTarget::new(Bdf(0x0300), 0x40, 0b0011, CfgType::Type1).unwrap();
    let vendor =
        Message::vendor(ID, Code::VendorType0, (Routing::ById, Some(Bdf(0x0500))), 0x1234, [1, 2, 3, 4], 3);
    let locked = Kind::MemRead { id: ID, span: Span::new(0x1000, 8).unwrap(), locked: true };
    let part = Completion::with_data(Bdf(8), ID, 200, 0x3C, DwLength::new(17).unwrap()).unwrap();
    for (repr, text, as_tcpdump) in [
        (
            Repr::mem_read(ID, 0x1003, 9).unwrap(),
            "MRd, len 3, requester 01:01.0, tag 0x2a, last 0xf, first 0x8, addr 0x00001000",
            "MRd, len 3, requester 01:01.0, tag 0x2a, last 0xf, first 0x8, Addr 0x00001000",
        ),
        (
            locked.into(),
            "MRdLk, len 2, requester 01:01.0, tag 0x2a, last 0xf, first 0xf, addr 0x00001000",
            "MRdLk, len 2, requester 01:01.0, tag 0x2a, last 0xf, first 0xf, Addr 0x00001000",
        ),
        (
            Repr::mem_write(ID, 0x1_2345_6780, 64).unwrap(),
            "MWr, len 16, requester 01:01.0, tag 0x2a, last 0xf, first 0xf, addr 0x123456780",
            "MWr, len 16, requester 01:01.0, tag 0x2a, last 0xf, first 0xf, Addr 0x123456780",
        ),
        (
            Repr::deferrable_mem_write(ID, 0x1000, 2).unwrap(),
            "DMWr, len 1, requester 01:01.0, tag 0x2a, last 0x0, first 0x3, addr 0x00001000",
            "DMWr, len 1, requester 01:01.0, tag 0x2a, last 0x0, first 0x3, Addr 0x00001000",
        ),
        (
            Repr::io_read(ID, 0x3F9, 2).unwrap(),
            "IORd, requester 01:01.0, tag 0x2a, first 0x6, addr 0x03f8",
            "IORd, requester 01:01.0, tag 0x2a, first 0x6, Addr 0x03f8",
        ),
        (
            Repr::io_write(ID, 0x60, 1).unwrap(),
            "IOWr, len 1, requester 01:01.0, tag 0x2a, first 0x1, addr 0x0060",
            "IOWr, len 1, requester 01:01.0, tag 0x2a, first 0x1, Addr 0x0060",
        ),
        (
            Repr::cfg_read(ID, target),
            "CfgRd1, requester 01:01.0, tag 0x2a, first 0x3, to 03:00.0, reg 0x040",
            "CfgRd1, requester 01:01.0, tag 0x2a, first 0x3, to 03:00.0, reg 0x040",
        ),
        (
            Repr::cfg_write(ID, target.at_its_bus()),
            "CfgWr0, len 1, requester 01:01.0, tag 0x2a, first 0x3, to 03:00.0, reg 0x040",
            "CfgWr0, len 1, requester 01:01.0, tag 0x2a, first 0x3, to 03:00.0, reg 0x040",
        ),
        (
            Repr::atomic(ID, AtomicOp::CompareAndSwap, 0x2010, 16).unwrap(),
            "CAS, len 8, requester 01:01.0, tag 0x2a, operand 16, addr 0x00002010",
            "CAS, len 8, requester 01:01.0, tag 0x2a, operand 16, Addr 0x00002010",
        ),
        (
            Repr::message(Bdf(0x0108), Code::AssertIntB).unwrap(),
            "Msg, Assert_INTB, requester 01:01.0, tag 0x00",
            "Msg, Assert_INTB, requester 01:01.0, tag 0x00",
        ),
        (
            Kind::Message(vendor.unwrap()).into(),
            "MsgD, Vendor_Type_0 to 05:00.0, requester 01:01.0, tag 0x2a, content 0500123401020304",
            "MsgD, Vendor_Type_0 to 05:00.0, requester 01:01.0, tag 0x2a, content 0500123401020304",
        ),
        (
            Kind::Completion(part).into(),
            "CplD, len 17, completer 00:01.0, SC, byte count 200, requester 01:01.0, tag 0x2a, lowaddr 0x3c",
            "CplD, len 17, completer 00:01.0, success, bc 200, requester 01:01.0, tag 0x2a, lowaddr 0x3c",
        ),
        (
            Kind::Completion(part.locked().byte_count_modified()).into(),
            "CplDLk, len 17, completer 00:01.0, SC, BCM, byte count 200, requester 01:01.0, tag 0x2a, lowaddr 0x3c",
            "CplDLk, len 17, completer 00:01.0, success, BCM, bc 200, requester 01:01.0, tag 0x2a, lowaddr 0x3c",
        ),
        (
            Repr::completion(Bdf(8), ID, CompletionStatus::UnsupportedRequest, 4, 0).unwrap(),
            "Cpl, completer 00:01.0, UR, byte count 4, requester 01:01.0, tag 0x2a, lowaddr 0x00",
            "Cpl, completer 00:01.0, UR, bc 4, requester 01:01.0, tag 0x2a, lowaddr 0x00",
        ),
    ] {
        assert_eq!((repr.to_string().as_str(), format!("{repr:#}").as_str()), (text, as_tcpdump));
    }
}

#[test]
fn attributes_and_prefixes_follow() {
    let plain = Attributes::default();
    let hints = Some(ProcessingHint { hint: Hint::Target, steering_tag: 7 });
    let tc = TrafficClass::new(3).unwrap();
    for (attributes, text) in [
        (plain, ""),
        (Attributes { tc, ..plain }, ", TC3"),
        (Attributes { relaxed_ordering: true, ..plain }, ", RO"),
        (Attributes { id_based_ordering: true, ..plain }, ", IDO"),
        (Attributes { no_snoop: true, ..plain }, ", NS"),
        (Attributes { poisoned: true, ..plain }, ", poisoned"),
        (Attributes { digest: true, ..plain }, ", digest"),
        (Attributes { at: AddressType::Translated, ..plain }, ", translated"),
        (Attributes { hints, ..plain }, ", hint Target, steering tag 0x07"),
        (
            Attributes { tc, relaxed_ordering: true, no_snoop: true, poisoned: true, ..plain },
            ", TC3, RO, NS, poisoned",
        ),
    ] {
        let write = Repr::mem_write(TransactionId::new(Bdf(0), Tag::from(0)), 0x1000, 4).unwrap();
        let told = write.with_attributes(attributes).unwrap().to_string();
        assert_eq!(told, format!("{write}{text}"));
    }
    let read = Repr::mem_read(ID, 0x1000, 4).unwrap();
    let asks = read.with_attributes(Attributes { at: AddressType::TranslationRequest, ..plain }).unwrap();
    assert_eq!(asks.to_string(), format!("{read}, translation request"));
    let mut prefixes = Prefixes::NONE;
    prefixes.push(Prefix::MrIov([1, 2, 3])).unwrap();
    prefixes.push(Prefix::Pasid(Pasid::new(7).unwrap().with_privileged(true))).unwrap();
    let told = read.with_prefixes(prefixes).to_string();
    let pasid = "Pasid(Pasid { value: 7, privileged: true, execute: false })";
    assert_eq!(told, format!("{read}, prefixes [MrIov([1, 2, 3]), {pasid}]"));
}

#[test]
fn a_dllp_of_each_kind() {
    let vc = Vc::new(2).unwrap();
    let fc = |phase, class| dllp::Repr::FlowControl(FlowControl::new(phase, class, vc, 8, 64));
    let scaled = |header, data| {
        let phase = FcPhase::Init1;
        dllp::Repr::FlowControl(FlowControl::scaled(phase, FcClass::Posted, vc, (header, 128), (data, 4096)))
    };
    use FcClass::{Completion, NonPosted, Posted};
    for (dllp, text) in [
        (dllp::Repr::Ack(Sequence::new(4095)), "Ack, seq 4095"),
        (dllp::Repr::Nak(Sequence::new(7)), "Nak, seq 7"),
        (fc(FcPhase::Init1, Posted), "InitFC1-P, vc 2, hdr 8, data 64"),
        (fc(FcPhase::Init1, NonPosted), "InitFC1-NP, vc 2, hdr 8, data 64"),
        (fc(FcPhase::Init1, Completion), "InitFC1-Cpl, vc 2, hdr 8, data 64"),
        (fc(FcPhase::Init2, Posted), "InitFC2-P, vc 2, hdr 8, data 64"),
        (fc(FcPhase::Init2, NonPosted), "InitFC2-NP, vc 2, hdr 8, data 64"),
        (fc(FcPhase::Init2, Completion), "InitFC2-Cpl, vc 2, hdr 8, data 64"),
        (fc(FcPhase::Update, Posted), "UpdateFC-P, vc 2, hdr 8, data 64"),
        (fc(FcPhase::Update, NonPosted), "UpdateFC-NP, vc 2, hdr 8, data 64"),
        (fc(FcPhase::Update, Completion), "UpdateFC-Cpl, vc 2, hdr 8, data 64"),
        (scaled(Scale::By4, Scale::By16), "InitFC1-P, vc 2, hdr 32<<2, data 256<<4"),
        (scaled(Scale::By1, Scale::Off), "InitFC1-P, vc 2, hdr 128<<0, data 0"),
        (dllp::Repr::Pm(PmCode::EnterL1), "PM_Enter_L1"),
        (dllp::Repr::Pm(PmCode::EnterL23), "PM_Enter_L23"),
        (dllp::Repr::Pm(PmCode::ActiveStateRequestL1), "PM_Active_State_Request_L1"),
        (dllp::Repr::Pm(PmCode::RequestAck), "PM_Request_Ack"),
        (
            dllp::Repr::Feature { ack: true, supported: FeatureBits::new(5).unwrap() },
            "Feature, ack true, supported 0x5",
        ),
        (dllp::Repr::Vendor([1, 2, 0xA0]), "Vendor, 0102a0"),
        (dllp::Repr::Nop, "NOP"),
    ] {
        assert_eq!(dllp.to_string(), text);
        assert_eq!(dllp::Repr::parse(&dllp::Packet::new(&dllp.emit())), Ok(dllp));
    }
    assert_eq!(FeatureBits::new(1 << 23), None);
    assert_eq!(FeatureBits::new((1 << 23) - 1).map(FeatureBits::bits), Some(0x7F_FFFF));
}

/// An error names its problem, the offset in the bytes, and the section that states the rule.
#[test]
fn errors_name_field_offset_and_section() {
    let write = Repr::mem_write(ID, 0x1000, 8).unwrap();
    let mut bytes = [0; 20];
    assert_eq!(write.emit(&mut bytes, &[1; 8]), Ok(20));
    for (payload, buffer, text) in [
        (7, 20, "Payload: 8 bytes are needed, there are 7 (PCIe 5.0 §2.2.2)"),
        (9, 21, "Payload: the packet ends after 8 bytes, there are 9 (PCIe 5.0 §2.2.2)"),
        (8, 19, "Buffer: 20 bytes are needed, there are 19 (PCIe 5.0 §2.2.1)"),
    ] {
        assert_eq!(write.emit(&mut [0; 21][..buffer], &[0; 9][..payload]).unwrap_err().to_string(), text);
    }
    assert_eq!(write.emit(&mut [0; 24], &[1; 8]), Ok(20), "a longer buffer will do");
    let header = write.emit_header(&mut [0; 11]).unwrap_err().to_string();
    assert_eq!(header, "Buffer: 12 bytes are needed, there are 11 (PCIe 5.0 §2.2.1)");
    let parse = |bytes: &[u8]| Repr::parse(&Packet::new(bytes)).map(|_| ()).unwrap_err().to_string();
    assert_eq!(parse(&[]), "TLP Header at byte 0: 12 bytes are needed, there are 0 (PCIe 5.0 §2.2.1)");
    let told = "TLP Header at byte 4: 16 bytes are needed, there are 4 (PCIe 5.0 §2.2.1)";
    assert_eq!(Packet::new(&[0x91, 0, 0, 7]).check_len().unwrap_err().to_string(), told);
    let dllp = |bytes: &[u8]| dllp::Repr::parse(&dllp::Packet::new(bytes)).unwrap_err().to_string();
    assert_eq!(dllp(&[0; 5]), "DLLP at byte 5: 6 bytes are needed, there are 5 (PCIe 5.0 §3.5.1)");
    assert_eq!(dllp(&[0; 7]), "DLLP at byte 6: the packet ends after 6 bytes, there are 7 (PCIe 5.0 §3.5.1)");
    assert_eq!(
        dllp(&[0; 6]),
        "CRC at byte 4: 0x0 is not the CRC of the four bytes before it (PCIe 5.0 §3.5.1)"
    );
}
