//! From bytes to meaning.

use super::completion::Completion;
use super::field::{
    AddressType, Attributes, ByteEnables, CompletionStatus, DwLength, Hint, ProcessingHint, Span,
    TransactionId,
};
use super::kind::{AtomicOp, AtomicTarget, CfgTarget, CfgType, IoPort, Kind};
use super::message::{Code, Message, Routing};
use super::packet::Packet;
use super::prefix::Prefixes;
use super::repr::Repr;
use crate::Error;
use tlplab_units::{Bdf, Tag, TrafficClass};

/// The width of tags: a property of the functions at both ends that no header tells (PCIe 5.0 §2.2.6.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TagWidth {
    /// Extended Tag is disabled: the upper three bits must be zero.
    Five,
    /// Extended Tag is enabled. T9 and T8 are reserved.
    Eight,
    /// 10-bit tags are enabled.
    #[default]
    Ten,
}

/// Settings of a parse that the bytes themselves do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ParseOptions {
    /// Width of tags.
    pub tags: TagWidth,
    /// Accept bytes that end before the payload does, as captures with a snap length have them. The header must be whole.
    pub truncated: bool,
}

impl Repr {
    /// Reads a whole TLP with tags of ten bits.
    ///
    /// # Errors
    /// The first rule of PCIe 5.0 §2.2 that the bytes break. Reserved bits, listed in [the module](super), are ignored, as receivers
    /// must.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Error> {
        Self::parse_with(packet, ParseOptions::default())
    }

    /// Reads a TLP.
    ///
    /// # Errors
    /// As [`Repr::parse`].
    pub fn parse_with(packet: &Packet<'_>, options: ParseOptions) -> Result<Self, Error> {
        let base = packet.header_offset();
        let fields = Fields::read(packet)?;
        let kind = read_kind(&fields, options).map_err(|error| locate(error, base))?;
        if !options.truncated {
            packet.check_len()?;
        }
        let attributes = read_attributes(&fields, &kind).map_err(|error| locate(error, base))?;
        let mut prefixes = Prefixes::NONE;
        for (index, prefix) in packet.prefixes().enumerate() {
            prefix.and_then(|prefix| prefixes.push(prefix)).map_err(|error| error.at(4 * index))?;
        }
        let repr = Self::from(kind).with_attributes(attributes).map_err(|error| locate(error, base))?;
        Ok(repr.with_prefixes(prefixes))
    }
}

/// The header's bytes, known to be all there, with zeros behind a header of three DW.
struct Fields {
    bytes: [u8; 16],
}

