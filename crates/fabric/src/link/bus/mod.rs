//! Parallel buses: PCI and PCI-X below a bridge.
//!
//! A bus carries one transaction at a time. Its members are the bridge and the devices on it; each may be master of a transaction and
//! target of others. What they want to send waits in egress queues, as before a link: the bridge's at its first port on the bus, a
//! device's at its own port. From there it goes by transactions ([`transaction`]) of several phases ([`phases`]), on the edges of the
//! bus's clock:
//!
//! ```text
//!              grant             claim                                idle
//! queue ──wait──┤ address, select ├─┬─ posted, split completion: data ──┤ the target has it
//!                                   ├─ immediate: wait for it, data ────┤ the master has the completion
//!                                   ├─ split, delayed: "later" ─────────┤ the target has the request
//!                                   ├─ delayed, come again: data ───────┤ the master has the completion
//!                                   └─ no room: "come again" ───────────┤
//! ```
//!
//! Data on the bus stay TLPs, so routing, BARs, DMA and attribution are those of the fabric, and the bridge is a node like the others.
//! Interrupt wires have their own lines, which take no time of the bus.

mod outcome;
mod phases;
mod record;
mod transaction;

use crate::config::BuildError;
use crate::config::numbering::Numbering;
use crate::config::{BusCompletion, BusConfig, BusDevice, FabricConfig, LinkConfig};
use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::link::port::Port;
use crate::link::port_buffer::ends_its_request;
use crate::packet::attribution::{Cause, Partition};
use crate::packet::slab::TlpHandle;
use phases::Rules;
use tlplab_cfgspace::{BarKind, BarWindow};
use tlplab_units::{Duration, FcClass, Generation, Time};
use tlplab_wire::tlp::{Kind, TransactionId};
use transaction::{Current, Transaction};

/// A master that was told to come again lets others have the bus for so many clocks (PCI 2.2 §3.3.3.2.1 wants REQ# deasserted for two).
const BACK_OFF: u32 = 2;

/// A parallel bus.
#[derive(Clone)]
pub(crate) struct Bus {
    rules: Rules,
    synchronisation: Duration,
    /// The bridge, then the devices in the order of the bridge's ports.
    members: Vec<Member>,
    /// The transaction under way.
    current: Option<Current>,
    /// The last master.
    last: usize,
    /// The time of the next arbitration, if one is planned.
    wake: Time,
    /// Transactions so far: events of others than the present one are stale.
    number: u32,
    /// The bridge's port above, then those that lead to one device each.
    ports: Vec<PortId>,
    /// By member: what the functions of a device there decode.
    decoders: Vec<Vec<Decoder>>,
    pub(crate) room: BridgeRoom,
}

/// The addresses that a function on the bus claims.
#[derive(Clone)]
struct Decoder {
    function: u8,
    bars: [Option<BarWindow>; 6],
}

impl Decoder {
    fn claims(&self, address: u64, io: bool) -> bool {
        let claims = |bar: &BarWindow| {
            (bar.kind == BarKind::Io) == io && bar.base <= address && address - bar.base < bar.size
        };
        self.bars.iter().flatten().any(claims)
    }
}

/// Room of the bridge for what comes from the bus. It has kept room for the answers to what it has asked.
#[derive(Clone)]
pub(crate) struct BridgeRoom {
    /// Posted requests that it may hold.
    posted: usize,
    /// By class: what it has taken from the bus and is processing.
    pub(crate) arriving: [usize; 3],
    /// Requests whose completions it waits for, by the tag it has given them; a free place is `None`.
    pub(crate) reads: Vec<Option<TransactionId>>,
}

/// The source in its egress towards the link of what comes from the bus, whichever device it is from: it stays in order.
pub(crate) const FROM_BUS: usize = 1;

/// A master and target of a bus.
#[derive(Clone)]
struct Member {
    /// The port whose queue it sends from.
    port: PortId,
    role: BusDevice,
    /// Its request that the target has asked it to come again for.
    delayed: Option<Delayed>,
    /// It was refused, and leaves the bus alone until then.
    not_before: Time,
    /// It has sent something since it last came again.
    fetches_next: bool,
}

