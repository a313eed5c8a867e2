//! Every shape of PRPs and SGLs (NVMe 1.4 §4.3, §4.4).

use super::bench::{Bench, Entry, PAGE, descriptor};
use super::small;
use tlplab_device::HostMemory;
use tlplab_device::nvme::NvmeConfig;

fn pattern(bytes: u64, seed: u64) -> Vec<u8> {
    (0..bytes).map(|at| ((at * 7 + at / 251) as u8).wrapping_add(seed as u8)).collect()
}

fn bench() -> Bench {
    let mut bench = Bench::new(NvmeConfig { mdts: 4 << 20, ..small() });
    bench.enable();
    bench.create(1, 16, 1);
    bench
}

/// PRPs of `bytes` that begin at `offset` in a page; the list begins at `list_offset` in its. The pages are scattered.
fn prps(bench: &mut Bench, bytes: u64, offset: u64, list_offset: u64) -> ([u64; 2], Vec<(u64, u64)>) {
    let count = (offset + bytes).div_ceil(PAGE);
    let first = bench.alloc(count * 2 * PAGE);
    let pages: Vec<u64> = (0..count).map(|n| first + (n * 7 % count * 2) * PAGE).collect();
    let pages =
        if count.is_multiple_of(7) { (0..count).map(|n| first + n * 2 * PAGE).collect() } else { pages };
    let mut places = vec![];
    let mut left = bytes;
    for (n, page) in pages.iter().enumerate() {
        let skipped = if n == 0 { offset } else { 0 };
        let piece = left.min(PAGE - skipped);
        places.push((page + skipped, piece));
        left -= piece;
    }
    let second = match count {
        1 => 0xDEAD_BEEF, // not looked at
        2 => pages[1],
        _ => list(bench, &pages[1..], list_offset),
    };
    ([pages[0] + offset, second], places)
}

fn list(bench: &mut Bench, pages: &[u64], offset: u64) -> u64 {
    let at = bench.alloc(PAGE) + offset;
    let fitting = ((PAGE - offset) / 8) as usize;
    let own = if pages.len() > fitting { fitting - 1 } else { pages.len() };
    let mut entries = pages[..own].to_vec();
    if own < pages.len() {
        entries.push(list(bench, &pages[own..], 0));
    }
    for (n, entry) in entries.iter().enumerate() {
        bench.ram.write(at + 8 * n as u64, &entry.to_le_bytes());
    }
    at
}

fn fill(bench: &mut Bench, places: &[(u64, u64)], data: &[u8]) {
    let mut at = 0;
    for (address, bytes) in places {
        bench.ram.write(*address, &data[at..at + *bytes as usize]);
        at += *bytes as usize;
    }
}
fn gather(bench: &Bench, places: &[(u64, u64)]) -> Vec<u8> {
    places.iter().flat_map(|(address, bytes)| bench.bytes(*address, *bytes)).collect()
}

#[test]
fn prps_lead_to_all_bytes() {
    let mut bench = bench();
    let shapes = [
        (1u32, 0, 0),
        (8, 0, 0),
        (8, 512, 0),
        (8, 4, 0),
        (1, 3588, 0),
        (16, 0, 0),
        (16, 1024, 0),
        (17, 0, 8),
        (64, 512, 4088),
        (64, 0, 4080),
        (200, 2048, 64),
        (4200, 0, 0),
        (4200, 256, 2048),
        (8192, 0, 0),
        (8192, 8, 4088),
    ];
    for (place, (blocks, offset, list_offset)) in shapes.into_iter().enumerate() {
        let bytes = u64::from(blocks) * 512;
        let lba = if blocks > 4000 { 0 } else { place as u64 * 8 + 1 };
        let lba = if blocks == 4200 { 1000 } else { lba };
        let data = pattern(bytes, place as u64);
        let (pointers, places) = prps(&mut bench, bytes, offset, list_offset);
        fill(&mut bench, &places, &data);
        let write = Entry::blocks(1, lba, blocks).prp(pointers[0], pointers[1]);
        assert_eq!(bench.command(1, write).status, 0, "shape {place}");
        let (pointers, places) = prps(&mut bench, bytes, offset, list_offset);
        let read = Entry::blocks(2, lba, blocks).prp(pointers[0], pointers[1]);
        assert_eq!(bench.command(1, read).status, 0, "shape {place}");
        assert!(gather(&bench, &places) == data, "shape {place}");
        let compare = Entry::blocks(5, lba, blocks).prp(pointers[0], pointers[1]);
        assert_eq!(bench.command(1, compare).status, 0, "shape {place}");
        bench.ram.write(places[places.len() - 1].0, &[data[0].wrapping_add(99)]);
        let last = data.len() - places[places.len() - 1].1 as usize;
        let differs = data[last] != data[0].wrapping_add(99);
        assert_eq!(bench.command(1, compare).code() == 0x285, differs, "shape {place}");
    }
}

#[test]
fn prps_with_impossible_offsets_are_refused() {
    let mut bench = bench();
    let at = bench.alloc(1 << 20);
    let list = bench.alloc(2 * PAGE);
    bench.ram.write(list, &[at, at + 4096, at + 8192 + 8].map(u64::to_le_bytes).concat());
    // At the end of a page the list goes on elsewhere, at the beginning of a page; what stands after that would be fine.
    bench.ram.write(list + 4088, &(list + PAGE + 8).to_le_bytes());
    bench.ram.write(list + PAGE + 8, &[at, at + 4096, at + 8192].map(u64::to_le_bytes).concat());
    for (blocks, first, second) in
        [(1, at + 2, 0), (16, at, at + 4096 + 512), (32, at, list), (32, at, list + 4), (32, at, list + 4088)]
    {
        let done = bench.command(1, Entry::blocks(2, 0, blocks).prp(first, second));
        assert_eq!((done.code(), done.status >> 14), (0x13, 1));
    }
}

