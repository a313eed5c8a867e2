//! Loads: what devices and the host do.

use crate::choices::choices;
use crate::dd;
use crate::error::{Error, Problem, suggest};
use crate::tables;
use crate::topology::DeviceSpec;
use crate::transfer::{self, Fetched, Heard};
use crate::translation;
use crate::verdict::list;
use crate::view::View;
use tlplab_device::{DdLoad, TransferLoad};
use tlplab_fabric::Writer;
use tlplab_fabric::config::HostConfig;
use tlplab_units::{Duration, Time};

/// The first address of windows in host memory without an `address`: above 4 GiB, so requests have 64-bit addresses.
const FIRST_WINDOW: u64 = 4 << 30;
/// Size of such a window where `window` is absent.
const WINDOW: u64 = 64 << 20;

/// A load as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSpec {
    /// The load's name.
    pub name: String,
    /// The issuer: a device's name or `host`.
    pub device: String,
    /// The owner of the memory: `host`, or the name of the device whose BAR 0 is meant.
    pub target: String,
    /// Its start.
    pub start: Time,
    /// Transactions in all; `None`: until the run stops (a replay: to its end).
    pub count: Option<u64>,
    /// Its work.
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

/// The work of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Transactions of one kind.
    Generate(Generate),
    /// The requests of a captured trace.
    Replay {
        /// The trace, joined with the folder of the file that names it.
        file: String,
        /// The timing of requests: at the captured times, or as fast as the fabric takes them.
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
    /// True if it ends without a count.
    pub fn ends_by_itself(&self) -> bool {
        matches!(self, Self::Replay { .. } | Self::Dd(_) | Self::Transfer(_))
    }
}

/// Transactions of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generate {
    /// The operation of each transaction.
    pub op: Op,
    /// Bytes of a transaction.
    pub size: u64,
    /// The pace of transactions.
    pub pace: Pace,
    /// Transactions under way at most, at a rate too: what finds no room is issued as soon as there is some.
    pub outstanding: u32,
    /// The pattern of addresses.
    pub pattern: Pattern,
    /// First byte of the window: an address in host memory, or an offset in the BAR.
    pub base: u64,
    /// Bytes of the window.
    pub window: u64,
    /// From one address to the next is the size, rounded up to a multiple of this.
    pub align: u64,
    /// Added to every address.
    pub offset: u64,
    /// The writer of the window of host memory before the run; `None`: no line of it is in the cache.
    pub warm: Option<Writer>,
    /// The window is in memory of the host's other node.
    pub remote: bool,
}

/// The operation of a transaction of a load.
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

/// The pace of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Closed loop: so many under way at once.
    Outstanding(u32),
    /// Open loop: payload bits offered per second.
    Rate(u64),
}

/// The pattern of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The next aligned address, and from the end of the window to its beginning.
    Sequential,
    /// Any aligned address, each as likely.
    Random,
    /// Always the same.
    Fixed,
}

/// The times at which the requests of a trace are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// At their captured times.
    Captured,
    /// As soon as possible.
    Fast,
}

/// A load as its table says it.
pub(crate) struct Said {
    pub(crate) device: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) op: Option<Operation>,
    pub(crate) size: u64,
    pub(crate) outstanding: Option<u32>,
    pub(crate) rate: Option<u64>,
    pub(crate) count: Option<u64>,
    pub(crate) start: Time,
    pub(crate) pattern: Pattern,
    pub(crate) align: u64,
    pub(crate) offset: u64,
    pub(crate) window: Option<u64>,
    pub(crate) address: Option<u64>,
    pub(crate) warm: Option<Writer>,
    pub(crate) node: Node,
    pub(crate) replay: Option<String>,
    pub(crate) timing: Timing,
    /// The keys of dd.
    pub(crate) dd: DdLoad,
    /// The keys of transfers, and the four below.
    pub(crate) transfer: TransferLoad,
    pub(crate) descriptors: Fetched,
    pub(crate) entries: u32,
    pub(crate) store_interval: Duration,
    pub(crate) wait: Heard,
    pub(crate) interrupt_delay: Duration,
}

