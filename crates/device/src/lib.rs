//! The device contract and the built-in devices
