//! Idle stretches are left out: what comes after is as if every refresh of credits had been sent.

use crate::bench::any::cases;
use crate::bench::any::strategies::{any_fabric, any_peers};
use crate::bench::{Bench, ns};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use tlplab_device::{HostContext, HostEvent, HostProgram, LoadConfig, LoadOp};
use tlplab_fabric::config::*;
use tlplab_fabric::{Fabric, PortId};
use tlplab_units::{Duration, FcClass, LinkRate, Time};

const MS: u64 = 1_000_000;

fn at(ns: u64) -> Time {
    Time::ZERO + Duration::from_ns(ns)
}

/// Reads and writes a device's memory, rests until a time, and does it again.
struct TwoBouts {
    accesses: Vec<(bool, u64)>,
    again: Time,
    next: usize,
    begun: Time,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    latencies: Vec<Duration>,
    over: Option<Time>,
    wrong: usize,
}

impl TwoBouts {
    fn new(accesses: Vec<(bool, u64)>, again: Time) -> (Box<Self>, Arc<Mutex<Heard>>) {
        let heard = Arc::<Mutex<Heard>>::default();
        (Box::new(Self { accesses, again, next: 0, begun: Time::ZERO, heard: heard.clone() }), heard)
    }

    /// One after the other.
    fn go_on(&mut self, cx: &mut HostContext<'_>) {
        if self.next == self.accesses.len() {
            cx.timer(self.again, 0);
        } else if self.next == 2 * self.accesses.len() {
            self.heard.lock().unwrap().over = Some(cx.now());
            cx.finished();
        } else {
            self.access(cx);
        }
    }

    fn access(&mut self, cx: &mut HostContext<'_>) {
        self.begun = cx.now();
        let (write, bytes) = self.accesses[self.next % self.accesses.len()];
        let base = cx.device("dev").expect("the device").1.bars[0].expect("its memory").0;
        if write {
            cx.mmio_write(0, base, vec![bytes as u8; bytes as usize].into());
        } else {
            cx.mmio_read(0, base, bytes);
        }
    }
}

impl HostProgram for TwoBouts {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => self.go_on(cx),
            HostEvent::Timer { .. } => self.access(cx),
            HostEvent::MmioReadDone { result, .. } => {
                let mut heard = self.heard.lock().unwrap();
                heard.latencies.push(cx.now().saturating_since(self.begun));
                heard.wrong += usize::from(result.is_err());
                drop(heard);
                self.next += 1;
                self.go_on(cx);
            }
            HostEvent::MmioWriteAccepted { .. } => {
                self.heard.lock().unwrap().latencies.push(cx.now().saturating_since(self.begun));
                self.next += 1;
                self.go_on(cx);
            }
            _ => {}
        }
    }
}

/// A device below some switches.
#[derive(Clone, Debug)]
struct Chain {
    /// Generation and lanes of each link, from the root port down.
    links: Vec<(u8, u8)>,
    /// Headers and data credits of every buffer.
    buffers: Option<(u32, u32)>,
    accesses: Vec<(bool, u64)>,
    again: u64,
    /// What happens to units on the last link.
    fault: Option<Fault>,
}

/// Units that are lost or damaged: UpdateFCs of the first bout, and refreshes after it.
fn lost_updates() -> impl Strategy<Value = Fault> {
    let damage = prop::sample::select(&[Damage::Drop, Damage::Corrupt][..]);
    let unit = prop::sample::select(&[FaultUnit::Called("UpdateFC"), FaultUnit::Dllp, FaultUnit::Flit][..]);
    let direction = prop::sample::select(&[Direction::Up, Direction::Down][..]);
    (unit, 1u64..40, 1u64..4, damage, direction).prop_map(|(unit, n, count, damage, direction)| Fault {
        direction,
        kind: FaultKind::Nth { unit, n, count, damage },
    })
}

fn chain() -> impl Strategy<Value = Chain> {
    let link = (1u8..=6, prop::sample::select(&[1u8, 2, 4, 8, 16][..]));
    let buffers = prop::option::of((2u32..20, 40u32..200));
    let accesses = prop::collection::vec((any::<bool>(), prop::sample::select(&[1u64, 4, 8, 64][..])), 1..12);
    (prop::collection::vec(link, 1..4), buffers, accesses, MS / 2..20 * MS, prop::option::of(lost_updates()))
        .prop_map(|(links, buffers, accesses, again, fault)| Chain { links, buffers, accesses, again, fault })
}

