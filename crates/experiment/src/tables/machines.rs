//! The keys of several machines and the cables between them.

use super::rows;
use crate::keys::{Kind, Section, key};

/// `machine.NAME`
pub static MACHINE: Section = Section {
    title: "a machine",
    extra: None,
    keys: &[
        rows::STOP_KEY,
        rows::SEED_KEY,
        rows::HOST_KEY,
        rows::GUEST_KEY,
        rows::DEFAULTS_KEY,
        rows::SWITCH_KEY,
        rows::BUS_KEY,
        rows::DEVICE_KEY,
        rows::LINK_KEY,
        rows::FAULT_KEY,
    ],
};

/// `cable.NAME`
pub static CABLE: Section = Section {
    title: "a cable",
    extra: None,
    keys: &[
        key(
            "ends",
            Kind::List(&Kind::Text),
            "",
            r#"["left.nic0", "right.nic0"]"#,
            r#"The two NICs (model = "nic") that it joins, each by its machine's name and its own. Required."#,
        ),
        key(
            "delay",
            Kind::Time,
            r#""500ns""#,
            r#""5us""#,
            "From one end to the other, 1ns at least: light takes 5 ns for a metre.",
        ),
    ],
};
