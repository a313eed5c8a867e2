//! The built-in devices, by name.

use super::{Place, Psmem, Serving, Station};
use crate::{Error, Tap};
use tlplab_device::nic::ethernet::Speed;
use tlplab_device::{
    Cable, CablePort, Dma, Memory, Ring, RingConfig, SimpleNic, SimpleNicConfig, Storage, StorageConfig,
};
use tlplab_units::Duration;

/// The devices that can be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// Memory behind the window, of as many bytes, that answers after a while; frames that it is filled with, and bytes of each.
    Psmem {
        /// Threads that answer for it.
        lanes: u8,
        /// A power of two, at least 4 KiB.
        bytes: u64,
        /// From a read to its answer.
        delay: Duration,
        /// The number of UDP datagrams that it is filled with, and the length of their frames: 60 to 2048 B.
        frames: Option<(u64, u16)>,
    },
    /// The simple NIC, with a TAP interface or a loop-back plug.
    Nic {
        /// The interface.
        tap: Option<String>,
        /// Most bytes of a packet.
        mtu: u16,
    },
    /// [`Memory`] of as many bytes in BAR 0.
    Memory(u64),
    /// [`Dma`]: copies host memory.
    Copier,
    /// [`Ring`]
    Ring,
    /// [`Storage`]
    Storage,
}

impl Builtin {
    /// Serves it.
    ///
    /// # Errors
    /// It has no place, or its way there does not open.
    pub fn serve(&self, station: &Station) -> Result<(Place, Serving), Error> {
        match self {
            Self::Psmem { lanes, bytes, delay, frames } => {
                let memory = Psmem::new(*bytes, *delay);
                if let Some((count, bytes)) = frames {
                    memory.fill_with_frames(*count, *bytes);
                }
                Serving::start(station, vec![memory; (*lanes).into()], None)
            }
            Self::Nic { tap: Some(name), mtu } => {
                let tap = Tap::open(name)?;
                let config = SimpleNicConfig { mtu: *mtu, ..SimpleNicConfig::default() };
                Serving::start(station, vec![SimpleNic::new(config, tap.frames().clone())], Some(tap))
            }
            Self::Nic { tap: None, mtu } => {
                let config = SimpleNicConfig { mtu: *mtu, ..SimpleNicConfig::default() };
                Serving::start(
                    station,
                    vec![SimpleNic::new(config, CablePort::new(Cable::LoopBack, Speed::TEN_GIGABIT))],
                    None,
                )
            }
            Self::Memory(bytes) => Serving::start(station, vec![Memory::new(*bytes)], None),
            Self::Copier => Serving::start(station, vec![Dma::new()], None),
            Self::Ring => Serving::start(station, vec![Ring::new(RingConfig::default())], None),
            Self::Storage => Serving::start(station, vec![Storage::new(StorageConfig::default())], None),
        }
    }
}
