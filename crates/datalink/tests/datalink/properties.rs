//! Two ports and a channel that loses, damages and delays, for any schedule, any buffers, either mode: every TLP is delivered
//! exactly once and in order, nothing is sent without credit, and when all is quiet every credit is back.

use crate::pair::{Fate, GOOD, Pair};
use proptest::prelude::*;
use std::collections::VecDeque;
use tlplab_datalink::{
    AckLatency, ClassBuffer, Config, CreditBatch, Credits, Event, FlowControl, LinkLayer, ReceiveBuffers,
    ReplayBuffer, TlpShape, UpdateFcLatency, VcBuffers,
};
use tlplab_units::{Duration, FcClass, Generation, LinkMode, Mps, Time, Vc, Width};

/// A port's configuration, as proptest shrinks it.
#[derive(Clone, Debug)]
struct PortPlan {
    /// Header and data credits above the least, per class; `None` is infinite.
    extra: [Option<(u16, u16)>; 3],
    replay_tlps: Option<u32>,
    replay_bytes: Option<u32>,
    ack: AckLatency,
    ack_every: Option<u16>,
    batch: CreditBatch,
    fc_latency: UpdateFcLatency,
    scaled: bool,
}

#[derive(Clone, Debug)]
struct Plan {
    generation: u8,
    width: usize,
    flit: bool,
    credits: bool,
    mps: usize,
    second_vc: bool,
    ports: [PortPlan; 2],
    tlps: usize,
    seed: u64,
    /// Per mille of units.
    lost: u32,
    damaged: u32,
    flight_ns: u64,
    jitter_ns: u64,
    /// The longest a TLP stays in the receive buffer.
    hold_ns: u64,
    /// The mean time between two TLPs that become ready.
    pause_ns: u64,
}

fn port_plan() -> impl Strategy<Value = PortPlan> {
    let extra = || prop::option::weighted(0.8, (0u16..40, 0u16..100));
    let large = || prop::option::weighted(0.8, (100u16..900, 1000u16..20_000));
    let extra = prop_oneof![
        4 => (extra(), extra(), extra()).prop_map(|(p, np, cpl)| [p, np, cpl]),
        1 => (large(), large(), large()).prop_map(|(p, np, cpl)| [p, np, cpl]),
    ];
    let ack = prop_oneof![
        Just(AckLatency::Specification),
        Just(AckLatency::AtOnce),
        (1u64..2000).prop_map(|ns| AckLatency::Fixed(Duration::from_ns(ns))),
    ];
    let batch = prop_oneof![
        Just(CreditBatch::EachTlp),
        (2u8..=255).prop_map(CreditBatch::Part),
        Just(CreditBatch::Unlimited)
    ];
    let fc_latency = prop_oneof![
        Just(UpdateFcLatency::Unlimited),
        Just(UpdateFcLatency::Specification),
        (1u64..2000).prop_map(|ns| UpdateFcLatency::Fixed(Duration::from_ns(ns))),
    ];
    (
        extra,
        prop::option::of(1u32..40),
        prop::option::of(0u32..2000),
        ack,
        prop::option::of(1u16..20),
        (batch, fc_latency),
        any::<bool>(),
    )
        .prop_map(|(extra, replay_tlps, replay_bytes, ack, ack_every, (batch, fc_latency), scaled)| {
            PortPlan { extra, replay_tlps, replay_bytes, ack, ack_every, batch, fc_latency, scaled }
        })
}