/// A request that its target has taken, and whose data the master has to fetch.
#[derive(Clone)]
struct Delayed {
    request: Transaction,
    target: usize,
    answer: Answer,
    /// The time at which the master retries.
    next: Time,
}

/// The completions of a request, as far as they are there.
#[derive(Clone, Default)]
struct Answer {
    completions: Vec<Waiting>,
    complete: bool,
}

impl Answer {
    fn handles(&self) -> impl Iterator<Item = TlpHandle> {
        self.completions.iter().map(|completion| completion.tlp)
    }

    fn take(&mut self, completion: Waiting, last: bool) {
        self.completions.push(completion);
        self.complete |= last;
    }
}

impl Bus {
    /// The bus below a bridge with the given ports, of which the first is its link's; `members` send from theirs.
    pub(crate) fn new(config: &BusConfig, ports: Vec<PortId>, members: &[(PortId, BusDevice)]) -> Self {
        let bridge = BusDevice {
            device_select: config.bridge.device_select,
            wait_states: 0,
            completion: if config.mode.is_pci_x() { BusCompletion::Split } else { BusCompletion::Delayed },
            overhead: config.bridge.overhead,
        };
        let member =
            |port, role| Member { port, role, delayed: None, not_before: Time::ZERO, fetches_next: false };
        let mut members: Vec<_> = members.iter().map(|&(port, role)| member(port, role)).collect();
        members[0].role = bridge;
        let rules =
            Rules { cycle: config.mode.cycle(), pci_x: config.mode.is_pci_x(), width: config.width.bytes() };
        let synchronisation = config.bridge.synchronisation;
        let room = BridgeRoom {
            posted: usize::from(config.bridge.posted.max(1)),
            arriving: [0; 3],
            reads: vec![None; usize::from(config.bridge.reads.clamp(1, 256))],
        };
        Self {
            rules,
            synchronisation,
            decoders: members.iter().map(|_| Vec::new()).collect(),
            members,
            current: None,
            last: 0,
            wake: Time::NEVER,
            number: 0,
            ports,
            room,
        }
    }

    /// True if its masters keep requester and tag of the requests they send.
    pub(crate) fn is_pci_x(&self) -> bool {
        self.rules.pci_x
    }

    /// The port by which what comes from above gets onto the bus.
    pub(crate) fn entry(&self) -> PortId {
        self.members[0].port
    }

    fn clocks(&self, clocks: u32) -> Duration {
        self.rules.cycle * u64::from(clocks)
    }

    /// The first edge of the clock that is not before `time`.
    fn edge(&self, time: Time) -> Time {
        let cycle = self.rules.cycle.as_fs();
        Time::from_fs(time.as_fs().div_ceil(cycle) * cycle)
    }

    /// The request that a target has taken and has not given all data of.
    fn delayed(&mut self, target: usize, id: TransactionId) -> Option<&mut Delayed> {
        let mut all = self.members.iter_mut().filter_map(|member| member.delayed.as_mut());
        all.find(|d| d.target == target && d.request.id() == id && !d.answer.complete)
    }

    /// True if a member may be master for the TLPs that wait in its queue.
    fn admits(&self, member: usize, class: FcClass, waiting: &Waiting, now: Time) -> bool {
        let member = &self.members[member];
        let allowed = match class {
            FcClass::Posted => true,
            // One at a time is under way, and others wait for their turn behind it.
            FcClass::NonPosted => member.delayed.is_none(),
            // Conventional targets give data when the master comes again.
            FcClass::Completion => self.rules.pci_x,
        };
        allowed && waiting.tail.max(member.not_before) <= now
    }
}

