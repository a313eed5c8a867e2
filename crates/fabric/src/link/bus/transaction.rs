//! A transaction of a bus from its grant on: who responds how, how long it takes, and to what the time is charged.

use super::phases::{Access, Phases, clocks};
use super::{Answer, Delayed, Member, Step};
use crate::config::BusCompletion;
use crate::kernel::ids::{FlowId, NodeId, PortId};
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::link::port::Port;
use crate::packet::attribution::{Cause, Place};
use crate::packet::slab::TlpHandle;
use tlplab_transaction::memory_access;
use tlplab_units::{FcClass, Time};
use tlplab_wire::tlp::{Kind, Repr, TransactionId};

/// The transaction under way.
#[derive(Clone)]
pub(super) struct Current {
    pub(super) what: Transaction,
    /// The time at which its target claims it.
    pub(super) claimed: Time,
    pub(super) answer: Answer,
    /// As far as they are known.
    pub(super) phases: Phases,
}

/// The kind of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    pub(super) master: usize,
    /// Nobody, if nobody claims it.
    pub(super) target: Option<usize>,
    /// The TLP that is sent; on a retry of a master, its request.
    pub(super) sent: Waiting,
    pub(super) repr: Repr,
    pub(super) flow: FlowId,
    /// The number of the transaction that it is for.
    pub(super) transaction: Option<u64>,
    pub(super) response: Response,
    pub(super) started: Time,
}

/// The response of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// It takes what it is sent: a posted request, or a split completion.
    Accept,
    /// It completes the request at once.
    Immediate,
    /// It takes the request, and will complete it in a transaction of its own.
    Split,
    /// It takes the request, and its master has to come again.
    Delay,
    /// The master has come again, and gets its data.
    Data,
    /// The master has come again too early.
    NotYet,
    /// There is no room: the master has to send it again.
    Refuse,
    /// Nobody claims it.
    Abort,
}

impl Transaction {
    pub(super) fn id(&self) -> TransactionId {
        self.repr.transaction_id()
    }

    /// True if the TLP that is sent is on the bus alone, neither with its master nor with its target.
    pub(super) fn is_on_bus_alone(&self, unclaimed: bool) -> bool {
        match self.response {
            Response::Accept | Response::Split | Response::Delay | Response::Abort => true,
            Response::Immediate => unclaimed,
            Response::Data | Response::NotYet | Response::Refuse => false,
        }
    }
}

impl Current {
    /// True if it is an immediate one of this request to this target, without data so far.
    pub(super) fn waits_for(&self, target: usize, id: TransactionId) -> bool {
        self.what.response == Response::Immediate
            && self.what.target == Some(target)
            && self.what.id() == id
            && !self.answer.complete
    }
}

/// The access that a TLP makes on the bus.
fn access_of(repr: &Repr) -> Access {
    let (config, read) = match repr.kind() {
        Kind::CfgRead { .. } => (true, true),
        Kind::CfgWrite { .. } => (true, false),
        Kind::MemRead { .. } | Kind::IoRead { .. } | Kind::AtomicOp { .. } => (false, true),
        _ => (false, false),
    };
    let (first, bytes, wide) = match (memory_access(repr), repr.kind()) {
        (Some(access), _) => (access.address, access.bytes, access.address >> 32 != 0),
        (None, Kind::Completion(completion)) => {
            (completion.lower_address().into(), completion.data_bytes(), false)
        }
        (None, _) => (0, 4, false),
    };
    Access { config, read, wide, first, bytes }
}

impl Context {
    /// A member becomes master.
    pub(super) fn begin_on_bus(&mut self, node: NodeId, member: usize) {
        let now = self.kernel.now();
        let bus = self.bus_below(node);
        let Member { port, delayed, fetches_next, .. } = &bus.members[member];
        let (port, fetches_next) = (*port, *fetches_next);
        let again = delayed.as_ref().is_some_and(|delayed| delayed.next <= now);
        let egress = &self.links.ports[port.index()].egress;
        match egress.look(|class, waiting| bus.admits(member, class, waiting, now)) {
            Some(waiting) if !(again && fetches_next) => self.send_on_bus(node, member, port, waiting),
            _ if again => self.come_again(node, member),
            _ => {}
        }
    }

