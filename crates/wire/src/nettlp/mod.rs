//! NetTLP: TLPs in UDP (Kuga et al., NSDI 2020).
//!
//! A datagram is a header of six bytes ([`Header`]) and a TLP from its first header byte. The sender's UDP port, which is also the
//! receiver's, tells the tag, by a scheme that changed twice ([`PortScheme`]).
//!
//! Beside the TLPs there are three little protocols by which a device asks the adapter, or its host: [`config_api`], [`message_api`],
//! [`registers`]. Two ends that are both tlplab's may have a [`link`] between them, on which TLPs are acknowledged.

pub mod config_api;
pub mod link;
pub mod message_api;
pub mod registers;

use crate::{Error, Problem, tlp};
use core::ops::RangeInclusive;
use tlplab_units::Duration;

/// Bytes before the TLP.
pub const HEADER_BYTES: usize = 6;

/// Bytes that a TLP in a NetTLP datagram takes on Ethernet beside its own: Ethernet 14, IPv4 20, UDP 8, NetTLP 6 and frame check sequence 4,
/// then preamble 8 and inter-frame gap 12.
pub const ETHERNET_OVERHEAD: u64 = 52 + 20;

/// Ports of requests that the device issued: the first plus the tag.
pub const DEVICE_PORTS: RangeInclusive<u16> = 0x3000..=0x30FF;

/// Ports of requests that the host issued: the first plus the tag's low four bits.
pub const HOST_PORTS: RangeInclusive<u16> = 0x4000..=0x400F;

const SECTION: &str = "NetTLP header (NSDI 2020)";
/// The section that errors of the three little protocols name. Upstream describes these nowhere but in the sources of adapter and library.
const API: &str = "NetTLP adapter, docs/nettlp.md";

/// The header before the TLP: both fields big-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Header {
    /// One running counter over all that an adapter sends; software sends 0.
    pub sequence: u16,
    /// The adapter's clock in ticks of 6.4 ns (156.25 MHz); software sends 0. Wraps every 27.5 s.
    pub timestamp: u32,
}

impl Header {
    /// One tick of the adapter's clock.
    pub const TICK: Duration = Duration::from_ps(6_400);

    /// Reads the first six bytes.
    ///
    /// # Errors
    /// Fewer than six bytes.
    pub const fn parse(bytes: &[u8]) -> Result<Self, Error> {
        match bytes {
            [a, b, c, d, e, f, ..] => Ok(Self {
                sequence: u16::from_be_bytes([*a, *b]),
                timestamp: u32::from_be_bytes([*c, *d, *e, *f]),
            }),
            _ => Err(Error::truncated("NetTLP header", SECTION, HEADER_BYTES, bytes.len()).at(bytes.len())),
        }
    }

    /// The six bytes.
    pub const fn emit(self) -> [u8; HEADER_BYTES] {
        let ([a, b], [c, d, e, f]) = (self.sequence.to_be_bytes(), self.timestamp.to_be_bytes());
        [a, b, c, d, e, f]
    }

    /// Time from `earlier` to here, if the clock wrapped at most once.
    pub fn since(self, earlier: Self) -> Duration {
        Self::TICK * u64::from(self.timestamp.wrapping_sub(earlier.timestamp))
    }
}

/// Splits a UDP payload into header and TLP. The TLP may be of any length and content: judging it is
/// [`tlp::Repr::parse`]'s business.
///
/// # Errors
/// Fewer bytes than the header has, or no TLP behind it.
pub fn parse_udp_payload(payload: &[u8]) -> Result<(Header, tlp::Packet<'_>), Error> {
    let header = Header::parse(payload)?;
    let (_, tlp) = payload.split_at(HEADER_BYTES);
    if tlp.is_empty() {
        return Err(Error::truncated("TLP", SECTION, HEADER_BYTES + 12, payload.len()).at(HEADER_BYTES));
    }
    Ok((header, tlp::Packet::new(tlp)))
}

/// Writes header and TLP; returns the bytes written.
///
/// # Errors
/// A buffer that is too short, and the errors of [`tlp::Repr::emit`].
pub fn emit_udp_payload(
    buffer: &mut [u8],
    header: Header,
    repr: &tlp::Repr,
    payload: &[u8],
) -> Result<usize, Error> {
    let have = buffer.len();
    let Some((head, rest)) = buffer.split_first_chunk_mut::<HEADER_BYTES>() else {
        return Err(Error::truncated("Buffer", SECTION, HEADER_BYTES, have));
    };
    *head = header.emit();
    Ok(HEADER_BYTES + repr.emit(rest, payload)?)
}

/// The issuer of the request that a TLP is, or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Issuer {
    /// The software device: its requests and the completions that answer them.
    Device,
    /// The host: its requests and the completions that answer them.
    Host,
}

/// The choice of UDP ports; source and destination are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PortScheme {
    /// 14198 for everything: the first version.
    Single,
    /// 0x3000 + the tag's low four bits, in both directions: the published captures.
    FourBits,
    /// 0x3000 + the tag's eight bits for requests of the device, 0x4000 + the low four for those of the host.
    #[default]
    ByIssuer,
}

impl PortScheme {
    /// The port of a TLP with this tag.
    ///
    /// # Errors
    /// A tag of more than eight bits where the port would have to hold it.
    pub fn port(self, issuer: Issuer, tag: tlplab_units::Tag) -> Result<u16, Error> {
        let tag = tag.value();
        match (self, issuer) {
            (Self::Single, _) => Ok(14198),
            (Self::FourBits, _) => Ok(0x3000 + (tag & 15)),
            (Self::ByIssuer, Issuer::Host) => Ok(0x4000 + (tag & 15)),
            (Self::ByIssuer, Issuer::Device) if tag < 256 => Ok(0x3000 + tag),
            (Self::ByIssuer, Issuer::Device) => {
                let what = Problem::Value { found: tag.into(), wanted: "a tag of eight bits" };
                Err(Error { field: "UDP port", section: SECTION, offset: None, what })
            }
        }
    }
}

/// True if NetTLP traffic uses this port, in any of its schemes.
pub const fn is_tlp_port(port: u16) -> bool {
    matches!(port, 14198 | 0x3000..=0x30ff | 0x4000..=0x400f)
}
