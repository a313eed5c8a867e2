//! Which fabrics there are.

use super::*;
use tlplab_fabric::config::*;

fn port() -> impl Strategy<Value = AnyPort> {
    (
        prop::option::weighted(0.5, (1u32..5, 0u32..20)),
        any::<bool>(),
        prop::option::weighted(0.3, 1u32..5),
        prop::option::weighted(0.2, 0u32..600),
        prop::option::weighted(0.3, 0u64..300),
        prop::option::weighted(0.2, 1u16..4),
    )
        .prop_map(|(buffers, infinite_completions, replay_tlps, replay_spare, ack, ack_every)| AnyPort {
            buffers,
            infinite_completions,
            replay_tlps,
            replay_spare,
            ack,
            ack_every,
        })
}

fn skp() -> impl Strategy<Value = SkpPolicy> {
    prop_oneof![
        3 => Just(SkpPolicy::Standard),
        1 => Just(SkpPolicy::Off),
        1 => Just(SkpPolicy::Custom { length: 4, interval: 100 }),
    ]
}

fn any_link() -> impl Strategy<Value = AnyLink> {
    (
        1u8..=7,
        prop::bool::weighted(0.2),
        prop::sample::select(&Width::ALL[..]),
        prop::sample::select(Mps::ALL),
        prop_oneof![Just(0u64), 1u64..400],
        prop::bool::weighted(0.7),
        skp(),
        port(),
        port(),
    )
        .prop_map(|(generation, flit, width, mps, flight, trained, skp, upper, lower)| AnyLink {
            generation,
            flit,
            width,
            mps,
            flight,
            trained,
            skp,
            flow_control: FlowControl::Credits,
            upper,
            lower,
            faults: Vec::new(),
        })
}

fn moves(most: usize) -> impl Strategy<Value = Vec<(bool, u16, u16)>> {
    prop::collection::vec((any::<bool>(), 0u16..9000, 0u16..3000), 1..most)
}

fn any_switch() -> impl Strategy<Value = AnySwitch> {
    (any::<usize>(), any_link(), 0u64..200, any::<bool>(), prop::option::of(2u16..5)).prop_map(
        |(parent, link, latency, cut, weights)| AnySwitch {
            parent,
            link,
            latency,
            forwarding: if cut { Forwarding::CutThrough } else { Forwarding::StoreAndForward },
            weights,
            port_buffer: None,
        },
    )
}

fn any_device() -> impl Strategy<Value = AnyDevice> {
    (
        any::<usize>(),
        any_link(),
        prop::sample::select(Mrrs::ALL),
        prop_oneof![Just(1u16), 2u16..40, Just(300u16)],
        0u64..100,
        prop::option::weighted(0.4, any::<usize>()),
        1usize..12,
        moves(16),
        any::<(bool, bool)>(),
        prop::option::weighted(0.5, (1u16..4, 0u16..12)),
    )
        .prop_map(|(parent, link, mrrs, tags, latency, peer, outstanding, moves, ordering, ats)| {
            AnyDevice {
                parent,
                link,
                mrrs,
                tags,
                latency,
                peer,
                outstanding,
                moves,
                ordering,
                posted_writes: true,
                // In force where the host has an IOMMU.
                ats: ats.map(|(outstanding, more)| AtsConfig { entries: outstanding + more, outstanding }),
            }
        })
}

fn any_stage() -> impl Strategy<Value = Option<HostStageConfig>> {
    let rate = prop::option::of(2_000_000_000u64..200_000_000_000);
    prop::option::weighted(0.3, (0u64..200, rate, prop::option::of(1u16..20))).prop_map(|stage| {
        stage.map(|(latency, rate, entries)| HostStageConfig { latency: ns(latency), rate, entries })
    })
}

