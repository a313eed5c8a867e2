//! Device profiles: what a benchmark device costs, read from TOML.

use crate::clock::Clock;
use crate::target::MeasureError;
use serde::{Deserialize, Deserializer};
use tlplab_device::EngineProfile;
use tlplab_device::bench_engine::{
    CommandInterface, DmaEngine, Overhead, Passing, ReadBuffer, ReadUnit, Transmission, WriteUnit,
};
use tlplab_units::{Duration, Mps, Mrrs, QuantityError, quantity};

/// A device that benchmarks run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProfile {
    /// Its name, or its file's.
    pub name: String,
    /// What it is.
    pub title: String,
    /// The clock of its timestamps.
    pub clock: Clock,
    /// Max_Payload_Size.
    pub mps: Mps,
    /// Max_Read_Request_Size.
    pub mrrs: Mrrs,
    /// Read requests that it may have outstanding.
    pub tags: u16,
    /// TLPs take multiples of so many bytes on its link, in both directions.
    pub tlp_alignment: u64,
    /// Its engine.
    pub engine: EngineProfile,
}

/// The devices that come with tlplab: name and file.
pub const PROFILES: &[(&str, &str)] = &[
    ("ideal", include_str!("../profiles/devices/ideal.toml")),
    ("netfpga", include_str!("../profiles/devices/netfpga.toml")),
    ("nfp6000", include_str!("../profiles/devices/nfp6000.toml")),
];

