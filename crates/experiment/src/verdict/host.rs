//! Limits in the host: its memory, its page walks, the reads that it serves at once.

use super::words::{nanoseconds, percent};
use super::{Candidate, Facts, MAJOR, total_of, waiters};
use crate::result::{Document, Flow, LimitKind};
use tlplab_fabric::attribution::Cause;

/// The name of page walks as a resource.
pub(crate) const PAGE_WALKS: &str = "page walks of host";

/// Host memory of limited bandwidth.
pub(super) fn memory(used: f64) -> Candidate {
    let busy = format!("it is busy {} of the time", percent(used));
    Candidate {
        resource: "memory of host".into(),
        kind: LimitKind::Memory,
        used,
        links: Vec::new(),
        place: None,
        replays: 0.0,
        evidence: vec![format!("memory of host is busy {} of the time", percent(used))],
        because: busy,
    }
}

/// Page walks, of which so many happen at a time.
pub(super) fn walks(document: &Document) -> Option<Candidate> {
    let iommu = document.host.as_ref()?.iommu.as_ref()?;
    let place = "host.iommu".to_owned();
    let because = format!(
        "it performs {} of the walks that it can, and {} of the requests need one",
        percent(iommu.busy),
        percent(1.0 - iommu.hit_rate)
    );
    let mut evidence = vec![format!(
        "{} page walks, of which each waited {} for others on average",
        iommu.walks,
        nanoseconds(iommu.waited_ns / iommu.walks.max(1) as f64)
    )];
    evidence.extend(waiters(&document.flows.iter().collect::<Vec<_>>(), &place));
    Some(Candidate {
        resource: PAGE_WALKS.into(),
        kind: LimitKind::Memory,
        used: iommu.busy,
        links: Vec::new(),
        place: Some(place),
        replays: 0.0,
        evidence,
        because,
    })
}

/// Reads that wait until the root complex serves them: nothing else queues in the host itself.
pub(super) fn reads(document: &Document, flows: &[&Flow], facts: &Facts<'_>) -> Option<Candidate> {
    let limit = facts.fabric.host.reads?;
    let here = |a: &crate::result::Attribution| a.place == "host" && a.cause == Cause::Queueing as usize;
    // Tags and credits run out behind it.
    let behind = [Cause::TagWait as usize, Cause::CreditWait as usize];
    let served = total_of(flows, |a| !behind.contains(&a.cause));
    let share = total_of(flows, here) / served.max(f64::MIN_POSITIVE);
    (share >= MAJOR).then(|| Candidate {
        resource: "reads of host".into(),
        kind: LimitKind::Memory,
        used: 1.0,
        links: Vec::new(),
        place: Some("host".into()),
        replays: 0.0,
        because: format!(
            "{limit} are served at once, and others wait {} of their time for that",
            percent(share)
        ),
        evidence: waiters(&document.flows.iter().collect::<Vec<_>>(), "host"),
    })
}
