//! Registers and admin commands.

use super::bench::{Bench, Entry};
use super::small;
use tlplab_device::nvme::{NvmeConfig, regs};
use tlplab_device::{Event, InterruptMode};
use tlplab_units::{Duration, Time};

fn word(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(data[at..at + 4].try_into().expect("4"))
}

fn identify(bench: &mut Bench, cns: u32, namespace: u32) -> (u16, Vec<u8>) {
    let at = bench.alloc(4096);
    let done = bench.admin(Entry::new(6).namespace(namespace).prp(at, 0).words(cns, 0));
    (done.code(), bench.bytes(at, 4096))
}

#[test]
fn controller_is_ready_after_its_time_and_shows_capabilities() {
    let mut bench = Bench::new(NvmeConfig { ready: Duration::from_ms(3), entries: 256, ..small() });
    let capabilities = bench.read64(regs::CAP.offset());
    assert_eq!(capabilities & 0xFFFF, 255);
    assert_eq!(capabilities >> 16 & 1, 1, "queues are contiguous");
    assert_eq!((capabilities >> 24 & 0xFF, capabilities >> 32 & 0xF), (1, 0), "timeout, doorbell stride");
    assert_eq!(bench.read32(regs::VS.offset()), 0x0001_0400);
    assert_eq!(bench.read32(regs::CAP.offset() + 4), (capabilities >> 32) as u32);
    bench.enable();
    assert_eq!(bench.now, Time::ZERO + Duration::from_ms(3));
    // Disabled, it is not ready, and it can be enabled again.
    bench.write32(regs::CC.offset(), 0);
    bench.settle();
    assert_eq!(bench.read32(regs::CSTS.offset()), 0);
    bench.enable();
    assert_eq!(identify(&mut bench, 1, 0).0, 0);
}

#[test]
fn a_configuration_that_cannot_be_is_fatal() {
    for (configuration, sizes) in
        [(1 | 5 << 7, 31 << 16 | 31), (1 | 1 << 4, 31 << 16 | 31), (1 | 1 << 11, 31 << 16 | 31), (1, 0)]
    {
        let mut bench = Bench::new(small());
        bench.write32(regs::AQA.offset(), sizes);
        bench.write32(regs::CC.offset(), configuration);
        bench.settle();
        assert_eq!(bench.read32(regs::CSTS.offset()) & 3, 2);
        bench.write32(regs::CC.offset(), 0);
        bench.settle();
        assert_eq!(bench.read32(regs::CSTS.offset()), 0, "a reset mends it");
    }
}

#[test]
fn identify_returns_controller_and_namespace_data() {
    let mut bench = Bench::new(NvmeConfig { mdts: 64 << 10, cache: 1 << 20, ..small() });
    bench.enable();
    let (code, controller) = identify(&mut bench, 1, 0);
    assert_eq!(code, 0);
    assert_eq!(&controller[4..24], b"TLPLAB0000000001    ");
    assert_eq!(controller[77], 4, "2^4 pages");
    assert_eq!((controller[512], controller[513], word(&controller, 516)), (0x66, 0x44, 2));
    assert_eq!((controller[525], controller[111]), (7, 1));
    assert!(controller[768..].starts_with(b"nqn.2014-08.org.nvmexpress:uuid:"));
    let (_, first) = identify(&mut bench, 0, 1);
    assert_eq!((word(&first, 0), first[25], first[26]), (8192, 1, 0));
    assert_eq!((first[130], first[134]), (9, 12));
    let (_, second) = identify(&mut bench, 0, 2);
    assert_eq!((word(&second, 0), second[26]), (256, 1));
    let (_, list) = identify(&mut bench, 2, 0);
    assert_eq!((word(&list, 0), word(&list, 4), word(&list, 8)), (1, 2, 0));
    let (_, list) = identify(&mut bench, 2, 1);
    assert_eq!((word(&list, 0), word(&list, 4)), (2, 0));
    let (_, names) = identify(&mut bench, 3, 1);
    let (_, others) = identify(&mut bench, 3, 2);
    assert_eq!((names[0], names[1], names[20]), (3, 16, 4));
    assert_ne!(names[4..20], others[4..20]);
    for (cns, namespace, code) in [
        (0, 0, 0x0B),
        (0, 3, 0x0B),
        (0, u32::MAX, 0x0B),
        (3, 9, 0x0B),
        (2, u32::MAX - 1, 0x0B),
        (5, 1, 0),
        (6, 0, 0),
        (8, 1, 0x02),
        (0x1C, 0, 0x02),
        (0x10, 0, 0x02),
    ] {
        assert_eq!(identify(&mut bench, cns, namespace).0, code, "CNS {cns} of {namespace}");
    }
}

