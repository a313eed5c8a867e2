//! The transmit side of a port: from the egress queues to the wire.

use crate::config::Tamper;
use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::agenda::Task;
use crate::link::channel::WireTime;
use crate::link::context::Context;
use crate::link::egress::{Choice, Waiting};
use crate::link::fault::tampered_data;
use crate::link::port::{Leaving, Port};
use crate::observe::probe::{TlpRecord, UnitContent, UnitRecord};
use crate::packet::attribution::{Cause, Partition};
use crate::packet::slab::TlpHandle;
use tlplab_datalink::{Blocked, Engine, FlitUnit, LinkLayer, TlpShape, Unit};
use tlplab_transaction::OrderingAttributes;
use tlplab_units::{Duration, FcClass, LinkMode, Time, Vc};
use tlplab_wire::dllp;
use tlplab_wire::tlp::{Kind, Repr};

/// Bytes of a flit that carry DLLP and acknowledgement.
const FLIT_DLP: u32 = 6;
/// Bytes of a flit that are CRC and FEC.
const FLIT_PROTECTION: u32 = 14;

impl Context {
    /// A TLP starts to wait at `egress`.
    pub(crate) fn enqueue_at_egress(&mut self, egress: PortId, source: usize, waiting: Waiting) {
        if self.has_tx_transaction(egress) {
            return self.enter_tx_stage(egress, source, waiting);
        }
        self.start_wait(egress, &waiting);
        self.place_at_egress(egress, source, waiting);
    }

    pub(crate) fn start_wait(&mut self, egress: PortId, waiting: &Waiting) {
        let tlp = self.tlps.get_mut(waiting.tlp);
        if tlp.tracked {
            let partition = &mut self.links.ports[egress.index()].partition;
            tlp.ledger.wait(partition, waiting.shape.class.index(), self.kernel.now());
        }
    }

    /// A TLP that has waited for `egress` before it was made (its operation did) joins the queue.
    pub(crate) fn enqueue_waiting_operation(&mut self, egress: PortId, source: usize, waiting: Waiting) {
        if !self.has_tx_transaction(egress) {
            return self.place_at_egress(egress, source, waiting);
        }
        let (now, class) = (self.kernel.now(), waiting.shape.class.index());
        let tlp = self.tlps.get_mut(waiting.tlp);
        if tlp.tracked {
            let partition = &mut self.links.ports[egress.index()].partition;
            tlp.ledger.waited(partition, class, now, Port::place(egress));
        }
        self.enter_tx_stage(egress, source, waiting);
    }

    /// A TLP that waits joins the queue.
    pub(crate) fn place_at_egress(&mut self, egress: PortId, source: usize, waiting: Waiting) {
        if self.links.ports[egress.index()].discards {
            self.charge_wait(egress, &waiting);
            return self.discard(egress, waiting);
        }
        if self.links.ports[egress.index()].on_bus {
            return self.enqueue_at_bus(egress, source, waiting);
        }
        self.push_to_egress(egress, source, waiting);
        self.try_transmit(egress);
    }

    pub(crate) fn push_to_egress(&mut self, egress: PortId, source: usize, waiting: Waiting) {
        let attributes = OrderingAttributes::of(&self.tlps.get(waiting.tlp).repr);
        self.links.ports[egress.index()].egress.push(source, attributes, waiting);
    }

    /// If the wire is free, sends what may go next: what the data link layer has, or a TLP.
    #[inline]
    pub(crate) fn try_transmit(&mut self, id: PortId) {
        let port = &self.links.ports[id.index()];
        if !port.transmitting && port.wire_up {
            self.transmit_next(id);
        }
    }

