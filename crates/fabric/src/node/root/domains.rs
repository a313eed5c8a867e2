//! Domains of the host: quadrants of an I/O die, sockets. What goes from one root port to another leaves the domain of the one by its exit
//! and comes into that of the other by its entrance; within a domain it goes straight to the port.
//!
//! ```text
//! rp0 ─┐                            ┌─ rp2
//!      ├─ exit q0 ──▶ entrance q1 ──┤
//! rp1 ─┘                            └─ rp3
//! ```
//!
//! Memory may be in a domain, too: what is for it goes there in the same way, and so do its answers.
//!
//! Domains may be in domains. An exit or entrance is a `Passage`: it takes TLPs in turn from the ports and passages that lead to it, in the order
//! that the ordering rules allow within each, one after the other at its rate, and has each for its latency. Of TLPs of a class that have left it and
//! wait further on it holds so many as it has entries; then this class stands still, whatever the others behind it are for.

use crate::config::{BuildError, DomainConfig, HostConfig};
use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::link::egress::{Egress, Waiting};
use crate::node::root::Root;
use crate::node::root::turns::is_turn;
use crate::packet::attribution::{Cause, Place};
use crate::packet::routing::route_of;
use crate::packet::slab::{Hold, TlpHandle};
use tlplab_transaction::OrderingAttributes;
use tlplab_units::{Duration, FcClass, LinkRate, Time};
use tlplab_wire::tlp::CompletionStatus;

/// The tail of what is for memory: it has arrived in full, and waits at no egress, so that this tells it from what is for a port.
const FOR_MEMORY: Time = Time::NEVER;
/// The ingress of what has come from memory.
const NOWHERE: u16 = u16::MAX;

/// A passage of a domain, by its number: twice the domain's, and one more for the entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PassageId(u8);

impl PassageId {
    const fn exit(domain: usize) -> Self {
        Self(2 * domain as u8)
    }
    const fn entrance(domain: usize) -> Self {
        Self(2 * domain as u8 + 1)
    }
    const fn domain(self) -> usize {
        self.0 as usize / 2
    }
    const fn is_entrance(self) -> bool {
        self.0 % 2 == 1
    }
}

#[derive(Clone)]
struct Passage {
    queue: Egress,
    rate: Option<LinkRate>,
    latency: Duration,
    entries: Option<u16>,
    /// By class: TLPs that have left the queue and are not yet in the next one's hands.
    held: [u16; 3],
    /// One is being taken.
    busy: bool,
    place: Place,
}

/// The domains of a host; none, where it has no such parts.
#[derive(Clone, Default)]
pub(crate) struct Domains {
    /// By port, and of memory behind them: the innermost domain.
    of_port: Vec<Option<usize>>,
    /// Memory is in one.
    memory: bool,
    /// By domain: the one that it is in.
    above: Vec<Option<usize>>,
    passages: Vec<Passage>,
}

