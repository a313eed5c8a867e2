//! Enumeration: the software of `tlplab_cfgspace` finds the functions and configures them, either before time 0 or, as configuration
//! requests over the links, in simulated time. Devices and programs start when it is over. What changes later is found in simulated time,
//! slot by slot (`hot_plug`).

use crate::config::{EnumerationTime, HostConfig};
use crate::kernel::ids::{NodeId, PortId};
use crate::node::Node;
use crate::node::config_request::{FunctionAt, dword};
use crate::node::end_point::EndPoint;
use crate::node::root::message;
use crate::sim::{Fabric, Task};
use crate::topology::NodeInfo;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tlplab_cfgspace::enumerate::{
    Answer, Enumerator, Hierarchy, InterruptPolicy, Problem, Request, Settings, Step,
};
use tlplab_cfgspace::{ConfigSpace, InterruptMode};
use tlplab_device::{DeviceInfo, ECAM, Event, HostAction, HostEvent, OpId, ecam_address};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Mrrs, Time};
use tlplab_wire::tlp::CfgTarget;

/// Below 4 GiB, base addresses come from here on; host memory has a hole there.
pub(crate) const MMIO_LOW: u64 = 0xC000_0000;

/// Max_Read_Request_Size after a reset (PCIe 5.0 §7.5.3.4).
const DEFAULT_MRRS: Mrrs = Mrrs::ALL[2];

/// What software knows of the functions, and what it is doing about them.
pub(crate) struct Enumeration {
    /// At work.
    running: Option<Enumerator>,
    /// The bridge whose slot is being looked after.
    serving: Option<Bdf>,
    /// Bridges whose slots are to be looked after next.
    pub(crate) jobs: VecDeque<Bdf>,
    /// Its number among the host programs, if it takes simulated time.
    pub(crate) program: Option<usize>,
    /// Its stream in the processor's requester; the interrupts of bridges are accounted to the same flow.
    pub(crate) stream: u16,
    /// How it lets functions interrupt.
    pub(crate) interrupts: InterruptPolicy,
    /// It is not tlplab's, but outside.
    pub(crate) outside: bool,
    /// It has errors reported.
    pub(crate) error_reporting: bool,
    /// It has end-to-end CRCs used.
    pub(crate) ecrc: bool,
    /// Max_Read_Request_Size that it gives to each function, by their IDs as far as they are known.
    pub(crate) mrrs: Arc<Mutex<BTreeMap<Bdf, Mrrs>>>,
    /// What it found.
    found: Option<Hierarchy>,
    /// When that was, the first time.
    over: Option<Time>,
    /// What did not work, each once, also of what is gone since.
    problems: Vec<Problem>,
    /// By the function that interrupts: which device of those that programs know it is.
    pub(crate) sources: BTreeMap<Bdf, usize>,
    /// By legacy wire at the host: the functions that share it.
    pub(crate) sharing: [Vec<Bdf>; 4],
}

impl Enumeration {
    pub(crate) fn new(host: &HostConfig) -> Self {
        Self {
            running: None,
            serving: None,
            jobs: VecDeque::new(),
            program: None,
            stream: 0,
            interrupts: host.interrupts,
            outside: host.enumeration == EnumerationTime::Outside,
            error_reporting: host.error_reporting,
            ecrc: host.ecrc,
            mrrs: Arc::default(),
            found: None,
            over: None,
            problems: Vec::new(),
            sources: BTreeMap::new(),
            sharing: Default::default(),
        }
    }
}

impl Fabric {
    /// Enumerates in no time: every access reaches its function at once.
    pub(crate) fn enumerate_before(&mut self) {
        let mut enumerator = Enumerator::new(self.enumeration_settings());
        let mut answer = None;
        let hierarchy = loop {
            match enumerator.step(answer) {
                Step::Ask(request) => answer = Some(self.answer_at_once(&request)),
                Step::Done(hierarchy) => break hierarchy,
            }
        };
        self.enumerated(hierarchy);
    }

    /// Starts to enumerate in simulated time.
    pub(crate) fn enumerate_in_time(&mut self) {
        self.enumeration.running = Some(Enumerator::new(self.enumeration_settings()));
        self.enumeration_goes_on(None);
    }

    fn answer_at_once(&mut self, request: &Request) -> Answer {
        match *request {
            Request::Read { function, offset } => {
                let value = self.register_at_once(function, offset, 15, None);
                Answer::Value(value.unwrap_or(u32::MAX))
            }
            Request::Write { function, offset, enables, value } => {
                self.register_at_once(function, offset, enables, Some(value));
                Answer::Done
            }
            Request::WriteMemory { address, value } => {
                self.write_at_once(address, value);
                Answer::Done
            }
            Request::Wait(_) => Answer::Done,
        }
    }

    fn register_at_once(
        &mut self,
        function: Bdf,
        offset: u16,
        enables: u8,
        written: Option<u32>,
    ) -> Option<u32> {
        let at = self.find_function(function)?;
        let target = CfgTarget::new(function, offset & !3, enables, false).ok()?;
        Some(self.access_function(at, target, written))
    }

