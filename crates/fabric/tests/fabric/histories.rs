//! What is kept of a run over time when that is asked for: configuration spaces and transactions under way. It changes nothing, and is what is there.

use crate::bench::any::cases;
use crate::bench::any::strategies::{any_fabric, any_faults, any_peers};
use crate::bench::{Bench, Watch, ns};
use crate::hotplug::downs;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tlplab_device::{LoadConfig, LoadOp, Target};
use tlplab_fabric::config::*;
use tlplab_fabric::registers::{ChangedBy, RegisterHistory};
use tlplab_fabric::{Fabric, FlowId};
use tlplab_units::{Bdf, Duration, Time};

/// The registers of a function at a time, by its history.
fn at(history: &RegisterHistory, time: Time) -> Vec<u8> {
    let mut bytes = history.start.to_vec();
    for change in history.changes.iter().take_while(|change| change.at <= time) {
        let word = &mut bytes[usize::from(change.offset)..][..4];
        assert_eq!(word, change.old.to_le_bytes(), "{change:?} of {}", history.name);
        word.copy_from_slice(&change.new.to_le_bytes());
    }
    bytes
}

/// Each function that software reaches reads as its history says; what was found at earlier times, the history still says.
fn check_registers(fabric: &mut Fabric, earlier: &mut BTreeMap<(String, Time), Vec<u8>>) {
    let histories = fabric.register_histories();
    let now = fabric.now();
    for history in &histories {
        assert!(history.changes.is_sorted_by_key(|change| change.at));
        earlier.insert((history.name.clone(), now), at(history, now));
        let known = |time: &Time| history.gap.is_none_or(|gap| *time < gap.from || *time >= gap.to);
        for ((_, time), bytes) in
            earlier.iter().filter(|((name, time), _)| *name == history.name && known(time))
        {
            assert_eq!(&at(history, *time), bytes, "{} at {time}", history.name);
        }
    }
    let by_id: BTreeMap<Bdf, &RegisterHistory> =
        histories.iter().filter_map(|history| Some((history.id?, history))).collect();
    for (id, space) in fabric.config_spaces() {
        let history = by_id.get(&id).unwrap_or_else(|| panic!("{id} has a history"));
        assert_eq!(at(history, now), space.shown_bytes(), "{id}, {}", history.name);
    }
}

/// The largest number of intervals that overlap: if those that end at an instant do so before others begin, and if not.
fn overlaps(spans: &[(Time, Time)]) -> (u64, u64) {
    let most = |end_first: bool| {
        let ends = spans.iter().map(|(_, end)| (*end, u8::from(!end_first), -1));
        let mut edges: Vec<(Time, u8, i64)> =
            spans.iter().map(|(start, _)| (*start, u8::from(end_first), 1)).chain(ends).collect();
        edges.sort_unstable();
        edges
            .iter()
            .scan(0, |level, (.., step)| {
                Some({
                    *level += step;
                    *level
                })
            })
            .max()
            .unwrap_or(0) as u64
    };
    (most(true), most(false))
}

