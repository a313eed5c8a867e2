//! The keys of a switch.

use super::{LINK_KEY, MPS_KEY, PORT_BUFFER, UNDER};
use crate::access;
use crate::choices::{RoundRobin, choice};
use crate::keys::Kind;
use crate::section::{Section, Set, row};
use crate::topology;
use tlplab_fabric::config::{Forwarding, SwitchConfig, SwitchCoreConfig};

/// A switch.
pub(crate) static SWITCH: Section<SwitchConfig> = Section {
    title: "a switch",
    extra: None,
    rows: &[
        UNDER.row(Set::Context),
        LINK_KEY.row(Set::Context),
        MPS_KEY.row(Set::Context),
        row(
            ("latency", Kind::Time, r#""0s""#, r#""100ns""#),
            "From the arrival of a TLP (its last byte, or with cut-through its header) to the egress queue.",
            Set::Time(|switch, it| switch.latency = it),
        ),
        row(
            ("forwarding", choice::<Forwarding>(), r#""cut-through""#, r#""store-and-forward""#),
            "When forwarding starts: after the header; after the header unless the egress is faster than the ingress, else after the LCRC, as chips of switches do; after the LCRC; or after a header with a checksum of its own, of 4 bytes, which is not PCIe: then only TLPs with a good header are forwarded. link.NAME.upper and lower override this for TLPs received by that port.",
            Set::Read(|switch, v| v.chosen().map(|it| switch.forwarding = it)),
        ),
        row(
            (
                "arbitration",
                Kind::OneOf(&[
                    choice::<RoundRobin>(),
                    Kind::Map { what: "component below", of: &Kind::Integer { min: 1, max: 65_535 } },
                ]),
                r#""round-robin""#,
                "{ ssd = 2, nic = 1 }",
            ),
            "Shares of an egress, TLP by TLP: equal, or by weight (1 where a component is not named).",
            Set::Read(|switch, v| topology::arbitration(v).map(|it| switch.arbitration = it)),
        ),
        PORT_BUFFER.row(Set::U16(|switch, it| switch.port_buffer = Some(it))),
        access::ACS.row(Set::Context),
        row(
            ("chip", Kind::Text, "", r#""a""#),
            "Switches that name the same chip are partitions of it (virtual switches): a TLP from below one for a component below another stays inside the chip, and bypasses the uplink, the root complex and access control. Absent: a chip of its own.",
            Set::Text(|switch, it| switch.chip = Some(it)),
        ),
        row(
            ("core", Kind::Table(&SWITCH_CORE), "", "{ egress = 16 }"),
            "Limits between ingresses and egresses. Each ingress then has one queue, whose first TLPs hold up the TLPs behind them. Absent: each ingress has a queue at each egress, limited by its receive buffer alone.",
            Set::Read(|switch, v| {
                SWITCH_CORE.read_into(v, SwitchCoreConfig::default()).map(|it| switch.core = Some(it))
            }),
        ),
    ],
};

/// `switch.NAME.core`
pub(crate) static SWITCH_CORE: Section<SwitchCoreConfig> = Section {
    title: "the core of a switch",
    extra: None,
    rows: &[
        row(
            ("rate", Kind::Rate, "", r#""1024Gb/s""#),
            "Rate at which TLPs, headers and data, of all ingresses together pass; with cut-through a header goes on when it has passed. Absent: no limit.",
            Set::Rate(|core, it| core.rate = Some(it)),
        ),
        row(
            ("egress", Kind::Integer { min: 1, max: 4096 }, "", "16"),
            "TLPs of a class that wait for one egress. Absent: no limit.",
            Set::U16(|core, it| core.egress = Some(it)),
        ),
        row(
            ("shared", Kind::Integer { min: 1, max: 65_535 }, "", "64"),
            "TLPs of a class that wait for all egresses together, each of which has one place besides. Absent: no limit.",
            Set::U16(|core, it| core.shared = Some(it)),
        ),
    ],
};
