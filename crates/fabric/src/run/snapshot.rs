//! Copies of a fabric at an instant.

use super::Fabric;
use crate::node::hardware::Hardware;
use crate::node::snapshot::NoSnapshot;
use crate::observe::probe::Probe;

impl Fabric {
    /// A copy that goes on from here exactly as this fabric does: the same events, results and trace hash. `probe` observes the copy
    /// from here on; the original's observes the original alone.
    ///
    /// # Errors
    /// [`NoSnapshot`]: whose state is not all in the fabric.
    pub fn snapshot(&self, probe: Option<Box<dyn Probe>>) -> Result<Self, NoSnapshot> {
        let Hardware { cx, nodes } = &self.hardware;
        if let Some(port) = cx.links.without_copy() {
            return Err(NoSnapshot::Link(cx.topology.links[cx.links.link(port).index()].name.clone()));
        }
        let nodes = nodes.snapshot(&cx.topology, self.software.program)?;
        Ok(Self {
            hardware: Hardware { cx: cx.snapshot(probe), nodes },
            software: self.software.clone(),
            clocked: self.clocked.clone(),
            told: self.told.clone(),
        })
    }
}
