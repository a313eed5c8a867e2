//! A simulated machine behind an adapter: an experiment whose devices are elsewhere, in wall time.
//!
//! ```text
//! driver on the simulated host ─MMIO─▶ fabric ─event─▶ LiveFabric ─HostOutput─▶ Adapter ─datagram─▶ device
//!                       memory ◀─TLPs─ fabric ◀─action── LiveFabric ◀──Host──── Adapter ◀─datagram─
//! ```
//!
//! The machine's time begins a moment after every served device has been heard of (`GRACE`), and then follows the wall clock, never ahead of it. Where the
//! simulation takes longer than what it simulates, it [lags](Lag) and catches up as it can. The clock of the fabric cannot be set back, so such
//! a machine lives for [`LIFETIME`] and then ends, and says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use tlplab_device::simple_nic::FRAMES;
use tlplab_device::{
    Action, DeviceInfo, DmaError, Event, HostAction, Identity, OpId, Payload, Refusal, ReplyToken,
};
use tlplab_experiment::outside::{ResidentFailure, Residents};
use tlplab_experiment::run::{Run, RunError};
use tlplab_fabric::config::Fidelity;
use tlplab_fabric::{Driven, NodeId, Told};
use tlplab_nettlp::adapter::host::{
    Answer, Host, HostInterrupt, HostOutput, HostRead, HostReadId, HostWrite, MmioAccess, MmioToken,
};
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, FunctionKind, INTERRUPTS};
use tlplab_transaction::CompletionError;
use tlplab_units::{Duration, Time};

/// How long such a machine lives: what the clock of a fabric holds, less a little.
pub const LIFETIME: Duration = Duration::from_ms(5 * 3600 * 1000);
/// From the first that is heard of the last device, which is a question, to the beginning of simulated time: until then it is ready to be asked.
const GRACE: Duration = Duration::from_ms(200);
/// Events of the fabric between two looks at the network.
const EVENTS: u64 = 20_000;
/// A machine in which nothing is under way looks at its timers no more often.
const IDLE: Duration = Duration::from_us(200);

/// Why an experiment cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeError {
    /// There is no such device.
    #[error("the experiment has no device \"{0}\"")]
    NoDevice(String),
    /// It is not driven from outside.
    #[error("device {0} was not taken out of the experiment")]
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

/// Why the machine has ended.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// It has done what it was to do.
    #[error("{0}")]
    Done(String),
    /// It failed.
    #[error(transparent)]
    Failed(#[from] RunError),
    /// One of its residents failed.
    #[error("{0}")]
    Resident(ResidentFailure),
    /// [`LIFETIME`] is over.
    #[error("the simulated machine has run for 5 hours, which is all that its clock holds; start it again")]
    TooOld,
}