/// Little's law, by every transaction that ended: none is under way. Of the accesses of the processor some are none.
fn check_outstanding(fabric: &mut Fabric, watch: &Watch) {
    let (width, now) = (fabric.bins().0, fabric.now());
    let transactions = watch.transactions();
    let flows: Vec<FlowId> = fabric.flow_ids().collect();
    for flow in flows {
        let (mean, max) = fabric.outstanding_series(flow).expect("kept");
        let spans: Vec<_> =
            transactions.iter().filter(|t| t.flow == flow).map(|t| (t.start, t.end)).collect();
        let whole: f64 = spans.iter().map(|(start, end)| (*end - *start).as_fs() as f64).sum();
        let span = |bin: usize| (now.as_fs() - bin as u64 * width.as_fs()).min(width.as_fs()) as f64;
        let found: f64 = mean.iter().enumerate().map(|(bin, mean)| mean * span(bin)).sum();
        let most = max.iter().copied().max().unwrap_or(0);
        let (least, highest) = overlaps(&spans);
        let info = &fabric.topology().flows[flow.index()];
        assert!(most >= least && found >= whole * (1.0 - 1e-9), "{info:?}: {most} {least} {found} {whole}");
        if info.owner != "host" {
            assert!(
                most <= highest && found <= whole * (1.0 + 1e-9),
                "{info:?}: {most} {highest} {found} {whole}"
            );
        }
        assert!(mean.iter().zip(&max).all(|(mean, max)| *mean <= *max as f64 + 1e-9));
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn register_histories_match_the_registers_and_change_no_run(
        mut any in prop_oneof![any_fabric(), any_peers()],
        faults in any_faults(),
        downs in prop::option::of(downs()),
        (simulated, wires, second_function) in any::<(bool, bool, bool)>(),
        events in prop::collection::vec(prop_oneof![0u64..300, 0u64..5_000], 1..4),
    ) {
        any.second_function |= second_function && any.devices.len() > 2;
        let downs = if simulated { None } else { downs };
        let any = any.with_faults(&faults).with_faults(&downs.unwrap_or_default());
        let change = |config: &mut FabricConfig| {
            config.host.completion_timeout = Duration::from_ms(1);
            config.devices.iter_mut().for_each(|d| d.completion_timeout = Duration::from_ms(1));
            if wires {
                config.host.interrupts = InterruptPolicy::Intx;
            }
            if simulated {
                config.host.enumeration = EnumerationTime::Simulated;
            }
        };
        let end = Time::ZERO + Duration::from_ms(400);
        let mut without = any.build_with(change);
        while without.fabric.run_events(10_000, end) {}
        let mut with = any.build_both(change, |builder| { builder.keep_history(); });
        let mut earlier = BTreeMap::new();
        for events in events {
            with.fabric.run_events(events, end);
            check_registers(&mut with.fabric, &mut earlier);
        }
        // A copy keeps its own.
        let mut copy = with.fabric.snapshot(None).expect("nothing is outside");
        let mut of_copy = earlier.clone();
        while copy.run_events(10_000, end) {}
        while with.fabric.run_events(10_000, end) {}
        check_registers(&mut with.fabric, &mut earlier);
        check_registers(&mut copy, &mut of_copy);
        prop_assert_eq!(&earlier, &of_copy);
        prop_assert_eq!(with.fabric.trace_hash(), without.fabric.trace_hash());
        prop_assert_eq!(with.fabric.events(), without.fabric.events());
        prop_assert!(without.fabric.register_histories().is_empty());
        if with.fabric.transactions_live() == 0 {
            check_outstanding(&mut with.fabric, &with.watch);
        }
    }
}

fn history<'a>(all: &'a [RegisterHistory], name: &str) -> &'a RegisterHistory {
    all.iter().find(|history| history.name == name).expect("a function of this name")
}

/// A device reads where no memory is: the root complex refuses, and the device's status register says Received Master Abort (PCIe 5.0
/// §7.5.1.1.4), at the time at which the first read ended.
#[test]
fn refusal_is_a_change_by_hardware_at_its_time() {
    let mut bench = Bench::new();
    bench.own(|builder| {
        builder.keep_history();
    });
    let nowhere = LoadConfig {
        op: LoadOp::Read,
        size: 64,
        count: Some(3),
        target: Target::Address(1 << 60),
        ..LoadConfig::default()
    };
    bench.device("dev", "host.rp0", 3, 8).load(nowhere);
    let (mut fabric, watch) = bench.finish();
    let all = fabric.register_histories();
    let first = watch.transactions()[0].end;
    let changes = &history(&all, "dev").changes;
    assert_eq!(changes.len(), 1, "the bit stays: {changes:?}");
    let change = changes[0];
    assert_eq!((change.by, change.offset, change.new & !change.old), (ChangedBy::Hardware, 0x04, 1 << 29));
    assert_eq!(change.at, first);
    assert_eq!(history(&all, "dev").id, Some(Bdf(1 << 8)));
    assert_eq!(history(&all, "host").id, Some(Bdf(0)));
}

/// Software that enumerates in simulated time writes registers, the last of a device's being Bus Master Enable.
#[test]
fn enumeration_in_simulated_time_is_writes() {
    let mut bench = Bench::new();
    bench.own(|builder| {
        builder.keep_history();
    });
    bench.config.host.enumeration = EnumerationTime::Simulated;
    bench.switch("sw0", "host.rp0", 3, 8);
    bench.device("dev", "sw0", 3, 8).memory(1 << 20);
    let mut fabric = bench.build();
    let before = fabric.register_histories();
    assert!(history(&before, "dev").changes.is_empty(), "no request has reached it yet");
    fabric.run_until(Time::ZERO + ns(1_000_000));
    let over = fabric.enumerated_at().expect("it is over");
    let all = fabric.register_histories();
    let names: Vec<_> = all.iter().map(|history| history.name.as_str()).collect();
    assert_eq!(names, ["dev", "host", "host.rp0", "sw0", "sw0 → dev"]);
    let changes = &history(&all, "dev").changes;
    assert!(changes.len() > 5 && changes.iter().all(|change| change.by == ChangedBy::Write));
    let command = changes.iter().rfind(|change| change.offset == 0x04).expect("it was written");
    assert_eq!(command.new & 0b110, 0b110, "memory space and bus master");
    assert!(command.at <= over && over - command.at < Duration::from_us(100));
}
