//! A link and how transfers are cut on it: what a transfer costs in each direction, and how much of that a second has.

use crate::compat::Mistakes;
use crate::cut::{Completions, Requests, Span, completions, requests};
use crate::link::{COMPLETION_HEADER, DLLP, FLIT, FRAMING, Link};
use std::ops::{Add, Mul};
use tlplab_units::{Mps, Mrrs, Rcb};

/// TLPs that cross a link in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Way {
    /// Their number.
    pub tlps: f64,
    /// Their bytes on the wire.
    pub bytes: f64,
}

/// The TLPs that cross a link in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// From the device to the host.
    pub up: Way,
    /// From the host to the device.
    pub down: Way,
}

impl Add for Way {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { tlps: self.tlps + other.tlps, bytes: self.bytes + other.bytes }
    }
}

impl Mul<f64> for Way {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self { tlps: self.tlps * factor, bytes: self.bytes * factor }
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { up: self.up + other.up, down: self.down + other.down }
    }
}

impl Mul<f64> for Cost {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self { up: self.up * factor, down: self.down * factor }
    }
}

/// Parts of what each direction of a link has for TLPs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Utilization {
    /// From the device to the host.
    pub up: f64,
    /// From the host to the device.
    pub down: f64,
}

/// The requester of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The device below the link: DMA, interrupts.
    Device,
    /// The host above it: a driver's reads and writes of registers.
    Host,
}

/// The kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Memory read: a request one way, completions the other.
    Read,
    /// Memory write: one way.
    Write,
}

/// A link, and how what crosses it is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection {
    /// The link.
    pub link: Link,
    /// Addresses above 4 GiB: headers of four doublewords, otherwise three (PCIe 5.0 §2.2.4.1).
    pub wide_addresses: bool,
    /// TLPs end in a digest of four bytes (§2.7.1).
    pub ecrc: bool,
    /// Largest payload.
    pub mps: Mps,
    /// Largest read request.
    pub mrrs: Mrrs,
    /// Read completion boundary in bytes: 64 or 128; the public model also takes 256 and 512.
    pub rcb: u64,
    /// The addresses at which the device cuts its requests.
    pub requests: Requests,
    /// The addresses at which the host cuts completions.
    pub completions: Completions,
    /// Mistakes of the public model to make.
    pub mistakes: Mistakes,
}

impl Connection {
    /// 64-bit addresses, no ECRC, an RCB of 64 B, requests cut at multiples, completions as long as possible.
    pub fn new(link: Link, mps: Mps, mrrs: Mrrs) -> Self {
        Self {
            link,
            wide_addresses: true,
            ecrc: false,
            mps,
            mrrs,
            rcb: u64::from(Rcb::ALL[0].bytes()),
            requests: Requests::Aligned,
            completions: Completions::Max,
            mistakes: Mistakes::NONE,
        }
    }

    /// Bytes per second of the physical layer, each way: after line coding, before everything else.
    pub fn raw(&self) -> f64 {
        self.mistakes.raw(&self.link)
    }

    /// Bytes per second for TLPs, each way, while TLPs come the other way without a pause: without ordered sets and, outside flits,
    /// without the Acks and UpdateFCs that answer those, as often as the specification's limits ask (PCIe 5.0 §3.6.3.1, §2.6.1.2). In
    /// flit mode both have a place of their own in each flit.
    pub fn capacity(&self) -> f64 {
        self.room() - self.answers().iter().map(|answers| answers * DLLP).sum::<f64>()
    }

    /// Bytes per second for TLPs and DLLPs, each way.
    fn room(&self) -> f64 {
        if self.mistakes.flits(&self.link) {
            return self.raw() * self.link.ordered_sets.rest() * FLIT.0 / FLIT.1;
        }
        self.raw() * (1.0 - self.mistakes.skips(&self.link))
    }

    /// The most Acks and UpdateFCs per second that the limits ask for; none that cost anything in flits.
    fn answers(&self) -> [f64; 2] {
        if self.mistakes.flits(&self.link) {
            return [0.0; 2];
        }
        let symbol = self.mistakes.symbol_bytes(&self.link);
        self.mistakes.dllp_limits(&self.link, self.mps).map(|limit| self.raw() / (limit * symbol))
    }

