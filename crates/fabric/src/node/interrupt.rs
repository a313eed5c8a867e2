//! Message signalled interrupts on their way from functions to the host, and accesses to the memory of MSI-X.

use crate::kernel::ids::NodeId;
use crate::node::initiator::{Operation, OperationKind};
use crate::sim::Fabric;
use tlplab_cfgspace::interrupt::{raise, take_pending};
use tlplab_cfgspace::{InterruptMode, MessageWrite, Signal};
use tlplab_transaction::Payload;

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
        let Some(data) = data else { return msix.read(bar, offset, bytes).into() };
        msix.write(bar, offset, data.bytes().unwrap_or(&[]));
        self.interrupts_changed(node);
        Payload::EMPTY
    }
}
