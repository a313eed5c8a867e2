//! The Ethernet link between card and software, and the software's processors.

use crate::network::Direction;
use tlplab_units::{Duration, LinkRate, Time};
use tlplab_wire::nettlp::ETHERNET_OVERHEAD;

/// One direction of the link: a wire, and the buffer before it.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    rate: LinkRate,
    /// The time of a full buffer on the wire.
    room: Duration,
    free_at: Time,
    pub(super) count: Direction,
}

impl Wire {
    pub(super) fn new(bits_per_second: u64, buffer: u64) -> Self {
        let rate = LinkRate::of_bits_per_second(bits_per_second);
        Self { rate, room: rate.time_of(buffer), free_at: Time::ZERO, count: Direction::default() }
    }

    /// The arrival of the last bit of a TLP of `tlp` bytes, `data` of them payload, that wants to leave now; `None` if the buffer has no room
    /// for it.
    pub(super) fn send(&mut self, now: Time, tlp: u64, data: u64, counts: bool) -> Option<Time> {
        let time = self.rate.time_of(tlp + ETHERNET_OVERHEAD);
        let admitted = self.room_at(now, tlp) <= now;
        if counts {
            self.count.datagrams += u64::from(admitted);
            self.count.data += if admitted { data } else { 0 };
            self.count.busy += if admitted { time } else { Duration::ZERO };
            self.count.dropped += u64::from(!admitted);
            self.count.dropped_data += if admitted { 0 } else { data };
        }
        admitted.then(|| {
            self.free_at = self.free_at.max(now) + time;
            self.free_at
        })
    }

    /// The time at which the buffer has room for a TLP of `tlp` bytes. An idle wire takes any.
    pub(super) fn room_at(&self, now: Time, tlp: u64) -> Time {
        let wanted = self.rate.time_of(tlp + ETHERNET_OVERHEAD);
        let excess = (self.free_at.saturating_since(now) + wanted).saturating_sub(self.room.max(wanted));
        now + excess
    }
}

/// The processors that the software runs on.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    free_at: Vec<Time>,
    next: usize,
    /// Time they worked, together.
    pub(super) busy: Duration,
}

impl Cores {
    pub(super) fn new(count: u16) -> Self {
        Self { free_at: vec![Time::ZERO; usize::from(count.max(1))], next: 0, busy: Duration::ZERO }
    }

    /// One after the other, as tags go to ports and ports to processors.
    pub(super) fn pick(&mut self) -> usize {
        self.next = (self.next + 1) % self.free_at.len();
        self.next
    }

    /// A core works for so long; when it is done.
    pub(super) fn work(&mut self, now: Time, core: usize, takes: Duration, counts: bool) -> Time {
        let done = self.free_at[core].max(now) + takes;
        self.free_at[core] = done;
        self.busy += if counts { takes } else { Duration::ZERO };
        done
    }

    /// Work that waits for a core.
    pub(super) fn backlog(&self, now: Time, core: usize) -> Duration {
        self.free_at[core].saturating_since(now)
    }

    /// A core waits, too.
    pub(super) fn block(&mut self, core: usize, until: Time) {
        self.free_at[core] = self.free_at[core].max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_of_256_bytes_carries_7_53_gigabits_per_second() {
        let mut wire = Wire::new(10_000_000_000, 1 << 20);
        let mut end = Time::ZERO;
        for _ in 0..1000 {
            end = wire.send(end, 12 + 256, 256, true).unwrap();
        }
        let goodput = wire.count.data as f64 * 8.0 / (end.as_fs() as f64 / 1e15);
        assert!((goodput / 7.5294e9 - 1.0).abs() < 1e-4, "{goodput}");
        assert_eq!(wire.count.busy, end - Time::ZERO);
    }

    #[test]
    fn only_an_idle_wire_takes_a_frame_beyond_the_buffer() {
        let mut wire = Wire::new(8_000_000_000, 1000); // a byte takes 1 ns
        assert_eq!(wire.send(Time::ZERO, 4096, 4084, true), Some(Time::from_fs(4_168_000_000)));
        assert_eq!(wire.send(Time::ZERO, 268, 256, true), None);
        assert_eq!(wire.room_at(Time::ZERO, 268), Time::from_fs((4168 + 340 - 1000) * 1_000_000));
        assert_eq!((wire.count.datagrams, wire.count.dropped, wire.count.dropped_data), (1, 1, 256));
        let room = wire.room_at(Time::ZERO, 268);
        assert_eq!(wire.send(room, 268, 256, true), Some(Time::from_fs((4168 + 340) * 1_000_000)));
    }
}
