//! A device of the contract behind its end point, whatever its adapter sends.

use super::letter::{Choices, Letter};
use super::{LOCAL, LONG, STRANGER, advance, datagram, drain};
use std::net::SocketAddrV4;
use tlplab_cfgspace::MessageWrite;
use tlplab_device::{BarSpec, Context, Device, Event, Identity, OpId, Refusal, ReplyToken};
use tlplab_nettlp::endpoint::{EndpointConfig, Window};
use tlplab_nettlp::{BarMap, DevicePort, DeviceServer, Engine, MAX_DATAGRAM, Undeliverable, Vectors};
use tlplab_units::{Bdf, Duration, Time};

/// Where the host reaches it; the table of its interrupts is at the end.
const WINDOW: Window = Window { base: 0xB000_0000, size: 1 << 20 };
/// Operations that it has under way.
const MOST: u64 = 64;

/// It does DMA, interrupts and waits as the host's writes tell it, and answers reads at once, late, with an error, or never.
#[derive(Default)]
struct Busy {
    begun: u64,
    reads: Vec<OpId>,
    writes: Vec<OpId>,
    late: Vec<(ReplyToken, u32)>,
}

impl Busy {
    /// What is written says what to do.
    fn written(&mut self, cx: &mut Context<'_>, offset: u64, what: u8, bytes: u64) {
        let stream = u16::from(what >> 7);
        match what & 3 {
            0 | 1 if self.begun >= MOST => return,
            0 => self.reads.push(cx.dma_read(stream, offset << 3, bytes)),
            1 => self.writes.push(cx.dma_write(stream, offset << 3, vec![7; bytes as usize].into())),
            2 => return cx.msix(stream, (what >> 2 & 31).into()),
            _ => return cx.timer(cx.now() + Duration::from_us(bytes), offset),
        }
        self.begun += 1;
    }

    fn over(&mut self, op: OpId) {
        let (reads, writes) = (&mut self.reads, &mut self.writes);
        let before = reads.len() + writes.len();
        reads.retain(|other| *other != op);
        writes.retain(|other| *other != op);
        assert_eq!(reads.len() + writes.len() + 1, before, "an operation ends once");
        self.begun -= 1;
    }
}

impl Device for Busy {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::registers(0, 4096), BarSpec::memory(2, 4096)];
        Identity { bars, ..Identity::new(0x71AB, 0x7357, 0xFF_00_00) }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioRead { bar, offset, bytes, reply } => {
                assert!(
                    matches!(bar, 0 | 2) && offset + u64::from(bytes) <= 4096,
                    "{bytes} B at {offset:#x}"
                );
                match offset >> 4 & 3 {
                    0 | 1 => cx.reply(reply, vec![9; bytes as usize].into()),
                    2 if self.late.len() < MOST as usize => self.late.push((reply, bytes)),
                    2 => cx.reply_error(reply, Refusal::CompleterAbort),
                    // It has forgotten.
                    _ => {}
                }
            }
            Event::MmioWrite { bar, offset, data } => {
                assert!(
                    matches!(bar, 0 | 2) && offset + data.len() <= 4096,
                    "{} B at {offset:#x}",
                    data.len()
                );
                let what = data.bytes().and_then(|bytes| bytes.first()).copied();
                self.written(cx, offset, what.unwrap_or(0), data.len());
                for (reply, bytes) in self.late.drain(..) {
                    cx.reply(reply, vec![8; bytes as usize].into());
                }
            }
            Event::DmaReadDone { op, .. } | Event::DmaWriteAccepted { op } => self.over(op),
            _ => {}
        }
    }
}

/// The device and its port.
pub(crate) struct DeviceUnderFire {
    server: DeviceServer<Busy>,
    now: Time,
    letter: Letter,
    buffer: [u8; MAX_DATAGRAM],
}

impl DeviceUnderFire {
    /// In odd modes the table of interrupts is in the window, where junk reaches it, and in even ones it is given.
    pub(crate) fn new(mode: u8) -> Self {
        let bars = BarMap::packed(&Busy::default().layout(), WINDOW).expect("it fits");
        let (bars, vectors) = match mode & 1 {
            0 => (bars, Vectors::Given(vec![MessageWrite { address: 0xFEE0_0000, data: 7 }; 16])),
            _ => (bars.with_table(WINDOW), Vectors::in_window()),
        };
        // Those that letters have.
        let config = EndpointConfig { tags: 0..=3, ..EndpointConfig::new(LOCAL, Bdf(0x1B00)) };
        let port = DevicePort::new(config, bars, vectors);
        let mut server = DeviceServer::new(Busy::default(), port);
        server.start(Time::ZERO);
        Self { server, now: Time::ZERO, letter: Letter::new(), buffer: [0; MAX_DATAGRAM] }
    }

    /// Something happens; true if it was a datagram.
    pub(crate) fn step(&mut self, choices: &mut Choices<'_>) -> bool {
        let what = choices.byte();
        match what {
            0..=3 => self.pass(Duration::from_us(u64::from(choices.half()))),
            4 => {
                let to = SocketAddrV4::new(LOCAL, 0x3000 + u16::from(choices.byte()));
                self.server.handle_undeliverable(self.now, to, Undeliverable::PortRefused);
            }
            5..=60 => {
                _ = drain(&mut self.server, self.now, choices.byte().into(), &[LOCAL], &mut self.buffer)
            }
            _ => {
                self.letter.write(choices);
                let from = if what == 255 { STRANGER } else { LOCAL };
                self.server.handle_datagram(self.now, datagram(&self.letter, from));
                let end = self.server.port().endpoint();
                assert!(end.in_flight() <= 256 && end.host_reads_open() <= 1024);
                return true;
            }
        }
        false
    }

    fn pass(&mut self, time: Duration) {
        advance(&mut self.server, &mut self.now, time);
    }

    /// What was done by now: interrupts, operations.
    pub(crate) fn done(&self) -> (u64, u64) {
        (self.server.port().interrupts(), self.server.port().counters().completions)
    }

    /// Everything is sent and given up: nothing may be under way. What the device has forgotten to answer is kept until its place is
    /// needed.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            drain(&mut self.server, self.now, usize::MAX, &[LOCAL], &mut self.buffer);
            self.pass(LONG);
            let end = self.server.port().endpoint();
            if end.in_flight() == 0 && end.queued() == 0 && self.server.device().begun == 0 {
                return;
            }
        }
        panic!("{} operations under way", self.server.device().begun);
    }
}

/// Datagrams to a device; how many.
pub(crate) fn device(bytes: &[u8]) -> usize {
    let mut choices = Choices(bytes);
    let mut fire = DeviceUnderFire::new(choices.byte());
    let mut count = 0;
    while !choices.is_used_up() {
        count += usize::from(fire.step(&mut choices));
    }
    fire.settle();
    count
}
