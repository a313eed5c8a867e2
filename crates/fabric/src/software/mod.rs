//! The host's software: enumeration, hot-plug, and the resets that follow links that go down.

pub(crate) mod enumeration;
pub mod hot_plug;
pub(crate) mod link_state;
pub(crate) mod reset;
