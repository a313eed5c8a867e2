//! The time of transactions that failed, as far as it is known: to where its last TLP came, and waiting for
//! nothing from then on.

use crate::kernel::ids::{FlowId, NodeId, PortId};
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::link::port::Port;
use crate::observe::probe::TransactionRecord;
use crate::observe::sample::{Sample, Sampled};
use crate::packet::attribution::{Cause, Ledger};
use crate::packet::slab::TlpHandle;
use crate::packet::transactions::{Ending, TransactionRef, data_bytes};
use tlplab_units::Time;

impl Context {
    /// A place lets go of a TLP.
    pub(crate) fn drop_tlp(&mut self, tlp: TlpHandle) {
        if let Some((transaction, awaited)) = self.tlps.release(tlp) {
            self.forget_tlp(tlp, transaction, awaited, None);
        }
    }

    /// The same of the transmitter `port`, whose link is down.
    pub(crate) fn lose_tlp(&mut self, port: PortId, tlp: TlpHandle) {
        if let Some((transaction, awaited)) = self.tlps.release(tlp) {
            self.forget_tlp(tlp, transaction, awaited, Some(port));
        }
    }

    /// A transaction ends; `last` is the TLP that brought its last byte.
    pub(crate) fn end_transaction(
        &mut self,
        transaction: TransactionRef,
        last: Option<TlpHandle>,
        ending: Ending,
    ) {
        let now = self.kernel.now();
        let known = last
            .map(|tlp| (tlp, self.tlps.get(tlp)))
            // A completion that came too late for an earlier request may have had its tag: its history is another's.
            .filter(|(_, tlp)| tlp.tracked && tlp.transaction == Some(transaction))
            .filter(|(_, tlp)| ending == Ending::Done || tlp.ledger.charged() == now);
        let known = known.map(|(tlp, _)| tlp);
        let trail = if known.is_none() { self.trail(transaction) } else { Ledger::default() };
        let ledger = known.map_or(&trail, |tlp| &self.tlps.get(tlp).ledger);
        debug_assert_eq!(ledger.charged(), now, "the causes sum to the latency");
        let record = self.transactions.get(transaction);
        let flow = &mut self.observe.flows[record.flow.index()];
        let latency = now - record.started;
        self.observe.counts.ended += 1;
        let of = record.flow;
        if now >= self.observe.warmup {
            if ending == Ending::Done {
                flow.ended(latency, ledger);
                if let Some(slot) = self.observe.samples.offer() {
                    let id = known.map(|tlp| self.tlps.get(tlp).repr.transaction_id());
                    let of = Sampled::new(record, id, self.topology.nodes[record.node.index()].id);
                    self.observe.samples.keep(slot, Sample::new(of, record.started, latency, ledger));
                }
            } else {
                flow.failed(ending, latency, ledger);
            }
        }
        if let Some(probe) = &mut self.observe.probe {
            probe.transaction(&TransactionRecord {
                number: record.number,
                flow: record.flow,
                read: record.read,
                address: record.address,
                bytes: record.bytes,
                start: record.started,
                end: now,
                ending,
                intervals: ledger.intervals(),
            });
        }
        self.close_transaction(transaction, of);
    }

    /// A transaction begins, as [`Transactions::open`](crate::packet::transactions::Transactions::open) tells.
    pub(crate) fn open_transaction(
        &mut self,
        node: NodeId,
        flow: FlowId,
        started: Time,
        read: bool,
        address: u64,
        bytes: u64,
    ) -> TransactionRef {
        self.observe.one_more(self.kernel.now(), flow);
        self.transactions.open(node, flow, started, read, address, bytes)
    }

    /// Nothing is left of a transaction.
    pub(crate) fn close_transaction(&mut self, transaction: TransactionRef, flow: FlowId) {
        self.observe.one_less(self.kernel.now(), flow);
        self.transactions.close(transaction);
    }

    /// A TLP is gone, of whose transaction something is to be known: it keeps where the time went until now. `port`: because this port's
    /// link is down.
    #[cold]
    pub(crate) fn forget_tlp(
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
        let now = self.kernel.now();
        let mut ledger = std::mem::take(&mut self.tlps.get_mut(tlp).ledger);
        ledger.cut(now);
        if let Some(port) = port {
            ledger.charge(now, Port::place(port), Cause::LinkDown);
        }
        self.transactions.get(transaction).gone = Some(ledger);
        if awaited {
            self.lose_posted(transaction);
        }
    }

