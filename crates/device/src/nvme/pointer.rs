//! The places of a command's data in host memory: PRP lists and SGLs, followed as their pieces arrive (NVMe 1.4 §4.3, §4.4).

use super::command::Submission;
use super::status::Status;

/// Bytes of a PRP entry.
const PRP: u64 = 8;
/// Bytes of an SGL descriptor.
const DESCRIPTOR: u64 = 16;
/// Bytes of an SGL that are read at once.
const CHUNK: u64 = 4096;
/// Reads of an SGL after which the controller gives up: a chain of empty data blocks would have no end.
const CHUNKS: u32 = 1024;
/// No piece of data that is moved at once crosses a multiple of this.
const PIECE: u64 = 4096;

/// Consecutive bytes of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The offset in the command's data.
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) bytes: u64,
}

/// A list that has to be read.
#[derive(Clone, Copy, Debug)]
enum List {
    Prp { address: u64 },
    Sgl { address: u64, bytes: u64, last: bool },
}

/// The walk from a data pointer to all its segments.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    /// Bytes of a memory page.
    page: u64,
    /// Bytes of data.
    total: u64,
    /// Bytes whose place is known.
    found: u64,
    segments: Vec<Segment>,
    next: Option<List>,
    /// Reads of an SGL so far.
    chunks: u32,
}

