//! The keys of several machines and the cables between them.

use super::rows;
use crate::keys::Kind;
use crate::section::{Section, Set, row};
use tlplab_units::Duration;

/// `machine.NAME`
pub(crate) static MACHINE: Section<()> = Section {
    title: "a machine",
    extra: None,
    rows: &[
        rows::STOP_KEY.row(Set::Context),
        rows::SEED_KEY.row(Set::Context),
        rows::HOST_KEY.row(Set::Context),
        rows::GUEST_KEY.row(Set::Context),
        rows::DEFAULTS_KEY.row(Set::Context),
        rows::SWITCH_KEY.row(Set::Context),
        rows::BUS_KEY.row(Set::Context),
        rows::DEVICE_KEY.row(Set::Context),
        rows::LINK_KEY.row(Set::Context),
        rows::FAULT_KEY.row(Set::Context),
    ],
};

/// `cable.NAME`
pub(crate) static CABLE: Section<Duration> = Section {
    title: "a cable",
    extra: None,
    rows: &[
        row(
            ("ends", Kind::List(&Kind::Text), "", r#"["left.nic0", "right.nic0"]"#),
            r#"The two NICs (model = "nic") that it joins, each by its machine's name and its own. Required."#,
            Set::Context,
        ),
        row(
            ("delay", Kind::Time, r#""500ns""#, r#""5us""#),
            "From one end to the other, 1ns at least: light takes 5 ns for a metre.",
            Set::Time(|delay, it| *delay = it),
        ),
    ],
};
