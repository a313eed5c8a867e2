//! `psmem`: memory behind the adapter's window, which several lanes answer for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tlplab_device::{BarSpec, Context, Device, Event, Identity, Payload, Refusal, ReplyToken, VENDOR_ID};
use tlplab_units::Duration;

const PAGE: usize = 4096;
/// The stride of the frames that the memory is filled with.
const FRAME_STRIDE: u64 = 2048;

/// A page; `None` reads as zeros.
type Page = Mutex<Option<Box<[u8; PAGE]>>>;

/// Memory that its clones share. It answers at once, or after a while.
#[derive(Clone, Debug)]
pub struct Psmem {
    pages: Arc<[Page]>,
    delay: Duration,
    waiting: VecDeque<(ReplyToken, u64, u32)>,
}

impl Psmem {
    /// Zeros: `bytes` of them, a power of two, at least 4 KiB. Each read is answered `delay` after it came.
    pub fn new(bytes: u64, delay: Duration) -> Self {
        let pages = (0..bytes / PAGE as u64).map(|_| Page::default()).collect();
        Self { pages, delay, waiting: VecDeque::new() }
    }

    fn size(&self) -> u64 {
        (self.pages.len() * PAGE) as u64
    }

    fn covers(&self, offset: u64, bytes: u64) -> bool {
        offset.checked_add(bytes).is_some_and(|end| end <= self.size())
    }

    /// Calls with each piece of a range that lies in one page: the page, where in it, and where in the range.
    fn pieces(&self, offset: u64, bytes: usize, mut each: impl FnMut(&Page, usize, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < bytes {
            let at = offset as usize + done;
            let (page, within) = (at / PAGE, at % PAGE);
            let end = bytes.min(done + PAGE - within);
            each(&self.pages[page], within, done..end);
            done = end;
        }
    }

    /// Copies from memory.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        self.pieces(offset, out.len(), |page, within, range| {
            let out = &mut out[range];
            match &*page.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(page) => out.copy_from_slice(&page[within..][..out.len()]),
                None => out.fill(0),
            }
        });
    }

    /// Copies to memory.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn write(&self, offset: u64, data: &[u8]) {
        self.pieces(offset, data.len(), |page, within, range| {
            let mut page = page.lock().unwrap_or_else(PoisonError::into_inner);
            let page = page.get_or_insert_with(|| Box::new([0; PAGE]));
            page[within..][..range.len()].copy_from_slice(&data[range]);
        });
    }

    /// Fills the memory with `count` UDP datagrams in Ethernet frames of `bytes` (60 to 2048), one every 2 KiB, for a NIC to send.
    pub fn fill_with_frames(&self, count: u64, bytes: u16) {
        let frame = frame(bytes);
        for number in (0..count).take_while(|number| self.covers(number * FRAME_STRIDE, bytes.into())) {
            self.write(number * FRAME_STRIDE, &frame);
        }
    }

    fn answer(&self, cx: &mut Context<'_>, reply: ReplyToken, offset: u64, bytes: u32) {
        let mut data = vec![0; bytes as usize];
        self.read(offset, &mut data);
        cx.reply(reply, Payload::from(data));
    }
}

/// To everybody, from 10.0.0.2 to port 60000 of 10.0.0.1, with zeros in it.
fn frame(bytes: u16) -> Vec<u8> {
    let mut frame = vec![0; bytes.into()];
    let (ip, udp) = ((bytes - 14).to_be_bytes(), (bytes - 34).to_be_bytes());
    frame[..6].fill(0xFF);
    frame[6..14].copy_from_slice(&[6, 5, 4, 3, 2, 1, 0x08, 0]);
    frame[14..34]
        .copy_from_slice(&[0x45, 0, ip[0], ip[1], 0, 0, 0, 0, 16, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
    let words = frame[14..34].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[36..40].copy_from_slice(&[0xEA, 0x60, udp[0], udp[1]]);
    frame
}

impl Device for Psmem {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::memory(4, self.size())];
        Identity { bars, ..Identity::new(VENDOR_ID, 0x0005, 0x05_00_00) } // RAM controller
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioRead { offset, bytes, reply, .. } => {
                if !self.covers(offset, bytes.into()) {
                    cx.reply_error(reply, Refusal::UnsupportedRequest);
                } else if self.delay == Duration::ZERO {
                    self.answer(cx, reply, offset, bytes);
                } else {
                    self.waiting.push_back((reply, offset, bytes));
                    cx.timer(cx.now() + self.delay, 0);
                }
            }
            Event::MmioWrite { offset, data, .. } => {
                if let Some(bytes) = data.bytes().filter(|bytes| self.covers(offset, bytes.len() as u64)) {
                    self.write(offset, bytes);
                }
            }
            // All wait equally long, so they end in order.
            Event::Timer { .. } => {
                if let Some((reply, offset, bytes)) = self.waiting.pop_front() {
                    self.answer(cx, reply, offset, bytes);
                }
            }
            Event::Reset => self.waiting.clear(),
            Event::Start | Event::DmaReadDone { .. } | Event::DmaWriteAccepted { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_one_memory() {
        let (one, other) = (Psmem::new(1 << 20, Duration::ZERO), Psmem::new(1 << 20, Duration::ZERO));
        let clone = one.clone();
        one.write(4090, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let mut out = [0; 11];
        clone.read(4089, &mut out);
        assert_eq!(out, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
        other.read(4089, &mut out);
        assert_eq!(out, [0; 11]);
    }

    #[test]
    fn frames_are_datagrams() {
        let memory = Psmem::new(1 << 20, Duration::ZERO);
        memory.fill_with_frames(600, 98);
        let mut frame = [0; 98];
        memory.read(511 * 2048, &mut frame);
        // The header of 84 B of IPv4 adds up to all ones, and the datagram has 64 B.
        let words = frame[14..34].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum: u32 = words.sum();
        assert_eq!(((sum & 0xFFFF) + (sum >> 16), &frame[34..40]), (0xFFFF, &[0, 0, 0xEA, 0x60, 0, 64][..]));
    }
}
