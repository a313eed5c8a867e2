use super::*;

/// Nanoseconds as femtoseconds.
const NS: i128 = 1_000_000;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A datagram: when it was captured, in nanoseconds; its number, stamp and port.
type Frame = (u64, u16, u32, u16);

fn see(frames: &[Frame]) -> Sequences {
    let mut counters = Counters::default();
    for &(ns, sequence, timestamp, port) in frames {
        counters.see(Header { sequence, timestamp }, port, i128::from(ns) * NS);
    }
    counters.finish()
}

const fn stamp(ns: u64) -> u32 {
    (ns * 10 / 64) as u32
}

/// Numbers of one port, a microsecond apart by both clocks.
fn every_microsecond(numbers: impl IntoIterator<Item = u64>) -> Vec<Frame> {
    (1..).zip(numbers).map(|(n, number)| (n * US, number as u16, stamp(n * US), 0x3000)).collect()
}

fn sent_at(number: u64) -> u32 {
    stamp(number * US)
}

/// Counters whose numbers all came.
const fn clean(adapters: u32) -> Sequences {
    Sequences { adapters, gaps: 0, missing: 0, duplicates: 0, reordered: 0, unproven: 0 }
}

#[test]
fn gaps_duplicates_and_late_ones() {
    assert_eq!(see(&every_microsecond(0..200_000)), clean(1), "numbers come round");
    // 3, 6, 7, 8 are missing; 4 came late, then again; 5 twice. Stamps are those of sending.
    let all = (10..).zip([1u64, 2, 5, 4, 4, 5, 9, 10]);
    let frames: Vec<_> = all.map(|(at, n)| (at * US, n as u16, sent_at(n), 0x3000)).collect();
    let found = Sequences { gaps: 2, missing: 4, duplicates: 2, reordered: 1, ..clean(1) };
    assert_eq!(see(&frames), found);
    // The first was overtaken; nothing shows whether there was one before it.
    let overtaken: Vec<_> = [7u64, 5, 8, 9].map(|n| (20 * US, n as u16, sent_at(n), 0x3000)).into();
    assert_eq!(see(&overtaken), Sequences { gaps: 1, missing: 1, reordered: 1, ..clean(1) });
    // Two directions of a mirror, 60 000 datagrams later.
    let twice: Vec<_> =
        every_microsecond(0..60_000).into_iter().chain(every_microsecond(0..60_000)).collect();
    assert_eq!(see(&twice), Sequences { duplicates: 60_000, ..clean(1) });
}

#[test]
fn two_adapters_with_one_address_are_two() {
    let other = 0x9000_0000_u32;
    let pair = |n: u64| {
        let (one, two) = (2 * n * US, (2 * n + 1) * US);
        [(one, n as u16, stamp(one), 0x3000), (two, (700 + n) as u16, stamp(two).wrapping_add(other), 0x3000)]
    };
    let mut frames: Vec<Frame> = (0..100_000).flat_map(pair).collect();
    assert_eq!(see(&frames), clean(2));
    // What each of them lost is told.
    frames.retain(|&(ns, ..)| !(100 * US..110 * US).contains(&ns) && ns != 777 * US);
    assert_eq!(see(&frames), Sequences { gaps: 3, missing: 11, ..clean(2) });
    // Software numbers nothing; a number 0 at the time 0 comes round like any other.
    assert_eq!(see(&[(0, 0, 0, 0x3000), (5, 0, 0, 0x3000)]), Sequences::default());
    let round = |n: u64| (n * US, n as u16, (n as u32).wrapping_sub(65_536).wrapping_mul(160), 0x3000);
    assert_eq!(see(&(0..70_000).map(round).collect::<Vec<_>>()), clean(1));
}

/// A network as a busy machine has it, reproducible.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// A counter: its first number, its clock's offset in ticks, the drift of that in parts per thousand, and its ports.
#[derive(Clone, Copy)]
struct Lane {
    first: u64,
    clock: u64,
    drift: i64,
    ports: (u16, u16),
}

/// Datagrams of lanes that take turns at random. Those that `lost` names by lane and number are not captured. What is captured lags: by a
/// second and more, now and then; a counter's own datagrams stay in order.
fn busy(random: &mut Random, lanes: &[Lane], each: u64, lost: impl Fn(usize, u64) -> bool) -> Vec<Frame> {
    let (mut now, mut lag, mut frames) = (0u64, 0u64, Vec::new());
    let mut sent = vec![0; lanes.len()];
    while let Some(left) = (0..lanes.len()).find(|&n| sent[n] < each) {
        let turn = random.below(lanes.len() as u64) as usize;
        let n = if sent[turn] < each { turn } else { left };
        now += 1 + random.below(20 * US);
        if random.below(5_000) == 0 {
            lag = random.below(800 * MS);
        }
        lag = lag.saturating_sub(random.below(5 * US));
        let Lane { first, clock, drift, ports } = lanes[n];
        let by_its_clock = now.saturating_add_signed((now as i64 / 1000) * drift);
        let port = ports.0 + random.below(ports.1.into()) as u16;
        if !lost(n, sent[n]) {
            let stamp = stamp(by_its_clock).wrapping_add(clock as u32);
            frames.push((now + lag, (first + sent[n]) as u16, stamp, port));
        }
        sent[n] += 1;
    }
    frames
}

