//! Messages with descriptors over Unix sockets, and pipes that are read as far as there is something.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use tlplab_uml::vhost;

/// Reads exactly `N` bytes; `None` at the end of the stream.
pub(super) fn read_exactly<const N: usize>(stream: &mut impl Read) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match stream.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if is_end(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A guest that is gone closes its sockets, or leaves what was sent to it unread.
pub(super) fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// A vhost-user message: the bytes of its header, its payload, and what descriptors came along.
pub(super) struct DeviceMessage {
    pub(super) header: [u8; vhost::HEADER],
    pub(super) payload: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
}

/// Reads a message of the device's socket; `None` at the end of the stream.
pub(super) fn read_device_message(stream: &mut UnixStream) -> io::Result<Option<DeviceMessage>> {
    let mut header = [0; vhost::HEADER];
    let (received, descriptors) = tlplab_ipc::receive(stream, &mut header, true)?;
    if received == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut header[received..])?;
    let size = u32::from_le_bytes([header[8], header[9], header[10], header[11]]).min(vhost::LARGEST);
    let mut payload = vec![0; size as usize];
    stream.read_exact(&mut payload)?;
    Ok(Some(DeviceMessage { header, payload, descriptors }))
}

/// Appends the content of a pipe that does not block; true at its end.
pub(super) fn drain(pipe: &mut File, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut chunk = [0; 4096];
    loop {
        match pipe.read(&mut chunk) {
            Ok(0) => return Ok(true),
            Ok(count) => into.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
