//! Split virtqueues, the device's side (virtio 1.2, section 2.7): rings of descriptors in the guest's memory.

use crate::error::ProtocolError;
use crate::machine::GuestMemory;

const DESCRIPTOR: u64 = 16;
const NEXT: u16 = 1;
const WRITABLE: u16 = 2;
/// Bytes that a guest sends in one buffer at most: no access is longer.
const LONGEST: usize = 32 << 20;

/// The places of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// Entries, a power of two.
    pub size: u16,
    /// Address of the table of descriptors.
    pub descriptors: u64,
    /// Address of the ring of buffers that the guest offers.
    pub available: u64,
    /// Address of the ring of buffers that the device is done with.
    pub used: u64,
}

/// A queue, and how far it has come.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    rings: Rings,
    /// The next entry of the available ring, counted without end.
    next: u16,
    /// Buffers that were given back, counted without end.
    given_back: u16,
}

/// A buffer that the guest offers: parts that it has filled, and parts that it wants filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Its first descriptor, by which it is given back.
    pub head: u16,
    /// The bytes that the guest has filled.
    pub sent: Vec<u8>,
    /// Address and length of each part to be filled.
    pub room: Vec<(u64, u32)>,
}

impl Buffer {
    /// Bytes that can be filled.
    pub fn room(&self) -> u64 {
        self.room.iter().map(|(_, bytes)| u64::from(*bytes)).sum()
    }
}

impl Queue {
    /// A queue from its beginning.
    pub fn new(rings: Rings) -> Self {
        Self { rings, next: 0, given_back: 0 }
    }

    /// Takes the next buffer that the guest offers.
    ///
    /// # Errors
    /// [`ProtocolError`]: rings that cannot be.
    pub fn take(&mut self, memory: &dyn GuestMemory) -> Result<Option<Buffer>, ProtocolError> {
        let offered = half_word(memory, at(self.rings.available, 2))?;
        let ahead = offered.wrapping_sub(self.next);
        if ahead > self.rings.size {
            return Err(ProtocolError::Available(ahead, self.rings.size));
        }
        if ahead == 0 {
            return Ok(None);
        }
        let slot = u64::from(self.next % self.rings.size);
        let head = half_word(memory, at(self.rings.available, 4 + 2 * slot))?;
        let buffer = self.follow(memory, head)?;
        self.next = self.next.wrapping_add(1);
        Ok(Some(buffer))
    }

    fn follow(&self, memory: &dyn GuestMemory, head: u16) -> Result<Buffer, ProtocolError> {
        let mut buffer = Buffer { head, ..Buffer::default() };
        let mut index = head;
        // A chain has no more descriptors than the table.
        for _ in 0..self.rings.size {
            if index >= self.rings.size {
                break;
            }
            let place = at(self.rings.descriptors, DESCRIPTOR * u64::from(index));
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes::<16>(memory, place)?;
            let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            let length = u32::from_le_bytes([i, j, k, l]);
            let (flags, next) = (u16::from_le_bytes([m, n]), u16::from_le_bytes([o, p]));
            if flags & WRITABLE != 0 {
                buffer.room.push((address, length));
            } else if length as usize > LONGEST - buffer.sent.len() {
                return Err(ProtocolError::Buffer(head));
            } else {
                let begun = buffer.sent.len();
                buffer.sent.resize(begun + length as usize, 0);
                read(memory, address, &mut buffer.sent[begun..])?;
            }
            if flags & NEXT == 0 {
                return Ok(buffer);
            }
            index = next;
        }
        Err(ProtocolError::Chain(index))
    }

    /// Fills a buffer with `data`, as far as it has room, and gives it back.
    ///
    /// # Errors
    /// [`ProtocolError::Memory`]
    pub fn give_back(
        &mut self,
        memory: &mut dyn GuestMemory,
        buffer: &Buffer,
        data: &[u8],
    ) -> Result<(), ProtocolError> {
        let mut left = data;
        for (address, room) in &buffer.room {
            let (part, rest) = left.split_at(left.len().min(*room as usize));
            write(memory, *address, part)?;
            left = rest;
        }
        let slot = u64::from(self.given_back % self.rings.size);
        let filled = (data.len() - left.len()) as u32;
        let mut entry = [0; 8];
        entry[..2].copy_from_slice(&buffer.head.to_le_bytes());
        entry[4..].copy_from_slice(&filled.to_le_bytes());
        write(memory, at(self.rings.used, 4 + 8 * slot), &entry)?;
        self.given_back = self.given_back.wrapping_add(1);
        write(memory, at(self.rings.used, 2), &self.given_back.to_le_bytes())
    }
}

/// A place in a ring, which the guest may have put at the end of all addresses: nothing is there.
fn at(ring: u64, offset: u64) -> u64 {
    ring.saturating_add(offset)
}

fn read(memory: &dyn GuestMemory, address: u64, out: &mut [u8]) -> Result<(), ProtocolError> {
    let bytes = out.len() as u64;
    if memory.read(address, out) { Ok(()) } else { Err(ProtocolError::Memory { address, bytes }) }
}

fn write(memory: &mut dyn GuestMemory, address: u64, data: &[u8]) -> Result<(), ProtocolError> {
    let bytes = data.len() as u64;
    if memory.write(address, data) { Ok(()) } else { Err(ProtocolError::Memory { address, bytes }) }
}

fn bytes<const N: usize>(memory: &dyn GuestMemory, address: u64) -> Result<[u8; N], ProtocolError> {
    let mut bytes = [0; N];
    read(memory, address, &mut bytes)?;
    Ok(bytes)
}

fn half_word(memory: &dyn GuestMemory, address: u64) -> Result<u16, ProtocolError> {
    bytes(memory, address).map(u16::from_le_bytes)
}
