//! A requester and completers in virtual time: whatever is interleaved, delayed, lost or corrupted, an operation ends once, with
//! its own data or with an error.

use proptest::prelude::*;
use std::collections::BTreeMap;
use tlplab_transaction::*;
use tlplab_units::{Bdf, Duration, FcClass, Mps, Mrrs, Rcb, Tag, Time};
use tlplab_wire::tlp::{Attributes, CompletionStatus, Kind, Repr};

const OWN: Bdf = Bdf(0x0100);
const HOST: Bdf = Bdf(0x0000);

/// A small generator of our own (xorshift64*), so that a failing case replays from its seed.
struct Random(u64);
impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// The byte that request `serial` finds at `address`: each request sees other data, so that mixed up data are noticed.
fn byte(address: u64, serial: usize) -> u8 {
    (address.wrapping_mul(0x9E37_79B9) >> 8) as u8 ^ (serial as u8).wrapping_mul(29)
}

#[derive(Clone, Debug)]
struct Setup {
    mps: u32,
    mrrs: u32,
    rcb: u32,
    completions: CompletionPolicy,
    split: RequestPolicy,
    tags: u16,
    order: TagOrder,
    padded: bool,
    seed: u64,
}

fn setup() -> impl Strategy<Value = Setup> {
    let size = || prop::sample::select(vec![128u32, 256, 512, 1024, 4096]);
    let policy = prop::sample::select(vec![
        CompletionPolicy::Rcb,
        CompletionPolicy::Max,
        CompletionPolicy::SplitHead,
        CompletionPolicy::SplitEnds,
    ]);
    let split = prop::sample::select(vec![RequestPolicy::Aligned, RequestPolicy::Packed]);
    let order = prop::sample::select(vec![TagOrder::Lowest, TagOrder::RoundRobin]);
    let rcb = prop::sample::select(vec![64u32, 128]);
    (size(), size(), rcb, policy, split, 1..40u16, order, any::<bool>(), 1..u64::MAX).prop_map(
        |(mps, mrrs, rcb, completions, split, tags, order, padded, seed)| Setup {
            mps,
            mrrs,
            rcb,
            completions,
            split,
            tags,
            order,
            padded,
            seed,
        },
    )
}

impl Setup {
    fn requester(&self, quarantine: Quarantine, timeout: Option<Duration>) -> Requester<usize> {
        let tags = TagConfig {
            skip: 0,
            limit: Some(self.tags),
            order: self.order,
            quarantine,
            bits: TagBits::Eight,
        };
        Requester::new(RequesterConfig {
            tags,
            mps: Mps::new(self.mps).unwrap(),
            mrrs: Mrrs::new(self.mrrs).unwrap(),
            split: self.split,
            completion_timeout: timeout,
            ..RequesterConfig::new(OWN)
        })
    }
    fn completer(&self) -> Completer {
        Completer {
            id: HOST,
            rcb: Rcb::new(self.rcb).unwrap(),
            mps: Mps::new(self.mps).unwrap(),
            policy: self.completions,
        }
    }
}

/// A request under way, and the completions that are still to be delivered, in order.
struct Pending {
    serial: usize,
    op: usize,
    tag: Tag,
    completions: Vec<(Repr, Vec<u8>)>,
}

/// Answers a request as memory does; every request sees data of its own.
fn answer(setup: &Setup, serial: usize, out: &Outgoing<usize>) -> Pending {
    assert!(out.bytes <= setup.mrrs && (out.address % 4096) + u64::from(out.bytes) <= 4096);
    let mut completions: Vec<(Repr, Vec<u8>)> = setup
        .completer()
        .succeed(&out.repr)
        .map(|tlp| {
            assert!(tlp.repr.payload_bytes() <= setup.mps, "{tlp:?} is longer than MPS");
            let start = out.address + u64::from(tlp.offset);
            let mut data: Vec<u8> = (0..u64::from(tlp.bytes)).map(|i| byte(start + i, serial)).collect();
            if setup.padded {
                let mut wire = vec![0xEE; padding_before(&tlp.repr) as usize];
                wire.append(&mut data);
                wire.resize(tlp.repr.payload_bytes() as usize, 0xEE);
                data = wire;
            }
            (tlp.repr, data)
        })
        .collect();
    completions.reverse();
    Pending { serial, op: out.op, tag: out.repr.transaction_id().tag, completions }
}

