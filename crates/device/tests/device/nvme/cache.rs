//! The volatile write cache, and what is left when power fails.

use super::bench::{Bench, Entry};
use super::small;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use tlplab_device::nvme::{Nvme, NvmeConfig, regs};
use tlplab_device::{HostMemory, Medium, MediumError, SparseMedium};
use tlplab_units::Duration;

/// A medium that the test can look at, and that can fail.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<(SparseMedium, u32, bool)>>);

impl Shared {
    fn content(&self, at: u64, bytes: u64) -> Vec<u8> {
        let mut data = vec![0; bytes as usize];
        self.read(at, &mut data);
        data
    }
    fn flushes(&self) -> u32 {
        self.0.lock().expect("alone").1
    }
    fn break_it(&self) {
        self.0.lock().expect("alone").2 = true;
    }
}

impl Medium for Shared {
    fn read(&self, at: u64, out: &mut [u8]) {
        self.0.lock().expect("alone").0.read(at, out);
    }
    fn write(&mut self, at: u64, data: &[u8]) {
        self.0.lock().expect("alone").0.write(at, data);
    }
    fn discard(&mut self, at: u64, bytes: u64) {
        self.0.lock().expect("alone").0.discard(at, bytes);
    }
    fn flush(&mut self) -> Result<(), MediumError> {
        let mut shared = self.0.lock().expect("alone");
        shared.1 += 1;
        if shared.2 { Err(MediumError("it is broken".into())) } else { Ok(()) }
    }
}

fn bench(config: NvmeConfig) -> (Bench, Shared, u64) {
    let medium = Shared::default();
    let media: Vec<Box<dyn Medium>> = vec![Box::new(medium.clone()), Box::new(SparseMedium::new())];
    let mut bench = Bench::with(Nvme::new(config, media), 5);
    bench.enable();
    bench.create(1, 64, 1);
    let at = bench.alloc(64 << 10);
    (bench, medium, at)
}

fn write(bench: &mut Bench, at: u64, lba: u64, blocks: u32, value: u8) -> Entry {
    bench.ram.write(at, &vec![value; blocks as usize * 512]);
    Entry::blocks(1, lba, blocks).prp(at, at + 4096)
}

#[test]
fn acknowledged_writes_reach_the_medium_only_by_fua_or_flush() {
    let (mut bench, medium, at) = bench(NvmeConfig { cache: 64 << 10, ..small() });
    let entry = write(&mut bench, at, 0, 8, 1);
    assert_eq!(bench.command(1, entry).status, 0);
    bench.settle();
    assert_eq!(medium.content(0, 4096), [0; 4096]);
    // What is read is what was written.
    assert_eq!(bench.command(1, Entry::blocks(2, 0, 8).prp(at + 8192, 0)).status, 0);
    assert_eq!(bench.bytes(at + 8192, 4096), [1; 4096]);
    // Force unit access, over part of it.
    let entry = write(&mut bench, at, 2, 2, 2).through();
    assert_eq!(bench.command(1, entry).status, 0);
    assert_eq!(medium.content(0, 4096), [[0; 1024], [2; 1024], [0; 1024], [0; 1024]].concat());
    assert_eq!(bench.command(1, Entry::new(0).namespace(1)).status, 0);
    assert_eq!(medium.content(0, 4096), [[1; 1024], [2; 1024], [1; 1024], [1; 1024]].concat());
    assert!(medium.flushes() > 0);
    // Without the cache, everything is on the medium when it is acknowledged.
    let entry = write(&mut bench, at, 8, 8, 3);
    assert_eq!(bench.command(1, entry).status, 0);
    assert_eq!(bench.admin(Entry::new(9).words(6, 0)).status, 0);
    assert_eq!(medium.content(4096, 4096), [3; 4096], "switching it off flushes it");
    let entry = write(&mut bench, at, 16, 8, 4);
    assert_eq!(bench.command(1, entry).status, 0);
    assert_eq!(medium.content(8192, 4096), [4; 4096]);
}

#[test]
fn a_shutdown_flushes_and_a_reset_loses_nothing() {
    let (mut bench, medium, at) = bench(NvmeConfig { cache: 64 << 10, ..small() });
    let entry = write(&mut bench, at, 0, 8, 1);
    assert_eq!(bench.command(1, entry).status, 0);
    bench.reset();
    assert_eq!(medium.content(0, 512), [0; 512]);
    bench.enable();
    bench.create(1, 16, 1);
    assert_eq!(bench.command(1, Entry::blocks(2, 0, 8).prp(at + 8192, 0)).status, 0);
    assert_eq!(bench.bytes(at + 8192, 4096), [1; 4096]);
    bench.write32(regs::CC.offset(), Bench::ENABLED | 1 << 14);
    assert_eq!(bench.read32(regs::CSTS.offset()) >> 2 & 3, 1);
    bench.settle();
    assert_eq!(bench.read32(regs::CSTS.offset()) >> 2 & 3, 2);
    assert_eq!(medium.content(0, 4096), [1; 4096]);
    bench.lose_power();
    bench.enable();
    assert_eq!(bench.read32(regs::CSTS.offset()), 1);
    let log = Entry::new(2).namespace(u32::MAX).prp(at, 0).words(127 << 16 | 2, 0);
    assert_eq!(bench.admin(log).status, 0);
    assert_eq!(bench.bytes(at + 32 + 16 * 7, 1), [0], "it was a safe one");
}

