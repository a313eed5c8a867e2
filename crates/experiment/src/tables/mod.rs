//! Every key of an experiment file: the one place that says what there is, what it means and what holds where it is absent.

use crate::choices::choice;
use crate::experiment::LadderSpec;
use crate::hosts;
use crate::keys::{Key, Keys, Kind, key};
use crate::ladder::{self, Trigger};
use crate::link::LINK as LINK_WORD;
use crate::section::{Section, Set, row};
use crate::stop::Stop;
use tlplab_fabric::config::{FabricConfig, Fidelity};

mod bus;
mod device;
mod fault;
mod guest;
mod host;
mod link;
mod load;
mod machines;
mod rows;
mod stages;
mod switch;

pub(crate) use crate::domains::DOMAIN;
pub(crate) use crate::translation::{ATS, MAP, TABLES};
pub(crate) use bus::{BRIDGE, BUS, ONLY_ON_BUS};
pub(crate) use device::DEVICE;
pub(crate) use fault::FAULT;
pub(crate) use guest::{CPU, GUEST};
pub(crate) use host::{CACHE, HOST, HOST_STAGE, IOMMU, JITTER, MEMORY, NUMA, PROFILE_FILE, SLEEP, STALL};
pub(crate) use link::{BUFFERS, LINK, PORT, SKP};
pub(crate) use load::LOAD;
pub(crate) use machines::{CABLE, MACHINE};
pub(crate) use stages::STAGES;
pub(crate) use switch::{SWITCH, SWITCH_CORE};

/// Every table of an experiment file, in the order in which they are explained, by its dotted key: `switch.NAME` stands for that of any name, and
/// several that are alike stand together.
pub static ALL: [(&str, &dyn Keys); 33] = [
    ("", &EXPERIMENT),
    ("stop", &STOP),
    ("guest", &GUEST),
    ("guest.cpu", &CPU),
    ("host", &HOST),
    ("host.memory", &MEMORY),
    ("host.cache", &CACHE),
    ("host.numa", &NUMA),
    ("host.iommu", &IOMMU),
    ("host.iommu.tables", &TABLES),
    ("host.iommu.map.NAME", &MAP),
    ("host.jitter", &JITTER),
    ("host.sleep", &SLEEP),
    ("host.stall", &STALL),
    ("host.io_cache, host.memory_bus, host.bridge", &HOST_STAGE),
    ("host.domain.NAME", &DOMAIN),
    ("ladder", &LADDER),
    ("defaults", &DEFAULTS),
    ("switch.NAME", &SWITCH),
    ("switch.NAME.core", &SWITCH_CORE),
    ("bus.NAME", &BUS),
    ("bus.NAME.bridge", &BRIDGE),
    ("device.NAME", &DEVICE),
    ("device.NAME.ats", &ATS),
    ("link.NAME", &LINK),
    ("link.NAME.skp", &SKP),
    ("link.NAME.upper, link.NAME.lower", &PORT),
    ("link.NAME.upper.buffers", &BUFFERS),
    ("link.NAME.upper.stages, link.NAME.lower.stages", &STAGES),
    ("fault", &FAULT),
    ("load.NAME", &LOAD),
    ("machine.NAME", &MACHINE),
    ("cable.NAME", &CABLE),
];

const MPS: Kind = Kind::SizeOf { what: "MPS", bytes: &[128, 256, 512, 1024, 2048, 4096] };
const RCB: Kind = Kind::SizeOf { what: "RCB", bytes: &[64, 128] };
const COUNT: Kind = Kind::Integer { min: 1, max: i64::MAX };
const LINK_FORM: Kind = Kind::OneOf(&[Kind::Word(&LINK_WORD), Kind::Table(&LINK)]);

