//! PCI Express in Rust: the layers of the protocol as state machines without IO, and a deterministic simulator of whole fabrics that says
//! where each nanosecond went.
//!
//! A switch and two devices, what each of them carries, and where its time goes:
//!
//! ```
#![doc = include_str!("../examples/two_devices.rs")]
//! ```
//!
//! # The way through
//!
//! A [`Builder`] takes what a fabric is made of and gives a [`Fabric`], which runs: [`Fabric::run_until`] a time, [`Fabric::run_events`] until all is done,
//! or in the strides of somebody else's clock ([`Driven`]). Afterwards [`flows`] has the short answer and the methods of [`Fabric`] the long one;
//! a [`Probe`] sees each unit on each wire and each transaction that ends, with the causes of its latency ([`attribution`]). [`Fabric::snapshot`]
//! copies a run at any instant.
//!
//! What is in a fabric is plain data: [`config::FabricConfig`], with a [`SwitchConfig`](config::SwitchConfig), a [`DeviceConfig`](config::DeviceConfig) and a
//! [`LinkConfig`](config::LinkConfig) for each. Every field is public and `new` gives it a default, so what an experiment changes is said by `..`, and the rest
//! stays as it is. What the components do is objects.
//!
//! | a part of your own | trait | given by | example |
//! |---|---|---|---|
//! | device | [`device::Device`] | [`Builder::device`], [`Builder::attach`] | [`device`] |
//! | device that speaks TLPs | [`device::TlpDevice`] | [`Builder::tlp_device`] | |
//! | program on the host | [`device::HostProgram`] | [`Builder::program`] | |
//! | host memory | [`device::HostMemory`] | [`Builder::memory`] | `own_memory.rs` |
//! | observer | [`Probe`] | [`Builder::probe`] | `own_probe.rs` |
//! | channel | [`ChannelModel`] | [`Builder::channel`] | `own_channel.rs` |
//! | node in the way | [`NodeModel`] | [`Builder::node`] | `own_node.rs` |
//! | data link layer | [`datalink::CustomLinkLayer`] | [`Builder::link_layer`] | `own_link_layer.rs` |
//!
//! The examples are short programs in `examples/` which assert what they show: `cargo run --example own_node`.
//!
//! # Rules for parts of your own
//!
//! * **No clock but the simulation's, no randomness but a seeded one** ([`device::Random`]). Then a run is a function of its configuration, seed and
//!   parts, and [`Fabric::trace_hash`] is the same every time.
//! * **A copy, or a refusal.** [`Fabric::snapshot`] asks each part for a copy by its method `snapshot`, and says by name which one gives none
//!   ([`NoSnapshot`]).
//! * **What you cannot see you cannot break.** A part gets a context or the record of what happens, never the fabric. Credits, queues, replay,
//!   captures and attribution go on around it: the causes of a transaction sum to its latency whatever the parts do.
//!
//! # The layers, for those who drive them
//!
//! Each is a crate of its own, which knows nothing of those below it in this list:
//!
//! * [`units`]: time in femtoseconds, exact link rates, sizes, IDs
//! * [`wire`]: bytes and their meaning: TLPs, DLLPs, flits, CRCs
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

/// What most programs need, by `use tlplab::prelude::*`.
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