impl Domains {
    /// The domains of a host whose ports have these names; places of passages are numbered from `first`.
    pub(crate) fn new(host: &HostConfig, ports: &[&str], first: u16) -> Result<Self, BuildError> {
        let domains = sorted(host);
        let number = |name: &str| domains.iter().position(|domain| domain.name == name);
        let wrong =
            |domain: &DomainConfig, why: String| BuildError::Domain { domain: domain.name.clone(), why };
        if let Some(domain) = domains.iter().find(|domain| domain.entries.is_some())
            && host.write_turnaround.is_some()
        {
            return Err(wrong(
                domain,
                "it has entries, and the host a write_turnaround: set one of them".into(),
            ));
        }
        if domains.len() > 64 {
            return Err(BuildError::TooLarge("a host has at most 64 domains"));
        }
        let mut of_port = vec![None; ports.len()];
        let mut above = Vec::new();
        for (index, domain) in domains.iter().enumerate() {
            for port in &domain.ports {
                let Some(at) = ports.iter().position(|name| name == port) else {
                    return Err(wrong(domain, format!("nothing is under {port}")));
                };
                if let Some(other) = of_port[at].replace(index) {
                    let other: &DomainConfig = domains[other];
                    return Err(wrong(domain, format!("{port} is in {:?} already", other.name)));
                }
            }
            above.push(match &domain.under {
                None => None,
                Some(under) => Some(
                    number(under)
                        .ok_or_else(|| wrong(domain, format!("its domain {under:?} does not exist")))?,
                ),
            });
        }
        for (index, domain) in domains.iter().enumerate() {
            let mut chain = std::iter::successors(above[index], |at| above[*at]);
            if chain.by_ref().take(domains.len() + 1).any(|at| at == index) {
                return Err(wrong(domain, "it contains itself".into()));
            }
        }
        let wrong_for_memory =
            |name: &String, why: &str| BuildError::Domain { domain: name.clone(), why: why.into() };
        let memory = match &host.memory_domain {
            None => None,
            Some(name) if host.line_interval.is_some() => {
                return Err(wrong_for_memory(
                    name,
                    "memory is in it, but completions that come line by line cannot pass domains",
                ));
            }
            Some(name) => Some(
                number(name)
                    .ok_or_else(|| wrong_for_memory(name, "memory is in it, but it does not exist"))?,
            ),
        };
        of_port.push(memory);
        let sources = ports.len() + 1 + domains.len();
        let passages =
            domains.iter().flat_map(|domain| [*domain; 2]).zip(first..).map(|(domain, place)| Passage {
                queue: Egress::new(std::iter::repeat_n(1, sources), false),
                rate: domain.rate.map(LinkRate::of_bits_per_second),
                latency: domain.latency,
                entries: domain.entries,
                held: [0; 3],
                busy: false,
                place: Place(place),
            });
        Ok(Self { of_port, memory: memory.is_some(), above, passages: passages.collect() })
    }

    /// True if memory is in one of them.
    pub(crate) fn hold_memory(&self) -> bool {
        self.memory
    }

    /// The next place of a TLP that is in `level` on its way to the port `to`, or to memory behind them; `None`: the port itself.
    fn next(&self, level: Option<usize>, to: usize) -> Option<PassageId> {
        let target = self.of_port[to];
        if level == target {
            return None;
        }
        let mut inward = std::iter::successors(target, |at| self.above[*at]);
        match inward.find(|at| self.above[*at] == level) {
            Some(child) => Some(PassageId::entrance(child)),
            None => level.map(PassageId::exit),
        }
    }
}

fn sorted(host: &HostConfig) -> Vec<&DomainConfig> {
    let mut domains: Vec<_> = host.domains.iter().collect();
    domains.sort_by(|a, b| a.name.cmp(&b.name));
    domains
}

/// Names of the passages, in the order of their places.
pub(crate) fn names_of(host: &HostConfig) -> Vec<String> {
    let passages = |domain: &DomainConfig| {
        ["exit", "entrance"].map(|side| format!("{}.{}.{side}", host.name, domain.name))
    };
    sorted(host).into_iter().flat_map(passages).collect()
}

impl Root {
    /// A TLP that has come in by `ingress` sets out for another root port.
    pub(crate) fn send_to_port(&mut self, cx: &mut Context, ingress: PortId, port: usize, handle: TlpHandle) {
        let from = cx.links.index(ingress);
        let level = self.domains.of_port.get(from).copied().flatten();
        let waiting = arrived(cx, ingress, handle);
        if self.domains.passages.is_empty() {
            return cx.enqueue_at_egress(self.ports[port], from, waiting);
        }
        self.go_on(cx, level, from, port, waiting);
    }

    /// A request that has come in by `ingress` sets out for the domain of memory.
    pub(crate) fn send_to_memory_domain(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        let from = cx.links.index(ingress);
        let waiting = Waiting { tail: FOR_MEMORY, ..arrived(cx, ingress, handle) };
        self.go_on(cx, self.domains.of_port[from], from, self.ports.len(), waiting);
    }

    /// An answer sets out from the domain of memory for a root port.
    pub(crate) fn send_from_memory(&mut self, cx: &mut Context, egress: PortId, completion: Waiting) {
        let memory = self.ports.len();
        self.go_on(cx, self.domains.of_port[memory], memory, cx.links.index(egress), completion);
    }

