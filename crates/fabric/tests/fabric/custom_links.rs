//! Custom channels and data link layers: their decisions hold, nothing is lost or miscounted around them, and a snapshot copies or names them.
#![allow(unreachable_pub, reason = "shared with the tests of nodes")]

use crate::bench::any::cases;
use crate::bench::any::strategies::{any_fabric, any_faults};
use crate::bench::mover::{Base, Mover};
use crate::bench::{Bench, Watch, ns, only_flow};
use crate::custom_nodes::{WRITE, at, only_flow_of};
use proptest::prelude::*;
use tlplab_datalink::{
    Blocked, Config, Counters, CreditsLeft, CustomLinkLayer, Engine, Event, Integrity, LinkLayer, Occupancy,
    Timer, TlpShape, TlpUnit, Unacknowledged, Unit,
};
use tlplab_device::{LoadConfig, LoadOp, Random};
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::*;
use tlplab_fabric::probe::UnitRecord;
use tlplab_fabric::{ChannelModel, Ending, NoSnapshot, Passage, Probe, TlpHandle};
use tlplab_units::{Duration, FcClass, Time, Vc, Width};

/// Late by up to so many nanoseconds.
#[derive(Clone)]
pub struct Jitter {
    most: u64,
    random: Random,
    units: u64,
    damages: fn(u64) -> Option<Passage>,
}

impl Jitter {
    pub fn new(most: u64) -> Self {
        Self { most, random: Random::keyed(3, "a link", "jitter"), units: 0, damages: |_| None }
    }
}

impl ChannelModel for Jitter {
    fn carry(&mut self, unit: &UnitRecord<'_>) -> Passage {
        assert!(unit.arrive >= unit.end && unit.end > unit.start);
        self.units += 1;
        (self.damages)(self.units).unwrap_or_else(|| Passage::Late(ns(self.random.below(self.most + 1))))
    }
    fn snapshot(&self) -> Option<Box<dyn ChannelModel>> {
        Some(Box::new(self.clone()))
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// Channels that delay, damage and lose units as they like, in both directions of every link: everything arrives once all the same.
    #[test]
    fn rough_channels_lose_nothing_for_good(any in any_fabric(), seed in any::<u16>(), events in 0u64..5000) {
        let mut built = any.build_own(move |builder| {
            let devices = builder.config().devices.clone().into_iter().filter(|d| d.function_of.is_none());
            let names: Vec<_> = devices.map(|d| d.name).chain(builder.config().switches.iter().map(|s| s.name.clone())).collect();
            for (i, name) in names.into_iter().enumerate() {
                for direction in [Direction::Up, Direction::Down] {
                    let damages: fn(u64) -> Option<Passage> = match (seed >> (i % 8)) & 3 {
                        0 => |_| None,
                        1 => |n| n.is_multiple_of(97).then_some(Passage::Lost),
                        2 => |n| n.is_multiple_of(89).then_some(Passage::Damaged),
                        _ => |n| (n % 50 > 1).then_some(if n.is_multiple_of(71) { Passage::Lost } else { Passage::Clear }),
                    };
                    builder.channel(&name, direction, Box::new(Jitter { damages, ..Jitter::new(40) }));
                }
            }
        });
        built.fabric.run_events(events, at(400_000));
        let mut copy = built.fabric.snapshot(None).expect("these channels can be copied");
        built.run(Duration::from_ms(400));
        built.check_complete();
        built.check_replays();
        prop_assert_eq!((built.fabric.transactions_live(), built.fabric.tlps_live()), (0, 0));
        prop_assert_eq!(built.fabric.protocol_errors().count(), 0);
        built.watch.check_attribution(&built.fabric);
        copy.run_until(built.fabric.now());
        prop_assert_eq!(copy.trace_hash(), built.fabric.trace_hash());
    }
}

/// One write that a channel holds for 500 ns, at the end point's link or behind a switch that cuts through: the time is flight.
#[test]
fn lateness_is_flight() {
    for forwarding in [Forwarding::StoreAndForward, Forwarding::CutThrough] {
        let run = |late: bool| {
            let mut bench = Bench::new();
            let (mover, _) = Mover::new(Base::Address(1 << 32), 1, vec![WRITE]);
            bench.switch("sw0", "host.rp0", 1, 4).forwarding = forwarding;
            bench.device("dev", "sw0", 1, 4).finishing(Box::new(mover));
            if late {
                let model = Jitter { damages: |_| Some(Passage::Late(ns(500))), ..Jitter::new(0) };
                bench.own(|builder| {
                    builder.channel("dev", Direction::Up, Box::new(model));
                });
            }
            let (fabric, watch) = bench.finish();
            let units = watch.tlps(&fabric, "dev", 0);
            let write = watch.transactions().remove(0);
            (write.latency(), write.time_of(Cause::Flight), units[0].0.arrive - units[0].0.end)
        };
        let ((usual, flight, there), (late, longer, later)) = (run(false), run(true));
        assert_eq!(
            (late - usual, longer - flight, later - there),
            (ns(500), ns(500), ns(500)),
            "{forwarding:?}"
        );
    }
}

#[test]
fn no_unit_overtakes_another() {
    let mut bench = Bench::new();
    let load = LoadConfig { count: Some(2000), ..LoadConfig::default() };
    bench.device("dev", "host.rp0", 3, 8).load(load);
    bench.own(|builder| {
        builder.channel("dev", Direction::Up, Box::new(Jitter::new(1000)));
    });
    let (fabric, watch) = bench.finish();
    let units = watch.units(&fabric, "dev", 0);
    assert!(units.windows(2).all(|pair| pair[1].arrive - (pair[1].end - pair[1].start) >= pair[0].arrive));
    assert!(units.iter().any(|unit| unit.arrive > unit.end + ns(900)), "some are late");
}

/// A link with a custom channel is never idle: no unit is left out.
#[test]
fn refreshes_go_through_a_channel() {
    let run = |own: bool| {
        let mut bench = Bench::new();
        bench.device("dev", "host.rp0", 3, 8).memory(4096);
        if own {
            bench.own(|builder| {
                builder.channel("dev", Direction::Up, Box::new(Jitter::new(0)));
            });
        }
        let mut fabric = bench.build();
        fabric.run_until(at(10));
        fabric.skip_idle(at(2000));
        fabric.skipped_refreshes()
    };
    assert!(run(false) > 0);
    assert_eq!(run(true), 0);
}

/// The built-in data link layer as a custom one.
#[derive(Clone)]
pub struct Same(pub Engine<TlpHandle>);

impl LinkLayer<TlpHandle> for Same {
    fn link_up(&mut self, now: Time) {
        self.0.link_up(now);
    }
    fn link_down(&mut self, now: Time, events: &mut impl FnMut(Event<TlpHandle>)) {
        self.0.link_down(now, events);
    }
    fn link_recovering(&mut self, now: Time) {
        self.0.link_recovering(now);
    }
    fn link_recovered(&mut self, now: Time) {
        self.0.link_recovered(now);
    }
    fn is_active(&self) -> bool {
        self.0.is_active()
    }
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        self.0.admit(shape)
    }
    fn send(&mut self, now: Time, handle: TlpHandle, shape: TlpShape) {
        self.0.send(now, handle, shape);
    }
    fn send_nullified(&mut self, now: Time, handle: TlpHandle, shape: TlpShape) {
        self.0.send_nullified(now, handle, shape);
    }
    fn poll_transmit(&mut self, now: Time) -> Option<Unit<TlpHandle>> {
        self.0.poll_transmit(now)
    }
    fn transmitted(&mut self, now: Time) {
        self.0.transmitted(now);
    }
    fn expects(&self, unit: &TlpUnit<TlpHandle>) -> bool {
        self.0.expects(unit)
    }
    fn handle_unit(
        &mut self,
        now: Time,
        unit: &Unit<TlpHandle>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<TlpHandle>),
    ) {
        self.0.handle_unit(now, unit, integrity, events);
    }
    fn release(&mut self, now: Time, shape: &TlpShape) {
        self.0.release(now, shape);
    }
    fn handle_timeout(&mut self, now: Time, events: &mut impl FnMut(Event<TlpHandle>)) {
        self.0.handle_timeout(now, events);
    }
    fn deadline(&self) -> Option<(Time, Timer)> {
        self.0.deadline()
    }
}

