//! Loads: what devices and the host do.

use crate::choices::choices;
use crate::dd;
use crate::error::{Error, Problem, suggest};
use crate::tables;
use crate::topology::DeviceSpec;
use crate::transfer;
use crate::view::View;
use tlplab_device::{DdLoad, TransferLoad};
use tlplab_fabric::Writer;
use tlplab_fabric::config::HostConfig;
use tlplab_units::Time;

/// Where windows in host memory begin that no `address` places: above 4 GiB, so requests have 64-bit addresses.
const FIRST_WINDOW: u64 = 4 << 30;
/// Size of such a window where `window` is absent.
const WINDOW: u64 = 64 << 20;

/// A load as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSpec {
    /// The load's name.
    pub name: String,
    /// Who issues it: a device's name or `host`.
    pub device: String,
    /// Whose memory: `host`, or the name of the device whose BAR 0 is meant.
    pub target: String,
    /// When it begins.
    pub start: Time,
    /// Transactions in all; `None`: until the run stops (a replay: to its end).
    pub count: Option<u64>,
    /// What it does.
    pub work: Work,
}

impl LoadSpec {
    /// Its name, its card and its transfers, if those are what it does.
    pub(crate) fn transfer(&self) -> Option<(&str, &str, &TransferLoad)> {
        match &self.work {
            Work::Transfer(load) => Some((&self.name, &self.target, load)),
            _ => None,
        }
    }
}

/// What a load does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Transactions of one kind.
    Generate(Generate),
    /// The requests of a captured trace.
    Replay {
        /// The trace, joined with the folder of the file that names it.
        file: String,
        /// Whether requests come at the captured times, or as fast as the fabric takes them.
        timing: Timing,
        /// Transactions under way at once, with [`Timing::Fast`]; `None`: as many as there are tags.
        outstanding: Option<u32>,
        /// First byte and length of the window in host memory into which captured addresses are folded, a multiple of 4 KiB; `None`:
        /// they stay as they are.
        fold: Option<(u64, u64)>,
    },
    /// Blocks between a storage device and the host.
    Dd(DdLoad),
    /// Transfers between the host and a DMA card.
    Transfer(TransferLoad),
}

impl Work {
    /// Whether it ends without a count.
    pub fn ends_by_itself(&self) -> bool {
        matches!(self, Self::Replay { .. } | Self::Dd(_) | Self::Transfer(_))
    }
}

/// Transactions of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generate {
    /// What each transaction is.
    pub op: Op,
    /// Bytes of a transaction.
    pub size: u64,
    /// How fast they follow.
    pub pace: Pace,
    /// Transactions under way at most, at a rate too: what finds no room is issued as soon as there is some.
    pub outstanding: u32,
    /// How addresses follow.
    pub pattern: Pattern,
    /// First byte of the window: an address in host memory, or an offset in the BAR.
    pub base: u64,
    /// Bytes of the window.
    pub window: u64,
    /// From one address to the next is the size, rounded up to a multiple of this.
    pub align: u64,
    /// Added to every address.
    pub offset: u64,
    /// Who wrote the window of host memory before the run; `None`: nobody, no line of it is in the cache.
    pub warm: Option<Writer>,
    /// The window is in memory of the host's other node.
    pub remote: bool,
}

/// What a transaction of a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// DMA reads, or reads of a peer's BAR.
    Read,
    /// DMA writes, or writes to a peer's BAR.
    Write,
    /// One read for each write.
    Both,
    /// Reads by the processor.
    MmioRead,
    /// Writes by the processor.
    MmioWrite,
}

/// How fast transactions follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Closed loop: so many under way at once.
    Outstanding(u32),
    /// Open loop: payload bits offered per second.
    Rate(u64),
}

/// How addresses follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The next aligned address, and from the end of the window to its beginning.
    Sequential,
    /// Any aligned address, each as likely.
    Random,
    /// Always the same.
    Fixed,
}

/// When the requests of a trace are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// At their captured times.
    Captured,
    /// As soon as possible.
    Fast,
}

