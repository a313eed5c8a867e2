//! Memory filled before reads are measured, and read back after writes were.

use super::lane::Driven;
use super::pattern::{Content, Region};
use crate::net::{Error, Ready, Stop};
use tlplab_nettlp::endpoint::Event;
use tlplab_transaction::Payload;

/// So much is written before it is read back: little enough that all of it arrives now and then even on a bad network.
const BLOCK: u64 = 4 << 10;
/// How often a block is written, before the memory is given up.
const TRIES: u32 = 20;

/// Writes `content` to all of `region` and sees to it that it is there.
pub(super) fn fill(driven: &mut Driven, region: Region, content: Content, stop: &Stop) -> Result<(), Error> {
    for (address, bytes) in blocks(region) {
        if stop.is_stopped() {
            return Ok(());
        }
        let data = Payload::from(content.at(address, bytes as usize));
        let mut said = "it reads as something else".to_owned();
        let mut there = false;
        for _ in 0..TRIES {
            let now = driven.now();
            let written = driven.engine.write(now, 0, address, data.clone());
            written.map_err(|error| Error::Setup(error.to_string()))?;
            match read(driven, address, bytes)? {
                Ok(back) if back == data => there = true,
                Ok(_) => {}
                Err(error) => said = error,
            }
            if there {
                break;
            }
        }
        if !there {
            return Err(Error::Setup(format!(
                "the memory at {address:#x} does not keep what is written to it: {said}; is the region inside the host's memory?"
            )));
        }
    }
    Ok(())
}

/// Reads and waits: what the requests say is the inner result.
fn read(driven: &mut Driven, address: u64, bytes: u64) -> Result<Result<Payload, String>, Error> {
    let now = driven.now();
    driven.engine.read(now, 1, address, bytes).map_err(|error| Error::Setup(error.to_string()))?;
    driven.transmit()?;
    let mut ready = Ready::default();
    loop {
        while let Some(event) = driven.engine.poll_event() {
            if let Event::ReadDone { token: 1, result } = event {
                return Ok(result.map_err(|error| error.to_string()));
            }
        }
        driven.poller().wait(&mut ready, driven.deadline())?;
        driven.turn(Some(&ready))?;
    }
}

/// Waits until what this end point wrote has been taken: only its own reads stay behind its writes, those of another lane come to
/// another socket. Whether the flush itself succeeds does not matter, what is missing is found out later.
pub(super) fn flush(driven: &mut Driven, address: u64) -> Result<(), Error> {
    read(driven, address, 0).map(drop)
}

fn blocks(region: Region) -> impl Iterator<Item = (u64, u64)> {
    let end = region.address + region.bytes;
    (region.address..end).step_by(BLOCK as usize).map(move |address| (address, BLOCK.min(end - address)))
}

/// Which bytes of a region were written.
pub(super) struct Written {
    region: Region,
    bits: Vec<u64>,
}

impl Written {
    pub(super) fn new(region: Region) -> Self {
        Self { region, bits: vec![0; region.bytes.div_ceil(64) as usize] }
    }

    pub(super) fn mark(&mut self, address: u64, bytes: u32) {
        let (mut from, to) =
            (address - self.region.address, address - self.region.address + u64::from(bytes));
        while from < to {
            let (word, bit) = ((from / 64) as usize, from % 64);
            let count = (64 - bit).min(to - from);
            let ones = if count == 64 { u64::MAX } else { (1 << count) - 1 };
            self.bits[word] |= ones << bit;
            from += count;
        }
    }

    fn has(&self, address: u64) -> bool {
        let at = address - self.region.address;
        self.bits[(at / 64) as usize] >> (at % 64) & 1 == 1
    }
}

/// How many written bytes are not `content` in memory.
pub(super) fn missing(driven: &mut Driven, written: &Written, content: Content) -> Result<u64, Error> {
    let mut missing = 0;
    for (address, bytes) in blocks(written.region) {
        if !(address..address + bytes).any(|at| written.has(at)) {
            continue;
        }
        let mut tries = 0;
        let data = loop {
            match read(driven, address, bytes)? {
                Ok(data) => break data,
                // A read is lost as easily as a write.
                Err(_) if tries < TRIES => tries += 1,
                Err(said) => return Err(Error::Setup(format!("cannot read back what was written: {said}"))),
            }
        };
        let expected = content.at(address, bytes as usize);
        let pairs = data.bytes().unwrap_or_default().iter().zip(expected).zip(address..);
        missing += pairs.filter(|((is, should), at)| *is != should && written.has(*at)).count() as u64;
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_marked() {
        let region = Region { address: 0x1003, bytes: 300 };
        let mut written = Written::new(region);
        written.mark(0x1003, 1);
        written.mark(0x1003 + 60, 140);
        let marked: Vec<u64> = (0..300).filter(|at| written.has(0x1003 + at)).collect();
        assert_eq!(marked, std::iter::once(0).chain(60..200).collect::<Vec<_>>());
    }
}
