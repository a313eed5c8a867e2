//! Memory filled before reads are measured, and read back after writes were.

use super::PerfConfig;
use super::lane::Driven;
use super::pattern::{Addresses, Content, Pattern, Region};
use super::results::Missing;
use crate::{Error, Ready, Stop};
use std::time::{Duration, Instant};
use tlplab_device::DmaError;
use tlplab_nettlp::endpoint::Event;
use tlplab_transaction::Payload;

/// The time that an answer may take after a stop.
const PATIENCE: Duration = Duration::from_secs(1);
/// So much is written before it is read back: little enough that all of it arrives now and then even on a bad network.
const BLOCK: u64 = 4 << 10;
/// The number of times that a block is written, before the memory is given up.
const TRIES: u32 = 20;
/// The tokens of reads and writes that are no lane's operations.
pub(super) const CHECK: u32 = u32::MAX - 1;
const FILL: u32 = u32::MAX - 2;
/// To try again is the link's work.
const LINK_LOST: Failure = Failure::Dma(DmaError::Unacknowledged);

/// Writes `content` to all of `region` and sees to it that it is there.
pub(super) fn fill(driven: &mut Driven, region: Region, content: Content, stop: &Stop) -> Result<(), Error> {
    for (address, bytes) in blocks(region) {
        if stop.is_stopped() {
            return Ok(());
        }
        let data = Payload::from(content.at(address, bytes as usize));
        let mut said = "different data are read back".to_owned();
        let mut there = false;
        for _ in 0..TRIES {
            let now = driven.now();
            let written = driven.engine.write(now, FILL, address, data.clone());
            written.map_err(|error| Error::Setup(error.to_string()))?;
            match read(driven, address, bytes, stop)? {
                Ok(back) if back == data => there = true,
                Ok(_) => {}
                Err(LINK_LOST) => {
                    return Err(Error::Setup(format!("cannot fill the memory at {address:#x}: {LINK_LOST}")));
                }
                Err(Failure::Stopped) => return Ok(()),
                Err(error) => said = error.to_string(),
            }
            if there {
                break;
            }
        }
        if !there {
            return Err(Error::Setup(format!(
                "the memory at {address:#x} does not keep the data written to it: {said}; choose a region inside the host's memory"
            )));
        }
    }
    Ok(())
}

/// A read that brought no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// Nobody waits for its answer any more.
    #[error("the run was stopped before an answer arrived")]
    Stopped,
}

/// Reads and waits: the result of the requests is the inner one.
fn read(
    driven: &mut Driven,
    address: u64,
    bytes: u64,
    stop: &Stop,
) -> Result<Result<Payload, Failure>, Error> {
    let now = driven.now();
    driven.engine.read(now, CHECK, address, bytes).map_err(|error| Error::Setup(error.to_string()))?;
    driven.transmit()?;
    let mut ready = Ready::default();
    // Whoever has stopped it does not wait for answers that do not come.
    let mut given_up = None;
    stop.wakes(driven.poller());
    loop {
        while let Some(event) = driven.engine.poll_event() {
            match event {
                Event::ReadDone { token: CHECK, result } => return Ok(result.map_err(Failure::Dma)),
                // The acknowledged link was lost, or there never was one.
                Event::Failed { token: CHECK, error } => return Ok(Err(Failure::Dma(error))),
                _ => {}
            }
        }
        if stop.is_stopped() {
            let end = *given_up.get_or_insert_with(|| Instant::now() + PATIENCE);
            if Instant::now() >= end {
                return Ok(Err(Failure::Stopped));
            }
        }
        let until = [driven.deadline(), given_up].into_iter().flatten().min();
        driven.poller().wait(&mut ready, until)?;
        driven.turn(Some(&ready))?;
    }
}

