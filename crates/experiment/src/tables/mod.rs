//! Every key of an experiment file: the one place that says what there is, what it means and what holds where it is absent.

use crate::access;
use crate::choices::choice;
use crate::device_models;
use crate::fault;
use crate::hosts;
use crate::keys::{Key, Kind, Section, key};
use crate::link;
use crate::load::{self, Pattern};
use crate::transfer;
use tlplab_device::tlpdma::driver::{PageSize, Verify};
use tlplab_fabric::Writer;
use tlplab_fabric::config::{Fidelity, FlowControl, Forwarding, RequestPolicy, SkpPolicy, UpdateFcPolicy};
use tlplab_units::LinkMode;

mod bus;
mod guest;
mod host;
mod machines;
mod rows;
mod stages;
mod switch;

pub use crate::domains::DOMAIN;
pub use crate::translation::{ATS, MAP, TABLES};
pub(crate) use bus::ONLY_ON_BUS;
pub use bus::{BRIDGE, BUS};
pub use guest::{CPU, GUEST};
pub use host::{CACHE, HOST, HOST_STAGE, IOMMU, JITTER, MEMORY, NUMA, PROFILE_FILE, SLEEP, STALL};
pub use machines::{CABLE, MACHINE};
pub use stages::STAGES;
pub use switch::{SWITCH, SWITCH_CORE};

const MPS: Kind = Kind::SizeOf { what: "MPS", bytes: &[128, 256, 512, 1024, 2048, 4096] };
const MRRS: Kind = Kind::SizeOf { what: "MRRS", bytes: &[128, 256, 512, 1024, 2048, 4096] };
const RCB: Kind = Kind::SizeOf { what: "RCB", bytes: &[64, 128] };
const COUNT: Kind = Kind::Integer { min: 1, max: i64::MAX };
const CREDITS: Kind = Kind::Integer { min: 0, max: 65_535 };
const LINK_FORM: Kind = Kind::OneOf(&[Kind::Word(&link::LINK), Kind::Table(&LINK)]);

