//! The interface of a guest to the simulator of its machine.

use crate::pcidev::Access;
use std::collections::VecDeque;
use tlplab_units::Time;

/// An interrupt that has reached the guest's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// A message signalled interrupt as a function wrote it.
    Message {
        /// Its data; the kernel puts its interrupt number there.
        data: u32,
    },
    /// A legacy interrupt is asserted. All wires are one to this kernel.
    Wire,
}

/// A simulated machine: a PCIe hierarchy below a root complex, in simulated time.
pub trait Machine {
    /// The reason that it cannot go on.
    type Error;

    /// Simulated time.
    fn now(&mut self) -> Time;

    /// Goes on to `until`; returns earlier, with the time where it stopped, when there is another interrupt, or when `until` is
    /// [`Time::NEVER`] and nothing will ever happen again.
    ///
    /// # Errors
    /// The machine's.
    fn advance(&mut self, until: Time) -> Result<(), Self::Error>;

    /// Begins an access now, and returns when it is over: when the data of a read or the completion of a configuration
    /// request are there, or a posted write has left the processor. A read gives as many bytes as were asked for, all ones where
    /// nobody answers. Goes no further than `limit`; `None` there, if the access is not over, and the next call with the same access goes on with it.
    ///
    /// # Errors
    /// The machine's.
    fn access(&mut self, access: &Access, limit: Time) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The interrupts that have come and were not taken yet, the oldest first.
    fn interrupts(&mut self) -> &mut VecDeque<Interrupt>;
}

/// The memory that a guest shares, by its physical addresses. What is outside of it cannot be accessed, and false is the answer.
pub trait GuestMemory {
    /// Copies memory into `out`.
    fn read(&self, address: u64, out: &mut [u8]) -> bool;
    /// Copies `data` into memory.
    fn write(&mut self, address: u64, data: &[u8]) -> bool;
}