impl Said {
    fn blank() -> Self {
        Self {
            device: None,
            target: None,
            op: None,
            size: 0,
            outstanding: None,
            rate: None,
            count: None,
            start: Time::ZERO,
            pattern: Pattern::Sequential,
            align: 1,
            offset: 0,
            window: None,
            address: None,
            warm: None,
            node: Node::Local,
            replay: None,
            timing: Timing::Captured,
            dd: dd::BLANK,
            transfer: TransferLoad::new(0),
            descriptors: Fetched::FromRing,
            entries: transfer::ENTRIES,
            store_interval: Duration::ZERO,
            wait: Heard::ByInterrupt,
            interrupt_delay: Duration::ZERO,
        }
    }
    /// Its start, from the beginning of the run.
    pub(crate) fn delay(&self) -> Duration {
        self.start - Time::ZERO
    }
}

/// Reads `load`: sorted by name.
pub(crate) fn read(
    root: &View<'_>,
    host: &HostConfig,
    devices: &[DeviceSpec],
) -> Result<Vec<LoadSpec>, Error> {
    let mut next_window = FIRST_WINDOW;
    let mut loads: Vec<LoadSpec> = Vec::new();
    for (name, view) in root.get("load").iter().flat_map(View::entries) {
        let said = tables::LOAD.read_into(&view, Said::blank())?;
        let parties = parties(name, &view, &said, devices)?;
        let work = match (&said.replay, said.op) {
            (Some(file), _) => replay(&view, &said, &parties, file, host, &mut next_window)?,
            (None, Some(Operation::Dd { write })) => Work::Dd(dd::read(&view, &said, &parties, write)?),
            (None, Some(Operation::Transfer { to_card })) => {
                let load = transfer::read(&view, &said, &parties, to_card)?;
                let others = loads.iter().filter_map(LoadSpec::transfer);
                transfer::one_each_way(&view, &load, parties.target, others)?;
                Work::Transfer(load)
            }
            (None, Some(Operation::Generate(op))) => {
                Work::Generate(generate(&view, &said, Some(op), &parties, host, &mut next_window)?)
            }
            (None, None) => Work::Generate(generate(&view, &said, None, &parties, host, &mut next_window)?),
        };
        loads.push(LoadSpec {
            name: name.into(),
            device: parties.device.into(),
            target: parties.target.into(),
            start: said.start,
            // A dd counts blocks, and a card's driver calls: nobody sees their ends.
            count: said.count.filter(|_| !matches!(work, Work::Dd(_) | Work::Transfer(_))),
            work,
        });
    }
    Ok(loads)
}

/// Between whom a load is.
pub(crate) struct Parties<'a> {
    pub(crate) device: &'a str,
    pub(crate) target: &'a str,
    /// The target, if it is a device.
    pub(crate) spec: Option<&'a DeviceSpec>,
}

impl Parties<'_> {
    /// `None`: host memory; else the size of the BAR, if the model says it.
    fn bar(&self) -> Option<Option<u64>> {
        self.spec.map(|spec| spec.model.bar())
    }
}

fn parties<'a>(
    name: &'a str,
    view: &View<'_>,
    said: &'a Said,
    devices: &'a [DeviceSpec],
) -> Result<Parties<'a>, Error> {
    let names = || devices.iter().map(|d| d.name.as_str());
    let find = |wanted: &str| devices.iter().find(|d| d.name == wanted);
    let unknown = |wanted: &str| {
        let hint = suggest(wanted, names().chain(["host"]), "devices");
        Problem::new(format!("there is no device \"{wanted}\"")).hint(hint)
    };
    let named = view.get("device");
    let device = said.device.as_deref().unwrap_or(name);
    if device != "host" {
        let spec = find(device).ok_or_else(|| match &named {
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
            let at = named.as_ref().unwrap_or(view);
            return Err(at.key_error(problem.hint("name a device with model = \"dma\" or \"nettlp-card\"")));
        }
    }
    let aimed = || view.at("target");
    let target = match said.target.as_deref() {
        Some(target) if target == device => {
            return Err(aimed().error(format!("\"{device}\" cannot aim at itself")));
        }
        Some(target) if target != "host" && find(target).is_none() => {
            return Err(aimed().problem(unknown(target)));
        }
        Some(target) => target,
        None if device == "host" => {
            let hint = format!("for example target = \"{}\"", names().next().unwrap_or("ssd"));
            return Err(view
                .key_error(Problem::new("target is missing: the device that the host accesses").hint(hint)));
        }
        None => "host",
    };
    Ok(Parties { device, target, spec: find(target) })
}

