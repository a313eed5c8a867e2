//! The keys of the model `nvme`.

use crate::choices::{choice, choices};
use crate::error::{Error, Problem};
use crate::keys::{Key, Kind, key};
use crate::view::View;
use tlplab_device::nvme::{NamespaceConfig, NvmeConfig, Offered};
use tlplab_units::Duration;

const fn count(
    name: &'static str,
    range: (i64, i64),
    default: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, kind: Kind::Integer { min: range.0, max: range.1 }, default, example, doc }
}

pub(crate) static KEYS: &[Key] = &[
    key("size", Kind::Size, r#""1GiB""#, r#""16MiB""#, "Size of its namespace, a multiple of 4KiB."),
    key(
        "block",
        Kind::SizeOf { what: "a logical block", bytes: &[512, 4096] },
        r#""512B""#,
        r#""4KiB""#,
        "Size of a logical block; software can change it by a format.",
    ),
    key(
        "file",
        Kind::Text,
        "",
        r#""disk.img""#,
        "The file that holds the data, from its first block on; without one they are in memory and begin as zeros.",
    ),
    count("queues", (1, 1023), "64", "4", "Pairs of I/O queues."),
    count("entries", (2, 65_536), "1024", "64", "Entries of a queue at most."),
    count("vectors", (1, 2048), "65", "5", "Interrupt vectors of MSI-X; of MSI as many, but 32 at most."),
    key(
        "interrupts",
        choice::<Offered>(),
        r#""msix""#,
        r#""intx""#,
        "The best way to interrupt that it offers: msix with all others, msi with intx, or intx alone.",
    ),
    key(
        "mdts",
        Kind::Size,
        r#""512KiB""#,
        r#""8KiB""#,
        "Size of a transfer at most, a power of two from 8KiB to 1GiB; the controller cannot tell of less.",
    ),
    key("read", Kind::Time, r#""40us""#, r#""5us""#, "What a channel takes to read a page."),
    key("program", Kind::Time, r#""200us""#, r#""20us""#, "What a channel takes to program a page."),
    count(
        "channels",
        (1, 65_536),
        "64",
        "8",
        "Pages that are read or programmed at once. Consecutive pages are on different channels.",
    ),
    key("page", Kind::Size, r#""4KiB""#, r#""16KiB""#, "Size of a page, a power of two from 4KiB to 1MiB."),
    key(
        "cache",
        Kind::Size,
        r#""0B""#,
        r#""1MiB""#,
        "Size of the volatile write cache; what is in it is lost with power. 0B: there is none.",
    ),
    key(
        "hit",
        Kind::Time,
        r#""0s""#,
        r#""1us""#,
        "From the data of a write to their being in the cache, and from a read to its data if they are there.",
    ),
    key(
        "destage",
        Kind::Time,
        r#""0s""#,
        r#""100us""#,
        "Between the beginnings of two pages that the cache writes back by itself; 0s: only when it is full or flushed.",
    ),
    key(
        "command",
        Kind::Time,
        r#""0s""#,
        r#""1us""#,
        "What the controller is busy with each command before it begins, one after the other.",
    ),
    key(
        "startup",
        Kind::Time,
        r#""0s""#,
        r#""10ms""#,
        "From being enabled by software to being ready for commands, at most 127s.",
    ),
    count("outstanding", (1, 65_536), "64", "8", "Reads and writes of host memory under way at once."),
];

choices! {
    Offered { "msix" => Self::MsiX, "msi" => Self::Msi, "intx" => Self::Intx, }
}

/// An NVMe controller, and where its data are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvmeSpec {
    /// What it is made of. Its serial number follows from the device's name.
    pub config: NvmeConfig,
    /// The file that holds the data of its namespace; see [`Inputs::media`](crate::run::Inputs::media).
    pub file: Option<String>,
}

/// What the keys of a device say.
pub(crate) fn spec(
    device: &View<'_>,
    join: &dyn Fn(Option<&View<'_>>, &str) -> String,
) -> Result<NvmeSpec, Error> {
    let duration = |key: &str| device.duration(key).unwrap_or(Duration::ZERO);
    let integer = |key: &str| device.integer(key).unwrap_or_default();
    let size = |key: &str| device.size(key).unwrap_or_default();
    let config = NvmeConfig {
        namespaces: vec![NamespaceConfig { bytes: size("size"), block: size("block") }],
        queues: integer("queues") as u16,
        entries: integer("entries") as u32,
        vectors: integer("vectors") as u16,
        interrupts: device.choice("interrupts")?.unwrap_or_default(),
        mdts: size("mdts"),
        read: duration("read"),
        program: duration("program"),
        channels: integer("channels") as u32,
        page: size("page"),
        cache: size("cache"),
        hit: duration("hit"),
        destage: duration("destage"),
        command: duration("command"),
        ready: duration("startup"),
        outstanding: integer("outstanding") as usize,
        ..NvmeConfig::default()
    };
    config.check().map_err(|problem| {
        device.get("model").unwrap_or_else(|| device.clone()).problem(Problem::new(problem))
    })?;
    let file = device.get("file").map(|view| join(Some(&view), device.text_of("file").unwrap_or_default()));
    Ok(NvmeSpec { config, file })
}

/// The serial number of a device: its name's FNV-1a hash, so that no two in a machine are likely to share it.
pub(crate) fn serial(name: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    format!("TLP{:016X}", name.bytes().fold(0xCBF2_9CE4_8422_2325, step))
}
