//! The common part of the ends of links with credits, for TLPs and for flits.

use crate::ack::Receiver;
use crate::config::Config;
use crate::event::{Counters, Event, ProtocolError, Retrain, Timer};
use crate::init::LinkControl;
use crate::replay::{Attempt, Entry, Replay};
use crate::sequence::Numbers;
use tlplab_units::{Time, Width};
use tlplab_wire::dllp::{self, FcPhase, FeatureBits};

/// One end of a link: initialisation and credits, acknowledgement, and replay of `E`, numbered as `N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End<E, N> {
    pub(crate) control: LinkControl,
    pub(crate) receiver: Receiver<N>,
    pub(crate) replay: Replay<E, N>,
    /// The link is in, or waits for, Recovery.
    pub(crate) recovering: bool,
    /// The unit on the wire will be acknowledged.
    pub(crate) sending: bool,
    pub(crate) counters: Counters,
}

impl<E: Clone, N: Numbers> End<E, N> {
    /// Its link is down.
    pub(crate) fn new(config: Config) -> Self {
        Self {
            receiver: Receiver::new(config.ack_latency(), config.ack.every),
            replay: Replay::new(config.replay, config.replay_timeout()),
            recovering: false,
            sending: false,
            counters: Counters::default(),
            control: LinkControl::new(config),
        }
    }

    pub(crate) fn set_width(&mut self, width: Width) {
        self.control.set_width(width);
        let config = self.control.config();
        self.receiver.set_latency(config.ack_latency());
        self.replay.timer.set_limit(config.replay_timeout());
    }

    pub(crate) fn up(&mut self) {
        self.recovering = false;
        self.control.up();
    }

    /// `lost` gives back the TLPs that wait elsewhere to be sent.
    pub(crate) fn down<H, F: FnMut(Event<H>)>(&mut self, events: &mut F, lost: impl FnOnce(&mut F))
    where
        E: Entry<H>,
    {
        let was_active = self.control.is_active();
        self.control.down();
        self.receiver.reset();
        self.replay.clear(events);
        lost(events);
        (self.recovering, self.sending) = (false, false);
        if was_active {
            events(Event::Down);
        }
    }

    pub(crate) fn hold(&mut self) {
        (self.recovering, self.sending) = (true, false);
        self.replay.timer.stop();
    }

    pub(crate) fn go_on(&mut self, now: Time) {
        self.recovering = false;
        self.replay.timer.go_on();
        self.replay.transmitted(now);
    }

    #[inline]
    pub(crate) fn transmitted(&mut self, now: Time) {
        if core::mem::take(&mut self.sending) {
            self.replay.transmitted(now);
        }
    }

    pub(crate) fn report<H>(&mut self, error: ProtocolError, events: &mut impl FnMut(Event<H>)) {
        self.counters.protocol_errors += 1;
        events(Event::Error(error));
    }

    /// Sends everything unacknowledged again. In Recovery that is still to come: a Nak that arrives then asks for nothing more.
    pub(crate) fn restart<H>(&mut self, events: &mut impl FnMut(Event<H>)) {
        if self.recovering {
            self.replay.rewind();
            return;
        }
        let Some(attempt) = self.replay.restart() else { return };
        self.counters.replays += 1;
        if attempt == Attempt::Retrain {
            self.counters.retrains += 1;
            self.recovering = true;
            events(Event::Retrain(Retrain::ReplayNumRollover));
        }
    }

    /// A DLLP that is no acknowledgement. Power management and vendor DLLPs mean nothing to this layer.
    pub(crate) fn handle_dllp<H>(&mut self, now: Time, dllp: &dllp::Repr, events: &mut impl FnMut(Event<H>)) {
        match dllp {
            dllp::Repr::FlowControl(fc) => {
                self.counters.update_fcs_received += u64::from(fc.phase == FcPhase::Update);
                if let Err(error) = self.control.handle_flow_control(now, fc, events) {
                    self.report(error, events);
                }
            }
            dllp::Repr::Feature { ack, supported } => {
                let scales = supported.bits() & FeatureBits::SCALED_FLOW_CONTROL.bits() != 0;
                self.control.handle_feature(*ack, scales);
            }
            _ => {}
        }
    }

    pub(crate) fn handle_timeout<H>(&mut self, now: Time, events: &mut impl FnMut(Event<H>)) {
        self.receiver.handle_timeout(now);
        if now >= self.control.repeat_at() {
            self.control.handle_repeat();
        }
        if now >= self.control.flow.update_at() {
            self.control.flow.handle_update(now);
        }
        if now >= self.control.flow.refresh_at() {
            self.control.flow.handle_refresh(now);
        }
        if now >= self.replay.timer.deadline() {
            self.counters.replay_timeouts += 1;
            self.restart(events);
        }
    }

    /// True if it waits for nothing but the next refresh of its peer's credits, which tells the peer nothing new.
    pub(crate) fn is_resting(&self) -> bool {
        let others = [
            self.receiver.deadline(),
            self.replay.timer.deadline(),
            self.control.flow.update_at(),
            self.control.repeat_at(),
        ];
        !self.sending
            && !self.control.flow.has_news()
            && others.iter().all(|deadline| *deadline == Time::NEVER)
    }

    /// The time of the first deadline: asked after every event of a port.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        let flow = &self.control.flow;
        let credits = flow.update_at().min(flow.refresh_at());
        let replies = self.receiver.deadline().min(self.replay.timer.deadline());
        credits.min(replies).min(self.control.repeat_at())
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<(Time, Timer)> {
        earliest([
            (self.receiver.deadline(), Timer::Ack),
            (self.replay.timer.deadline(), Timer::Replay),
            (self.control.flow.update_at(), Timer::Update),
            (self.control.flow.refresh_at(), Timer::Refresh),
            (self.control.repeat_at(), Timer::Init),
        ])
    }
}

/// The first of a port's deadlines; of equal ones the first named.
#[inline]
pub(crate) fn earliest<const N: usize>(deadlines: [(Time, Timer); N]) -> Option<(Time, Timer)> {
    let mut first = deadlines[0];
    for next in &deadlines[1..] {
        if next.0 < first.0 {
            first = *next;
        }
    }
    (first.0 != Time::NEVER).then_some(first)
}
