//! The throughput of a device across its link: reads, writes, both.

use crate::connection::{Access, Connection, Cost, Party, Utilization};
use crate::cut::Span;

/// The repeated operation of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads from the host's memory.
    Read,
    /// Writes to it.
    Write,
    /// As many reads as writes, of the same size.
    ReadWrite,
}

impl Operation {
    /// The cost of one: a read, a write, or one of each.
    pub fn cost(self, connection: &Connection, transfer: Span) -> Cost {
        let cost = |access| connection.cost(Party::Device, access, transfer);
        match self {
            Self::Read => cost(Access::Read),
            Self::Write => cost(Access::Write),
            Self::ReadWrite => cost(Access::Read) + cost(Access::Write),
        }
    }
}

/// The most that a link carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    /// Payload in bits per second; of both together, that of each direction.
    pub payload: f64,
    /// Transfers per second; of both together, reads per second, and as many writes.
    pub transfers: f64,
    /// Part of what TLPs can have that they use, up and down: 1 in the direction that limits.
    pub utilization: Utilization,
    /// The cost of a transfer's TLPs, up and down.
    pub cost: Cost,
}

/// The bandwidth of transfers, of which the device has always enough under way.
pub fn bandwidth(connection: &Connection, operation: Operation, transfer: Span) -> Bandwidth {
    let cost = operation.cost(connection, transfer);
    let transfers = connection.rate(cost);
    Bandwidth {
        payload: transfers * transfer.bytes as f64 * 8.0,
        transfers,
        utilization: connection.utilization(cost, transfers),
        cost,
    }
}
