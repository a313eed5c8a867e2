//! Keys of the stages at the ends of links.

use crate::choices::choice;
use crate::keys::{Key, Kind, Section, key};
use crate::stages;

const fn stage(name: &'static str, example: &'static str, doc: &'static str) -> Key {
    const DELAY: Kind = Kind::OneOf(&[Kind::Integer { min: 0, max: i64::MAX }, Kind::Word(&stages::DELAY)]);
    key(name, DELAY, "", example, doc)
}

/// The stages of one end of a link.
pub static STAGES: Section = Section {
    title: "stages",
    extra: None,
    keys: &[
        key(
            "clock",
            Kind::Word(&stages::CLOCK),
            r#""link""#,
            r#""250MHz""#,
            "What clocks of the stages are: \"link\", one in the time in which the link brings a word of the data path (rate/10 × lanes / bytes with 8b/10b, rate/8 × 128/130 × lanes / bytes with 128b/130b, rate/8 × lanes / bytes with 1b/1b); or a frequency of their own.",
        ),
        key(
            "data_path",
            choice::<stages::DataPath>(),
            r#""64b""#,
            r#""128b""#,
            "Word that is worked on per clock, where clock is \"link\".",
        ),
        stage(
            "tx_transaction",
            "33",
            "Transaction layer, before a TLP waits for credits and the wire: clocks or a time.",
        ),
        stage("tx_data_link", r#""10.5 clocks""#, "Data link layer, behind the replay buffer."),
        stage("tx_physical", "1", "Framing, scrambling, lanes."),
        stage("tx_transceiver", r#""72ns""#, "Transceiver, without the serialisation itself."),
        stage("rx_transceiver", r#""183ns""#, "Transceiver: clock recovery, elastic buffer."),
        stage("rx_physical", "1", "Deskew, descrambling, frames."),
        stage("rx_data_link", "4", "LCRC and sequence number, before the Ack."),
        stage("rx_transaction", "8", "Transaction layer, up to the component's decision."),
        stage(
            "register_response",
            "5",
            "Lower end only: from a read of a mapped register of the component to its data.",
        ),
        stage(
            "config_response",
            "10",
            "Lower end only: from a configuration request to the component's answer.",
        ),
    ],
};
