//! A split virtqueue, the driver's side (virtio 1.2, sections 2.7.5 to 2.7.8 and 2.7.13).

use crate::memory::{BASE, Memory};
use std::collections::BTreeMap;

/// A part of a buffer.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// For the device to read.
    Sent(Vec<u8>),
    /// For the device to fill.
    Room(u32),
}

pub(crate) struct Ring {
    pub(crate) size: u16,
    pub(crate) descriptors: u64,
    pub(crate) available: u64,
    pub(crate) used: u64,
    /// Where the bytes of each descriptor are, so many at most.
    data: u64,
    slot: u32,
    free: Vec<u16>,
    offered: u16,
    seen: u16,
    chains: BTreeMap<u16, Vec<u16>>,
}

impl Ring {
    /// The queue `index` of `size` entries; a part has at most `slot` bytes.
    pub(crate) fn new(memory: &mut Memory, index: u64, size: u16, slot: u32) -> Self {
        // Alignments: 16, 2 and 4 (section 2.7); what is next to the rings must stay as it is.
        let base = BASE + index * 0x8_0000;
        let (descriptors, available, used) = (base + 0x10, base + 0x2002, base + 0x3004);
        let ring = Self {
            size,
            descriptors,
            available,
            used,
            data: base + 0x4000,
            slot,
            free: (0..size).collect(),
            offered: 0,
            seen: 0,
            chains: BTreeMap::new(),
        };
        memory.store(available, &[0; 4]);
        memory.store(used, &[0; 4]);
        ring
    }

    /// Where the bytes of a descriptor are.
    pub(crate) fn place(&self, descriptor: u16) -> u64 {
        self.data + u64::from(descriptor) * u64::from(self.slot)
    }

    /// Writes a descriptor: address, length, flags (1: there is a next, 2: for the device to write), next.
    pub(crate) fn describe(&self, memory: &mut Memory, index: u16, fields: (u64, u32, u16, u16)) {
        let (address, length, flags, next) = fields;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        bytes[14..].copy_from_slice(&next.to_le_bytes());
        memory.store(self.descriptors + 16 * u64::from(index), &bytes);
    }

    /// Puts a chain that begins with `head` into the available ring.
    pub(crate) fn make_available(&mut self, memory: &mut Memory, head: u16) {
        let slot = u64::from(self.offered % self.size);
        memory.store(self.available + 4 + 2 * slot, &head.to_le_bytes());
        self.offered = self.offered.wrapping_add(1);
        memory.store(self.available + 2, &self.offered.to_le_bytes());
    }

    /// Offers a buffer; its first descriptor.
    pub(crate) fn offer(&mut self, memory: &mut Memory, parts: &[Part]) -> u16 {
        assert!(self.free.len() >= parts.len(), "the kernel has no more descriptors");
        let chain: Vec<u16> = parts.iter().map(|_| self.free.pop().expect("just counted")).collect();
        for (at, part) in parts.iter().enumerate() {
            let (index, next) = (chain[at], chain.get(at + 1).copied());
            let place = self.place(index);
            let (length, writable) = match part {
                Part::Sent(data) => {
                    memory.store(place, data);
                    (data.len() as u32, 0)
                }
                Part::Room(bytes) => {
                    memory.store(place, &vec![0xEE; *bytes as usize]);
                    (*bytes, 2)
                }
            };
            assert!(length <= self.slot, "a part of {length} B in slots of {} B", self.slot);
            let flags = writable | u16::from(next.is_some());
            self.describe(memory, index, (place, length, flags, next.unwrap_or(0xDEAD)));
        }
        let head = chain[0];
        self.chains.insert(head, chain);
        self.make_available(memory, head);
        head
    }

    /// The next buffer that the device is done with: its first descriptor, and what it was filled with.
    pub(crate) fn done(&mut self, memory: &Memory) -> Option<(u16, Vec<u8>)> {
        let given_back = memory.load_half(self.used + 2);
        if given_back == self.seen {
            return None;
        }
        let entry = self.used + 4 + 8 * u64::from(self.seen % self.size);
        self.seen = self.seen.wrapping_add(1);
        let head = u16::try_from(memory.load_word(entry)).expect("a descriptor");
        let mut left = memory.load_word(entry + 4);
        let chain = self.chains.remove(&head).expect("a buffer that the device has");
        let mut filled = Vec::new();
        for index in &chain {
            let fields = memory.load(self.descriptors + 16 * u64::from(*index), 16);
            let length = u32::from_le_bytes(fields[8..12].try_into().expect("4 B"));
            if fields[12] & 2 != 0 {
                let part = length.min(left);
                filled.extend_from_slice(memory.load(self.place(*index), part as usize));
                left -= part;
            }
        }
        assert_eq!(left, 0, "the device says it filled more than there is room");
        self.free.extend(chain);
        Some((head, filled))
    }
}
