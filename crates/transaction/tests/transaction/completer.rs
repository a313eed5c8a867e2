//! The completer by hand (PCIe 5.0 §2.2.9): the requests it answers, its refusals, the fields of a request that come back in its completions.

use tlplab_transaction::*;
use tlplab_units::{Bdf, Mps, Rcb, Tag, TrafficClass};
use tlplab_wire::tlp::{
    AddressType, AtomicOp, Attributes, ByteEnables, CfgTarget, CfgType, Code, CompletionStatus, DwLength,
    Hint, Kind, Message, ProcessingHint, Repr, Routing, Span, TransactionId,
};

const HOST: Completer =
    Completer { id: Bdf(0x0008), rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max };
const ID: TransactionId = TransactionId::new(Bdf(0x0300), Tag::new(0x2A).unwrap());

fn locked(address: u64, bytes: u32) -> Repr {
    Kind::MemRead { id: ID, span: Span::new(address, bytes).unwrap(), locked: true }.into()
}
fn register() -> CfgTarget {
    CfgTarget::new(Bdf(0x0400), 0x10, 15, CfgType::Type0).unwrap()
}

/// Name, byte count, lower address, payload of a completion.
type Fields = (&'static str, u32, u8, u32);

fn fields(repr: &Repr) -> Fields {
    let Kind::Completion(completion) = repr.kind() else { panic!("{repr:?}") };
    assert_eq!((completion.completer(), completion.id()), (HOST.id, ID));
    (repr.name(), completion.byte_count(), completion.lower_address(), repr.payload_bytes())
}

/// A request; its successful completions, each with the bytes of the answer before it and in it; the completion that refuses it.
type Row = (Repr, Vec<(Fields, u32, u32)>, Option<Fields>);

fn rows() -> Vec<Row> {
    let cas = Repr::atomic(ID, AtomicOp::CompareAndSwap, 0x2010, 16).unwrap();
    let holes =
        Span::with_enables(0x1008, DwLength::new(2).unwrap(), ByteEnables::new(0b0100, 0b0010)).unwrap();
    vec![
        // One doubleword holds the bytes, two are needed where they cross one.
        (
            Repr::mem_read(ID, 0x1041, 3).unwrap(),
            vec![(("CplD", 3, 0x41, 4), 0, 3)],
            Some(("Cpl", 3, 0x41, 0)),
        ),
        (
            Repr::mem_read(ID, 0x10C3, 5).unwrap(),
            vec![(("CplD", 5, 0x43, 8), 0, 5)],
            Some(("Cpl", 5, 0x43, 0)),
        ),
        (
            Repr::mem_read(ID, 0x103E, 140).unwrap(),
            vec![(("CplD", 140, 0x3E, 68), 0, 66), (("CplD", 74, 0, 76), 66, 74)],
            Some(("Cpl", 140, 0x3E, 0)),
        ),
        // From the first to the last enabled byte.
        (
            Kind::MemRead { id: ID, span: holes, locked: false }.into(),
            vec![(("CplD", 4, 0x0A, 8), 0, 4)],
            Some(("Cpl", 4, 0x0A, 0)),
        ),
        // A flush has a doubleword of nothing, byte count 1 and the address of its doubleword.
        (
            Repr::mem_read(ID, 0x1046, 0).unwrap(),
            vec![(("CplD", 1, 0x44, 4), 0, 0)],
            Some(("Cpl", 1, 0x44, 0)),
        ),
        (locked(0x1004, 8), vec![(("CplDLk", 8, 4, 8), 0, 8)], Some(("CplLk", 8, 4, 0))),
        // What reads no memory has lower address 0; without operand the byte count is 4.
        (cas, vec![(("CplD", 16, 0, 16), 0, 16)], Some(("Cpl", 16, 0, 0))),
        (
            Repr::atomic(ID, AtomicOp::Swap, 0x2018, 8).unwrap(),
            vec![(("CplD", 8, 0, 8), 0, 8)],
            Some(("Cpl", 8, 0, 0)),
        ),
        (Repr::io_read(ID, 0x3F9, 2).unwrap(), vec![(("CplD", 4, 0, 4), 0, 4)], Some(("Cpl", 4, 0, 0))),
        (Repr::cfg_read(ID, register()), vec![(("CplD", 4, 0, 4), 0, 4)], Some(("Cpl", 4, 0, 0))),
        (Repr::io_write(ID, 0x3F9, 2).unwrap(), vec![(("Cpl", 4, 0, 0), 0, 0)], Some(("Cpl", 4, 0, 0))),
        (Repr::cfg_write(ID, register()), vec![(("Cpl", 4, 0, 0), 0, 0)], Some(("Cpl", 4, 0, 0))),
        (
            Repr::deferrable_mem_write(ID, 0x3001, 70).unwrap(),
            vec![(("Cpl", 4, 0, 0), 0, 0)],
            Some(("Cpl", 4, 0, 0)),
        ),
        // Nobody completes what is posted, nor a completion.
        (Repr::mem_write(ID, 0x1000, 64).unwrap(), vec![], None),
        (Repr::message(ID.requester, Code::PmPme).unwrap(), vec![], None),
        (Repr::completion(Bdf(0), ID, CompletionStatus::Success, 4, 0).unwrap(), vec![], None),
    ]
}

#[test]
fn requests_and_their_completions() {
    for (request, answer, refusal) in rows() {
        let tlps: Vec<_> = HOST.succeed(&request).collect();
        let seen: Vec<_> = tlps.iter().map(|tlp| (fields(&tlp.repr), tlp.offset, tlp.bytes)).collect();
        assert_eq!(seen, answer, "{request:?}");
        let last: Vec<_> = tlps.iter().map(|tlp| tlp.last).collect();
        assert_eq!(last.iter().rposition(|last| *last), last.len().checked_sub(1), "{request:?}");
        assert_eq!(last.iter().filter(|last| **last).count(), last.len().min(1), "{request:?}");
        for status in [CompletionStatus::UnsupportedRequest, CompletionStatus::CompleterAbort] {
            let refused = HOST.refuse(&request, status);
            assert_eq!(refused.as_ref().map(fields), refusal, "{request:?}");
            let said = refused.map(|repr| match repr.kind() {
                Kind::Completion(completion) => completion.status(),
                _ => unreachable!(),
            });
            assert_eq!(said, refusal.map(|_| status));
        }
    }
}

/// Traffic class, ordering and snooping come back; address type, hints, poison and digest are the request's own affair.
#[test]
fn completions_repeat_class_ordering_and_snooping_of_a_request() {
    let order = [(false, false, false), (true, false, false), (false, true, false), (false, false, true)];
    for (relaxed_ordering, id_based_ordering, no_snoop) in order {
        let kept = Attributes {
            tc: TrafficClass::new(5).unwrap(),
            relaxed_ordering,
            id_based_ordering,
            no_snoop,
            ..Attributes::default()
        };
        let hints = Some(ProcessingHint { hint: Hint::Target, steering_tag: 7 });
        let at = AddressType::Translated;
        let of_request = [
            (Repr::mem_read(ID, 0x1000, 64).unwrap(), Attributes { at, hints, digest: true, ..kept }),
            (
                Repr::atomic(ID, AtomicOp::FetchAdd, 0x1000, 4).unwrap(),
                Attributes { at, hints, digest: true, poisoned: true, ..kept },
            ),
            (
                Repr::deferrable_mem_write(ID, 0x1000, 64).unwrap(),
                Attributes { at, digest: true, poisoned: true, ..kept },
            ),
        ];
        for (request, attributes) in of_request {
            let request = request.with_attributes(attributes).unwrap();
            let refused = HOST.refuse(&request, CompletionStatus::UnsupportedRequest);
            assert_eq!(refused.map(|repr| *repr.attributes()), Some(kept), "{request:?}");
            let answered = HOST.succeed(&request).next().map(|tlp| *tlp.repr.attributes());
            assert_eq!(answered, Some(kept), "{request:?}");
        }
    }
}

/// From the first to the last enabled byte, and the bytes that travel beside each TLP as data.
#[test]
fn memory_that_a_request_names() {
    let access = |address, bytes| Some(Access { address, bytes });
    let cas = Repr::atomic(ID, AtomicOp::CompareAndSwap, 0x2008, 8).unwrap();
    let message = Message::vendor(ID, Code::VendorType0, (Routing::Local, None), 0x1234, [0; 4], 3);
    let completion =
        |count, lower, bytes| Repr::completion_with_data(Bdf(0), ID, count, lower, bytes).unwrap();
    // The request, the memory it names, bytes of data, padding before them.
    let rows = [
        (Repr::mem_read(ID, 0x1003, 9).unwrap(), access(0x1003, 9), 0, 0),
        (Repr::mem_read(ID, 0x1003, 0).unwrap(), access(0x1000, 0), 0, 0),
        (Repr::mem_write(ID, 0x1003, 9).unwrap(), access(0x1003, 9), 9, 3),
        (Repr::mem_write(ID, 0x1003, 0).unwrap(), access(0x1000, 0), 0, 0),
        (Repr::deferrable_mem_write(ID, 0x1002, 6).unwrap(), access(0x1002, 6), 6, 2),
        (Repr::deferrable_mem_write(ID, 0x1002, 0).unwrap(), access(0x1000, 0), 0, 0),
        (cas, access(0x2008, 8), 16, 0),
        (Repr::io_write(ID, 0x3F9, 2).unwrap(), None, 4, 0),
        (Repr::cfg_write(ID, register()), None, 4, 0),
        (Repr::cfg_read(ID, register()), None, 0, 0),
        (completion(100, 0x41, 23), None, 23, 1),
        (completion(7, 0x42, 7), None, 7, 2),
        (Repr::completion(Bdf(0), ID, CompletionStatus::Success, 4, 3).unwrap(), None, 0, 0),
        (Kind::Message(message.unwrap()).into(), None, 12, 0),
    ];
    for (repr, memory, data, padding) in rows {
        assert_eq!(memory_access(&repr), memory, "{repr:?}");
        assert_eq!((data_bytes(&repr), padding_before(&repr)), (data, padding), "{repr:?}");
    }
}

#[test]
fn payloads_are_cut_and_measured() {
    let carried = Payload::from([1, 2, 3, 4, 5]);
    let counted = Payload::Length(5);
    for payload in [&carried, &counted] {
        assert_eq!((payload.len(), payload.is_empty()), (5, false));
        assert_eq!(payload.slice(1, 3).len(), 3);
        assert_eq!(payload.slice(0, 5), *payload);
        assert!(payload.slice(5, 0).is_empty());
    }
    assert_eq!(carried.slice(1, 3).bytes(), Some(&[2, 3, 4][..]));
    assert_eq!(carried.slice(4, 1).bytes(), Some(&[5][..]));
    assert_eq!(counted.bytes(), None);
    assert_eq!((Payload::EMPTY.len(), Payload::EMPTY.is_empty()), (0, true));
    assert_eq!(Payload::from(vec![7, 8]), Payload::Bytes(Bytes::from_static(&[7, 8])));
    assert_eq!(Payload::from(Bytes::from_static(&[7, 8])), Payload::from(&[7, 8][..]));
}

#[test]
#[should_panic(expected = "2 + 4 of 5 B")]
fn a_payload_is_not_cut_beyond_its_end() {
    Payload::Length(5).slice(2, 4);
}