/// A profile by name, or from a file that ends in `.toml`, whose text `read` brings.
///
/// # Errors
/// The name is unknown, the file cannot be read, or something in it is wrong.
pub fn profile(
    name: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<DeviceProfile, MeasureError> {
    if let Some((_, text)) = PROFILES.iter().find(|(known, _)| *known == name) {
        return parse(name, text);
    }
    if !name.ends_with(".toml") {
        let names: Vec<_> = PROFILES.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        let message =
            format!("there is no device profile {name:?}; there are {names}, or a file that ends in .toml");
        return Err(MeasureError::Device(message));
    }
    let text = read(name).map_err(|why| MeasureError::Device(format!("cannot read {name:?}: {why}")))?;
    parse(name, &text)
}

/// A profile from its text.
///
/// # Errors
/// What is wrong, and in which line.
pub fn parse(name: &str, text: &str) -> Result<DeviceProfile, MeasureError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        MeasureError::Device(format!("device profile {name}:{line}: {}", error.message()))
    })?;
    let refuse = |what: String| MeasureError::Device(format!("device profile {name}: {what}"));
    let mps = u32::try_from(file.link.mps).ok().and_then(Mps::new);
    let mrrs = u32::try_from(file.link.mrrs).ok().and_then(Mrrs::new);
    let (Some(mps), Some(mrrs)) = (mps, mrrs) else {
        return Err(refuse("link.mps and link.mrrs are powers of two from 128B to 4096B".into()));
    };
    let Dma { slots, alignment, read, write, transmission } = file.dma;
    for (key, value) in [
        ("clock.hz", file.clock.hz),
        ("clock.cycles_per_tick", file.clock.cycles_per_tick.into()),
        ("dma.slots", slots.into()),
        ("dma.alignment", alignment),
        ("dma.read.requests", read.requests.into()),
        ("dma.read.aligned.chunk", read.aligned.chunk),
        ("dma.read.unaligned.chunk", read.unaligned.chunk),
        ("dma.write.passing.chunk", write.passing.chunk),
        ("dma.write.segment", write.segment),
        ("dma.transmission.beat", transmission.beat),
    ] {
        if value == 0 {
            return Err(refuse(format!("{key} is 0; it is at least 1")));
        }
    }
    if let Some(buffer) = &read.buffer
        && (buffer.block == 0
            || u64::from(buffer.blocks) * buffer.block < u64::from(mrrs.bytes()) + buffer.block)
    {
        return Err(refuse(
            "dma.read.buffer does not hold a read request that is not aligned; give it more blocks".into(),
        ));
    }
    let overhead = |table: &OverheadTable| Overhead { issue: table.issue, completion: table.completion };
    Ok(DeviceProfile {
        name: name.into(),
        title: file.title,
        clock: Clock { hz: file.clock.hz, cycles_per_tick: file.clock.cycles_per_tick },
        mps,
        mrrs,
        tags: file.link.tags,
        tlp_alignment: file.link.tlp_alignment,
        engine: EngineProfile {
            between: file.between,
            command: CommandInterface {
                limit: file.command.limit,
                read: overhead(&file.command.read),
                write: overhead(&file.command.write),
            },
            dma: DmaEngine {
                slots,
                alignment,
                reads: ReadUnit {
                    overhead: Overhead { issue: read.issue, completion: read.completion },
                    mrrs: mrrs.bytes(),
                    requests: read.requests,
                    interval: read.interval,
                    interval_within: read.interval_within,
                    buffer: read.buffer.map(|b| ReadBuffer {
                        block: b.block,
                        blocks: b.blocks,
                        margin: b.margin,
                    }),
                    aligned: read.aligned.into(),
                    unaligned: read.unaligned.into(),
                },
                writes: WriteUnit {
                    overhead: Overhead { issue: write.issue, completion: write.completion },
                    least: write.least,
                    mps: mps.bytes(),
                    passing: write.passing.into(),
                    segment: write.segment,
                    idle_after_segment: write.idle_after_segment,
                    idle_after_part: write.idle_after_part,
                },
                transmission: Transmission {
                    beat: transmission.beat,
                    beat_time: transmission.beat_time,
                    answered: transmission.answered,
                },
            },
        },
    })
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[allow(dead_code)] // Where the values are from is for people to read.
    source: String,
    #[serde(deserialize_with = "time")]
    between: Duration,
    clock: ClockTable,
    link: Link,
    command: Command,
    dma: Dma,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockTable {
    hz: u64,
    cycles_per_tick: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    #[serde(deserialize_with = "size")]
    mps: u64,
    #[serde(deserialize_with = "size")]
    mrrs: u64,
    tags: u16,
    #[serde(deserialize_with = "size")]
    tlp_alignment: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    #[serde(deserialize_with = "size")]
    limit: u64,
    read: OverheadTable,
    write: OverheadTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverheadTable {
    #[serde(deserialize_with = "time")]
    issue: Duration,
    #[serde(deserialize_with = "time")]
    completion: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dma {
    slots: u32,
    #[serde(deserialize_with = "size")]
    alignment: u64,
    read: Read,
    write: Write,
    transmission: TransmissionTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransmissionTable {
    #[serde(deserialize_with = "size")]
    beat: u64,
    #[serde(deserialize_with = "time")]
    beat_time: Duration,
    #[serde(default, deserialize_with = "size")]
    answered: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    #[serde(deserialize_with = "time")]
    issue: Duration,
    #[serde(deserialize_with = "time")]
    completion: Duration,
    requests: u32,
    #[serde(deserialize_with = "time")]
    interval: Duration,
    #[serde(deserialize_with = "time")]
    interval_within: Duration,
    buffer: Option<Buffer>,
    aligned: PassingTable,
    unaligned: PassingTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Buffer {
    #[serde(deserialize_with = "size")]
    block: u64,
    blocks: u32,
    margin: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PassingTable {
    #[serde(default, deserialize_with = "time")]
    start: Duration,
    #[serde(deserialize_with = "time")]
    chunk_time: Duration,
    #[serde(deserialize_with = "size")]
    chunk: u64,
    #[serde(default, deserialize_with = "size")]
    segment: u64,
}

impl From<PassingTable> for Passing {
    fn from(table: PassingTable) -> Self {
        let PassingTable { start, chunk_time, chunk, segment } = table;
        Self { start, chunk_time, chunk, segment }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    #[serde(deserialize_with = "time")]
    issue: Duration,
    #[serde(deserialize_with = "time")]
    completion: Duration,
    #[serde(default, deserialize_with = "time")]
    least: Duration,
    passing: PassingTable,
    #[serde(deserialize_with = "size")]
    segment: u64,
    idle_after_segment: u32,
    idle_after_part: u32,
}

fn quantity<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: fn(&str) -> Result<T, QuantityError>,
) -> Result<T, D::Error> {
    read(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    quantity(deserializer, quantity::time)
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    quantity(deserializer, quantity::size)
}
