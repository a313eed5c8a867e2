//! Messages: interrupts, power management, errors and whatever vendors define (PCIe 5.0 §2.2.8).

use super::field::TransactionId;
use crate::Error;
use core::fmt;
use tlplab_units::Bdf;

const SECTION: &str = "PCIe 5.0 §2.2.8";

/// The routing of a message: the low three bits of its type (PCIe 5.0 §2.2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routing {
    /// To the root complex.
    ToRootComplex = 0,
    /// By the address in bytes 8 to 15.
    ByAddress = 1,
    /// By the ID in bytes 8 and 9.
    ById = 2,
    /// From the root complex to everybody.
    Broadcast = 3,
    /// Ends at the receiver.
    Local = 4,
    /// Gathered on its way to the root complex.
    GatherToRootComplex = 5,
}

impl Routing {
    /// The routing that three bits stand for; 6 and 7 are reserved.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::ToRootComplex,
            1 => Self::ByAddress,
            2 => Self::ById,
            3 => Self::Broadcast,
            4 => Self::Local,
            5 => Self::GatherToRootComplex,
            _ => return None,
        })
    }
    /// Its name: `to root complex`, `by id`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ToRootComplex => "to root complex",
            Self::ByAddress => "by address",
            Self::ById => "by id",
            Self::Broadcast => "broadcast",
            Self::Local => "local",
            Self::GatherToRootComplex => "gather",
        }
    }
}

/// The payload that a message has, in DW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    None,
    Dw(u16),
    /// None, or this many DW.
    Maybe(u16),
    Any,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal, [$($routing:ident)|+], $payload:expr, $content:literal;)+) => {
        /// Message codes (PCIe 5.0 appendix F).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Code { $($(#[$doc])* $name = $value,)+ }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// The code that a byte stands for.
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte { $($value => Some(Self::$name),)+ _ => None }
            }
            /// The specification's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
            /// The routings it may have.
            pub const fn routings(self) -> &'static [Routing] {
                match self { $(Self::$name => &[$(Routing::$routing),+],)+ }
            }
            const fn payload(self) -> Payload {
                match self { $(Self::$name => $payload,)+ }
            }
            /// Bytes 8 to 15 mean something; they are reserved otherwise.
            pub const fn has_content(self) -> bool {
                match self { $(Self::$name => $content,)+ }
            }
        }
    };
}

