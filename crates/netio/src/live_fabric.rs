//! A simulated machine behind an adapter: an experiment whose devices are elsewhere, in wall time.
//!
//! ```text
//! driver on the simulated host ─MMIO─▶ fabric ─event─▶ LiveFabric ─HostOutput─▶ Adapter ─datagram─▶ device
//!                       memory ◀─TLPs─ fabric ◀─action── LiveFabric ◀──Host──── Adapter ◀─datagram─
//! ```
//!
//! The machine's time begins a moment after every served device has been heard of (`GRACE`), and then follows the wall clock ([`PacedRun`]).

use super::paced::{Arrival, End, Lag, PacedRun};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use tlplab_device::simple_nic::FRAMES;
use tlplab_device::{
    Action, DeviceInfo, DmaError, Event, HostAction, Identity, OpId, Payload, Refusal, ReplyToken,
};
use tlplab_experiment::outside::{ResidentFailure, Residents};
use tlplab_experiment::run::Run;
use tlplab_fabric::config::Fidelity;
use tlplab_fabric::{Driven, NodeId, Told};
use tlplab_nettlp::adapter::host::{
    Answer, Host, HostInterrupt, HostOutput, HostRead, HostReadId, HostWrite, MmioAccess, MmioToken,
};
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, FunctionKind, INTERRUPTS};
use tlplab_transaction::CompletionError;
use tlplab_units::{Duration, Time};

/// From the first that is heard of the last device, which is a question, to the beginning of simulated time: until then it is ready to be asked.
const GRACE: Duration = Duration::from_ms(200);

/// The reason that an experiment cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeError {
    /// There is no such device.
    #[error("the experiment has no device \"{0}\"")]
    NoDevice(String),
    /// It is not driven from outside.
    #[error("device {0} is still part of the simulated experiment")]
    NotOutside(String),
    /// A length-only run has no bytes to send.
    #[error(
        "fidelity = \"length-only\" has no bytes to put into datagrams; serve with fidelity = \"payload\""
    )]
    LengthOnly,
    /// It has no addresses yet.
    #[error(
        "device {0} has no addresses yet; serve with enumeration before time 0: host.enumeration = \"before\""
    )]
    NotEnumerated(String),
}

struct Served {
    name: String,
    node: NodeId,
    identity: Identity,
    info: DeviceInfo,
    reads: BTreeMap<OpId, HostReadId>,
}

/// A simulated machine as the [`Host`] of an adapter; see the [module](self).
pub struct LiveFabric {
    paced: PacedRun,
    elsewhere: Elsewhere,
    absent: BTreeSet<usize>,
}

/// The devices that are elsewhere, and what they are asked.
struct Elsewhere {
    served: Vec<Served>,
    outputs: VecDeque<HostOutput>,
    asked: BTreeMap<MmioToken, (usize, Option<ReplyToken>)>,
    next_token: u64,
}

impl LiveFabric {
    /// A machine with these devices elsewhere.
    ///
    /// # Errors
    /// [`ServeError`]
    pub fn new(mut run: Run, served: &[String], residents: Box<dyn Residents>) -> Result<Self, ServeError> {
        if run.experiment().fabric.fidelity == Fidelity::LengthOnly {
            return Err(ServeError::LengthOnly);
        }
        let served: Vec<Served> =
            served.iter().map(|name| serve(&mut run, name)).collect::<Result<_, _>>()?;
        Ok(Self {
            absent: (0..served.len()).collect(),
            paced: PacedRun::new(run, residents),
            elsewhere: Elsewhere { served, outputs: VecDeque::new(), asked: BTreeMap::new(), next_token: 0 },
        })
    }

