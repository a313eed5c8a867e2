//! The timed read of a target.

use super::mapped::Mapping;
use super::register::Register;
use super::sysfs::Function;
use super::{Failure, counter};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// One read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its duration, in ticks of the counter.
    pub ticks: u64,
    /// The value.
    pub value: u32,
}

/// A reader of targets, each by its index: the machine, or its replacement in tests.
pub trait Access {
    /// Reads a target once.
    ///
    /// # Errors
    /// It cannot be read any more.
    fn read(&mut self, target: usize) -> Result<Reading, Failure>;
}

/// An opened target.
pub(super) enum Reader {
    /// The first register of a function's configuration space, which everybody may read: vendor and device.
    Configuration { address: String, file: File },
    /// The same system call where the configuration space has ended: what the way to a read costs without the read.
    Nothing { file: File },
    /// A register that the user has named.
    Mapped(Mapping),
}

/// Beyond the end of every configuration space, at which the kernel goes back before it asks the function.
const BEYOND: u64 = 4096;

impl Reader {
    /// The configuration space of a function.
    pub(super) fn configuration(function: &Function) -> Result<Self, Failure> {
        let file = open(function)?;
        let mut register = [0; 4];
        let why = match file.read_exact_at(&mut register, 0) {
            Err(e) => e.to_string(),
            Ok(()) if u32::from_le_bytes(register) == function.identity => {
                return Ok(Self::Configuration { address: function.address.clone(), file });
            }
            Ok(()) => format!(
                "it reads as {:#010x}, but the kernel found {:#010x}: the function is powered off or removed",
                u32::from_le_bytes(register),
                function.identity
            ),
        };
        Err(Failure::Machine(format!("the configuration space of {}: {why}", function.address)))
    }

    /// The system call alone, on the same file.
    pub(super) fn nothing(function: &Function) -> Result<Self, Failure> {
        Ok(Self::Nothing { file: open(function)? })
    }

    /// A mapped register.
    pub(super) fn mapped(function: &Function, register: Register) -> Result<Self, Failure> {
        register.check_awake(function)?;
        Mapping::open(function, register).map(Self::Mapped)
    }

    fn read(&self) -> Result<Reading, Failure> {
        match self {
            Self::Configuration { address, file } => {
                let (ticks, value) = timed(file, 0);
                match value {
                    Ok((4, value)) => Ok(Reading { ticks, value }),
                    Ok(_) => {
                        Err(Failure::Machine(format!("the configuration space of {address} is cut short")))
                    }
                    Err(e) => Err(Failure::Machine(format!("the configuration space of {address}: {e}"))),
                }
            }
            Self::Nothing { file } => {
                let (ticks, value) = timed(file, BEYOND);
                match value {
                    Ok((_, value)) => Ok(Reading { ticks, value }),
                    Err(e) => Err(Failure::Machine(format!("an empty system call failed: {e}"))),
                }
            }
            Self::Mapped(mapping) => {
                let begin = counter::begin();
                let value = mapping.read();
                let end = counter::end();
                Ok(Reading { ticks: end.wrapping_sub(begin), value })
            }
        }
    }
}

/// One `pread` of a double word: how long, how many bytes, and what they are.
#[inline(always)]
fn timed(file: &File, offset: u64) -> (u64, io::Result<(usize, u32)>) {
    let mut register = [0; 4];
    let begin = counter::begin();
    let read = file.read_at(&mut register, offset);
    let end = counter::end();
    (end.wrapping_sub(begin), read.map(|bytes| (bytes, u32::from_le_bytes(register))))
}

fn open(function: &Function) -> Result<File, Failure> {
    let path = function.folder.join("config");
    File::open(&path).map_err(|e| {
        let means = match e.kind() {
            io::ErrorKind::PermissionDenied => {
                "; the first 64 bytes need no privilege on Linux, so a container or a policy denies access"
            }
            _ => "",
        };
        Failure::Machine(format!("{}: {e}{means}", path.display()))
    })
}

/// The machine.
pub(super) struct Readers(pub(super) Vec<Reader>);

impl Access for Readers {
    fn read(&mut self, target: usize) -> Result<Reading, Failure> {
        self.0[target].read()
    }
}
