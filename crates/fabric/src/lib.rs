//! The discrete-event simulator of PCIe fabrics.
//!
//! A [`Builder`] takes a [`FabricConfig`](config::FabricConfig), device and program objects, and gives a [`Fabric`] that runs:
//! [`Fabric::run_until`], [`Fabric::run_events`], or as the [`Driven`] machine of a program that owns the clock. [`Fabric::snapshot`] copies it as it stands. Its results are read from [`Fabric::flow_results`] and its
//! siblings in [`results`], or watched as it happens by a [`Probe`].
//!
//! Its rooms, each of which uses only what stands before it:
//!
//! | room | state |
//! |---|---|
//! | `config` | the parts of a fabric, as plain data; `config::numbering` gives everything its number |
//! | `kernel` | the clock and the event queue |
//! | `packet` | TLPs and transactions under way, the ledger of where their time went, routes |
//! | `observe` | observations: probes, trace hash, statistics, series, samples, errors, registers over time |
//! | `link` | ports, queues, data link layers, wires, parallel buses; `link::context` is the view of nodes on all this |
//! | `node` | switches, root complex, end points, bridges, custom nodes; `node::hardware` brings events to them |
//! | `software` | the host's software: enumeration, hot-plug, whom interrupts are for |
//! | `run` | the loop from event to event; what drives it from outside; results |
//! | `build` | from a configuration to a fabric |
//!
//! `docs/architecture.md` has a table of what happens where ("Where things happen") and the way of a TLP through these rooms.

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
pub use observe::registers;
pub use observe::sample::{Sample, Sampled};
pub use observe::statistics::{Bucket, CauseHistogram, Failures, FlowStatistics};
pub use observe::topology;
pub use packet::attribution;
pub use packet::routing::{BridgeRegisters, Window};
pub use packet::slab::TlpHandle;
pub use packet::transactions::Ending;
pub use run::driven::{Driven, Told};
pub use run::{Fabric, results};
