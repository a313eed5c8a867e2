//! The last-level cache: which lines of host memory are there, and what that makes of a device's request.
//!
//! A read of a device finds a line or takes it from memory, and leaves the cache as it is. A write of a device goes into the line if it is
//! there, and else places it in one of the ways that devices may use. A write of the processor places its lines in any way; what it
//! reads changes nothing here.

use super::associative::Associative;
use crate::config::{CacheConfig, LINE};
use tlplab_units::Duration;

/// The cache of a host.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    config: CacheConfig,
    lines: Associative,
    /// By slot: whether the processor wrote the line last.
    by_processor: Vec<bool>,
    hits: u64,
    misses: u64,
}

/// Lines that requests of devices found in the cache and that they did not find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitCount {
    /// Found.
    pub hits: u64,
    /// Not found.
    pub misses: u64,
}

/// Lines that a write did not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Placed {
    /// It found all.
    Nothing,
    /// Lines that it writes in whole.
    Whole,
    /// A line of which it writes a part, and whose rest is fetched.
    Part,
}

impl Cache {
    pub(super) fn new(config: CacheConfig) -> Self {
        let lines = Associative::new(config.size / LINE / u64::from(config.ways), config.ways);
        Self { config, by_processor: vec![false; lines.slots()], lines, hits: 0, misses: 0 }
    }

    pub(super) fn config(&self) -> CacheConfig {
        self.config
    }

    pub(super) fn count(&self) -> HitCount {
        HitCount { hits: self.hits, misses: self.misses }
    }

    /// A device reads: the latency, where memory has `memory`, and whether all lines were there. The last line to come decides.
    pub(super) fn device_reads(&mut self, address: u64, bytes: u32, memory: Duration) -> (Duration, bool) {
        let (mut latency, mut all) = (self.config.hit, true);
        for line in lines_of(address, u64::from(bytes)) {
            let found = self.lines.find(line);
            self.counts(found.is_some());
            all &= found.is_some();
            latency = latency.max(match found {
                Some(slot) if self.by_processor[slot] => self.config.hit + self.config.snoop,
                Some(_) => self.config.hit,
                None => memory,
            });
        }
        (latency, all)
    }

    /// A device writes: what of its lines has to be placed.
    pub(super) fn device_writes(&mut self, address: u64, bytes: u32) -> Placed {
        let end = address + u64::from(bytes);
        let mut placed = Placed::Nothing;
        for line in lines_of(address, u64::from(bytes)) {
            let found = self.lines.find(line);
            self.counts(found.is_some());
            if found.is_none() {
                let whole = line * LINE >= address && (line + 1) * LINE <= end;
                placed = placed.max(if whole { Placed::Whole } else { Placed::Part });
            }
            self.is_written_by_device(line, found);
        }
        placed
    }

    fn is_written_by_device(&mut self, line: u64, found: Option<usize>) {
        let slot = found.unwrap_or_else(|| self.lines.insert(line, self.config.ddio_ways));
        self.by_processor[slot] = false;
    }

    /// As if a device had read or written, which is not counted.
    pub(super) fn touch(&mut self, address: u64, bytes: u64, write: bool) {
        // Of what is written to an empty cache, as much remains as devices may place.
        let share = self.config.size / u64::from(self.config.ways) * u64::from(self.config.ddio_ways);
        let before = if write && self.lines.is_empty() { bytes.saturating_sub(share) } else { 0 };
        let (address, bytes) = (address + before, bytes - before);
        for line in lines_of(address, bytes) {
            let found = self.lines.find(line);
            if write {
                self.is_written_by_device(line, found);
            }
        }
    }

    /// The processor of another node writes, whose caches then have the lines.
    pub(super) fn written_elsewhere(&mut self, address: u64, bytes: u64) {
        if self.lines.is_empty() {
            return;
        }
        for line in lines_of(address, bytes) {
            self.lines.remove(line);
        }
    }

    /// The processor writes.
    pub(super) fn processor_writes(&mut self, address: u64, bytes: u64) {
        // Of what is larger than the cache, only the last lines remain.
        let before = bytes.saturating_sub(self.config.size);
        for line in lines_of(address + before, bytes - before) {
            let slot = self.lines.find(line).unwrap_or_else(|| self.lines.insert(line, self.config.ways));
            self.by_processor[slot] = true;
        }
    }

    /// None of the lines it holds is there any more.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }

    fn counts(&mut self, hit: bool) {
        if hit {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }
}

/// The lines that an access touches.
fn lines_of(address: u64, bytes: u64) -> std::ops::Range<u64> {
    address / LINE..(address + bytes).div_ceil(LINE).max(address / LINE)
}
