//! Keys of parallel buses, and of devices on them.

use super::{LINK_KEY, MPS_KEY, UNDER};
use crate::choices::choice;
use crate::keys::{Key, Kind, key};
use crate::section::{Section, Set, row};
use tlplab_fabric::config::{BridgeConfig, BusCompletion, BusConfig, BusMode, BusWidth, DeviceSelect};

/// The speed at which a target claims a transaction.
const DEVICE_SELECT: Kind = choice::<DeviceSelect>();
const OVERHEAD: Key = key(
    ("overhead", Kind::Integer { min: 0, max: 1000 }, "4", "6"),
    "Clocks from a waiting transfer to its address phase, on an idle bus, in addition to the time to the next edge of the clock.",
);

/// A parallel bus.
pub(crate) static BUS: Section<BusConfig> = Section {
    title: "a bus",
    extra: None,
    rows: &[
        UNDER.row(Set::Context),
        LINK_KEY.row(Set::Context),
        MPS_KEY.row(Set::Context),
        row(
            ("mode", choice::<BusMode>(), r#""pci-x 133""#, r#""pci 33""#),
            "Protocol and clock: conventional PCI or PCI-X at 33⅓, 66⅔, 100 or 133⅓ MHz.",
            Set::Read(|bus, v| v.chosen().map(|it| bus.mode = it)),
        ),
        row(
            ("width", choice::<BusWidth>(), r#""32b""#, r#""64b""#),
            "Data of a clock. Addresses and single doublewords take 32 bits.",
            Set::Read(|bus, v| v.chosen().map(|it| bus.width = it)),
        ),
        row(
            ("bridge", Kind::Table(&BRIDGE), "", "{ posted = 4 }"),
            "The bridge between the link and the bus.",
            Set::Read(|bus, v| BRIDGE.read(v, &mut bus.bridge)),
        ),
    ],
};

/// `bridge` of a bus.
pub(crate) static BRIDGE: Section<BridgeConfig> = Section {
    title: "a bridge",
    extra: None,
    rows: &[
        row(
            ("latency", Kind::Time, r#""0s""#, r#""60ns""#),
            "From the arrival of a TLP, or the end of a transaction of the bus, to the queue of the other side.",
            Set::Time(|bridge, it| bridge.latency = it),
        ),
        row(
            ("synchronisation", Kind::Time, r#""0s""#, r#""9ns""#),
            "Time of each transaction of the bus in addition to its clocks, between the clocks of bus and bridge.",
            Set::Time(|bridge, it| bridge.synchronisation = it),
        ),
        OVERHEAD.row(Set::U16(|bridge, it| bridge.overhead = it)),
        row(
            ("devsel", DEVICE_SELECT, r#""fast""#, r#""medium""#),
            "Clocks until it claims transactions for the upstream side.",
            Set::Read(|bridge, v| v.chosen().map(|it| bridge.device_select = it)),
        ),
        row(
            ("posted", Kind::Integer { min: 1, max: 1000 }, "8", "4"),
            "Posted requests of the bus that it holds for its link; further ones have to come again.",
            Set::U16(|bridge, it| bridge.posted = it),
        ),
        row(
            ("reads", Kind::Integer { min: 1, max: 32 }, "8", "1"),
            "Reads of the bus that it holds at a time, until it has their data; further ones have to come again.",
            Set::U16(|bridge, it| bridge.reads = it),
        ),
    ],
};

/// The further keys of a device on a bus.
pub(super) const DEVSEL: Key = key(
    ("devsel", DEVICE_SELECT, r#""medium""#, r#""slow""#),
    "On a bus: it claims its transactions 1, 2 or 3 clocks after the address phase.",
);
pub(super) const WAIT_STATES: Key = key(
    ("wait_states", Kind::Integer { min: 0, max: 1000 }, "0", "2"),
    "On a bus: clocks until it is ready for the first data phase.",
);
pub(super) const COMPLETION: Key = key(
    ("completion", choice::<BusCompletion>(), r#""immediate""#, r#""split""#),
    "On a bus: how it completes reads of its memory: in the same transaction, when the master comes again (PCI), or in one of its own (PCI-X).",
);
pub(super) const OVERHEAD_OF_DEVICE: Key = key(
    ("overhead", Kind::Integer { min: 0, max: 1000 }, "4", "6"),
    "On a bus: clocks from a waiting transfer to its address phase, on an idle bus.",
);

/// The keys that only a device on a bus can have.
pub(crate) const ONLY_ON_BUS: [&str; 4] = ["devsel", "wait_states", "completion", "overhead"];
