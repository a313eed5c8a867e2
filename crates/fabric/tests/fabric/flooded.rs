//! A NIC whose line brings more than its link takes away.

use crate::bench::Bench;
use tlplab_device::nic::{Cable, Traffic, ethernet::Speed};
use tlplab_device::{Nic, NicConfig, NicDriver, NicLoad};
use tlplab_fabric::config::InterruptPolicy;
use tlplab_units::{Duration, Time};

/// 20 000 frames of 84 B with preamble and gap at 400 Gb/s take 34 us. Each that is missed is a cause, which MSI-X clears as its message goes; a message of
/// 28 B takes 112 ns of a gen1 x1 link, so that at most 300 leave meanwhile. One of each vector waits, and no more: 20 000 would take two milliseconds.
#[test]
fn messages_of_a_flooded_nic_wait_once_for_each_vector() {
    let traffic = Traffic { bytes: 60, rate: None, count: Some(20_000) };
    let speed = Speed::from_bps(400_000_000_000);
    let nic = Nic::new(NicConfig { cable: Cable::Source(traffic), speed, ..NicConfig::default() });
    let mut bench = Bench::new();
    bench.config.host.interrupts = InterruptPolicy::MsiX;
    bench.device("nic", "host.rp0", 1, 1).model(Box::new(nic));
    let load = NicLoad { entries: 8, receive: 1_000_000, ..NicLoad::default() };
    bench.program(Box::new(NicDriver::new("nic", load)));
    let mut fabric = bench.build();
    // Until the flood is over.
    let mut at = Time::ZERO;
    let count = |fabric: &tlplab_fabric::Fabric| {
        let counts = fabric.frame_counts()["nic"];
        counts.received + counts.missed
    };
    while count(&fabric) < 20_000 {
        at += Duration::from_us(1);
        assert!(at < Time::ZERO + Duration::from_ms(10), "{:?}", fabric.frame_counts());
        fabric.run_until(at);
    }
    let missed = fabric.frame_counts()["nic"].missed;
    assert!(missed > 15_000, "{missed}");
    let during = fabric.interrupts();
    assert!((20..=310).contains(&during), "{during} interrupts");
    // What waits: the frames in the packet buffer of 20 KiB, a message for each that is in memory, and one of each vector.
    fabric.run_until(at + Duration::from_ms(3));
    let after = fabric.interrupts() - during;
    let stored = count(&fabric) - missed;
    assert!(after <= stored + 3, "{after} interrupts after {stored} frames");
    assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
}
