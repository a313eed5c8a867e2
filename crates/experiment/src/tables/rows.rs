//! What an experiment says of a machine: keys that stand in [`EXPERIMENT`](super::EXPERIMENT) and in [`MACHINE`](super::MACHINE).

use super::{BUS, DEFAULTS, DEVICE, FAULT, GUEST, HOST, LINK, STOP, SWITCH};
use crate::hosts;
use crate::keys::{Key, Kind};

pub(super) const STOP_KEY: Key = Key {
    name: "stop",
    kind: Kind::OneOf(&[Kind::Time, Kind::Table(&STOP)]),
    default: "",
    example: r#""200us""#,
    doc: "When the run ends: a time, or a table. Absent: when every load has done its count.",
};
pub(super) const HOST_KEY: Key = Key {
    name: "host",
    kind: Kind::OneOf(&[Kind::Word(&hosts::PROFILE), Kind::Table(&HOST)]),
    default: r#""ideal""#,
    example: r#""server""#,
    doc: "The host: the name of a profile, or a table.",
};
pub(super) const GUEST_KEY: Key = Key {
    name: "guest",
    kind: Kind::Table(&GUEST),
    default: "",
    example: r#"{ memory = "128MiB", run = "nvme.sh" }"#,
    doc: "An unmodified Linux is the host's software, in simulated time; such an experiment is run by tlplab guest uml.",
};
pub(super) const DEFAULTS_KEY: Key = Key {
    name: "defaults",
    kind: Kind::Table(&DEFAULTS),
    default: "",
    example: "{ link = { mps = \"512B\" } }",
    doc: "What holds for every component that does not say otherwise.",
};
pub(super) const SWITCH_KEY: Key = Key {
    name: "switch",
    kind: Kind::Map { what: "switch", of: &Kind::Table(&SWITCH) },
    default: "",
    example: "",
    doc: "Switches, by name.",
};
pub(super) const BUS_KEY: Key = Key {
    name: "bus",
    kind: Kind::Map { what: "bus", of: &Kind::Table(&BUS) },
    default: "",
    example: "",
    doc: "Parallel buses below a bridge, by name.",
};
pub(super) const DEVICE_KEY: Key = Key {
    name: "device",
    kind: Kind::Map { what: "device", of: &Kind::Table(&DEVICE) },
    default: "",
    example: "",
    doc: "End points, by name.",
};
pub(super) const LINK_KEY: Key = Key {
    name: "link",
    kind: Kind::Map { what: "link", of: &Kind::Table(&LINK) },
    default: "",
    example: "",
    doc: "More about the link above a component, by the component's name.",
};
pub(super) const SEED_KEY: Key = Key {
    name: "seed",
    kind: Kind::Integer { min: 0, max: i64::MAX },
    default: "1",
    example: "7",
    doc: "Seeds every random stream.",
};
pub(super) const FAULT_KEY: Key = Key {
    name: "fault",
    kind: Kind::List(&Kind::Table(&FAULT)),
    default: "",
    example: "",
    doc: "Faults, one [[fault]] each.",
};
