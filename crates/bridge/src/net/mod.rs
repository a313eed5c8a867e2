//! NetTLP over networks: what joins the engines of `nettlp`, which know neither sockets nor wall time, to both.
//!
//! ```text
//! socket ──Batch──▶ Engine::handle_datagram ──▶ state ──▶ Engine::poll_transmit ──Batch──▶ socket
//! ```
//!
//! * [`Transport`]: a way for datagrams; [`Udp`] is one
//! * [`Batch`]: datagrams that one system call brings or takes
//! * [`Poller`]: waiting, which any thread may end
//! * [`Clock`]: wall time, with an origin that moves
//! * [`Loop`] and [`drive`]: an engine on a transport
//! * [`Context`]: DMA for programs that call and wait

mod batch;
mod clock;
mod context;
mod drive;
mod error;
mod mmsg;
mod poller;
mod transport;
mod udp;

pub use batch::{BATCH, Batch};
pub use clock::Clock;
pub use context::{Completion, Context, Failure};
pub use drive::{Loop, Stop, Wait, drive};
pub use error::Error;
pub use poller::{Poller, Ready};
pub use transport::Transport;
pub use udp::Udp;
