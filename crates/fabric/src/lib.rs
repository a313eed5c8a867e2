//! The discrete-event simulator of PCIe fabrics.
//!
//! A [`Builder`] takes a [`FabricConfig`](config::FabricConfig), device and program objects, and gives a [`Fabric`] that runs:
//! [`Fabric::next_event`], [`Fabric::run_until`], [`Fabric::run_events`]. What it did is read from [`Fabric::flow_results`] and its
//! siblings in [`results`], or watched as it happens by a [`Probe`].
//!
//! How a TLP travels, and which file moves it:
//! 1. A device or host program asks for an operation ([`end_point`](crate), `root`), which the `initiator` makes TLPs of.
//! 2. The TLP waits in the `egress` queue of a port until the arbiter and the data link layer let it go (`transmit`).
//! 3. The `channel` serialises it, adds ordered sets, lets faults strike, and delivers it after the flight time.
//! 4. `receive` hands it to the peer's data link layer and then to the node: `switch` routes it by bridge registers (`routing`) to the
//!    next egress; `root` and `end_point` consume it.
//!
//! Below a bridge there may be a parallel bus (`bus`): there TLPs go by transactions in turn, instead of over a wire.
//!
//! Devices that speak TLPs themselves, such as cores in RTL: `tlp_device` hands TLPs to them and takes theirs, `clocks` says when they run.
//!
//! Software's side: `processor` makes requests of register accesses, `config_request` routes them, `function` obeys what is written;
//! `enumeration` and `hot_plug` are the software. `interrupt` (messages) and `intx` (wires) bring interrupts up, `errors` detects and
//! `error_messages` reports, `link_state` and `reset` take links and functions down. `host_memory` (cache,
//! IOMMU, another node) and `host_path` (stages) lie between root complex and memory.
//!
//! `idle` leaves out what idle links tell each other, for those who wait long. `stages` are named delays at the ends of links. `attribution` explains how every instant of a transaction gets its cause, `queue` how events are ordered, `timeline` and
//! `transactions` how statistics stay bounded.

mod build;
pub mod config;
mod kernel;
mod link;
mod node;
mod observe;
mod packet;
mod run;
mod software;

pub use build::Builder;
pub use config::{BuildError, MSI_ADDRESS};
pub use kernel::ids::{FlowId, LinkId, NodeId, PortId};
pub use link::port::WireCounters;
pub use node::root::host_memory::{HitCount, HostCounters, TranslationCount, Writer};
pub use observe::errors;
pub use observe::outages;
pub use observe::probe::{self, Probe};
pub use observe::sample::Sample;
pub use observe::statistics::{Bucket, CauseHistogram, Failures, FlowStatistics};
pub use observe::topology;
pub use packet::attribution;
pub use packet::routing::{BridgeRegisters, Window};
pub use packet::transactions::Ending;
pub use run::{Fabric, results};
