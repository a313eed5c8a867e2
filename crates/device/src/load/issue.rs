//! The interface of loads to a context, so that the same load runs as a device (DMA) and on the host (MMIO).

use crate::contract::Context;
use crate::host::{DeviceInfo, HostContext};
use tlplab_transaction::Payload;
use tlplab_units::Time;

/// The target of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An address.
    Address(u64),
    /// A BAR of the device of this name: from the host MMIO, from a device peer-to-peer.
    Bar {
        /// The device.
        device: String,
        /// Number of its BAR.
        bar: u8,
    },
}

pub(crate) trait Issue {
    fn now(&self) -> Time;
    fn length_only(&self) -> bool;
    fn find(&self, device: &str) -> Option<&DeviceInfo>;
    fn read(&mut self, stream: u16, address: u64, bytes: u64);
    fn write(&mut self, stream: u16, address: u64, data: Payload);
    fn timer(&mut self, at: Time, id: u64);
    fn finished(&mut self);
    fn fault(&mut self, message: String);

    /// Base and size of a target; `None` as size where it is not known.
    fn resolve(&self, target: &Target) -> Result<(u64, Option<u64>), String> {
        let (device, bar) = match target {
            Target::Address(address) => return Ok((*address, None)),
            Target::Bar { device, bar } => (device, *bar),
        };
        let info = self.find(device).ok_or_else(|| format!("the load's target {device:?} does not exist"))?;
        match info.bars.get(usize::from(bar)).copied().flatten() {
            Some((base, size)) => Ok((base, Some(size))),
            None => Err(format!("{device} has no BAR {bar}")),
        }
    }
}

macro_rules! issue {
    ($context:ident, $find:expr, $read:ident, $write:ident) => {
        impl Issue for $context<'_> {
            fn now(&self) -> Time {
                $context::now(self)
            }
            fn length_only(&self) -> bool {
                $context::length_only(self)
            }
            fn find(&self, device: &str) -> Option<&DeviceInfo> {
                $find(self, device)
            }
            fn read(&mut self, stream: u16, address: u64, bytes: u64) {
                self.$read(stream, address, bytes);
            }
            fn write(&mut self, stream: u16, address: u64, data: Payload) {
                self.$write(stream, address, data);
            }
            fn timer(&mut self, at: Time, id: u64) {
                $context::timer(self, at, id);
            }
            fn finished(&mut self) {
                $context::finished(self);
            }
            fn fault(&mut self, message: String) {
                $context::fault(self, message);
            }
        }
    };
}
issue!(Context, |cx: &Self, name: &str| cx.peer(name), dma_read, dma_write);
issue!(HostContext, |cx: &Self, name: &str| cx.device(name).map(|(_, info)| info), mmio_read, mmio_write);
