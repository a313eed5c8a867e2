//! The NIC between its engines and its cable: negotiation, frames that leave, frames that come.

use super::ethernet::{self, Cable};
use super::regs::{self, cause, rctl, status};
use super::transmit::Outgoing;
use super::{Nic, OpenEnd, Signal, receive, timer};
use crate::contract::Context;
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};

/// Negotiation takes real transceivers seconds in which nothing happens; here it takes this long.
const NEGOTIATION: Duration = Duration::from_us(10);

impl Nic {
    pub(super) fn negotiate(&mut self, cx: &mut Context<'_>) {
        self.set_ready(cx, false);
        self.negotiation = cx.now() + NEGOTIATION;
        cx.timer(self.negotiation, timer::LINK);
    }

    /// Its transceiver has negotiated, or does so anew; the link is up if the one at the other end has, too.
    pub(super) fn set_ready(&mut self, cx: &mut Context<'_>, ready: bool) {
        if let Some(end) = self.open_end.as_ref().filter(|_| self.ready != ready) {
            end.send(cx.now(), Signal::Ready(ready));
        }
        self.ready = ready;
        self.set_link(cx, ready && self.partner);
    }

    /// Something has come from another simulation. What came while nobody listened is lost, but for the other end's state.
    pub(super) fn hear(&mut self, cx: &mut Context<'_>) {
        while let Some((at, signal)) = self.open_end.as_ref().and_then(|end| end.arrived(cx.now())) {
            match signal {
                Signal::Ready(partner) => {
                    self.partner = partner;
                    self.set_link(cx, self.ready && partner);
                }
                Signal::Frame(frame) if at == cx.now() && self.link() => self.arrive(cx, frame),
                Signal::Frame(_) => {}
            }
        }
    }

    /// A reset has taken the timers of signals that are under way.
    pub(super) fn expect_signals(&self, cx: &mut Context<'_>) {
        for at in self.open_end.iter().flat_map(OpenEnd::expected) {
            cx.timer(at, timer::SIGNAL);
        }
    }

    fn set_link(&mut self, cx: &mut Context<'_>, up: bool) {
        self.phy.set_link(up);
        let before = self.file.get(regs::STATUS);
        let bits = status::LU | status::FD | status::SPEED_1000;
        let after = if up { before | bits } else { before & !(status::LU | status::FD) };
        self.file.set(regs::STATUS, after);
        if before != after {
            self.raise(cx, cause::LSC);
        }
    }

    /// Sends what has been put together.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>) {
        let mut out = Vec::new();
        self.transmitter.work(cx, &self.file);
        let causes = self.transmitter.retire(cx, &mut self.file, &mut self.counters, &mut out);
        // What was retired left descriptors to fetch.
        self.transmitter.work(cx, &self.file);
        for frame in out {
            let leaves = self.line.send(cx.now(), frame.data.len());
            cx.timer(leaves, timer::SENT);
            self.outgoing.push_back((leaves, frame));
        }
        self.receiver.deliver(cx, &mut self.file);
        self.raise(cx, causes);
    }

    /// The first frame of the queue has left.
    pub(super) fn sent(&mut self, cx: &mut Context<'_>) {
        // A timer of before a reset finds no frame that leaves now.
        let Some((_, frame)) = self.leaving(cx.now()) else { return };
        self.transmitter.sent(&frame);
        let bytes = frame.data.len() + ethernet::FCS;
        self.counters.sent(bytes, receive::destination(&frame.data));
        let inside = self.phy.loops_back() || self.file.has(regs::RCTL, rctl::LBM_MAC);
        let out = !inside && self.link();
        match &self.open_end {
            Some(end) if out => end.send(cx.now(), Signal::Frame(frame.data)),
            None if out && self.config.cable == Cable::LoopBack => self.arrive(cx, frame.data),
            _ if inside => self.arrive(cx, frame.data),
            _ => {}
        }
        self.pump(cx);
    }

    fn leaving(&mut self, now: Time) -> Option<(Time, Outgoing)> {
        self.outgoing.front().filter(|(leaves, _)| *leaves == now)?;
        self.outgoing.pop_front()
    }

    fn link(&self) -> bool {
        self.file.has(regs::STATUS, status::LU)
    }

    fn arrive(&mut self, cx: &mut Context<'_>, frame: Payload) {
        let causes = self.receiver.arrive(cx, &mut self.file, &mut self.counters, frame);
        self.raise(cx, causes);
    }

    /// Starts the generator when there is one and a receiver for its frames.
    pub(super) fn listen(&mut self, cx: &mut Context<'_>) {
        if self.generator.is_none() && self.link() && self.file.has(regs::RCTL, rctl::EN) {
            self.generator = Some((cx.now(), 0));
            self.expect(cx);
        }
    }
    /// Asks for the time at which the generator's next frame arrives.
    fn expect(&mut self, cx: &mut Context<'_>) {
        let (Cable::Source(traffic), Some((start, number))) = (self.config.cable, self.generator) else {
            return;
        };
        if traffic.count.is_none_or(|count| number < count) {
            cx.timer(start + traffic.arrival(number, self.config.speed), timer::ARRIVED);
        }
    }
    pub(super) fn generated(&mut self, cx: &mut Context<'_>) {
        let (Cable::Source(traffic), Some((start, number))) = (self.config.cable, self.generator) else {
            return;
        };
        self.generator = Some((start, number + 1));
        self.expect(cx);
        if self.link() {
            let frame = traffic.frame(number, self.config.mac, cx.length_only());
            self.arrive(cx, frame);
        }
    }
}
