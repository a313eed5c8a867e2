//! Any TLP and any DLLP, for property tests.

use proptest::prelude::*;
use tlplab_units::{Bdf, FcClass, Tag, TrafficClass, Vc};
use tlplab_wire::dllp::{FcPhase, FeatureBits, FlowControl, PmCode, Scale, Sequence};
use tlplab_wire::tlp::{
    AddressType, AtomicOp, AtomicTarget, Attributes, ByteEnables, CfgTarget, CfgType, Code, Completion,
    CompletionStatus, DwLength, Hint, IoPort, Kind, Message, Pasid, Prefix, Prefixes, ProcessingHint, Repr,
    Span, TransactionId,
};
use tlplab_wire::{dllp, tlp};

fn id() -> impl Strategy<Value = TransactionId> {
    (any::<u16>(), 0u16..1024).prop_map(|(bdf, tag)| TransactionId::new(Bdf(bdf), Tag::new(tag).unwrap()))
}

/// Addresses of 32 and 64 bits, up to a page and so that the length fits behind the offset.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u32>().prop_map(u64::from), any::<u64>(), Just(0x1_0000_0000u64), Just(0xffff_fff0u64)]
}

/// Contiguous spans up to 300 bytes (now and then a page), and one or two DW with holes.
pub(crate) fn span() -> impl Strategy<Value = Span> {
    let bytes = prop_oneof![8 => 0u32..300, 1 => Just(4096u32)];
    let contiguous = (address(), bytes).prop_map(|(address, len)| {
        let room = 4096 - u64::from(len);
        Span::new(address & !0xfff | (address & 0xfff).min(room), len).unwrap()
    });
    let one = (address(), 0u8..16).prop_map(|(address, first)| {
        Span::with_enables(address & !3, DwLength::ONE, ByteEnables::new(first, 0)).unwrap()
    });
    let two = (address(), 1u8..16, 1u8..16).prop_map(|(address, first, last)| {
        Span::with_enables(address & !7, DwLength::new(2).unwrap(), ByteEnables::new(first, last)).unwrap()
    });
    prop_oneof![4 => contiguous, 1 => one, 1 => two]
}

fn port() -> impl Strategy<Value = IoPort> {
    (any::<u32>(), 0u8..16)
        .prop_map(|(address, enables)| IoPort::with_enables(address & !3, enables).unwrap())
}

fn cfg() -> impl Strategy<Value = CfgTarget> {
    (any::<u16>(), 0u16..1024, 0u8..16, any::<bool>()).prop_map(|(function, register, enables, type1)| {
        let of = if type1 { CfgType::Type1 } else { CfgType::Type0 };
        CfgTarget::new(Bdf(function), register * 4, enables, of).unwrap()
    })
}

fn message() -> impl Strategy<Value = Message> {
    (id(), prop::sample::select(Code::ALL), any::<u8>(), any::<[u8; 8]>(), 0u32..40).prop_map(
        |(id, code, pick, content, dw)| {
            let routing = code.routings()[usize::from(pick) % code.routings().len()];
            // The payload's length is the code's to choose: the first that it accepts.
            [dw, 0, 1, 2]
                .into_iter()
                .find_map(|dw| Message::new(id, code, routing, content, dw).ok())
                .expect("0, 1 or 2 DW suit every code")
        },
    )
}

fn completion() -> impl Strategy<Value = Completion> {
    let status = prop::sample::select(&[
        CompletionStatus::Success,
        CompletionStatus::UnsupportedRequest,
        CompletionStatus::RetryStatus,
        CompletionStatus::CompleterAbort,
    ]);
    let common = (any::<u16>(), id(), 1u32..=4096, 0u8..128, any::<bool>(), any::<bool>());
    (common, status, 0u32..70).prop_map(|((completer, id, count, lower, locked, modified), status, dw)| {
        let completer = Bdf(completer);
        let room = (u32::from(lower & 3) + count).div_ceil(4);
        let completion = match DwLength::new(dw.min(room)) {
            Some(length) => Completion::with_data(completer, id, count, lower, length),
            None => Completion::new(completer, id, status, count, lower),
        };
        let completion = completion.unwrap();
        let completion = if locked { completion.locked() } else { completion };
        if modified { completion.byte_count_modified() } else { completion }
    })
}

