//! Transaction layer packets (PCIe 5.0 chapter 2).
//!
//! [`Packet`] shows what bytes say and judges nothing; [`Repr`] is what they mean and can only be valid. A payload travels beside both.
//!
//! ```
//! use tlplab_wire::tlp::{Packet, Repr, TransactionId};
//! use tlplab_units::{Bdf, Tag};
//!
//! let id = TransactionId::new(Bdf::new(0x1b, 0, 0).unwrap(), Tag::from(5));
//! let write = Repr::mem_write(id, 0xa000_0003, 6)?;
//! let mut bytes = [0; 24];
//! let end = write.emit(&mut bytes, b"\0\0\0hello\0\0\0\0")?;
//! assert_eq!(&bytes[..8], [0x40, 0, 0, 3, 0x1b, 0, 5, 0x18]);
//!
//! assert_eq!(Repr::parse(&Packet::new(&bytes[..end]))?, write);
//! assert_eq!(write.to_string(), "MWr, len 3, requester 1b:00.0, tag 0x05, last 0x1, first 0x8, addr 0xa0000000");
//! # Ok::<(), tlplab_wire::Error>(())
//! ```
//!
//! * [`repr`]: [`Repr`], its constructors, sizes and credits; [`kind`] and [`completion`]: the fields of each
//!   kind of TLP
//! * [`field`]: the values that fields hold, such as [`Span`], the memory a request touches
//! * [`message`]: message codes, their routing and contents; [`prefix`]: the prefixes before a header
//! * [`translation`]: what address translation services carry
//! * [`packet`], [`parse`], [`emit`]: bytes
//!
//! # Reserved bits
//! Receivers ignore them, so different bytes may mean the same; [`Repr::emit`] writes them as zero. Ignored are: LN; T9 and T8 unless tags
//! have ten bits, and in a write whose tag is a steering tag; TH in TLPs other than memory requests and atomics; AT in messages and
//! completions; IDO in IO and configuration requests; RO and NS in messages that are not vendor-defined; Length in messages and
//! completions without data; byte enables of atomics and PH, unless TH is set; bits 15:12 and 1:0 of a configuration request's last
//! two bytes; bit 7 of Lower Address; bytes 8 to 15 of messages whose code gives them no meaning; the reserved bits of prefixes.
//! All other bits are read back exactly.

pub mod completion;
mod display;
pub mod emit;
pub mod field;
pub mod kind;
pub mod message;
pub mod packet;
pub mod parse;
pub mod prefix;
pub mod repr;
pub mod translation;

pub use completion::Completion;
pub use field::{
    AddressType, Attributes, ByteEnables, CompletionStatus, DwLength, Hint, ProcessingHint, Span,
    TransactionId,
};
pub use kind::{AtomicOp, AtomicTarget, CfgTarget, CfgType, IoPort, Kind};
pub use message::{Code, Latency, Message, Routing};
pub use packet::Packet;
pub use parse::{ParseOptions, TagWidth};
pub use prefix::{Pasid, Prefix, Prefixes};
pub use repr::Repr;
pub use translation::{Invalidation, Translation};
