//! `nettlp-card`: an FPGA card that carries TLPs over Ethernet to a software device on another machine (Kuga et al., NSDI 2020).
//!
//! ```text
//! host ◀──PCIe── card ── buffer ── Ethernet ──▶ socket ── core of the other machine ── software device
//! ```
//!
//! The software is any [`Device`]: a load generator reads and writes host memory as `tlpperf` does, a [`Memory`](crate::Memory) is what
//! `psmem` is. Each TLP is a datagram. The card takes no time but that of the wire; a processor takes [`CardConfig::send`] and
//! [`CardConfig::receive`] for a datagram, and hears of one [`CardConfig::wake`] after it came. Nothing holds back posted writes of the
//! host: what finds the card's buffer full is lost, and counted. Software that sends waits for room instead, as a socket makes it do.
//!
//! As the published library does, an operation of the software has one request under way at a time, and operations go to the
//! cores in turn, so a load with as many outstanding operations as cores is one requester on each. Completions reach the software when all
//! those of a request are with the card; in both directions they are cut at multiples of the payload size. BAR 4 is the first BAR of the software, and lies below
//! 4 GiB, as on the published machine; the card's own registers (BAR 0) read as zero.
//!
//! * [`ethernet`]: the wire with its buffer, and the processors
//! * `software`: operations of the software, request by request
//! * [`network`](crate::network): what is counted

pub mod ethernet;
mod software;

use crate::contract::{Action, Context, Device, DmaError, Event, Refusal, ReplyToken};
use crate::host::DeviceInfo;
use crate::identity::{BarSpec, Identity};
use crate::kit::{Alarms, Operations as UnderWay};
use crate::network::NetworkStatistics;
use ethernet::{Cores, Wire};
use software::{Operations, Work};
use std::collections::BTreeMap;
use tlplab_cfgspace::{Layout, MsiX};
use tlplab_transaction::{Payload, RequestPolicy};
use tlplab_units::{Duration, Time};

/// The BAR whose TLPs go over Ethernet.
pub const WINDOW_BAR: u8 = 4;
/// The BAR of the MSI-X table.
const TABLE_BAR: u8 = 2;
const VECTORS: u16 = 16;
/// The fault of a device behind NetTLP that changes its configuration space.
pub const CONFIG_IS_THE_CARDS: &str = "it changes its configuration space, which is the card's behind NetTLP, and no NetTLP message writes read-only registers; simulate the device, or attach it to a guest by vfio-user";

/// A card, its link and the software behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardConfig {
    /// Ethernet, in bits per second.
    pub rate: u64,
    /// Bytes of the card's buffer before Ethernet, and of the software's socket.
    pub buffer: u64,
    /// Processors of the software.
    pub cores: u16,
    /// The time of one to send a datagram.
    pub send: Duration,
    /// The time of one to receive a datagram.
    pub receive: Duration,
    /// From the arrival of a datagram to the beginning of its reception: interrupt, network stack, the waking of a thread.
    pub wake: Duration,
    /// Datagrams that may wait for a processor.
    pub queue: u32,
    /// A read of the software whose completion was lost has failed after this.
    pub timeout: Duration,
    /// Bytes of BAR 4, a power of two.
    pub bar: u64,
    /// Largest payload of a TLP.
    pub mps: u32,
    /// Largest read request.
    pub mrrs: u32,
    /// Statistics count from here on.
    pub from: Time,
    /// Devices that the software aims at.
    pub peers: Vec<String>,
}

/// A message to the card from its software.
#[derive(Clone, Debug)]
enum ToCard {
    Read { job: u64, address: u64, bytes: u64, carry: bool },
    Write { address: u64, data: Payload },
    Msix { vector: u16 },
    Completion { token: ReplyToken, offset: u64, bytes: u64 },
}

