//! Dumps that the real `lspci -F` reads, and back.

use core::fmt::Write as _;
use tlplab_units::Bdf;

/// A function's configuration space in a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// The domain; 0 where the dump names none.
    pub domain: u16,
    /// Its bus, device and function number.
    pub bdf: Bdf,
    /// Its registers from 0 on: 64, 256 or 4096 bytes, as much as was dumped.
    pub bytes: Vec<u8>,
}

/// The reason that a text is no dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct DumpError {
    /// The line, from 1.
    pub line: usize,
    /// The fault, and the right form.
    pub what: &'static str,
}

/// The text of `lspci -xxxx` for these functions.
pub fn dump<'a>(functions: impl IntoIterator<Item = (Bdf, &'a [u8; 4096])>) -> String {
    let mut text = String::new();
    for (bdf, bytes) in functions {
        let ids = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let class = u32::from_le_bytes([bytes[9], bytes[10], bytes[11], 0]);
        let _ = writeln!(text, "{bdf} {}: Device {:04x}:{:04x}", class_name(class), ids(0), ids(2));
        for (at, line) in (0..).step_by(16).zip(bytes.chunks_exact(16)) {
            let _ = write!(text, "{at:02x}:");
            for byte in line {
                let _ = write!(text, " {byte:02x}");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// Reads the text of `lspci -x`, `-xxx` or `-xxxx`; lines that are neither a function's first nor bytes are passed over, as `lspci -F`
/// does.
///
/// # Errors
/// If bytes come before a function, are not in order, or are no bytes.
pub fn parse(text: &str) -> Result<Vec<Dumped>, DumpError> {
    let mut found: Vec<Dumped> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let error = |what| DumpError { line, what };
        let Some((first, rest)) = content.split_once(' ') else { continue };
        if let Some((domain, bdf)) = parse_address(first) {
            found.push(Dumped { domain, bdf, bytes: Vec::new() });
            continue;
        }
        let Some(offset) = first.strip_suffix(':').filter(|digits| (2..=3).contains(&digits.len())) else {
            continue;
        };
        let Ok(offset) = usize::from_str_radix(offset, 16) else { continue };
        let function = found.last_mut().ok_or(error("bytes before the first function"))?;
        if offset != function.bytes.len() {
            return Err(error("the offset does not follow the bytes before it"));
        }
        for byte in rest.split_whitespace() {
            let right = byte.len() == 2 && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
            let byte = u8::from_str_radix(byte, 16).ok().filter(|_| right);
            function.bytes.push(byte.ok_or(error("expected bytes of two hexadecimal digits"))?);
        }
        if function.bytes.len() > 4096 {
            return Err(error("configuration space ends after 4096 bytes"));
        }
    }
    Ok(found)
}

/// `[DDDD:]BB:DD.F`
fn parse_address(text: &str) -> Option<(u16, Bdf)> {
    let hex = |text: &str, digits: usize| {
        let right = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        right.then(|| u16::from_str_radix(text, 16).ok()).flatten()
    };
    let (rest, function) = text.rsplit_once('.')?;
    let (rest, device) = rest.rsplit_once(':')?;
    let (domain, bus) = rest.split_once(':').unwrap_or(("0000", rest));
    let bdf = Bdf::new(hex(bus, 2)? as u8, hex(device, 2)? as u8, hex(function, 1)? as u8)?;
    Some((hex(domain, 4)?, bdf))
}

/// The name of a class of functions that one meets here, as `lspci` has it; `class` is base class, sub-class and programming interface.
pub fn class_name(class: u32) -> &'static str {
    match class >> 8 {
        0x0106 => "SATA controller",
        0x0108 => "Non-Volatile memory controller",
        0x0180 => "Mass storage controller",
        0x0200 => "Ethernet controller",
        0x0500 => "RAM memory",
        0x0580 => "Memory controller",
        0x0600 => "Host bridge",
        0x0604 => "PCI bridge",
        0x1200 => "Processing accelerators",
        class => match class >> 8 {
            0x01 => "Mass storage controller",
            0x02 => "Network controller",
            0x03 => "Display controller",
            0x05 => "Memory controller",
            0x06 => "Bridge",
            0x08 => "System peripheral",
            0x0B => "Processor",
            0x0C => "Serial bus controller",
            _ => "Unassigned class",
        },
    }
}
