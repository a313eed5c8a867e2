//! Stages of links: named delays of each end, which change when a TLP comes and nothing else.
//!
//! ```text
//! node ─▶ tx_transaction ─▶ egress queue ─▶ data link layer ─▶ tx_data_link, tx_physical, tx_transceiver ─▶ wire, flight
//!                                                                                                              │
//! node ◀─ rx_transaction ◀─ receive buffer ◀─ data link layer ◀─ rx_data_link, rx_physical, rx_transceiver ◀──┘
//! ```
//!
//! The stages between the two data link layers delay all units alike, so they are one longer flight; the simulator has it behind the
//! serialisation, and observers are told when the unit is on the wire. Each stage is a place of its own in the attribution.

use crate::config::{LinkConfig, StagesConfig};
use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::link::port::Port;
use crate::packet::attribution::{Cause, Ledger, Place};
use crate::packet::slab::TlpHandle;
use arrayvec::ArrayVec;
use std::collections::VecDeque;
use tlplab_units::{Duration, FcClass, Time};
use tlplab_wire::tlp::{Kind, Repr};

/// A stage that takes time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    place: Place,
    pub(crate) delay: Duration,
}

/// The stages of a port.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    tx_transaction: Option<Stage>,
    /// TLPs in it: when they come out, and the source of the egress queues that they go to.
    entering: VecDeque<(Time, usize, Waiting)>,
    /// From this port's data link layer to the wire.
    outgoing: ArrayVec<Stage, 3>,
    /// From the wire to the peer's data link layer.
    beyond: ArrayVec<Stage, 3>,
    pub(crate) rx_transaction: Option<Stage>,
    register_response: Option<Stage>,
    config_response: Option<Stage>,
}

/// Gives stages their places.
pub(crate) struct Places<'a> {
    /// The number of the next place.
    pub(crate) next: u16,
    /// Their names, in that order.
    pub(crate) names: &'a mut Vec<String>,
}

impl Places<'_> {
    fn stage(&mut self, of: &str, (name, delay): (&str, Duration)) -> Option<Stage> {
        if delay.is_zero() {
            return None;
        }
        self.names.push(format!("{of}: {name}"));
        self.next += 1;
        Some(Stage { place: Place(self.next - 1), delay })
    }
}

impl Stages {
    /// Of a port with the stages `own`, whose peer has `peer`. `out` and `back` name the two directions, `component` what is behind it.
    pub(crate) fn new(
        own: &StagesConfig,
        peer: &StagesConfig,
        names: [&str; 3],
        places: &mut Places<'_>,
    ) -> Option<Box<Self>> {
        let [out, back, component] = names;
        if (own, peer) == (&StagesConfig::default(), &StagesConfig::default()) {
            return None;
        }
        let mut stage = |of: &str, stage| places.stage(of, stage);
        Some(Box::new(Self {
            tx_transaction: stage(out, ("tx_transaction", own.tx_transaction)),
            entering: VecDeque::new(),
            outgoing: own.outgoing().into_iter().filter_map(|s| stage(out, s)).collect(),
            beyond: peer.incoming().into_iter().filter_map(|s| stage(out, s)).collect(),
            rx_transaction: stage(back, ("rx_transaction", own.rx_transaction)),
            register_response: stage(component, ("register_response", own.register_response)),
            config_response: stage(component, ("config_response", own.config_response)),
        }))
    }

    /// From this port's data link layer to the wire.
    pub(crate) fn to_wire(&self) -> Duration {
        sum(&self.outgoing)
    }

    /// From the wire to the peer's data link layer, without flight.
    pub(crate) fn behind_wire(&self) -> Duration {
        sum(&self.beyond)
    }

    /// TLPs of a class and source that have not come to the egress queues yet.
    pub(crate) fn entering_of(&self, source: usize, class: FcClass) -> usize {
        self.entering.iter().filter(|(_, of, waiting)| *of == source && waiting.shape.class == class).count()
    }

    /// Charges the way of a TLP that left the data link layer and was on the wire for `on_wire`.
    pub(crate) fn charge_way(&self, ledger: &mut Ledger, wire: Place, on_wire: Duration, flight: Duration) {
        let charge = |ledger: &mut Ledger, stages: &[Stage]| {
            stages.iter().for_each(|stage| ledger.charge_for(stage.delay, stage.place, Cause::Processing));
        };
        charge(ledger, &self.outgoing);
        ledger.charge_for(on_wire, wire, Cause::Serialisation);
        ledger.charge_for(flight, wire, Cause::Flight);
        charge(ledger, &self.beyond);
    }

    /// The stage of the answer to a request.
    fn response_to(&self, request: &Repr) -> Option<Stage> {
        match request.kind() {
            Kind::CfgRead { .. } | Kind::CfgWrite { .. } => self.config_response,
            Kind::MemRead { .. } => self.register_response,
            _ => None,
        }
    }
}

fn sum(stages: &[Stage]) -> Duration {
    stages.iter().fold(Duration::ZERO, |sum, stage| sum + stage.delay)
}

/// The additional time that the stages of a link add to the path of a TLP and that of its Ack together.
pub(crate) fn acknowledged_later(link: &LinkConfig) -> Duration {
    link.upper.stages.below_transaction_layer() + link.lower.stages.below_transaction_layer()
}

