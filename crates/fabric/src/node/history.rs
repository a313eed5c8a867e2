//! The configuration spaces of all functions over time.

use crate::kernel::ids::{FunctionAt, NodeId};
use crate::node::Node;
use crate::node::hardware::Hardware;
use crate::observe::registers::RegisterHistory;
use tlplab_units::Bdf;

/// So many changes of registers are kept of all functions together, of each at least [`FEWEST`] and at most [`MOST`].
const CHANGES: usize = 8192;
const FEWEST: usize = 32;
const MOST: usize = 1024;

impl Hardware {
    /// From now on the configuration space of every function is kept over time.
    pub(crate) fn keep_register_histories(&mut self) {
        let all = self.all_functions();
        let each = (CHANGES / all.len().max(1)).clamp(FEWEST, MOST);
        for at in all {
            self.function(at).space.keep_history(each);
        }
    }

    /// The histories, in the order of nodes and their ports. `found`: the functions that software has found.
    pub(crate) fn register_histories(&mut self, found: &[Bdf]) -> Vec<RegisterHistory> {
        let places: Vec<_> = found.iter().filter_map(|id| Some((self.find_function(*id)?, *id))).collect();
        let all = self.all_functions();
        let history = |at: FunctionAt| {
            let name = self.function_name(at);
            let found = places.iter().find(|(place, _)| *place == at).map(|(_, id)| *id);
            let function = self.function(at);
            let own = Some(function.id).filter(|id| *id != Bdf(0));
            function.space.history(name, found.or(own))
        };
        all.into_iter().filter_map(history).collect()
    }

    fn all_functions(&self) -> Vec<FunctionAt> {
        let count = |node: &Node| match node {
            Node::Root(root) => root.ports.len() + 1,
            Node::Switch(switch) => switch.ports.len(),
            Node::Bridge(_) | Node::EndPoint(_) => 1,
            Node::Custom(_) => 0,
        };
        let nodes = (0..).map(NodeId).zip(&self.nodes.all);
        nodes.flat_map(|(node, of)| (0..count(of)).map(move |index| FunctionAt { node, index })).collect()
    }

    fn function_name(&self, at: FunctionAt) -> String {
        let topology = &self.cx.topology;
        match &self.nodes[at.node] {
            Node::Root(root) if at.index > 0 => topology.ports[root.ports[at.index - 1].index()].name.clone(),
            Node::Switch(switch) if at.index > 0 => topology.direction_name(switch.ports[at.index]),
            _ => topology.nodes[at.node.index()].name.clone(),
        }
    }
}
