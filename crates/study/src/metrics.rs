//! The figures of a point that have names, and what each name means.
//!
//! A metric of the whole run is one word; one of a flow, link, network or program has its name before it: `throughput`,
//! `nic.throughput`, `sw0.up.utilisation`. [`CATALOGUE`] is the one place that says which there are: what documents become
//! ([`of_document`]), what expressions may name ([`find`]) and the table of the documentation ([`reference`]) come from it.

use crate::expression::NoName;
use crate::figures::Metrics;
use crate::unit::Unit;
use tlplab_experiment::result::{
    CauseName, Direction, Document, Flow, Frames, Latency, Link, Network, NetworkDirection,
};

/// The owner of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole run.
    Run,
    /// Each flow.
    Flow,
    /// Each link.
    Link,
    /// Each direction of each link: `up` and `down`.
    Direction,
    /// The network behind each card.
    Network,
    /// Each Ethernet controller.
    Nic,
    /// Each program that measures itself.
    Program,
    /// A closed form.
    Model,
    /// A benchmark.
    Bench,
}

/// The better of two points by a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// That with more of it.
    More,
    /// That with less of it.
    Less,
    /// Nobody can say.
    Unknown,
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its owner.
    pub scope: Scope,
    /// Its name, without that of what has it. With a `*` at its end, the rest is free.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The better direction.
    pub better: Better,
    /// Its meaning.
    pub doc: &'static str,
}

impl Metric {
    /// Its name, with a word in capitals for that of what has it.
    pub fn full_name(&self) -> String {
        match self.scope {
            Run | Model | Bench => self.name.to_owned(),
            OfFlow => format!("FLOW.{}", self.name.replace('*', "CAUSE")),
            OfLink => format!("LINK.{}", self.name),
            Way => format!("LINK.up.{}", self.name),
            OfNetwork => format!("CARD.{}", self.name),
            Nic => format!("NIC.{}", self.name),
            Program => format!("PROGRAM.{}", self.name),
        }
    }
}

const fn metric(scope: Scope, name: &'static str, unit: Unit, better: Better, doc: &'static str) -> Metric {
    Metric { scope, name, unit, better, doc }
}

use Better::{Less, More, Unknown};
use Scope::{
    Bench, Direction as Way, Flow as OfFlow, Link as OfLink, Model, Network as OfNetwork, Nic, Program, Run,
};

