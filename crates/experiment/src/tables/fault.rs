//! The keys of a fault.

use super::COUNT;
use crate::choices::choice;
use crate::fault;
use crate::keys::Kind;
use crate::section::{Section, Set, row};

/// A fault.
pub(crate) static FAULT: Section<fault::Said> = Section {
    title: "a fault",
    extra: None,
    rows: &[
        row(
            ("link", Kind::Text, "", r#""ssd""#),
            "The link above this component. Required.",
            Set::Text(|fault, it| fault.link = it),
        ),
        row(
            ("direction", choice::<fault::Directions>(), "", r#""up""#),
            "Towards the root complex, away from it, or both (the default).",
            Set::Read(|fault, v| v.chosen().map(|it| fault.direction = it)),
        ),
        row(
            ("ber", Kind::Probability, "", "1e-9"),
            "Each bit is wrong with this probability.",
            Set::Number(|fault, it| fault.ber = it),
        ),
        row(
            ("tlp", COUNT, "", "5"),
            "The n-th TLP that this damage can be done to, counted from 1.",
            Set::U64(|fault, it| fault.n = it),
        ),
        row(
            ("dllp", COUNT, "", "3"),
            "The n-th DLLP that this damage can be done to, counted from 1.",
            Set::U64(|fault, it| fault.n = it),
        ),
        row(("flit", COUNT, "", "2"), "The n-th flit, counted from 1.", Set::U64(|fault, it| fault.n = it)),
        row(
            ("of", choice::<fault::Called>(), "", r#""MWr""#),
            "Only TLPs or DLLPs of this name count. Absent: all.",
            Set::Read(|fault, v| v.chosen().map(|it| fault.only = Some(it))),
        ),
        row(
            ("count", COUNT, "", "2"),
            "How many are damaged, from the n-th on. Absent: one.",
            Set::U64(|fault, it| fault.count = it),
        ),
        row(
            ("damage", choice::<fault::Harm>(), "", r#""drop""#),
            fault::DAMAGE_TEXT,
            Set::Read(|fault, v| v.chosen().map(|it| fault.harm = it)),
        ),
        row(
            ("down", Kind::Time, "", r#""10us""#),
            "The link goes down at this time: all below it is reset, and configured again when it comes back; see hot-plug.md.",
            Set::Instant(|fault, it| fault.at = it),
        ),
        row(
            ("reset", Kind::Time, "", r#""10us""#),
            "The port above holds all components below the link in reset from this time on, as by its Secondary Bus Reset: no error is detected.",
            Set::Instant(|fault, it| fault.at = it),
        ),
        row(
            ("narrow", Kind::Time, "", r#""10us""#),
            "Lanes fail at this time: the link goes through recovery, and has `lanes` from then on.",
            Set::Instant(|fault, it| fault.at = it),
        ),
        row(
            ("lanes", Kind::Integer { min: 1, max: 16 }, "", "1"),
            "The lanes that are left, with narrow.",
            Set::U8(|fault, it| fault.lanes = Some(it)),
        ),
        row(
            ("by", Kind::Time, "", r#""10us""#),
            "How late it comes, with damage = \"late\".",
            Set::Time(|fault, it| fault.by = Some(it)),
        ),
        row(
            ("byte", Kind::Integer { min: 0, max: 4095 }, "", "12"),
            "The first byte of the TLP's data whose bits are inverted, with damage = \"data\". Absent: 0.",
            Set::U16(|fault, it| fault.byte = it),
        ),
        row(
            ("flip", Kind::Integer { min: 1, max: 0xFFFF_FFFF }, "", "0x20000"),
            "The bits that are inverted, in the order of a little-endian word that begins at `byte`, with damage = \"data\".",
            Set::U32(|fault, it| fault.flip = Some(it)),
        ),
        row(
            ("until", Kind::Time, "", r#""20us""#),
            "…and is up again, or the reset over, at this time; absent: never.",
            Set::Instant(|fault, it| fault.until = Some(it)),
        ),
    ],
};
