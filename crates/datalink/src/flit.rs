//! A port in flit mode (PCIe 6.0 §4.2.3): TLP bytes run through 256-byte flits, which are numbered, acknowledged and
//! replayed as TLPs are on other links.
//!
//! The model, and its differences from a real link:
//! * 236 of 256 bytes carry TLPs, without framing of their own and rounded up to 4 bytes; a TLP may begin and end anywhere.
//! * Each flit carries an acknowledgement and one DLLP besides, so neither costs TLP bandwidth.
//! * A flit starts when there is something to say; a real link sends flits without a pause, so a TLP there waits for the
//!   next boundary, half a flit time on average.
//! * Replay is go-back-N (the "standard" Nak); selective Nak is not modelled. A damaged NOP flit is answered like any other.
//! * REPLAY_NUM has the two bits of other modes.
//! * Credits are dedicated to each virtual channel; the shared pool of flit mode is not modelled (a port that advertises
//!   no shared credits).

use crate::LinkLayer;
use crate::ack::{Position, Reply};
use crate::config::Config;
use crate::end::End;
use crate::event::{
    Blocked, Counters, Discard, Event, FLIT_BYTES, FLIT_MAX_ENDS, FLIT_TLP_BYTES, FlitAck, FlitTlp, FlitUnit,
    Integrity, ProtocolError, Timer, TlpShape, TlpUnit, Unit,
};
use crate::flow::CreditsLeft;
use crate::replay::{Entry, Occupancy, Outgoing};
use crate::sequence::{FlitNumbers, Numbers};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use arrayvec::ArrayVec;
use tlplab_units::{FcClass, Time, Vc, Width};

/// A TLP that waits for flits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Staged<H> {
    tlp: FlitTlp<H>,
    /// Bytes not yet in a flit.
    left: u32,
    begun: bool,
}

/// The TLP part of a flit, as the replay buffer keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Content<H> {
    used: u16,
    begins: u8,
    ends: ArrayVec<FlitTlp<H>, FLIT_MAX_ENDS>,
}

impl<H: Copy> Entry<H> for Content<H> {
    fn bytes(&self) -> u32 {
        FLIT_BYTES
    }
    fn handles(&self, each: impl FnMut(H)) {
        self.ends.iter().map(|tlp| tlp.handle).for_each(each);
    }
}

/// One end of a link in flit mode. See [`LinkLayer`] for its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlitPort<H> {
    end: End<Content<H>, FlitNumbers>,
    staged: VecDeque<Staged<H>>,
    staged_bytes: u32,
}

impl<H: Copy> FlitPort<H> {
    /// A port whose link is down. [`Config::check`] tests that it can work.
    pub fn new(config: Config) -> Self {
        Self { end: End::new(config), staged: VecDeque::new(), staged_bytes: 0 }
    }

    /// Makes the link active at once, as if the exchange with a port of configuration `peer` had just ended.
    pub fn activate_with(&mut self, now: Time, peer: &Config) {
        self.end.control.activate_with(now, peer);
    }

    /// The configuration it was built with, but for the width that the link has now.
    pub fn config(&self) -> &Config {
        self.end.control.config()
    }
    /// The link has another width: limits of timers that depend on it follow, from the next start on.
    pub fn set_width(&mut self, width: Width) {
        self.end.set_width(width);
    }
    /// Credits left for sending.
    pub fn credits(&self, vc: Vc, class: FcClass) -> CreditsLeft {
        self.end.control.flow.left(vc, class)
    }
    /// Flits in the replay buffer; TLPs that wait for a flit are not in it yet.
    pub fn replay_occupancy(&self) -> Occupancy {
        self.end.replay.occupancy()
    }
    pub(crate) fn is_resting(&self) -> bool {
        self.end.is_resting()
    }
    pub(crate) fn skip_refreshes(&mut self, until: Time) -> u64 {
        self.end.control.flow.skip_refreshes(until)
    }
    /// The counters so far.
    pub fn counters(&self) -> &Counters {
        &self.end.counters
    }

    fn stage(&mut self, handle: H, shape: TlpShape, nullified: bool) {
        let left = shape.bytes.next_multiple_of(4);
        self.staged_bytes += left;
        self.staged.push_back(Staged { tlp: FlitTlp { handle, shape, nullified }, left, begun: false });
    }

