//! Custom nodes: their decisions hold, nothing is lost or miscounted around them, and a snapshot copies or names them.
#![allow(unreachable_pub, reason = "shared with the tests of links")]

use crate::bench::any::cases;
use crate::bench::any::strategies::{any_fabric, any_faults};
use crate::bench::mover::{Base, Move, Mover};
use crate::bench::script::{Card, DOORBELL, Place, Script, Step, read, write};
use crate::bench::{Bench, Tap, Watch, link, ns, only_flow, put_above};
use crate::custom_links::{Jitter, Same};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use tlplab_datalink::Engine;
use tlplab_device::{Context, Device, DmaError, Event as DeviceEvent, Identity, LoadConfig, LoadOp, Memory};
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::*;
use tlplab_fabric::probe::TlpRecord;
use tlplab_fabric::{BuildError, Builder, Ending, Fabric, NoSnapshot, NodeContext, NodeModel, Side, Verdict};
use tlplab_transaction::{CompletionError, Payload, memory_access};
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::{CompletionStatus as Status, Kind, Repr, TransactionId};

pub fn at(us: u64) -> Time {
    Time::ZERO + Duration::from_us(us)
}

proptest! {
    #![proptest_config(cases(24))]

    /// A node that lets everything by changes nothing but times, wherever it stands: what is asked for arrives once, and causes sum to latencies.
    #[test]
    fn nodes_in_the_way_lose_nothing(
        any in any_fabric(), faults in any_faults(), above in any::<u16>(),
    ) {
        let any = any.with_faults(&faults);
        let mut built = any.build_with(|config| {
            let devices = config.devices.iter().filter(|device| device.function_of.is_none());
            let names = config.switches.iter().map(|s| s.name.clone()).chain(devices.map(|d| d.name.clone()));
            let names: Vec<_> = names.enumerate().filter(|(i, _)| above >> (i % 16) & 1 == 1).collect();
            for (i, name) in names {
                let mut node = put_above(config, &name);
                node.latency = ns(20 * i as u64);
                config.nodes.push(node);
            }
        });
        let mut copy = built.fabric.snapshot(None).expect("a tap can be copied");
        built.run(Duration::from_ms(400));
        built.check_complete();
        let fabric = &mut built.fabric;
        prop_assert_eq!((fabric.transactions_live(), fabric.tlps_live()), (0, 0));
        prop_assert_eq!(fabric.protocol_errors().count(), 0);
        built.watch.check_attribution(fabric);
        copy.run_until(fabric.now());
        prop_assert_eq!(copy.trace_hash(), fabric.trace_hash());
    }
}

/// A read of 64 B from Gen1 x4, on whose way a node stands: one more link each way, and the node's latency.
#[test]
fn a_node_costs_its_latency_and_a_link() {
    let run = |tap: Option<Duration>| {
        let mut bench = Bench::new();
        let (mover, _) = Mover::new(Base::Address(1 << 32), 1, vec![Move::Write { at: 0, bytes: 64 }]);
        bench.device("dev", "host.rp0", 1, 4).finishing(Box::new(mover));
        bench.config.devices[0].link.skp = SkpPolicy::Off;
        if let Some(latency) = tap {
            let node = NodeConfig { latency, ..put_above(&mut bench.config, "dev") };
            bench.own(|builder| {
                builder.node(node, Box::new(Tap));
            });
        }
        let (fabric, _) = bench.finish();
        only_flow(&fabric).latency_max
    };
    // 16 B of header (4 GiB and above), 64 of data, 8 of framing: 88 B, 1 ns each on four lanes of 2.5 GT/s.
    assert_eq!(run(None), ns(88));
    assert_eq!(run(Some(ns(30))), ns(88 + 30 + 88));
}

