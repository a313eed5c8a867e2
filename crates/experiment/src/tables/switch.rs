//! The keys of a switch.

use super::{LINK_KEY, MPS_KEY, PORT_BUFFER, UNDER};
use crate::access;
use crate::choices::{RoundRobin, choice};
use crate::keys::{Kind, Section, key};
use tlplab_fabric::config::Forwarding;

/// A switch.
pub static SWITCH: Section = Section {
    title: "a switch",
    extra: None,
    keys: &[
        UNDER,
        LINK_KEY,
        MPS_KEY,
        key(
            "latency",
            Kind::Time,
            r#""0s""#,
            r#""100ns""#,
            "From the arrival of a TLP (its last byte, or with cut-through its header) to the egress queue.",
        ),
        key(
            "forwarding",
            choice::<Forwarding>(),
            r#""cut-through""#,
            r#""store-and-forward""#,
            "When forwarding starts: after the header; after the header unless the egress is faster than the ingress, else after the LCRC, as chips of switches do; after the LCRC; or after a header with a checksum of its own, of 4 bytes, which is no PCIe: then only what has a good header is forwarded. link.NAME.upper and lower say otherwise for what comes in by that port.",
        ),
        key(
            "arbitration",
            Kind::OneOf(&[
                choice::<RoundRobin>(),
                Kind::Map { what: "component below", of: &Kind::Integer { min: 1, max: 65_535 } },
            ]),
            r#""round-robin""#,
            "{ ssd = 2, nic = 1 }",
            "Shares of an egress, TLP by TLP: equal, or by weight (1 where a component is not named).",
        ),
        PORT_BUFFER,
        access::ACS,
        key(
            "chip",
            Kind::Text,
            "",
            r#""a""#,
            "Switches that name the same chip are partitions of it (virtual switches): what comes from below one for what is below another goes there inside the chip, without its uplink, the root complex and access control. Absent: a chip of its own.",
        ),
        key(
            "core",
            Kind::Table(&SWITCH_CORE),
            "",
            "{ egress = 16 }",
            "What is between ingresses and egresses, where that has limits. Each ingress then has one queue, whose first TLPs hold up those behind. Absent: each ingress has a queue at each egress, limited by its receive buffer alone.",
        ),
    ],
};

/// `switch.NAME.core`
pub static SWITCH_CORE: Section = Section {
    title: "the core of a switch",
    extra: None,
    keys: &[
        key(
            "rate",
            Kind::Rate,
            "",
            r#""1024Gb/s""#,
            "How fast TLPs, headers and data, of all ingresses together pass; with cut-through a header goes on when it has passed. Absent: at once.",
        ),
        key(
            "egress",
            Kind::Integer { min: 1, max: 4096 },
            "",
            "16",
            "TLPs of a class that wait for one egress. Absent: no limit.",
        ),
        key(
            "shared",
            Kind::Integer { min: 1, max: 65_535 },
            "",
            "64",
            "TLPs of a class that wait for all egresses together, each of which has one place besides. Absent: no limit.",
        ),
    ],
};
