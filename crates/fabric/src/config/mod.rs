//! The parts of a fabric, as plain data. The defaults are stated here and nowhere else.

mod bus;
mod host_memory;
mod node;
mod payload;
mod stages;
mod switch;
mod translation;

mod error;
pub(crate) mod numbering;

pub use bus::{BridgeConfig, BusCompletion, BusConfig, BusDevice, BusMode, BusWidth, DeviceSelect};
pub use error::BuildError;
pub use host_memory::{
    CacheConfig, HostMemoryError, IommuConfig, JitterConfig, LARGEST_CACHE, LINE, NumaConfig, SleepConfig,
    StallConfig, WHOLE,
};
pub use node::NodeConfig;
pub use payload::{Payloads, payloads};
pub use stages::StagesConfig;
use std::ops::Range;
pub use switch::{Arbitration, Forwarding, SwitchConfig, SwitchCoreConfig};
pub use tlplab_cfgspace::AcsControls;
pub use tlplab_cfgspace::enumerate::{InterruptPolicy, MpsPolicy};
pub use tlplab_datalink::{CreditBatch, FlowControl, UpdateFcLatency, UpdateFcPolicy};
use tlplab_device::IO_SPACE;
use tlplab_transaction::CompletionPolicy;
pub use tlplab_transaction::RequestPolicy;
use tlplab_units::{Bdf, Duration, Generation, LinkMode, LinkRate, Mps, Mrrs, Rcb, Time, Width};
pub use tlplab_wire::tlp::CompletionStatus;
pub use translation::{AtsConfig, MapConfig, MapError, MapTarget, TRANSLATED_ADDRESSES, TablesConfig};

/// TLPs carry their payload, or only its length. Both give the same timing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fidelity {
    /// Data are moved and can be verified.
    #[default]
    Payload,
    /// Only lengths are moved: faster.
    LengthOnly,
}

/// The whole fabric except for the behaviour of devices and host programs, which the builder is given as objects.
#[derive(Clone, Debug)]
pub struct FabricConfig {
    /// Seeds every random stream, together with the name of the component that draws from it.
    pub seed: u64,
    /// Payload-carrying or length-only.
    pub fidelity: Fidelity,
    /// Vendor ID of the host's and the switches' functions, and of devices whose own is [`VENDOR_ID`](tlplab_cfgspace::VENDOR_ID).
    pub vendor: u16,
    /// Statistics start here; what happens before is simulated but not counted.
    pub warmup: Time,
    /// The host: root ports, memory, policies.
    pub host: HostConfig,
    /// Switches, in any order.
    pub switches: Vec<SwitchConfig>,
    /// Bridges to parallel buses, in any order.
    pub buses: Vec<BusConfig>,
    /// End points, in any order.
    pub devices: Vec<DeviceConfig>,
    /// Custom nodes, in any order; the builder takes their models: [`Builder`](crate::Builder::node).
    pub nodes: Vec<NodeConfig>,
}

impl FabricConfig {
    /// The link above the component of this name.
    pub fn link_above(&self, component: &str) -> Option<&LinkConfig> {
        let switches = self.switches.iter().map(|switch| (&switch.name, &switch.uplink));
        let buses = self.buses.iter().map(|bus| (&bus.name, &bus.uplink));
        let devices = self.devices.iter().map(|device| (&device.name, &device.link));
        let nodes = self.nodes.iter().map(|node| (&node.name, &node.link));
        let all = switches.chain(buses).chain(devices).chain(nodes);
        all.into_iter().find(|(name, _)| *name == component).map(|(_, link)| link)
    }
}

impl FabricConfig {
    /// A host without latencies and nothing below it; seed 1, payload-carrying, no warm-up.
    pub fn new() -> Self {
        Self {
            seed: 1,
            fidelity: Fidelity::Payload,
            vendor: tlplab_cfgspace::VENDOR_ID,
            warmup: Time::ZERO,
            host: HostConfig::default(),
            switches: Vec::new(),
            buses: Vec::new(),
            devices: Vec::new(),
            nodes: Vec::new(),
        }
    }
}