/// Lanes of one program, in step, or adapters, each by a clock of its own.
fn lanes(random: &mut Random, count: u64, one_clock: bool) -> Vec<Lane> {
    let clock = random.below(1 << 32);
    let lane = |n: u64| Lane {
        first: if one_clock { random.below(2) } else { random.below(1 << 16) },
        clock: if one_clock { clock } else { random.below(1 << 32) },
        drift: if one_clock { 7 } else { random.below(21) as i64 - 10 },
        ports: if one_clock { (0x3000 + 16 * n as u16, 16) } else { (0x3000, 16) },
    };
    (0..count).map(lane).collect()
}

#[test]
fn a_busy_machine_loses_nothing() {
    for seed in 1..8 {
        let mut random = Random::new(seed);
        let (count, one_clock) = (1 + random.below(4), random.below(3) > 0);
        let lanes = lanes(&mut random, count, one_clock);
        let frames = busy(&mut random, &lanes, 22_401, |_, _| false);
        let found = see(&frames);
        assert_eq!((found.gaps, found.missing, found.unproven), (0, 0, 0), "seed {seed}: {found:?}");
        if one_clock {
            assert_eq!(found, clean(count as u32), "seed {seed}");
        }
    }
}

#[test]
fn losses_are_counted_under_any_clock_drift() {
    for seed in 1..8 {
        let mut random = Random::new(seed);
        let count = 1 + random.below(4);
        let lanes = lanes(&mut random, count, true);
        let (every, burst) = (50 + random.below(500), 1 + random.below(40));
        // Each lane begins and ends with what came.
        let gone = |n: usize, number: u64| {
            (500..80_000).contains(&number) && (number + 17 * n as u64) % every < burst.min(every / 2)
        };
        let frames = busy(&mut random, &lanes, 80_100, gone);
        let truth = (0..count as usize)
            .map(|n| (0..80_100).filter(|&number| gone(n, number)).count() as u64)
            .sum::<u64>();
        let found = see(&frames);
        assert_eq!((found.missing, found.unproven, found.adapters), (truth, 0, count as u32), "seed {seed}");
    }
}

#[test]
fn time_stamps_prove_a_loss_of_thousands() {
    for (lost, drift) in [(5_000, 0), (32_768, 7), (40_000, -9), (57_000, 18), (40_000, 120)] {
        let mut random = Random::new(lost);
        let lane = Lane { first: 62_000, clock: 1 << 31, drift, ports: (0x3000, 4) };
        // Without delays, but with the drift.
        let frames: Vec<Frame> = (0..200_000u64)
            .filter(|n| !(70_000..70_000 + lost).contains(n))
            .map(|n| {
                let stamp = stamp((n * 10 * US).saturating_add_signed((n * US / 100) as i64 * drift));
                let port = 0x3000 + random.below(4) as u16;
                (n * 10 * US, (lane.first + n) as u16, stamp.wrapping_add(lane.clock as u32), port)
            })
            .collect();
        let lands = (lane.first + 70_000 + lost) as u16;
        assert!(lands > 4096, "{lands} would be a new beginning");
        assert_eq!(
            see(&frames),
            Sequences { gaps: 1, missing: lost, ..clean(1) },
            "{lost} lost, drift {drift}"
        );
    }
}

/// The datagrams of a counter, 10 µs apart, from a time in nanoseconds on.
fn run(from: u64, numbers: std::ops::Range<u64>, clock: u64, port: u16) -> Vec<Frame> {
    let at = |n: u64| from + n * 10 * US;
    (0..)
        .zip(numbers)
        .map(|(n, number)| (at(n), number as u16, stamp(at(n)).wrapping_add(clock as u32), port))
        .collect()
}

