//! A card is pulled out about when it interrupts: where the fabric says that nothing is under way, nothing happens but refreshes of credits.

use crate::bench::any::cases;
use crate::bench::{Bench, ns};
use crate::idle::run_skipping;
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use tlplab_cfgspace::InterruptMode;
use tlplab_device::{BarSpec, Context, Device, Event, HostContext, HostEvent, HostProgram, Identity};
use tlplab_fabric::config::*;
use tlplab_fabric::outages::Outage;
use tlplab_fabric::{Fabric, PortId};
use tlplab_units::{Duration, FcClass, Time};

const MS: u64 = 1_000_000;
/// As in `Fabric::skip_idle`: a shorter stretch is not left out.
const WORTH: Duration = Duration::from_us(60);
/// The end of a run, and the last access before it, when all that was put back is there.
const END: u64 = 14 * MS;
const LAST: u64 = 13 * MS;
/// The legacy interrupt is asserted for so long.
const PULSE: Duration = Duration::from_us(2);
const TARGET: u64 = 1 << 32;

/// Writes to host memory and interrupts, at its times and when software writes to it.
#[derive(Clone, Debug)]
struct Ringer {
    times: Vec<Time>,
    writes: u64,
}

impl Ringer {
    fn ring(&mut self, cx: &mut Context<'_>) {
        if self.writes > 0 {
            cx.dma_write(0, TARGET, vec![7; self.writes as usize].into());
        }
        match cx.interrupt_mode() {
            InterruptMode::MsiX | InterruptMode::Msi => (0..3).for_each(|vector| cx.msix(0, vector)),
            InterruptMode::Intx | InterruptMode::Disabled => {
                cx.assert_intx(0);
                cx.timer(cx.now() + PULSE, 1);
            }
        }
    }
}

impl Device for Ringer {
    fn identity(&self) -> Identity {
        let mut identity = Identity::new(0x1DE5, 1, 0x02_00_00);
        identity.bars = vec![BarSpec::registers(0, 4096)];
        (identity.msix_vectors, identity.msi_vectors, identity.intx) = (3, 1, true);
        identity
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Start => self.times.iter().for_each(|time| cx.timer(*time, 0)),
            Event::Reset => {
                let now = cx.now();
                self.times.iter().filter(|time| **time > now).for_each(|time| cx.timer(*time, 0));
            }
            Event::Timer { id: 1 } => cx.deassert_intx(0),
            Event::Timer { .. } | Event::MmioWrite { .. } => self.ring(cx),
            Event::MmioRead { bytes, reply, .. } => cx.reply(reply, vec![1; bytes as usize].into()),
            Event::DmaReadDone { .. } | Event::DmaWriteAccepted { .. } => {}
        }
    }
}

/// Reads from and writes to the device, if it is there, at its times and at each interrupt.
struct Handler {
    times: Vec<Time>,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    events: u64,
    /// The time and the result of the last read.
    last: Option<(Time, bool)>,
}

impl Handler {
    fn access(cx: &mut HostContext<'_>) {
        let Some(base) = cx.device("dev").and_then(|(_, device)| device.bars[0]) else { return };
        cx.mmio_write(0, base.0 + 8, vec![1; 4].into());
        cx.mmio_read(0, base.0, 4);
    }
}

impl HostProgram for Handler {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        let mut heard = self.heard.lock().unwrap();
        heard.events += 1;
        match event {
            HostEvent::Start => self.times.iter().for_each(|time| cx.timer(*time, 0)),
            HostEvent::Timer { .. } => Self::access(cx),
            HostEvent::MmioReadDone { result, .. } => heard.last = Some((cx.now(), result.is_ok())),
            _ => {}
        }
    }
}

/// A device below some switches that rings, is pulled out, and is perhaps put back.
#[derive(Clone, Debug)]
struct Pulled {
    /// Generation and lanes of each link, from the root port down.
    links: Vec<(u8, u8)>,
    flight: u64,
    latency: u64,
    headers: Option<u32>,
    interrupts: InterruptPolicy,
    rings: Vec<u64>,
    accesses: Vec<u64>,
    writes: u64,
    /// The ring, the nanoseconds between it and what happens, and the time until the end of that.
    faults: Vec<(usize, i64, Option<u64>, Removal)>,
}

/// What is pulled out, or only reset.
#[derive(Clone, Copy, Debug)]
struct Removal {
    at: usize,
    reset: bool,
}