/// Software below and beyond does not see it: registers, memory, MSI-X.
#[test]
fn software_does_not_see_a_node() {
    for enumeration in [EnumerationTime::Before, EnumerationTime::Simulated] {
        let mut bench = Bench::new();
        bench.config.host.enumeration = enumeration;
        bench.switch("sw0", "host.rp0", 3, 4);
        let (card, lived) = Card::new();
        bench.device("card", "sw0", 3, 4).model(card);
        let copy = write(Place::Bar("card", 0, DOORBELL), &0x10_0000u32.to_le_bytes());
        let (script, heard) = Script::new(vec![copy, Step::Wait(Duration::from_us(20))]);
        bench.finishing_program(script);
        bench.node_above("card", Tap).node_above("sw0", Tap);
        let watch = Watch::everything();
        let mut fabric = bench.build_watched(watch.probe());
        while fabric.run_events(10_000, at(2_000)) {}
        assert!(fabric.is_done(), "{enumeration:?}: {:?}", fabric.fault());
        assert_eq!(heard.lock().unwrap().interrupts, [(0, 1)]);
        assert_eq!(lived.lock().unwrap().copied.len(), 1);
        assert_eq!(fabric.enumeration_problems(), []);
        let hidden = fabric.topology().nodes.iter().filter(|node| node.name.starts_with("above"));
        assert_eq!(hidden.map(|node| node.id.0).collect::<Vec<_>>(), [0, 0], "they have no number");
        // Host bridge, root port, two ports of the switch, the card.
        assert_eq!(fabric.config_spaces().len(), 5);
        watch.check_attribution(&fabric);
    }
}

/// Asserts its wire after 5 µs, for a microsecond.
struct Ringer;

impl Device for Ringer {
    fn identity(&self) -> Identity {
        Identity { intx: true, ..Identity::new(0x71AB, 0x00FB, 0x12_00_00) }
    }
    fn handle(&mut self, cx: &mut Context<'_>, event: DeviceEvent) {
        match event {
            DeviceEvent::Start => cx.timer(cx.now() + Duration::from_us(5), 0),
            DeviceEvent::Timer { id: 0 } => {
                cx.assert_intx(0);
                cx.timer(cx.now() + Duration::from_us(1), 1);
            }
            DeviceEvent::Timer { .. } => cx.deassert_intx(0),
            _ => {}
        }
    }
}

#[test]
fn messages_of_wires_pass_a_node() {
    let mut bench = Bench::new();
    bench.config.host.interrupts = InterruptPolicy::Intx;
    bench.device("ringer", "host.rp0", 3, 4).model(Box::new(Ringer));
    let (script, heard) = Script::new(vec![Step::Wait(Duration::from_us(50))]);
    bench.finishing_program(script);
    bench.node_above("ringer", Tap);
    let (fabric, _) = bench.finish();
    assert_eq!(heard.lock().unwrap().interrupts, [(0, 0)], "raised, and lowered before the host looks again");
    assert_eq!(fabric.interrupts(), 1);
}

/// Does one thing to what a range of addresses has, and remembers.
#[derive(Clone)]
struct Gate {
    range: std::ops::Range<u64>,
    verdict: Verdict,
    waits: Option<Duration>,
    seen: Arc<Mutex<Vec<(Time, Side, Repr)>>>,
}

fn gate(range: std::ops::Range<u64>, verdict: Verdict) -> Gate {
    Gate { range, verdict, waits: None, seen: Arc::default() }
}

impl NodeModel for Gate {
    fn handle_tlp(&mut self, cx: &mut NodeContext<'_>, from: Side, tlp: &TlpRecord<'_>) -> Verdict {
        self.seen.lock().unwrap().push((cx.now(), from, *tlp.repr));
        let hit = memory_access(tlp.repr).is_some_and(|access| self.range.contains(&access.address));
        match self.waits.take() {
            Some(time) => Verdict::Wait(time),
            None if hit => self.verdict.clone(),
            None => Verdict::Forward,
        }
    }
    fn snapshot(&self) -> Option<Box<dyn NodeModel>> {
        Some(Box::new(self.clone()))
    }
}

/// One move of a device through a gate, what became of it, and the transaction.
fn through(model: Gate, step: Move) -> (Fabric, Watch, Vec<DmaError>) {
    let mut bench = Bench::new();
    let (mover, moved) = Mover::new(Base::Address(1 << 32), 1, vec![step]);
    bench.device("dev", "host.rp0", 3, 4).finishing(Box::new(mover.unchecked()));
    bench.config.devices[0].completion_timeout = Duration::from_us(100);
    // Whose ID it answers with is beyond another node.
    bench.node_above("dev", Tap).node_above("dev", model);
    let (fabric, watch) = bench.finish();
    let failed = moved.lock().unwrap().failed.clone();
    (fabric, watch, failed)
}

const ALL: std::ops::Range<u64> = 1 << 32..1 << 33;
const READ: Move = Move::Read { at: 0, bytes: 256 };
pub const WRITE: Move = Move::Write { at: 0, bytes: 256 };