/// Every metric.
pub const CATALOGUE: &[Metric] = &[
    metric(Run, "throughput", Unit::RATE, More, "payload throughput of all flows together"),
    metric(Run, "rate", Unit::FREQUENCY, More, "successful transactions per second, all flows together"),
    metric(Run, "transactions", Unit::NONE, More, "successful transactions, all flows together"),
    metric(Run, "bytes", Unit::SIZE, More, "delivered payload, all flows together"),
    metric(Run, "errors", Unit::NONE, Less, "failed transactions, all flows together"),
    metric(Run, "latency.min", Unit::TIME, Less, "the smallest of any flow"),
    metric(Run, "latency.mean", Unit::TIME, Less, "mean over all successful transactions"),
    metric(
        Run,
        "latency.p50",
        Unit::TIME,
        Less,
        "the largest of any flow; likewise `p90`, `p99`, `p999` and `max`",
    ),
    metric(Run, "latency.p90", Unit::TIME, Less, ""),
    metric(Run, "latency.p99", Unit::TIME, Less, ""),
    metric(Run, "latency.p999", Unit::TIME, Less, ""),
    metric(Run, "latency.max", Unit::TIME, Less, ""),
    metric(Run, "lanes", Unit::NONE, Less, "lanes of all links together"),
    metric(Run, "span", Unit::TIME, Unknown, "simulated time over which the figures are counted"),
    metric(
        Run,
        "host.cache.hit_rate",
        Unit::NONE,
        More,
        "share of the lines requested by devices that hit in the last-level cache",
    ),
    metric(Run, "host.iommu.hit_rate", Unit::NONE, More, "share of the translations that hit in the IO-TLB"),
    metric(Run, "host.iommu.walks", Unit::NONE, Less, "page walks"),
    metric(
        Run,
        "host.iommu.busy",
        Unit::NONE,
        Less,
        "page walks as a share of the most that the walkers can do",
    ),
    metric(OfFlow, "throughput", Unit::RATE, More, "delivered payload per second"),
    metric(OfFlow, "rate", Unit::FREQUENCY, More, "successful transactions per second"),
    metric(OfFlow, "transactions", Unit::NONE, More, "successful transactions"),
    metric(OfFlow, "bytes", Unit::SIZE, More, "delivered payload"),
    metric(
        OfFlow,
        "latency.min",
        Unit::TIME,
        Less,
        "from a transaction's start to its last byte; likewise `mean`, `p50`, `p90`, `p99`, `p999` and `max`",
    ),
    metric(OfFlow, "latency.mean", Unit::TIME, Less, ""),
    metric(OfFlow, "latency.p50", Unit::TIME, Less, ""),
    metric(OfFlow, "latency.p90", Unit::TIME, Less, ""),
    metric(OfFlow, "latency.p99", Unit::TIME, Less, ""),
    metric(OfFlow, "latency.p999", Unit::TIME, Less, ""),
    metric(OfFlow, "latency.max", Unit::TIME, Less, ""),
    metric(
        OfFlow,
        "errors",
        Unit::NONE,
        Less,
        "failed transactions; by kind: `errors.ur`, `ca`, `timeout`, `poisoned`, `lost`, `malformed`",
    ),
    metric(OfFlow, "errors.ur", Unit::NONE, Less, ""),
    metric(OfFlow, "errors.ca", Unit::NONE, Less, ""),
    metric(OfFlow, "errors.timeout", Unit::NONE, Less, ""),
    metric(OfFlow, "errors.poisoned", Unit::NONE, Less, ""),
    metric(OfFlow, "errors.lost", Unit::NONE, Less, ""),
    metric(OfFlow, "errors.malformed", Unit::NONE, Less, ""),
    metric(
        OfFlow,
        "share.*",
        Unit::NONE,
        Unknown,
        "share of the latency due to a cause, such as `share.tag_wait` or `share.queueing`",
    ),
    metric(OfLink, "lanes", Unit::NONE, Less, "width of the link"),
    metric(OfLink, "generation", Unit::NONE, Less, "1 to 7"),
    metric(OfLink, "mps", Unit::SIZE, Unknown, "Max_Payload_Size in force"),
    metric(OfLink, "utilisation", Unit::NONE, Unknown, "utilisation of the busier direction"),
    metric(Way, "utilisation", Unit::NONE, Unknown, "share of the time in which the direction transmits"),
    metric(Way, "payload", Unit::NONE, More, "share of the time spent on payload"),
    metric(Way, "overhead", Unit::NONE, Less, "share of the time spent on headers, framing and CRCs"),
    metric(Way, "dllp", Unit::NONE, Less, "share of the time spent on DLLPs"),
    metric(Way, "ordered_sets", Unit::NONE, Less, "share of the time spent on ordered sets"),
    metric(Way, "replay", Unit::NONE, Less, "part of the time for TLPs sent again"),
    metric(Way, "tlps", Unit::NONE, Unknown, "TLPs, without copies"),
    metric(Way, "replayed", Unit::NONE, Less, "TLPs, or flits, sent again"),
    metric(
        Way,
        "stall.credits",
        Unit::NONE,
        Less,
        "share of the time in which a TLP waits for credits; likewise `stall.tags` and `stall.replay_buffer`",
    ),
    metric(Way, "stall.tags", Unit::NONE, Less, ""),
    metric(Way, "stall.replay_buffer", Unit::NONE, Less, ""),
    metric(
        OfNetwork,
        "to_software.throughput",
        Unit::RATE,
        More,
        "payload of TLPs on the Ethernet link; likewise `to_card`",
    ),
    metric(OfNetwork, "to_software.busy", Unit::NONE, Unknown, "share of the time in which the wire is busy"),
    metric(OfNetwork, "to_software.dropped", Unit::NONE, Less, "datagrams lost because the buffer was full"),
    metric(OfNetwork, "to_card.throughput", Unit::RATE, More, ""),
    metric(OfNetwork, "to_card.busy", Unit::NONE, Unknown, ""),
    metric(OfNetwork, "to_card.dropped", Unit::NONE, Less, ""),
    metric(Nic, "frames.sent", Unit::NONE, More, "frames sent to the Ethernet"),
    metric(Nic, "frames.received", Unit::NONE, More, "frames received from the Ethernet"),
    metric(
        Nic,
        "frames.missed",
        Unit::NONE,
        Less,
        "frames lost because the packet buffer was full or no receive buffer was posted",
    ),
    metric(Nic, "frames.too_long", Unit::NONE, Less, "frames discarded as longer than the receiver takes"),
    metric(Program, "measured.throughput", Unit::RATE, More, "throughput as measured by the program"),
    metric(Program, "calls.mean", Unit::TIME, Less, "duration of its calls; likewise `min` and `max`"),
    metric(Program, "calls.min", Unit::TIME, Less, ""),
    metric(Program, "calls.max", Unit::TIME, Less, ""),
    metric(
        Model,
        "throughput",
        Unit::RATE,
        More,
        "payload; for `rdwr` of each direction, for a NIC of its packets without check sequence",
    ),
    metric(Model, "rate", Unit::FREQUENCY, More, "transfers, or packets, by the second"),
    metric(Model, "lanes", Unit::NONE, Less, "lanes of the link"),
    metric(
        Model,
        "capacity",
        Unit::RATE,
        More,
        "rate available to TLPs in each direction while both are full (`bw`)",
    ),
    metric(Model, "line_rate", Unit::RATE, More, "of the link each way, after line coding (`bw`)"),
    metric(
        Model,
        "up.utilisation",
        Unit::NONE,
        Unknown,
        "share of the rate available to TLPs towards the host that is used; likewise `down` (`bw`)",
    ),
    metric(Model, "down.utilisation", Unit::NONE, Unknown, ""),
    metric(
        Model,
        "up.cost",
        Unit::SIZE,
        Less,
        "bytes on the link towards the host per transfer or packet; likewise `down` (`bw`, `nic`)",
    ),
    metric(Model, "down.cost", Unit::SIZE, Less, ""),
    metric(
        Model,
        "ethernet.throughput",
        Unit::RATE,
        More,
        "throughput of these packets at line rate (`nic`)",
    ),
    metric(Model, "ethernet.rate", Unit::FREQUENCY, More, "packets per second at line rate (`nic`)"),
    metric(Model, "link.throughput", Unit::RATE, More, "payload throughput of the link (`lat`)"),
    metric(
        Model,
        "tags.needed",
        Unit::NONE,
        Less,
        "average number outstanding at the wanted rate; likewise `nonposted_headers`, `posted_headers`, \
         `posted_data` (of 16 B), `transfers`, and `replay` in bytes (`lat`)",
    ),
    metric(Model, "tags.held", Unit::TIME, Less, "time for which each is held; likewise the others (`lat`)"),
    metric(
        Model,
        "tags.allowed",
        Unit::RATE,
        More,
        "payload throughput with the available number, if that is given; likewise the others (`lat`)",
    ),
    metric(Model, "nonposted_headers.needed", Unit::NONE, Less, ""),
    metric(Model, "nonposted_headers.held", Unit::TIME, Less, ""),
    metric(Model, "nonposted_headers.allowed", Unit::RATE, More, ""),
    metric(Model, "posted_headers.needed", Unit::NONE, Less, ""),
    metric(Model, "posted_headers.held", Unit::TIME, Less, ""),
    metric(Model, "posted_headers.allowed", Unit::RATE, More, ""),
    metric(Model, "posted_data.needed", Unit::NONE, Less, ""),
    metric(Model, "posted_data.held", Unit::TIME, Less, ""),
    metric(Model, "posted_data.allowed", Unit::RATE, More, ""),
    metric(Model, "transfers.needed", Unit::NONE, Less, ""),
    metric(Model, "transfers.held", Unit::TIME, Less, ""),
    metric(Model, "transfers.allowed", Unit::RATE, More, ""),
    metric(Model, "replay.needed", Unit::SIZE, Less, ""),
    metric(Model, "replay.held", Unit::TIME, Less, ""),
    metric(Model, "replay.allowed", Unit::RATE, More, ""),
    metric(Bench, "throughput", Unit::RATE, More, "payload in one direction, of a bandwidth benchmark"),
    metric(
        Bench,
        "rate",
        Unit::FREQUENCY,
        More,
        "transfers per second in one direction, of a bandwidth benchmark",
    ),
    metric(
        Bench,
        "latency.mean",
        Unit::TIME,
        Less,
        "of a latency benchmark, by the device's clock; likewise `min`, `p50`, `p90`, `p95`, `p99`, `p999` and `max`",
    ),
    metric(Bench, "latency.p95", Unit::TIME, Less, ""),
    metric(Bench, "transactions", Unit::NONE, More, "measured operations in one direction"),
    metric(Bench, "span", Unit::TIME, Unknown, "simulated time of the measured operations"),
    metric(Bench, "lanes", Unit::NONE, Less, "lanes of the link"),
];