    /// Writes an MSI-X table, which is all that enumeration writes to memory.
    fn write_at_once(&mut self, address: u64, value: u32) {
        let claims = |node: &Node| match node {
            Node::EndPoint(end_point) => end_point.bar_of(address, false),
            _ => None,
        };
        let found = (0u16..).zip(&self.nodes).find_map(|(i, node)| Some((NodeId(i), claims(node)?)));
        if let Some((node, (bar, offset))) = found {
            if self.has_core(node) {
                return self.write_core_at_once(node, address, bar, value);
            }
            self.msix_access(node, bar, offset, 4, Some(Payload::from(value.to_le_bytes())));
        }
    }

    /// Is this host program the enumeration?
    pub(crate) fn is_enumeration(&self, program: usize) -> bool {
        self.enumeration.program == Some(program)
    }

    /// What the enumeration waited for.
    pub(crate) fn enumeration_hears(&mut self, event: HostEvent) {
        let answer = match event {
            HostEvent::MmioReadDone { result: Ok(payload), .. } => Answer::Value(dword(&payload)),
            HostEvent::MmioReadDone { result: Err(_), .. } => Answer::Failed,
            HostEvent::MmioWriteAccepted { .. } | HostEvent::Timer { .. } => Answer::Done,
            HostEvent::PortInterrupt { port, .. } => return self.slot_interrupted(port),
            HostEvent::Start
            | HostEvent::Interrupt { .. }
            | HostEvent::Message { .. }
            | HostEvent::Wire { .. } => return,
        };
        self.enumeration_goes_on(Some(answer));
    }

    fn enumeration_goes_on(&mut self, answer: Option<Answer>) {
        let (Some(mut enumerator), Some(program)) =
            (self.enumeration.running.take(), self.enumeration.program)
        else {
            return;
        };
        match enumerator.step(answer) {
            Step::Ask(request) => {
                let action = self.action_of(&request);
                self.enumeration.running = Some(enumerator);
                self.carry_out_host(program, action);
            }
            Step::Done(hierarchy) => self.enumerated(hierarchy),
        }
    }

    fn action_of(&self, request: &Request) -> HostAction {
        let op = OpId(0); // one at a time
        let stream = 0;
        match *request {
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
            Request::Wait(time) => HostAction::Timer { at: self.now + time, id: 0 },
        }
    }

    /// If software has nothing else to do, it looks after a slot that has interrupted.
    pub(crate) fn next_job(&mut self) {
        let enumeration = &self.enumeration;
        let (None, Some(found), Some(_)) = (&enumeration.running, &enumeration.found, enumeration.program)
        else {
            return;
        };
        let found = found.clone();
        if let Some(bridge) = self.enumeration.jobs.pop_front() {
            let settings = self.enumeration_settings();
            self.enumeration.serving = Some(bridge);
            self.enumeration.running = Some(Enumerator::serve_slot(settings, found, bridge));
            self.enumeration_goes_on(None);
        }
    }

    /// Software has finished a job: what is new and configured starts.
    fn enumerated(&mut self, hierarchy: Hierarchy) {
        let first = self.enumeration.found.is_none();
        self.device_infos = self.describe_devices();
        let functions = hierarchy.functions.iter().map(|function| function.bdf);
        self.enumeration.sources = functions.filter_map(|id| Some((id, self.device_with(id)?))).collect();
        self.enumeration.sharing = sharing_wires(&hierarchy);
        let known = &mut self.enumeration.problems;
        for problem in &hierarchy.problems {
            if !known.contains(problem) {
                known.push(*problem);
            }
        }
        self.enumeration.found = Some(hierarchy);
        self.enumeration.over.get_or_insert(self.now);
        for i in 0..self.nodes.len() {
            self.start_if_configured(NodeId(i as u16));
        }
        if first {
            self.start_programs();
        }
        let served = self.enumeration.serving.take();
        self.note_configured(served);
        self.next_job();
    }

    /// As firmware hands a machine over to software that is outside: functions may send payloads as large as all of their hierarchy take, and
    /// ask for as much at once as their configuration says. All else is as after a reset.
    pub(crate) fn hand_over(&mut self) {
        let links = &self.topology.links;
        let mps = |port: &PortId| links[self.ports[port.index()].link.index()].mps;
        let mut sized = Vec::new();
        for (node, ports) in
            (0..self.nodes.len()).map(|i| NodeId(i as u16)).map(|id| (id, self.own_ports(id)))
        {
            match &self.nodes[node.index()] {
                Node::EndPoint(end_point) => sized.push((node, 0, mps(&end_point.port), end_point.mrrs)),
                Node::Switch(_) => {
                    sized.extend(ports.iter().enumerate().map(|(i, port)| (node, i, mps(port), DEFAULT_MRRS)))
                }
                Node::Root(_) => sized
                    .extend(ports.iter().enumerate().map(|(i, port)| (node, i + 1, mps(port), DEFAULT_MRRS))),
                Node::Bridge(_) => sized.extend(ports.first().map(|port| (node, 0, mps(port), DEFAULT_MRRS))),
            }
        }
        for (node, index, mps, mrrs) in sized {
            self.function(FunctionAt { node, index }).space.set_request_sizes(mps, mrrs);
            if let Node::EndPoint(_) = &self.nodes[node.index()] {
                self.limits_changed(node);
            }
        }
        self.start_programs();
    }

