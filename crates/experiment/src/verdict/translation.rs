//! Address translation in verdicts: devices that wait for it, and accesses that it refuses.

use super::words::percent;
use crate::result::{Document, RefusalReason};

/// The reason that translations of a device limit.
pub(super) fn because(document: &Document, device: &str) -> String {
    let Some(of_device) = document.translations.iter().find(|one| one.device == device) else {
        return String::new();
    };
    let (asked, denied) = (of_device.asked, of_device.denied);
    if 2 * denied > asked {
        return format!("{denied} of the {asked} translations that it requested were denied");
    }
    let (waited, all) = (of_device.waited, of_device.waited + of_device.hits);
    let share = percent(waited as f64 / all.max(1) as f64);
    format!("{share} of its requests wait for one, and {} made room for others", of_device.evicted)
}

/// The accesses that the IOMMU refused, a clause for each function and reason.
pub(super) fn refused(document: &Document) -> impl Iterator<Item = String> {
    let iommu = document.host.as_ref().and_then(|host| host.iommu.as_ref());
    iommu.into_iter().flat_map(|iommu| &iommu.faults).map(|fault| {
        let what = match fault.reason {
            RefusalReason::NoRead => "which it may not read",
            RefusalReason::NoWrite => "which it may not write",
            RefusalReason::Translated => "which it may not mark as translated",
            RefusalReason::Asked => "whose translation it may not ask for",
            RefusalReason::NotMapped => "where nothing is mapped",
        };
        let (count, device, operation) = (fault.count, &fault.device, fault.operation);
        let requests = if count == 1 { "request" } else { "requests" };
        let first = if count == 1 { "a" } else { "the first a" };
        format!(
            "the IOMMU refused {count} {requests} of {device}, {first} {operation} at {}, {what}",
            fault.address
        )
    })
}
