//! A TLP as a line of text.

use super::completion::Completion;
use super::field::{AddressType, Attributes, CompletionStatus};
use super::kind::{AtomicTarget, CfgTarget, IoPort, Kind};
use super::message::Message;
use super::repr::Repr;
use super::{ByteEnables, Span};
use core::fmt::{self, Display, Formatter};

/// A line as packet printers show it, lengths in DW:
/// `MRd, len 16, requester 64:00.0, tag 0x00, last 0xf, first 0xf, addr 0x8f8e0000, RO`. With `{:#}` in the very words of NetTLP's tcpdump
/// (NSDI 2020, figure 15): `Addr`, `bc`, `success`.
impl Display for Repr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Kind::Completion(completion) = self.kind() {
            write_completion(f, completion)?;
        } else {
            let id = self.transaction_id();
            match self.kind() {
                Kind::MemRead { span, .. } => write!(f, ", len {}", span.length().dw())?,
                Kind::Message(message) => write!(f, ", {message}")?,
                kind if kind.payload_dw() > 0 => write!(f, ", len {}", kind.payload_dw())?,
                _ => {}
            }
            write!(f, ", requester {}, tag {}", id.requester, id.tag)?;
            match self.kind() {
                Kind::MemRead { span, .. }
                | Kind::MemWrite { span, .. }
                | Kind::DeferrableMemWrite { span, .. } => write_span(f, span)?,
                Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => write_port(f, port)?,
                Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => write_cfg(f, target)?,
                Kind::AtomicOp { target, .. } => write_atomic(f, target)?,
                Kind::Message(message) => write_message(f, message)?,
                Kind::Completion(_) => {}
            }
        }
        write_attributes(f, self.attributes())?;
        match self.prefixes().is_empty() {
            true => Ok(()),
            false => write!(f, ", prefixes {:?}", self.prefixes()),
        }
    }
}

fn write_enables(f: &mut Formatter<'_>, enables: ByteEnables) -> fmt::Result {
    write!(f, ", last {:#x}, first {:#x}", enables.last(), enables.first())
}

fn write_span(f: &mut Formatter<'_>, span: &Span) -> fmt::Result {
    write_enables(f, span.enables())?;
    write_address(f, span.address())
}

fn write_address(f: &mut Formatter<'_>, address: u64) -> fmt::Result {
    write!(f, ", {} {address:#010x}", if f.alternate() { "Addr" } else { "addr" })
}

fn write_port(f: &mut Formatter<'_>, port: &IoPort) -> fmt::Result {
    let word = if f.alternate() { "Addr" } else { "addr" };
    write!(f, ", first {:#x}, {word} {:#06x}", port.enables(), port.address())
}

fn write_cfg(f: &mut Formatter<'_>, target: &CfgTarget) -> fmt::Result {
    write!(f, ", first {:#x}, to {}, reg {:#05x}", target.enables(), target.function(), target.register())
}

fn write_atomic(f: &mut Formatter<'_>, target: &AtomicTarget) -> fmt::Result {
    write!(f, ", operand {}", target.operand_bytes())?;
    write_address(f, target.address())
}

fn write_message(f: &mut Formatter<'_>, message: &Message) -> fmt::Result {
    if !message.code().has_content() {
        return Ok(());
    }
    f.write_str(", content ")?;
    message.content().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn write_completion(f: &mut Formatter<'_>, completion: &Completion) -> fmt::Result {
    if let Some(length) = completion.length() {
        write!(f, ", len {}", length.dw())?;
    }
    let (status, byte_count) = match (f.alternate(), completion.status()) {
        (true, CompletionStatus::Success) => ("success", "bc"),
        (true, status) => (status.name(), "bc"),
        (false, status) => (status.name(), "byte count"),
    };
    write!(f, ", completer {}, {status}", completion.completer())?;
    if completion.is_byte_count_modified() {
        f.write_str(", BCM")?;
    }
    write!(f, ", {byte_count} {}", completion.byte_count())?;
    write!(f, ", requester {}, tag {}", completion.id().requester, completion.id().tag)?;
    write!(f, ", lowaddr {:#04x}", completion.lower_address())
}

fn write_attributes(f: &mut Formatter<'_>, attributes: &Attributes) -> fmt::Result {
    if attributes.tc.value() != 0 {
        write!(f, ", TC{}", attributes.tc.value())?;
    }
    let flags = [
        (attributes.relaxed_ordering, ", RO"),
        (attributes.id_based_ordering, ", IDO"),
        (attributes.no_snoop, ", NS"),
        (attributes.poisoned, ", poisoned"),
        (attributes.digest, ", digest"),
        (attributes.at == AddressType::TranslationRequest, ", translation request"),
        (attributes.at == AddressType::Translated, ", translated"),
    ];
    for (_, name) in flags.into_iter().filter(|(on, _)| *on) {
        f.write_str(name)?;
    }
    match attributes.hints {
        Some(hints) => write!(f, ", hint {:?}, steering tag {:#04x}", hints.hint, hints.steering_tag),
        None => Ok(()),
    }
}
