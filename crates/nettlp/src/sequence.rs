//! Sequence numbers of datagrams: what is missing, what came twice, what came late.
//!
//! An adapter has one count for all that it sends to a device, and so has a device for all that its lanes send ([`Numbering`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use tlplab_wire::nettlp::Header;

/// Headers that are remembered, to recognise duplicates: the last 65536 of one count. At the highest rate that an adapter lets in that is longer
/// than a tag rests.
const REMEMBERED: usize = 1 << 16;
/// So many headers with the same low bits of their number are. An adapter has one count, and may begin anew; of lanes that count by themselves, sixteen
/// of them in step, there are the last 4096 of each.
const OF_ADAPTER: usize = 2;
const OF_DEVICE: usize = 16;

/// Numbers further apart than this may be of several counts: the sender began anew, or programs with one address count by themselves.
const FAR: u16 = 4096;
/// Numbers up to this may be the first that is heard of a sender that begins anew: it begins with 1.
const FRESH: u16 = 64;
/// A stamp that is behind the latest by less than this is of the same program: a second.
const SAME_PROGRAM: u32 = (1_000_000_000_000_000 / Header::TICK.as_fs()) as u32;
/// No program counts as far as a number of 16 bits can tell in less: ten milliseconds.
const ROUND: u32 = SAME_PROGRAM / 100;
/// The distance that a lane covers before it tells the others. A fraction of the range of a 16-bit number.
const TOLD: u64 = 4096;
/// The first position, so that there is room before it.
const BEGIN: u64 = 1 << 16;

/// A header's information about its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The sender does not count: sequence number and time stamp are 0, as the published library has them.
    Uncounted,
    /// Above all before it.
    New,
    /// Below one that came before, and not seen yet.
    Late,
    /// Sequence number and time stamp were seen before.
    Duplicate,
}

/// The state that the lanes of a device share: the number of the datagram that any of them sent last, and how far any of them has heard the
/// adapter count. A clone counts by itself from there on.
#[derive(Debug, Default)]
pub(crate) struct Numbering(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    sent: AtomicU16,
    /// A position; 0 before the first.
    heard: AtomicU64,
}

impl Clone for Numbering {
    fn clone(&self) -> Self {
        let sent = AtomicU16::new(self.0.sent.load(Ordering::Relaxed));
        let heard = AtomicU64::new(self.0.heard.load(Ordering::Relaxed));
        Self(Arc::new(Numbers { sent, heard }))
    }
}

