//! Link up: the data link feature exchange, then InitFC1 and InitFC2 of every virtual channel (PCIe 5.0 §3.2.1, §3.3, §3.4).
//!
//! ```text
//!            link_up                feature acknowledged,            all three classes      InitFC2, UpdateFC
//!  Inactive ────────▶ Feature ────── or InitFC1 heard ────▶ FC_INIT1 ────── heard ────▶ FC_INIT2 ── or a TLP ──▶ ready
//!                     (only if scaled flow control is offered)
//! ```
//! VC0 comes first and makes the link active; the others follow. Everything is repeated until the peer answers.

use crate::config::Config;
use crate::event::{Event, ProtocolError, TlpShape};
use crate::flow::FlowControl;
use tlplab_units::{FcClass, Time, Vc, Width};
use tlplab_wire::dllp::{self, FcPhase, FeatureBits};

/// The stage of one virtual channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// FC_INIT1: waiting for the peer's three advertisements.
    Init1,
    /// FC_INIT2: waiting for a sign that the peer has ours.
    Init2,
    /// Carries TLPs.
    Ready,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Inactive,
    Feature,
    Flow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Channel {
    stage: Stage,
    /// Classes whose advertisement was heard, one bit each.
    heard: u8,
    /// DLLPs to send: InitFC1 for the three classes in bits 0 to 2, InitFC2 in bits 3 to 5.
    unsent: u8,
}

const ALL_HEARD: u8 = 0b111;
const INIT1_DLLPS: u8 = 0b000_111;
const INIT2_DLLPS: u8 = 0b111_000;

/// The port's link state and its flow control, which that state opens and closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkControl {
    pub(crate) flow: FlowControl,
    config: Config,
    phase: Phase,
    channels: [Channel; 8],
    /// Enabled virtual channels that are not ready.
    waiting: u8,
    /// Virtual channels with something in `unsent`.
    speaking: u8,
    /// An InitFC went last, and no UpdateFC.
    spoke: bool,
    feature_unsent: bool,
    /// Scaled flow control in the peer's feature DLLP; `None` before one came.
    peer_scales: Option<bool>,
    repeat_at: Time,
}