    /// An adapter at `local` for the served devices, whose addresses are `peers`, with the IDs, BARs and sizes of the experiment.
    pub fn adapter_config(&self, local: Ipv4Addr, peers: &[Ipv4Addr]) -> AdapterConfig {
        let device = |(served, peer): (&Served, &Ipv4Addr)| DeviceConfig {
            peer: *peer,
            bdf: served.info.id,
            function: FunctionKind::Own(served.identity.clone()),
            bars: Some(served.info.bars.map(|bar| bar.map_or(0, |(base, _)| base))),
        };
        let mut config =
            AdapterConfig::new(local, self.elsewhere.served.iter().zip(peers).map(device).collect());
        // The host's own limit decides, also if it is longer than an adapter's.
        let fabric = &self.paced.run.experiment().fabric;
        config.completion_timeout = config.completion_timeout.max(fabric.host.completion_timeout);
        let own = fabric.devices.iter();
        let own = own.filter(|device| self.elsewhere.served.iter().any(|served| served.name == device.name));
        if let Some(mps) = own.clone().map(|device| device.link.mps).min_by_key(|mps| mps.bytes()) {
            config.mps = mps;
        }
        if let Some(mrrs) = own.map(|device| device.mrrs).min_by_key(|mrrs| mrrs.bytes()) {
            config.mrrs = mrrs;
        }
        config
    }

    /// The served devices that nobody has heard of yet.
    pub fn absent(&self) -> impl Iterator<Item = &str> {
        self.absent.iter().map(|device| self.elsewhere.served[*device].name.as_str())
    }
    /// The reason that it has ended, if it has. Requests from then on are refused.
    pub fn ended(&self) -> Option<&End> {
        self.paced.ended()
    }
    /// Somebody has put frames into the [`Frames`](tlplab_device::Frames) of the driver of this device.
    pub fn frames_came(&mut self, now: Time, device: &str) {
        self.advance(now);
        // Before its time begins, a driver finds them when it starts.
        if self.paced.is_going_on()
            && let Some(program) = self.paced.run.drivers().iter().position(|driven| driven == device)
        {
            let at_once = HostAction::Timer { at: Time::ZERO, id: FRAMES };
            self.paced.bring(now, Arrival::Program(program, at_once));
        }
    }
    /// Its lag behind the wall clock.
    pub fn lag(&self) -> Lag {
        self.paced.lag()
    }
    /// The run: its document, its fabric.
    pub fn run(&mut self) -> &mut Run {
        &mut self.paced.run
    }

    fn advance(&mut self, now: Time) {
        let Self { paced, elsewhere, .. } = self;
        paced.advance(now, &mut |run, residents, told| elsewhere.hear(run, residents, told));
    }

    /// A device acts, now.
    fn inject(&mut self, now: Time, device: usize, action: impl FnOnce(OpId) -> Action) -> Option<OpId> {
        self.advance(now);
        if self.paced.ended().is_some() {
            return None;
        }
        let node = self.elsewhere.served[device].node;
        let op = self.paced.run.next_device_op(node);
        self.paced.bring(now, Arrival::Device(node, action(op)));
        Some(op)
    }
}

impl Elsewhere {
    /// Tells devices and programs what the fabric has for them.
    fn hear(
        &mut self,
        run: &mut Run,
        residents: &mut dyn Residents,
        told: Told,
    ) -> Result<(), ResidentFailure> {
        let Told { devices, programs } = told;
        for (now, node, event) in devices {
            match self.served.iter().position(|served| served.node == node) {
                Some(device) => self.device_event(run, device, event),
                None => residents.tell_device(run.fabric(), now, node, event)?,
            }
        }
        for (now, program, event) in programs {
            residents.tell_program(run.fabric(), now, program, event)?;
        }
        Ok(())
    }

    fn device_event(&mut self, run: &mut Run, device: usize, event: Event) {
        match event {
            Event::MmioRead { bytes: 0, reply, .. } => {
                let data = Payload::EMPTY;
                run.device_acts(self.served[device].node, Action::Reply { token: reply, data });
            }
            Event::MmioRead { bar, offset, bytes, reply } => {
                self.access(device, bar, offset, MmioAccess::Read(bytes), Some(reply));
            }
            Event::MmioWrite { bar, offset, data } => {
                self.access(device, bar, offset, MmioAccess::Write(data), None);
            }
            Event::DmaReadDone { op, result } => {
                if let Some(id) = self.served[device].reads.remove(&op) {
                    let result = result.map_err(|error| refusal(&error));
                    self.outputs.push_back(HostOutput::ReadDone { id, result });
                }
            }
            // The device elsewhere is not told of resets; what it had asked for is refused.
            Event::Reset => {
                for (_, id) in std::mem::take(&mut self.served[device].reads) {
                    let result = Err(Refusal::CompleterAbort);
                    self.outputs.push_back(HostOutput::ReadDone { id, result });
                }
            }
            Event::Start | Event::DmaWriteAccepted { .. } | Event::Timer { .. } => {}
        }
    }

