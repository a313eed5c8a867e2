//! The links that went down.

use crate::kernel::ids::LinkId;
use tlplab_units::Time;

/// Of so many outages the times are kept.
const OUTAGES_KEPT: usize = 1000;

/// A link that went down, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The link.
    pub link: LinkId,
    /// The time at which it went down.
    pub down: Time,
    /// The time at which the interrupt of its slot reached software; `None` if it never did.
    pub heard: Option<Time>,
    /// The time at which its data link layer was active again.
    pub up: Option<Time>,
    /// The time at which software had configured the components below it.
    pub configured: Option<Time>,
}

/// The outages of a run, in the order in which they began; of very many the first.
#[derive(Clone, Default)]
pub(crate) struct Outages(Vec<Outage>);

impl Outages {
    pub(crate) fn all(&self) -> &[Outage] {
        &self.0
    }

    /// A link goes down.
    pub(crate) fn begin(&mut self, link: LinkId, down: Time) {
        if self.0.len() < OUTAGES_KEPT {
            self.0.push(Outage { link, down, heard: None, up: None, configured: None });
        }
    }

    /// The latest of a link.
    pub(crate) fn latest(&mut self, link: LinkId) -> Option<&mut Outage> {
        self.0.iter_mut().rev().find(|outage| outage.link == link)
    }
}
