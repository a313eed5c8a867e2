//! A requester over a carrier that loses and reorders: retries, news of what was not delivered, tags that rest, time that begins anew.

use tlplab_transaction::*;
use tlplab_units::{Bdf, Duration, Mps, Rcb, Tag, Time};
use tlplab_wire::tlp::TransactionId;

const OWN: Bdf = Bdf(0x0100);
const HOST: Completer =
    Completer { id: Bdf(0), rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max };

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}

fn requester(tags: TagConfig, retries: u8) -> Requester<u8> {
    let completion_timeout = Some(Duration::from_us(10));
    Requester::new(RequesterConfig { tags, retries, completion_timeout, ..RequesterConfig::new(OWN) })
}

fn poll(requester: &mut Requester<u8>, now: Time) -> Option<Outgoing<u8>> {
    requester.poll_request(now, Classes::ALL)
}

#[test]
fn a_read_is_repeated_for_its_missing_bytes() {
    let mut requester = requester(TagConfig::default(), 1);
    requester.read(us(0), 0, 7, 0x1000, 256).unwrap();
    let first = poll(&mut requester, us(0)).unwrap();
    let completions: Vec<_> = HOST.succeed(&first.repr).collect();
    assert_eq!(completions.len(), 2);
    let data = [0xAB; 128];
    assert_eq!(requester.missing(first.repr.transaction_id()), Some(256));
    assert!(matches!(
        requester.handle_completion(us(1), &completions[0].repr, Some(&data)),
        Outcome::Partial(_)
    ));
    assert_eq!(requester.missing(first.repr.transaction_id()), Some(128));
    assert!(matches!(requester.handle_timeout(us(10)), Some(Outcome::Again(_))));
    assert!(requester.handle_timeout(us(10)).is_none() && !requester.is_idle());
    let again = poll(&mut requester, us(10)).unwrap();
    assert_eq!((again.op, again.address, again.bytes, again.offset), (7, 0x1080, 128, 128));
    assert_ne!(again.repr.transaction_id(), first.repr.transaction_id());
    // The first try's second half is late now; the second try's makes the read.
    let late = requester.handle_completion(us(11), &completions[1].repr, Some(&data));
    assert!(matches!(late, Outcome::Unexpected(Unexpected::Late(_))));
    let answer = HOST.succeed(&again.repr).next().unwrap();
    let done = requester.handle_completion(us(12), &answer.repr, Some(&data));
    let Outcome::OperationDone(_, Ok(read)) = done else { panic!("{done:?}") };
    assert_eq!(read.bytes(), Some(&[0xAB; 256][..]));
    // What has side effects of its own, or was not a plain read, is not repeated.
    let template = tlplab_wire::tlp::Repr::io_read(TransactionId::default(), 0x60, 4).unwrap();
    requester.request(us(20), 0, 8, template, None).unwrap();
    poll(&mut requester, us(20)).unwrap();
    assert!(matches!(requester.handle_timeout(us(30)), Some(Outcome::OperationDone(_, Err(_)))));
}

#[test]
fn retries_wait_for_tags_and_end() {
    let quarantine = Quarantine::Unordered(Duration::from_us(100));
    let mut requester = requester(TagConfig { limit: Some(1), quarantine, ..TagConfig::default() }, 2);
    requester.read(us(0), 0, 1, 0x1000, 4).unwrap();
    let mut now = us(0);
    for _ in 0..2 {
        poll(&mut requester, now).unwrap();
        now = requester.deadline().unwrap();
        assert!(matches!(requester.handle_timeout(now), Some(Outcome::Again(_))));
        // The only tag rests: the deadline is the end of that.
        assert!(poll(&mut requester, now).is_none());
        now = requester.deadline().unwrap();
    }
    assert_eq!(now, us(2 * (10 + 100)));
    poll(&mut requester, now).unwrap();
    let end = requester.handle_timeout(now + Duration::from_us(10));
    assert!(matches!(end, Some(Outcome::OperationDone(_, Err(CompletionError::Timeout { .. })))));
    assert!(requester.is_idle());
}

#[test]
fn undelivered_requests_fail_at_once() {
    let mut requester = requester(TagConfig { skip: 64, limit: Some(64), ..TagConfig::default() }, 3);
    requester.read(us(0), 0, 1, 0x1000, 600).unwrap();
    let tags: Vec<_> = std::iter::from_fn(|| poll(&mut requester, us(0)))
        .map(|out| out.repr.transaction_id().tag.value())
        .collect();
    assert_eq!(tags, [64, 65], "the lower ones are somebody else's");
    let why = Undeliverable::PortRefused;
    assert!(requester.handle_undelivered(us(1), Tag::from(63), why).is_none());
    assert!(requester.handle_undelivered(us(1), Tag::from(66), why).is_none());
    let half = requester.handle_undelivered(us(1), Tag::from(65), why);
    assert!(matches!(half, Some(Outcome::RequestDone(_))));
    let whole = requester.handle_undelivered(us(1), Tag::from(64), why);
    let expected = CompletionError::Undelivered { address: 0x1200, tag: Tag::from(65), why };
    assert!(matches!(whole, Some(Outcome::OperationDone(_, Err(error))) if error == expected), "{whole:?}");
}

/// Where completions overtake each other, the last one to come is not the last.
#[test]
fn an_unordered_tag_rests_its_time() {
    let rest = Duration::from_us(100);
    for (quarantine, frees) in [(Quarantine::For(rest), true), (Quarantine::Unordered(rest), false)] {
        let mut requester = requester(TagConfig { limit: Some(1), quarantine, ..TagConfig::default() }, 0);
        requester.read(us(0), 0, 1, 0x1000, 256).unwrap();
        let request = poll(&mut requester, us(0)).unwrap().repr;
        requester.handle_timeout(us(10));
        requester.read(us(11), 0, 2, 0x2000, 4).unwrap();
        let last = HOST.succeed(&request).last().unwrap();
        requester.handle_completion(us(12), &last.repr, Some(&[0; 128]));
        assert_eq!(poll(&mut requester, us(12)).is_some(), frees, "{quarantine:?}");
        assert_eq!(poll(&mut requester, us(110)).is_some(), !frees, "{quarantine:?}");
    }
}

#[test]
fn time_begins_anew() {
    let mut requester = requester(TagConfig { limit: Some(1), ..TagConfig::default() }, 0);
    let late = Time::from_fs(u64::MAX) - Duration::from_us(50);
    requester.read(late, 0, 1, 0x1000, 4).unwrap();
    poll(&mut requester, late).unwrap();
    requester.rebase((late - Time::ZERO).saturating_sub(Duration::from_us(1)));
    assert_eq!(requester.deadline(), Some(us(11)));
    let Some(Outcome::OperationDone(progress, _)) = requester.handle_timeout(us(11)) else { panic!() };
    assert_eq!((progress.sent, progress.submitted), (us(1), us(1)));
    requester.read(us(11), 0, 2, 0x1000, 4).unwrap();
    requester.rebase(Duration::from_us(20));
    assert_eq!(
        requester.deadline(),
        Some(Time::ZERO + Duration::from_ms(50) + Duration::from_us(11) - Duration::from_us(20))
    );
}