impl Port {
    /// TLPs that may wait at the egress before a requester makes more: `staged`, and those on their way there.
    pub(crate) fn staged(&self, staged: usize) -> usize {
        let Some(Stage { delay, .. }) = self.stages.as_ref().and_then(|stages| stages.tx_transaction) else {
            return staged;
        };
        // A TLP has 20 bytes at least (a header of three doublewords, sequence number, LCRC and framing).
        staged + delay.as_fs().div_ceil(self.channel.rate().time_of(20).as_fs().max(1)) as usize
    }

    /// TLPs of a source's class that have been made and not sent.
    pub(crate) fn waiting_of(&self, source: usize, class: FcClass) -> usize {
        let entering = self.stages.as_ref().map_or(0, |stages| stages.entering_of(source, class));
        self.egress.len_of(source, class) + entering
    }

    /// Takes out all that waits to leave, or is on its way to the queues.
    pub(crate) fn drain_waiting(&mut self) -> Vec<Waiting> {
        let mut waiting: Vec<_> = self.egress.drain().collect();
        if let Some(stages) = &mut self.stages {
            waiting.extend(stages.entering.drain(..).map(|(.., waiting)| waiting));
        }
        waiting
    }
}

impl Context {
    /// True if `egress` has a stage before its queues.
    #[inline]
    pub(crate) fn has_tx_transaction(&self, egress: PortId) -> bool {
        self.links.ports[egress.index()].stages.as_ref().is_some_and(|stages| stages.tx_transaction.is_some())
    }

    /// A TLP, all of whose time has been charged, goes to the queues of `egress` through the stage before them.
    pub(crate) fn enter_tx_stage(&mut self, egress: PortId, source: usize, waiting: Waiting) {
        if self.links.ports[egress.index()].discards {
            return self.discard(egress, waiting);
        }
        let now = self.kernel.now();
        let Some(stages) = &mut self.links.ports[egress.index()].stages else { return };
        let Some(stage) = stages.tx_transaction else { return };
        let due = now + stage.delay;
        stages.entering.push_back((due, source, waiting));
        self.schedule(due, EventKind::Entered, u32::from(egress.0), 0);
    }

    /// The first TLP in the stage before the queues has passed it, unless a link that went down took it away.
    pub(crate) fn leave_tx_stage(&mut self, egress: PortId) {
        let now = self.kernel.now();
        let Some(stages) = &mut self.links.ports[egress.index()].stages else { return };
        if stages.entering.front().is_some_and(|(due, ..)| *due == now)
            && let Some(stage) = stages.tx_transaction
            && let Some((_, source, waiting)) = stages.entering.pop_front()
        {
            let tlp = self.tlps.get_mut(waiting.tlp);
            if tlp.tracked {
                tlp.ledger.charge(now, stage.place, Cause::Processing);
            }
            self.start_wait(egress, &waiting);
            self.place_at_egress(egress, source, waiting);
        }
    }

    /// Charges the stage between the receive buffer of `ingress` and its node.
    #[inline]
    pub(crate) fn charge_rx_transaction(&mut self, ingress: PortId, handle: TlpHandle) {
        if let Some(stages) = &self.links.ports[ingress.index()].stages
            && let Some(stage) = stages.rx_transaction
        {
            self.tlps.get_mut(handle).ledger.charge_for(stage.delay, stage.place, Cause::Processing);
        }
    }

    /// The time of the component at `port` to answer a request; charged at once.
    pub(crate) fn response_time(&mut self, port: PortId, request: TlpHandle) -> Duration {
        let Some(stages) = &self.links.ports[port.index()].stages else { return Duration::ZERO };
        let tlp = self.tlps.get_mut(request);
        let Some(stage) = stages.response_to(&tlp.repr) else { return Duration::ZERO };
        if tlp.tracked {
            tlp.ledger.charge_for(stage.delay, stage.place, Cause::Completer);
        }
        stage.delay
    }

    /// Gives the ports their stages, and the stages their places.
    pub(crate) fn add_stages<'a>(&mut self, link_config: impl Fn(usize) -> &'a LinkConfig) {
        let mut names = Vec::new();
        let mut places = Places { next: self.topology.places() as u16, names: &mut names };
        for (index, link) in self.topology.links.iter().enumerate() {
            let config = link_config(index);
            let ends = [
                (link.ports[0], &config.lower, &config.upper),
                (link.ports[1], &config.upper, &config.lower),
            ];
            for (port, own, other) in ends {
                let peer = self.links.ports[port.index()].peer;
                let [out, back] = [port, peer].map(|end| self.topology.direction_name(end));
                let NodeId(node) = self.links.ports[port.index()].node;
                let component = &self.topology.nodes[usize::from(node)].name;
                let stages = Stages::new(&own.stages, &other.stages, [&out, &back, component], &mut places);
                let port = &mut self.links.ports[port.index()];
                if let Some(stages) = &stages {
                    port.channel.delay = stages.to_wire() + port.channel.flight + stages.behind_wire();
                }
                if let Some(stage) = stages.as_ref().and_then(|stages| stages.rx_transaction) {
                    port.latency += stage.delay;
                }
                port.stages = stages;
            }
        }
        self.topology.link_stages = names;
    }
}
