//! A fabric can be copied at any instant, and both go on as one would have; what is not all in the fabric is not copied.

use crate::bench::any::cases;
use crate::bench::any::strategies::{any_fabric, any_faults, any_peers};
use crate::bench::{Bench, Watch, ns};
use crate::hotplug::downs;
use proptest::prelude::*;
use tlplab_device::{Context, Device, Event, HostRam, Identity, LoadConfig, LoadOp, Memory};
use tlplab_fabric::config::*;
use tlplab_fabric::{Builder, Fabric, NoSnapshot, PortId};
use tlplab_units::{Duration, Time};

/// All that a run can be asked for afterwards, as far as it has words for it.
fn results(fabric: &mut Fabric) -> (u64, String) {
    let hash = fabric.trace_hash();
    let ports: Vec<PortId> = fabric.topology().links.iter().flat_map(|link| link.ports).collect();
    let directions: Vec<_> = ports.into_iter().map(|port| fabric.direction_result(port)).collect();
    let flow = |flow| {
        let flow = fabric.flow_results(flow);
        (flow.bytes, flow.attribution().collect::<Vec<_>>())
    };
    let flows: Vec<_> = fabric.flow_ids().map(flow).collect();
    let counts = (fabric.now(), fabric.events(), fabric.tlp_hops(), fabric.transactions_ended());
    let found = fabric.hierarchy().map(|found| format!("{found:?}"));
    let spaces: Vec<_> = fabric.config_spaces();
    (hash, format!("{counts:?} {directions:?} {flows:?} {found:?} {spaces:?} {:?}", fabric.outages()))
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_copy_and_its_original_go_on_as_one_fabric_would(
        any in prop_oneof![any_fabric(), any_peers()],
        faults in any_faults(),
        downs in downs(),
        simulated in any::<bool>(),
        events in prop_oneof![0u64..300, 0u64..30_000],
    ) {
        // Whoever is absent when software looks the first time is not found by its peers.
        let downs = if simulated { Vec::new() } else { downs };
        let any = any.with_faults(&faults).with_faults(&downs);
        let build = || any.build_with(|config| {
            config.host.completion_timeout = Duration::from_ms(1);
            config.devices.iter_mut().for_each(|d| d.completion_timeout = Duration::from_ms(1));
            if simulated {
                config.host.enumeration = EnumerationTime::Simulated;
            }
        });
        let end = Time::ZERO + Duration::from_ms(400);
        let finish = |fabric: &mut Fabric| {
            while fabric.run_events(10_000, end) {}
            results(fabric)
        };
        let whole = finish(&mut build().fabric);
        let mut original = build().fabric;
        original.run_events(events, end);
        let mut copy = original.snapshot(None).expect("nothing is outside");
        original.run_events(events, end);
        let mut later = original.snapshot(None).expect("nothing is outside");
        prop_assert_eq!(&finish(&mut copy), &whole);
        prop_assert_eq!(&finish(&mut original), &whole);
        prop_assert_eq!(&finish(&mut later), &whole);
    }
}

/// A load that never ends.
fn busy() -> Bench {
    let mut bench = Bench::new();
    let load = LoadConfig { op: LoadOp::Both, size: 256, outstanding: 4, ..LoadConfig::default() };
    bench.device("dev", "host.rp0", 3, 8).load(load);
    bench
}

#[test]
fn a_copy_has_its_own_probe() {
    let (before, after) = (Watch::everything(), Watch::everything());
    let mut fabric = busy().build_watched(before.probe());
    fabric.run_until(Time::ZERO + Duration::from_us(5));
    let seen = before.seen().units.len();
    let mut copy = fabric.snapshot(after.probe()).unwrap();
    copy.run_until(Time::ZERO + Duration::from_us(10));
    assert_eq!(before.seen().units.len(), seen, "the original's sees nothing of the copy");
    assert!(!after.seen().units.is_empty());
    fabric.run_until(Time::ZERO + Duration::from_us(10));
    assert_eq!(before.seen().units.len() - seen, after.seen().units.len());
}

/// One whose state is elsewhere.
struct Elsewhere;

impl Device for Elsewhere {
    fn identity(&self) -> Identity {
        Identity::new(0x71AB, 0x00FD, 0x12_00_00)
    }
    fn handle(&mut self, _: &mut Context<'_>, _: Event) {}
}

/// Memory that others share.
struct Shared(HostRam);

impl tlplab_device::HostMemory for Shared {
    fn read(&self, address: u64, out: &mut [u8]) {
        self.0.read(address, out);
    }
    fn write(&mut self, address: u64, data: &[u8]) {
        self.0.write(address, data);
    }
    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64, tlplab_device::OutOfMemory> {
        self.0.alloc(bytes, align)
    }
}

#[test]
fn a_device_a_program_or_memory_with_state_elsewhere_is_named() {
    let refusal = |change: fn(&mut Builder)| {
        let mut config = Bench::new().config;
        config.devices.push(DeviceConfig::new("dev", crate::bench::link("host.rp0", 3, 8)));
        let mut builder = Builder::new(config);
        builder.device("dev", Box::new(Memory::new(4096)));
        change(&mut builder);
        let mut fabric = builder.build().unwrap();
        fabric.run_until(Time::ZERO + ns(1000));
        fabric.snapshot(None).err()
    };
    assert_eq!(refusal(|_| {}), None);
    let device = Some(NoSnapshot::Device("dev".into()));
    assert_eq!(refusal(|builder| drop(builder.drive_from_outside("dev"))), device);
    let elsewhere = |builder: &mut Builder| {
        builder.device("dev", Box::new(Elsewhere));
    };
    assert_eq!(refusal(elsewhere), device);
    let driver = |builder: &mut Builder| {
        builder.outside_program().flows([crate::bench::flow_info("dev.driver", "host", "mmio")]);
    };
    assert_eq!(refusal(driver), Some(NoSnapshot::Program("dev.driver".into())));
    let shared = |builder: &mut Builder| {
        builder.memory(Box::new(Shared(HostRam::new(0x10_0000, 1 << 20))));
    };
    assert_eq!(refusal(shared), Some(NoSnapshot::Memory));
}
