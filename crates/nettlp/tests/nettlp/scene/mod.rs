//! Who is on the network: an adapter, and devices that judge what they read.

mod adapter;
mod device;

pub(crate) use adapter::AdapterNode;
pub(crate) use device::{FIXED, TestDevice, bytes_of};
