//! From what a user says to an open transport.

use super::error::Error;
use super::link::LinkConfig;
use super::packet::Packet;
use super::transport::Transport;
use super::udp::Udp;
use super::xdp::Xdp;
use std::net::Ipv4Addr;
use std::str::FromStr;
use tlplab_nettlp::EndpointConfig;
use tlplab_wire::nettlp::HEADER_BYTES;
use tlplab_wire::nettlp::link::SEAL_BYTES;

/// The kinds of transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// [`Udp`].
    #[default]
    Udp,
    /// [`Packet`].
    Packet,
    /// [`Xdp`].
    Xdp,
}

impl FromStr for Kind {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "udp" => Ok(Self::Udp),
            "packet" => Ok(Self::Packet),
            "xdp" => Ok(Self::Xdp),
            _ => Err(Error::Setup(format!("unknown transport {name:?}; expected udp, packet or xdp"))),
        }
    }
}

/// The place of an end in its network.
#[derive(Clone, Debug)]
pub struct Network {
    /// The kind of transport.
    pub kind: Kind,
    /// The address here.
    pub local: Ipv4Addr,
    /// The interface; only packet and XDP sockets need to know, and find it by the address.
    pub interface: Option<String>,
}

impl Network {
    /// Opens the ports of an end point, whose only peer is its adapter.
    ///
    /// # Errors
    /// The transport's; a payload size that the link cannot carry.
    pub fn open(&self, config: &EndpointConfig) -> Result<Box<dyn Transport>, Error> {
        let ports = config.ports();
        match self.kind {
            Kind::Udp => Ok(Box::new(Udp::open(self.local, ports, Some(config.adapter))?)),
            _ => {
                let seal = if config.acknowledged { SEAL_BYTES } else { 0 };
                let most = config.mps.bytes() as usize + seal;
                self.open_frames(ports.collect(), vec![config.adapter], most)
            }
        }
    }

    /// Opens `ports` for datagrams of all `peers`, with writes and completions of up to `mps` bytes.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_for(
        &self,
        ports: Vec<u16>,
        peers: Vec<Ipv4Addr>,
        mps: usize,
    ) -> Result<Box<dyn Transport>, Error> {
        match self.kind {
            Kind::Udp => Ok(Box::new(Udp::open_for(self.local, ports, &peers)?)),
            _ => self.open_frames(ports, peers, mps),
        }
    }

    fn open_frames(
        &self,
        ports: Vec<u16>,
        peers: Vec<Ipv4Addr>,
        mps: usize,
    ) -> Result<Box<dyn Transport>, Error> {
        let config = LinkConfig { interface: self.interface.clone(), local: self.local, ports, peers };
        let (transport, largest): (Box<dyn Transport>, usize) = if self.kind == Kind::Xdp {
            let xdp = Xdp::open(&config)?;
            let largest = xdp.largest();
            (Box::new(xdp), largest)
        } else {
            let packet = Packet::open(&config)?;
            let largest = packet.largest();
            (Box::new(packet), largest)
        };
        fits(largest, mps)?;
        Ok(transport)
    }
}

/// The header of a memory request with 64-bit address; prefixes and digests are not issued by default.
const TLP_HEADER: usize = 16;

fn fits(largest: usize, mps: usize) -> Result<(), Error> {
    let needed = HEADER_BYTES + TLP_HEADER + mps;
    if needed <= largest {
        return Ok(());
    }
    Err(Error::Setup(format!(
        "TLPs of {mps} B make datagrams of {needed} B, but a frame of the link holds {largest} B; choose a smaller maximum payload size, a larger MTU, or `--transport udp`, which cuts datagrams into fragments"
    )))
}
