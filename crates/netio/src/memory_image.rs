//! Files that are the contents of memory.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use tlplab_nettlp::adapter::MemoryHost;
use tlplab_trace::Error;

/// The bytes that are read at once.
const PIECE: usize = 1 << 20;

/// Copies a file into the memory of `host`, its first byte to `address`; how many bytes it has.
///
/// # Errors
/// The file cannot be read, or does not fit where it is to go.
pub fn load(host: &mut MemoryHost, path: &Path, address: u64) -> Result<u64, Error> {
    let failed = |error| Error::io(path, "read", error);
    let mut file = File::open(path).map_err(failed)?;
    let mut piece = vec![0; PIECE];
    let mut done = 0;
    loop {
        let count = file.read(&mut piece).map_err(failed)?;
        if count == 0 {
            return Ok(done);
        }
        let at = address.saturating_add(done);
        host.poke(at, &piece[..count]).map_err(|error| {
            Error::content(String::new(), error.to_string(), "increase the memory, or choose another address")
                .in_file(path)
        })?;
        done += count as u64;
    }
}