#[test]
fn a_possible_second_counter_is_no_loss() {
    let first = run(0, 0..20_000, 0, 0x3000);
    let then = |next: Vec<Frame>| see(&[first.clone(), next].concat());
    let ended = 700 * MS;
    // Begins anew, by the same clock; that its first numbers were lost cannot be told from a loss of 45 636.
    assert_eq!(then(run(ended, 1..9_000, 0, 0x3000)), clean(2));
    assert_eq!(then(run(ended, 100..9_000, 0, 0x3000)), Sequences { unproven: 1, ..clean(2) });
    // Another thread's, on ports of its own; if near, it is not said which.
    assert_eq!(then(run(ended, 40_000..50_000, 0, 0x3010)), clean(2));
    assert_eq!(then(run(ended, 20_010..30_000, 0, 0x3010)), Sequences { unproven: 1, ..clean(1) });
    // By another clock: another adapter, wherever it begins.
    for begins in [20_010, 24_000, 40_000, 5_000] {
        for clock in [1 << 31, 1 << 28, 3 << 29] {
            assert_eq!(
                then(run(ended, begins..begins + 5_000, clock, 0x3000)),
                clean(2),
                "{begins}, {clock:#x}"
            );
        }
    }
    // Faster than a clock can count.
    assert_eq!(then(run(200 * MS, 60_000..65_000, 0, 0x3000)).missing, 0);
    // By a clock that is a quarter of a second off: that may be a busy machine.
    let off = 156_250_000 / 4;
    assert_eq!(
        then(run(ended + 400 * MS, 60_000..65_000, off, 0x3000)),
        Sequences { unproven: 1, ..clean(2) }
    );
    // The first was not over: then they are two.
    let goes_on = run(ended + 900 * MS, 20_000..30_000, 0, 0x3000);
    let both = [run(ended + 400 * MS, 60_000..65_000, 0, 0x3000), goes_on].concat();
    assert_eq!(then(both), clean(2));
}

#[test]
fn a_counter_that_goes_on_shows_that_there_was_no_gap() {
    // The capture begins while three threads run; the second is near the first, which is idle for long.
    let frames = [
        run(0, 500..510, 0, 0x3000),
        run(MS, 515..3_000, 0, 0x3010),
        run(400 * MS, 512..600, 0, 0x3000),
        run(410 * MS, 3_003..3_010, 0, 0x3010),
    ]
    .concat();
    assert_eq!(see(&frames), Sequences { gaps: 2, missing: 5, ..clean(2) }, "510 and 511; 3000 to 3002");
}

#[test]
fn unread_frames_may_be_the_missing_frames() {
    let frames: Vec<Frame> =
        every_microsecond(0..100).into_iter().filter(|f| !(50..53).contains(&f.1)).collect();
    let judged = |unread| {
        let mut counters = Counters::default();
        frames.iter().for_each(|&(ns, sequence, timestamp, port)| {
            counters.see(Header { sequence, timestamp }, port, i128::from(ns) * NS);
        });
        (0..unread).for_each(|_| counters.unread());
        counters.finish()
    };
    assert_eq!(judged(2), Sequences { gaps: 1, missing: 1, ..clean(1) });
    assert_eq!(judged(3), Sequences { unproven: 1, ..clean(1) });
}

#[test]
fn no_loss_is_invented_and_memory_ends() {
    // Any mixture of lanes, adapters, losses, copies and disorder: never more missing than is.
    for seed in 1..20 {
        let mut random = Random::new(seed);
        let (count, one_clock) = (1 + random.below(5), random.below(2) == 0);
        let lanes = lanes(&mut random, count, one_clock);
        let (rate, each) = (2 + random.below(50), 2_000 + random.below(3_000));
        let gone = |n: usize, number: u64| (number * 0x9e37_79b1 + n as u64 * 77).is_multiple_of(rate);
        let mut frames = busy(&mut random, &lanes, each, gone);
        for _ in 0..random.below(500) {
            let (at, by) = (random.below(frames.len() as u64 - 50) as usize, random.below(40) as usize);
            match random.below(2) {
                0 => frames.swap(at, at + by),
                _ => frames.insert(at + by, frames[at]),
            }
        }
        let mut times: Vec<u64> = frames.iter().map(|frame| frame.0).collect();
        times.sort_unstable();
        times.iter().zip(&mut frames).for_each(|(ns, frame)| frame.0 = *ns);
        let truth = (0..count as usize)
            .map(|n| (0..each).filter(|&number| gone(n, number)).count() as u64)
            .sum::<u64>();
        let found = see(&frames);
        assert!(found.missing <= truth, "seed {seed}: {found:?}, {truth} are missing");
        if one_clock && count == 1 {
            assert!(found.missing + 5 >= truth, "seed {seed}: {found:?}, {truth} are missing");
        }
    }
    let mut random = Random::new(7);
    let junk: Vec<Frame> = (0..20_000)
        .map(|n| (n * US, random.below(1 << 16) as u16, random.below(1 << 32) as u32, random.below(9) as u16))
        .collect();
    assert!(see(&junk).adapters > 64);
}