impl Bus {
    /// Nothing is under way any more; what was, and has not been handed on.
    fn reset(&mut self, now: Time) -> Vec<Waiting> {
        self.room.reads.fill(None);
        self.room.arriving = [0; 3];
        let mut gone = Vec::new();
        if let Some(Current { what, answer, claimed, .. }) = self.current.take() {
            // What was refused, or waits to be fetched, is where it was.
            gone.extend(what.is_on_bus_alone(now < claimed).then_some(what.sent));
            gone.extend(answer.completions);
        }
        for member in &mut self.members {
            gone.extend(member.delayed.take().into_iter().flat_map(|delayed| delayed.answer.completions));
            (member.not_before, member.fetches_next) = (Time::ZERO, false);
        }
        self.number = self.number.wrapping_add(1);
        gone
    }
}

/// A device on a bus has no link: what is said of one is what its way over the bus amounts to.
pub(crate) fn prepare(config: &mut FabricConfig) -> Result<(), BuildError> {
    for bus in &config.buses {
        let error = |why| Err(BuildError::Bus { bus: bus.name.clone(), why });
        let on_it = config.devices.iter_mut().filter(|d| d.link.under == bus.name && d.function_of.is_none());
        let mut devices = 0;
        for device in on_it.filter(|device| device.bus.is_some()) {
            devices += 1;
            if !device.link.faults.is_empty() {
                return error("a bus has no faults: they are on links");
            }
            let uplink = &bus.uplink;
            device.link = LinkConfig {
                crossbar: Some(bus.bits_per_second()),
                mps: uplink.mps,
                // No generation that has only flits: on a bus there are none.
                ..LinkConfig::new(&bus.name, uplink.generation.min(Generation::Gen5), uplink.width)
            };
            if device.bus.is_some_and(|role| role.completion == BusCompletion::Split) && !bus.mode.is_pci_x()
            {
                return error(
                    "split completions are PCI-X's: conventional devices complete immediate or delayed",
                );
            }
            if device.bus.is_some_and(|role| role.completion == BusCompletion::Delayed) && bus.mode.is_pci_x()
            {
                return error(
                    "delayed completions are conventional PCI's: on PCI-X devices split or complete at once",
                );
            }
        }
        match devices {
            0 => return error("a bus needs a device on it"),
            1..=32 => {}
            _ => return error("a bus has numbers for 32 devices"),
        }
    }
    Ok(())
}

/// The ports that the members of a bus send from: of the bridge the first, then each device's.
pub(crate) fn members(
    config: &FabricConfig,
    numbering: &Numbering,
    bridge: &[PortId],
) -> Vec<(PortId, BusDevice)> {
    let device = |port: &PortId| {
        let link = &numbering.links[numbering.ports[port.index()].link];
        let role =
            config.devices.iter().find(|device| device.name == link.name).and_then(|device| device.bus);
        (PortId(link.lower as u16), role.unwrap_or_default())
    };
    std::iter::once((bridge[1], BusDevice::default())).chain(bridge[1..].iter().map(device)).collect()
}

impl Context {
    pub(crate) fn bus(&mut self, bridge: NodeId) -> &mut Bus {
        self.links.buses[bridge.index()].as_mut().expect("a bridge has a bus")
    }

    fn bus_below(&self, bridge: NodeId) -> &Bus {
        self.links.buses[bridge.index()].as_ref().expect("a bridge has a bus")
    }

    /// A function of the device at `port`, which is on a bus, decodes these BARs from now on.
    pub(crate) fn decode_on_bus(&mut self, port: PortId, function: u8, bars: [Option<BarWindow>; 6]) {
        let (node, member) = self.bus_at(port);
        let decoders = &mut self.bus(node).decoders[member];
        match decoders.iter_mut().find(|decoder| decoder.function == function) {
            Some(decoder) => decoder.bars = bars,
            None => decoders.push(Decoder { function, bars }),
        }
    }

    /// The bridge is reset, and nothing is on its bus any more.
    pub(crate) fn reset_bus(&mut self, node: NodeId) {
        let now = self.kernel.now();
        let gone = self.bus(node).reset(now);
        gone.into_iter().for_each(|waiting| self.release_waiting(waiting));
        self.note_bus_master(node, None);
    }

