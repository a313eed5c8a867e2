//! Whatever the tree and whatever BARs its functions have: each has a place of its own, and what is written there is read there.

use crate::bench::Bench;
use crate::bench::any::cases;
use crate::bench::script::{Card, Place, Script, read, write};
use proptest::prelude::*;
use tlplab_device::{BarSpec, Identity};
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};

const NAMES: [&str; 8] = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"];

#[derive(Clone, Debug)]
struct AnyFunction {
    parent: usize,
    /// A further function of the n-th device, if that is possible.
    of: Option<(usize, u8)>,
    identity: Identity,
}

fn any_bar() -> impl Strategy<Value = BarSpec> {
    let bar = |index, kind, size: u32| match kind {
        0 => BarSpec::io(index, 4 << (size % 7)),
        1 => BarSpec::registers(index, 16 << (size % 17)),
        2 => BarSpec { prefetchable: false, ..BarSpec::memory(index, 16 << (size % 17)) },
        _ => BarSpec::memory(index, 16 << size),
    };
    (0u8..6, 0u8..4, 0u32..24).prop_map(move |(index, kind, size)| bar(index, kind, size))
}

/// BARs that do not fit beside the earlier ones are left out.
fn any_identity() -> impl Strategy<Value = Identity> {
    (prop::collection::vec(any_bar(), 0..6), 0u16..3, any::<bool>()).prop_map(|(bars, vectors, intx)| {
        let mut identity = Identity { intx, ..Identity::new(0x71AB, 0x00FA, 0x12_00_00) };
        for bar in bars {
            identity.bars.push(bar);
            if identity.check().is_err() {
                identity.bars.pop();
            }
        }
        identity.msix_vectors = vectors;
        if identity.check().is_err() {
            identity.msix_vectors = 0;
        }
        identity
    })
}

fn any_function() -> impl Strategy<Value = AnyFunction> {
    (any::<usize>(), prop::option::of((any::<usize>(), 1u8..=7)), any_identity())
        .prop_map(|(parent, of, identity)| AnyFunction { parent, of, identity })
}

/// Switches under each other or a root port of their own, functions wherever there is room; a BAR and a number for each to keep.
fn build(switches: &[usize], functions: &[AnyFunction]) -> (Bench, Vec<(Place, u32)>) {
    let mut bench = Bench::new();
    let mut parents: Vec<String> = Vec::new();
    for (i, parent) in switches.iter().enumerate() {
        let pick = parent % (parents.len() + 1);
        let under = parents.get(pick).cloned().unwrap_or_else(|| format!("host.rp{i}"));
        bench.switch(&format!("sw{i}"), &under, 3, 4);
        parents.push(format!("sw{i}"));
    }
    let (mut devices, mut taken, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (i, function) in functions.iter().enumerate() {
        let name = NAMES[i];
        let of = function
            .of
            .filter(|_| !devices.is_empty())
            .map(|(of, number)| FunctionOf { device: String::from(devices[of % devices.len()]), number });
        let of = of.filter(|of| !taken.contains(of));
        let pick = function.parent % (parents.len() + 1);
        let under = parents.get(pick).cloned().unwrap_or_else(|| format!("host.rp{}", 10 + i));
        match &of {
            Some(of) => taken.push(of.clone()),
            None => devices.push(name),
        }
        let slot = bench.device(name, &under, 3, 4).config(|config| config.function_of = of);
        slot.model(Card::with(function.identity.clone()).0);
        for bar in &function.identity.bars {
            places.push((Place::Bar(name, bar.index, bar.size - 4), 0xA000_0000 + places.len() as u32));
        }
    }
    (bench, places)
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn every_bar_is_where_software_put_it(
        switches in prop::collection::vec(any::<usize>(), 0..4),
        functions in prop::collection::vec(any_function(), 1..8),
        simulated: bool,
    ) {
        let (mut bench, places) = build(&switches, &functions);
        if simulated {
            bench.config.host.enumeration = EnumerationTime::Simulated;
        }
        let mut steps: Vec<_> = places.iter().map(|(place, value)| write(*place, &value.to_le_bytes())).collect();
        steps.extend(places.iter().map(|(place, _)| read(*place, 4)));
        let (script, heard) = Script::new(steps);
        bench.finishing_program(script);
        let mut fabric = bench.build();
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(50)) {}
        prop_assert!(fabric.is_done());
        let hierarchy = fabric.hierarchy().expect("it is over");
        prop_assert_eq!(&hierarchy.problems, &[]);
        let expected: Vec<_> = places.iter().map(|(_, value)| u64::from(*value)).collect();
        prop_assert_eq!(heard.lock().unwrap().values(), expected);
        // The tables of MSI-X have places, too, and no place is given twice.
        let mut ranges: Vec<_> = hierarchy
            .functions
            .iter()
            .flat_map(|function| &function.bars)
            .map(|bar| (bar.kind.is_io(), bar.address.expect("there is room"), bar.size))
            .collect();
        ranges.sort_unstable();
        prop_assert!(ranges.iter().all(|(_, address, size)| address % size == 0));
        prop_assert!(ranges.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 + pair[0].2 <= pair[1].1));
    }
}