impl Walk {
    /// Begins at the data pointer of `entry`, which has to lead to `bytes`.
    pub(super) fn new(entry: &Submission, bytes: u64, page: u64, sgl: bool) -> Result<Self, Status> {
        let mut walk = Self { page, total: bytes, ..Self::default() };
        match entry.pointer_kind() {
            0 => walk.begin_prp(entry.prp1(), entry.long(8))?,
            1 if sgl => walk.begin_sgl(&entry.pointer())?,
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(walk)
    }

    fn left(&self) -> u64 {
        self.total - self.found
    }

    fn add(&mut self, address: u64, bytes: u64) {
        self.segments.push(Segment { offset: self.found, address, bytes });
        self.found += bytes;
    }

    fn begin_prp(&mut self, first: u64, second: u64) -> Result<(), Status> {
        if !first.is_multiple_of(4) {
            return Err(Status::PRP_INVALID_OFFSET);
        }
        self.add(first, self.left().min(self.page - first % self.page));
        match self.left() {
            0 => Ok(()),
            left if left <= self.page => self.add_page(second),
            _ if !second.is_multiple_of(PRP) => Err(Status::PRP_INVALID_OFFSET),
            _ => {
                self.next = Some(List::Prp { address: second });
                Ok(())
            }
        }
    }

    /// The next page of the data. Only the first may have an offset.
    fn add_page(&mut self, address: u64) -> Result<(), Status> {
        if !address.is_multiple_of(self.page) {
            return Err(Status::PRP_INVALID_OFFSET);
        }
        self.add(address, self.left().min(self.page));
        Ok(())
    }

    /// Entries that are needed, and that fit before the page of the list ends: then the last of them leads to the next list.
    fn prp_entries(&self, address: u64) -> (u64, u64) {
        (self.left().div_ceil(self.page), (self.page - address % self.page) / PRP)
    }

    /// The list that has to be read before the walk can go on: address and bytes.
    pub(super) fn wants(&self) -> Option<(u64, u64)> {
        match self.next? {
            List::Prp { address } => {
                let (needed, fitting) = self.prp_entries(address);
                Some((address, needed.min(fitting) * PRP))
            }
            List::Sgl { address, bytes, .. } => Some((address, bytes.min(CHUNK))),
        }
    }

    /// Takes the requested data.
    pub(super) fn read(&mut self, data: &[u8]) -> Result<(), Status> {
        match self.next.take() {
            Some(List::Prp { address }) => self.read_prp(address, data),
            Some(List::Sgl { address, bytes, last }) => self.read_sgl(address, bytes, last, data),
            None => Ok(()),
        }
    }

    fn read_prp(&mut self, address: u64, data: &[u8]) -> Result<(), Status> {
        let (needed, fitting) = self.prp_entries(address);
        let mut entries: Vec<u64> = data
            .chunks_exact(PRP as usize)
            .map(|entry| u64::from_le_bytes(entry.try_into().expect("8 bytes")))
            .collect();
        let chain = if needed > fitting { entries.pop() } else { None };
        for entry in entries {
            self.add_page(entry)?;
        }
        match chain {
            Some(next) if !next.is_multiple_of(self.page) => Err(Status::PRP_INVALID_OFFSET),
            Some(next) => {
                self.next = Some(List::Prp { address: next });
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn begin_sgl(&mut self, descriptor: &[u8; 16]) -> Result<(), Status> {
        self.descriptor(descriptor, true)?;
        self.check_length()
    }

    /// Takes one descriptor; `ends` if it is the last of its segment and may lead to another.
    fn descriptor(&mut self, descriptor: &[u8], ends: bool) -> Result<(), Status> {
        let address = u64::from_le_bytes(descriptor[..8].try_into().expect("8 bytes"));
        let bytes = u64::from(u32::from_le_bytes(descriptor[8..12].try_into().expect("4 bytes")));
        match descriptor[15] {
            0x00 if bytes > self.left() => Err(Status::SGL_INVALID_LENGTH),
            0x00 if bytes == 0 => Ok(()),
            0x00 => {
                self.add(address, bytes);
                Ok(())
            }
            0x20 | 0x30 if !ends => Err(Status::SGL_INVALID_SEGMENT),
            0x20 | 0x30 if bytes == 0 || !bytes.is_multiple_of(DESCRIPTOR) => Err(Status::SGL_INVALID_COUNT),
            kind @ (0x20 | 0x30) => {
                self.next = Some(List::Sgl { address, bytes, last: kind == 0x30 });
                Ok(())
            }
            _ => Err(Status::SGL_INVALID_TYPE),
        }
    }

    fn read_sgl(&mut self, address: u64, bytes: u64, last: bool, data: &[u8]) -> Result<(), Status> {
        self.chunks += 1;
        if self.chunks > CHUNKS {
            return Err(Status::SGL_INVALID_COUNT);
        }
        let rest = bytes - data.len() as u64;
        let count = data.len() / DESCRIPTOR as usize;
        for (place, descriptor) in data.chunks_exact(DESCRIPTOR as usize).enumerate() {
            self.descriptor(descriptor, !last && rest == 0 && place + 1 == count)?;
        }
        if rest > 0 {
            self.next =
                Some(List::Sgl { address: address.wrapping_add(data.len() as u64), bytes: rest, last });
        }
        self.check_length()
    }

    /// All descriptors are known: they have to be enough.
    fn check_length(&self) -> Result<(), Status> {
        if self.next.is_none() && self.left() > 0 { Err(Status::SGL_INVALID_LENGTH) } else { Ok(()) }
    }

    /// The pieces of `bytes` of data from `offset` on, none of which crosses a page of 4 KiB in host memory: offset in the data, address,
    /// bytes.
    pub(super) fn pieces(&self, offset: u64, bytes: u64) -> Vec<(u64, u64, u64)> {
        let end = offset + bytes;
        let first = self.segments.partition_point(|segment| segment.offset + segment.bytes <= offset);
        let mut pieces = Vec::new();
        for segment in self.segments[first..].iter().take_while(|segment| segment.offset < end) {
            let mut at = segment.offset.max(offset);
            let stop = (segment.offset + segment.bytes).min(end);
            while at < stop {
                let address = segment.address.wrapping_add(at - segment.offset);
                let piece = (PIECE - address % PIECE).min(stop - at);
                pieces.push((at, address, piece));
                at += piece;
            }
        }
        pieces
    }
}
