//! Parts of measured hosts besides a memory of one latency: a last-level cache, another node, an IOMMU, jitter.

use super::translation::{MapError, TablesConfig};
use tlplab_units::Duration;

/// Bytes of a cache line.
pub const LINE: u64 = 64;

/// The largest cache in bytes: every line of it takes memory here.
pub const LARGEST_CACHE: u64 = 4 << 30;

/// The last-level cache that requests of devices look into before memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheConfig {
    /// Size in bytes: a multiple of 64 times `ways`, at most [`LARGEST_CACHE`].
    pub size: u64,
    /// Lines of a set.
    pub ways: u16,
    /// Of those, the ones in which a write of a device may place a line that is not there yet (Intel calls this DDIO).
    pub ddio_ways: u16,
    /// From the root complex's request to the data of lines that are all there, in the place of the memory's latency.
    pub hit: Duration,
    /// Additional time where the processor wrote one of the lines last: its own caches are snooped.
    pub snoop: Duration,
    /// As much later a write is in memory that has to place a whole line which is not there. (One that covers a part of such a line
    /// fetches the rest, and is later by what a miss costs more than a hit.)
    pub write_allocate: Duration,
}

/// Another node of a host, with memory of its own and a processor that writes it. Which memory is there is said by
/// [`Fabric::place_remote`](crate::Fabric::place_remote). What the processor writes there is in that node's caches, which are no nearer
/// than its memory; what a device writes is placed in this node's cache, as if the memory were local.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumaConfig {
    /// Time to the other node and back: what a request takes longer that has to go there.
    pub hop: Duration,
    /// As much later a write is in memory that places a line of the other node in this node's cache: in the place of the cache's
    /// `write_allocate`. `None`: that and the hop.
    pub write_allocate: Option<Duration>,
}

/// The translation of the addresses that devices use: its time. The addresses of a function stay as they are unless there is a
/// [`MapConfig`](super::MapConfig) for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IommuConfig {
    /// Bytes that one translation covers: a power of two from 4 KiB, such as 2 MiB with superpages.
    pub page: u64,
    /// Translations that are kept (the IO-TLB), whose least recently used one makes room.
    pub entries: u16,
    /// Time of a page walk, for a translation that is not kept.
    pub walk: Duration,
    /// Page walks at a time, at least 1; further ones wait in their order. `None`: no limit.
    pub walkers: Option<u16>,
    /// Least time from the start of a page walk to the start of the next.
    pub interval: Duration,
    /// Tables from which the time of a walk follows, in the place of `walk`.
    pub tables: Option<TablesConfig>,
    /// Devices may ask for translations, and use them: software lets those do so that can.
    pub ats: bool,
}

/// Additional time of reads of host memory, at random: distributions by their quantiles, linear between them. Ranks are in millionths, from
/// 0 to 1 000 000, each with the time that is added at it; an empty list adds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JitterConfig {
    /// Added to every read.
    pub quantiles: Vec<(u32, Duration)>,
    /// Added to those reads besides that find some line not in the cache. Memory is refreshed every 7.8 µs: in each such interval the values fall
    /// from the largest to the smallest, so that reads at the same time wait for the same end.
    pub memory: Vec<(u32, Duration)>,
}

/// Saving power while devices read nothing: what the first read after a pause waits for, by quantiles as in [`JitterConfig`].
/// A pause begins when the last request is served: when its answer leaves, or a latency of the root complex and one of memory after it went
/// on to memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SleepConfig {
    /// The host sleeps when a pause has lasted so long.
    pub after: Duration,
    /// The wait of the first read then.
    pub wake: Vec<(u32, Duration)>,
    /// Before it sleeps it dozes, when a pause has lasted this long.
    pub doze_after: Duration,
    /// The wait of the first request then. Empty: none.
    pub doze: Vec<(u32, Duration)>,
}

/// Times at which the host answers nothing, as when its package sleeps deeply. They begin at random, but only where the host may doze, or without [`SleepConfig`] in any pause between requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallConfig {
    /// From the end of one to the next, on average.
    pub every: Duration,
    /// The duration of a stall.
    pub lasts: Duration,
}

/// The rank of the largest value.
pub const WHOLE: u32 = 1_000_000;

