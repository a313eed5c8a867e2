//! Fetching, completions and back-pressure; errors of accesses to memory.

use super::bench::{Bench, Entry};
use super::small;
use tlplab_device::HostMemory;
use tlplab_device::nvme::{NvmeConfig, regs};
use tlplab_units::Duration;

#[test]
fn a_full_completion_queue_holds_commands_back() {
    let mut bench = Bench::new(small());
    bench.enable();
    // 64 submission entries complete to a queue that holds 3.
    let (submission, _) = bench.pair(2, 64);
    let (_, completion) = bench.pair(1, 4);
    assert_eq!(bench.admin(Entry::new(5).prp(completion, 0).words(3 << 16 | 1, 3)).status, 0);
    assert_eq!(bench.admin(Entry::new(1).prp(submission, 0).words(63 << 16 | 2, 1 << 16 | 1)).status, 0);
    let at = bench.alloc(4096);
    bench.lazy = true;
    for n in 0..40 {
        bench.put(2, Entry::blocks(2, n, 1).prp(at, 0));
    }
    bench.ring(2);
    let mut taken = vec![];
    for _ in 0..14 {
        bench.settle();
        let before = bench.done.len();
        while bench.reap_one(1) {}
        assert!(bench.done.len() - before <= 3, "no more than there is room for");
        taken.push(bench.done.len() - before);
    }
    let mut ids: Vec<u16> = bench.done.iter().map(|done| done.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..40).collect::<Vec<u16>>(), "{taken:?}");
}

#[test]
fn commands_are_fetched_in_bursts_round_robin() {
    let mut bench = Bench::new(small());
    bench.enable();
    assert_eq!(bench.admin(Entry::new(9).words(1, 1)).status, 0); // bursts of 2
    let rings: Vec<u64> = (1..=3)
        .map(|queue| {
            bench.create(queue, 64, 0);
            (0..12).for_each(|_| {
                bench.put(queue, Entry::new(0).namespace(1));
            });
            bench.log.iter().rev().find(|access| access.2 == 64).map_or(0, |access| access.1)
        })
        .collect();
    assert_eq!(rings.len(), 3);
    bench.log.clear();
    (1..=3).for_each(|queue| bench.ring(queue));
    bench.settle();
    let fetches: Vec<u64> =
        bench.log.iter().filter(|access| access.0 == 'r').map(|access| access.2).collect();
    assert_eq!(fetches, [128; 18], "bursts of two commands");
    assert_eq!(bench.done.len(), 36);
    // No queue is ahead of another by more than a few bursts.
    let mut counts = [0i32; 4];
    for done in &bench.done {
        counts[usize::from(done.queue)] += 1;
        let (most, least) = (counts[1..].iter().max(), counts[1..].iter().min());
        assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 8));
    }
}

#[test]
fn a_command_costs_the_accesses_of_a_real_one() {
    let mut bench = Bench::new(small());
    bench.enable();
    bench.create(1, 16, 1);
    let at = bench.alloc(16 << 10);
    bench.settle();
    bench.log.clear();
    bench.messages.clear();
    assert_eq!(bench.command(1, Entry::blocks(2, 0, 16).prp(at, at + 4096)).status, 0);
    bench.settle();
    let kinds: Vec<(char, u64)> = bench.log.iter().map(|access| (access.0, access.2)).collect();
    assert_eq!(kinds, [('r', 64), ('w', 4096), ('w', 4096), ('w', 16)]);
    assert_eq!(bench.messages, [1]);
    bench.log.clear();
    assert_eq!(bench.command(1, Entry::blocks(1, 0, 16).prp(at, at + 4096)).status, 0);
    let kinds: Vec<(char, u64)> = bench.log.iter().map(|access| (access.0, access.2)).collect();
    assert_eq!(kinds, [('r', 64), ('r', 4096), ('r', 4096), ('w', 16)]);
}

#[test]
fn channels_work_at_once_and_one_page_at_a_time() {
    let took = |blocks: u32, stride: u64, channels: u32| {
        let mut bench = Bench::new(NvmeConfig { read: Duration::from_us(500), channels, ..small() });
        bench.enable();
        bench.create(1, 64, 1);
        let at = bench.alloc(4096);
        let start = bench.now;
        for n in 0..u64::from(blocks) {
            bench.put(1, Entry::blocks(2, n * stride * 8, 8).prp(at, 0));
        }
        bench.ring(1);
        bench.settle();
        assert_eq!(bench.done.len(), blocks as usize);
        (bench.done.last().expect("some").at - start).as_ns() / 500_000
    };
    assert_eq!((took(1, 1, 4), took(4, 1, 4), took(5, 1, 4), took(8, 1, 4)), (1, 1, 2, 2));
    assert_eq!((took(4, 4, 4), took(8, 1, 8), took(8, 1, 1)), (4, 1, 8), "all on one channel");
}

