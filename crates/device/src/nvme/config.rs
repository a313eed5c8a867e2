//! The configuration of an NVMe controller.

use super::medium::{Medium, SparseMedium};
use super::regs;
use tlplab_units::Duration;

/// A namespace: what `nvme list` shows as a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceConfig {
    /// Its size in bytes, a multiple of 4096.
    pub bytes: u64,
    /// Bytes of a block: 512 or 4096. The Format NVM command changes it.
    pub block: u64,
}

/// The best way to interrupt that the controller offers. It can do all that come after it, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offered {
    /// MSI-X, and MSI and INTx where software prefers them.
    #[default]
    MsiX,
    /// MSI, and INTx.
    Msi,
    /// INTx only.
    Intx,
}

/// The parts and times of an NVMe controller.
///
/// The times by default are those of a well-known emulated drive, FEMU's black-box SSD (github.com/MoatLab/FEMU, `hw/femu/bbssd`): a page of
/// 4 KiB is read in 40 µs and programmed in 200 µs, 8 channels of 8 dies work at once. All else takes no time, and there is no cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvmeConfig {
    /// The namespaces, from number 1 on.
    pub namespaces: Vec<NamespaceConfig>,
    /// I/O queue pairs, 1 to 1023.
    pub queues: u16,
    /// Entries of a queue at most, 2 to 65 536.
    pub entries: u32,
    /// Interrupt vectors of MSI-X, 1 to 2048. Of MSI there are as many, but 32 at most.
    pub vectors: u16,
    /// The kind of its interrupts.
    pub interrupts: Offered,
    /// Bytes of a transfer at most: a power of two, at least 8 KiB, which is the least that the controller can tell (MDTS).
    pub mdts: u64,
    /// From a page's turn on a channel to its data.
    pub read: Duration,
    /// From a page's turn on a channel until it is on the medium.
    pub program: Duration,
    /// Pages that the medium serves at once. Consecutive pages of a namespace are on different channels.
    pub channels: u32,
    /// Bytes of a page of the medium, a power of two, at least 4096.
    pub page: u64,
    /// Bytes of the volatile write cache; 0: there is none.
    pub cache: u64,
    /// From the data of a write being there until they are in the cache, or from a read to its data if they are.
    pub hit: Duration,
    /// Between the beginnings of two pages that the cache writes back by itself; zero: it does so only when it is full or told.
    pub destage: Duration,
    /// The time of the controller for each command before it begins, one command at a time.
    pub command: Duration,
    /// From being enabled to being ready, at most 127 s.
    pub ready: Duration,
    /// Reads and writes of host memory under way at once, at least 1.
    pub outstanding: usize,
    /// Serial number: up to 20 ASCII characters. Two controllers in a machine must differ in it; their other names come from it.
    pub serial: String,
    /// Model: up to 40 ASCII characters.
    pub model: String,
    /// Firmware revision: up to 8 ASCII characters.
    pub firmware: String,
}

impl Default for NvmeConfig {
    /// One namespace of 1 GiB in blocks of 512 B, 64 queues of up to 1024 entries, transfers of up to 512 KiB.
    fn default() -> Self {
        Self {
            namespaces: vec![NamespaceConfig { bytes: 1 << 30, block: 512 }],
            queues: 64,
            entries: 1024,
            vectors: 65,
            interrupts: Offered::MsiX,
            mdts: 512 << 10,
            read: Duration::from_us(40),
            program: Duration::from_us(200),
            channels: 64,
            page: 4096,
            cache: 0,
            hit: Duration::ZERO,
            destage: Duration::ZERO,
            command: Duration::ZERO,
            ready: Duration::ZERO,
            outstanding: 64,
            serial: "TLPLAB0000000001".into(),
            model: "tlplab NVMe controller".into(),
            firmware: "1.0".into(),
        }
    }
}

impl NvmeConfig {
    /// Checks it.
    ///
    /// # Errors
    /// A sentence: what is not, and what would be.
    pub fn check(&self) -> Result<(), String> {
        let text = |what: &str, text: &str, most: usize| match text.len() <= most && text.is_ascii() {
            true => Ok(()),
            false => Err(format!("invalid {what} \"{text}\"; expected at most {most} ASCII characters")),
        };
        text("serial number", &self.serial, 20)?;
        text("model", &self.model, 40)?;
        text("firmware revision", &self.firmware, 8)?;
        let sound = |fine: bool, what: String| if fine { Ok(()) } else { Err(what) };
        let doorbells = (regs::BYTES - regs::DOORBELLS) / 8;
        sound(
            (1..doorbells.min(1024)).contains(&self.queues.into()),
            format!("{} queue pairs; expected 1 to 1023", self.queues),
        )?;
        sound(
            (2..=65_536).contains(&self.entries),
            format!("queues of {} entries; expected 2 to 65536", self.entries),
        )?;
        sound(
            (1..=2048).contains(&self.vectors),
            format!("{} interrupt vectors; expected 1 to 2048", self.vectors),
        )?;
        let mdts = self.mdts.is_power_of_two() && (8 << 10..=1 << 30).contains(&self.mdts);
        sound(
            mdts,
            format!(
                "transfers of {} B at most; expected a power of two from 8KiB (MDTS = 1) to 1GiB",
                self.mdts
            ),
        )?;
        sound(
            self.page.is_power_of_two() && (4096..=1 << 20).contains(&self.page),
            format!("pages of {} B on the medium; expected a power of two from 4KiB to 1MiB", self.page),
        )?;
        sound(
            self.channels > 0 && self.outstanding > 0,
            "channels and outstanding accesses must be at least 1".into(),
        )?;
        sound(
            self.ready.as_fs() <= Duration::from_ms(127_000).as_fs(),
            format!("{} until it is ready; the controller can report at most 127 s", self.ready),
        )?;
        let namespaces = (1..=1024).contains(&self.namespaces.len());
        sound(namespaces, format!("{} namespaces; expected 1 to 1024", self.namespaces.len()))?;
        self.namespaces.iter().try_for_each(NamespaceConfig::check)
    }

    /// A medium in memory for each namespace, with nothing written on it.
    pub fn sparse_media(&self) -> Vec<Box<dyn Medium>> {
        self.namespaces.iter().map(|_| Box::new(SparseMedium::new()) as Box<dyn Medium>).collect()
    }

    /// Controller capabilities (NVMe 1.4 §3.1.1).
    pub(super) fn capabilities(&self) -> u64 {
        let half_seconds = self.ready.as_fs().div_ceil(Duration::from_ms(500).as_fs()).clamp(1, 255);
        let queues_are_contiguous = 1 << 16;
        let commands_of_nvm = 1 << 37;
        u64::from(self.entries - 1)
            | queues_are_contiguous
            | half_seconds << 24
            | commands_of_nvm
            | u64::from(regs::MPS_MAX) << 52
    }
}

impl NamespaceConfig {
    fn check(&self) -> Result<(), String> {
        if !matches!(self.block, 512 | 4096) {
            return Err(format!("blocks of {} B; expected 512 or 4096", self.block));
        }
        if self.bytes == 0 || !self.bytes.is_multiple_of(4096) || self.bytes > 1 << 52 {
            return Err(format!("a namespace of {} B; expected a multiple of 4KiB, up to 4PiB", self.bytes));
        }
        Ok(())
    }
}