    /// True if the bridge can hold a TLP of this class from the bus.
    fn bridge_has_room(&self, bus: &Bus, class: FcClass) -> bool {
        let BridgeRoom { posted, arriving, reads } = &bus.room;
        match class {
            FcClass::Posted => {
                let egress = &self.links.ports[bus.ports[0].index()].egress;
                egress.len_of(FROM_BUS, class) + arriving[class.index()] < *posted
            }
            FcClass::NonPosted => {
                arriving[class.index()] < reads.iter().filter(|read| read.is_none()).count()
            }
            FcClass::Completion => true,
        }
    }

    /// The bridge of the bus that a port is on, and the member that sends by it.
    fn bus_at(&self, port: PortId) -> (NodeId, usize) {
        let own = &self.links.ports[port.index()];
        if own.direction == 1 {
            return (own.node, 0);
        }
        let above = &self.links.ports[own.peer.index()];
        (above.node, above.index)
    }

    /// A TLP joins the queue of a member, unless it is the answer that the bus waits for.
    pub(crate) fn enqueue_at_bus(&mut self, egress: PortId, source: usize, mut waiting: Waiting) {
        let (node, member) = self.bus_at(egress);
        if waiting.shape.class == FcClass::Completion
            && member > 0
            && self.complete_at_once(node, member, waiting)
        {
            return;
        }
        let now = self.kernel.now();
        let bus = self.bus(node);
        let Member { port, role, .. } = bus.members[member];
        let seen = if member == 0 { now + bus.synchronisation } else { now };
        waiting.tail = bus.edge(seen) + bus.clocks(role.overhead.into());
        self.push_to_egress(port, source, waiting);
        self.measure_levels(port);
        self.serve_bus(node);
    }

    /// Of a completion that a device gives: whether its request is under way on the bus.
    fn complete_at_once(&mut self, node: NodeId, member: usize, completion: Waiting) -> bool {
        let repr = &self.tlps.get(completion.tlp).repr;
        let (id, last) = (repr.transaction_id(), ends_its_request(repr));
        let bus = self.bus(node);
        let Some(current) = bus.current.as_mut().filter(|current| current.waits_for(member, id)) else {
            return false;
        };
        current.answer.take(completion, last);
        if current.answer.complete {
            self.give_bus_data(node);
        }
        true
    }

    /// If the bus is idle, chooses a master: now, or when the first of them is ready.
    pub(crate) fn serve_bus(&mut self, node: NodeId) {
        self.side_band(node);
        self.collect_answers(node);
        let now = self.kernel.now();
        if self.bus(node).current.is_some() {
            return;
        }
        let count = self.bus(node).members.len();
        let first = self.bus(node).last + 1;
        let mut soonest = Time::NEVER;
        for member in (first..first + count).map(|member| member % count) {
            match self.bus_wanted(node, member) {
                Some(at) if at <= now => return self.begin_on_bus(node, member),
                Some(at) => soonest = soonest.min(at),
                None => {}
            }
        }
        let bus = self.bus(node);
        if soonest < bus.wake {
            bus.wake = soonest;
            self.schedule_bus(node, soonest, Step::Choose);
        }
    }

    /// The time at which a member can use the bus, if it wants it.
    fn bus_wanted(&self, node: NodeId, member: usize) -> Option<Time> {
        let bus = self.bus_below(node);
        let Member { port, delayed, not_before, .. } = &bus.members[member];
        let egress = &self.links.ports[port.index()].egress;
        let queued = egress.earliest(|class, waiting| bus.admits(member, class, waiting, Time::NEVER));
        let queued = queued.map(|ready| ready.max(*not_before));
        let again = delayed.as_ref().map(|delayed| delayed.next);
        let at = queued.into_iter().chain(again).min()?;
        // A transaction begins at an edge of the clock, however long ago it could have.
        Some(at.max(bus.edge(self.kernel.now())))
    }

