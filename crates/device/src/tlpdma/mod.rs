//! `tlpdma`: the DMA card of `rtl/`, at the level of transactions: the same registers, rings, records and interrupts, without its clocks.
//!
//! Experiments that drive the core run on it where no simulator of RTL is installed, its driver
//! ([`TlpdmaDriver`](crate::tlpdma::driver::TlpdmaDriver)) is tested against it, and what the RTL takes longer is the RTL's.
//! Its memory answers at once. Interrupt moderation is remembered and not done; the counters of errors are not there.
//!
//! * [`regs`]: registers, descriptors, records
//! * `channel`: one direction

mod channel;
pub mod driver;
pub mod regs;

use crate::contract::{Context, Device, DmaError, Event, OpId, Stream};
use crate::identity::{BarSpec, Identity};
use crate::kit::bytes::doublewords;
use crate::kit::{Pin, RegisterFile};
use crate::pages::Pages;
use channel::{Channel, News, Piece};
use regs::ch;
use tlplab_cfgspace::InterruptMode;
use tlplab_transaction::{CompletionError, Payload};

/// Pieces of 4 KiB that each channel has under way: of reads as many as 256 tags of 512 B can carry, of writes no more than it takes to
/// leave no gap, since all others wait behind them.
const DEPTH: [usize; 2] = [32, 2];
/// Femtoseconds of a cycle that `CYCLES` counts: 200 MHz.
const CYCLE_FS: u64 = 5_000_000;

/// 32 tags and 4 vectors, as the RTL has.
const CONFIG: u32 = 4 << 16 | 5;

crate::streams! {
    /// Descriptors.
    FETCH: "fetch" = "read";
    /// Data to the card.
    TO_CARD: "to_card" = "read";
    /// Data from the card, and what must stay behind them: the record and the interrupt.
    FROM_CARD: "from_card" = "write";
    /// Record and interrupt of the other channel.
    STATUS: "status" = "write";
}

/// The card.
#[derive(Clone, Debug)]
pub struct Tlpdma {
    memory_bytes: u64,
    memory: Pages,
    file: RegisterFile,
    pin: Pin,
    /// To the card, from the card.
    channels: [Channel; 2],
}

impl Tlpdma {
    /// A card with so much memory, at most 4 GiB.
    pub fn new(memory_bytes: u64) -> Self {
        let mut file = RegisterFile::new(regs::TABLE);
        file.set(regs::MEM_MIB, (memory_bytes >> 20) as u32);
        let channels = [Channel::new(), Channel::new()];
        Self { memory_bytes, memory: Pages::new(), file, pin: Pin::default(), channels }
    }

    /// Brings the registers up to date that software may read.
    fn show(&mut self, cx: &Context<'_>) {
        self.channels.iter_mut().for_each(Channel::show);
        let idle = self.channels.iter().all(Channel::is_idle);
        let msi_x = cx.interrupt_mode() == InterruptMode::MsiX;
        self.file.set(regs::STATUS, u32::from(idle) | 2 | u32::from(msi_x) << 2);
        let (mps, mrrs) = cx.request_sizes();
        let code = |bytes: u32| bytes.ilog2() - 7;
        self.file.set(regs::CONFIG, CONFIG | code(mrrs.bytes()) << 12 | code(mps.bytes()) << 8);
        self.file.set(regs::CYCLES, (cx.now().as_fs() / CYCLE_FS) as u32);
    }

    /// The channel with the register at `at`, and where it is there.
    fn channel_at(&mut self, at: u64) -> Option<(&mut Channel, u64)> {
        self.channels.iter_mut().zip([true, false]).find_map(|(channel, to_card)| {
            let at = at.checked_sub(regs::channel(to_card)).filter(|at| *at < regs::CHANNEL_BYTES)?;
            Some((channel, at))
        })
    }

    fn read(&mut self, cx: &Context<'_>, offset: u64, bytes: u32) -> Payload {
        self.show(cx);
        let skip = (offset & 3) as usize;
        let mut words = vec![0; (skip + bytes as usize).next_multiple_of(4)];
        for (word, at) in words.chunks_mut(4).zip((offset & !3..).step_by(4)) {
            match self.channel_at(at) {
                Some((channel, at)) => channel.file.read_into(at, word),
                None => self.file.read_into(at, word),
            }
        }
        words[skip..][..bytes as usize].into()
    }

    /// Software writes a register, all of it.
    fn write(&mut self, cx: &mut Context<'_>, at: u64, value: u32) {
        if let Some((channel, at)) = self.channel_at(at) {
            channel.write(at, value);
        } else if at == regs::CONTROL.offset() && value & 2 != 0 {
            *self = Self::new(self.memory_bytes);
        } else {
            self.file.write_bytes(at, &value.to_le_bytes());
        }
        self.interrupt(cx);
        (0..2).for_each(|number| self.advance(cx, number));
    }

    /// Fetches descriptors and asks for data, as far as there is room.
    fn advance(&mut self, cx: &mut Context<'_>, number: usize) {
        if self.file.get(regs::CONTROL) & 1 == 0 {
            return;
        }
        while let Some(piece) = self.channels[number].next_piece(DEPTH[number]) {
            let Piece { host, local, bytes, .. } = piece;
            let op = if number == 0 {
                cx.dma_read(TO_CARD, host, bytes.into())
            } else {
                let data = self.data(cx, local, bytes);
                cx.dma_write(FROM_CARD, host, data)
            };
            self.channels[number].under_way.begin(op, piece);
        }
        self.channels[number].fetch(cx);
    }

