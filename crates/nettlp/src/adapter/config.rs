//! The configuration of an adapter.

use super::limit::RateLimit;
use std::net::Ipv4Addr;
use tlplab_cfgspace::LayoutError;
use tlplab_device::{Identity, IdentityError};
use tlplab_units::{Bdf, Duration, Mps, Mrrs, Rcb};

/// An adapter: the machine that it sits in, and its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterConfig {
    /// Its own address.
    pub local: Ipv4Addr,
    /// Its devices, each behind a card of its own in this machine.
    pub devices: Vec<DeviceConfig>,
    /// The connection between the cards.
    pub peer_to_peer: PeerToPeer,
    /// The component that answers reads of memory.
    pub completer: Bdf,
    /// In whose name the host reads and writes devices.
    pub requester: Bdf,
    /// Longest payload of what the host sends.
    pub mps: Mps,
    /// Longest read by the host.
    pub mrrs: Mrrs,
    /// The addresses at which answers to reads may be cut.
    pub rcb: Rcb,
    /// Tags that the host has for its reads of each device: 1 to 256.
    pub tags: u16,
    /// The time in which a device has to answer the host, or a root complex that reads for another device. Reads through a switch end by the
    /// requester's own time limit.
    pub completion_timeout: Duration,
    /// The limit on datagrams of a device that are processed.
    pub rate: RateLimit,
    /// Requests of one device that wait for an answer or for their turn, in each queue.
    pub queue: usize,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Its address: what comes from there is its own.
    pub peer: Ipv4Addr,
    /// Its requester ID.
    pub bdf: Bdf,
    /// The host's view of it.
    pub function: FunctionKind,
    /// Base addresses that the host has given it; `None`: the adapter gives them.
    pub bars: Option<[u64; 6]>,
}

/// The host's view of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// The published card: 3776:8022. Registers in BAR 0, the MSI-X table in BAR 2, the device's memory in BAR 4.
    Card {
        /// Bytes of BAR 4: a power of two from 4 KiB on.
        window: u64,
        /// The place of the MSI-X table.
        msix: MsixHome,
    },
    /// The device's own IDs and BARs. The adapter holds its MSI-X table.
    Own(Identity),
}

impl FunctionKind {
    /// The published card as it is: 256 MiB in BAR 4, MSI-X in BAR 2.
    pub const CARD: Self = Self::Card { window: 256 << 20, msix: MsixHome::Bar2 };
}

/// The place of a card's MSI-X table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MsixHome {
    /// In BAR 2, held by the card; the device asks for it by a message: the published choice.
    #[default]
    Bar2,
    /// In the last 4 KiB of BAR 4, held by the device: its alternative.
    Bar4,
}

/// The connection between two cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerToPeer {
    /// A switch: passes TLPs as they are.
    #[default]
    Switch,
    /// A root complex: reads in pieces of 64 bytes in its own name, and makes completions of its own of their answers.
    RootComplex,
}

impl AdapterConfig {
    /// An adapter at `local` for these devices, with the sizes that the published measurements have: payloads of 256 bytes, reads of
    /// 512.
    pub fn new(local: Ipv4Addr, devices: Vec<DeviceConfig>) -> Self {
        Self {
            local,
            devices,
            peer_to_peer: PeerToPeer::default(),
            completer: Bdf(0),
            requester: Bdf(0),
            mps: Mps::ALL[1],
            mrrs: Mrrs::ALL[2],
            rcb: Rcb::ALL[0],
            tags: 256,
            completion_timeout: Duration::from_ms(50),
            rate: RateLimit::default(),
            queue: 1024,
        }
    }
}

impl DeviceConfig {
    /// The published card for the device at `peer`.
    pub fn card(peer: Ipv4Addr, bdf: Bdf) -> Self {
        Self { peer, bdf, function: FunctionKind::CARD, bars: None }
    }
}

/// The reason that an adapter cannot have this configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdapterError {
    /// No device.
    #[error("an adapter needs at least one device")]
    NoDevice,
    /// Two devices cannot be told apart.
    #[error("two devices have the address {0}; each needs its own, by which the adapter identifies it")]
    PeerTwice(Ipv4Addr),
    /// Two devices have an ID, or one has the host's.
    #[error("the ID {0} is taken; each device needs its own, other than the host's")]
    IdTwice(Bdf),
    /// A device where the adapter is.
    #[error("the device has the adapter's own address {0}; on one machine, use two addresses of 127.0.0.0/8")]
    OwnAddress(Ipv4Addr),
    /// A window that no BAR can have.
    #[error("a window of {0} B is not supported; expected a power of two from 4 KiB")]
    Window(u64),
    /// An identity that cannot be.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A configuration space that cannot be.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Addresses have run out.
    #[error("no address is left for BAR {bar} of {device}, {bytes:#x} B")]
    NoAddress {
        /// The device.
        device: Bdf,
        /// The BAR.
        bar: u8,
        /// Its size.
        bytes: u64,
    },
}
