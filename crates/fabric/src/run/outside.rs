//! Queries of a fabric, and actions on it, from outside, besides driving it.

use crate::kernel::ids::{NodeId, PortId};
use crate::node::end_point::ats::DeviceTranslations;
use crate::node::root::host_memory::{HostCounters, Writer};
use crate::node::root::translation::{AnsweredTranslations, TranslationFault};
use crate::run::Fabric;
use tlplab_cfgspace::ConfigSpace;
use tlplab_cfgspace::enumerate::{Hierarchy, Problem};
use tlplab_device::{DeviceInfo, InterruptMode, ReplyToken};
use tlplab_units::{Bdf, Time};

impl Fabric {
    /// The node called `name`.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.hardware.cx.topology.nodes.iter().position(|n| n.name == name).map(|i| NodeId(i as u16))
    }

    /// The kind of interrupt that software lets a device use now.
    pub fn interrupt_mode(&mut self, node: NodeId) -> InterruptMode {
        self.hardware.nodes.end_point(node).function.space.interrupt_mode()
    }

    /// The configuration space of a device's function, as it is now.
    pub fn function_space(&mut self, device: NodeId) -> &ConfigSpace {
        &self.hardware.nodes.end_point(device).function.space
    }

    /// True if a read still waits for the answer of an outside device. After a reset it does not.
    pub fn is_asked(&self, token: ReplyToken) -> bool {
        self.hardware.cx.tlps.is_asked(token.0)
    }

    /// The hierarchy that software found, once it has; see [`EnumerationTime`](crate::config::EnumerationTime).
    pub fn hierarchy(&self) -> Option<&Hierarchy> {
        self.software.found.as_ref()
    }

    /// Finds and configures functions in no time, as firmware does before software that is outside begins.
    pub fn enumerate_as_firmware(&mut self) -> Hierarchy {
        self.software.enumerate_as_firmware(&mut self.hardware)
    }

    /// The problems of software since the start, each once.
    pub fn enumeration_problems(&self) -> &[Problem] {
        &self.software.problems
    }

    /// The end of enumeration, when devices and programs could start.
    pub fn enumerated_at(&self) -> Option<Time> {
        self.software.over
    }

    /// The configuration space of every function that software can reach, a bridge before what is below it. What is below a link that
    /// is down cannot be reached, even if software has not heard of that yet.
    pub fn config_spaces(&mut self) -> Vec<(Bdf, ConfigSpace)> {
        self.software.config_spaces(&mut self.hardware)
    }

    /// The component that has this function, and which of its ports it is, if it is a bridge; by the bus numbers as they are.
    pub fn component_at(&mut self, function: Bdf) -> Option<(NodeId, Option<PortId>)> {
        self.hardware.component_at(function)
    }

    /// Nothing that matters is in the last-level cache any more: every line is cold.
    pub fn cool_cache(&mut self) {
        self.hardware.nodes.root_mut().cool_cache();
    }

    /// The lines of a range of memory have been written, one after the other. Nothing happens on a host without a cache. (Memory on another
    /// node is written by the processor there: its lines are then not in this node's cache.)
    pub fn warm_cache(&mut self, address: u64, bytes: u64, writer: Writer) {
        self.hardware.nodes.root_mut().warm_cache(address, bytes, writer);
    }

    /// Cache and IO-TLB are as if a device had read `bytes` at `address` long ago. Nothing is counted.
    pub fn read_without_time(&mut self, address: u64, bytes: u64) {
        self.hardware.nodes.root_mut().access_without_time(address, bytes, false);
    }

    /// The same of a device that has written them.
    pub fn write_without_time(&mut self, address: u64, bytes: u64) {
        self.hardware.nodes.root_mut().access_without_time(address, bytes, true);
    }

    /// No translation is kept in the IO-TLB any more.
    pub fn forget_translations(&mut self) {
        self.hardware.nodes.root_mut().forget_translations();
    }

    /// A range of host memory is on the other node. Without `numa` in the configuration that is no farther.
    pub fn place_remote(&mut self, address: u64, bytes: u64) {
        self.hardware.nodes.root_mut().place_remote(address, bytes);
    }

    /// The counters of the host's cache and IOMMU.
    pub fn host_counters(&self) -> HostCounters {
        self.hardware.nodes.root().host_counters(self.now())
    }

    /// The accesses that the IOMMU has refused since the start, by function and reason.
    pub fn translation_faults(&self) -> impl Iterator<Item = &TranslationFault> {
        self.hardware.nodes.root().translation_faults()
    }

    /// The translations that devices requested from the IOMMU; `None` where addresses stay as they are and no device requests any.
    pub fn answered_translations(&self) -> Option<AnsweredTranslations> {
        self.hardware.nodes.root().answered_translations()
    }

    /// Devices that can ask for translations, and what they did with them.
    pub fn device_translations(&self) -> impl Iterator<Item = (NodeId, DeviceTranslations)> {
        let end_points = self.hardware.nodes.end_points();
        end_points.filter_map(|end_point| Some((end_point.node, end_point.ats.as_ref()?.count)))
    }

    /// The properties of devices and links, for results.
    pub fn devices(&self) -> &[DeviceInfo] {
        &self.hardware.cx.devices
    }

    /// The ID a component answers with.
    pub fn id_of(&self, name: &str) -> Option<Bdf> {
        self.hardware.cx.topology.nodes.iter().find(|n| n.name == name).map(|n| n.id)
    }
}
