//! The stream of messages to and from a client.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use tlplab_vfio::ProtocolError;
use tlplab_vfio::message::{HEADER, Header, MAX_DESCRIPTORS};

/// Reads between two looks at everything else.
const MOST: usize = 64;
/// A client that does not take its messages within this is gone.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// A connection, and what has come of a message so far.
pub(super) struct Stream {
    stream: UnixStream,
    buffer: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Stream {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: Vec::new(), descriptors: Vec::new() })
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.stream.write_all(message)
    }

    /// Reads what there is and hands over the messages that are whole. False at the end of the stream.
    ///
    /// # Errors
    /// The client's mistake.
    pub(super) fn receive(
        &mut self,
        mut handle: impl FnMut(&Header, &[u8], Vec<OwnedFd>) -> Result<(), ProtocolError>,
    ) -> Result<bool, String> {
        // Others want to be heard, too.
        for _ in 0..MOST {
            let (before, wanted) = (self.buffer.len(), self.wanted().map_err(|mistake| mistake.to_string())?);
            self.buffer.resize(before + wanted, 0);
            let received = tlplab_ipc::receive(&self.stream, &mut self.buffer[before..], false);
            let count = received.as_ref().map_or(0, |(count, _)| *count);
            self.buffer.truncate(before + count);
            match received {
                Ok((0, _)) => return Ok(false),
                Ok((_, descriptors)) => self.descriptors.extend(descriptors),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(_) => return Ok(false),
            }
            if self.descriptors.len() > MAX_DESCRIPTORS {
                return Err(format!("vfio-user: more than {MAX_DESCRIPTORS} descriptors with a message"));
            }
            let Some((bytes, payload)) = self.buffer.split_first_chunk::<HEADER>() else { continue };
            let header = Header::parse(bytes).map_err(|mistake| mistake.to_string())?;
            if self.buffer.len() == header.size as usize {
                let descriptors = std::mem::take(&mut self.descriptors);
                handle(&header, payload, descriptors).map_err(|mistake| mistake.to_string())?;
                self.buffer.clear();
            }
        }
        Ok(true)
    }

    /// Bytes that are missing of the header, or of the message. Never more: the descriptors of the next message come with its first byte.
    fn wanted(&self) -> Result<usize, ProtocolError> {
        match self.buffer.first_chunk::<HEADER>() {
            None => Ok(HEADER - self.buffer.len()),
            Some(header) => Ok(Header::parse(header)?.size as usize - self.buffer.len()),
        }
    }
}