fn before_memory() -> impl Strategy<Value = BeforeMemory> {
    let cache = (1u64..20, 2u16..5, 0u64..60, 0u64..60).prop_map(|(sets, ways, hit, more)| CacheConfig {
        size: sets * u64::from(ways) * LINE,
        ways,
        ddio_ways: ways - 1,
        hit: ns(hit),
        snoop: ns(more / 2),
        write_allocate: ns(more),
    });
    let iommu = (1u16..6, 0u64..400, 1u16..4).prop_map(|(entries, walk, walkers)| IommuConfig {
        page: 4096,
        entries,
        walk: ns(walk),
        walkers: (walkers > 1).then_some(walkers),
        interval: ns(walk / 5),
        tables: None,
        ats: true,
    });
    let jitter = (0u64..20, 20u64..500).prop_map(|(least, most)| JitterConfig {
        quantiles: vec![(0, ns(least)), (WHOLE, ns(most))],
        memory: if most % 2 == 0 { Vec::new() } else { vec![(0, ns(0)), (WHOLE, ns(most))] },
    });
    let numa = (0u64..200)
        .prop_map(|hop| NumaConfig { hop: ns(hop), write_allocate: (hop % 2 == 0).then(|| ns(hop / 2)) });
    let some = 0.25;
    (
        prop::option::weighted(some, cache),
        prop::option::weighted(some, numa),
        prop::option::weighted(some, iommu),
        prop::option::weighted(some, jitter),
        prop_oneof![3 => Just(0), 1 => 1u64..200],
        prop::option::weighted(some, 0u64..40),
        prop::option::weighted(some, 1u16..20),
    )
        .prop_map(|(cache, numa, iommu, jitter, commit, line_interval, reads)| BeforeMemory {
            cache,
            numa,
            iommu,
            jitter,
            commit,
            line_interval,
            reads,
        })
}

pub fn any_fabric() -> impl Strategy<Value = AnyFabric> {
    (
        1usize..=4,
        prop::collection::vec(any_switch(), 0..4),
        prop::collection::vec(any_device(), 1..=8),
        0u64..300,
        (
            (0u64..200, prop::option::of(2_000_000_000u64..200_000_000_000)),
            [any_stage(), any_stage(), any_stage()],
            before_memory(),
        ),
        prop::sample::select(Rcb::ALL),
        prop::sample::select(vec![
            CompletionPolicy::Rcb,
            CompletionPolicy::Max,
            CompletionPolicy::SplitHead,
            CompletionPolicy::SplitEnds,
        ]),
        prop_oneof![Just(PeerToPeer::Forward), Just(PeerToPeer::Split(128)), Just(PeerToPeer::Split(64))],
        moves(10),
    )
        .prop_map(
            |(
                root_ports,
                switches,
                devices,
                host_latency,
                (memory, stages, before_memory),
                rcb,
                completions,
                peer_to_peer,
                mmio,
            )| {
                AnyFabric {
                    root_ports,
                    switches,
                    devices,
                    host_latency,
                    memory,
                    stages,
                    before_memory,
                    rcb,
                    completions,
                    peer_to_peer,
                    mmio,
                    port_buffer: None,
                    second_function: false,
                    peers: AnyPeers::default(),
                }
            },
        )
}