fn tag_is_unused(live: &[Pending], tag: Tag) -> bool {
    live.iter().all(|pending| pending.tag != tag)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// split ∘ reassemble is the identity, for any interleaving of the completions of different tags.
    #[test]
    fn reads_come_back_whole(setup in setup(), ops in prop::collection::vec((0..0x3000u64, 0..9000u64, 0..3u16), 1..12)) {
        let mut random = Random(setup.seed);
        let mut requester = setup.requester(Quarantine::default(), None);
        for (op, &(address, bytes, stream)) in ops.iter().enumerate() {
            requester.read(Time::ZERO, stream, op, address, bytes).unwrap();
        }
        let mut live: Vec<Pending> = Vec::new();
        let mut results: BTreeMap<usize, Payload> = BTreeMap::new();
        loop {
            if random.chance(60) && let Some(out) = requester.poll_request(Time::ZERO, Classes::ALL) {
                prop_assert!(tag_is_unused(&live, out.repr.transaction_id().tag));
                live.push(answer(&setup, 0, &out));
                prop_assert_eq!(requester.in_flight(), live.len());
                prop_assert!(live.len() <= usize::from(setup.tags));
                continue;
            }
            if live.is_empty() {
                if requester.is_idle() { break }
                continue;
            }
            let index = random.below(live.len());
            let (repr, data) = live[index].completions.pop().unwrap();
            let over = live[index].completions.is_empty();
            match requester.handle_completion(Time::ZERO, &repr, Some(&data)) {
                Outcome::Partial(progress) => prop_assert!(!over && progress.op == live[index].op),
                Outcome::RequestDone(progress) => prop_assert!(over && progress.error.is_none()),
                Outcome::OperationDone(progress, result) => {
                    prop_assert!(over);
                    prop_assert!(results.insert(progress.op, result.unwrap()).is_none());
                }
                Outcome::Unexpected(why) => prop_assert!(false, "{}", why),
                Outcome::Again(_) => prop_assert!(false, "nothing is retried"),
            }
            if over { live.swap_remove(index); }
        }
        for (op, &(address, bytes, _)) in ops.iter().enumerate() {
            let expected: Vec<u8> = (address..address + bytes).map(|a| byte(a, 0)).collect();
            let expected = if bytes == 0 { Payload::EMPTY } else { expected.into() };
            prop_assert_eq!(&results[&op], &expected);
        }
        prop_assert_eq!(requester.tags_in_use(), 0);
    }

    /// Writes cover their range exactly once, in order, within MPS and 4 KiB.
    #[test]
    fn writes_arrive_whole(setup in setup(), address in 0..0x3000u64, bytes in 0..9000u64) {
        let mut requester = setup.requester(Quarantine::default(), None);
        let data: Vec<u8> = (address..address + bytes).map(|a| byte(a, 0)).collect();
        requester.write(Time::ZERO, 0, 7, address, data.clone().into()).unwrap();
        let mut seen = Vec::new();
        while let Some(out) = requester.poll_request(Time::ZERO, FcClass::Posted) {
            prop_assert_eq!((out.address, out.offset), (address + seen.len() as u64, seen.len() as u64));
            prop_assert!(out.repr.payload_bytes() <= setup.mps);
            prop_assert_eq!(memory_access(&out.repr), Some(Access { address: out.address, bytes: out.bytes }));
            seen.extend_from_slice(out.payload.as_ref().and_then(Payload::bytes).unwrap());
            prop_assert_eq!(out.last_of_op, requester.queued() == 0);
        }
        prop_assert_eq!(seen, data);
        prop_assert!(requester.is_idle());
    }

    #[test]
    fn deferrable_writes_arrive_whole(setup in setup(), address in 0..0x3000u64, bytes in 0..9000u64) {
        let mut requester = setup.requester(Quarantine::default(), None);
        let data: Vec<u8> = (address..address + bytes).map(|a| byte(a, 0)).collect();
        requester.write_deferrable(Time::ZERO, 0, 7, address, data.clone().into()).unwrap();
        let (mut seen, mut live, mut done) = (Vec::new(), Vec::new(), 0);
        let mut random = Random(setup.seed);
        while !requester.is_idle() {
            while let Some(out) = requester.poll_request(Time::ZERO, FcClass::NonPosted) {
                prop_assert_eq!((out.address, out.offset), (address + seen.len() as u64, seen.len() as u64));
                prop_assert!(out.repr.payload_bytes() <= setup.mps.min(DEFERRABLE_WRITE_LIMIT));
                prop_assert_eq!(out.repr.name(), "DMWr");
                seen.extend_from_slice(out.payload.as_ref().and_then(Payload::bytes).unwrap());
                live.push(out.repr);
            }
            prop_assert!(!live.is_empty() && live.len() <= usize::from(setup.tags));
            let reply = setup.completer().succeed(&live.swap_remove(random.below(live.len()))).next().unwrap();
            match requester.handle_completion(Time::ZERO, &reply.repr, None) {
                Outcome::OperationDone(progress, result) => {
                    prop_assert_eq!((progress.op, result), (7, Ok(Payload::EMPTY)));
                    done += 1;
                }
                outcome => prop_assert!(matches!(outcome, Outcome::RequestDone(_)), "{outcome:?}"),
            }
        }
        prop_assert_eq!((seen, done, live.len()), (data, 1, 0));
    }

    /// Completions are lost, late, and tags are used again: no operation ever gets data of another request, each ends once.
    #[test]
    fn late_completions_never_become_data(
        setup in setup(),
        ops in prop::collection::vec((0..0x3000u64, 1..3000u64), 4..20),
        until_answered in any::<bool>(),
    ) {
        let limit = Duration::from_us(1);
        // Long enough for the longest delay below, or for ever.
        let quarantine =
            if until_answered { Quarantine::UntilAnswered } else { Quarantine::For(Duration::from_us(9)) };
        let mut random = Random(setup.seed);
        let mut requester = setup.requester(quarantine, Some(limit));
        let mut now = Time::ZERO;
        for (op, &(address, bytes)) in ops.iter().enumerate() {
            requester.read(now, 0, op, address, bytes).unwrap();
        }
        let mut live: Vec<(Time, Pending)> = Vec::new();
        let mut sent: BTreeMap<usize, Vec<(u64, u32, usize)>> = BTreeMap::new();
        let mut over: BTreeMap<usize, bool> = BTreeMap::new();
        let mut serial = 0;
        let mut idle = 0;
        while idle < 400 && over.len() < ops.len() {
            idle += 1;
            now += Duration::from_ns(random.below(200) as u64);
            while let Some(out) = requester.poll_request(now, Classes::ALL) {
                idle = 0;
                serial += 1;
                sent.entry(out.op).or_default().push((out.address, out.bytes, serial));
                let delay = if random.chance(85) { 300 } else { 8000 };
                let mut pending = answer(&setup, serial, &out);
                // Lost for good: only if a tag may be used again without its answer.
                if !until_answered && random.chance(5) { pending.completions.clear(); }
                live.push((now + Duration::from_ns(random.below(delay) as u64), pending));
            }
            let mut done = |outcome: Outcome<usize>| -> Result<(), TestCaseError> {
                if let Outcome::OperationDone(progress, result) = outcome {
                    prop_assert!(over.insert(progress.op, result.is_ok()).is_none(), "ended twice");
                    if let Ok(data) = result {
                        let expected: Vec<u8> = sent[&progress.op]
                            .iter()
                            .flat_map(|&(start, len, serial)| (start..start + u64::from(len)).map(move |a| byte(a, serial)))
                            .collect();
                        prop_assert_eq!(data.bytes().unwrap(), &expected[..]);
                    }
                }
                Ok(())
            };
            for (_, pending) in live.iter_mut().filter(|(due, _)| *due <= now) {
                if let Some((repr, data)) = pending.completions.pop() {
                    idle = 0;
                    done(requester.handle_completion(now, &repr, Some(&data)))?;
                }
            }
            live.retain(|(_, pending)| !pending.completions.is_empty());
            while let Some(outcome) = requester.handle_timeout(now) {
                idle = 0;
                done(outcome)?;
            }
        }
        prop_assert_eq!(over.len(), ops.len(), "every operation ends");
        prop_assert!(serial > 0 && live.iter().all(|(_, pending)| pending.serial <= serial));
    }

    /// A completion that was altered on its way is never taken for good, unless it still says exactly what it said.
    #[test]
    fn corrupted_completions_never_yield_data(setup in setup(), address in 0..0x2000u64, bytes in 1..2000u64, field in 0..8u8, amount in 1..60u32) {
        let mut random = Random(setup.seed);
        let mut requester = setup.requester(Quarantine::default(), None);
        requester.read(Time::ZERO, 0, 0, address, bytes).unwrap();
        let mut pending = Vec::new();
        while let Some(out) = requester.poll_request(Time::ZERO, Classes::ALL) {
            pending.push(answer(&setup, 0, &out));
        }
        let victim = random.below(pending.len());
        let hit = random.below(pending[victim].completions.len());
        let original = pending[victim].completions[hit].0;
        let Some(bad) = corrupt(&original, field, amount) else { return Ok(()) };
        if bad == original { return Ok(()) }
        // All the rest in one completion is a legal answer, only not the one that was given: nobody could tell it from a good one.
        if field == 2 && matches!(bad.kind(), Kind::Completion(c) if c.data_bytes() == c.byte_count()) { return Ok(()) }
        pending[victim].completions[hit].0 = bad;
        for mut request in pending {
            while let Some((repr, data)) = request.completions.pop() {
                let mut data = data;
                if repr == bad { data.resize(repr.payload_bytes() as usize, 0xBB); }
                if let Outcome::OperationDone(_, result) = requester.handle_completion(Time::ZERO, &repr, Some(&data)) {
                    prop_assert!(result.is_err(), "field {} by {}: {:?}", field, amount, bad);
                }
            }
        }
    }
}

