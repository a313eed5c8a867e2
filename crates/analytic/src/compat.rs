//! The mistakes of the public model (github.com/pcie-bench/pcie-model), each of which can be made or not.
//!
//! The model of pcie-bench (2018) and its outputs are much used. With [`Mistakes::PCIE_MODEL`] the closed forms here give its numbers,
//! with [`Mistakes::NONE`], the default everywhere, the right ones, and with some of them the size of each can be told.

use crate::link::Link;
use crate::policy::ack_latency_symbols;
use tlplab_units::{Generation, Mps, Width};

/// The mistakes to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// The limits of Acks and UpdateFCs are taken for bytes of the link. They are symbol times, of as many bytes as there are lanes.
    pub dllp_limits: bool,
    /// The TLPs that a NIC's receive side sends up before it writes the packet, such as its request for a descriptor, are forgotten.
    pub lost_requests: bool,
    /// Two entries of the tables: Ack, 5 GT/s, x32, 4096 B is 237 (327); UpdateFC, 2.5 GT/s, x32, 2048 B is 248 (148).
    pub table_typos: bool,
    /// Ethernet's rate is that of frames 4 bytes shorter: the check sequence, which is not transferred, is left out on the wire, too.
    pub short_frames: bool,
    /// 64 and 128 GT/s have 242 of 256 bytes, from which framing and DLLPs are taken once more. A flit has 236 for TLPs, all else is
    /// in the other 20.
    pub framed_flits: bool,
    /// A skip ordered set is 4 in 1538 symbols at every rate. That is so for 8b/10b only.
    pub one_skip: bool,
    /// Payloads cost their bytes rather than doublewords, transfers begin at a page, and a completion may answer several requests.
    pub loose_cuts: bool,
    /// Acks and UpdateFCs are taken from both directions, at the rate of their limits, even where nothing comes the other way.
    pub both_ways: bool,
}

impl Mistakes {
    /// None.
    pub const NONE: Self = Self {
        dllp_limits: false,
        lost_requests: false,
        table_typos: false,
        short_frames: false,
        framed_flits: false,
        one_skip: false,
        loose_cuts: false,
        both_ways: false,
    };
    /// All: the public model.
    pub const PCIE_MODEL: Self = Self {
        dllp_limits: true,
        lost_requests: true,
        table_typos: true,
        short_frames: true,
        framed_flits: true,
        one_skip: true,
        loose_cuts: true,
        both_ways: true,
    };
    /// The names of [`Self::named`]: the public model, then each of its mistakes.
    pub const NAMES: [&str; 9] = [
        "pcie-model",
        "dllp-limits",
        "lost-requests",
        "table-typos",
        "short-frames",
        "framed-flits",
        "one-skip",
        "loose-cuts",
        "both-ways",
    ];

    /// These and those of a name.
    pub fn and(self, name: &str) -> Option<Self> {
        Some(match name {
            "pcie-model" => Self::PCIE_MODEL,
            "dllp-limits" => Self { dllp_limits: true, ..self },
            "lost-requests" => Self { lost_requests: true, ..self },
            "table-typos" => Self { table_typos: true, ..self },
            "short-frames" => Self { short_frames: true, ..self },
            "framed-flits" => Self { framed_flits: true, ..self },
            "one-skip" => Self { one_skip: true, ..self },
            "loose-cuts" => Self { loose_cuts: true, ..self },
            "both-ways" => Self { both_ways: true, ..self },
            _ => return None,
        })
    }

    /// True if the link has flits, as far as these mistakes know.
    pub(crate) fn flits(self, link: &Link) -> bool {
        link.is_flit() && !self.framed_flits
    }

    /// Bytes per second of the link after line coding, each way, ordered sets and flits' own bytes not yet taken off.
    pub(crate) fn raw(self, link: &Link) -> f64 {
        let coding = if link.is_flit() && self.framed_flits { 242.0 / 256.0 } else { 1.0 };
        link.symbol_rate() * f64::from(link.width.lanes()) * coding
    }

    /// Part of the time that ordered sets take.
    pub(crate) fn skips(self, link: &Link) -> f64 {
        if self.one_skip { 4.0 / 1538.0 } else { 1.0 - link.ordered_sets.rest() }
    }

    /// Symbol times between two Acks and between two UpdateFCs.
    pub(crate) fn dllp_limits(self, link: &Link, mps: Mps) -> [f64; 2] {
        let limit = ack_latency_symbols(link.generation, link.width, mps);
        let wide = self.table_typos && Some(link.width) == Width::new(32);
        match (link.generation, mps.bytes()) {
            (Generation::Gen1, 2048) if wide => [limit, 248.0],
            (Generation::Gen2, 4096) if wide => [237.0, limit],
            _ => [limit, limit],
        }
    }

    /// Bytes of the link in a symbol time.
    pub(crate) fn symbol_bytes(self, link: &Link) -> f64 {
        if self.dllp_limits { 1.0 } else { f64::from(link.width.lanes()) }
    }
}
