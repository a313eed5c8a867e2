//! The common parts of devices: registers, a ring of descriptors, operations under way, timers with a purpose, streams with names.
//!
//! Each piece knows one thing, and none knows an event: a device hands it what the event says, and asks it what follows.
//!
//! ```text
//! write to a BAR ──▶ RegisterFile: what changes, which registers are touched ──▶ the device: a doorbell, a command, …
//!                                        Ring: the next batch ──▶ DMA read ──▶ descriptors ──▶ the device: data to move
//!                              InOrder, Operations: what each OpId is for ──▶ data came, data were accepted ──▶ the device
//!                                                                              Ring: done ──▶ head, record, Pin or message
//! ```
//!
//! * [`registers`]: [`registers!`](crate::registers) states place, width, reset value and access of each [`Register`] once, and a [`RegisterFile`] is
//!   made of that; bit [`Field`]s
//! * [`ring`]: a [`Ring`] of descriptors in host memory, whose doorbell counts what was ever posted
//! * [`operations`]: [`Operations`] that end in any order, [`InOrder`] those whose ends count in the order of their beginnings, [`Alarms`]
//!   timers
//! * [`streams!`](crate::streams): the numbers of a device's streams and the names of their flows, stated once
//! * [`bytes`]: numbers in descriptors, little-endian; [`record!`](crate::record), a descriptor stated once
//! * [`Pin`]: the level of a legacy interrupt
//!
//! A reset is `clear`, or a new value: an answer that comes late finds nothing, and is ignored.
//!
//! A device of two registers that reads what its driver points it at:
//!
//! ```
//! use tlplab_device::kit::{Operations, RegisterFile};
//! use tlplab_device::*;
//! use tlplab_units::Time;
//!
//! tlplab_device::streams! {
//!     /// What it reads.
//!     DATA: "data" = "read";
//! }
//! tlplab_device::registers! {
//!     ADDRESS: u64 = 0x00, rw;
//!     /// A write starts a read of so many bytes.
//!     GO: u32 = 0x08, rw;
//!     DONE: u32 = 0x0C, ro;
//! }
//!
//! struct Reader { file: RegisterFile, reads: Operations<()> }
//! impl Device for Reader {
//!     fn identity(&self) -> Identity {
//!         Identity { bars: vec![BarSpec::registers(0, 4096)], ..Identity::new(0x71AB, 0x99, 0x12_00_00) }
//!     }
//!     fn streams(&self) -> &'static [contract::Stream] { STREAMS }
//!     fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
//!         match event {
//!             Event::MmioRead { offset, bytes, reply, .. } => cx.reply(reply, self.file.read(offset, bytes)),
//!             Event::MmioWrite { offset, data, .. } if self.file.write(offset, &data).touches(GO) => {
//!                 let op = cx.dma_read(DATA, self.file.get(ADDRESS), self.file.get(GO).into());
//!                 self.reads.begin(op, ());
//!             }
//!             Event::DmaReadDone { op, result: Ok(_) } if self.reads.end(op).is_some() => self.file.add(DONE, 1),
//!             Event::Reset => (self.file, self.reads) = (RegisterFile::new(TABLE), Operations::new()),
//!             _ => {}
//!         }
//!     }
//! }
//!
//! let mut reader = Reader { file: RegisterFile::new(TABLE), reads: Operations::new() };
//! let (mut next_op, mut actions) = (0, Vec::new());
//! let mut tell = |event| {
//!     let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
//!     reader.handle(&mut cx, event);
//!     std::mem::take(&mut actions)
//! };
//! let setup = [&0x1000u64.to_le_bytes()[..], &64u32.to_le_bytes()].concat();
//! let read = Action::DmaRead { op: OpId(0), stream: DATA, address: 0x1000, bytes: 64, carry: false };
//! assert_eq!(tell(Event::MmioWrite { bar: 0, offset: 0, data: setup.into() }), [read]);
//! tell(Event::DmaReadDone { op: OpId(0), result: Ok(vec![0; 64].into()) });
//! tell(Event::DmaReadDone { op: OpId(0), result: Ok(vec![0; 64].into()) }); // of nobody any more
//! let done = Event::MmioRead { bar: 0, offset: DONE.offset(), bytes: 4, reply: ReplyToken(1) };
//! assert_eq!(tell(done), [Action::Reply { token: ReplyToken(1), data: 1u32.to_le_bytes().into() }]);
//! ```

pub mod bytes;
pub mod operations;
mod pin;
pub mod registers;
pub mod ring;
mod streams;

pub use operations::{Alarms, InOrder, Operations};
pub use pin::Pin;
pub use registers::{Access, Field, Register, RegisterEntry, RegisterFile, Touched, table};
pub use ring::{Batch, Ring};
