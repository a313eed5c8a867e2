//! The keys of the model `nvme`.

use crate::choices::{choice, choices};
use crate::error::{Error, Problem};
use crate::keys::Kind;
use crate::section::{Section, Set, row};
use crate::view::View;
use tlplab_device::nvme::{NamespaceConfig, NvmeConfig, Offered};

/// The keys of the model.
pub(crate) static NVME: Section<NvmeSpec> = Section {
    title: "the model nvme",
    extra: None,
    rows: &[
        row(
            ("size", Kind::Size, r#""1GiB""#, r#""16MiB""#),
            "Size of its namespace, a multiple of 4KiB.",
            Set::Bytes(|nvme, it| nvme.namespace().bytes = it),
        ),
        row(
            (
                "block",
                Kind::SizeOf { what: "a logical block", bytes: &[512, 4096] },
                r#""512B""#,
                r#""4KiB""#,
            ),
            "Size of a logical block; software can change it by a format.",
            Set::Read(|nvme, v| v.bytes().map(|it| nvme.namespace().block = it)),
        ),
        row(
            ("file", Kind::Text, "", r#""disk.img""#),
            "The file that holds the data, from its first block on; without one they are in memory and begin as zeros.",
            Set::File(|nvme, it| nvme.file = Some(it)),
        ),
        row(
            ("queues", Kind::Integer { min: 1, max: 1023 }, "64", "4"),
            "Pairs of I/O queues.",
            Set::U16(|nvme, it| nvme.config.queues = it),
        ),
        row(
            ("entries", Kind::Integer { min: 2, max: 65_536 }, "1024", "64"),
            "Entries of a queue at most.",
            Set::U32(|nvme, it| nvme.config.entries = it),
        ),
        row(
            ("vectors", Kind::Integer { min: 1, max: 2048 }, "65", "5"),
            "Interrupt vectors of MSI-X; of MSI as many, but 32 at most.",
            Set::U16(|nvme, it| nvme.config.vectors = it),
        ),
        row(
            ("interrupts", choice::<Offered>(), r#""msix""#, r#""intx""#),
            "The best way to interrupt that it offers: msix with all others, msi with intx, or intx alone.",
            Set::Read(|nvme, v| v.chosen().map(|it| nvme.config.interrupts = it)),
        ),
        row(
            ("mdts", Kind::Size, r#""512KiB""#, r#""8KiB""#),
            "Size of a transfer at most, a power of two from 8KiB to 1GiB; the controller cannot report less.",
            Set::Bytes(|nvme, it| nvme.config.mdts = it),
        ),
        row(
            ("read", Kind::Time, r#""40us""#, r#""5us""#),
            "Time of a channel to read a page.",
            Set::Time(|nvme, it| nvme.config.read = it),
        ),
        row(
            ("program", Kind::Time, r#""200us""#, r#""20us""#),
            "Time of a channel to program a page.",
            Set::Time(|nvme, it| nvme.config.program = it),
        ),
        row(
            ("channels", Kind::Integer { min: 1, max: 65_536 }, "64", "8"),
            "Pages that are read or programmed at once. Consecutive pages are on different channels.",
            Set::U32(|nvme, it| nvme.config.channels = it),
        ),
        row(
            ("page", Kind::Size, r#""4KiB""#, r#""16KiB""#),
            "Size of a page, a power of two from 4KiB to 1MiB.",
            Set::Bytes(|nvme, it| nvme.config.page = it),
        ),
        row(
            ("cache", Kind::Size, r#""0B""#, r#""1MiB""#),
            "Size of the volatile write cache, whose content is lost with power. 0B: there is none.",
            Set::Bytes(|nvme, it| nvme.config.cache = it),
        ),
        row(
            ("hit", Kind::Time, r#""0s""#, r#""1us""#),
            "From the data of a write to their being in the cache, and from a read to its data if they are there.",
            Set::Time(|nvme, it| nvme.config.hit = it),
        ),
        row(
            ("destage", Kind::Time, r#""0s""#, r#""100us""#),
            "Interval between two pages that the cache writes back in the background; 0s: only when it is full or flushed.",
            Set::Time(|nvme, it| nvme.config.destage = it),
        ),
        row(
            ("command", Kind::Time, r#""0s""#, r#""1us""#),
            "Time of the controller for each command before it begins, one after the other.",
            Set::Time(|nvme, it| nvme.config.command = it),
        ),
        row(
            ("startup", Kind::Time, r#""0s""#, r#""10ms""#),
            "From being enabled by software to being ready for commands, at most 127s.",
            Set::Time(|nvme, it| nvme.config.ready = it),
        ),
        row(
            ("outstanding", Kind::Integer { min: 1, max: 65_536 }, "64", "8"),
            "Reads and writes of host memory under way at once.",
            Set::U32(|nvme, it| nvme.config.outstanding = it as usize),
        ),
    ],
};

choices! {
    Offered { "msix" => Self::MsiX, "msi" => Self::Msi, "intx" => Self::Intx, }
}

/// An NVMe controller, and where its data are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvmeSpec {
    /// Its configuration. Its serial number follows from the device's name.
    pub config: NvmeConfig,
    /// The file that holds the data of its namespace; see [`Inputs::media`](crate::run::Inputs::media).
    pub file: Option<String>,
}

impl NvmeSpec {
    /// The one that keys speak of.
    fn namespace(&mut self) -> &mut NamespaceConfig {
        &mut self.config.namespaces[0]
    }
}

/// Reads the keys of a device.
pub(crate) fn spec(device: &View<'_>) -> Result<NvmeSpec, Error> {
    let spec = NVME.read_into(device, NvmeSpec { config: NvmeConfig::default(), file: None })?;
    spec.config.check().map_err(|problem| device.at("model").problem(Problem::new(problem)))?;
    Ok(spec)
}

/// The serial number of a device: its name's FNV-1a hash, so that no two in a machine are likely to share it.
pub(crate) fn serial(name: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    format!("TLP{:016X}", name.bytes().fold(0xCBF2_9CE4_8422_2325, step))
}