impl ToCard {
    /// Bytes of the TLP, and of its payload.
    fn size(&self) -> (u64, u64) {
        let header = |address: u64| if address >> 32 == 0 { 12 } else { 16 };
        match self {
            Self::Read { address, .. } => (header(*address), 0),
            Self::Write { address, data } => (header(*address) + dwords(*address, data.len()), data.len()),
            // The address is the host's to say; on the published machine as on this one it is below 4 GiB.
            Self::Msix { .. } => (16, 4),
            Self::Completion { offset, bytes, .. } => (12 + dwords(*offset, *bytes), *bytes),
        }
    }
}

/// A message to the software from the card.
#[derive(Clone, Debug)]
enum ToSoftware {
    /// One of the completions of a request; `result` comes with the last.
    Completion {
        job: u64,
        result: Option<Result<Payload, DmaError>>,
    },
    Read {
        offset: u64,
        bytes: u32,
        reply: ReplyToken,
    },
    Write {
        offset: u64,
        data: Payload,
    },
}

/// The next step of a datagram, at the time of its timer.
#[derive(Clone, Debug)]
enum Step {
    /// A core has made a datagram: it goes to the wire when that has room.
    Leaves { core: usize, job: Option<u64>, what: ToCard },
    /// It is with the card.
    AtCard { stream: u16, what: ToCard },
    /// A datagram waits for its core.
    AtSoftware { core: usize, what: ToSoftware },
    /// A core has read it.
    Received(ToSoftware),
    /// The software gives a read up.
    GivesUp { job: u64, request: u64 },
    /// A timer of the software's own.
    Own(u64),
}

/// An answer that the host waits for: of a read at `offset` that the software has received.
#[derive(Clone, Debug)]
struct Answer {
    offset: u64,
    /// Completions that are not with the card, and what they say together, once the software has answered.
    left: usize,
    result: Option<Result<Payload, Refusal>>,
}

/// The card; see the [module](self).
pub struct NettlpCard {
    config: CardConfig,
    software: Box<dyn Device>,
    next_op: u64,
    actions: Vec<Action>,
    peers: Vec<DeviceInfo>,
    operations: Operations,
    cores: Cores,
    to_software: Wire,
    to_card: Wire,
    steps: Alarms<Step>,
    /// Requests of the software on PCI Express.
    on_pcie: UnderWay<u64>,
    answers: BTreeMap<ReplyToken, Answer>,
    statistics: NetworkStatistics,
}

impl NettlpCard {
    /// A card with this software behind it.
    pub fn new(config: CardConfig, software: Box<dyn Device>) -> Self {
        Self {
            operations: Operations::new(config.mps, config.mrrs),
            cores: Cores::new(config.cores),
            to_software: Wire::new(config.rate, config.buffer),
            to_card: Wire::new(config.rate, config.buffer),
            statistics: NetworkStatistics::new(config.cores.max(1)),
            next_op: 0,
            actions: Vec::new(),
            peers: Vec::new(),
            steps: Alarms::new(),
            on_pcie: UnderWay::new(),
            answers: BTreeMap::new(),
            software,
            config,
        }
    }

    fn counts(&self, now: Time) -> bool {
        now >= self.config.from
    }