/// Impossible parts of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostMemoryError {
    /// A cache without lines, or of a part of a set.
    #[error("a cache of {size} B does not divide into sets of {ways} lines of 64 B; use a multiple of {set} B", set = LINE * u64::from((*ways).max(1)))]
    Sets {
        /// Bytes.
        size: u64,
        /// Lines of a set.
        ways: u16,
    },
    /// A cache whose lines would fill the memory of the computer that simulates it.
    #[error("a cache of {0} B is too large; expected at most {LARGEST_CACHE} B (4 GiB)")]
    CacheSize(u64),
    /// Devices may use more ways than there are, or none.
    #[error("devices may allocate in 1 to {ways} ways of this cache, not in {ddio}")]
    DeviceWays {
        /// Ways for devices.
        ddio: u16,
        /// All ways.
        ways: u16,
    },
    /// A page of an impossible size.
    #[error("a page of {0} B is not supported; expected a power of two from 4 KiB")]
    Page(u64),
    /// Nothing would ever be translated.
    #[error("an IOMMU needs at least one entry and one page walk at a time")]
    NoTranslation,
    /// Reads would never be served.
    #[error("a host that serves 0 reads at a time answers none; leave the limit out for no limit")]
    NoReads,
    /// The host would never answer.
    #[error("a host that stalls needs time between its stalls: every must be above 0")]
    NoTimeBetween,
    /// Tables that cannot be walked.
    #[error(
        "the page tables are out of range; expected 3 to 5 levels, at most 5 of a second stage, and at least one kept entry of each"
    )]
    Tables,
    /// A mapping, or the number of translations that a device keeps, is impossible.
    #[error("{0}")]
    Map(#[from] MapError),
    /// Quantiles that are no distribution.
    #[error("quantiles go from 0% to 100%, ranks rise and times do not fall; {0}")]
    Quantiles(String),
}

impl CacheConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The parameter that is out of range.
    pub fn check(&self) -> Result<(), HostMemoryError> {
        let Self { size, ways, ddio_ways: ddio, .. } = *self;
        if size > LARGEST_CACHE {
            return Err(HostMemoryError::CacheSize(size));
        }
        if ways == 0 || size == 0 || size % (LINE * u64::from(ways)) != 0 {
            return Err(HostMemoryError::Sets { size, ways });
        }
        if !(1..=ways).contains(&ddio) {
            return Err(HostMemoryError::DeviceWays { ddio, ways });
        }
        Ok(())
    }
}

impl IommuConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The parameter that is out of range.
    pub fn check(&self) -> Result<(), HostMemoryError> {
        if !self.page.is_power_of_two() || self.page < 4096 {
            return Err(HostMemoryError::Page(self.page));
        }
        if self.entries == 0 || self.walkers == Some(0) {
            return Err(HostMemoryError::NoTranslation);
        }
        match self.tables {
            Some(TablesConfig { levels, nested, entries, nested_entries, .. })
                if !(3..=5).contains(&levels) || nested > 5 || entries == 0 || nested_entries == 0 =>
            {
                Err(HostMemoryError::Tables)
            }
            _ => Ok(()),
        }
    }
}

impl JitterConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The parameter that is out of range.
    pub fn check(&self) -> Result<(), HostMemoryError> {
        check_quantiles(&self.quantiles)?;
        check_quantiles(&self.memory)
    }
}

impl SleepConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The parameter that is out of range.
    pub fn check(&self) -> Result<(), HostMemoryError> {
        check_quantiles(&self.wake)?;
        check_quantiles(&self.doze)
    }
}

impl StallConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The parameter that is out of range.
    pub fn check(&self) -> Result<(), HostMemoryError> {
        if self.every.is_zero() { Err(HostMemoryError::NoTimeBetween) } else { Ok(()) }
    }
}

fn check_quantiles(quantiles: &[(u32, Duration)]) -> Result<(), HostMemoryError> {
    let error = |why: String| Err(HostMemoryError::Quantiles(why));
    if let (Some((first, _)), Some((last, _))) = (quantiles.first(), quantiles.last())
        && (*first, *last) != (0, WHOLE)
    {
        return error(format!("these go from {} to {}", percent(*first), percent(*last)));
    }
    for pair in quantiles.windows(2) {
        let ((rank, time), (next, later)) = (pair[0], pair[1]);
        if next <= rank || later < time {
            return error(format!("look at {} and {}", percent(rank), percent(next)));
        }
    }
    Ok(())
}

fn percent(rank: u32) -> String {
    let text = format!("{}.{:04}", rank / 10_000, rank % 10_000);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}
