//! The limits of an end point, and its share of the ports.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use tlplab_transaction::{Quarantine, RequestPolicy, RequesterConfig, TagConfig};
use tlplab_units::{Bdf, Duration, Mps, Mrrs, Rcb};
use tlplab_wire::nettlp::{DEVICE_PORTS, HOST_PORTS};
use tlplab_wire::tlp::Attributes;

/// The configuration of an [`Endpoint`](super::Endpoint).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    /// The adapter's address. What comes from elsewhere is counted and ignored.
    pub adapter: Ipv4Addr,
    /// The ID under which the device issues requests, and completes those of the host.
    pub requester: Bdf,
    /// The tags of its requests, each of which is a UDP port, 0x3000 + tag. Lanes of one device have disjoint ones.
    pub tags: RangeInclusive<u8>,
    /// The low four bits of the tags of host requests that it answers, one bit each: UDP ports 0x4000 + number.
    pub host_ports: u16,
    /// Max_Payload_Size: limit of a write and of a completion.
    pub mps: Mps,
    /// Max_Read_Request_Size: limit of a read.
    pub mrrs: Mrrs,
    /// Read Completion Boundary: where answers to the host's reads are cut.
    pub rcb: Rcb,
    /// The addresses at which transfers are cut into requests.
    pub split: RequestPolicy,
    /// Attributes of its memory requests.
    pub attributes: Attributes,
    /// Time limit of a request from the moment it leaves.
    pub completion_timeout: Duration,
    /// Number datagrams, as the adapter does with its own, so that it recognises one that comes twice: a read that is answered twice, the second
    /// time when its tag is somebody else's, or an old write over a newer one. The published library sends zeros, and its adapter does not look.
    pub numbered: bool,
    /// The time that the tag of a failed request rests, so that its late completions match no other request: longer than a
    /// datagram lives in the network.
    pub quarantine: Duration,
    /// The policy for reads that were not answered.
    pub retry: Retry,
    /// Set up an acknowledged link with the adapter: every TLP arrives once and in order, or the operation [fails](super::Event::Failed), and a
    /// write is over when it has arrived. For `tlplab adapter`; the published card and programs give none.
    pub acknowledged: bool,
    /// The memory that the host may access here. A request that is not wholly inside one of them is answered with UR at once.
    pub windows: Vec<Window>,
}

/// The policy for a request that was not answered in time: issued again, under another tag, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// Never: the device cannot know whether the read had a side effect.
    #[default]
    Never,
    /// Each memory read at most so many times: the memory behind it has no side effects. Writes never are: nobody answers them.
    Reads(u8),
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

impl Window {
    /// Every address (but the last byte of 64 bits).
    pub const EVERYTHING: Self = Self { base: 0, size: u64::MAX };

    /// True if it holds all of these bytes; of none, their address.
    pub const fn contains(self, address: u64, bytes: u32) -> bool {
        let bytes = if bytes == 0 { 1 } else { bytes as u64 };
        address >= self.base && address - self.base < self.size && bytes <= self.size - (address - self.base)
    }
}

impl EndpointConfig {
    /// All tags and ports, MPS 256 and MRRS 512 as the published system's host has them, completions cut at 128 bytes, 50 ms for a
    /// completion and for a tag's rest, no retries, nothing that the host may access.
    pub fn new(adapter: Ipv4Addr, requester: Bdf) -> Self {
        Self {
            adapter,
            requester,
            tags: 0..=255,
            host_ports: u16::MAX,
            mps: Mps::ALL[1],
            mrrs: Mrrs::ALL[2],
            rcb: Rcb::ALL[1],
            split: RequestPolicy::Aligned,
            attributes: Attributes::default(),
            completion_timeout: Duration::from_ms(50),
            numbered: true,
            quarantine: Duration::from_ms(50),
            retry: Retry::Never,
            acknowledged: false,
            windows: Vec::new(),
        }
    }

    /// The same, with a digest (ECRC) behind each request or without; with one, only answers with one are taken. What a digest does not cover
    /// (PCIe 5.0 §2.7.1) makes an error at worst.
    #[must_use]
    pub fn with_digests(self, digest: bool) -> Self {
        Self { attributes: Attributes { digest, ..self.attributes }, ..self }
    }

    /// The share of lane `lane` of `lanes` (at most 16): consecutive tags, every so manieth port for the host's requests.
    ///
    /// # Panics
    /// `lane` is not below `lanes`, or there are fewer tags than lanes.
    #[must_use]
    pub fn lane(&self, lane: u8, lanes: u8) -> Self {
        let (first, count) = (u16::from(*self.tags.start()), self.tags.len() as u16);
        let (lane, lanes) = (u16::from(lane), u16::from(lanes));
        assert!(lane < lanes && lanes <= count.min(16), "lane {lane} of {lanes}, with {count} tags");
        let start = first + count * lane / lanes;
        let end = first + count * (lane + 1) / lanes - 1;
        let host_ports = (0..16).filter(|port| port % lanes == lane).fold(0, |set, port| set | 1 << port);
        let tags = start as u8..=end as u8;
        Self { tags, host_ports: self.host_ports & host_ports, ..self.clone() }
    }

    /// The UDP ports that the transport opens.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        let host = HOST_PORTS.filter(|port| self.answers(*port));
        self.tags.clone().map(|tag| DEVICE_PORTS.start() + u16::from(tag)).chain(host)
    }

    /// True if it answers the host's requests that come to this port.
    pub(super) fn answers(&self, port: u16) -> bool {
        HOST_PORTS.contains(&port) && self.host_ports >> (port - HOST_PORTS.start()) & 1 == 1
    }

    pub(super) fn requester(&self) -> RequesterConfig {
        let tags = TagConfig {
            skip: u16::from(*self.tags.start()),
            limit: Some(self.tags.len() as u16),
            quarantine: Quarantine::Unordered(self.quarantine),
            ..TagConfig::default()
        };
        RequesterConfig {
            tags,
            mps: self.mps,
            mrrs: self.mrrs,
            split: self.split,
            completion_timeout: Some(self.completion_timeout),
            retries: match self.retry {
                Retry::Never => 0,
                Retry::Reads(times) => times,
            },
            // All writes leave by the port of the first tag.
            flush_by_first_tag: true,
            attributes: self.attributes,
            ..RequesterConfig::new(self.requester)
        }
    }
}
