//! The times of the medium: channels that serve one page at a time.

use super::config::NvmeConfig;
use tlplab_units::{Duration, Time};

/// The channels.
#[derive(Clone, Debug)]
pub(super) struct Flash {
    /// Until when each is busy.
    busy: Vec<Time>,
    page: u64,
    read: Duration,
    program: Duration,
}

impl Flash {
    pub(super) fn new(config: &NvmeConfig) -> Self {
        let busy = vec![Time::ZERO; config.channels as usize];
        Self { busy, page: config.page, read: config.read, program: config.program }
    }

    /// The end of a read of the page at byte `at` of a namespace that is requested now.
    pub(super) fn read(&mut self, now: Time, at: u64) -> Time {
        self.serve(now, at, self.read)
    }
    /// The end of its programming.
    pub(super) fn program(&mut self, now: Time, at: u64) -> Time {
        self.serve(now, at, self.program)
    }

    fn serve(&mut self, now: Time, at: u64, takes: Duration) -> Time {
        let channel = at / self.page % self.busy.len() as u64;
        let busy = &mut self.busy[channel as usize];
        *busy = now.max(*busy) + takes;
        *busy
    }

    /// The parts of a range that are on different pages: first byte, bytes.
    pub(super) fn pages(&self, at: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (page, end) = (self.page, at + bytes);
        let mut next = at;
        std::iter::from_fn(move || {
            let part = (page - next % page).min(end - next);
            let this = next;
            next += part;
            (part > 0).then_some((this, part))
        })
    }

    /// The page that holds this byte.
    pub(super) fn page_of(&self, at: u64) -> u64 {
        at - at % self.page
    }
    /// Bytes of a page.
    pub(super) fn page_bytes(&self) -> u64 {
        self.page
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.busy.iter_mut().for_each(|time| *time = time.earlier(by));
    }
}
