//! Device profiles: what a benchmark device costs, read from TOML.

use crate::clock::Clock;
use crate::device_file::{Dma, File};
use crate::target::MeasureError;
use tlplab_device::EngineProfile;
use tlplab_device::bench_engine::{CommandInterface, DmaEngine, Overhead, ReadUnit, Transmission, WriteUnit};
use tlplab_units::{Mps, Mrrs};

/// A device that benchmarks run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProfile {
    /// Its name, or its file's.
    pub name: String,
    /// Its description.
    pub title: String,
    /// The source of its values.
    pub source: String,
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
    /// A beat of the way to the link takes as long as so many bytes on the link, whichever that is.
    pub beats_of_the_link: bool,
    /// Its engine.
    pub engine: EngineProfile,
}

impl DeviceProfile {
    /// Software sets other sizes than the profile has.
    pub(crate) fn set(&mut self, mps: Mps, mrrs: Mrrs) {
        (self.mps, self.mrrs) = (mps, mrrs);
        self.engine.dma.writes.mps = mps.bytes();
        self.engine.dma.reads.mrrs = mrrs.bytes();
    }
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
            format!("unknown device profile {name:?}; expected {names}, or a file that ends in .toml");
        return Err(MeasureError::Device(message));
    }
    let text = read(name).map_err(|why| MeasureError::Device(format!("cannot read {name:?}: {why}")))?;
    parse(name, &text)
}

/// A profile from its text.
///
/// # Errors
/// The mistake, and its line.
pub fn parse(name: &str, text: &str) -> Result<DeviceProfile, MeasureError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        MeasureError::Device(format!("device profile {name}:{line}: {}", error.message()))
    })?;
    check(&file).map_err(|what| MeasureError::Device(format!("device profile {name}: {what}")))?;
    Ok(profile_of(name, file))
}

/// Checks that a device can be so.
fn check(file: &File) -> Result<(), String> {
    let no_power = |key: &str, bytes: u64| {
        format!("link.{key} is {bytes}; expected a power of two from 128 B to 4096 B")
    };
    mps_of(file.link.mps).ok_or_else(|| no_power("mps", file.link.mps))?;
    let mrrs = mrrs_of(file.link.mrrs).ok_or_else(|| no_power("mrrs", file.link.mrrs))?;
    let Dma { slots, alignment, read, write, transmission } = &file.dma;
    for (key, value, most) in [
        ("clock.hz", file.clock.hz, 1 << 40),
        ("clock.cycles_per_tick", file.clock.cycles_per_tick.into(), 1 << 20),
        ("link.tags", file.link.tags.into(), 15_360),
        ("dma.slots", (*slots).into(), 1 << 16),
        ("dma.alignment", *alignment, 4096),
        ("dma.read.requests", read.requests.into(), 1 << 16),
        ("dma.read.aligned.chunk", read.aligned.chunk, 1 << 20),
        ("dma.read.unaligned.chunk", read.unaligned.chunk, 1 << 20),
        ("dma.write.passing.chunk", write.passing.chunk, 1 << 20),
        ("dma.write.segment", write.segment, 1 << 20),
        ("dma.transmission.beat", transmission.beat, 4096),
    ] {
        if value == 0 || value > most {
            return Err(format!("{key} is {value}; expected 1 to {most}"));
        }
    }
    let Some(buffer) = &read.buffer else { return Ok(()) };
    if !(1..=1 << 20).contains(&buffer.block) || !(1..=1 << 20).contains(&buffer.blocks) {
        return Err("dma.read.buffer is out of range; expected 1 to 1048576 blocks of 1 B to 1 MiB".into());
    }
    let request = u64::from(mrrs.bytes()) + alignment - 1;
    if u64::from(buffer.blocks) < request.div_ceil(buffer.block) {
        return Err(format!(
            "dma.read.buffer is too small for a read request, which can take {request} B; give it more blocks"
        ));
    }
    if buffer.margin > buffer.blocks {
        return Err(format!(
            "dma.read.buffer.margin is {}; expected at most the number of blocks, {}",
            buffer.margin, buffer.blocks
        ));
    }
    Ok(())
}

fn mps_of(bytes: u64) -> Option<Mps> {
    u32::try_from(bytes).ok().and_then(Mps::new)
}

fn mrrs_of(bytes: u64) -> Option<Mrrs> {
    u32::try_from(bytes).ok().and_then(Mrrs::new)
}

/// The profile in a checked file.
fn profile_of(name: &str, file: File) -> DeviceProfile {
    let (mps, mrrs) =
        (mps_of(file.link.mps).unwrap_or(Mps::ALL[0]), mrrs_of(file.link.mrrs).unwrap_or(Mrrs::ALL[0]));
    let Dma { slots, alignment, read, write, transmission } = file.dma;
    DeviceProfile {
        name: name.into(),
        title: file.title,
        source: file.source,
        clock: Clock { hz: file.clock.hz, cycles_per_tick: file.clock.cycles_per_tick },
        mps,
        mrrs,
        tags: file.link.tags,
        tlp_alignment: file.link.tlp_alignment,
        beats_of_the_link: transmission.beat_time.is_none(),
        engine: EngineProfile {
            between: file.between,
            command: CommandInterface {
                limit: file.command.limit,
                read: file.command.read.into(),
                write: file.command.write.into(),
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
                    buffer: read.buffer.map(Into::into),
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
                    beat_time: transmission.beat_time.unwrap_or_default(),
                    answered: transmission.answered,
                },
            },
        },
    }
}
