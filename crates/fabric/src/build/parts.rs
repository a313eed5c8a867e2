//! Input of a builder besides the configuration: the flows of devices and programs, and custom parts.

use crate::config::numbering::Numbering;
use crate::config::{BuildError, Direction, FabricConfig};
use crate::link::channel_model::ChannelModel;
use crate::link::make::{self, MakeLayer};
use crate::link::port::Port;
use crate::node::custom::NodeModel;
use crate::observe::topology::FlowInfo;
use std::collections::BTreeMap;
use tlplab_device::{Device, HostProgram, TlpDevice};

pub(super) struct Behaviour {
    pub(super) device: Box<dyn Device>,
    pub(super) outside: bool,
    pub(super) core: Option<Box<dyn TlpDevice>>,
    pub(super) streams: Owner,
}

pub(super) struct HostBehaviour {
    pub(super) program: Option<Box<dyn HostProgram>>,
    pub(super) streams: Owner,
}

/// The flows of a device or program, and whether a run waits for its end.
#[derive(Default)]
pub(super) struct Owner {
    pub(super) flows: Vec<FlowInfo>,
    pub(super) finishes: bool,
}

/// More about a device or program that a [`Builder`](crate::Builder) has just been given.
pub struct Streams<'a>(pub(super) &'a mut Owner);

impl Streams<'_> {
    /// The flows of its streams, from 0; the last serves all further streams. One with its name is made if there is none.
    pub fn flows(self, flows: impl IntoIterator<Item = FlowInfo>) -> Self {
        self.0.flows = flows.into_iter().collect();
        self
    }

    /// It has a task that ends: a run waits until it has said so ([`Fabric::is_done`](crate::Fabric::is_done)).
    pub fn finishes(self) -> Self {
        self.finishes_if(true)
    }

    /// The same of one that may or may not.
    pub fn finishes_if(self, ends: bool) -> Self {
        self.0.finishes = ends;
        self
    }
}

/// Custom parts.
#[derive(Default)]
pub(super) struct CustomParts {
    /// By name.
    pub(super) nodes: BTreeMap<String, Box<dyn NodeModel>>,
    /// By the component below the link.
    pub(super) channels: Vec<(String, Direction, Box<dyn ChannelModel>)>,
    pub(super) layers: Vec<(String, MakeLayer)>,
}

impl CustomParts {
    /// Every node has a model, and the other way round.
    pub(super) fn check(&self, config: &FabricConfig) -> Result<(), BuildError> {
        let error = |name: &str, why| Err(BuildError::Custom { component: name.into(), why });
        for node in &config.nodes {
            if !self.nodes.contains_key(&node.name) {
                return error(&node.name, "a custom node needs a model: give both with Builder::node");
            }
        }
        Ok(())
    }

    /// Puts channels and data link layers to their ports.
    pub(super) fn join_links(
        &mut self,
        config: &FabricConfig,
        numbering: &Numbering,
        ports: &mut [Port],
    ) -> Result<(), BuildError> {
        for (name, make) in std::mem::take(&mut self.layers) {
            make::custom_layer(config, numbering, ports, &name, make)?;
        }
        for (name, direction, model) in std::mem::take(&mut self.channels) {
            make::custom_channel(config, numbering, ports, &name, direction, model)?;
        }
        Ok(())
    }
}
