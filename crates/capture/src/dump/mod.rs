//! `tlplab dump`: frames as lines, from a file or as they pass an interface.
//!
//! [`Dump`] reads frame after frame, lets those through that its [`Filter`] matches, writes each as a line of text or of JSON, and
//! copies it to a file if asked.

mod filter;
mod json;
mod line;
mod live;
mod loading;
mod stamp;

pub use filter::{Filter, FilterError, KEYS, WORDS};
pub use loading::Loading;
pub use stamp::TimeStyle;

use super::container::{Item, Reader};
use super::decode::{Decoded, What};
use live::Live;
use stamp::Stamps;
use std::io::Read;
use std::path::{Path, PathBuf};
use tlplab_trace::Error;
use tlplab_trace::output::Output;
use tlplab_trace::pcapng::{FrameWriter, RawFrame};

/// The frames that are shown, and their form.
#[derive(Clone, Debug)]
pub struct Options {
    /// The filter of frames.
    pub filter: Filter,
    /// Lines of JSON rather than text.
    pub json: bool,
    /// The form of times in text.
    pub time: TimeStyle,
    /// Sequence number, time stamp, 802.1Q number and the payload's beginning, too; in JSON, all of the payload.
    pub verbose: bool,
    /// Ends after so many lines.
    pub limit: Option<u64>,
    /// Copies the frames shown to this file (pcapng).
    pub copy: Option<PathBuf>,
    /// No lines at all.
    pub quiet: bool,
}

/// The number of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames read.
    pub frames: u64,
    /// Frames shown.
    pub shown: u64,
    /// Malformed frames, shown or not.
    pub malformed: u64,
    /// Frames without NetTLP; never shown.
    pub others: u64,
    /// Frames that passed an interface and were not read soon enough.
    pub dropped: u64,
}

/// Bytes of lines after which a step ends.
const STEP: usize = 64 << 10;

/// The time that a step waits for frames of an interface.
const WAIT_MS: u16 = 100;

/// A capture on its way to lines.
pub struct Dump {
    path: PathBuf,
    source: Source,
    printer: Printer,
}

/// The source of frames.
enum Source {
    File(Reader<Box<dyn Read + Send>>),
    Interface(Live),
}

impl Dump {
    /// Reads the capture at `source`, or hears the interface of that name if there is no such file; `-` is standard input.
    ///
    /// # Errors
    /// There is neither, it cannot be read, it is no pcap or pcapng, or the copy cannot be written.
    pub fn open(source: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = source.as_ref();
        if path == Path::new("-") || path.exists() {
            return Self::file(path, options);
        }
        let interfaces = live::interfaces();
        let Some((name, link)) = path.to_str().and_then(|name| interfaces.get_key_value(name)) else {
            let names: Vec<&str> = interfaces.keys().map(String::as_str).collect();
            let wanted = format!("expected a file or one of the interfaces {}", names.join(", "));
            let problem = "no such file or interface";
            return Err(Error::content(String::new(), problem, wanted).in_file(path));
        };
        let source = Source::Interface(Live::open(name, link)?);
        Ok(Self { path: path.into(), source, printer: Printer::new(options)? })
    }

    /// Reads the capture at `path`; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be read, is no pcap or pcapng, or the copy cannot be written.
    pub fn file(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::reading(super::open(path)?, called(path), options)
    }

    /// Reads a capture from `input`, which errors call `name`.
    ///
    /// # Errors
    /// As [`Dump::file`].
    pub fn reading(
        input: impl Read + Send + 'static,
        name: impl AsRef<Path>,
        options: Options,
    ) -> Result<Self, Error> {
        let path = name.as_ref();
        let source = Source::File(reader(Box::new(input) as Box<dyn Read + Send>, path)?);
        Ok(Self { path: path.into(), source, printer: Printer::new(options)? })
    }

    /// True if it goes on until it is told to end.
    pub fn is_live(&self) -> bool {
        matches!(self.source, Source::Interface(_))
    }

