//! The registers of BAR 0 (NVMe 1.4 §3.1), and the fields of those that have some.

use super::config::NvmeConfig;
use crate::kit::{Field, RegisterFile};

/// Bytes of BAR 0.
pub const BYTES: u64 = 16 << 10;

crate::registers! {
    /// Controller capabilities, read-only.
    pub CAP: u64 = 0x00, ro;
    /// Version, read-only.
    pub VS: u32 = 0x08, ro.reset(VERSION as u64);
    /// Interrupt mask set: ones mask vectors of MSI and INTx.
    pub INTMS: u32 = 0x0C, ro;
    /// Interrupt mask clear: ones unmask.
    pub INTMC: u32 = 0x10, ro;
    /// Controller configuration.
    pub CC: u32 = 0x14, rw.masked(0x00FF_FFF1);
    /// Controller status, read-only: ready in bit 0, fatal in bit 1, shutdown in bits 3:2.
    pub CSTS: u32 = 0x1C, ro;
    /// Admin queue attributes: entries of the submission queue less 1 in bits 11:0, of the completion queue in bits 27:16.
    pub AQA: u32 = 0x24, rw.masked(0x0FFF_0FFF);
    /// Address of the admin submission queue.
    pub ASQ: u64 = 0x28, rw.masked(!0xFFF);
    /// Address of the admin completion queue.
    pub ACQ: u64 = 0x30, rw.masked(!0xFFF);
}

/// The first doorbell. Each queue pair has two of 32 bits: the tail of the submission queue, the head of the completion queue.
pub const DOORBELLS: u64 = 0x1000;

/// NVMe 1.4.
pub(super) const VERSION: u32 = 0x0001_0400;
/// The largest memory page size that the host may choose: 2^(12 + this) bytes.
pub(super) const MPS_MAX: u32 = 4;

/// CC: enabled.
pub(super) const ENABLED: Field = CC.bits(0, 0);
/// CC: the I/O command set; 0 is that of NVM.
pub(super) const COMMAND_SET: Field = CC.bits(6, 4);
/// CC: a memory page has 2^(12 + this) bytes.
pub(super) const PAGE: Field = CC.bits(10, 7);
/// CC: arbitration; 0 is round robin.
pub(super) const ARBITRATION: Field = CC.bits(13, 11);
/// CC: software asks for a shutdown, normal (1) or abrupt (2).
pub(super) const SHUTDOWN_WANTED: Field = CC.bits(15, 14);
/// CC: an entry of a submission queue has 2^this bytes; 6 is the only possibility.
pub(super) const SUBMISSION_ENTRY: Field = CC.bits(19, 16);
/// CC: an entry of a completion queue has 2^this bytes; 4 is the only possibility.
pub(super) const COMPLETION_ENTRY: Field = CC.bits(23, 20);

/// CSTS: ready.
pub(super) const READY: Field = CSTS.bits(0, 0);
/// CSTS: the controller cannot go on.
pub(super) const FATAL: Field = CSTS.bits(1, 1);
/// CSTS: nothing (0), [`SHUTTING_DOWN`] or [`SHUT_DOWN`].
pub(super) const SHUTDOWN: Field = CSTS.bits(3, 2);
/// Of [`SHUTDOWN`]: it is under way.
pub(super) const SHUTTING_DOWN: u32 = 1;
/// Of [`SHUTDOWN`]: it is over.
pub(super) const SHUT_DOWN: u32 = 2;

/// The registers after a reset.
pub(super) fn registers(config: &NvmeConfig) -> RegisterFile {
    let mut file = RegisterFile::new(TABLE);
    file.set(CAP, config.capabilities());
    file
}