impl LinkControl {
    pub(crate) fn new(config: Config) -> Self {
        let channel = Channel { stage: Stage::Init1, heard: 0, unsent: 0 };
        Self {
            flow: FlowControl::new(&config),
            config,
            phase: Phase::Inactive,
            channels: [channel; 8],
            waiting: 0,
            speaking: 0,
            spoke: false,
            feature_unsent: false,
            peer_scales: None,
            repeat_at: Time::NEVER,
        }
    }

    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn set_width(&mut self, width: Width) {
        self.config.width = width;
        self.flow.set_latency(self.config.update_fc_latency());
    }

    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        self.flow.is_open(Vc::ZERO)
    }

    pub(crate) fn up(&mut self) {
        if self.phase != Phase::Inactive {
            return;
        }
        if self.config.scaled_flow_control {
            self.phase = Phase::Feature;
            self.feature_unsent = true;
        } else {
            self.start_flow(false);
        }
    }

    pub(crate) fn down(&mut self) {
        self.flow.stop();
        self.phase = Phase::Inactive;
        self.channels = [Channel { stage: Stage::Init1, heard: 0, unsent: 0 }; 8];
        self.waiting = 0;
        self.speaking = 0;
        self.spoke = false;
        self.feature_unsent = false;
        self.peer_scales = None;
        self.repeat_at = Time::NEVER;
    }

    /// The state that an exchange with `peer` would have led to.
    pub(crate) fn activate_with(&mut self, now: Time, peer: &Config) {
        self.down();
        let scaled = self.config.scaled_flow_control && peer.scaled_flow_control;
        if self.config.scaled_flow_control {
            self.peer_scales = Some(peer.scaled_flow_control).filter(|_| peer.scaled_flow_control);
        }
        self.start_flow(scaled);
        for vc in (0..8).filter_map(Vc::new) {
            let enabled = self.waiting & 1 << vc.value() != 0;
            for class in FcClass::ALL {
                let fc = FlowControl::advertisement(peer, scaled, FcPhase::Init1, vc, class);
                if let (true, Some(fc)) = (enabled, fc) {
                    self.flow.grant(&fc);
                    self.channels[usize::from(vc.value())].heard |= 1 << class.index();
                }
            }
            if self.channels[usize::from(vc.value())].heard == ALL_HEARD {
                self.ready(now, vc);
                self.channels[usize::from(vc.value())].unsent = 0;
                self.speaking &= !(1 << vc.value());
            }
        }
    }

    fn start_flow(&mut self, scaled: bool) {
        self.phase = Phase::Flow;
        self.feature_unsent = false;
        self.repeat_at = Time::NEVER;
        self.flow.start(&self.config, scaled);
        for (vc, buffers) in self.config.receive.vcs.iter().enumerate() {
            if buffers.is_some() {
                self.waiting |= 1 << vc;
            }
        }
        self.speak(0);
    }

    fn ready(&mut self, now: Time, vc: Vc) {
        self.channels[usize::from(vc.value())].stage = Stage::Ready;
        self.waiting &= !(1 << vc.value());
        self.flow.open(now, vc);
        if vc == Vc::ZERO {
            // Now the other channels may speak; they have listened since the start.
            for other in 1..8 {
                if self.waiting & 1 << other != 0 {
                    self.speak(other);
                }
            }
        }
        if self.waiting == 0 {
            self.repeat_at = Time::NEVER;
        }
    }

    /// The next flow control or feature DLLP: those of link up, then the UpdateFC that is due.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> Option<dllp::Repr> {
        if self.speaking != 0 || self.feature_unsent {
            return self.poll_speaking(now);
        }
        self.flow.poll(now).map(dllp::Repr::FlowControl)
    }

    /// Channel 0 goes before UpdateFCs. Others take turns with them: a round may begin as soon as the one before has ended, and an UpdateFC may be
    /// the answer that the peer waits for on channel 0.
    #[cold]
    fn poll_speaking(&mut self, now: Time) -> Option<dllp::Repr> {
        let others_only = self.speaking & 1 == 0 && !self.feature_unsent;
        if others_only
            && core::mem::take(&mut self.spoke)
            && let Some(update) = self.flow.poll(now)
        {
            return Some(dllp::Repr::FlowControl(update));
        }
        self.spoke = true;
        self.poll_init(now).or_else(|| self.flow.poll(now).map(dllp::Repr::FlowControl))
    }

    fn poll_init(&mut self, now: Time) -> Option<dllp::Repr> {
        if self.feature_unsent {
            self.feature_unsent = false;
            self.repeat_at = now + self.config.init_repeat;
            let supported = FeatureBits::SCALED_FLOW_CONTROL;
            return Some(dllp::Repr::Feature { ack: self.peer_scales.is_some(), supported });
        }
        let index = self.speaking.trailing_zeros() as usize;
        let channel = &mut self.channels[index];
        let next = channel.unsent.trailing_zeros() as usize;
        channel.unsent &= !(1 << next);
        if channel.unsent == 0 {
            self.speaking &= !(1 << index);
            if channel.stage != Stage::Ready {
                self.repeat_at = now + self.config.init_repeat;
            }
        }
        let (class, phase) = (FcClass::ALL[next % 3], if next < 3 { FcPhase::Init1 } else { FcPhase::Init2 });
        let vc = Vc::new(index as u8)?;
        FlowControl::advertisement(&self.config, self.flow.is_scaled(), phase, vc, class)
            .map(dllp::Repr::FlowControl)
    }

    /// Queues the DLLPs of a channel's stage. Channels other than 0 wait until 0 is ready.
    fn speak(&mut self, vc: usize) {
        if vc != 0 && self.waiting & 1 != 0 {
            return;
        }
        let channel = &mut self.channels[vc];
        channel.unsent |= match channel.stage {
            Stage::Init1 => INIT1_DLLPS,
            Stage::Init2 => INIT2_DLLPS,
            Stage::Ready => 0,
        };
        if channel.unsent != 0 {
            self.speaking |= 1 << vc;
        }
    }

    #[inline]
    pub(crate) const fn repeat_at(&self) -> Time {
        self.repeat_at
    }

    /// The peer has not answered: says everything again.
    pub(crate) fn handle_repeat(&mut self) {
        self.repeat_at = Time::NEVER;
        match self.phase {
            Phase::Inactive => {}
            Phase::Feature => self.feature_unsent = true,
            Phase::Flow => {
                for vc in 0..8 {
                    if self.waiting & 1 << vc != 0 {
                        self.speak(vc);
                    }
                }
            }
        }
    }

    /// A feature DLLP arrived.
    pub(crate) fn handle_feature(&mut self, acknowledges: bool, scales: bool) {
        if self.phase != Phase::Feature {
            return;
        }
        self.peer_scales = Some(scales);
        if acknowledges {
            self.start_flow(scales);
        } else {
            self.feature_unsent = true;
        }
    }

    /// A flow control DLLP arrived.
    pub(crate) fn handle_flow_control<H>(
        &mut self,
        now: Time,
        fc: &dllp::FlowControl,
        events: &mut impl FnMut(Event<H>),
    ) -> Result<(), ProtocolError> {
        if fc.phase == FcPhase::Update {
            return self.handle_update(now, fc, events);
        }
        self.handle_init(now, fc, events);
        Ok(())
    }

    fn handle_init<H>(&mut self, now: Time, fc: &dllp::FlowControl, events: &mut impl FnMut(Event<H>)) {
        let second = fc.phase == FcPhase::Init2;
        if self.phase == Phase::Feature {
            // A peer that is past the exchange, or knows none.
            self.start_flow(self.peer_scales.unwrap_or(false));
        }
        let index = usize::from(fc.vc.value()) & 7;
        if self.phase != Phase::Flow || self.config.receive.vcs[index].is_none() {
            return;
        }
        let channel = &mut self.channels[index];
        match channel.stage {
            Stage::Init1 => {
                self.flow.grant(fc);
                channel.heard |= 1 << fc.class.index();
                if channel.heard == ALL_HEARD {
                    channel.stage = Stage::Init2;
                    self.speak(index);
                }
            }
            Stage::Init2 if second => self.peer_is_ready(now, fc.vc, events),
            // A whole second round from a peer that has heard nothing since the first: any UpdateFC will do.
            Stage::Ready if second && fc.class == FcClass::Posted => self.flow.nudge(fc.vc),
            Stage::Init2 | Stage::Ready => {}
        }
    }

    /// A sign that the peer has our advertisement.
    fn peer_is_ready<H>(&mut self, now: Time, vc: Vc, events: &mut impl FnMut(Event<H>)) {
        if self.channels[usize::from(vc.value()) & 7].stage != Stage::Init2 {
            return;
        }
        self.ready(now, vc);
        if vc == Vc::ZERO {
            events(Event::Up);
        }
        for class in FcClass::ALL {
            events(Event::CreditsArrived { vc, class });
        }
    }

    fn handle_update<H>(
        &mut self,
        now: Time,
        fc: &dllp::FlowControl,
        events: &mut impl FnMut(Event<H>),
    ) -> Result<(), ProtocolError> {
        self.peer_is_ready(now, fc.vc, events);
        if self.flow.is_open(fc.vc) && self.flow.update(fc)? {
            events(Event::CreditsArrived { vc: fc.vc, class: fc.class });
        }
        Ok(())
    }

    /// True if a flit with TLPs may be taken. Its arrival is a sign that the peer is ready.
    pub(crate) fn is_up_for_payload<H>(&mut self, now: Time, events: &mut impl FnMut(Event<H>)) -> bool {
        if !self.is_active() {
            self.peer_is_ready(now, Vc::ZERO, events);
        }
        self.is_active()
    }

    /// True if a TLP on this channel may be taken. Its arrival is a sign that the peer is ready.
    #[inline]
    pub(crate) fn accepts<H>(
        &mut self,
        now: Time,
        shape: &TlpShape,
        events: &mut impl FnMut(Event<H>),
    ) -> bool {
        if !self.flow.is_open(shape.vc) {
            self.peer_is_ready(now, shape.vc, events);
        }
        self.flow.is_open(shape.vc)
    }
}