/// Keys of `LOAD` that a trace takes the place of.
pub(crate) const NOT_WITH_REPLAY: [&str; 8] =
    ["op", "size", "rate", "pattern", "align", "offset", "cache", "node"];

fn replay(
    view: &View<'_>,
    said: &Said,
    parties: &Parties<'_>,
    file: &str,
    host: &HostConfig,
    next_window: &mut u64,
) -> Result<Work, Error> {
    for key in NOT_WITH_REPLAY {
        if let Some(extra) = view.get(key) {
            let problem = Problem::new(format!("the trace determines {key}"));
            return Err(extra.key_error(problem.hint(format!("remove {key} or replay"))));
        }
    }
    let Said { timing, outstanding, .. } = *said;
    if let (Timing::Captured, Some(extra)) = (timing, view.get("outstanding")) {
        let problem = Problem::new("the captured times determine outstanding");
        return Err(extra.key_error(problem.hint("add timing = \"fast\"")));
    }
    if parties.device == "host" {
        return Err(view.key_error(Problem::new("a trace has the requests of a device, not of the host")));
    }
    if let Some(target) = view.get("target").filter(|_| parties.spec.is_some()) {
        return Err(target.error("a trace always goes to host memory; remove target"));
    }
    let fold = match (said.window, view.get("address")) {
        (None, None) => None,
        (None, Some(address)) => {
            let problem = Problem::new("captured addresses are folded into a window, but none is set");
            return Err(address.key_error(problem.hint("add window = \"64MiB\"")));
        }
        (Some(window), _) if window > 0 && window.is_multiple_of(4096) => {
            Some((base(view, said, parties, host, window, next_window)?, window))
        }
        (Some(window), _) => {
            let problem = Problem::new(format!("a window of {window} B would split pages"));
            let at = view.at("window");
            return Err(at.problem(problem.hint("use a multiple of 4KiB")));
        }
    };
    Ok(Work::Replay { file: file.to_owned(), timing, outstanding, fold })
}

