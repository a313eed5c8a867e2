//! Two ports and the wires between them, in virtual time: the fixture of all tests of this room.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::VecDeque;
use tlplab_datalink::{Config, Engine, Event, FlitAck, Integrity, LinkLayer, Timer, TlpShape, Unit};
use tlplab_units::{Duration, FcClass, Time, Vc};

/// The effect of the wire on a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Arrives so much later than the flight time (never before an earlier unit).
    Pass(Duration),
    Corrupt,
    Drop,
}

pub const GOOD: Fate = Fate::Pass(Duration::ZERO);

/// Decides the fate of each unit, by sender.
pub type Faults = Box<dyn FnMut(usize, &Unit<u32>) -> Fate>;

#[derive(Default)]
struct Wire {
    sending: Option<(Time, Unit<u32>)>,
    flying: VecDeque<(Time, Unit<u32>, Integrity)>,
}

pub struct Pair {
    pub now: Time,
    pub ends: [Engine<u32>; 2],
    wires: [Wire; 2],
    pub flight: Duration,
    pub faults: Faults,
    /// The duration of Recovery when a port asks for it.
    pub recovery: Duration,
    recovered_at: Option<Time>,
    pub connected: bool,
    pub events: VecDeque<(usize, Event<u32>)>,
    log: Option<Vec<String>>,
    pub units: u64,
    /// Steps without progress of time.
    same: u32,
}

impl Pair {
    pub fn new(ends: [Engine<u32>; 2]) -> Self {
        Self {
            now: Time::ZERO,
            ends,
            wires: Default::default(),
            flight: Duration::ZERO,
            faults: Box::new(|_, _| GOOD),
            recovery: Duration::from_us(1),
            recovered_at: None,
            connected: true,
            events: VecDeque::new(),
            log: None,
            units: 0,
            same: 0,
        }
    }
    /// Both ends active since time 0.
    pub fn up(a: Config, b: Config) -> Self {
        a.check().unwrap();
        b.check().unwrap();
        let (a, b) = Engine::established(a, b);
        Self::new([a, b])
    }
    /// Both ends down.
    pub fn down(a: Config, b: Config) -> Self {
        Self::new([Engine::new(a), Engine::new(b)])
    }
    /// From here on, every unit and event is written down.
    pub fn logged(mut self) -> Self {
        self.log = Some(Vec::new());
        self
    }
    pub fn link_up(&mut self) {
        self.connected = true;
        for end in &mut self.ends {
            end.link_up(self.now);
        }
    }
    pub fn link_down(&mut self) {
        self.wires = Default::default();
        self.connected = false;
        self.recovered_at = None;
        for side in 0..2 {
            let mut events = Vec::new();
            self.ends[side].link_down(self.now, &mut |event| events.push(event));
            self.note(side, events);
        }
    }
    pub fn send(&mut self, side: usize, handle: u32, shape: TlpShape) {
        assert_eq!(self.ends[side].admit(&shape), Ok(()), "TLP {handle}");
        self.ends[side].send(self.now, handle, shape);
    }
    pub fn release(&mut self, side: usize, shape: TlpShape) {
        self.ends[side].release(self.now, &shape);
    }

    /// Runs until nothing happens before `until`; the clock then stands there.
    pub fn run_until(&mut self, until: Time) {
        while self.step(until) {}
    }
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Handles everything at the next instant at which something happens, if that is not after `until`.
    pub fn step(&mut self, until: Time) -> bool {
        self.transmit();
        let next = self.next_time();
        if next > until || next == Time::NEVER {
            self.now = self.now.max(until);
            return false;
        }
        assert!(next >= self.now, "a deadline of the past");
        self.same = if next == self.now { self.same + 1 } else { 0 };
        assert!(
            self.same < 1000,
            "time stands still at {next}: {:?}",
            self.ends.each_ref().map(|end| end.deadline())
        );
        self.now = next;
        if self.recovered_at.is_some_and(|at| at <= self.now) {
            self.recovered_at = None;
            for end in &mut self.ends {
                end.link_recovered(self.now);
            }
        }
        for side in 0..2 {
            self.arrive(side);
            self.finish(side);
        }
        for side in 0..2 {
            if self.ends[side].deadline().is_some_and(|(at, _)| at <= self.now) {
                let mut events = Vec::new();
                self.ends[side].handle_timeout(self.now, &mut |event| events.push(event));
                self.note(side, events);
            }
        }
        true
    }

    fn next_time(&self) -> Time {
        let mut next = self.recovered_at.unwrap_or(Time::NEVER);
        for side in 0..2 {
            let wire = &self.wires[side];
            let sent = wire.sending.as_ref().map_or(Time::NEVER, |(at, _)| *at);
            let arrives = wire.flying.front().map_or(Time::NEVER, |(at, ..)| *at);
            let deadline = self.ends[side].deadline().map_or(Time::NEVER, |(at, _)| at);
            next = next.min(sent).min(arrives).min(deadline.max(self.now));
        }
        next
    }

    fn transmit(&mut self) {
        if !self.connected || self.recovered_at.is_some() {
            return;
        }
        for side in 0..2 {
            if self.wires[side].sending.is_some() {
                continue;
            }
            let end = &mut self.ends[side];
            if let Some(unit) = end.poll_transmit(self.now) {
                self.units += 1;
                self.line(side, describe(&unit));
                let time = self.ends[side].config().rate().time_of(u64::from(unit.wire_bytes()));
                self.wires[side].sending = Some((self.now + time, unit));
            }
        }
    }

