//! Enumeration: the software of `tlplab_cfgspace` finds the functions and configures them, either before time 0 or, as configuration
//! requests over the links, in simulated time. Devices and programs start when it is over. What changes later is found in simulated time,
//! slot by slot (`hot_plug`).

use super::{Software, sharing_wires};
use crate::config::{MMIO_LOW, message_of_function};
use crate::kernel::ids::{FunctionAt, PortId};
use crate::link::agenda::Task;
use crate::link::context::Context;
use crate::node::Node;
use crate::node::end_point::EndPoint;
use crate::node::function::dword;
use crate::node::hardware::Hardware;
use crate::observe::registers::ChangedBy;
use std::collections::BTreeMap;
use std::sync::Arc;
use tlplab_cfgspace::ConfigSpace;
use tlplab_cfgspace::enumerate::{Answer, Enumerator, Hierarchy, Request, Settings, Step};
use tlplab_device::{DeviceInfo, ECAM, HostAction, HostEvent, OpId, ecam_address};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Mrrs, Time};
use tlplab_wire::tlp::{CfgTarget, CfgType};

/// Max_Read_Request_Size after a reset (PCIe 5.0 §7.5.3.4).
const DEFAULT_MRRS: Mrrs = Mrrs::ALL[2];

impl Software {
    /// Enumerates in no time: every access reaches its function at once.
    pub(crate) fn enumerate_before(&mut self, hardware: &mut Hardware) {
        let hierarchy = self.enumerate_at_once(hardware);
        self.enumerated(hardware, hierarchy);
    }

    /// As firmware does for software that is outside: functions are found and configured, and that is all.
    pub(crate) fn enumerate_as_firmware(&mut self, hardware: &mut Hardware) -> Hierarchy {
        let hierarchy = self.enumerate_at_once(hardware);
        self.problems.extend(&hierarchy.problems);
        self.found = Some(hierarchy.clone());
        hierarchy
    }

    fn enumerate_at_once(&self, hardware: &mut Hardware) -> Hierarchy {
        let mut enumerator = Enumerator::new(self.enumeration_settings(hardware));
        let mut answer = None;
        loop {
            match enumerator.step(answer) {
                Step::Ask(request) => answer = Some(self.answer_at_once(hardware, &request)),
                Step::Done(hierarchy) => return hierarchy,
            }
        }
    }

    /// Starts to enumerate in simulated time.
    pub(crate) fn enumerate_in_time(&mut self, hardware: &mut Hardware) {
        self.running = Some(Enumerator::new(self.enumeration_settings(hardware)));
        self.update_permission(hardware);
        self.enumeration_goes_on(hardware, None);
    }

    fn answer_at_once(&self, hardware: &mut Hardware, request: &Request) -> Answer {
        match *request {
            Request::Read { function, offset } => {
                let value = self.register_at_once(hardware, function, offset, 15, None);
                Answer::Value(value.unwrap_or(u32::MAX))
            }
            Request::Write { function, offset, enables, value } => {
                self.register_at_once(hardware, function, offset, enables, Some(value));
                Answer::Done
            }
            Request::WriteMemory { address, value } => {
                self.write_at_once(hardware, address, value);
                Answer::Done
            }
            Request::MaxReadRequest { function } => {
                Answer::MaxReadRequest(max_read_request(hardware, function))
            }
            Request::Wait(_) => Answer::Done,
        }
    }

    fn register_at_once(
        &self,
        hardware: &mut Hardware,
        function: Bdf,
        offset: u16,
        enables: u8,
        written: Option<u32>,
    ) -> Option<u32> {
        let at = hardware.find_function(function)?;
        let target = CfgTarget::new(function, offset & !3, enables, CfgType::Type0).ok()?;
        let functions = hardware.nodes[at.node].functions();
        Some(functions.access(&mut hardware.cx, at.index, target, written))
    }

    /// Writes an MSI-X table, which is all that enumeration writes to memory.
    fn write_at_once(&self, hardware: &mut Hardware, address: u64, value: u32) {
        let claims = |end_point: &EndPoint| Some((end_point.node, end_point.bar_of(address, false)?));
        let found = hardware.nodes.end_points().find_map(claims);
        if let Some((node, (bar, offset))) = found {
            let (cx, end_point) = (&mut hardware.cx, hardware.nodes.end_point_mut(node));
            if end_point.core.is_some() {
                return end_point.write_core_at_once(cx, address, bar, value);
            }
            end_point.msix_access(cx, bar, offset, 4, Some(Payload::from(value.to_le_bytes())));
        }
    }

