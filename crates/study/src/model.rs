//! Closed forms as the subject of a study: what `tlplab model` takes are its keys.

use crate::figures::Metrics;
use crate::files::Files;
use crate::key::Key as Hash;
use crate::options::{Form, Keys, Refusal, Resolved, Written, key};
use crate::place::Place;
use crate::record::Record;
use crate::run::{Build, Prepared, Went, Work};
use crate::subject::Ask;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use tlplab_analytic::ethernet::{FCS, SHORTEST, frames, packet, transferred};
use tlplab_analytic::in_flight::{Delays, InFlight, Limit, Resource, in_flight};
use tlplab_analytic::nettlp::NetTlp;
use tlplab_analytic::{
    Completions, Connection, Mistakes, NICS, Nic, Numbers, Operation, Requests, Span, Ways, bandwidth,
};
use tlplab_experiment::Error;
use toml::Spanned;

/// A closed form, and what its keys hold at all points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    kind: Kind,
    /// The folder of the study: files are beside it.
    folder: String,
    keys: BTreeMap<String, String>,
}

/// The closed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Bandwidth of transfers.
    Bw,
    /// The throughput of a NIC on the link.
    Nic,
    /// Little's law.
    Lat,
    /// TLPs in datagrams.
    NetTlp,
}

const KINDS: [(&str, Kind); 4] =
    [("bw", Kind::Bw), ("nic", Kind::Nic), ("lat", Kind::Lat), ("nettlp", Kind::NetTlp)];

const CONNECTION: &[crate::options::Key] = &[
    key("link", Form::Link, "gen3 x8"),
    key("mps", Form::Size, "256B"),
    key("mrrs", Form::Size, "512B"),
    key("rcb", Form::Size, "64B"),
    key("address_bits", Form::Whole(1), "64"),
    key("ecrc", Form::Truth, "false"),
    key("offset", Form::Size, "0B"),
    key("requests", Form::Word(&["aligned", "packed"]), "aligned"),
    key("completions", Form::Word(&["max", "rcb"]), "max"),
    key("compat", Form::Words(&Mistakes::NAMES), "[]"),
];
const OP: Form = Form::Word(&["write", "read", "rdwr"]);
const BW: &[crate::options::Key] = &[key("size", Form::Size, "64B"), key("op", OP, "write")];
const NIC: &[crate::options::Key] = &[
    key("nic", Form::Text, "simple"),
    key("ethernet", Form::Rate, "40Gb/s"),
    key("frame", Form::Size, "64B"),
    key("ways", Form::Word(&["both", "transmit", "receive"]), "both"),
];
const LAT: &[crate::options::Key] = &[
    key("size", Form::Size, "128B"),
    key("op", OP, "read"),
    key("latency", Form::Time, "900ns"),
    key("flight", Form::Time, "5ns"),
    key("drain", Form::Time, "100ns"),
    key("rate", Form::Rate, ""),
    key("ethernet", Form::Rate, ""),
    key("tags", Form::Whole(1), ""),
    key("nonposted_headers", Form::Whole(1), ""),
    key("posted_headers", Form::Whole(1), ""),
    key("posted_data", Form::Whole(1), ""),
    key("replay", Form::Size, ""),
    key("transfers", Form::Whole(1), ""),
];
const NETTLP: &[crate::options::Key] = &[
    key("size", Form::Size, "64B"),
    key("op", Form::Word(&["write", "read"]), "write"),
    key("ethernet", Form::Rate, "10Gb/s"),
    key("mps", Form::Size, "256B"),
    key("mrrs", Form::Size, "512B"),
    key("address_bits", Form::Whole(1), "32"),
];

/// The resources of Little's law, by the keys that say how much there is of each.
const SUPPLY: [&str; 6] =
    ["transfers", "tags", "nonposted_headers", "posted_headers", "posted_data", "replay"];

