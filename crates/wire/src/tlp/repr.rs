//! A TLP that can only be valid.

use super::completion::Completion;
use super::field::{AddressType, Attributes, CompletionStatus, DwLength, Span, TransactionId};
use super::kind::{AtomicOp, AtomicTarget, CfgTarget, IoPort, Kind};
use super::message::{Code, Message};
use super::prefix::Prefixes;
use crate::Error;
use tlplab_units::{Bdf, FcClass, Tag, TrafficClass};

/// A TLP without its payload. `Copy`, one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Repr {
    kind: Kind,
    attributes: Attributes,
    prefixes: Prefixes,
}

impl From<Kind> for Repr {
    fn from(kind: Kind) -> Self {
        Self { kind, attributes: Attributes::default(), prefixes: Prefixes::NONE }
    }
}

impl Repr {
    /// `MRd` of `len` bytes at byte address `addr`; 0 bytes is a zero-length read, a flush.
    ///
    /// # Errors
    /// More than 4096 bytes, or a 4 KiB boundary inside.
    pub fn mem_read(id: TransactionId, addr: u64, len: u32) -> Result<Self, Error> {
        Ok(Kind::MemRead { id, span: Span::new(addr, len)?, locked: false }.into())
    }
    /// `MWr` of `len` bytes at byte address `addr`.
    ///
    /// # Errors
    /// As [`Repr::mem_read`].
    pub fn mem_write(id: TransactionId, addr: u64, len: u32) -> Result<Self, Error> {
        Ok(Kind::MemWrite { id, span: Span::new(addr, len)? }.into())
    }
    /// `DMWr` of `len` bytes at byte address `addr`.
    ///
    /// # Errors
    /// As [`Repr::mem_read`].
    pub fn deferrable_mem_write(id: TransactionId, addr: u64, len: u32) -> Result<Self, Error> {
        Ok(Kind::DeferrableMemWrite { id, span: Span::new(addr, len)? }.into())
    }
    /// The memory write of 4 bytes that is an MSI or MSI-X interrupt (PCIe 5.0 §6.1.4); its data is the payload.
    ///
    /// # Errors
    /// An address that is no multiple of 4.
    pub fn msi(requester: Bdf, address: u64) -> Result<Self, Error> {
        let span = Span::with_enables(address, DwLength::ONE, super::ByteEnables::new(15, 0))?;
        Ok(Kind::MemWrite { id: TransactionId::new(requester, Tag::default()), span }.into())
    }
    /// `IORd` of `len` bytes (1 to 4) within one DW.
    ///
    /// # Errors
    /// The bytes do not lie in one DW.
    pub fn io_read(id: TransactionId, addr: u32, len: u32) -> Result<Self, Error> {
        Ok(Kind::IoRead { id, port: IoPort::new(addr, len)? }.into())
    }
    /// `IOWr` of `len` bytes (1 to 4) within one DW.
    ///
    /// # Errors
    /// The bytes do not lie in one DW.
    pub fn io_write(id: TransactionId, addr: u32, len: u32) -> Result<Self, Error> {
        Ok(Kind::IoWrite { id, port: IoPort::new(addr, len)? }.into())
    }
    /// `CfgRd0` or `CfgRd1`.
    pub fn cfg_read(id: TransactionId, target: CfgTarget) -> Self {
        Kind::CfgRead { id, target }.into()
    }
    /// `CfgWr0` or `CfgWr1`.
    pub fn cfg_write(id: TransactionId, target: CfgTarget) -> Self {
        Kind::CfgWrite { id, target }.into()
    }
    /// `FetchAdd`, `Swap` or `CAS` on `operand` bytes.
    ///
    /// # Errors
    /// As [`AtomicTarget::new`].
    pub fn atomic(id: TransactionId, op: AtomicOp, address: u64, operand: u32) -> Result<Self, Error> {
        Ok(Kind::AtomicOp { id, target: AtomicTarget::new(op, address, operand)? }.into())
    }
    /// A message that its code determines entirely: INTx, PM, ERR, Unlock and the like.
    ///
    /// # Errors
    /// As [`Message::simple`].
    pub fn message(requester: Bdf, code: Code) -> Result<Self, Error> {
        Ok(Kind::Message(Message::simple(requester, code)?).into())
    }
    /// `Cpl`: without data.
    ///
    /// # Errors
    /// As [`Completion::new`].
    pub fn completion(
        completer: Bdf,
        id: TransactionId,
        status: CompletionStatus,
        byte_count: u32,
        lower_address: u8,
    ) -> Result<Self, Error> {
        Ok(Kind::Completion(Completion::new(completer, id, status, byte_count, lower_address)?).into())
    }
    /// `CplD`: `data_bytes` bytes (1 to 4096) of the `byte_count` that remain, the first of them at `lower_address`.
    ///
    /// # Errors
    /// As [`Completion::with_data`].
    pub fn completion_with_data(
        completer: Bdf,
        id: TransactionId,
        byte_count: u32,
        lower_address: u8,
        data_bytes: u32,
    ) -> Result<Self, Error> {
        let length =
            DwLength::new(((u32::from(lower_address) & 3) + data_bytes).div_ceil(4)).ok_or_else(|| {
                Error::value("Length", "PCIe 5.0 §2.2.2", data_bytes.into(), "a payload of 1 to 4096 bytes")
            })?;
        Ok(Kind::Completion(Completion::with_data(completer, id, byte_count, lower_address, length)?).into())
    }

