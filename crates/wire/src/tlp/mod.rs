//! Transaction layer packets (PCIe 5.0 chapter 2).
//!
//! * [`Repr`](repr::Repr): a TLP that can only be valid, without its payload: [`Kind`], [`Attributes`], [`Prefixes`]
//! * [`field`]: the values its fields hold, such as [`Span`], the memory a request touches
//! * [`message`]: message codes, their routing and contents
//! * [`prefix`]: what may stand before the header

pub mod emit;
pub mod field;
pub mod kind;
pub mod message;
pub mod packet;
pub mod parse;
pub mod prefix;
pub mod repr;

pub use field::{
    AddressType, Attributes, ByteEnables, CompletionStatus, DwLength, Hint, ProcessingHint, Span,
    TransactionId,
};
pub use kind::{AtomicOp, AtomicTarget, CfgTarget, Completion, IoPort, Kind};
pub use message::{Code, Message, Routing};
pub use packet::Packet;
pub use parse::{ParseOptions, TagWidth};
pub use prefix::{Pasid, Prefix, Prefixes};
pub use repr::Repr;
