//! A simulated fabric in a virtual machine, in wall time: each device of an experiment is a function of the machine.
//!
//! ```text
//! guest ─QEMU─vfio-user─▶ Port ─PortEvent─▶ Function ─HostAction─▶ fabric: switches, links, devices
//!   ▲        ◀─eventfd── Port ◀──Action──── Function ◀─HostEvent──  │
//!   └─────── its memory, mapped ◀──────── GuestMemory ◀─────────── DMA
//! ```
//!
//! The hierarchy that the guest sees is QEMU's. That of the experiment is configured before, as by firmware: bus numbers, base addresses and the
//! addresses of messages are the fabric's own, and all else of a function is the guest's. Its accesses travel through the fabric as TLPs, and
//! take as long as these do ([`PacedRun`]).

mod function;
mod memory;

use super::error::Error;
use super::paced::{End, Lag, PacedRun};
use super::poller::{Poller, Ready};
use super::vfio_user::VfioUser;
pub use function::FunctionCounters;
use function::{Function, Given, Step, action_of, places};
use memory::GuestMemory;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration as Wall, Instant};
use tlplab_cfgspace::enumerate::Hierarchy;
use tlplab_device::nic::{OpenEnd, SIGNAL};
use tlplab_device::{Action, HostEvent, HostMemory, OpId};
use tlplab_experiment::device_models::ModelSpec;
use tlplab_experiment::outside::{ResidentFailure, Residents};
use tlplab_experiment::run::Run;
use tlplab_fabric::config::{Fidelity, function_of_message, message_of_function};
use tlplab_fabric::errors::ErrorMessage;
use tlplab_fabric::{Driven, NodeId, Told};
use tlplab_units::{Bdf, Duration, Time};
use tlplab_vfio::Port;

/// The host program that stands for the guest's processors.
const PROGRAM: usize = 0;
/// An event due this soon is not slept for: to wake takes as long.
const SOON: Wall = Wall::from_micros(100);
/// The delay of a cable between two NICs: 100 m.
const CABLE: Duration = Duration::from_ns(500);

/// The reason that an experiment's devices cannot be functions of a virtual machine.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// A length-only run has no bytes for the guest.
    #[error("fidelity = \"length-only\" has no bytes for a guest; it needs fidelity = \"payload\"")]
    LengthOnly,
    /// It has nothing to serve.
    #[error("the experiment has no devices")]
    NoDevices,
    /// Enumeration has not found it.
    #[error("device {0} was not found before the guest started; its link must be up at time 0")]
    NotFound(String),
    /// There is no such NIC.
    #[error("there is no NIC {0:?} with an Ethernet port")]
    NoNic(String),
    /// Its socket cannot be made.
    #[error(transparent)]
    Socket(#[from] Error),
}

/// Memory for [`Inputs::memory`](tlplab_experiment::run::Inputs::memory) of a run that is to be a [`GuestFabric`].
#[derive(Clone, Debug, Default)]
pub struct MachineMemory(GuestMemory);

impl MachineMemory {
    /// As the run needs it.
    pub fn for_run(&self) -> Box<dyn HostMemory + Send> {
        Box::new(self.0.clone())
    }
}

/// Two NICs of the fabric, and the ends of the cable between them.
struct Joined([(NodeId, OpenEnd); 2]);

/// The devices of an experiment as functions of a virtual machine; see the [module](self).
pub struct GuestFabric {
    paced: PacedRun,
    board: Board,
    memory: GuestMemory,
    poller: Arc<Poller>,
    begun: Instant,
}

/// The functions, and what is under way for them.
struct Board {
    functions: Vec<Function>,
    under_way: BTreeMap<OpId, (usize, Step)>,
    cables: Vec<Joined>,
}

impl GuestFabric {
    /// The devices of a run whose software is outside ([`GuestKind::Machine`](tlplab_experiment::guest::GuestKind)), each at a socket in `folder` that has
    /// its number, from 1 on, in the order of the experiment. `memory` is what the run has; `cables` are pairs of NICs, whose ends `open_ends` has.
    ///
    /// # Errors
    /// [`BoardError`]
    pub fn new(
        mut run: Run,
        residents: Box<dyn Residents>,
        memory: &MachineMemory,
        folder: &Path,
        cables: &[[String; 2]],
        open_ends: &BTreeMap<String, OpenEnd>,
    ) -> Result<Self, BoardError> {
        if run.experiment().fabric.fidelity == Fidelity::LengthOnly {
            return Err(BoardError::LengthOnly);
        }
        let poller = Arc::new(Poller::new()?);
        let functions = functions(&mut run, memory, folder, &poller)?;
        let cables = cables.iter().map(|pair| joined(&mut run, pair, open_ends));
        let cables = cables.collect::<Result<_, _>>()?;
        let mut paced = PacedRun::new(run, residents);
        let begun = Instant::now();
        paced.begin(Time::ZERO);
        let board = Board { functions, under_way: BTreeMap::new(), cables };
        Ok(Self { paced, board, memory: memory.0.clone(), poller, begun })
    }

