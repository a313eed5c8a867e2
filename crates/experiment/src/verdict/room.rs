//! Links without credits: a receiver without room drops a TLP, and its sender waits for the replay timer.

use super::downstream::component;
use super::{Candidate, total_of};
use crate::result::{Direction, Document, Flow, LimitKind};
use tlplab_fabric::attribution::Cause;

/// From this share of its TLPs on, drops are what a link is about: each costs a replay timeout, in which many TLPs could be sent.
const DROPPED: f64 = 0.05;

/// The port buffers that have dropped most of what came over a link, if they have dropped more than a few TLPs.
pub(super) fn port_buffers(document: &Document) -> Option<Candidate> {
    let share = |direction: &Direction| direction.no_room as f64 / direction.tlps.max(1) as f64;
    let links = document.links.iter().enumerate();
    let directions = links.flat_map(|(index, link)| link.directions.iter().map(move |one| (index, one)));
    // On a wire longer than its replay timer most replays have another reason.
    let explained = |direction: &Direction| direction.no_room * 2 >= direction.replay_timeouts;
    let full = directions.filter(|(_, direction)| share(direction) >= DROPPED && explained(direction));
    let (index, direction) = full.max_by(|(_, a), (_, b)| share(a).total_cmp(&share(b)))?;
    let flows: Vec<&Flow> = document.flows.iter().collect();
    let replayed = total_of(&flows, |a| a.cause == Cause::Replay as usize);
    let all = total_of(&flows, |_| true);
    let place = format!("{} → {}", direction.from, direction.to);
    Some(Candidate {
        resource: format!("port buffers of {}", component(document, &direction.to)),
        kind: LimitKind::Credits,
        used: replayed / all.max(f64::MIN_POSITIVE),
        links: vec![index],
        because: format!(
            "{} TLPs found no room there, and were sent again after a timeout",
            direction.no_room
        ),
        evidence: vec![format!(
            "of {} TLPs over {place} {} were dropped for want of room; its replay timer expired {} times",
            direction.tlps, direction.no_room, direction.replay_timeouts
        )],
        place: Some(place),
        replays: direction.utilization.replay,
    })
}