    /// The last symbol leaves.
    fn finish(&mut self, side: usize) {
        let wire = &mut self.wires[side];
        if wire.sending.as_ref().is_none_or(|(at, _)| *at > self.now) {
            return;
        }
        let (_, unit) = wire.sending.take().unwrap();
        let fate = (self.faults)(side, &unit);
        let (extra, integrity) = match fate {
            Fate::Pass(extra) => (extra, Integrity::Good),
            Fate::Corrupt => (Duration::ZERO, Integrity::Bad),
            Fate::Drop => (Duration::ZERO, Integrity::Good),
        };
        if fate != Fate::Drop {
            let after = wire.flying.back().map_or(Time::ZERO, |(at, ..)| *at);
            wire.flying.push_back(((self.now + self.flight + extra).max(after), unit, integrity));
        }
        self.ends[side].transmitted(self.now);
        if self.flight.is_zero() {
            self.arrive(side);
        }
    }

    /// Units from `side` reach the other end.
    fn arrive(&mut self, side: usize) {
        while self.wires[side].flying.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, unit, integrity) = self.wires[side].flying.pop_front().unwrap();
            let mut events = Vec::new();
            let peer = 1 - side;
            self.ends[peer].handle_unit(self.now, &unit, integrity, &mut |event| events.push(event));
            self.note(peer, events);
        }
    }

    fn note(&mut self, side: usize, events: Vec<Event<u32>>) {
        for event in events {
            self.line(side, format!("- {event:?}"));
            if matches!(event, Event::Retrain(_)) {
                self.wires = Default::default();
                self.recovered_at = Some(self.now + self.recovery);
                for end in &mut self.ends {
                    end.link_recovering(self.now);
                }
            }
            self.events.push_back((side, event));
        }
    }

    fn line(&mut self, side: usize, what: String) {
        if let Some(log) = &mut self.log {
            log.push(format!("{} {} {what}", self.now.saturating_since(Time::ZERO), ["A", "B"][side]));
        }
    }

    /// Units and events since the last call, a line each.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(self.log.as_mut().expect("logged()"))
    }

    /// Exactly these units and events happened since the last call.
    #[track_caller]
    pub fn expect(&mut self, lines: &[&str]) {
        let log = self.take_log();
        let wanted: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
        assert!(log == wanted, "happened:\n{}\nwanted:\n{}", log.join("\n"), wanted.join("\n"));
    }

    /// Nothing happens any more, for a while longer than every timer but the periodic UpdateFC.
    #[track_caller]
    pub fn expect_silence(&mut self) {
        for end in &self.ends {
            let deadline = end.deadline();
            assert!(deadline.is_none_or(|(_, timer)| timer == Timer::Refresh), "{deadline:?} is pending");
        }
        self.transmit();
        assert!(self.wires.iter().all(|wire| wire.sending.is_none() && wire.flying.is_empty()));
        self.expect(&[]);
    }

    /// Nothing is on its way and nothing will happen but the periodic UpdateFC.
    pub fn is_quiet(&mut self) -> bool {
        self.transmit();
        self.recovered_at.is_none()
            && self.wires.iter().all(|wire| wire.sending.is_none() && wire.flying.is_empty())
            && self.ends.iter().all(|end| end.deadline().is_none_or(|(_, timer)| timer == Timer::Refresh))
    }
}

fn describe(unit: &Unit<u32>) -> String {
    match unit {
        Unit::Tlp(tlp) => {
            let marks = [(tlp.replay, " again"), (tlp.nullified, " nullified")];
            let marks: String = marks.iter().filter(|(on, _)| *on).map(|(_, mark)| *mark).collect();
            format!("TLP {} seq {}{marks}", tlp.handle, tlp.sequence)
        }
        Unit::Dllp(dllp) => dllp.to_string(),
        Unit::Flit(flit) => {
            let ends: Vec<_> = flit.ends.iter().map(|tlp| tlp.handle).collect();
            let ack = match flit.ack {
                FlitAck::Ack(sequence) => format!("ack {sequence}"),
                FlitAck::Nak(sequence) => format!("nak {sequence}"),
            };
            let again = if flit.replay { " again" } else { "" };
            let dllp = flit.dllp.map_or(String::new(), |dllp| format!(" ({dllp})"));
            format!("flit {} {} B {ends:?} {ack}{again}{dllp}", flit.sequence, flit.used)
        }
    }
}

/// A memory write of `payload` bytes on virtual channel 0, 3DW header.
pub fn write(payload: u32) -> TlpShape {
    TlpShape {
        vc: Vc::ZERO,
        class: FcClass::Posted,
        bytes: 12 + payload,
        data_credits: payload.div_ceil(16) as u16,
    }
}

/// A memory read, 3DW header.
pub fn read() -> TlpShape {
    TlpShape { vc: Vc::ZERO, class: FcClass::NonPosted, bytes: 12, data_credits: 0 }
}

/// A completion with `payload` bytes.
pub fn completion(payload: u32) -> TlpShape {
    TlpShape { class: FcClass::Completion, ..write(payload) }
}

/// A port description that most dialogues use: Gen1 x1, where a byte takes 4 ns, with round numbers for the timers.
pub fn slow() -> Config {
    use tlplab_datalink::{AckLatency, ClassBuffer, ReceiveBuffers};
    use tlplab_units::{Generation, Mps, Width};
    let mut config = Config::new(Generation::Gen1, Width::new(1).unwrap(), Mps::new(128).unwrap());
    config.receive =
        ReceiveBuffers::vc0(ClassBuffer::finite(8, 64), ClassBuffer::finite(8, 8), ClassBuffer::INFINITE);
    config.ack.latency = AckLatency::Fixed(Duration::from_ns(1000));
    config.replay_timer = Some(Duration::from_us(3));
    config
}
