//! The counters of an end point.

use crate::sequence::Seen;
use tlplab_wire::{Error, Problem};

/// Counters since the start. Those of several lanes add up ([`Counters::add`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that came, whatever they were.
    pub datagrams_in: u64,
    /// Datagrams that were given to be sent.
    pub datagrams_out: u64,
    /// Completions that answered a request of this end point.
    pub completions: u64,
    /// Reads of the host.
    pub host_reads: u64,
    /// Writes of the host.
    pub host_writes: u64,
    /// Requests of the host outside every window, or of a kind that is not supported: those that wait for an answer got UR.
    pub refused: u64,
    /// Reads of the host that were dropped because too many wait for the device already.
    pub overload: u64,
    /// Reads of the host that the device had not answered when others needed their place, long after the host gave them up.
    pub unanswered: u64,
    /// TLPs that are neither.
    pub other: u64,
    /// Datagrams from an address that is not the adapter's.
    pub foreign_address: u64,
    /// TLPs that came to a port that does not belong to their tag, or whose tag belongs to another lane.
    pub wrong_port: u64,
    /// Datagrams too short for the NetTLP header and a TLP header.
    pub malformed_header: u64,
    /// TLPs with fewer bytes than their header says.
    pub malformed_truncated: u64,
    /// TLPs with more bytes than their header says.
    pub malformed_too_long: u64,
    /// TLPs whose header breaks a rule of the specification.
    pub malformed_field: u64,
    /// TLPs whose digest (ECRC) does not fit.
    pub malformed_digest: u64,
    /// Completions without a digest for requests with one, which the peer does not check, then: they are nobody's data.
    pub undigested: u64,
    /// Completions that contradict their request: the read fails.
    pub mismatched: u64,
    /// Completions for another requester ID, or for a tag with no request.
    pub unexpected: u64,
    /// Completions of requests that had been given up.
    pub late: u64,
    /// Completions that came before an earlier one of their request, and waited for it.
    pub early: u64,
    /// Datagrams that came before: the same sequence number and time stamp, or data that were there already. They were ignored.
    pub duplicates: u64,
    /// Datagrams with a sequence number below one that came earlier.
    pub reordered: u64,
    /// Its place in the adapter's count; `None` if the adapter does not count.
    pub sequence: Option<Seen>,
    /// Requests that were not answered in time.
    pub timeouts: u64,
    /// Reads that were issued again.
    pub retries: u64,
    /// Requests that the network said it could not deliver.
    pub undelivered: u64,
    /// TLPs that were sent again on an acknowledged link.
    pub repeated: u64,
    /// Acknowledged links that were lost, or that the adapter did not give.
    pub links_lost: u64,
}

impl Counters {
    /// Sequence numbers that did not come, or came with a malformed TLP: datagrams that were lost, damaged, or went to somebody else. Several lanes of
    /// one device [count together](super::Endpoint::count_with) and are [added](Self::add) up first, since the adapter has one count for all.
    pub fn lost(&self) -> u64 {
        self.sequence.map_or(0, Seen::lost)
    }

    /// All malformed TLPs.
    pub fn malformed(&self) -> u64 {
        self.malformed_header
            + self.malformed_truncated
            + self.malformed_too_long
            + self.malformed_field
            + self.malformed_digest
    }

    /// Adds what another lane of the same device has seen.
    pub fn add(&mut self, other: &Self) {
        for ((_, mine), (_, theirs)) in self.rows_mut().into_iter().zip(other.rows()) {
            *mine += theirs;
        }
        self.sequence = match (self.sequence, other.sequence) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        };
    }

    /// A TLP that breaks a rule.
    pub(super) fn count_malformed(&mut self, error: &Error) {
        let counter = match error.what {
            Problem::Truncated { .. } if error.field == "Length" => &mut self.malformed_truncated,
            Problem::Truncated { .. } => &mut self.malformed_header,
            Problem::TooLong { .. } => &mut self.malformed_too_long,
            _ => &mut self.malformed_field,
        };
        *counter += 1;
    }
}

macro_rules! rows {
    ($($name:ident),+) => {
        impl Counters {
            /// Every counter with its name, for reports. Several lanes are [added up](Self::add) first, for the sake of the last, what is
            /// [lost](Self::lost).
            pub fn rows(&self) -> [(&'static str, u64); 1 + [$(stringify!($name)),+].len()] {
                [$((stringify!($name), self.$name)),+, ("lost", self.lost())]
            }
            fn rows_mut(&mut self) -> [(&'static str, &mut u64); [$(stringify!($name)),+].len()] {
                [$((stringify!($name), &mut self.$name)),+]
            }
        }
    };
}
rows!(
    datagrams_in,
    datagrams_out,
    completions,
    host_reads,
    host_writes,
    refused,
    overload,
    unanswered,
    other,
    foreign_address,
    wrong_port,
    malformed_header,
    malformed_truncated,
    malformed_too_long,
    malformed_field,
    malformed_digest,
    undigested,
    mismatched,
    unexpected,
    late,
    early,
    duplicates,
    reordered,
    timeouts,
    retries,
    undelivered,
    repeated,
    links_lost
);
