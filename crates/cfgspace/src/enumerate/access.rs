//! One access at a time, as something to wait for.

use super::{Answer, Request};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tlplab_units::{Bdf, Duration, Mrrs};

/// The place where requests and answers pass each other.
pub(super) struct Slot {
    pub(super) request: Request,
    pub(super) answer: Option<Answer>,
}

impl Default for Slot {
    fn default() -> Self {
        Self { request: Request::Wait(Duration::ZERO), answer: None }
    }
}

pub(super) fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The software's way to configuration space.
pub(super) struct Access {
    slot: Arc<Mutex<Slot>>,
}

impl Access {
    pub(super) fn new(slot: Arc<Mutex<Slot>>) -> Self {
        Self { slot }
    }

    async fn ask(&self, request: Request) -> Answer {
        let mut asked = false;
        poll_fn(|_| {
            let mut slot = lock(&self.slot);
            if !asked {
                asked = true;
                slot.request = request;
                slot.answer = None;
                return Poll::Pending;
            }
            slot.answer.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// The dword at `offset`; `None` if there was no answer.
    pub(super) async fn try_read(&self, function: Bdf, offset: u16) -> Option<u32> {
        match self.ask(Request::Read { function, offset: offset & 0xFFC }).await {
            Answer::Value(value) => Some(value),
            Answer::Done | Answer::MaxReadRequest(_) | Answer::Failed => None,
        }
    }
    /// The dword at `offset`; all ones if there was no answer.
    pub(super) async fn read(&self, function: Bdf, offset: u16) -> u32 {
        self.try_read(function, offset).await.unwrap_or(u32::MAX)
    }
    /// The 16 bits at `offset`, which is even.
    pub(super) async fn read16(&self, function: Bdf, offset: u16) -> u16 {
        (self.read(function, offset).await >> (8 * (offset & 2))) as u16
    }
    pub(super) async fn write(&self, function: Bdf, offset: u16, value: u32) {
        self.ask(Request::Write { function, offset, enables: 0xF, value }).await;
    }
    /// Writes the 16 bits at `offset`, and leaves their neighbours alone.
    pub(super) async fn write16(&self, function: Bdf, offset: u16, value: u16) {
        let (enables, value) = (0b11 << (offset & 2), u32::from(value) << (8 * (offset & 2)));
        self.ask(Request::Write { function, offset: offset & 0xFFC, enables, value }).await;
    }
    /// Writes the lowest byte of a dword.
    pub(super) async fn write_low_byte(&self, function: Bdf, offset: u16, value: u8) {
        self.ask(Request::Write { function, offset, enables: 1, value: value.into() }).await;
    }
    pub(super) async fn write_memory(&self, address: u64, value: u32) {
        self.ask(Request::WriteMemory { address, value }).await;
    }
    /// The most that a function shall ask for in one read; 512 bytes if that is not answered.
    pub(super) async fn max_read_request(&self, function: Bdf) -> Mrrs {
        match self.ask(Request::MaxReadRequest { function }).await {
            Answer::MaxReadRequest(mrrs) => mrrs,
            Answer::Value(_) | Answer::Done | Answer::Failed => Mrrs::ALL[2],
        }
    }
    pub(super) async fn wait(&self, time: Duration) {
        self.ask(Request::Wait(time)).await;
    }
}
