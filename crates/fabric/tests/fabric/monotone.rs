//! More buffer never carries less, and a longer way never more: one flow, whatever its TLPs, buffers and link, by every policy whose batches
//! are a quarter of the buffer or less. Halves, and times, can meet another window (tags, trains of TLPs) out of step: there a credit less may
//! carry more, and what holds is a bound.

use crate::bench::any::cases;
use crate::bench::{Bench, flow, ns};
use crate::saturation::whole_grid;
use proptest::prelude::*;
use tlplab_device::{LoadConfig, LoadOp};
use tlplab_fabric::config::*;
use tlplab_units::{Duration, LinkMode, Mps, Time, Width};

const POLICIES: [UpdateFcPolicy; 5] = [
    UpdateFcPolicy::EACH_TLP,
    UpdateFcPolicy::EIGHTHS,
    UpdateFcPolicy::QUARTERS,
    UpdateFcPolicy::HALVES,
    UpdateFcPolicy::SPECIFICATION,
];

/// Of which every credit more is worth something.
const FINE: [UpdateFcPolicy; 3] =
    [UpdateFcPolicy::EACH_TLP, UpdateFcPolicy::EIGHTHS, UpdateFcPolicy::QUARTERS];

/// A device that reads or writes host memory over one link.
#[derive(Clone, Debug)]
struct Flow {
    generation: u8,
    lanes: u8,
    flit: bool,
    mps: Mps,
    op: LoadOp,
    size: u64,
    flight_ns: u64,
    /// Of the root port, for the class of the requests.
    buffer: Buffer,
    policy: UpdateFcPolicy,
}

#[derive(Clone, Copy, Debug)]
enum Buffer {
    Headers(u32),
    /// Units of 16 bytes.
    Data(u32),
    Advertised,
}

const INFINITE: Buffers = Buffers {
    posted_headers: 0,
    posted_data: 0,
    non_posted_headers: 0,
    non_posted_data: 0,
    completion_headers: 0,
    completion_data: 0,
};

impl Flow {
    fn buffers(&self) -> Option<Buffers> {
        match (self.buffer, self.op) {
            (Buffer::Advertised, _) => None,
            (Buffer::Headers(n), LoadOp::Read) => Some(Buffers { non_posted_headers: n, ..INFINITE }),
            (Buffer::Headers(n), _) => Some(Buffers { posted_headers: n, ..INFINITE }),
            (Buffer::Data(n), _) => Some(Buffers { posted_data: n, ..INFINITE }),
        }
    }

    /// Payload in bits per second, after the first microseconds.
    fn throughput(&self) -> f64 {
        let (warmup, window) = (Duration::from_us(20), Duration::from_us(200));
        let mut bench = Bench::new();
        bench.config.fidelity = Fidelity::LengthOnly;
        bench.warmup(warmup);
        let load = LoadConfig { op: self.op, size: self.size, outstanding: 256, ..LoadConfig::default() };
        bench
            .device("dev", "host.rp0", self.generation, self.lanes)
            .config(|device| {
                let link = &mut device.link;
                (link.mps, link.flight) = (self.mps, ns(self.flight_ns));
                if self.flit {
                    link.mode = LinkMode::Flit;
                }
                (link.upper.buffers, link.upper.update_fc) = (self.buffers(), self.policy);
                // The specification's is for wires of some metres: past it everything is sent twice.
                link.lower.replay_timer = Some(Duration::from_us(100));
                link.upper.replay_timer = Some(Duration::from_us(100));
                device.mrrs = tlplab_units::Mrrs::ALL[2];
            })
            .load(load);
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + warmup + window);
        flow(&fabric, "dev").bytes as f64 * 8e15 / window.as_fs() as f64
    }

    /// Payload of the largest TLP that has data.
    fn payload(&self) -> f64 {
        self.size.min(u64::from(self.mps.bytes())) as f64
    }

    /// Writes of the largest size that a flit holds, one at least.
    fn writes_in_a_flit(&self) -> f64 {
        const FLIT: f64 = 236.0;
        const HEADER: f64 = 16.0;
        (FLIT / (HEADER + self.payload())).max(1.0)
    }

    /// TLPs of the largest size that the buffer holds.
    fn tlps(&self) -> f64 {
        let payload = self.payload();
        match self.buffer {
            Buffer::Headers(n) => f64::from(n),
            Buffer::Data(n) => (f64::from(n) * 16.0 / payload).floor(),
            Buffer::Advertised => f64::INFINITY,
        }
    }
}

