//! The processor that a guest and the simulator share. They take turns, so two of them gain nothing, and each turn would wait until the other
//! processor has left its sleep: three times as long as the turn.

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::{Pid, gettid};

/// This thread, and the processes that it starts, stay where it is now, until this is dropped.
pub(super) struct OneProcessor {
    thread: Pid,
    before: CpuSet,
}

impl OneProcessor {
    /// `None`, where the system does not let a thread choose.
    pub(super) fn stay() -> Option<Self> {
        let thread = gettid();
        let before = sched_getaffinity(thread).ok()?;
        let mut here = CpuSet::new();
        here.set(sched_getcpu().ok()?).ok()?;
        sched_setaffinity(thread, &here).ok()?;
        Some(Self { thread, before })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // It may be gone, when another thread drops this.
        let _ = sched_setaffinity(self.thread, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "that another thread does it is the point")]
    fn thread_is_let_go_again() {
        let count = |set: &CpuSet| (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap()).count();
        let now = || count(&sched_getaffinity(gettid()).unwrap());
        let before = now();
        let held = OneProcessor::stay();
        assert_eq!(now(), if held.is_some() { 1 } else { before });
        // Another thread ends what this one has begun.
        std::thread::scope(|scope| scope.spawn(|| drop(held)).join().unwrap());
        assert_eq!(now(), before);
    }
}
