//! The capacity of a link: bytes per second after line coding and ordered sets, and the cost of a packet in them.

use tlplab_units::{Generation, LinkMode, Width, link::Encoding};

/// SKP ordered sets: `length` symbols in every `interval` symbols of a lane carry no packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderedSets {
    /// Symbols of an ordered set.
    pub length: f64,
    /// Symbols from one to the next.
    pub interval: f64,
}

impl OrderedSets {
    /// None.
    pub const NONE: Self = Self { length: 0.0, interval: 1.0 };

    /// One block of 16 symbols in 376 blocks (128b/130b), 4 symbols in 1538 (8b/10b): PCIe 5.0 §4.2.7.3. None at 64 GT/s and above.
    pub fn standard(generation: Generation) -> Self {
        match generation.encoding() {
            Encoding::B8b10b => Self { length: 4.0, interval: 1538.0 },
            Encoding::B128b130b => Self { length: 1.0, interval: 376.0 },
            Encoding::B1b1b => Self::NONE,
        }
    }

    /// Part of the time that carries packets.
    pub fn rest(self) -> f64 {
        1.0 - self.length / self.interval
    }
}

/// One link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Data rate.
    pub generation: Generation,
    /// Lanes.
    pub width: Width,
    /// Framed packets or flits.
    pub mode: LinkMode,
    /// Ordered sets.
    pub ordered_sets: OrderedSets,
}

/// Framing, sequence number and LCRC of a TLP outside flits: PCIe 5.0 §3.6.2.2, §4.2.1.2, §4.2.2.3 (STP 1, sequence 2, LCRC 4, END 1 at 2.5
/// and 5 GT/s; a token of 4 that contains the sequence number, and LCRC 4, from 8 GT/s on).
pub const FRAMING: f64 = 8.0;
/// A DLLP outside flits: SDP 1 or 2, 6 or 4 of content and CRC, END 1 or none; 8 in all.
pub const DLLP: f64 = 8.0;
/// A completion's header, always three doublewords.
pub const COMPLETION_HEADER: f64 = 12.0;
/// TLP bytes of a flit and all of its bytes (PCIe 6.0 §4.2.3.3).
pub const FLIT: (f64, f64) = (236.0, 256.0);

impl Link {
    /// A link with the specification's ordered sets; flit mode where the generation requires it.
    pub fn new(generation: Generation, width: Width) -> Self {
        let mode = if generation.requires_flit_mode() { LinkMode::Flit } else { LinkMode::NonFlit };
        Self { generation, width, mode, ordered_sets: OrderedSets::standard(generation) }
    }

    /// Bytes per second of one lane after line coding.
    pub fn symbol_rate(&self) -> f64 {
        let coding = match self.generation.encoding() {
            Encoding::B8b10b => 8.0 / 10.0,
            Encoding::B128b130b => 128.0 / 130.0,
            Encoding::B1b1b => 1.0,
        };
        f64::from(self.generation.mega_transfers()) * 1e6 * coding / 8.0
    }

    /// Bytes per second for packets (in flit mode: for TLPs), each way.
    pub fn capacity(&self) -> f64 {
        let flit = if self.is_flit() { FLIT.0 / FLIT.1 } else { 1.0 };
        self.symbol_rate() * f64::from(self.width.lanes()) * self.ordered_sets.rest() * flit
    }

    /// The cost of a TLP of `header` and `payload` bytes. A payload costs whole doublewords.
    pub fn tlp(&self, header: f64, payload: f64) -> f64 {
        let framing = if self.is_flit() { 0.0 } else { FRAMING };
        header + (payload / 4.0).ceil() * 4.0 + framing
    }

    /// The cost of a DLLP: nothing in flits, which have a place for one.
    pub fn dllp(&self) -> f64 {
        if self.is_flit() { 0.0 } else { DLLP }
    }

    /// True if it is in flit mode.
    pub fn is_flit(&self) -> bool {
        self.mode == LinkMode::Flit
    }
}
