//! Staying on one core: counters of different cores may differ, and caches certainly do.

use super::Failure;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

/// This thread on one core; back where it may be when dropped.
pub struct Pinned {
    /// The core.
    pub core: usize,
    before: CpuSet,
}

impl Pinned {
    /// On `core`, or the one that this thread runs on just now.
    ///
    /// # Errors
    /// A core that this process may not use.
    pub fn to(core: Option<usize>) -> Result<Self, Failure> {
        let me = Pid::from_raw(0);
        let fixed = |e| Failure::Machine(format!("cannot stay on one core: {e}"));
        let before = sched_getaffinity(me).map_err(fixed)?;
        let allowed: Vec<usize> =
            (0..CpuSet::count()).filter(|core| before.is_set(*core).unwrap_or(false)).collect();
        let core = match core {
            Some(core) if allowed.contains(&core) => core,
            Some(core) => {
                let all: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                return Err(Failure::Input(format!(
                    "this process may not use core {core}; expected one of {}",
                    all.join(", ")
                )));
            }
            None => sched_getcpu().map_err(fixed)?,
        };
        let mut only = CpuSet::new();
        only.set(core).map_err(fixed)?;
        sched_setaffinity(me, &only).map_err(fixed)?;
        Ok(Self { core, before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It was allowed before; if it is not any more, the thread stays where it is.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}
