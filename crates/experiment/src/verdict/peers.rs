//! Requests and completions between devices in verdicts: those that access control or the root complex refused.

use crate::result::{Document, PeerRefusal, RefusedPeers};

/// The TLPs that ports refused their way to a peer, a clause for each port and reason.
pub(super) fn refused(document: &Document) -> impl Iterator<Item = String> {
    document.refused_peers.iter().map(clause)
}

fn clause(refused: &RefusedPeers) -> String {
    let RefusedPeers { port, key, device, .. } = refused;
    let who = match refused.reason {
        PeerRefusal::RootComplex => "the root complex",
        _ => "access control",
    };
    let why = match refused.reason {
        PeerRefusal::SourceValidation => {
            format!("\"source-validation\" in {key} requires a requester on a bus below the port")
        }
        PeerRefusal::TranslationBlocking => {
            format!("\"translation-blocking\" in {key} forbids translated addresses and translation requests")
        }
        PeerRefusal::EgressControl => format!("{key} names the peer"),
        PeerRefusal::NoUpstreamForwarding => {
            format!("the peer is below the same port and {key} lacks \"upstream-forwarding\"")
        }
        PeerRefusal::RootComplex => format!("{key} is \"off\""),
    };
    let (what, first) = counted(refused);
    format!("{who} at {port} refused {what}{first} from {device}, because {why}")
}

/// The number of requests and completions, and the words before the sender of the first.
fn counted(refused: &RefusedPeers) -> (String, &'static str) {
    let some = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    };
    let (requests, completions) = (refused.requests, refused.completions);
    let what = match (requests, completions) {
        (requests, 0) => some(requests, "request"),
        (0, completions) => some(completions, "completion"),
        _ => format!("{} and {}", some(requests, "request"), some(completions, "completion")),
    };
    (what, if requests + completions == 1 { "" } else { ", the first" })
}