/// The metric that a name means.
///
/// # Errors
/// There is none: a message, and what may be meant.
pub fn find(name: &str) -> Result<Metric, NoName> {
    let fits = |one: &&Metric| match one.scope {
        Run | Model | Bench => one.name == name,
        Way => ["up.", "down."].iter().any(|way| belongs(name, &format!("{way}{}", one.name))),
        _ => belongs(name, one.name),
    };
    // The longest name that fits: `nic.errors.ur` is no metric `ur` of a flow `nic.errors`.
    // Of several of one name the first: they have one unit.
    CATALOGUE.iter().rev().filter(fits).max_by_key(|one| one.name.len()).copied().ok_or_else(|| {
        let meant = alike(name);
        let hint = match nearest(name, meant.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => "`tlplab list metrics` lists them".into(),
        };
        (format!("unknown metric {name}"), Some(hint))
    })
}

/// Every metric of the run, and every metric of what a name may be of: of `nic.thruput`, those of `nic`.
fn alike(name: &str) -> Vec<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let of = |one: &Metric| {
        if matches!(one.scope, Run | Model | Bench) {
            return Some(one.name.to_owned());
        }
        let words = one.name.split('.').count() + usize::from(one.scope == Way);
        let owner = parts.len().checked_sub(words).filter(|owner| *owner > 0)?;
        let way = nearest(parts[owner], ["up", "down"]).unwrap_or("up");
        let way = if one.scope == Way { format!("{way}.") } else { String::new() };
        Some(format!("{}.{way}{}", parts[..owner].join("."), one.name)).filter(|_| !parts[0].is_empty())
    };
    CATALOGUE.iter().filter_map(of).collect()
}

