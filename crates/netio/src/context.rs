//! DMA for programs that call and wait: an end point on a transport, usable from many threads at once.
//!
//! No thread of its own: of the callers that wait, one drives the loop, and hands it over when it has what it came for. With one
//! caller that costs nothing beside the system calls.

use super::drive::{Loop, Wait};
use super::error::Error;
use super::poller::{Poller, Ready};
use super::transport::Transport;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tlplab_device::DmaError;
use tlplab_nettlp::endpoint::{Counters, Event};
use tlplab_nettlp::{Endpoint, EndpointConfig};
use tlplab_transaction::{CompletionError, Payload, RequestError};
use tlplab_units::{Bdf, Duration as Span};

/// The reason that a DMA operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The operation itself: an error completion, no completion, no way to the peer.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] Error),
}

impl Failure {
    /// A request was not answered in time.
    pub const fn is_timeout(&self) -> bool {
        matches!(self, Self::Dma(DmaError::Completion(CompletionError::Timeout { .. })))
    }
}

/// An operation that was submitted and is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// As given when it was submitted.
    pub token: u64,
    /// A read's data; nothing for a write, which is over when its last TLP was sent, and for a flush.
    pub result: Result<Payload, DmaError>,
}

/// The owner of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    /// A caller's who waits for it.
    Blocking(u64),
    /// The user's, given back by [`Context::next`].
    Submitted(u64),
}

type Outcome = Result<Payload, DmaError>;

/// The way to find out that writes have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// By a read of no bytes, which has no side effects (PCIe 5.0 §2.2.5).
    #[default]
    ZeroLength,
    /// By a read of the doubleword that was written last: for peers that do not answer reads of no bytes. Only where a read has no side
    /// effects.
    Read,
    /// Not at all: what is written may be lost, and nobody knows.
    Never,
}

struct State {
    driven: Loop<Endpoint<Token>, Box<dyn Transport>>,
    calls: u64,
    /// Results for callers who wait; `None` until there is one. A caller who gave up has no entry.
    results: BTreeMap<u64, Option<Outcome>>,
    /// Results for [`Context::next`].
    completed: VecDeque<Completion>,
    /// Submitted and not yet in `completed`.
    submitted: u64,
    /// A caller waits for datagrams without holding the lock, until then at most.
    driver: Option<Option<Instant>>,
    /// Callers who wait for the one that drives. Rousing nobody is a system call, too.
    sleepers: u64,
    flush: Flush,
    /// The link acknowledges what is sent, and holds back what has no room.
    acknowledged: bool,
}

/// Bytes of a write that leave before it is asked whether they arrived: posted writes have no acknowledgement, and what does not fit the
/// adapter's socket is lost.
const PACE: usize = 32 << 10;
/// The pause between two such pieces where nothing may ask.
const PAUSE: Duration = Duration::from_millis(1);
/// Most passes that look for what came while nobody drove.
const SETTLING: usize = 1024;

/// An end point that does DMA for whoever calls.
pub struct Context {
    state: Mutex<State>,
    changed: Condvar,
    poller: Arc<Poller>,
    wait: Wait,
}

