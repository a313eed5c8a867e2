//! NetTLP, sans-IO: PCI Express devices in software, whose TLPs travel in UDP datagrams (Kuga et al., NSDI 2020).
//!
//! Bytes are the business of [`tlplab_wire::nettlp`], sockets and clocks that of whoever drives an [`Engine`]. What is here is what
//! stands between:
//!
//! * [`engine`]: datagrams and time in, datagrams and deadlines out
//! * [`datagram`]: a TLP and its data as the payload of one
//! * [`endpoint`]: a software device's end: its reads and writes of the host's memory, and the host's requests to it
//! * [`server`]: a [`Device`](tlplab_device::Device) on an end point: BARs, DMA, interrupts, timers
//! * [`adapter`]: the card that stands in the host, in software: what a device's end talks to where there is no card
//!
//! ```text
//!  device ── events, actions ── server ── reads, writes, requests ── endpoint ── datagrams ── (a network) ── adapter ── host
//! ```

pub mod adapter;
pub mod datagram;
mod early;
pub mod endpoint;
pub mod engine;
mod link;
mod sequence;
pub mod server;

pub use adapter::{Adapter, AdapterConfig, DeviceConfig};
pub use endpoint::{Endpoint, EndpointConfig};
pub use engine::{Datagram, Engine, MAX_DATAGRAM, Outgoing, Undeliverable};
pub use server::{BarMap, DevicePort, DeviceServer, Vectors};
