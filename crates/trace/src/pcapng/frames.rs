//! Frames as they were captured, written again.

use super::block::{Blocks, PACKET, option};
use std::io::{self, Write};

/// A frame to write.
#[derive(Clone, Copy, Debug)]
pub struct RawFrame<'a> {
    /// LINKTYPE_ of its interface.
    pub link_type: u16,
    /// The interface's name, where it has one.
    pub interface: Option<&'a str>,
    /// Femtoseconds since 1970.
    pub fs: i128,
    /// Decimals of a second that its times have.
    pub digits: u8,
    /// The bytes that were kept.
    pub data: &'a [u8],
    /// Length on the wire.
    pub length: usize,
    /// A comment on it.
    pub comment: Option<&'a str>,
}

/// Writes frames to a pcapng file, with an interface for each name, link type and resolution that they have.
pub struct FrameWriter<W> {
    blocks: Blocks<W>,
    interfaces: Vec<(u16, String, u8)>,
}

impl<W: Write> FrameWriter<W> {
    /// Begins a file.
    pub fn new(sink: W) -> Self {
        Self { blocks: Blocks::new(sink, 4096), interfaces: Vec::new() }
    }

    /// Writes a frame. Times before 1970 become 1970, since the format has no sign.
    pub fn frame(&mut self, frame: &RawFrame<'_>) {
        let name = frame.interface.unwrap_or("");
        let same = |(link_type, known, digits): &(u16, String, u8)| {
            (*link_type, known.as_str(), *digits) == (frame.link_type, name, frame.digits)
        };
        let known = self.interfaces.iter().position(same);
        let interface = known.unwrap_or_else(|| {
            self.blocks.interface(frame.link_type, name, frame.digits);
            self.interfaces.push((frame.link_type, name.to_owned(), frame.digits));
            self.interfaces.len() - 1
        });
        let ticks = frame.fs / 10i128.pow(15 - u32::from(frame.digits.min(15)));
        let ticks = u64::try_from(ticks.max(0)).unwrap_or(u64::MAX);
        self.blocks.packet(interface as u32, ticks, frame.data, frame.length);
        if let Some(comment) = frame.comment {
            option(&mut self.blocks.body, 1, comment.as_bytes());
            option(&mut self.blocks.body, 0, &[]);
        }
        self.blocks.end(PACKET);
    }

    /// Ends the file and gives the sink back, flushed.
    ///
    /// # Errors
    /// The first error the sink gave.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }
}
