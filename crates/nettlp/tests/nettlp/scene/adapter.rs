//! The adapter on the network.

use crate::network::Node;
use std::net::Ipv4Addr;
use tlplab_nettlp::Engine;
use tlplab_nettlp::adapter::{Adapter, MemoryHost};
use tlplab_units::{Duration, Time};

pub(crate) struct AdapterNode {
    pub(crate) adapter: Adapter<MemoryHost>,
    pub(crate) pace: Duration,
}

impl Node for AdapterNode {
    fn address(&self) -> Ipv4Addr {
        self.adapter.config().local
    }
    fn engine(&mut self) -> &mut dyn Engine {
        &mut self.adapter
    }
    fn turn(&mut self, _: Time) {}
    fn pace(&self) -> Duration {
        self.pace
    }
}