impl Default for FabricConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// The root complex and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The component's name; root ports are `NAME.rpN`.
    pub name: String,
    /// Time a TLP spends in the root complex, each way.
    pub latency: Duration,
    /// Host memory.
    pub memory: MemoryConfig,
    /// The last-level cache. `None`: requests of devices go to memory.
    pub cache: Option<CacheConfig>,
    /// A second node with memory. `None`: all memory is as near.
    pub numa: Option<NumaConfig>,
    /// The IOMMU. `None`: translation takes no time.
    pub iommu: Option<IommuConfig>,
    /// The mappings in the tables of the IOMMU.
    pub maps: Vec<MapConfig>,
    /// The variation of the latency of reads. `None`: none.
    pub jitter: Option<JitterConfig>,
    /// From the arrival of a posted write of a device at memory until it is visible, for all TLPs that must not pass it.
    pub commit: Duration,
    /// Falls asleep while devices leave it alone. `None`: never.
    pub sleep: Option<SleepConfig>,
    /// Stalls of memory; `None`: there are none.
    pub stall: Option<StallConfig>,
    /// Least time between two posted writes of devices to memory.
    pub write_interval: Duration,
    /// The root complex sends a posted write of a device to another root port than the one before it, from the same root port, only so long after all
    /// before have left by theirs: see `turns`. `None`: it does not wait.
    pub write_turnaround: Option<Duration>,
    /// From one line of the answer to a read to the next, where they reach the root port one by one; completions then carry what is there
    /// when they can go. `None`: all at once.
    pub line_interval: Option<Duration>,
    /// Reads of devices that the root complex serves at once, at least 1; further ones wait in its receive buffers. `None`: without limit.
    pub reads: Option<u16>,
    /// Between the root complex and the memory bus, for devices. `None`: no such stage, as for the two below.
    pub io_cache: Option<HostStageConfig>,
    /// Between the I/O cache (or root complex), the bridge and memory, for devices and the processor.
    pub memory_bus: Option<HostStageConfig>,
    /// Between the memory bus and the root complex, for the processor.
    pub bridge: Option<HostStageConfig>,
    /// Read completion boundary of the root complex.
    pub rcb: Rcb,
    /// The cutting of completions to reads of host memory.
    pub completions: CompletionPolicy,
    /// The treatment of requests from one root port to another.
    pub peer_to_peer: PeerToPeer,
    /// Parts of the host that root ports are in, and that what goes from one port to another leaves and enters.
    pub domains: Vec<DomainConfig>,
    /// The domain that memory and the interrupt controller are in, so that requests from elsewhere for them, and answers, pass domains as well. `None`:
    /// they pass none.
    pub memory_domain: Option<String>,
    /// MMIO reads the processor may have outstanding (tags of the root complex as requester).
    pub tags: u16,
    /// Completion timeout of the processor's own requests.
    pub completion_timeout: Duration,
    /// Software has all functions add digests (ECRC) to what they send, and check those they receive (PCIe 5.0 §2.7.1).
    pub ecrc: bool,
    /// Software has all functions report errors to their root port, and root ports interrupt for them (PCIe 5.0 §6.2).
    pub error_reporting: bool,
    /// Room of each root port; see [`SwitchConfig::port_buffer`].
    pub port_buffer: Option<u16>,
    /// The time at which software numbers the buses and assigns addresses.
    pub enumeration: EnumerationTime,
    /// The kinds of interrupt that software enables, where functions have them.
    pub interrupts: InterruptPolicy,
    /// The payloads that software allows.
    pub payloads: MpsPolicy,
    /// Vendor and device ID of the root ports, in their order; further ones have tlplab's.
    pub root_port_ids: Vec<(u16, u16)>,
    /// The owners of addresses that are neither memory nor a device's.
    pub addresses: AddressMap,
}

/// The owners of addresses that are neither memory nor a device's. Configuration space is at [`ECAM`](tlplab_device::ECAM).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressMap {
    /// The processor's address of the 64 KiB of I/O space; `None`: there is none.
    pub io: Option<u64>,
    /// Writes of devices to here are message signalled interrupts.
    pub interrupts: Range<u64>,
}

impl Default for AddressMap {
    /// I/O space at [`IO_SPACE`], interrupts at the controller's range of x86 machines.
    fn default() -> Self {
        Self { io: Some(IO_SPACE), interrupts: MSI_ADDRESS..MSI_ADDRESS + 0x10_0000 }
    }
}

