//! PCI accesses and interrupts in virtqueue buffers (`include/uapi/linux/virtio_pcidev.h`), for a whole hierarchy: with the boot option
//! `um_pci_tunnel` a configuration access names bus, device, function and register as ECAM does, and a memory access has BAR number 7 and
//! the address on the bus.

use crate::error::ProtocolError;
use crate::machine::Interrupt;

/// Bytes before the data of a command or an interrupt.
pub const HEADER: usize = 16;
/// The BAR number that stands for the whole address space.
const TUNNEL: u8 = 7;
/// Bytes of one access at most; the kernel maps no more at once.
const LARGEST: u32 = 16 << 20;

const CONFIG_READ: u8 = 1;
const CONFIG_WRITE: u8 = 2;
const MEMORY_READ: u8 = 3;
const MEMORY_WRITE: u8 = 4;
const MEMORY_SET: u8 = 5;
const INTERRUPT: u8 = 6;
const MESSAGE: u8 = 7;

/// An access of the guest's processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads `bytes` (1, 2, 4 or 8) of configuration space.
    ConfigRead {
        /// Function and register: bus << 20 | device << 15 | function << 12 | register.
        offset: u32,
        /// Length.
        bytes: u32,
    },
    /// Writes 1, 2, 4 or 8 bytes of configuration space.
    ConfigWrite {
        /// Function and register.
        offset: u32,
        /// The data to write.
        data: Vec<u8>,
    },
    /// Reads memory of a device.
    MemoryRead {
        /// Its address on the bus.
        address: u64,
        /// Length.
        bytes: u32,
    },
    /// Writes memory of a device.
    MemoryWrite {
        /// Its address on the bus.
        address: u64,
        /// The data to write.
        data: Vec<u8>,
    },
}

impl Access {
    /// Reads the command that the guest sent; `room` is how many bytes it takes as an answer.
    ///
    /// # Errors
    /// [`ProtocolError`]: no such command, or one that says one thing and brings another.
    pub fn parse(sent: &[u8], room: u64) -> Result<Self, ProtocolError> {
        let Some((header, data)) = sent.split_first_chunk::<HEADER>() else {
            return Err(ProtocolError::CommandSize { op: 0, size: 0, sent: sent.len() as u64, room });
        };
        let [op, bar, _, _, a, b, c, d, address @ ..] = *header;
        let (size, address) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(address));
        let wrong = ProtocolError::CommandSize { op, size, sent: data.len() as u64, room };
        let config = matches!(op, CONFIG_READ | CONFIG_WRITE);
        let sized = if config { matches!(size, 1 | 2 | 4 | 8) } else { (1..=LARGEST).contains(&size) };
        if !(CONFIG_READ..=MEMORY_SET).contains(&op) {
            return Err(ProtocolError::Command(op));
        }
        if !config && bar != TUNNEL {
            return Err(ProtocolError::NotTunnelled(bar));
        }
        let in_config = address.checked_add(size.into()).is_some_and(|end| end <= 1 << 28);
        if !sized || config && !in_config {
            return Err(wrong);
        }
        // The kernel sends a fixed number of bytes where fewer mean something.
        let written = || data.get(..size as usize).map(<[u8]>::to_vec).ok_or(wrong);
        let fits = || if room == u64::from(size) { Ok(size) } else { Err(wrong) };
        Ok(match op {
            CONFIG_READ => Self::ConfigRead { offset: address as u32, bytes: fits()? },
            CONFIG_WRITE => Self::ConfigWrite { offset: address as u32, data: written()? },
            MEMORY_READ => Self::MemoryRead { address, bytes: fits()? },
            MEMORY_WRITE => Self::MemoryWrite { address, data: written()? },
            _ => {
                let value = *data.first().ok_or(wrong)?;
                Self::MemoryWrite { address, data: vec![value; size as usize] }
            }
        })
    }
}

/// An interrupt as it stands in a buffer of the guest.
pub fn emit_interrupt(interrupt: Interrupt) -> Vec<u8> {
    let (op, data) = match interrupt {
        Interrupt::Message { data } => (MESSAGE, data.to_le_bytes().to_vec()),
        Interrupt::Wire => (INTERRUPT, Vec::new()),
    };
    let mut bytes = vec![0; HEADER];
    bytes[0] = op;
    bytes[4..8].copy_from_slice(&(data.len() as u32).to_le_bytes());
    bytes.extend(data);
    bytes
}