/// Waits until what this end point wrote has been taken: only its own reads stay behind its writes, those of another lane come to
/// another socket. Was it answered? It may be lost itself; what is missing is found out later.
pub(super) fn flush(driven: &mut Driven, address: u64, stop: &Stop) -> Result<bool, Error> {
    // The second reads a byte: the published memory answers no read without any.
    for bytes in [0, 1, 1] {
        if read(driven, address, bytes, stop)?.is_ok() {
            return Ok(true);
        }
        if stop.is_stopped() {
            break;
        }
    }
    Ok(false)
}

fn blocks(region: Region) -> impl Iterator<Item = (u64, u64)> {
    let end = region.address + region.bytes;
    (region.address..end).step_by(BLOCK as usize).map(move |address| (address, BLOCK.min(end - address)))
}

/// The writes of a lane: at each place where its operations begin, the last of them.
pub(super) struct Written {
    lane: u8,
    region: Region,
    pattern: Pattern,
    length: u64,
    /// Number of the operation, from 1 on; 0 is none.
    last: Vec<u64>,
}

impl Written {
    /// The first `count` operations of a lane, at these addresses.
    pub(super) fn new(config: &PerfConfig, lane: u8, addresses: &mut Addresses, count: u64) -> Self {
        let (region, pattern, length) = (config.region(lane), config.pattern, u64::from(config.length));
        let places = 1 + pattern.place(region, length, region.address + region.bytes - length);
        let mut last = vec![0; places];
        for serial in 1..=count {
            last[pattern.place(region, length, addresses.next())] = serial;
        }
        Self { lane, region, pattern, length, last }
    }

    /// The last data of the lane in the bytes from `address` on, and the bytes that it wrote at all.
    fn paint(&self, content: Content, address: u64, painted: &mut [Option<u8>]) {
        let Self { region, pattern, length, .. } = *self;
        painted.fill(None);
        let end = address + painted.len() as u64;
        if end <= region.address || address >= region.address + region.bytes {
            return;
        }
        let place = |address| pattern.place(region, length, address).min(self.last.len() - 1);
        let mut writers: Vec<(u64, usize)> = (place(address.saturating_sub(length - 1))..=place(end - 1))
            .map(|place| (self.last[place], place))
            .filter(|(serial, _)| *serial > 0)
            .collect();
        // Where they overlap, the later one stands.
        writers.sort_unstable();
        for (serial, place) in writers {
            let begin = pattern.beginning(region, length, place);
            let (from, to) = (begin.max(address), (begin + length).min(end));
            if from < to {
                let data = content.of(self.lane, serial - 1).at(from, (to - from) as usize);
                let places = &mut painted[(from - address) as usize..][..data.len()];
                places.iter_mut().zip(data).for_each(|(place, byte)| *place = Some(byte));
            }
        }
    }
}

/// The last writes of the lanes that are not in memory. Where several of them wrote, any of them may have been the last.
pub(super) fn missing(
    driven: &mut Driven,
    region: Region,
    written: &[Written],
    content: Content,
    stop: &Stop,
) -> Result<Missing, Error> {
    let mut missing = Missing::default();
    let mut painted = vec![vec![None; BLOCK as usize]; written.len()];
    for (address, bytes) in blocks(region) {
        painted.iter_mut().for_each(|of_lane| of_lane.resize(bytes as usize, None));
        written.iter().zip(&mut painted).for_each(|(lane, of_lane)| lane.paint(content, address, of_lane));
        if !painted.iter().flatten().any(Option::is_some) {
            continue;
        }
        let data = read_patiently(driven, address, bytes, stop)?;
        compare(address, data.bytes().unwrap_or_default(), &painted, &mut missing);
    }
    Ok(missing)
}