/// True if a name is that of something and of this metric of it.
fn belongs(name: &str, metric: &str) -> bool {
    if let Some(stem) = metric.strip_suffix('*') {
        return name
            .split_once(&format!(".{stem}"))
            .is_some_and(|(owner, rest)| !owner.is_empty() && !rest.is_empty());
    }
    name.strip_suffix(metric).and_then(|owner| owner.strip_suffix('.')).is_some_and(|owner| !owner.is_empty())
}

/// The word most like `word`, unless nothing is much like it.
pub(crate) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |other: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &other.to_lowercase());
    let close = |(distance, other): &(usize, &str)| *distance <= 1 + other.len().max(word.len()) / 3;
    words.into_iter().map(|other| (distance(other), other)).filter(close).min().map(|(_, other)| other)
}

/// The metrics as tables in Markdown.
pub fn reference() -> String {
    let of_experiments = |one: &&Metric| !matches!(one.scope, Model | Bench);
    let tables = [
        table("Runs of an experiment", CATALOGUE.iter().filter(of_experiments)),
        table("Closed forms", CATALOGUE.iter().filter(|one| one.scope == Model)),
        table("Benchmarks", CATALOGUE.iter().filter(|one| one.scope == Bench)),
    ];
    tables.join("\n")
}

fn table<'a>(title: &str, metrics: impl Iterator<Item = &'a Metric>) -> String {
    let mut text = format!("## {title}\n\n| metric | unit | better | meaning |\n|---|---|---|---|\n");
    for one in metrics.filter(|one| !one.doc.is_empty()) {
        let name = one.full_name();
        let better = match one.better {
            More => "more",
            Less => "less",
            Unknown => "",
        };
        text += &format!("| `{name}` | {} | {better} | {} |\n", one.unit, one.doc);
    }
    text
}