/// Pages on one channel are programmed one after the other, and the flush waits for the last.
#[test]
fn a_flush_waits_for_all_and_a_reset_in_it_changes_nothing() {
    let (mut bench, medium, at) = bench(NvmeConfig { cache: 64 << 10, ..small() });
    let fill = |bench: &mut Bench, value| {
        for page in 0..5 {
            let entry = write(bench, at, page * 32, 1, value);
            assert_eq!(bench.command(1, entry).status, 0);
        }
    };
    let there = |value| (0..5).filter(|page| medium.content(page * 4 * 4096, 512) == [value; 512]).count();
    fill(&mut bench, 1);
    let start = bench.now;
    assert_eq!(bench.command(1, Entry::new(0).namespace(1)).status, 0);
    assert_eq!(there(1), 5);
    assert!((45_000..48_000).contains(&(bench.now - start).as_ns()), "five times 9 us");
    fill(&mut bench, 2);
    bench.submit(1, Entry::new(0).namespace(1));
    bench.run_for(Duration::from_us(15));
    bench.reset();
    assert_eq!(there(2), 1);
    bench.enable();
    bench.create(1, 16, 1);
    assert_eq!(bench.command(1, Entry::new(0).namespace(1)).status, 0);
    assert_eq!(there(2), 5);
}

#[test]
fn a_full_cache_makes_room_and_a_patient_one_empties_itself() {
    let (mut bench, medium, at) = bench(NvmeConfig { cache: 8 << 10, ..small() });
    for n in 0..40u64 {
        let entry = write(&mut bench, at, n * 4, 4, n as u8 + 1);
        assert_eq!(bench.command(1, entry).status, 0);
    }
    bench.settle();
    let there: Vec<u8> = medium.content(0, 40 * 2048).chunks(2048).map(|chunk| chunk[0]).collect();
    assert_eq!(there[..36], (1..=36).collect::<Vec<u8>>());
    assert_eq!(there[39], 0, "the last is still in the cache");
    let (mut bench, medium, at) =
        self::bench(NvmeConfig { cache: 64 << 10, destage: Duration::from_us(100), ..small() });
    let entry = write(&mut bench, at, 0, 16, 9);
    assert_eq!(bench.command(1, entry).status, 0);
    assert_eq!(medium.content(0, 8192), [0; 8192]);
    bench.run_for(Duration::from_us(150));
    assert_eq!(medium.content(0, 8192), [[9; 4096], [0; 4096]].concat(), "a page at a time");
    bench.run_for(Duration::from_us(150));
    assert_eq!(medium.content(0, 8192), [9; 8192]);
    bench.settle();
}

#[test]
fn blocks_can_be_cleared() {
    let (mut bench, medium, at) = bench(NvmeConfig { cache: 64 << 10, ..small() });
    for lba in [0, 8, 16, 24] {
        let entry = write(&mut bench, at, lba, 8, 5);
        assert_eq!(bench.command(1, entry).status, 0);
    }
    assert_eq!(bench.command(1, Entry::blocks(8, 0, 4)).status, 0);
    let mut list = [0u8; 32];
    list[4] = 8;
    list[8] = 8;
    list[20] = 3;
    list[24] = 20;
    bench.ram.write(at, &list);
    let deallocate = |attributes| Entry::new(9).namespace(1).prp(at, 0).words(1, attributes);
    assert_eq!(bench.command(1, deallocate(0)).status, 0, "a hint, which changes nothing");
    assert_eq!(bench.command(1, deallocate(4)).status, 0);
    assert_eq!(bench.command(1, Entry::new(0).namespace(1)).status, 0);
    let blocks: Vec<u8> = medium.content(0, 32 * 512).chunks(512).map(|block| block[0]).collect();
    let wanted = [vec![0; 4], vec![5; 4], vec![0; 8], vec![5; 4], vec![0; 3], vec![5; 9]].concat();
    assert_eq!(blocks, wanted);
    list[8] = 0xFF;
    list[9] = 0xFF;
    bench.ram.write(at, &list);
    assert_eq!(bench.command(1, deallocate(4)).code(), 0x80);
    assert_eq!(bench.command(1, Entry::blocks(0x0C, 0, 8)).status, 0);
}