#[test]
fn dropped_reads_time_out_and_dropped_writes_are_lost() {
    let (_, watch, failed) = through(gate(ALL, Verdict::Drop), READ);
    assert_eq!(watch.transactions()[0].ending, Ending::TimedOut);
    assert!(matches!(failed[..], [DmaError::Completion(CompletionError::Timeout { .. })]), "{failed:?}");
    let (fabric, watch, failed) = through(gate(ALL, Verdict::Drop), WRITE);
    assert_eq!((watch.transactions()[0].ending, failed), (Ending::Lost, vec![]));
    assert_eq!(watch.tlps(&fabric, "above dev", 0).len(), 0, "nothing goes on");
}

#[test]
fn a_refusing_node_answers_with_the_id_of_the_target() {
    for (status, ending) in
        [(Status::UnsupportedRequest, Ending::Unsupported), (Status::CompleterAbort, Ending::Aborted)]
    {
        let (fabric, watch, failed) = through(gate(ALL, Verdict::Refuse(status)), READ);
        assert_eq!(watch.transactions()[0].ending, ending);
        assert_eq!(failed.len(), 1);
        let answers = watch.tlps(&fabric, "dev", 1);
        let [(_, answer)] = &answers[..] else { panic!("{answers:?}") };
        let Kind::Completion(completion) = answer.kind() else { panic!("{answer:?}") };
        assert_eq!((completion.status(), completion.completer()), (status, fabric.id_of("host").unwrap()));
        assert_eq!(fabric.errors().map(|error| error.count).sum::<u64>(), 1, "counted at its port");
        assert_eq!(fabric.reported_errors().count(), 0, "it has no registers to report from");
    }
}

#[test]
fn a_node_completes_reads_and_takes_writes() {
    let data = Payload::from([0xA5; 256]);
    let (fabric, watch, failed) = through(gate(ALL, Verdict::Complete(data)), READ);
    assert_eq!((watch.transactions()[0].ending, failed), (Ending::Done, vec![]));
    assert_eq!(only_flow(&fabric).bytes, 256);
    assert_eq!(watch.tlps(&fabric, "above dev", 0).len(), 0, "nothing goes on");
    let (fabric, watch, _) = through(gate(ALL, Verdict::Complete(Payload::EMPTY)), WRITE);
    assert_eq!(watch.transactions()[0].ending, Ending::Done);
    assert_eq!((only_flow(&fabric).bytes, watch.tlps(&fabric, "above dev", 0).len()), (256, 0));
}

/// A register in the way of software: reads of it are answered by the node, all others by the card.
#[test]
fn a_node_answers_the_processor() {
    let mut bench = Bench::new();
    bench.device("card", "host.rp0", 3, 4).model(Card::new().0);
    let register = Place::Bar("card", 0, 0x80);
    let steps = vec![
        write(register, &[1, 2, 3, 4]),
        read(register, 4),
        write(Place::Bar("card", 0, 0x84), &[9, 8, 7, 6]),
        read(Place::Bar("card", 0, 0x84), 4),
    ];
    let (script, heard) = Script::new(steps);
    bench.finishing_program(script);
    // BAR 0 of 4 KiB is wherever enumeration puts it.
    #[derive(Clone)]
    struct Shadow(Payload);
    impl NodeModel for Shadow {
        fn handle_tlp(&mut self, _: &mut NodeContext<'_>, from: Side, tlp: &TlpRecord<'_>) -> Verdict {
            let own = from == Side::Up
                && memory_access(tlp.repr).is_some_and(|access| access.address & 0xFFF == 0x80);
            match tlp.repr.kind() {
                Kind::MemRead { .. } if own => Verdict::Complete(self.0.clone()),
                Kind::MemWrite { .. } if own => {
                    let sum: u8 = tlp.payload.unwrap().iter().sum();
                    self.0 = Payload::from([sum; 4]);
                    Verdict::Complete(Payload::EMPTY)
                }
                _ => Verdict::Forward,
            }
        }
    }
    bench.node_above("card", Shadow(Payload::EMPTY));
    let (fabric, _) = bench.finish();
    assert_eq!(heard.lock().unwrap().values(), [0x0A0A_0A0A, 0x0607_0809]);
    assert_eq!(fabric.snapshot(None).err(), Some(NoSnapshot::Node("above card".into())));
}

