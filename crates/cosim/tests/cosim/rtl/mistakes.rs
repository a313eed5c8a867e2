//! What no device may do fails the run with words, or is the error that the specification says.

use super::{Bench, run};
use tlplab_fabric::Driven;
use tlplab_fabric::errors::ErrorKind;
use tlplab_units::{Duration, Time};

#[test]
fn each_mistake_of_a_core_fails_the_run_with_its_name() {
    for (mistake, says) in [
        ("junk", "sent bytes that are not a TLP"),
        ("short", "sent bytes that are not a TLP"),
        ("crosses", "the request crosses a 4 KiB boundary"),
        ("type", "sent a CfgRd0; a core sends memory reads and writes, and completions"),
        ("holes", "byte enables have holes"),
        ("requester", "sent a request as 41:00.0, but its own ID is 01:00.0"),
        ("tag", "sent a read with tag 200, which has more bits than software has enabled"),
        ("long", "sent a read of 1024 B; Max_Read_Request_Size is 512"),
        ("taken", "its model took more TLPs of class Posted than it was given"),
        ("gives-up", "assertion failed at copier.c"),
    ] {
        let card = || Bench::copies(4096, 2).of_rtl(&[("mistake", mistake)]);
        let found = run(&mut card()).expect_err(mistake);
        assert!(found.starts_with("card: ") && found.contains(says), "{mistake}: {found}");
        // The owner of the clock hears of it, too, and no time passes any more.
        let (mut driven, end) = (card(), Time::ZERO + Duration::from_ms(100));
        assert_eq!(driven.advance_until(end), Err(found.clone()), "{mistake}");
        assert!(driven.now() < end);
        assert_eq!(driven.advance_until(end), Err(found), "{mistake}");
    }
}

/// A payload beyond Max_Payload_Size is a malformed TLP for its receiver (PCIe 5.0 §2.2.2).
#[test]
fn a_payload_that_is_too_long_is_malformed() {
    let mut fabric = Bench::copies(4096, 1).of_rtl(&[("mistake", "payload")]);
    fabric.run_events(1_000_000, Time::ZERO + Duration::from_ms(1));
    let kinds: Vec<_> = fabric.errors().map(|error| error.kind).collect();
    assert!(kinds.contains(&ErrorKind::Malformed), "{kinds:?}");
}
