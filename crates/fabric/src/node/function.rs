//! Functions: configuration space, and what reads and writes it.

use crate::kernel::ids::PortId;
use crate::link::context::Context;
use crate::node::answer::Answer;
use crate::observe::registers::{ChangedBy, Registers};
use crate::packet::slab::TlpHandle;
use tlplab_cfgspace::{ConfigSpace, MsixMemory, Written};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Time};
use tlplab_wire::tlp::{CfgTarget, CompletionStatus, Kind};

/// A function of a node.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) space: Registers,
    /// Table and pending bits of MSI-X, if it has that.
    pub(crate) msix: Option<MsixMemory>,
    /// As the last configuration write told it (PCIe 5.0 §2.2.6.2).
    pub(crate) id: Bdf,
    /// Until then it answers configuration requests with Retry Status.
    pub(crate) ready: Time,
    /// Its last error message of each severity, which may be on its way still.
    pub(crate) reports: [Option<TlpHandle>; 3],
    /// Its slot wants an interrupt: the level that was last looked at.
    pub(crate) slot_interrupt: bool,
    /// Its slot wants it to be woken, likewise.
    pub(crate) slot_wakes: bool,
    /// A root port: it shows a power management event, likewise.
    pub(crate) pme_interrupt: bool,
}

impl Function {
    pub(crate) fn new(space: ConfigSpace, id: Bdf, ready: Time) -> Self {
        let msix = MsixMemory::of(&space);
        Self {
            space: Registers::new(space),
            msix,
            id,
            ready,
            reports: [None; 3],
            slot_interrupt: false,
            slot_wakes: false,
            pme_interrupt: false,
        }
    }
}

/// A node with functions.
pub(crate) trait Functions: Answer {
    /// At an end point there is one; at a switch they are its ports; at the root complex 0 is the host bridge, and root ports follow.
    fn function(&mut self, index: usize) -> &mut Function;
    /// A function learns its ID.
    fn set_id(&mut self, cx: &mut Context, index: usize, id: Bdf);
    /// Software has written registers of a function.
    fn obey_registers(&mut self, cx: &mut Context, index: usize, written: Written);

    /// Reads a register, or writes it; a write tells the function its ID (PCIe 5.0 §2.2.6.2).
    fn access(&mut self, cx: &mut Context, index: usize, target: CfgTarget, written: Option<u32>) -> u32 {
        let Some(value) = written else { return self.function(index).space.shown(target.register()) };
        self.set_id(cx, index, target.function());
        let space = self.function(index).space.change(cx.now(), ChangedBy::Write);
        let written = space.write(target.register(), target.enables(), value);
        if written.any() {
            self.obey_registers(cx, index, written);
        }
        0
    }

    /// A configuration request reads or writes a function, which answers.
    fn take_config_request(
        &mut self,
        cx: &mut Context,
        ingress: PortId,
        handle: TlpHandle,
        index: usize,
        target: CfgTarget,
    ) {
        let tlp = cx.tlps.get(handle);
        let shape = tlp.shape;
        let written = match tlp.repr.kind() {
            Kind::CfgWrite { .. } => Some(dword(&tlp.payload)),
            _ => None,
        };
        let answer = if self.function(index).ready > cx.now() {
            Err(CompletionStatus::RetryStatus)
        } else {
            let value = self.access(cx, index, target, written);
            Ok(if written.is_none() { Payload::from(value.to_le_bytes()) } else { Payload::EMPTY })
        };
        cx.release_buffer(ingress, &shape);
        self.answer(cx, ingress, handle, answer);
    }
}

/// The doubleword that a register is written with, or that its read brought.
pub(crate) fn dword(payload: &Payload) -> u32 {
    let mut dword = [0; 4];
    if let Some(bytes) = payload.bytes() {
        let count = bytes.len().min(4);
        dword[..count].copy_from_slice(&bytes[..count]);
    }
    u32::from_le_bytes(dword)
}
