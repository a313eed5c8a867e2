//! Keys of the stages at the ends of links.

use crate::choices::choice;
use crate::keys::Kind;
use crate::section::{Row, Section, Set, row};
use crate::stages;

const fn stage(
    name: &'static str,
    example: &'static str,
    doc: &'static str,
    set: Set<stages::Stages>,
) -> Row<stages::Stages> {
    const DELAY: Kind = Kind::OneOf(&[Kind::Integer { min: 0, max: i64::MAX }, Kind::Word(&stages::DELAY)]);
    row((name, DELAY, "", example), doc, set)
}

/// The stages of one end of a link.
pub(crate) static STAGES: Section<stages::Stages> = Section {
    title: "stages",
    extra: None,
    rows: &[
        row(
            ("clock", Kind::Word(&stages::CLOCK), r#""link""#, r#""250MHz""#),
            "Clock of the stages: \"link\", one in the time in which the link brings a word of the data path (rate/10 × lanes / bytes with 8b/10b, rate/8 × 128/130 × lanes / bytes with 128b/130b, rate/8 × lanes / bytes with 1b/1b); or a frequency of their own.",
            Set::Read(|stages, v| v.word(stages::clock).map(|it| stages.clock = it)),
        ),
        row(
            ("data_path", choice::<stages::DataPath>(), r#""64b""#, r#""128b""#),
            "Word that is worked on per clock, where clock is \"link\".",
            Set::Read(|stages, v| v.chosen().map(|it| stages.data_path = it)),
        ),
        stage(
            "tx_transaction",
            "33",
            "Transaction layer, before a TLP waits for credits and the wire: clocks or a time.",
            Set::Read(|stages, v| stages.delay(v).map(|it| stages.config.tx_transaction = it)),
        ),
        stage(
            "tx_data_link",
            r#""10.5 clocks""#,
            "Data link layer, behind the replay buffer.",
            Set::Read(|stages, v| stages.delay(v).map(|it| stages.config.tx_data_link = it)),
        ),
        stage(
            "tx_physical",
            "1",
            "Framing, scrambling, lanes.",
            Set::Read(|stages, v| stages.delay(v).map(|it| stages.config.tx_physical = it)),
        ),
        stage(
            "tx_transceiver",
            r#""72ns""#,
            "Transceiver, without the serialisation itself.",
            Set::Read(|stages, v| stages.delay(v).map(|it| stages.config.tx_transceiver = it)),
        ),
        stage(
            "rx_transceiver",
            r#""183ns""#,
            "Transceiver: clock recovery, elastic buffer.",
            Set::Read(|stages, v| stages.delay(v).map(|it| stages.config.rx_transceiver = it)),
        ),
        stage(
            "rx_physical",
            "1",
            "Deskew, descrambling, frames.",
            Set::Read(|stages, v| stages.delay(v).map(|it| stages.config.rx_physical = it)),
        ),
        stage(
            "rx_data_link",
            "4",
            "LCRC and sequence number, before the Ack.",
            Set::Read(|stages, v| stages.delay(v).map(|it| stages.config.rx_data_link = it)),
        ),
        stage(
            "rx_transaction",
            "8",
            "Transaction layer, up to the component's decision.",
            Set::Read(|stages, v| stages.delay(v).map(|it| stages.config.rx_transaction = it)),
        ),
        stage(
            "register_response",
            "5",
            "Lower end only: from a read of a mapped register of the component to its data.",
            Set::Read(|stages, v| stages.response(v).map(|it| stages.config.register_response = it)),
        ),
        stage(
            "config_response",
            "10",
            "Lower end only: from a configuration request to the component's answer.",
            Set::Read(|stages, v| stages.response(v).map(|it| stages.config.config_response = it)),
        ),
    ],
};