impl Context {
    /// An end point on a transport that has the [ports](EndpointConfig::ports) of `config`.
    pub fn new(config: EndpointConfig, transport: Box<dyn Transport>, wait: Wait) -> Self {
        let poller = transport.poller().clone();
        let acknowledged = config.acknowledged;
        let driven = Loop::new(Endpoint::new(config), transport);
        let state = State {
            driven,
            calls: 0,
            results: BTreeMap::new(),
            completed: VecDeque::new(),
            submitted: 0,
            driver: None,
            sleepers: 0,
            flush: Flush::default(),
            acknowledged,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), poller, wait }
    }

    /// Reads host memory into `buffer` and waits for it.
    ///
    /// # Errors
    /// The first of its requests that failed; `buffer` is then as it was.
    pub fn dma_read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Failure> {
        let bytes = buffer.len() as u64;
        let data = self.call(|state, token| state.read(token, address, bytes))?;
        buffer.copy_from_slice(data.bytes().unwrap_or_default());
        Ok(())
    }

    /// Reads several places at once; the results are in their order.
    ///
    /// # Errors
    /// The transport's.
    pub fn read_many(&self, places: &[(u64, u64)]) -> Result<Vec<Result<Payload, DmaError>>, Error> {
        let mut state = self.lock();
        let calls = state.calls + 1..state.calls + 1 + places.len() as u64;
        let result = (|| {
            state.settle()?;
            for &(address, bytes) in places {
                let number = state.call();
                if let Err(error) = state.read(Token::Blocking(number), address, bytes) {
                    state.results.insert(number, Some(Err(error.into())));
                }
            }
            self.begun(state)?;
            calls.clone().map(|number| self.result(number)).collect()
        })();
        calls.for_each(|number| self.lock().forget(number));
        result
    }

    /// Writes to host memory. It is over when it was sent: writes are posted, and nobody says when they arrive, or whether.
    /// [`flush`](Self::flush) waits until those that do have. Of a long one so much is sent at once as the adapter's socket holds, then a
    /// flush (or a pause, if there is to be [none](Flush::Never)), and so on. On an acknowledged link it is over when it has arrived.
    ///
    /// # Errors
    /// It cannot be sent; a flush within it was not answered.
    pub fn dma_write(&self, address: u64, data: &[u8]) -> Result<(), Failure> {
        let mut at = address;
        for part in data.chunks(PACE) {
            let (flush, acknowledged) = self.paces();
            match flush {
                _ if at == address || acknowledged => {}
                Flush::Never => std::thread::sleep(PAUSE),
                Flush::ZeroLength | Flush::Read => self.flush(at - 1)?,
            }
            let payload = Payload::from(part);
            self.call(|state, token| state.write(token, at, payload))?;
            at = at.wrapping_add(part.len() as u64);
        }
        Ok(())
    }

    /// Waits until all writes before are in memory: a read pushes them ahead (PCIe 5.0 §2.2.5), of no bytes unless
    /// [something else](Self::set_flush) is said. `address` is that of the last byte written.
    ///
    /// # Errors
    /// As [`dma_read`](Self::dma_read).
    pub fn flush(&self, address: u64) -> Result<(), Failure> {
        let (address, bytes) = match self.paces().0 {
            Flush::ZeroLength => (address, 0),
            Flush::Read => (address & !3, 4),
            Flush::Never => return Ok(()),
        };
        self.call(|state, token| state.read(token, address, bytes))?;
        Ok(())
    }

    /// Sets the way in which [`flush`](Self::flush), and long writes, find out that writes have arrived from now on.
    pub fn set_flush(&self, flush: Flush) {
        self.lock().flush = flush;
    }

    fn paces(&self) -> (Flush, bool) {
        let state = self.lock();
        (state.flush, state.acknowledged)
    }

    /// Begins a read; [`next`](Self::next) gives `token` back when it is over. With no bytes it is a flush.
    ///
    /// # Errors
    /// It passes the end of the address space, or the transport does not work; then `token` does not come back.
    pub fn submit_read(&self, token: u64, address: u64, bytes: u64) -> Result<(), Failure> {
        self.submit(|state| state.read(Token::Submitted(token), address, bytes))
    }

    /// Begins a write; [`next`](Self::next) gives `token` back when it was sent.
    ///
    /// # Errors
    /// As [`submit_read`](Self::submit_read).
    pub fn submit_write(&self, token: u64, address: u64, data: &[u8]) -> Result<(), Failure> {
        let data = Payload::from(data);
        self.submit(|state| state.write(Token::Submitted(token), address, data))
    }

    /// The next submitted operation that is over, waiting for it at most `timeout`; at once with zero. `None` when nothing is over by then,
    /// or nothing is under way.
    ///
    /// # Errors
    /// The transport's.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<Completion>, Error> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        self.drive(until, |state| match state.completed.pop_front() {
            Some(completion) => Some(Some(completion)),
            None => (state.submitted == 0).then_some(None),
        })
        .map(Option::flatten)
    }

    /// The requester ID of what is submitted from now on. Tags that rest go on resting.
    pub fn set_requester(&self, requester: Bdf) {
        let engine = &mut self.lock().driven.engine;
        let (mps, mrrs) = (engine.config().mps, engine.config().mrrs);
        engine.reconfigure(requester, mps, mrrs);
    }

    /// See [`Endpoint::set_time_limits`].
    pub fn set_time_limits(&self, completion_timeout: Span, quarantine: Span) {
        self.lock().driven.engine.set_time_limits(completion_timeout, quarantine);
    }

    /// The counters of the end point since it was made.
    pub fn counters(&self) -> Counters {
        self.lock().driven.engine.counters()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no engine panics")
    }

    fn submit(&self, begin: impl FnOnce(&mut State) -> Result<(), RequestError>) -> Result<(), Failure> {
        let mut state = self.lock();
        state.settle()?;
        begin(&mut state).map_err(DmaError::from)?;
        state.submitted += 1;
        Ok(self.begun(state)?)
    }

    fn call(
        &self,
        begin: impl FnOnce(&mut State, Token) -> Result<(), RequestError>,
    ) -> Result<Payload, Failure> {
        let mut state = self.lock();
        state.settle()?;
        let number = state.call();
        let result = match begin(&mut state, Token::Blocking(number)) {
            Err(error) => {
                drop(state);
                Ok(Err(error.into()))
            }
            Ok(()) => self.begun(state).and_then(|()| self.result(number)),
        };
        self.lock().forget(number);
        Ok(result??)
    }

    /// Sends what was begun.
    fn begun(&self, mut state: MutexGuard<'_, State>) -> Result<(), Error> {
        state.driven.transmit()?;
        // To send may find that an earlier request was refused, for which the thread that drives waits perhaps.
        if state.collect() && state.driver.is_some() {
            self.poller.wake();
        }
        self.rouse(&state);
        self.tell(&state);
        Ok(())
    }

    /// Waits for the result of a call.
    fn result(&self, number: u64) -> Result<Outcome, Error> {
        let result = self.drive(None, |state| state.results.get_mut(&number).and_then(Option::take))?;
        Ok(result.expect("there is no time limit but the request's own"))
    }

    /// Ends the wait of the thread that drives, if something is due sooner than it knows.
    fn rouse(&self, state: &State) {
        let due = state.driven.deadline();
        if state.driver.is_some_and(|until| due.is_some_and(|due| until.is_none_or(|until| due < until))) {
            self.poller.wake();
        }
    }

    /// Drives the loop, or waits for the thread that does, until `take` has something, or `until`.
    fn drive<R>(
        &self,
        until: Option<Instant>,
        mut take: impl FnMut(&mut State) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let mut ready = Ready::default();
        let mut state = self.lock();
        let mut last = false;
        loop {
            if let Some(taken) = take(&mut state) {
                return Ok(Some(taken));
            }
            if last {
                return Ok(None);
            }
            last = until.is_some_and(|until| until <= Instant::now());
            if state.driver.is_some() {
                if last {
                    return Ok(None);
                }
                state = self.sleep(state, until);
                continue;
            }
            let worked = match self.wait {
                Wait::Spin => state.driven.turn(None),
                Wait::Sleep => {
                    let limit = [state.driven.deadline(), until].into_iter().flatten().min();
                    state.driver = Some(limit);
                    drop(state);
                    let waited = self.poller.wait(&mut ready, limit);
                    state = self.lock();
                    state.driver = None;
                    waited.and_then(|()| state.driven.turn(Some(&ready)))
                }
            };
            state.collect();
            self.tell(&state);
            worked?;
            if self.wait == Wait::Spin {
                drop(state);
                std::hint::spin_loop();
                state = self.lock();
            }
        }
    }

    /// Whoever found the place of the driver taken looks again.
    fn tell(&self, state: &State) {
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    fn sleep<'a>(&self, mut state: MutexGuard<'a, State>, until: Option<Instant>) -> MutexGuard<'a, State> {
        let poisoned = "no engine panics";
        state.sleepers += 1;
        let mut state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => self.changed.wait(state).expect(poisoned),
            Some(left) => self.changed.wait_timeout(state, left).expect(poisoned).0,
        };
        state.sleepers -= 1;
        state
    }
}