/// `repr` with one field changed; `None` if no completion can look so.
fn corrupt(repr: &Repr, field: u8, amount: u32) -> Option<Repr> {
    let Kind::Completion(c) = repr.kind() else { unreachable!() };
    let mut id = c.id();
    let mut attributes = *repr.attributes();
    let (mut count, mut lower, mut bytes) = (c.byte_count(), u32::from(c.lower_address()), c.data_bytes());
    let mut status = CompletionStatus::Success;
    match field {
        0 => count += amount,
        1 => lower = (lower + amount) & 0x7F,
        2 => bytes += 4 * amount,
        3 => id.requester = Bdf(id.requester.0 ^ amount as u16),
        4 => id.tag = Tag::new(id.tag.value() + 40 + amount as u16)?,
        5 => attributes.no_snoop = true,
        6 => status = CompletionStatus::CompleterAbort,
        _ => attributes.poisoned = true,
    }
    let bad = match status {
        CompletionStatus::Success => Repr::completion_with_data(HOST, id, count, lower as u8, bytes),
        status => Repr::completion(HOST, id, status, count, lower as u8),
    };
    bad.ok()?.with_attributes(attributes).ok()
}

fn plain(tags: u16) -> Requester<&'static str> {
    let tags = TagConfig { limit: Some(tags), ..TagConfig::default() };
    Requester::new(RequesterConfig { tags, ..RequesterConfig::new(OWN) })
}
fn names(requester: &mut Requester<&'static str>, room: Classes) -> Vec<&'static str> {
    std::iter::from_fn(|| requester.poll_request(Time::ZERO, room)).map(|out| out.op).collect()
}
const COMPLETER: Completer =
    Completer { id: HOST, rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max };

#[test]
fn a_stream_keeps_its_order() {
    let write = || Payload::Length(200);
    let submit = |requester: &mut Requester<&'static str>| {
        requester.read(Time::ZERO, 0, "r1", 0, 600).unwrap();
        requester.write(Time::ZERO, 0, "w1", 0, write()).unwrap();
        requester.read(Time::ZERO, 0, "r2", 0, 4).unwrap();
        requester.write(Time::ZERO, 0, "w2", 0, write()).unwrap();
    };
    let mut all = plain(8);
    submit(&mut all);
    assert_eq!(names(&mut all, Classes::ALL), ["r1", "r1", "w1", "w1", "r2", "w2", "w2"]);
    // One tag: the writes overtake the reads that wait for it, the second read does not overtake the first.
    let mut starved = plain(1);
    submit(&mut starved);
    assert_eq!(names(&mut starved, Classes::ALL), ["r1", "w1", "w1", "w2", "w2"]);
    assert!(starved.blocked_on_tags());
    // Without room for non-posted requests, writes go on.
    let mut one_way = plain(8);
    submit(&mut one_way);
    assert_eq!(names(&mut one_way, FcClass::Posted.into()), ["w1", "w1", "w2", "w2"]);
    assert!(!one_way.blocked_on_tags());
    // Without room for posted requests, no read overtakes a write.
    let mut other_way = plain(8);
    submit(&mut other_way);
    assert_eq!(names(&mut other_way, FcClass::NonPosted.into()), ["r1", "r1"]);
}

