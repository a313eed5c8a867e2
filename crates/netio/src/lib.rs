//! NetTLP over networks and vfio-user over Unix sockets: the link between the engines of `nettlp` and `vfio`, which know neither sockets nor wall time, and both.
//!
//! ```text
//! socket ──Batch──▶ Engine::handle_datagram ──▶ state ──▶ Engine::poll_transmit ──Batch──▶ socket
//! ```
//!
//! * [`Transport`]: a way for datagrams: [`Udp`] through the kernel, a socket per port; [`Packet`] and [`Xdp`] in
//!   frames, all ports by one socket
//! * [`Batch`]: datagrams that one system call brings or takes
//! * [`Poller`]: waiting, which any thread may end
//! * [`Clock`]: wall time, with an origin that moves
//! * [`Loop`] and [`drive`]: an engine on a transport
//! * [`Network`]: from what a user says to an open transport
//! * [`Station`], [`Place`], [`Serving`]: devices of the contract behind an adapter; [`Tap`]: an Ethernet port of this machine for a NIC
//! * [`Context`]: DMA for programs that call and wait; [`Apis`]: what an adapter tells beside TLPs
//! * [`LiveFabric`]: a simulated machine in wall time, as what is behind an adapter
//! * [`perf`]: how fast it is; [`Proxy`]: a bad network on purpose
//! * [`AdapterServer`]: an adapter on its ports
//! * [`Capture`] and [`Recorded`]: what passes, in a file
//! * [`VfioUser`]: devices of the contract in a virtual machine, over a Unix socket
//! * [`GuestFabric`]: the devices of a simulated fabric in a virtual machine
//! * [`CardServer`]: an adapter as cards in a virtual machine
//! * [`memory_image`]: files that are the contents of memory

mod adapter;
mod apis;
mod batch;
mod clock;
mod context;
mod drive;
mod error;
mod filter;
mod frame;
mod guest_card;
mod guest_fabric;
mod link;
mod live_fabric;
pub mod memory_image;
mod mmsg;
mod neighbour;
mod open;
mod paced;
mod packet;
pub mod perf;
mod poller;
mod proxy;
mod recorded;
mod serve;
mod socket_options;
mod sockets;
mod tap;
mod transport;
mod udp;
mod vfio_user;
mod xdp;

pub use adapter::{AdapterServer, adapter_ports};
pub use apis::Apis;
pub use batch::{BATCH, Batch};
pub use clock::Clock;
pub use context::{Completion, Context, Failure, Flush};
pub use drive::{Loop, Stop, Wait, drive};
pub use error::Error;
pub use guest_card::{CardPlace, CardServer, GuestCards};
pub use guest_fabric::{BoardError, FunctionCounters, GuestFabric, MachineMemory};
pub use link::{LinkConfig, LinkCounters};
pub use live_fabric::{LiveFabric, ServeError};
pub use open::{Kind, Network};
pub use paced::{End, LIFETIME, Lag};
pub use packet::Packet;
pub use poller::{Poller, Ready};
pub use proxy::{Impairment, Proxy, ProxyAddresses, ProxyCounters};
pub use recorded::{Capture, Recorded};
pub use serve::{Builtin, Done, Drops, Lost, Place, Psmem, Serving, Station};
pub use sockets::connected_socket;
pub use tap::Tap;
pub use transport::Transport;
pub use udp::{Udp, send_connected};
pub use vfio_user::VfioUser;
pub use xdp::Xdp;
