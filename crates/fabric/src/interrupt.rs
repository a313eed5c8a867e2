//! Message signalled interrupts on their way from functions to the host, and the memory of MSI-X.

use crate::ids::NodeId;
use crate::initiator::{Operation, OperationKind};
use crate::sim::Fabric;
use tlplab_config::interrupt::{raise, take_pending};
use tlplab_config::{ConfigSpace, InterruptMode, MessageWrite, MsiX, MsixTable, Signal};
use tlplab_transaction::Payload;

/// The table and the pending bits, and where in the function's BARs they are.
pub(crate) struct MsixMemory {
    place: MsiX,
    table: MsixTable,
}

/// A part of it, and a byte offset there.
enum Part {
    Table(u32),
    Pending(u32),
}

impl MsixMemory {
    /// As after a reset; `None` without MSI-X.
    pub(crate) fn of(space: &ConfigSpace) -> Option<Self> {
        let place = space.msix()?;
        Some(Self { place, table: MsixTable::new(place.vectors) })
    }

    fn part(&self, bar: u8, offset: u64) -> Option<Part> {
        let within = |(in_bar, start): (u8, u32), bytes: u32| {
            let at = u32::try_from(offset).ok()?.checked_sub(start)?;
            (in_bar == bar && at < bytes).then_some(at)
        };
        within(self.place.table, self.table.table_bytes())
            .map(Part::Table)
            .or_else(|| within(self.place.pending, self.table.pending_bytes()).map(Part::Pending))
    }

    /// Is this byte of a BAR its?
    pub(crate) fn claims(&self, bar: u8, offset: u64) -> bool {
        self.part(bar, offset).is_some()
    }

    fn read(&self, bar: u8, offset: u64) -> u32 {
        match self.part(bar, offset) {
            Some(Part::Table(at)) => self.table.read_table(at),
            Some(Part::Pending(at)) => self.table.read_pending(at),
            None => 0,
        }
    }

    fn write(&mut self, bar: u8, offset: u64, value: u32) {
        if let Some(Part::Table(at)) = self.part(bar, offset) {
            self.table.write_table(at, value);
        }
    }
}

impl Fabric {
    /// A device raises a message signalled interrupt.
    pub(crate) fn raise_message(&mut self, node: NodeId, stream: u16, vector: u16) {
        let function = &mut self.end_point(node).function;
        if !matches!(function.space.interrupt_mode(), InterruptMode::MsiX | InterruptMode::Msi) {
            return; // the device sets its level then
        }
        let table = function.msix.as_mut().map(|msix| &mut msix.table);
        let vectors = table.as_ref().map_or(0, |table| table.vectors());
        if function.space.interrupt_mode() == InterruptMode::MsiX && vector >= vectors {
            let wrong =
                format!("raised MSI-X vector {vector}, but it has {vectors}: from 0 to {}", vectors - 1);
            return self.fail(node, wrong);
        }
        if let Signal::Write(message) = raise(&mut function.space, table, vector) {
            self.send_message(node, stream, message);
        }
    }

    fn send_message(&mut self, node: NodeId, stream: u16, message: MessageWrite) {
        let MessageWrite { address, data } = message;
        let kind = OperationKind::Interrupt { address, data: data.to_le_bytes() };
        self.begin(node, Operation { owner: 0, stream, asked: self.now, kind });
    }

    /// Masks may have gone: what was pending goes out.
    pub(crate) fn interrupts_changed(&mut self, node: NodeId) {
        loop {
            let function = &mut self.end_point(node).function;
            let table = function.msix.as_mut().map(|msix| &mut msix.table);
            let Some(message) = take_pending(&mut function.space, table) else { return };
            self.send_message(node, 0, message);
        }
    }

    /// The host reads or writes the memory of MSI-X, in whole doublewords (PCIe 5.0 §6.1.4.2).
    pub(crate) fn msix_access(
        &mut self,
        node: NodeId,
        bar: u8,
        offset: u64,
        bytes: u32,
        data: Option<Payload>,
    ) -> Payload {
        let Some(msix) = &mut self.end_point(node).function.msix else { return Payload::EMPTY };
        let Some(data) = data else {
            let words = (offset & !3..offset + u64::from(bytes)).step_by(4).map(|at| msix.read(bar, at));
            let values: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
            let skip = (offset & 3) as usize;
            return Payload::from(values[skip..skip + bytes as usize].to_vec());
        };
        for (at, word) in (offset..).step_by(4).zip(data.bytes().unwrap_or(&[]).chunks_exact(4)) {
            msix.write(bar, at, u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        }
        self.interrupts_changed(node);
        Payload::EMPTY
    }
}