/// The whole file.
pub(crate) static EXPERIMENT: Section<FabricConfig> = Section {
    title: "an experiment",
    extra: None,
    rows: &[
        row(
            ("title", Kind::Text, "", r#""SSD and NIC share one uplink""#),
            "The purpose of the experiment, in one line. Required.",
            Set::Context,
        ),
        rows::STOP_KEY.row(Set::Context),
        row(
            ("warmup", Kind::Time, r#""0s""#, r#""10us""#),
            "Statistics begin at this time.",
            Set::Instant(|fabric, it| fabric.warmup = it),
        ),
        rows::SEED_KEY.row(Set::U64(|fabric, it| fabric.seed = it)),
        row(
            ("fidelity", choice::<Fidelity>(), r#""payload""#, r#""length-only""#),
            "TLPs carry data (payload), or only their length (length-only). Both give the same timing; length-only is faster.",
            Set::Read(|fabric, v| v.chosen().map(|it| fabric.fidelity = it)),
        ),
        row(
            ("vendor", Kind::Word(&hosts::VENDOR), r#""71ab""#, r#""1234""#),
            "Vendor ID of functions without a model in hardware: host bridge, root ports, switches and built-in devices. 71ab is unassigned, in pci.ids and in Linux.",
            Set::Read(|fabric, v| v.word(hosts::vendor).map(|it| fabric.vendor = it)),
        ),
        rows::HOST_KEY.row(Set::Context),
        rows::GUEST_KEY.row(Set::Context),
        row(
            ("include", Kind::OneOf(&[Kind::Text, Kind::List(&Kind::Text)]), "", r#"["hosts.toml"]"#),
            "Other files to begin from, relative to this one; this file takes precedence.",
            Set::Context,
        ),
        rows::DEFAULTS_KEY.row(Set::Context),
        rows::SWITCH_KEY.row(Set::Context),
        rows::BUS_KEY.row(Set::Context),
        rows::DEVICE_KEY.row(Set::Context),
        rows::LINK_KEY.row(Set::Context),
        row(
            ("ladder", Kind::Table(&LADDER), "", "{ packets = 100 }"),
            "The packets that the report shows one by one.",
            Set::Context,
        ),
        rows::FAULT_KEY.row(Set::Context),
        row(
            ("load", Kind::Map { what: "load", of: &Kind::Table(&LOAD) }, "", ""),
            "Loads of devices and of the host, by name.",
            Set::Context,
        ),
        row(
            ("expect", Kind::Expected, "", ""),
            "Conditions on figures of the run, for tlplab expect: nic.throughput = \">= 90 Gb/s\". Several comparisons of a figure are an array; an expression of figures stands in quotes.",
            Set::Context,
        ),
        row(
            ("machine", Kind::Map { what: "machine", of: &Kind::Table(&MACHINE) }, "", ""),
            "Several machines with a guest each, by name: each has the description in this file, with the changes in its table.",
            Set::Context,
        ),
        row(
            ("cable", Kind::Map { what: "cable", of: &Kind::Table(&CABLE) }, "", ""),
            "Ethernet cables between NICs of machines, by name.",
            Set::Context,
        ),
    ],
};

/// A file of loads, for `--load`.
pub(crate) static LOAD_FILE: Section<()> = Section {
    title: "a load file",
    extra: None,
    rows: &[
        row(("title", Kind::Text, "", r#""Heavy""#), "Added to the experiment's title.", Set::Context),
        row(
            ("stop", Kind::OneOf(&[Kind::Time, Kind::Table(&STOP)]), "", r#""200us""#),
            "Instead of the experiment's.",
            Set::Context,
        ),
        row(("warmup", Kind::Time, "", r#""10us""#), "Instead of the experiment's.", Set::Context),
        row(
            ("load", Kind::Map { what: "load", of: &Kind::Table(&LOAD) }, "", ""),
            "Instead of all loads of the experiment: its whole [load].",
            Set::Context,
        ),
    ],
};

/// `stop`
pub(crate) static STOP: Section<Stop> = Section {
    title: "stop",
    extra: None,
    rows: &[
        row(
            ("time", Kind::Time, "", r#""200us""#),
            "Simulated time at the latest.",
            Set::Instant(|stop, it| stop.time = Some(it)),
        ),
        row(
            ("transactions", COUNT, "", "10000"),
            "Ends when the loads together have finished this many transactions.",
            Set::U64(|stop, it| stop.transactions = Some(it)),
        ),
    ],
};

/// `ladder`
pub(crate) static LADDER: Section<LadderSpec> = Section {
    title: "the ladder",
    extra: None,
    rows: &[
        row(
            ("at", Kind::OneOf(&[choice::<Trigger>(), Kind::Time]), "", r#""50us""#),
            "Where the window of packets begins: a time, or \"error\" for around the first damaged unit. Absent: half-way.",
            Set::Read(|ladder, v| ladder::trigger(v).map(|it| ladder.trigger = Some(it))),
        ),
        row(
            ("packets", Kind::Integer { min: 2, max: 20_000 }, "800", "100"),
            "Packets that are kept.",
            Set::U32(|ladder, it| ladder.packets = it as usize),
        ),
    ],
};

/// `defaults`
pub(crate) static DEFAULTS: Section<()> = Section {
    title: "defaults",
    extra: None,
    rows: &[row(("link", Kind::Table(&LINK), "", r#"{ mps = "512B" }"#), "For every link.", Set::Context)],
};

const PORT_BUFFER: Key = key(
    ("port_buffer", Kind::Integer { min: 1, max: 2032 }, "", "16"),
    "Room of each port in TLPs; absent: as in buffers. With drop-and-replay, requests that leave by a port and non-posted requests that wait for a response; with credits, the advertised TLPs of each class.",
);
const UNDER: Key = key(
    ("under", Kind::Text, "", r#""host.rp0""#),
    "The parent: a root port host.rp0, host.rp1, …, or a switch; of a device a bus, too, where it has no link; for a further function of a device, nic.fn1 to nic.fn255, without a link. Required.",
);
const LINK_KEY: Key = key(
    ("link", LINK_FORM, "", r#""gen4 x4""#),
    "The link to the parent: generation, width and, with \" flit\", flit mode; or a table. Required where there is a link.",
);
const MPS_KEY: Key = key(
    ("mps", MPS, "", r#""512B""#),
    "Largest payload that both ports of the link support; host.payloads selects the size that software sets.",
);
