//! The NVMe controller: what its driver sees, from the first register to the last block.

mod administration;
pub(crate) mod bench;
mod cache;
mod interrupts;
mod pointers;
mod queues;
mod random;

use tlplab_device::NamespaceConfig;
use tlplab_device::nvme::NvmeConfig;
use tlplab_units::Duration;

/// A small drive: 4 MiB in blocks of 512 B, and 1 MiB in blocks of 4096 B; fast.
pub(crate) fn small() -> NvmeConfig {
    NvmeConfig {
        namespaces: vec![
            NamespaceConfig { bytes: 4 << 20, block: 512 },
            NamespaceConfig { bytes: 1 << 20, block: 4096 },
        ],
        queues: 8,
        vectors: 9,
        read: Duration::from_us(3),
        program: Duration::from_us(9),
        channels: 4,
        ..NvmeConfig::default()
    }
}