codes! {
    /// Ends a locked transaction sequence.
    Unlock = 0x00, "Unlock", [Broadcast], Payload::None, false;
    /// ATS: forget a translation. Two DW of payload.
    InvalidateRequest = 0x01, "Invalidate_Request", [ById], Payload::Dw(2), true;
    /// ATS: translations are forgotten.
    InvalidateCompletion = 0x02, "Invalidate_Completion", [ById], Payload::None, true;
    /// ATS: make a page present.
    PageRequest = 0x04, "Page_Request", [ToRootComplex], Payload::None, true;
    /// ATS: the pages of a group are there, or not.
    PrgResponse = 0x05, "PRG_Response", [ById], Payload::None, true;
    /// Latency the device tolerates.
    LatencyTolerance = 0x10, "LTR", [Local], Payload::None, true;
    /// Optimised buffer flush and fill.
    Obff = 0x12, "OBFF", [Local], Payload::None, true;
    /// L1 is refused.
    PmActiveStateNak = 0x14, "PM_Active_State_Nak", [Local], Payload::None, false;
    /// A power management event.
    PmPme = 0x18, "PM_PME", [ToRootComplex], Payload::None, false;
    /// Power will be removed.
    PmeTurnOff = 0x19, "PME_Turn_Off", [Broadcast], Payload::None, false;
    /// Ready for it.
    PmeToAck = 0x1b, "PME_TO_Ack", [GatherToRootComplex], Payload::None, false;
    /// INTA is raised.
    AssertIntA = 0x20, "Assert_INTA", [Local], Payload::None, false;
    /// INTB is raised.
    AssertIntB = 0x21, "Assert_INTB", [Local], Payload::None, false;
    /// INTC is raised.
    AssertIntC = 0x22, "Assert_INTC", [Local], Payload::None, false;
    /// INTD is raised.
    AssertIntD = 0x23, "Assert_INTD", [Local], Payload::None, false;
    /// INTA is lowered.
    DeassertIntA = 0x24, "Deassert_INTA", [Local], Payload::None, false;
    /// INTB is lowered.
    DeassertIntB = 0x25, "Deassert_INTB", [Local], Payload::None, false;
    /// INTC is lowered.
    DeassertIntC = 0x26, "Deassert_INTC", [Local], Payload::None, false;
    /// INTD is lowered.
    DeassertIntD = 0x27, "Deassert_INTD", [Local], Payload::None, false;
    /// A corrected error.
    ErrCor = 0x30, "ERR_COR", [ToRootComplex], Payload::None, false;
    /// An uncorrected error that leaves the link reliable.
    ErrNonfatal = 0x31, "ERR_NONFATAL", [ToRootComplex], Payload::None, false;
    /// An uncorrected error that does not.
    ErrFatal = 0x33, "ERR_FATAL", [ToRootComplex], Payload::None, false;
    /// Was `Attention_Indicator_Off`; receivers ignore it.
    Ignored40 = 0x40, "Ignored_40", [Local], Payload::None, false;
    /// Was `Attention_Indicator_On`; receivers ignore it.
    Ignored41 = 0x41, "Ignored_41", [Local], Payload::None, false;
    /// Was `Attention_Indicator_Blink`; receivers ignore it.
    Ignored43 = 0x43, "Ignored_43", [Local], Payload::None, false;
    /// Was `Power_Indicator_Off`; receivers ignore it.
    Ignored44 = 0x44, "Ignored_44", [Local], Payload::None, false;
    /// Was `Power_Indicator_On`; receivers ignore it.
    Ignored45 = 0x45, "Ignored_45", [Local], Payload::None, false;
    /// Was `Power_Indicator_Blink`; receivers ignore it.
    Ignored47 = 0x47, "Ignored_47", [Local], Payload::None, false;
    /// Was `Attention_Button_Pressed`; receivers ignore it.
    Ignored48 = 0x48, "Ignored_48", [Local], Payload::None, false;
    /// The slot's power limit. One DW of payload.
    SetSlotPowerLimit = 0x50, "Set_Slot_Power_Limit", [Local], Payload::Dw(1), false;
    /// Precision time: asks.
    PtmRequest = 0x52, "PTM_Request", [Local], Payload::None, false;
    /// Precision time: `PTM_Response`, or `PTM_ResponseD` with one DW of payload.
    PtmResponse = 0x53, "PTM_Response", [Local], Payload::Maybe(1), true;
    /// Vendor-defined, type 0: an unsupported request where it is not understood.
    VendorType0 = 0x7e, "Vendor_Type_0", [ToRootComplex | ById | Broadcast | Local], Payload::Any, true;
    /// Vendor-defined, type 1: ignored where it is not understood.
    VendorType1 = 0x7f, "Vendor_Type_1", [ToRootComplex | ById | Broadcast | Local], Payload::Any, true;
}

impl Code {
    /// Vendor-defined, of either type.
    pub const fn is_vendor_defined(self) -> bool {
        matches!(self, Self::VendorType0 | Self::VendorType1)
    }
    /// One of those that receivers ignore: hot-plug messages of PCIe 1.0a.
    pub const fn is_ignored(self) -> bool {
        matches!(self as u8, 0x40..=0x48)
    }
    /// True if a traffic class other than 0 is allowed: in vendor-defined, ATS and ignored messages. For all others PCIe 5.0 §2.2.8.1 to
    /// §2.2.8.10 demand TC 0, and a receiver takes anything else for malformed.
    pub const fn may_have_traffic_class(self) -> bool {
        self.is_vendor_defined() || self.is_ignored() || matches!(self as u8, 0x01..=0x05)
    }
}

