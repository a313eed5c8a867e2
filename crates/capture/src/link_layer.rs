//! Reads what is not a TLP in captures of simulated links, and the names of their interfaces.

use crate::{Reason, What};
use tlplab_trace::linkunit::{DLLP, FLIT, SUFFIX};
use tlplab_wire::dllp;

/// `ssd → sw0`: the sender and the receiver in the name of an interface.
pub(crate) fn split_name(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(SUFFIX).unwrap_or(name).split_once(" → ")
}

/// Reads a frame of LINKTYPE_USER0.
pub(crate) fn parse(frame: &[u8]) -> Result<What<'_>, Reason> {
    let cut = Reason::HeadersCut { header: "link unit", captured: frame.len() };
    let (&kind, rest) = frame.split_first().ok_or(cut)?;
    match kind {
        DLLP => dllp::Repr::parse(&dllp::Packet::new(rest)).map(What::Dllp).map_err(Reason::Dllp),
        FLIT => match rest {
            [high, low, ..] => Ok(What::Flit { sequence: u16::from_be_bytes([*high, *low]) }),
            _ => Err(cut),
        },
        other => Err(Reason::UnitKind(other)),
    }
}
