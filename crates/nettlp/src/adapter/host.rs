//! The machine behind the adapter's PCIe link: memory, a processor whose programs use devices, interrupts.

use tlplab_device::{DmaError, Refusal};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration, Time};

/// Names a read of host memory that is answered later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostReadId(pub u64);

/// Names an access of a program to a device: the host chooses it, and is told the result under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MmioToken(pub u64);

/// A device reads host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRead {
    /// Comes back in [`HostOutput::ReadDone`], if the host answers later.
    pub id: HostReadId,
    /// Number of the device, in the order in which the adapter was given them.
    pub device: usize,
    /// Requester ID of the TLP, as the device wrote it.
    pub requester: Bdf,
    /// First byte.
    pub address: u64,
    /// Length: 1 to 4096, or 0 for a zero-length read, which flushes.
    pub bytes: u32,
}

/// A device writes host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWrite {
    /// Number of the device.
    pub device: usize,
    /// Requester ID of the TLP, as the device wrote it.
    pub requester: Bdf,
    /// First byte.
    pub address: u64,
    /// The data to write: only bytes that the TLP enables, without gaps.
    pub data: Payload,
}

/// A device wrote to the addresses of interrupts (PCIe 5.0 §6.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostInterrupt {
    /// Number of the device.
    pub device: usize,
    /// The vector of the device's MSI-X table that says so; `None` if no entry does.
    pub vector: Option<u16>,
    /// The address.
    pub address: u64,
    /// The data.
    pub data: u32,
}

/// The host's answer to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// At once: `bytes` bytes (none for a zero-length read), or why there are none.
    Now(Result<Payload, Refusal>),
    /// By [`HostOutput::ReadDone`].
    Later,
}

/// Requests and events that the host initiates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOutput {
    /// A read is answered.
    ReadDone {
        /// The number.
        id: HostReadId,
        /// Its data, or why there are none.
        result: Result<Payload, Refusal>,
    },
    /// A program accesses a device; the result is told by [`Host::mmio_done`].
    Mmio {
        /// The access.
        token: MmioToken,
        /// Number of the device.
        device: usize,
        /// Its BAR.
        bar: u8,
        /// The offset in it.
        offset: u64,
        /// The access.
        access: MmioAccess,
    },
}

/// An access of a program to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MmioAccess {
    /// Read so many bytes, 1 to 4096.
    Read(u32),
    /// Write these; done once they are on their way.
    Write(Payload),
}

/// The host behind the adapter. Times never go back, except by [`rebase`](Self::rebase).
pub trait Host {
    /// The first is heard of a device: from now on it is there.
    fn device_appears(&mut self, _now: Time, _device: usize) {}
    /// A device reads. The adapter asks for nothing outside [`claims`](Self::claims).
    fn read(&mut self, now: Time, request: HostRead) -> Answer;
    /// A device writes, inside [`claims`](Self::claims). Reads that come later see it.
    fn write(&mut self, now: Time, write: HostWrite);
    /// A device interrupts. What it wrote before is written.
    fn interrupt(&mut self, now: Time, interrupt: HostInterrupt);
    /// True if all of this range is memory. The adapter answers other addresses with UR. A range of 0 bytes is its address.
    fn claims(&self, address: u64, bytes: u32) -> bool;
    /// The next thing that the host has to say at `now`.
    fn poll(&mut self, now: Time) -> Option<HostOutput>;
    /// An access of a program is over: the data of a read (none for a write), or why there are none.
    fn mmio_done(&mut self, now: Time, token: MmioToken, result: Result<Payload, DmaError>);
    /// The time at which [`handle_timeout`](Self::handle_timeout) is due, if nothing else happens before.
    fn deadline(&self) -> Option<Time>;
    /// That time has come: [`poll`](Self::poll) may have something to say.
    fn handle_timeout(&mut self, now: Time);
    /// The origin of time moves: everything stored is `by` earlier now.
    fn rebase(&mut self, by: Duration);
}

impl<H: Host + ?Sized> Host for Box<H> {
    fn read(&mut self, now: Time, request: HostRead) -> Answer {
        (**self).read(now, request)
    }
    fn write(&mut self, now: Time, write: HostWrite) {
        (**self).write(now, write);
    }
    fn interrupt(&mut self, now: Time, interrupt: HostInterrupt) {
        (**self).interrupt(now, interrupt);
    }
    fn claims(&self, address: u64, bytes: u32) -> bool {
        (**self).claims(address, bytes)
    }
    fn poll(&mut self, now: Time) -> Option<HostOutput> {
        (**self).poll(now)
    }
    fn mmio_done(&mut self, now: Time, token: MmioToken, result: Result<Payload, DmaError>) {
        (**self).mmio_done(now, token, result);
    }
    fn deadline(&self) -> Option<Time> {
        (**self).deadline()
    }
    fn handle_timeout(&mut self, now: Time) {
        (**self).handle_timeout(now);
    }
    fn rebase(&mut self, by: Duration) {
        (**self).rebase(by);
    }
    fn device_appears(&mut self, now: Time, device: usize) {
        (**self).device_appears(now, device);
    }
}
