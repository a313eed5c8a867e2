//! Memory and interrupts of the virtual machine, which the owner of the socket keeps.

use crate::maps::DmaRange;

/// A kind of interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Irq {
    /// The legacy interrupt.
    Intx = 0,
    /// MSI.
    Msi = 1,
    /// MSI-X.
    Msix = 2,
    /// An error of the function that it does not recover from by itself.
    Error = 3,
}

impl Irq {
    pub(crate) fn new(index: u32) -> Option<Self> {
        [Self::Intx, Self::Msi, Self::Msix, Self::Error].into_iter().find(|irq| *irq as u32 == index)
    }
}

/// Memory and interrupts of the virtual machine.
pub trait Host {
    /// Maps a range, which the file behind descriptor `file` of the message at hand backs. False if it cannot be.
    fn map(&mut self, range: &DmaRange, file: usize) -> bool;
    /// A range is gone: its mapping, if it has one, is removed.
    fn unmap(&mut self, range: &DmaRange);
    /// Reads mapped memory, within one range. False if it is not there.
    fn read(&self, address: u64, out: &mut [u8]) -> bool;
    /// Writes mapped memory, within one range. False if it is not there.
    fn write(&mut self, address: u64, data: &[u8]) -> bool;
    /// An interrupt is signalled by descriptor `file` of the message at hand, or by nothing any more.
    fn set_trigger(&mut self, irq: Irq, vector: u32, file: Option<usize>);
    /// Signals an interrupt. False if nothing is there to signal it by.
    fn trigger(&mut self, irq: Irq, vector: u32) -> bool;
}