    /// Interrupt wires are lines of their own: what tells of them takes no time of the bus.
    fn side_band(&mut self, node: NodeId) {
        for member in 1..self.bus(node).members.len() {
            let port = self.bus(node).members[member].port;
            loop {
                let tlps = &self.tlps;
                let is_message =
                    |_, waiting: &Waiting| matches!(tlps.get(waiting.tlp).repr.kind(), Kind::Message(_));
                let Some(message) = self.links.ports[port.index()].egress.take(is_message) else { break };
                let above = self.links.ports[port.index()].peer;
                self.report_departure(port, message.tlp);
                self.received(above, message.tlp);
            }
        }
    }

    /// On a conventional bus answers are kept until their masters come again; none passes older posted writes of who gives it. What nobody
    /// comes for is dropped.
    fn collect_answers(&mut self, node: NodeId) {
        if self.bus(node).rules.pci_x {
            return;
        }
        for member in 0..self.bus(node).members.len() {
            self.collect_answers_of(node, member);
        }
    }

    fn collect_answers_of(&mut self, node: NodeId, member: usize) {
        let now = self.kernel.now();
        let port = self.bus(node).members[member].port;
        while let Some(completion) =
            self.links.ports[port.index()].egress.take(|class, _| class == FcClass::Completion)
        {
            let tlp = self.tlps.get_mut(completion.tlp);
            let (id, last) = (tlp.repr.transaction_id(), ends_its_request(&tlp.repr));
            if tlp.tracked {
                let partition = &mut self.links.ports[port.index()].partition;
                tlp.ledger.waited(partition, FcClass::Completion.index(), now, Port::place(port));
            }
            match self.bus(node).delayed(member, id) {
                Some(delayed) => delayed.answer.take(completion, last),
                None => self.release_waiting(completion),
            }
        }
    }

    /// A TLP that nobody wants leaves its receive buffer.
    fn release_waiting(&mut self, waiting: Waiting) {
        match waiting.ingress {
            Some(ingress) => self.consume(ingress, waiting.tlp),
            None => self.drop_tlp(waiting.tlp),
        }
    }

    fn schedule_bus(&mut self, node: NodeId, at: Time, step: Step) {
        let bus = self.bus(node);
        let (port, number) = (bus.members[0].port, bus.number);
        self.schedule(at, EventKind::Bus, u32::from(port.0), u64::from(number) << 8 | step as u64);
    }

    /// Something that was planned on a bus. The bus that has to be served once what has come to its members is processed.
    pub(crate) fn bus_event(&mut self, port: PortId, data: u64) -> Option<NodeId> {
        let (now, node) = (self.kernel.now(), self.links.ports[port.index()].node);
        let bus = self.bus(node);
        if data & 0xFF == Step::Choose as u64 {
            if bus.wake == now {
                bus.wake = Time::NEVER;
                self.serve_bus(node);
            }
            return None;
        }
        if bus.current.is_none() || data >> 8 != u64::from(bus.number) {
            return None;
        }
        if data & 0xFF == Step::Claimed as u64 {
            self.claim_on_bus(node);
            return None;
        }
        self.end_on_bus(node);
        Some(node)
    }

    /// From now on a master has the bus, or nobody: what its members' queues charge for waiting.
    fn note_bus_master(&mut self, node: NodeId, master: Option<usize>) {
        let now = self.kernel.now();
        for member in 0..self.bus(node).members.len() {
            let port = self.bus(node).members[member].port;
            let partition = &mut self.links.ports[port.index()].partition;
            let slot = match master {
                Some(own) if own == member => Partition::slot(Cause::Queueing),
                Some(_) => partition.cause_slot(Cause::Arbitration),
                // What waits for an idle bus is on its way through its master's logic.
                None => partition.cause_slot(Cause::Processing),
            };
            partition.occupy(now, slot);
        }
    }

    /// All buses are idle.
    pub(crate) fn start_buses(&mut self) {
        for node in (0..self.links.buses.len()).map(|node| NodeId(node as u16)) {
            if self.links.buses[node.index()].is_some() {
                self.note_bus_master(node, None);
            }
        }
    }
}

/// The subject of an event of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A master may be ready.
    Choose,
    /// The target of an immediate transaction has claimed it.
    Claimed,
    /// The bus is idle again.
    Over,
}