    /// Writes some more lines; false at the end. With an interface it waits a moment for frames, and comes back without lines if there
    /// are none.
    ///
    /// # Errors
    /// The source cannot be read on.
    pub fn step(&mut self, lines: &mut String) -> Result<bool, Error> {
        let Self { path, source, printer } = self;
        let failed = |error| Error::io(path, "listen on this interface", error);
        if let Source::Interface(live) = source {
            live.wait(WAIT_MS).map_err(failed)?;
        }
        while lines.len() < STEP && !printer.is_done() {
            match source {
                Source::File(reader) => match reader.next().map_err(|stop| stop.in_file(path))? {
                    Some(item) => printer.item(&item, lines),
                    None => return Ok(false),
                },
                Source::Interface(live) => match live.next().map_err(failed)? {
                    Some(item) => printer.item(&item, lines),
                    None => {
                        printer.counts.dropped += live.dropped();
                        break;
                    }
                },
            }
        }
        Ok(!printer.is_done())
    }

    /// The number of frames so far.
    pub fn counts(&self) -> Counts {
        self.printer.counts
    }

    /// Ends the copy.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(self) -> Result<Counts, Error> {
        self.printer.finish()
    }
}

/// The name of the capture at `path` in errors.
fn called(path: &Path) -> &Path {
    if path == Path::new("-") { Path::new("standard input") } else { path }
}

/// Begins to read the capture at `path`.
fn reader<R: Read>(input: R, path: &Path) -> Result<Reader<R>, Error> {
    let reader = Reader::new(input).map_err(|stop| stop.in_file(path))?;
    reader.map_err(|_| {
        Error::content(String::new(), "it is not a capture", "expected pcap or pcapng").in_file(path)
    })
}

/// From frames to lines.
struct Printer {
    options: Options,
    stamps: Stamps,
    json: json::Lines,
    copy: Option<FrameWriter<Output>>,
    counts: Counts,
}

impl Printer {
    fn new(options: Options) -> Result<Self, Error> {
        let copy = options.copy.as_ref().map(Output::create).transpose()?.map(FrameWriter::new);
        let stamps = Stamps::new(options.time);
        Ok(Self { options, stamps, json: json::Lines::default(), copy, counts: Counts::default() })
    }

    fn is_done(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.counts.shown >= limit)
    }

    fn item(&mut self, item: &Item<'_>, lines: &mut String) {
        let decoded = item.decode();
        self.counts.frames += 1;
        self.counts.malformed += u64::from(decoded.content.is_err());
        if matches!(decoded.content, Ok(What::Other)) {
            self.counts.others += 1;
            return;
        }
        let answers = if self.options.json { self.json.notice(&decoded) } else { None };
        if !self.options.filter.matches(&decoded) {
            return;
        }
        self.counts.shown += 1;
        self.line(&decoded, answers, lines);
        if let (Some(copy), Item::Frame(frame)) = (&mut self.copy, item) {
            copy.frame(&RawFrame {
                link_type: frame.link_type as u16,
                interface: frame.interface,
                fs: frame.fs,
                digits: frame.digits,
                data: frame.data,
                length: frame.length,
                comment: frame.comment,
            });
        }
    }

    fn line(&mut self, decoded: &Decoded<'_>, answers: Option<(u64, i128)>, lines: &mut String) {
        if self.options.quiet {
            return;
        }
        if self.options.json {
            self.json.write(lines, decoded, answers, self.options.verbose);
        } else {
            self.stamps.write(lines, decoded.fs, decoded.digits);
            line::write(lines, decoded, self.options.verbose);
        }
        lines.push('\n');
    }

    fn finish(self) -> Result<Counts, Error> {
        if let Some(copy) = self.copy {
            let path = self.options.copy.unwrap_or_default();
            copy.finish().map_err(|error| Error::io(&path, "write", error))?.commit()?;
        }
        Ok(self.counts)
    }
}
