//! `dd`: moves blocks between a storage device and host memory, request by request, as the program of that name and the operating
//! system below it do with direct IO. The driver of a [`Storage`](crate::storage::Storage).

use crate::contract::{DmaError, OpId};
use crate::host::{HostContext, HostEvent, HostProgram, Measured};
use crate::storage::{Command, SECTOR, regs, unwritten};
use tlplab_cfgspace::InterruptMode;
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};

/// The work of a dd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DdLoad {
    /// The device is written; otherwise it is read.
    pub write: bool,
    /// Bytes of a block (`bs=`), a multiple of [`SECTOR`].
    pub block: u64,
    /// Blocks (`count=`), one after the other on the device, into or from the same buffer.
    pub count: u64,
    /// Bytes of a request to the device at most, a multiple of [`SECTOR`].
    pub request: u64,
    /// The time of the host for each sector of a request before it is issued, when nothing else is under way.
    pub cost: Duration,
    /// The time of the host for each sector of a request ahead of it, while the device works on the one before: it pins the pages.
    pub ahead: Duration,
    /// The pages of the buffer are scattered: the device gets a list of them ([`Command::listed`]).
    pub page_list: bool,
    /// Its start, after [`HostEvent::Start`].
    pub start: Duration,
}

/// The ring holds one command: the next request is made when the one before is done.
const ENTRIES: u32 = 1;

/// Moves blocks, one request after the other. In payload-carrying runs it checks what it reads from sectors that nobody wrote.
#[derive(Clone, Debug)]
pub struct Dd {
    device: String,
    load: DdLoad,
    index: usize,
    registers: u64,
    ring: u64,
    buffer: u64,
    /// The list of the pages of a request.
    list: u64,
    /// The end of the host's work ahead for the next request.
    ready: Time,
    /// Requests ever posted.
    posted: u32,
    /// Bytes that were moved, and those of the request under way.
    moved: u64,
    moving: u64,
    from: Time,
    to: Time,
    /// The device raises a level, which stays until it is acknowledged.
    by_pin: bool,
    /// The acknowledgement under way.
    acknowledges: Option<OpId>,
}

impl Dd {
    /// A dd on the storage device called `device`.
    pub fn new(device: &str, load: DdLoad) -> Self {
        let (index, registers, ring, buffer, list, posted, moved, moving) = (0, 0, 0, 0, 0, 0, 0, 0);
        let (device, from, to, ready) = (device.to_string(), Time::ZERO, Time::ZERO, Time::ZERO);
        let (by_pin, acknowledges) = (false, None);
        Self {
            device,
            load,
            index,
            registers,
            ring,
            buffer,
            list,
            ready,
            posted,
            moved,
            moving,
            from,
            to,
            by_pin,
            acknowledges,
        }
    }

    fn probe(&mut self, cx: &mut HostContext<'_>) -> Result<(), String> {
        let (index, info) = cx.driven(&self.device)?;
        let registers = info.base(0)?;
        self.by_pin = info.interrupting()? == InterruptMode::Intx;
        let mut alloc = |bytes| cx.memory().alloc(bytes, SECTOR).map_err(|error| error.to_string());
        (self.ring, self.buffer) = (alloc(u64::from(ENTRIES) * Command::BYTES)?, alloc(self.load.block)?);
        self.list = if self.load.page_list { alloc(self.load.request / SECTOR * 8)? } else { 0 };
        (self.index, self.registers) = (index, registers);
        let mut setup = [0; 12];
        setup[..8].copy_from_slice(&self.ring.to_le_bytes());
        setup[8..].copy_from_slice(&ENTRIES.to_le_bytes());
        cx.mmio_write(0, registers + regs::BASE, setup.into());
        Ok(())
    }

    /// The host begins to work on the next request.
    fn prepare(&mut self, cx: &mut HostContext<'_>) {
        let left = self.load.block - self.moved % self.load.block;
        self.moving = left.min(self.load.request);
        cx.timer(cx.now().max(self.ready) + self.each_sector(self.load.cost), 0);
    }

    /// Time for each sector of a request.
    fn each_sector(&self, time: Duration) -> Duration {
        Duration::from_fs(time.as_fs().saturating_mul(self.moving / SECTOR))
    }

