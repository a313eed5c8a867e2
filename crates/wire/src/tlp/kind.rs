//! The kinds of TLP, and the fields of each.

use super::completion::Completion;
use super::field::{ByteEnables, DwLength, Span, TransactionId};
use super::message::Message;
use crate::Error;
use tlplab_units::{Bdf, FcClass};

/// The kind of a TLP, with its fields (PCIe 5.0 table 2-3). Payload bytes travel beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `MRd`, or `MRdLk` when locked.
    MemRead {
        /// Requester and tag.
        id: TransactionId,
        /// The memory that is read.
        span: Span,
        /// A locked read, of legacy endpoints only.
        locked: bool,
    },
    /// `MWr`: posted.
    MemWrite {
        /// Requester; the tag means nothing (and carries the steering tag with TPH).
        id: TransactionId,
        /// The memory that is written.
        span: Span,
    },
    /// `DMWr`: a write that is completed, so that the completer may refuse it.
    DeferrableMemWrite {
        /// Requester and tag.
        id: TransactionId,
        /// The memory that is written.
        span: Span,
    },
    /// `IORd`.
    IoRead {
        /// Requester and tag.
        id: TransactionId,
        /// The IO bytes that are read.
        port: IoPort,
    },
    /// `IOWr`.
    IoWrite {
        /// Requester and tag.
        id: TransactionId,
        /// The IO bytes that are written.
        port: IoPort,
    },
    /// `CfgRd0`, `CfgRd1`.
    CfgRead {
        /// Requester and tag.
        id: TransactionId,
        /// The function and its register that is read.
        target: CfgTarget,
    },
    /// `CfgWr0`, `CfgWr1`.
    CfgWrite {
        /// Requester and tag.
        id: TransactionId,
        /// The function and its register that is written.
        target: CfgTarget,
    },
    /// `Msg`, `MsgD`.
    Message(Message),
    /// `Cpl`, `CplD`, `CplLk`, `CplDLk`.
    Completion(Completion),
    /// `FetchAdd`, `Swap`, `CAS`.
    AtomicOp {
        /// Requester and tag.
        id: TransactionId,
        /// The operation, its address and the size of its operand.
        target: AtomicTarget,
    },
}

/// A DW of IO space and the bytes of it that are meant (PCIe 5.0 §2.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IoPort {
    address: u32,
    enables: u8,
}

impl IoPort {
    /// `len` bytes (1 to 4) at `addr`, within one DW.
    ///
    /// # Errors
    /// The bytes do not lie in one DW.
    pub const fn new(addr: u32, len: u32) -> Result<Self, Error> {
        let skipped = addr & 3;
        if len == 0 || skipped + len > 4 {
            return Err(Error::conflict("Length", "PCIe 5.0 §2.2.7", "an IO request stays within one DW"));
        }
        Ok(Self { address: addr & !3, enables: ((1u32 << (skipped + len)) - (1 << skipped)) as u8 })
    }
    /// A DW-aligned address and any first-DW byte enables.
    ///
    /// # Errors
    /// A misaligned address or enables of more than four bits.
    pub const fn with_enables(address: u32, enables: u8) -> Result<Self, Error> {
        if address & 3 != 0 {
            return Err(Error::value("Address", "PCIe 5.0 §2.2.4.1", address as u64, "a multiple of 4"));
        }
        if enables > 15 {
            return Err(Error::value("First DW BE", "PCIe 5.0 §2.2.5", enables as u64, "four bits"));
        }
        Ok(Self { address, enables })
    }
    /// The DW-aligned address.
    pub const fn address(self) -> u32 {
        self.address
    }
    /// First DW byte enables.
    pub const fn enables(self) -> u8 {
        self.enables
    }
}

/// The two types of configuration requests (PCIe 5.0 §2.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CfgType {
    /// It is at the bus of its function.
    Type0,
    /// It is on the way to a bus further down: to be routed by bus number and turned into type 0 at its bus.
    Type1,
}

/// A configuration register of a function (PCIe 5.0 §2.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CfgTarget {
    function: Bdf,
    register: u16,
    enables: u8,
    type1: bool,
}

