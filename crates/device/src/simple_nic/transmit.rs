//! Frames that are sent: many are read at once, and reach the port in the order of their descriptors.

use super::queue::Queue;
use super::regs::{self, Registers};
use super::{Port, TRANSMIT};
use crate::contract::{Context, DmaError, OpId};
use std::collections::VecDeque;
use tlplab_transaction::Payload;

/// Bytes of an Ethernet header.
const HEADER: u64 = 14;

#[derive(Clone, Debug)]
enum Frame {
    Reading(OpId),
    Ready(Payload),
    Lost,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Transmitter {
    pub(super) queue: Queue,
    under_way: VecDeque<Frame>,
}

impl Transmitter {
    pub(super) fn new(base: u64, size: u32) -> Self {
        Self { queue: Queue::new(base, size), ..Self::default() }
    }

    /// A read is over; false if it was none of ours.
    pub(super) fn read(&mut self, op: OpId, result: &Result<Payload, DmaError>) -> bool {
        let mine = |frame: &&mut Frame| matches!(frame, Frame::Reading(own) if *own == op);
        match self.under_way.iter_mut().find(mine) {
            Some(frame) => {
                *frame = result.as_ref().map_or(Frame::Lost, |data| Frame::Ready(data.clone()));
                true
            }
            None => self.queue.fetched(op, result),
        }
    }

    /// Reads what was posted, sends what was read. The number of descriptors that are done now.
    pub(super) fn work<P: Port>(
        &mut self,
        cx: &mut Context<'_>,
        file: &mut Registers,
        port: &mut P,
        longest: u32,
    ) -> u32 {
        while let Some(fetched) = self.queue.take() {
            let possible = fetched.descriptor.filter(|d| (HEADER..=longest.into()).contains(&d.length));
            self.under_way.push_back(match possible {
                Some(frame) => Frame::Reading(cx.dma_read(TRANSMIT, frame.address, frame.length)),
                None => Frame::Lost,
            });
        }
        let mut done = 0;
        while let Some(frame) = self.under_way.pop_front() {
            let counter = match frame {
                Frame::Ready(data) => match port.send(data) {
                    Ok(()) => regs::TX_FRAMES,
                    Err(data) => {
                        self.under_way.push_front(Frame::Ready(data));
                        break;
                    }
                },
                Frame::Lost => regs::TX_ERRORS,
                Frame::Reading(_) => {
                    self.under_way.push_front(frame);
                    break;
                }
            };
            file.count(counter, 1);
            self.queue.done();
            done += 1;
        }
        self.queue.fetch(cx, self.under_way.len());
        done
    }
}