    /// The master sends what has waited in its queue.
    fn send_on_bus(&mut self, node: NodeId, master: usize, queue: PortId, sent: Waiting) {
        let now = self.kernel.now();
        let tlp = self.tlps.get(sent.tlp);
        let (repr, flow) = (tlp.repr, tlp.flow);
        let transaction = tlp.transaction.and_then(|transaction| self.transactions.number(transaction));
        let class = sent.shape.class;
        let target = self.claimant_on_bus(node, master, &repr);
        let response = self.response_on_bus(node, target, &repr);
        let place = self.place_on_bus(node, master, target);
        let port = &mut self.links.ports[queue.index()];
        if response == Response::Refuse {
            let slot = port.partition.cause_slot(Cause::Retry);
            port.partition.block(now, class.index(), Some(slot));
        } else {
            port.egress.take(|_, waiting| waiting.tlp == sent.tlp);
            let tlp = self.tlps.get_mut(sent.tlp);
            if tlp.tracked {
                tlp.ledger.waited(&mut port.partition, class.index(), now, place);
            }
            port.partition.block(now, class.index(), None);
            if sent.ingress.is_none() && master > 0 {
                self.report_departure(queue, sent.tlp);
            }
        }
        self.bus(node).members[master].fetches_next = true;
        self.measure_levels(queue);
        self.occupy_bus(
            node,
            Transaction { master, target, sent, repr, flow, transaction, response, started: now },
        );
    }

    /// The master comes again for a request that its target has taken.
    fn come_again(&mut self, node: NodeId, master: usize) {
        let started = self.kernel.now();
        let member = &mut self.bus(node).members[master];
        member.fetches_next = false;
        let Some(Delayed { request, answer, .. }) = &member.delayed else { return };
        let response = if answer.complete { Response::Data } else { Response::NotYet };
        let again = Transaction { response, started, ..*request };
        self.occupy_bus(node, again);
    }

    /// The response of the target to a TLP of a master.
    fn response_on_bus(&self, node: NodeId, target: Option<usize>, repr: &Repr) -> Response {
        let bus = self.bus_below(node);
        let Some(target) = target else { return Response::Abort };
        if target == 0 && !self.bridge_has_room(bus, repr.fc_class()) {
            return Response::Refuse;
        }
        if repr.fc_class() != FcClass::NonPosted {
            return Response::Accept;
        }
        let config = matches!(repr.kind(), Kind::CfgRead { .. } | Kind::CfgWrite { .. });
        let Member { port, role, .. } = &bus.members[target];
        let later = if bus.rules.pci_x { Response::Split } else { Response::Delay };
        match role.completion {
            _ if config => Response::Immediate,
            // Its data may not pass what it has written before, and that needs the bus.
            BusCompletion::Immediate if self.has_posted(*port) => later,
            BusCompletion::Immediate => Response::Immediate,
            BusCompletion::Delayed | BusCompletion::Split => later,
        }
    }

    /// True if posted requests wait at a port.
    fn has_posted(&self, port: PortId) -> bool {
        self.links.ports[port.index()].egress.look(|class, _| class == FcClass::Posted).is_some()
    }

    /// The place of a transaction's time: between its master and its target.
    fn place_on_bus(&self, node: NodeId, master: usize, target: Option<usize>) -> Place {
        let bus = self.bus_below(node);
        Port::place(match (master, target) {
            (0, Some(target)) => bus.ports[target],
            (master, _) => bus.members[master].port,
        })
    }

