//! The memory of a virtual machine as the fabric's host memory: each function sees what the machine has mapped for it.

use crate::vfio_user::SharedRanges;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tlplab_device::{HostMemory, OutOfMemory};
use tlplab_units::Bdf;

/// Bytes that functions have read and written, and accesses that they were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) refused: u64,
}

#[derive(Debug, Default)]
struct View {
    ranges: SharedRanges,
    passed: Passed,
}

/// Views of memory, by the function that has them; everybody who has a copy of this sees the same.
#[derive(Clone, Debug, Default)]
pub(super) struct GuestMemory(Arc<Mutex<BTreeMap<Bdf, View>>>);

impl GuestMemory {
    fn views(&self) -> MutexGuard<'_, BTreeMap<Bdf, View>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A function sees these ranges.
    pub(super) fn show(&self, function: Bdf, ranges: SharedRanges) {
        self.views().insert(function, View { ranges, passed: Passed::default() });
    }

    /// The accesses of a function.
    pub(super) fn passed(&self, function: Bdf) -> Passed {
        self.views().get(&function).map_or_else(Passed::default, |view| view.passed)
    }
}

/// The view of a function; behind a bridge to a parallel bus, which asks in its own name, that of the first that has the memory.
fn view_of(
    views: &mut BTreeMap<Bdf, View>,
    requester: Bdf,
    grants: impl Fn(&View) -> bool,
) -> Option<&mut View> {
    let id = if views.contains_key(&requester) {
        requester
    } else {
        *views.iter().find(|(_, view)| grants(view))?.0
    };
    views.get_mut(&id)
}

impl HostMemory for GuestMemory {
    /// Nobody but functions reads it here.
    fn read(&self, _: u64, out: &mut [u8]) {
        out.fill(0);
    }
    fn write(&mut self, _: u64, _: &[u8]) {}
    fn alloc(&mut self, bytes: u64, _: u64) -> Result<u64, OutOfMemory> {
        Err(OutOfMemory { bytes }) // all of it is the guest's
    }

    fn grants(&self, requester: Bdf, address: u64, bytes: u64, writes: bool) -> Option<bool> {
        let grants = |view: &View| view.ranges.grants(address, bytes, writes);
        let mut views = self.views();
        let Some(view) = view_of(&mut views, requester, grants) else { return Some(false) };
        let granted = grants(view);
        view.passed.refused += u64::from(!granted);
        Some(granted)
    }

    /// Memory that was unmapped since the read began reads as all ones.
    fn read_for(&self, requester: Bdf, address: u64, out: &mut [u8]) {
        let bytes = out.len() as u64;
        let mut views = self.views();
        match view_of(&mut views, requester, |view| view.ranges.grants(address, bytes, false)) {
            Some(view) if view.ranges.read(address, out) => view.passed.read += bytes,
            Some(view) => {
                view.passed.refused += 1;
                out.fill(0xFF);
            }
            None => out.fill(0xFF),
        }
    }

    fn write_for(&mut self, requester: Bdf, address: u64, data: &[u8]) {
        let bytes = data.len() as u64;
        let mut views = self.views();
        match view_of(&mut views, requester, |view| view.ranges.grants(address, bytes, true)) {
            Some(view) if view.ranges.write(address, data) => view.passed.written += bytes,
            Some(view) => view.passed.refused += 1,
            None => {}
        }
    }
}