#[test]
fn streams_take_turns() {
    let mut requester = plain(8);
    requester.write(Time::ZERO, 0, "a", 0, Payload::Length(256)).unwrap();
    requester.write(Time::ZERO, 2, "b", 0, Payload::Length(256)).unwrap();
    requester.read(Time::ZERO, 1, "c", 0, 1024).unwrap();
    assert_eq!(names(&mut requester, Classes::ALL), ["a", "c", "b", "a", "c", "b"]);
}

#[test]
fn completion_errors_are_distinguished() {
    let outcome = |status: Option<CompletionStatus>, config: bool| {
        let mut requester = plain(2);
        if config {
            use tlplab_wire::tlp::{CfgTarget, CfgType};
            let target = CfgTarget::new(Bdf(0x300), 0, 15, CfgType::Type0).unwrap();
            requester.request(Time::ZERO, 0, "op", Repr::cfg_read(Default::default(), target), None).unwrap();
        } else {
            requester.read(Time::ZERO, 0, "op", 0x40, 8).unwrap();
        }
        let out = requester.poll_request(Time::ZERO, Classes::ALL).unwrap();
        let mut reply = match status {
            Some(status) => COMPLETER.refuse(&out.repr, status).unwrap(),
            None => COMPLETER.succeed(&out.repr).next().unwrap().repr,
        };
        if status.is_none() {
            let poisoned = Attributes { poisoned: true, ..*reply.attributes() };
            reply = reply.with_attributes(poisoned).unwrap();
        }
        match requester.handle_completion(Time::ZERO, &reply, None) {
            Outcome::OperationDone(_, Err(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    use CompletionError as E;
    use CompletionStatus as S;
    assert_eq!(outcome(Some(S::UnsupportedRequest), false), E::UnsupportedRequest { address: 0x40 });
    assert_eq!(outcome(Some(S::CompleterAbort), false), E::CompleterAbort { address: 0x40 });
    assert_eq!(outcome(Some(S::RetryStatus), true), E::RetryStatus);
    assert!(matches!(outcome(Some(S::RetryStatus), false), E::Mismatch { field: Field::Status, .. }));
    assert_eq!(outcome(None, false), E::Poisoned { address: 0x40 });
}

#[test]
fn the_rest_of_a_failed_read_is_not_asked_for() {
    let mut requester = plain(1);
    requester.read(Time::ZERO, 0, "long", 0, 5000).unwrap();
    requester.read(Time::ZERO, 0, "next", 0, 4).unwrap();
    let out = requester.poll_request(Time::ZERO, Classes::ALL).unwrap();
    let refusal = COMPLETER.refuse(&out.repr, CompletionStatus::UnsupportedRequest).unwrap();
    let outcome = requester.handle_completion(Time::ZERO, &refusal, None);
    assert!(matches!(outcome, Outcome::OperationDone(Progress { op: "long", .. }, Err(_))), "{outcome:?}");
    assert_eq!(requester.queued(), 1);
    assert_eq!(names(&mut requester, Classes::ALL), ["next"]);
    assert_eq!(requester.queued(), 0);
}

#[test]
fn a_late_completion_after_a_timeout_frees_the_tag() {
    let mut requester = plain(1);
    requester.read(Time::ZERO, 0, "lost", 0x1000, 8).unwrap();
    requester.read(Time::ZERO, 0, "next", 0x1000, 8).unwrap();
    let out = requester.poll_request(Time::ZERO, Classes::ALL).unwrap();
    let deadline = Time::ZERO + Duration::from_ms(50);
    assert_eq!(requester.deadline(), Some(deadline));
    assert_eq!(requester.handle_timeout(deadline - Duration::from_fs(1)), None);
    let outcome = requester.handle_timeout(deadline).unwrap();
    assert!(matches!(
        outcome,
        Outcome::OperationDone(Progress { op: "lost", .. }, Err(CompletionError::Timeout { .. }))
    ));
    assert_eq!(requester.handle_timeout(deadline), None);
    // The tag rests: the next read waits for it, and says until when.
    assert!(requester.poll_request(deadline, Classes::ALL).is_none() && requester.blocked_on_tags());
    assert_eq!(requester.deadline(), Some(deadline + Duration::from_ms(50)));
    // The late completion is dropped, and frees the tag.
    let late = COMPLETER.succeed(&out.repr).next().unwrap().repr;
    let tag = out.repr.transaction_id().tag;
    let late = requester.handle_completion(deadline, &late, Some(&[0; 8]));
    assert_eq!(late, Outcome::Unexpected(Unexpected::Late(tag)));
    assert_eq!(requester.poll_request(deadline, Classes::ALL).unwrap().op, "next");
}

/// A tag rests until the last of its late completions: the same read again must not be completed by the rest of the first.
#[test]
fn a_late_answer_in_parts() {
    let mut requester = plain(1);
    requester.read(Time::ZERO, 0, "lost", 0x1000, 256).unwrap();
    requester.read(Time::ZERO, 0, "again", 0x1000, 256).unwrap();
    let out = requester.poll_request(Time::ZERO, Classes::ALL).unwrap();
    let late = Time::ZERO + Duration::from_ms(50);
    requester.handle_timeout(late).unwrap();
    let parts: Vec<Repr> = COMPLETER.succeed(&out.repr).map(|tlp| tlp.repr).collect();
    assert_eq!(parts.len(), 2);
    requester.handle_completion(late, &parts[0], None);
    assert!(requester.poll_request(late, Classes::ALL).is_none(), "one part is still under way");
    requester.handle_completion(late, &parts[1], None);
    assert_eq!(requester.poll_request(late, Classes::ALL).unwrap().op, "again");
}

#[test]
fn a_reset_cancels_everything_once() {
    let mut requester = plain(2);
    requester.read(Time::ZERO, 0, "flying", 0, 5000).unwrap();
    requester.read(Time::ZERO, 1, "queued", 0, 8).unwrap();
    requester.write(Time::ZERO, 1, "write", 0, Payload::Length(8)).unwrap();
    let out = requester.poll_request(Time::ZERO, FcClass::NonPosted).unwrap();
    let mut cancelled = Vec::new();
    requester.cancel_all(Time::ZERO, |op| cancelled.push(op));
    assert_eq!(cancelled, ["write", "flying", "queued"]);
    assert!(requester.is_idle() && requester.poll_request(Time::ZERO, Classes::ALL).is_none());
    let late = COMPLETER.succeed(&out.repr).next().unwrap().repr;
    assert!(matches!(
        requester.handle_completion(Time::ZERO, &late, None),
        Outcome::Unexpected(Unexpected::Late(_))
    ));
    requester.read(Time::ZERO, 0, "new", 0, 8).unwrap();
    assert_eq!(names(&mut requester, Classes::ALL), ["new"]);
    // After a conventional reset no tag rests, nor does one that did.
    requester.read(Time::ZERO, 0, "third", 0, 8).unwrap();
    requester.handle_timeout(Time::ZERO + Duration::from_ms(50)).unwrap();
    cancelled.clear();
    requester.reset(Time::ZERO, |op| cancelled.push(op));
    assert_eq!((&cancelled[..], requester.tags_in_use()), (&["third"][..], 0));
}

#[test]
fn other_requests() {
    use tlplab_wire::tlp::AtomicOp;
    let mut requester = plain(4);
    let add = Repr::atomic(Default::default(), AtomicOp::FetchAdd, 0x2004, 4).unwrap();
    let error = requester.request(Time::ZERO, 0, "add", add, None).unwrap_err();
    assert_eq!(error.to_string(), "FetchAdd carries 4 B of payload, not 0 B");
    requester.request(Time::ZERO, 0, "add", add, Some([1, 0, 0, 0].into())).unwrap();
    let out = requester.poll_request(Time::ZERO, Classes::ALL).unwrap();
    assert_eq!((out.repr.transaction_id().requester, out.address, out.bytes), (OWN, 0x2004, 4));
    let reply = COMPLETER.succeed(&out.repr).next().unwrap();
    let Kind::Completion(completion) = reply.repr.kind() else { panic!() };
    assert_eq!((completion.byte_count(), completion.lower_address(), reply.bytes), (4, 0, 4));
    let outcome = requester.handle_completion(Time::ZERO, &reply.repr, Some(&[9, 0, 0, 0]));
    assert!(
        matches!(outcome, Outcome::OperationDone(_, Ok(ref data)) if data.bytes() == Some(&[9, 0, 0, 0]))
    );
    // A deferrable write is completed without data.
    let write = Repr::deferrable_mem_write(Default::default(), 0x3001, 6).unwrap();
    requester.request(Time::ZERO, 0, "dmwr", write, Some(Payload::Length(6))).unwrap();
    let out = requester.poll_request(Time::ZERO, Classes::ALL).unwrap();
    let reply = COMPLETER.succeed(&out.repr).next().unwrap();
    assert_eq!((reply.repr.name(), reply.last), ("Cpl", true));
    let outcome = requester.handle_completion(Time::ZERO, &reply.repr, None);
    assert!(matches!(outcome, Outcome::OperationDone(_, Ok(Payload::EMPTY))));
    assert!(requester.read(Time::ZERO, 0, "wraps", u64::MAX, 2).is_err());
    assert!(requester.read(Time::ZERO, 0, "top", u64::MAX, 1).is_ok());
}

/// The answer of §2.2.9's example shape, through the whole requester.
#[test]
fn a_read_by_hand() {
    let mut requester = plain(1);
    requester.read(Time::ZERO, 3, "read", 0x103C, 200).unwrap();
    let out = requester.poll_request(Time::ZERO, Classes::ALL).unwrap();
    assert_eq!((out.address, out.bytes, out.stream, out.last_of_op), (0x103C, 200, 3, true));
    let tlps: Vec<_> = COMPLETER.succeed(&out.repr).collect();
    assert_eq!(
        tlps.iter().map(|tlp| (tlp.bytes, tlp.offset, tlp.last)).collect::<Vec<_>>(),
        [(68, 0, false), (128, 68, false), (4, 196, true)]
    );
    for tlp in &tlps[..2] {
        assert!(matches!(requester.handle_completion(Time::ZERO, &tlp.repr, None), Outcome::Partial(_)));
    }
    let outcome = requester.handle_completion(Time::ZERO, &tlps[2].repr, None);
    let Outcome::OperationDone(progress, Ok(Payload::Length(200))) = outcome else { panic!("{outcome:?}") };
    assert_eq!((progress.address, progress.bytes), (0x103C + 196, 4));
}

/// What may not go holds up its stream and class: posted operations pass reads of their own stream, other streams go on, and templates go in any case.
#[test]
fn requests_that_may_not_go_hold_up_their_stream() {
    let mut requester = Requester::new(RequesterConfig::new(OWN));
    let mut asked = Vec::new();
    requester.read(Time::ZERO, 0, 'a', 0x1000, 256).unwrap();
    requester.read(Time::ZERO, 0, 'b', 0x9000, 64).unwrap();
    requester.write(Time::ZERO, 0, 'c', 0x9100, Payload::Length(64)).unwrap();
    requester.write(Time::ZERO, 1, 'd', 0x1000, Payload::Length(64)).unwrap();
    requester.read(Time::ZERO, 1, 'e', 0x9200, 64).unwrap();
    requester.read(Time::ZERO, 2, 'f', 0x9F80, 0x100).unwrap();
    let template = Repr::mem_read(Default::default(), 0x1000, 8).unwrap();
    requester.request(Time::ZERO, 3, 't', template, None).unwrap();
    let mut poll = |requester: &mut Requester<char>, low: u64| {
        let mut gone = Vec::new();
        asked.clear();
        while let Some(outgoing) = requester.poll_request_if(Time::ZERO, Classes::ALL, &mut |next| {
            asked.push((next.address, next.left, next.write));
            next.address >= low
        }) {
            gone.push((outgoing.op, outgoing.address));
            asked.clear();
        }
        (gone, asked.clone())
    };
    // 'e' is behind a write that may not go, and 'b' behind a read.
    let (gone, last) = poll(&mut requester, 0x9000);
    assert_eq!(gone, [('c', 0x9100), ('f', 0x9F80), ('t', 0x1000), ('f', 0xA000)]);
    assert!(last.contains(&(0x1000, 256, false)) && last.contains(&(0x1000, 64, true)), "{last:x?}");
    let (gone, last) = poll(&mut requester, 0);
    assert_eq!(gone, [('a', 0x1000), ('d', 0x1000), ('b', 0x9000), ('e', 0x9200)]);
    assert!(last.is_empty() && requester.queued() == 0);
}