    /// Name and counters of each function, in the order of their sockets.
    pub fn counters(&self) -> Vec<(&str, FunctionCounters)> {
        let functions = self.board.functions.iter();
        functions.map(|one| (one.name.as_str(), one.counters(self.memory.passed(one.id)))).collect()
    }
    /// The reason that it has ended, if it has.
    pub fn ended(&self) -> Option<&End> {
        self.paced.ended()
    }
    /// Its lag behind the wall clock.
    pub fn lag(&self) -> Lag {
        self.paced.lag()
    }
    /// The run: its document, its fabric.
    pub fn run(&mut self) -> &mut Run {
        &mut self.paced.run
    }

    /// The wall clock of the run.
    fn now(&self) -> Time {
        let fs = u64::try_from(self.begun.elapsed().as_nanos()).ok().and_then(|ns| ns.checked_mul(1_000_000));
        fs.map_or(Time::NEVER, Time::from_fs)
    }

    /// Waits until a guest or the fabric has something to do, or `until`, and does it.
    ///
    /// # Errors
    /// The system's; a guest that is gone or has made a mistake is none.
    pub fn wait_turn(&mut self, until: Instant) -> Result<(), Error> {
        let due =
            self.paced.deadline().map(|at| self.begun + Wall::from_nanos(at.as_fs().div_ceil(1_000_000)));
        let deadlines = self.board.functions.iter().filter_map(|function| function.socket.deadline());
        let wake = deadlines.chain(due).chain([until]).min().unwrap_or(until);
        let now = Instant::now();
        let wake = if wake.saturating_duration_since(now) < SOON { now } else { wake };
        let mut ready = Ready::default();
        self.poller.wait(&mut ready, Some(wake))?;
        for function in &mut self.board.functions {
            function.socket.turn(&ready)?;
        }
        let now = self.now();
        let simulated = self.paced.simulated(now).unwrap_or(Time::ZERO);
        for function in &mut self.board.functions {
            function.take_events(simulated);
        }
        self.go_on(now);
        for function in &mut self.board.functions {
            function.socket.transmit();
        }
        Ok(())
    }

    /// The fabric goes on to the present, and what the guest wants is begun then.
    fn go_on(&mut self, now: Time) {
        let Self { paced, board, .. } = self;
        paced.advance(now, &mut |run, residents, told| board.hear(run, residents, told));
        if paced.is_going_on() && board.begin_steps(&mut paced.run) {
            // What the root complex answers itself is over at once.
            paced.advance(now, &mut |run, residents, told| board.hear(run, residents, told));
        }
        board.carry_frames(&mut paced.run);
        board.tell_wires(&mut paced.run);
        board.tell_errors(&mut paced.run);
        paced.look_ahead();
    }
}

impl Board {
    /// Takes what the fabric tells.
    fn hear(
        &mut self,
        run: &mut Run,
        residents: &mut dyn Residents,
        told: Told,
    ) -> Result<(), ResidentFailure> {
        for (now, node, event) in told.devices {
            residents.tell_device(run.fabric(), now, node, event)?;
        }
        self.tell_wires(run);
        for (_, _, event) in told.programs {
            match event {
                HostEvent::MmioReadDone { op, result } => self.over(op, result.ok()),
                HostEvent::MmioWriteAccepted { op } => self.over(op, None),
                HostEvent::Message { address, data } => self.interrupt(address, data),
                _ => {}
            }
        }
        self.begin_steps(run);
        self.carry_frames(run);
        Ok(())
    }

    fn over(&mut self, op: OpId, data: Option<tlplab_device::Payload>) {
        if let Some((function, step)) = self.under_way.remove(&op) {
            self.functions[function].step_over(step, data);
        }
    }

    /// Begins what can be begun; whether there was anything.
    fn begin_steps(&mut self, run: &mut Run) -> bool {
        let mut begun = false;
        for (index, function) in self.functions.iter_mut().enumerate() {
            while let Some(step) = function.next_step(run.now()) {
                let op = run.next_host_op(PROGRAM);
                let action = action_of(&step, function.id, op);
                self.under_way.insert(op, (index, step));
                run.host_acts(PROGRAM, action);
                begun = true;
            }
        }
        begun
    }

    /// The message of an interrupt names its function and vector.
    fn interrupt(&mut self, address: u64, data: u32) {
        let (id, vector) = function_of_message(address, data);
        if let Some(function) = self.functions.iter_mut().find(|function| function.id == id) {
            function.act(Action::Msix { stream: 0, vector });
        }
    }