/// The metrics of a run.
pub fn of_document(document: &Document) -> Metrics {
    let mut found = Found { figures: Vec::new(), span_ns: span_ns(document) };
    found.whole(document);
    document.flows.iter().for_each(|flow| found.flow(flow, &document.causes));
    document.links.iter().for_each(|link| found.link(link));
    document.networks.iter().for_each(|network| found.network(network));
    document.frames.iter().for_each(|frames| found.frames(frames));
    for program in &document.measured {
        found.put(&program.name, "measured.throughput", program.payload_bps);
        if let Some(calls) = &program.calls {
            found.put(&program.name, "calls.mean", calls.mean_ns);
            found.put(&program.name, "calls.min", calls.min_ns);
            found.put(&program.name, "calls.max", calls.max_ns);
        }
    }
    found.figures.into_iter().collect()
}

fn span_ns(document: &Document) -> f64 {
    document.end_fs.saturating_sub(document.start_fs) as f64 / 1e6
}

struct Found {
    figures: Vec<(String, f64)>,
    span_ns: f64,
}

impl Found {
    /// A figure of something, or of the run if its name is empty. What is no number is left out.
    fn put(&mut self, owner: &str, name: &str, value: f64) {
        if value.is_finite() {
            let name = if owner.is_empty() { name.to_owned() } else { format!("{owner}.{name}") };
            self.figures.push((name, value));
        }
    }

    fn latency(&mut self, owner: &str, latency: &Latency) {
        let Latency { min, mean, p50, p90, p99, p999, max } = *latency;
        let parts = [
            ("min", min),
            ("mean", mean),
            ("p50", p50),
            ("p90", p90),
            ("p99", p99),
            ("p999", p999),
            ("max", max),
        ];
        parts.into_iter().for_each(|(part, value)| self.put(owner, &format!("latency.{part}"), value));
    }