    /// The bus is taken, for as long as is known.
    fn occupy_bus(&mut self, node: NodeId, what: Transaction) {
        let now = self.kernel.now();
        let bus = self.bus(node);
        let role = what.target.map(|target| bus.members[target].role);
        let access = access_of(&what.repr);
        let opening = bus.rules.opening(access, role.map(|role| role.device_select.clocks()));
        let waits = role.map_or(0, |role| role.wait_states.into());
        let closing = match what.response {
            Response::Accept | Response::Data => bus.rules.closing(access, waits),
            Response::Split | Response::Delay | Response::NotYet | Response::Refuse => {
                bus.rules.closing_without_data()
            }
            Response::Abort => Phases::from_iter([(Cause::Turnaround, 1)]),
            Response::Immediate => Phases::new(), // they depend on when the data are there
        };
        let answer = match &mut bus.members[what.master].delayed {
            Some(delayed) if what.response == Response::Data => std::mem::take(&mut delayed.answer),
            _ => Answer::default(),
        };
        let phases: Phases = opening.iter().chain(&closing).copied().collect();
        let claimed = now + bus.clocks(clocks(&opening));
        let known = now + bus.clocks(clocks(&phases));
        bus.number = bus.number.wrapping_add(1);
        bus.last = what.master;
        let moved: Vec<_> = match what.response {
            // It stays where it is, and its queue knows why.
            Response::NotYet | Response::Refuse => Vec::new(),
            Response::Data => answer.handles().collect(),
            _ => vec![what.sent.tlp],
        };
        let place = self.place_on_bus(node, what.master, what.target);
        for &tlp in &moved {
            let tlp = self.tlps.get_mut(tlp);
            if tlp.tracked {
                // Its master has not come for data that were there.
                tlp.ledger.charge(now, place, Cause::Retry);
            }
        }
        self.charge_phases(node, moved.into_iter(), &phases, place);
        self.note_bus_master(node, Some(what.master));
        let immediate = what.response == Response::Immediate;
        let current = Current { what, claimed, answer, phases };
        self.note_bus_begun(node, &current);
        if !immediate {
            self.note_bus_known(node, &current);
        }
        self.bus(node).current = Some(current);
        self.schedule_bus(node, known, if immediate { Step::Claimed } else { Step::Over });
    }

    fn charge_phases(
        &mut self,
        node: NodeId,
        moved: impl Iterator<Item = TlpHandle>,
        phases: &[(Cause, u32)],
        place: Place,
    ) {
        let cycle = self.bus(node).rules.cycle;
        for tlp in moved {
            let tlp = self.tlps.get_mut(tlp);
            if tlp.tracked {
                for &(cause, clocks) in phases {
                    tlp.ledger.charge_for(cycle * u64::from(clocks), place, cause);
                }
            }
        }
    }

    /// The target of an immediate transaction has claimed it, and begins to work on it.
    pub(super) fn claim_on_bus(&mut self, node: NodeId) {
        let bus = self.bus(node);
        let Some(Current { what: Transaction { target: Some(target), sent, .. }, .. }) = bus.current else {
            return;
        };
        let port = bus.members[target].port;
        self.received(port, sent.tlp);
    }

    /// The target of an immediate transaction has its data: they go when it is ready.
    pub(super) fn give_bus_data(&mut self, node: NodeId) {
        let now = self.kernel.now();
        let bus = self.bus(node);
        let Some(Current { what, claimed, answer, .. }) = &bus.current else { return };
        let (what, claimed) = (*what, *claimed);
        let moved: Vec<_> = answer.handles().collect();
        let Some(target) = what.target else { return };
        let ready: u32 = bus.members[target].role.wait_states.into();
        let access = access_of(&what.repr);
        let all = bus.rules.closing(access, ready);
        let before = clocks(&all[..all.len() - 2]);
        let took = (bus.edge(now) - claimed).as_fs().div_ceil(bus.rules.cycle.as_fs()) as u32;
        let late = took.saturating_sub(before);
        let closing = bus.rules.closing(access, ready + late);
        let (waits, data) = closing.split_at(closing.len() - 2);
        let starts = claimed + bus.clocks(clocks(waits));
        let over = claimed + bus.clocks(clocks(&closing));
        let place = self.place_on_bus(node, what.master, what.target);
        if now == claimed {
            self.charge_phases(node, moved.iter().copied(), waits, place);
        }
        for &tlp in &moved {
            let tlp = self.tlps.get_mut(tlp);
            if tlp.tracked {
                // What the device took is charged to it; the rest until the data come is the bus's.
                tlp.ledger.charge(starts, place, Cause::WaitState);
            }
        }
        self.charge_phases(node, moved.into_iter(), data, place);
        if let Some(mut current) = self.bus(node).current.take() {
            current.phases.extend(closing.iter().copied());
            self.note_bus_known(node, &current);
            self.bus(node).current = Some(current);
        }
        self.schedule_bus(node, over, Step::Over);
    }
}
