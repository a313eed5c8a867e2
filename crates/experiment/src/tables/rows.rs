//! The keys of a machine, which stand in [`EXPERIMENT`](super::EXPERIMENT) and in [`MACHINE`](super::MACHINE).

use super::{BUS, DEFAULTS, DEVICE, FAULT, GUEST, HOST, LINK, STOP, SWITCH};
use crate::hosts;
use crate::keys::{Key, Kind, key};

pub(super) static STOP_KEY: Key = key(
    ("stop", Kind::OneOf(&[Kind::Time, Kind::Table(&STOP)]), "", r#""200us""#),
    "The end of the run: a time, or a table. Absent: when every load has done its count.",
);
pub(super) static HOST_KEY: Key = key(
    ("host", Kind::OneOf(&[Kind::Word(&hosts::PROFILE), Kind::Table(&HOST)]), r#""ideal""#, r#""server""#),
    "The host: the name of a profile, or a table.",
);
pub(super) static GUEST_KEY: Key = key(
    ("guest", Kind::Table(&GUEST), "", r#"{ memory = "128MiB", run = "nvme.sh" }"#),
    "An unmodified Linux is the host's software, in simulated time; such an experiment is run by tlplab guest uml.",
);
pub(super) static DEFAULTS_KEY: Key = key(
    ("defaults", Kind::Table(&DEFAULTS), "", "{ link = { mps = \"512B\" } }"),
    "Defaults for every component.",
);
pub(super) static SWITCH_KEY: Key =
    key(("switch", Kind::Map { what: "switch", of: &Kind::Table(&SWITCH) }, "", ""), "Switches, by name.");
pub(super) static BUS_KEY: Key = key(
    ("bus", Kind::Map { what: "bus", of: &Kind::Table(&BUS) }, "", ""),
    "Parallel buses below a bridge, by name.",
);
pub(super) static DEVICE_KEY: Key =
    key(("device", Kind::Map { what: "device", of: &Kind::Table(&DEVICE) }, "", ""), "End points, by name.");
pub(super) static LINK_KEY: Key = key(
    ("link", Kind::Map { what: "link", of: &Kind::Table(&LINK) }, "", ""),
    "More about the link above a component, by the component's name.",
);
pub(super) static SEED_KEY: Key =
    key(("seed", Kind::Integer { min: 0, max: i64::MAX }, "1", "7"), "Seeds every random stream.");
pub(super) static FAULT_KEY: Key =
    key(("fault", Kind::List(&Kind::Table(&FAULT)), "", ""), "Faults, one [[fault]] each.");
