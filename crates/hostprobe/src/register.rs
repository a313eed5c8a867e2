//! Mapped registers as users name them, and whether they may be read at all.

use super::Failure;
use super::sysfs::{self, Function};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A register of a function: a double word behind a base address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The function, as an index.
    pub function: usize,
    /// The base address register, 0 to 5.
    pub bar: u8,
    /// From the base address, bytes, a multiple of 4.
    pub offset: u64,
    /// The base address: one of less than a page need not begin on a page.
    pub base: u64,
}

/// Of the flags in `resource`: memory, which loads can reach.
const MEMORY: u64 = 0x200;
/// Of the command register: the function answers reads of its memory.
const MEMORY_SPACE: u16 = 1 << 1;

impl Register {
    /// `02:00.0:0+0x8`: the function, the base address register, the offset.
    ///
    /// # Errors
    /// It is misspelt, or does not exist.
    pub fn parse(functions: &[Function], said: &str) -> Result<Self, Failure> {
        let wrong = |problem: &str| {
            Failure::Input(format!(
                "register {said}: {problem}; expected BDF:BAR+OFFSET, as in 02:00.0:0+0x8"
            ))
        };
        let (address, place) = said.rsplit_once(':').ok_or_else(|| wrong("the colon is missing"))?;
        let (bar, offset) = place.split_once('+').ok_or_else(|| wrong("the + with the offset is missing"))?;
        let bar = bar.parse().ok().filter(|bar| *bar < 6).ok_or_else(|| wrong("the BAR is not 0 to 5"))?;
        let offset = match offset.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => offset.parse(),
        };
        let offset = offset.map_err(|_| wrong("the offset is not a number"))?;
        if !offset.is_multiple_of(4) {
            return Err(wrong("the offset is not a multiple of 4"));
        }
        let function = sysfs::find(functions, address)?;
        let (base, size) = range(&functions[function], bar).map_err(|problem| wrong(&problem))?;
        if offset.checked_add(4).is_none_or(|after| after > size) {
            return Err(wrong(&format!("the offset is beyond BAR {bar}, which has {size} bytes")));
        }
        Ok(Self { function, bar, offset, base })
    }

    /// Checks that the function would answer: a read of a function that is off returns all ones, or stops the machine.
    ///
    /// # Errors
    /// The reason that it would not.
    pub fn check_awake(self, function: &Function) -> Result<(), Failure> {
        let off = |why: &str| {
            Err(Failure::Machine(format!(
                "{}: {why}, so it does not answer reads of its memory; let its driver wake it, as this program never writes",
                function.address
            )))
        };
        if let Some(state) =
            sysfs::attribute(&function.folder, "power_state").filter(|s| s != "D0" && s != "unknown")
        {
            return off(&format!("it is in power state {state}"));
        }
        let path = function.folder.join("config");
        let mut command = [0; 2];
        let read = File::open(&path).and_then(|file| file.read_exact_at(&mut command, 4));
        read.map_err(|e| Failure::Machine(format!("{}: {e}", path.display())))?;
        if u16::from_le_bytes(command) & MEMORY_SPACE == 0 {
            return off("its memory space is not enabled");
        }
        Ok(())
    }
}

/// The start and the size of a base address.
fn range(function: &Function, bar: u8) -> Result<(u64, u64), String> {
    let table = sysfs::attribute(&function.folder, "resource")
        .ok_or("the kernel does not list the function's BARs")?;
    let line = table.lines().nth(bar.into()).unwrap_or_default();
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let numbers: Vec<u64> = line.split_whitespace().filter_map(number).collect();
    match numbers[..] {
        [start, end, flags] if flags & MEMORY != 0 && end > start => Ok((start, end - start + 1)),
        [_, _, flags] if flags != 0 => Err(format!("BAR {bar} is in I/O space, which cannot be mapped")),
        _ => Err(format!("the function has no BAR {bar}")),
    }
}
