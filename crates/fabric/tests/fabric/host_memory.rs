//! What a measured host has before its memory: figures that arithmetic says.

use crate::bench::{Bench, only_flow};
use std::collections::BTreeMap;
use tlplab_device::{LoadConfig, LoadOp, Target};
use tlplab_fabric::config::*;
use tlplab_fabric::{Driven, Fabric, HitCount, TranslationCount, Writer};
use tlplab_units::{Duration, Time};

const BASE: u64 = 1 << 32;
const PAGE: u64 = 4096;

const CACHE: CacheConfig = CacheConfig {
    size: 16 * 128 * LINE,
    ways: 16,
    ddio_ways: 2,
    hit: ns(30),
    snoop: ns(0),
    write_allocate: ns(13),
};
/// What devices may fill of [`CACHE`].
const SHARE: u64 = 2 * 128 * LINE;
const IOMMU: IommuConfig = IommuConfig {
    page: PAGE,
    entries: 64,
    walk: ns(250),
    walkers: Some(5),
    interval: ns(0),
    tables: None,
    ats: false,
};

const fn ns(n: u64) -> Duration {
    Duration::from_ns(n)
}

/// Where to and how: 64 B reads, one after the other.
fn load(count: u64, window: u64, stride: u64) -> LoadConfig {
    LoadConfig {
        op: LoadOp::Read,
        size: 64,
        target: Target::Address(BASE),
        window,
        stride: Some(stride),
        outstanding: 1,
        count: Some(count),
        ..LoadConfig::default()
    }
}

/// A device with this load on a crossbar, where nothing but its data takes time; memory takes 100 ns.
fn run(load: LoadConfig, host: impl Fn(&mut HostConfig), set_up: impl Fn(&mut Fabric)) -> Fabric {
    let mut bench = Bench::new();
    bench.config.host.memory.latency = ns(100);
    host(&mut bench.config.host);
    bench
        .device("dev", "host.rp0", 3, 8)
        .config(|device| device.link.crossbar = Some(128_000_000_000))
        .load(load);
    let mut fabric = bench.build();
    set_up(&mut fabric);
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(50)) {}
    assert!(fabric.is_done());
    fabric
}

fn latencies(fabric: &Fabric) -> (Duration, Duration) {
    let flow = only_flow(fabric);
    (flow.latency_min, flow.latency_max)
}

/// The latency of every read, which are all alike.
fn latency(load: LoadConfig, host: impl Fn(&mut HostConfig), set_up: impl Fn(&mut Fabric)) -> Duration {
    let (least, most) = latencies(&run(load, host, set_up));
    assert_eq!(least, most);
    least
}

fn at(fabric: &Fabric, place: &str) -> BTreeMap<&'static str, u64> {
    let mut causes = BTreeMap::new();
    for (interval, fs) in only_flow(fabric).attribution() {
        if fabric.topology().place_name(interval.place) == place {
            *causes.entry(interval.cause().name()).or_insert(0) += (fs / 1_000_000) as u64;
        }
    }
    causes
}

/// As many pages as there are entries are walked once each; with one page more, each is gone when it comes round again.
#[test]
fn the_io_tlb_reaches_as_far_as_it_has_entries() {
    let walks = |pages: u64| {
        let fabric = &mut run(load(10 * pages, pages * PAGE, PAGE), |h| h.iommu = Some(IOMMU), |_| {});
        fabric.host_counters().translations.unwrap().walks
    };
    assert_eq!(walks(64), 64);
    assert_eq!(walks(65), 650);
    let superpages = IommuConfig { page: 2 << 20, ..IOMMU };
    let fabric = &mut run(load(650, 65 * PAGE, PAGE), |h| h.iommu = Some(superpages), |_| {});
    let once = TranslationCount { hits: 649, walks: 1, waited: ns(0), walking: ns(250) };
    assert_eq!(fabric.host_counters().translations, Some(once));
}

/// A walk is what a read takes longer, at a place of its own.
#[test]
fn a_page_walk_is_on_the_critical_path() {
    let load = load(20, 20 * PAGE, PAGE);
    let without = latency(load.clone(), |_| {}, |_| {});
    let walked = run(load.clone(), |h| h.iommu = Some(IOMMU), |_| {});
    assert_eq!(latencies(&walked), (without + ns(250), without + ns(250)));
    assert_eq!(at(&walked, "host.iommu"), BTreeMap::from([("processing", 20 * 250)]));
    let known = |fabric: &mut Fabric| fabric.read_without_time(BASE, 20 * PAGE);
    assert_eq!(latency(load, |h| h.iommu = Some(IOMMU), known), without);
}