#[test]
fn a_failing_medium_ends_flush_and_fua_with_write_fault() {
    let (mut bench, medium, at) = bench(NvmeConfig { cache: 64 << 10, ..small() });
    medium.break_it();
    let entry = write(&mut bench, at, 0, 8, 1);
    assert_eq!(bench.command(1, entry).status, 0);
    assert_eq!(bench.command(1, Entry::new(0).namespace(1)).code(), 0x280);
    let entry = write(&mut bench, at, 0, 8, 1).through();
    assert_eq!(bench.command(1, entry).code(), 0x280);
}

/// What may be in a block: the values that were written since it was last known to be safe, and that one.
#[derive(Clone)]
struct Possible {
    values: Vec<u8>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Power fails at any time: every block is whole, and holds the flushed data or data written later.
    #[test]
    fn flushed_blocks_survive_power_loss_whole(
        seed in any::<u64>(),
        cache in prop::sample::select(vec![0u64, 1024, 4096, 16 << 10, 1 << 20]),
        destage in prop::sample::select(vec![0u64, 4, 60]),
        steps in 5usize..60,
    ) {
        let config = NvmeConfig { cache, destage: Duration::from_us(destage), ..small() };
        let medium = Shared::default();
        let media: Vec<Box<dyn Medium>> = vec![Box::new(medium.clone()), Box::new(SparseMedium::new())];
        let mut bench = Bench::with(Nvme::new(config, media), seed);
        bench.enable();
        bench.create(1, 64, 1);
        bench.create(2, 64, 2);
        const BLOCKS: u64 = 40;
        let mut possible = vec![Possible { values: vec![0] }; BLOCKS as usize];
        let mut value = 0u8;
        for _ in 0..steps {
            let (queue, action) = (1 + bench.random(2) as u16, bench.random(10));
            // Blocks of one command at a time are written by it alone: the order of commands under way is nobody's.
            let blocks = 1 + bench.random(16) as u32;
            let lba = bench.random(BLOCKS - u64::from(blocks) + 1);
            let touched = lba as usize..lba as usize + blocks as usize;
            value = value.wrapping_add(1);
            let at = bench.alloc(16 << 10);
            bench.ram.write(at, &[value; 8192]);
            match action {
                0..6 => {
                    let through = action == 5;
                    let entry = Entry::blocks(1, lba, blocks).prp(at, at + 4096);
                    let done = bench.command(queue, if through { entry.through() } else { entry });
                    prop_assert_eq!(done.status, 0);
                    for block in &mut possible[touched] {
                        if through || cache == 0 { block.values.clear(); }
                        block.values.push(value);
                    }
                }
                6 | 7 => {
                    prop_assert_eq!(bench.command(queue, Entry::new(0).namespace(1)).status, 0);
                    for block in &mut possible {
                        let last = block.values.pop();
                        block.values = last.into_iter().collect();
                    }
                }
                8 => {
                    let wait = Duration::from_us(bench.random(50));
                    bench.run_for(wait);
                }
                _ => {
                    let pages = at + 8192;
                    let read = Entry::blocks(2, lba, blocks).prp(pages, pages + 4096);
                    prop_assert_eq!(bench.command(queue, read).status, 0);
                    for (place, block) in touched.enumerate() {
                        let found = bench.bytes(pages + 512 * place as u64, 512);
                        prop_assert_eq!(&found, &vec![*possible[block].values.last().expect("one"); 512]);
                    }
                }
            }
        }
        // One more is under way, anywhere on its way.
        value = value.wrapping_add(1);
        let (at, wait) = (bench.alloc(16 << 10), bench.random(30));
        bench.ram.write(at, &[value; 8192]);
        bench.submit(1, Entry::blocks(1, 8, 16).prp(at, at + 4096));
        if bench.random(2) == 0 {
            bench.submit(2, Entry::new(0).namespace(1));
        }
        bench.run_for(Duration::from_us(wait));
        possible[8..24].iter_mut().for_each(|block| block.values.push(value));
        bench.lose_power();
        for (block, possible) in possible.iter().enumerate() {
            let found = medium.content(block as u64 * 512, 512);
            prop_assert!(found.iter().all(|byte| *byte == found[0]), "block {} is torn", block);
            prop_assert!(possible.values.contains(&found[0]), "block {}: {} of {:?}", block, found[0], possible.values);
        }
        // And the drive says the same.
        bench.enable();
        bench.create(1, 64, 1);
        let at = bench.alloc(8192);
        prop_assert_eq!(bench.command(1, Entry::blocks(2, 0, 16).prp(at, at + 4096)).status, 0);
        prop_assert_eq!(bench.bytes(at, 8192), medium.content(0, 8192));
    }
}
