//! The keys of a host, and of a file that describes one.

use super::{PORT_BUFFER, RCB};
use crate::access;
use crate::choices::choice;
use crate::domains::DOMAIN;
use crate::host_memory;
use crate::hosts;
use crate::keys::Kind;
use crate::section::{Section, Set, row};
use crate::translation::{MAP, TABLES};
use tlplab_fabric::config::{
    CacheConfig, EnumerationTime, HostConfig, HostStageConfig, InterruptPolicy, IommuConfig, JitterConfig,
    MemoryConfig, MpsPolicy, NumaConfig, SleepConfig, StallConfig, TablesConfig,
};
use tlplab_transaction::CompletionPolicy;
use tlplab_units::Rcb;

/// `host`
pub(crate) static HOST: Section<HostConfig> = Section {
    title: "the host",
    extra: None,
    rows: &[
        row(
            ("profile", Kind::Word(&hosts::PROFILE), r#""ideal""#, r#""server""#),
            "Base of the other keys: the name of a profile, or a file that ends in .toml.",
            Set::Context,
        ),
        row(
            ("latency", Kind::Time, "", r#""150ns""#),
            "Time a TLP spends in the root complex, each way.",
            Set::Time(|host, it| host.latency = it),
        ),
        row(
            ("rcb", RCB, "", r#""128B""#),
            "Read completion boundary (PCIe 5.0 §2.3.1.1).",
            Set::Read(|host, v| v.bytes_of(Rcb::new).map(|it| host.rcb = it)),
        ),
        row(
            ("completions", choice::<CompletionPolicy>(), "", r#""rcb""#),
            "How read completions are cut: as large as MPS allows (max), at every RCB (rcb), or as large as MPS allows but for the part of an RCB at the start of the read (split-head), or at its start and end (split-ends), which comes alone.",
            Set::Read(|host, v| v.chosen().map(|it| host.completions = it)),
        ),
        row(
            ("p2p", Kind::Word(&hosts::PEER_TO_PEER), "", r#""split 64B""#),
            "Requests between root ports: forward, off (unsupported request), or split into pieces.",
            Set::Read(|host, v| v.word(hosts::peer_to_peer).map(|it| host.peer_to_peer = it)),
        ),
        access::ACS.row(Set::Context),
        row(
            ("domain", Kind::Map { what: "domain", of: &Kind::Table(&DOMAIN) }, "", ""),
            "Parts of the host that root ports are in, such as the quadrants of an I/O die, and sockets, by name: a TLP from a port to another leaves its domain and enters the other's. Memory is in a domain if memory.domain names it.",
            Set::Context,
        ),
        row(
            ("tags", Kind::Integer { min: 1, max: 768 }, "", "16"),
            "MMIO reads the processor may have outstanding.",
            Set::U16(|host, it| host.tags = it),
        ),
        row(
            ("completion_timeout", Kind::Time, "", r#""50ms""#),
            "Completion timeout of the processor's requests.",
            Set::Time(|host, it| host.completion_timeout = it),
        ),
        row(
            ("ecrc", Kind::Boolean, "", "true"),
            "All functions add digests to their TLPs and check them (PCIe 5.0 §2.7.1).",
            Set::Boolean(|host, it| host.ecrc = it),
        ),
        row(
            ("error_reporting", Kind::Boolean, "", "false"),
            "Functions report errors to their root port, which interrupts for them (PCIe 5.0 §6.2); on unless switched off.",
            Set::Boolean(|host, it| host.error_reporting = it),
        ),
        PORT_BUFFER.row(Set::U16(|host, it| host.port_buffer = Some(it))),
        row(
            ("memory", Kind::Table(&MEMORY), "", r#"{ latency = "90ns" }"#),
            "Host memory.",
            Set::Read(|host, v| MEMORY.read(v, &mut host.memory)),
        ),
        row(
            (
                "cache",
                Kind::Table(&CACHE),
                "",
                r#"{ size = "15MiB", ways = 20, ddio_ways = 2, hit = "60ns" }"#,
            ),
            "The last-level cache, which requests of devices look into before memory.",
            Set::Read(|host, v| host_memory::cache(v).map(|it| host.cache = Some(it))),
        ),
        row(
            ("numa", Kind::Table(&NUMA), "", r#"{ hop = "58ns" }"#),
            "Another node, with memory of its own.",
            Set::Read(|host, v| NUMA.read_into(v, NumaConfig::default()).map(|it| host.numa = Some(it))),
        ),
        row(
            ("iommu", Kind::Table(&IOMMU), "", r#"{ entries = 118, walk = "230ns", walkers = 5 }"#),
            "The IOMMU, which translates the addresses of requests of devices.",
            Set::Read(|host, v| host_memory::iommu(v).map(|it| host.iommu = it)),
        ),
        row(
            ("jitter", Kind::Table(&JITTER), "", r#"{ quantiles = ["0% 0ns", "99.9% 60ns", "100% 300ns"] }"#),
            "Variation of the latency of reads by devices.",
            Set::Read(|host, v| {
                JITTER.read_into(v, JitterConfig::default()).map(|it| host.jitter = Some(it))
            }),
        ),
        row(
            (
                "sleep",
                Kind::Table(&SLEEP),
                "",
                r#"{ after = "430ns", wake = ["0% 640ns", "60% 700ns", "100% 8us"] }"#,
            ),
            "The host saves power while devices read nothing: wake-up times of the first read after a pause.",
            Set::Read(|host, v| SLEEP.read_into(v, SleepConfig::default()).map(|it| host.sleep = Some(it))),
        ),
        row(
            ("stall", Kind::Table(&STALL), "", r#"{ every = "4ms", lasts = "2ms" }"#),
            "From time to time the host stops answering, as when its package sleeps deeply.",
            Set::Read(|host, v| host_memory::stall(v).map(|it| host.stall = Some(it))),
        ),
        row(
            ("write_interval", Kind::Time, r#""0s""#, r#""28ns""#),
            "Least time between two posted writes of devices to memory.",
            Set::Time(|host, it| host.write_interval = it),
        ),
        row(
            ("write_turnaround", Kind::Time, "", r#""20ns""#),
            "A posted write of a device to another root port than the one before it, from below the same root port, waits until all before have left by theirs, and this much longer; Relaxed Ordering avoids the wait. A hypothesis (docs/peer-to-peer.md). Absent: it does not wait.",
            Set::Time(|host, it| host.write_turnaround = Some(it)),
        ),
        row(
            ("commit", Kind::Time, r#""0s""#, r#""60ns""#),
            "From the arrival of a posted write of a device at memory until it is visible, for all TLPs that must not pass it.",
            Set::Time(|host, it| host.commit = it),
        ),
        row(
            ("line_interval", Kind::Time, "", r#""14ns""#),
            "From one line (RCB) of the answer to a read to the next, where they reach the root port one by one: a completion carries the lines available when it can leave. Default: all lines are available at once.",
            Set::Time(|host, it| host.line_interval = Some(it)),
        ),
        row(
            ("reads", Kind::Integer { min: 1, max: 4096 }, "", "32"),
            "Reads of devices that the root complex serves at once; further ones wait in its receive buffers. Default: no limit.",
            Set::U16(|host, it| host.reads = Some(it)),
        ),
        row(
            ("io_cache", Kind::Table(&HOST_STAGE), "", r#"{ latency = "50ns" }"#),
            "A stage between the root complex and the memory bus, which requests of devices and their answers pass.",
            Set::Read(|host, v| {
                HOST_STAGE.read_into(v, HostStageConfig::default()).map(|it| host.io_cache = Some(it))
            }),
        ),
        row(
            ("memory_bus", Kind::Table(&HOST_STAGE), "", r#"{ rate = "128Gb/s" }"#),
            "A stage before memory, for devices and the processor.",
            Set::Read(|host, v| {
                HOST_STAGE.read_into(v, HostStageConfig::default()).map(|it| host.memory_bus = Some(it))
            }),
        ),
        row(
            ("bridge", Kind::Table(&HOST_STAGE), "", r#"{ latency = "50ns" }"#),
            "A stage between the memory bus and the root complex, for the processor's own requests and their completions.",
            Set::Read(|host, v| {
                HOST_STAGE.read_into(v, HostStageConfig::default()).map(|it| host.bridge = Some(it))
            }),
        ),
        row(
            ("enumeration", choice::<EnumerationTime>(), "", r#""simulated""#),
            "Software numbers buses and assigns addresses before time 0, or from time 0 on by configuration requests over the links.",
            Set::Read(|host, v| v.chosen().map(|it| host.enumeration = it)),
        ),
        row(
            ("interrupts", choice::<InterruptPolicy>(), "", r#""intx""#),
            "Interrupts that software enables; a function without this kind uses the next.",
            Set::Read(|host, v| v.chosen().map(|it| host.interrupts = it)),
        ),
        row(
            ("payloads", choice::<MpsPolicy>(), "", r#""upward""#),
            "The payload (Max_Payload_Size) that software sets: to all below a root port the largest that all of them support (common; Linux: pci=pcie_bus_safe), to each the largest that it and the ports above it support, and read requests no larger (upward; pcie_bus_perf), or 128 B (smallest; pcie_bus_peer2peer). With upward a TLP to a function that supports less is malformed.",
            Set::Read(|host, v| v.chosen().map(|it| host.payloads = it)),
        ),
        row(
            ("root_ports", Kind::List(&Kind::Word(&hosts::IDS)), "", r#"["8086:9c90"]"#),
            "Vendor and device ID of the root ports, in their order.",
            Set::Read(|host, v| v.words(hosts::ids).map(|it| host.root_port_ids = it)),
        ),
    ],
};

/// `host.cache`
pub(crate) static CACHE: Section<CacheConfig> = Section {
    title: "a last-level cache",
    extra: None,
    rows: &[
        row(
            ("size", Kind::Size, "", r#""15MiB""#),
            "Its size: a multiple of 64 B times `ways`. Required.",
            Set::Bytes(|cache, it| cache.size = it),
        ),
        row(
            ("ways", WAYS, "", "20"),
            "Lines of a set, of which the least recently used one makes room. Required.",
            Set::U16(|cache, it| cache.ways = it),
        ),
        row(
            ("ddio_ways", WAYS, "", "2"),
            "Ways in which a write of a device may place an absent line; a present line is written in its own way. Required.",
            Set::U16(|cache, it| cache.ddio_ways = it),
        ),
        row(
            ("hit", Kind::Time, "", r#""60ns""#),
            "From the root complex's request to the data where all lines are there, in the place of `host.memory.latency`. Required.",
            Set::Time(|cache, it| cache.hit = it),
        ),
        row(
            ("snoop", Kind::Time, r#""0s""#, r#""15ns""#),
            "Additional time where the processor wrote one of the lines last: its own caches are snooped.",
            Set::Time(|cache, it| cache.snoop = it),
        ),
        row(
            ("write_allocate", Kind::Time, r#""0s""#, r#""13ns""#),
            "Additional time for a write that allocates a whole line. (A write to a part of an absent line fetches the rest, which takes the difference between memory and a hit.)",
            Set::Time(|cache, it| cache.write_allocate = it),
        ),
    ],
};

const WAYS: Kind = Kind::Integer { min: 1, max: 256 };

/// `host.numa`
pub(crate) static NUMA: Section<NumaConfig> = Section {
    title: "another node",
    extra: None,
    rows: &[
        row(
            ("hop", Kind::Time, "", r#""58ns""#),
            "Round trip to the other node, for accesses that miss in this node's cache. Required.",
            Set::Time(|numa, it| numa.hop = it),
        ),
        row(
            ("write_allocate", Kind::Time, "", r#""175ns""#),
            "Additional time of a write that has to place a whole line of the other node's memory. Default: that of the cache and the hop.",
            Set::Time(|numa, it| numa.write_allocate = Some(it)),
        ),
    ],
};

/// `host.iommu`
pub(crate) static IOMMU: Section<IommuConfig> = Section {
    title: "an IOMMU",
    extra: None,
    rows: &[
        row(
            ("mode", choice::<host_memory::Pages>(), r#""4KiB""#, r#""superpages""#),
            "Off, or the size that a translation of unchanged addresses covers: 2 MiB or 4 KiB. Mappings in `map` have their own page sizes.",
            Set::Read(|iommu, v| host_memory::page(v).map(|it| iommu.page = it)),
        ),
        row(
            ("entries", Kind::Integer { min: 1, max: 4096 }, "", "118"),
            "Translations that the IO-TLB keeps, of which the least recently used one makes room. Required.",
            Set::U16(|iommu, it| iommu.entries = it),
        ),
        row(
            ("walk", Kind::Time, "", r#""230ns""#),
            "Time of a page walk. Required, unless there are `tables`.",
            Set::Time(|iommu, it| iommu.walk = it),
        ),
        row(
            ("tables", Kind::Table(&TABLES), "", r#"{ nested = 4, step = "60ns" }"#),
            "Page tables; the time of a walk follows from their levels and the cached entries, instead of `walk`.",
            Set::Read(|iommu, v| {
                TABLES.read_into(v, TablesConfig::default()).map(|it| iommu.tables = Some(it))
            }),
        ),
        row(
            ("map", Kind::Map { what: "mapping", of: &Kind::Table(&MAP) }, "", ""),
            "Mappings in the tables, by name. A device without a mapping uses the host's addresses.",
            Set::Context,
        ),
        row(
            ("ats", Kind::Boolean, "true", "false"),
            "Devices with `ats` may request translations and send requests with translated addresses; false: both are refused, and software does not enable ATS.",
            Set::Boolean(|iommu, it| iommu.ats = it),
        ),
        row(
            ("walkers", Kind::Integer { min: 1, max: 256 }, "", "5"),
            "Page walks at a time; further ones wait in their order. Default: no limit.",
            Set::U16(|iommu, it| iommu.walkers = Some(it)),
        ),
        row(
            ("interval", Kind::Time, r#""0s""#, r#""46ns""#),
            "Least time from the start of a page walk to the start of the next.",
            Set::Time(|iommu, it| iommu.interval = it),
        ),
    ],
};

/// `host.jitter`
pub(crate) static JITTER: Section<JitterConfig> = Section {
    title: "jitter",
    extra: None,
    rows: &[
        row(
            (
                "quantiles",
                Kind::List(&Kind::Word(&host_memory::QUANTILE)),
                "",
                r#"["0% 0ns", "50% 8ns", "99.9% 60ns", "100% 300ns"]"#,
            ),
            "Additional time of every read, random, by quantiles; linear between them.",
            Set::Read(|jitter, v| host_memory::quantiles(v).map(|it| jitter.quantiles = it)),
        ),
        row(
            (
                "memory",
                Kind::List(&Kind::Word(&host_memory::QUANTILE)),
                "",
                r#"["0% 0ns", "99% 0ns", "100% 250ns"]"#,
            ),
            "The same, for reads that miss in the cache; once in each 7.8 µs, the interval of refresh, from the largest down to the smallest.",
            Set::Read(|jitter, v| host_memory::quantiles(v).map(|it| jitter.memory = it)),
        ),
    ],
};

/// `host.sleep`
pub(crate) static SLEEP: Section<SleepConfig> = Section {
    title: "a host that sleeps",
    extra: None,
    rows: &[
        row(
            ("after", Kind::Time, "", r#""430ns""#),
            "The host sleeps when a pause has lasted this long: since the answer to the last read of a device left, or `host.latency` and `host.memory.latency` after that went on to memory. Posted writes neither wake the host nor wait for it. Required.",
            Set::Time(|sleep, it| sleep.after = it),
        ),
        row(
            (
                "wake",
                Kind::List(&Kind::Word(&host_memory::QUANTILE)),
                "",
                r#"["0% 640ns", "60% 700ns", "100% 8us"]"#,
            ),
            "Wake-up time of the first read then, random, by quantiles; linear between them. Required.",
            Set::Read(|sleep, v| host_memory::quantiles(v).map(|it| sleep.wake = it)),
        ),
        row(
            ("doze_after", Kind::Time, r#""0s""#, r#""280ns""#),
            "Before it sleeps it dozes, when a pause has lasted this long.",
            Set::Time(|sleep, it| sleep.doze_after = it),
        ),
        row(
            (
                "doze",
                Kind::List(&Kind::Word(&host_memory::QUANTILE)),
                "",
                r#"["0% 0ns", "55% 15ns", "100% 7us"]"#,
            ),
            "Wake-up time of the first read then. Default: none.",
            Set::Read(|sleep, v| host_memory::quantiles(v).map(|it| sleep.doze = it)),
        ),
    ],
};

/// `host.stall`
pub(crate) static STALL: Section<StallConfig> = Section {
    title: "a host that stalls",
    extra: None,
    rows: &[
        row(
            ("every", Kind::Time, "", r#""4ms""#),
            "From the end of one stall until the next is due, on average; between half and one and a half of it, at random. It begins in the next pause between reads, when the host dozes (`host.sleep.doze_after`). Required.",
            Set::Time(|stall, it| stall.every = it),
        ),
        row(
            ("lasts", Kind::Time, "", r#""2ms""#),
            "Its duration; reads that arrive meanwhile, and the TLPs behind them, wait for its end. Required.",
            Set::Time(|stall, it| stall.lasts = it),
        ),
    ],
};

/// `host.io_cache`, `host.memory_bus`, `host.bridge`
pub(crate) static HOST_STAGE: Section<HostStageConfig> = Section {
    title: "a stage of the host",
    extra: None,
    rows: &[
        row(
            ("latency", Kind::Time, "", r#""50ns""#),
            "Time a request or an answer spends in it, each way. Default 0s.",
            Set::Time(|stage, it| stage.latency = it),
        ),
        row(
            ("rate", Kind::Rate, "", r#""128Gb/s""#),
            "Rate of data in each direction. Default: no limit.",
            Set::Rate(|stage, it| stage.rate = Some(it)),
        ),
        row(
            ("entries", Kind::Integer { min: 1, max: 4096 }, "", "20"),
            "Requests of devices that it holds until they are answered or, if posted, in memory; of the bridge, reads of the processor. Default: no limit.",
            Set::U16(|stage, it| stage.entries = Some(it)),
        ),
    ],
};

/// `host.memory`
pub(crate) static MEMORY: Section<MemoryConfig> = Section {
    title: "host memory",
    extra: None,
    rows: &[
        row(
            ("latency", Kind::Time, "", r#""90ns""#),
            "From the root complex's request to the data.",
            Set::Time(|memory, it| memory.latency = it),
        ),
        row(
            ("bandwidth", Kind::OneOf(&[choice::<hosts::Unlimited>(), Kind::Rate]), "", r#""400Gb/s""#),
            "Reads and writes together, or \"unlimited\".",
            Set::Read(|memory, v| hosts::bandwidth(v).map(|it| memory.bandwidth = it)),
        ),
        row(
            ("size", Kind::Size, "", r#""64GiB""#),
            "Addresses from 0; requests beyond it are unsupported requests.",
            Set::Bytes(|memory, it| memory.size = it),
        ),
        row(
            ("domain", Kind::Text, "", r#""socket0""#),
            "The host.domain of memory and of the interrupt controller: TLPs of devices in other domains, and the completions, leave and enter domains. Absent: they pass no domain.",
            Set::Context,
        ),
    ],
};

/// A profile file: a host with a word about where its figures come from.
pub(crate) static PROFILE_FILE: Section<()> = Section {
    title: "a host profile",
    extra: None,
    rows: &[
        row(("title", Kind::Text, "", r#""A server""#), "One line. Required.", Set::Context),
        row(
            ("source", Kind::Text, "", r#""measured by…""#),
            "Where the figures come from. Required.",
            Set::Context,
        ),
        row(("host", Kind::Table(&HOST), "", ""), "The host. Required.", Set::Context),
    ],
};