impl Fields {
    fn read(packet: &Packet<'_>) -> Result<Self, Error> {
        let (base, have) = (packet.header_offset(), packet.bytes().len());
        let needed = base + packet.header_len().unwrap_or(12);
        let section = "PCIe 5.0 §2.2.1";
        let Some(header) = packet.bytes().get(base..needed) else {
            return Err(Error::truncated("TLP Header", section, needed, have).at(have));
        };
        let mut bytes = [0; 16];
        bytes[..header.len()].copy_from_slice(header);
        Ok(Self { bytes })
    }
    fn half(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }
    fn four_dw(&self) -> bool {
        self.bytes[0] & 0x20 != 0
    }
    fn length(&self) -> DwLength {
        DwLength::from_field(self.half(2))
    }
    fn enables(&self) -> ByteEnables {
        ByteEnables::from_byte(self.bytes[7])
    }
    fn hinted(&self) -> bool {
        self.bytes[1] & 1 != 0
    }
    fn low_address_byte(&self) -> u8 {
        self.bytes[if self.four_dw() { 15 } else { 11 }]
    }
    fn content(&self) -> [u8; 8] {
        let [.., a, b, c, d, e, f, g, h] = self.bytes;
        [a, b, c, d, e, f, g, h]
    }
    fn tag(&self, at: usize, width: TagWidth) -> Result<Tag, Error> {
        let low = self.bytes[at];
        let high = self.bytes[1] >> 6 & 2 | self.bytes[1] >> 3 & 1;
        let tag = match width {
            TagWidth::Five if low > 31 => {
                let wanted = "a tag of five bits, all that is enabled";
                return Err(Error::value("Tag", "PCIe 5.0 §2.2.6.2", low.into(), wanted).at(at));
            }
            TagWidth::Five | TagWidth::Eight => u16::from(low),
            TagWidth::Ten => u16::from(high) << 8 | u16::from(low),
        };
        Ok(Tag::new(tag).unwrap_or_default())
    }
    fn request_id(&self, width: TagWidth) -> Result<TransactionId, Error> {
        Ok(TransactionId::new(Bdf(self.half(4)), self.tag(6, width)?))
    }
    /// The tag of a posted request means nothing, so it may have any width.
    fn posted_id(&self, width: TagWidth) -> Result<TransactionId, Error> {
        let width = if width == TagWidth::Five { TagWidth::Eight } else { width };
        self.request_id(width)
    }
    fn address(&self) -> Result<u64, Error> {
        let words = u64::from_be_bytes(self.content());
        if !self.four_dw() {
            return Ok(words >> 32 & !3);
        }
        if words >> 32 == 0 {
            let why = "an address below 4 GiB needs the header of three DW";
            return Err(Error::conflict("Fmt", "PCIe 5.0 §2.2.4.1", why));
        }
        Ok(words & !3)
    }
    fn span(&self) -> Result<Span, Error> {
        Span::with_enables(self.address()?, self.length(), self.enables())
    }
    /// The span of a read, whose byte enables make room for the steering tag where there is a hint.
    fn read_span(&self) -> Result<Span, Error> {
        if self.hinted() {
            Span::with_enables(self.address()?, self.length(), ByteEnables::full(self.length()))
        } else {
            self.span()
        }
    }
    /// IO and configuration requests: one DW, no last byte enables.
    fn single_dw(&self) -> Result<u8, Error> {
        if self.length() != DwLength::ONE {
            let wanted = "1, the length of all IO and configuration requests";
            return Err(Error::value("Length", "PCIe 5.0 §2.2.7", self.length().dw().into(), wanted));
        }
        if self.enables().last() != 0 {
            let wanted = "0, which a request of one DW has";
            return Err(Error::value("Last DW BE", "PCIe 5.0 §2.2.7", self.enables().last().into(), wanted));
        }
        Ok(self.enables().first())
    }
    fn port(&self) -> Result<IoPort, Error> {
        let enables = self.single_dw()?;
        IoPort::with_enables(self.address()? as u32, enables)
    }
    fn target(&self) -> Result<CfgTarget, Error> {
        let enables = self.single_dw()?;
        let of = if self.bytes[0] & 1 == 0 { CfgType::Type0 } else { CfgType::Type1 };
        CfgTarget::new(Bdf(self.half(8)), self.half(10) & 0xffc, enables, of)
    }
}

fn read_kind(fields: &Fields, options: ParseOptions) -> Result<Kind, Error> {
    let tags = options.tags;
    let fmt_type = fields.bytes[0];
    Ok(match fmt_type {
        0x00 | 0x20 | 0x01 | 0x21 => Kind::MemRead {
            id: fields.request_id(tags)?,
            span: fields.read_span()?,
            locked: fmt_type & 1 != 0,
        },
        0x40 | 0x60 => Kind::MemWrite { id: fields.posted_id(tags)?, span: fields.span()? },
        0x5b | 0x7b => Kind::DeferrableMemWrite { id: fields.request_id(tags)?, span: fields.span()? },
        0x02 => Kind::IoRead { id: fields.request_id(tags)?, port: fields.port()? },
        0x42 => Kind::IoWrite { id: fields.request_id(tags)?, port: fields.port()? },
        0x04 | 0x05 => Kind::CfgRead { id: fields.request_id(tags)?, target: fields.target()? },
        0x44 | 0x45 => Kind::CfgWrite { id: fields.request_id(tags)?, target: fields.target()? },
        0x30..=0x37 | 0x70..=0x77 => Kind::Message(read_message(fields, tags)?),
        0x0a | 0x4a | 0x0b | 0x4b => Kind::Completion(read_completion(fields, tags)?),
        0x4c..=0x4e | 0x6c..=0x6e => {
            let op = match fmt_type & 3 {
                0 => AtomicOp::FetchAdd,
                1 => AtomicOp::Swap,
                _ => AtomicOp::CompareAndSwap,
            };
            let operands = if op == AtomicOp::CompareAndSwap { 2 } else { 1 };
            let length = fields.length();
            if !length.dw().is_multiple_of(operands) {
                let wanted = "two operands of the same size";
                return Err(Error::value("Length", "PCIe 5.0 §2.2.7", length.dw().into(), wanted));
            }
            let target = AtomicTarget::new(op, fields.address()?, length.bytes() / operands)?;
            Kind::AtomicOp { id: fields.request_id(tags)?, target }
        }
        _ => {
            let wanted = "a TLP type of table 2-3";
            return Err(Error::value("Fmt/Type", "PCIe 5.0 §2.2.1", fmt_type.into(), wanted));
        }
    })
}