/// Each command that creates or deletes a queue, and what is wrong with it (NVMe 1.4 §5.3 to §5.6).
#[test]
fn queues_that_cannot_be_are_refused() {
    let mut bench = Bench::new(small());
    bench.enable();
    bench.create(1, 16, 1);
    let at = bench.alloc(1 << 20);
    let create = |opcode, queue: u32, entries: u32, eleven: u32, address| {
        Entry::new(opcode).prp(address, 0).words((entries - 1) << 16 | queue, eleven)
    };
    let cases = [
        (create(5, 0, 16, 1, at), 0x101),
        (create(5, 9, 16, 1, at), 0x101),
        (create(5, 1, 16, 1, at), 0x101),
        (create(5, 2, 1, 1, at), 0x102),
        (create(5, 2, 1025, 1, at), 0x102),
        (create(5, 2, 16, 0, at), 0x02),
        (create(5, 2, 16, 1, at + 64), 0x13),
        (create(5, 2, 16, 9 << 16 | 3, at), 0x108),
        (create(1, 2, 16, 1, at), 0x101),
        (create(1, 2, 16, 9 << 16 | 1, at), 0x101),
        (create(1, 2, 16, 2 << 16 | 1, at), 0x100),
        (create(1, 1, 16, 1 << 16 | 1, at), 0x101),
        (create(1, 2, 1, 1 << 16 | 1, at), 0x102),
        (create(1, 2, 16, 1 << 16, at), 0x02),
        (create(1, 2, 16, 1 << 16 | 1, at + 8), 0x13),
        (Entry::new(4).words(1, 0), 0x10C),
        (Entry::new(4).words(2, 0), 0x101),
        (Entry::new(4).words(0, 0), 0x101),
        (Entry::new(0).words(2, 0), 0x101),
        (Entry::new(0).words(0, 0), 0x101),
        // What this controller does not have.
        (Entry::new(0x7C), 0x01),
        (Entry::new(0x18), 0x01),
        (Entry::new(0x10), 0x01),
        (Entry::new(0x11), 0x01),
        (Entry::new(0x0D), 0x01),
        (Entry::new(0x14), 0x01),
        (Entry::new(6).sgl([0; 16]).words(1, 0), 0x02),
    ];
    for (place, (entry, code)) in cases.into_iter().enumerate() {
        let done = bench.admin(entry);
        assert_eq!((done.code(), done.status >> 14), (code, 1), "case {place}");
    }
    // Deleted in the right order, they are gone and can be created again.
    assert_eq!(bench.admin(Entry::new(0).words(1, 0)).status, 0);
    assert_eq!(bench.admin(Entry::new(4).words(1, 0)).status, 0);
    bench.create(1, 8, 0);
    let errors = bench.alloc(4096);
    let log = Entry::new(2).namespace(u32::MAX).prp(errors, 0);
    assert_eq!(bench.admin(log.words(1023 << 16 | 1, 0)).status, 0);
    let page = bench.bytes(errors, 4096);
    assert_eq!(word(&page, 0), 27, "the last failure comes first");
    assert_eq!(word(&page, 12) & 0xFFFF, (0x02 | 1 << 14) << 1);
    assert_eq!(word(&page, 26 * 64), 1);
    assert_eq!(word(&page, 27 * 64), 0);
}

