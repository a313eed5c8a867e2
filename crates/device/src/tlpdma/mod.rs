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
use crate::copier::read_image;
use crate::identity::{BarSpec, Identity};
use crate::pages::Pages;
use channel::{Channel, News, Piece};
use regs::{Descriptor, ch};
use tlplab_cfgspace::InterruptMode;
use tlplab_transaction::{CompletionError, Payload};

/// Pieces of 4 KiB that each channel has under way: of reads as many as 256 tags of 512 B can carry, of writes no more than it takes to
/// leave no gap, since all others wait behind them.
const DEPTH: [usize; 2] = [32, 2];
/// Femtoseconds of a cycle that `CYCLES` counts: 200 MHz.
const CYCLE_FS: u64 = 5_000_000;

/// 32 tags and 4 vectors, as the RTL has.
const CONFIG: u32 = 4 << 16 | 5;

const FETCH: u16 = 0;
const TO_CARD: u16 = 1;
/// Data from the card, and what must stay behind them: the record and the interrupt.
const FROM_CARD: u16 = 2;
/// Record and interrupt of the other channel.
const STATUS: u16 = 3;
/// Its streams.
pub const STREAMS: &[Stream] =
    &[("fetch", "read"), ("to_card", "read"), ("from_card", "write"), ("status", "write")];

/// The card.
#[derive(Clone, Debug)]
pub struct Tlpdma {
    memory_bytes: u64,
    memory: Pages,
    control: u32,
    irq_status: u32,
    irq_enable: u32,
    irq_moderation: u32,
    scratch: u32,
    window: u32,
    asserted: bool,
    /// To the card, from the card.
    channels: [Channel; 2],
}

impl Tlpdma {
    /// A card with so much memory, at most 4 GiB.
    pub fn new(memory_bytes: u64) -> Self {
        Self {
            memory_bytes,
            memory: Pages::new(),
            control: 0,
            irq_status: 0,
            irq_enable: 0,
            irq_moderation: 0,
            scratch: 0,
            window: 0,
            asserted: false,
            channels: Default::default(),
        }
    }

    fn register(&self, cx: &Context<'_>, offset: u64) -> u32 {
        for (channel, to_card) in self.channels.iter().zip([true, false]) {
            if let Some(at) =
                offset.checked_sub(regs::channel(to_card)).filter(|at| *at < regs::CHANNEL_BYTES)
            {
                return channel_register(channel, at);
            }
        }
        let idle = self.channels.iter().all(Channel::is_idle);
        let msi_x = cx.interrupt_mode() == InterruptMode::MsiX;
        match offset {
            regs::ID => regs::ID_VALUE,
            regs::VERSION => regs::VERSION_VALUE,
            regs::CONTROL => self.control,
            regs::STATUS => u32::from(idle) | 2 | u32::from(msi_x) << 2,
            regs::CONFIG => {
                let (mps, mrrs) = cx.request_sizes();
                let code = |bytes: u32| bytes.ilog2() - 7;
                CONFIG | code(mrrs.bytes()) << 12 | code(mps.bytes()) << 8
            }
            regs::IRQ_STATUS => self.irq_status,
            regs::IRQ_ENABLE => self.irq_enable,
            regs::IRQ_MODERATION => self.irq_moderation,
            regs::CYCLES => (cx.now().as_fs() / CYCLE_FS) as u32,
            regs::SCRATCH => self.scratch,
            regs::WINDOW => self.window,
            regs::MEM_MIB => (self.memory_bytes >> 20) as u32,
            _ => 0,
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, offset: u64, value: u32) {
        for (number, to_card) in [true, false].into_iter().enumerate() {
            if let Some(at) =
                offset.checked_sub(regs::channel(to_card)).filter(|at| *at < regs::CHANNEL_BYTES)
            {
                write_channel(&mut self.channels[number], at, value);
            }
        }
        match offset {
            regs::CONTROL if value & 2 != 0 => *self = Self::new(self.memory_bytes),
            regs::CONTROL => self.control = value & 1,
            regs::IRQ_STATUS => self.irq_status &= !value,
            regs::IRQ_ENABLE => self.irq_enable = value,
            regs::IRQ_MODERATION => self.irq_moderation = value,
            regs::SCRATCH => self.scratch = value,
            regs::WINDOW => self.window = value,
            _ => {}
        }
        self.interrupt(cx);
        (0..2).for_each(|number| self.advance(cx, number));
    }

    /// Fetches descriptors and asks for data, as far as there is room.
    fn advance(&mut self, cx: &mut Context<'_>, number: usize) {
        if self.control & 1 == 0 {
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
            self.channels[number].started(op, piece);
        }
        if let Some((address, batch)) = self.channels[number].next_fetch() {
            let op = cx.dma_read_control(FETCH, address, u64::from(batch) * Descriptor::BYTES as u64);
            self.channels[number].fetch = Some((op, batch));
        }
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
            let news = match channel.fetch {
                Some((fetch, batch)) if fetch == op => {
                    channel.fetch = None;
                    match &result {
                        Ok(Payload::Bytes(bytes)) => {
                            let (descriptors, _) = bytes.as_chunks::<{ Descriptor::BYTES }>();
                            channel.fetched = channel.fetched.wrapping_add(batch);
                            channel.hold(descriptors.iter().map(Descriptor::from_bytes));
                            News::default()
                        }
                        Ok(Payload::Length(_)) => News::default(),
                        Err(why) => channel.halt(code(why)),
                    }
                }
                _ => {
                    let Some(piece) = channel.over(op, result.as_ref().map_or_else(code, |_| 0)) else {
                        continue;
                    };
                    if let Ok(Payload::Bytes(bytes)) = &result {
                        self.memory.write(piece.local.into(), bytes);
                    }
                    channel.retire()
                }
            };
            self.tell(cx, number, news);
            self.advance(cx, number);
        }
    }