/// Reads `load`: sorted by name. `join` makes a path relative to the file in which a value stands.
pub(crate) fn read(
    root: &View<'_>,
    host: &HostConfig,
    devices: &[DeviceSpec],
    join: &dyn Fn(&View<'_>, &str) -> String,
) -> Result<Vec<LoadSpec>, Error> {
    let mut next_window = FIRST_WINDOW;
    let mut loads: Vec<LoadSpec> = Vec::new();
    for (name, own) in root.get("load").iter().flat_map(View::entries) {
        let node = own.filled(&tables::LOAD)?;
        let view = own.with(&node);
        let parties = parties(name, &view, devices)?;
        let work = match view.get("replay") {
            Some(replay) => {
                let file = join(&replay, replay.text());
                read_replay(&own, &view, &parties, file, host, &mut next_window)?
            }
            None if dd::is_dd(&view) => {
                Work::Dd(dd::read(&own, &view, parties.device, parties.target, devices)?)
            }
            None if transfer::is_transfer(&view) => {
                let load = transfer::read(&own, &view, parties.device, parties.target, devices)?;
                let others = loads.iter().filter_map(LoadSpec::transfer);
                transfer::one_each_way(&view, &load, parties.target, others)?;
                Work::Transfer(load)
            }
            None => Work::Generate(generate(&view, &parties, host, &mut next_window)?),
        };
        loads.push(LoadSpec {
            name: name.into(),
            device: parties.device.into(),
            target: parties.target.into(),
            start: view.instant("start").unwrap_or(Time::ZERO),
            // A dd counts blocks, and a card's driver calls: nobody sees their ends.
            count: view.integer("count").filter(|_| !matches!(work, Work::Dd(_) | Work::Transfer(_))),
            work,
        });
    }
    Ok(loads)
}

struct Parties<'a> {
    device: &'a str,
    target: &'a str,
    /// `None`: host memory; else the size of the BAR, if the model says it.
    bar: Option<Option<u64>>,
}

fn parties<'a>(name: &'a str, view: &View<'a>, devices: &'a [DeviceSpec]) -> Result<Parties<'a>, Error> {
    let names = || devices.iter().map(|d| d.name.as_str());
    let find = |wanted: &str| devices.iter().find(|d| d.name == wanted);
    let unknown = |wanted: &str| {
        let hint = suggest(wanted, names().chain(["host"]), "devices");
        Problem::new(format!("there is no device \"{wanted}\"")).hint(hint)
    };
    let said = view.get("device");
    let device = said.as_ref().map_or(name, View::text);
    if device != "host" {
        let spec = find(device).ok_or_else(|| match &said {
            Some(view) => view.problem(unknown(device)),
            None => {
                let Problem { message, hint } = unknown(device);
                let hint = hint.unwrap_or_default();
                let stop = if hint.ends_with('?') { " Otherwise" } else { ";" };
                view.key_error(Problem::new(message).hint(format!("{hint}{stop} add device = \"…\"")))
            }
        })?;
        if !spec.model.takes_loads() {
            let problem =
                Problem::new(format!("\"{device}\" is a {}, which takes no load", spec.model.name()));
            let at = said.as_ref().unwrap_or(view);
            return Err(at.key_error(problem.hint("a device with model = \"dma\" or \"nettlp-card\" does")));
        }
    }
    let target = match view.get("target") {
        Some(target) if target.text() == device => {
            return Err(target.error(format!("\"{device}\" cannot aim at itself")));
        }
        Some(target) if target.text() != "host" && find(target.text()).is_none() => {
            return Err(target.problem(unknown(target.text())));
        }
        Some(target) => target.text(),
        None if device == "host" => {
            let hint = format!("for example target = \"{}\"", names().next().unwrap_or("ssd"));
            return Err(view
                .key_error(Problem::new("target is missing: the device that the host accesses").hint(hint)));
        }
        None => "host",
    };
    let bar = find(target).map(|spec| spec.model.bar());
    Ok(Parties { device, target, bar })
}

/// Keys of `LOAD` that a trace takes the place of.
const NOT_WITH_REPLAY: [&str; 8] = ["op", "size", "rate", "pattern", "align", "offset", "cache", "node"];

