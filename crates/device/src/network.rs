//! Counters of the network behind a device.

use hdrhistogram::Histogram;
use tlplab_units::Duration;

/// Frames of an Ethernet controller since power-on; those that its filters refuse are in none of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
    /// Lost for want of room: the packet buffer was full, or no receive buffer was posted.
    pub missed: u64,
    /// Discarded as longer than the receiver takes.
    pub too_long: u64,
}

impl FrameCounts {
    /// The frames since `earlier`.
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            received: self.received - earlier.received,
            missed: self.missed - earlier.missed,
            too_long: self.too_long - earlier.too_long,
        }
    }
}

/// One direction of the Ethernet link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Datagrams sent.
    pub datagrams: u64,
    /// Payload of their TLPs, in bytes.
    pub data: u64,
    /// Time that the wire was busy.
    pub busy: Duration,
    /// Datagrams that found the buffer full.
    pub dropped: u64,
    /// The payload that was lost with them, in bytes.
    pub dropped_data: u64,
}

/// The counters of a device with a network behind it, and the latency of its software's reads.
#[derive(Clone, Debug)]
pub struct NetworkStatistics {
    /// From the card to the software.
    pub to_software: Direction,
    /// From the software to the card.
    pub to_card: Direction,
    /// Datagrams that a busy processor had no room for: the receive queue of its socket was full.
    pub socket_drops: u64,
    /// Time that the software's processors worked, together.
    pub cores_busy: Duration,
    /// Their number.
    pub cores: u16,
    /// Reads of the software that ended well.
    pub reads: u64,
    /// Reads of the software that did not.
    pub failed_reads: u64,
    /// From the beginning of a read by the software to its end there, in picoseconds.
    pub latency_ps: Histogram<u64>,
    /// The shortest and the longest, and all together in femtoseconds.
    pub latency: (Duration, Duration, u128),
}

impl NetworkStatistics {
    pub(crate) fn new(cores: u16) -> Self {
        Self {
            to_software: Direction::default(),
            to_card: Direction::default(),
            socket_drops: 0,
            cores_busy: Duration::ZERO,
            cores,
            reads: 0,
            failed_reads: 0,
            latency_ps: Histogram::new_with_bounds(1, 1 << 50, 3).expect("valid bounds"),
            latency: (Duration::MAX, Duration::ZERO, 0),
        }
    }

    /// A read is over.
    pub(crate) fn read(&mut self, took: Duration, well: bool) {
        if !well {
            self.failed_reads += 1;
            return;
        }
        self.reads += 1;
        self.latency_ps.saturating_record((took.as_fs() / 1000).max(1));
        let (min, max, sum) = self.latency;
        self.latency = (min.min(took), max.max(took), sum + u128::from(took.as_fs()));
    }
}
