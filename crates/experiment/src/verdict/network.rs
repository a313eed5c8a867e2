//! The network behind a card, which no part of the fabric knows.

use super::words::{nanoseconds, percent, rate};
use super::{Candidate, SATURATED};
use crate::result::{Document, LimitKind, Network, NetworkDirection};

/// From this share of time on processors count as always busy.
const BUSY: f64 = 0.9;
/// From this share of TLPs on, losses are what a run is about.
const LOST: f64 = 0.01;

fn candidate(resource: String, used: f64, because: String, evidence: Vec<String>) -> Candidate {
    Candidate {
        resource,
        kind: LimitKind::Rate,
        used,
        links: Vec::new(),
        place: None,
        replays: 0.0,
        because,
        evidence,
    }
}

/// The busiest Ethernet link, if it is busy all the time or loses more than a little of what it should carry.
pub(super) fn wire(document: &Document) -> Option<Candidate> {
    let directions = document.networks.iter().flat_map(|network| {
        [(network, &network.to_software, "to its software"), (network, &network.to_card, "to the card")]
    });
    let loses = |direction: &NetworkDirection| {
        direction.dropped as f64 > LOST * (direction.datagrams + direction.dropped) as f64
    };
    let full = directions.filter(|(_, direction, _)| direction.busy >= SATURATED || loses(direction));
    let (network, direction, way) = full.max_by(|a, b| a.1.busy.total_cmp(&b.1.busy))?;
    Some(candidate(
        format!("Ethernet of {}", network.device),
        direction.busy,
        format!(
            "it is busy {} of the time with {} of payload {way}",
            percent(direction.busy),
            rate(direction.payload_bps)
        ),
        losses(network, direction),
    ))
}

fn losses(network: &Network, direction: &NetworkDirection) -> Vec<String> {
    let mut evidence = Vec::new();
    let NetworkDirection { datagrams, dropped, dropped_bytes, .. } = *direction;
    if dropped > 0 {
        let all = datagrams + dropped;
        evidence.push(format!(
            "{dropped} of {all} TLPs found the buffer of {} full and were lost, with {dropped_bytes} B",
            network.device
        ));
    }
    if network.socket_drops > 0 {
        evidence.push(format!("{} TLPs found a full socket and were lost", network.socket_drops));
    }
    evidence
}

/// The software behind a card, if its processors are always busy, or what it waits for is itself more than the fabric.
pub(super) fn software(document: &Document) -> Option<Candidate> {
    let network = document.networks.iter().max_by(|a, b| a.cores_busy.total_cmp(&b.cores_busy))?;
    let name = format!("software of {}", network.device);
    if network.cores_busy >= BUSY {
        let because = format!("its processors work {} of the time", percent(network.cores_busy));
        return Some(candidate(name, network.cores_busy, because, losses(network, &network.to_software)));
    }
    let whole = network.latency_ns?.mean;
    let flow = document.flows.iter().filter(|flow| flow.device == network.device).max_by_key(|f| f.bytes)?;
    let fabric = flow.latency_ns?.mean;
    let because =
        format!("a read takes it {}, {} of them on PCI Express", nanoseconds(whole), nanoseconds(fabric));
    let mut found = candidate(name, 1.0, because, losses(network, &network.to_software));
    found.kind = LimitKind::Latency;
    (fabric < whole / 2.0).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_loss_is_no_limit() {
        let losing = |dropped| {
            let to_software =
                NetworkDirection { datagrams: 1000, dropped, busy: 0.05, ..NetworkDirection::default() };
            let networks = vec![Network { to_software, ..Network::default() }];
            wire(&Document { networks, ..Document::default() })
        };
        assert!(losing(0).is_none() && losing(10).is_none());
        assert_eq!(losing(11).expect("more than one in a hundred").resource, "Ethernet of ");
    }
}