    /// The software handles an event, and what it does begins.
    fn tell(&mut self, cx: &mut Context<'_>, event: Event) {
        let mut inner = Context::new(cx.now(), &self.peers, &mut self.next_op, &mut self.actions)
            .with_length_only(cx.length_only());
        self.software.handle(&mut inner, event);
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::DmaRead { op, stream, address, bytes, carry } => {
                    let core = self.cores.pick();
                    let work = Work::Read { op, address, bytes, carry, data: Vec::new() };
                    self.operations.begin(cx.now(), stream, core, work);
                }
                Action::DmaWrite { op, stream, address, data } => {
                    let core = self.cores.pick();
                    self.operations.begin(cx.now(), stream, core, Work::Write { op, address, data });
                }
                Action::Msix { stream, vector } => {
                    let core = self.cores.pick();
                    self.operations.begin(cx.now(), stream, core, Work::Msix { vector });
                }
                Action::Reply { token, data } => self.answer(cx, token, Ok(data)),
                Action::ReplyError { token, refusal } => self.answer(cx, token, Err(refusal)),
                Action::Timer { at, id } => self.steps.set(cx, at, Step::Own(id)),
                Action::Intx { stream, asserted } => cx.set_intx(stream, asserted),
                Action::SetConfig { .. } => cx.fault(CONFIG_IS_THE_CARDS.into()),
                Action::Finished => cx.finished(),
                Action::Fault(message) => cx.fault(message),
            }
        }
        self.actions = actions;
        self.send_ready(cx);
    }

    /// Makes the next datagram of every operation that may send one.
    fn send_ready(&mut self, cx: &mut Context<'_>) {
        while let Some((job, core, what)) = self.operations.next_datagram() {
            self.make(cx, core, Some(job), what);
        }
    }

    /// A core makes a datagram.
    fn make(&mut self, cx: &mut Context<'_>, core: usize, job: Option<u64>, what: ToCard) {
        let counts = self.counts(cx.now());
        let done = self.cores.work(cx.now(), core, self.config.send, counts);
        self.steps.set(cx, done, Step::Leaves { core, job, what });
    }

    /// The software's answer, as completions.
    fn answer(&mut self, cx: &mut Context<'_>, token: ReplyToken, result: Result<Payload, Refusal>) {
        // After a reset nobody waits for it.
        let Some(answer) = self.answers.get_mut(&token) else { return };
        let pieces = cuts(answer.offset, result.as_ref().map_or(0, Payload::len), self.config.mps);
        answer.left = pieces.clone().count();
        answer.result = Some(result);
        let core = self.cores.pick();
        for (offset, bytes) in pieces {
            self.make(cx, core, None, ToCard::Completion { token, offset, bytes });
        }
    }

    fn leaves(&mut self, cx: &mut Context<'_>, core: usize, job: Option<u64>, what: ToCard) {
        let now = cx.now();
        let (tlp, data) = what.size();
        let room = self.to_card.room_at(now, tlp);
        if room > now {
            self.cores.block(core, room);
            return self.steps.set(cx, room, Step::Leaves { core, job, what });
        }
        let counts = self.counts(now);
        let arrives = self.to_card.send(now, tlp, data, counts).unwrap_or(room);
        let stream = job.map_or(0, |job| self.operations.stream(job));
        self.steps.set(cx, arrives, Step::AtCard { stream, what });
        if let Some(op) = job.and_then(|job| self.operations.left(job, now)) {
            self.tell(cx, Event::DmaWriteAccepted { op });
        }
        self.send_ready(cx);
    }

    fn at_card(&mut self, cx: &mut Context<'_>, stream: u16, what: ToCard) {
        match what {
            ToCard::Read { job, address, bytes, carry } => {
                let op = match carry {
                    true => cx.dma_read_control(stream, address, bytes),
                    false => cx.dma_read(stream, address, bytes),
                };
                self.on_pcie.begin(op, job);
            }
            ToCard::Write { address, data } => drop(cx.dma_write(stream, address, data)),
            ToCard::Msix { vector } => cx.msix(stream, vector),
            ToCard::Completion { token, .. } => {
                // After a reset nobody waits for it.
                let Some(answer) = self.answers.get_mut(&token) else { return };
                answer.left -= 1;
                if answer.left == 0 {
                    match self.answers.remove(&token).and_then(|answer| answer.result) {
                        Some(Ok(data)) => cx.reply(token, data),
                        Some(Err(refusal)) => cx.reply_error(token, refusal),
                        None => {}
                    }
                }
            }
        }
    }

    /// The card has the completions of a request of the software, and sends them on.
    fn completed(&mut self, cx: &mut Context<'_>, job: u64, result: Result<Payload, DmaError>) {
        // It was given up.
        let Some((core, address)) = self.operations.core_and_address(job) else { return };
        let mut pieces = cuts(address, result.as_ref().map_or(0, Payload::len), self.config.mps).peekable();
        let mut result = Some(result);
        while let Some((at, bytes)) = pieces.next() {
            let result = if pieces.peek().is_none() { result.take() } else { None };
            let what = ToSoftware::Completion { job, result };
            if !self.send_to_software(cx, Some(core), 12 + dwords(at, bytes), bytes, what) {
                return self.lost(cx, job);
            }
        }
    }

    /// A completion was lost: the software waits in vain.
    fn lost(&mut self, cx: &mut Context<'_>, job: u64) {
        if let Some((request, begun)) = self.operations.under_way(job) {
            let at = (begun + self.config.timeout).max(cx.now());
            self.steps.set(cx, at, Step::GivesUp { job, request });
        }
    }

    /// Sends a datagram to the software. Returns false if it was dropped.
    fn send_to_software(
        &mut self,
        cx: &mut Context<'_>,
        core: Option<usize>,
        tlp: u64,
        data: u64,
        what: ToSoftware,
    ) -> bool {
        let counts = self.counts(cx.now());
        let Some(arrives) = self.to_software.send(cx.now(), tlp, data, counts) else { return false };
        let core = core.unwrap_or_else(|| self.cores.pick());
        self.steps.set(cx, arrives + self.config.wake, Step::AtSoftware { core, what });
        true
    }

    fn at_software(&mut self, cx: &mut Context<'_>, core: usize, what: ToSoftware) {
        let counts = self.counts(cx.now());
        if self.cores.backlog(cx.now(), core) > self.config.receive * u64::from(self.config.queue) {
            self.statistics.socket_drops += u64::from(counts);
            if let ToSoftware::Completion { job, .. } = what {
                self.lost(cx, job);
            }
            return;
        }
        let done = self.cores.work(cx.now(), core, self.config.receive, counts);
        self.steps.set(cx, done, Step::Received(what));
    }

    fn received(&mut self, cx: &mut Context<'_>, what: ToSoftware) {
        match what {
            ToSoftware::Read { offset, bytes, reply } => {
                self.answers.insert(reply, Answer { offset, left: 0, result: None });
                self.tell(cx, Event::MmioRead { bar: 0, offset, bytes, reply });
            }
            ToSoftware::Write { offset, data } => self.tell(cx, Event::MmioWrite { bar: 0, offset, data }),
            ToSoftware::Completion { job, result: Some(result) } => {
                let over = self.operations.answered(job, result);
                self.read_over(cx, over);
                self.send_ready(cx);
            }
            ToSoftware::Completion { result: None, .. } => {}
        }
    }

    fn read_over(&mut self, cx: &mut Context<'_>, over: Option<software::Over>) {
        let Some(over) = over else { return };
        if self.counts(over.begun) {
            self.statistics.read(cx.now() - over.begun, over.result.is_ok());
        }
        self.tell(cx, Event::DmaReadDone { op: over.op, result: over.result });
    }

    fn step(&mut self, cx: &mut Context<'_>, id: u64) {
        match self.steps.due(id) {
            Some(Step::Leaves { core, job, what }) => self.leaves(cx, core, job, what),
            Some(Step::AtCard { stream, what }) => self.at_card(cx, stream, what),
            Some(Step::AtSoftware { core, what }) => self.at_software(cx, core, what),
            Some(Step::Received(what)) => self.received(cx, what),
            Some(Step::GivesUp { job, request }) => {
                let over = self.operations.give_up(job, request, self.config.timeout);
                self.read_over(cx, over);
            }
            Some(Step::Own(id)) => self.tell(cx, Event::Timer { id }),
            // Before a reset.
            None => {}
        }
    }

    fn mmio_read(&mut self, cx: &mut Context<'_>, bar: u8, offset: u64, bytes: u32, reply: ReplyToken) {
        if bar == WINDOW_BAR {
            // If it is lost, the reader times out.
            self.send_to_software(cx, None, 12, 0, ToSoftware::Read { offset, bytes, reply });
        } else if cx.length_only() {
            cx.reply(reply, Payload::Length(bytes.into()));
        } else {
            cx.reply(reply, vec![0; bytes as usize].into());
        }
    }
}

