//! The completer half: reads of the host, from their arrival to the last completion.

use super::event::AnswerToken;
use crate::datagram::with_digest;
use std::collections::VecDeque;
use tlplab_device::Refusal;
use tlplab_transaction::{Completer, CompletionTlp, Completions, Payload, PostedMark};
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::{CompletionStatus, Repr, Span};

/// Reads that may wait for the device or for being sent. A host has at most 256 tags; several of them behind one adapter have more.
const MOST: usize = 1024;

/// The bytes that a request means, run by run: all but a request of one or two doublewords is one run (PCIe 5.0 §2.2.5).
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    address: u64,
    /// Of one or two doublewords: a bit for each byte. Of more: nothing.
    enabled: u8,
    /// Of more: what is enabled is one run.
    whole: Option<u32>,
}

impl Runs {
    /// The runs of a request; a request that enables no byte has one empty run.
    pub fn of(span: Span) -> Self {
        let (first, last) = (span.enables().first(), span.enables().last());
        match span.length().dw() {
            dw @ 1..=2 if !span.is_zero_length() => {
                let enabled = if dw == 1 { first } else { last << 4 | first };
                Self { address: span.address(), enabled, whole: None }
            }
            _ => {
                let bytes = if span.is_zero_length() { 0 } else { span.byte_count() };
                Self { address: span.first_byte(), enabled: 0, whole: Some(bytes) }
            }
        }
    }

    /// The run of that number.
    fn run(self, number: usize) -> Option<(u64, u32)> {
        { self }.nth(number)
    }
    /// True if there is only one.
    pub fn is_single(self) -> bool {
        let ones = self.enabled >> self.enabled.trailing_zeros().min(7);
        self.whole.is_some() || ones.leading_zeros() + ones.trailing_ones() == 8
    }
    /// The first enabled byte.
    fn first_byte(self) -> u64 {
        self.run(0).map_or(self.address, |(address, _)| address)
    }
    /// Bytes from the first to the last enabled one.
    fn reach(self) -> u32 {
        self.whole.unwrap_or_else(|| 8 - self.enabled.leading_zeros() - self.enabled.trailing_zeros())
    }
}

impl Iterator for Runs {
    type Item = (u64, u32);
    fn next(&mut self) -> Option<(u64, u32)> {
        if let Some(bytes) = self.whole.take() {
            return Some((self.address, bytes));
        }
        if self.enabled == 0 {
            return None;
        }
        let start = self.enabled.trailing_zeros();
        let bytes = (self.enabled >> start).trailing_ones();
        self.enabled &= !((((1u16 << bytes) - 1) << start) as u8);
        Some((self.address + u64::from(start), bytes))
    }
}

/// The reason that an answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It was answered before, or forgotten in a reset.
    #[error("the read was answered already, or a reset has ended it")]
    Over,
    /// The host has given it up: too many others waited.
    #[error("the read took too long, and was given up for others")]
    GivenUp,
    /// Too many or too few bytes.
    #[error("the read is for {expected} B, but the answer has {found} B")]
    Length {
        /// The bytes requested.
        expected: u32,
        /// The bytes given.
        found: u64,
    },
}

#[derive(Clone, Debug)]
enum State {
    Free,
    /// The device has not answered every run yet.
    Waiting {
        request: Repr,
        runs: Runs,
        /// A bit for each run that waits.
        open: u8,
        /// Of several runs, what has come, with zeros between.
        gathered: Vec<u8>,
        refusal: Option<Refusal>,
    },
    /// Completions with data.
    Sending {
        completions: Completions,
        next: CompletionTlp,
        data: Payload,
        digest: bool,
    },
    /// One completion that tells of an error.
    Failed {
        completion: Repr,
    },
}

#[derive(Clone, Debug)]
struct Slot {
    generation: u16,
    /// A read here was given up; its answer may still come.
    given_up: bool,
    port: u16,
    /// The arrival of the read.
    since: Time,
    state: State,
}

/// A completion to be sent.
pub(super) struct Answer {
    pub(super) port: u16,
    pub(super) repr: Repr,
    pub(super) data: Payload,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Reads that are answered, each with the writes of the device before it: it does not pass them (PCIe 5.0 table 2-39).
    ready: VecDeque<(u32, PostedMark)>,
    /// Completions for requests that nobody was asked about, each with its port: a device that does not answer does not hold them up.
    refusals: VecDeque<(u16, Repr)>,
}

impl Answers {
    /// Keeps a read that came to `port`, in so many runs, until they are answered; `None` when too many wait.
    pub(super) fn keep(&mut self, now: Time, port: u16, request: Repr, runs: Runs) -> Option<AnswerToken> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < MOST => {
                self.slots.push(Slot {
                    generation: 0,
                    given_up: false,
                    port,
                    since: now,
                    state: State::Free,
                });
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        let open = (1 << runs.count()) - 1;
        let place = &mut self.slots[slot as usize];
        (place.port, place.since) = (port, now);
        place.state = State::Waiting { request, runs, open, gathered: Vec::new(), refusal: None };
        Some(AnswerToken { slot, part: 0, generation: place.generation })
    }

