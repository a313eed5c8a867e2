//! The counters of an adapter.

/// Datagrams between the adapter and one device, and errors. Nothing is dropped without being counted here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Datagrams from it, of any kind.
    pub received: u64,
    /// Datagrams to it, of any kind.
    pub sent: u64,
    /// Reads of the host's memory.
    pub reads: u64,
    /// Bytes that they asked for.
    pub bytes_read: u64,
    /// Writes to the host's memory.
    pub writes: u64,
    /// Bytes that they carried.
    pub bytes_written: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Requests to other devices.
    pub peer_requests: u64,
    /// Reads and writes by the host's programs.
    pub mmio: u64,
    /// Accesses to configuration space, adapter registers and the message service.
    pub control: u64,

    /// Datagrams that are no TLP, or an impossible one.
    pub malformed: u64,
    /// Datagrams that came before, by their number, and completions whose data were there: not looked at twice.
    pub duplicates: u64,
    /// Sequence numbers that never came. The lanes of a device have one count; of programs that count by themselves though they have one
    /// address this is too little.
    pub lost: u64,
    /// Datagrams beyond the rate limit.
    pub throttled: u64,
    /// Requests and answers for which a queue had no room.
    pub overflows: u64,
    /// Reads that got UR or CA.
    pub refused: u64,
    /// Writes to where nothing is, and writes that may not be made.
    pub lost_writes: u64,
    /// Writes with poisoned data: not made.
    pub poisoned: u64,
    /// TLPs with more payload than Max_Payload_Size. They are carried out, though PCI Express calls them malformed (PCIe 5.0 §2.2.2): programs
    /// of the published library write what they are told to in one TLP.
    pub oversized: u64,
    /// Messages and other TLPs that nobody answers.
    pub ignored: u64,
    /// Completions that answer nothing: late, twice, invented.
    pub unexpected: u64,
    /// Requests to this device that failed: refused, badly answered.
    pub failed: u64,
    /// Requests to this device that it did not answer in time.
    pub timeouts: u64,
    /// Datagrams that did not reach it, as the network said.
    pub undeliverable: u64,
    /// TLPs that were sent to it again on acknowledged links.
    pub repeated: u64,
}

/// The counters of an adapter for all devices together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterCounters {
    /// Datagrams from addresses that are no peer's.
    pub foreign: u64,
    /// Datagrams to ports that NetTLP does not use.
    pub other_ports: u64,
}

macro_rules! rows {
    ($($name:ident),+) => {
        impl DeviceCounters {
            /// Every counter with its name, for reports.
            pub fn rows(&self) -> [(&'static str, u64); [$(stringify!($name)),+].len()] {
                [$((stringify!($name), self.$name)),+]
            }
        }
    };
}
rows!(
    received,
    sent,
    reads,
    bytes_read,
    writes,
    bytes_written,
    interrupts,
    peer_requests,
    mmio,
    control,
    malformed,
    duplicates,
    lost,
    throttled,
    overflows,
    refused,
    lost_writes,
    poisoned,
    oversized,
    ignored,
    unexpected,
    failed,
    timeouts,
    undeliverable,
    repeated
);