/// The time of enumeration, and the software that does it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnumerationTime {
    /// It happened before time 0, as if by firmware: devices and programs start configured.
    #[default]
    Before,
    /// It runs from time 0 as configuration requests over the links; devices and programs start when it is over.
    Simulated,
    /// Software that is outside, such as a guest's kernel, does it when it likes: host programs start at time 0, and a device when it may
    /// master the bus. Interrupts are told as they come, by [`HostEvent::Message`](tlplab_device::HostEvent::Message) and
    /// [`HostEvent::Wire`](tlplab_device::HostEvent::Wire).
    Outside,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            name: "host".into(),
            latency: Duration::ZERO,
            memory: MemoryConfig::default(),
            cache: None,
            numa: None,
            iommu: None,
            maps: Vec::new(),
            jitter: None,
            commit: Duration::ZERO,
            sleep: None,
            stall: None,
            write_interval: Duration::ZERO,
            write_turnaround: None,
            line_interval: None,
            reads: None,
            io_cache: None,
            memory_bus: None,
            bridge: None,
            rcb: Rcb::ALL[0],
            completions: CompletionPolicy::Max,
            peer_to_peer: PeerToPeer::Forward,
            domains: Vec::new(),
            memory_domain: None,
            tags: 32,
            completion_timeout: Duration::from_ms(10),
            ecrc: false,
            error_reporting: true,
            port_buffer: None,
            enumeration: EnumerationTime::Before,
            interrupts: InterruptPolicy::MsiX,
            payloads: MpsPolicy::default(),
            root_port_ids: Vec::new(),
            addresses: AddressMap::default(),
        }
    }
}

/// Host memory: one server with a latency and a bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// From the root complex's request to the data.
    pub latency: Duration,
    /// Bits per second in total, reads and writes together; `None`: without limit.
    pub bandwidth: Option<u64>,
    /// Size in bytes; requests beyond it are unsupported requests.
    pub size: u64,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { latency: Duration::ZERO, bandwidth: None, size: 1 << 40 }
    }
}

/// A stage of the host: see `host_path`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStageConfig {
    /// Time a request or an answer spends in it, each way.
    pub latency: Duration,
    /// Bits per second of data, in each direction; `None`: without limit.
    pub rate: Option<u64>,
    /// Requests of devices that it holds until they are answered or, if they are posted, in memory. Of the bridge: reads of the
    /// processor that are under way. `None`: without limit.
    pub entries: Option<u16>,
}

/// A part of the host that root ports are in: a quadrant of an I/O die, a socket. TLPs from a root port to another pass the exit of each domain that
/// they leave and the entrance of each that they come into; so does what is for memory, if memory is in one ([`HostConfig::memory_domain`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainConfig {
    /// Its name, unique among the host's.
    pub name: String,
    /// The domain that it is in; `None`: none.
    pub under: Option<String>,
    /// The root ports that are in it and in no domain within it, as `host.rp0`.
    pub ports: Vec<String>,
    /// Bits per second of TLPs, headers and data, by the exit, and by the entrance; `None`: without limit.
    pub rate: Option<u64>,
    /// From a TLP's being taken until it is out, each way.
    pub latency: Duration,
    /// TLPs of a class that have left the exit, or the entrance, and wait further on; `None`: without limit.
    pub entries: Option<u16>,
}

impl DomainConfig {
    /// A domain without ports, latency or limits.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            under: None,
            ports: Vec::new(),
            rate: None,
            latency: Duration::ZERO,
            entries: None,
        }
    }
}

/// Requests between root ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerToPeer {
    /// Passed on as they are.
    Forward,
    /// Reads and writes are split in pieces of at most this many bytes, completions rebuilt: what some root complexes are seen to do.
    Split(u32),
    /// Answered as unsupported requests.
    Refuse,
}

/// Bytes of a header's own checksum: as many as an LCRC has.
pub const HEADER_CHECK: u32 = 4;

/// The address of message signalled interrupts: the interrupt controller's range of x86 machines.
pub const MSI_ADDRESS: u64 = 0xFEE0_0000;

/// The message by which a function raises a vector: the address tells the function, and the data the vector. (MSI has 16 bits of data, of
/// which the function may change the low five.)
pub fn message_of_function(function: Bdf, vector: u16) -> (u64, u32) {
    (MSI_ADDRESS + 16 * u64::from(function.0), u32::from(vector))
}

/// The function and vector of a [`message_of_function`].
pub fn function_of_message(address: u64, data: u32) -> (Bdf, u16) {
    (Bdf((address.wrapping_sub(MSI_ADDRESS) / 16) as u16), data as u16)
}

