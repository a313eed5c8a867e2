//! The content of the cache and the place of memory, set without simulated time: for benchmarks, which begin in a state that they name.

use super::{HitCount, TranslationCount};
use crate::node::root::Root;
use tlplab_units::Time;

/// The last writer of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A program on the host: lines may fill the whole cache.
    Processor,
    /// A device: lines that are not there are placed in the ways for devices.
    Device,
}

/// The counters of the cache and the IOMMU of the host since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Lines of requests of devices; `None` without a cache.
    pub cache: Option<HitCount>,
    /// `None` without an IOMMU.
    pub translations: Option<TranslationCount>,
}

impl Root {
    /// Nothing that matters is in the last-level cache any more: every line is cold.
    pub(crate) fn cool_cache(&mut self) {
        if let Some(cache) = &mut self.memory.cache {
            cache.clear();
        }
    }

    /// The lines of a range of memory have been written, one after the other. Nothing happens on a host without a cache. (Memory on another
    /// node is written by the processor there: its lines are then not in this node's cache.)
    pub(crate) fn warm_cache(&mut self, address: u64, bytes: u64, writer: Writer) {
        match writer {
            Writer::Device => self.access_without_time(address, bytes, true),
            Writer::Processor => {
                let remote = self.memory_system.as_ref().is_some_and(|system| system.is_remote(address));
                match &mut self.memory.cache {
                    Some(cache) if remote => cache.written_elsewhere(address, bytes),
                    Some(cache) => cache.processor_writes(address, bytes),
                    None => {}
                }
            }
        }
    }

    /// Cache and IO-TLB are as if a device had read or written `bytes` at `address` long ago. Nothing is counted.
    pub(crate) fn access_without_time(&mut self, address: u64, bytes: u64, write: bool) {
        let Some(system) = &mut self.memory_system else { return };
        if let Some((_, iommu)) = &mut system.iommu {
            iommu.touch(address, bytes);
        }
        if let Some(cache) = &mut self.memory.cache {
            cache.touch(address, bytes, write);
        }
    }

    /// No translation is kept in the IO-TLB any more.
    pub(crate) fn forget_translations(&mut self) {
        if let Some(system) = &mut self.memory_system
            && let Some((_, iommu)) = &mut system.iommu
        {
            iommu.clear();
        }
    }

    /// A range of host memory is on the other node. Without `numa` in the configuration that is no farther.
    pub(crate) fn place_remote(&mut self, address: u64, bytes: u64) {
        if let Some(system) = &mut self.memory_system {
            system.remote.push(address..address.saturating_add(bytes));
        }
    }

    /// The counters of the host's cache and IOMMU until now.
    pub(crate) fn host_counters(&self, now: Time) -> HostCounters {
        let iommu = self.memory_system.as_ref().and_then(|system| system.iommu.as_ref());
        HostCounters {
            cache: self.memory.cache.as_ref().map(super::Cache::count),
            translations: iommu.map(|(_, iommu)| iommu.count(now)),
        }
    }
}