impl Numbering {
    /// The same count, for another lane.
    pub(crate) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// The number of the next datagram that is sent: 1 is the first.
    pub(crate) fn next(&self) -> u16 {
        self.0.sent.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// The position of a number that was heard, next to the highest of which somebody has told.
    fn position(&self, highest: Option<u64>, number: u16) -> u64 {
        let told = self.0.heard.load(Ordering::Relaxed);
        let near = match told.max(highest.unwrap_or(0)) {
            0 => {
                let first = BEGIN + u64::from(number);
                match self.0.heard.compare_exchange(0, first, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return first,
                    Err(told) => told,
                }
            }
            near => near,
        };
        let position = near.saturating_add_signed(i64::from(number.wrapping_sub(near as u16) as i16));
        if position >= told + TOLD {
            self.0.heard.fetch_max(position, Ordering::Relaxed);
        }
        position
    }
}

/// The headers that came lately. Those of numbers that follow each other lie side by side.
#[derive(Clone, Debug)]
struct Recent<const WAYS: usize> {
    /// Headers, each with the port that it came to (no port belongs to two lanes); zero is none. As long as nothing is written there, it
    /// takes no memory.
    headers: Vec<u64>,
    /// In each set, the oldest.
    oldest: Vec<u8>,
}

impl<const WAYS: usize> Default for Recent<WAYS> {
    fn default() -> Self {
        Self { headers: vec![0; REMEMBERED], oldest: vec![0; REMEMBERED / WAYS] }
    }
}

impl<const WAYS: usize> Recent<WAYS> {
    /// True if it was there already.
    fn remember(&mut self, port: u16, header: Header) -> bool {
        let number = usize::from(header.sequence) % self.oldest.len();
        let entry = u64::from(port) << 48 | u64::from(header.sequence) << 32 | u64::from(header.timestamp);
        let set = &mut self.headers[number * WAYS..][..WAYS];
        if set.contains(&entry) {
            return true;
        }
        let oldest = &mut self.oldest[number];
        set[usize::from(*oldest)] = entry;
        *oldest = (*oldest + 1) % WAYS as u8;
        false
    }
}

/// Datagrams received by one lane of a device from its adapter.
#[derive(Clone, Debug, Default)]
pub(crate) struct FromAdapter {
    recent: Recent<OF_ADAPTER>,
    pub(crate) numbering: Numbering,
    pub(crate) seen: Option<Seen>,
}

impl FromAdapter {
    /// Notes the header of a datagram that came to `port`.
    pub(crate) fn note(&mut self, port: u16, header: Header) -> Arrival {
        if header == Header::default() {
            return Arrival::Uncounted;
        }
        if self.recent.remember(port, header) {
            return Arrival::Duplicate;
        }
        let highest = self.seen.map(|seen| seen.end - 1);
        let position = self.numbering.position(highest, header.sequence);
        let one = Seen { first: position, end: position + 1, distinct: 1 };
        self.seen = Some(self.seen.map_or(one, |seen| seen.join(one)));
        if highest.is_none_or(|highest| position > highest) { Arrival::New } else { Arrival::Late }
    }
}

/// The received numbers of an adapter's count: of a lane, or of several together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The place of the first of them in the count, which goes on where the number on the wire begins at 0 again.
    first: u64,
    /// One behind the highest.
    end: u64,
    /// Datagrams that carried them.
    distinct: u64,
}

impl Seen {
    /// The datagrams seen by two lanes of one device together.
    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            end: self.end.max(other.end),
            distinct: self.distinct + other.distinct,
        }
    }

    /// Numbers that did not come.
    pub(crate) fn lost(self) -> u64 {
        (self.end - self.first).saturating_sub(self.distinct)
    }
}

/// Datagrams received by an adapter from a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct FromDevice {
    recent: Recent<OF_DEVICE>,
    /// The highest number.
    highest: Option<u16>,
    /// The last of the first numbers that was heard out of turn.
    fresh: Option<Fresh>,
    /// The latest time stamp. A lane that had to wait between its look at the clock and its numbers stamps high numbers early.
    latest: u32,
    /// Numbers from the first to the highest of each beginning, all included.
    span: u64,
    /// From the first number of this beginning to the highest.
    extent: u64,
    distinct: u64,
    /// Numbers that were passed over at once by more than [`FAR`]: lost, if there is but one count.
    leapt: u64,
    /// It was seen that there are several.
    several: bool,
}

/// First numbers that were heard out of turn.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    last: u16,
    /// Nothing was heard for longer before them than a count needs to begin a round.
    paused: bool,
}

impl FromDevice {
    /// Numbers that did not come. Of programs that count by themselves though they have one address it is not known what is missing.
    pub(crate) fn lost(&self) -> u64 {
        let leapt = if self.several { 0 } else { self.leapt };
        (self.span + leapt).saturating_sub(self.distinct)
    }

