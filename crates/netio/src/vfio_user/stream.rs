//! The stream of messages to and from a client.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use tlplab_vfio::ProtocolError;
use tlplab_vfio::message::{HEADER, Header, MAX_DESCRIPTORS};

/// Bytes that one read takes.
const CHUNK: usize = 64 << 10;
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

    /// Reads what there is, which a wait has found, and hands over the messages that are whole. False at the end of the stream.
    ///
    /// # Errors
    /// The client's mistake.
    pub(super) fn receive(
        &mut self,
        mut handle: impl FnMut(&Header, &[u8], Vec<OwnedFd>) -> Result<(), ProtocolError>,
    ) -> Result<bool, String> {
        let before = self.buffer.len();
        self.buffer.resize(before + CHUNK, 0);
        let received = tlplab_ipc::receive(&self.stream, &mut self.buffer[before..]);
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
        let mut done = 0;
        while let Some(header) = self.buffer[done..].first_chunk::<HEADER>() {
            let header = Header::parse(header).map_err(|mistake| mistake.to_string())?;
            let end = done + header.size as usize;
            let Some(payload) = self.buffer.get(done + HEADER..end) else { break };
            // Descriptors come with the first byte of their message, and a read ends before those of the next.
            let descriptors = std::mem::take(&mut self.descriptors);
            handle(&header, payload, descriptors).map_err(|mistake| mistake.to_string())?;
            done = end;
        }
        self.buffer.drain(..done);
        Ok(true)
    }
}
