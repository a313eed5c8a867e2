//! The cable of a NIC, which no part of the fabric knows.

use super::Candidate;
use super::facts::Facts;
use super::words::{nanoseconds, percent, rate};
use crate::device_models::{ModelSpec, NicSpec};
use crate::result::{Document, LimitKind};
use tlplab_device::nic::ethernet::Speed;

/// From this share of time on a cable counts as always busy: until the driver has brought the NIC up, it cannot be.
const BUSY: f64 = 0.9;
/// The bytes written beside a received frame: its descriptor, and that of a sent frame if it is the same one.
const WRITTEN: [f64; 2] = [16.0, 20.0];

/// The busiest cable, if it is busy all the time.
pub(super) fn limit(document: &Document, facts: &Facts<'_>) -> Option<Candidate> {
    let nics = facts.devices.iter().filter_map(|device| match &device.model {
        ModelSpec::Nic(nic) => Some((device.name.as_str(), nic)),
        _ => None,
    });
    let busy = nics.filter_map(|(name, nic)| {
        let (flow, bytes) = match (nic.sends, nic.receives) {
            (true, false) => ("transmit", f64::from(nic.transfer)),
            (sends, _) => ("receive", f64::from(nic.transfer) + WRITTEN[usize::from(sends)]),
        };
        let flow = document.flows.iter().find(|f| f.name == format!("{name}.{flow}"))?;
        let used = flow.payload_bps / 8.0 / bytes * nanos(nic) / 1e9;
        Some((name, nic, used.min(1.0)))
    });
    let (name, nic, used) = busy.max_by(|a, b| a.2.total_cmp(&b.2)).filter(|cable| cable.2 >= BUSY)?;
    Some(Candidate {
        resource: format!("Ethernet of {name}"),
        kind: LimitKind::Rate,
        used,
        links: Vec::new(),
        place: None,
        replays: 0.0,
        evidence: vec![format!(
            "a frame of {} B takes {} on {}",
            nic.transfer,
            nanoseconds(nanos(nic)),
            rate(nic.ethernet as f64).replace(".00 ", " ")
        )],
        because: format!(
            "one frame of {} B follows the other on it, {} of the time",
            nic.transfer,
            percent(used)
        ),
    })
}

/// The time of a frame, with its overhead on the cable.
fn nanos(nic: &NicSpec) -> f64 {
    Speed::from_bps(nic.ethernet).frame(nic.transfer.into()).as_fs() as f64 / 1e6
}