impl State {
    /// The number of a new call.
    fn call(&mut self) -> u64 {
        self.calls += 1;
        self.results.insert(self.calls, None);
        self.calls
    }

    /// Nobody waits for this call any more.
    fn forget(&mut self, number: u64) {
        self.results.remove(&number);
    }

    fn read(&mut self, token: Token, address: u64, bytes: u64) -> Result<(), RequestError> {
        let now = self.driven.now();
        self.driven.engine.read(now, token, address, bytes)
    }

    fn write(&mut self, token: Token, address: u64, data: Payload) -> Result<(), RequestError> {
        let now = self.driven.now();
        self.driven.engine.write(now, token, address, data)
    }

    /// While nobody drives, answers to reads that were given up may have come. They are read before the tags are used again, however long
    /// those have rested by the clock.
    fn settle(&mut self) -> Result<(), Error> {
        // Looking may end the rests.
        if self.driver.is_some() || self.driven.engine.resting_tags() == 0 {
            return Ok(());
        }
        for _ in 0..SETTLING {
            let came = self.driven.turn(None)?;
            self.collect();
            if came == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Takes the operations that are over from the end point; true if any of them has failed.
    fn collect(&mut self) -> bool {
        let mut any_failed = false;
        while let Some(event) = self.driven.engine.poll_event() {
            let (token, result) = match event {
                Event::ReadDone { token, result } => (token, result),
                Event::WriteSent { token } => (token, Ok(Payload::EMPTY)),
                Event::Failed { token, error } => (token, Err(error)),
                // The host has no windows here: it was refused, and counted.
                Event::HostRead(_) | Event::HostWrite(_) | Event::Other { .. } => continue,
            };
            any_failed |= result.is_err();
            self.done(token, result);
        }
        any_failed
    }

    fn done(&mut self, token: Token, result: Outcome) {
        match token {
            Token::Blocking(number) => {
                if let Some(place) = self.results.get_mut(&number) {
                    *place = Some(result);
                }
            }
            Token::Submitted(token) => {
                self.submitted -= 1;
                self.completed.push_back(Completion { token, result });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;
    use std::net::{Ipv4Addr, SocketAddrV4};
    use tlplab_nettlp::Undeliverable;

    /// Brings nothing, and breaks whenever something is to leave.
    struct Broken(Arc<Poller>);

    impl Transport for Broken {
        fn poller(&self) -> &Arc<Poller> {
            &self.0
        }
        fn receive(&mut self, _: Option<&Ready>, _: &mut Batch) -> Result<(), Error> {
            Ok(())
        }
        fn send(&mut self, _: &mut Batch) -> Result<(), Error> {
            Err(Error::Setup("broken".into()))
        }
        fn undeliverable(&mut self) -> Option<(SocketAddrV4, Undeliverable)> {
            None
        }
        fn dropped(&self) -> Option<u64> {
            None
        }
    }

    fn context(wait: Wait) -> Context {
        let config = EndpointConfig {
            completion_timeout: Span::from_ms(10),
            ..EndpointConfig::new(Ipv4Addr::LOCALHOST, Bdf(0))
        };
        Context::new(config, Box::new(Broken(Arc::new(Poller::new().unwrap()))), wait)
    }

    /// The engine goes on with the operation, and no caller waits for its result.
    #[test]
    fn results_of_abandoned_calls_are_not_kept() {
        let context = context(Wait::Sleep);
        for _ in 0..3 {
            let failed = context.dma_read(0, &mut [0; 4]);
            assert!(matches!(failed, Err(Failure::Transport(_))), "{failed:?}");
        }
        assert!(context.read_many(&[(0, 4), (64, 4)]).is_err());
        assert!(context.lock().results.is_empty());
        let mut state = context.lock();
        while state.driven.engine.in_flight() > 0 {
            std::thread::sleep(Duration::from_millis(5));
            let _ = state.driven.turn(None);
            state.collect();
        }
        assert!(state.results.is_empty() && state.completed.is_empty());
    }
}
