//! DMA over UDP on the loopback interface, and what goes wrong there.

mod acknowledged;
mod batched;
mod context;
mod flood;
mod frames;
mod memory;
mod namespaces;
mod perf;
mod proxy;
mod served;
mod station;
