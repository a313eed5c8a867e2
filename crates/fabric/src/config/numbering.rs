//! The nodes, ports and links of a configuration, all numbered by sorted names.

use crate::config::BuildError;
use crate::config::{Arbitration, FabricConfig, FunctionOf, LinkConfig, payloads};
use std::collections::BTreeMap;
use tlplab_units::Mps;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Root complex.
    Root,
    /// Switch.
    Switch,
    /// End point.
    EndPoint,
    /// Bridge to a parallel bus.
    Bridge,
    /// A custom node.
    Custom,
}

/// The numbering of a fabric.
pub(crate) struct Numbering {
    /// Names of nodes, sorted.
    pub(crate) nodes: Vec<String>,
    kinds: Vec<NodeKind>,
    /// By node: the functions of its device, from 0; a node that is no function 0 has none.
    pub(crate) functions: Vec<Vec<Function>>,
    pub(crate) root: usize,
    /// By node; within a node the upstream port first, then downstream ports by the name of what is below.
    pub(crate) ports: Vec<PortSlot>,
    /// By the name of the component below.
    pub(crate) links: Vec<LinkSlot>,
}

/// A function of a device, and the node that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) number: u8,
    pub(crate) node: usize,
}

pub(crate) struct PortSlot {
    pub(crate) name: String,
    pub(crate) node: usize,
    /// Among its node's ports.
    pub(crate) index: usize,
    pub(crate) link: usize,
    /// 0: transmits towards the root complex.
    pub(crate) direction: u8,
    /// Max_Payload_Size as software sets it.
    pub(crate) mps: Mps,
}

pub(crate) struct LinkSlot {
    /// The component below.
    pub(crate) name: String,
    pub(crate) lower: usize,
    pub(crate) upper: usize,
    /// Payload limit in force: the smaller one of its ends.
    pub(crate) mps: Mps,
}

impl Numbering {
    pub(crate) fn of(config: &FabricConfig) -> Result<Self, BuildError> {
        let mut kinds = BTreeMap::from([(config.host.name.clone(), NodeKind::Root)]);
        let switches = config.switches.iter().map(|s| (&s.name, NodeKind::Switch));
        let buses = config.buses.iter().map(|b| (&b.name, NodeKind::Bridge));
        let devices = config.devices.iter().map(|d| (&d.name, NodeKind::EndPoint));
        let nodes = config.nodes.iter().map(|n| (&n.name, NodeKind::Custom));
        for (name, kind) in switches.chain(buses).chain(devices).chain(nodes) {
            if kinds.insert(name.clone(), kind).is_some() {
                return Err(BuildError::DuplicateName(name.clone()));
            }
        }
        let nodes: Vec<_> = kinds.keys().cloned().collect();
        let root = nodes.iter().position(|n| *n == config.host.name).expect("inserted above");
        let kinds: Vec<_> = kinds.into_values().collect();
        let functions = functions(config, &nodes)?;
        let mut numbering = Self { nodes, kinds, functions, root, ports: Vec::new(), links: Vec::new() };
        let children = numbering.children(config)?;
        numbering.number(config, &children);
        numbering.limit_payload(config)?;
        numbering.check_chips(config)?;
        Ok(numbering)
    }

    pub(crate) fn kind(&self, node: usize) -> NodeKind {
        self.kinds[node]
    }

    pub(crate) fn ports_of(&self, node: usize) -> impl Iterator<Item = usize> {
        (0..self.ports.len()).filter(move |&p| self.ports[p].node == node)
    }

