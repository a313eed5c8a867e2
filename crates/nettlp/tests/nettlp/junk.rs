//! Adapter, end point and device under fire: random sequences of datagrams, with the invariants of the fuzz targets.

#[path = "../../../../fuzz/engines.rs"]
mod engines;

use engines::{AdapterUnderFire, Choices, DeviceUnderFire, EndpointUnderFire};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tlplab_device::Random;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn junk_does_not_break_an_adapter(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        engines::adapter(&bytes);
    }

    #[test]
    fn junk_does_not_break_a_device(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        engines::device(&bytes);
    }

    #[test]
    fn junk_does_not_break_an_end_point(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        engines::endpoint(&bytes);
    }
}

/// The junk is not all junk: everything that is counted happens.
#[test]
fn the_junk_reaches_everything() {
    let mut random = Random::keyed(1, "junk", "datagrams");
    let bytes: Vec<u8> = (0..800_000).map(|_| random.next() as u8).collect();
    let (mut adapter, mut endpoint) = (AdapterUnderFire::new(2), EndpointUnderFire::new());
    let mut choices = Choices(&bytes);
    while choices.0.len() > 64 {
        adapter.step(&mut choices);
    }
    let mut choices = Choices(&bytes);
    while choices.0.len() > 64 {
        endpoint.step(&mut choices);
    }
    let mut device = DeviceUnderFire::new(0);
    let mut choices = Choices(&bytes);
    while choices.0.len() > 64 {
        device.step(&mut choices);
    }
    let (interrupts, completions) = device.done();
    assert!(interrupts > 0 && completions > 0, "{interrupts} interrupts, {completions} completions");
    let counted = adapter.adapter.device_counters(0).expect("a device").rows();
    let never: Vec<_> = counted.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect();
    // Links have junk of their own: `acknowledged::junk_on_a_link`.
    assert_eq!(never, ["throttled", "repeated"], "by the adapter");
    let counted = endpoint.endpoint.counters().rows();
    let never: Vec<_> = counted.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect();
    let expected = ["undigested", "overload", "unanswered", "retries", "repeated", "links_lost"];
    assert_eq!(never.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(expected), "by the end point");
}

/// Of adapters; devices have two of them.
const MODES: usize = 4;
/// Datagrams in a row that one engine gets before everything is to settle.
const ROUND: usize = 250_000;

/// As many datagrams as `TLPLAB_DATAGRAMS` says (10^8), a third each to an adapter, an end point and a device: no crash, and memory at the
/// end is what it was after the first rounds.
#[test]
#[ignore = "takes minutes: make prove"]
fn a_hundred_million_datagrams() {
    let wanted: usize =
        std::env::var("TLPLAB_DATAGRAMS").map_or(100_000_000, |n| n.parse().expect("a number"));
    // In every mode at least twice.
    let rounds = wanted.div_ceil(3 * ROUND).max(2 * MODES);
    let mut random = Random::keyed(1, "junk", "datagrams");
    let mut bytes = vec![0; 1 << 20];
    let mut fire = |step: &mut dyn FnMut(&mut Choices<'_>) -> bool| {
        let mut came = 0;
        while came < ROUND {
            bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_ne_bytes()));
            let mut choices = Choices(&bytes);
            while choices.0.len() > 64 {
                came += usize::from(step(&mut choices));
            }
        }
    };
    let mut adapters: Vec<_> = (0..MODES as u8).map(AdapterUnderFire::new).collect();
    let mut devices: Vec<_> = (0..MODES as u8).map(DeviceUnderFire::new).collect();
    let mut endpoint = EndpointUnderFire::new();
    let mut settled = Vec::new();
    for round in 0..rounds {
        let (adapter, device) = (&mut adapters[round % MODES], &mut devices[round % MODES]);
        fire(&mut |choices| adapter.step(choices));
        fire(&mut |choices| endpoint.step(choices));
        fire(&mut |choices| device.step(choices));
        adapter.settle();
        endpoint.settle();
        device.settle();
        settled.push(resident_kib());
    }
    // Allocators keep a little more or less.
    let (first, last) = (settled[MODES], settled[rounds - 1]);
    println!("{} datagrams, {first} KiB after the first of them, {last} KiB at the end", rounds * 3 * ROUND);
    assert!(last <= first + first / 10 + 1024, "memory grows: {settled:?} KiB");
}

/// What the process has in memory.
#[expect(clippy::disallowed_methods, reason = "the test looks at its own size")]
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