/// Below 4 GiB, base addresses come from here on; host memory has a hole there.
pub(crate) const MMIO_LOW: u64 = 0xC000_0000;

/// A function of an end point, and its requester.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// The component's name, unique in the fabric.
    pub name: String,
    /// The link to its parent. On a parallel bus only `under` counts.
    pub link: LinkConfig,
    /// It is on the parallel bus of its parent, and has no link of its own. Of further functions their device's counts.
    pub bus: Option<BusDevice>,
    /// The function of a device that it is; `None`: function 0 of its own. A further function shares the link and the latency of its
    /// device, and its own `link` is not looked at.
    pub function_of: Option<FunctionOf>,
    /// The time after a reset in which it answers configuration requests with Configuration Request Retry Status (PCIe 5.0 §2.3.1).
    pub ready: Duration,
    /// Max_Read_Request_Size.
    pub mrrs: Mrrs,
    /// Tags of its requester.
    pub tags: u16,
    /// From the arrival of a request to the device's logic, and from the logic to the egress queue.
    pub latency: Duration,
    /// Completion timeout of its requests.
    pub completion_timeout: Duration,
    /// Sets the RO attribute on its memory requests.
    pub relaxed_ordering: bool,
    /// Sets the IDO attribute on its memory requests.
    pub id_based_ordering: bool,
    /// The addresses at which its transfers are cut into requests; `None`: as the model does ([`Device::request_policy`](tlplab_device::Device::request_policy)).
    pub cut: Option<RequestPolicy>,
    /// Its writes to memory are posted; if not, they are deferrable writes, each of which is completed.
    pub posted_writes: bool,
    /// It can ask for translations of addresses. `None`: it cannot.
    pub ats: Option<AtsConfig>,
}

impl DeviceConfig {
    /// A single-function end point without latency: 32 tags, MRRS 512, a completion timeout of 10 ms.
    pub fn new(name: &str, link: LinkConfig) -> Self {
        Self {
            name: name.into(),
            link,
            bus: None,
            function_of: None,
            ready: Duration::ZERO,
            mrrs: Mrrs::ALL[2],
            tags: 32,
            latency: Duration::ZERO,
            completion_timeout: Duration::from_ms(10),
            relaxed_ordering: false,
            id_based_ordering: false,
            cut: None,
            posted_writes: true,
            ats: None,
        }
    }
}

/// A function other than 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionOf {
    /// The component that is function 0.
    pub device: String,
    /// Function number, 1 to 255. A device with one above 7 uses alternative routing IDs (ARI).
    pub number: u8,
}

/// A link and the two ports at its ends. The link is named by the component below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// The parent: a switch's name or a root port such as `host.rp0`.
    pub under: String,
    /// Data rate.
    pub generation: Generation,
    /// Lanes.
    pub width: Width,
    /// Framed or flit mode.
    pub mode: LinkMode,
    /// Credits, or none: then both ends send on, and what finds no room is sent again.
    pub flow_control: FlowControl,
    /// There is no link: the two ends are ports of a crossbar with so many bits per second in each direction, which data pass without headers,
    /// credits or DLLPs. `generation` and `width` are what registers say, and `flight` is its latency.
    pub crossbar: Option<u64>,
    /// A framed TLP takes whole multiples of so many bytes (a power of two) of the wire: logical idle fills what its transmitter, which works
    /// on words of this width, leaves over. Flits know nothing of it.
    pub tlp_alignment: u32,
    /// Largest payload that the ports support; [`HostConfig::payloads`] says what software makes of it.
    pub mps: Mps,
    /// Propagation along the wire, each way.
    pub flight: Duration,
    /// The port at the upper end.
    pub upper: PortConfig,
    /// The port at the lower end.
    pub lower: PortConfig,
    /// Ordered sets.
    pub skp: SkpPolicy,
    /// True if DL initialisation happens at time 0; else it had happened before.
    pub trained: bool,
    /// Time in recovery after a REPLAY_NUM rollover.
    pub recovery: Duration,
    /// Faults injected on the wire.
    pub faults: Vec<Fault>,
}

impl LinkConfig {
    /// Bits per second of its wire.
    pub(crate) fn rate(&self) -> LinkRate {
        self.crossbar.map_or_else(|| LinkRate::new(self.generation, self.width), LinkRate::of_bits_per_second)
    }

