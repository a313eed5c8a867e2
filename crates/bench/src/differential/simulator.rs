//! A simulated processor that reads one double word after the other: configuration registers of every bridge and end point, and mapped
//! registers of end points that have some.
//!
//! Between two reads it waits for a random time, so that neither the counter nor ordered sets are in step with the reads. Loads of the
//! experiment run meanwhile.

use super::{Clock, Kind, Samples, Target};
use crate::target::MeasureError;
use tlplab_cfgspace::{BarKind, enumerate::Function};
use tlplab_device::{HostAction, HostEvent, Random, ecam_address};
use tlplab_experiment::Experiment;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_fabric::{Driven, Fabric};
use tlplab_units::{Bdf, Duration, LinkMode, Time};

/// The sampling by the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Reads of each target.
    pub samples: u64,
    /// Of the random pauses.
    pub seed: u64,
    /// From one value that the processor's counter shows to the next, more than zero: 3 ns on the machine of the paper.
    pub step: Duration,
}

/// The samples of a simulated topology.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// Bridges before what is below them.
    pub targets: Vec<Target>,
    /// Of each target.
    pub samples: Vec<Samples>,
    /// The processor's counter.
    pub clock: Clock,
}

/// The longest pause between two reads: longer than ordered sets are apart on any link.
const PAUSE: Duration = Duration::from_us(10);

/// Samples every target of an experiment that was read for a [`reader`](tlplab_experiment::Options::reader). `watch` hears the part that is done, and ends the sampling early by `false`.
///
/// # Errors
/// [`MeasureError`]: the fabric cannot be, or a read was never answered.
pub fn sample(
    experiment: Experiment,
    sampling: Sampling,
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<Sampled, MeasureError> {
    let inputs = Inputs { no_ladder: true, ..Inputs::default() };
    let mut run = Run::new(experiment, inputs).map_err(|error| MeasureError::Build(error.to_string()))?;
    let program = run.drivers().len() - 1;
    let mut processor = Processor { fabric: run.fabric(), program };
    processor.wait_for_start()?;
    let mut registers = registers_of(processor.fabric);
    let mut targets = Vec::new();
    let mut addresses = Vec::new();
    for register in registers.drain(..) {
        // Some devices answer no reads of what they have mapped.
        if !register.mapped || processor.read(register.address)?.is_some() {
            targets.push(register.target);
            addresses.push(register.address);
        }
    }
    let mut samples = vec![Samples::default(); targets.len()];
    let mut random = Random::keyed(sampling.seed, "differential", "pauses");
    let ticks = |at: Time| at.as_fs() / sampling.step.as_fs().max(1);
    for done in 0..sampling.samples {
        for (address, samples) in addresses.iter().zip(&mut samples) {
            processor.pause(Duration::from_fs(random.below(PAUSE.as_fs())));
            let begun = processor.fabric.now();
            if let Some(ended) = processor.read(*address)? {
                samples.record(ticks(ended) - ticks(begun));
            }
        }
        if !watch((done + 1) as f64 / sampling.samples as f64) {
            break;
        }
    }
    let clock = Clock {
        source: "counter of the simulated processor".into(),
        ns_per_tick: sampling.step.as_fs() as f64 / 1e6,
        step_ticks: 1,
        overhead_ns: 0.0,
    };
    Ok(Sampled { targets, samples, clock })
}

/// A program of the host, driven from here.
struct Processor<'a> {
    fabric: &'a mut Fabric,
    program: usize,
}