    fn transmit_next(&mut self, id: PortId) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        if port.mode == LinkMode::Flit {
            return self.try_transmit_flit(id);
        }
        if let Some(unit) = port.engine.poll_transmit(now) {
            return self.put_on_wire(id, unit);
        }
        if port.lines.is_some() {
            self.take_lines(id);
        }
        let port = &mut self.links.ports[id.index()];
        if port.egress.len() == 0 {
            // Nothing waits, and the data link layer has nothing either.
            if port.partition.is_blocked() {
                self.note_blocked(id, [None; 3]);
            }
            return;
        }
        let engine = &port.engine;
        match port.egress.pick(|shape| engine.admit(shape)) {
            Choice::Send(waiting) => {
                self.send(id, waiting);
                if let Some(unit) = self.links.ports[id.index()].engine.poll_transmit(now) {
                    self.put_on_wire(id, unit);
                }
            }
            Choice::Blocked(reasons) => self.note_blocked(id, reasons),
        }
    }

    /// A flit takes all TLPs that may go, as far as it has room.
    fn try_transmit_flit(&mut self, id: PortId) {
        loop {
            if self.links.ports[id.index()].lines.is_some() {
                self.take_lines(id);
            }
            let port = &mut self.links.ports[id.index()];
            let engine = &port.engine;
            match port.egress.pick(|shape| engine.admit(shape)) {
                Choice::Send(waiting) => self.send(id, waiting),
                Choice::Blocked(reasons) => {
                    self.note_blocked(id, reasons);
                    break;
                }
            }
        }
        let now = self.kernel.now();
        if let Some(unit) = self.links.ports[id.index()].engine.poll_transmit(now) {
            self.put_on_wire(id, unit);
        }
    }

    fn note_blocked(&mut self, id: PortId, reasons: [Option<Blocked>; 3]) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        if reasons == [None; 3] && !port.partition.is_blocked() {
            return;
        }
        for class in FcClass::ALL {
            let cause = match reasons[class.index()] {
                Some(Blocked::Credits) => Cause::CreditWait,
                Some(Blocked::ReplayBuffer) => Cause::ReplayBufferWait,
                Some(Blocked::LinkDown) => Cause::LinkDown,
                // Staging: a flit's worth waits already, and the wire is free: the next poll takes it.
                Some(Blocked::Staging) => continue,
                None => {
                    // Nothing of this class waits here; its requester may be out of tags or translations, which it says itself.
                    if port.partition.is_blocked_at(class.index()) {
                        port.partition.block(now, class.index(), None);
                    }
                    continue;
                }
            };
            port.partition.block(now, class.index(), Some(Partition::slot(cause)));
        }
    }

    fn send(&mut self, id: PortId, waiting: Waiting) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        let class = waiting.shape.class.index();
        let tlp = self.tlps.get_mut(waiting.tlp);
        if tlp.tracked && !waiting.nullified {
            tlp.ledger.waited(&mut port.partition, class, now, Port::place(id));
        }
        port.partition.block(now, class, None);
        if !port.tampering.is_empty()
            && !waiting.nullified
            && let Some((repr, flaw, how)) = port.tampering.strike(&tlp.repr, &tlp.payload)
        {
            (tlp.repr, tlp.flaw) = (repr, flaw.or(tlp.flaw));
            port.counters.damaged += 1;
            match how {
                Tamper::Ones | Tamper::Data { .. } => tlp.payload = tampered_data(&tlp.payload, how),
                Tamper::Twice => return self.send_twice(id, waiting),
                _ => {}
            }
        }
        self.give_to_data_link_layer(id, waiting);
    }

    /// A fault has a TLP come twice: the second one belongs to nobody.
    #[cold]
    fn send_twice(&mut self, id: PortId, waiting: Waiting) {
        let tlp = self.tlps.get(waiting.tlp);
        let (repr, payload, flow) = (tlp.repr, tlp.payload.clone(), tlp.flow);
        let copy = self.tlps.insert(repr, payload, flow);
        self.push_to_egress(id, 0, Waiting { tlp: copy, ingress: None, tail: Time::ZERO, ..waiting });
        self.give_to_data_link_layer(id, waiting);
    }

    fn give_to_data_link_layer(&mut self, id: PortId, waiting: Waiting) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        if let Some(ingress) = waiting.ingress {
            port.leaving.push(Leaving { ingress, shape: waiting.shape, tail: waiting.tail });
        }
        self.leave_port_buffers(id, &waiting);
        self.leave_hold(waiting.tlp);
        let port = &mut self.links.ports[id.index()];
        if waiting.nullified {
            port.engine.send_nullified(now, waiting.tlp, waiting.shape);
        } else {
            port.engine.send(now, waiting.tlp, waiting.shape);
        }
        self.measure_credits(id, waiting.shape.class);
        if waiting.ingress.is_none() && !waiting.nullified {
            self.report_departure(id, waiting.tlp);
        }
    }

    /// Queue and replay buffer of a port, over time.
    pub(crate) fn measure_levels(&mut self, id: PortId) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        let series = &mut port.series;
        self.observe.timeline.set(&mut series.queue, now, port.egress.len() as u64);
        self.observe.timeline.set(
            &mut series.replay_buffer,
            now,
            u64::from(port.engine.replay_occupancy().tlps),
        );
    }

    /// Credits that the peer of a port has given for a class and that are taken, over time.
    pub(crate) fn measure_credits(&mut self, id: PortId, class: FcClass) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        let left = port.engine.credits(Vc::ZERO, class);
        port.series.headers.left(&mut self.observe.timeline, now, class.index(), left.header);
        port.series.data.left(&mut self.observe.timeline, now, class.index(), left.data);
    }

    /// A TLP that was made at the node of `egress` has gone to the data link layer.
    pub(crate) fn report_departure(&mut self, egress: PortId, handle: TlpHandle) {
        let Some(requester) = self.links.ports[egress.index()].requester else { return };
        let tlp = self.tlps.get(handle);
        let node = tlp.maker.unwrap_or(requester);
        if tlp.awaited
            && tlp.last_of_op
            && let Some(transaction) = tlp.transaction
        {
            let record = self.transactions.get(transaction);
            let (owner, op) = (record.owner, record.op);
            self.agenda.push(Task::Over { node, owner, op, result: None });
        }
        self.agenda.pump(node);
    }

    fn put_on_wire(&mut self, id: PortId, mut unit: Unit<TlpHandle>) {
        let now = self.kernel.now();
        let bytes = self.bytes_on_wire(id, &unit);
        let port = &mut self.links.ports[id.index()];
        let wire = port.channel.occupy(now, bytes);
        self.account(id, &unit, bytes, wire);
        self.schedule(wire.ends, EventKind::TransmitDone, u32::from(id.0), wire.ends.as_fs());

        let port = &mut self.links.ports[id.index()];
        port.transmitting = true;
        port.transmits_until = wire.ends;
        let peer = u32::from(port.peer.0);
        let cut_through = port.peer_cuts_through && matches!(&unit, Unit::Tlp(tlp) if !tlp.nullified);
        let header_bytes = match &unit {
            Unit::Tlp(tlp) if cut_through => {
                u64::from(port.header_on_wire(self.tlps.get(tlp.handle).repr.header_bytes()))
            }
            _ => 0,
        };
        // Observers see the unit before its fate is known to anybody else, so the record is made from a copy of the fate.
        let name = match &unit {
            Unit::Tlp(tlp) => Some(self.tlps.get(tlp.handle).repr.name()),
            _ => None,
        };
        let update = update_in(&unit);
        let mut damage = port.channel.strike(&mut unit, name);
        let mut late = Duration::ZERO;
        if port.channel.own.is_some() {
            (damage, late) = self.pass_custom_channel(id, &unit, wire, damage);
        }
        if let Some(sent) = update {
            let is_lost = damage.is_some() || update_in(&unit) != update;
            self.links.ports[id.index()].note_update(sent.class, is_lost);
        }
        let arrives = wire.ends + self.links.ports[id.index()].channel.delay + late;
        self.hash_unit(id, &unit, wire, damage.is_some());
        if self.observe.probe.is_some() {
            self.show(id, &unit, wire, damage.is_some(), late);
        }
        let port = &mut self.links.ports[id.index()];
        port.counters.damaged += u64::from(damage.is_some());
        let tlp = match &unit {
            Unit::Tlp(tlp) => Some((tlp.handle, tlp.nullified)),
            _ => None,
        };
        if !port.channel.launch(unit, wire, damage, late) {
            // Nobody else knows of a nullified copy, nor of what the data link layer does not keep.
            let keeps = port.engine.keeps_until_acked();
            tlp.filter(|(_, nullified)| *nullified || !keeps)
                .into_iter()
                .for_each(|(tlp, _)| self.drop_tlp(tlp));
            return;
        }
        let header_at = wire.starts + port.channel.rate().time_of(header_bytes) + port.channel.delay + late;
        self.schedule(arrives, EventKind::UnitArrived, peer, 0);
        if cut_through && header_at < arrives {
            self.schedule(header_at, EventKind::HeaderArrived, peer, 0);
        }
    }

    /// The bytes of a unit on the wire; on a crossbar its data alone.
    #[inline]
    fn bytes_on_wire(&self, id: PortId, unit: &Unit<TlpHandle>) -> u32 {
        let port = &self.links.ports[id.index()];
        match (&port.engine, unit) {
            (Engine::Direct(_), Unit::Tlp(tlp)) => self.tlps.get(tlp.handle).repr.payload_bytes(),
            (_, Unit::Tlp(_)) => port.whole_words(unit.wire_bytes()),
            _ => unit.wire_bytes(),
        }
    }

    /// Counts a unit of so many bytes on the wire, and notes in the partition the flow that has the wire.
    fn account(&mut self, id: PortId, unit: &Unit<TlpHandle>, bytes: u32, wire: WireTime) {
        let bytes = u64::from(bytes);
        let port = &mut self.links.ports[id.index()];
        let (slot, series) = match unit {
            Unit::Tlp(tlp) if tlp.replay || tlp.nullified => {
                port.counters.replay += bytes;
                port.counters.replayed += u64::from(tlp.replay);
                port.counters.nullified += u64::from(tlp.nullified);
                (Partition::slot(Cause::Replay), Some(port.series.replay))
            }
            Unit::Tlp(unit) => {
                let tlp = self.tlps.get(unit.handle);
                let payload = u64::from(tlp.repr.payload_bytes());
                port.counters.tlps += 1;
                port.counters.payload += payload;
                port.counters.overhead += bytes - payload;
                let middle = wire.ends.min(wire.starts + port.channel.rate().time_of(payload));
                self.observe.timeline.add_span(port.series.payload, wire.starts, middle, 1);
                self.observe.timeline.add_span(port.series.overhead, middle, wire.ends, 1);
                (port.partition.flow_slot(tlp.flow), None)
            }
            Unit::Dllp(dllp) => {
                port.counters.dllp += bytes;
                port.count_dllp(dllp);
                (Partition::slot(Cause::DataLink), Some(port.series.dllp))
            }
            Unit::Flit(flit) => {
                let slot = port.account_flit(flit, |h| {
                    let tlp = self.tlps.get(h);
                    (tlp.flow, tlp.repr.payload_bytes())
                });
                let rate = port.channel.rate();
                let tlps = wire.starts + rate.time_of(u64::from(flit.used));
                let protection = tlps + rate.time_of(u64::from(FLIT_PROTECTION));
                if flit.replay {
                    self.observe.timeline.add_span(port.series.replay, wire.starts, wire.ends, 1);
                } else {
                    // Headers are shown with the payload: which bytes of a flit they are is not kept.
                    self.observe.timeline.add_span(port.series.payload, wire.starts, tlps, 1);
                    self.observe.timeline.add_span(port.series.overhead, tlps, protection, 1);
                    let dllp = rate.time_of(u64::from(FLIT_DLP));
                    self.observe.timeline.add_span(port.series.dllp, protection, protection + dllp, 1);
                }
                (slot, None)
            }
        };
        if let Some(series) = series {
            self.observe.timeline.add_span(series, wire.starts, wire.ends, 1);
        }
        let now = self.kernel.now();
        if wire.starts > now {
            port.partition.occupy_in_turn(now, Partition::slot(Cause::DataLink), wire.starts, slot);
        } else {
            port.partition.occupy(now, slot);
        }
        if !matches!(unit, Unit::Dllp(_)) {
            self.measure_levels(id);
        }
    }

    fn hash_unit(&mut self, id: PortId, unit: &Unit<TlpHandle>, wire: WireTime, bad: bool) {
        let words = match unit {
            Unit::Tlp(unit) => {
                let tlp = self.tlps.get(unit.handle);
                let id = tlp.repr.transaction_id();
                let flags = u64::from(unit.replay) | u64::from(unit.nullified) << 1;
                [
                    u64::from(unit.sequence) << 8 | flags,
                    u64::from(id.requester.0) << 16 | u64::from(id.tag.value()),
                    u64::from(unit.shape.bytes) << 2 | unit.shape.class as u64,
                    where_to(&tlp.repr),
                ]
            }
            Unit::Dllp(repr) => [1 << 62, u64::from(u32::from_be_bytes(repr.content())), 0, 0],
            Unit::Flit(flit) => {
                let ends = flit.ends.iter().map(|end| where_to(&self.tlps.get(end.handle).repr));
                let targets = ends.fold(0u64, |sum, address| sum.rotate_left(7) ^ address);
                [1 << 63 | u64::from(flit.sequence), u64::from(flit.used), flit.ends.len() as u64, targets]
            }
        };
        self.observe.hash.mix(wire.starts.as_fs());
        self.observe.hash.mix(u64::from(id.0) << 1 | u64::from(bad));
        words.into_iter().for_each(|word| self.observe.hash.mix(word));
    }

    #[cold]
    fn show(&mut self, id: PortId, unit: &Unit<TlpHandle>, wire: WireTime, bad: bool, late: Duration) {
        let Some(mut probe) = self.observe.probe.take() else { return };
        let record = self.record_of(id, unit, wire, bad, late);
        probe.unit(&record);
        if let Unit::Flit(flit) = unit {
            flit.ends.iter().for_each(|end| probe.tlp_in_flit(&record, &self.tlp_record(end.handle)));
        }
        self.observe.probe = Some(probe);
    }

    fn tlp_record(&self, handle: TlpHandle) -> TlpRecord<'_> {
        let tlp = self.tlps.get(handle);
        let transaction = tlp.transaction.and_then(|t| self.transactions.number(t));
        TlpRecord { repr: &tlp.repr, payload: tlp.payload.bytes(), flow: tlp.flow, transaction }
    }

    /// A unit as observers see it.
    pub(crate) fn record_of<'a>(
        &'a self,
        id: PortId,
        unit: &'a Unit<TlpHandle>,
        wire: WireTime,
        bad: bool,
        late: Duration,
    ) -> UnitRecord<'a> {
        let port = &self.links.ports[id.index()];
        let to_wire = port.stages.as_ref().map_or(Duration::ZERO, |stages| stages.to_wire());
        let (start, end) = (wire.starts + to_wire, wire.ends + to_wire);
        let content = match unit {
            Unit::Tlp(unit) => UnitContent::Tlp {
                sequence: unit.sequence,
                replay: unit.replay,
                nullified: unit.nullified,
                packet: self.tlp_record(unit.handle),
            },
            Unit::Dllp(repr) => UnitContent::Dllp(repr),
            Unit::Flit(flit) => {
                UnitContent::Flit { sequence: flit.sequence, replay: flit.replay, tlp_bytes: flit.used }
            }
        };
        UnitRecord {
            link: port.link,
            direction: port.direction,
            start,
            end,
            arrive: end + port.channel.flight + late,
            bytes: self.bytes_on_wire(id, unit),
            bad,
            content,
        }
    }

    /// The last symbol of the unit on the wire has left.
    pub(crate) fn transmit_done(&mut self, id: PortId, ends: Time) {
        let now = self.kernel.now();
        let port = &mut self.links.ports[id.index()];
        if !port.transmitting || port.transmits_until != ends {
            return; // the link went down meanwhile
        }
        port.transmitting = false;
        port.engine.transmitted(now);
        port.partition.idle(now);
        if !port.leaving.is_empty() {
            let mut leaving = std::mem::take(&mut port.leaving);
            for entry in leaving.drain(..) {
                self.release_when_whole(entry);
            }
            // A buffer of this very port may have been freed, whose credits sent the next TLP on its way.
            let port = &mut self.links.ports[id.index()];
            if port.leaving.is_empty() {
                port.leaving = leaving;
            }
        }
        self.try_transmit(id);
        self.arm(id);
    }

    /// Frees the receive buffer of a TLP, once its last byte has arrived there.
    pub(crate) fn release_when_whole(&mut self, entry: Leaving) {
        let Leaving { ingress, shape, tail } = entry;
        if tail <= self.kernel.now() {
            return self.release_buffer(ingress, &shape);
        }
        let data = u64::from(shape.bytes) << 32 | u64::from(shape.data_credits) << 8 | shape.class as u64;
        self.schedule(tail, EventKind::Released, u32::from(ingress.0), data);
    }

    /// The event of [`release_when_whole`](Self::release_when_whole).
    pub(crate) fn released(&mut self, ingress: PortId, data: u64) {
        let class = FcClass::ALL[(data & 3) as usize];
        let (bytes, data_credits) = ((data >> 32) as u32, (data >> 8) as u16);
        self.release_buffer(ingress, &TlpShape { vc: Vc::ZERO, class, bytes, data_credits });
    }

    /// A TLP has left the receive buffer of `ingress`.
    pub(crate) fn release_buffer(&mut self, ingress: PortId, shape: &TlpShape) {
        self.links.ports[ingress.index()].engine.release(self.kernel.now(), shape);
        self.try_transmit(ingress);
        self.arm(ingress);
    }

    /// Sees to it that the data link layer's deadline has an event.
    #[inline]
    pub(crate) fn arm(&mut self, id: PortId) {
        let port = &self.links.ports[id.index()];
        let due = port.engine.due();
        if due < port.timer {
            self.schedule_link_timer(id, due);
        }
    }

    fn schedule_link_timer(&mut self, id: PortId, due: Time) {
        let port = &mut self.links.ports[id.index()];
        // The event that waits for a later deadline stays, and serves again when this one is over.
        port.later_timer = port.later_timer.min(port.timer);
        port.timer = due;
        let at = u32::from(id.0);
        self.schedule(due.max(self.kernel.now()), EventKind::LinkTimer, at, due.as_fs());
    }
}