    /// Notes the header of a datagram that came to `port`.
    pub(crate) fn note(&mut self, port: u16, header: Header) -> Arrival {
        if header == Header::default() {
            return Arrival::Uncounted;
        }
        if self.recent.remember(port, header) {
            return Arrival::Duplicate;
        }
        self.distinct += 1;
        let highest = self.highest.unwrap_or(header.sequence.wrapping_sub(1));
        let ahead = header.sequence.wrapping_sub(highest) as i16;
        let far = ahead.unsigned_abs() > FAR;
        // The same program has sent it before: a lane that waited in between, by a round of the numbers perhaps.
        let behind = self.latest.wrapping_sub(header.timestamp);
        let older = self.highest.is_some() && behind < SAME_PROGRAM;
        let paused = !older && behind.wrapping_neg() >= ROUND;
        if !older {
            self.latest = header.timestamp;
        }
        // Of the first numbers it is not known whether they begin a round, or are of a program that begins anew, or of another that has
        // little to say: what follows them tells.
        let first = self.highest.is_none();
        let before = self.fresh.filter(|fresh| header.sequence.wrapping_sub(fresh.last) <= FRESH);
        if !first && header.sequence <= FRESH && !(1..=FRESH as i16).contains(&ahead) {
            if !far {
                self.begin_with(highest, header.sequence);
            }
            let paused = paused || before.is_some_and(|before| before.paused);
            self.fresh = Some(Fresh { last: header.sequence, paused });
            return Arrival::Late;
        }
        let follows = before.is_some_and(|before| far || before.paused && ahead as u16 > FRESH);
        let begins = first || follows || far && highest <= FRESH;
        let gap = match ahead {
            ..=0 if !far => {
                self.begin_with(highest, header.sequence);
                return Arrival::Late;
            }
            ..=0 if older => return Arrival::Late,
            1.. if older && (far || behind >= ROUND) => return Arrival::Late,
            _ if begins => 0,
            ..=0 => {
                self.several = true;
                0
            }
            1.. if far => {
                self.leapt += ahead as u64 - 1;
                0
            }
            1.. => ahead as u64 - 1,
        };
        if begins {
            self.fresh = None;
        }
        self.span += 1 + gap;
        self.extent = match (first, begins) {
            (true, _) => 0,
            (false, true) => header.sequence.into(),
            (false, false) => self.extent + u64::from(ahead.unsigned_abs()),
        };
        self.highest = Some(header.sequence);
        Arrival::New
    }

