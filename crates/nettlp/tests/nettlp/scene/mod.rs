//! Who is on the network: an adapter, and devices that judge what they read.

mod adapter;
pub(crate) mod cards;
mod device;

pub(crate) use adapter::AdapterNode;
pub(crate) use device::{FIXED, TestDevice, bytes_of};