    /// Fills a flit with the bytes of staged TLPs.
    fn build(&mut self) -> Content<H> {
        let mut content = Content { used: 0, begins: 0, ends: ArrayVec::new() };
        let mut room = FLIT_TLP_BYTES;
        while room > 0
            && let Some(staged) = self.staged.front_mut()
        {
            if content.ends.is_full() && staged.left <= room {
                break; // Only TLPs shorter than any real one come here.
            }
            content.begins += u8::from(!staged.begun);
            staged.begun = true;
            let part = staged.left.min(room);
            staged.left -= part;
            room -= part;
            if staged.left == 0 {
                content.ends.push(staged.tlp);
                self.staged.pop_front();
            }
        }
        content.used = (FLIT_TLP_BYTES - room) as u16;
        self.staged_bytes -= u32::from(content.used);
        content
    }

    /// The next flit with TLPs: replayed flits first, then staged TLPs.
    fn poll_payload(&mut self) -> Option<Outgoing<Content<H>>> {
        if let Some(again) = self.end.replay.poll() {
            self.end.counters.tlps_replayed += 1;
            return Some(again);
        }
        if self.staged.is_empty() || !self.end.replay.has_room(FLIT_BYTES) {
            return None;
        }
        let content = self.build();
        // Nullified TLPs keep their place in the flit, but whoever handed them over may forget them now.
        let mut kept = content.clone();
        kept.ends.retain(|tlp| !tlp.nullified);
        let good = kept.ends.len() as u64;
        self.end.counters.tlps_sent += good;
        self.end.counters.nullified_sent += content.ends.len() as u64 - good;
        self.end.replay.push(kept);
        let outgoing = self.end.replay.poll()?;
        Some(Outgoing { entry: content, ..outgoing })
    }

    fn reply(&mut self, alone: bool) -> FlitAck {
        let due = self.end.receiver.is_due();
        match self.end.receiver.reply() {
            Reply::Nak(sequence) => {
                self.end.counters.naks_sent += 1;
                FlitAck::Nak(sequence)
            }
            Reply::Ack(sequence) => {
                self.end.counters.acks_sent += u64::from(alone && due);
                FlitAck::Ack(sequence)
            }
        }
    }

    fn deliver(&mut self, now: Time, tlp: &FlitTlp<H>, events: &mut impl FnMut(Event<H>)) {
        let FlitTlp { handle, ref shape, nullified } = *tlp;
        if nullified {
            self.end.counters.nullified_received += 1;
            return events(Event::Discarded { handle, reason: Discard::Nullified });
        }
        if !self.end.control.accepts(now, shape, events) {
            return events(Event::Discarded { handle, reason: Discard::NotActive });
        }
        self.end.counters.tlps_received += 1;
        if let Err(error) = self.end.control.flow.receive(shape) {
            self.end.report(error, events);
        }
        events(Event::Deliver(handle));
    }

    fn handle_payload(&mut self, now: Time, flit: &FlitUnit<H>, events: &mut impl FnMut(Event<H>)) {
        if !self.end.control.is_up_for_payload(now, events) {
            return discard(flit, Discard::NotActive, events);
        }
        match self.end.receiver.position(flit.sequence) {
            Position::Next => {
                self.end.receiver.accept(now);
                for tlp in &flit.ends {
                    self.deliver(now, tlp, events);
                }
            }
            Position::Before => {
                self.end.counters.duplicates += 1;
                self.end.receiver.duplicate();
                discard(flit, Discard::Duplicate, events);
            }
            Position::After => {
                self.end.counters.out_of_sequence += 1;
                self.end.receiver.refuse();
                discard(flit, Discard::OutOfSequence, events);
            }
        }
    }

    fn handle_ack(&mut self, now: Time, ack: FlitAck, events: &mut impl FnMut(Event<H>)) {
        let (FlitAck::Ack(sequence) | FlitAck::Nak(sequence)) = ack;
        match self.end.replay.acknowledge(now, sequence, events) {
            Err(error) => return self.end.report(error, events),
            Ok(news) => self.end.counters.acks_received += u64::from(news),
        }
        if let FlitAck::Nak(_) = ack {
            self.end.counters.naks_received += 1;
            self.end.restart(events);
        }
    }
}

/// All TLPs that end in the flit are lost with it, for now.
fn discard<H: Copy>(flit: &FlitUnit<H>, reason: Discard, events: &mut impl FnMut(Event<H>)) {
    for tlp in &flit.ends {
        events(Event::Discarded { handle: tlp.handle, reason });
    }
}