impl Kind {
    /// Its keys.
    const fn keys(self) -> Keys {
        match self {
            Self::Bw => Keys { of: "the model bw", keys: &[BW, CONNECTION] },
            Self::Nic => Keys { of: "the model nic", keys: &[NIC, CONNECTION] },
            Self::Lat => Keys { of: "the model lat", keys: &[LAT, CONNECTION] },
            Self::NetTlp => Keys { of: "the model nettlp", keys: &[NETTLP] },
        }
    }
}

/// The keys of each kind, by its name.
pub fn keys() -> Vec<(&'static str, Vec<&'static str>)> {
    KINDS.iter().map(|(name, kind)| (*name, kind.keys().names())).collect()
}

impl Model {
    pub(crate) fn read(place: Place<'_>, written: &Spanned<Written>, folder: String) -> Result<Self, Error> {
        let table = written.get_ref();
        let names = KINDS.map(|(name, _)| format!("\"{name}\"")).join(", ");
        let Some(kind) = table.get("kind") else {
            let hint = Some(format!("write kind = one of {names}"));
            return Err(place.mistake(written.span(), "model.kind", "kind, the model, is missing", hint));
        };
        let found = KINDS.iter().find(|(name, _)| kind.get_ref().as_str() == Some(name));
        let (_, found) = found.ok_or_else(|| {
            let hint = Some(format!("expected one of {names}"));
            place.mistake(kind.span(), "model.kind", "unknown model", hint)
        })?;
        Ok(Self { kind: *found, folder, keys: found.keys().read(place, "model", table, "kind")? })
    }

    pub(crate) fn check_key(&self, name: &str) -> Result<(), Refusal> {
        if name == "kind" {
            return Err(("a study covers one kind of model".into(), Some("write a study for each".into())));
        }
        self.kind.keys().check(name)
    }

    pub(crate) fn tells_limit(&self) -> bool {
        self.kind == Kind::Lat
    }

    pub(crate) fn prepare(&self, ask: &Ask, files: &Files, build: &Build) -> Result<Prepared, String> {
        let options = self.kind.keys().resolve(&self.keys, &ask.set)?;
        let mut named = Vec::new();
        let mut text = Arc::default();
        if self.kind == Kind::Nic {
            (text, named) = self.nic_text(options.word("nic"), files)?;
        }
        let (kind, resolved) = (format!("{:?}", self.kind), options.to_string());
        let parts: Vec<(&str, &[u8])> = vec![
            ("build", build.simulator.as_bytes()),
            ("model", kind.as_bytes()),
            ("keys", resolved.as_bytes()),
        ];
        let key = Hash::of_run(parts, &named);
        let work = Work::Model(Ready { kind: self.kind, options, nic: text });
        Ok(Prepared { key, seed: None, in_python: None, files: named, opened: Vec::new(), work })
    }

    /// The file of a NIC: one that comes with tlplab, or one beside the study, which counts by what is in it.
    fn nic_text(&self, name: &str, files: &Files) -> Result<NicFile, String> {
        if let Some((_, text)) = NICS.iter().find(|(known, _)| *known == name) {
            return Ok(((*text).into(), Vec::new()));
        }
        let path = if name.starts_with('/') { name.to_owned() } else { format!("{}{name}", self.folder) };
        let names = NICS.map(|(name, _)| name).join(", ");
        let text =
            files.text(&path).map_err(|why| format!("nic: {path}: {why}; name a file, or one of {names}"))?;
        let key = files.key_of_text(&path)?;
        Ok((text.into(), vec![(path, key)]))
    }
}

/// The text of a NIC's file, and its key unless it comes with tlplab.
type NicFile = (Arc<str>, Vec<(String, Hash)>);

/// A closed form that is about to be evaluated.
pub(crate) struct Ready {
    kind: Kind,
    options: Resolved,
    nic: Arc<str>,
}