impl Chain {
    fn build(&self) -> (Fabric, Arc<Mutex<Heard>>) {
        let mut bench = Bench::new();
        let change = |link: &mut LinkConfig| {
            link.skp = SkpPolicy::Off;
            if let Some((headers, data)) = self.buffers {
                let buffers = Buffers {
                    posted_headers: headers,
                    posted_data: data,
                    non_posted_headers: headers,
                    non_posted_data: data,
                    completion_headers: headers,
                    completion_data: data,
                };
                link.upper.buffers = Some(buffers);
                link.lower.buffers = Some(buffers);
            }
        };
        let (last, switches) = self.links.split_last().expect("a link");
        let mut under = "host.rp0".to_owned();
        for (at, (generation, lanes)) in switches.iter().enumerate() {
            let name = format!("sw{at}");
            change(&mut bench.switch(&name, &under, *generation, *lanes).uplink);
            under = name;
        }
        let faulty = |device: &mut DeviceConfig| {
            change(&mut device.link);
            device.link.faults.extend(self.fault.clone());
        };
        bench.device("dev", &under, last.0, last.1).config(faulty).memory(1 << 16);
        let (program, heard) = TwoBouts::new(self.accesses.clone(), at(self.again));
        bench.finishing_program(program);
        (bench.build(), heard)
    }

    /// The longest that refreshes can hold an access up: one of each class on every wire that it crosses, there and back.
    fn slack(&self) -> Duration {
        let dllps = self.links.iter().map(|(generation, lanes)| {
            let link = crate::bench::link("", *generation, *lanes);
            // A flit is what carries one in flit mode.
            let unit = if crate::bench::any::is_flit(*generation) { 256 } else { 8 };
            LinkRate::new(link.generation, link.width).time_of(unit)
        });
        dllps.fold(Duration::ZERO, |sum, dllp| sum + dllp * 2 * 3)
    }
}

fn ports(fabric: &Fabric) -> Vec<PortId> {
    fabric.topology().links.iter().flat_map(|link| link.ports).collect()
}

fn credits(fabric: &Fabric) -> Vec<(Option<u32>, Option<u32>)> {
    let of = |port| {
        FcClass::ALL.map(|class| (fabric.credits_left(port, class), fabric.data_credits_left(port, class)))
    };
    ports(fabric).into_iter().flat_map(of).collect()
}

fn updates(fabric: &mut Fabric) -> u64 {
    ports(fabric).into_iter().map(|port| fabric.direction_result(port).transmitter.update_fcs_sent).sum()
}

/// UpdateFCs, and bytes of all DLLPs, that went over the wires or were worked out.
fn dllps(fabric: &mut Fabric) -> (u64, u64) {
    let wires: Vec<_> = ports(fabric).into_iter().map(|port| fabric.direction_result(port).wire).collect();
    (wires.iter().map(|wire| wire.update_fcs).sum(), wires.iter().map(|wire| wire.dllp).sum())
}

fn tlps(fabric: &mut Fabric) -> Vec<u64> {
    ports(fabric).into_iter().map(|port| fabric.direction_result(port).receiver.tlps_received).collect()
}

/// Runs as a guest's machine does: idle stretches are left out.
pub(crate) fn run_skipping(fabric: &mut Fabric, until: Time) {
    loop {
        fabric.skip_idle(until);
        match fabric.next_event_until(until) {
            Some(next) if next <= until => fabric.run_until(next),
            _ => return fabric.run_until(until),
        }
    }
}