fn read_replay(
    own: &View<'_>,
    view: &View<'_>,
    parties: &Parties<'_>,
    file: String,
    host: &HostConfig,
    next_window: &mut u64,
) -> Result<Work, Error> {
    for key in NOT_WITH_REPLAY {
        if let Some(extra) = own.get(key) {
            let problem = Problem::new(format!("{key} is told by the trace"));
            return Err(extra.key_error(problem.hint(format!("remove {key} or replay"))));
        }
    }
    let timing = view.choice("timing")?.unwrap_or(Timing::Captured);
    if let (Timing::Captured, Some(extra)) = (timing, own.get("outstanding")) {
        let problem = Problem::new("the captured times say what is outstanding");
        return Err(extra.key_error(problem.hint("add timing = \"fast\"")));
    }
    if parties.device == "host" {
        return Err(own.key_error(Problem::new("a trace has the requests of a device, not of the host")));
    }
    if let Some(target) = view.get("target").filter(|_| parties.bar.is_some()) {
        return Err(target.error("a trace goes to host memory"));
    }
    let fold = match (own.get("window"), own.get("address")) {
        (None, None) => None,
        (None, Some(address)) => {
            let problem = Problem::new("captured addresses are folded into a window, and there is none");
            return Err(address.key_error(problem.hint("add window = \"64MiB\"")));
        }
        (Some(at), _) => match view.size("window").unwrap_or_default() {
            window if window > 0 && window.is_multiple_of(4096) => {
                Some((base(view, parties, host, window, next_window)?, window))
            }
            window => {
                let problem = Problem::new(format!("a window of {window} B would break pages apart"));
                return Err(at.problem(problem.hint("it is a multiple of 4KiB")));
            }
        },
    };
    let outstanding = view.integer("outstanding").map(|n| n as u32);
    Ok(Work::Replay { file, timing, outstanding, fold })
}

fn generate(
    view: &View<'_>,
    parties: &Parties<'_>,
    host: &HostConfig,
    next_window: &mut u64,
) -> Result<Generate, Error> {
    if let Some(timing) = view.get("timing") {
        return Err(timing
            .key_error(Problem::new("timing belongs to replay").hint("remove it, or add replay = \"…\"")));
    }
    for (keys, whose, op) in
        [(&dd::OWN_KEYS[..], "dd", "dd-read"), (&transfer::OWN_KEYS, "transfers of a card", "to-card")]
    {
        if let Some((key, extra)) = keys.iter().find_map(|key| Some((key, view.get(key)?))) {
            let problem = Problem::new(format!("{key} belongs to {whose}"));
            return Err(extra.key_error(problem.hint(format!("remove it, or write op = \"{op}\""))));
        }
    }
    let op = op(view, parties)?;
    let size_view = view.require(&tables::LOAD, "size")?;
    let size = view.size("size").unwrap_or_default();
    if size == 0 {
        check_flush(view, &size_view, op)?;
    }
    let align = view.size("align").unwrap_or(1);
    if align == 0 {
        let at = view.get("align").unwrap_or_else(|| view.clone());
        return Err(at.problem(Problem::new("nothing is a multiple of 0 B").hint("\"1B\" does not round")));
    }
    let offset = view.size("offset").unwrap_or_default();
    let need = offset.saturating_add(size);
    let window = match (view.size("window"), parties.bar) {
        (Some(window), _) | (None, Some(Some(window))) => window,
        (None, Some(None)) => need,
        (None, None) => WINDOW,
    };
    if window < need {
        let at = view.get("window").unwrap_or_else(|| size_view.clone());
        let problem = Problem::new(format!("a window of {window} B cannot hold a transaction of {size} B"));
        let after = if offset > 0 { format!(" at offset {offset}") } else { String::new() };
        return Err(at.problem(problem.hint(format!("it takes at least {need} B{after}"))));
    }
    let base = base(view, parties, host, window, next_window)?;
    let pattern = view.choice("pattern")?.unwrap_or(Pattern::Sequential);
    let (pace, outstanding) = pace(view, op);
    let (warm, remote) = memory_state(view, parties, host)?;
    Ok(Generate { op, size, pace, outstanding, pattern, base, window, align, offset, warm, remote })
}

/// A transaction of no bytes is a zero-length read, which is over when the writes before it are in memory (PCIe 5.0 §2.2.5).
fn check_flush(view: &View<'_>, size: &View<'_>, op: Op) -> Result<(), Error> {
    if !matches!(op, Op::Read | Op::MmioRead) {
        let problem = Problem::new("a transaction of 0 B moves nothing");
        return Err(size.problem(problem.hint("only a read may have 0 B: it flushes the writes before it")));
    }
    match view.get("rate") {
        Some(rate) => {
            let problem = Problem::new("reads of 0 B have no rate in bits");
            Err(rate.key_error(problem.hint("write outstanding instead")))
        }
        None => Ok(()),
    }
}

