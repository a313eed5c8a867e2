//! The throughput of DMA over NetTLP: reads or writes of the host's memory from one or several lanes, each a thread with tags and sockets of its
//! own and so many operations under way.
//!
//! [`Perf::run`] measures; [`Perf::progress`] and [`Perf::stop`] serve other threads meanwhile. What was measured until a stop counts.
//! With verification the region is filled before reads are measured, and read back after writes were. Of writes an adapter that counts them
//! tells how many arrived.

mod lane;
mod pace;
mod pattern;
mod results;
mod verify;

use super::apis::Apis;
use super::drive::{Loop, Stop, Wait};
use super::error::Error;
use super::open::Network;
use lane::{Driven, Lane};
use pattern::Addresses;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tlplab_device::random::Random;
use tlplab_nettlp::{Endpoint, EndpointConfig};
use tlplab_wire::nettlp::message_api::Written;

pub use pattern::{Content, Pattern, Region};
pub use results::{LaneResult, MOST_RANGES, Missing, Report};

/// Reads or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// DMA reads, over when the data are there.
    #[default]
    Read,
    /// DMA writes, over when they were sent: they are posted.
    Write,
}

/// Latencies that a lane keeps one by one: 80 MB of them.
pub const MOST_KEPT: usize = 10_000_000;

/// The parameters of a measurement.
#[derive(Clone, Debug)]
pub struct PerfConfig {
    /// The place of this end.
    pub network: Network,
    /// The end point, with the first tag of the first lane.
    pub endpoint: EndpointConfig,
    /// Threads, 1 to 16.
    pub lanes: u8,
    /// Operations under way in each lane, at least 1.
    pub outstanding: u16,
    /// Tags of each lane; as many as it can use if `None`. More than that are of use where requests are not answered, since their tags
    /// rest for a while.
    pub tags: Option<u16>,
    /// Reads or writes.
    pub direction: Direction,
    /// The region.
    pub region: Region,
    /// True if each lane has its own part of the region.
    pub divided: bool,
    /// In which order.
    pub pattern: Pattern,
    /// Bytes of an operation, at least 1.
    pub length: u32,
    /// Operations per lane; no limit if `None`.
    pub count: Option<u64>,
    /// The duration; until it is stopped if `None`.
    pub duration: Option<Duration>,
    /// True if writes wait, now and then, until what was sent has been taken. Otherwise more of them may be sent than the adapter's socket holds.
    pub paced: bool,
    /// Pause after every operation.
    pub interval: Duration,
    /// The way to wait.
    pub wait: Wait,
    /// True if the data are looked at.
    pub verify: bool,
    /// True if the latency of each operation is kept, of at most [`MOST_KEPT`] in each lane.
    pub each: bool,
    /// Of random addresses, and of the data.
    pub seed: u64,
}

impl PerfConfig {
    /// The end point of one lane, with its tags as far as there are enough.
    ///
    /// # Errors
    /// There is no tag for every lane from the first tag on.
    fn lane(&self, lane: u8) -> Result<EndpointConfig, Error> {
        let first = u16::from(*self.endpoint.tags.start());
        let share = (256 - first) / u16::from(self.lanes);
        if share == 0 {
            return Err(Error::Setup(format!(
                "{} lanes need as many tags, but only {} are left from tag {first} onwards",
                self.lanes,
                256 - first,
            )));
        }
        let wanted = match self.tags {
            Some(tags) => tags.into(),
            None => u32::from(self.outstanding).saturating_mul(self.requests()),
        };
        let tags = wanted.min(share.into()) as u16;
        let start = first + u16::from(lane) * tags;
        Ok(EndpointConfig {
            tags: start as u8..=(start + tags - 1) as u8,
            host_ports: 0,
            ..self.endpoint.clone()
        })
    }

    /// Requests that can be under way for one operation.
    fn requests(&self) -> u32 {
        let (length, most) = (self.length, self.endpoint.mrrs.bytes());
        let begins = self.region.address.is_multiple_of(length.min(most).into());
        let whole = begins && !self.divided && (length.is_multiple_of(most) || most.is_multiple_of(length));
        match self.direction {
            // All of them leave by one port.
            Direction::Write => 1,
            Direction::Read if whole => length.div_ceil(most),
            // One that begins anywhere is cut once more than its length makes necessary.
            Direction::Read => length.div_ceil(most) + 1,
        }
    }

    /// The addresses of a lane.
    fn addresses(&self, lane: u8) -> Addresses {
        let random = Random::keyed(self.seed, &format!("lane {lane}"), "addresses");
        Addresses::new(self.pattern, self.region(lane), self.length.into(), random)
    }

    fn region(&self, lane: u8) -> Region {
        if self.divided { self.region.part(lane.into(), self.lanes.into()) } else { self.region }
    }

    fn check(&self) -> Result<(), Error> {
        self.lane(0)?;
        let part = self.region(0).bytes;
        if part < self.length.into() {
            return Err(Error::Setup(format!(
                "an operation of {} B does not fit into the {part} B that each lane has of the region",
                self.length
            )));
        }
        if self.region.address.checked_add(self.region.bytes).is_none() {
            return Err(Error::Setup("the region passes the end of the address space".into()));
        }
        Ok(())
    }
}