    fn access(&mut self, device: usize, bar: u8, offset: u64, access: MmioAccess, reply: Option<ReplyToken>) {
        let token = MmioToken(self.next_token);
        self.next_token += 1;
        self.asked.insert(token, (device, reply));
        self.outputs.push_back(HostOutput::Mmio { token, device, bar, offset, access });
    }
}

/// A device of the experiment that is elsewhere.
fn serve(run: &mut Run, name: &str) -> Result<Served, ServeError> {
    let missing = || ServeError::NoDevice(name.into());
    let node = run.fabric().node(name).ok_or_else(missing)?;
    let identity = run.served(name).cloned().ok_or_else(|| ServeError::NotOutside(name.into()))?;
    let info = run.fabric().devices().iter().find(|info| info.name == name).cloned();
    let info = info.ok_or_else(|| ServeError::NotEnumerated(name.into()))?;
    Ok(Served { name: name.into(), node, identity, info, reads: BTreeMap::new() })
}

/// The refusal of a device's request that failed with this error.
pub(crate) fn refusal(error: &DmaError) -> Refusal {
    match error {
        DmaError::Completion(CompletionError::UnsupportedRequest { .. }) | DmaError::BusMasterDisabled => {
            Refusal::UnsupportedRequest
        }
        _ => Refusal::CompleterAbort,
    }
}

impl Host for LiveFabric {
    fn device_appears(&mut self, now: Time, device: usize) {
        self.absent.remove(&device);
        if self.absent.is_empty() && !self.paced.has_begun() {
            self.paced.begin(now + GRACE);
        }
    }

    fn read(&mut self, now: Time, request: HostRead) -> Answer {
        let HostRead { device, address, bytes, .. } = request;
        let bytes = bytes.into();
        let read = |op| Action::DmaRead { op, stream: 0, address, bytes, carry: true };
        match self.inject(now, device, read) {
            Some(op) => {
                self.elsewhere.served[device].reads.insert(op, request.id);
                Answer::Later
            }
            None => Answer::Now(Err(Refusal::CompleterAbort)),
        }
    }

    fn write(&mut self, now: Time, write: HostWrite) {
        let HostWrite { device, address, data, .. } = write;
        self.inject(now, device, |op| Action::DmaWrite { op, stream: 0, address, data });
    }

    fn interrupt(&mut self, now: Time, interrupt: HostInterrupt) {
        if let Some(vector) = interrupt.vector {
            self.inject(now, interrupt.device, |_| Action::Msix { stream: 0, vector });
        }
    }

    /// Everything but interrupts goes to the fabric, which answers for what is nowhere, and knows the way from device to device.
    fn claims(&self, address: u64, bytes: u32) -> bool {
        let end = address.saturating_add(bytes.max(1).into());
        end <= INTERRUPTS.start || address >= INTERRUPTS.end
    }

    fn poll(&mut self, now: Time) -> Option<HostOutput> {
        if self.elsewhere.outputs.is_empty() {
            self.advance(now);
        }
        self.elsewhere.outputs.pop_front()
    }

    fn mmio_done(&mut self, now: Time, token: MmioToken, result: Result<Payload, DmaError>) {
        let Some((device, Some(reply))) = self.elsewhere.asked.remove(&token) else { return };
        self.advance(now);
        let action = match result {
            Ok(data) => Action::Reply { token: reply, data },
            Err(error) => Action::ReplyError { token: reply, refusal: refusal(&error) },
        };
        self.paced.bring(now, Arrival::Device(self.elsewhere.served[device].node, action));
    }

    fn deadline(&self) -> Option<Time> {
        match self.elsewhere.outputs.is_empty() || self.paced.ended().is_some() {
            true => self.paced.deadline(),
            false => Some(Time::ZERO),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    fn rebase(&mut self, by: Duration) {
        self.paced.rebase(by);
    }
}