/// Where every request needs a walk, walks are what limits: as many in the time of one as there are walkers.
#[test]
fn walks_per_second_are_walkers_over_walk() {
    for (op, walkers) in [(LoadOp::Read, 5), (LoadOp::Write, 5), (LoadOp::Read, 2)] {
        let load = LoadConfig { op, outstanding: 64, ..load(1000, 1000 * PAGE, PAGE) };
        let iommu = IommuConfig { walkers: Some(walkers), ..IOMMU };
        let fabric = &mut run(load, |h| h.iommu = Some(iommu), |_| {});
        let walks = ns(1000 * 250 / u64::from(walkers));
        let took = fabric.now() - Time::ZERO;
        assert!(took > walks && took < walks + ns(1000), "{op:?}, {walkers} walkers: {took:?}");
        let count = fabric.host_counters().translations.unwrap();
        assert_eq!((count.walks, count.walking), (1000, ns(250_000)));
        // Reads wait for walkers, at most all 64 of them.
        assert!(op == LoadOp::Write || count.waited > walks * 50, "{:?}", count.waited);
        let waits = at(fabric, "host.iommu");
        assert_eq!(waits["processing"], 250_000);
        assert_eq!(waits["queueing"], count.waited.as_ns());
    }
}

/// Requests for a page that is being walked wait for that walk, and need none of their own.
#[test]
fn requests_for_one_page_share_a_walk() {
    let load = LoadConfig { outstanding: 32, ..load(32, PAGE, 64) };
    let fabric = &mut run(load, |h| h.iommu = Some(IOMMU), |_| {});
    let count = fabric.host_counters().translations.unwrap();
    assert_eq!((count.walks, count.hits), (1, 31));
    let (least, most) = latencies(fabric);
    assert!(most - least < ns(250), "later ones wait for what is left of it");
}

/// A device finds what it wrote while that fits the ways it may use; of twice as much, half.
#[test]
fn devices_fill_their_share_of_the_cache() {
    let hits = |window: u64| {
        let warm = |fabric: &mut Fabric| fabric.warm_cache(BASE, window, Writer::Device);
        let fabric = &mut run(load(window / 64, window, 64), |h| h.cache = Some(CACHE), warm);
        let HitCount { hits, misses } = fabric.host_counters().cache.unwrap();
        assert_eq!(hits + misses, window / 64);
        let (least, most) = latencies(fabric);
        assert_eq!(most - least, if hits * misses > 0 { ns(70) } else { ns(0) });
        hits * 64
    };
    assert_eq!([SHARE / 4, SHARE, 2 * SHARE, 4 * SHARE].map(hits), [SHARE / 4, SHARE, SHARE, SHARE]);
}

/// What the processor wrote may fill all of it; that costs a snoop, until a device has written it.
#[test]
fn the_processors_lines_fill_the_cache() {
    let cache = |host: &mut HostConfig| host.cache = Some(CacheConfig { snoop: ns(7), ..CACHE });
    let few = load(100, CACHE.size, 64);
    let cold = latency(few.clone(), cache, |_| {});
    let warm = |fabric: &mut Fabric| fabric.warm_cache(BASE, CACHE.size, Writer::Processor);
    assert_eq!(latency(few.clone(), cache, warm), cold - ns(63));
    let by_program = |fabric: &mut Fabric| fabric.host_memory().write(BASE, &vec![1; CACHE.size as usize]);
    assert_eq!(latency(few.clone(), cache, by_program), cold - ns(63));
    let then_by_device = |fabric: &mut Fabric| {
        warm(fabric);
        fabric.warm_cache(BASE, CACHE.size, Writer::Device);
    };
    assert_eq!(latency(few.clone(), cache, then_by_device), cold - ns(70));
    let then_cold = |fabric: &mut Fabric| {
        warm(fabric);
        fabric.cool_cache();
    };
    assert_eq!(latency(few, cache, then_cold), cold);
    // Of four times as much, the last quarter remains.
    let warm = |fabric: &mut Fabric| fabric.warm_cache(BASE, 4 * CACHE.size, Writer::Processor);
    let fabric = &mut run(load(4 * 2048, 4 * CACHE.size, 64), cache, warm);
    assert_eq!(fabric.host_counters().cache, Some(HitCount { hits: 2048, misses: 3 * 2048 }));
}

/// A line that a write does not find is placed: of a whole line nothing is fetched, of a part the rest.
#[test]
fn a_write_places_its_line() {
    let write = |size, warm: bool| {
        let load =
            LoadConfig { op: LoadOp::Write, size, rate: Some(size * 8_000_000), ..load(100, SHARE, 64) };
        let set_up = |fabric: &mut Fabric| {
            if warm {
                fabric.warm_cache(BASE, SHARE, Writer::Device);
            }
        };
        latency(load, |h| h.cache = Some(CACHE), set_up)
    };
    assert_eq!(write(64, false), write(64, true) + ns(13));
    assert_eq!(write(8, false), write(8, true) + ns(70));
}

