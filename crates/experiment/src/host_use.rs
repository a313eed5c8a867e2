//! The use of the host's cache and IOMMU, for the result document.

use crate::result;
use crate::translation;
use tlplab_fabric::config::HostConfig;
use tlplab_fabric::{Fabric, HostCounters};
use tlplab_units::Duration;

/// The counts since `before`, in `span`; `None` if the host has neither.
pub(crate) fn host_use(
    fabric: &Fabric,
    host: &HostConfig,
    before: &HostCounters,
    now: &HostCounters,
    span: Duration,
) -> Option<result::HostUse> {
    let cache = now.cache.map(|now| {
        let before = before.cache.unwrap_or_default();
        let (hits, misses) = (now.hits - before.hits, now.misses - before.misses);
        result::CacheUse { hits, misses, hit_rate: share(hits as f64, (hits + misses) as f64) }
    });
    let iommu = host.iommu.zip(now.translations).map(|(config, now)| {
        let before = before.translations.unwrap_or_default();
        let (hits, walks) = (now.hits - before.hits, now.walks - before.walks);
        let fs = |now: Duration, before: Duration| now.saturating_sub(before).as_fs() as f64;
        let span = span.as_fs() as f64;
        let walking = fs(now.walking, before.walking);
        let by_walkers = config.walkers.map_or(0.0, |walkers| share(walking, f64::from(walkers) * span));
        let by_interval = share(walks as f64 * config.interval.as_fs() as f64, span);
        result::IommuUse {
            hits,
            walks,
            hit_rate: share(hits as f64, (hits + walks) as f64),
            waited_ns: fs(now.waited, before.waited) / 1e6,
            // Walks that were begun may end after the run.
            busy: by_walkers.max(by_interval).min(1.0),
            faults: translation::faults(fabric),
            answered: translation::answered(fabric),
        }
    });
    (cache.is_some() || iommu.is_some()).then_some(result::HostUse { cache, iommu })
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