/// A message: its code, its routing, and bytes 8 to 15 of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    id: TransactionId,
    content: [u8; 8],
    payload_dw: u16,
    code: Code,
    routing: Routing,
}

impl Message {
    /// A message with any code. Contents of codes that have none are zero on the wire.
    ///
    /// # Errors
    /// A routing or a payload (in DW) that the code does not have.
    pub fn new(
        id: TransactionId,
        code: Code,
        routing: Routing,
        content: [u8; 8],
        payload_dw: u32,
    ) -> Result<Self, Error> {
        if !code.routings().contains(&routing) {
            return Err(Error::value("Type", SECTION, routing as u64, "a routing this message may have"));
        }
        let fits = match code.payload() {
            Payload::None => payload_dw == 0,
            Payload::Dw(dw) => payload_dw == u32::from(dw),
            Payload::Maybe(dw) => payload_dw == 0 || payload_dw == u32::from(dw),
            Payload::Any => payload_dw <= 1024,
        };
        if !fits {
            return Err(Error::value(
                "Length",
                SECTION,
                payload_dw.into(),
                "the payload this message has, in DW",
            ));
        }
        let content = if code.has_content() { content } else { [0; 8] };
        Ok(Self { id, content, payload_dw: payload_dw as u16, code, routing })
    }

    /// A message that its code determines entirely: INTx, PM, ERR, Unlock, `PTM_Request`, `Set_Slot_Power_Limit` (whose value
    /// is the payload).
    ///
    /// # Errors
    /// A code that needs contents or a choice of routing.
    pub fn simple(requester: Bdf, code: Code) -> Result<Self, Error> {
        if code.has_content() {
            return Err(Error::value("Message Code", SECTION, code as u64, "a code without contents"));
        }
        let payload_dw = match code.payload() {
            Payload::Dw(dw) => u32::from(dw),
            _ => 0,
        };
        let id = TransactionId { requester, ..TransactionId::default() };
        Self::new(id, code, code.routings()[0], [0; 8], payload_dw)
    }

    /// A vendor-defined message of type 0 or 1 (`code`), to the function `target` where it is routed by ID, with the vendor's four bytes and
    /// `payload_dw` DW of payload (PCIe 5.0 §2.2.8.6).
    ///
    /// # Errors
    /// A code that is not vendor-defined, a routing it cannot have, a target without routing by ID or the reverse.
    pub fn vendor(
        id: TransactionId,
        code: Code,
        (routing, target): (Routing, Option<Bdf>),
        vendor_id: u16,
        body: [u8; 4],
        payload_dw: u32,
    ) -> Result<Self, Error> {
        let section = "PCIe 5.0 §2.2.8.6";
        if !code.is_vendor_defined() {
            return Err(Error::value("Message Code", section, code as u64, "a vendor-defined message"));
        }
        if target.is_some() != (routing == Routing::ById) {
            return Err(Error::conflict(
                "Destination ID",
                section,
                "a target goes with routing by ID, and only with it",
            ));
        }
        let mut content = [0; 8];
        content[..2].copy_from_slice(&target.unwrap_or_default().0.to_be_bytes());
        content[2..4].copy_from_slice(&vendor_id.to_be_bytes());
        content[4..].copy_from_slice(&body);
        Self::new(id, code, routing, content, payload_dw)
    }

    /// `LTR`: the latencies that the device tolerates when it does not snoop, and when it does (PCIe 5.0 §2.2.8.8, §6.18).
    pub fn latency_tolerance(requester: Bdf, no_snoop: Option<Latency>, snoop: Option<Latency>) -> Self {
        let mut content = [0; 8];
        content[4..6].copy_from_slice(&Latency::field(no_snoop).to_be_bytes());
        content[6..].copy_from_slice(&Latency::field(snoop).to_be_bytes());
        let id = TransactionId { requester, ..TransactionId::default() };
        Self { id, code: Code::LatencyTolerance, routing: Routing::Local, content, payload_dw: 0 }
    }