    /// The configuration of a link, by its number.
    pub(crate) fn link_config<'a>(&self, config: &'a FabricConfig, link: usize) -> &'a LinkConfig {
        link_of(config, &self.links[link].name)
    }

    /// Room of each port of a node in TLPs, if that is how it is given.
    pub(crate) fn port_buffer(&self, config: &FabricConfig, node: usize) -> Option<u16> {
        match self.kinds[node] {
            NodeKind::Root => config.host.port_buffer,
            NodeKind::Switch => {
                config.switches.iter().find(|s| s.name == self.nodes[node]).and_then(|s| s.port_buffer)
            }
            NodeKind::EndPoint | NodeKind::Bridge | NodeKind::Custom => None,
        }
    }

    /// Of the node of a function: the node of its device's function 0, and its place among the functions.
    pub(crate) fn function(&self, node: usize) -> (usize, usize) {
        let place = |functions: &Vec<Function>| functions.iter().position(|f| f.node == node);
        let found = self.functions.iter().enumerate().find_map(|(first, all)| Some((first, place(all)?)));
        found.expect("every end point is a function of a device")
    }

    /// True if the node has a link above it.
    fn has_link(&self, node: usize) -> bool {
        let is_function = self.kinds[node] == NodeKind::EndPoint && self.functions[node].is_empty();
        node != self.root && !is_function
    }

    /// The other partitions of the chip that a switch is one of, by their nodes.
    pub(crate) fn other_partitions(&self, config: &FabricConfig, node: usize) -> Vec<usize> {
        let chip_of = |name: &str| config.switches.iter().find(|s| s.name == name)?.chip.as_deref();
        let Some(chip) = chip_of(&self.nodes[node]) else { return Vec::new() };
        (0..self.nodes.len())
            .filter(|&other| other != node && chip_of(&self.nodes[other]) == Some(chip))
            .collect()
    }

    /// The source, in the egress queues of each other partition of its chip, of the port of a switch: behind that partition's own ports.
    pub(crate) fn sources_inside(&self, config: &FabricConfig, port: usize) -> Vec<(usize, usize)> {
        let PortSlot { node, index, .. } = self.ports[port];
        let count = |node: usize| self.ports_of(node).count();
        let others = self.other_partitions(config, node);
        let source = |other: usize| {
            let before =
                self.other_partitions(config, other).into_iter().take_while(|between| *between != node);
            count(other) + before.map(count).sum::<usize>() + index
        };
        others.into_iter().map(|other| (other, source(other))).collect()
    }

    /// Partitions of a chip must have one payload.
    fn check_chips(&self, config: &FabricConfig) -> Result<(), BuildError> {
        let payload = |node: usize| self.ports_of(node).next().map(|port| self.ports[port].mps);
        for node in (0..self.nodes.len()).filter(|&node| self.kinds[node] == NodeKind::Switch) {
            for other in self.other_partitions(config, node) {
                let (Some(one), Some(two)) = (payload(node), payload(other)) else { continue };
                if one != two {
                    let chip = config.switches.iter().find(|s| s.name == self.nodes[node]);
                    return Err(BuildError::Chip {
                        chip: chip.and_then(|switch| switch.chip.clone()).unwrap_or_default(),
                        first: self.nodes[node].clone(),
                        second: self.nodes[other].clone(),
                        payloads: (one.bytes(), two.bytes()),
                    });
                }
            }
        }
        Ok(())
    }

    /// Weight of each source of the egress queues of a node: one per port, and of the root complex one for processor and memory and one for each domain; of a partition of a chip
    /// one for each port of the others. An end
    /// point has its functions as sources.
    pub(crate) fn sources(&self, config: &FabricConfig, node: usize) -> Vec<u16> {
        let name = &self.nodes[node];
        let round_robin = Arbitration::RoundRobin;
        let arbitration =
            config.switches.iter().find(|s| s.name == *name).map_or(&round_robin, |s| &s.arbitration);
        let mut weights: Vec<_> = self
            .ports_of(node)
            .map(|port| match arbitration {
                Arbitration::RoundRobin => 1,
                Arbitration::Weighted(weights) => {
                    let slot = &self.ports[port];
                    let link = &self.links[slot.link];
                    let other = if slot.direction == 0 { link.upper } else { link.lower };
                    let behind = &self.nodes[self.ports[other].node];
                    weights.iter().find(|(n, _)| n == behind).map_or(1, |(_, weight)| *weight)
                }
            })
            .collect();
        match self.kinds[node] {
            // The processor and memory, and the domains.
            NodeKind::Root => weights.extend(std::iter::repeat_n(1, 1 + config.host.domains.len())),
            NodeKind::EndPoint => weights.resize(self.functions[node].len(), 1),
            NodeKind::Switch => {
                let inside =
                    self.other_partitions(config, node).into_iter().flat_map(|other| self.ports_of(other));
                weights.extend(inside.map(|_| 1));
            }
            NodeKind::Bridge | NodeKind::Custom => {}
        }
        weights
    }

    /// For each node, what is below it: (name of the port, node).
    fn children(&self, config: &FabricConfig) -> Result<Vec<Vec<(String, usize)>>, BuildError> {
        let mut children: Vec<Vec<(String, usize)>> = vec![Vec::new(); self.nodes.len()];
        let root_prefix = format!("{}.", config.host.name);
        for (node, name) in self.nodes.iter().enumerate() {
            if !self.has_link(node) {
                continue;
            }
            let under = &link_of(config, name).under;
            let unknown = || BuildError::UnknownParent { component: name.clone(), under: under.clone() };
            let parent = if under.starts_with(&root_prefix) {
                self.root
            } else {
                self.nodes.iter().position(|n| n == under).ok_or_else(unknown)?
            };
            let on_bus = config.devices.iter().any(|d| d.name == *name && d.bus.is_some());
            let valid = match self.kinds[parent] {
                NodeKind::Root => under.starts_with(&root_prefix) && !on_bus,
                NodeKind::Switch | NodeKind::Custom => !on_bus,
                NodeKind::Bridge => on_bus,
                NodeKind::EndPoint => false,
            };
            if !valid {
                return Err(unknown());
            }
            let taken = children[parent].iter().find(|(port, _)| parent == self.root && port == under);
            if let Some(&(_, first)) = taken {
                let (first, second) = (self.nodes[first].clone(), name.clone());
                return Err(BuildError::PortTaken { port: under.clone(), first, second });
            }
            children[parent].push((under.clone(), node));
        }
        // Root ports by their numbers: rp2 before rp10.
        children[self.root].sort_by_key(|(port, _)| (port.len(), port.clone()));
        self.check_connected(config)?;
        self.check_custom(config, &children)?;
        Ok(children)
    }

    /// A custom node has one link below it, which is invisible to software: no fault takes it down.
    fn check_custom(
        &self,
        config: &FabricConfig,
        children: &[Vec<(String, usize)>],
    ) -> Result<(), BuildError> {
        for node in (0..self.nodes.len()).filter(|node| self.kinds[*node] == NodeKind::Custom) {
            let error = |node: usize, why| BuildError::Custom { component: self.nodes[node].clone(), why };
            let [(_, child)] = children[node][..] else {
                return Err(error(
                    node,
                    "a custom node has exactly one component below it; for more, put a switch below it",
                ));
            };
            if link_of(config, &self.nodes[child]).upper.acs.is_some() {
                return Err(error(
                    child,
                    "access control needs a port of a switch or a root port, and the node above is a custom one",
                ));
            }
            if link_of(config, &self.nodes[child]).faults.iter().any(|fault| fault.kind.takes_down()) {
                let why = "a fault cannot take this link down, because the custom node above has no slot to report it; take down the link above the node";
                return Err(error(child, why));
            }
        }
        Ok(())
    }

    fn check_connected(&self, config: &FabricConfig) -> Result<(), BuildError> {
        for (node, name) in self.nodes.iter().enumerate().filter(|(node, _)| self.has_link(*node)) {
            let mut at = node;
            for _ in 0..=self.nodes.len() {
                if at == self.root {
                    break;
                }
                let under = &link_of(config, &self.nodes[at]).under;
                at = self.nodes.iter().position(|n| n == under).unwrap_or(self.root);
            }
            if at != self.root {
                return Err(BuildError::Loop(name.clone()));
            }
        }
        Ok(())
    }

    fn number(&mut self, config: &FabricConfig, children: &[Vec<(String, usize)>]) {
        let mut link_of_node = vec![0; self.nodes.len()];
        for node in (0..self.nodes.len()).filter(|n| self.has_link(*n)).collect::<Vec<_>>() {
            let name = self.nodes[node].clone();
            link_of_node[node] = self.links.len();
            let mps = link_of(config, &name).mps;
            self.links.push(LinkSlot { name, lower: 0, upper: 0, mps });
        }
        for node in 0..self.nodes.len() {
            let mut index = 0;
            if self.has_link(node) {
                let link = link_of_node[node];
                self.links[link].lower = self.ports.len();
                let (name, mps) = (self.nodes[node].clone(), Mps::ALL[0]);
                self.ports.push(PortSlot { name, node, index, link, direction: 0, mps });
                index = 1;
            }
            for (name, child) in &children[node] {
                let link = link_of_node[*child];
                self.links[link].upper = self.ports.len();
                let (name, mps) = (name.clone(), Mps::ALL[0]);
                self.ports.push(PortSlot { name, node, index, link, direction: 1, mps });
                index += 1;
            }
        }
    }

    /// Gives each port the payload that software sets.
    fn limit_payload(&mut self, config: &FabricConfig) -> Result<(), BuildError> {
        if self.ports.len() + self.nodes.len() > usize::from(u16::MAX) {
            return Err(BuildError::TooLarge("a fabric has at most 65 535 ports and nodes"));
        }
        let links = self.links.iter().map(|link| (link.name.as_str(), link_of(config, &link.name))).collect();
        let set = payloads(config.host.payloads, &links);
        let set: Vec<_> = self.links.iter().map(|link| set[link.name.as_str()]).collect();
        for (link, set) in self.links.iter_mut().zip(set) {
            link.mps = set.upper.min(set.lower);
            (self.ports[link.upper].mps, self.ports[link.lower].mps) = (set.upper, set.lower);
        }
        Ok(())
    }
}