    /// Tells the ports of legacy interrupts.
    fn tell_wires(&mut self, run: &mut Run) {
        for function in &mut self.functions {
            let asserted = run.fabric().function_space(function.node).asserted_intx().is_some();
            function.set_wire(asserted);
        }
    }

    /// Tells the ports of fatal errors, as the host of a device does that is lent to a virtual machine: those that the function reports, and those
    /// that the port above reports of their link.
    fn tell_errors(&mut self, run: &mut Run) {
        let fabric = run.fabric();
        if fabric.errors().next().is_none() {
            return;
        }
        for function in &mut self.functions {
            let link = fabric.topology().links.iter().find(|link| link.name == function.name);
            let ports = link.map(|link| link.ports);
            let own = fabric.errors().filter(|error| ports.is_some_and(|ports| ports.contains(&error.port)));
            let fatal =
                own.filter_map(|error| error.messages.filter(|(message, _)| *message == ErrorMessage::Fatal));
            function.set_errors(fatal.map(|(_, count)| count).sum());
        }
    }

    /// Takes what NICs have sent to the other ends of their cables.
    fn carry_frames(&mut self, run: &mut Run) {
        for Joined(ends) in &self.cables {
            for (from, to) in [(0, 1), (1, 0)] {
                let (node, end) = &ends[to];
                for (at, signal) in ends[from].1.take_sent() {
                    let at = (at + CABLE).max(run.now());
                    end.bring(at, signal);
                    run.device_acts(*node, Action::Timer { at, id: SIGNAL });
                }
            }
        }
    }
}

/// The functions of all devices, which firmware has found and configured.
fn functions(
    run: &mut Run,
    memory: &MachineMemory,
    folder: &Path,
    poller: &Arc<Poller>,
) -> Result<Vec<Function>, BoardError> {
    let names: Vec<String> =
        run.experiment().fabric.devices.iter().map(|device| device.name.clone()).collect();
    if names.is_empty() {
        return Err(BoardError::NoDevices);
    }
    let ports = names.iter().map(|name| {
        let node = run.fabric().node(name).ok_or_else(|| BoardError::NotFound(name.clone()))?;
        // As after power-on: what follows configures it.
        Ok((node, Port::registers_elsewhere(run.fabric().function_space(node).clone())))
    });
    let ports = ports.collect::<Result<Vec<_>, BoardError>>()?;
    let hierarchy = run.fabric().enumerate_as_firmware();
    let mut functions = Vec::new();
    for (number, (name, (node, port))) in names.into_iter().zip(ports).enumerate() {
        let id = run.fabric().id_of(&name).unwrap_or_default();
        let found = hierarchy.functions.iter().find(|function| function.bdf == id && id != Bdf(0));
        let bars = places(&found.ok_or_else(|| BoardError::NotFound(name.clone()))?.bars);
        let mut socket =
            VfioUser::with_others(&folder.join(format!("{}.sock", number + 1)), port, poller, number)?;
        socket.take_addresses(low_addresses(&hierarchy));
        memory.0.show(id, socket.memory());
        let space = run.fabric().function_space(node);
        let given = Given::new(space, &bars, |vector| message_of_function(id, vector));
        functions.push(Function::new((name, node, id), socket, bars, given));
    }
    Ok(functions)
}

/// A cable between two NICs.
fn joined(
    run: &mut Run,
    pair: &[String; 2],
    open_ends: &BTreeMap<String, OpenEnd>,
) -> Result<Joined, BoardError> {
    let mut end = |name: &String| {
        let mut devices = run.experiment().devices.iter();
        let is_nic = devices.any(|device| device.name == *name && matches!(device.model, ModelSpec::Nic(_)));
        let end = open_ends.get(name).filter(|_| is_nic).cloned();
        end.and_then(|end| Some((run.fabric().node(name)?, end)))
            .ok_or_else(|| BoardError::NoNic(name.clone()))
    };
    Ok(Joined([end(&pair[0])?, end(&pair[1])?]))
}

/// The addresses below 4 GiB that the fabric has given to devices: a request to one of them never leaves the fabric.
fn low_addresses(hierarchy: &Hierarchy) -> std::ops::Range<u64> {
    let bars = hierarchy.functions.iter().flat_map(|function| &function.bars);
    let low = bars.filter(|bar| !bar.kind.is_io());
    let low = low.filter_map(|bar| Some((bar.address.filter(|at| *at < 1 << 32)?, bar.size)));
    // A bridge's window is of whole mebibytes.
    let begin = low.clone().map(|(at, _)| at >> 20 << 20).min().unwrap_or(0);
    let end = low.map(|(at, bytes)| (at + bytes).next_multiple_of(1 << 20)).max().unwrap_or(0);
    begin..end
}
