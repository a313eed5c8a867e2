//! Frames that come: each is written to the next buffer, and its length to the descriptor behind it.

use super::queue::Queue;
use super::regs::{self, Descriptor, Registers};
use super::{Port, WRITES};
use crate::contract::Context;

#[derive(Clone, Debug, Default)]
pub(super) struct Receiver {
    pub(super) queue: Queue,
}

impl Receiver {
    pub(super) fn new(base: u64, size: u32) -> Self {
        Self { queue: Queue::new(base, size) }
    }

    /// Writes what has come. The number of descriptors that are done now.
    pub(super) fn work<P: Port>(&mut self, cx: &mut Context<'_>, file: &mut Registers, port: &mut P) -> u32 {
        let mut done = 0;
        while let Some(next) = self.queue.next() {
            let Some(descriptor) = next.descriptor else {
                cx.dma_write(
                    WRITES,
                    next.address.wrapping_add(Descriptor::LENGTH),
                    0u64.to_le_bytes().into(),
                );
                file.count(regs::RX_ERRORS, 1);
                self.queue.take();
                self.queue.done();
                done += 1;
                continue;
            };
            let Some(frame) = port.receive() else { break };
            let length = frame.len();
            if length > descriptor.length {
                file.count(regs::RX_TOO_LONG, 1);
                continue;
            }
            cx.dma_write(WRITES, descriptor.address, frame);
            cx.dma_write(WRITES, next.address, Descriptor { length, ..descriptor }.to_bytes().into());
            file.count(regs::RX_FRAMES, 1);
            self.queue.take();
            self.queue.done();
            done += 1;
        }
        self.queue.fetch(cx, 0);
        done
    }
}
