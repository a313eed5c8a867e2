//! Writes what a run does to files while it runs: the simulator's [`Probe`], turned into the plain data of [`record`](crate::record).
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let config = tlplab_fabric::config::FabricConfig::new();
//! use tlplab_trace::recorder::{Recorder, Targets};
//! let recorder = Recorder::create(Targets { pcapng: Some("run.pcapng".into()), ..Targets::default() })?;
//! let mut builder = tlplab_fabric::Builder::new(config);
//! builder.probe(recorder.probe());
//! let mut fabric = builder.build()?;
//! fabric.run_until(tlplab_units::Time::from_fs(200_000_000_000));
//! recorder.finish()?; // without it, no file is left
//! # Ok(())
//! # }
//! ```

use crate::output::Output;
use crate::record::{Content, Flags, Flit, Interval, Link, Tlp, Transaction, Unit};
use crate::{Error, pcapng, perfetto};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_fabric::attribution::Place;
use tlplab_fabric::probe::{Probe, TlpRecord, TransactionRecord, UnitContent, UnitRecord};
use tlplab_fabric::results::LevelResult;
use tlplab_fabric::topology::{LinkInfo, Topology};
use tlplab_fabric::{Ending, PortId};
use tlplab_units::{Duration, Time};

/// The files to write. `-` is standard output.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// A capture for Wireshark and the tools of NetTLP.
    pub pcapng: Option<PathBuf>,
    /// The content of the capture. Its horizon is best set to the end of the run, where that is known.
    pub pcapng_settings: pcapng::Settings,
    /// A trace for Perfetto.
    pub perfetto: Option<PathBuf>,
    /// The meaning of Perfetto's nanoseconds.
    pub scale: perfetto::Scale,
}

/// Writes captures and traces of a run. Clones share their files.
#[derive(Clone)]
pub struct Recorder {
    files: Arc<Mutex<Files>>,
}

#[derive(Default)]
struct Files {
    targets: Targets,
    topology: Topology,
    places: BTreeMap<Place, String>,
    text: String,
    /// Files that wait for the fabric to be built.
    opened: [Option<Output>; 2],
    capture: Option<(PathBuf, pcapng::Writer<Output>)>,
    trace: Option<(PathBuf, perfetto::Writer<Output>)>,
}

impl Recorder {
    /// Opens the files, so that a wrong path is an error before the run.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn create(targets: Targets) -> Result<Self, Error> {
        let open = |path: &Option<PathBuf>| path.as_ref().map(Output::create).transpose();
        let opened = [open(&targets.pcapng)?, open(&targets.perfetto)?];
        let files = Files { targets, opened, ..Files::default() };
        Ok(Self { files: Arc::new(Mutex::new(files)) })
    }

    /// The probe for [`Builder::probe`](tlplab_fabric::Builder::probe).
    pub fn probe(&self) -> Box<dyn Probe> {
        Box::new(self.clone())
    }

    /// Adds the levels of resources to the trace, as the maximum of each bin: what
    /// [`Fabric::level_results`](tlplab_fabric::Fabric::level_results) gives after the run, and the width of its bins.
    pub fn levels(&self, levels: &[LevelResult], bin: Duration) {
        let mut files = self.lock();
        let Some((_, trace)) = &mut files.trace else { return };
        for level in levels {
            let counter = trace.counter(&format!("{} of {}", level.of.name(), level.place), "");
            let mut shown = None;
            for (i, &max) in (0..).zip(&level.max) {
                if shown != Some(max) {
                    trace.level(counter, Time::ZERO + bin * i, max);
                    shown = Some(max);
                }
            }
        }
    }

    /// Ends the files and gives them their names.
    ///
    /// # Errors
    /// The first error of a file, with its path: a disk that filled up during the run, or a TLP that a capture cannot hold
    /// ([`pcapng::Unwritable`]). That file is not left, the others are.
    pub fn finish(&self) -> Result<(), Error> {
        let mut files = self.lock();
        let capture = files.capture.take().map_or(Ok(()), |(path, file)| commit(&path, file.finish()));
        let trace = files.trace.take().map_or(Ok(()), |(path, file)| commit(&path, file.finish()));
        capture.and(trace)
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn commit(path: &Path, finished: io::Result<Output>) -> Result<(), Error> {
    finished.map_err(|error| Error::io(path, "write", error))?.commit()
}

impl Probe for Recorder {
    fn begin(&mut self, topology: &Topology) {
        self.lock().begin(topology);
    }

    fn unit(&mut self, record: &UnitRecord<'_>) {
        self.lock().unit(&unit_of(record));
    }

    fn tlp_in_flit(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>) {
        let UnitContent::Flit { sequence, .. } = record.content else { return };
        let content = Content::Tlp(tlp_of(sequence, tlp));
        self.lock().tlp_in_flit(&Unit { content, ..unit_of(record) });
    }

    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        self.lock().transaction(record);
    }
}