/// Bytes of the whole double words that `bytes` bytes at `address` lie in.
fn dwords(address: u64, bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { (address % 4 + bytes).next_multiple_of(4) }
}

/// The completions of so many bytes: where each begins, and its bytes. They end at multiples of the payload size; without data there is one.
fn cuts(address: u64, bytes: u64, mps: u32) -> impl Iterator<Item = (u64, u64)> + Clone {
    let (end, mps) = (address + bytes, u64::from(mps));
    let piece = move |at: u64| (at, (end - at).min(mps - at % mps));
    std::iter::successors(Some(piece(address)), move |&(at, bytes)| {
        let next = at + bytes;
        (next < end).then(|| piece(next))
    })
}

impl Device for NettlpCard {
    fn identity(&self) -> Identity {
        let window = BarSpec { prefetchable: false, ..BarSpec::memory(WINDOW_BAR, self.config.bar) };
        Identity {
            bars: vec![BarSpec::registers(0, 16 << 10), BarSpec::memory(TABLE_BAR, 256 << 20), window],
            ..Identity::new(0x3776, 0x8022, 0x05_80_00) // memory controller, other
        }
    }

    fn layout(&self) -> Layout {
        let msix = MsiX { vectors: VECTORS, table: (TABLE_BAR, 0), pending: (TABLE_BAR, 2048) };
        self.identity().layout().capability(msix)
    }