impl Ready {
    pub(crate) fn run(&self) -> Went {
        let came = match self.kind {
            Kind::Bw => self.bw(),
            Kind::Nic => self.nic(),
            Kind::Lat => self.lat(),
            Kind::NetTlp => self.nettlp(),
        };
        came.map_or_else(Went::Refused, Went::Done)
    }

    fn mistakes(&self) -> Mistakes {
        let named = self.options.words("compat").iter();
        named.fold(Mistakes::NONE, |mistakes, name| mistakes.and(name).unwrap_or(mistakes))
    }

    /// The connection, and where a transfer of so many bytes begins.
    fn connection(&self, size: i64) -> Result<(Connection, Span), String> {
        let of = &self.options;
        let (generation, width, flit) =
            of.link().ok_or("the link is missing; set link, such as \"gen4 x8\"")?;
        let numbers = Numbers {
            size,
            offset: of.whole("offset"),
            generation: generation.number().into(),
            width: width.lanes().into(),
            mps: of.whole("mps"),
            mrrs: of.whole("mrrs"),
            rcb: of.whole("rcb"),
            address_bits: of.whole("address_bits"),
            ecrc: of.is("ecrc").into(),
            flit: flit.into(),
        };
        let requests = if of.word("requests") == "packed" { Requests::Packed } else { Requests::Aligned };
        let completions = if of.word("completions") == "rcb" { Completions::Rcb } else { Completions::Max };
        let told = |error: tlplab_analytic::numbers::Invalid| error.to_string();
        let connection = numbers.connection(requests, completions, self.mistakes()).map_err(told)?;
        Ok((connection, Span::new(numbers.offset().map_err(told)?, numbers.size().map_err(told)?)))
    }

    fn operation(&self) -> Operation {
        match self.options.word("op") {
            "read" => Operation::Read,
            "rdwr" => Operation::ReadWrite,
            _ => Operation::Write,
        }
    }

    fn bw(&self) -> Result<Record, String> {
        let (connection, transfer) = self.connection(self.options.whole("size"))?;
        let found = bandwidth(&connection, self.operation(), transfer);
        Ok(record([
            ("throughput", found.payload),
            ("rate", found.transfers),
            ("up.utilisation", found.utilization.up),
            ("down.utilisation", found.utilization.down),
            ("up.cost", found.cost.up.bytes),
            ("down.cost", found.cost.down.bytes),
            ("capacity", connection.capacity() * 8.0),
            ("line_rate", connection.raw() * 8.0),
            ("lanes", connection.link.width.lanes().into()),
        ]))
    }

    fn nic(&self) -> Result<Record, String> {
        let (of, shortest) = (&self.options, SHORTEST);
        let nic = Nic::parse(of.word("nic"), &self.nic).map_err(|mistake| mistake.to_string())?;
        let frame = of.number("frame").unwrap_or_default();
        if frame < shortest {
            return Err(format!("frame is {frame}; expected {shortest} B or more, check sequence included"));
        }
        let (connection, transfer) = self.connection(of.whole("frame"))?;
        let ways = match of.word("ways") {
            "transmit" => Ways::Transmit,
            "receive" => Ways::Receive,
            _ => Ways::Both,
        };
        let bytes = packet(frame);
        let cost = nic.cost(&connection, ways, Span::new(transfer.start, bytes));
        let packets = connection.rate(cost);
        let ethernet = of.number("ethernet").unwrap_or_default() as f64;
        Ok(record([
            ("throughput", packets * bytes as f64 * 8.0),
            ("rate", packets),
            ("up.cost", cost.up.bytes),
            ("down.cost", cost.down.bytes),
            ("ethernet.throughput", transferred(ethernet, frame, connection.mistakes)),
            ("ethernet.rate", frames(ethernet, frame, connection.mistakes)),
            ("lanes", connection.link.width.lanes().into()),
        ]))
    }

