//! A machine whose accesses take what a script says, and whose interrupts come when it says.

use std::collections::VecDeque;
use tlplab_uml::pcidev::Access;
use tlplab_uml::{Interrupt, Machine};
use tlplab_units::{Duration, Time};

#[derive(Default)]
pub(crate) struct Script {
    now: Time,
    /// What each access takes; the last goes on for all that follow.
    pub(crate) latencies: VecDeque<Duration>,
    /// What will come, in order of time.
    pub(crate) coming: VecDeque<(Time, Interrupt)>,
    come: VecDeque<Interrupt>,
    /// When the access that has begun will be over.
    over: Option<Time>,
    /// What was carried out, and when it was over.
    pub(crate) done: Vec<(Access, Time)>,
    /// The next access fails.
    pub(crate) broken: bool,
}

/// The machine of the script is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl Script {
    pub(crate) fn new(latencies: impl IntoIterator<Item = Duration>) -> Self {
        Self { latencies: latencies.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn interrupt(mut self, at: Time, interrupt: Interrupt) -> Self {
        self.coming.push_back((at, interrupt));
        self
    }

    /// The data of the access with this number.
    pub(crate) fn data(number: usize, bytes: u32) -> Vec<u8> {
        (0..bytes).map(|at| (number as u32 * 37 + at * 11 + 1) as u8).collect()
    }

    fn pass(&mut self, until: Time) {
        while self.coming.front().is_some_and(|(at, _)| *at <= until) {
            self.come.extend(self.coming.pop_front().map(|(_, interrupt)| interrupt));
        }
        self.now = self.now.max(until);
    }
}

impl Machine for Script {
    type Error = Broken;

    fn now(&mut self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time) -> Result<(), Broken> {
        if self.broken {
            return Err(Broken);
        }
        let stop = self.coming.front().map_or(until, |(at, _)| until.min(*at));
        if stop != Time::NEVER {
            self.pass(stop);
        }
        Ok(())
    }

    fn access(&mut self, access: &Access, limit: Time) -> Result<Option<Vec<u8>>, Broken> {
        if self.broken {
            return Err(Broken);
        }
        let over = self.over.take().unwrap_or_else(|| {
            let last = self.latencies.len() == 1;
            self.now + if last { self.latencies[0] } else { self.latencies.pop_front().unwrap_or_default() }
        });
        self.pass(over.min(limit));
        if over > limit {
            self.over = Some(over);
            return Ok(None);
        }
        let data = match access {
            Access::ConfigRead { bytes, .. } | Access::MemoryRead { bytes, .. } => {
                Self::data(self.done.len(), *bytes)
            }
            Access::ConfigWrite { .. } | Access::MemoryWrite { .. } => Vec::new(),
        };
        self.done.push((access.clone(), self.now));
        Ok(Some(data))
    }

    fn interrupts(&mut self) -> &mut VecDeque<Interrupt> {
        &mut self.come
    }
}
