//! Frames that are sent: many are read at once, and reach the port in the order of their descriptors.

use super::queue::Queue;
use super::{Port, TRANSMIT, regs};
use crate::contract::{Context, DmaError, OpId};
use crate::kit::{InOrder, RegisterFile};
use tlplab_transaction::Payload;

/// Bytes of an Ethernet header.
const HEADER: u64 = 14;

#[derive(Clone, Debug, Default)]
pub(super) struct Transmitter {
    pub(super) queue: Queue,
    /// Frames that are read, or wait for the port; `None` is one that is lost.
    frames: InOrder<(), Option<Payload>>,
}

impl Transmitter {
    pub(super) fn new(base: u64, size: u32) -> Self {
        Self { queue: Queue::new(base, size), ..Self::default() }
    }

    /// A read is over; false if it was none of ours.
    pub(super) fn read(&mut self, op: OpId, result: &Result<Payload, DmaError>) -> bool {
        self.frames.end(op, result.as_ref().ok().cloned()).is_some() || self.queue.fetched(op, result)
    }

    /// Reads what was posted, sends what was read. The number of descriptors that are done now.
    pub(super) fn work<P: Port>(
        &mut self,
        cx: &mut Context<'_>,
        file: &mut RegisterFile,
        port: &mut P,
        longest: u32,
    ) -> u32 {
        while let Some(fetched) = self.queue.take() {
            let possible = fetched.descriptor.filter(|d| (HEADER..=longest.into()).contains(&d.length));
            match possible {
                Some(frame) => self.frames.begin(cx.dma_read(TRANSMIT, frame.address, frame.length), ()),
                None => self.frames.begin_over((), None),
            }
        }
        let mut done = 0;
        while let Some(((), frame)) = self.frames.next() {
            let counter = match frame.map(|frame| port.send(frame)) {
                Some(Ok(())) => regs::TX_FRAMES,
                None => regs::TX_ERRORS,
                Some(Err(frame)) => {
                    self.frames.put_back((), Some(frame));
                    break;
                }
            };
            file.add(counter, 1);
            self.queue.done();
            done += 1;
        }
        self.queue.fetch(cx, self.frames.len());
        done
    }
}
