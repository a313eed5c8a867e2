//! Random fabrics under random loads: whatever is asked for arrives exactly once, every credit comes back, and the causes of every
//! latency sum to it.

use crate::bench::any::strategies::{any_drop_replay, any_fabric, any_faults, any_peers};
use proptest::prelude::*;
use tlplab_units::Duration;

proptest! {
    #![proptest_config(crate::bench::any::cases(96))]

    #[test]
    fn everything_arrives_exactly_once(any in any_fabric()) {
        let mut built = any.build();
        built.run(Duration::from_ms(100));
        built.check_complete();
        built.check_quiet(&any.idle());
        built.watch.check_attribution(&built.fabric);
    }

    #[test]
    fn faults_delay_but_lose_nothing(any in any_fabric(), faults in any_faults()) {
        let any = any.with_faults(&faults);
        let mut built = any.build();
        built.run(Duration::from_ms(400));
        built.check_complete();
        built.check_replays();
        built.check_quiet(&any.idle());
        built.watch.check_attribution(&built.fabric);
    }

    #[test]
    fn dropped_tlps_are_replayed_exactly_once(any in any_drop_replay(), faults in prop::option::of(any_faults())) {
        let any = any.with_faults(&faults.unwrap_or_default());
        let mut built = any.build();
        built.run(Duration::from_ms(400));
        built.check_complete();
        built.check_replays();
        built.check_quiet(&any.idle());
        built.watch.check_attribution(&built.fabric);
    }

    #[test]
    fn peers_reach_each_other_through_cores_domains_and_access_control(
        any in any_peers(),
        faults in prop::option::of(any_faults()),
    ) {
        let any = any.with_faults(&faults.unwrap_or_default());
        let mut built = any.build();
        built.run(Duration::from_ms(400));
        built.check_complete();
        built.check_quiet(&any.idle());
        built.watch.check_attribution(&built.fabric);
    }
}