    /// A request of the software is one of the card's.
    fn request_policy(&self) -> RequestPolicy {
        RequestPolicy::Packed
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Start => {
                self.peers = self.config.peers.iter().filter_map(|name| cx.peer(name)).cloned().collect();
                self.tell(cx, Event::Start);
            }
            Event::MmioRead { bar, offset, bytes, reply } => self.mmio_read(cx, bar, offset, bytes, reply),
            Event::MmioWrite { bar: WINDOW_BAR, offset, data } => {
                let (tlp, bytes) = (12 + dwords(offset, data.len()), data.len());
                self.send_to_software(cx, None, tlp, bytes, ToSoftware::Write { offset, data });
            }
            Event::DmaReadDone { op, result } => {
                if let Some(job) = self.on_pcie.end(op) {
                    self.completed(cx, job, result);
                }
            }
            Event::Timer { id } => self.step(cx, id),
            Event::Reset => {
                self.steps.clear();
                self.on_pcie.clear();
                self.answers.clear();
                self.operations = Operations::new(self.config.mps, self.config.mrrs);
                self.tell(cx, Event::Reset);
            }
            Event::MmioWrite { .. } | Event::DmaWriteAccepted { .. } => {}
        }
    }

    fn network(&self) -> Option<NetworkStatistics> {
        Some(NetworkStatistics {
            to_software: self.to_software.count,
            to_card: self.to_card.count,
            cores_busy: self.cores.busy,
            ..self.statistics.clone()
        })
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(Self {
            software: self.software.snapshot()?,
            config: self.config.clone(),
            next_op: self.next_op,
            actions: self.actions.clone(),
            peers: self.peers.clone(),
            operations: self.operations.clone(),
            cores: self.cores.clone(),
            to_software: self.to_software.clone(),
            to_card: self.to_card.clone(),
            steps: self.steps.clone(),
            on_pcie: self.on_pcie.clone(),
            answers: self.answers.clone(),
            statistics: self.statistics.clone(),
        }))
    }
}