/// Memory on the other node is the hop farther, also if its processor has it in a cache; what a device wrote is here.
#[test]
fn the_other_node_is_a_hop_away() {
    let numa = |host: &mut HostConfig| {
        let far = NumaConfig { hop: ns(107), write_allocate: None };
        (host.numa, host.cache) = (Some(far), Some(CACHE));
    };
    let load = load(64, PAGE, 64);
    let local = latency(load.clone(), numa, |_| {});
    let place = |fabric: &mut Fabric| fabric.place_remote(BASE, PAGE);
    let remote = run(load.clone(), numa, |fabric| {
        place(fabric);
        fabric.warm_cache(BASE, PAGE, Writer::Device);
        fabric.warm_cache(BASE, PAGE, Writer::Processor);
    });
    assert_eq!(latencies(&remote), (local + ns(107), local + ns(107)));
    assert_eq!(at(&remote, "host.numa"), BTreeMap::from([("flight", 64 * 107)]));
    let by_device = |fabric: &mut Fabric| {
        place(fabric);
        fabric.warm_cache(BASE, PAGE, Writer::Device);
    };
    assert_eq!(latency(load.clone(), numa, by_device), local - ns(70));
    let write = LoadConfig { op: LoadOp::Write, rate: Some(512_000_000), ..load };
    let local = latency(write.clone(), numa, |_| {});
    assert_eq!(latency(write.clone(), numa, place), local + ns(107));
    assert_eq!(latency(write.clone(), numa, by_device), local - ns(13));
    let measured = |host: &mut HostConfig| {
        numa(host);
        host.numa = Some(NumaConfig { hop: ns(107), write_allocate: Some(ns(45)) });
    };
    assert_eq!(latency(write, measured, place), local + ns(45 - 13));
}

/// Reads beyond the limit wait for those before them.
#[test]
fn so_many_reads_are_served_at_once() {
    let took = |reads| {
        let load = LoadConfig { outstanding: 32, ..load(400, PAGE, 64) };
        let fabric = run(load, |h| h.reads = reads, |_| {});
        assert!(at(&fabric, "host").contains_key("queueing") == reads.is_some());
        (fabric.now() - Time::ZERO).as_ns()
    };
    assert!((40_000..41_000).contains(&took(Some(1))));
    assert!((10_000..11_000).contains(&took(Some(4))));
    assert!(took(None) < 6_000);
}

/// Latency varies as the quantiles say, from read to read, the same in each run and in no way with another seed.
#[test]
fn memory_latency_follows_its_quantiles() {
    let quantiles = vec![(0, ns(0)), (900_000, ns(20)), (WHOLE, ns(220))];
    let jitter = JitterConfig { quantiles: quantiles.clone(), memory: Vec::new() };
    let load = load(4000, PAGE, 64);
    let steady = latency(load.clone(), |_| {}, |_| {});
    let varied = || run(load.clone(), |h| h.jitter = Some(jitter.clone()), |_| {});
    let fabric = varied();
    let (least, most) = latencies(&fabric);
    assert!(least < steady + ns(1) && most > steady + ns(200) && most < steady + ns(220));
    // 0.9 · 10 + 0.1 · 120
    let mean = only_flow(&fabric).latency_sum_fs / 4000 - u128::from(steady.as_fs());
    assert!(mean.abs_diff(21_000_000) < 2_000_000, "{mean} fs");
    assert_eq!(varied().trace_hash(), fabric.trace_hash());
    // What only memory adds is not added to what is in the cache.
    let of_memory = |host: &mut HostConfig| {
        host.jitter = Some(JitterConfig { quantiles: Vec::new(), memory: quantiles.clone() });
        host.cache = Some(CACHE);
    };
    let warm = |fabric: &mut Fabric| fabric.warm_cache(BASE, PAGE, Writer::Device);
    assert_eq!(latency(load.clone(), of_memory, warm), steady - ns(70));
    assert!(latencies(&run(load.clone(), of_memory, |_| {})).1 > steady + ns(200));
}

