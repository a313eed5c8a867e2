//! The throughput of a data path inside a chip for TLPs whose headers travel inline, before their data.

/// A path of so many bits that moves one word in each cycle.
///
/// ```
/// use tlplab_analytic::DataPath;
/// // The 64-bit interface of Virtex-5 and Virtex-6: 34 beats for 256 B behind a header of 12 B.
/// let trn = DataPath { bits: 64, clock: 250e6 };
/// assert_eq!(format!("{:.3} GB/s", trn.beats(256, 12) / 8e9), "1.882 GB/s");
/// // A path of 256 bits with headers of 16 B: 94.1 % of its width if TLPs follow without a gap, 88.9 % if each begins a word.
/// let wide = DataPath { bits: 256, clock: 200e6 };
/// assert_eq!(format!("{:.1} %", wide.packed(256, 16) / wide.width() * 100.0), "94.1 %");
/// assert_eq!(format!("{:.1} %", wide.beats(256, 16) / wide.width() * 100.0), "88.9 %");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataPath {
    /// Bits of a word.
    pub bits: u32,
    /// Words per second.
    pub clock: f64,
}

impl DataPath {
    /// Bits per second with nothing but data.
    pub fn width(&self) -> f64 {
        f64::from(self.bits) * self.clock
    }

    /// Data in bits per second, if each TLP of `payload` bytes behind `header` bytes begins with a word of its own.
    pub fn beats(&self, payload: u64, header: u64) -> f64 {
        let words = (8 * (payload + header)).div_ceil(u64::from(self.bits));
        self.clock * 8.0 * payload as f64 / words as f64
    }

    /// The same, if a TLP may begin in the middle of a word.
    pub fn packed(&self, payload: u64, header: u64) -> f64 {
        self.width() * payload as f64 / (payload + header) as f64
    }
}