proptest! {
    #![proptest_config(cases(48))]

    /// Two bouts of traffic and a long rest between them, with all refreshes and without.
    #[test]
    fn skipped_refreshes_leave_traffic_after_a_rest_unchanged(chain in chain()) {
        let end = at(chain.again + 3 * MS);
        let (mut all, heard_all) = chain.build();
        all.run_until(end);
        let (mut some, heard_some) = chain.build();
        run_skipping(&mut some, end);
        prop_assert_eq!(some.now(), end);
        let (heard_all, heard_some) = (heard_all.lock().unwrap(), heard_some.lock().unwrap());
        prop_assert!(heard_all.over.is_some() && heard_some.over.is_some(), "all was done");
        prop_assert_eq!((heard_all.wrong, heard_some.wrong), (0, 0));
        prop_assert_eq!(heard_some.latencies.len(), 2 * chain.accesses.len());
        for (with, without) in heard_all.latencies.iter().zip(&heard_some.latencies) {
            let difference = with.saturating_sub(*without).max(without.saturating_sub(*with));
            prop_assert!(difference <= chain.slack(), "{with} instead of {without}, at most {}", chain.slack());
        }
        // Every TLP arrives once on each wire, and every credit comes back.
        prop_assert_eq!(tlps(&mut some), tlps(&mut all));
        prop_assert_eq!(credits(&some), credits(&all));
        prop_assert_eq!(some.protocol_errors().count(), 0);
        prop_assert_eq!((some.tlps_live(), some.transactions_live()), (0, 0));
        // What was left out is what the other sent, within one for each class and port.
        prop_assert!(some.skipped_refreshes() > 0 || chain.fault.is_some());
        let (sent, skipped) = (updates(&mut some), some.skipped_refreshes());
        let ports = ports(&some).len() as u64;
        let expected = updates(&mut all);
        // Each stretch ends with a remainder: before the second bout, and after it.
        prop_assert!((sent + skipped).abs_diff(expected) <= 3 * 3 * ports, "{sent} + {skipped} of {expected}");
        // They are counted as if they had been sent, in number and in bytes (flits have room for them in any case).
        let (counted, bytes) = dllps(&mut some);
        prop_assert_eq!(counted, sent + skipped);
        let (all_counted, all_bytes) = dllps(&mut all);
        let flits = chain.links.iter().any(|(generation, _)| *generation == 6);
        prop_assert!(flits || bytes.abs_diff(all_bytes) <= 8 * counted.abs_diff(all_counted), "{bytes} of {all_bytes} B");
    }

    /// Fabrics of all kinds rest for a minute, once their work is done.
    #[test]
    fn every_fabric_rests(any in prop_oneof![any_fabric(), any_peers()]) {
        let mut built = any.build();
        built.run(Duration::from_ms(100));
        let (events, credits_before) = (built.fabric.events(), credits(&built.fabric));
        // What is under way, a refresh, is soon over.
        let until = built.fabric.now() + Duration::from_ms(60_000);
        run_skipping(&mut built.fabric, until);
        prop_assert_eq!(built.fabric.now(), until);
        prop_assert!(built.fabric.events() - events < 500, "{} events", built.fabric.events() - events);
        prop_assert_eq!(credits(&built.fabric), credits_before);
        built.check_complete();
        built.check_quiet(&any.idle());
        built.fabric.run_until(until + Duration::from_us(500));
        built.check_quiet(&any.idle());
    }
}

/// A device and nothing to do.
fn idle() -> Bench {
    let mut bench = Bench::new();
    bench.device("dev", "host.rp0", 3, 8).memory(4096);
    bench
}

fn settled(bench: Bench) -> Fabric {
    let mut fabric = bench.build();
    fabric.run_until(at(100_000));
    while !fabric.is_idle() {
        fabric.run_until(fabric.now() + ns(10));
    }
    fabric
}

/// Five finite classes on two ports, each every 30 us: ten million in a minute, none of which is an event.
#[test]
fn a_minute_without_work_costs_no_event() {
    let mut fabric = settled(idle());
    let (events, begun) = (fabric.events(), fabric.now());
    fabric.skip_idle(begun + Duration::from_ms(60_000));
    assert_eq!(fabric.events(), events);
    assert_eq!(fabric.now(), begun + Duration::from_ms(60_000));
    let finite = credits(&fabric).iter().filter(|(headers, _)| headers.is_some()).count() as u64;
    let expected = finite * 60_000_000 / 30;
    assert!(fabric.skipped_refreshes().abs_diff(expected) <= finite, "{}", fabric.skipped_refreshes());
    // The next refresh is within its interval.
    let next = fabric.next_event().expect("a refresh");
    assert!(next.saturating_since(fabric.now()) <= Duration::from_us(30));
}

