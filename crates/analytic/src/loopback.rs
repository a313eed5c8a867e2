//! The parts of the latency of a NIC that returns the host's packets at once.
//!
//! The host stores the packet into the NIC's memory, in pieces that its write-combining buffers make of it; the NIC sends it when it is
//! there; it comes back; the NIC writes it to the host's memory, where the host waits for its last byte. Each packet crosses the link twice
//! and the Ethernet once, one after the other. What does not depend on the packet's length is one constant for each.

use crate::connection::{Access, Connection, Party};
use crate::cut::Span;
use crate::ethernet::{FCS, PREAMBLE};

/// A NIC whose Ethernet port is connected to itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loopback {
    /// Its link to the host.
    pub connection: Connection,
    /// Ethernet's rate in bits per second.
    pub ethernet: f64,
    /// Bytes that the host stores at once.
    pub store: u64,
    /// Seconds that host, root complex and the NIC's PCIe core take for any packet.
    pub pcie: f64,
    /// Seconds that the rest of the NIC takes for any packet.
    pub nic: f64,
}

/// A latency and what it is made of, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// PCIe and what lies behind it.
    pub pcie: f64,
    /// The NIC and its Ethernet.
    pub nic: f64,
}

impl Parts {
    /// All of it.
    pub fn total(self) -> f64 {
        self.pcie + self.nic
    }
    /// PCIe's part of it.
    pub fn pcie_share(self) -> f64 {
        self.pcie / self.total()
    }
}

impl Loopback {
    /// Latency of a packet of `bytes`.
    pub fn latency(&self, bytes: u64) -> Parts {
        let cost = |by, bytes| self.connection.cost(by, Access::Write, Span::new(0, bytes));
        let last = bytes % self.store;
        let stores = cost(Party::Host, self.store).down.bytes * (bytes / self.store) as f64
            + if last > 0 { cost(Party::Host, last).down.bytes } else { 0.0 };
        let wire = (stores + cost(Party::Device, bytes).up.bytes) / self.connection.capacity();
        let frame = (PREAMBLE + (bytes + FCS) as f64) * 8.0 / self.ethernet;
        Parts { pcie: self.pcie + wire, nic: self.nic + frame }
    }
}
