//! Links that go down and come up again under traffic, with whatever is below them: every transaction is accounted for once, software
//! configures what comes back, and work goes on.

mod bench;

use bench::any::{AnyFabric, Built, any_fabric, any_faults, cases};
use bench::ns;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tlplab_fabric::Fabric;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};

fn downs() -> impl Strategy<Value = Vec<(usize, Fault)>> {
    let down = (0u64..30_000, 1u64..40_000).prop_map(|(at, long)| {
        let at = Time::ZERO + ns(at);
        Fault { direction: Direction::Up, kind: FaultKind::Down { at, until: Some(at + ns(long)) } }
    });
    prop::collection::vec((any::<usize>(), down), 1..4)
}

fn build(any: &AnyFabric) -> Built {
    any.build_with(|config| {
        config.host.completion_timeout = Duration::from_ms(1);
        config.devices.iter_mut().for_each(|d| d.completion_timeout = Duration::from_ms(1));
    })
}

fn run(built: &mut Built) {
    built.run(Duration::from_ms(400));
    // Software may still be configuring, and wait for the answer of somebody who is gone.
    let go_on = |built: &mut Built, ms| {
        built.fabric.run_until(built.fabric.now() + Duration::from_ms(ms));
        built.rest(Duration::from_us(200));
    };
    go_on(built, 5);
    // The root complex may still have pieces to ask for, once its tags have rested, for a requester that has given up.
    if built.fabric.tlps_live() > 0 {
        go_on(built, 60);
    }
}

/// Names of the links above a component, its own first.
fn links_above(fabric: &Fabric, name: &str) -> BTreeSet<String> {
    let topology = fabric.topology();
    let (mut links, mut name) = (BTreeSet::new(), name.to_owned());
    while let Some(link) = topology.links.iter().find(|link| link.name == name) {
        links.insert(name);
        let above = topology.ports[link.ports[1].index()].node;
        name = topology.nodes[above.index()].name.clone();
    }
    links
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn surprise_down_leaves_nothing_in_limbo(any in any_fabric(), downs in downs(), faults in any_faults()) {
        let idle = any.idle();
        let any = any.with_faults(&faults).with_faults(&downs);
        let mut built = build(&any);
        let before = built.fabric.devices().to_vec();
        run(&mut built);
        built.check_accounted();
        built.check_quiet(&idle);
        built.watch.check_attribution(&built.fabric);
        // All is configured as it was before.
        let fabric = &built.fabric;
        prop_assert_eq!(fabric.devices(), &before[..]);
        let outages = fabric.outages();
        for (i, outage) in outages.iter().enumerate() {
            // It may go down again before it has come up.
            let again = outages[i + 1..].iter().any(|later| later.link == outage.link);
            prop_assert!(again || outage.up.is_some() && outage.configured.is_some(), "{:?}", outages);
        }
        // Whoever has nothing to do with it does not notice.
        let down = outages.iter().map(|o| fabric.topology().links[o.link.index()].name.clone());
        let down: BTreeSet<String> = down.collect();
        for (worker, (own, peer)) in built.workers.iter().zip(&built.places) {
            let moved = worker.lock().unwrap();
            let is_safe = |name: &String| links_above(fabric, name).is_disjoint(&down);
            if own.iter().all(is_safe) {
                prop_assert_eq!(moved.cancelled, 0);
                prop_assert!(moved.failed.is_empty() || !peer.iter().all(is_safe), "{:?}", moved.failed);
            }
        }
    }
}