    /// True if TLPs without room at the receiver are dropped and sent again. On a crossbar nothing is sent again.
    pub(crate) fn drops(&self) -> bool {
        self.crossbar.is_none() && self.flow_control.drops()
    }

    /// A trained link without flight time: MPS 256, the specification's policies, no faults; in flit mode where the rate requires it.
    pub fn new(under: &str, generation: Generation, width: Width) -> Self {
        Self {
            under: under.into(),
            generation,
            width,
            mode: if generation.requires_flit_mode() { LinkMode::Flit } else { LinkMode::NonFlit },
            flow_control: FlowControl::Credits,
            crossbar: None,
            tlp_alignment: 4,
            mps: Mps::ALL[1],
            flight: Duration::ZERO,
            upper: PortConfig::default(),
            lower: PortConfig::default(),
            skp: SkpPolicy::Standard,
            trained: true,
            recovery: Duration::from_us(1),
            faults: Vec::new(),
        }
    }
}

/// SKP ordered sets: how often the lanes carry one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SkpPolicy {
    /// The specification's: one block in 376 (128b/130b), 4 symbols in 1538 (8b/10b).
    #[default]
    Standard,
    /// `length` symbols in every `interval` symbols, on every lane.
    Custom {
        /// Symbols of an ordered set.
        length: u32,
        /// Symbols from one ordered set to the next.
        interval: u32,
    },
    /// None at all.
    Off,
}

/// One port of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortConfig {
    /// From the arrival of a TLP at this port to its node's decision about it; `None`: the node's latency.
    pub latency: Option<Duration>,
    /// Receive buffers, in credits; `None`: at a switch what arrives in 2 µs at full rate, at end points and the root complex (which
    /// consume at once) as much as can be advertised.
    pub buffers: Option<Buffers>,
    /// Replay buffer in TLPs; `None`: enough for the round trip.
    pub replay_tlps: Option<u32>,
    /// Replay buffer in bytes; `None`: not limited in bytes.
    pub replay_bytes: Option<u32>,
    /// Replay timer; `None`: the specification's, or the time until an Ack is back if the wire is longer than that.
    pub replay_timer: Option<Duration>,
    /// Ack latency; `None`: the specification's limit.
    pub ack_latency: Option<Duration>,
    /// Ack after so many TLPs even before the timer; `None`: by time only.
    pub ack_every: Option<u16>,
    /// The time at which freed credits are advertised.
    pub update_fc: UpdateFcPolicy,
    /// Largest payload that this port supports; `None`: the link's.
    pub max_payload: Option<Mps>,
    /// At a switch: when it starts to forward what comes in by this port; `None`: as [`SwitchConfig::forwarding`] says.
    pub forwarding: Option<Forwarding>,
    /// The time that each layer adds to the path of a TLP.
    pub stages: StagesConfig,
    /// Access control services of a root port or a downstream port of a switch, which is the upper end of its link; `None`: it has none.
    pub acs: Option<AcsConfig>,
}

/// Access control services of a port (PCIe 5.0 §6.12). It has all controls; software turns them on and off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcsConfig {
    /// The controls that are on after a reset, as firmware or the configuration memory of a switch leaves them.
    pub enabled: AcsControls,
    /// The egress control vector after a reset: the ports of the same node to which requests are forbidden, by the names of the components below.
    pub forbidden: Vec<String>,
}

/// Credits a receiver advertises for VC0. Data credits are 16-byte units; 0 stands for infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// Posted headers.
    pub posted_headers: u32,
    /// Posted data.
    pub posted_data: u32,
    /// Non-posted headers.
    pub non_posted_headers: u32,
    /// Non-posted data.
    pub non_posted_data: u32,
    /// Completion headers.
    pub completion_headers: u32,
    /// Completion data.
    pub completion_data: u32,
}

/// A fault on one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The direction it acts on.
    pub direction: Direction,
    /// The fault.
    pub kind: FaultKind,
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Towards the root complex.
    Up,
    /// Away from the root complex.
    Down,
}