#[test]
fn a_queue_that_is_deleted_ends_its_commands_first() {
    let mut bench = Bench::new(small());
    bench.enable();
    bench.create(1, 64, 1);
    let at = bench.alloc(4096);
    let ids: Vec<u16> = (0..40).map(|n| bench.put(1, Entry::blocks(2, n, 1).prp(at, 0))).collect();
    bench.ring(1);
    bench.run_for(Duration::from_us(2));
    let deleted = bench.submit(0, Entry::new(0).words(1, 0));
    bench.settle();
    let last = bench.done.last().expect("some");
    assert_eq!((last.queue, last.id, last.status), (0, deleted, 0));
    let mut ended: Vec<u16> = bench.done.iter().filter(|done| done.queue == 1).map(|done| done.id).collect();
    ended.sort_unstable();
    assert!(!ended.is_empty() && ended == ids[..ended.len()], "those that were fetched, each once");
}

#[test]
fn features_read_back_as_set() {
    let mut bench = Bench::new(NvmeConfig { cache: 4096, ..small() });
    bench.enable();
    let get = |id: u32, eleven| Entry::new(0x0A).words(id, eleven);
    let set = |id: u32, eleven| Entry::new(9).words(id, eleven);
    assert_eq!(bench.admin(set(7, 63 << 16 | 63)).result, 7 << 16 | 7);
    for (id, value, reads) in [
        (1, 0x0102_0305, 0x0102_0305),
        (2, 0, 0),
        (4, 350, 350),
        (5, 77, 77),
        (6, 0, 0),
        (6, 1, 1),
        (8, 0x0203, 0x0203),
        (9, 1 << 16 | 3, 1 << 16 | 3),
        (0x0A, 1, 1),
        (0x0B, 0x100, 0x100),
    ] {
        assert_eq!(bench.admin(set(id, value)).status, 0, "feature {id:#x}");
        assert_eq!(bench.admin(get(id, value)).result, reads, "feature {id:#x}");
    }
    // Default values, and that a feature can be changed.
    assert_eq!(bench.admin(get(4 | 1 << 8, 0)).result, 343);
    assert_eq!(bench.admin(get(4 | 3 << 8, 0)).result, 4);
    for (entry, code) in [
        (set(0x20, 0), 0x02),
        (set(2, 1), 0x02),
        (set(7, 0xFFFF), 0x02),
        (set(9, 9), 0x02),
        (set(4 | 1 << 31, 350), 0x10D),
        (get(0x20, 0), 0x02),
    ] {
        assert_eq!(bench.admin(entry).code(), code);
    }
    bench.create(1, 8, 0);
    assert_eq!(bench.admin(set(7, 1)).code(), 0x0C);
    let at = bench.alloc(4096);
    tlplab_device::HostMemory::write(&mut bench.ram, at, &5000u64.to_le_bytes());
    assert_eq!(bench.admin(set(0x0E, 0).prp(at, 0)).status, 0);
    bench.run_for(Duration::from_ms(7));
    assert_eq!(bench.admin(get(0x0E, 0).prp(at + 8, 0)).status, 0);
    assert_eq!(bench.bytes(at + 8, 8), [0x8F, 0x13, 0, 0, 0, 0, 2, 0], "5007 ms, told by the host");
    assert_eq!(bench.admin(set(0x81, 1).prp(at, 0)).status, 0);
    assert_eq!(bench.admin(get(0x81, 1).prp(at + 64, 0)).status, 0);
    assert_eq!(bench.bytes(at, 16), bench.bytes(at + 64, 16));
    // Without a cache there is no such feature.
    let mut bench = Bench::new(small());
    bench.enable();
    assert_eq!(bench.admin(get(6, 0)).code(), 0x02);
}

