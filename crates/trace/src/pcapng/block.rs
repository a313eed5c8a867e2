//! The blocks of a pcapng file, little-endian.

use std::io::{self, Write};

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
pub(super) const NAME_RESOLUTION: u32 = 4;
pub(super) const PACKET: u32 = 6;

/// Writes blocks; keeps one of them. The first error of the sink ends the writing and is kept for the end.
pub(super) struct Blocks<W> {
    pub(super) sink: W,
    pub(super) failed: Option<io::Error>,
    /// The body of the block that is being made.
    pub(super) body: Vec<u8>,
}

impl<W: Write> Blocks<W> {
    /// Begins a section.
    pub(super) fn new(sink: W, capacity: usize) -> Self {
        let mut blocks = Self { sink, failed: None, body: Vec::with_capacity(capacity) };
        blocks.body.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
        blocks.body.extend_from_slice(&[1, 0, 0, 0]);
        // The section's length is not known while it is streamed.
        blocks.body.extend_from_slice(&u64::MAX.to_le_bytes());
        option(&mut blocks.body, 4, concat!("tlplab ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(&mut blocks.body, 0, &[]);
        blocks.end(SECTION_HEADER);
        blocks
    }

    /// Describes an interface whose ticks are 10^-`resolution` seconds.
    pub(super) fn interface(&mut self, link_type: u16, name: &str, resolution: u8) {
        self.body.extend_from_slice(&link_type.to_le_bytes());
        self.body.extend_from_slice(&[0; 2 + 4]);
        if !name.is_empty() {
            option(&mut self.body, 2, name.as_bytes());
        }
        option(&mut self.body, 9, &[resolution]);
        option(&mut self.body, 0, &[]);
        self.end(INTERFACE);
    }

    /// Begins an enhanced packet block with what was kept of a frame of `length` bytes; options may follow.
    pub(super) fn packet(&mut self, interface: u32, ticks: u64, kept: &[u8], length: usize) {
        let words = [interface, (ticks >> 32) as u32, ticks as u32, kept.len() as u32, length as u32];
        for word in words {
            self.body.extend_from_slice(&word.to_le_bytes());
        }
        self.body.extend_from_slice(kept);
        pad(&mut self.body);
    }

    /// Ends the block that is being made.
    pub(super) fn end(&mut self, block_type: u32) {
        if self.failed.is_none() {
            let length = (self.body.len() as u32 + 12).to_le_bytes();
            let mut head = [0; 8];
            head[..4].copy_from_slice(&block_type.to_le_bytes());
            head[4..].copy_from_slice(&length);
            self.body.extend_from_slice(&length);
            let written = self.sink.write_all(&head).and_then(|()| self.sink.write_all(&self.body));
            self.failed = written.err();
        }
        self.body.clear();
    }

    /// Ends the writing, unless it has ended already.
    pub(super) fn fail(&mut self, error: impl FnOnce() -> io::Error) {
        self.failed.get_or_insert_with(error);
    }

    /// Ends the file and gives the sink back, flushed.
    pub(super) fn finish(mut self) -> io::Result<W> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.sink.flush().map(|()| self.sink),
        }
    }
}

pub(super) fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Adds an option; code 0 ends them.
pub(super) fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&(value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    pad(body);
}