/// By node: the functions of the device whose function 0 it is, in the order of their numbers.
fn functions(config: &FabricConfig, nodes: &[String]) -> Result<Vec<Vec<Function>>, BuildError> {
    let position = |name: &str| nodes.iter().position(|n| n == name);
    let mut functions = vec![Vec::new(); nodes.len()];
    for device in config.devices.iter().filter(|d| d.function_of.is_none()) {
        let node = position(&device.name).expect("every device is a node");
        functions[node].push(Function { number: 0, node });
    }
    for device in &config.devices {
        let Some(FunctionOf { device: of, number }) = &device.function_of else { continue };
        let error = |why| BuildError::Function { component: device.name.clone(), device: of.clone(), why };
        let node = position(&device.name).expect("every device is a node");
        let Some(first) =
            position(of).filter(|&first| functions[first].first().is_some_and(|f| f.node == first))
        else {
            return Err(error("it does not exist, or has no link of its own"));
        };
        if *number == 0 {
            return Err(error("further functions have the numbers 1 to 255"));
        }
        if functions[first].iter().any(|f| f.number == *number) {
            return Err(error("its number is taken"));
        }
        functions[first].push(Function { number: *number, node });
    }
    functions.iter_mut().for_each(|all| all.sort_by_key(|f| f.number));
    Ok(functions)
}

fn link_of<'a>(config: &'a FabricConfig, name: &str) -> &'a LinkConfig {
    let switch = config.switches.iter().find(|s| s.name == name).map(|s| &s.uplink);
    let bus = config.buses.iter().find(|b| b.name == name).map(|b| &b.uplink);
    let device = config.devices.iter().find(|d| d.name == name).map(|d| &d.link);
    let node = config.nodes.iter().find(|n| n.name == name).map(|n| &n.link);
    switch.or(bus).or(device).or(node).expect("every component but the host has a link above it")
}
