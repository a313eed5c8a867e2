//! NICs as data: the transactions that a packet takes, and what is left of the link for packets.

use crate::connection::{Access, Connection, Cost, Party, Way};
use crate::cut::Span;

/// A NIC and its driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// Its name, for people.
    pub title: String,
    /// The transactions of sending a packet, in their order.
    pub transmit: Vec<Transaction>,
    /// The transactions of receiving a packet.
    pub receive: Vec<Transaction>,
}

/// One transaction of a packet, or of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// The transferred object, for people.
    pub what: String,
    /// The requester.
    pub by: Party,
    /// Read or write.
    pub access: Access,
    /// The size at once.
    pub size: Size,
    /// It takes place once for so many packets.
    pub batch: u64,
    /// The start within a page of 4 KiB; of a packet, within its buffer.
    pub offset: u64,
}

/// The size of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The packet.
    Packet,
    /// Bytes.
    Bytes(u64),
}

/// The direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// The host sends.
    Transmit,
    /// The host receives.
    Receive,
    /// As many each way.
    Both,
}

/// The NICs of pcie-bench's Figure 1: name and TOML text.
pub const NICS: [(&str, &str); 3] = [
    ("simple", include_str!("../nics/simple.toml")),
    ("kernel", include_str!("../nics/kernel.toml")),
    ("dpdk", include_str!("../nics/dpdk.toml")),
];

impl Nic {
    /// The cost of a packet (without Ethernet's check sequence) on the link. Its buffer starts where `packet` does in its page.
    pub fn cost(&self, connection: &Connection, ways: Ways, packet: Span) -> Cost {
        let transmit = || sum(&self.transmit, connection, packet, false);
        let receive = || sum(&self.receive, connection, packet, connection.mistakes.lost_requests);
        match ways {
            Ways::Transmit => transmit(),
            Ways::Receive => receive(),
            Ways::Both => transmit() + receive(),
        }
    }

    /// Packets per second that the link has room for, each way.
    pub fn packets(&self, connection: &Connection, ways: Ways, packet: Span) -> f64 {
        connection.rate(self.cost(connection, ways, packet))
    }
}

/// `lose`: what went up before the packet does is forgotten, as the public model does.
fn sum(transactions: &[Transaction], connection: &Connection, packet: Span, lose: bool) -> Cost {
    transactions.iter().fold(Cost::default(), |mut sum, step| {
        if lose && step.size == Size::Packet && (step.by, step.access) == (Party::Device, Access::Write) {
            sum.up = Way::default();
        }
        let moved = match step.size {
            Size::Packet => Span::new((packet.start + step.offset) % 4096, packet.bytes),
            Size::Bytes(bytes) => Span::new(step.offset, bytes),
        };
        let cost = connection.cost(step.by, step.access, moved);
        sum + cost * (1.0 / step.batch as f64)
    })
}
