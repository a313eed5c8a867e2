//! The keys of a link and of its ends.

use super::{MPS, STAGES};
use crate::access;
use crate::choices::choice;
use crate::keys::Kind;
use crate::link;
use crate::section::{Section, Set, row};
use crate::stages;
use tlplab_fabric::config::{Buffers, FlowControl, Forwarding, LinkConfig, SkpPolicy, UpdateFcPolicy};
use tlplab_units::{LinkMode, Mps};

const CREDITS: Kind = Kind::Integer { min: 0, max: 65_535 };

/// A link.
pub(crate) static LINK: Section<LinkConfig> = Section {
    title: "a link",
    extra: None,
    rows: &[
        row(
            ("generation", Kind::Generation, "", "5"),
            "1 to 7.",
            Set::Read(|link, v| v.whole_of(link::generation_of).map(|it| link.generation = it)),
        ),
        row(
            ("width", Kind::Width, "", "8"),
            "Lanes: 1, 2, 4, 8, 12, 16 or 32.",
            Set::Read(|link, v| v.whole_of(link::width_of).map(|it| link.width = it)),
        ),
        row(
            ("mode", choice::<LinkMode>(), r#""non-flit""#, r#""flit""#),
            "Framed TLPs, or 256-byte flits (needed from gen6 on).",
            Set::Read(|link, v| v.chosen().map(|it| link.mode = it)),
        ),
        row(
            ("flow_control", choice::<FlowControl>(), r#""credits""#, r#""drop-and-replay""#),
            "A TLP without room at the receiver waits (credits), or is sent, dropped silently and sent again when the replay timer expires. Slipping: a replay passes over as many TLPs as Acks take from the replay buffer meanwhile, and over the one before which an Ack goes, as the code of the gem5 model of 2018 does.",
            Set::Read(|link, v| v.chosen().map(|it| link.flow_control = it)),
        ),
        row(
            ("crossbar", Kind::Rate, "", r#""128Gb/s""#),
            "There is no link, but a crossbar of this rate in each direction, with flight as its latency: data pass without headers, DLLPs or credits. Generation and width appear in registers only.",
            Set::Rate(|link, it| link.crossbar = Some(it)),
        ),
        row(
            (
                "tlp_alignment",
                Kind::SizeOf { what: "TLP alignment", bytes: &[4, 8, 16, 32, 64] },
                r#""4B""#,
                r#""16B""#,
            ),
            "A framed TLP takes whole multiples of it on the wire, in both directions: the words in which transmitters work.",
            Set::Read(|link, v| v.bytes_of(Some).map(|it| link.tlp_alignment = it)),
        ),
        row(
            ("mps", MPS, r#""256B""#, r#""512B""#),
            "Largest payload that both of its ports support; host.payloads selects the size that software sets.",
            Set::Read(|link, v| v.bytes_of(Mps::new).map(|it| link.mps = it)),
        ),
        row(
            ("flight", Kind::Time, r#""0s""#, r#""5ns""#),
            "Propagation along the wire, each way.",
            Set::Time(|link, it| link.flight = it),
        ),
        row(
            ("skp", Kind::OneOf(&[choice::<SkpPolicy>(), Kind::Table(&SKP)]), r#""standard""#, r#""off""#),
            "SKP ordered sets: the specification's, none, or your own. Links of gen6 and gen7 (1b/1b) carry none in this model, as in published budgets.",
            Set::Read(|link, v| link::skp(v).map(|it| link.skp = it)),
        ),
        row(
            ("trained", Kind::Boolean, "true", "false"),
            "Credits are initialised before time 0 (true) or from time 0 on.",
            Set::Boolean(|link, it| link.trained = it),
        ),
        row(
            ("recovery", Kind::Time, r#""1us""#, r#""10us""#),
            "Time in recovery after REPLAY_NUM has rolled over.",
            Set::Time(|link, it| link.recovery = it),
        ),
        row(
            ("upper", Kind::Table(&PORT), "", "{ replay_tlps = 8 }"),
            "The port at the parent's end.",
            Set::Read(|link, v| link::port(v, link, true).map(|it| link.upper = it)),
        ),
        row(
            ("lower", Kind::Table(&PORT), "", "{ ack_every = 4 }"),
            "The port at the component's end.",
            Set::Read(|link, v| link::port(v, link, false).map(|it| link.lower = it)),
        ),
    ],
};

/// `skp` as a table.
pub(crate) static SKP: Section<link::OwnSkp> = Section {
    title: "skp",
    extra: None,
    rows: &[
        row(
            ("length", Kind::Integer { min: 1, max: 1024 }, "", "4"),
            "Symbols of an ordered set. Required.",
            Set::U32(|skp, it| skp.length = it),
        ),
        row(
            ("interval", Kind::Integer { min: 2, max: 1 << 24 }, "", "1538"),
            "Symbols from one to the next. Required.",
            Set::U32(|skp, it| skp.interval = it),
        ),
    ],
};

/// One end of a link.
pub(crate) static PORT: Section<link::End> = Section {
    title: "a port",
    extra: None,
    rows: &[
        row(
            ("latency", Kind::Time, "", r#""50ns""#),
            "From the arrival of a TLP at this port to its component's decision; absent: the component's latency.",
            Set::Time(|end, it| end.port.latency = Some(it)),
        ),
        row(
            ("buffers", Kind::Table(&BUFFERS), "", "{ posted_headers = 8 }"),
            "Receive buffers as credits; absent: at a switch the data of 2 µs at full rate, elsewhere the maximum that can be advertised.",
            Set::Read(|end, v| {
                BUFFERS.read_into(v, Buffers::default()).map(|it| end.port.buffers = Some(it))
            }),
        ),
        row(
            ("replay_tlps", Kind::Integer { min: 1, max: 2048 }, "", "8"),
            "Replay buffer in TLPs; absent: enough for the round trip.",
            Set::U32(|end, it| end.port.replay_tlps = Some(it)),
        ),
        row(
            ("replay_bytes", Kind::Size, "", r#""4KiB""#),
            "Replay buffer in bytes; absent: no limit.",
            Set::Read(|end, v| link::replay_bytes(v).map(|it| end.port.replay_bytes = Some(it))),
        ),
        row(
            ("replay_timer", Kind::Time, "", r#""2us""#),
            "Absent: the specification's, or, if the wire is longer than that, the time until an Ack is back; with drop-and-replay the specification's formula without internal delay.",
            Set::Time(|end, it| end.port.replay_timer = Some(it)),
        ),
        row(
            ("ack_latency", Kind::Time, "", r#""100ns""#),
            "How long a TLP may wait for its Ack. Absent: the specification's limit, which hard IPs keep to; \"0s\": each is acknowledged as soon as the wire is free; with drop-and-replay a third of the replay timer, and at once on an idle wire.",
            Set::Time(|end, it| end.port.ack_latency = Some(it)),
        ),
        row(
            ("ack_every", Kind::Integer { min: 1, max: 2048 }, "", "4"),
            "Acknowledges after this many TLPs at the latest; absent: by time only.",
            Set::U16(|end, it| end.port.ack_every = Some(it)),
        ),
        row(
            (
                "update_fc",
                Kind::OneOf(&[choice::<UpdateFcPolicy>(), Kind::Time]),
                r#""eighth""#,
                r#""specification""#,
            ),
            "Time at which freed credits are returned to the peer: with each TLP (as PLX switches), when an eighth, a quarter (Altera hard IP on a busy wire) or a half of the buffer is free, or when the first has waited for the specification's guideline or for this time. At once wherever the peer may be blocked, and every 30 µs. With each, eighth and quarter a larger buffer carries no less, but for one TLP more or less in a round trip (a flit's worth in flit mode); with half, and with a time, one more credit may fall out of step with tags or bursts, which costs half the buffer, or that time, at most.",
            Set::Read(|end, v| link::update_fc(v).map(|it| end.port.update_fc = it)),
        ),
        row(
            ("max_payload", MPS, "", r#""256B""#),
            "Largest payload that this port supports (Max_Payload_Size Supported); absent: the link's mps.",
            Set::Read(|end, v| v.bytes_of(Mps::new).map(|it| end.port.max_payload = Some(it))),
        ),
        row(
            ("forwarding", choice::<Forwarding>(), "", r#""store-and-forward""#),
            "Of a switch's port: start of the forwarding of TLPs received here; absent: as the switch's forwarding.",
            Set::Read(|end, v| v.chosen().map(|it| end.port.forwarding = Some(it))),
        ),
        row(
            ("stages", Kind::Table(&STAGES), "", "{ tx_transceiver = \"72ns\" }"),
            "Pipeline of each layer, which delays a TLP without slowing the link.",
            Set::Read(|end, v| stages::config(v, end).map(|it| end.port.stages = it)),
        ),
        access::ACS_OF_PORT.row(Set::Read(|end, v| access::controls(v).map(|it| end.acs = Some(it)))),
        access::ACS_FORBIDS.row(Set::Texts(|end, it| end.forbidden = it)),
    ],
};

/// Receive buffers.
pub(crate) static BUFFERS: Section<Buffers> = Section {
    title: "buffers",
    extra: None,
    rows: &[
        row(
            ("posted_headers", CREDITS, "0", "8"),
            "Posted headers; 0: infinite.",
            Set::U32(|buffers, it| buffers.posted_headers = it),
        ),
        row(
            ("posted_data", CREDITS, "0", "64"),
            "Posted data in units of 16 bytes; 0: infinite.",
            Set::U32(|buffers, it| buffers.posted_data = it),
        ),
        row(
            ("non_posted_headers", CREDITS, "0", "8"),
            "Non-posted headers; 0: infinite.",
            Set::U32(|buffers, it| buffers.non_posted_headers = it),
        ),
        row(
            ("non_posted_data", CREDITS, "0", "8"),
            "Non-posted data in units of 16 bytes; 0: infinite.",
            Set::U32(|buffers, it| buffers.non_posted_data = it),
        ),
        row(
            ("completion_headers", CREDITS, "0", "8"),
            "Completion headers; 0: infinite.",
            Set::U32(|buffers, it| buffers.completion_headers = it),
        ),
        row(
            ("completion_data", CREDITS, "0", "64"),
            "Completion data in units of 16 bytes; 0: infinite.",
            Set::U32(|buffers, it| buffers.completion_data = it),
        ),
    ],
};