    fn whole(&mut self, document: &Document) {
        let flows = &document.flows;
        self.put("", "throughput", flows.iter().map(|flow| flow.payload_bps).sum());
        let transactions: u64 = flows.iter().map(|flow| flow.transactions).sum();
        self.put("", "transactions", transactions as f64);
        self.put("", "rate", transactions as f64 / self.span_ns * 1e9);
        self.put("", "bytes", flows.iter().map(|flow| flow.bytes).sum::<u64>() as f64);
        self.put("", "errors", flows.iter().map(errors).sum::<u64>() as f64);
        self.put("", "span", self.span_ns);
        let known: Vec<(u64, Latency)> =
            flows.iter().filter_map(|flow| Some((flow.transactions, flow.latency_ns?))).collect();
        if !known.is_empty() {
            let most = |of: fn(&Latency) -> f64| known.iter().map(|(_, one)| of(one)).fold(0.0, f64::max);
            let sum: f64 = known.iter().map(|(count, one)| *count as f64 * one.mean).sum();
            let counted: u64 = known.iter().map(|(count, _)| count).sum();
            self.latency(
                "",
                &Latency {
                    min: known.iter().map(|(_, one)| one.min).fold(f64::INFINITY, f64::min),
                    mean: sum / counted as f64,
                    p50: most(|one| one.p50),
                    p90: most(|one| one.p90),
                    p99: most(|one| one.p99),
                    p999: most(|one| one.p999),
                    max: most(|one| one.max),
                },
            );
        }
        let lanes = document.links.iter().filter(|link| link.bus.is_none()).map(|link| u32::from(link.width));
        self.put("", "lanes", f64::from(lanes.sum::<u32>()));
        if let Some(host) = &document.host {
            if let Some(cache) = &host.cache {
                self.put("host", "cache.hit_rate", cache.hit_rate);
            }
            if let Some(iommu) = &host.iommu {
                self.put("host", "iommu.hit_rate", iommu.hit_rate);
                self.put("host", "iommu.walks", iommu.walks as f64);
                self.put("host", "iommu.busy", iommu.busy);
            }
        }
    }

    fn flow(&mut self, flow: &Flow, causes: &[CauseName]) {
        let name = &flow.name;
        self.put(name, "throughput", flow.payload_bps);
        self.put(name, "rate", flow.transactions as f64 / self.span_ns * 1e9);
        self.put(name, "transactions", flow.transactions as f64);
        self.put(name, "bytes", flow.bytes as f64);
        if let Some(latency) = &flow.latency_ns {
            self.latency(name, latency);
        }
        self.put(name, "errors", errors(flow) as f64);
        let of = flow.errors;
        let endings = [
            ("ur", of.ur),
            ("ca", of.ca),
            ("timeout", of.timeout),
            ("poisoned", of.poisoned),
            ("lost", of.lost),
            ("malformed", of.malformed),
        ];
        endings
            .into_iter()
            .for_each(|(ending, count)| self.put(name, &format!("errors.{ending}"), count as f64));
        if flow.latency_ns.is_some() {
            for (index, cause) in causes.iter().enumerate() {
                let parts = flow.attribution.iter().filter(|part| part.cause == index);
                let share = parts
                    .map(|part| part.share)
                    .fold(None, |sum: Option<f64>, share| Some(sum.unwrap_or(0.0) + share));
                if let Some(share) = share {
                    self.put(name, &format!("share.{}", cause.0.name().replace(' ', "_")), share);
                }
            }
        }
    }

    fn link(&mut self, link: &Link) {
        let name = &link.lower;
        if link.bus.is_none() {
            self.put(name, "lanes", f64::from(link.width));
            self.put(name, "generation", f64::from(link.generation));
            self.put(name, "mps", f64::from(link.mps));
        }
        let busy = |direction: &Direction| 1.0 - direction.utilization.idle;
        self.put(name, "utilisation", busy(&link.directions[0]).max(busy(&link.directions[1])));
        for (way, direction) in ["up", "down"].into_iter().zip(&link.directions) {
            let (used, stalls) = (&direction.utilization, &direction.stalls);
            let parts = [
                ("utilisation", busy(direction)),
                ("payload", used.payload),
                ("overhead", used.overhead),
                ("dllp", used.dllp),
                ("ordered_sets", used.ordered_sets),
                ("replay", used.replay),
                ("tlps", direction.tlps as f64),
                ("replayed", direction.replayed as f64),
                ("stall.credits", stalls.credits),
                ("stall.tags", stalls.tags),
                ("stall.replay_buffer", stalls.replay_buffer),
            ];
            parts.into_iter().for_each(|(part, value)| self.put(name, &format!("{way}.{part}"), value));
        }
    }

    fn frames(&mut self, frames: &Frames) {
        let Frames { device, sent, received, missed, too_long } = frames;
        let counts = [("sent", sent), ("received", received), ("missed", missed), ("too_long", too_long)];
        counts
            .into_iter()
            .for_each(|(name, count)| self.put(device, &format!("frames.{name}"), *count as f64));
    }