    /// A TLP that is in `level`, whither it came from `source`, goes to the next passage, to the port, or to memory.
    fn go_on(&mut self, cx: &mut Context, level: Option<usize>, source: usize, to: usize, waiting: Waiting) {
        match (self.domains.next(level, to), waiting.ingress) {
            (None, Some(ingress)) if to == self.ports.len() => self.reach_memory(cx, ingress, waiting.tlp),
            (None, _) => cx.enqueue_at_egress(self.ports[to], source, waiting),
            (Some(id), _) => {
                let attributes = OrderingAttributes::of(&cx.tlps.get(waiting.tlp).repr);
                self.domains.passages[usize::from(id.0)].queue.push(source, attributes, waiting);
                self.serve_passage(cx, id);
            }
        }
    }

    /// Takes what may go next, if the passage is free.
    fn serve_passage(&mut self, cx: &mut Context, id: PassageId) {
        let (now, at) = (cx.now(), cx.node_event(self.node));
        loop {
            let passage = &mut self.domains.passages[usize::from(id.0)];
            if passage.busy {
                return;
            }
            let (held, entries) = (passage.held, passage.entries);
            let has_room = |class: FcClass| entries.is_none_or(|entries| held[class.index()] < entries);
            let Some(waiting) = passage.queue.take(|class, _| has_room(class)) else { return };
            let tlp = cx.tlps.get_mut(waiting.tlp);
            if tlp.tracked {
                tlp.ledger.charge(now, passage.place, Cause::Queueing);
            }
            let class = waiting.shape.class;
            let hold = Hold { node: self.node, at: id.0, class };
            let keeps = tlp.held.is_some_and(|held| is_turn(held.at));
            let before =
                if keeps { None } else { std::mem::replace(&mut tlp.held, passage.entries.map(|_| hold)) };
            passage.held[class.index()] += u16::from(passage.entries.is_some());
            let bytes = u64::from(tlp.repr.header_bytes() + tlp.repr.payload_bytes());
            let taken = now + passage.rate.map_or(Duration::ZERO, |rate| rate.time_of(bytes));
            let ingress = waiting.ingress.map_or(NOWHERE, |port| port.0);
            let for_memory = u64::from(waiting.tail == FOR_MEMORY);
            let data =
                waiting.tlp.to_event() | u64::from(ingress) << 32 | u64::from(id.0) << 48 | for_memory << 56;
            cx.schedule(taken + passage.latency, EventKind::PassedDomain, at, data);
            if taken > now {
                passage.busy = true;
                cx.schedule(taken, EventKind::PassageFree, at, u64::from(id.0));
            }
            if let Some(before) = before {
                self.free_entry(cx, before);
            }
        }
    }

    /// The TLP that a passage took is through.
    pub(crate) fn passage_free(&mut self, cx: &mut Context, data: u64) {
        let id = PassageId(data as u8);
        if is_turn(id.0) {
            return self.heard_of_turn(cx, id.0);
        }
        self.domains.passages[usize::from(id.0)].busy = false;
        self.serve_passage(cx, id);
    }

    /// A TLP that a passage held is in the hands of what comes behind, or gone.
    pub(crate) fn free_entry(&mut self, cx: &mut Context, hold: Hold) {
        if is_turn(hold.at) {
            return self.left_turn(cx, hold);
        }
        let id = PassageId(hold.at);
        self.domains.passages[usize::from(id.0)].held[hold.class.index()] -= 1;
        self.serve_passage(cx, id);
    }