    /// Feeds the enumeration the result that it waited for.
    pub(crate) fn hears(&mut self, hardware: &mut Hardware, event: HostEvent) {
        let answer = match event {
            HostEvent::MmioReadDone { result: Ok(payload), .. } => Answer::Value(dword(&payload)),
            HostEvent::MmioReadDone { result: Err(_), .. } => Answer::Failed,
            HostEvent::MmioWriteAccepted { .. } | HostEvent::Timer { .. } => Answer::Done,
            HostEvent::PortInterrupt { port, .. } => return self.slot_interrupted(hardware, port),
            HostEvent::Start
            | HostEvent::Interrupt { .. }
            | HostEvent::Message { .. }
            | HostEvent::Wire { .. } => return,
        };
        self.enumeration_goes_on(hardware, Some(answer));
    }

    /// As firmware hands a machine over to software that is outside: functions may send payloads as large as all of their hierarchy take, and
    /// ask for as much at once as their configuration says. All else is as after a reset.
    pub(crate) fn hand_over(&mut self, hardware: &mut Hardware) {
        let cx = &mut hardware.cx;
        for node in &mut hardware.nodes.all {
            let ports = node.ports().to_vec();
            match node {
                Node::EndPoint(end_point) => end_point.set_request_sizes(cx, self.payloads),
                Node::Bridge(_) => set_port_sizes(cx, node, 0, ports.first()),
                Node::Switch(_) => set_port_sizes(cx, node, 0, &ports),
                Node::Root(_) => set_port_sizes(cx, node, 1, &ports),
                Node::Custom(_) => {}
            }
        }
        let Hardware { cx, nodes } = &mut *hardware;
        nodes.root_mut().start_translation(cx);
        start_programs(hardware);
    }

    fn enumeration_goes_on(&mut self, hardware: &mut Hardware, mut answer: Option<Answer>) {
        let (Some(mut enumerator), Some(program)) = (self.running.take(), self.program) else {
            return;
        };
        loop {
            match enumerator.step(answer) {
                Step::Ask(request) => match action_of(&request, hardware.cx.now()) {
                    Some(action) => {
                        self.running = Some(enumerator);
                        let (cx, nodes) = (&mut hardware.cx, &mut hardware.nodes);
                        return nodes.root_mut().carry_out(cx, program, action);
                    }
                    None => answer = Some(self.answer_at_once(hardware, &request)),
                },
                Step::Done(hierarchy) => return self.enumerated(hardware, hierarchy),
            }
        }
    }

    /// If software has nothing else to do, it looks after a slot that has interrupted.
    pub(crate) fn next_job(&mut self, hardware: &mut Hardware) {
        let (None, Some(found), Some(_)) = (&self.running, &self.found, self.program) else { return };
        let found = found.clone();
        if let Some(bridge) = self.jobs.pop_front() {
            let settings = self.enumeration_settings(hardware);
            self.serving = Some(bridge);
            self.running = Some(Enumerator::serve_slot(settings, found, bridge));
            self.update_permission(hardware);
            self.enumeration_goes_on(hardware, None);
        }
    }

    /// Software has finished a job: what is new and configured starts.
    fn enumerated(&mut self, hardware: &mut Hardware, hierarchy: Hierarchy) {
        let first = self.found.is_none();
        let devices = describe_devices(hardware);
        let device_with = |id: Bdf| devices.iter().position(|info| info.id == id && id != Bdf(0));
        let functions = hierarchy.functions.iter().map(|function| function.bdf);
        self.sources = functions.filter_map(|id| Some((id, device_with(id)?))).collect();
        hardware.cx.devices = devices;
        self.sharing = sharing_wires(&hierarchy);
        let known = &mut self.problems;
        for problem in &hierarchy.problems {
            if !known.contains(problem) {
                known.push(*problem);
            }
        }
        self.found = Some(hierarchy);
        self.over.get_or_insert(hardware.cx.now());
        self.update_permission(hardware);
        for node in &mut hardware.nodes.all {
            if let Node::EndPoint(end_point) = node {
                end_point.start_when_allowed(&mut hardware.cx);
            }
        }
        if first {
            let Hardware { cx, nodes } = &mut *hardware;
            nodes.root_mut().start_translation(cx);
            start_programs(hardware);
        }
        let served = self.serving.take();
        self.note_configured(hardware, served);
        self.next_job(hardware);
    }