    /// The kind of TLP, with its fields.
    #[inline]
    pub const fn kind(&self) -> &Kind {
        &self.kind
    }
    /// Traffic class, ordering and the rest.
    #[inline]
    pub const fn attributes(&self) -> &Attributes {
        &self.attributes
    }
    /// The TLP prefixes before the header.
    #[inline]
    pub const fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }
    /// The same with other attributes. A write with a processing hint loses its tag, whose place the steering tag takes.
    ///
    /// # Errors
    /// An attribute that this kind of TLP cannot have.
    pub fn with_attributes(self, attributes: Attributes) -> Result<Self, Error> {
        let mut kind = self.kind;
        check_attributes(&kind, &attributes)?;
        if let (Kind::MemWrite { id, .. }, Some(_)) = (&mut kind, attributes.hints) {
            id.tag = Tag::default();
        }
        Ok(Self { kind, attributes, ..self })
    }
    /// The same with another requester and tag, as a bridge takes a request over, or gives its completion back. A message keeps its own.
    pub const fn with_transaction_id(self, id: TransactionId) -> Self {
        Self { kind: self.kind.with_transaction_id(id), ..self }
    }
    /// A memory request for the same bytes of another page of 4 KiB, as a translation moves it; any other TLP as it is.
    pub const fn in_page(self, page: u64) -> Self {
        Self { kind: self.kind.in_page(page), ..self }
    }
    /// The same with other prefixes.
    pub const fn with_prefixes(self, prefixes: Prefixes) -> Self {
        Self { prefixes, ..self }
    }

    /// The class of flow control and of the ordering table.
    #[inline]
    pub const fn fc_class(&self) -> FcClass {
        self.kind.fc_class()
    }
    /// Header and prefixes, in bytes.
    #[inline]
    pub const fn header_bytes(&self) -> u32 {
        self.kind.header_bytes() + self.prefixes.bytes()
    }
    /// Payload in DW, 0 to 1024.
    #[inline]
    pub const fn payload_dw(&self) -> u32 {
        self.kind.payload_dw()
    }
    /// Payload in bytes on the wire: whole DW.
    #[inline]
    pub const fn payload_bytes(&self) -> u32 {
        self.kind.payload_dw() * 4
    }
    /// Prefixes, header, payload and digest in bytes; framing, sequence number and LCRC are the data link layer's (8 bytes).
    #[inline]
    pub const fn wire_bytes(&self) -> u32 {
        self.header_bytes() + self.payload_bytes() + self.attributes.digest as u32 * 4
    }
    /// Data credits: payload in units of 16 bytes, rounded up (PCIe 5.0 §2.6.1). The header costs one header credit.
    #[inline]
    pub const fn data_credits(&self) -> u16 {
        self.kind.payload_dw().div_ceil(4) as u16
    }
    /// Requester and tag: of the request, or of the request that is completed.
    #[inline]
    pub const fn transaction_id(&self) -> TransactionId {
        self.kind.transaction_id()
    }
    /// The name in the specification: `MRd`, `MWr`, `CplD`.
    pub const fn name(&self) -> &'static str {
        self.kind.name()
    }
}

/// Checks that a TLP of this kind may have the attributes (PCIe 5.0 §2.2.6 to §2.2.8).
fn check_attributes(kind: &Kind, attributes: &Attributes) -> Result<(), Error> {
    if attributes.poisoned && kind.payload_dw() == 0 {
        return Err(Error::conflict("EP", "PCIe 5.0 §2.7.2", "only a TLP with data can be poisoned"));
    }
    check_address_type(kind, attributes.at)?;
    if attributes.hints.is_some() {
        check_hints(kind)?;
    }
    match kind {
        Kind::IoRead { .. } | Kind::IoWrite { .. } | Kind::CfgRead { .. } | Kind::CfgWrite { .. } => {
            if attributes.tc != TrafficClass::ZERO {
                return Err(Error::conflict(
                    "TC",
                    "PCIe 5.0 §2.2.7",
                    "IO and configuration requests have TC 0",
                ));
            }
            if attributes.relaxed_ordering || attributes.no_snoop || attributes.id_based_ordering {
                let why = "IO and configuration requests have no attributes";
                return Err(Error::conflict("Attr", "PCIe 5.0 §2.2.7", why));
            }
            Ok(())
        }
        Kind::Message(message) if !message.code().is_vendor_defined() => {
            if attributes.tc != TrafficClass::ZERO && !message.code().may_have_traffic_class() {
                return Err(Error::conflict("TC", "PCIe 5.0 §2.2.8", "this message has TC 0"));
            }
            if attributes.relaxed_ordering || attributes.no_snoop {
                let why = "RO and NS are reserved in this message";
                return Err(Error::conflict("Attr", "PCIe 5.0 §2.2.8", why));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_address_type(kind: &Kind, at: AddressType) -> Result<(), Error> {
    let section = "PCIe 5.0 §2.2.4.1";
    match at {
        AddressType::Untranslated => Ok(()),
        _ if !kind.is_memory() => {
            Err(Error::conflict("AT", section, "only memory requests and atomics have an address type"))
        }
        AddressType::TranslationRequest if !matches!(kind, Kind::MemRead { .. }) => {
            Err(Error::conflict("AT", section, "only a memory read asks for a translation"))
        }
        _ => Ok(()),
    }
}

fn check_hints(kind: &Kind) -> Result<(), Error> {
    let section = "PCIe 5.0 §2.2.7.1";
    match kind {
        Kind::MemWrite { .. } | Kind::AtomicOp { .. } => Ok(()),
        Kind::MemRead { span, .. } if span.enables() == super::ByteEnables::full(span.length()) => Ok(()),
        Kind::MemRead { .. } => Err(Error::conflict("TH", section, "a read with a hint reads whole DW")),
        Kind::DeferrableMemWrite { .. } => {
            Err(Error::conflict("TH", section, "a deferrable write has no room for a steering tag"))
        }
        _ => Err(Error::conflict("TH", section, "only memory requests and atomics carry hints")),
    }
}