fn generate(
    view: &View<'_>,
    said: &Said,
    op: Option<Op>,
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
    let op = check_op(view, op, parties)?;
    let size_view = view.require(&tables::LOAD, "size")?;
    let Said { size, pattern, align, offset, .. } = *said;
    if size == 0 {
        check_flush(view, &size_view, op)?;
    }
    if align == 0 {
        let at = view.at("align");
        return Err(at.problem(
            Problem::new("sizes cannot be rounded to multiples of 0 B")
                .hint("\"1B\" leaves them as they are"),
        ));
    }
    let need = offset.saturating_add(size);
    let window = match (said.window, parties.bar()) {
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
    let base = base(view, said, parties, host, window, next_window)?;
    let (pace, outstanding) = pace(said, op);
    check_memory_state(view, parties, host)?;
    let (warm, remote) = (said.warm, matches!(said.node, Node::Remote));
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

/// Only a window of host memory has a state before the run, and only in a host that knows of it.
fn check_memory_state(view: &View<'_>, parties: &Parties<'_>, host: &HostConfig) -> Result<(), Error> {
    let has = [("cache", host.cache.is_some()), ("node", host.numa.is_some())];
    for (key, has) in has {
        let Some(said) = view.get(key) else { continue };
        if parties.spec.is_some() {
            let problem = Problem::new(format!("{key} applies to host memory, not to a BAR"));
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
    Ok(())
}

/// The values of `op`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// Requests, one like the other.
    Generate(Op),
    /// dd on a storage device.
    Dd { write: bool },
    /// A transfer by the driver of a DMA card.
    Transfer { to_card: bool },
}

/// The node of a window of host memory.
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

fn check_op(view: &View<'_>, op: Option<Op>, parties: &Parties<'_>) -> Result<Op, Error> {
    let (Some(op), Some(op_view)) = (op, view.get("op")) else {
        return Err(view.missing(&tables::LOAD, "op"));
    };
    let mmio = matches!(op, Op::MmioRead | Op::MmioWrite);
    let (device, text) = (parties.device, op_view.text());
    if mmio && device != "host" {
        let problem = Problem::new(format!("{text} is done by the host, not by \"{device}\""));
        let hint = format!("add device = \"host\" and target = \"{device}\"");
        return Err(op_view.problem(problem.hint(hint)));
    }
    if !mmio && device == "host" {
        let problem = Problem::new(format!("the host does no DMA, so \"{text}\" is not available"));
        return Err(op_view.problem(problem.hint("use \"mmio-read\" or \"mmio-write\"")));
    }
    Ok(op)
}

/// The pace, and the largest number under way.
fn pace(said: &Said, op: Op) -> (Pace, u32) {
    let by_op = if matches!(op, Op::MmioRead | Op::MmioWrite) { 1 } else { 32 };
    let outstanding = said.outstanding.unwrap_or(by_op);
    let pace = said.rate.map_or(Pace::Outstanding(outstanding), Pace::Rate);
    (pace, outstanding)
}

fn base(
    view: &View<'_>,
    said: &Said,
    parties: &Parties<'_>,
    host: &HostConfig,
    window: u64,
    next_window: &mut u64,
) -> Result<u64, Error> {
    let said = said.address;
    if parties.spec.is_none() && translation::of_device(&host.maps, parties.device).next().is_some() {
        return mapped_base(view, said, parties.device, host, window, next_window);
    }
    let at = view.get("address").unwrap_or_else(|| view.at("window"));
    let (base, end, where_) = match parties.bar() {
        Some(bar) => (said.unwrap_or(0), bar.unwrap_or(u64::MAX), format!("BAR 0 of \"{}\"", parties.target)),
        None => (said.unwrap_or(*next_window), host.memory.size, "host memory".into()),
    };
    if said.is_none() && parties.spec.is_none() {
        // Windows begin at multiples of 1 MiB, so that no load depends on the alignment of another.
        *next_window = base.saturating_add(window).next_multiple_of(1 << 20);
    }
    match base.checked_add(window) {
        Some(last) if last <= end => Ok(base),
        _ => {
            let problem =
                Problem::new(format!("{window} B from {base:#x} onwards do not fit into {where_} ({end} B)"));
            Err(at.problem(problem.hint("choose a smaller window or another address")))
        }
    }
}

/// The first address of a window of a device whose addresses are translated: all of the window is mapped, at some time.
fn mapped_base(
    view: &View<'_>,
    said: Option<u64>,
    device: &str,
    host: &HostConfig,
    window: u64,
    next_window: &mut u64,
) -> Result<u64, Error> {
    let base = said.unwrap_or(*next_window);
    if said.is_none() {
        *next_window = base.saturating_add(window).next_multiple_of(1 << 20);
    }
    let Some(at) = translation::unmapped(&host.maps, device, base, window) else { return Ok(base) };
    let ranges: Vec<String> = translation::of_device(&host.maps, device)
        .map(|map| format!("{:#x} to {:#x}", map.from, map.from + map.bytes - 1))
        .collect();
    let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
    let problem = Problem::new(format!(
        "of {window} B from {base:#x} onwards, {at:#x} is not mapped for \"{device}\"; mapped: {}",
        list(&ranges)
    ));
    let hint =
        "set address and window within the mappings; a mapping that ends (until) shows how the IOMMU refuses";
    let key = if at == base { "address" } else { "window" };
    Err(view.at(key).problem(problem.hint(hint)))
}
