//! The host's software: enumeration, hot-plug, and whom it tells of interrupts. It sees the hardware by registers and interrupts, before time 0
//! at once, later by requests of the processor that take their time.

pub(crate) mod enumeration;
pub(crate) mod hot_plug;

use crate::config::{EnumerationTime, HostConfig, function_of_message};
use crate::node::hardware::Hardware;
use std::collections::{BTreeMap, VecDeque};
use tlplab_cfgspace::InterruptMode;
use tlplab_cfgspace::enumerate::{Enumerator, Hierarchy, InterruptPolicy, MpsPolicy, Problem};
use tlplab_device::HostEvent;
use tlplab_units::{Bdf, Time};

/// Software's knowledge of the functions, and its work on them.
#[derive(Clone)]
pub(crate) struct Software {
    /// At work.
    running: Option<Enumerator>,
    /// The bridge whose slot is being looked after.
    serving: Option<Bdf>,
    /// Bridges whose slots are to be looked after next.
    pub(crate) jobs: VecDeque<Bdf>,
    /// Its number among the host programs, if it takes simulated time.
    pub(crate) program: Option<usize>,
    /// The kinds of interrupt that it enables.
    pub(crate) interrupts: InterruptPolicy,
    /// The payloads that it allows.
    pub(crate) payloads: MpsPolicy,
    /// It is not tlplab's, but outside.
    pub(crate) outside: bool,
    /// It has errors reported.
    pub(crate) error_reporting: bool,
    /// It has end-to-end CRCs used.
    pub(crate) ecrc: bool,
    /// It lets devices ask for translations.
    pub(crate) translation: bool,
    /// The hierarchy that it found.
    pub(crate) found: Option<Hierarchy>,
    /// The time of that, the first time.
    pub(crate) over: Option<Time>,
    /// Its problems, each once, also of functions that are gone since.
    pub(crate) problems: Vec<Problem>,
    /// By the function that interrupts: which device of those that programs know it is.
    pub(crate) sources: BTreeMap<Bdf, usize>,
    /// By legacy wire at the host: the functions that share it.
    pub(crate) sharing: [Vec<Bdf>; 4],
}

impl Software {
    pub(crate) fn new(host: &HostConfig) -> Self {
        Self {
            running: None,
            serving: None,
            jobs: VecDeque::new(),
            program: None,
            interrupts: host.interrupts,
            payloads: host.payloads,
            outside: host.enumeration == EnumerationTime::Outside,
            error_reporting: host.error_reporting,
            ecrc: host.ecrc,
            translation: host.iommu.is_some_and(|iommu| iommu.ats),
            found: None,
            over: None,
            problems: Vec::new(),
            sources: BTreeMap::new(),
            sharing: Default::default(),
        }
    }
}

impl Software {
    /// The event of a message signalled interrupt for programs.
    pub(crate) fn interrupt_of_message(&self, address: u64, data: u32) -> HostEvent {
        if self.outside {
            return HostEvent::Message { address, data };
        }
        let (source, vector) = function_of_message(address, data);
        self.interrupt_of(source, vector)
    }

    /// The events of a legacy interrupt for programs: of each function that shares the wire.
    pub(crate) fn interrupts_of_wire(&self, wire: u8) -> Vec<HostEvent> {
        if self.outside {
            return vec![HostEvent::Wire { wire }];
        }
        self.sharing[usize::from(wire)].iter().map(|function| self.interrupt_of(*function, 0)).collect()
    }

    fn interrupt_of(&self, source: Bdf, vector: u16) -> HostEvent {
        match self.sources.get(&source) {
            Some(&device) => HostEvent::Interrupt { device, vector },
            None => HostEvent::PortInterrupt { port: source, vector },
        }
    }

    /// May devices that may master the bus start? Not while they are being configured.
    fn update_permission(&self, hardware: &mut Hardware) {
        let at_work = self.found.is_none() || self.running.is_some();
        hardware.cx.host.lets_start = !at_work || self.outside;
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
