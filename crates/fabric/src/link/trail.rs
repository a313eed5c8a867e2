//! Where the time went of transactions that did not end well, as far as that is known: to where its last TLP came, and waiting for
//! nothing from then on.

use crate::kernel::ids::PortId;
use crate::link::egress::Waiting;
use crate::link::port::Port;
use crate::packet::attribution::{Cause, Ledger};
use crate::packet::slab::TlpHandle;
use crate::packet::transactions::TransactionRef;
use crate::sim::Fabric;

impl Fabric {
    /// A TLP is gone, of whose transaction something is to be known: it keeps where the time went until now. `port`: because this port's
    /// link is down.
    #[cold]
    pub(crate) fn tlp_gone(
        &mut self,
        tlp: TlpHandle,
        transaction: TransactionRef,
        awaited: bool,
        port: Option<PortId>,
    ) {
        // It ended before: a completion that came too late, or the last one, which ended it.
        if self.transactions.number(transaction).is_none() {
            return;
        }
        let now = self.now;
        let mut ledger = std::mem::take(&mut self.tlps.get_mut(tlp).ledger);
        ledger.cut(now);
        if let Some(port) = port {
            ledger.charge(now, Port::place(port), Cause::LinkDown);
        }
        self.transactions.get(transaction).gone = Some(ledger);
        if awaited {
            self.posted_lost(transaction);
        }
    }

    /// What waits for `port` will not leave by it: its wait is over.
    pub(crate) fn waits_in_vain(&mut self, port: PortId) {
        let waiting: Vec<Waiting> = self.ports[port.index()].egress.all().copied().collect();
        waiting.iter().for_each(|entry| self.charge_wait(port, entry));
    }

    /// Charges the wait of a TLP that stands in the queue of `port`, or is about to.
    pub(crate) fn charge_wait(&mut self, port: PortId, entry: &Waiting) {
        let (now, class) = (self.now, entry.shape.class.index());
        let tlp = self.tlps.get_mut(entry.tlp);
        if tlp.tracked && !entry.nullified {
            let partition = &mut self.ports[port.index()].partition;
            tlp.ledger.waited(partition, class, now, Port::place(port));
        }
    }

    /// The critical path of a transaction that ends now without a TLP that says so: that of the TLP of it that is furthest, then nothing.
    #[cold]
    pub(crate) fn trail(&mut self, transaction: TransactionRef) -> Ledger {
        let node = self.transactions.get(transaction).node;
        let (now, place) = (self.now, self.place_of(node));
        let gone = self.transactions.get(transaction).gone.take();
        let mut trail = gone.unwrap_or_else(|| self.before_its_tlps(transaction));
        let of_it =
            self.tlps.all_mut().filter(|(_, tlp)| tlp.tracked && tlp.transaction == Some(transaction));
        let furthest = of_it.max_by_key(|(handle, tlp)| (tlp.ledger.charged(), *handle));
        if let Some((handle, tlp)) = furthest
            && tlp.ledger.charged() >= trail.charged()
        {
            trail.copy_from(&tlp.ledger);
            trail.cut(now);
            let class = tlp.shape.class.index();
            let holds = |port: &Port| port.egress.all().any(|waiting| waiting.tlp == handle);
            if let Some(index) = self.ports.iter().position(holds) {
                let waits_at = PortId(index as u16);
                trail.waited(&mut self.ports[index].partition, class, now, Port::place(waits_at));
            }
        }
        trail.cut(now);
        trail.charge(now, place, Cause::NoAnswer);
        trail
    }

    /// What is known of a transaction before its first TLP: what its owner took, until the requester had it.
    fn before_its_tlps(&mut self, transaction: TransactionRef) -> Ledger {
        let record = self.transactions.get(transaction);
        let (node, started, submitted) = (record.node, record.started, record.submitted);
        let stages = if node == self.root_node { self.root().path.of_processor() } else { [None; 2] };
        let mut ledger = Ledger::default();
        ledger.open(started);
        ledger.submitted(submitted, stages, self.place_of(node));
        ledger
    }
}