#[test]
fn short_rests_are_not_left_out() {
    let mut fabric = settled(idle());
    let now = fabric.now();
    for until in [now, now + ns(1), now + ns(59_999)] {
        fabric.skip_idle(until);
        assert_eq!((fabric.now(), fabric.skipped_refreshes()), (now, 0));
    }
    fabric.skip_idle(now + ns(60_000));
    assert_eq!(fabric.now(), now + ns(60_000));
}

/// For ever is no time to go to.
#[test]
fn for_ever_is_not_left_out() {
    let mut fabric = settled(idle());
    let now = fabric.now();
    fabric.skip_idle(Time::NEVER);
    assert_eq!(fabric.now(), now);
    assert_eq!(fabric.next_event_when_idle(), None);
}

#[test]
fn a_timer_ends_a_rest() {
    let mut bench = idle();
    let (program, _) = TwoBouts::new(vec![(false, 4)], at(5 * MS));
    bench.finishing_program(program);
    let mut fabric = settled(bench);
    assert_eq!(fabric.next_event_when_idle(), Some(at(5 * MS)));
    fabric.skip_idle(at(60 * MS));
    assert_eq!(fabric.now(), at(5 * MS));
    fabric.skip_idle(at(60 * MS));
    assert_eq!(fabric.now(), at(5 * MS), "it is due now");
}

/// A read whose answer takes a millisecond.
#[test]
fn nothing_is_left_out_while_a_transaction_is_under_way() {
    let mut bench = Bench::new();
    bench
        .device("dev", "host.rp0", 3, 8)
        .config(|device| device.latency = Duration::from_us(1000))
        .memory(4096);
    let (program, heard) = TwoBouts::new(vec![(false, 4)], at(50 * MS));
    bench.finishing_program(program);
    let mut fabric = bench.build();
    for us in 1..1000 {
        fabric.run_until(at(us * 1000));
        assert!(!fabric.is_idle());
        fabric.skip_idle(at(5 * MS));
        assert_eq!((fabric.now(), fabric.skipped_refreshes()), (at(us * 1000), 0));
    }
    while heard.lock().unwrap().latencies.is_empty() {
        assert!(!fabric.is_idle());
        fabric.step();
    }
    run_skipping(&mut fabric, at(40 * MS));
    assert_eq!(fabric.now(), at(40 * MS));
    assert!(fabric.skipped_refreshes() > 0);
}

/// A load is always at work.
#[test]
fn nothing_is_left_out_under_load() {
    let mut bench = Bench::new();
    let load = LoadConfig { op: LoadOp::Read, size: 64, outstanding: 4, ..LoadConfig::default() };
    bench.device("dev", "host.rp0", 3, 8).load(load);
    let mut fabric = bench.build();
    for us in 1..200 {
        fabric.run_until(at(us * 1000));
        fabric.skip_idle(at(MS));
        assert_eq!((fabric.now(), fabric.skipped_refreshes()), (at(us * 1000), 0));
    }
}

/// A link that goes down, and comes up again.
#[test]
fn an_outage_ends_a_rest() {
    let mut bench = idle();
    let down = FaultKind::Down { at: at(3 * MS), until: Some(at(4 * MS)) };
    bench.config.devices[0].link.faults.push(Fault { direction: Direction::Up, kind: down });
    let mut fabric = settled(bench);
    fabric.skip_idle(at(60 * MS));
    assert_eq!(fabric.now(), at(3 * MS));
    run_skipping(&mut fabric, at(60 * MS));
    assert_eq!(fabric.now(), at(60 * MS));
    assert_eq!(fabric.outages().len(), 1);
    assert!(ports(&fabric).into_iter().all(|port| fabric.is_active(port)), "it came up at its time");
}

/// While a refresh is on the wire it is not over.
#[test]
fn nothing_is_left_out_while_a_unit_is_on_its_way() {
    let mut bench = idle();
    bench.config.devices[0].link.flight = Duration::from_us(5);
    let mut fabric = settled(bench);
    let next = fabric.next_event().expect("a refresh");
    fabric.run_until(next + Duration::from_us(3));
    assert!(!fabric.is_idle(), "it flies");
    let now = fabric.now();
    fabric.skip_idle(now + Duration::from_ms(5));
    assert_eq!(fabric.now(), now);
}
