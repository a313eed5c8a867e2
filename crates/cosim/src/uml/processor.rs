//! The processor that a guest and the simulator share. They take turns, so two of them gain nothing, and each turn would wait until the other
//! processor has left its sleep: three times as long as the turn.

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// This thread, and the processes that it starts, stay on one processor until this is dropped: on one that no other guest has, if there is one.
pub(super) struct OneProcessor {
    thread: Pid,
    before: CpuSet,
    /// A name that one process of the machine can have at a time says that the processor is taken; it is free again when its owner is gone.
    _taken: Option<UnixDatagram>,
}

impl OneProcessor {
    /// `None`, where the system does not let a thread choose.
    pub(super) fn stay() -> Option<Self> {
        let thread = gettid();
        let before = sched_getaffinity(thread).ok()?;
        let here = sched_getcpu().ok()?;
        let others = (0..CpuSet::count()).filter(|cpu| *cpu != here && before.is_set(*cpu) == Ok(true));
        let free = std::iter::once(here).chain(others).find_map(|cpu| Some((cpu, take(cpu)?)));
        let (cpu, taken) = free.map_or((here, None), |(cpu, taken)| (cpu, Some(taken)));
        let mut one = CpuSet::new();
        one.set(cpu).ok()?;
        sched_setaffinity(thread, &one).ok()?;
        Some(Self { thread, before, _taken: taken })
    }
}

fn take(cpu: usize) -> Option<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("tlplab-guest-processor-{cpu}")).ok()?;
    UnixDatagram::bind_addr(&name).ok()
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

    #[test]
    fn guests_have_different_processors_while_there_are_some() {
        let first = OneProcessor::stay();
        let mine = sched_getaffinity(gettid()).unwrap();
        let Some(first) = first else { return };
        let all = first.before;
        // As another process would, which may run anywhere.
        sched_setaffinity(gettid(), &all).unwrap();
        let second = OneProcessor::stay().expect("the first could");
        let others = sched_getaffinity(gettid()).unwrap();
        let several = (0..CpuSet::count()).filter(|cpu| all.is_set(*cpu) == Ok(true)).count() > 1;
        if several && first._taken.is_some() && second._taken.is_some() {
            assert_ne!(mine, others);
        }
        drop((second, first));
    }
}