    fn enumeration_settings(&self, hardware: &Hardware) -> Settings {
        // 64-bit windows start above all memory.
        let high = hardware.nodes.root().server.size().next_power_of_two().max(1 << 40);
        Settings {
            memory: (MMIO_LOW, ECAM),
            high_memory: (high, 1 << 62),
            interrupts: self.interrupts,
            mps: self.payloads,
            error_reporting: self.error_reporting,
            ecrc: self.ecrc,
            translation: self.translation,
            message: Arc::new(message_of_function),
            // What comes is what went: nothing else is plugged in.
            hot_plug_buses: 0,
            hot_plug_memory: (0, 0),
            ..Settings::default()
        }
    }

    /// The configuration space of every function that software can reach, a bridge before what is below it. What is below a link that
    /// is down cannot be reached, even if software has not heard of that yet.
    pub(crate) fn config_spaces(&self, hardware: &mut Hardware) -> Vec<(Bdf, ConfigSpace)> {
        let found: Vec<_> = self.found.iter().flat_map(|h| &h.functions).map(|f| (f.bdf, f.parent)).collect();
        let mut spaces: BTreeMap<Bdf, (FunctionAt, ConfigSpace)> = BTreeMap::new();
        for (id, parent) in found {
            let above = parent.map(|parent| spaces.get(&parent).map(|(at, _)| *at));
            let cut_off =
                above.is_some_and(|above| above.is_none_or(|above| hardware.is_cut_off_below(above)));
            if let Some(at) = hardware.find_function(id).filter(|_| !cut_off) {
                spaces.insert(id, (at, ConfigSpace::clone(&hardware.function(at).space)));
            }
        }
        spaces.into_iter().map(|(id, (_, space))| (id, space)).collect()
    }
}

/// Firmware sets the Max_Payload_Size that its policy allows at the functions of a bridge, of which `first` is the first port's.
fn set_port_sizes<'a>(
    cx: &Context,
    node: &mut Node,
    first: usize,
    ports: impl IntoIterator<Item = &'a PortId>,
) {
    for (index, port) in (first..).zip(ports) {
        let mps = cx.planned_payload(*port);
        let space = node.functions().function(index).space.change(cx.now(), ChangedBy::Hardware);
        space.set_request_sizes(mps, DEFAULT_MRRS);
    }
}

/// Max_Read_Request_Size that software gives to a function: what the experiment says of its device.
fn max_read_request(hardware: &Hardware, function: Bdf) -> Mrrs {
    let at = hardware.find_function(function).map(|at| &hardware.nodes[at.node]);
    match at {
        Some(Node::EndPoint(end_point)) => end_point.mrrs,
        _ => DEFAULT_MRRS,
    }
}

/// Host programs may act.
fn start_programs(hardware: &mut Hardware) {
    for program in 0..hardware.nodes.root().programs.len() {
        hardware.cx.agenda.push(Task::TellHost { program, event: HostEvent::Start });
    }
}

/// The description of the devices for host programs, in the order of their names, as nodes are.
fn describe_devices(hardware: &Hardware) -> Vec<DeviceInfo> {
    let own_vendor = hardware.nodes.root().functions[0].space.read(0) as u16;
    let describe = |end_point: &EndPoint| {
        let ids = end_point.function.space.read(0);
        DeviceInfo {
            name: hardware.cx.topology.nodes[end_point.node.index()].name.clone(),
            id: end_point.function.id,
            ids: (ids as u16, (ids >> 16) as u16),
            own_vendor,
            bars: end_point.bars.map(|bar| bar.map(|bar| (bar.base, bar.size))),
            interrupts: end_point.function.space.interrupt_mode(),
        }
    };
    hardware.nodes.end_points().map(describe).collect()
}

/// The action of the processor for a request; none, if software has the answer itself.
fn action_of(request: &Request, now: Time) -> Option<HostAction> {
    let op = OpId(0); // one at a time
    let stream = 0;
    Some(match *request {
        Request::Read { function, offset } => {
            let address = ecam_address(function, offset & !3);
            HostAction::MmioRead { op, stream, address, bytes: 4, carry: true }
        }
        Request::Write { function, offset, enables, value } => {
            let first = enables.trailing_zeros().min(3) as usize;
            let count = (enables >> first).trailing_ones() as usize;
            let address = ecam_address(function, (offset & !3) + first as u16);
            let data = Payload::from(value.to_le_bytes()[first..first + count].to_vec());
            HostAction::MmioWrite { op, stream, address, data }
        }
        Request::WriteMemory { address, value } => {
            HostAction::MmioWrite { op, stream, address, data: Payload::from(value.to_le_bytes()) }
        }
        Request::Wait(time) => HostAction::Timer { at: now + time, id: 0 },
        Request::MaxReadRequest { .. } => return None,
    })
}
