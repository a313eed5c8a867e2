//! The other side of a NIC: frames on a cable.
//!
//! A frame is a [`Payload`] from its destination address to the last byte of its data, without the check sequence; in a length-only run only its
//! length. The line carries preamble, check sequence and gap as well.

use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};

/// Least bytes of a frame without its check sequence.
pub const LEAST: u64 = 60;
/// Bytes of the check sequence.
pub const FCS: u64 = 4;
/// Preamble, start delimiter and the gap behind a frame, in byte times.
const BETWEEN: u64 = 8 + 12;
/// EtherType of a VLAN tag (IEEE 802.1Q).
pub const VLAN: u16 = 0x8100;
/// EtherType of the generated frames: for local experiments (IEEE 802, clause 9.2.4).
const EXPERIMENT: u16 = 0x88B5;

/// The other end of the NIC's cable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cable {
    /// Nothing: the link stays down.
    Unplugged,
    /// A partner that takes every frame and sends none.
    #[default]
    Sink,
    /// A plug that leads what is sent back.
    LoopBack,
    /// A partner that sends frames from when the receiver is first enabled on, and takes every frame.
    Source(Traffic),
}

/// Frames from a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of a frame, without its check sequence. Less than 60 are padded.
    pub bytes: u32,
    /// Bits of frames per second; `None` for as many as the line carries.
    pub rate: Option<u64>,
    /// Frames in all; `None` for no end.
    pub count: Option<u64>,
}

impl Traffic {
    /// The arrival of frame `number` (from 0) on a line of this speed, after the first frame's start.
    pub(crate) fn arrival(&self, number: u64, speed: Speed) -> Duration {
        let bytes = u64::from(self.bytes).max(LEAST);
        let line = speed.frame(bytes);
        let between = match self.rate {
            Some(rate) => {
                let fs = u128::from(number) * u128::from(8 * bytes) * 1_000_000_000_000_000;
                let paced = u64::try_from(fs / u128::from(rate.max(1))).unwrap_or(u64::MAX / 2);
                Duration::from_fs(paced.max(number * line.as_fs()))
            }
            None => Duration::from_fs(number * line.as_fs()),
        };
        between + line
    }

    /// Frame `number`, to `destination`: its number in big-endian order, then a pattern.
    pub(crate) fn frame(&self, number: u64, destination: [u8; 6], length_only: bool) -> Payload {
        let bytes = u64::from(self.bytes).max(LEAST);
        if length_only {
            return Payload::Length(bytes);
        }
        let mut frame = Vec::with_capacity(bytes as usize);
        frame.extend(destination);
        frame.extend([0x02, 0, 0, 0, 0, 1]);
        frame.extend(EXPERIMENT.to_be_bytes());
        frame.extend(number.to_be_bytes());
        frame.extend((frame.len()..bytes as usize).map(|at| (at as u64 + number) as u8));
        frame.into()
    }
}

/// The speed of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Bits per second, each way.
    bps: u64,
}

impl Speed {
    /// 1 Gb/s.
    pub const GIGABIT: Self = Self { bps: 1_000_000_000 };
    /// 10 Gb/s.
    pub const TEN_GIGABIT: Self = Self { bps: 10_000_000_000 };

    /// So many bits per second, one at least.
    pub fn from_bps(bps: u64) -> Self {
        Self { bps: bps.max(1) }
    }

    /// The time of a frame of this many bytes on the line, with its check sequence, preamble and gap.
    pub fn frame(self, bytes: u64) -> Duration {
        let bits = 8 * (bytes.max(LEAST) + FCS + BETWEEN);
        let fs = u128::from(bits) * 1_000_000_000_000_000 / u128::from(self.bps);
        Duration::from_fs(u64::try_from(fs).unwrap_or(u64::MAX / 2))
    }
}

/// The transmitting half of the line: one frame after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    speed: Speed,
    free: Time,
}

impl Line {
    pub(super) fn new(speed: Speed) -> Self {
        Self { speed, free: Time::ZERO }
    }

    /// A frame of so many bytes is ready: the time when it has left.
    pub(super) fn send(&mut self, now: Time, bytes: u64) -> Time {
        self.free = self.free.max(now) + self.speed.frame(bytes);
        self.free
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.free = self.free.earlier(by);
    }
}

/// The EtherType of a frame, and its VLAN tag where it has one of the type `vet`.
pub(super) fn kind(frame: &[u8], vet: u16) -> Option<(u16, Option<u16>)> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let first = word(12)?;
    if first == vet { Some((word(16)?, Some(word(14)?))) } else { Some((first, None)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gigabit_ethernet_carries_1488095_shortest_frames() {
        // 1 488 095 frames of 64 B and 81 274 of 1518 B per second: the well-known figures of gigabit Ethernet.
        assert_eq!(1_000_000_000 / Speed::GIGABIT.frame(60).as_ns(), 1_488_095);
        assert_eq!(1_000_000_000 / Speed::GIGABIT.frame(1514).as_ns(), 81_274);
        let mut line = Line::new(Speed::GIGABIT);
        let now = Time::ZERO + Duration::from_us(1);
        assert_eq!(line.send(now, 60), now + Duration::from_ns(672));
        assert_eq!(line.send(now, 14), now + Duration::from_ns(2 * 672));
    }

    #[test]
    fn traffic_keeps_its_rate() {
        let traffic = Traffic { bytes: 1000, rate: Some(100_000_000), count: None };
        assert_eq!(
            traffic.arrival(1000, Speed::GIGABIT) - traffic.arrival(0, Speed::GIGABIT),
            Duration::from_ms(80)
        );
        let fast = Traffic { rate: Some(10_000_000_000), ..traffic };
        assert_eq!(
            fast.arrival(10, Speed::GIGABIT),
            Traffic { rate: None, ..traffic }.arrival(10, Speed::GIGABIT)
        );
        let frame = traffic.frame(258, [1, 2, 3, 4, 5, 6], false);
        let bytes = frame.bytes().unwrap();
        assert_eq!((bytes.len(), &bytes[14..24]), (1000, &[0, 0, 0, 0, 0, 0, 1, 2, 24, 25][..]));
        assert_eq!(kind(bytes, VLAN), Some((0x88B5, None)));
        assert_eq!(traffic.frame(258, [0; 6], true), Payload::Length(1000));
    }
}