/// The state that other threads may see and change while it runs.
#[derive(Default)]
pub(super) struct Progress {
    stop: Stop,
    operations: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    fn add(&self, operations: u64, bytes: u64) {
        self.operations.fetch_add(operations, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Stops all lanes when it is dropped: after an error, and after a panic.
struct Ends<'a>(&'a Stop);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A measurement.
pub struct Perf {
    config: PerfConfig,
    progress: Progress,
}

impl Perf {
    /// Not begun yet.
    ///
    /// # Errors
    /// Numbers that contradict each other.
    pub fn new(config: PerfConfig) -> Result<Self, Error> {
        config.check()?;
        Ok(Self { config, progress: Progress::default() })
    }

    /// Ends it; what was measured counts.
    pub fn stop(&self) {
        self.progress.stop.stop();
    }

    /// Operations that succeeded so far, and their bytes.
    pub fn progress(&self) -> (u64, u64) {
        (self.progress.operations.load(Ordering::Relaxed), self.progress.bytes.load(Ordering::Relaxed))
    }

    /// Measures.
    ///
    /// # Errors
    /// A transport that cannot be opened or breaks, no operation that succeeds, memory that does not keep what is written.
    pub fn run(&self) -> Result<Report, Error> {
        let Self { config, progress } = self;
        let mut lanes = (0..config.lanes).map(|lane| self.open(lane)).collect::<Result<Vec<_>, _>>()?;
        // All that the device sends has one count, also what is read back in the end.
        let mut count = Endpoint::new(config.lane(0)?);
        lanes.iter_mut().for_each(|lane| lane.engine.count_with(&mut count));
        let content = config.verify.then_some(Content(config.seed));
        if let (Direction::Read, Some(content)) = (config.direction, content) {
            verify::fill(&mut lanes[0], config.region, content, &progress.stop)?;
        }
        let before = self.written()?;
        let together = Barrier::new(lanes.len());
        let results = std::thread::scope(|scope| {
            let running: Vec<_> = (0..config.lanes)
                .zip(lanes)
                .map(|(number, driven)| {
                    let together = &together;
                    scope.spawn(move || {
                        let lane = Lane::new(config, progress, driven, config.addresses(number), number);
                        together.wait();
                        let ends = Ends(&progress.stop);
                        let result = lane.run();
                        if result.is_ok() {
                            std::mem::forget(ends);
                        }
                        result
                    })
                })
                .collect();
            let join = |lane: std::thread::ScopedJoinHandle<'_, _>| lane.join().expect("lanes do not panic");
            running.into_iter().map(join).collect::<Result<Vec<_>, Error>>()
        })?;
        let elapsed = results.iter().map(|lane| lane.elapsed).max().unwrap_or_default();
        let interrupted = progress.stop.is_stopped();
        let arrived = self.arrived(before)?;
        let missing = match (config.direction, content) {
            (Direction::Write, Some(content)) => Some(self.read_back(&results, content, &mut count)?),
            _ => None,
        };
        Ok(Report { lanes: results, elapsed, interrupted, arrived, missing })
    }

    fn open(&self, lane: u8) -> Result<Driven, Error> {
        let endpoint = self.config.lane(lane)?;
        let transport = self.config.network.open(&endpoint)?;
        Ok(Loop::new(Endpoint::new(endpoint), transport))
    }

    /// The device's writes according to the adapter, if writes are measured and it reports them.
    fn written(&self) -> Result<Option<Written>, Error> {
        let PerfConfig { direction, network, endpoint, .. } = &self.config;
        match direction {
            Direction::Read => Ok(None),
            Direction::Write => Apis { local: network.local, adapter: endpoint.adapter }.written(),
        }
    }

    /// Bytes that it has taken since.
    fn arrived(&self, before: Option<Written>) -> Result<Option<u64>, Error> {
        let Some(before) = before else { return Ok(None) };
        // One that began anew meanwhile does not know.
        Ok(self.written()?.and_then(|after| after.bytes.checked_sub(before.bytes)))
    }

    /// The lanes' writes that are not in memory.
    fn read_back(
        &self,
        results: &[LaneResult],
        content: Content,
        count: &mut Endpoint<u32>,
    ) -> Result<Missing, Error> {
        let config = &self.config;
        let mut reader = self.open(0)?;
        reader.engine.count_with(count);
        let lanes = (0..config.lanes).zip(results);
        let written: Vec<_> = lanes
            .map(|(number, lane)| {
                verify::Written::new(config, number, &mut config.addresses(number), lane.begun)
            })
            .collect();
        verify::missing(&mut reader, config.region, &written, content, &self.progress.stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use std::net::Ipv4Addr;
    use tlplab_units::Bdf;

    /// Of tests: a lane that writes.
    pub(super) fn config() -> PerfConfig {
        PerfConfig {
            network: Network { kind: Kind::Udp, local: Ipv4Addr::LOCALHOST, interface: None },
            endpoint: EndpointConfig::new(Ipv4Addr::LOCALHOST, Bdf(0)),
            lanes: 1,
            outstanding: 1,
            tags: None,
            direction: Direction::Write,
            region: Region { address: 0, bytes: 4096 },
            divided: false,
            pattern: Pattern::Seq,
            length: 256,
            count: None,
            duration: None,
            paced: true,
            interval: Duration::ZERO,
            wait: Wait::Sleep,
            verify: true,
            each: false,
            seed: 1,
        }
    }
}