fn atomic() -> impl Strategy<Value = AtomicTarget> {
    let sizes = prop_oneof![
        (prop::sample::select(&[AtomicOp::FetchAdd, AtomicOp::Swap]), prop::sample::select(&[4u32, 8])),
        (Just(AtomicOp::CompareAndSwap), prop::sample::select(&[4u32, 8, 16])),
    ];
    (sizes, address()).prop_map(|((op, operand), address)| {
        AtomicTarget::new(op, address & !(u64::from(operand) - 1), operand).unwrap()
    })
}

/// Every kind of TLP.
pub(crate) fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => (id(), span(), any::<bool>()).prop_map(|(id, span, locked)| Kind::MemRead { id, span, locked }),
        3 => (id(), span()).prop_map(|(id, span)| Kind::MemWrite { id, span }),
        1 => (id(), span()).prop_map(|(id, span)| Kind::DeferrableMemWrite { id, span }),
        1 => (id(), port()).prop_map(|(id, port)| Kind::IoRead { id, port }),
        1 => (id(), port()).prop_map(|(id, port)| Kind::IoWrite { id, port }),
        1 => (id(), cfg()).prop_map(|(id, target)| Kind::CfgRead { id, target }),
        1 => (id(), cfg()).prop_map(|(id, target)| Kind::CfgWrite { id, target }),
        3 => message().prop_map(Kind::Message),
        3 => completion().prop_map(Kind::Completion),
        2 => (id(), atomic()).prop_map(|(id, target)| Kind::AtomicOp { id, target }),
    ]
}

fn hints() -> impl Strategy<Value = Option<ProcessingHint>> {
    let hint =
        prop::sample::select(&[Hint::Bidirectional, Hint::Requester, Hint::Target, Hint::TargetWithPriority]);
    prop::option::of(
        (hint, any::<u8>()).prop_map(|(hint, steering_tag)| ProcessingHint { hint, steering_tag }),
    )
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let at = prop::sample::select(&[
        AddressType::Untranslated,
        AddressType::TranslationRequest,
        AddressType::Translated,
    ]);
    (0u8..8, any::<[bool; 5]>(), at, hints()).prop_map(|(tc, [ro, ido, ns, poisoned, digest], at, hints)| {
        Attributes {
            tc: TrafficClass::new(tc).unwrap(),
            relaxed_ordering: ro,
            id_based_ordering: ido,
            no_snoop: ns,
            at,
            poisoned,
            digest,
            hints,
        }
    })
}

fn prefixes() -> impl Strategy<Value = Prefixes> {
    let local = prop_oneof![
        any::<[u8; 3]>().prop_map(Prefix::MrIov),
        (any::<bool>(), any::<[u8; 3]>()).prop_map(|(second, body)| Prefix::VendorLocal { second, body }),
    ];
    let end_to_end = prop_oneof![
        any::<u8>().prop_map(|steering_tag_high| Prefix::Tph { steering_tag_high }),
        (0u32..1 << 20, any::<bool>(), any::<bool>()).prop_map(|(value, p, x)| Prefix::Pasid(
            Pasid::new(value).unwrap().with_privileged(p).with_execute(x)
        )),
        (any::<bool>(), any::<[u8; 3]>()).prop_map(|(second, body)| Prefix::VendorEndToEnd { second, body }),
    ];
    (prop::option::of(local), prop::collection::vec(end_to_end, 0..=4)).prop_map(|(local, others)| {
        let mut prefixes = Prefixes::NONE;
        for prefix in local.into_iter().chain(others) {
            prefixes.push(prefix).unwrap();
        }
        prefixes
    })
}

/// Any TLP: attributes that its kind cannot have are dropped one after the other.
pub(crate) fn repr() -> impl Strategy<Value = Repr> {
    let prefixes = prop_oneof![3 => Just(Prefixes::NONE), 1 => prefixes()];
    (kind(), attributes(), prefixes).prop_map(|(kind, attributes, prefixes)| {
        let digest = attributes.digest;
        let weaker = [
            attributes,
            Attributes { hints: None, ..attributes },
            Attributes { hints: None, at: AddressType::Untranslated, ..attributes },
            Attributes { hints: None, at: AddressType::Untranslated, poisoned: false, ..attributes },
            Attributes { tc: attributes.tc, id_based_ordering: true, digest, ..Attributes::default() },
            Attributes { id_based_ordering: attributes.id_based_ordering, digest, ..Attributes::default() },
            Attributes { digest, ..Attributes::default() },
        ];
        let repr = Repr::from(kind);
        let repr = weaker.into_iter().find_map(|a| repr.with_attributes(a).ok()).expect("the last suits all");
        repr.with_prefixes(prefixes)
    })
}