    /// Host programs may act.
    pub(crate) fn start_programs(&mut self) {
        self.tell_programs(&HostEvent::Start);
    }

    /// A device may act as soon as software lets it master the bus.
    pub(crate) fn start_if_configured(&mut self, node: NodeId) {
        let enumeration = &self.enumeration;
        let at_work = enumeration.found.is_none() || enumeration.running.is_some();
        if at_work && !enumeration.outside {
            return;
        }
        if let Node::EndPoint(end_point) = &mut self.nodes[node.index()]
            && end_point.bus_master
            && !std::mem::replace(&mut end_point.started, true)
        {
            self.agenda.push_back(Task::Tell { node, event: Event::Start });
        }
    }

    /// What host programs are told of the devices, in the order of their names, as nodes are.
    fn describe_devices(&mut self) -> Vec<DeviceInfo> {
        let own_vendor = self.root().functions[0].space.read(0) as u16;
        let end_points = self.nodes.iter().zip(&self.topology.nodes).filter_map(|(node, info)| match node {
            Node::EndPoint(end_point) => Some((end_point.as_ref(), info)),
            _ => None,
        });
        let describe = |(end_point, info): (&EndPoint, &NodeInfo)| {
            let ids = end_point.function.space.read(0);
            DeviceInfo {
                name: info.name.clone(),
                id: end_point.function.id,
                ids: (ids as u16, (ids >> 16) as u16),
                own_vendor,
                bars: end_point.bars.map(|bar| bar.map(|bar| (bar.base, bar.size))),
                interrupts: end_point.function.space.interrupt_mode(),
            }
        };
        end_points.map(describe).collect()
    }

    pub(crate) fn device_with(&self, id: Bdf) -> Option<usize> {
        self.device_infos.iter().position(|info| info.id == id && id != Bdf(0))
    }

    fn enumeration_settings(&mut self) -> Settings {
        let limits = self.enumeration.mrrs.clone();
        // 64-bit windows start above all memory.
        let high = self.root().server.size().next_power_of_two().max(1 << 40);
        Settings {
            memory: (MMIO_LOW, ECAM),
            high_memory: (high, 1 << 62),
            interrupts: self.enumeration.interrupts,
            error_reporting: self.enumeration.error_reporting,
            ecrc: self.enumeration.ecrc,
            message: Arc::new(message),
            mrrs: Arc::new(move |function| {
                let limits = limits.lock().unwrap_or_else(PoisonError::into_inner);
                limits.get(&function.bdf).copied().unwrap_or(DEFAULT_MRRS)
            }),
            // What comes is what went: nothing else is plugged in.
            hot_plug_buses: 0,
            hot_plug_memory: (0, 0),
            ..Settings::default()
        }
    }

    /// What software found, once it has; see [`EnumerationTime`](crate::config::EnumerationTime).
    pub fn hierarchy(&self) -> Option<&Hierarchy> {
        self.enumeration.found.as_ref()
    }

    /// What software could not do since the start, each once.
    pub fn enumeration_problems(&self) -> &[Problem] {
        &self.enumeration.problems
    }

    /// When enumeration was over and devices and programs could start.
    pub fn enumerated_at(&self) -> Option<Time> {
        self.enumeration.over
    }

    /// The configuration space of every function that software can reach, a bridge before what is below it. What is below a link that
    /// is down cannot be reached, even if software has not heard of that yet.
    pub fn config_spaces(&mut self) -> Vec<(Bdf, ConfigSpace)> {
        let found: Vec<_> =
            self.hierarchy().iter().flat_map(|h| &h.functions).map(|f| (f.bdf, f.parent)).collect();
        let mut spaces: BTreeMap<Bdf, (FunctionAt, ConfigSpace)> = BTreeMap::new();
        for (id, parent) in found {
            let above = parent.map(|parent| spaces.get(&parent).map(|(at, _)| *at));
            let cut_off = above.is_some_and(|above| above.is_none_or(|above| self.is_cut_off_below(above)));
            if let Some(at) = self.find_function(id).filter(|_| !cut_off) {
                spaces.insert(id, (at, self.function(at).space.clone()));
            }
        }
        spaces.into_iter().map(|(id, (_, space))| (id, space)).collect()
    }
}

/// By wire at the host: the functions that interrupt by it.
fn sharing_wires(found: &Hierarchy) -> [Vec<Bdf>; 4] {
    let mut sharing: [Vec<Bdf>; 4] = Default::default();
    for function in found.functions.iter().filter(|function| function.interrupts == InterruptMode::Intx) {
        if let Some((_, wire)) = function.intx {
            sharing[usize::from(wire)].push(function.bdf);
        }
    }
    sharing
}