    /// The overhead of a memory request around its payload, in bytes.
    fn request_overhead(&self) -> f64 {
        self.overhead(if self.wide_addresses { 16.0 } else { 12.0 })
    }

    fn overhead(&self, header: f64) -> f64 {
        let framing = if self.mistakes.flits(&self.link) { 0.0 } else { FRAMING };
        let digest = if self.ecrc { 4.0 } else { 0.0 };
        framing + header + digest
    }

    fn payload(&self, span: Span) -> f64 {
        if self.mistakes.loose_cuts { span.bytes as f64 } else { span.doublewords() as f64 * 4.0 }
    }

    /// The start of a transfer.
    fn placed(&self, transfer: Span) -> Span {
        if self.mistakes.loose_cuts { Span { start: 0, ..transfer } } else { transfer }
    }

    /// Write TLPs that a transfer takes.
    pub fn writes(&self, transfer: Span) -> u64 {
        requests(self.placed(transfer), self.mps.bytes().into(), self.requests).map(|(_, count)| count).sum()
    }

    /// Units of 16 bytes of flow control that the writes of a transfer take.
    pub fn write_credits(&self, transfer: Span) -> u64 {
        let groups = requests(self.placed(transfer), self.mps.bytes().into(), self.requests);
        groups.map(|(write, count)| write.credits() * count).sum()
    }

    /// Read requests that a transfer takes.
    pub fn reads(&self, transfer: Span) -> u64 {
        requests(self.placed(transfer), self.mrrs.bytes().into(), self.requests).map(|(_, count)| count).sum()
    }

    /// Completions that answer them.
    pub fn completions(&self, transfer: Span) -> u64 {
        let mps = u64::from(self.mps.bytes());
        if self.mistakes.loose_cuts {
            return transfer.bytes.div_ceil(if self.completions == Completions::Rcb {
                self.rcb
            } else {
                mps
            });
        }
        let groups = requests(transfer, self.mrrs.bytes().into(), self.requests);
        groups.map(|(read, count)| completions(read, mps, self.rcb, self.completions) * count).sum()
    }

    /// The cost of a transfer in each direction.
    pub fn cost(&self, by: Party, access: Access, transfer: Span) -> Cost {
        let way = |tlps: u64, overhead: f64, payload: f64| {
            let tlps = tlps as f64;
            Way { tlps, bytes: tlps * overhead + payload }
        };
        let (there, back) = match access {
            Access::Write => {
                (way(self.writes(transfer), self.request_overhead(), self.payload(transfer)), Way::default())
            }
            Access::Read => (
                way(self.reads(transfer), self.request_overhead(), 0.0),
                way(self.completions(transfer), self.overhead(COMPLETION_HEADER), self.payload(transfer)),
            ),
        };
        match by {
            Party::Device => Cost { up: there, down: back },
            Party::Host => Cost { up: back, down: there },
        }
    }

    /// The number of operations of this cost in a second: the fuller direction decides.
    pub fn rate(&self, cost: Cost) -> f64 {
        self.rate_of(cost.up, cost.down).min(self.rate_of(cost.down, cost.up))
    }

    /// The rate that `way` alone allows, whose DLLPs answer the TLPs that go `back`: one of each kind for each of those, but no more often
    /// than the limits ask, because one then answers several.
    fn rate_of(&self, way: Way, back: Way) -> f64 {
        if self.mistakes.both_ways {
            return self.capacity() / way.bytes;
        }
        // r transfers a second take way · r + ∑ DLLP · min(back · r, limit). To take either of the two for an answer counts as many
        // as there are, or more; so the largest r of all choices is right. The lowest limit is reached first.
        let mut limits = self.answers();
        limits.sort_by(f64::total_cmp);
        let rate = |at_limit: usize| {
            let (limited, each) = limits.split_at(at_limit);
            let room = self.room() - limited.iter().map(|limit| limit * DLLP).sum::<f64>();
            room / (way.bytes + each.len() as f64 * DLLP * back.tlps)
        };
        (0..=limits.len()).map(rate).fold(0.0, f64::max)
    }

    /// Part of what each direction has for TLPs that they take at a rate that [`Connection::rate`] allows.
    pub fn utilization(&self, cost: Cost, rate: f64) -> Utilization {
        Utilization {
            up: rate / self.rate_of(cost.up, cost.down),
            down: rate / self.rate_of(cost.down, cost.up),
        }
    }
}
