//! The host before a measurement: where its memory is, what its cache holds. Takes no simulated time.

use crate::case::{Cache, Case, LINE, Node, Pattern, Test};
use crate::target::MeasureError;
use tlplab_device::Random;
use tlplab_device::bench_engine::Job;
use tlplab_fabric::config::HostConfig;
use tlplab_fabric::{Fabric, Writer};

/// The start of the buffer: above 4 GiB, so that headers have 64-bit addresses.
pub const BASE: u64 = 1 << 32;

/// Bytes that a device writes to thrash its part of the cache: the whole memory that the benchmark holds.
const THRASHED: u64 = 64 << 20;
/// A part of the cache, or an IO-TLB, is as it will remain when it has been filled so many times over.
const FILLINGS: u64 = 4;

/// The device's part of a case.
pub fn job(case: &Case) -> Job {
    let (count, warmup) = case.counts();
    Job {
        measure: case.test.into(),
        interface: case.interface.into(),
        base: BASE,
        units: case.units(),
        stride: case.unit(),
        offset: case.host_offset,
        device_offset: case.device_offset,
        size: case.size,
        random: case.pattern == Pattern::Random,
        warmup,
        count,
        seed: case.seed,
    }
}

/// Brings the host into the state that a case begins in, and on to the state in which a long run finds it: runs that are measured are
/// shorter than those of the paper, of which the beginning does not matter.
///
/// # Errors
/// The host has not what the case asks for.
pub fn prepare(fabric: &mut Fabric, host: &HostConfig, case: &Case) -> Result<(), MeasureError> {
    if case.node == Node::Remote {
        if host.numa.is_none() {
            let why = "the buffer cannot be on a remote node: this host has a single node; add another with host.numa, as in xeon-e5-2620v2";
            return Err(MeasureError::Unsupported(why.into()));
        }
        fabric.place_remote(BASE, case.window);
    }
    fabric.cool_cache();
    match case.cache {
        Cache::Cold => {}
        Cache::HostWarm => fabric.warm_cache(BASE, case.window, Writer::Processor),
        Cache::DeviceWarm => fabric.warm_cache(BASE, case.window, Writer::Device),
        Cache::DeviceThrash => {
            fabric.warm_cache(BASE + case.window, THRASHED, Writer::Device);
        }
    }
    go_on(fabric, host, case);
    Ok(())
}

/// The content that the accesses of a long run leave in the cache and the IO-TLB.
fn go_on(fabric: &mut Fabric, host: &HostConfig, case: &Case) {
    let writes = !matches!(case.test, Test::LatRd | Test::BwRd);
    let reads = case.test != Test::BwWr;
    let placed = host.cache.filter(|_| writes).map_or(0, |cache| {
        let lines = cache.size / LINE / u64::from(cache.ways) * u64::from(cache.ddio_ways);
        lines.div_ceil(case.size.div_ceil(LINE))
    });
    let translated = host.iommu.map_or(0, |iommu| u64::from(iommu.entries));
    let mut random = Random::keyed(case.seed, "bench", "preparation");
    let units = case.units();
    for number in 0..FILLINGS * placed.max(translated) {
        let unit = match case.pattern {
            Pattern::Random => random.below(units),
            Pattern::Sequential => number % units,
        };
        let address = BASE + unit * case.unit() + case.host_offset;
        if writes {
            fabric.write_without_time(address, case.size);
        }
        if reads {
            fabric.read_without_time(address, case.size);
        }
    }
}