impl Port {
    fn count_dllp(&mut self, dllp: &dllp::Repr) {
        let counter = match dllp {
            dllp::Repr::Ack(_) => &mut self.counters.acks,
            dllp::Repr::Nak(_) => &mut self.counters.naks,
            dllp::Repr::FlowControl(fc) if fc.phase == dllp::FcPhase::Update => &mut self.counters.update_fcs,
            dllp::Repr::FlowControl(_) => &mut self.counters.init_fcs,
            _ => &mut self.counters.other_dllps,
        };
        *counter += 1;
    }

    /// Counts a flit and says who has the wire: the flow of the first TLP that ends in it, or of the last one that began.
    fn account_flit(
        &mut self,
        flit: &FlitUnit<TlpHandle>,
        tlp: impl Fn(TlpHandle) -> (crate::kernel::ids::FlowId, u32),
    ) -> u16 {
        if flit.replay {
            self.counters.replay += 256;
            self.counters.replayed += 1;
            return Partition::slot(Cause::Replay);
        }
        if let Some(dllp) = &flit.dllp {
            self.count_dllp(dllp);
        }
        if flit.used == 0 {
            // Sent for its DLLP or acknowledgement alone; its room for TLPs was idle.
            self.counters.dllp += u64::from(FLIT_DLP + FLIT_PROTECTION);
            return Partition::slot(Cause::DataLink);
        }
        self.counters.dllp += u64::from(FLIT_DLP);
        let mut payload = 0;
        for end in &flit.ends {
            let (flow, bytes) = tlp(end.handle);
            payload += u64::from(bytes);
            self.counters.tlps += 1;
            self.flit_flow = Some(flow);
        }
        // Payload is counted with the flit in which its TLP ends, so a flit in the middle of a long TLP owes some overhead. Room that no
        // TLP fills counts as idle.
        self.counters.payload += payload;
        self.flit_debt += i64::from(flit.used) + i64::from(FLIT_PROTECTION) - payload as i64;
        if self.flit_debt > 0 {
            self.counters.overhead += self.flit_debt as u64;
            self.flit_debt = 0;
        }
        match (flit.ends.first(), self.flit_flow) {
            (Some(end), _) => {
                let (flow, _) = tlp(end.handle);
                self.partition.flow_slot(flow)
            }
            (None, Some(flow)) => self.partition.flow_slot(flow),
            (None, None) => Partition::slot(Cause::Queueing),
        }
    }
}

/// The UpdateFC that a unit is, or carries.
pub(crate) fn update_in(unit: &Unit<TlpHandle>) -> Option<dllp::FlowControl> {
    let dllp = match unit {
        Unit::Dllp(dllp) => Some(dllp),
        Unit::Flit(flit) => flit.dllp.as_ref(),
        Unit::Tlp(_) => None,
    };
    match dllp {
        Some(dllp::Repr::FlowControl(fc)) if fc.phase == dllp::FcPhase::Update => Some(*fc),
        _ => None,
    }
}

/// The destination of a TLP as one word: the address of a memory request, or the request that a completion completes.
pub(crate) fn where_to(repr: &Repr) -> u64 {
    match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } => span.first_byte(),
        Kind::Completion(completion) => {
            u64::from(completion.byte_count()) << 8 | u64::from(completion.lower_address())
        }
        _ => 0,
    }
}
