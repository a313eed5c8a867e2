//! The loop that joins an engine to a transport: the only place where wall time, waiting and engines meet.

use super::batch::Batch;
use super::clock::Clock;
use super::error::Error;
use super::poller::{Poller, Ready};
use super::transport::Transport;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;
use tlplab_nettlp::Engine;
use tlplab_units::Time;

/// The way to wait for the next datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// The thread sleeps; waking it takes the kernel some microseconds.
    #[default]
    Sleep,
    /// The thread asks again and again: it takes a whole processor, and microseconds less.
    Spin,
}

/// Most batches that are read before a deadline is taken for missed.
const CATCH_UP: usize = 64;

/// Ends loops: from another thread, or from a signal handler's flag.
#[derive(Clone, Default)]
pub struct Stop {
    stopped: Arc<AtomicBool>,
    sleepers: Arc<Mutex<Vec<Weak<Poller>>>>,
}

impl Stop {
    /// Ends all loops that run with this, at once, and those that start later.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let sleepers = self.sleepers.lock().expect("nobody panics here");
        sleepers.iter().filter_map(Weak::upgrade).for_each(|poller| poller.wake());
    }
    /// True if it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
    /// Wakes this one, too.
    pub fn wakes(&self, poller: &Arc<Poller>) {
        let mut sleepers = self.sleepers.lock().expect("nobody panics here");
        sleepers.retain(|sleeper| sleeper.strong_count() > 0 && sleeper.as_ptr() != Arc::as_ptr(poller));
        sleepers.push(Arc::downgrade(poller));
    }
}

/// An engine on a transport, with everything that joins them.
pub struct Loop<E, T> {
    /// The engine. Who has told it something calls [`Loop::transmit`] afterwards.
    pub engine: E,
    transport: T,
    clock: Clock,
    inbox: Batch,
    outbox: Batch,
    unread: Ready,
}

impl<E: Engine, T: Transport> Loop<E, T> {
    /// Joins them; time begins now.
    pub fn new(engine: E, transport: T) -> Self {
        let (inbox, outbox) = (Batch::default(), Batch::default());
        Self { engine, transport, clock: Clock::start(), inbox, outbox, unread: Ready::default() }
    }

    /// The present time for the engine.
    pub fn now(&mut self) -> Time {
        let Self { engine, clock, .. } = self;
        clock.now(|by| engine.rebase(by))
    }

    /// With which this loop waits; other threads may wake it, and other file descriptors be watched.
    pub fn poller(&self) -> &Arc<Poller> {
        self.transport.poller()
    }

    /// See [`Transport::dropped`].
    pub fn dropped(&self) -> Option<u64> {
        self.transport.dropped()
    }

    /// The time at which the engine has work without other input.
    pub fn deadline(&self) -> Option<Instant> {
        self.engine.deadline().map(|time| self.clock.instant(time))
    }

    /// One pass without waiting: what came goes into the engine, deadlines that passed are told, what the engine has to send is
    /// sent. Looks where a wait found something, or everywhere with `None`. How many datagrams came.
    ///
    /// # Errors
    /// The transport's.
    pub fn turn(&mut self, ready: Option<&Ready>) -> Result<usize, Error> {
        let came = self.take(ready)?;
        self.go_on(came)
    }

    /// A pass that waits for what comes, until then at most. How many datagrams came; none need have, even before then.
    ///
    /// # Errors
    /// The transport's.
    pub fn wait_turn(&mut self, ready: &mut Ready, until: Option<Instant>) -> Result<usize, Error> {
        self.inbox.clear();
        let came = if self.transport.receive_one(until, &mut self.inbox)? {
            self.hear()
        } else {
            self.poller().wait(ready, until)?;
            self.take(Some(ready))?
        };
        self.go_on(came)
    }

    /// After `came` datagrams went into the engine: what is due, and what is to be sent.
    fn go_on(&mut self, mut came: usize) -> Result<usize, Error> {
        let mut now = self.now();
        if self.is_due(now) {
            // Perhaps what the engine waits for has come, and it was this thread that did not run.
            came += self.catch_up()?;
            now = self.now();
            if self.is_due(now) {
                self.engine.handle_timeout(now);
            }
        }
        self.transmit_at(now)?;
        Ok(came)
    }

    /// Feeds received datagrams to the engine.
    fn take(&mut self, ready: Option<&Ready>) -> Result<usize, Error> {
        self.inbox.clear();
        self.transport.receive(ready, &mut self.inbox)?;
        Ok(self.hear())
    }

    /// The engine hears what is in the inbox.
    fn hear(&mut self) -> usize {
        let now = self.now();
        for datagram in self.inbox.datagrams() {
            self.engine.handle_datagram(now, datagram);
        }
        self.hear_of_undeliverable(now);
        self.inbox.len()
    }

    fn hear_of_undeliverable(&mut self, now: Time) {
        while let Some((to, why)) = self.transport.undeliverable() {
            self.engine.handle_undeliverable(now, to, why);
        }
    }

    fn catch_up(&mut self) -> Result<usize, Error> {
        let mut unread = std::mem::take(&mut self.unread);
        let mut came = 0;
        for _ in 0..CATCH_UP {
            self.poller().wait(&mut unread, Some(Instant::now()))?;
            let more = self.take(Some(&unread))?;
            if more == 0 {
                break;
            }
            came += more;
            self.transmit()?;
        }
        self.unread = unread;
        Ok(came)
    }

    fn is_due(&self, now: Time) -> bool {
        self.engine.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Sends all that the engine has to send.
    ///
    /// # Errors
    /// The transport's.
    pub fn transmit(&mut self) -> Result<(), Error> {
        let now = self.now();
        self.transmit_at(now)
    }

    fn transmit_at(&mut self, now: Time) -> Result<(), Error> {
        loop {
            let Self { engine, outbox, .. } = self;
            while !outbox.is_full() && outbox.push_with(|buffer| engine.poll_transmit(now, buffer)) {}
            let more = outbox.is_full();
            if !outbox.is_empty() {
                self.transport.send(&mut self.outbox)?;
                // Some transports know at once; nothing need come for it to be told.
                self.hear_of_undeliverable(now);
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Goes on until `stop`, with `each` called after every pass: for what else the engine's owner does. It hears what was ready;
    /// nothing is known of that when the loop spins.
    ///
    /// # Errors
    /// The transport's, and those of `each`.
    pub fn run<X: From<Error>>(
        &mut self,
        wait: Wait,
        stop: &Stop,
        mut each: impl FnMut(&mut Self, Option<&Ready>) -> Result<(), X>,
    ) -> Result<(), X> {
        stop.wakes(self.poller());
        let mut ready = Ready::default();
        self.transmit()?;
        while !stop.is_stopped() {
            let found = match wait {
                Wait::Spin => None,
                Wait::Sleep => {
                    self.poller().wait(&mut ready, self.deadline())?;
                    Some(&ready)
                }
            };
            self.turn(found)?;
            each(self, found)?;
        }
        Ok(())
    }
}

/// Drives `engine` on `transport` until `stop`, and gives the engine back.
///
/// # Errors
/// The transport's.
pub fn drive<E: Engine, T: Transport>(engine: E, transport: T, wait: Wait, stop: &Stop) -> Result<E, Error> {
    let mut driven = Loop::new(engine, transport);
    driven.run(wait, stop, |_, _| Ok::<_, Error>(()))?;
    Ok(driven.engine)
}