    /// The first number that was heard need not be the first that was sent.
    fn begin_with(&mut self, highest: u16, number: u16) {
        let back = u64::from(highest.saturating_sub(number));
        if back > self.extent {
            self.span += back - self.extent;
            self.extent = back;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u32) -> Header {
        Header { sequence: sequence as u16, timestamp: 1000 + 700 * sequence }
    }

    /// One lane alone, and sixteen in step that count by themselves, each with the same numbers and time stamps.
    #[test]
    fn copies_are_recognised_however_late() {
        for (lanes, behind) in [(1, 1), (1, 1000), (1, 60_000), (2, 1000), (16, 4000)] {
            let mut sequence = FromDevice::default();
            for number in 0..100_000 {
                for lane in 0..lanes {
                    assert_ne!(sequence.note(0x3000 + lane, header(number)), Arrival::Duplicate);
                    if let Some(earlier) = number.checked_sub(behind) {
                        assert_eq!(sequence.note(0x3000 + lane, header(earlier)), Arrival::Duplicate);
                    }
                }
            }
        }
    }

    #[test]
    fn copies_of_an_adapter_are_recognised_however_late() {
        let mut sequence = FromAdapter::default();
        for number in 0..200_000u32 {
            assert_ne!(sequence.note(0x3000, header(number)), Arrival::Duplicate);
            if let Some(earlier) = number.checked_sub(60_000) {
                assert_eq!(sequence.note(0x3000, header(earlier)), Arrival::Duplicate);
            }
        }
    }

    #[test]
    fn a_device_that_begins_anew_has_lost_nothing() {
        for restart in [10, 5000, 20_000, 50_000, 60_000, 62_000, 65_400] {
            let mut sequence = FromDevice::default();
            (1..=restart).for_each(|number| _ = sequence.note(0x3000, header(number)));
            let again = |number: u32| {
                let timestamp = header(restart).timestamp + 200_000_000 + number;
                Header { timestamp, ..header(number) }
            };
            (1..=20_000).for_each(|number| _ = sequence.note(0x3000, again(number)));
            assert_eq!(sequence.lost(), 0, "after {restart}");
        }
        let mut sequence = FromDevice::default();
        (1..=90_000).filter(|n| n % 100 != 7).for_each(|number| _ = sequence.note(0x3000, header(number)));
        assert_eq!(sequence.lost(), 900);
    }

    /// A socket that is full for a while loses thousands in a row; lanes of one count are heard in any order.
    #[test]
    fn losses_of_thousands_in_a_row_are_counted() {
        let lost = |number: &u32| (20_000..45_000).contains(number) || number % 1000 == 7;
        // One lane is late always, and very late once.
        let late = |number: u32| match number {
            51_200 => 12_800,
            number if number % 64 == 0 => 640,
            _ => 0,
        };
        let mut came: Vec<u32> = (1..100_000).filter(|number| !lost(number)).collect();
        came.sort_by_key(|number| number + late(*number));
        let mut sequence = FromDevice::default();
        for number in came {
            assert_ne!(sequence.note(0x3000, header(number)), Arrival::Duplicate);
        }
        assert_eq!(sequence.lost(), (1..100_000).filter(lost).count() as u64);
    }

    /// One socket may be read far ahead of another.
    #[test]
    fn datagrams_that_arrive_late_are_not_lost() {
        let mut sequence = FromDevice::default();
        let ahead = (100..6_000).filter(|number| number % 2 == 1);
        (1..100)
            .chain(6_000..9_000)
            .chain(ahead)
            .for_each(|number| _ = sequence.note(0x3000, header(number)));
        assert_eq!(sequence.lost(), 2_950, "every other of 5 900");
    }

    /// A lane that waits between its look at the clock and its numbers is of the same count as the others.
    #[test]
    fn high_numbers_with_an_early_stamp_are_no_other_count() {
        let mut sequence = FromDevice::default();
        let early = |number| Header { timestamp: header(990).timestamp, ..header(number) };
        let sent = (1..1_000).map(header).chain((7_000..7_064).map(early));
        let sent = sent.chain((1_000..7_000).chain(7_064..8_000).chain(18_000..19_000).map(header));
        sent.for_each(|header| _ = sequence.note(0x3000, header));
        assert_eq!(sequence.lost(), 10_000);
    }

    /// Sockets that are full hold more datagrams than 16 bits distinguish, and an adapter reads some of one, then some of the next.
    #[test]
    fn losses_of_full_sockets_are_counted() {
        let busy =
            [(1, 400, 312, 0), (2, 400, 312, 0), (64, 40, 200, 0), (256, 300, 312, 0), (256, 600, 160, 0)];
        // An adapter that does not run for a while finds all sockets full.
        let rests = [(4, 300, 250, 12_000), (4, 300, 250, 30_000), (16, 1000, 250, 20_000)];
        for (sockets, room, ticks, rest) in busy.into_iter().chain(rests) {
            let mut held = vec![std::collections::VecDeque::new(); sockets];
            let (mut sequence, mut reads) = (FromDevice::default(), 0);
            let (mut came, mut first, mut last) = (0u64, u32::MAX, 0);
            let mut hear = |held: &mut Vec<std::collections::VecDeque<u32>>, socket: usize| {
                for _ in 0..32 {
                    let Some(number) = held[socket].pop_front() else { return };
                    // Some lanes waited for 30 ms between their look at the clock and their numbers.
                    let waited = if number % 4096 < 64 { 4_700_000 } else { 0 };
                    let timestamp = (ticks * number).wrapping_sub(waited);
                    let header = Header { sequence: number as u16, timestamp };
                    assert_ne!(sequence.note(0x3000 + socket as u16, header), Arrival::Duplicate);
                    (came, first, last) = (came + 1, first.min(number), last.max(number));
                }
            };
            for number in 1..700_000u32 {
                // The lanes take turns at their ports, in no order that counts.
                let socket = number.wrapping_mul(0x9E37_79B1) as usize % sockets;
                if held[socket].len() < room {
                    held[socket].push_back(number);
                }
                // Two thirds as fast as they come.
                if number % 48 == 0 && number % 50_000 >= rest {
                    hear(&mut held, reads % sockets);
                    reads += 1;
                }
            }
            (0..sockets).for_each(|socket| (0..room).for_each(|_| hear(&mut held, socket)));
            let lost = u64::from(last - first) + 1 - came;
            assert!(lost > 0, "{sockets} sockets");
            // Of what such a lane sends last it is not known that it was not before.
            let told = sequence.lost();
            assert!(
                (lost - 64..=lost).contains(&told),
                "{told} of {lost}: {sockets} sockets for {room}, {rest} at rest"
            );
        }
    }

    /// Programs with one address that count by themselves prove nothing.
    #[test]
    fn counts_side_by_side_are_no_losses() {
        let mut sequence = FromDevice::default();
        (1..=20_000).for_each(|number| _ = sequence.note(0x3000, header(number)));
        let beside = |sequence: &mut FromDevice, first: u32, higher_first: bool| {
            for number in first..first + 10_000 {
                let stamp = header(20_000 + number).timestamp;
                let mut pair = [(0x3001, number), (0x3000, 20_000 + number)];
                if higher_first {
                    pair.reverse();
                }
                for ((port, number), later) in pair.into_iter().zip([0, 5]) {
                    sequence.note(port, Header { timestamp: stamp + later, ..header(number) });
                }
                // Of one pair alone, and of first numbers, it is not seen that there are two counts.
                assert!(
                    number <= first + u32::from(FRESH) || sequence.lost() == 0,
                    "{} at {number}",
                    sequence.lost()
                );
            }
        };
        beside(&mut sequence, 1, false);
        // An adapter that hears of them when they have been going on for long.
        beside(&mut FromDevice::default(), 7_000, false);
        beside(&mut FromDevice::default(), 7_000, true);
    }

    /// A lane that is heard of rarely, or for the first time after long, knows from the others how far the count is.
    #[test]
    fn lanes_that_rest_lose_nothing() {
        let mut busy = FromAdapter::default();
        let mut rests = FromAdapter { numbering: busy.numbering.share(), ..FromAdapter::default() };
        let mut lost = 0;
        for number in 1..500_000u32 {
            match number {
                number if number % 977 == 5 => lost += 1,
                // For the first time late, then every 65 000 and every 100 000 numbers.
                number if number > 40_000 && (number % 65_000 == 1 || number % 100_000 == 1) => {
                    rests.note(0x3001, header(number));
                }
                number => _ = busy.note(0x3000, header(number)),
            }
        }
        let all = busy.seen.unwrap().join(rests.seen.unwrap());
        assert_eq!(all.lost(), lost);
        // A copy of a lane is of no other's count.
        let apart = busy.numbering.clone();
        assert_eq!((busy.numbering.next(), rests.numbering.next(), apart.next()), (1, 2, 1));
    }

    /// The number, stamp and port tell datagrams apart that 16 lanes share.
    #[test]
    fn headers_differ_in_number_stamp_or_port() {
        let mut sequence = FromDevice::default();
        let one = Header { sequence: 5, timestamp: 1000 };
        assert_eq!(sequence.note(0x3000, one), Arrival::New);
        for (port, other) in [
            (0x3000, Header { sequence: 5 + 4096, ..one }),
            (0x3000, Header { timestamp: 1001, ..one }),
            (0x3001, one),
        ] {
            assert_ne!(sequence.note(port, other), Arrival::Duplicate);
            assert_eq!(sequence.note(port, other), Arrival::Duplicate);
        }
    }

    #[test]
    fn the_first_that_is_heard_need_not_be_the_first() {
        // Of an adapter, and its number wraps: 65530 to 5.
        let mut adapter = FromAdapter::default();
        assert_eq!(adapter.note(0x3000, header(65_541)), Arrival::New);
        assert_eq!(adapter.note(0x3000, header(65_530)), Arrival::Late);
        assert_eq!(adapter.seen.unwrap().lost(), 10);
        // The same number with another stamp is not above it.
        assert_eq!(adapter.note(0x3000, Header { timestamp: 1, ..header(65_541) }), Arrival::Late);
        // Of a device: one of the first numbers, and any other.
        for (first, late, lost) in [(100, 5, 94), (1000, 900, 99)] {
            let mut sequence = FromDevice::default();
            (first..first + 10).for_each(|number| _ = sequence.note(0x3000, header(number)));
            assert_eq!(sequence.note(0x3000, header(late)), Arrival::Late);
            assert_eq!(sequence.lost(), lost);
        }
    }

    /// A gap of 4095 is one of its count; what is further may be of another, and if there is another, it is.
    #[test]
    fn gaps_that_are_not_far_count_also_where_there_are_several_counts() {
        for (gap, lost, with_another) in [(4095, 4095, 4095), (4096, 4096, 0)] {
            let mut sequence = FromDevice::default();
            (100..200).for_each(|number| _ = sequence.note(0x3000, header(number)));
            sequence.note(0x3000, header(200 + gap));
            assert_eq!(sequence.lost(), lost);
            let other = Header { sequence: 60_000, ..header(201 + gap) };
            sequence.note(0x3001, other);
            assert_eq!(sequence.lost(), with_another);
        }
    }

    /// A stamp that is a second behind is another program's.
    #[test]
    fn an_early_stamp_is_of_the_same_program_for_a_second() {
        for (behind, lost) in [(SAME_PROGRAM - 1, 0), (SAME_PROGRAM, 9_799)] {
            let mut sequence = FromDevice::default();
            let at =
                |number: u16, behind: u32| Header { sequence: number, timestamp: 1_000_000_000 - behind };
            (100..=200).for_each(|number| _ = sequence.note(0x3000, at(number, 0)));
            sequence.note(0x3000, at(10_000, behind));
            assert_eq!(sequence.lost(), lost, "{behind}");
        }
    }

    /// First numbers that were heard out of turn after a pause begin anew, unless what follows is in turn: 64 ahead is.
    /// 11 to 73 are missing then, and 10 came twice.
    #[test]
    fn a_first_number_out_of_turn_begins_nothing_if_the_count_goes_on() {
        let mut sequence = FromDevice::default();
        (1..=10).for_each(|number| _ = sequence.note(0x3000, header(number)));
        let later = |number: u32, more: u32| {
            let timestamp = header(10).timestamp + 2 * ROUND + more;
            Header { timestamp, ..header(number) }
        };
        assert_eq!(sequence.note(0x3000, later(10, 0)), Arrival::Late);
        assert_eq!(sequence.note(0x3000, later(74, 1)), Arrival::New);
        assert_eq!(sequence.lost(), 62);
    }

    /// A gap that is larger than how far a lane goes on before it tells the others.
    #[test]
    fn a_lane_that_rests_knows_of_a_gap() {
        let mut busy = FromAdapter::default();
        let mut rests = FromAdapter { numbering: busy.numbering.share(), ..FromAdapter::default() };
        let came = (1..20_000).chain(25_000..60_000);
        came.for_each(|number| _ = busy.note(0x3000, header(number)));
        rests.note(0x3001, header(60_000));
        assert_eq!(busy.seen.unwrap().join(rests.seen.unwrap()).lost(), 5_000);
    }

    #[test]
    fn a_clone_counts_by_itself_from_there_on() {
        let lane = Numbering::default();
        let shared = lane.share();
        assert_eq!((lane.next(), shared.next()), (1, 2));
        let apart = lane.clone();
        assert_eq!((lane.next(), apart.next(), apart.next(), shared.next()), (3, 3, 4, 4));
    }
}