#[test]
fn an_answer_of_the_wrong_length_ends_the_run() {
    let cases = [(
        Verdict::Complete(Payload::from([0; 255])),
        READ,
        "above dev: it answers a read of 256 B with 255 B",
    )];
    for (verdict, step, message) in cases {
        let mut bench = Bench::new();
        let (mover, _) = Mover::new(Base::Address(1 << 32), 1, vec![step]);
        bench.device("dev", "host.rp0", 3, 4).finishing(Box::new(mover));
        bench.node_above("dev", gate(ALL, verdict));
        let mut fabric = bench.build();
        while fabric.run_events(1000, at(100)) {}
        assert_eq!(fabric.fault(), Some(message));
    }
    let mut bench = Bench::new();
    let (mover, _) = Mover::new(Base::Address(1 << 32), 1, vec![READ]);
    bench.device("dev", "host.rp0", 3, 4).finishing(Box::new(mover));
    #[derive(Clone)]
    struct All;
    impl NodeModel for All {
        fn handle_tlp(&mut self, _: &mut NodeContext<'_>, from: Side, _: &TlpRecord<'_>) -> Verdict {
            if from == Side::Up { Verdict::Complete(Payload::EMPTY) } else { Verdict::Forward }
        }
    }
    bench.node_above("dev", All);
    bench.config.host.enumeration = EnumerationTime::Before;
    let mut fabric = bench.build();
    while fabric.run_events(1000, at(100)) {}
    assert_eq!(
        fabric.fault(),
        Some("above dev: it completes a CplD; only memory reads and writes can be completed")
    );
}

#[test]
fn a_wait_in_a_node_adds_to_latency_and_processing() {
    // With a stage in front of the node that takes longer than the wait, or without.
    for stage in [0, 900] {
        let latency = |waits| {
            let mut bench = Bench::new();
            let (mover, _) = Mover::new(Base::Address(1 << 32), 1, vec![READ]);
            bench.device("dev", "host.rp0", 3, 4).finishing(Box::new(mover.unchecked()));
            bench.config.devices[0].link.upper.stages.rx_transaction = ns(stage);
            bench.node_above("dev", Tap).node_above("dev", Gate { waits, ..gate(0..0, Verdict::Drop) });
            let (fabric, watch) = bench.finish();
            let read = watch.transactions().remove(0);
            assert_eq!(only_flow(&fabric).transactions, 1);
            (read.latency(), read.time_of(Cause::Processing))
        };
        let ((usual, processing), (late, waited)) = (latency(None), latency(Some(ns(777))));
        assert_eq!((late - usual, waited - processing), (ns(777), ns(777)));
    }
}

/// Writes of its own, so many, one each microsecond, and notes resets.
#[derive(Clone, Default)]
struct Beacon {
    left: u64,
    resets: Arc<Mutex<Vec<Time>>>,
}

impl NodeModel for Beacon {
    fn handle_tlp(&mut self, cx: &mut NodeContext<'_>, _: Side, _: &TlpRecord<'_>) -> Verdict {
        if self.left == 3 {
            self.left -= 1;
            cx.timer(cx.now() + Duration::from_us(1), 0x2_0000_0000);
        }
        Verdict::Forward
    }
    fn handle_timer(&mut self, cx: &mut NodeContext<'_>, id: u64) {
        let id_below = TransactionId::new(cx.id_beyond(Side::Down), Default::default());
        let repr = Repr::mem_write(id_below, id, 4).unwrap();
        cx.send(Side::Up, repr, Payload::from([0xBE; 4]));
        if self.left > 0 {
            self.left -= 1;
            cx.timer(cx.now() + Duration::from_us(1), id + 8);
        }
    }
    fn reset(&mut self, cx: &mut NodeContext<'_>) {
        self.resets.lock().unwrap().push(cx.now());
    }
}

#[test]
fn a_node_sends_by_itself() {
    let mut bench = Bench::new();
    let (mover, _) = Mover::new(Base::Address(1 << 32), 1, vec![WRITE]);
    bench.device("dev", "host.rp0", 3, 4).finishing(Box::new(mover));
    bench.node_above("dev", Beacon { left: 3, ..Beacon::default() });
    let (mut fabric, _) = bench.finish();
    let mut found = [0; 24];
    tlplab_fabric::Driven::host_memory(&mut fabric).read(0x2_0000_0000, &mut found);
    let word = [0xBE, 0xBE, 0xBE, 0xBE, 0, 0, 0, 0];
    assert_eq!(found[..], [word; 3].concat());
}