/// The effect of a fault. Names of TLPs and DLLPs are the specification's: `MRd`, `CplD`, `Ack`, `UpdateFC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Each bit is flipped with probability `numerator / 2^64`.
    BitErrors {
        /// Probability of an error per bit, in units of 2^-64.
        numerator: u64,
    },
    /// Units are damaged on the wire: the n-th of a kind, counted from 1 with copies, and those after it.
    Nth {
        /// The units counted.
        unit: FaultUnit,
        /// 1 is the first.
        n: u64,
        /// The number of units hit.
        count: u64,
        /// The damage to them.
        damage: Damage,
    },
    /// TLPs leave the port as they should not be, with good CRCs: the n-th that this can be done to, and those after it. Copies that the
    /// data link layer sends again do not count.
    Tamper {
        /// Only TLPs of this name count.
        only: Option<&'static str>,
        /// 1 is the first.
        n: u64,
        /// The number of TLPs changed.
        count: u64,
        /// The change.
        how: Tamper,
    },
    /// DLLPs leave the port with a content that breaks the protocol (non-flit mode): the n-th that this can be done to, and those
    /// after it.
    Forge {
        /// 1 is the first.
        n: u64,
        /// The number of DLLPs forged.
        count: u64,
        /// The forged content.
        how: Forgery,
    },
    /// The link goes down and comes up again (both directions).
    Down {
        /// The time at which it goes down.
        at: Time,
        /// The time at which it is up again; never, if `None`.
        until: Option<Time>,
    },
    /// The port above holds all that is below in reset, as by its Secondary Bus Reset (PCIe 5.0 §7.5.1.3.13): no error is detected.
    Reset {
        /// The start of the reset.
        at: Time,
        /// The end of the reset; never, if `None`.
        until: Option<Time>,
    },
    /// Lanes fail: the link goes through recovery and is narrower from then on (PCIe 5.0 §4.2.6.4).
    Narrow {
        /// The time.
        at: Time,
        /// The lanes that are left.
        width: Width,
    },
}

impl FaultKind {
    /// True if it takes the link down.
    pub fn takes_down(&self) -> bool {
        matches!(self, Self::Down { .. } | Self::Reset { .. })
    }
}

/// The units that a fault counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultUnit {
    /// TLPs.
    Tlp,
    /// DLLPs.
    Dllp,
    /// Flits.
    Flit,
    /// TLPs or DLLPs of this name (non-flit mode); `UpdateFC` stands for those of all classes.
    Called(&'static str),
}

/// The fate of a damaged unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It arrives with a bad CRC.
    Corrupt,
    /// It does not arrive at all.
    Drop,
}

/// A change to a TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tamper {
    /// Its data are marked as bad (EP, PCIe 5.0 §2.7.2).
    Poison,
    /// Its digest does not match (§2.7.1); of TLPs that have one.
    Ecrc,
    /// It breaks a rule of its format.
    Malform(Malformation),
    /// A completion has a tag that nobody waits for.
    Tag,
    /// A completion goes to another function of the requester's device.
    Requester,
    /// A completion's Byte Count contradicts the request.
    ByteCount,
    /// A memory request names an address that nobody claims.
    Address,
    /// The completer of a request answers with this status; RRS to configuration requests only.
    Refuse(CompletionStatus),
    /// It is lost behind the data link layer of the receiver, for good: a request is not answered, a completion does not come.
    Lose,
    /// The transaction layer of the receiver takes so much longer for it; what comes meanwhile passes it, whatever the ordering rules say.
    Late(Duration),
    /// It is sent a second time, as a TLP of its own.
    Twice,
    /// All bits of a completion's data are ones, as of a read that nothing answered on PCI.
    Ones,
    /// Bits of its data are others; of TLPs whose bytes are simulated, and that have this byte.
    Data {
        /// The first byte that changes, counted from the first that the TLP carries.
        byte: u16,
        /// The bits that are inverted, of this byte and the three behind it, in little-endian order.
        flip: u32,
    },
}

/// Rules of format that a TLP breaks; it is malformed (PCIe 5.0 §2.3, §6.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformation {
    /// Fmt and Type are reserved (§2.2.1).
    Type,
    /// Length says another payload than there is (§2.2.2).
    Length,
    /// More payload than Max_Payload_Size (§2.2.2).
    Payload,
    /// A memory request crosses 4 KiB (§2.2.7).
    Boundary,
}

/// A false content of a DLLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// An UpdateFC takes back header credits or, which looks the same, grants more than half the counter's range (PCIe 5.0 §2.6.1).
    TakeBack,
    /// An UpdateFC grants this many header and data credits (times their scale) that do not exist, until the next one.
    Overgrant(u8),
    /// An Ack for TLPs that were never sent (§3.6.2.2).
    AckUnsent,
}