/// Compares word by word: of a wrong word some bytes are right by chance.
fn compare(address: u64, data: &[u8], painted: &[Vec<Option<u8>>], missing: &mut Missing) {
    let is_written = |at: usize| painted.iter().any(|lane| lane[at].is_some());
    let is_right = |at: usize| painted.iter().any(|lane| lane[at] == Some(data[at]));
    let mut at = 0;
    while at < data.len() {
        let end = (at + 8 - (address + at as u64) as usize % 8).min(data.len());
        if (at..end).any(|at| is_written(at) && !is_right(at)) {
            (at..end).filter(|at| is_written(*at)).for_each(|at| missing.add(address + at as u64, 1));
        }
        at = end;
    }
}

/// A read is lost as easily as a write.
fn read_patiently(driven: &mut Driven, address: u64, bytes: u64, stop: &Stop) -> Result<Payload, Error> {
    let mut tries = 0;
    loop {
        match read(driven, address, bytes, stop)? {
            Ok(data) => return Ok(data),
            Err(error) if error != LINK_LOST && tries < TRIES && !stop.is_stopped() => tries += 1,
            Err(said) => return Err(Error::Setup(format!("cannot read back the written data: {said}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_device::random::Random;

    const CONTENT: Content = Content(5);

    /// The same, written one operation after the other into an image of the memory.
    fn image(config: &PerfConfig, count: u64) -> (Vec<u8>, Vec<bool>, Written) {
        let addresses = || {
            let random = Random::keyed(1, "lane 0", "addresses");
            Addresses::new(config.pattern, config.region, config.length.into(), random)
        };
        let (mut bytes, mut known) = (vec![0; 0x8000], vec![false; 0x8000]);
        let mut each = addresses();
        for serial in 0..count {
            let at = each.next();
            let data = CONTENT.of(0, serial).at(at, config.length as usize);
            bytes[at as usize..][..data.len()].copy_from_slice(&data);
            known[at as usize..][..data.len()].fill(true);
        }
        (bytes, known, Written::new(config, 0, &mut addresses(), count))
    }

    #[test]
    fn the_last_lap_is_known_for_every_pattern() {
        let region = Region { address: 0x1003, bytes: 0x5301 };
        for pattern in [Pattern::Fix, Pattern::Seq, Pattern::Seq512, Pattern::Random] {
            for (length, count) in [(256, 3), (256, 200), (700, 100), (5000, 17)] {
                let config = PerfConfig { pattern, region, length, ..crate::perf::tests::config() };
                let (bytes, known, written) = image(&config, count);
                for (address, size) in [(0x1003, 4096), (0x2003, 4096), (0x6003, 0x301), (0, 0x8000)] {
                    let mut painted = vec![None; size];
                    written.paint(CONTENT, address as u64, &mut painted);
                    let right = (address..address + size).map(|at| known[at].then_some(bytes[at]));
                    assert!(right.eq(painted), "{pattern:?}, {count} times {length} B, at {address:#x}");
                }
            }
        }
    }

    #[test]
    fn stale_laps_are_missing_with_their_ranges() {
        let region = Region { address: 0x1000, bytes: 0x1000 };
        let config = PerfConfig { region, length: 256, ..crate::perf::tests::config() };
        let (mut bytes, _, written) = image(&config, 40);
        // The third lap had 8 of 16 operations. One of them, and one of the second lap, are as the lap before left them.
        let stale = |bytes: &mut Vec<u8>, place: usize, serial| {
            let at = 0x1000 + 256 * place;
            bytes[at..at + 256].copy_from_slice(&CONTENT.of(0, serial).at(at as u64, 256));
        };
        stale(&mut bytes, 3, 16 + 3);
        stale(&mut bytes, 4, 16 + 4);
        stale(&mut bytes, 12, 12);
        let mut painted = vec![vec![None; 0x1000]];
        written.paint(CONTENT, 0x1000, &mut painted[0]);
        let mut missing = Missing::default();
        compare(0x1000, &bytes[0x1000..0x2000], &painted, &mut missing);
        assert_eq!((missing.bytes, missing.range_count), (768, 2));
        assert_eq!(missing.ranges, [(0x1300, 512), (0x1c00, 256)]);
    }
}
