//! A frame as a line of text, in the words of the tcpdump of the NetTLP paper (figure 15).

use super::super::decode::{Decoded, End, Tlp, What};
use std::fmt::Write;

/// Writes the line behind the time, without its end:
/// `IP 192.168.10.3.12288 > 192.168.10.1.12288: NetTLP: MRd, len 128, requester 1b:00.0, tag 0x00, last 0xf, first 0xf, Addr 0xa0000000`.
pub(super) fn write(out: &mut String, decoded: &Decoded<'_>, verbose: bool) {
    let _ = put(out, decoded, verbose); // a String takes everything
}

fn put(out: &mut String, decoded: &Decoded<'_>, verbose: bool) -> std::fmt::Result {
    ends(out, decoded)?;
    match &decoded.content {
        Ok(What::Tlp(tlp)) => {
            out.push_str("NetTLP: ");
            write!(out, "{:#}", tlp.repr)?;
            if verbose {
                self::verbose(out, decoded, tlp)?;
            }
            if tlp.ecrc == Some(false) {
                out.push_str(", bad ECRC");
            }
        }
        Ok(What::Dllp(repr)) => write!(out, "DLLP: {repr}")?,
        Ok(What::Flit { sequence }) => write!(out, "Flit: seq {sequence}")?,
        Ok(What::Control(control)) => write!(out, "NetTLP {control}")?,
        Ok(What::Other) => out.push_str("not NetTLP"),
        Err(reason) if decoded.endpoints.is_some() => write!(out, "NetTLP: malformed: {reason}")?,
        Err(reason) => write!(out, "malformed: {reason}")?,
    }
    let flags = decoded.flags;
    for (_, word) in
        [(flags.bad, ", corrupted"), (flags.replay, ", replay"), (flags.nullified, ", nullified")]
            .into_iter()
            .filter(|(set, _)| *set)
    {
        out.push_str(word);
    }
    Ok(())
}

fn ends(out: &mut String, decoded: &Decoded<'_>) -> std::fmt::Result {
    let (from, to) = decoded.ends();
    match decoded.endpoints {
        Some(ends) => write!(out, "IP {from}.{} > {to}.{}: ", ends.source_port, ends.port),
        None if from == End::Name("?") => write!(out, "frame {}: ", decoded.frame),
        None => write!(out, "{from} > {to}: "),
    }
}

fn verbose(out: &mut String, decoded: &Decoded<'_>, tlp: &Tlp<'_>) -> std::fmt::Result {
    write!(out, ", seq {}, tstamp {}", tlp.header.sequence, tlp.header.timestamp)?;
    if let Some(vlan) = decoded.endpoints.and_then(|ends| ends.vlan) {
        write!(out, ", vlan {vlan}")?;
    }
    if tlp.payload.is_empty() {
        return Ok(());
    }
    write!(out, ", data ")?;
    tlp.payload.iter().take(32).try_for_each(|byte| write!(out, "{byte:02x}"))?;
    if tlp.repr.payload_bytes() > 32 { out.write_char('…') } else { Ok(()) }
}
