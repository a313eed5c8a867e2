//! The counters at 4000h. A read clears; byte counters are 64 bits wide, and reading their high half clears both. Others stay at their largest
//! value.

use crate::network::FrameCounts;

const FIRST: u32 = 0x4000;
const END: u32 = 0x4128;
const WORDS: usize = ((END - FIRST) / 4) as usize;

/// Frames lost for want of room.
pub const MISSED: u32 = 0x4010;
/// Received frames of up to 64 bytes with their check sequence; five more counters for larger ones follow.
pub const RECEIVED_64: u32 = 0x405C;
/// Good frames received.
pub const GOOD_RECEIVED: u32 = 0x4074;
/// Broadcasts received.
pub const BROADCASTS_RECEIVED: u32 = 0x4078;
/// Multicasts received.
pub const MULTICASTS_RECEIVED: u32 = 0x407C;
/// Good frames sent.
pub const GOOD_SENT: u32 = 0x4080;
/// Bytes in good frames received, 64 bits.
pub const GOOD_BYTES_RECEIVED: u32 = 0x4088;
/// Bytes in good frames sent, 64 bits.
pub const GOOD_BYTES_SENT: u32 = 0x4090;
/// Frames that came while no descriptor was there.
pub const NO_DESCRIPTOR: u32 = 0x40A0;
/// Frames that were too long.
pub const OVERSIZE: u32 = 0x40AC;
/// Bytes received in all, 64 bits.
pub const BYTES_RECEIVED: u32 = 0x40C0;
/// Bytes sent in all, 64 bits.
pub const BYTES_SENT: u32 = 0x40C8;
/// Frames received in all.
pub const RECEIVED: u32 = 0x40D0;
/// Frames sent in all.
pub const SENT: u32 = 0x40D4;
/// Sent frames of up to 64 bytes; five more counters follow.
pub const SENT_64: u32 = 0x40D8;
/// Multicasts sent.
pub const MULTICASTS_SENT: u32 = 0x40F0;
/// Broadcasts sent.
pub const BROADCASTS_SENT: u32 = 0x40F4;
/// Segmentation contexts used.
pub const SEGMENTATIONS: u32 = 0x40F8;
/// Interrupts.
pub const INTERRUPTS: u32 = 0x4100;

/// Low halves of the 64-bit counters.
const WIDE: [u32; 4] = [GOOD_BYTES_RECEIVED, GOOD_BYTES_SENT, BYTES_RECEIVED, BYTES_SENT];

#[derive(Clone, Debug)]
pub(super) struct Statistics {
    words: Box<[u32; WORDS]>,
    /// Neither a read nor a reset clears these: they are for results.
    frames: FrameCounts,
}

impl Statistics {
    pub(super) fn new() -> Self {
        Self { words: Box::new([0; WORDS]), frames: FrameCounts::default() }
    }
    /// As after a reset.
    pub(super) fn cleared(&self) -> Self {
        Self { frames: self.frames, ..Self::new() }
    }
    pub(super) fn frames(&self) -> FrameCounts {
        self.frames
    }
    pub(super) fn has(at: u32) -> bool {
        (FIRST..END).contains(&at)
    }

    /// One more.
    pub(super) fn count(&mut self, at: u32) {
        match at {
            MISSED => self.frames.missed += 1,
            OVERSIZE => self.frames.too_long += 1,
            _ => {}
        }
        let counter = self.word(at);
        *counter = counter.saturating_add(1);
    }
    /// So many bytes more.
    fn add(&mut self, at: u32, bytes: u64) {
        let sum = (u64::from(*self.word(at + 4)) << 32 | u64::from(*self.word(at))).saturating_add(bytes);
        *self.word(at) = sum as u32;
        *self.word(at + 4) = (sum >> 32) as u32;
    }

    /// A good frame of so many bytes with its check sequence; its destination where bytes are known.
    pub(super) fn received(&mut self, bytes: u64, destination: Option<[u8; 6]>) {
        self.frames.received += 1;
        self.frame(bytes, [GOOD_RECEIVED, RECEIVED, RECEIVED_64], [GOOD_BYTES_RECEIVED, BYTES_RECEIVED]);
        match destination {
            Some([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) => self.count(BROADCASTS_RECEIVED),
            Some([first, ..]) if first & 1 != 0 => self.count(MULTICASTS_RECEIVED),
            _ => {}
        }
    }
    /// A frame was sent.
    pub(super) fn sent(&mut self, bytes: u64, destination: Option<[u8; 6]>) {
        self.frames.sent += 1;
        self.frame(bytes, [GOOD_SENT, SENT, SENT_64], [GOOD_BYTES_SENT, BYTES_SENT]);
        match destination {
            Some([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) => self.count(BROADCASTS_SENT),
            Some([first, ..]) if first & 1 != 0 => self.count(MULTICASTS_SENT),
            _ => {}
        }
    }
    fn frame(&mut self, bytes: u64, [good, all, sizes]: [u32; 3], sums: [u32; 2]) {
        let class = [64, 127, 255, 511, 1023].iter().filter(|most| bytes > **most).count();
        for at in [good, all, sizes + 4 * class as u32] {
            self.count(at);
        }
        sums.into_iter().for_each(|at| self.add(at, bytes));
    }

    /// A read by software.
    pub(super) fn read(&mut self, at: u32) -> u32 {
        if WIDE.contains(&at) {
            return *self.word(at);
        }
        if WIDE.contains(&(at - 4)) {
            *self.word(at - 4) = 0;
        }
        std::mem::take(self.word(at))
    }

    fn word(&mut self, at: u32) -> &mut u32 {
        &mut self.words[(at - FIRST) as usize / 4]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_clear() {
        let mut statistics = Statistics::new();
        let group = Some([1, 0, 0, 0, 0, 0]);
        for (bytes, destination) in [(64, None), (65, group), (1518, Some([0xFF; 6])), (9000, Some([2; 6]))] {
            statistics.received(bytes, destination);
        }
        statistics.add(BYTES_RECEIVED, u64::from(u32::MAX));
        let counters = [RECEIVED_64, RECEIVED_64 + 4, RECEIVED_64 + 20, RECEIVED, BROADCASTS_RECEIVED];
        assert_eq!(counters.map(|at| statistics.read(at)), [1, 1, 2, 4, 1]);
        assert_eq!(counters.map(|at| statistics.read(at)), [0; 5]);
        let sum = 64 + 65 + 1518 + 9000;
        assert_eq!([0, 0, 4, 0].map(|half| statistics.read(GOOD_BYTES_RECEIVED + half)), [sum, sum, 0, 0]);
        assert_eq!([0, 4].map(|half| statistics.read(BYTES_RECEIVED + half)), [sum - 1, 1]);
    }
}