fn plan() -> impl Strategy<Value = Plan> {
    let credits = prop::bool::weighted(0.7);
    let link = (1u8..=7, 0usize..Width::ALL.len(), any::<bool>(), credits, 0usize..4, any::<bool>());
    let channel = (0u32..200, 0u32..200, 0u64..500, 0u64..500);
    let load = (1usize..150, any::<u64>(), 0u64..3000, 0u64..200);
    (link, [port_plan(), port_plan()], channel, load).prop_map(
        |(
            (generation, width, flit, credits, mps, second_vc),
            ports,
            (lost, damaged, flight_ns, jitter_ns),
            (tlps, seed, hold_ns, pause_ns),
        )| {
            let flit = flit || generation >= 6;
            Plan {
                generation,
                width,
                flit,
                credits: credits || flit,
                mps,
                second_vc,
                ports,
                tlps,
                seed,
                lost,
                damaged,
                flight_ns,
                jitter_ns,
                hold_ns,
                pause_ns,
            }
        },
    )
}

impl Plan {
    fn config(&self, side: usize) -> Config {
        let plan = &self.ports[side];
        let mps = Mps::ALL[self.mps];
        let generation = Generation::new(self.generation).unwrap();
        let mut config = Config::new(generation, Width::ALL[self.width], mps);
        config.mode = if self.flit { LinkMode::Flit } else { LinkMode::NonFlit };
        config.flow_control = if self.credits { FlowControl::Credits } else { FlowControl::DropAndReplay };
        let least = (mps.bytes() / 16) as u16;
        let buffers = plan.extra.map(|extra| match extra {
            None => ClassBuffer::INFINITE,
            Some((header, data)) => ClassBuffer::finite(1 + header, least + data),
        });
        config.receive = ReceiveBuffers::vc0(buffers[0], buffers[1], buffers[2]);
        if self.second_vc {
            let [p, np, cpl] = buffers;
            config.receive = config.receive.with(Vc::new(3).unwrap(), VcBuffers([cpl, p, np]));
        }
        config.replay = ReplayBuffer {
            tlps: plan.replay_tlps,
            bytes: plan.replay_bytes.map(|more| mps.bytes() + 36 + 256 + more),
        };
        config.ack.latency = plan.ack;
        config.ack.every = plan.ack_every.filter(|_| self.credits);
        (config.fc.batch, config.fc.latency) = (plan.batch, plan.fc_latency);
        if config.fc.batch == CreditBatch::Unlimited && config.fc.latency == UpdateFcLatency::Unlimited {
            config.fc.latency = UpdateFcLatency::Specification;
        }
        config.scaled_flow_control = plan.scaled;
        // A little more than an Ack can take. (A timer that is shorter than the round trip replays for ever, and Recovery
        // throws away the Acks that are on their way.)
        let round_trip = Duration::from_ns(2 * (self.flight_ns + self.jitter_ns) + 2000);
        config.replay_timer = Some(round_trip + config.rate().time_of(4 * u64::from(mps.bytes() + 60)));
        config
    }
}

/// A stream of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

/// One end's traffic: the TLPs that it wants to send, and those that it has received and not yet released.
#[derive(Default)]
struct Traffic {
    /// By virtual channel and class: a blocked class does not hold up the others.
    waiting: [VecDeque<(Time, u32)>; 6],
    sent: Vec<u32>,
    acked: Vec<u32>,
    lost: Vec<u32>,
    /// The TLPs that arrived from the peer.
    delivered: Vec<u32>,
    held: Vec<(Time, u32)>,
}

struct Run {
    pair: Pair,
    shapes: Vec<TlpShape>,
    traffic: [Traffic; 2],
    random: Random,
    hold_ns: u64,
}

impl Run {
    fn new(plan: &Plan, mut pair: Pair) -> Self {
        pair.flight = Duration::from_ns(plan.flight_ns);
        pair.recovery = Duration::from_ns(200);
        let mut run = Self {
            pair,
            shapes: Vec::new(),
            traffic: Default::default(),
            random: Random(plan.seed),
            hold_ns: plan.hold_ns,
        };
        run.add_tlps(plan);
        run
    }