fn pulled() -> impl Strategy<Value = Pulled> {
    let link = (1u8..=6, prop::sample::select(&[1u8, 2, 4, 16][..]));
    let interrupts = prop::sample::select(&[InterruptPolicy::MsiX, InterruptPolicy::Intx][..]);
    let removal = (any::<usize>(), prop::bool::weighted(0.2)).prop_map(|(at, reset)| Removal { at, reset });
    let near = prop_oneof![4 => -300i64..1500, 1 => -5000i64..30_000];
    let back = prop::option::weighted(0.7, prop_oneof![1u64..3000, 1u64..4 * MS]);
    let faults = prop::collection::vec((any::<usize>(), near, back, removal), 1..4);
    let shape = (
        prop::collection::vec(link, 1..4),
        prop::sample::select(&[0u64, 5, 100, 300][..]),
        prop::sample::select(&[0u64, 30, 2000][..]),
        prop::option::of(1u32..4),
        interrupts,
    );
    let times = || prop::collection::vec(MS / 2..6 * MS, 1..5);
    (shape, times(), times(), prop::sample::select(&[0u64, 4, 256][..]), faults).prop_map(
        |((links, flight, latency, headers, interrupts), rings, accesses, writes, faults)| Pulled {
            links,
            flight,
            latency,
            headers,
            interrupts,
            rings,
            accesses,
            writes,
            faults,
        },
    )
}

fn at(ns: u64) -> Time {
    Time::ZERO + Duration::from_ns(ns)
}

impl Pulled {
    fn faults(&self, link: usize) -> impl Iterator<Item = Fault> + '_ {
        let of = move |fault: &&(usize, i64, Option<u64>, Removal)| fault.3.at % self.links.len() == link;
        self.faults.iter().filter(of).map(|&(ring, offset, long, Removal { reset, .. })| {
            let begin = self.rings[ring % self.rings.len()].saturating_add_signed(offset);
            let until = long.map(|long| at(begin + long));
            let at = at(begin);
            let kind = if reset { FaultKind::Reset { at, until } } else { FaultKind::Down { at, until } };
            Fault { direction: Direction::Up, kind }
        })
    }

    fn build(&self, probe: Option<Box<dyn tlplab_fabric::Probe>>) -> (Fabric, Arc<Mutex<Heard>>) {
        let mut bench = Bench::new();
        bench.config.host.interrupts = self.interrupts;
        bench.config.host.latency = ns(self.latency);
        bench.config.host.completion_timeout = Duration::from_us(300);
        let change = |link: &mut LinkConfig, place: usize| {
            link.skp = SkpPolicy::Off;
            link.flight = ns(self.flight);
            link.faults.extend(self.faults(place));
            if let Some(headers) = self.headers {
                let buffers = Buffers {
                    posted_headers: headers,
                    posted_data: 32 * headers,
                    non_posted_headers: headers,
                    non_posted_data: 2 * headers,
                    completion_headers: headers,
                    completion_data: 32 * headers,
                };
                (link.upper.buffers, link.lower.buffers) = (Some(buffers), Some(buffers));
            }
        };
        let (last, switches) = self.links.split_last().expect("a link");
        let mut under = "host.rp0".to_owned();
        for (place, (generation, lanes)) in switches.iter().enumerate() {
            let name = format!("sw{place}");
            change(&mut bench.switch(&name, &under, *generation, *lanes).uplink, place);
            under = name;
        }
        let times = self.rings.iter().map(|ring| at(*ring)).collect();
        bench
            .device("dev", &under, last.0, last.1)
            .config(|device| {
                change(&mut device.link, switches.len());
                device.completion_timeout = Duration::from_us(300);
            })
            .model(Box::new(Ringer { times, writes: self.writes }));
        let heard = Arc::<Mutex<Heard>>::default();
        let times = self.accesses.iter().map(|access| at(*access)).chain([at(LAST)]).collect();
        bench.program(Box::new(Handler { times, heard: heard.clone() }));
        (bench.build_watched(probe), heard)
    }
}

/// All that may not change while the fabric rests.
#[derive(Debug, PartialEq)]
struct Rest {
    hops: u64,
    live: (usize, usize),
    interrupts: u64,
    heard: u64,
    outages: String,
    spaces: u64,
    credits: Vec<(bool, Option<u32>, Option<u32>)>,
}