fn read_message(fields: &Fields, tags: TagWidth) -> Result<Message, Error> {
    let section = "PCIe 5.0 §2.2.8";
    let bits = fields.bytes[0] & 7;
    let routing = Routing::from_bits(bits)
        .ok_or_else(|| Error::value("Type", section, bits.into(), "a defined routing"))?;
    let byte = fields.bytes[7];
    let code = Code::from_byte(byte)
        .ok_or_else(|| Error::value("Message Code", section, byte.into(), "a defined message code"))?;
    let payload = if fields.bytes[0] & 0x40 != 0 { fields.length().dw() } else { 0 };
    Message::new(fields.posted_id(tags)?, code, routing, fields.content(), payload)
}

fn read_completion(fields: &Fields, tags: TagWidth) -> Result<Completion, Error> {
    let section = "PCIe 5.0 §2.2.9";
    let (completer, half) = (Bdf(fields.half(4)), fields.half(6));
    let id = TransactionId::new(Bdf(fields.half(8)), fields.tag(10, tags)?);
    let bits = (half >> 13) as u8;
    let wanted = "a defined status (receivers treat it as UR)";
    let status = CompletionStatus::from_bits(bits)
        .ok_or_else(|| Error::value("Completion Status", section, bits.into(), wanted))?;
    let byte_count = match half & 0xfff {
        0 => 4096,
        count => u32::from(count),
    };
    let lower_address = fields.bytes[11] & 0x7f;
    let completion = if fields.bytes[0] & 0x40 == 0 {
        Completion::new(completer, id, status, byte_count, lower_address)?
    } else if status == CompletionStatus::Success {
        Completion::with_data(completer, id, byte_count, lower_address, fields.length())?
    } else {
        let why = "only a successful completion has data";
        return Err(Error::conflict("Completion Status", section, why));
    };
    let completion = if fields.bytes[0] & 1 != 0 { completion.locked() } else { completion };
    Ok(if half & 0x1000 != 0 { completion.byte_count_modified() } else { completion })
}

/// Takes the attributes that this kind of TLP can have, and judges those that must be zero; the rest is reserved.
fn read_attributes(fields: &Fields, kind: &Kind) -> Result<Attributes, Error> {
    let [_, byte1, byte2, ..] = fields.bytes;
    let io_or_cfg = matches!(
        kind,
        Kind::IoRead { .. } | Kind::IoWrite { .. } | Kind::CfgRead { .. } | Kind::CfgWrite { .. }
    );
    let plain_message = matches!(kind, Kind::Message(message) if !message.code().is_vendor_defined());
    let at_bits = byte2 >> 2 & 3;
    let at = match at_bits {
        _ if !kind.is_memory() && !io_or_cfg => AddressType::Untranslated,
        0 => AddressType::Untranslated,
        1 => AddressType::TranslationRequest,
        2 => AddressType::Translated,
        _ => return Err(Error::value("AT", "PCIe 5.0 §2.2.4.1", at_bits.into(), "a defined address type")),
    };
    let hints = (kind.is_memory() && fields.hinted()).then(|| ProcessingHint {
        hint: match fields.low_address_byte() & 3 {
            0 => Hint::Bidirectional,
            1 => Hint::Requester,
            2 => Hint::Target,
            _ => Hint::TargetWithPriority,
        },
        steering_tag: if matches!(kind, Kind::MemWrite { .. }) { fields.bytes[6] } else { fields.bytes[7] },
    });
    Ok(Attributes {
        tc: TrafficClass::new(byte1 >> 4 & 7).unwrap_or_default(),
        relaxed_ordering: byte2 & 0x20 != 0 && !plain_message,
        id_based_ordering: byte1 & 4 != 0 && !io_or_cfg,
        no_snoop: byte2 & 0x10 != 0 && !plain_message,
        at,
        poisoned: byte2 & 0x40 != 0,
        digest: byte2 & 0x80 != 0,
        hints,
    })
}

/// Adds the offset of the header field in the bytes to its error.
fn locate(error: Error, base: usize) -> Error {
    let offset = match (error.offset, error.field) {
        (Some(offset), _) => usize::from(offset),
        (None, "TC" | "TH") => 1,
        (None, "Length" | "AT" | "Attr" | "EP") => 2,
        (None, "Completion Status" | "Byte Count" | "Tag") => 6,
        (None, "First DW BE" | "Last DW BE" | "Message Code") => 7,
        (None, "Address") => 8,
        (None, "Register Number") => 10,
        (None, "Lower Address") => 11,
        (None, _) => 0,
    };
    error.at(base + offset)
}