    /// Ends the wait of TLPs for `port`, which they will not leave by.
    pub(crate) fn end_waits(&mut self, port: PortId) {
        let waiting: Vec<Waiting> = self.links.ports[port.index()].egress.all().copied().collect();
        waiting.iter().for_each(|entry| self.charge_wait(port, entry));
    }

    /// Charges the wait of a TLP that stands in the queue of `port`, or is about to.
    pub(crate) fn charge_wait(&mut self, port: PortId, entry: &Waiting) {
        let (now, class) = (self.kernel.now(), entry.shape.class.index());
        let tlp = self.tlps.get_mut(entry.tlp);
        if tlp.tracked && !entry.nullified {
            let partition = &mut self.links.ports[port.index()].partition;
            tlp.ledger.waited(partition, class, now, Port::place(port));
        }
    }

    /// The critical path of a transaction that ends now without a TLP that says so: that of the TLP of it that is furthest, then nothing.
    #[cold]
    pub(crate) fn trail(&mut self, transaction: TransactionRef) -> Ledger {
        let node = self.transactions.get(transaction).node;
        let (now, place) = (self.kernel.now(), self.place_of(node));
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
            if let Some(index) = self.links.ports.iter().position(holds) {
                let waits_at = PortId(index as u16);
                trail.waited(&mut self.links.ports[index].partition, class, now, Port::place(waits_at));
            }
        }
        trail.cut(now);
        trail.charge(now, place, Cause::NoAnswer);
        trail
    }

    /// The time of a transaction before its first TLP: the processing of its owner, until the requester had it.
    fn before_its_tlps(&mut self, transaction: TransactionRef) -> Ledger {
        let record = self.transactions.get(transaction);
        let (node, started, submitted) = (record.node, record.started, record.submitted);
        let stages = if node == self.host.node { self.host.processor_stages } else { [None; 2] };
        let mut ledger = Ledger::default();
        ledger.open(started);
        ledger.submitted(submitted, stages, self.place_of(node));
        ledger
    }

    /// Payload has arrived by a port: it is counted in the time that it takes the wire, in which no link carries more than it can.
    pub(crate) fn payload_arrived(&mut self, ingress: PortId, flow: FlowId, bytes: u64) {
        let on_wire = self.links.time_on_wire(ingress, bytes as u32);
        self.observe.payload_arrived(self.kernel.now(), flow, bytes, on_wire);
    }

    /// The data of a deferrable write are where they should be. A copy that a fault made of it belongs to no transaction, and is not counted.
    pub(crate) fn deferrable_data_arrived(&mut self, ingress: PortId, request: TlpHandle) {
        let tlp = self.tlps.get(request);
        if tlp.transaction.is_some() {
            let (flow, bytes) = (tlp.flow, data_bytes(&tlp.repr));
            self.payload_arrived(ingress, flow, bytes);
        }
    }

    /// The data of a posted request are where they should be.
    pub(crate) fn complete_posted(&mut self, ingress: PortId, handle: TlpHandle) {
        let tlp = self.tlps.get_mut(handle);
        if !std::mem::take(&mut tlp.awaited) {
            return;
        }
        let Some(transaction) = tlp.transaction else { return };
        let (flow, bytes) = (tlp.flow, data_bytes(&tlp.repr));
        self.payload_arrived(ingress, flow, bytes);
        self.settle_posted(transaction, Some(handle));
    }

    /// The data of a posted request came, but are no good.
    pub(crate) fn fail_posted(&mut self, handle: TlpHandle, ending: Ending) {
        let tlp = self.tlps.get_mut(handle);
        if std::mem::take(&mut tlp.awaited)
            && let Some(transaction) = tlp.transaction
        {
            self.transactions.get(transaction).ending = ending;
            self.settle_posted(transaction, Some(handle));
        }
    }

    /// A posted request was lost.
    pub(crate) fn lose_posted(&mut self, transaction: TransactionRef) {
        self.transactions.get(transaction).ending = Ending::Lost;
        self.settle_posted(transaction, None);
    }

    fn settle_posted(&mut self, transaction: TransactionRef, handle: Option<TlpHandle>) {
        let record = self.transactions.get(transaction);
        record.pending -= 1;
        if record.pending == 0 && !record.issuing {
            let ending = record.ending;
            self.end_transaction(transaction, handle, ending);
        }
    }
}