/// The link above a node goes down for a while: all below is reset with it, is configured anew, and works again.
#[test]
fn a_node_is_reset_with_the_link_above() {
    let mut bench = Bench::new();
    let load = LoadConfig { op: LoadOp::Both, outstanding: 8, ..LoadConfig::default() };
    bench.switch("sw0", "host.rp0", 3, 4);
    bench.device("dev", "sw0", 3, 4).load(load);
    let kind = FaultKind::Down { at: at(50), until: Some(at(60)) };
    let mut node = put_above(&mut bench.config, "dev");
    node.link.faults.push(Fault { direction: Direction::Up, kind });
    let beacon = Beacon::default();
    let resets = beacon.resets.clone();
    bench.own(|builder| {
        builder.node(node, Box::new(beacon));
    });
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(at(70));
    let (done, lost) = (only_flow_of(&fabric).0, only_flow_of(&fabric).1);
    assert!(done > 100 && lost > 0, "{done} done, {lost} lost");
    fabric.run_until(at(400));
    assert!(only_flow_of(&fabric).0 > 2 * done, "it works again");
    assert_eq!(*resets.lock().unwrap(), [at(50)]);
    let outage = &fabric.outages()[0];
    assert!(outage.up.is_some() && outage.configured.is_some(), "{outage:?}");
    assert_eq!(fabric.protocol_errors().count(), 0);
    watch.check_attribution(&fabric);
}

/// Transactions of all flows but software's: those that ended well, and the others.
pub fn only_flow_of(fabric: &Fabric) -> (u64, u64) {
    let works = |id: &tlplab_fabric::FlowId| fabric.topology().flows[id.index()].operation != "configuration";
    let flows = fabric.flow_ids().filter(works).map(|id| fabric.flow_results(id));
    flows.fold((0, 0), |(done, lost), flow| {
        (done + flow.transactions, lost + flow.failed.iter().map(|f| f.count).sum::<u64>())
    })
}

#[test]
fn custom_parts_that_cannot_be_are_refused() {
    let refusal = |change: fn(&mut Builder)| {
        let mut builder = Builder::default();
        builder.attach(DeviceConfig::new("dev", link("host.rp0", 3, 8)), Box::new(Memory::new(4096)));
        change(&mut builder);
        let error = builder.build().err().expect("it cannot be");
        assert!(matches!(error, BuildError::Custom { .. }) && error.component().is_some(), "{error:?}");
        error.to_string()
    };
    assert_eq!(
        refusal(|builder| {
            builder.node(NodeConfig::new("node", link("host.rp1", 3, 8)), Box::new(Tap));
        }),
        "node: a custom node has exactly one component below it; for more, put a switch below it"
    );
    assert_eq!(
        refusal(|builder| {
            builder.node(NodeConfig::new("node", link("host.rp0", 3, 8)), Box::new(Tap));
            builder.config().devices[0].link.under = "node".into();
            builder.attach(DeviceConfig::new("other", link("node", 3, 8)), Box::new(Memory::new(4096)));
        }),
        "node: a custom node has exactly one component below it; for more, put a switch below it"
    );
    assert_eq!(
        refusal(|builder| builder.config().nodes.push(NodeConfig::new("node", link("host.rp1", 3, 8)))),
        "node: a custom node needs a model: give both with Builder::node"
    );
    assert!(
        refusal(|builder| {
            builder.node(NodeConfig::new("node", link("host.rp0", 3, 8)), Box::new(Tap));
            let below = &mut builder.config().devices[0].link;
            below.under = "node".into();
            let kind = FaultKind::Down { at: at(1), until: None };
            below.faults.push(Fault { direction: Direction::Up, kind });
        })
        .starts_with("dev: a fault cannot take this link down")
    );
    assert!(
        refusal(|builder| {
            builder.node(NodeConfig::new("node", link("host.rp0", 3, 8)), Box::new(Tap));
            let below = &mut builder.config().devices[0].link;
            (below.under, below.upper.acs) = ("node".into(), Some(AcsConfig::default()));
        })
        .starts_with("dev: access control needs a port")
    );
    assert!(
        refusal(|builder| {
            builder.channel("nobody", Direction::Up, Box::new(Jitter::new(1)));
        })
        .starts_with("nobody: it has no link above it")
    );
    assert!(
        refusal(|builder| {
            builder.config().devices[0].link.crossbar = Some(1_000_000_000);
            builder.channel("dev", Direction::Up, Box::new(Jitter::new(1)));
        })
        .starts_with("dev: a crossbar or a parallel bus has neither")
    );
    assert!(
        refusal(|builder| {
            builder.config().devices[0].link.mode = tlplab_units::LinkMode::Flit;
            builder.link_layer("dev", |config| Same(Engine::new(config.clone())));
        })
        .starts_with("dev: a custom data link layer needs a framed link")
    );
}
