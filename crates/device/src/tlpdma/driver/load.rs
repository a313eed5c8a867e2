//! The transfers of a load, and their parameters.

use super::buffer::PageSize;
use tlplab_units::Duration;

/// Transfers in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferLoad {
    /// From host memory to the card; otherwise from the card.
    pub to_card: bool,
    /// Bytes of a transfer.
    pub bytes: u64,
    /// Transfers in all.
    pub count: u64,
    /// Transfers that software has under way at once; with 1 each call waits for its end.
    pub outstanding: u64,
    /// The start of a buffer in its first page.
    pub offset: u64,
    /// Added to the addresses in the card's memory.
    pub card_offset: u64,
    /// The pages of the buffers.
    pub pages: PageSize,
    /// The path of descriptors to the card.
    pub descriptors: Descriptors,
    /// The way in which software learns that a transfer is over.
    pub wait: Wait,
    /// The work of software for each call before the card receives it.
    pub call_cost: Duration,
    /// Its start, after [`HostEvent::Start`](crate::HostEvent::Start).
    pub start: Duration,
    /// The data that are checked in payload-carrying runs.
    pub verify: Verify,
}

impl TransferLoad {
    /// One transfer to the card through a ring of 1 MiB, scattered over pages of 4 KiB, that ends with an interrupt.
    pub fn new(bytes: u64) -> Self {
        Self {
            to_card: true,
            bytes,
            count: 1,
            outstanding: 1,
            offset: 0,
            card_offset: 0,
            pages: PageSize::Small,
            descriptors: Descriptors::Ring { log2: 16 },
            wait: Wait::Interrupt { delay: Duration::ZERO },
            call_cost: Duration::ZERO,
            start: Duration::ZERO,
            verify: Verify::All,
        }
    }
}

/// The path of descriptors to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptors {
    /// From a ring of 2^log2 descriptors in host memory; 4 to 16.
    Ring {
        /// log2 of its length.
        log2: u32,
    },
    /// By the processor's stores into registers, of 4 bytes each.
    Pio {
        /// From one store to the next: what the processor takes for one.
        interval: Duration,
    },
}

/// The way in which software learns that a transfer is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// By an interrupt; the handler runs so much later.
    Interrupt {
        /// From the interrupt to the handler.
        delay: Duration,
    },
    /// It looks at the record in host memory every 20 ns.
    Poll,
}

/// The data that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// All of them.
    All,
    /// The first and the last 32 KiB of each transfer.
    Ends,
    /// None.
    None,
}

/// Bytes at either end of a transfer that [`Verify::Ends`] looks at.
const END: u64 = 32 << 10;

impl Verify {
    /// The parts of a transfer that are checked: first byte and length.
    pub(super) fn parts(self, bytes: u64) -> Vec<(u64, u64)> {
        match self {
            Self::None => Vec::new(),
            Self::Ends if bytes > 2 * END => vec![(0, END), (bytes - END, END)],
            Self::All | Self::Ends => vec![(0, bytes)],
        }
    }
}
