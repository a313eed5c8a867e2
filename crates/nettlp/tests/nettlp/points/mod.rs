//! What software for NetTLP gets wrong, point by point. Each test says what a naive implementation does, and fails on it.

mod datagrams;
mod host;
mod reads;
mod state;

use crate::raw::*;
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_device::{DmaError, Refusal};
use tlplab_nettlp::endpoint::*;
use tlplab_nettlp::{Datagram, Engine, Undeliverable};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Bdf, Duration, Mps, Mrrs, Rcb, Time};

fn config() -> EndpointConfig {
    let config = EndpointConfig::new(ADAPTER, Bdf(DEVICE));
    EndpointConfig { completion_timeout: Duration::from_us(100), numbered: false, ..config }
}
fn with_window(base: u64, size: u64) -> EndpointConfig {
    EndpointConfig { windows: vec![Window { base, size }], ..config() }
}
type Device = Endpoint<u32>;

fn results(device: &mut Device) -> Vec<(u32, Result<Payload, DmaError>)> {
    std::iter::from_fn(|| device.poll_event())
        .map(|event| match event {
            Event::ReadDone { token, result } => (token, result),
            other => panic!("{other:?}"),
        })
        .collect()
}
fn error(device: &mut Device) -> CompletionError {
    match results(device).as_slice() {
        [(_, Err(DmaError::Completion(error)))] => *error,
        other => panic!("one failed read, not {other:?}"),
    }
}