    /// The host has done its part: the device gets the request.
    fn issue(&mut self, cx: &mut HostContext<'_>) {
        self.ready = cx.now() + self.each_sector(self.load.ahead);
        let buffer = self.buffer + self.moved % self.load.block;
        let command = Command {
            address: if self.load.page_list { self.list } else { buffer },
            lba: self.moved / SECTOR,
            sectors: (self.moving / SECTOR) as u32,
            write: self.load.write,
            interrupt: true,
            listed: self.load.page_list,
        };
        if self.load.write && !cx.length_only() {
            for sector in 0..u64::from(command.sectors) {
                let data = written(command.lba + sector);
                cx.memory().write(buffer + sector * SECTOR, &data);
            }
        }
        if self.load.page_list {
            let pages = (0..u64::from(command.sectors)).map(|sector| buffer + sector * SECTOR);
            let list: Vec<u8> = pages.flat_map(u64::to_le_bytes).collect();
            cx.memory().write(self.list, &list);
        }
        cx.memory().write(self.ring, &command.to_bytes());
        self.posted = self.posted.wrapping_add(1);
        cx.mmio_write(0, self.registers + regs::TAIL, self.posted.to_le_bytes().into());
    }

    /// A message is about the device; a level may be somebody else's, and reading the register that tells lowers it.
    fn interrupt(&mut self, cx: &mut HostContext<'_>) {
        if !self.by_pin {
            self.look(cx);
        } else if self.acknowledges.is_none() {
            self.acknowledges = Some(cx.mmio_read_register(0, self.registers + regs::INTERRUPT, 4));
        }
    }

    fn acknowledged(&mut self, cx: &mut HostContext<'_>, answer: Result<Payload, DmaError>) {
        self.acknowledges = None;
        match answer {
            Ok(level) if level.bytes().is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)) => {}
            Ok(_) => self.look(cx),
            // Somebody else's interrupt, as that of the slot below which the device was: it is gone.
            Err(_) => {}
        }
    }

    /// Checks for the end of the request.
    fn look(&mut self, cx: &mut HostContext<'_>) {
        let mut status = [0; 4];
        cx.memory().read(self.ring + Command::STATUS, &mut status);
        match u32::from_le_bytes(status) {
            // An interrupt of a request that was seen.
            Command::PENDING => return,
            _ if self.moving == 0 => return,
            Command::DONE => {}
            _ => return cx.fault(format!("{} failed the request at byte {}", self.device, self.moved)),
        }
        if let Some(at) = self.first_wrong(cx) {
            return cx.fault(format!("byte {at} of {} is wrong", self.device));
        }
        self.moved += self.moving;
        self.moving = 0;
        self.to = cx.now();
        match self.moved < self.load.block.saturating_mul(self.load.count) {
            true => self.prepare(cx),
            false => cx.finished(),
        }
    }

    /// The first byte of the device that was read and is not what it is.
    fn first_wrong(&self, cx: &mut HostContext<'_>) -> Option<u64> {
        if self.load.write || cx.length_only() {
            return None;
        }
        let mut found = vec![0; SECTOR as usize];
        (self.moved..self.moved + self.moving).step_by(SECTOR as usize).find_map(|at| {
            cx.memory().read(self.buffer + at % self.load.block, &mut found);
            let wrong = found.iter().zip(unwritten(at / SECTOR)).position(|(found, right)| *found != right);
            wrong.map(|byte| at + byte as u64)
        })
    }
}

/// The data written to a sector: other than those of [`unwritten`] sectors.
pub fn written(lba: u64) -> Vec<u8> {
    unwritten(lba).into_iter().map(|byte| !byte).collect()
}

impl HostProgram for Dd {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => match self.probe(cx) {
                Ok(()) => cx.timer(cx.now() + self.load.start, 1),
                Err(why) => cx.fault(why),
            },
            HostEvent::Timer { id: 0 } => self.issue(cx),
            HostEvent::Timer { .. } => {
                self.from = cx.now();
                // Nothing goes ahead of the first request.
                self.moving = self.load.block.min(self.load.request);
                self.ready = cx.now() + self.each_sector(self.load.ahead);
                self.prepare(cx);
            }
            HostEvent::Interrupt { device, .. } if device == self.index => self.interrupt(cx),
            HostEvent::MmioReadDone { op, result } if self.acknowledges == Some(op) => {
                self.acknowledged(cx, result);
            }
            _ => {}
        }
    }

    fn measured(&self) -> Vec<Measured> {
        let measured = Measured { stream: 0, bytes: self.moved, from: self.from, to: self.to, calls: None };
        if self.moved > 0 { vec![measured] } else { Vec::new() }
    }

    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        Some(Box::new(self.clone()))
    }
}
