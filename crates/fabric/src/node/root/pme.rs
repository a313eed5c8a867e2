//! Power management events at root ports (PCIe 5.0 §6.1.6).

use super::Root;
use crate::link::context::Context;
use crate::node::bridges::Bridges;
use crate::observe::registers::ChangedBy;
use tlplab_cfgspace::interrupt::raise;
use tlplab_cfgspace::{InterruptMode, Signal};
use tlplab_units::Bdf;

impl Root {
    /// A power management event has come to a root port, which shows one at a time (PCIe 5.0 §7.5.3.14).
    pub(super) fn take_pme(&mut self, cx: &mut Context, index: usize, requester: Bdf) {
        if self.functions[index].space.change(cx.now(), ChangedBy::Hardware).show_pme(requester) {
            self.update_pme(cx, index);
        } else {
            self.pmes.push_back((index, requester));
        }
    }

    /// Software may have cleared the event that a root port shows: the next has its turn.
    pub(super) fn show_next_pme(&mut self, cx: &mut Context, index: usize) {
        if !self.functions[index].space.pme_is_shown()
            && let Some(at) = self.pmes.iter().position(|(port, _)| *port == index)
            && let Some((_, requester)) = self.pmes.remove(at)
        {
            self.update_pme(cx, index);
            self.functions[index].space.change(cx.now(), ChangedBy::Hardware).show_pme(requester);
            let more = self.pmes.iter().find(|(port, _)| *port == index);
            if let Some((_, requester)) = more.copied() {
                self.functions[index].space.change(cx.now(), ChangedBy::Hardware).show_pme(requester);
            }
        }
        self.update_pme(cx, index);
    }

    /// The interrupt of an event is a message when its level rises; as with errors, by MSI only.
    fn update_pme(&mut self, cx: &mut Context, index: usize) {
        let function = &mut self.functions[index];
        let level = function.space.pme_interrupt();
        if level
            && !std::mem::replace(&mut function.pme_interrupt, level)
            && function.space.interrupt_mode() == InterruptMode::Msi
            && let Signal::Write(message) =
                raise(function.space.change(cx.now(), ChangedBy::Hardware), None, 0)
        {
            self.send_port_message(cx, index, message);
        }
        self.functions[index].pme_interrupt = level;
    }
}