/// Lines that come 14 ns apart go one by one on an idle link, and together where they wait.
#[test]
fn completions_carry_the_lines_that_are_there() {
    let ran = |outstanding, line_interval, rate: u64| {
        let mut bench = Bench::new();
        bench.config.host.line_interval = line_interval;
        let load = LoadConfig { size: 512, outstanding, ..load(256, 1 << 20, 512) };
        let link = |link: &mut LinkConfig| link.crossbar = Some(rate);
        bench.device("dev", "host.rp0", 3, 8).config(|device| link(&mut device.link)).load(load);
        let mut fabric = bench.build();
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(50)) {}
        assert!(fabric.is_done());
        let down = fabric.topology().links[0].ports[1];
        let completions = fabric.direction_result(down).wire.tlps;
        (latencies(&fabric).0, completions / 256, fabric)
    };
    // 512 B take 32 ns of this wire, a line 4 ns.
    let fast = 128_000_000_000;
    assert_eq!((ran(1, None, fast).0, ran(1, None, fast).1), (ns(32), 2));
    let (one_by_one, completions, fabric) = ran(1, Some(ns(14)), fast);
    assert_eq!((one_by_one, completions), (ns(7 * 14 + 4), 8));
    assert_eq!(at(&fabric, "host"), BTreeMap::from([("completer", 256 * 7 * 14)]));
    // On a wire as slow as 32 ns a line, those that come meanwhile are joined: 1, 2, 4, and the last.
    let (slow, completions, _) = ran(1, Some(ns(14)), fast / 8);
    assert_eq!((slow, completions), (ns(8 * 32), 4));
    // Many reads wait for each other, and their lines come meanwhile.
    assert_eq!(ran(32, Some(ns(14)), fast / 8).1, 2);
}

/// A read of no bytes is answered when the line it names is there.
#[test]
fn a_read_of_nothing_waits_for_no_further_line() {
    let nothing = LoadConfig { size: 0, ..load(10, PAGE, 64) };
    let at_once = latency(nothing.clone(), |_| {}, |_| {});
    assert_eq!(latency(nothing, |h| h.line_interval = Some(ns(14)), |_| {}), at_once);
}

/// A write is in memory when it is committed, and no earlier does a read behind it have its data, which were looked up meanwhile.
#[test]
fn a_read_waits_until_the_write_before_it_is_committed() {
    let write = LoadConfig { op: LoadOp::Write, rate: Some(512_000_000), ..load(20, PAGE, 64) };
    let commit = |host: &mut HostConfig| host.commit = ns(250);
    assert_eq!(latency(write.clone(), commit, |_| {}), latency(write, |_| {}, |_| {}) + ns(250));
    // Both at the same time: the write takes 4 ns, the read's request behind it no time on a crossbar, and its answer 4 ns.
    let both = LoadConfig { op: LoadOp::Both, rate: Some(512_000_000), ..load(20, PAGE, 64) };
    let last = |host: &dyn Fn(&mut HostConfig)| {
        let fabric = run(both.clone(), host, |_| {});
        fabric.flow_ids().map(|flow| fabric.flow_results(flow).latency_max).max().unwrap()
    };
    assert_eq!((last(&|_| {}), last(&commit)), (ns(4 + 100 + 4), ns(4 + 250 + 4)));
}

/// What cannot be is said before anything runs.
#[test]
fn impossible_hosts_are_refused() {
    let refused = |host: &dyn Fn(&mut HostConfig)| {
        let mut config = FabricConfig::new();
        host(&mut config.host);
        tlplab_fabric::Builder::new(config).build().err().map(|error| error.to_string()).unwrap()
    };
    let cache = |cache| refused(&move |h: &mut HostConfig| h.cache = Some(cache));
    assert!(cache(CacheConfig { size: 1000, ..CACHE }).contains("a multiple of 1024 B"));
    assert!(cache(CacheConfig { size: 8 << 40, ..CACHE }).contains("4 GiB"));
    assert!(cache(CacheConfig { ddio_ways: 17, ..CACHE }).contains("1 to 16 ways"));
    let iommu = |iommu| refused(&move |h: &mut HostConfig| h.iommu = Some(iommu));
    assert!(iommu(IommuConfig { page: 5000, ..IOMMU }).contains("5000 B"));
    assert!(iommu(IommuConfig { walkers: Some(0), ..IOMMU }).contains("at least one"));
    assert!(refused(&|h| h.reads = Some(0)).contains("no limit"));
    let jitter = |quantiles: &[(u32, u64)]| {
        let quantiles: Vec<_> = quantiles.iter().map(|&(rank, time)| (rank, ns(time))).collect();
        refused(&move |h: &mut HostConfig| {
            h.jitter = Some(JitterConfig { quantiles: quantiles.clone(), memory: Vec::new() })
        })
    };
    assert!(jitter(&[(0, 1), (500_000, 2)]).contains("0% to 50%"));
    assert!(jitter(&[(0, 5), (WHOLE, 2)]).contains("look at 0% and 100%"));
}
