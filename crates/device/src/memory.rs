//! `memory`: a device that is nothing but a BAR of memory.

use crate::contract::{Context, Device, Event, Refusal};
use crate::identity::{BarSpec, Identity};
use crate::pages::Pages;
use tlplab_cfgspace::VENDOR_ID;
use tlplab_transaction::Payload;

/// A BAR of sparse memory. Answers at once; the time it takes is the completer's. In a length-only run it answers with
/// bytes where bytes were written.
#[derive(Clone, Debug)]
pub struct Memory {
    size: u64,
    pages: Pages,
}

impl Memory {
    /// `size` bytes: a power of two, at least 16.
    pub fn new(size: u64) -> Self {
        Self { size, pages: Pages::new() }
    }
    /// The written pages.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }
}

impl Device for Memory {
    fn identity(&self) -> Identity {
        Identity {
            revision: 1,
            bars: vec![BarSpec::memory(0, self.size)],
            ..Identity::new(VENDOR_ID, 0x0002, 0x05_00_00) // RAM controller
        }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioRead { offset, bytes, reply, .. } => {
                if offset.checked_add(bytes.into()).is_none_or(|end| end > self.size) {
                    return cx.reply_error(reply, Refusal::UnsupportedRequest);
                }
                if cx.length_only() && !self.pages.holds(offset, bytes.into()) {
                    return cx.reply(reply, Payload::Length(bytes.into()));
                }
                let mut data = vec![0; bytes as usize];
                self.pages.read(offset, &mut data);
                cx.reply(reply, data.into());
            }
            Event::MmioWrite { offset, data, .. } => {
                if let Some(bytes) =
                    data.bytes().filter(|b| offset.saturating_add(b.len() as u64) <= self.size)
                {
                    self.pages.write(offset, bytes);
                }
            }
            // A function-level reset does not clear memory (PCIe 5.0 §6.6.2 leaves it to the device).
            Event::Start | Event::Reset | Event::Timer { .. } => {}
            Event::DmaReadDone { .. } | Event::DmaWriteAccepted { .. } => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.clone()))
    }
}
