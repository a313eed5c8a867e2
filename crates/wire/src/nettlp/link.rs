//! Acknowledged TLPs: the data link layer that UDP lacks, between two ends that are both tlplab's (compare PCIe 5.0 §3.6).
//!
//! A TLP on such a link is sealed: before it stand its number and the number up to which its sender has received ([`Numbers`]), behind it a
//! checksum over the whole datagram. The first byte is none that a TLP begins with, so that nobody takes one for the other. A [`LinkMessage`]
//! sets a link up, or acknowledges without a TLP at hand: a vendor-defined message of type 1, which everybody else has to ignore (PCIe 5.0
//! §2.2.8.6).
//!
//! | bytes | what |
//! |---|---|
//! | 0–5 | NetTLP header |
//! | 6 | [`MARK`] |
//! | 7–9 | number of this TLP, big-endian, modulo 2^24 |
//! | 10 | 0 |
//! | 11–13 | the number of the first TLP that the sender has not received |
//! | 14– | the TLP |
//! | last 4 | the CRC of LCRC and ECRC over all before, least significant byte first |

use super::{HEADER_BYTES, Header};
use crate::tlp::{Code, Message, Routing, TransactionId};
use crate::{Error, crc};
use core::ops::RangeInclusive;
use tlplab_units::Bdf;

/// Bytes before the TLP.
pub const NUMBERS_BYTES: usize = 8;
/// Bytes behind it.
pub const CHECK_BYTES: usize = 4;
/// Both.
pub const SEAL_BYTES: usize = NUMBERS_BYTES + CHECK_BYTES;
/// The first of them: a format that TLPs do not have, three bits at least from all that they have.
pub const MARK: u8 = 0xe7;
/// Numbers are below this, and go on with 0.
pub const NUMBERS: u32 = 1 << 24;
/// Bytes of a message's payload.
pub const MESSAGE_BYTES: usize = 16;
/// Vendor ID of the messages: that of the NetTLP card.
pub const VENDOR: u16 = 0x3776;
/// Version of all this, in the messages.
pub const VERSION: u8 = 1;

const SECTION: &str = "NetTLP link, docs/nettlp.md";

/// The numbers before an acknowledged TLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Numbers {
    /// The number of this TLP, below [`NUMBERS`].
    pub sequence: u32,
    /// The first number of the other direction that has not come.
    pub acknowledged: u32,
}

/// The distance of number `to` ahead of `from`, below [`NUMBERS`]; numbers behind it seem to be ahead by more than half of that.
pub const fn distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from) % NUMBERS
}

/// Seals the datagram in the first `len` bytes of `buffer`, a NetTLP header and a TLP; returns its new length.
///
/// # Errors
/// A datagram without a TLP, a buffer that is too short.
pub fn seal(buffer: &mut [u8], len: usize, numbers: Numbers) -> Result<usize, Error> {
    let (have, end) = (buffer.len(), len + SEAL_BYTES);
    let Some(datagram) = buffer.get_mut(..end).filter(|_| len > HEADER_BYTES) else {
        return Err(Error::truncated("Buffer", SECTION, end, have));
    };
    let begins = HEADER_BYTES + NUMBERS_BYTES;
    datagram.copy_within(HEADER_BYTES..len, begins);
    let [sequence, acknowledged] = [numbers.sequence, numbers.acknowledged].map(|number| number % NUMBERS);
    datagram[HEADER_BYTES..][..4].copy_from_slice(&(sequence | u32::from(MARK) << 24).to_be_bytes());
    datagram[HEADER_BYTES + 4..][..4].copy_from_slice(&acknowledged.to_be_bytes());
    let (covered, check) = datagram.split_at_mut(end - CHECK_BYTES);
    check.copy_from_slice(&crc::Crc32::new().update(covered).finish().to_le_bytes());
    Ok(end)
}

/// The numbers and the TLP of a sealed datagram; `None` if it is not sealed, or damaged.
pub fn open(datagram: &[u8]) -> Option<(Numbers, &[u8])> {
    let header = Header::parse(datagram).ok()?;
    let (numbers, rest) = numbers(&datagram[HEADER_BYTES..])?;
    let tlp = rest.split_last_chunk::<CHECK_BYTES>()?.0;
    (!tlp.is_empty() && is_whole(header, &datagram[HEADER_BYTES..])).then_some((numbers, tlp))
}

/// The numbers of a sealed datagram and the bytes behind them, given the bytes behind its NetTLP header, as far as they were captured; `None`
/// if it is not sealed.
pub fn numbers(sealed: &[u8]) -> Option<(Numbers, &[u8])> {
    let (numbers, rest) = sealed.split_first_chunk::<NUMBERS_BYTES>()?;
    let [MARK, a, b, c, 0, d, e, f] = *numbers else { return None };
    let sequence = u32::from_be_bytes([0, a, b, c]);
    Some((Numbers { sequence, acknowledged: u32::from_be_bytes([0, d, e, f]) }, rest))
}