/// Devices that have to do with each other, through cores of switches, domains of the host and access control.
pub fn any_peers() -> impl Strategy<Value = AnyFabric> {
    let count = || prop::option::of(1u16..6);
    let core = (prop::option::of(5_000_000_000u64..100_000_000_000), count(), count());
    let core = core.prop_map(|(rate, egress, shared)| SwitchCoreConfig { rate, egress, shared });
    let domain = (prop::option::of(5_000_000_000u64..100_000_000_000), 0u64..100, count());
    let domain = domain.prop_map(|(rate, latency, entries)| DomainConfig {
        rate,
        latency: ns(latency),
        entries,
        ..DomainConfig::new("")
    });
    let redirect = AcsControls::REQUEST_REDIRECT | AcsControls::UPSTREAM_FORWARDING;
    let controls = vec![
        AcsControls::NONE,
        AcsControls::ISOLATION,
        redirect,
        AcsControls::COMPLETION_REDIRECT | AcsControls::UPSTREAM_FORWARDING,
    ];
    let peers = (
        prop::option::weighted(0.7, core),
        prop::option::weighted(0.6, (any::<u8>(), any::<bool>(), domain)),
        prop::option::weighted(0.6, prop::sample::select(controls)),
        prop::option::weighted(0.3, 0u64..200),
    );
    let mps = prop::sample::select(&Mps::ALL[..3]);
    (any_fabric(), peers, prop::bool::weighted(0.3), mps).prop_map(
        |(mut fabric, (core, domains, acs, turnaround), one_chip, mps)| {
            fabric.peers = AnyPeers { core, domains, acs, turnaround, one_chip };
            let count = fabric.devices.len();
            for (i, device) in fabric.devices.iter_mut().enumerate() {
                device.peer = device.peer.or((i % 2 == 0).then_some(i + count / 2));
            }
            if fabric.peers.domains.is_some() {
                fabric.peer_to_peer = PeerToPeer::Forward;
            }
            if one_chip || fabric.peers.domains.is_some() {
                let links = fabric.switches.iter_mut().map(|switch| &mut switch.link);
                let links = links.chain(fabric.devices.iter_mut().map(|device| &mut device.link));
                links.for_each(|link| link.mps = mps);
            }
            if core.is_some_and(|core| core.rate.is_some()) {
                let cuts = fabric.switches.iter_mut().filter(|s| s.forwarding == Forwarding::CutThrough);
                cuts.step_by(2).for_each(|switch| switch.forwarding = Forwarding::CutThroughUnlessFaster);
            }
            fabric
        },
    )
}

/// Links that drop and replay wherever they are not in flit mode, ports with room for few TLPs, and writes that are completed.
pub fn any_drop_replay() -> impl Strategy<Value = AnyFabric> {
    let room = || prop::option::weighted(0.8, 1u16..8);
    let each = (prop::bool::weighted(0.8), room(), any::<bool>());
    (any_fabric(), prop::collection::vec(each, 12), room()).prop_map(|(mut fabric, each, host_room)| {
        fabric.port_buffer = host_room;
        // Non-posted requests in both directions of one link may wait for each other's responses for ever: without credits
        // there is nothing that prevents it. So the host does nothing, and the devices leave each other alone.
        fabric.mmio.clear();
        fabric.devices.iter_mut().for_each(|device| device.peer = None);
        let links = fabric.switches.iter_mut().map(|s| &mut s.link);
        for (link, (drops, _, slips)) in
            links.chain(fabric.devices.iter_mut().map(|d| &mut d.link)).zip(&each)
        {
            if *drops && !link.flit && !is_flit(link.generation) {
                let slipping = FlowControl::DropAndReplaySlipping;
                link.flow_control = if *slips { slipping } else { FlowControl::DropAndReplay };
                (link.upper.ack_every, link.lower.ack_every) = (None, None);
            }
        }
        for (switch, (_, room, _)) in fabric.switches.iter_mut().zip(&each) {
            switch.port_buffer = *room;
        }
        for (device, (_, _, posted)) in fabric.devices.iter_mut().zip(&each) {
            device.posted_writes = *posted;
        }
        fabric
    })
}

/// The n-th unit of some kind hit, bit errors, or a single lane left, on any link.
pub fn any_faults() -> impl Strategy<Value = Vec<(usize, Fault)>> {
    let direction = prop_oneof![Just(Direction::Up), Just(Direction::Down)];
    let unit = prop_oneof![
        3 => Just(FaultUnit::Tlp),
        2 => Just(FaultUnit::Dllp),
        2 => Just(FaultUnit::Flit)
    ];
    let damage = prop_oneof![Just(Damage::Corrupt), Just(Damage::Drop)];
    let kind = prop_oneof![
        6 => (unit, 1u64..30, damage).prop_map(|(unit, n, damage)| FaultKind::Nth { unit, n, count: 1, damage }),
        // Up to one bit in 10^5: one TLP of 280 B in 45.
        1 => (1u64..=10).prop_map(|e| FaultKind::BitErrors { numerator: u64::MAX / 1_000_000 * e }),
        1 => (1u64..20_000).prop_map(|at| FaultKind::Narrow { at: Time::ZERO + ns(at), width: Width::ALL[0] }),
    ];
    let fault = (direction, kind).prop_map(|(direction, kind)| Fault { direction, kind });
    prop::collection::vec((any::<usize>(), fault), 1..12)
}