#[test]
fn logs_count_and_are_read_in_parts() {
    let mut bench = Bench::new(small());
    bench.enable();
    bench.create(1, 16, 1);
    let at = bench.alloc(1 << 20);
    for block in 0..3 {
        assert_eq!(bench.command(1, Entry::blocks(1, block * 8, 8).prp(at, 0)).status, 0);
    }
    assert_eq!(bench.command(1, Entry::blocks(2, 0, 8).prp(at, 0)).status, 0);
    let log =
        |id: u32, words: u32| Entry::new(2).namespace(u32::MAX).prp(at, 0).words((words - 1) << 16 | id, 0);
    assert_eq!(bench.admin(log(2, 128)).status, 0);
    let page = bench.bytes(at, 512);
    let counters: Vec<u32> = (0..10).map(|place| word(&page, 32 + 16 * place)).collect();
    assert_eq!(counters, [1, 1, 1, 3, 0, 1, 0, 0, 0, 0]);
    assert_eq!((page[0], word(&page, 0) >> 8 & 0xFFFF), (0, 313));
    // Its middle, and nothing beyond its end.
    let whole = page;
    assert_eq!(bench.admin(log(2, 8).word(12, 32)).status, 0);
    assert_eq!(bench.bytes(at, 32), whole[32..64]);
    assert_eq!(bench.admin(log(2, 8).word(12, 512)).code(), 0x02);
    assert_eq!(bench.admin(log(2, 8).word(12, 2)).code(), 0x02);
    assert_eq!(bench.admin(log(2, 8).namespace(1)).code(), 0x02);
    assert_eq!(bench.admin(log(0x7F, 8)).code(), 0x109);
    assert_eq!(bench.admin(log(5, 1024)).status, 0);
    let effects = bench.bytes(at, 4096);
    assert_eq!((word(&effects, 6 * 4), word(&effects, 1024 + 4), word(&effects, 0x7C * 4)), (1, 3, 0));
    assert_eq!(bench.admin(log(3, 128)).status, 0);
    assert_eq!(bench.bytes(at, 16), *b"\x01\0\0\0\0\0\0\x001.0     ");
    assert_eq!(bench.admin(log(4, 1024)).status, 0);
    // A reset is no power cycle.
    bench.reset();
    bench.enable();
    assert_eq!(bench.admin(log(2, 128)).status, 0);
    assert_eq!(word(&bench.bytes(at, 512), 32 + 16 * 3), 3, "writes");
    bench.lose_power();
    bench.enable();
    assert_eq!(bench.admin(log(2, 128)).status, 0);
    let page = bench.bytes(at, 512);
    assert_eq!((word(&page, 32 + 16 * 5), word(&page, 32 + 16 * 7)), (2, 1), "power cycles, unsafe ones");
}

#[test]
fn events_wait_for_requests_and_requests_for_events() {
    let mut bench = Bench::new(small());
    bench.enable();
    let ids: Vec<u16> = (0..4).map(|_| bench.submit(0, Entry::new(0x0C))).collect();
    assert_eq!(bench.admin(Entry::new(0x0C)).code(), 0x105);
    bench.settle();
    assert!(bench.done.is_empty());
    bench.write32(regs::DOORBELLS + 5 * 8, 1); // there is no queue 5
    bench.settle();
    let event = bench.done.remove(0);
    assert_eq!((event.id, event.status, event.result), (ids[0], 0, 0x01_0000));
    // The next of its kind is not told before the log was read.
    bench.write32(regs::DOORBELLS, 99);
    bench.settle();
    assert!(bench.done.is_empty());
    let at = bench.alloc(4096);
    let log = Entry::new(2).namespace(u32::MAX).prp(at, 0);
    assert_eq!(bench.admin(log.words(15 << 16 | 1 | 1 << 15, 0)).status, 0);
    bench.write32(regs::DOORBELLS, 99);
    bench.settle();
    assert!(bench.done.is_empty(), "the event was retained");
    assert_eq!(bench.admin(log.words(15 << 16 | 1, 0)).status, 0);
    // More completions than there were.
    bench.write32(regs::DOORBELLS + 4, 31);
    bench.settle();
    assert_eq!(bench.done.remove(0).result, 0x01_0100);
    // The temperature, if software wants to know.
    assert_eq!(bench.admin(Entry::new(9).words(4, 300)).status, 0);
    bench.settle();
    assert!(bench.done.is_empty());
    assert_eq!(bench.admin(Entry::new(9).words(0x0B, 2)).status, 0);
    bench.settle();
    assert_eq!(bench.done.remove(0).result, 0x02_0101);
    // The last request is taken back.
    let abort = Entry::new(8).words(u32::from(ids[3]) << 16, 0);
    let aborted = bench.admin(abort);
    assert_eq!((aborted.status, aborted.result), (0, 0));
    assert_eq!(bench.done.remove(0).code(), 0x07);
    assert_eq!(bench.admin(abort).result, 1, "it is not there any more");
}

