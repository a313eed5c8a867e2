//! The common part of every library of a device: opening it, and reading its functions, messages and BARs.
#![allow(unsafe_code, reason = "loading a library runs it")]

use crate::interface::{BAR_64BIT, BAR_IO, BAR_PREFETCHABLE, Bar, ERROR_MAX};
use libloading::Library;
use std::ffi::CStr;
use std::path::Path;
use tlplab_device::BarSpec;

/// Loads a library.
///
/// # Errors
/// The reason that a file is not such a library.
pub fn open(path: &Path) -> Result<Library, String> {
    // A name without a folder would be looked for among the system's libraries.
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    // SAFETY: loading runs the library's initialisers. Whoever names it in an experiment wants that, as with a program.
    unsafe { Library::new(&path) }.map_err(|error| {
        // Its own text is only where it was; why is below.
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    })
}

/// The function of that name.
///
/// # Errors
/// It has none; `otherwise` says of what then it is no library.
///
/// # Safety
/// It has the type that is asked for.
pub unsafe fn symbol<T: Copy>(library: &Library, name: &str, otherwise: &str) -> Result<T, String> {
    // SAFETY: as the caller says.
    let found = unsafe { library.get::<T>(name) };
    found.map(|symbol| *symbol).map_err(|_| format!("it does not export {name}; expected a {otherwise}"))
}

/// The message of an error, as a library writes it.
pub fn message(text: &[u8; ERROR_MAX], otherwise: &str) -> String {
    let text = CStr::from_bytes_until_nul(text).map_or(&text[..], CStr::to_bytes);
    let text = String::from_utf8_lossy(text).trim().to_owned();
    if text.is_empty() { otherwise.to_owned() } else { text }
}

/// A library's description of its BARs.
pub fn bars(said: &[Bar; 6]) -> Vec<BarSpec> {
    let used = (0u8..).zip(said).filter(|(_, bar)| bar.size > 0);
    let bars = used.map(|(index, bar)| BarSpec {
        index,
        size: bar.size,
        prefetchable: bar.flags & BAR_PREFETCHABLE != 0,
        is_64_bit: bar.flags & BAR_64BIT != 0,
        io: bar.flags & BAR_IO != 0,
    });
    bars.collect()
}

/// Vendor and device ID of the subsystem: 0 and 0 are those of the function itself.
pub fn subsystem(said: (u16, u16), own: (u16, u16)) -> (u16, u16) {
    if said == (0, 0) { own } else { said }
}
