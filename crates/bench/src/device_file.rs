//! The tables of a device profile's file.

use serde::{Deserialize, Deserializer};
use tlplab_device::bench_engine::{Overhead, Passing, ReadBuffer};
use tlplab_units::{Duration, QuantityError, quantity};

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) title: String,
    pub(crate) source: String,
    #[serde(deserialize_with = "time")]
    pub(crate) between: Duration,
    pub(crate) clock: ClockTable,
    pub(crate) link: Link,
    pub(crate) command: Command,
    pub(crate) dma: Dma,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClockTable {
    pub(crate) hz: u64,
    pub(crate) cycles_per_tick: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Link {
    #[serde(deserialize_with = "size")]
    pub(crate) mps: u64,
    #[serde(deserialize_with = "size")]
    pub(crate) mrrs: u64,
    pub(crate) tags: u16,
    #[serde(deserialize_with = "size")]
    pub(crate) tlp_alignment: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Command {
    #[serde(deserialize_with = "size")]
    pub(crate) limit: u64,
    pub(crate) read: OverheadTable,
    pub(crate) write: OverheadTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverheadTable {
    #[serde(deserialize_with = "time")]
    pub(crate) issue: Duration,
    #[serde(deserialize_with = "time")]
    pub(crate) completion: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dma {
    pub(crate) slots: u32,
    #[serde(deserialize_with = "size")]
    pub(crate) alignment: u64,
    pub(crate) read: Read,
    pub(crate) write: Write,
    pub(crate) transmission: TransmissionTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransmissionTable {
    #[serde(deserialize_with = "size")]
    pub(crate) beat: u64,
    #[serde(default, deserialize_with = "optional_time")]
    pub(crate) beat_time: Option<Duration>,
    #[serde(default, deserialize_with = "size")]
    pub(crate) answered: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    #[serde(deserialize_with = "time")]
    pub(crate) issue: Duration,
    #[serde(deserialize_with = "time")]
    pub(crate) completion: Duration,
    pub(crate) requests: u32,
    #[serde(deserialize_with = "time")]
    pub(crate) interval: Duration,
    #[serde(deserialize_with = "time")]
    pub(crate) interval_within: Duration,
    pub(crate) buffer: Option<Buffer>,
    pub(crate) aligned: PassingTable,
    pub(crate) unaligned: PassingTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Buffer {
    #[serde(deserialize_with = "size")]
    pub(crate) block: u64,
    pub(crate) blocks: u32,
    pub(crate) margin: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PassingTable {
    #[serde(default, deserialize_with = "time")]
    pub(crate) start: Duration,
    #[serde(deserialize_with = "time")]
    pub(crate) chunk_time: Duration,
    #[serde(deserialize_with = "size")]
    pub(crate) chunk: u64,
    #[serde(default, deserialize_with = "size")]
    pub(crate) segment: u64,
}

impl From<PassingTable> for Passing {
    fn from(table: PassingTable) -> Self {
        let PassingTable { start, chunk_time, chunk, segment } = table;
        Self { start, chunk_time, chunk, segment }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    #[serde(deserialize_with = "time")]
    pub(crate) issue: Duration,
    #[serde(deserialize_with = "time")]
    pub(crate) completion: Duration,
    #[serde(default, deserialize_with = "time")]
    pub(crate) least: Duration,
    pub(crate) passing: PassingTable,
    #[serde(deserialize_with = "size")]
    pub(crate) segment: u64,
    pub(crate) idle_after_segment: u32,
    pub(crate) idle_after_part: u32,
}

fn quantity<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: fn(&str) -> Result<T, QuantityError>,
) -> Result<T, D::Error> {
    read(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn optional_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    time(deserializer).map(Some)
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    quantity(deserializer, quantity::time)
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    quantity(deserializer, quantity::size)
}

impl From<OverheadTable> for Overhead {
    fn from(table: OverheadTable) -> Self {
        Self { issue: table.issue, completion: table.completion }
    }
}

impl From<Buffer> for ReadBuffer {
    fn from(table: Buffer) -> Self {
        Self { block: table.block, blocks: table.blocks, margin: table.margin }
    }
}