/// Of each port, by class: whether the link is up, and the credits for headers and data.
fn credits(fabric: &Fabric) -> Vec<(bool, Option<u32>, Option<u32>)> {
    let ports: Vec<PortId> = fabric.topology().links.iter().flat_map(|link| link.ports).collect();
    let of = |port| {
        FcClass::ALL.map(|class| {
            let (headers, data) = (fabric.credits_left(port, class), fabric.data_credits_left(port, class));
            (fabric.is_active(port), headers, data)
        })
    };
    ports.into_iter().flat_map(of).collect()
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn rest(fabric: &mut Fabric, heard: &Mutex<Heard>) -> Rest {
    Rest {
        credits: credits(fabric),
        hops: fabric.tlp_hops(),
        live: (fabric.tlps_live(), fabric.transactions_live()),
        interrupts: fabric.interrupts(),
        heard: heard.lock().unwrap().events,
        outages: format!("{:?}", fabric.outages()),
        spaces: hash(&format!("{:?}", fabric.config_spaces())),
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn nothing_happens_in_a_rest_around_a_removal(pulled in pulled()) {
        let end = at(END);
        let (mut fabric, heard) = pulled.build(None);
        // From when on it rests until when, with all that could be seen then.
        let mut claim: Option<(Time, Rest)> = None;
        let mut rests = 0;
        while fabric.next_event().is_some_and(|next| next <= end) {
            let next = fabric.next_event().expect("just seen");
            if let Some((until, before)) = claim.take_if(|(until, _)| next >= *until) {
                prop_assert_eq!(&rest(&mut fabric, &heard), &before, "until {:?}", until);
            }
            if claim.is_none() && fabric.is_idle() {
                let until = fabric.next_event_when_idle().unwrap_or(Time::NEVER).min(end);
                if next < until && until >= fabric.now() + WORTH {
                    let now = rest(&mut fabric, &heard);
                    prop_assert_eq!(now.live, (0, 0), "TLPs and transactions at {:?}", fabric.now());
                    claim = Some((until, now));
                    rests += 1;
                }
            }
            fabric.step();
        }
        prop_assert!(rests > 0);
        if let Some((until, before)) = claim {
            prop_assert_eq!(&rest(&mut fabric, &heard), &before, "until {:?}", until);
        }
    }

    /// With stretches left out, the same is there at the end, and answers. (A TLP under way at a removal may have been an instant earlier
    /// or later, as a refresh held it up.)
    #[test]
    fn skipped_refreshes_leave_the_rest_after_a_removal_unchanged(pulled in pulled()) {
        let (mut all, heard_all) = pulled.build(None);
        all.run_until(at(END));
        let (mut some, heard_some) = pulled.build(None);
        run_skipping(&mut some, at(END));
        prop_assert_eq!(some.now(), at(END));
        prop_assert!(some.skipped_refreshes() > 0);
        let outages = |fabric: &Fabric| {
            let of = |outage: &Outage| (outage.link, outage.down, outage.up.is_some(), outage.configured.is_some());
            fabric.outages().iter().map(of).collect::<Vec<_>>()
        };
        prop_assert_eq!(outages(&some), outages(&all));
        prop_assert_eq!(some.devices(), all.devices());
        prop_assert_eq!((some.tlps_live(), some.transactions_live()), (0, 0));
        prop_assert_eq!(credits(&some), credits(&all));
        prop_assert_eq!(some.protocol_errors().count(), 0);
        let (with, without) = (heard_all.lock().unwrap().last, heard_some.lock().unwrap().last);
        prop_assert_eq!(with.map(|(_, well)| well), without.map(|(_, well)| well));
        if let (Some((with, true)), Some((without, true))) = (with, without) {
            prop_assert!(with.max(without) - with.min(without) < Duration::from_us(5), "{:?} {:?}", with, without);
        }
    }
}

/// A card with a ring behind links of one lane of gen1, which interrupts by wire and is removed by one fault.
fn interrupting(links: usize, fault: (usize, i64, Option<u64>, Removal)) -> Pulled {
    Pulled {
        links: vec![(1, 1); links],
        flight: 5,
        latency: 2000,
        headers: None,
        interrupts: InterruptPolicy::Intx,
        rings: vec![MS],
        accesses: Vec::new(),
        writes: 0,
        faults: vec![fault],
    }
}

/// The message that raises the wire waits in the root complex when its card goes, for good or for an instant. Nobody would lower the wire again, and the
/// host's handlers would be called every two microseconds.
#[test]
fn a_wire_goes_with_its_card() {
    for back in [None, Some(1), Some(3000)] {
        for switches in [0, 1] {
            // The message takes half a microsecond to the root complex, and two in it.
            let pulled = interrupting(switches + 1, (0, 1200, back, Removal { at: 0, reset: false }));
            let (mut fabric, heard) = pulled.build(None);
            fabric.run_until(at(2 * MS));
            let before = heard.lock().unwrap().events;
            assert!(before < 200, "{before} calls, {back:?}, {switches} switches");
            fabric.run_until(at(12 * MS));
            assert_eq!(heard.lock().unwrap().events, before, "{back:?}, {switches} switches");
        }
    }
}

/// Ports of two switches share a wire, and the host needs longer to look at one slot than its interrupt controller waits for: each slot has its turn.
#[test]
fn slots_that_share_a_wire_are_served_in_turn() {
    let pulled = interrupting(3, (0, 0, None, Removal { at: 2, reset: false }));
    let (mut fabric, heard) = pulled.build(None);
    fabric.run_until(at(2 * MS));
    let before = heard.lock().unwrap().events;
    assert!(before < 300, "{before} calls");
    fabric.run_until(at(12 * MS));
    assert_eq!(heard.lock().unwrap().events, before);
}
