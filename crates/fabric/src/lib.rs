//! The discrete-event simulator of PCIe fabrics.
//!
//! A [`Builder`] takes a [`FabricConfig`](config::FabricConfig), device and program objects, and gives a [`Fabric`] that runs:
//! [`Fabric::run_until`], [`Fabric::run_events`], or as the [`Driven`] machine of somebody who owns the clock. [`Fabric::snapshot`] copies it as it stands. What it did is read from [`Fabric::flow_results`] and its
//! siblings in [`results`], or watched as it happens by a [`Probe`].
//!
//! Its rooms, each of which uses only what stands before it:
//!
//! | room | what it owns |
//! |---|---|
//! | `config` | what a fabric is made of, as plain data; `config::numbering` gives everything its number |
//! | `kernel` | the clock and the event queue |
//! | `packet` | TLPs and transactions under way, the ledger of where their time went, routes |
//! | `observe` | what is noted: probes, trace hash, statistics, series, samples, errors |
//! | `link` | ports, queues, data link layers, wires, parallel buses; `link::context` is what nodes see of all this |
//! | `node` | switches, root complex, end points, bridges, custom nodes; `node::hardware` brings events to them |
//! | `software` | the host's software: enumeration, hot-plug, whom interrupts are for |
//! | `run` | the loop from event to event; what drives it from outside; results |
//! | `build` | from a configuration to a fabric |
//!
//! The modules:
//! * an operation becomes TLPs: `node::initiator`; a register access becomes a configuration request: `node::root::processor`
//! * a TLP waits for its port and goes to the wire: `link::transmit`, `link::egress`; the wire: `link::channel`; stages before and behind: `link::stages`
//! * it arrives, and the replay timer expires (`link_timer`): `link::receive`; the protocol itself is the crate `tlplab-datalink`
//! * it is routed: `node::switch`, by `packet::routing` and `packet::access`; between root ports: `node::root::domains`; nobody claims it: `Context::refuse` in `link::completion`
//! * it reaches memory: `node::root`, `node::root::host_path`, `node::root::host_memory`
//! * an address is translated: `node::root::translation`, which takes as long as `node::root::host_memory` says; devices keep translations: `node::end_point::ats`
//! * a completion is split: `node::answer`, by `tlplab_transaction::Completer`; line by line: `link::lines`
//! * MSI and MSI-X become TLPs: `node::end_point::device`; wires become messages: `node::wires`
//! * a transaction ends, well or not: `link::fate`
//! * an error is detected: `link::errors`; recorded and reported: `node::error_messages`
//! * a link goes down: `link::state` for its ports, `node::link_state` for all below it; a function is reset: `node::end_point::registers`
//! * custom parts: a node `node::custom`, a channel `link::channel_model`, a data link layer [`tlplab_datalink::custom`]; host memory and
//!   devices by the traits of `tlplab_device`, an observer by [`Probe`]; `build::parts` puts them in
//! * a cause of latency is added: `packet::attribution::Cause`, then whoever moves the TLP charges it

mod build;
pub mod config;
mod kernel;
mod link;
mod node;
mod observe;
mod packet;
mod run;
mod software;

pub use build::{Builder, Streams};
pub use config::{BuildError, MSI_ADDRESS};
pub use kernel::ids::{FlowId, LinkId, NodeId, PortId};
pub use link::channel_model::{ChannelModel, Passage};
pub use link::port::WireCounters;
pub use node::custom::{NodeContext, NodeModel, Side, Verdict};
pub use node::end_point::ats::DeviceTranslations;
pub use node::root::host_memory::{HitCount, HostCounters, TranslationCount, Writer};
pub use node::root::translation::{AnsweredTranslations, FaultReason, InvalidationCount, TranslationFault};
pub use node::snapshot::NoSnapshot;
pub use observe::errors;
pub use observe::outages;
pub use observe::probe::{self, Probe};
pub use observe::sample::Sample;
pub use observe::statistics::{Bucket, CauseHistogram, Failures, FlowStatistics};
pub use observe::topology;
pub use packet::attribution;
pub use packet::routing::{BridgeRegisters, Window};
pub use packet::slab::TlpHandle;
pub use packet::transactions::Ending;
pub use run::driven::{Driven, Told};
pub use run::{Fabric, results};