/// What one TLP more or less per round trip, and one transaction more or less in the window, may make of a throughput. A batch of credits that ends
/// in a new flit leaves that partly empty: there it is a flit's worth of writes.
fn rounding(less: &Flow, throughput: f64) -> f64 {
    let window = 200e-6;
    let tlps = if less.flit && less.op == LoadOp::Write { less.writes_in_a_flit() } else { 1.0 };
    throughput * tlps / less.tlps() + less.size as f64 * 8.0 / window
}

/// With one of the `policies`.
fn any_flow(policies: &'static [UpdateFcPolicy]) -> impl Strategy<Value = Flow> {
    let link = (1u8..=6, 0usize..Width::ALL.len(), any::<bool>(), 0usize..3);
    let size = prop_oneof![Just(64u64), Just(128), Just(256), Just(512), Just(1500), Just(4096)];
    let buffer = prop_oneof![(2u32..160).prop_map(Buffer::Headers), (1u32..100).prop_map(Buffer::Data)];
    (link, any::<bool>(), size, 0u64..1000, buffer, prop::sample::select(policies)).prop_map(
        |((generation, width, flit, mps), read, size, flight_ns, buffer, policy)| {
            let mps = Mps::ALL[mps];
            let flit = flit || generation >= 6;
            let op = if read { LoadOp::Read } else { LoadOp::Write };
            let buffer = match buffer {
                // A TLP of the largest size must fit; reads have no data.
                Buffer::Data(n) if read => Buffer::Headers(n),
                Buffer::Data(n) => Buffer::Data(n + mps.bytes() / 16),
                other => other,
            };
            let lanes = Width::ALL[width].lanes();
            Flow { generation, lanes, flit, mps, op, size, flight_ns, buffer, policy }
        },
    )
}

/// Devices below a switch that share its uplink, some of which write and some read, with TLPs of one size. Which of them is next changes
/// with the credits, and with it how their completions queue: of 1000 cases one falls by more than half a percent
/// ([`two_readers_of_a_full_uplink_take_other_turns`]).
#[derive(Clone, Debug)]
struct Contention {
    devices: usize,
    reads: [bool; 4],
    size: u64,
    lanes: u8,
    flight_ns: u64,
    headers: u32,
    policy: UpdateFcPolicy,
    /// Are these the headers of the switch below each device's link? If not, of the root port.
    at_switch: bool,
}

impl Contention {
    /// Payload of all flows together in bits per second, and the bytes that took the fuller direction of the uplink.
    fn throughput(&self) -> (f64, u64) {
        let (warmup, window) = (Duration::from_us(20), Duration::from_us(400));
        let mut bench = Bench::new();
        bench.config.fidelity = Fidelity::LengthOnly;
        bench.warmup(warmup);
        let headers = self.headers;
        let buffers = Some(Buffers { posted_headers: headers, non_posted_headers: headers, ..INFINITE });
        let port = PortConfig { buffers, update_fc: self.policy, ..PortConfig::default() };
        let uplink = &mut bench.switch("sw0", "host.rp0", 3, self.lanes).uplink;
        uplink.flight = ns(self.flight_ns);
        if !self.at_switch {
            uplink.upper = port.clone();
        }
        let names = ["a", "b", "c", "d"];
        for (name, read) in names.into_iter().zip(self.reads).take(self.devices) {
            let op = if read { LoadOp::Read } else { LoadOp::Write };
            let load = LoadConfig { op, size: self.size, outstanding: 64, ..LoadConfig::default() };
            let device = bench.device(name, "sw0", 3, 4).config(|device| {
                device.link.flight = ns(self.flight_ns);
                if self.at_switch {
                    device.link.upper = port.clone();
                }
            });
            device.load(load);
        }
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + warmup + window);
        let bytes: u64 = names[..self.devices].iter().map(|name| flow(&fabric, name).bytes).sum();
        let uplink =
            fabric.topology().links.iter().find(|link| link.name == "sw0").expect("its uplink").ports;
        let used = uplink.map(|port| {
            let wire = fabric.direction_result(port).wire;
            wire.payload + wire.overhead + wire.dllp
        });
        (bytes as f64 * 8e15 / window.as_fs() as f64, used[0].max(used[1]))
    }
}