/// True if the checksum matches the NetTLP header and the sealed bytes before it.
pub fn is_whole(header: Header, sealed: &[u8]) -> bool {
    sealed.split_last_chunk::<CHECK_BYTES>().is_some_and(|(covered, check)| {
        let crc = crc::Crc32::new().update(&header.emit()).update(covered);
        crc.finish() == u32::from_le_bytes(*check)
    })
}

/// A message about a link, without a TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkMessage {
    /// The device asks for a link.
    Connect(Lane),
    /// The adapter has set it up: the same lane, with the adapter's first number.
    Accept(Lane),
    /// Acknowledges the TLPs that have come.
    Ack {
        /// The epoch of the link.
        epoch: u32,
        /// The first number that has not come.
        acknowledged: u32,
        /// Bit n: the TLP n + 1 behind that one has come.
        beyond: u64,
    },
    /// A TLP came for which there is no link.
    Reset {
        /// Its number.
        sequence: u32,
    },
}

/// A link between a lane of a device and the adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Tells one link of a lane from the next.
    pub epoch: u32,
    /// The first of the lane's tags.
    pub first_tag: u8,
    /// The last one.
    pub last_tag: u8,
    /// The low four bits of the tags of the host's requests that it answers, a bit for each.
    pub host_ports: u16,
    /// The number of the first TLP that the sender of this message will send.
    pub sequence: u32,
}

impl Lane {
    /// The lane's tags.
    pub const fn tags(&self) -> RangeInclusive<u8> {
        self.first_tag..=self.last_tag
    }
}

impl LinkMessage {
    const fn kind(&self) -> u8 {
        match self {
            Self::Connect(_) => 1,
            Self::Accept(_) => 2,
            Self::Ack { .. } => 3,
            Self::Reset { .. } => 4,
        }
    }

    /// The message's header; it has [`MESSAGE_BYTES`] of payload, and goes with a digest.
    pub fn message(&self, requester: Bdf) -> Message {
        let id = TransactionId { requester, ..TransactionId::default() };
        let body = [VERSION, self.kind(), 0, 0];
        let dw = MESSAGE_BYTES as u32 / 4;
        Message::vendor(id, Code::VendorType1, (Routing::Local, None), VENDOR, body, dw)
            .expect("a vendor-defined message may end at its receiver")
    }

    /// Its payload: four doublewords, big-endian. The first is the epoch (or the number, of a reset); then tags, host ports and number, or
    /// the number and both halves of the bits.
    pub fn payload(&self) -> [u8; MESSAGE_BYTES] {
        let words = match *self {
            Self::Connect(lane) | Self::Accept(lane) => {
                let [high, low] = lane.host_ports.to_be_bytes();
                let ports = u32::from_be_bytes([lane.first_tag, lane.last_tag, high, low]);
                [lane.epoch, ports, lane.sequence, 0]
            }
            Self::Ack { epoch, acknowledged, beyond } => {
                [epoch, acknowledged, (beyond >> 32) as u32, beyond as u32]
            }
            Self::Reset { sequence } => [sequence, 0, 0, 0],
        };
        let mut bytes = [0; MESSAGE_BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// True if this is a message of this kind, whatever its payload.
    pub fn is(message: &Message) -> bool {
        message.code() == Code::VendorType1
            && message.routing() == Routing::Local
            && message.vendor_id() == Some(VENDOR)
    }

    /// Reads a message that [is](Self::is) one.
    ///
    /// # Errors
    /// Another version or kind, a payload of another length, tags that are no range.
    pub fn parse(message: &Message, payload: &[u8]) -> Result<Self, Error> {
        let [_, _, _, _, version, kind, ..] = message.content();
        if version != VERSION {
            return Err(Error::value("Link version", SECTION, version.into(), "1"));
        }
        let (words, []) = payload.as_chunks::<4>() else {
            return Err(Error::truncated("Link message", SECTION, MESSAGE_BYTES, payload.len()));
        };
        let &[a, b, c, d] = words else {
            return Err(Error::truncated("Link message", SECTION, MESSAGE_BYTES, payload.len()));
        };
        let [first_tag, last_tag, high, low] = b;
        let [a, b, c, d] = [a, b, c, d].map(u32::from_be_bytes);
        let host_ports = u16::from_be_bytes([high, low]);
        let lane = Lane { epoch: a, first_tag, last_tag, host_ports, sequence: c % NUMBERS };
        Ok(match kind {
            1 | 2 if first_tag > last_tag => {
                return Err(Error::conflict("Link lane", SECTION, "the first tag is not above the last"));
            }
            1 => Self::Connect(lane),
            2 => Self::Accept(lane),
            3 => Self::Ack { epoch: a, acknowledged: b % NUMBERS, beyond: u64::from(c) << 32 | u64::from(d) },
            4 => Self::Reset { sequence: a % NUMBERS },
            other => return Err(Error::value("Link message", SECTION, other.into(), "1 to 4")),
        })
    }
}