impl Processor<'_> {
    fn event(&mut self) -> Result<(Time, HostEvent), MeasureError> {
        self.fabric.advance_until(Time::NEVER).map_err(MeasureError::Failed)?;
        // There are no devices outside.
        let mut told = self.fabric.take_told().programs.into_iter();
        let (at, _, event) =
            told.next().ok_or_else(|| MeasureError::Failed("a read was never answered".into()))?;
        Ok((at, event))
    }

    fn wait_for_start(&mut self) -> Result<(), MeasureError> {
        while !matches!(self.event()?, (_, HostEvent::Start)) {}
        Ok(())
    }

    fn pause(&mut self, time: Duration) {
        let until = self.fabric.now() + time;
        self.fabric.run_until(until);
        // Interrupts are not this program's business.
        self.fabric.take_told();
    }

    /// Reads a double word; when it is there, or `None` if there is nothing to read.
    fn read(&mut self, address: u64) -> Result<Option<Time>, MeasureError> {
        let op = self.fabric.next_host_op(self.program);
        let read = HostAction::MmioRead { op, stream: 0, address, bytes: 4, carry: false };
        self.fabric.host_acts(self.program, read);
        loop {
            if let (at, HostEvent::MmioReadDone { op: over, result }) = self.event()?
                && over == op
            {
                return Ok(result.is_ok().then_some(at));
            }
        }
    }
}

/// Something that can be read.
struct Register {
    target: Target,
    address: u64,
    mapped: bool,
}

/// The targets that software found: one for each root port, switch and function of a device, and one more for a function with a mapped register.
fn registers_of(fabric: &mut Fabric) -> Vec<Register> {
    let functions = fabric.hierarchy().map(|hierarchy| hierarchy.functions.clone()).unwrap_or_default();
    let mut registers: Vec<Register> = Vec::new();
    // By function: its component, and the target that stands for it.
    let mut found: Vec<(Bdf, tlplab_fabric::NodeId, usize)> = Vec::new();
    for function in functions {
        let Some((node, port)) = fabric.component_at(function.bdf) else { continue };
        let above = found.iter().find(|(bdf, ..)| Some(*bdf) == function.parent).copied();
        let is_root = function.parent.is_none() && port.is_none();
        if is_root && function.bridge.is_none() && function.bdf == Bdf(0) {
            continue; // the host bridge, which is no nearer than the root ports
        }
        if let Some((_, component, target)) = above
            && component == node
        {
            // A downstream port of a switch is where its upstream port is.
            found.push((function.bdf, node, target));
            continue;
        }
        let topology = fabric.topology();
        let name = match port.filter(|_| function.parent.is_none()) {
            Some(port) => topology.ports[port.index()].name.clone(),
            None => topology.nodes[node.index()].name.clone(),
        };
        let parent = above.map(|(.., target)| target);
        let kind = if function.bridge.is_some() { Kind::Bridge } else { Kind::EndPoint };
        found.push((function.bdf, node, registers.len()));
        let acknowledgements_ns = above.map_or(0.0, |_| acknowledgements(fabric, node));
        let target = Target {
            name: name.clone(),
            parent,
            kind,
            register: "configuration 0x0".into(),
            acknowledgements_ns,
        };
        let more = mapped(&function, &target);
        registers.push(Register { target, address: ecam_address(function.bdf, 0), mapped: false });
        registers.extend(more);
    }
    registers
}

/// The first double word that a function has mapped in memory space.
fn mapped(function: &Function, target: &Target) -> Option<Register> {
    if target.kind != Kind::EndPoint {
        return None;
    }
    let bar = function.bars.iter().find(|bar| bar.kind != BarKind::Io && bar.size >= 4)?;
    let target = Target {
        name: format!("{}.bar{}", target.name, bar.index),
        register: format!("BAR {} + 0x0", bar.index),
        ..target.clone()
    };
    Some(Register { target, address: bar.address?, mapped: true })
}

/// Time of an Ack and an UpdateFC, 8 bytes each with framing and CRC, on the link above a component. Flits carry theirs in any case.
fn acknowledgements(fabric: &Fabric, node: tlplab_fabric::NodeId) -> f64 {
    let topology = fabric.topology();
    let name = &topology.nodes[node.index()].name;
    let link = topology.links.iter().find(|link| link.name == *name && link.mode == LinkMode::NonFlit);
    link.map_or(0.0, |link| link.rate.time_of(16).as_fs() as f64 / 1e6)
}