    fn lat(&self) -> Result<Record, String> {
        let of = &self.options;
        let (connection, transfer) = self.connection(of.whole("size"))?;
        let bits = transfer.bytes as f64 * 8.0;
        let wanted = match (of.number("rate"), of.number("ethernet")) {
            (Some(_), Some(_)) => {
                return Err("rate and ethernet both set the wanted rate; set one of them".into());
            }
            (Some(rate), None) => Some(rate as f64 / bits),
            // What is wanted is a fact, also of a model that makes mistakes.
            (None, Some(rate)) => Some(frames(rate as f64, transfer.bytes + FCS, Mistakes::NONE)),
            (None, None) => None,
        };
        if let Some(name) = ["latency", "replay"].into_iter().find(|name| of.number(name) == Some(0)) {
            return Err(format!("{name} is 0; expected a value above 0"));
        }
        let delays = Delays {
            latency: of.seconds("latency"),
            flight: of.seconds("flight"),
            drain: of.seconds("drain"),
        };
        let supply = SUPPLY.map(|name| of.number(name).map(|number| number as f64));
        let found = in_flight(&connection, self.operation(), transfer, wanted, delays, supply);
        let mut figures = vec![
            ("throughput".to_owned(), found.reached * bits),
            ("rate".to_owned(), found.reached),
            ("link.throughput".to_owned(), found.link * bits),
            ("lanes".to_owned(), connection.link.width.lanes().into()),
        ];
        for one in &found.uses {
            let name = SUPPLY[Resource::ALL.iter().position(|it| *it == one.resource).unwrap_or_default()];
            figures.push((format!("{name}.needed"), one.needed));
            figures.push((format!("{name}.held"), one.held * 1e9));
            figures.extend(one.transfers.map(|transfers| (format!("{name}.allowed"), transfers * bits)));
        }
        let metrics = figures.into_iter().filter(|(_, value)| value.is_finite()).collect();
        Ok(Record { verdict: Some(limit(&found)), metrics, ..Record::default() })
    }

    fn nettlp(&self) -> Result<Record, String> {
        let of = &self.options;
        let size = of.number("size").unwrap_or_default();
        if !(1..=1 << 32).contains(&size) {
            return Err(format!("size is {size}; expected 1 to 4294967296"));
        }
        for name in ["mps", "mrrs"] {
            let bytes = of.number(name).unwrap_or_default();
            if !(bytes.is_power_of_two() && (128..=4096).contains(&bytes)) {
                return Err(format!("{name} is {bytes}; expected 128, 256, 512, 1024, 2048 or 4096"));
            }
        }
        let header = match of.number("address_bits") {
            Some(32) => 12,
            Some(64) => 16,
            other => {
                return Err(format!("address_bits is {}; expected 32 or 64", other.unwrap_or_default()));
            }
        };
        let card = NetTlp {
            ethernet: of.number("ethernet").unwrap_or_default() as f64,
            mps: of.number("mps").unwrap_or_default(),
            mrrs: of.number("mrrs").unwrap_or_default(),
            header,
        };
        let payload = if of.word("op") == "read" { card.reads(size) } else { card.writes(size) };
        Ok(record([("throughput", payload), ("rate", payload / 8.0 / size as f64)]))
    }
}

fn record<const N: usize>(figures: [(&str, f64); N]) -> Record {
    let finite = figures.into_iter().filter(|(_, value)| value.is_finite());
    let metrics: Metrics = finite.map(|(name, value)| (name.to_owned(), value)).collect();
    Record { metrics, ..Record::default() }
}

/// The limit of transfers, in a word and in a sentence.
fn limit(found: &InFlight) -> (String, String) {
    let (word, sentence) = match found.limit {
        Limit::Demand => ("demand", "The wanted rate is reached.".to_owned()),
        Limit::Link => ("link", "The link is full.".to_owned()),
        Limit::Resource(resource) => (resource.name(), format!("It is limited by {}.", resource.name())),
    };
    (word.to_owned(), sentence)
}