fn tlp_of<'a>(sequence: u16, tlp: &TlpRecord<'a>) -> Tlp<'a> {
    let flow = u16::try_from(tlp.flow.index()).ok();
    Tlp { repr: tlp.repr, sequence, payload: tlp.payload, transaction: tlp.transaction, flow }
}

fn unit_of<'a>(record: &UnitRecord<'a>) -> Unit<'a> {
    let (content, replay, nullified) = match record.content {
        UnitContent::Tlp { sequence, replay, nullified, packet } => {
            (Content::Tlp(tlp_of(sequence, &packet)), replay, nullified)
        }
        UnitContent::Dllp(repr) => (Content::Dllp(*repr), false, false),
        UnitContent::Flit { sequence, replay, tlp_bytes } => {
            (Content::Flit(Flit { sequence, tlp_bytes }), replay, false)
        }
    };
    Unit {
        link: record.link.index() as u16,
        direction: record.direction,
        start: record.start,
        end: record.end,
        arrive: record.arrive,
        content,
        flags: Flags { bad: record.bad, replay, nullified },
    }
}

impl Files {
    fn begin(&mut self, topology: &Topology) {
        let port = |id: PortId| topology.ports[id.index()].name.clone();
        let ends = |link: &LinkInfo| Link { lower: port(link.ports[0]), upper: port(link.ports[1]) };
        let links: Vec<Link> = topology.links.iter().map(ends).collect();
        let flows: Vec<String> = topology.flows.iter().map(|flow| flow.name.clone()).collect();
        self.topology = topology.clone();
        let [capture, trace] = std::mem::take(&mut self.opened);
        let settings = self.targets.pcapng_settings;
        self.capture = capture.map(|file| (file.path().into(), pcapng::Writer::new(file, &links, settings)));
        let scale = self.targets.scale;
        self.trace =
            trace.map(|file| (file.path().into(), perfetto::Writer::new(file, &links, &flows, scale)));
    }

    fn unit(&mut self, unit: &Unit<'_>) {
        if let Some((_, capture)) = &mut self.capture {
            capture.unit(unit);
        }
        if let Some((_, trace)) = &mut self.trace {
            trace.unit(unit);
        }
    }

    fn tlp_in_flit(&mut self, unit: &Unit<'_>) {
        if let Some((_, capture)) = &mut self.capture {
            capture.unit(unit);
        }
        if let Some((_, trace)) = &mut self.trace {
            trace.tlp_in_flit(unit);
        }
    }

    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        let Self { topology, places, text, trace: Some((_, trace)), .. } = self else { return };
        text.clear();
        let operation = if record.read { "read" } else { "write" };
        let _ =
            write!(text, "{operation} {} B @ {:#x}{}", record.bytes, record.address, ending(record.ending));
        for interval in record.intervals {
            places.entry(interval.place).or_insert_with(|| topology.place_name(interval.place));
        }
        let intervals: Vec<Interval<'_>> = record
            .intervals
            .iter()
            .map(|interval| Interval {
                cause: interval.cause().name(),
                place: places.get(&interval.place).map_or("", String::as_str),
                behind: interval.behind().map(|flow| topology.flows[flow.index()].name.as_str()),
                duration: interval.duration,
            })
            .collect();
        trace.transaction(&Transaction {
            id: record.number,
            flow: record.flow.index() as u16,
            start: record.start,
            end: record.end,
            text,
            intervals: &intervals,
        });
    }
}

/// The addition to the text of a failed transaction.
const fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Done => "",
        Ending::Unsupported => ": unsupported request",
        Ending::Aborted => ": completer abort",
        Ending::Poisoned => ": poisoned data",
        Ending::TimedOut => ": completion timeout",
        Ending::Lost => ": lost",
        Ending::Malformed => ": malformed completion",
    }
}