/// The TLP's bytes around a payload that counts up.
pub(crate) fn emit(repr: &Repr) -> (Vec<u8>, Vec<u8>) {
    let payload: Vec<u8> = (0..repr.payload_bytes()).map(|n| n as u8).collect();
    let mut bytes = vec![0; repr.wire_bytes() as usize];
    let end = repr.emit(&mut bytes, &payload).expect("room for it");
    assert_eq!(end, bytes.len());
    (bytes, payload)
}

/// Any DLLP.
pub(crate) fn dllp() -> impl Strategy<Value = dllp::Repr> {
    let scale = || prop::sample::select(&[Scale::Off, Scale::By1, Scale::By4, Scale::By16]);
    let phase = prop::sample::select(&[FcPhase::Init1, FcPhase::Init2, FcPhase::Update]);
    let credits = (phase, prop::sample::select(&FcClass::ALL), 0u8..8);
    let pm = prop::sample::select(&[
        PmCode::EnterL1,
        PmCode::EnterL23,
        PmCode::ActiveStateRequestL1,
        PmCode::RequestAck,
    ]);
    prop_oneof![
        any::<u16>().prop_map(|n| dllp::Repr::Ack(Sequence::new(n))),
        any::<u16>().prop_map(|n| dllp::Repr::Nak(Sequence::new(n))),
        (credits, (scale(), any::<u32>()), (scale(), any::<u32>())).prop_map(
            |((phase, class, vc), header, data)| {
                let vc = Vc::new(vc).unwrap();
                dllp::Repr::FlowControl(FlowControl::scaled(phase, class, vc, header, data))
            }
        ),
        pm.prop_map(dllp::Repr::Pm),
        (any::<bool>(), 0u32..1 << 23)
            .prop_map(|(ack, bits)| dllp::Repr::Feature { ack, supported: FeatureBits::new(bits).unwrap() }),
        any::<[u8; 3]>().prop_map(dllp::Repr::Vendor),
        Just(dllp::Repr::Nop),
    ]
}

/// The bits that a receiver ignores, as [`tlp`] lists them: a mask as long as the TLP.
pub(crate) fn reserved_bits(repr: &Repr) -> Vec<u8> {
    let mut mask = vec![0; repr.wire_bytes() as usize];
    for (index, prefix) in repr.prefixes().iter().enumerate() {
        let bits = match prefix {
            Prefix::Tph { .. } => [0, 0, 0xff, 0xff],
            Prefix::Pasid(_) => [0, 0xc0, 0, 0],
            _ => [0; 4],
        };
        mask[4 * index..4 * index + 4].copy_from_slice(&bits);
    }
    let header = &mut mask[repr.prefixes().bytes() as usize..];
    let address_end = repr.kind().header_bytes() as usize - 1;
    let hinted = repr.attributes().hints.is_some();
    header[1] |= 0b0000_0010;
    match repr.kind() {
        tlp::Kind::MemRead { .. } | tlp::Kind::DeferrableMemWrite { .. } if !hinted => {
            header[address_end] |= 3
        }
        tlp::Kind::MemWrite { .. } if hinted => header[1] |= 0b1000_1000,
        tlp::Kind::MemWrite { .. } => header[address_end] |= 3,
        tlp::Kind::AtomicOp { .. } if !hinted => {
            header[7] = 0xff;
            header[address_end] |= 3;
        }
        tlp::Kind::IoRead { .. } | tlp::Kind::IoWrite { .. } => {
            header[1] |= 0b101;
            header[11] |= 3;
        }
        tlp::Kind::CfgRead { .. } | tlp::Kind::CfgWrite { .. } => {
            header[1] |= 0b101;
            header[10] |= 0xf0;
            header[11] |= 3;
        }
        tlp::Kind::Message(message) => {
            header[1] |= 1;
            header[2] |= 0b0000_1100;
            if !message.code().is_vendor_defined() {
                header[2] |= 0b0011_0000;
            }
            if !message.code().has_content() {
                header[8..16].fill(0xff);
            }
        }
        tlp::Kind::Completion(_) => {
            header[1] |= 1;
            header[2] |= 0b0000_1100;
            header[11] |= 0x80;
        }
        _ => {}
    }
    if matches!(repr.kind(), tlp::Kind::Message(_) | tlp::Kind::Completion(_)) && repr.payload_dw() == 0 {
        header[2] |= 3;
        header[3] = 0xff;
    }
    mask
}