impl CfgTarget {
    /// The DW at `register`, a byte offset below 4096 that is a multiple of 4, and the bytes of it that are meant, in a request of a type.
    ///
    /// # Errors
    /// A register outside 0 to 4092, misaligned, or enables of more than four bits.
    pub const fn new(function: Bdf, register: u16, enables: u8, of: CfgType) -> Result<Self, Error> {
        if register > 4092 || register & 3 != 0 {
            let wanted = "a multiple of 4 below 4096";
            return Err(Error::value("Register Number", "PCIe 5.0 §2.2.7", register as u64, wanted));
        }
        if enables > 15 {
            return Err(Error::value("First DW BE", "PCIe 5.0 §2.2.5", enables as u64, "four bits"));
        }
        Ok(Self { function, register, enables, type1: matches!(of, CfgType::Type1) })
    }
    /// The function addressed.
    pub const fn function(self) -> Bdf {
        self.function
    }
    /// Byte offset of the DW in configuration space: extended register number and register number.
    pub const fn register(self) -> u16 {
        self.register
    }
    /// First DW byte enables.
    pub const fn enables(self) -> u8 {
        self.enables
    }
    /// The target of a type 1 request.
    pub const fn is_type1(self) -> bool {
        self.type1
    }
    /// The same target in a type 0 request, as the bridge above its bus makes of a type 1 request (PCIe 5.0 §7.3.3).
    pub const fn at_its_bus(self) -> Self {
        Self { type1: false, ..self }
    }
}

/// The three atomic operations (PCIe 5.0 §6.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// Adds the operand; returns the old value.
    FetchAdd,
    /// Stores the operand; returns the old value.
    Swap,
    /// Stores the second operand if the first equals the old value; returns the old value.
    CompareAndSwap,
}

/// An atomic operation, its operand's size and its naturally aligned address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AtomicTarget {
    address: u64,
    op: AtomicOp,
    operand: u8,
}

impl AtomicTarget {
    /// `op` on `operand` bytes at `address`.
    ///
    /// # Errors
    /// Operands other than 4 or 8 bytes (CAS also 16), or an address that is no multiple of it (PCIe 5.0 §2.2.7).
    pub const fn new(op: AtomicOp, address: u64, operand: u32) -> Result<Self, Error> {
        let section = "PCIe 5.0 §2.2.7";
        match (op, operand) {
            (_, 4 | 8) | (AtomicOp::CompareAndSwap, 16) => {}
            (AtomicOp::CompareAndSwap, _) => {
                return Err(Error::value(
                    "Length",
                    section,
                    operand as u64,
                    "an operand of 4, 8 or 16 bytes",
                ));
            }
            _ => return Err(Error::value("Length", section, operand as u64, "an operand of 4 or 8 bytes")),
        }
        if address & (operand as u64 - 1) != 0 {
            return Err(Error::value("Address", section, address, "a multiple of the operand's size"));
        }
        Ok(Self { address, op, operand: operand as u8 })
    }
    /// The address.
    pub const fn address(self) -> u64 {
        self.address
    }
    /// The operation.
    pub const fn op(self) -> AtomicOp {
        self.op
    }
    /// Bytes of one operand, and of the value returned.
    pub const fn operand_bytes(self) -> u32 {
        self.operand as u32
    }
    /// Payload of the request: one operand, two for CAS.
    pub const fn length(self) -> DwLength {
        let operands = match self.op {
            AtomicOp::CompareAndSwap => 2,
            _ => 1,
        };
        match DwLength::new(self.operand as u32 / 4 * operands) {
            Some(length) => length,
            None => DwLength::ONE,
        }
    }
}

impl Kind {
    /// The class of flow control and of the ordering table (PCIe 5.0 §2.6.1).
    #[inline]
    pub const fn fc_class(&self) -> FcClass {
        match self {
            Self::MemWrite { .. } | Self::Message(_) => FcClass::Posted,
            Self::Completion(_) => FcClass::Completion,
            _ => FcClass::NonPosted,
        }
    }

    /// Requester and tag: of the request, or of the request that is completed.
    #[inline]
    pub const fn transaction_id(&self) -> TransactionId {
        match self {
            Self::MemRead { id, .. }
            | Self::MemWrite { id, .. }
            | Self::DeferrableMemWrite { id, .. }
            | Self::IoRead { id, .. }
            | Self::IoWrite { id, .. }
            | Self::CfgRead { id, .. }
            | Self::CfgWrite { id, .. }
            | Self::AtomicOp { id, .. } => *id,
            Self::Message(message) => message.id(),
            Self::Completion(completion) => completion.id(),
        }
    }

    pub(super) const fn with_transaction_id(mut self, new: TransactionId) -> Self {
        match &mut self {
            Self::MemRead { id, .. }
            | Self::MemWrite { id, .. }
            | Self::DeferrableMemWrite { id, .. }
            | Self::IoRead { id, .. }
            | Self::IoWrite { id, .. }
            | Self::CfgRead { id, .. }
            | Self::CfgWrite { id, .. }
            | Self::AtomicOp { id, .. } => *id = new,
            Self::Completion(completion) => *completion = completion.with_id(new),
            Self::Message(_) => {}
        }
        self
    }

