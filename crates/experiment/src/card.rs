//! The keys of the model `nettlp-card`.

use crate::device_models;
use crate::error::Error;
use crate::keys::{Key, Kind, key};
use crate::view::View;
use tlplab_device::CardConfig;
use tlplab_units::{Duration, Time};

pub(crate) static KEYS: &[Key] = &[
    key(
        "window",
        Kind::Size,
        r#""256MiB""#,
        r#""1MiB""#,
        "Size of BAR 4, whose TLPs go over Ethernet, a power of two from 4KiB to 1GiB; peer-to-peer requests and MMIO land there.",
    ),
    key(
        "ethernet",
        Kind::Rate,
        r#""10Gb/s""#,
        r#""100Gb/s""#,
        "The link to the software's machine, each way.",
    ),
    key(
        "buffer",
        Kind::Size,
        r#""64KiB""#,
        r#""16KiB""#,
        "What waits for Ethernet, at each end. What finds the card's full is lost; software waits for room.",
    ),
    key(
        "cores",
        Kind::Integer { min: 1, max: 1024 },
        "16",
        "1",
        "Processors of the software. Each datagram goes to the next one, as tags go to ports; of a read by the software, all to the one that began it.",
    ),
    key("send", Kind::Time, r#""2.5us""#, r#""500ns""#, "What a processor takes to send a datagram."),
    key("receive", Kind::Time, r#""2.5us""#, r#""500ns""#, "What a processor takes to receive a datagram."),
    key(
        "wake",
        Kind::Time,
        r#""6us""#,
        r#""0s""#,
        "From a datagram's arrival to the beginning of its reception: interrupt, network stack, the waking of a thread.",
    ),
    key(
        "queue",
        Kind::Integer { min: 1, max: u32::MAX as i64 },
        "256",
        "16",
        "Datagrams that may wait for a processor; what comes then is lost.",
    ),
    key(
        "timeout",
        Kind::Time,
        r#""500ms""#,
        r#""50us""#,
        "A read of the software whose completions were lost has failed after this.",
    ),
];

/// What the keys of a device say. Payload size, read request size and peers are told by what surrounds the card.
pub(crate) fn config(device: &View<'_>) -> Result<CardConfig, Error> {
    let duration = |key: &str| device.duration(key).unwrap_or(Duration::ZERO);
    let integer = |key: &str| device.integer(key).unwrap_or_default();
    Ok(CardConfig {
        rate: device.rate("ethernet").unwrap_or_default(),
        buffer: device.size("buffer").unwrap_or_default(),
        cores: integer("cores") as u16,
        send: duration("send"),
        receive: duration("receive"),
        wake: duration("wake"),
        queue: integer("queue") as u32,
        timeout: duration("timeout"),
        bar: device_models::bar(device, "window")?,
        mps: 0,
        mrrs: 0,
        from: Time::ZERO,
        peers: Vec::new(),
    })
}
