//! Ethernet: how often frames come at line rate.

use crate::compat::Mistakes;

/// Preamble and start of frame, before each frame, in bytes (IEEE 802.3 §3.1).
pub const PREAMBLE: f64 = 8.0;
/// Least distance between frames, in bytes (§4.4.2).
pub const GAP: f64 = 12.0;
/// Frame check sequence, the last bytes of a frame; NICs do not transfer it.
pub const FCS: u64 = 4;
/// Shortest frame, check sequence included.
pub const SHORTEST: u64 = 64;

/// Frames per second, of `frame` bytes with the check sequence, on a link of `rate` bits per second. Shorter ones are padded.
pub fn frames(rate: f64, frame: u64, mistakes: Mistakes) -> f64 {
    rate / (8.0 * (PREAMBLE + on_the_wire(frame, mistakes) as f64 + GAP))
}

/// Bits per second of what a NIC transfers at line rate: frames without their check sequence.
pub fn transferred(rate: f64, frame: u64, mistakes: Mistakes) -> f64 {
    frames(rate, frame, mistakes) * packet(frame) as f64 * 8.0
}

/// The bytes of a frame that a NIC transfers.
pub fn packet(frame: u64) -> u64 {
    frame.saturating_sub(FCS).max(1)
}

fn on_the_wire(frame: u64, mistakes: Mistakes) -> u64 {
    let frame = if mistakes.short_frames { packet(frame) } else { frame };
    frame.max(SHORTEST)
}
