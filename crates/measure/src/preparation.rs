//! The host before a measurement: where its memory is, and what its cache holds. Takes no simulated time.

use crate::case::{Case, Node};
use crate::target::MeasureError;
use tlplab_fabric::Fabric;
use tlplab_fabric::config::HostConfig;

/// Where the buffer begins: above 4 GiB, so that headers have 64-bit addresses.
pub const BASE: u64 = 1 << 33;

/// Brings the host into the state that a case begins in.
///
/// # Errors
/// The host has not what the case asks for.
pub fn prepare(_fabric: &mut Fabric, _host: &HostConfig, case: &Case) -> Result<(), MeasureError> {
    if case.node == Node::Remote {
        return Err(MeasureError::Unsupported("this host has one node".into()));
    }
    Ok(())
}