impl CustomLinkLayer<TlpHandle> for Same {
    fn established(&mut self, now: Time, peer: &Config) {
        self.0.activate_with(now, peer);
    }
    fn credits(&self, vc: Vc, class: FcClass) -> CreditsLeft {
        self.0.credits(vc, class)
    }
    fn replay_occupancy(&self) -> Occupancy {
        self.0.replay_occupancy()
    }
    fn counters(&self) -> Option<&Counters> {
        Some(self.0.counters())
    }
    fn set_width(&mut self, width: Width) {
        self.0.set_width(width);
    }
    fn keeps_until_acked(&self) -> bool {
        true
    }
    fn snapshot(&self) -> Option<Self> {
        Some(self.clone())
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// The built-in data link layer as a custom one at every framed link gives the same run: the fabric asks a custom layer for everything it asks a built-in one.
    #[test]
    fn the_built_in_layer_as_a_custom_one_is_the_same_run(any in any_fabric(), faults in any_faults(), events in 0u64..5000) {
        let any = any.with_faults(&faults);
        let mut usual = any.build();
        let mut own = any.build_own(|builder| {
            let config = builder.config();
            let devices = config.devices.iter().filter(|d| d.function_of.is_none()).map(|d| (&d.name, &d.link));
            let links = devices.chain(config.switches.iter().map(|s| (&s.name, &s.uplink)));
            let framed: Vec<_> = links.filter(|(_, l)| l.mode == tlplab_units::LinkMode::NonFlit).map(|(name, _)| name.clone()).collect();
            framed.iter().for_each(|name| { builder.link_layer(name, |config| Same(Engine::new(config.clone()))); });
        });
        own.fabric.run_events(events, at(400_000));
        let mut copy = own.fabric.snapshot(None).expect("these layers can be copied");
        usual.run(Duration::from_ms(400));
        own.run(Duration::from_ms(400));
        own.check_complete();
        own.watch.check_attribution(&own.fabric);
        prop_assert_eq!(own.fabric.now(), usual.fabric.now());
        prop_assert_eq!(own.fabric.trace_hash(), usual.fabric.trace_hash());
        copy.run_until(own.fabric.now());
        prop_assert_eq!(copy.trace_hash(), own.fabric.trace_hash());
    }
}

/// Without replay, a damaged or swallowed TLP is lost and counted once; so is a TLP on the wire when the link goes down.
#[test]
fn a_link_layer_without_replay_loses_damaged_tlps() {
    for (kind, lost) in [
        (FaultKind::Nth { unit: FaultUnit::Tlp, n: 10, count: 3, damage: Damage::Corrupt }, 3),
        (FaultKind::Nth { unit: FaultUnit::Tlp, n: 10, count: 5, damage: Damage::Drop }, 5),
    ] {
        let mut bench = Bench::new();
        bench.switch("sw0", "host.rp0", 3, 8);
        let load = LoadConfig { count: Some(100), ..LoadConfig::default() };
        bench
            .device("dev", "sw0", 3, 8)
            .config(|d| d.link.faults.push(Fault { direction: Direction::Up, kind }))
            .load(load);
        bench.own(|builder| {
            builder.link_layer("dev", |_| Unacknowledged::new(TlpUnit::arrived));
        });
        let (mut fabric, _) = bench.finish();
        let flow = only_flow(&fabric);
        assert_eq!((flow.transactions, flow.count_of(Ending::Lost)), (100 - lost, lost), "{kind:?}");
        let [up, _] = fabric.topology().links[0].ports;
        assert_eq!(fabric.direction_result(up).transmitter.tlps_sent, 100);
        assert_eq!(fabric.snapshot(None).err(), Some(NoSnapshot::Link("dev".into())));
    }
    let mut bench = Bench::new();
    let kind = FaultKind::Down { at: at(20), until: Some(at(30)) };
    bench.switch("sw0", "host.rp0", 3, 8);
    let fault = Fault { direction: Direction::Up, kind };
    let load = LoadConfig { op: LoadOp::Both, ..LoadConfig::default() };
    bench.device("dev", "sw0", 3, 8).config(|d| d.link.faults.push(fault)).load(load);
    bench.own(|builder| {
        builder.link_layer("dev", |_| Unacknowledged::new(TlpUnit::arrived));
    });
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(at(60));
    let (done, lost) = only_flow_of(&fabric);
    assert!(done > 100 && lost > 0);
    fabric.run_until(at(300));
    assert!(only_flow_of(&fabric).0 > 2 * done, "it works again");
    watch.check_attribution(&fabric);
    assert!(fabric.tlps_live() < 200, "{} TLPs are kept", fabric.tlps_live());
}

/// Lanes fail: a custom layer goes on at the new rate.
#[test]
fn a_custom_layer_obeys_the_width() {
    let mut bench = Bench::new();
    let kind = FaultKind::Narrow { at: at(10), width: Width::X1 };
    let fault = Fault { direction: Direction::Up, kind };
    bench.device("dev", "host.rp0", 3, 8).config(|d| d.link.faults.push(fault)).load(LoadConfig::default());
    bench.own(|builder| {
        builder.link_layer("dev", |_| Unacknowledged::new(TlpUnit::arrived));
    });
    let mut fabric = bench.build();
    fabric.run_until(at(10));
    let before = only_flow(&fabric).bytes;
    fabric.run_until(at(110));
    let ratio = (only_flow(&fabric).bytes - before) / before;
    assert_eq!(ratio, 1, "ten times as long at an eighth of the rate");
}

/// A channel whose state is elsewhere, or so it says.
struct Elsewhere;

impl ChannelModel for Elsewhere {
    fn carry(&mut self, _: &UnitRecord<'_>) -> Passage {
        Passage::Clear
    }
}

/// It changes nothing, refuses a copy, and two observers see the same of it.
#[test]
fn a_channel_without_a_copy_is_named() {
    let run = |custom: bool| {
        let mut bench = Bench::new();
        bench.device("dev", "host.rp0", 3, 8).load(LoadConfig { count: Some(100), ..LoadConfig::default() });
        if custom {
            bench.own(|builder| {
                builder.channel("dev", Direction::Down, Box::new(Elsewhere));
            });
        }
        let watches = [Watch::everything(), Watch::everything()];
        let probes: Vec<Box<dyn Probe>> = watches.iter().filter_map(Watch::probe).collect();
        let mut fabric = bench.build_watched(Some(Box::new(probes)));
        while fabric.run_events(1000, at(1000)) {}
        let seen = |watch: &Watch| {
            let units = watch.seen().units.len();
            (units, watch.transactions().len())
        };
        let [one, other] = watches.each_ref().map(seen);
        assert_eq!((one, one.1), (other, 100));
        (fabric.trace_hash(), fabric.snapshot(None).err())
    };
    let ((usual, copied), (hash, refusal)) = (run(false), run(true));
    assert_eq!((hash, copied, refusal), (usual, None, Some(NoSnapshot::Link("dev".into()))));
}
