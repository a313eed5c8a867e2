//! Frames that come: each is written to the next buffer, and its length to the descriptor behind it.

use super::queue::Queue;
use super::regs::{self, Descriptor};
use super::{Port, WRITES};
use crate::contract::Context;
use crate::kit::RegisterFile;

/// Writes what has come. The number of descriptors that are done now.
pub(super) fn work<P: Port>(
    queue: &mut Queue,
    cx: &mut Context<'_>,
    file: &mut RegisterFile,
    port: &mut P,
) -> u32 {
    let mut done = 0;
    while let Some(next) = queue.next() {
        let Some(descriptor) = next.descriptor else {
            cx.dma_write(WRITES, next.address.wrapping_add(Descriptor::LENGTH), 0u64.to_le_bytes().into());
            file.add(regs::RX_ERRORS, 1);
            queue.take();
            queue.done();
            done += 1;
            continue;
        };
        let Some(frame) = port.receive() else { break };
        let length = frame.len();
        if length > descriptor.length {
            file.add(regs::RX_TOO_LONG, 1);
            continue;
        }
        cx.dma_write(WRITES, descriptor.address, frame);
        cx.dma_write(WRITES, next.address, Descriptor { length, ..descriptor }.to_bytes().into());
        file.add(regs::RX_FRAMES, 1);
        queue.take();
        queue.done();
        done += 1;
    }
    queue.fetch(cx, 0);
    done
}
