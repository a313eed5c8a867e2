//! The registers of BAR 0 (NVMe 1.4 §3.1), and what the writable ones hold.

/// Bytes of BAR 0.
pub const BYTES: u64 = 16 << 10;
/// Controller capabilities, 64 bits, read-only.
pub const CAP: u64 = 0x00;
/// Version, read-only.
pub const VS: u64 = 0x08;
/// Interrupt mask set: ones mask vectors of MSI and INTx.
pub const INTMS: u64 = 0x0C;
/// Interrupt mask clear: ones unmask.
pub const INTMC: u64 = 0x10;
/// Controller configuration; `Configuration` reads it.
pub const CC: u64 = 0x14;
/// Controller status, read-only: ready in bit 0, fatal in bit 1, shutdown in bits 3:2.
pub const CSTS: u64 = 0x1C;
/// Admin queue attributes: entries of the submission queue less 1 in bits 11:0, of the completion queue in bits 27:16.
pub const AQA: u64 = 0x24;
/// Address of the admin submission queue, 64 bits.
pub const ASQ: u64 = 0x28;
/// Address of the admin completion queue, 64 bits.
pub const ACQ: u64 = 0x30;
/// The first doorbell. Each queue pair has two of 32 bits: the tail of the submission queue, the head of the completion queue.
pub const DOORBELLS: u64 = 0x1000;

/// NVMe 1.4.
pub(super) const VERSION: u32 = 0x0001_0400;
/// The largest memory page size that the host may choose: 2^(12 + this) bytes.
pub(super) const MPS_MAX: u32 = 4;
/// The registers up to here are read as one image.
pub(super) const END: usize = 0x38;

/// CSTS: ready.
pub(super) const READY: u32 = 1 << 0;
/// CSTS: the controller cannot go on.
pub(super) const FATAL: u32 = 1 << 1;
/// CSTS: shutdown is under way.
pub(super) const SHUTTING_DOWN: u32 = 1 << 2;
/// CSTS: shutdown is over.
pub(super) const SHUT_DOWN: u32 = 2 << 2;
/// CSTS: the bits that tell of shutdown.
pub(super) const SHUTDOWN: u32 = 3 << 2;

/// Controller configuration, by field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Configuration(pub(super) u32);

impl Configuration {
    /// The bits that exist; others read as zero.
    const WRITABLE: u32 = 0x00FF_FFF1;

    pub(super) fn written(value: u32) -> Self {
        Self(value & Self::WRITABLE)
    }
    pub(super) fn enabled(self) -> bool {
        self.0 & 1 != 0
    }
    /// The I/O command set is NVM, arbitration is round robin, and the page size is one that the controller has.
    pub(super) fn is_possible(self) -> bool {
        self.0 >> 4 & 7 == 0 && self.0 >> 11 & 7 == 0 && self.0 >> 7 & 0xF <= MPS_MAX
    }
    /// Bytes of a memory page.
    pub(super) fn page(self) -> u64 {
        4096 << (self.0 >> 7 & 0xF).min(MPS_MAX)
    }
    /// Software asks for a shutdown, normal or abrupt.
    pub(super) fn asks_shutdown(self) -> bool {
        matches!(self.0 >> 14 & 3, 1 | 2)
    }
    /// Submission queue entries have the only size there is, 64 B.
    pub(super) fn submission_entries_fit(self) -> bool {
        self.0 >> 16 & 0xF == 6
    }
    /// Completion queue entries have the only size there is, 16 B.
    pub(super) fn completion_entries_fit(self) -> bool {
        self.0 >> 20 & 0xF == 4
    }
}

/// The registers that software writes, and the status.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registers {
    pub(super) configuration: Configuration,
    pub(super) status: u32,
    pub(super) admin_sizes: u32,
    pub(super) admin_submission: u64,
    pub(super) admin_completion: u64,
}

impl Registers {
    /// As software reads them.
    pub(super) fn image(&self, capabilities: u64, mask: u32) -> [u8; END] {
        let mut image = [0; END];
        let mut put =
            |at: u64, bytes: &[u8]| image[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        put(CAP, &capabilities.to_le_bytes());
        put(VS, &VERSION.to_le_bytes());
        put(INTMS, &mask.to_le_bytes());
        put(INTMC, &mask.to_le_bytes());
        put(CC, &self.configuration.0.to_le_bytes());
        put(CSTS, &self.status.to_le_bytes());
        put(AQA, &self.admin_sizes.to_le_bytes());
        put(ASQ, &self.admin_submission.to_le_bytes());
        put(ACQ, &self.admin_completion.to_le_bytes());
        image
    }

    /// A doubleword of the admin queues' registers was written. Takes effect when the controller is next enabled.
    pub(super) fn write_admin(&mut self, offset: u64, value: u32) {
        let low = |long: u64| long & !0xFFFF_FFFF | u64::from(value & !0xFFF);
        let high = |long: u64| long & 0xFFFF_FFFF | u64::from(value) << 32;
        match offset {
            AQA => self.admin_sizes = value & 0x0FFF_0FFF,
            ASQ => self.admin_submission = low(self.admin_submission),
            0x2C => self.admin_submission = high(self.admin_submission),
            ACQ => self.admin_completion = low(self.admin_completion),
            0x34 => self.admin_completion = high(self.admin_completion),
            _ => {}
        }
    }
}
