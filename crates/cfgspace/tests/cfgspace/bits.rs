//! Random functions and random accesses, with the oracle and the entry points of the fuzz targets.

#[path = "../../../../fuzz/cfgspace.rs"]
mod cfgspace;

use proptest::prelude::*;

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 100..1500)
}

proptest! {
    /// A write changes what is RW or RW1C in the specification, and nothing else; a reset what that kind of reset reaches.
    #[test]
    fn writes_and_resets_obey_the_specification(bytes in any_bytes()) {
        cfgspace::config_writes(&bytes);
    }

    #[test]
    fn any_dump_is_read_or_refused(bytes in any_bytes()) {
        cfgspace::lspci_dump(&bytes);
    }

    #[test]
    fn any_answers_can_be_enumerated(bytes in any_bytes()) {
        cfgspace::enumerate(&bytes);
    }
}

/// The choices above are real ones: most functions can be made, and something is found.
#[test]
fn the_random_cases_reach_something() {
    let bytes = |seed: u32| -> Vec<u8> {
        let next = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*state >> 24) as u8)
        };
        (0..1000).scan(seed, |state, _| next(state)).collect()
    };
    let written = (0..100).filter(|seed| cfgspace::config_writes(&bytes(*seed)) > 50).count();
    assert!(written > 50, "{written} of 100 functions could be made");
    let found: usize = (0..100).map(|seed| cfgspace::enumerate(&bytes(seed))).sum();
    assert!(found > 100, "{found} functions were found in 100 enumerations");
}