/// How far simulated time is behind the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Now.
    pub now: Duration,
    /// At most.
    pub most: Duration,
    /// How often more than a millisecond of it had gathered.
    pub times: u64,
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
    run: Run,
    residents: Box<dyn Residents>,
    served: Vec<Served>,
    absent: BTreeSet<usize>,
    /// The wall clock when simulated time begins, in femtoseconds; it may lie before the wall clock's origin.
    origin: Option<i128>,
    /// When something happens next, in simulated time.
    next: Option<Time>,
    outputs: VecDeque<HostOutput>,
    asked: BTreeMap<MmioToken, (usize, Option<ReplyToken>)>,
    next_token: u64,
    lag: Lag,
    end: Option<End>,
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
            run,
            residents,
            served,
            origin: None,
            next: None,
            outputs: VecDeque::new(),
            asked: BTreeMap::new(),
            next_token: 0,
            lag: Lag::default(),
            end: None,
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
        let mut config = AdapterConfig::new(local, self.served.iter().zip(peers).map(device).collect());
        let own = self.run.experiment().fabric.devices.iter();
        let own = own.filter(|device| self.served.iter().any(|served| served.name == device.name));
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
        self.absent.iter().map(|device| self.served[*device].name.as_str())
    }
    /// Why it has ended, if it has. What it is asked from then on is refused.
    pub fn ended(&self) -> Option<&End> {
        self.end.as_ref()
    }
    /// Somebody has put frames into the [`Frames`](tlplab_device::Frames) of the driver of this device.
    pub fn frames_came(&mut self, now: Time, device: &str) {
        self.advance(now);
        // Before its time begins, a driver finds them when it starts.
        if self.end.is_none()
            && self.origin.is_some()
            && let Some(program) = self.run.drivers().iter().position(|driven| driven == device)
        {
            let at = self.run.now();
            self.run.host_acts(program, HostAction::Timer { at, id: FRAMES });
            self.look_ahead();
        }
    }
    /// How far behind the wall clock it is.
    pub fn lag(&self) -> Lag {
        self.lag
    }
    /// The run: its document, its fabric.
    pub fn run(&mut self) -> &mut Run {
        &mut self.run
    }

    /// Simulated time at `now`; `None` before it begins.
    fn simulated(&self, now: Time) -> Option<Time> {
        let fs = i128::from(now.as_fs()) - self.origin?;
        u64::try_from(fs).ok().map(|fs| Time::from_fs(fs.min(LIFETIME.as_fs())))
    }

    /// Goes on to `now`, as far as the events of one look allow.
    fn advance(&mut self, now: Time) {
        let Some(until) = self.simulated(now) else { return };
        let begun = self.run.progress().events;
        while self.end.is_none() {
            let left = (begun + EVENTS).saturating_sub(self.run.progress().events);
            match self.run.advance_to(until, left) {
                Err(error) => self.end = Some(error.into()),
                Ok(progress) if progress.waits_for_outside => self.hear(),
                Ok(progress) if progress.done => {
                    self.end = Some(End::Done("the experiment has ended".into()));
                }
                Ok(progress) => {
                    self.note_lag(until.saturating_since(progress.now));
                    break;
                }
            }
        }
        if until == Time::ZERO + LIFETIME {
            self.end.get_or_insert(End::TooOld);
        }
        self.look_ahead();
    }

    /// When something happens next; later if nothing is under way, so that an idle machine sleeps.
    fn look_ahead(&mut self) {
        let fabric = self.run.fabric();
        let earliest = if fabric.transactions_live() == 0 { fabric.now() + IDLE } else { fabric.now() };
        self.next = fabric.next_event().map(|next| next.max(earliest));
    }

    fn note_lag(&mut self, lag: Duration) {
        const MUCH: Duration = Duration::from_ms(1);
        self.lag.times += u64::from(lag > MUCH && self.lag.now <= MUCH);
        self.lag.now = lag;
        self.lag.most = self.lag.most.max(lag);
    }

    /// Tells devices and programs what the fabric has for them.
    fn hear(&mut self) {
        let Told { devices, programs } = self.run.take_told();
        for (now, node, event) in devices {
            let told = match self.served.iter().position(|served| served.node == node) {
                Some(device) => {
                    self.device_event(device, event);
                    Ok(())
                }
                None => self.residents.tell_device(self.run.fabric(), now, node, event),
            };
            self.note_failure(told);
        }
        for (now, program, event) in programs {
            let told = self.residents.tell_program(self.run.fabric(), now, program, event);
            self.note_failure(told);
        }
    }

    fn note_failure(&mut self, told: Result<(), ResidentFailure>) {
        if let Err(failure) = told {
            self.end.get_or_insert(End::Resident(failure));
        }
    }

    fn device_event(&mut self, device: usize, event: Event) {
        match event {
            Event::MmioRead { bytes: 0, reply, .. } => {
                let data = Payload::EMPTY;
                self.run.device_acts(self.served[device].node, Action::Reply { token: reply, data });
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

    /// A device acts, now.
    fn inject(&mut self, now: Time, device: usize, action: impl FnOnce(OpId) -> Action) -> Option<OpId> {
        self.advance(now);
        if self.end.is_some() {
            return None;
        }
        let node = self.served[device].node;
        let op = self.run.next_device_op(node);
        self.run.device_acts(node, action(op));
        self.look_ahead();
        Some(op)
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

fn refusal(error: &DmaError) -> Refusal {
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
        if self.absent.is_empty() && self.origin.is_none() {
            self.look_ahead();
            self.origin = Some((now + GRACE).as_fs().into());
        }
    }

    fn read(&mut self, now: Time, request: HostRead) -> Answer {
        let HostRead { device, address, bytes, .. } = request;
        let bytes = bytes.into();
        let read = |op| Action::DmaRead { op, stream: 0, address, bytes, carry: true };
        match self.inject(now, device, read) {
            Some(op) => {
                self.served[device].reads.insert(op, request.id);
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
        if self.outputs.is_empty() {
            self.advance(now);
        }
        self.outputs.pop_front()
    }

    fn mmio_done(&mut self, now: Time, token: MmioToken, result: Result<Payload, DmaError>) {
        let Some((device, Some(reply))) = self.asked.remove(&token) else { return };
        self.advance(now);
        if self.end.is_some() || !self.run.fabric().is_asked(reply) {
            return;
        }
        let action = match result {
            Ok(data) => Action::Reply { token: reply, data },
            Err(error) => Action::ReplyError { token: reply, refusal: refusal(&error) },
        };
        self.run.device_acts(self.served[device].node, action);
        self.look_ahead();
    }

    fn deadline(&self) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        if !self.outputs.is_empty() {
            return Some(Time::ZERO);
        }
        let next = i128::from(self.next?.as_fs()) + self.origin?;
        Some(Time::from_fs(u64::try_from(next).unwrap_or(0)))
    }

    fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    fn rebase(&mut self, by: Duration) {
        self.origin = self.origin.map(|origin| origin - i128::from(by.as_fs()));
    }
}