    /// `PTM_Response` with the master's time in nanoseconds (PCIe 5.0 §2.2.8.10).
    pub fn ptm_response(requester: Bdf, master_time_ns: u64) -> Self {
        let id = TransactionId { requester, ..TransactionId::default() };
        let content = master_time_ns.to_be_bytes();
        Self { id, code: Code::PtmResponse, routing: Routing::Local, content, payload_dw: 0 }
    }
    /// `PTM_ResponseD`: as [`ptm_response`](Self::ptm_response), with the propagation delay as payload.
    pub fn ptm_response_with_delay(requester: Bdf, master_time_ns: u64) -> Self {
        Self { payload_dw: 1, ..Self::ptm_response(requester, master_time_ns) }
    }

    /// No-snoop and snoop latency of an `LTR` message.
    pub fn latencies(&self) -> Option<(Option<Latency>, Option<Latency>)> {
        let [.., a, b, c, d] = self.content;
        (self.code == Code::LatencyTolerance).then(|| {
            (Latency::from_field(u16::from_be_bytes([a, b])), Latency::from_field(u16::from_be_bytes([c, d])))
        })
    }
    /// The vendor ID of a vendor-defined message.
    pub fn vendor_id(&self) -> Option<u16> {
        let [_, _, high, low, ..] = self.content;
        self.code.is_vendor_defined().then(|| u16::from_be_bytes([high, low]))
    }
    /// The master time of a `PTM_Response` in nanoseconds.
    pub fn ptm_master_time_ns(&self) -> Option<u64> {
        (self.code == Code::PtmResponse).then(|| u64::from_be_bytes(self.content))
    }

    /// Requester, and the tag, which means nothing.
    pub const fn id(&self) -> TransactionId {
        self.id
    }
    /// The code.
    pub const fn code(&self) -> Code {
        self.code
    }
    /// The routing.
    pub const fn routing(&self) -> Routing {
        self.routing
    }
    /// Bytes 8 to 15 of the header.
    pub const fn content(&self) -> [u8; 8] {
        self.content
    }
    /// Payload in DW, 0 to 1024.
    pub const fn payload_dw(&self) -> u32 {
        self.payload_dw as u32
    }
    /// The target of a message routed by ID; `None` for other routings.
    pub const fn target(&self) -> Option<Bdf> {
        match self.routing {
            Routing::ById => Some(Bdf(u16::from_be_bytes([self.content[0], self.content[1]]))),
            _ => None,
        }
    }
}

/// A latency as `LTR` messages and registers write it: ten bits times a power of 32 nanoseconds (PCIe 5.0 §6.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Latency {
    value: u16,
    scale: u8,
}

impl Latency {
    /// `value` (0 to 1023) times 32 to the power of `scale` (0 to 5) nanoseconds.
    ///
    /// # Errors
    /// A value or scale out of range.
    pub const fn new(value: u16, scale: u8) -> Result<Self, Error> {
        let section = "PCIe 5.0 §6.18";
        if value > 1023 {
            return Err(Error::value("LatencyValue", section, value as u64, "a value of ten bits"));
        }
        if scale > 5 {
            return Err(Error::value("LatencyScale", section, scale as u64, "a scale of 0 to 5"));
        }
        Ok(Self { value, scale })
    }
    /// The latency in nanoseconds.
    pub const fn ns(self) -> u64 {
        (self.value as u64) << (5 * self.scale as u32)
    }
    fn field(latency: Option<Self>) -> u16 {
        latency.map_or(0, |l| 0x8000 | u16::from(l.scale) << 10 | l.value)
    }
    /// `None` where there is no requirement, or a scale that is not permitted.
    fn from_field(field: u16) -> Option<Self> {
        if field & 0x8000 == 0 {
            return None;
        }
        Self::new(field & 0x3ff, (field >> 10 & 7) as u8).ok()
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.name())?;
        match self.target() {
            Some(target) => write!(f, " to {target}"),
            None => Ok(()),
        }
    }
}
