//! Hot-plug: what a port's registers say of its link and slot, its interrupt, and the software that acts on it.
//!
//! Root ports and downstream ports of switches have slots for hot-plug. A card is present while the physical layer finds somebody at
//! the other end of the link (in-band presence, PCIe 5.0 §7.5.3.11). When the link goes down, what is below it is reset; software hears of
//! it by the slot's interrupt and forgets what was there. When the link is up, it hears again, and configures what it finds, by
//! configuration requests that take their time. Then devices start again, as if they were new.

use super::Software;
use crate::kernel::ids::PortId;
use crate::node::hardware::Hardware;
use tlplab_units::Bdf;

impl Software {
    /// The interrupt of a port has reached software.
    pub(crate) fn slot_interrupted(&mut self, hardware: &mut Hardware, port: Bdf) {
        let Some(at) = hardware.find_function(port) else { return };
        if at.node == hardware.cx.host.node && !hardware.function(at).slot_interrupt {
            return; // its registers are next to the processor: it is about something else
        }
        let Some(slot) = hardware.downstream_port(at) else { return };
        let (link, now) = (hardware.cx.links.link(slot), hardware.cx.now());
        if let Some(outage) = hardware.cx.observe.outages.latest(link) {
            outage.heard.get_or_insert(now);
        }
        // It keeps its place: slots that share a wire hear of each other's interrupts, again and again until all are served.
        if !self.jobs.contains(&port) {
            self.jobs.push_back(port);
        }
        self.next_job(hardware);
    }

    /// Software has configured what it found below the slot that it looked after, or everywhere.
    pub(super) fn note_configured(&self, hardware: &mut Hardware, served: Option<Bdf>) {
        let slots = match served {
            Some(bridge) => {
                let at = hardware.find_function(bridge);
                at.and_then(|at| hardware.downstream_port(at)).into_iter().collect()
            }
            None => hardware.nodes.root().ports.clone(),
        };
        for slot in slots {
            for lower in hardware.links_below(hardware.cx.links.peer(slot)) {
                let again = served.is_some() && hardware.cx.links.peer(lower) == slot;
                self.note_configured_below(hardware, lower, again);
            }
        }
    }

    /// The latest outage of a link is over, if there is somebody below it who has an ID and whom software knows; `again`: it may have been before, and the
    /// functions were configured a second time for it.
    fn note_configured_below(&self, hardware: &mut Hardware, lower: PortId, again: bool) {
        let links = &hardware.cx.links;
        let (link, upper) = (links.link(lower), links.peer(lower));
        let has_id = hardware.cx.topology.nodes[hardware.below(lower).index()].id != Bdf(0);
        let active = links.is_active(upper);
        let Some(at) = hardware.bridge_above(upper) else { return };
        let bridge = hardware.function(at).id;
        let known = self.found.as_ref().is_some_and(|found| found.children(Some(bridge)).next().is_some());
        let now = hardware.cx.now();
        let outage = hardware.cx.observe.outages.latest(link);
        if let Some(outage) = outage.filter(|outage| has_id && known && active && outage.up.is_some()) {
            outage.configured = outage.configured.filter(|_| !again).or(Some(now));
        }
    }
}
