//! Back-pressure: who waits for credits waits for what the receiver cannot get rid of.

use super::facts::links_of;
use crate::result::{Direction, Document, Flow, Stalls};
use tlplab_fabric::attribution::Cause;

/// From this share of time on, an egress that is not free is what holds back those before it.
const HELD: f64 = 0.9;

/// The egress that a place names; `None`: the place is a node.
pub(super) fn direction<'d>(document: &'d Document, place: &str) -> Option<&'d Direction> {
    let mut all = document.links.iter().flat_map(|l| &l.directions);
    all.find(|d| is_at(d, place))
}

fn is_at(direction: &Direction, place: &str) -> bool {
    place.split_once(" → ") == Some((direction.from.as_str(), direction.to.as_str()))
}

/// The last egress on a flow's way from `place` on that is held up, if it is another one.
///
/// Buffers fill from where TLPs stop towards where they come from, so the last of a row of stalled egresses is the cause.
pub(super) fn cause<'d>(document: &'d Document, flow: &Flow, place: &str) -> Option<&'d Direction> {
    let crossed = links_of(document, flow);
    let on_way = |direction: &&Direction| {
        document.links.iter().any(|l| {
            crossed.contains(l.name.as_str())
                && l.directions.iter().any(|d| d.from == direction.from && d.to == direction.to)
        })
    };
    let mut last = direction(document, place)?;
    let first = last;
    // A tree has no cycles, and a way never turns back: each step is a new link.
    loop {
        let here = component(document, &last.to);
        let all = document.links.iter().flat_map(|l| &l.directions);
        let beyond = all.filter(|d| component(document, &d.from) == here && d.to != last.from);
        match beyond.filter(on_way).find(|d| held(d) >= HELD) {
            Some(next) => last = next,
            None => return (!std::ptr::eq(first, last)).then_some(last),
        }
    }
}

/// The ports of the host lead to each other.
pub(super) fn component<'d>(document: &'d Document, name: &'d str) -> &'d str {
    let node = document.topology.nodes.iter().find(|n| n.name == name);
    match node {
        Some(node) if node.kind == crate::result::NodeKind::RootPort => {
            node.parent.as_deref().unwrap_or(name)
        }
        _ => name,
    }
}

fn stalled(stalls: &Stalls) -> f64 {
    stalls.credits.max(stalls.replay_buffer)
}

/// The share of time in which an egress waits for this, if it does nearly always when it is not busy.
pub(super) fn waits_for(direction: &Direction, cause: Cause) -> Option<f64> {
    let stalled = match cause {
        Cause::CreditWait => direction.stalls.credits,
        Cause::TagWait => direction.stalls.tags,
        Cause::ReplayBufferWait => direction.stalls.replay_buffer,
        _ => 0.0,
    };
    (stalled > 0.0 && stalled >= HELD * direction.utilization.idle).then_some(stalled)
}

/// Share of time in which no further TLP could have been sent.
fn held(direction: &Direction) -> f64 {
    1.0 - direction.utilization.idle + stalled(&direction.stalls)
}