fn any_contention() -> impl Strategy<Value = Contention> {
    let size = prop_oneof![Just(64u64), Just(128), Just(256)];
    let lanes = prop_oneof![Just(1u8), Just(4), Just(8)];
    let policy = prop::sample::select(&FINE[..]);
    (2usize..=4, any::<[bool; 4]>(), size, lanes, 0u64..150, 1u32..100, policy, any::<bool>()).prop_map(
        |(devices, reads, size, lanes, flight_ns, headers, policy, at_switch)| Contention {
            devices,
            reads,
            size,
            lanes,
            flight_ns,
            headers,
            policy,
            at_switch,
        },
    )
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn contended_throughput_falls_by_half_a_percent_at_most(one in any_contention(), more in 1u32..12) {
        let larger = Contention { headers: one.headers + more, ..one.clone() };
        let ((less, used), (more, used_by_more)) = (one.throughput(), larger.throughput());
        // Reads ask over the wire that writes take, and have their data over the other: where writers get more of a full wire, there is less payload in all.
        let reads = &one.reads[..one.devices];
        let is_mixed = reads.iter().any(|read| *read) && !reads.iter().all(|read| *read);
        let other_mix = is_mixed && used_by_more as f64 >= used as f64 * 0.995;
        let (one, other) = (one.headers, larger.headers);
        prop_assert!(other_mix || more >= less * 0.995, "{less} with {one}, {more} with {other} headers");
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn throughput_never_falls_with_more_buffer(flow in any_flow(&FINE), more in 1u32..12) {
        let buffer = match flow.buffer {
            Buffer::Headers(n) => Buffer::Headers(n + more),
            Buffer::Data(n) => Buffer::Data(n + more),
            Buffer::Advertised => Buffer::Advertised,
        };
        let larger = Flow { buffer, ..flow.clone() };
        let (with_less, with_more) = (flow.throughput(), larger.throughput());
        let allowed = rounding(&flow, with_less);
        prop_assert!(with_more >= with_less - allowed, "{with_less} with {:?}, {with_more} with {buffer:?}", flow.buffer);
    }

    #[test]
    fn throughput_never_rises_with_latency(flow in any_flow(&FINE), more_ns in 1u64..200) {
        let farther = Flow { flight_ns: flow.flight_ns + more_ns, ..flow.clone() };
        let (near, far) = (flow.throughput(), farther.throughput());
        let allowed = rounding(&flow, near);
        prop_assert!(far <= near + allowed, "{near} at {} ns, {far} at {} ns", flow.flight_ns, farther.flight_ns);
    }

    /// Less than half of the buffer is ever missing from the loop. (A TLP of rounding on either side.)
    #[test]
    fn updates_by_halves_carry_at_least_half_the_buffer(flow in any_flow(&[UpdateFcPolicy::HALVES])) {
        let half = |n: u32| n - n / 2;
        // Below 16 GT/s credits are not scaled: a port advertises so many headers at most.
        let most = if flow.generation < 4 { 127 } else { u32::MAX };
        let buffer = match flow.buffer {
            Buffer::Headers(n) => Buffer::Headers(half(n.min(most))),
            Buffer::Data(n) => Buffer::Data(half(n).max(flow.mps.bytes() / 16)),
            Buffer::Advertised => Buffer::Advertised,
        };
        let least = Flow { buffer, policy: UpdateFcPolicy::EACH_TLP, ..flow.clone() };
        let (least, halves) = (least.throughput(), flow.throughput());
        prop_assert!(halves >= least - 2.0 * rounding(&flow, least), "{halves} with {:?}, {least} with {buffer:?}", flow.buffer);
    }

    /// No credit waits longer than the policy's time.
    #[test]
    fn an_update_latency_costs_no_more_than_a_longer_flight(flow in any_flow(&[UpdateFcPolicy::EACH_TLP]), ns in 20u64..1000) {
        let latency = UpdateFcLatency::Fixed(Duration::from_ns(ns));
        let timed = Flow { policy: UpdateFcPolicy { latency, ..UpdateFcPolicy::SPECIFICATION }, ..flow.clone() };
        let farther = Flow { flight_ns: flow.flight_ns + ns.div_ceil(2), ..flow.clone() };
        let (least, timed) = (farther.throughput(), timed.throughput());
        prop_assert!(timed >= least - 2.0 * rounding(&flow, least), "{timed} with {ns} ns, {least} with a longer way");
    }
}

/// Two devices on gen3 x4 read 128 B each through gen3 x8. Five headers at the root port, an odd number, pace the two: 3 % more than any
/// other buffer carries, larger or smaller. From six on it is the same, however many there are.
#[test]
fn two_readers_of_a_full_uplink_take_other_turns() {
    let at = |headers| {
        let policy = UpdateFcPolicy::EACH_TLP;
        let reads = [true; 4];
        let one = Contention {
            devices: 2,
            reads,
            size: 128,
            lanes: 8,
            flight_ns: 38,
            headers,
            policy,
            at_switch: false,
        };
        one.throughput().0 / 1e9
    };
    let five = at(5);
    let others: &[u32] = if whole_grid() { &[4, 6, 7, 8, 12] } else { &[4, 6] };
    assert!(others.iter().all(|&headers| (0.95..0.97).contains(&(at(headers) / five))));
}

/// Four to eleven posted headers at gen3 x8 and 200 ns: an odd one was worth less than nothing while half a batch was rounded up.
#[test]
fn each_header_credit_is_worth_something_by_every_policy() {
    for policy in POLICIES {
        let mut before = 0.0;
        for headers in 4..=11 {
            let buffer = Buffer::Headers(headers);
            let (mps, op) = (Mps::ALL[1], LoadOp::Write);
            let flow = Flow {
                generation: 3,
                lanes: 8,
                flit: false,
                mps,
                op,
                size: 256,
                flight_ns: 200,
                buffer,
                policy,
            };
            let throughput = flow.throughput();
            assert!(
                throughput >= before * 0.999,
                "{headers} headers carry {throughput}, one less {before}: {policy:?}"
            );
            before = throughput;
        }
    }
}

/// Gen5 x16, MPS 128 and 500 ns each way: 508 headers are 65 KB, and 53 KB are under way at full rate. 128 of 152 B of 504.1 Gb/s
/// are 424 Gb/s.
#[test]
fn default_buffers_carry_500_ns_of_gen5_x16() {
    let (mps, op, buffer) = (Mps::ALL[0], LoadOp::Write, Buffer::Advertised);
    let policy = UpdateFcPolicy::default();
    let flow =
        Flow { generation: 5, lanes: 16, flit: false, mps, op, size: 4096, flight_ns: 500, buffer, policy };
    let full = Flow { flight_ns: 0, ..flow.clone() }.throughput();
    assert!(flow.throughput() > 0.999 * full, "{} of {full}", flow.throughput());
    assert!(full > 423e9);
    let halves = Flow { policy: UpdateFcPolicy::HALVES, ..flow };
    assert!(halves.throughput() < 0.8 * full, "this is what the policy decides");
}

/// Sixty-four byte reads on gen5 x1 with 26 headers: an UpdateFC waits for the completion on the wire, and what is freed meanwhile is of
/// the next batch. Were it of none, half of the buffer would be missing from some of these loops.
#[test]
fn a_longer_way_costs_the_same_share_of_every_policy() {
    let whole = [300, 400, 500, 590, 600, 610, 620, 700, 800];
    let flights = if whole_grid() { &whole[..] } else { &whole[3..7] };
    for policy in POLICIES {
        let mut before = f64::INFINITY;
        for &flight_ns in flights {
            let (mps, op, buffer) = (Mps::ALL[1], LoadOp::Read, Buffer::Headers(26));
            let flow =
                Flow { generation: 5, lanes: 1, flit: false, mps, op, size: 64, flight_ns, buffer, policy };
            let throughput = flow.throughput();
            assert!(
                throughput < before * 1.001,
                "{throughput} at {flight_ns} ns, nearer {before}: {policy:?}"
            );
            before = throughput;
        }
    }
}