    /// If there is no place, forgets the reads that came before `limit` and that the device has not answered; how many.
    pub(super) fn give_up(&mut self, limit: Time) -> u64 {
        if !self.free.is_empty() || self.slots.len() < MOST {
            return 0;
        }
        for index in 0..self.slots.len() as u32 {
            let Slot { since, state, .. } = &self.slots[index as usize];
            if *since < limit && matches!(state, State::Waiting { .. }) {
                self.release(index);
                self.slots[index as usize].given_up = true;
            }
        }
        self.free.len() as u64
    }

    /// Refuses a request that nobody is asked about; `false` when too many wait.
    pub(super) fn refuse(&mut self, port: u16, completion: Repr) -> bool {
        if self.refusals.len() >= MOST {
            return false;
        }
        self.refusals.push_back((port, completion));
        true
    }

    /// The device answers, after the writes that `mark` tells of.
    pub(super) fn answer(
        &mut self,
        completer: &Completer,
        mark: PostedMark,
        token: AnswerToken,
        result: Result<Payload, Refusal>,
    ) -> Result<(), AnswerError> {
        let Some(slot) = self.slots.get_mut(token.slot as usize) else { return Err(AnswerError::Over) };
        if slot.generation != token.generation {
            return Err(if slot.given_up { AnswerError::GivenUp } else { AnswerError::Over });
        }
        let Slot { state, .. } = slot;
        let State::Waiting { request, runs, open, gathered, refusal } = state else {
            return Err(AnswerError::Over);
        };
        let run = runs.run(usize::from(token.part)).filter(|_| *open >> token.part & 1 == 1);
        let Some((address, bytes)) = run else { return Err(AnswerError::Over) };
        let mut data = Payload::EMPTY;
        match result {
            Err(why) => *refusal = refusal.or(Some(why)),
            Ok(found) if found.len() != u64::from(bytes) => {
                return Err(AnswerError::Length { expected: bytes, found: found.len() });
            }
            Ok(found) if runs.is_single() => data = found,
            Ok(found) => {
                gathered.resize(runs.reach() as usize, 0);
                let start = (address - runs.first_byte()) as usize;
                if let Some(found) = found.bytes() {
                    gathered[start..start + found.len()].copy_from_slice(found);
                }
            }
        }
        *open &= !(1 << token.part);
        if *open != 0 {
            return Ok(());
        }
        if !gathered.is_empty() {
            data = std::mem::take(gathered).into();
        }
        *state = finished(completer, request, *refusal, data);
        self.ready.push_back((token.slot, mark));
        Ok(())
    }

    /// The next completion to be sent, if `may_leave` says so of the writes before it.
    pub(super) fn next(&mut self, may_leave: impl Fn(PostedMark) -> bool) -> Option<Answer> {
        if let Some((port, repr)) = self.refusals.pop_front() {
            return Some(Answer { port, repr, data: Payload::EMPTY });
        }
        let (index, _) = *self.ready.front().filter(|(_, mark)| may_leave(*mark))?;
        let slot = &mut self.slots[index as usize];
        let port = slot.port;
        let (repr, data, last) = match &mut slot.state {
            State::Failed { completion } => (*completion, Payload::EMPTY, true),
            State::Sending { completions, next, data, digest } => {
                let now = *next;
                let part = data.slice(now.offset.into(), now.bytes.into());
                match completions.next() {
                    Some(following) => *next = following,
                    None => debug_assert!(now.last),
                }
                (with_digest(now.repr, *digest), part, now.last)
            }
            State::Free | State::Waiting { .. } => unreachable!("only what is answered is ready"),
        };
        if last {
            self.ready.pop_front();
            self.release(index);
        }
        Some(Answer { port, repr, data })
    }

    /// Reads that wait for the device, and answers that wait for being sent.
    pub(super) fn kept(&self) -> usize {
        self.slots.len() - self.free.len() + self.refusals.len()
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.slots.iter_mut().for_each(|slot| slot.since = slot.since.earlier(by));
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.ready.clear();
        self.refusals.clear();
        for index in 0..self.slots.len() as u32 {
            if !matches!(self.slots[index as usize].state, State::Free) {
                self.release(index);
            }
        }
    }

    fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.state = State::Free;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
    }
}

fn finished(completer: &Completer, request: &Repr, refusal: Option<Refusal>, data: Payload) -> State {
    let digest = request.attributes().digest;
    let status = match refusal {
        None => {
            let mut completions = completer.succeed(request);
            let next = completions.next().expect("a read has a completion");
            return State::Sending { completions, next, data, digest };
        }
        Some(Refusal::UnsupportedRequest) => CompletionStatus::UnsupportedRequest,
        Some(Refusal::CompleterAbort) => CompletionStatus::CompleterAbort,
    };
    let completion = completer.refuse(request, status).expect("a read wants a completion");
    State::Failed { completion: with_digest(completion, digest) }
}