    fn add_tlps(&mut self, plan: &Plan) {
        let mut ready = [self.pair.now; 2];
        for _ in 0..plan.tlps {
            let side = self.random.below(2) as usize;
            ready[side] += Duration::from_ns(self.random.below(2 * plan.pause_ns + 1));
            let class = FcClass::ALL[self.random.below(3) as usize];
            let vc = if plan.second_vc && self.random.below(3) == 0 { 3 } else { 0 };
            let most = u64::from(self.pair.ends[0].config().max_data_credits(class)) * 16;
            let payload = (4 * self.random.below(most / 4 + 1)) as u32;
            self.shapes.push(TlpShape {
                vc: Vc::new(vc).unwrap(),
                class,
                bytes: 12 + 4 * self.random.below(3) as u32 + payload,
                data_credits: payload.div_ceil(16) as u16,
            });
            let queue = class.index() + usize::from(vc);
            self.traffic[side].waiting[queue].push_back((ready[side], self.shapes.len() as u32 - 1));
        }
    }

    fn faults(&mut self, plan: &Plan) {
        let mut random = Random(plan.seed ^ 0xFA);
        let Plan { lost, damaged, jitter_ns, .. } = *plan;
        self.pair.faults = Box::new(move |_, _| match random.below(1000) as u32 {
            n if n < lost => Fate::Drop,
            n if n < lost + damaged => Fate::Corrupt,
            _ => Fate::Pass(Duration::from_ns(random.below(jitter_ns + 1))),
        });
    }

    /// Both owners do all they can at this instant; returns the time at which they want to be asked again.
    fn act(&mut self) -> Time {
        let mut next = Time::NEVER;
        let now = self.pair.now;
        for (side, traffic) in self.traffic.iter_mut().enumerate() {
            let end = &mut self.pair.ends[side];
            traffic.held.retain(|&(at, handle)| {
                if at <= now {
                    end.release(now, &self.shapes[handle as usize]);
                } else {
                    next = next.min(at);
                }
                at > now
            });
            for queue in &mut traffic.waiting {
                while let Some(&(ready, handle)) = queue.front() {
                    let shape = self.shapes[handle as usize];
                    if ready > now {
                        next = next.min(ready);
                    } else if end.admit(&shape).is_ok() {
                        end.send(now, handle, shape);
                        traffic.sent.push(handle);
                        queue.pop_front();
                        continue;
                    }
                    break;
                }
            }
        }
        next
    }

    fn take_events(&mut self) {
        while let Some((side, event)) = self.pair.events.pop_front() {
            let traffic = &mut self.traffic[side];
            match event {
                Event::Deliver(handle) => {
                    traffic.delivered.push(handle);
                    let hold = Duration::from_ns(self.random.below(self.hold_ns + 1));
                    traffic.held.push((self.pair.now + hold, handle));
                }
                Event::Acked(handle) => traffic.acked.push(handle),
                Event::Lost(handle) => traffic.lost.push(handle),
                Event::Error(error) => panic!("{error}"),
                _ => {}
            }
        }
    }

    fn run_until(&mut self, until: Time) {
        loop {
            let wake = self.act();
            let more = self.pair.step(wake.min(until));
            self.take_events();
            if !more && self.pair.now >= until {
                return;
            }
        }
    }

    fn is_done(&self) -> bool {
        self.traffic.iter().all(|traffic| {
            traffic.waiting.iter().all(VecDeque::is_empty)
                && traffic.held.is_empty()
                && traffic.sent.len() == traffic.acked.len() + traffic.lost.len()
        })
    }

    /// Runs until everything is delivered and acknowledged; the time it may take is bounded.
    fn run_to_the_end(&mut self) {
        let limit = self.pair.now + Duration::from_ms(5);
        while !self.is_done() {
            assert!(
                self.pair.now < limit,
                "no progress: {:?}",
                self.pair.ends.each_ref().map(|end| *end.counters())
            );
            self.run_until(self.pair.now + Duration::from_us(10));
        }
    }