impl<H: Copy> LinkLayer<H> for FlitPort<H> {
    fn link_up(&mut self, _now: Time) {
        self.end.up();
    }

    fn link_down(&mut self, _now: Time, events: &mut impl FnMut(Event<H>)) {
        self.end.down(events, |events| {
            self.staged.drain(..).for_each(|staged| events(Event::Lost(staged.tlp.handle)));
        });
        self.staged_bytes = 0;
    }

    fn link_recovering(&mut self, _now: Time) {
        self.end.hold();
    }

    fn link_recovered(&mut self, now: Time) {
        self.end.go_on(now);
    }

    fn is_active(&self) -> bool {
        self.end.control.is_active()
    }

    #[inline]
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        self.end.control.flow.admit(shape)?;
        if !self.end.replay.has_room(FLIT_BYTES) {
            Err(Blocked::ReplayBuffer)
        } else if self.staged_bytes >= FLIT_TLP_BYTES {
            Err(Blocked::Staging)
        } else {
            Ok(())
        }
    }

    fn send(&mut self, _now: Time, handle: H, shape: TlpShape) {
        debug_assert_eq!(self.admit(&shape), Ok(()), "send() without admit()");
        self.end.control.flow.consume(&shape);
        self.stage(handle, shape, false);
    }

    fn send_nullified(&mut self, _now: Time, handle: H, shape: TlpShape) {
        self.stage(handle, shape, true);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Unit<H>> {
        if self.end.recovering {
            return None;
        }
        let payload = self.poll_payload();
        self.end.sending = payload.is_some();
        let dllp = self.end.control.poll(now);
        if payload.is_none() && dllp.is_none() && !self.end.receiver.is_due() {
            return None;
        }
        if let Some(dllp) = &dllp {
            self.end.counters.count_dllp(dllp);
        }
        self.end.counters.flits_sent += 1;
        self.end.counters.nop_flits_sent += u64::from(payload.is_none());
        let alone = payload.is_none() && dllp.is_none();
        let ack = self.reply(alone);
        Some(Unit::Flit(Box::new(match payload {
            Some(Outgoing { entry: Content { used, begins, ends }, sequence, replay }) => {
                FlitUnit { sequence, used, begins, ends, dllp, ack, replay }
            }
            None => FlitUnit {
                sequence: FlitNumbers::before(self.end.replay.next_sequence()),
                used: 0,
                begins: 0,
                ends: ArrayVec::new(),
                dllp,
                ack,
                replay: false,
            },
        })))
    }

    fn transmitted(&mut self, now: Time) {
        self.end.transmitted(now);
    }

    /// A TLP that spans flits has no check of its own: cut-through has to wait for the flit.
    fn expects(&self, _tlp: &TlpUnit<H>) -> bool {
        false
    }

    fn handle_unit(
        &mut self,
        now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    ) {
        let flit = match unit {
            Unit::Flit(flit) => flit,
            Unit::Tlp(_) => {
                return self.end.report(ProtocolError::WrongMode { got: "framed TLP", mode: "flit" }, events);
            }
            Unit::Dllp(_) => {
                return self
                    .end
                    .report(ProtocolError::WrongMode { got: "framed DLLP", mode: "flit" }, events);
            }
        };
        if integrity == Integrity::Bad {
            self.end.counters.bad_lcrc += 1;
            if self.end.control.is_active() {
                self.end.receiver.refuse();
            }
            return discard(flit, Discard::BadLcrc, events);
        }
        if let Some(dllp) = &flit.dllp {
            // Acknowledgements have their own place in a flit.
            self.end.handle_dllp(now, dllp, events);
        }
        self.handle_ack(now, flit.ack, events);
        if flit.used > 0 {
            self.handle_payload(now, flit, events);
        } else if self.end.control.is_active()
            && self.end.receiver.position(FlitNumbers::after(flit.sequence, 1)) == Position::After
        {
            // It names a flit that never arrived.
            self.end.receiver.refuse();
        }
    }

    fn release(&mut self, now: Time, shape: &TlpShape) {
        self.end.control.flow.release(now, shape);
    }

    fn handle_timeout(&mut self, now: Time, events: &mut impl FnMut(Event<H>)) {
        self.end.handle_timeout(now, events);
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        self.end.deadline()
    }

    #[inline]
    fn due(&self) -> Time {
        self.end.due()
    }
}