#[test]
fn the_command_time_is_spent_one_command_after_the_other() {
    let mut bench = Bench::new(NvmeConfig { command: Duration::from_us(50), ..small() });
    bench.enable();
    bench.create(1, 64, 1);
    let start = bench.now;
    let ids: Vec<u16> = (0..10).map(|_| bench.put(1, Entry::new(0).namespace(1))).collect();
    bench.ring(1);
    // One that has not begun can be aborted.
    bench.run_for(Duration::from_us(20));
    let abort = bench.submit(0, Entry::new(8).words(u32::from(ids[9]) << 16 | 1, 0));
    bench.settle();
    let of = |queue, id| bench.done.iter().find(|done| (done.queue, done.id) == (queue, id)).copied();
    let last = bench.done.iter().map(|done| done.at).max().expect("some");
    assert!((500..=560).contains(&((last - start).as_ns() / 1000)));
    assert_eq!(of(1, ids[0]).map(|done| done.status), Some(0));
    let aborted = of(0, abort).expect("done");
    // Those fetched in the first burst of 8 were there; the others came later.
    assert_eq!(aborted.status, 0);
    assert_eq!(aborted.result == 0, of(1, ids[9]).is_some_and(|done| done.code() == 0x07));
}

#[test]
fn memory_that_cannot_be_read_ends_commands_or_the_controller() {
    let mut bench = Bench::new(small());
    bench.enable();
    bench.create(1, 16, 1);
    let at = bench.alloc(64 << 10);
    bench.poison = Some(at + 4096);
    let done = bench.command(1, Entry::blocks(1, 0, 16).prp(at, at + 4096));
    assert_eq!((done.code(), done.status >> 14), (0x04, 0));
    bench.poison = Some(at + 8192);
    assert_eq!(bench.command(1, Entry::blocks(1, 0, 32).prp(at, at + 8192)).code(), 0x04, "its list");
    bench.poison = None;
    assert_eq!(bench.command(1, Entry::blocks(2, 0, 8).prp(at, 0)).status, 0);
    assert_eq!(bench.bytes(at, 4096), [0; 4096], "nothing of the failed write is there");
    // An entry of the queue.
    bench.poison = bench.log.iter().rev().find(|access| access.2 == 64).map(|access| access.1 + 64);
    bench.submit(1, Entry::new(0).namespace(1));
    bench.settle();
    assert_eq!(bench.read32(regs::CSTS.offset()) & 3, 3, "fatal");
    bench.write32(regs::CC.offset(), 0);
    bench.settle();
    bench.poison = None;
    bench.enable();
    assert_eq!(bench.read32(regs::CSTS.offset()), 1);
}

#[test]
fn commands_that_cannot_be_are_refused() {
    let mut bench = Bench::new(NvmeConfig { mdts: 8 << 10, ..small() });
    bench.enable();
    bench.create(1, 64, 1);
    let at = bench.alloc(64 << 10);
    let read = |first, blocks| Entry::blocks(2, first, blocks).prp(at, at + 4096);
    let mut fused = read(0, 1);
    fused.0[1] |= 1;
    let mut kind = read(0, 1);
    kind.0[1] |= 2 << 6;
    for (entry, code) in [
        (read(8191, 1), 0),
        (read(8192, 1), 0x80),
        (read(8191, 2), 0x80),
        (read(u64::MAX, 1), 0x80),
        (read(0, 16), 0),
        (read(0, 17), 0x02),
        (read(0, 1).namespace(0), 0x0B),
        (read(0, 1).namespace(3), 0x0B),
        (read(0, 1).namespace(u32::MAX), 0x0B),
        (Entry::new(0).namespace(3), 0x0B),
        (Entry::new(0).namespace(u32::MAX), 0),
        (Entry::new(0x44).namespace(1), 0x01),
        (Entry::new(4).namespace(1), 0x01),
        (fused, 0x02),
        (kind, 0x02),
    ] {
        assert_eq!(bench.command(1, entry).code(), code);
    }
    // The same identifier twice.
    let first = bench.put(1, read(0, 1));
    bench.put(1, read(8, 1));
    let slot = bench.log.iter().rev().find(|access| access.2 == 64).map(|access| access.1).expect("fetched");
    bench.ram.write(slot + 128 + 2, &first.to_le_bytes());
    bench.ring(1);
    bench.settle();
    let mut codes: Vec<u16> =
        bench.done.iter().filter(|done| done.queue == 1).map(|done| done.code()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 3]);
}

#[test]
fn no_more_accesses_are_under_way_than_allowed() {
    let mut bench = Bench::new(NvmeConfig { outstanding: 5, ..small() });
    bench.enable();
    bench.create(1, 64, 1);
    let at = bench.alloc(64 << 10);
    for n in 0..40 {
        bench.put(1, Entry::blocks(1 + n % 2, u64::from(n) * 16, 16).prp(at, at + 4096));
    }
    bench.ring(1);
    bench.settle();
    assert_eq!((bench.done.len(), bench.most_under_way), (40, 5));
}
