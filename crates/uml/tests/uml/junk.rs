//! A guest that says anything, and has anything in its memory, with the invariants of the fuzz target.

#[path = "../../../../fuzz/guest.rs"]
mod guest;

use guest::{Choices, GuestUnderFire};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn junk_from_a_guest_does_not_break_the_protocol(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        guest::guest(&bytes);
    }
}

/// The junk is not all junk: there are accesses, interrupts and mistakes among it.
#[test]
fn the_junk_reaches_everything() {
    let mut bytes = vec![0; 400_000];
    TestRng::deterministic_rng(RngAlgorithm::ChaCha).fill_bytes(&mut bytes);
    let mut choices = Choices(&bytes);
    let mut fire = GuestUnderFire::new();
    while !choices.is_used_up() {
        fire.step(&mut choices);
    }
    let [_, interrupts, mistakes] = fire.counts;
    let accesses = fire.accesses();
    assert!(accesses > 500 && interrupts > 20 && mistakes > 500, "{accesses}, {interrupts}, {mistakes}");
}
