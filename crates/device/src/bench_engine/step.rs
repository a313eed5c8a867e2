//! The events that the engine waits for with timers. Timers of one kind come in the order in which they were set, so none needs a name.

use crate::contract::Context;
use tlplab_units::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The engine takes a descriptor of a read.
    ReadTaken,
    /// A read request may leave.
    ReadIssue,
    /// Data have passed into the device's memory.
    ReadPassed,
    /// A read is over.
    ReadOver,
    /// The engine takes a descriptor of a write.
    WriteTaken,
    /// Data have passed out of the device's memory.
    WritePassed,
    /// The way to the link is free.
    Transmit,
    /// A write is over.
    WriteOver,
    /// A command's request may leave.
    Command,
    /// A command is over.
    CommandOver,
    /// The next measured operation begins.
    Next,
}

impl Step {
    const ALL: [Self; 11] = [
        Self::ReadTaken,
        Self::ReadIssue,
        Self::ReadPassed,
        Self::ReadOver,
        Self::WriteTaken,
        Self::WritePassed,
        Self::Transmit,
        Self::WriteOver,
        Self::Command,
        Self::CommandOver,
        Self::Next,
    ];

    /// As a timer is called.
    pub(super) fn id(self) -> u64 {
        self as u64
    }

    /// Of a timer's name.
    pub(super) fn of(id: u64) -> Option<Self> {
        Self::ALL.get(id as usize).copied()
    }

    /// Comes in so much time.
    pub(super) fn after(self, cx: &mut Context<'_>, time: Duration) {
        cx.timer(cx.now() + time, self.id());
    }
}
