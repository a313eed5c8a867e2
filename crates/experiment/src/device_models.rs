//! The kinds of device: the built-in models with their parameters, and devices from files.

use crate::card;
use crate::choices::{choice, choices};
use crate::error::{Error, Problem, suggest};
use crate::keys::{Extra, Keys, Kind, Word};
use crate::nvme::{self, NvmeSpec};
use crate::section::{Section, Set, row};
use crate::tables::DEVICE;
use crate::tree::Value;
use crate::view::View;
use std::collections::BTreeMap;
use tlplab_device::nettlp_card::WINDOW_BAR;
use tlplab_device::tlpdma::regs;
use tlplab_device::{CardConfig, SimpleNicRings, StorageConfig, nic};

/// A built-in model.
#[derive(Debug)]
pub struct Model {
    /// The value of `model = "…"`.
    pub name: &'static str,
    /// Its purpose, in a line.
    pub doc: &'static str,
    /// Its parameters.
    pub keys: &'static dyn Keys,
    /// The reader of its keys.
    read: fn(&View<'_>) -> Result<ModelSpec, Error>,
}

const MANY: Kind = Kind::Integer { min: 1, max: u32::MAX as i64 };
const MANY_OR_NONE: Kind = Kind::Integer { min: 0, max: u32::MAX as i64 };

/// Every built-in model.
pub static MODELS: &[Model] = &[
    Model {
        name: "dma",
        doc: "Issues the DMA of its loads; its BAR ignores writes and reads as zero",
        keys: &PLAIN,
        read: |device| PLAIN.read_into(device, 0).map(|bar| ModelSpec::Dma { bar }),
    },
    Model {
        name: "memory",
        doc: "A BAR backed by memory",
        keys: &PLAIN,
        read: |device| PLAIN.read_into(device, 0).map(|bar| ModelSpec::Memory { bar }),
    },
    Model {
        name: "copier",
        doc: "Copies blocks of host memory, commanded by a driver on the host",
        keys: &COPIER,
        read: |device| {
            COPIER
                .read_into(device, (0, 0))
                .map(|(transfer, requests)| ModelSpec::Copier { transfer, requests })
        },
    },
    Model {
        name: "ring",
        doc: "Processes a ring of descriptors in host memory, filled by a driver on the host",
        keys: &RING,
        read: |device| RING.read_into(device, RingSpec::default()).map(ModelSpec::Ring),
    },
    Model {
        name: "storage",
        doc: "A block device of 4 KiB sectors that executes commands in host memory; a load with op = \"dd-read\" drives it",
        keys: &STORAGE,
        read: |device| STORAGE.read_into(device, StorageConfig::default()).map(ModelSpec::Storage),
    },
    Model {
        name: "nvme",
        doc: "An NVM Express 1.4 controller with one namespace, for the driver of an operating system; idle without one",
        keys: &nvme::NVME,
        read: |device| nvme::spec(device).map(ModelSpec::Nvme),
    },
    Model {
        name: "nic",
        doc: "A gigabit Ethernet controller like the 82574L, with its driver on the host and a link partner",
        keys: &NIC,
        read: |device| NIC.read_into(device, NicSpec::default()).map(ModelSpec::Nic),
    },
    Model {
        name: "tlpdma",
        doc: "The DMA card of rtl/ at transaction level, without clocks; loads with op = \"to-card\" and \"from-card\" drive it",
        keys: &TLPDMA,
        read: |device| TLPDMA.read_into(device, 0).map(|memory| ModelSpec::Tlpdma { memory }),
    },
    Model {
        name: "nettlp-card",
        doc: "A card that carries TLPs over Ethernet to software on another machine, which issues the card's loads or, without loads, is a memory behind BAR 4",
        keys: &card::CARD,
        read: |device| card::CARD.read_into(device, card::BLANK).map(ModelSpec::Card),
    },
    Model {
        name: "simple-nic",
        doc: "The Ethernet controller of NetTLP with its driver on the host and a link partner",
        keys: &SIMPLE_NIC,
        read: |device| SIMPLE_NIC.read_into(device, SimpleNicSpec::default()).map(ModelSpec::SimpleNic),
    },
];

/// Of `dma` and `memory`: bytes of BAR 0.
static PLAIN: Section<u64> = Section {
    title: "the model dma or memory",
    extra: None,
    rows: &[row(
        ("bar", Kind::Size, r#""1MiB""#, r#""64KiB""#),
        "Size of BAR 0, a power of two from 4KiB to 1GiB; peer-to-peer requests and MMIO land there.",
        Set::Read(|bytes, v| bar(v).map(|it| *bytes = it)),
    )],
};

/// Bytes of a copy, and copies.
static COPIER: Section<(u32, u32)> = Section {
    title: "the model copier",
    extra: None,
    rows: &[
        row(
            ("transfer", Kind::Size, r#""4KiB""#, r#""1KiB""#),
            "Bytes of a copy.",
            Set::Read(|(bytes, _), v| transfer(v).map(|it| *bytes = it)),
        ),
        row(
            ("requests", MANY, "100", "10"),
            "Total number of copies.",
            Set::U32(|(_, copies), it| *copies = it),
        ),
    ],
};

static RING: Section<RingSpec> = Section {
    title: "the model ring",
    extra: None,
    rows: &[
        row(
            ("entries", Kind::Integer { min: 2, max: 65_536 }, "256", "64"),
            "Descriptors in the ring.",
            Set::U32(|ring, it| ring.entries = it),
        ),
        row(
            ("batch", Kind::Integer { min: 1, max: 256 }, "8", "1"),
            "Descriptors fetched by one read at most.",
            Set::U32(|ring, it| ring.batch = it),
        ),
        row(
            ("depth", Kind::Integer { min: 1, max: 65_536 }, "64", "4"),
            "Descriptors under way at most.",
            Set::U32(|ring, it| ring.depth = it),
        ),
        row(
            ("transfer", Kind::Size, r#""1500B""#, r#""4KiB""#),
            "Bytes that a descriptor moves.",
            Set::Read(|ring, v| transfer(v).map(|it| ring.transfer = it)),
        ),
        row(
            ("direction", choice::<Way>(), r#""receive""#, r#""transmit""#),
            "The device writes the buffers (receive), or reads them (transmit).",
            Set::Read(|ring, v| v.chosen().map(|it| ring.receive = matches!(it, Way::Receive))),
        ),
        row(
            ("interrupt_every", Kind::Integer { min: 1, max: 65_536 }, "16", "1"),
            "Descriptors to an interrupt.",
            Set::U32(|ring, it| ring.interrupt_every = it),
        ),
        row(
            ("requests", MANY, "1000", "10"),
            "Total number of descriptors.",
            Set::U32(|ring, it| ring.requests = it),
        ),
    ],
};

static STORAGE: Section<StorageConfig> = Section {
    title: "the model storage",
    extra: None,
    rows: &[
        row(
            ("access", Kind::Time, r#""1us""#, r#""20us""#),
            "From the start of a sector's access to its data, independent of the access before.",
            Set::Time(|storage, it| storage.access = it),
        ),
        row(
            ("sectors_in_flight", Kind::Integer { min: 1, max: 256 }, "1", "8"),
            "Sectors between the beginning of their access and the end of their DMA, at most; with 1 a sector begins when all writes of the one before were accepted (posted) or answered (non-posted).",
            Set::U32(|storage, it| storage.sectors_in_flight = it),
        ),
    ],
};

static NIC: Section<NicSpec> = Section {
    title: "the model nic",
    extra: None,
    rows: &[
        row(
            ("entries", Kind::Integer { min: 8, max: 4096 }, "256", "64"),
            "Descriptors in each ring, rounded up to a multiple of 8.",
            Set::U32(|nic, it| nic.entries = it),
        ),
        row(
            ("transfer", Kind::Size, r#""1514B""#, r#""60B""#),
            "Bytes of a frame without its check sequence, 60 to 1514.",
            Set::Read(|nic, v| frame(v).map(|it| nic.transfer = it)),
        ),
        row(
            ("direction", choice::<Ways>(), r#""loop-back""#, r#""receive""#),
            "The partner sends frames, receives them, or a loop-back plug returns them.",
            Set::Read(|nic, v| v.chosen().map(|it: Ways| (nic.sends, nic.receives) = it.both())),
        ),
        row(
            ("ethernet", Kind::Rate, r#""1Gb/s""#, r#""10Gb/s""#),
            "Rate of the cable in each direction; the controller's registers always show 1 Gb/s.",
            Set::Rate(|nic, it| nic.ethernet = it),
        ),
        row(
            ("mac", Kind::Word(&MAC), r#""02:1d:e5:00:00:01""#, r#""02:1d:e5:00:00:02""#),
            "Its address, as its NVM has it.",
            Set::Read(|nic, v| v.word(mac).map(|it| nic.mac = it)),
        ),
        row(
            ("requests", MANY_OR_NONE, "1000", "10"),
            "Total number of frames; with 0 the driver brings the controller up and leaves it idle.",
            Set::U32(|nic, it| nic.requests = it),
        ),
    ],
};

/// Bytes of its memory.
static TLPDMA: Section<u64> = Section {
    title: "the model tlpdma",
    extra: None,
    rows: &[row(
        ("memory", Kind::Size, r#""256MiB""#, r#""64MiB""#),
        "The card's memory, a power of two from 2MiB to 2GiB.",
        Set::Read(|bytes, v| memory(v).map(|it| *bytes = it)),
    )],
};

static SIMPLE_NIC: Section<SimpleNicSpec> = Section {
    title: "the model simple-nic",
    extra: None,
    rows: &[
        row(
            ("entries", Kind::Integer { min: 1, max: 32_768 }, "256", "64"),
            "Descriptors in each ring; with 1 the published protocol, which waits for each frame.",
            Set::U32(|nic, it| nic.rings.entries = it),
        ),
        row(
            ("transfer", Kind::Size, r#""1514B""#, r#""60B""#),
            "Bytes of a frame without its check sequence, 60 to 1514.",
            Set::Read(|nic, v| frame(v).map(|it| nic.transfer = it)),
        ),
        row(
            ("direction", choice::<Ways>(), r#""loop-back""#, r#""receive""#),
            "The partner sends frames, receives them, or a loop-back plug returns them.",
            Set::Read(|nic, v| v.chosen().map(|it: Ways| (nic.sends, nic.receives) = it.both())),
        ),
        row(
            ("ethernet", Kind::Rate, r#""10Gb/s""#, r#""25Gb/s""#),
            "Rate of the cable in each direction.",
            Set::Rate(|nic, it| nic.ethernet = it),
        ),
        row(
            ("moderation", Kind::Time, r#""0ns""#, r#""10us""#),
            "Least time between two interrupts of a direction; rings of 1 interrupt at once.",
            Set::Time(|nic, it| nic.rings.moderation = it),
        ),
        row(
            ("requests", MANY_OR_NONE, "1000", "10"),
            "Total number of frames.",
            Set::U32(|nic, it| nic.requests = it),
        ),
    ],
};

/// `model = "…"`
pub static MODEL: Word = Word {
    what: "a model such as \"dma\", \"mydev.py:Copier\", \"lib:mydev.so\" or \"rtl:core.so\"",
    pattern: r"^(dma|memory|copier|ring|storage|nvme|nic|tlpdma|nettlp-card|simple-nic|lib:.+\.so|rtl:.+\.so|.+\.py:[A-Za-z_][A-Za-z0-9_]*)$",
    check: check_model,
};

/// `mac = "…"`
pub static MAC: Word = Word {
    what: "an Ethernet address, such as \"02:1d:e5:00:00:02\"",
    pattern: r"^[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}$",
    check: |text| mac(text).map(drop),
};

fn mac(text: &str) -> Result<[u8; 6], Problem> {
    let byte = |part: &str| (part.len() == 2).then(|| u8::from_str_radix(part, 16).ok()).flatten();
    let bytes = text.split(':').map(byte).collect::<Option<Vec<_>>>();
    match bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok()) {
        None | Some([0, 0, 0, 0, 0, 0]) => Err(Problem::new(format!("\"{text}\" is not {}", MAC.what))),
        Some([first, ..]) if first & 1 == 1 => Err(Problem::new(format!("\"{text}\" is a group's address"))
            .hint("the first byte of a NIC's own address is even")),
        Some(bytes) => Ok(bytes),
    }
}

/// `driver = "…"`
pub static DRIVER: Word = Word {
    what: "a program such as \"copier.py:driver\"",
    pattern: r"^.+\.py:[A-Za-z_][A-Za-z0-9_]*$",
    check: |text| {
        python_name(text).map(drop).ok_or_else(|| {
            Problem::new(format!("\"{text}\" is not a program")).hint("write file.py:function")
        })
    },
};

fn check_model(text: &str) -> Result<(), Problem> {
    let names = MODELS.iter().map(|m| m.name);
    if names.clone().any(|n| n == text)
        || python_name(text).is_some()
        || library(text).is_some()
        || core(text).is_some()
    {
        return Ok(());
    }
    for (prefix, hint) in [
        ("lib:", "a device from a library is written lib:FILE.so"),
        ("rtl:", "a device made of RTL is written rtl:FILE.so"),
    ] {
        if text.starts_with(prefix) {
            return Err(Problem::new(format!("\"{text}\" is not a model")).hint(hint));
        }
    }
    if text.contains(':') || text.ends_with(".py") {
        let hint = "a device in Python is written file.py:Class";
        return Err(Problem::new(format!("\"{text}\" is not a model")).hint(hint));
    }
    Err(Problem::new(format!("unknown model \"{text}\"")).hint(suggest(text, names, "models")))
}

/// `file.py:Name` as file and name.
fn python_name(text: &str) -> Option<(&str, &str)> {
    let (file, name) = text.rsplit_once(':')?;
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (file.ends_with(".py") && file.len() > 3 && starts && rest).then_some((file, name))
}

/// `lib:file.so` as the file.
fn library(text: &str) -> Option<&str> {
    text.strip_prefix("lib:").filter(|file| file.ends_with(".so") && file.len() > 3)
}

/// `rtl:file.so` as the file.
fn core(text: &str) -> Option<&str> {
    text.strip_prefix("rtl:").filter(|file| file.ends_with(".so") && file.len() > 3)
}

/// The parameters of the model a device names.
pub(crate) fn keys_of(model: &str) -> Extra {
    match MODELS.iter().find(|m| m.name == model) {
        Some(model) => Extra::Keys(model.keys),
        None => Extra::Any,
    }
}

/// The model of a device, as plain data.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelSpec {
    /// `dma`
    Dma {
        /// Bytes of BAR 0.
        bar: u64,
    },
    /// `memory`
    Memory {
        /// Bytes of BAR 0.
        bar: u64,
    },
    /// `copier`, with its driver
    Copier {
        /// Bytes of a copy.
        transfer: u32,
        /// Copies in all.
        requests: u32,
    },
    /// `ring`, with its driver
    Ring(RingSpec),
    /// `storage`
    Storage(StorageConfig),
    /// `nvme`
    Nvme(NvmeSpec),
    /// `nic`, with its driver
    Nic(NicSpec),
    /// `tlpdma`
    Tlpdma {
        /// Bytes of its memory.
        memory: u64,
    },
    /// `nettlp-card`
    Card(CardConfig),
    /// `simple-nic`, with its driver
    SimpleNic(SimpleNicSpec),
    /// `lib:file.so`
    Library(LibrarySpec),
    /// `rtl:file.so`
    Rtl(RtlSpec),
    /// `file.py:Class`
    Python {
        /// The file, relative to the one that names it.
        object: PythonObject,
        /// Every other key of the device, for the class to read.
        parameters: BTreeMap<String, serde_json::Value>,
    },
}

/// A descriptor ring and its driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingSpec {
    /// Descriptors in the ring.
    pub entries: u32,
    /// Descriptors fetched by one read at most.
    pub batch: u32,
    /// Descriptors under way at most.
    pub depth: u32,
    /// Bytes that a descriptor moves.
    pub transfer: u32,
    /// The device writes the buffers; otherwise it reads them.
    pub receive: bool,
    /// Descriptors to an interrupt.
    pub interrupt_every: u32,
    /// Total number of descriptors.
    pub requests: u32,
}

/// An Ethernet controller, its driver and what its cable leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NicSpec {
    /// Descriptors in each ring.
    pub entries: u32,
    /// Bytes of a frame without its check sequence.
    pub transfer: u32,
    /// The driver sends frames.
    pub sends: bool,
    /// Frames are received: from the partner, or those that were sent.
    pub receives: bool,
    /// Bits per second of the cable, each way.
    pub ethernet: u64,
    /// Its address.
    pub mac: [u8; 6],
    /// Frames in all.
    pub requests: u32,
}

/// A simple NIC, its driver and what its cable leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleNicSpec {
    /// The driver's use of the rings.
    pub rings: SimpleNicRings,
    /// Bytes of a frame without its check sequence.
    pub transfer: u32,
    /// The driver sends frames.
    pub sends: bool,
    /// Frames are received: from the partner, or those that were sent.
    pub receives: bool,
    /// Bits per second of the cable, each way.
    pub ethernet: u64,
    /// Frames in all.
    pub requests: u32,
}

/// A device from a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibrarySpec {
    /// The library, relative to the one that names it.
    pub file: String,
    /// Every other key of the device, as text; booleans are 0 and 1.
    pub parameters: BTreeMap<String, String>,
}

/// A device made of RTL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtlSpec {
    /// The library, relative to the one that names it.
    pub file: String,
    /// Every other key of the device, as the library reads it: frequencies in hertz, booleans as 0 and 1.
    pub parameters: BTreeMap<String, String>,
    /// The file for its waveform.
    pub waveform: Option<String>,
}

/// Something in a Python file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonObject {
    /// Path of the file, joined with the folder of the file that names it.
    pub file: String,
    /// Name of the class or function.
    pub name: String,
}

impl ModelSpec {
    /// The value of `model = "…"`, in short: `dma`, `Copier`.
    pub fn name(&self) -> &str {
        match self {
            Self::Dma { .. } => "dma",
            Self::Memory { .. } => "memory",
            Self::Copier { .. } => "copier",
            Self::Ring(_) => "ring",
            Self::Storage(_) => "storage",
            Self::Nvme(_) => "nvme",
            Self::Nic(_) => "nic",
            Self::Tlpdma { .. } => "tlpdma",
            Self::Card(_) => "nettlp-card",
            Self::SimpleNic(_) => "simple-nic",
            Self::Library(_) => "lib",
            Self::Rtl(_) => "rtl",
            Self::Python { object, .. } => &object.name,
        }
    }
    /// The BAR that peer-to-peer requests and MMIO of loads aim at.
    pub fn window(&self) -> u8 {
        if let Self::Card(_) = self { WINDOW_BAR } else { 0 }
    }
    /// True if it issues the requests of loads.
    pub fn takes_loads(&self) -> bool {
        matches!(self, Self::Dma { .. } | Self::Card(_))
    }
    /// True if nothing happens without a load that aims at it.
    pub fn waits_for_a_load(&self) -> bool {
        matches!(self, Self::Memory { .. } | Self::Storage(_) | Self::Nvme(_) | Self::Tlpdma { .. })
    }
    /// Bytes of that BAR, where the model has a say in it.
    pub fn bar(&self) -> Option<u64> {
        match self {
            Self::Card(card) => Some(card.bar),
            Self::Dma { bar } | Self::Memory { bar } => Some(*bar),
            Self::Nic(_) => Some(nic::REGISTERS),
            Self::Tlpdma { .. } => Some(regs::BAR.1),
            Self::Copier { .. }
            | Self::Ring(_)
            | Self::Storage(_)
            | Self::Nvme(_)
            | Self::SimpleNic(_)
            | Self::Library(_)
            | Self::Rtl(_)
            | Self::Python { .. } => None,
        }
    }
}

/// The object a `file.py:Name` names; `join` makes the path relative to the experiment.
pub(crate) fn python_object(text: &str, join: impl Fn(&str) -> String) -> Option<PythonObject> {
    python_name(text).map(|(file, name)| PythonObject { file: join(file), name: name.into() })
}

/// The model of a device.
pub(crate) fn spec(device: &View<'_>) -> Result<ModelSpec, Error> {
    let own = DEVICE.keys();
    let further = || device.entries().filter(|(name, _)| own.iter().all(|key| key.name != *name));
    let said = device.at("model");
    let text = device.node.as_table().map_or("", |table| (&DEVICE as &dyn Keys).model(table));
    if let Some(file) = library(text) {
        let parameters = further().map(|(name, view)| Ok((name.to_owned(), parameter(&view)?)));
        let parameters = parameters.collect::<Result<_, Error>>()?;
        return Ok(ModelSpec::Library(LibrarySpec { file: said.beside(file), parameters }));
    }
    if let Some(file) = core(text) {
        return rtl(said.beside(file), further());
    }
    if let Some(object) = python_object(text, |path| said.beside(path)) {
        let parameters = further().map(|(name, view)| (name.to_owned(), json(&view.node.value))).collect();
        return Ok(ModelSpec::Python { object, parameters });
    }
    match MODELS.iter().find(|model| model.name == text) {
        Some(model) => (model.read)(device),
        None => Err(said.error(format!("\"{text}\" is not {}", MODEL.what))),
    }
}

/// The direction in which a ring moves its data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// To the host.
    Receive,
    /// From it.
    Transmit,
}

/// The direction in which a NIC moves frames.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ways {
    /// To the host.
    Receive,
    /// From it.
    Transmit,
    /// Both: what is sent comes back.
    LoopBack,
}

impl Ways {
    /// True for each if the driver sends frames, and if frames are received.
    fn both(self) -> (bool, bool) {
        match self {
            Self::Receive => (false, true),
            Self::Transmit => (true, false),
            Self::LoopBack => (true, true),
        }
    }
}

choices! {
    Way { "receive" => Self::Receive, "transmit" => Self::Transmit, }
    Ways { "receive" => Self::Receive, "transmit" => Self::Transmit, "loop-back" => Self::LoopBack, }
}

fn rtl<'a>(file: String, keys: impl Iterator<Item = (&'a str, View<'a>)>) -> Result<ModelSpec, Error> {
    let mut spec = RtlSpec { file, parameters: BTreeMap::new(), waveform: None };
    for (name, view) in keys {
        let text = match &view.node.value {
            Value::String(text) if name == "waveform" => {
                spec.waveform = Some(view.beside(text));
                continue;
            }
            Value::String(text) if let Some(hertz) = hertz(text) => hertz.to_string(),
            _ => parameter(&view)?,
        };
        spec.parameters.insert(name.to_owned(), text);
    }
    Ok(ModelSpec::Rtl(spec))
}

/// The parameter of a library as it is told of it.
fn parameter(view: &View<'_>) -> Result<String, Error> {
    Ok(match &view.node.value {
        Value::String(text) if !text.contains('\n') => text.clone(),
        Value::Integer(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Boolean(b) => u8::from(*b).to_string(),
        _ => {
            let problem = Problem::new("a library takes no parameter of this kind");
            return Err(view.problem(problem.hint("use a number, a line of text, true or false")));
        }
    })
}

/// `62.5MHz` in whole hertz; `None` for what is no frequency.
fn hertz(text: &str) -> Option<u64> {
    let text = text.strip_suffix("Hz")?;
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let scale = match unit.trim() {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    let hertz = text[..text.len() - unit.len()].parse::<f64>().ok()? * scale;
    ((1.0..1e15).contains(&hertz) && hertz.fract() == 0.0).then_some(hertz as u64)
}

/// Bytes that descriptors of 32 bits can say.
fn transfer(view: &View<'_>) -> Result<u32, Error> {
    let size = view.bytes()?;
    u32::try_from(size).ok().filter(|bytes| *bytes > 0).ok_or_else(|| {
        view.problem(Problem::new(format!("a transfer of {size} B is not supported")).hint("use 1B to 4GiB"))
    })
}

/// Bytes of an Ethernet frame.
fn frame(view: &View<'_>) -> Result<u32, Error> {
    let size = view.bytes()?;
    u32::try_from(size).ok().filter(|bytes| (60..=1514).contains(bytes)).ok_or_else(|| {
        view.problem(Problem::new(format!("a frame of {size} B is not supported")).hint("use 60B to 1514B"))
    })
}

/// Bytes of a card's memory.
fn memory(view: &View<'_>) -> Result<u64, Error> {
    let size = view.bytes()?;
    if size.is_power_of_two() && (2 << 20..=2 << 30).contains(&size) {
        return Ok(size);
    }
    let problem = Problem::new(format!("a card memory of {size} B is not supported"));
    Err(view.problem(problem.hint("use a power of two from 2MiB to 2GiB")))
}

/// Bytes of a BAR.
pub(crate) fn bar(view: &View<'_>) -> Result<u64, Error> {
    let size = view.bytes()?;
    if size.is_power_of_two() && (1 << 12..=1 << 30).contains(&size) {
        return Ok(size);
    }
    Err(view.problem(
        Problem::new(format!("a BAR of {size} B is not supported"))
            .hint("use a power of two from 4KiB to 1GiB"),
    ))
}

/// A TOML value as JSON, for models that read their own parameters.
fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(n) => (*n).into(),
        Value::Float(x) => (*x).into(),
        Value::Boolean(b) => (*b).into(),
        Value::Datetime => serde_json::Value::Null,
        Value::Array(items) => items.iter().map(|item| json(&item.value)).collect(),
        Value::Table(table) => {
            table.iter().map(|(key, entry)| (key.clone(), json(&entry.node.value))).collect()
        }
    }
}