    /// A memory request or atomic: a TLP that has an address type and may carry hints.
    #[inline]
    pub const fn is_memory(&self) -> bool {
        matches!(
            self,
            Self::MemRead { .. }
                | Self::MemWrite { .. }
                | Self::DeferrableMemWrite { .. }
                | Self::AtomicOp { .. }
        )
    }

    /// A memory request for the same bytes of another page of 4 KiB; any other TLP as it is.
    pub const fn in_page(mut self, page: u64) -> Self {
        match &mut self {
            Self::MemRead { span, .. }
            | Self::MemWrite { span, .. }
            | Self::DeferrableMemWrite { span, .. } => *span = span.in_page(page),
            Self::AtomicOp { target, .. } => target.address = page & !0xfff | target.address & 0xfff,
            _ => {}
        }
        self
    }

    /// DW of payload, 0 to 1024.
    #[inline]
    pub const fn payload_dw(&self) -> u32 {
        match self {
            Self::MemWrite { span, .. } | Self::DeferrableMemWrite { span, .. } => span.length().dw(),
            Self::IoWrite { .. } | Self::CfgWrite { .. } => 1,
            Self::Message(message) => message.payload_dw(),
            Self::Completion(completion) => completion.payload_dw(),
            Self::AtomicOp { target, .. } => target.length().dw(),
            Self::MemRead { .. } | Self::IoRead { .. } | Self::CfgRead { .. } => 0,
        }
    }

    /// The header's size without prefixes: 12 or 16 bytes.
    #[inline]
    pub const fn header_bytes(&self) -> u32 {
        let four = match self {
            Self::MemRead { span, .. }
            | Self::MemWrite { span, .. }
            | Self::DeferrableMemWrite { span, .. } => span.is_64_bit(),
            Self::AtomicOp { target, .. } => target.address >> 32 != 0,
            Self::Message(_) => true,
            _ => false,
        };
        if four { 16 } else { 12 }
    }

    /// True for a completion.
    pub const fn is_completion(&self) -> bool {
        matches!(self, Self::Completion(_))
    }

    /// True if its answer carries data: for a read or an atomic operation.
    pub const fn asks_for_data(&self) -> bool {
        match self {
            Self::MemRead { .. } | Self::IoRead { .. } | Self::CfgRead { .. } | Self::AtomicOp { .. } => true,
            Self::MemWrite { .. }
            | Self::DeferrableMemWrite { .. }
            | Self::IoWrite { .. }
            | Self::CfgWrite { .. }
            | Self::Message(_)
            | Self::Completion(_) => false,
        }
    }

    /// The name in the specification: `MRd`, `CplD`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::MemRead { locked: false, .. } => "MRd",
            Self::MemRead { locked: true, .. } => "MRdLk",
            Self::MemWrite { .. } => "MWr",
            Self::DeferrableMemWrite { .. } => "DMWr",
            Self::IoRead { .. } => "IORd",
            Self::IoWrite { .. } => "IOWr",
            Self::CfgRead { target, .. } if target.type1 => "CfgRd1",
            Self::CfgRead { .. } => "CfgRd0",
            Self::CfgWrite { target, .. } if target.type1 => "CfgWr1",
            Self::CfgWrite { .. } => "CfgWr0",
            Self::Message(message) if message.payload_dw() > 0 => "MsgD",
            Self::Message(_) => "Msg",
            Self::Completion(completion) => completion.name(),
            Self::AtomicOp { target, .. } => match target.op {
                AtomicOp::FetchAdd => "FetchAdd",
                AtomicOp::Swap => "Swap",
                AtomicOp::CompareAndSwap => "CAS",
            },
        }
    }

    /// Byte enables as the header's byte 7 carries them; 0 where the header has none.
    pub const fn enables(&self) -> ByteEnables {
        match self {
            Self::MemRead { span, .. }
            | Self::MemWrite { span, .. }
            | Self::DeferrableMemWrite { span, .. } => span.enables(),
            Self::IoRead { port, .. } | Self::IoWrite { port, .. } => ByteEnables::new(port.enables, 0),
            Self::CfgRead { target, .. } | Self::CfgWrite { target, .. } => {
                ByteEnables::new(target.enables, 0)
            }
            _ => ByteEnables::new(0, 0),
        }
    }
}
