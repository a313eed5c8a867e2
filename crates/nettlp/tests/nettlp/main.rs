//! NetTLP's two ends, without a network or over one in virtual time.
//!
//! * [`points`], [`answers`], [`server`], [`adapter`], [`adapter_counters`], [`adapter_functions`], [`adapter_peers`]: single datagrams, byte by byte ([`raw`])
//! * [`memory_host`]: the machine behind an adapter
//! * [`impaired`], [`adapter_network`], [`adapter_isolation`]: a [`network`] that does what networks do, with judges at its ends ([`scene`])
//! * [`devices`]: the built-in devices and their drivers on a [`machine`] behind an adapter
//! * [`digest`]: bits that turn on the way, with digests (ECRC) and without
//! * [`acknowledged`], [`links`]: links on which nothing is lost, doubled or out of order, whatever the network does
//! * [`junk`]: whatever may come
//! * [`adapter_captures`], [`document`]: what others have captured, and what docs/nettlp.md says

mod acknowledged;
mod adapter;
mod adapter_captures;
mod adapter_counters;
mod adapter_functions;
mod adapter_isolation;
mod adapter_network;
mod adapter_peers;
mod answers;
mod devices;
mod digest;
mod document;
mod impaired;
mod junk;
mod links;
mod machine;
mod memory_host;
mod network;
mod points;
mod raw;
mod scene;
mod server;