#[test]
fn a_format_changes_blocks_and_erases() {
    let mut bench = Bench::new(small());
    bench.enable();
    bench.create(1, 16, 1);
    let at = bench.alloc(4096);
    tlplab_device::HostMemory::write(&mut bench.ram, at, &[7; 4096]);
    assert_eq!(bench.command(1, Entry::blocks(1, 0, 8).prp(at, 0)).status, 0);
    let format = |word| Entry::new(0x80).namespace(1).words(word, 0);
    for (word, code) in [(2, 0x10A), (1 << 4, 0x02), (1 << 5, 0x02), (2 << 9, 0x02)] {
        assert_eq!(bench.admin(format(word)).code(), code);
    }
    assert_eq!(bench.admin(format(1).namespace(9)).code(), 0x0B);
    assert_eq!(bench.admin(format(1 | 1 << 9)).status, 0);
    let (_, namespace) = identify(&mut bench, 0, 1);
    assert_eq!((word(&namespace, 0), namespace[26]), (1024, 1));
    assert_eq!(bench.command(1, Entry::blocks(2, 0, 1).prp(at, 0)).status, 0);
    assert_eq!(bench.bytes(at, 4096), [0; 4096]);
    assert_eq!(bench.command(1, Entry::blocks(2, 1023, 2).prp(at, 0)).code(), 0x80);
}

#[test]
fn a_reset_in_the_middle_of_commands_ends_all_of_them() {
    let mut bench = Bench::new(small());
    bench.enable();
    bench.create(1, 64, 1);
    let at = bench.alloc(256 << 10);
    for n in 0..30 {
        let opcode = 1 + n % 2;
        bench.put(1, Entry::blocks(opcode as u8, n * 16, 16).prp(at, at + 4096));
    }
    bench.ring(1);
    bench.run_for(Duration::from_us(4));
    let before = bench.done.len();
    bench.write32(regs::CC.offset(), 0);
    // It is ready as long as it may still write to memory that was given to it.
    assert!(bench.under_way > 0 && bench.read32(regs::CSTS.offset()) & 1 == 1);
    while bench.read32(regs::CSTS.offset()) & 1 == 1 {
        assert!(bench.step(Time::NEVER));
    }
    assert_eq!(bench.under_way, 0);
    let logged = bench.log.len();
    bench.settle();
    assert_eq!(bench.log.len(), logged, "nothing more is read or written");
    assert!(bench.done.len() <= before + 30);
    bench.done.clear();
    bench.enable();
    bench.create(1, 64, 1);
    assert_eq!(bench.command(1, Entry::blocks(2, 0, 8).prp(at, 0)).status, 0);
    bench.tell(Event::Reset);
    assert_eq!(
        (bench.read32(regs::CC.offset()), bench.read32(regs::CSTS.offset()), bench.mode),
        (0, 0, InterruptMode::MsiX)
    );
}