/// State of the window in host memory before the run: its last writer, and whether it is on the other node.
fn memory_state(
    view: &View<'_>,
    parties: &Parties<'_>,
    host: &HostConfig,
) -> Result<(Option<Writer>, bool), Error> {
    let has = [("cache", host.cache.is_some()), ("node", host.numa.is_some())];
    for (key, has) in has {
        let Some(said) = view.get(key) else { continue };
        if parties.bar.is_some() {
            let problem = Problem::new(format!("{key} is a matter of host memory, not of a BAR"));
            return Err(said.key_error(problem.hint(format!("remove {key}, or aim at the host"))));
        }
        if !has {
            let (what, table) = if key == "cache" { ("cache", "cache") } else { ("other node", "numa") };
            let problem = Problem::new(format!("this host has no {what}"));
            return Err(
                said.key_error(problem.hint(format!("describe it in [host.{table}], or remove {key}")))
            );
        }
    }
    let remote = matches!(view.choice("node")?, Some(Node::Remote));
    Ok((view.choice("cache")?.flatten(), remote))
}

/// What `op` says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// Requests, one like the other.
    Generate(Op),
    /// dd on a storage device.
    Dd { write: bool },
    /// A transfer by the driver of a DMA card.
    Transfer { to_card: bool },
}

/// Where a window of host memory is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    /// On the node of the device.
    Local,
    /// On the other one.
    Remote,
}

choices! {
    Operation {
        "read" => Self::Generate(Op::Read),
        "write" => Self::Generate(Op::Write),
        "both" => Self::Generate(Op::Both),
        "mmio-read" => Self::Generate(Op::MmioRead),
        "mmio-write" => Self::Generate(Op::MmioWrite),
        "dd-read" => Self::Dd { write: false },
        "dd-write" => Self::Dd { write: true },
        "to-card" => Self::Transfer { to_card: true },
        "from-card" => Self::Transfer { to_card: false },
    }
    Pattern { "sequential" => Self::Sequential, "random" => Self::Random, "fixed" => Self::Fixed, }
    Timing { "captured" => Self::Captured, "fast" => Self::Fast, }
    Node { "local" => Self::Local, "remote" => Self::Remote, }
}

fn op(view: &View<'_>, parties: &Parties<'_>) -> Result<Op, Error> {
    let op_view = view.require(&tables::LOAD, "op")?;
    let op = match op_view.chosen()? {
        Operation::Generate(op) => op,
        Operation::Dd { .. } | Operation::Transfer { .. } => {
            return Err(op_view.error("this load has no addresses of its own"));
        }
    };
    let mmio = matches!(op, Op::MmioRead | Op::MmioWrite);
    let (device, text) = (parties.device, op_view.text());
    if mmio && device != "host" {
        let problem = Problem::new(format!("{text} is done by the host, not by \"{device}\""));
        let hint = format!("add device = \"host\" and target = \"{device}\"");
        return Err(op_view.problem(problem.hint(hint)));
    }
    if !mmio && device == "host" {
        let problem = Problem::new(format!("the host does no DMA, so \"{text}\" is not for it"));
        return Err(op_view.problem(problem.hint("\"mmio-read\" and \"mmio-write\" are")));
    }
    Ok(op)
}

/// How fast, and how many under way at most.
fn pace(view: &View<'_>, op: Op) -> (Pace, u32) {
    let by_op = if matches!(op, Op::MmioRead | Op::MmioWrite) { 1 } else { 32 };
    let outstanding = view.integer("outstanding").map_or(by_op, |n| n as u32);
    let pace = view.rate("rate").map_or(Pace::Outstanding(outstanding), Pace::Rate);
    (pace, outstanding)
}

fn base(
    view: &View<'_>,
    parties: &Parties<'_>,
    host: &HostConfig,
    window: u64,
    next_window: &mut u64,
) -> Result<u64, Error> {
    let said = view.address("address");
    let at = view.get("address").or_else(|| view.get("window")).unwrap_or_else(|| view.clone());
    let (base, end, where_) = match parties.bar {
        Some(bar) => (said.unwrap_or(0), bar.unwrap_or(u64::MAX), format!("BAR 0 of \"{}\"", parties.target)),
        None => (said.unwrap_or(*next_window), host.memory.size, "host memory".into()),
    };
    if said.is_none() && parties.bar.is_none() {
        // Windows begin at multiples of 1 MiB, so that no load depends on the alignment of another.
        *next_window = base.saturating_add(window).next_multiple_of(1 << 20);
    }
    match base.checked_add(window) {
        Some(last) if last <= end => Ok(base),
        _ => {
            let problem =
                Problem::new(format!("{window} B from {base:#x} on do not fit into {where_} ({end} B)"));
            Err(at.problem(problem.hint("choose a smaller window or another address")))
        }
    }
}