    /// A TLP has come out of a passage.
    pub(crate) fn passed_domain(&mut self, cx: &mut Context, data: u64) {
        let (handle, from) = (TlpHandle::from_event(data & 0xFFFF_FFFF), (data >> 32) as u16);
        let (ingress, for_memory) = ((from != NOWHERE).then_some(PortId(from)), data >> 56 == 1);
        let id = PassageId((data >> 48) as u8);
        let (now, place) = (cx.now(), self.domains.passages[usize::from(id.0)].place);
        let tlp = cx.tlps.get_mut(handle);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Processing);
        }
        let tail = if for_memory { FOR_MEMORY } else { Time::ZERO };
        let waiting = Waiting { ingress, tail, ..Waiting::own(handle, tlp.shape) };
        let to = if for_memory { Some(self.ports.len()) } else { self.port_for(route_of(&tlp.repr)) };
        let domain = id.domain();
        let level = if id.is_entrance() { Some(domain) } else { self.domains.above[domain] };
        match (to, ingress) {
            (Some(to), _) => self.go_on(cx, level, self.ports.len() + 1 + domain, to, waiting),
            // Software has moved the target meanwhile.
            (None, Some(ingress)) => {
                cx.refuse(ingress, handle, self.completer.id, CompletionStatus::UnsupportedRequest);
            }
            (None, None) => {
                cx.leave_hold(handle);
                cx.drop_tlp(handle);
            }
        }
    }
}

/// A TLP that occupies the receive buffer of a root port.
fn arrived(cx: &Context, ingress: PortId, handle: TlpHandle) -> Waiting {
    Waiting { ingress: Some(ingress), ..Waiting::own(handle, cx.tlps.get(handle).shape) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(name: &str, under: Option<&str>, ports: &[&str]) -> DomainConfig {
        let ports = ports.iter().map(|port| (*port).to_string()).collect();
        DomainConfig { under: under.map(str::to_string), ports, ..DomainConfig::new(name) }
    }

    fn way(domains: &Domains, from: usize, to: usize) -> Vec<PassageId> {
        let mut level = domains.of_port[from];
        let mut way = Vec::new();
        while let Some(id) = domains.next(level, to) {
            way.push(id);
            level = if id.is_entrance() { Some(id.domain()) } else { domains.above[id.domain()] };
            assert!(way.len() < 10, "{way:?}");
        }
        way
    }

    /// Two sockets, the first with two quadrants; the last port is in none.
    #[test]
    fn passages_lead_up_to_the_common_domain_and_down() {
        let domains = vec![
            domain("q0", Some("s0"), &["rp0"]),
            domain("q1", Some("s0"), &["rp1", "rp2"]),
            domain("s0", None, &[]),
            domain("s1", None, &["rp3"]),
        ];
        let host = HostConfig { domains, ..HostConfig::default() };
        let domains = Domains::new(&host, &["rp0", "rp1", "rp2", "rp3", "rp4"], 0).unwrap();
        let [q0, q1, s0, s1] = [0, 1, 2, 3];
        let (exit, entrance) = (PassageId::exit, PassageId::entrance);
        assert_eq!(way(&domains, 0, 1), [exit(q0), entrance(q1)]);
        assert_eq!(way(&domains, 1, 2), []);
        assert_eq!(way(&domains, 2, 3), [exit(q1), exit(s0), entrance(s1)]);
        assert_eq!(way(&domains, 3, 0), [exit(s1), entrance(s0), entrance(q0)]);
        assert_eq!(way(&domains, 0, 4), [exit(q0), exit(s0)]);
        assert_eq!(way(&domains, 4, 2), [entrance(s0), entrance(q1)]);
        assert_eq!(way(&domains, 4, 4), []);
    }

    #[test]
    fn domains_that_cannot_be_are_refused() {
        let refused = |domains: Vec<DomainConfig>| {
            let host = HostConfig { domains, ..HostConfig::default() };
            Domains::new(&host, &["rp0", "rp1"], 0).err().expect("refused").to_string()
        };
        assert_eq!(refused(vec![domain("a", None, &["rp7"])]), "host domain a: nothing is under rp7");
        let twice = vec![domain("a", None, &["rp0"]), domain("b", None, &["rp0"])];
        assert_eq!(refused(twice), "host domain b: rp0 is in \"a\" already");
        let lost = vec![domain("a", Some("x"), &["rp0"])];
        assert_eq!(refused(lost), "host domain a: its domain \"x\" does not exist");
        let circle = vec![domain("a", Some("b"), &["rp0"]), domain("b", Some("a"), &[])];
        assert_eq!(refused(circle), "host domain a: it contains itself");
    }
}
