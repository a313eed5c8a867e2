//! The keys of the model `nettlp-card`.

use crate::device_models;
use crate::keys::Kind;
use crate::section::{Section, Set, row};
use tlplab_device::CardConfig;
use tlplab_units::{Duration, Time};

/// The keys of the model.
pub(crate) static CARD: Section<CardConfig> = Section {
    title: "the model nettlp-card",
    extra: None,
    rows: &[
        row(
            ("window", Kind::Size, r#""256MiB""#, r#""1MiB""#),
            "Size of BAR 4, whose TLPs go over Ethernet, a power of two from 4KiB to 1GiB; peer-to-peer requests and MMIO land there.",
            Set::Read(|card, v| device_models::bar(v).map(|it| card.bar = it)),
        ),
        row(
            ("ethernet", Kind::Rate, r#""10Gb/s""#, r#""100Gb/s""#),
            "The link to the software's machine, each way.",
            Set::Rate(|card, it| card.rate = it),
        ),
        row(
            ("buffer", Kind::Size, r#""64KiB""#, r#""16KiB""#),
            "Buffer for Ethernet at each end. A TLP that finds the card's buffer full is lost; software waits for room.",
            Set::Bytes(|card, it| card.buffer = it),
        ),
        row(
            ("cores", Kind::Integer { min: 1, max: 1024 }, "16", "1"),
            "Processors of the software. Each datagram goes to the next processor, as tags go to ports; all datagrams of a read by the software go to the processor that began it.",
            Set::U16(|card, it| card.cores = it),
        ),
        row(
            ("send", Kind::Time, r#""2.5us""#, r#""500ns""#),
            "Time of a processor to send a datagram.",
            Set::Time(|card, it| card.send = it),
        ),
        row(
            ("receive", Kind::Time, r#""2.5us""#, r#""500ns""#),
            "Time of a processor to receive a datagram.",
            Set::Time(|card, it| card.receive = it),
        ),
        row(
            ("wake", Kind::Time, r#""6us""#, r#""0s""#),
            "From a datagram's arrival to the beginning of its reception: interrupt, network stack, the waking of a thread.",
            Set::Time(|card, it| card.wake = it),
        ),
        row(
            ("queue", Kind::Integer { min: 1, max: u32::MAX as i64 }, "256", "16"),
            "Datagrams that may wait for a processor; further ones are lost.",
            Set::U32(|card, it| card.queue = it),
        ),
        row(
            ("timeout", Kind::Time, r#""500ms""#, r#""50us""#),
            "A read of the software whose completions were lost has failed after this.",
            Set::Time(|card, it| card.timeout = it),
        ),
    ],
};

/// A card that is told nothing. Payload size, read request size and peers are told by what surrounds it.
pub(crate) const BLANK: CardConfig = CardConfig {
    rate: 0,
    buffer: 0,
    cores: 0,
    send: Duration::ZERO,
    receive: Duration::ZERO,
    wake: Duration::ZERO,
    queue: 0,
    timeout: Duration::ZERO,
    bar: 0,
    mps: 0,
    mrrs: 0,
    from: Time::ZERO,
    peers: Vec::new(),
};
