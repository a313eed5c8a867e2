//! Every field of what an experiment configures is relaxed by a candidate, or has its reason not to be: the configuration does not compile with a new
//! one until it has. Before `// no resource:` stand those that are relaxed.

use crate::load::{Generate, LoadSpec};
use tlplab_device::nettlp_card::CardConfig;
use tlplab_device::{DdLoad, TransferLoad};
use tlplab_fabric::config::{
    AtsConfig, BridgeConfig, BusConfig, BusDevice, CacheConfig, DeviceConfig, DomainConfig, HostConfig,
    HostStageConfig, IommuConfig, JitterConfig, LinkConfig, MemoryConfig, NumaConfig, PortConfig,
    SleepConfig, StallConfig, SwitchConfig, SwitchCoreConfig, TablesConfig,
};

#[rustfmt::skip]
const _: fn(&HostConfig) = |HostConfig {
    latency: _, memory: _, cache: _, numa: _, iommu: _, jitter: _, commit: _, sleep: _, stall: _, write_interval: _, write_turnaround: _, line_interval: _,
    reads: _, io_cache: _, memory_bus: _, bridge: _, completions: _, peer_to_peer: _, domains: _, tags: _, completion_timeout: _, port_buffer: _,
    // no resource: names, formats, when and how software sets up, what it allows
    name: _, maps: _, rcb: _, ecrc: _, error_reporting: _, enumeration: _, interrupts: _, payloads: _, root_port_ids: _, addresses: _, memory_domain: _,
}| ();
#[rustfmt::skip]
const _: fn(&MemoryConfig) = |MemoryConfig {
    latency: _, bandwidth: _,
    // no resource: an address beyond it is a mistake
    size: _,
}| ();
#[rustfmt::skip]
const _: fn(&DomainConfig) = |DomainConfig {
    rate: _, latency: _, entries: _,
    // no resource: names, and where things are
    name: _, under: _, ports: _,
}| ();
const _: fn(&HostStageConfig) = |HostStageConfig { latency: _, rate: _, entries: _ }| ();
#[rustfmt::skip]
const _: fn(&CacheConfig) = |CacheConfig {
    size: _, ddio_ways: _, hit: _, snoop: _, write_allocate: _,
    // no resource: how the size is divided
    ways: _,
}| ();
const _: fn(&NumaConfig) = |NumaConfig { hop: _, write_allocate: _ }| ();
#[rustfmt::skip]
const _: fn(&IommuConfig) = |IommuConfig {
    page: _, entries: _, walk: _, walkers: _, interval: _, tables: _,
    // no resource: what software allows
    ats: _,
}| ();
const _: fn(&TablesConfig) =
    |TablesConfig { levels: _, nested: _, step: _, entries: _, nested_entries: _ }| ();
const _: fn(&AtsConfig) = |AtsConfig { entries: _, outstanding: _ }| ();
const _: fn(&JitterConfig) = |JitterConfig { quantiles: _, memory: _ }| ();
const _: fn(&SleepConfig) = |SleepConfig { after: _, wake: _, doze_after: _, doze: _ }| ();
const _: fn(&StallConfig) = |StallConfig { every: _, lasts: _ }| ();
#[rustfmt::skip]
const _: fn(&SwitchConfig) = |SwitchConfig {
    uplink: _, latency: _, forwarding: _, arbitration: _, port_buffer: _, core: _,
    // no resource: names, and where it is
    name: _, chip: _,
}| ();
const _: fn(&SwitchCoreConfig) = |SwitchCoreConfig { rate: _, egress: _, shared: _ }| ();
#[rustfmt::skip]
const _: fn(&DeviceConfig) = |DeviceConfig {
    link: _, bus: _, ready: _, mrrs: _, tags: _, latency: _, completion_timeout: _, relaxed_ordering: _, posted_writes: _, ats: _,
    // no resource: names, where a requester cuts, an attribute that orders requesters among each other
    name: _, function_of: _, cut: _, id_based_ordering: _,
}| ();
#[rustfmt::skip]
const _: fn(&LinkConfig) = |LinkConfig {
    generation: _, width: _, crossbar: _, tlp_alignment: _, mps: _, flight: _, upper: _, lower: _, recovery: _, faults: _,
    // no resource: names, what kind of link it is, the ordered sets that it needs, whether it begins trained
    under: _, mode: _, flow_control: _, skp: _, trained: _,
}| ();
#[rustfmt::skip]
const _: fn(&PortConfig) = |PortConfig {
    latency: _, buffers: _, replay_tlps: _, replay_bytes: _, replay_timer: _, ack_latency: _, ack_every: _, update_fc: _, stages: _, acs: _,
    max_payload: _,
    // no resource: one port that is no like its switch
    forwarding: _,
}| ();
#[rustfmt::skip]
const _: fn(&BusConfig) = |BusConfig {
    uplink: _, mode: _, width: _, bridge: _,
    // no resource: names
    name: _,
}| ();
const _: fn(&BridgeConfig) =
    |BridgeConfig { latency: _, synchronisation: _, overhead: _, device_select: _, posted: _, reads: _ }| ();
#[rustfmt::skip]
const _: fn(&BusDevice) = |BusDevice {
    device_select: _, wait_states: _, overhead: _,
    // no resource: what a device can do is what it is
    completion: _,
}| ();
#[rustfmt::skip]
const _: fn(&CardConfig) = |CardConfig {
    rate: _, buffer: _, cores: _, send: _, receive: _, wake: _, queue: _,
    // no resource: what has failed by then has failed, what others tell it
    timeout: _, bar: _, mps: _, mrrs: _, from: _, peers: _,
}| ();
#[rustfmt::skip]
const _: fn(&DdLoad) = |DdLoad {
    request: _, cost: _, ahead: _, start: _,
    // no resource: the work itself
    write: _, block: _, count: _, page_list: _,
}| ();
#[rustfmt::skip]
const _: fn(&TransferLoad) = |TransferLoad {
    outstanding: _, wait: _, call_cost: _, descriptors: _,
    // no resource: the work itself
    to_card: _, bytes: _, count: _, offset: _, card_offset: _, pages: _, start: _, verify: _,
}| ();
#[rustfmt::skip]
const _: fn(&Generate) = |Generate {
    pace: _, outstanding: _,
    // no resource: the work itself
    op: _, size: _, pattern: _, base: _, window: _, align: _, offset: _, warm: _, remote: _,
}| ();
#[rustfmt::skip]
const _: fn(&LoadSpec) = |LoadSpec {
    work: _,
    // no resource: names, when it is to be done, and how often
    name: _, device: _, target: _, start: _, count: _,
}| ();