/// The whole file.
pub static EXPERIMENT: Section = Section {
    title: "an experiment",
    extra: None,
    keys: &[
        key(
            "title",
            Kind::Text,
            "",
            r#""SSD and NIC share one uplink""#,
            "One line that says what is tried. Required.",
        ),
        rows::STOP_KEY,
        key("warmup", Kind::Time, r#""0s""#, r#""10us""#, "Statistics begin at this time."),
        rows::SEED_KEY,
        key(
            "fidelity",
            choice::<Fidelity>(),
            r#""payload""#,
            r#""length-only""#,
            "Do TLPs carry data, or only their length? Both give the same timing; length-only is faster.",
        ),
        key(
            "vendor",
            Kind::Word(&hosts::VENDOR),
            r#""71ab""#,
            r#""1234""#,
            "Vendor ID of the functions that are no real hardware's: host bridge, root ports, switches and built-in devices. 71ab is nobody's, neither in pci.ids nor in Linux.",
        ),
        rows::HOST_KEY,
        rows::GUEST_KEY,
        key(
            "include",
            Kind::OneOf(&[Kind::Text, Kind::List(&Kind::Text)]),
            "",
            r#"["hosts.toml"]"#,
            "Other files to begin from, relative to this one; this file has the last word.",
        ),
        rows::DEFAULTS_KEY,
        rows::SWITCH_KEY,
        rows::BUS_KEY,
        rows::DEVICE_KEY,
        rows::LINK_KEY,
        key(
            "ladder",
            Kind::Table(&LADDER),
            "",
            "{ packets = 100 }",
            "Which packets the report shows one by one.",
        ),
        rows::FAULT_KEY,
        key(
            "load",
            Kind::Map { what: "load", of: &Kind::Table(&LOAD) },
            "",
            "",
            "What devices and the host do, by name.",
        ),
        key(
            "expect",
            Kind::Expected,
            "",
            "",
            "What figures of the run have to be, for tlplab expect: nic.throughput = \">= 90 Gb/s\". Several comparisons of a figure are an array; what is computed from figures stands in quotes.",
        ),
        key(
            "machine",
            Kind::Map { what: "machine", of: &Kind::Table(&MACHINE) },
            "",
            "",
            "Several machines with a guest each, by name: each is what this file describes, and what its table says instead.",
        ),
        key(
            "cable",
            Kind::Map { what: "cable", of: &Kind::Table(&CABLE) },
            "",
            "",
            "Ethernet cables between NICs of machines, by name.",
        ),
    ],
};

/// A file of loads, for `--load`.
pub static LOAD_FILE: Section = Section {
    title: "a load file",
    extra: None,
    keys: &[
        key("title", Kind::Text, "", r#""Heavy""#, "Added to the experiment's title."),
        key(
            "stop",
            Kind::OneOf(&[Kind::Time, Kind::Table(&STOP)]),
            "",
            r#""200us""#,
            "Instead of the experiment's.",
        ),
        key("warmup", Kind::Time, "", r#""10us""#, "Instead of the experiment's."),
        key(
            "load",
            Kind::Map { what: "load", of: &Kind::Table(&LOAD) },
            "",
            "",
            "Instead of all loads of the experiment: its whole [load].",
        ),
    ],
};

/// `stop`
pub static STOP: Section = Section {
    title: "stop",
    extra: None,
    keys: &[
        key("time", Kind::Time, "", r#""200us""#, "Simulated time at the latest."),
        key(
            "transactions",
            COUNT,
            "",
            "10000",
            "Ends when the loads together have finished so many transactions.",
        ),
    ],
};

/// `ladder`
pub static LADDER: Section = Section {
    title: "the ladder",
    extra: None,
    keys: &[
        key(
            "at",
            Kind::OneOf(&[Kind::Choice(&["error"]), Kind::Time]),
            "",
            r#""50us""#,
            "Where the window of packets begins: a time, or \"error\" for around the first damaged unit. Absent: half-way.",
        ),
        key("packets", Kind::Integer { min: 2, max: 20_000 }, "800", "100", "Packets that are kept."),
    ],
};

/// `defaults`
pub static DEFAULTS: Section = Section {
    title: "defaults",
    extra: None,
    keys: &[key("link", Kind::Table(&LINK), "", r#"{ mps = "512B" }"#, "For every link.")],
};

const PORT_BUFFER: Key = key(
    "port_buffer",
    Kind::Integer { min: 1, max: 2032 },
    "",
    "16",
    "Room of each port in TLPs; absent: buffers say. With drop-and-replay, requests that leave by a port and non-posted ones that wait for a response; with credits, what is advertised of each class.",
);
const UNDER: Key = key(
    "under",
    Kind::Text,
    "",
    r#""host.rp0""#,
    "The parent: a root port host.rp0, host.rp1, …, or a switch; of a device a bus, too, where it has no link; for a further function of a device, nic.fn1 to nic.fn255, without a link. Required.",
);
const LINK_KEY: Key = key(
    "link",
    LINK_FORM,
    "",
    r#""gen4 x4""#,
    "The link to the parent: generation, width and, with \" flit\", flit mode; or a table. Required where there is a link.",
);
const MPS_KEY: Key = key(
    "mps",
    MPS,
    "",
    r#""512B""#,
    "Largest payload that both ports of the link can; host.payloads says what software makes of it.",
);

/// A device.
pub static DEVICE: Section = Section {
    title: "a device",
    extra: Some(device_models::keys_of),
    keys: &[
        UNDER,
        LINK_KEY,
        MPS_KEY,
        key(
            "model",
            Kind::Word(&device_models::MODEL),
            r#""dma""#,
            r#""memory""#,
            "What it is: a built-in model, file.py:Class, lib:FILE.so, or rtl:FILE.so, whose further keys are its parameters and `waveform`, a file for an FST.",
        ),
        key(
            "driver",
            Kind::Word(&device_models::DRIVER),
            "",
            r#""copier.py:driver""#,
            "The host's side: a program of the host that uses the device, file.py:function. Takes the place of the model's own driver.",
        ),
        key(
            "mrrs",
            MRRS,
            r#""512B""#,
            r#""256B""#,
            "Largest read request that software allows it (Max_Read_Request_Size).",
        ),
        key(
            "tags",
            Kind::Integer { min: 1, max: 15_360 },
            "32",
            "256",
            "Reads it may have outstanding: 32 (5-bit tags), 256 (8-bit), 768 (10-bit), 15360 (14-bit, flit mode) or fewer.",
        ),
        key(
            "latency",
            Kind::Time,
            r#""0s""#,
            r#""100ns""#,
            "From a request's arrival to the device's logic, and from it to the egress.",
        ),
        key(
            "completion_timeout",
            Kind::Time,
            r#""10ms""#,
            r#""50ms""#,
            "A request unanswered for so long has failed.",
        ),
        key(
            "ready",
            Kind::Time,
            r#""0s""#,
            r#""100ms""#,
            "Until this long after a reset it answers configuration requests with Retry Status (CRS). Without effect on enumeration before time 0.",
        ),
        bus::DEVSEL,
        bus::WAIT_STATES,
        bus::COMPLETION,
        bus::OVERHEAD_OF_DEVICE,
        key(
            "cut",
            choice::<RequestPolicy>(),
            "",
            r#""packed""#,
            "Where its transfers are cut into requests: at multiples of MPS and MRRS, as DMA engines do (aligned), or after so many bytes from wherever they start and at 4 KiB (packed), as NetTLP cards and captured requests are. Absent: as its model does, mostly aligned.",
        ),
        key(
            "relaxed_ordering",
            Kind::Boolean,
            "false",
            "true",
            "Sets RO on its memory requests but interrupts: also on writes that tell that others are done, which no device of this kind should do.",
        ),
        key("id_based_ordering", Kind::Boolean, "false", "true", "Sets IDO on its memory requests."),
        key(
            "posted_writes",
            Kind::Boolean,
            "true",
            "false",
            "false: its writes are deferrable memory writes of 128 B at most, each of which takes a tag and is completed; a write is over with the last completion.",
        ),
        key(
            "ats",
            Kind::Table(&ATS),
            "",
            "{ entries = 64, outstanding = 8 }",
            "Address translation services (ATS): it asks the host's IOMMU for translations, keeps them, and sends its requests with translated addresses. Absent: it does not.",
        ),
    ],
};

/// A link.
pub static LINK: Section = Section {
    title: "a link",
    extra: None,
    keys: &[
        key("generation", Kind::Generation, "", "5", "1 to 7."),
        key("width", Kind::Width, "", "8", "Lanes: 1, 2, 4, 8, 12, 16 or 32."),
        key(
            "mode",
            choice::<LinkMode>(),
            r#""non-flit""#,
            r#""flit""#,
            "Framed TLPs, or 256-byte flits (needed from gen6 on).",
        ),
        key(
            "flow_control",
            choice::<FlowControl>(),
            r#""credits""#,
            r#""drop-and-replay""#,
            "What finds no room is not sent (credits), or is sent, dropped in silence and sent again when the replay timer expires. Slipping: a replay passes over as many TLPs as Acks take from the replay buffer meanwhile, and over the one before which an Ack goes, as the code of the gem5 model of 2018 does.",
        ),
        key(
            "crossbar",
            Kind::Rate,
            "",
            r#""128Gb/s""#,
            "There is no link, but a crossbar of this rate in each direction, with flight as its latency: data pass without headers, DLLPs or credits. Generation and width are what registers say.",
        ),
        key(
            "tlp_alignment",
            Kind::SizeOf { what: "TLP alignment", bytes: &[4, 8, 16, 32, 64] },
            r#""4B""#,
            r#""16B""#,
            "A framed TLP takes whole multiples of it on the wire, in both directions: the words in which transmitters work.",
        ),
        key(
            "mps",
            MPS,
            r#""256B""#,
            r#""512B""#,
            "Largest payload that both of its ports can; host.payloads says what software makes of it.",
        ),
        key("flight", Kind::Time, r#""0s""#, r#""5ns""#, "Propagation along the wire, each way."),
        key(
            "skp",
            Kind::OneOf(&[choice::<SkpPolicy>(), Kind::Table(&SKP)]),
            r#""standard""#,
            r#""off""#,
            "SKP ordered sets: the specification's, none, or your own. Links of gen6 and gen7 (1b/1b) carry none in this model, as in published budgets.",
        ),
        key(
            "trained",
            Kind::Boolean,
            "true",
            "false",
            "Credits are initialised before time 0 (true) or from time 0 on.",
        ),
        key(
            "recovery",
            Kind::Time,
            r#""1us""#,
            r#""10us""#,
            "Time in recovery after REPLAY_NUM has rolled over.",
        ),
        key("upper", Kind::Table(&PORT), "", "{ replay_tlps = 8 }", "The port at the parent's end."),
        key("lower", Kind::Table(&PORT), "", "{ ack_every = 4 }", "The port at the component's end."),
    ],
};

/// `skp` as a table.
pub static SKP: Section = Section {
    title: "skp",
    extra: None,
    keys: &[
        key("length", Kind::Integer { min: 1, max: 1024 }, "", "4", "Symbols of an ordered set. Required."),
        key(
            "interval",
            Kind::Integer { min: 2, max: 1 << 24 },
            "",
            "1538",
            "Symbols from one to the next. Required.",
        ),
    ],
};

/// One end of a link.
pub static PORT: Section = Section {
    title: "a port",
    extra: None,
    keys: &[
        key(
            "latency",
            Kind::Time,
            "",
            r#""50ns""#,
            "From the arrival of a TLP at this port to its component's decision; absent: the component's latency.",
        ),
        key(
            "buffers",
            Kind::Table(&BUFFERS),
            "",
            "{ posted_headers = 8 }",
            "Receive buffers as credits; absent: at a switch what arrives in 2 µs at full rate, elsewhere all that can be advertised.",
        ),
        key(
            "replay_tlps",
            Kind::Integer { min: 1, max: 2048 },
            "",
            "8",
            "Replay buffer in TLPs; absent: enough for the round trip.",
        ),
        key("replay_bytes", Kind::Size, "", r#""4KiB""#, "Replay buffer in bytes; absent: no limit."),
        key(
            "replay_timer",
            Kind::Time,
            "",
            r#""2us""#,
            "Absent: the specification's; with drop-and-replay the same formula without internal delay.",
        ),
        key(
            "ack_latency",
            Kind::Time,
            "",
            r#""100ns""#,
            "How long a TLP may wait for its Ack. Absent: the specification's limit, which hard IPs keep to; \"0s\": each is acknowledged as soon as the wire is free; with drop-and-replay a third of the replay timer, and at once on an idle wire.",
        ),
        key(
            "ack_every",
            Kind::Integer { min: 1, max: 2048 },
            "",
            "4",
            "Acknowledges after so many TLPs at the latest; absent: by time only.",
        ),
        key(
            "update_fc",
            Kind::OneOf(&[choice::<UpdateFcPolicy>(), Kind::Time]),
            r#""eighth""#,
            r#""specification""#,
            "When freed credits are told to the peer: with each TLP (as PLX switches), when an eighth, a quarter (Altera hard IP on a busy wire) or a half of the buffer is free, or when the first has waited for the specification's guideline or for this time. At once wherever the peer may be blocked, and every 30 µs. With more buffer never less is carried by each, eighth and quarter; by half, and by a time, a credit more may fall out of step with tags or bursts, and half the buffer, or so much time, is what it can cost.",
        ),
        key(
            "max_payload",
            MPS,
            "",
            r#""256B""#,
            "Largest payload that this port can (Max_Payload_Size Supported); absent: the link's mps.",
        ),
        key(
            "forwarding",
            choice::<Forwarding>(),
            "",
            r#""store-and-forward""#,
            "Of a switch's port: when the switch starts to forward what comes in here; absent: as its own forwarding says.",
        ),
        key(
            "stages",
            Kind::Table(&STAGES),
            "",
            "{ tx_transceiver = \"72ns\" }",
            "What each layer adds to the way of a TLP: a pipeline, which makes it later and the link no slower.",
        ),
        access::ACS_OF_PORT,
        access::ACS_FORBIDS,
    ],
};

/// Receive buffers.
pub static BUFFERS: Section = Section {
    title: "buffers",
    extra: None,
    keys: &[
        key("posted_headers", CREDITS, "0", "8", "Posted headers; 0: infinite."),
        key("posted_data", CREDITS, "0", "64", "Posted data in units of 16 bytes; 0: infinite."),
        key("non_posted_headers", CREDITS, "0", "8", "Non-posted headers; 0: infinite."),
        key("non_posted_data", CREDITS, "0", "8", "Non-posted data in units of 16 bytes; 0: infinite."),
        key("completion_headers", CREDITS, "0", "8", "Completion headers; 0: infinite."),
        key("completion_data", CREDITS, "0", "64", "Completion data in units of 16 bytes; 0: infinite."),
    ],
};

/// A fault.
pub static FAULT: Section = Section {
    title: "a fault",
    extra: None,
    keys: &[
        key("link", Kind::Text, "", r#""ssd""#, "The link above this component. Required."),
        key(
            "direction",
            choice::<fault::Directions>(),
            "",
            r#""up""#,
            "Towards the root complex, away from it, or both (the default).",
        ),
        key("ber", Kind::Probability, "", "1e-9", "Each bit is wrong with this probability."),
        key("tlp", COUNT, "", "5", "The n-th TLP that this damage can be done to, counted from 1."),
        key("dllp", COUNT, "", "3", "The n-th DLLP that this damage can be done to, counted from 1."),
        key("flit", COUNT, "", "2", "The n-th flit, counted from 1."),
        key(
            "of",
            Kind::Choice(&fault::NAMES),
            "",
            r#""MWr""#,
            "Only TLPs or DLLPs of this name count. Absent: all.",
        ),
        key("count", COUNT, "", "2", "How many are damaged, from the n-th on. Absent: one."),
        key("damage", choice::<fault::Harm>(), "", r#""drop""#, fault::DAMAGE_TEXT),
        key(
            "down",
            Kind::Time,
            "",
            r#""10us""#,
            "The link goes down at this time: all below it is reset, and configured again when it comes back; see hot-plug.md.",
        ),
        key(
            "reset",
            Kind::Time,
            "",
            r#""10us""#,
            "The port above holds all below the link in reset from this time on, as by its Secondary Bus Reset: no error is detected.",
        ),
        key(
            "narrow",
            Kind::Time,
            "",
            r#""10us""#,
            "Lanes fail at this time: the link goes through recovery, and has `lanes` from then on.",
        ),
        key("lanes", Kind::Integer { min: 1, max: 16 }, "", "1", "The lanes that are left, with narrow."),
        key("by", Kind::Time, "", r#""10us""#, "How late it comes, with damage = \"late\"."),
        key(
            "byte",
            Kind::Integer { min: 0, max: 4095 },
            "",
            "12",
            "The first byte of the TLP's data whose bits are inverted, with damage = \"data\". Absent: 0.",
        ),
        key(
            "flip",
            Kind::Integer { min: 1, max: 0xFFFF_FFFF },
            "",
            "0x20000",
            "The bits that are inverted, in the order of a little-endian word that begins at `byte`, with damage = \"data\".",
        ),
        key(
            "until",
            Kind::Time,
            "",
            r#""20us""#,
            "…and is up again, or the reset over, at this time; absent: never.",
        ),
    ],
};

/// A load.
pub static LOAD: Section = Section {
    title: "a load",
    extra: None,
    keys: &[
        key(
            "device",
            Kind::Text,
            "",
            r#""ssd""#,
            "Who issues the requests: a device, or host. Default: the load's own name.",
        ),
        key(
            "target",
            Kind::Text,
            "",
            r#""nic""#,
            "Whose memory: host (the default for a device), or the device whose BAR is meant.",
        ),
        key(
            "op",
            choice::<load::Operation>(),
            "",
            r#""write""#,
            "What a device does by DMA, or the host by MMIO, or to a storage device as dd does with direct IO, or by the driver of a DMA card. Required without replay.",
        ),
        key(
            "size",
            Kind::Size,
            "",
            r#""4KiB""#,
            "Bytes of a transaction; of dd: of a block (bs=); of to-card, from-card: of a transfer. Required without replay.",
        ),
        key(
            "outstanding",
            Kind::Integer { min: 1, max: 65_536 },
            "",
            "8",
            "Transactions under way at most (always so many, without rate). A posted write counts until its last TLP is accepted for sending, so more of them may be on their way. Default 32 for DMA, 1 for MMIO and for transfers of a card, each of which is a call.",
        ),
        key(
            "rate",
            Kind::Rate,
            "",
            r#""25Gb/s""#,
            "Payload offered per second; absent: as fast as outstanding allows.",
        ),
        key(
            "count",
            COUNT,
            "",
            "1000",
            "Transactions in all; absent: until the run stops. Of dd: blocks, of to-card and from-card: transfers, 1 if absent.",
        ),
        key("start", Kind::Time, r#""0s""#, r#""10us""#, "When it begins."),
        key(
            "pattern",
            choice::<Pattern>(),
            r#""sequential""#,
            r#""random""#,
            "How addresses follow each other.",
        ),
        key(
            "align",
            Kind::Size,
            r#""64B""#,
            r#""4KiB""#,
            "The distance of addresses is the size, rounded up to a multiple of this.",
        ),
        key("offset", Kind::Size, r#""0B""#, r#""4B""#, "Added to every address."),
        key(
            "window",
            Kind::Size,
            "",
            r#""1MiB""#,
            "Addresses stay in a window of this size. Default 64MiB of host memory, or the target's BAR.",
        ),
        key(
            "address",
            Kind::Address,
            "",
            r#""0x2_0000_0000""#,
            "Where the window begins. Default: a window of its own from 4 GiB on, or the start of the BAR.",
        ),
        key(
            "cache",
            choice::<Option<Writer>>(),
            "",
            r#""host-warm""#,
            "Of a host with a cache: who wrote the window before the run, in the order of addresses; cold (the default): nobody.",
        ),
        key(
            "node",
            choice::<load::Node>(),
            "",
            r#""remote""#,
            "Of a host with another node: where the window is. Default local.",
        ),
        key(
            "replay",
            Kind::Text,
            "",
            r#""traces/x520.pcapng""#,
            "A captured trace whose requests are issued instead, relative to this file: pcap, pcapng or a trace table.",
        ),
        key(
            "timing",
            choice::<load::Timing>(),
            "",
            r#""fast""#,
            "Replay at the captured times (the default), or as fast as the fabric takes them.",
        ),
        key(
            "request",
            Kind::Size,
            "",
            r#""64KiB""#,
            "Of dd: bytes that the host asks a storage device for at a time, a multiple of 4KiB. Default 128KiB.",
        ),
        key(
            "host_cost",
            Kind::Time,
            "",
            r#""1us""#,
            "Of dd: what the operating system takes for each 4 KiB of a request, before the device hears of it. Default 0s.",
        ),
        key(
            "host_ahead",
            Kind::Time,
            "",
            r#""1us""#,
            "Of dd: what the operating system takes for each 4 KiB of the next request while the device works on this one: it pins pages. Default 0s.",
        ),
        key(
            "page_list",
            Kind::Boolean,
            "",
            "true",
            "Of dd: the pages of the buffer are scattered, and the device reads the address of each from a list in host memory, one before each sector, as IDE disks do. Default false.",
        ),
        key(
            "card_offset",
            Kind::Size,
            "",
            r#""5B""#,
            "Of to-card and from-card: added to addresses in the card's memory. Default 0B.",
        ),
        key(
            "pages",
            choice::<PageSize>(),
            "",
            r#""2MiB""#,
            "Of to-card and from-card: of what pages a buffer is; no two neighbours lie side by side, and each is a descriptor. Default 4KiB.",
        ),
        key(
            "descriptors",
            choice::<transfer::Fetched>(),
            "",
            r#""pio""#,
            "Of to-card and from-card: the card fetches descriptors from a ring in host memory (the default), or the processor stores each into registers, 4 bytes at a time.",
        ),
        key(
            "entries",
            Kind::Integer { min: 16, max: 65_536 },
            "",
            "256",
            "Of to-card and from-card: descriptors in the ring, a power of two. Default 65536, which is 1 MiB.",
        ),
        key(
            "store_interval",
            Kind::Time,
            "",
            r#""1us""#,
            "Of to-card and from-card with descriptors = \"pio\": from one store of the processor to the next. Default 0s: as fast as the link takes them.",
        ),
        key(
            "wait",
            choice::<transfer::Heard>(),
            "",
            r#""poll""#,
            "Of to-card and from-card: software hears of an end by an interrupt (the default), or looks at the record in host memory every 20 ns.",
        ),
        key(
            "interrupt_delay",
            Kind::Time,
            "",
            r#""1ms""#,
            "Of to-card and from-card: from an interrupt to its handler. Default 0s.",
        ),
        key(
            "call_cost",
            Kind::Time,
            "",
            r#""20us""#,
            "Of to-card and from-card: what software does for each transfer before the card hears of it. Default 0s.",
        ),
        key(
            "verify",
            choice::<Verify>(),
            "",
            r#""ends""#,
            "Of to-card and from-card, unless fidelity is length-only: which data are checked, all (the default), or the first and last 32 KiB of each transfer. What comes from the card is put there first, what went to it is read back afterwards; neither is measured.",
        ),
    ],
};