#[test]
fn larger_memory_pages_make_longer_pieces() {
    let mut bench = Bench::new(small());
    bench.enable();
    bench.write32(tlplab_device::nvme::regs::CC.offset(), 0);
    bench.settle();
    // Pages of 16 KiB.
    let (submission, completion) = bench.pair(0, 32);
    bench.write64(tlplab_device::nvme::regs::ASQ.offset(), submission);
    bench.write64(tlplab_device::nvme::regs::ACQ.offset(), completion);
    bench.write32(tlplab_device::nvme::regs::CC.offset(), Bench::ENABLED | 2 << 7);
    bench.settle();
    let at = (bench.alloc(256 << 10)).next_multiple_of(16 << 10);
    let (submission, completion) = (at, at + (16 << 10));
    let size = 7 << 16 | 1;
    assert_eq!(bench.admin(Entry::new(5).prp(completion + 4096, 0).words(size, 3)).code(), 0x13);
    assert_eq!(bench.admin(Entry::new(5).prp(completion, 0).words(size, 3)).status, 0);
    assert_eq!(bench.admin(Entry::new(1).prp(submission, 0).words(size, 1 << 16 | 1)).status, 0);
    let data = at + (64 << 10);
    bench.ram.write(data, &pattern(32 << 10, 3));
    let mut entry = Entry::blocks(1, 0, 64).prp(data, data + (16 << 10)).0;
    entry[2] = 9;
    bench.ram.write(submission, &entry);
    bench.write32(tlplab_device::nvme::regs::DOORBELLS + 8, 1);
    bench.settle();
    assert_eq!(bench.bytes(completion + 12, 4), [9, 0, 1, 0]);
}

/// A chain of segments, each with a few data blocks of odd sizes.
fn sgl(bench: &mut Bench, bytes: u64, per_segment: u64) -> ([u8; 16], Vec<(u64, u64)>) {
    let mut blocks = vec![];
    let mut left = bytes;
    while left > 0 {
        let piece = left.min([1, 700, 4096, 33, 9000, 0][blocks.len() % 6]);
        let at = bench.alloc(piece + 64) + blocks.len() as u64 % 61;
        blocks.push((at, piece));
        left -= piece;
    }
    let mut next = None;
    for segment in blocks.chunks(per_segment as usize).rev() {
        let mut descriptors: Vec<[u8; 16]> =
            segment.iter().map(|(at, bytes)| descriptor(*at, *bytes as u32, 0)).collect();
        let kind = if next.is_some() { 0x20 } else { 0x30 };
        descriptors.extend(next);
        let at = bench.alloc(descriptors.len() as u64 * 16 + 4);
        bench.ram.write(at + 4, &descriptors.concat());
        next = Some(descriptor(at + 4, descriptors.len() as u32 * 16, kind));
    }
    (next.expect("a segment"), blocks)
}

#[test]
fn sgls_lead_to_all_bytes() {
    let mut bench = bench();
    for (place, (blocks, per_segment)) in
        [(1u32, 1u64), (8, 3), (40, 5), (100, 1000), (1000, 100), (2000, 1), (4200, 700)]
            .into_iter()
            .enumerate()
    {
        let bytes = u64::from(blocks) * 512;
        let data = pattern(bytes, place as u64);
        let (first, places) = sgl(&mut bench, bytes, per_segment);
        fill(&mut bench, &places, &data);
        assert_eq!(bench.command(1, Entry::blocks(1, 3, blocks).sgl(first)).status, 0, "shape {place}");
        let at = bench.alloc(bytes + PAGE) + 5;
        let one = descriptor(at, bytes as u32, 0);
        assert_eq!(bench.command(1, Entry::blocks(2, 3, blocks).sgl(one)).status, 0, "shape {place}");
        assert!(bench.bytes(at, bytes) == data, "shape {place}");
    }
}

#[test]
fn sgls_that_cannot_be_are_refused() {
    let mut bench = bench();
    let data = bench.alloc(1 << 20);
    let list = bench.alloc(1 << 16);
    let block = |bytes| descriptor(data, bytes, 0);
    let segment = |count: u32| descriptor(list, 16 * count, 0x20);
    let last = |count: u32| descriptor(list, 16 * count, 0x30);
    let cases: Vec<([u8; 16], Vec<[u8; 16]>, u16)> = vec![
        (block(4095), vec![], 0x0F),
        (block(4097), vec![], 0x0F),
        (block(0), vec![], 0x0F),
        (descriptor(data, 4096, 0x10), vec![], 0x11),
        (descriptor(data, 4096, 0x40), vec![], 0x11),
        (descriptor(data, 4096, 0x01), vec![], 0x11),
        (descriptor(list, 0, 0x30), vec![], 0x0E),
        (descriptor(list, 24, 0x30), vec![], 0x0E),
        (last(2), vec![block(2048), block(2048)], 0),
        (last(2), vec![block(2048), block(2049)], 0x0F),
        (last(2), vec![block(2048), block(2047)], 0x0F),
        (last(2), vec![block(4096), last(1)], 0x0D),
        (segment(3), vec![block(4096), last(1), block(0)], 0x0D),
        (segment(2), vec![block(4096), descriptor(list, 8, 0x30)], 0x0E),
        // Without an end.
        (segment(2), vec![block(0), segment(2)], 0x0E),
    ];
    for (place, (first, list_data, code)) in cases.into_iter().enumerate() {
        bench.ram.write(list, &list_data.concat());
        assert_eq!(bench.command(1, Entry::blocks(2, 0, 8).sgl(first)).code(), code, "case {place}");
    }
}
