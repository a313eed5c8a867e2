//! A requester's rules one by one: the fields that a completion must match (PCIe 5.0 §2.3.2), the TLPs of each kind of request, the queries
//! and changes of its owner.

use tlplab_transaction::*;
use tlplab_units::{Bdf, Duration, FcClass, Mps, Mrrs, Rcb, Tag, Time, TrafficClass};
use tlplab_wire::tlp::{
    AtomicOp, Attributes, ByteEnables, CfgTarget, CfgType, Code, Completion, CompletionStatus, DwLength,
    Kind, Message, Repr, Routing, Span, TransactionId,
};

const OWN: Bdf = Bdf(0x0100);
const HOST: Bdf = Bdf(0x0008);
const COMPLETER: Completer =
    Completer { id: HOST, rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max };

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}
fn requester(tags: u16) -> Requester<&'static str> {
    let tags = TagConfig { limit: Some(tags), ..TagConfig::default() };
    Requester::new(RequesterConfig {
        tags,
        completion_timeout: Some(Duration::from_us(10)),
        ..RequesterConfig::new(OWN)
    })
}
fn poll(requester: &mut Requester<&'static str>) -> Outgoing<&'static str> {
    requester.poll_request(Time::ZERO, Classes::ALL).expect("something leaves")
}
/// The error with which a completion ends the only request of an operation.
fn error_of(
    requester: &mut Requester<&'static str>,
    reply: &Repr,
    data: Option<&[u8]>,
) -> Option<CompletionError> {
    match requester.handle_completion(Time::ZERO, reply, data) {
        Outcome::OperationDone(_, result) => result.err(),
        other => panic!("{other:?}"),
    }
}

/// The first completion of a read of 200 bytes at 0x103C is 68 bytes long (§2.3.1.1); the other values it may have, field by field.
#[test]
fn a_completion_that_contradicts_its_request() {
    let class = TrafficClass::new(3).unwrap();
    let asked = Attributes { tc: class, relaxed_ordering: true, ..Attributes::default() };
    let reply = |count: u32, lower: u8, bytes: u32| -> Box<dyn Fn(TransactionId) -> Repr> {
        Box::new(move |id| Repr::completion_with_data(HOST, id, count, lower, bytes).unwrap())
    };
    let marked = |locked: bool, modified: bool, count: u32| -> Box<dyn Fn(TransactionId) -> Repr> {
        Box::new(move |id| {
            let completion =
                Completion::with_data(HOST, id, count, 0x3C, DwLength::new(17).unwrap()).unwrap();
            let completion = if locked { completion.locked() } else { completion };
            Kind::Completion(if modified { completion.byte_count_modified() } else { completion }).into()
        })
    };
    type Answer = Box<dyn Fn(TransactionId) -> Repr>;
    let status = |status: CompletionStatus| -> Answer {
        Box::new(move |id| Repr::completion(HOST, id, status, 200, 0x3C).unwrap())
    };
    type Fault = Option<(Field, u32, u32)>;
    let rows: Vec<(Answer, Attributes, Option<usize>, Fault)> = vec![
        (reply(200, 0x3C, 68), asked, None, None),
        (reply(200, 0x3C, 200), asked, None, None),
        (reply(199, 0x3C, 68), asked, None, Some((Field::ByteCount, 200, 199))),
        (reply(204, 0x3C, 68), asked, None, Some((Field::ByteCount, 200, 204))),
        (reply(200, 0x38, 68), asked, None, Some((Field::LowerAddress, 0x3C, 0x38))),
        (status(CompletionStatus::Success), asked, None, Some((Field::Length, 200, 0))),
        (status(CompletionStatus::RetryStatus), asked, None, Some((Field::Status, 0, 2))),
        (marked(true, false, 200), asked, None, Some((Field::Locked, 0, 1))),
        // A byte count of this completion alone, as PCI-X completers may give.
        (marked(false, true, 68), asked, None, None),
        (
            reply(200, 0x3C, 68),
            Attributes { tc: TrafficClass::ZERO, ..asked },
            None,
            Some((Field::TrafficClass, 3, 0)),
        ),
        (
            reply(200, 0x3C, 68),
            Attributes { relaxed_ordering: false, ..asked },
            None,
            Some((Field::Attributes, 0b10, 0)),
        ),
        (
            reply(200, 0x3C, 68),
            Attributes { no_snoop: true, ..asked },
            None,
            Some((Field::Attributes, 0b10, 0b11)),
        ),
        // ID-based ordering is no part of it (§2.2.9).
        (reply(200, 0x3C, 68), Attributes { id_based_ordering: true, ..asked }, None, None),
        (reply(200, 0x3C, 68), asked, Some(68), None),
        (reply(200, 0x3C, 68), asked, Some(64), Some((Field::Length, 68, 64))),
        (reply(200, 0x3C, 68), asked, Some(72), Some((Field::Length, 68, 72))),
    ];
    for (number, (reply, attributes, carried, fault)) in rows.into_iter().enumerate() {
        let mut requester = requester(4);
        requester.set_attributes(2, asked);
        requester.read(Time::ZERO, 2, "read", 0x103C, 200).unwrap();
        let out = poll(&mut requester);
        let tag = out.repr.transaction_id().tag;
        let reply = reply(out.repr.transaction_id()).with_attributes(attributes).unwrap();
        let data = carried.map(|bytes| vec![0x5A; bytes]);
        let outcome = requester.handle_completion(Time::ZERO, &reply, data.as_deref());
        match fault {
            None => {
                assert!(outcome.progress().is_some_and(|p| p.error.is_none()), "row {number}: {outcome:?}")
            }
            Some((field, expected, found)) => {
                let error = CompletionError::Mismatch { tag, field, expected, found };
                let Outcome::OperationDone(progress, result) = outcome else {
                    panic!("row {number}: {outcome:?}")
                };
                assert_eq!((result, progress.error), (Err(error), Some(error)), "row {number}");
                assert_eq!(requester.tags_in_use(), 1, "the tag rests");
            }
        }
    }
}

/// The data of 5 bytes at 0x1042 are these alone or the payload of two doublewords; other lengths are not theirs.
#[test]
fn data_come_bare_or_padded() {
    for carried in 0..12 {
        let mut requester = requester(1);
        requester.read(Time::ZERO, 0, "read", 0x1042, 5).unwrap();
        let out = poll(&mut requester);
        let tag = out.repr.transaction_id().tag;
        let reply = COMPLETER.succeed(&out.repr).next().unwrap().repr;
        let data: Vec<u8> = (0..carried as u8).collect();
        let Outcome::OperationDone(_, result) = requester.handle_completion(Time::ZERO, &reply, Some(&data))
        else {
            panic!("{carried} B")
        };
        let expected = match carried {
            5 => Ok(Payload::from([0, 1, 2, 3, 4])),
            8 => Ok(Payload::from([2, 3, 4, 5, 6])),
            found => Err(CompletionError::Mismatch { tag, field: Field::Length, expected: 8, found }),
        };
        assert_eq!(result, expected, "{carried} B");
    }
}

/// A payload field of two doublewords for 5 bytes at 0x1042: the bytes alone get their padding, whole doublewords lie as they are, and what is
/// longer is refused.
#[test]
fn data_are_laid_out_as_the_wire_has_them() {
    let mut requester = requester(1);
    requester.write(Time::ZERO, 0, "write", 0x1042, Payload::Length(5)).unwrap();
    let repr = poll(&mut requester).repr;
    let laid_out = |data: &[u8]| {
        let mut field = [0xee; 8];
        lay_out(&repr, data, &mut field).map(|()| field)
    };
    assert_eq!(laid_out(&[1, 2, 3, 4, 5]), Ok([0, 0, 1, 2, 3, 4, 5, 0]));
    assert_eq!(laid_out(&[1, 2, 3, 4, 5, 6, 7, 8]), Ok([1, 2, 3, 4, 5, 6, 7, 8]));
    assert_eq!(laid_out(&[]), Ok([0; 8]));
    assert!(laid_out(&[1; 7]).is_err(), "two of padding and 7");
    assert!(laid_out(&[1; 9]).is_err());
}

/// The fields of the one completion that answers a request other than a memory read.
#[test]
fn answers_of_one_completion() {
    let id = TransactionId::default();
    let target = CfgTarget::new(Bdf(0x300), 0x40, 15, CfgType::Type0).unwrap();
    let data = |count, bytes| {
        Repr::completion_with_data(HOST, TransactionId::new(OWN, Tag::from(0)), count, 0, bytes)
    };
    let bare = |count| {
        Repr::completion(HOST, TransactionId::new(OWN, Tag::from(0)), CompletionStatus::Success, count, 0)
    };
    let mismatch = |field, expected, found| {
        Some(CompletionError::Mismatch { tag: Tag::from(0), field, expected, found })
    };
    let read = Repr::cfg_read(id, target);
    let add = Repr::atomic(id, AtomicOp::FetchAdd, 0x2008, 8).unwrap();
    let rows = [
        (read, 0, data(4, 4), None),
        (read, 0, data(8, 4), mismatch(Field::ByteCount, 4, 8)),
        (read, 0, bare(4), mismatch(Field::Length, 4, 0)),
        (Repr::io_read(id, 0x3F8, 1).unwrap(), 0, data(4, 4), None),
        (Repr::cfg_write(id, target), 4, bare(4), None),
        (Repr::cfg_write(id, target), 4, data(4, 4), mismatch(Field::Length, 0, 4)),
        (Repr::deferrable_mem_write(id, 0x3000, 8).unwrap(), 8, bare(4), None),
        (add, 8, data(8, 8), None),
        (add, 8, data(8, 4), mismatch(Field::Length, 8, 4)),
        (add, 8, data(4, 4), mismatch(Field::ByteCount, 8, 4)),
    ];
    for (request, payload, reply, error) in rows {
        let mut requester = requester(1);
        let payload = (payload > 0).then_some(Payload::Length(payload));
        requester.request(Time::ZERO, 0, "it", request, payload).unwrap();
        poll(&mut requester);
        assert_eq!(error_of(&mut requester, &reply.unwrap(), None), error, "{request:?}");
    }
    // A refusal has no data.
    for status in [
        CompletionStatus::UnsupportedRequest,
        CompletionStatus::CompleterAbort,
        CompletionStatus::RetryStatus,
    ] {
        let mut requester = requester(1);
        requester.request(Time::ZERO, 0, "it", read, None).unwrap();
        let out = poll(&mut requester);
        let expected = match status {
            CompletionStatus::UnsupportedRequest => CompletionError::UnsupportedRequest { address: 0x40 },
            CompletionStatus::CompleterAbort => CompletionError::CompleterAbort { address: 0x40 },
            _ => CompletionError::RetryStatus,
        };
        let refusal = COMPLETER.refuse(&out.repr, status).unwrap();
        assert_eq!(error_of(&mut requester, &refusal, None), Some(expected));
        assert_eq!(requester.tags_in_use(), 0);
    }
}

/// A TLP that completes none of the requester's outstanding requests (§2.3.2) is dropped and changes nothing.
#[test]
fn unexpected_completions() {
    let mut requester = requester(2);
    requester.read(Time::ZERO, 0, "read", 0x1000, 4).unwrap();
    poll(&mut requester);
    let reply = |requester, tag: u8| {
        Repr::completion_with_data(HOST, TransactionId::new(requester, Tag::from(tag)), 4, 0, 4).unwrap()
    };
    let write = Repr::mem_write(TransactionId::new(OWN, Tag::from(0)), 0x1000, 4).unwrap();
    let other = Bdf(0x0101);
    for (tlp, why) in [
        (write, Unexpected::NotACompletion("MWr")),
        (reply(other, 0), Unexpected::OtherRequester { found: other, own: OWN }),
        (reply(OWN, 2), Unexpected::ForeignTag(Tag::from(2))),
        (reply(OWN, 1), Unexpected::NotOutstanding(Tag::from(1))),
    ] {
        let outcome = requester.handle_completion(Time::ZERO, &tlp, None);
        assert!(outcome.progress().is_none());
        assert_eq!(outcome, Outcome::Unexpected(why));
        assert_eq!((requester.in_flight(), requester.tags_in_use()), (1, 1));
    }
    // What is missing is asked by its own ID.
    let id = |requester, tag: u8| TransactionId::new(requester, Tag::from(tag));
    assert_eq!(
        [id(OWN, 0), id(other, 0), id(OWN, 1), id(OWN, 2)].map(|id| requester.missing(id)),
        [Some(4), None, None, None]
    );
    assert_eq!(error_of(&mut requester, &reply(OWN, 0), None), None);
}

/// Each kind of request as it leaves: ID, tag and class are the requester's, all else is the template's.
#[test]
fn templates_leave_as_they_are() {
    let other = TransactionId::new(Bdf(0x7777), Tag::from(9));
    let target = CfgTarget::new(Bdf(0x300), 0x40, 0b0011, CfgType::Type1).unwrap();
    let holes =
        Span::with_enables(0x1008, DwLength::new(2).unwrap(), ByteEnables::new(0b0100, 0b0010)).unwrap();
    let message =
        Message::vendor(other, Code::VendorType1, (Routing::Broadcast, None), 0x1234, [1; 4], 2).unwrap();
    // The template, bytes of payload, then the address and bytes that are told.
    let rows: Vec<(Repr, u64, u64, u32)> = vec![
        (Kind::MemRead { id: other, span: holes, locked: false }.into(), 0, 0x100A, 4),
        (Kind::MemRead { id: other, span: holes, locked: true }.into(), 0, 0x100A, 4),
        (Repr::mem_read(other, 0x1005, 0).unwrap(), 0, 0x1004, 0),
        (Kind::MemWrite { id: other, span: holes }.into(), 4, 0x100A, 4),
        (Repr::deferrable_mem_write(other, 0x2002, 7).unwrap(), 7, 0x2002, 7),
        (Repr::atomic(other, AtomicOp::CompareAndSwap, 0x2010, 4).unwrap(), 8, 0x2010, 4),
        (Repr::io_read(other, 0x3F9, 2).unwrap(), 0, 0x3F8, 4),
        (Repr::io_write(other, 0x3F9, 2).unwrap(), 4, 0x3F8, 4),
        (Repr::cfg_read(other, target), 0, 0, 4),
        (Repr::cfg_write(other, target), 4, 0, 4),
        (Kind::Message(message).into(), 8, 0, 8),
    ];
    for (template, bytes, address, told) in rows {
        let template =
            template.with_attributes(Attributes { digest: true, ..Attributes::default() }).unwrap();
        let data: Vec<u8> = (1..=bytes as u8).collect();
        let payload = (bytes > 0).then(|| Payload::from(data.clone()));
        let wrong = Payload::Length(bytes + 4);
        let refused = requester(1).request(Time::ZERO, 0, "it", template, Some(wrong));
        let (expected, found) = (bytes as u32, bytes + 4);
        assert_eq!(refused, Err(RequestError::PayloadLength { name: template.name(), expected, found }));

        let mut requester = requester(1);
        requester.request(us(1), 5, "it", template, payload.clone()).unwrap();
        let class = template.fc_class();
        assert_eq!((requester.queued(), requester.queued_of(class)), (1, 1));
        let out = requester.poll_request(us(2), class).unwrap();
        assert_eq!((out.address, out.bytes, out.offset), (address, told, 0), "{template:?}");
        assert_eq!((out.stream, out.submitted, out.last_of_op), (5, us(1), true));
        assert_eq!(out.payload, payload, "{template:?}");
        let posted = class == FcClass::Posted;
        let own = TransactionId::new(OWN, Tag::from(0));
        let expected = if matches!(template.kind(), Kind::Message(_)) { other } else { own };
        assert_eq!(out.repr.transaction_id(), expected);
        assert_eq!(out.repr.with_transaction_id(other), template);
        assert_eq!(
            (requester.in_flight(), requester.tags_in_use()),
            (usize::from(!posted), u16::from(!posted))
        );
        assert_eq!((requester.queued(), requester.is_idle()), (0, posted));
    }
    // No data are no payload.
    let mut requester = self::requester(1);
    let read = Repr::cfg_read(other, target);
    requester.request(Time::ZERO, 0, "it", read, Some(Payload::EMPTY)).unwrap();
    assert_eq!(poll(&mut requester).payload, None);
    let completion = Repr::completion(HOST, other, CompletionStatus::Success, 4, 0).unwrap();
    let refused = self::requester(1).request(Time::ZERO, 0, "it", completion, None);
    assert_eq!(refused, Err(RequestError::NotARequest("Cpl")));
}

/// The result of a request that is answered at once, with the data that came.
#[test]
fn each_kind_of_request_returns_its_data() {
    let id = TransactionId::default();
    let target = CfgTarget::new(Bdf(0x300), 0x40, 15, CfgType::Type0).unwrap();
    let read = Repr::mem_read(id, 0x1002, 3).unwrap();
    for (request, payload, brings) in [
        (Repr::cfg_read(id, target), 0, 4),
        (Repr::io_read(id, 0x3F8, 2).unwrap(), 0, 4),
        (Repr::cfg_write(id, target), 4, 0),
        (Repr::io_write(id, 0x3F8, 2).unwrap(), 4, 0),
        (Repr::atomic(id, AtomicOp::CompareAndSwap, 0x2010, 16).unwrap(), 32, 16),
        (Repr::deferrable_mem_write(id, 0x2010, 16).unwrap(), 16, 0),
        (Repr::mem_read(id, 0x1002, 0).unwrap(), 0, 0),
        (read, 0, 3),
    ] {
        for carried in [true, false] {
            let mut requester = requester(1);
            let payload = (payload > 0).then_some(Payload::Length(payload));
            requester.request(Time::ZERO, 0, "it", request, payload).unwrap();
            let out = poll(&mut requester);
            let reply = COMPLETER.succeed(&out.repr).next().unwrap();
            let data: Vec<u8> = (1..=brings as u8).collect();
            let carries = (carried && reply.repr.payload_bytes() > 0).then_some(&data[..]);
            let outcome = requester.handle_completion(Time::ZERO, &reply.repr, carries);
            let Outcome::OperationDone(progress, Ok(result)) = outcome else { panic!("{outcome:?}") };
            assert_eq!((progress.bytes, result.len()), (brings, u64::from(brings)), "{request:?}");
            let expected = (carried && brings > 0).then_some(&data[..]);
            assert_eq!(result.bytes(), expected, "{request:?}");
            assert!(requester.is_idle());
        }
    }
}

/// Poisoned data fail the read when the rest has come, and none of it counts as good.
#[test]
fn poison_fails_the_whole_read() {
    let mut requester = requester(2);
    requester.read(us(1), 0, "read", 0x1000, 256).unwrap();
    let out = requester.poll_request(us(2), Classes::ALL).unwrap();
    let mut parts = COMPLETER.succeed(&out.repr);
    let first = parts.next().unwrap().repr;
    let poisoned = first.with_attributes(Attributes { poisoned: true, ..*first.attributes() }).unwrap();
    let error = CompletionError::Poisoned { address: 0x1000 };
    let outcome = requester.handle_completion(us(3), &poisoned, Some(&[0; 128]));
    let tag = out.repr.transaction_id().tag;
    let progress = Progress {
        op: "read",
        stream: 0,
        tag,
        address: 0x1000,
        bytes: 0,
        sent: us(2),
        submitted: us(1),
        error: Some(error),
    };
    assert_eq!(outcome, Outcome::Partial(progress));
    let outcome = requester.handle_completion(us(3), &parts.next().unwrap().repr, Some(&[0; 128]));
    assert_eq!(
        outcome,
        Outcome::OperationDone(Progress { address: 0x1080, bytes: 128, ..progress }, Err(error))
    );
}

/// Requests time out in the order they left, whichever were answered between.
#[test]
fn time_runs_out_in_the_order_of_sending() {
    for answered in [&[0usize][..], &[1], &[3], &[1, 2], &[0, 3], &[2, 0, 1], &[0, 1, 2, 3]] {
        let mut requester = requester(4);
        let mut sent = Vec::new();
        for (number, op) in ["a", "b", "c", "d"].into_iter().enumerate() {
            requester.read(us(number as u64), 0, op, 0x1000, 4).unwrap();
            sent.push(requester.poll_request(us(number as u64), Classes::ALL).unwrap());
        }
        for &number in answered {
            let reply = COMPLETER.succeed(&sent[number].repr).next().unwrap().repr;
            let outcome = requester.handle_completion(us(4), &reply, None);
            assert!(
                matches!(outcome, Outcome::OperationDone(progress, Ok(_)) if progress.op == sent[number].op)
            );
        }
        let left: Vec<usize> = (0..4).filter(|number| !answered.contains(number)).collect();
        assert_eq!(requester.in_flight(), left.len());
        for &number in &left {
            let due = us(number as u64 + 10);
            assert_eq!(requester.deadline(), Some(due));
            assert_eq!(requester.handle_timeout(due - Duration::from_fs(1)), None);
            let Some(Outcome::OperationDone(progress, Err(error))) = requester.handle_timeout(due) else {
                panic!()
            };
            let tag = sent[number].repr.transaction_id().tag;
            let (address, after) = (0x1000, Duration::from_us(10));
            assert_eq!(
                (progress.op, error),
                (sent[number].op, CompletionError::Timeout { address, tag, after })
            );
        }
        assert_eq!((requester.deadline(), requester.is_idle()), (None, true));
    }
}

/// The specification asks that no completion passes posted requests made before it: the owner holds it back until they have left.
#[test]
fn a_mark_waits_for_the_writes_before_it() {
    let mut requester = requester(1);
    let room = Classes::from(FcClass::Posted);
    let empty = requester.posted_mark();
    assert!(requester.has_sent(empty));
    requester.write(Time::ZERO, 1, "early", 0x1000, Payload::Length(256)).unwrap();
    let mark = requester.posted_mark();
    requester.write(Time::ZERO, 0, "late", 0x2000, Payload::Length(256)).unwrap();
    assert!(requester.has_sent(empty) && !requester.has_sent(mark));
    let mut left = Vec::new();
    while let Some(out) = requester.poll_request(Time::ZERO, room) {
        left.push((out.op, out.last_of_op, requester.has_sent(mark)));
    }
    assert_eq!(
        left,
        [("late", false, false), ("early", false, false), ("late", true, false), ("early", true, true)]
    );
    // A read is not posted.
    requester.read(Time::ZERO, 0, "read", 0, 4).unwrap();
    assert!(requester.has_sent(requester.posted_mark()));
}

/// Changes of software hold for operations that are submitted, or requests that leave, afterwards.
#[test]
fn software_changes_limits() {
    let mut requester = requester(8);
    let bytes = |requester: &mut Requester<_>| {
        std::iter::from_fn(|| requester.poll_request(Time::ZERO, Classes::ALL))
            .map(|out| (out.repr.transaction_id().requester, out.bytes))
            .collect::<Vec<_>>()
    };
    requester.write(Time::ZERO, 0, "before", 0, Payload::Length(256)).unwrap();
    let (id, mps, mrrs) = (Bdf(0x0200), Mps::new(256).unwrap(), Mrrs::new(1024).unwrap());
    requester.reconfigure(id, mps, mrrs);
    assert_eq!((requester.config().id, requester.config().mps, requester.config().mrrs), (id, mps, mrrs));
    requester.write(Time::ZERO, 0, "write", 0, Payload::Length(512)).unwrap();
    requester.read(Time::ZERO, 0, "read", 0, 2048).unwrap();
    requester.write_deferrable(Time::ZERO, 0, "deferrable", 0, Payload::Length(256)).unwrap();
    assert_eq!(bytes(&mut requester), [128, 128, 256, 256, 1024, 1024, 128, 128].map(|bytes| (id, bytes)));
    requester.set_request_policy(RequestPolicy::Packed);
    requester.write(Time::ZERO, 0, "packed", 64, Payload::Length(512)).unwrap();
    requester.set_request_policy(RequestPolicy::Aligned);
    requester.write(Time::ZERO, 0, "aligned", 64, Payload::Length(512)).unwrap();
    assert_eq!(bytes(&mut requester), [256, 256, 192, 256, 64].map(|bytes| (id, bytes)));
    // Another time limit holds from now on, for tags that rest as well.
    let mut requester = self::requester(1);
    requester.set_time_limits(Duration::from_us(3), Quarantine::For(Duration::from_us(4)));
    requester.read(Time::ZERO, 0, "first", 0, 4).unwrap();
    requester.read(Time::ZERO, 0, "second", 0, 4).unwrap();
    poll(&mut requester);
    assert_eq!(requester.deadline(), Some(us(3)));
    requester.handle_timeout(us(3)).unwrap();
    assert_eq!(requester.deadline(), Some(us(7)));
    assert!(requester.poll_request(us(6), Classes::ALL).is_none());
    assert_eq!(requester.poll_request(us(7), Classes::ALL).unwrap().op, "second");
}

/// A zero-length read that may have the first tag only waits for it, and lets reads of other streams by.
#[test]
fn a_flush_waits_for_the_first_tag() {
    let config = *requester(3).config();
    let config = RequesterConfig { tags: TagConfig { skip: 8, ..config.tags }, ..config };
    for by_first in [true, false] {
        let mut requester = Requester::new(RequesterConfig { flush_by_first_tag: by_first, ..config });
        requester.read(Time::ZERO, 0, "first", 0x1000, 4).unwrap();
        let first = poll(&mut requester);
        requester.read(Time::ZERO, 0, "flush", 0x2000, 0).unwrap();
        requester.read(Time::ZERO, 1, "other", 0x3000, 4).unwrap();
        assert!(!by_first || requester.blocked_on_tags());
        let next: Vec<_> = std::iter::from_fn(|| requester.poll_request(Time::ZERO, Classes::ALL))
            .map(|out| (out.op, out.repr.transaction_id().tag.value()))
            .collect();
        if !by_first {
            assert_eq!(next, [("flush", 9), ("other", 10)]);
            continue;
        }
        assert_eq!(next, [("other", 9)]);
        let reply = COMPLETER.succeed(&first.repr).next().unwrap().repr;
        requester.handle_completion(Time::ZERO, &reply, None);
        assert!(!requester.blocked_on_tags());
        let flush = poll(&mut requester);
        assert_eq!((flush.op, flush.bytes, flush.repr.transaction_id().tag.value()), ("flush", 0, 8));
        assert_eq!(requester.tags_in_use(), 2);
        // The turn of the other tags goes on where it was.
        requester.read(Time::ZERO, 0, "next", 0x1000, 4).unwrap();
        assert_eq!(poll(&mut requester).repr.transaction_id().tag.value(), 10);
    }
}

/// A flush that waits is woken by the end of the first tag's rest.
#[test]
fn a_flush_waits_for_the_first_tag_to_rest() {
    let config = RequesterConfig { flush_by_first_tag: true, ..*requester(2).config() };
    let mut requester = Requester::new(config);
    requester.set_time_limits(Duration::from_us(10), Quarantine::For(Duration::from_us(5)));
    requester.read(Time::ZERO, 0, "lost", 0x1000, 4).unwrap();
    poll(&mut requester);
    assert!(!requester.blocked_on_tags());
    requester.read(Time::ZERO, 0, "flush", 0, 0).unwrap();
    assert_eq!(requester.deadline(), Some(us(10)));
    requester.handle_timeout(us(10)).unwrap();
    assert_eq!(requester.deadline(), Some(us(15)));
    assert!(requester.poll_request(us(14), Classes::ALL).is_none());
    assert_eq!(requester.poll_request(us(15), Classes::ALL).map(|out| out.op), Some("flush"));
}

/// Streams begin with the requester's attributes, and may have their own.
#[test]
fn attributes_of_streams() {
    let attributes = Attributes { relaxed_ordering: true, ..Attributes::default() };
    let own = Attributes { no_snoop: true, ..Attributes::default() };
    let mut requester = Requester::new(RequesterConfig { attributes, ..*requester(8).config() });
    requester.set_attributes(1, own);
    for stream in [0, 1] {
        requester.read(Time::ZERO, stream, "read", 0, 4).unwrap();
        requester.write(Time::ZERO, stream, "write", 0, Payload::Length(4)).unwrap();
        requester.write_deferrable(Time::ZERO, stream, "deferrable", 0, Payload::Length(4)).unwrap();
    }
    let seen: Vec<_> = std::iter::from_fn(|| requester.poll_request(Time::ZERO, Classes::ALL))
        .map(|out| (out.stream, out.repr.name(), *out.repr.attributes()))
        .collect();
    let expected =
        ["MRd", "MWr", "DMWr"].into_iter().flat_map(|name| [(0, name, attributes), (1, name, own)]);
    assert_eq!(seen, expected.collect::<Vec<_>>());
}

#[test]
fn classes_are_counted_apart() {
    let mut requester = requester(8);
    requester.read(Time::ZERO, 0, "read", 0, 1024).unwrap();
    requester.write(Time::ZERO, 0, "write", 0, Payload::Length(4)).unwrap();
    requester.write(Time::ZERO, 1, "write", 0, Payload::Length(4)).unwrap();
    let counts = |requester: &Requester<_>| {
        (requester.queued(), FcClass::ALL.map(|class| requester.queued_of(class)), requester.is_idle())
    };
    assert_eq!(counts(&requester), (3, [2, 1, 0], false));
    assert!(requester.poll_request(Time::ZERO, Classes::NONE).is_none());
    assert!(requester.poll_request(Time::ZERO, FcClass::Completion).is_none());
    poll(&mut requester);
    assert_eq!(counts(&requester), (3, [2, 1, 0], false));
    let left: Vec<_> =
        std::iter::from_fn(|| requester.poll_request(Time::ZERO, Classes::ALL)).map(|out| out.op).collect();
    assert_eq!(left, ["write", "read", "write"]);
    assert_eq!(counts(&requester), (0, [0, 0, 0], false));
    assert!(Classes::ALL.contains(FcClass::Completion) && !Classes::NONE.contains(FcClass::Posted));
    let two = Classes::from(FcClass::Posted).with(FcClass::Completion).with(FcClass::Posted);
    assert_eq!(FcClass::ALL.map(|class| two.contains(class)), [true, false, true]);
}

/// A request that was issued again is the youngest, whatever stood behind it before.
#[test]
fn a_retry_is_the_youngest() {
    let mut requester = Requester::new(RequesterConfig { retries: 1, ..*requester(4).config() });
    for (at, op) in [(0, "a"), (1, "b")] {
        requester.read(us(at), 0, op, 0x1000, 4).unwrap();
        requester.poll_request(us(at), Classes::ALL).unwrap();
    }
    let mut second = Vec::new();
    for (at, op) in [(10, "a"), (11, "b")] {
        assert_eq!(requester.deadline(), Some(us(at)));
        assert!(
            matches!(requester.handle_timeout(us(at)), Some(Outcome::Again(progress)) if progress.op == op)
        );
        second.push(requester.poll_request(us(at), Classes::ALL).unwrap());
    }
    for (out, next) in second.iter().zip([Some(us(21)), None]) {
        let reply = COMPLETER.succeed(&out.repr).next().unwrap().repr;
        assert!(requester.handle_completion(us(12), &reply, None).progress().is_some_and(|p| p.op == out.op));
        assert_eq!(requester.deadline(), next);
    }
    assert!(requester.is_idle());
}

/// Where a part of a read has failed, the other parts are not asked for again.
#[test]
fn a_failed_read_is_not_retried() {
    let config = RequesterConfig { retries: 1, ..*requester(4).config() };
    let status = CompletionStatus::CompleterAbort;
    for poisoned in [false, true] {
        let mut requester = Requester::new(config);
        requester.read(us(0), 0, "read", 0x1000, if poisoned { 256 } else { 1024 }).unwrap();
        let first = requester.poll_request(us(0), Classes::ALL).unwrap();
        let error = if poisoned {
            let part = COMPLETER.succeed(&first.repr).next().unwrap().repr;
            let part = part.with_attributes(Attributes { poisoned, ..*part.attributes() }).unwrap();
            assert!(matches!(requester.handle_completion(us(1), &part, None), Outcome::Partial(_)));
            CompletionError::Timeout { address: 0x1080, tag: Tag::from(0), after: Duration::from_us(10) }
        } else {
            requester.poll_request(us(0), Classes::ALL).unwrap();
            let refusal = COMPLETER.refuse(&first.repr, status).unwrap();
            assert!(matches!(requester.handle_completion(us(1), &refusal, None), Outcome::RequestDone(_)));
            CompletionError::CompleterAbort { address: 0x1000 }
        };
        let outcome = requester.handle_timeout(us(10));
        assert!(matches!(outcome, Some(Outcome::OperationDone(_, Err(why))) if why == error), "{outcome:?}");
        assert!(requester.is_idle());
    }
}

/// An error ends its request, and its tag is free; only where completions overtake each other may others still be on their way, if not all
/// that was missing is refused.
#[test]
fn a_refusal_frees_the_tag_unless_it_overtook_data() {
    let rest = Duration::from_us(100);
    for (quarantine, missing, rests) in [
        (Quarantine::For(rest), 256, 0),
        (Quarantine::For(rest), 128, 0),
        (Quarantine::Unordered(rest), 256, 0),
        (Quarantine::Unordered(rest), 128, 1),
    ] {
        let tags = TagConfig { quarantine, ..TagConfig::default() };
        let mut requester = Requester::new(RequesterConfig { tags, ..RequesterConfig::new(OWN) });
        requester.read(Time::ZERO, 0, "read", 0x1000, 256).unwrap();
        let id = poll(&mut requester).repr.transaction_id();
        let refusal = Repr::completion(HOST, id, CompletionStatus::CompleterAbort, missing, 0).unwrap();
        let error = Some(CompletionError::CompleterAbort { address: 0x1000 });
        assert_eq!(error_of(&mut requester, &refusal, None), error);
        assert_eq!(requester.tags_in_use(), rests, "{quarantine:?}, {missing} B");
    }
}

/// A read behind a write waits for the write, and not yet for a tag; without room nothing leaves.
#[test]
fn a_read_behind_a_write_waits_for_the_write_first() {
    let mut requester = requester(1);
    requester.set_time_limits(Duration::from_us(10), Quarantine::For(Duration::from_us(5)));
    requester.read(us(0), 0, "lost", 0x1000, 4).unwrap();
    requester.poll_request(us(0), Classes::ALL).unwrap();
    requester.write(us(0), 0, "write", 0x1000, Payload::Length(4)).unwrap();
    requester.read(us(0), 0, "read", 0x1000, 4).unwrap();
    assert!(!requester.blocked_on_tags());
    assert_eq!(requester.poll_request(us(1), Classes::ALL).map(|out| out.op), Some("write"));
    assert!(requester.blocked_on_tags());
    requester.handle_timeout(us(10)).unwrap();
    assert!(requester.poll_request(us(15), FcClass::Posted).is_none());
    assert_eq!(requester.poll_request(us(15), FcClass::NonPosted).map(|out| out.op), Some("read"));
}

#[test]
fn a_mismatch_names_field_and_section() {
    let fields = [
        (Field::ByteCount, "Byte Count"),
        (Field::LowerAddress, "Lower Address"),
        (Field::Length, "payload length"),
        (Field::TrafficClass, "TC"),
        (Field::Attributes, "Attr"),
        (Field::Locked, "Lk"),
        (Field::Status, "Status"),
    ];
    for (field, name) in fields {
        let error = CompletionError::Mismatch { tag: Tag::from(7), field, expected: 16, found: 8 };
        let told =
            format!("malformed completion for tag 0x07: {name} is 0x8, expected 0x10 (PCIe 5.0 §2.3.2)");
        assert_eq!(error.to_string(), told);
    }
}