    fn network(&mut self, network: &Network) {
        let mut way = |way: &str, of: &NetworkDirection| {
            self.put(&network.device, &format!("{way}.throughput"), of.payload_bps);
            self.put(&network.device, &format!("{way}.busy"), of.busy);
            self.put(&network.device, &format!("{way}.dropped"), of.dropped as f64);
        };
        way("to_software", &network.to_software);
        way("to_card", &network.to_card);
    }
}

fn errors(flow: &Flow) -> u64 {
    let of = flow.errors;
    of.ur + of.ca + of.timeout + of.poisoned + of.lost + of.malformed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_one_metric() {
        let unit = |name: &str| find(name).unwrap().unit;
        assert_eq!(unit("throughput"), Unit::RATE);
        assert_eq!(unit("nic.read.throughput"), Unit::RATE);
        assert_eq!(unit("nic.latency.p99"), Unit::TIME);
        assert_eq!(unit("sw0.up.stall.credits"), Unit::NONE);
        assert_eq!(find("nic.errors.ur").unwrap().name, "errors.ur");
        assert_eq!(find("nic.share.tag_wait").unwrap().name, "share.*");
    }

    /// `throughput` is of a run, of a closed form and of a benchmark: an expression means the same whichever it is of.
    #[test]
    fn a_name_has_one_unit_and_one_better_side() {
        for one in CATALOGUE {
            let owner = if matches!(one.scope, Run | Model | Bench) { "" } else { "up.x." };
            let way = if one.scope == Way { "up." } else { "" };
            let found = find(&format!("{owner}{way}{}", one.name.replace('*', "cause"))).unwrap();
            assert_eq!((found.unit, found.better), (one.unit, one.better), "{}", one.name);
        }
    }

    /// By hand: 30 transactions of 100 ns and 10 of 500 ns take 200 ns on average.
    #[test]
    fn figures_of_the_run_are_of_all_flows() {
        let flow = |name: &str, transactions, mean, p99, min| Flow {
            name: name.into(),
            transactions,
            bytes: 64 * transactions,
            payload_bps: 1e9,
            latency_ns: Some(Latency { min, mean, p99, ..Latency::default() }),
            ..Flow::default()
        };
        let flows =
            vec![flow("a", 30, 100.0, 900.0, 20.0), flow("b", 10, 500.0, 700.0, 10.0), Flow::default()];
        let document =
            Document { flows, start_fs: 1_000_000_000, end_fs: 3_000_000_000, ..Document::default() };
        let metrics = of_document(&document);
        let wanted = [
            ("throughput", 2e9),
            ("transactions", 40.0),
            ("rate", 20e6),
            ("bytes", 2560.0),
            ("span", 2000.0),
            ("latency.mean", 200.0),
            ("latency.p99", 900.0),
            ("latency.min", 10.0),
            ("b.latency.p99", 700.0),
            ("b.rate", 5e6),
        ];
        for (name, value) in wanted {
            assert_eq!(metrics[name], value, "{name}");
        }
    }

    #[test]
    fn an_unknown_metric_gets_a_suggestion() {
        let told = |name: &str| {
            let (message, hint) = find(name).unwrap_err();
            format!("{message}; {}", hint.unwrap())
        };
        assert_eq!(told("nic.thruput"), "unknown metric nic.thruput; did you mean nic.throughput?");
        assert_eq!(told("latency.p96"), "unknown metric latency.p96; did you mean latency.p90?");
        assert_eq!(told("nic.latency.p95"), "unknown metric nic.latency.p95; did you mean nic.latency.p90?");
        assert_eq!(told("xyzzy"), "unknown metric xyzzy; `tlplab list metrics` lists them");
        assert_eq!(told(".throughput"), "unknown metric .throughput; did you mean throughput?");
    }
}
