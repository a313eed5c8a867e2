//! Random commands on random queues, many at once: each is completed exactly once, and data are what a model says.

use super::bench::{Bench, Entry, descriptor};
use super::small;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tlplab_device::HostMemory;
use tlplab_device::nvme::{Nvme, NvmeConfig};
use tlplab_units::{Duration, Time};

/// Blocks that commands of one slot use, so that those under way do not meet.
const BLOCKS: u64 = 64;
const SLOTS: u64 = 48;

struct Expected {
    slot: u64,
    status: u16,
    /// Where the data of a read must be when its completion is seen, and what they must be.
    data: Option<(u64, Vec<u8>)>,
}

fn config(cache: u64, channels: u32, outstanding: usize, command: u64) -> NvmeConfig {
    NvmeConfig { cache, channels, outstanding, command: Duration::from_ns(command), ..small() }
}

/// A command on the blocks of a slot; `model` is what they hold.
fn command(bench: &mut Bench, slot: u64, model: &mut [u8], value: u8) -> (Entry, Expected) {
    let blocks = 1 + bench.random(16);
    let first = bench.random(BLOCKS - blocks + 1);
    let (from, to) = (first as usize * 512, (first + blocks) as usize * 512);
    let lba = slot * BLOCKS + first;
    let offset = bench.random(2) * 512 * bench.random(8);
    let at = bench.alloc(16 << 10) + offset;
    let (length, chosen) = (blocks * 512, bench.random(9));
    let whole = (4096 - offset).min(length);
    // Either kind of pointer leads to consecutive memory.
    let point = |bench: &mut Bench, entry: Entry| {
        if bench.random(3) == 0 {
            return entry.sgl(descriptor(at, length as u32, 0));
        }
        let next = (at / 4096 + 1) * 4096;
        if length - whole <= 4096 {
            return entry.prp(at, next);
        }
        let list = bench.alloc(4096);
        bench.ram.write(list, &[next, next + 4096].map(u64::to_le_bytes).concat());
        entry.prp(at, list)
    };
    let mut expected = Expected { slot, status: 0, data: None };
    let entry = match chosen {
        0..3 => {
            bench.ram.write(at, &vec![value; length as usize]);
            model[from..to].fill(value);
            let entry = point(bench, Entry::blocks(1, lba, blocks as u32));
            if bench.random(4) == 0 { entry.through() } else { entry }
        }
        3..6 => {
            expected.data = Some((at, model[from..to].to_vec()));
            point(bench, Entry::blocks(2, lba, blocks as u32))
        }
        6 => {
            bench.ram.write(at, &model[from..to]);
            if bench.random(2) == 0 {
                bench.ram.write(at + length - 1, &[model[to - 1] ^ 1]);
                expected.status = 0x285;
            }
            point(bench, Entry::blocks(5, lba, blocks as u32))
        }
        7 => {
            model[from..to].fill(0);
            Entry::blocks(8, lba, blocks as u32)
        }
        _ if bench.random(2) == 0 => {
            expected.status = 0x80;
            Entry::blocks(2, 1 << 40, 1)
        }
        _ => Entry::new(0).namespace(1),
    };
    (entry, expected)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_command_is_completed_once_with_its_data(
        seed in any::<u64>(),
        cache in prop::sample::select(vec![0u64, 8 << 10, 1 << 20]),
        channels in 1u32..9,
        outstanding in 1usize..40,
        command_time in prop::sample::select(vec![0u64, 100, 2000]),
        queues in 1u16..6,
        entries in 3u32..20,
    ) {
        let config = config(cache, channels, outstanding, command_time);
        let media = config.sparse_media();
        let mut bench = Bench::with(Nvme::new(config, media), seed);
        bench.enable();
        (1..=queues).for_each(|queue| bench.create(queue, entries, queue));
        let mut models = vec![vec![0u8; (BLOCKS * 512) as usize]; SLOTS as usize];
        let mut free: Vec<u64> = (0..SLOTS).collect();
        let mut under_way: BTreeMap<(u16, u16), Expected> = BTreeMap::new();
        let mut per_queue = vec![0u32; usize::from(queues) + 1];
        let (mut left, mut value) = (300, 0u8);
        while left > 0 || !under_way.is_empty() {
            let queue = 1 + bench.random(u64::from(queues)) as u16;
            // A host does not put more commands into a queue than have a place in it.
            if left > 0 && !free.is_empty() && per_queue[usize::from(queue)] < entries - 1 {
                left -= 1;
                value = value % 250 + 1;
                let slot = free.swap_remove(bench.random(free.len() as u64) as usize);
                let (entry, expected) = command(&mut bench, slot, &mut models[slot as usize], value);
                let id = bench.put(queue, entry);
                prop_assert!(under_way.insert((queue, id), expected).is_none());
                per_queue[usize::from(queue)] += 1;
                bench.ring(queue);
            }
            let steps = bench.random(12);
            for _ in 0..=steps {
                bench.step(Time::NEVER);
            }
            for done in std::mem::take(&mut bench.done) {
                let expected = under_way.remove(&(done.queue, done.id));
                prop_assert!(expected.is_some(), "completed once, and only if submitted");
                let expected = expected.expect("just seen");
                prop_assert_eq!(done.code(), expected.status);
                if let Some((at, data)) = expected.data {
                    prop_assert!(bench.bytes(at, data.len() as u64) == data, "data are there before their completion");
                }
                per_queue[usize::from(done.queue)] -= 1;
                free.push(expected.slot);
            }
        }
        bench.settle();
        prop_assert!(bench.done.is_empty());
        prop_assert!(bench.most_under_way <= outstanding);
        // A message for each completion of each queue.
        prop_assert_eq!(bench.messages.iter().filter(|vector| **vector > 0).count(), 300);
    }
}

#[test]
fn a_length_only_run_takes_as_long() {
    let took = |length_only| {
        let mut bench = Bench::new(NvmeConfig { cache: 8 << 10, ..small() });
        bench.length_only = length_only;
        bench.enable();
        bench.create(1, 64, 1);
        let at = bench.alloc(64 << 10);
        for n in 0..30u64 {
            let entry = Entry::blocks([1, 2, 5][n as usize % 3], n / 3 * 16, 16).prp(at, at + 4096);
            bench.put(1, if n % 3 == 2 { Entry::blocks(2, n * 16, 8).prp(at, 0) } else { entry });
        }
        bench.ring(1);
        bench.settle();
        assert_eq!(bench.done.iter().filter(|done| done.status == 0).count(), 30);
        (bench.now, bench.log)
    };
    assert_eq!(took(true), took(false));
}
