//! Custom nodes, as plain data.

use super::LinkConfig;
use tlplab_units::Duration;

/// A custom node between its own link and the link of the one component that names it in `under`. It is invisible to software.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// The component's name, unique in the fabric.
    pub name: String,
    /// The link above it.
    pub link: LinkConfig,
    /// From the arrival of a TLP to the node's decision about it.
    pub latency: Duration,
}

impl NodeConfig {
    /// A node without latency.
    pub fn new(name: &str, link: LinkConfig) -> Self {
        Self { name: name.into(), link, latency: Duration::ZERO }
    }
}