    /// A byte of the window, as an address of the card's memory.
    fn in_window(&self, offset: u64) -> u32 {
        (self.file.get(regs::WINDOW) << 20).wrapping_add(offset as u32)
    }

    fn data(&self, cx: &Context<'_>, local: u32, bytes: u32) -> Payload {
        if cx.length_only() {
            return Payload::Length(bytes.into());
        }
        let mut data = vec![0; bytes as usize];
        self.memory.read(local.into(), &mut data);
        data.into()
    }

    fn read_done(&mut self, cx: &mut Context<'_>, op: OpId, result: Result<Payload, DmaError>) {
        for number in 0..2 {
            let channel = &mut self.channels[number];
            let news = if let Some(batch) = channel.ring.over(op) {
                channel.fetched(batch, &result)
            } else if let Some(piece) = channel.under_way.end(op, result.as_ref().map_or_else(code, |_| 0)) {
                if let Ok(Payload::Bytes(bytes)) = &result {
                    self.memory.write(piece.local.into(), bytes);
                }
                channel.retire()
            } else {
                continue;
            };
            self.tell(cx, number, news);
            self.advance(cx, number);
        }
    }

    fn write_accepted(&mut self, cx: &mut Context<'_>, op: OpId) {
        if self.channels[1].under_way.end(op, 0).is_some() {
            let news = self.channels[1].retire();
            self.tell(cx, 1, news);
            self.advance(cx, 1);
        }
    }

    /// Writes the record back, then interrupts.
    fn tell(&mut self, cx: &mut Context<'_>, number: usize, news: News) {
        let stream = if number == 0 { STATUS } else { FROM_CARD };
        let channel = &self.channels[number];
        let record_at = channel.file.get(ch::WRITE_BACK);
        if news.record && record_at != 0 {
            cx.dma_write(stream, record_at, channel.record().to_bytes().into());
        }
        if !news.interrupt {
            return;
        }
        let cause = 1 << number;
        if cx.interrupt_mode() != InterruptMode::Intx && self.file.get(regs::IRQ_ENABLE) & cause != 0 {
            return cx.msix(stream, number as u16);
        }
        self.file.set(regs::IRQ_STATUS, self.file.get(regs::IRQ_STATUS) | cause);
        self.interrupt(cx);
    }

    /// The level of the legacy interrupt, behind the records of both channels.
    fn interrupt(&mut self, cx: &mut Context<'_>) {
        let causes = self.file.get(regs::IRQ_STATUS) & self.file.get(regs::IRQ_ENABLE);
        let by_pin = cx.interrupt_mode() == InterruptMode::Intx;
        self.pin.set(cx, FROM_CARD, causes != 0 && by_pin);
    }
}

/// The code of an error in a record.
fn code(why: &DmaError) -> u32 {
    match why {
        DmaError::Completion(CompletionError::UnsupportedRequest { .. }) => 1,
        DmaError::Completion(CompletionError::Poisoned { .. }) => 3,
        DmaError::Completion(CompletionError::Timeout { .. }) => 5,
        DmaError::Completion(_) => 2,
        DmaError::BusMasterDisabled | DmaError::Request(_) | DmaError::Unacknowledged => 6,
    }
}

impl Device for Tlpdma {
    fn identity(&self) -> Identity {
        let (vendor, device) = regs::IDS;
        Identity {
            revision: 1,
            bars: vec![
                BarSpec::registers(regs::BAR.0, regs::BAR.1),
                BarSpec::memory(regs::WINDOW_BAR.0, regs::WINDOW_BAR.1),
            ],
            msix_vectors: 4,
            intx: true,
            ..Identity::new(vendor, device, 0x12_00_00) // processing accelerator
        }
    }

    fn streams(&self) -> &'static [Stream] {
        STREAMS
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { bar, offset, data } if bar == regs::BAR.0 => {
                // A register is written as a whole, or not at all.
                let words = doublewords(offset, data.bytes().unwrap_or_default());
                words
                    .filter(|(at, _)| at.is_multiple_of(4))
                    .for_each(|(at, value)| self.write(cx, at, value));
            }
            Event::MmioRead { bar, offset, bytes, reply } if bar == regs::BAR.0 => {
                cx.reply(reply, self.read(cx, offset, bytes));
            }
            Event::MmioRead { offset, bytes, reply, .. } => {
                let data = self.data(cx, self.in_window(offset), bytes);
                cx.reply(reply, data);
            }
            Event::MmioWrite { offset, data, .. } => {
                self.memory.write(self.in_window(offset).into(), data.bytes().unwrap_or_default());
            }
            Event::DmaReadDone { op, result } => self.read_done(cx, op, result),
            Event::DmaWriteAccepted { op } => self.write_accepted(cx, op),
            Event::Reset => *self = Self::new(self.memory_bytes),
            Event::Start | Event::Timer { .. } => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.clone()))
    }
}
