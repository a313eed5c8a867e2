//! Conversations of two non-flit ports, unit by unit with times, each of which ends in silence.
//!
//! Gen1 x1: a byte takes 4 ns, a DLLP 32 ns, a write of 8 bytes (28 on the wire) 112 ns.

mod pair;

use pair::{Fate, GOOD, Pair, read, slow, write};
use tlplab_datalink::{AckLatency, Blocked, Config, LinkLayer, TlpShape, Unit};
use tlplab_units::{Duration, FcClass, Time, Vc};

fn ns(ns: u64) -> Time {
    Time::ZERO + Duration::from_ns(ns)
}

#[test]
fn link_up_and_the_first_tlp() {
    let mut pair = Pair::down(slow(), slow()).logged();
    pair.flight = Duration::from_ns(10);
    pair.run_until(ns(500));
    pair.expect_silence();
    pair.link_up();
    pair.run_until(ns(1000));
    pair.expect(&[]);
}