    /// The channel behaves from now on, and the periodic UpdateFC has had its time: all is as at the start.
    fn expect_rest(&mut self, plan: &Plan) {
        self.pair.faults = Box::new(|_, _| GOOD);
        self.run_until(self.pair.now + Duration::from_us(100));
        assert!(self.pair.is_quiet() || self.pair.now > Time::ZERO);
        for side in 0..2 {
            let end = &self.pair.ends[side];
            assert_eq!(end.replay_occupancy(), Default::default(), "replay buffer");
            let peer = self.pair.ends[1 - side].config();
            let scaled = plan.ports.iter().all(|port| port.scaled);
            if !plan.credits {
                continue;
            }
            for (vc, buffers) in peer.receive.vcs.iter().enumerate() {
                let Some(VcBuffers(buffers)) = buffers else { continue };
                for class in FcClass::ALL {
                    let left = end.credits(Vc::new(vc as u8).unwrap(), class);
                    let buffer = buffers[class.index()];
                    expect_credits(left.header, buffer.header, scaled, [127, 508]);
                    expect_credits(left.data, buffer.data, scaled, [2047, 8188]);
                }
            }
        }
    }
}

/// All advertised credits are back, but for less than one unit of the scale.
fn expect_credits(left: Option<u32>, advertised: Credits, scaled: bool, [unscaled, by_4]: [u32; 2]) {
    let Credits::Finite(count) = advertised else { return assert_eq!(left, None) };
    let (left, count) = (left.expect("finite"), u32::from(count));
    if !scaled || count <= unscaled {
        assert_eq!(left, count.min(unscaled));
    } else {
        let unit = if count <= by_4 { 4 } else { 16 };
        let all = count / unit * unit;
        assert!(left <= all && left > all - unit, "{left} of {all} credits");
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_bad_channel_loses_nothing(plan in plan()) {
        let mut run = Run::new(&plan, Pair::up(plan.config(0), plan.config(1)));
        run.faults(&plan);
        run.run_to_the_end();
        for side in 0..2 {
            prop_assert_eq!(&run.traffic[1 - side].delivered, &run.traffic[side].sent);
            prop_assert_eq!(&run.traffic[side].acked, &run.traffic[side].sent);
        }
        run.expect_rest(&plan);
    }

    #[test]
    fn a_bad_channel_comes_up_too(plan in plan()) {
        let mut run = Run::new(&plan, Pair::down(plan.config(0), plan.config(1)));
        run.faults(&plan);
        run.pair.link_up();
        run.run_to_the_end();
        for side in 0..2 {
            prop_assert_eq!(&run.traffic[1 - side].delivered, &run.traffic[side].sent);
        }
        run.expect_rest(&plan);
    }

    #[test]
    fn a_link_that_goes_down_gives_everything_back(plan in plan(), after_ns in prop::collection::vec(0u64..20_000, 1..4)) {
        let mut run = Run::new(&plan, Pair::up(plan.config(0), plan.config(1)));
        run.faults(&plan);
        for ns in after_ns {
            run.run_until(run.pair.now + Duration::from_ns(ns));
            run.pair.link_down();
            run.take_events();
            run.run_until(run.pair.now + Duration::from_ns(ns / 3));
            run.pair.link_up();
        }
        run.run_to_the_end();
        for side in 0..2 {
            let (sender, receiver) = (&run.traffic[side], &run.traffic[1 - side]);
            // Delivered in the order of sending, at most once, and surely if acknowledged.
            let mut order = sender.sent.iter();
            for handle in &receiver.delivered {
                prop_assert!(order.any(|sent| sent == handle), "TLP {} again or out of order", handle);
            }
            for handle in &sender.acked {
                prop_assert!(receiver.delivered.contains(handle), "TLP {} was acknowledged, not delivered", handle);
            }
            let mut back: Vec<_> = sender.acked.iter().chain(&sender.lost).copied().collect();
            let mut sent = sender.sent.clone();
            back.sort_unstable();
            sent.sort_unstable();
            prop_assert_eq!(back, sent);
        }
        run.expect_rest(&plan);
    }
}
