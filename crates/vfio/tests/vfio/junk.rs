//! A client that says anything, and a device that does anything, with the invariants of the fuzz target.

#[path = "../../../../fuzz/vfio.rs"]
mod fire;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn junk_from_client_and_device_does_not_break_the_port(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        fire::vfio_user(&bytes);
    }
}

/// The junk is not all junk: memory is mapped and written.
#[test]
fn the_junk_reaches_memory() {
    let mut bytes = vec![0; 2_000_000];
    TestRng::deterministic_rng(RngAlgorithm::ChaCha).fill_bytes(&mut bytes);
    let writes: u64 = bytes.chunks(500).map(fire::vfio_user).sum();
    assert!(writes > 100, "{writes}");
}