    fn write_accepted(&mut self, cx: &mut Context<'_>, op: OpId) {
        if self.channels[1].over(op, 0).is_some() {
            let news = self.channels[1].retire();
            self.tell(cx, 1, news);
            self.advance(cx, 1);
        }
    }

    /// Writes the record back, then interrupts.
    fn tell(&mut self, cx: &mut Context<'_>, number: usize, news: News) {
        let stream = if number == 0 { STATUS } else { FROM_CARD };
        let channel = &self.channels[number];
        if news.record && channel.write_back != 0 {
            cx.dma_write(stream, channel.write_back, channel.record().to_bytes().into());
        }
        if !news.interrupt {
            return;
        }
        let cause = 1 << number;
        if cx.interrupt_mode() != InterruptMode::Intx && self.irq_enable & cause != 0 {
            return cx.msix(stream, number as u16);
        }
        self.irq_status |= cause;
        self.interrupt(cx);
    }

    /// The level of the legacy interrupt, behind the records of both channels.
    fn interrupt(&mut self, cx: &mut Context<'_>) {
        let asserted = self.irq_status & self.irq_enable != 0 && cx.interrupt_mode() == InterruptMode::Intx;
        if asserted != std::mem::replace(&mut self.asserted, asserted) {
            cx.set_intx(FROM_CARD, asserted);
        }
    }
}

fn channel_register(channel: &Channel, at: u64) -> u32 {
    match at {
        ch::BASE => channel.base as u32,
        0x04 => (channel.base >> 32) as u32,
        ch::LOG2 => channel.log2,
        ch::TAIL => channel.tail,
        ch::HEAD => channel.head,
        ch::FETCHED => channel.fetched,
        ch::WRITE_BACK => channel.write_back as u32,
        0x1C => (channel.write_back >> 32) as u32,
        ch::CONTROL => channel.control,
        ch::STATUS => channel.status,
        0x30..0x40 => channel.pushed[(at as usize - 0x30) / 4],
        ch::PIO_ROOM => channel.room(),
        _ => 0,
    }
}

fn write_channel(channel: &mut Channel, at: u64, value: u32) {
    let low = |whole: u64| whole >> 32 << 32 | u64::from(value);
    let high = |whole: u64| whole & 0xFFFF_FFFF | u64::from(value) << 32;
    match at {
        ch::BASE => channel.base = low(channel.base),
        0x04 => channel.base = high(channel.base),
        ch::LOG2 => channel.log2 = value,
        ch::TAIL => channel.tail = value,
        ch::WRITE_BACK => channel.write_back = low(channel.write_back),
        0x1C => channel.write_back = high(channel.write_back),
        ch::CONTROL if value & ch::RESET != 0 => channel.reset(),
        ch::CONTROL => channel.control = value & (ch::RUN | ch::PIO),
        0x30..0x40 => {
            channel.pushed[(at as usize - 0x30) / 4] = value;
            if at == 0x3C {
                let mut bytes = [0; Descriptor::BYTES];
                for (word, bytes) in channel.pushed.iter().zip(bytes.as_chunks_mut().0) {
                    *bytes = word.to_le_bytes();
                }
                channel.push(Descriptor::from_bytes(&bytes));
            }
        }
        _ => {}
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

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { bar, offset, data, .. } if bar == regs::BAR.0 => {
                let words = data.bytes().map(|bytes| bytes.as_chunks::<4>().0).unwrap_or_default();
                for (word, at) in words.iter().zip((offset..).step_by(4)) {
                    self.write(cx, at, u32::from_le_bytes(*word));
                }
            }
            Event::MmioRead { bar, offset, bytes, reply } if bar == regs::BAR.0 => {
                let mut image = [0; 64];
                for (word, at) in image.as_chunks_mut::<4>().0.iter_mut().zip((offset & !3..).step_by(4)) {
                    *word = self.register(cx, at).to_le_bytes();
                }
                cx.reply(reply, read_image(&image, offset & 3, bytes));
            }
            Event::MmioRead { offset, bytes, reply, .. } => {
                let data = self.data(cx, (self.window << 20).wrapping_add(offset as u32), bytes);
                cx.reply(reply, data);
            }
            Event::DmaReadDone { op, result } => self.read_done(cx, op, result),
            Event::DmaWriteAccepted { op } => self.write_accepted(cx, op),
            Event::Reset => *self = Self::new(self.memory_bytes),
            Event::MmioWrite { offset, data, .. } => {
                let local = (self.window << 20).wrapping_add(offset as u32);
                self.memory.write(local.into(), data.bytes().map_or(&[], |bytes| bytes));
            }
            Event::Start | Event::Timer { .. } => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.clone()))
    }
}
