//! PCI Express in Rust: protocol layers as state machines without IO, and a deterministic simulator of whole fabrics that attributes each
//! nanosecond of each transaction to a cause.
//!
//! A switch and two devices, their throughput and the causes of their latency:
//!
//! ```
#![doc = include_str!("../examples/two_devices.rs")]
//! ```
//!
//! # The way through
//!
//! A [`Builder`] takes a configuration and objects and returns a [`Fabric`]. The fabric runs until a time ([`Fabric::run_until`]), until all work is done
//! ([`Fabric::run_events`]), or in the steps of another clock ([`Driven`]). [`flows`] summarises the run; the methods of [`Fabric`] have the details;
//! a [`Probe`] sees each unit on each wire and each transaction that ends, with its causes ([`attribution`]). [`Fabric::snapshot`] copies a run at any
//! instant.
//!
//! The configuration is plain data: a [`config::FabricConfig`] holds a [`SwitchConfig`](config::SwitchConfig), [`DeviceConfig`](config::DeviceConfig) and
//! [`LinkConfig`](config::LinkConfig) per component. Every field is public and `new` sets its default, so a program names only the fields that it changes.
//! The behaviour of components is objects:
//!
//! | custom part | trait | method | example |
//! |---|---|---|---|
//! | device | [`device::Device`] | [`Builder::attach`], [`Builder::device`] | [`device`] |
//! | device at the level of TLPs | [`device::TlpDevice`] | [`Builder::tlp_device`] | |
//! | host program | [`device::HostProgram`] | [`Builder::program`] | |
//! | host memory | [`device::HostMemory`] | [`Builder::memory`] | `own_memory.rs` |
//! | observer | [`Probe`] | [`Builder::probe`] | `own_probe.rs` |
//! | channel | [`ChannelModel`] | [`Builder::channel`] | `own_channel.rs` |
//! | node | [`NodeModel`] | [`Builder::node`] | `own_node.rs` |
//! | data link layer | [`datalink::CustomLinkLayer`] | [`Builder::link_layer`] | `own_link_layer.rs` |
//!
//! The examples are short programs in `examples/` that assert their results: `cargo run --example own_node`.
//!
//! # Rules for custom parts
//!
//! * **Simulated time and seeded random numbers only** ([`device::Random`]). Then a run is a function of its configuration, seed and parts, and
//!   [`Fabric::trace_hash`] is reproducible.
//! * **A copy or a refusal.** [`Fabric::snapshot`] asks each part for a copy by its method `snapshot`, and names a part without one ([`NoSnapshot`]).
//! * **A part receives a context or a record, never the fabric.** Credits, queues, replay, captures and attribution continue around it: the causes of a
//!   transaction sum to its latency with any part.
//!
//! # The layers
//!
//! Each is a crate of its own and depends only on those above it in this list:
//!
//! * [`units`]: time in femtoseconds, exact link rates, sizes, IDs
//! * [`wire`]: TLPs, DLLPs, flits and CRCs as bytes and as values
//! * [`transaction`]: tags, splitting, completions, ordering; [`datalink`]: credits, acknowledgement, replay; [`cfgspace`]: registers, enumeration
//! * [`device`]: the device contract, built-in devices and host programs
//! * [`fabric`]: the simulator, whose items are at the root here

pub mod summary;

pub use summary::flows;
pub use tlplab_cfgspace as cfgspace;
pub use tlplab_datalink as datalink;
pub use tlplab_device as device;
pub use tlplab_fabric as fabric;
pub use tlplab_fabric::*;
pub use tlplab_transaction as transaction;
pub use tlplab_units as units;
pub use tlplab_wire as wire;

/// The common items, for `use tlplab::prelude::*`.
pub mod prelude {
    pub use crate::summary::{Flow, flows};
    pub use tlplab_datalink::{CustomLinkLayer, LinkLayer};
    pub use tlplab_device::{Device, HostMemory, HostProgram, Load, LoadConfig, LoadOp, Random, Target};
    pub use tlplab_fabric::config::{
        Damage, DeviceConfig, Direction, FabricConfig, Fault, FaultKind, FaultUnit, HostConfig, LinkConfig,
        NodeConfig, SwitchConfig,
    };
    pub use tlplab_fabric::{
        Builder, ChannelModel, Driven, Fabric, NodeContext, NodeModel, Passage, Probe, Side, TlpHandle,
        Verdict,
    };
    pub use tlplab_units::{Duration, Generation, Mps, Mrrs, Time, Width};
}
