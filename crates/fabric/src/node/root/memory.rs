//! Service times of host memory. Its contents are behind `tlplab_device::HostMemory`.

use crate::config::MemoryConfig;
use tlplab_units::{Duration, Time};

/// Service times of host memory: one server with a bandwidth, and a latency on top.
#[derive(Clone)]
pub(crate) struct MemoryServer {
    config: MemoryConfig,
    free: Time,
    /// The time at which the last write so far is in memory.
    written: Time,
    /// Time the server is busy with all that it has taken.
    taken: Duration,
}

impl MemoryServer {
    pub(crate) fn new(config: MemoryConfig) -> Self {
        Self { config, free: Time::ZERO, written: Time::ZERO, taken: Duration::ZERO }
    }

    pub(crate) fn size(&self) -> u64 {
        self.config.size
    }

    pub(crate) fn bandwidth(&self) -> Option<u64> {
        self.config.bandwidth
    }

    /// The end of the service of a request of `bytes` that comes now; the latency is on top.
    pub(crate) fn serve(&mut self, now: Time, bytes: u32) -> Time {
        let Some(bandwidth) = self.config.bandwidth else { return now };
        let fs = (u128::from(bytes) * 8 * 1_000_000_000_000_000).div_ceil(u128::from(bandwidth));
        let duration = Duration::from_fs(fs as u64);
        self.free = self.free.max(now) + duration;
        self.taken += duration;
        self.free
    }

    /// A posted write will be in memory at `until`, which is not before those that came earlier.
    pub(crate) fn write_until(&mut self, until: Time) {
        self.written = until;
    }

    /// The time at which every write so far is in memory: TLPs that must not pass them may not be visible earlier.
    pub(crate) fn written(&self) -> Time {
        self.written
    }

    /// Time the server has been busy until `now`; the rest of what it has taken lies ahead.
    pub(crate) fn busy(&self, now: Time) -> Duration {
        self.taken.saturating_sub(self.free.saturating_since(now))
    }

    pub(crate) fn latency(&self) -> Duration {
        self.config.latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_serves_one_after_the_other() {
        let config =
            MemoryConfig { latency: Duration::from_ns(90), bandwidth: Some(8_000_000_000), size: 1 << 40 };
        let mut server = MemoryServer::new(config);
        assert_eq!(server.serve(Time::ZERO, 64), Time::ZERO + Duration::from_ns(64));
        assert_eq!(server.serve(Time::ZERO, 64), Time::ZERO + Duration::from_ns(128));
        let late = Time::ZERO + Duration::from_us(1);
        assert_eq!(server.serve(late, 1), late + Duration::from_ns(1));
    }
}
