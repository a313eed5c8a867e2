//! `storage`: a block device that works off commands in host memory, as disks and SSDs do.
//!
//! The driver writes [`Command`]s into a ring in host memory and rings the doorbell. The device fetches one command at a time, ahead of
//! need by one, and moves its sectors in order: for a read the medium is accessed, then the sector is written to host memory; for a write
//! it is the other way round. At most `sectors_in_flight` sectors are anywhere between the beginning of their access and the end of
//! their DMA. With 1, as in a plain IDE disk, a sector begins when the last write of the one before was accepted: posted writes, when it
//! was sent; non-posted ones, when it was answered. When a command's sectors are done the device writes its status word, and once that is
//! accepted, interrupts. [`Dd`](crate::storage::dd::Dd) is the other side.

pub mod dd;

use crate::contract::{Context, Device, DmaError, Event, OpId, Stream};
use crate::copier::read_image;
use crate::identity::{BarSpec, Identity};
use crate::pages::Pages;
use std::collections::VecDeque;
use tlplab_cfgspace::InterruptMode;
use tlplab_cfgspace::VENDOR_ID;
use tlplab_transaction::Payload;
use tlplab_units::Duration;

/// Bytes of a sector.
pub const SECTOR: u64 = 4096;

/// Registers in BAR 0, little-endian.
pub mod regs {
    /// Address of the ring of commands, 64 bits.
    pub const BASE: u64 = 0x00;
    /// Number of commands in it, 32 bits.
    pub const ENTRIES: u64 = 0x08;
    /// Doorbell, 32 bits: commands ever posted, modulo 2^32.
    pub const TAIL: u64 = 0x0C;
    /// Commands done, 32 bits, modulo 2^32, read-only.
    pub const HEAD: u64 = 0x10;
    /// 32 bits, read-only: 1 if a legacy interrupt is asserted. Reading deasserts it.
    pub const INTERRUPT: u64 = 0x14;
    /// Size of the register file.
    pub const END: u64 = 0x18;
}

/// A command: 32 bytes in host memory, little-endian: address, first sector, sectors, flags, status, reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The buffer in host memory, or the list of its pages.
    pub address: u64,
    /// The first sector on the medium.
    pub lba: u64,
    /// How many sectors, at least 1.
    pub sectors: u32,
    /// The medium is written, from the buffer; otherwise it is read.
    pub write: bool,
    /// Interrupt when it is done.
    pub interrupt: bool,
    /// The pages of the buffer are scattered: `address` is that of a list of their addresses, 8 bytes each, and the device reads the one
    /// of a sector before it begins with it, as IDE disks read the entries of their physical region descriptor table.
    pub listed: bool,
}

impl Command {
    /// Size in memory.
    pub const BYTES: u64 = 32;
    /// Where in it the device writes its status word.
    pub const STATUS: u64 = 24;
    /// Status: not done yet, as the driver leaves it.
    pub const PENDING: u32 = 0;
    /// Status: all sectors were moved.
    pub const DONE: u32 = 1;
    /// Status: some sectors were not.
    pub const FAILED: u32 = 2;

    /// As in memory, with the status [`PENDING`](Self::PENDING).
    pub fn to_bytes(self) -> [u8; Self::BYTES as usize] {
        let flags = u32::from(self.write) | u32::from(self.interrupt) << 1 | u32::from(self.listed) << 2;
        let mut bytes = [0; Self::BYTES as usize];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.lba.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sectors.to_le_bytes());
        bytes[20..24].copy_from_slice(&flags.to_le_bytes());
        bytes
    }
    /// From memory.
    pub fn from_bytes(bytes: &[u8; Self::BYTES as usize]) -> Self {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let flags = word(20);
        Self {
            address: long(0),
            lba: long(8),
            sectors: word(16),
            write: flags & 1 != 0,
            interrupt: flags & 2 != 0,
            listed: flags & 4 != 0,
        }
    }
}

/// What a sector holds that was never written: the place of each 8 bytes on the medium, in bytes.
pub fn unwritten(lba: u64) -> Vec<u8> {
    let first = lba.wrapping_mul(SECTOR);
    (0..SECTOR).step_by(8).flat_map(|at| first.wrapping_add(at).to_le_bytes()).collect()
}

/// How a storage device works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageConfig {
    /// Time from the beginning of a sector's access to its data, whatever came before.
    pub access: Duration,
    /// Sectors under way at most; at least 1.
    pub sectors_in_flight: u32,
}

impl Default for StorageConfig {
    /// 1 µs, one sector at a time.
    fn default() -> Self {
        Self { access: Duration::from_us(1), sectors_in_flight: 1 }
    }
}

const FETCH: u16 = 0;
/// Reads of host memory.
const FROM_HOST: u16 = 1;
/// Sectors to host memory.
const TO_HOST: u16 = 2;
/// Status words and interrupts. They begin when the sectors were accepted, so they stay behind them.
const STATUS: u16 = 3;
/// Its streams.
pub const STREAMS: &[Stream] =
    &[("commands", "read"), ("from_host", "read"), ("to_host", "write"), ("status", "write")];
/// Commands fetched and not done, at most: the one that is worked off, and the next.
const COMMANDS: usize = 2;

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    command: Command,
    /// Sectors that have begun.
    begun: u32,
    /// Sectors that are over.
    over: u32,
    failed: bool,
}

/// A sector under way.
#[derive(Clone, Copy, Debug)]
struct Sector {
    /// Its number among all sectors, and the number of its timer.
    number: u64,
    /// The number of its command.
    command: u32,
    /// Its place in the command.
    index: u32,
    /// Its page in host memory.
    page: u64,
    /// The read of the page's address, while that is under way.
    listing: Option<OpId>,
    /// Its DMA, while that is under way.
    op: Option<OpId>,
}

/// The storage device.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    config: StorageConfig,
    base: u64,
    entries: u32,
    tail: u32,
    /// Commands done.
    head: u32,
    asserted: bool,
    fetch: Option<OpId>,
    /// In ring order; the first has the number `head`.
    commands: VecDeque<UnderWay>,
    sectors: Vec<Sector>,
    next_sector: u64,
    /// The status word on its way, of the first command.
    status: Option<OpId>,
    medium: Pages,
}

impl Storage {
    /// An idle storage device with nothing written on it.
    pub fn new(config: StorageConfig) -> Self {
        let sectors_in_flight = config.sectors_in_flight.max(1);
        Self { config: StorageConfig { sectors_in_flight, ..config }, ..Self::default() }
    }

    /// What is on the medium, from a payload-carrying run.
    pub fn sector(&self, lba: u64) -> Vec<u8> {
        let mut data = vec![0; SECTOR as usize];
        let at = lba.wrapping_mul(SECTOR);
        if !self.medium.holds(at, SECTOR) {
            return unwritten(lba);
        }
        self.medium.read(at, &mut data);
        data
    }

    fn image(&self) -> [u8; regs::END as usize] {
        let mut image = [0; regs::END as usize];
        image[0x00..0x08].copy_from_slice(&self.base.to_le_bytes());
        image[0x08..0x0C].copy_from_slice(&self.entries.to_le_bytes());
        image[0x0C..0x10].copy_from_slice(&self.tail.to_le_bytes());
        image[0x10..0x14].copy_from_slice(&self.head.to_le_bytes());
        image[0x14..0x18].copy_from_slice(&u32::from(self.asserted).to_le_bytes());
        image
    }

    fn write_registers(&mut self, offset: u64, data: &[u8]) {
        let mut image = self.image();
        for (byte, at) in data.iter().zip(offset as usize..).take_while(|(_, at)| *at < regs::HEAD as usize) {
            image[at] = *byte;
        }
        let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().expect("4 bytes"));
        self.base = u64::from_le_bytes(image[0..8].try_into().expect("8 bytes"));
        (self.entries, self.tail) = (word(0x08), word(0x0C));
    }

    fn read_registers(&mut self, cx: &mut Context<'_>, offset: u64, bytes: u32) -> Payload {
        let data = read_image(&self.image(), offset, bytes);
        let reads_interrupt = offset < regs::INTERRUPT + 4 && offset + u64::from(bytes) > regs::INTERRUPT;
        if reads_interrupt && std::mem::take(&mut self.asserted) {
            cx.deassert_intx(STATUS);
        }
        data
    }

    fn slot(&self, command: u32) -> u64 {
        self.base.wrapping_add(u64::from(command % self.entries.max(1)) * Command::BYTES)
    }

    /// Begins all that can begin.
    fn advance(&mut self, cx: &mut Context<'_>) {
        let fetched = self.head.wrapping_add(self.commands.len() as u32);
        let posted = self.tail.wrapping_sub(fetched);
        if self.fetch.is_none() && posted > 0 && self.entries > 0 && self.commands.len() < COMMANDS {
            self.fetch = Some(cx.dma_read_control(FETCH, self.slot(fetched), Command::BYTES));
        }
        while (self.sectors.len() as u32) < self.config.sectors_in_flight && self.begin_sector(cx) {}
        self.retire(cx);
    }

    /// Begins the next sector, if there is one.
    fn begin_sector(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(place) = self.commands.iter().position(|way| way.begun < way.command.sectors) else {
            return false;
        };
        let way = &mut self.commands[place];
        let (command, index) = (way.command, way.begun);
        way.begun += 1;
        let number = self.next_sector;
        self.next_sector += 1;
        let listing = command
            .listed
            .then(|| cx.dma_read_control(FETCH, command.address.wrapping_add(u64::from(index) * 8), 8));
        let page = command.address.wrapping_add(u64::from(index) * SECTOR);
        let number_of_command = self.head.wrapping_add(place as u32);
        self.sectors.push(Sector { number, command: number_of_command, index, page, listing, op: None });
        if listing.is_none() {
            self.begin_access(cx, self.sectors.len() - 1, command.write);
        }
        true
    }

    /// A sector's page is known: its data are read from there, or from the medium.
    fn begin_access(&mut self, cx: &mut Context<'_>, place: usize, write: bool) {
        let sector = &mut self.sectors[place];
        match write {
            true => sector.op = Some(cx.dma_read(FROM_HOST, sector.page, SECTOR)),
            false => cx.timer(cx.now() + self.config.access, sector.number),
        }
    }

    /// The address of a sector's page came.
    fn page_came(&mut self, cx: &mut Context<'_>, place: usize, result: Result<Payload, DmaError>) {
        let sector = &mut self.sectors[place];
        sector.listing = None;
        let command = sector.command;
        let address = result.as_ref().ok().and_then(Payload::bytes).and_then(|bytes| bytes.try_into().ok());
        match (address, self.way(command).map(|way| way.command.write)) {
            (Some(address), Some(write)) => {
                self.sectors[place].page = u64::from_le_bytes(address);
                self.begin_access(cx, place, write);
            }
            _ => self.sector_over(cx, place, true),
        }
    }

    fn way(&mut self, command: u32) -> Option<&mut UnderWay> {
        self.commands.get_mut(command.wrapping_sub(self.head) as usize)
    }

    /// The access of a sector is over: its data are there (read), or on the medium (write).
    fn accessed(&mut self, cx: &mut Context<'_>, number: u64) {
        let Some(place) = self.sectors.iter().position(|sector| sector.number == number) else { return };
        let Sector { command, index, page, .. } = self.sectors[place];
        let Some(way) = self.way(command) else { return };
        let Command { lba, write, .. } = way.command;
        if write {
            return self.sector_over(cx, place, false);
        }
        let data = match cx.length_only() {
            true => Payload::Length(SECTOR),
            false => self.sector(lba.wrapping_add(u64::from(index))).into(),
        };
        self.sectors[place].op = Some(cx.dma_write(TO_HOST, page, data));
    }

    fn data_came(&mut self, cx: &mut Context<'_>, op: OpId, result: Result<Payload, DmaError>) {
        let Some(place) = self.sectors.iter().position(|sector| sector.op == Some(op)) else { return };
        let Sector { number, command, index, .. } = self.sectors[place];
        let Some(way) = self.way(command) else { return };
        let at = way.command.lba.wrapping_add(u64::from(index)).wrapping_mul(SECTOR);
        match result {
            Ok(data) => {
                if let Some(bytes) = data.bytes() {
                    self.medium.write(at, bytes);
                }
                self.sectors[place].op = None;
                cx.timer(cx.now() + self.config.access, number);
            }
            Err(_) => self.sector_over(cx, place, true),
        }
    }

    fn write_accepted(&mut self, cx: &mut Context<'_>, op: OpId) {
        if self.status == Some(op) {
            self.status = None;
            self.command_over(cx);
        } else if let Some(place) = self.sectors.iter().position(|sector| sector.op == Some(op)) {
            self.sector_over(cx, place, false);
        }
    }

    fn sector_over(&mut self, cx: &mut Context<'_>, place: usize, failed: bool) {
        let Sector { command, .. } = self.sectors.swap_remove(place);
        if let Some(way) = self.way(command) {
            way.over += 1;
            way.failed |= failed;
        }
        self.advance(cx);
    }

    /// Writes the status of the first command if it is done.
    fn retire(&mut self, cx: &mut Context<'_>) {
        if let (None, Some(first)) = (self.status, self.commands.front())
            && first.over == first.command.sectors
        {
            let status = if first.failed { Command::FAILED } else { Command::DONE };
            let at = self.slot(self.head) + Command::STATUS;
            self.status = Some(cx.dma_write(STATUS, at, status.to_le_bytes().into()));
        }
    }

    fn command_over(&mut self, cx: &mut Context<'_>) {
        let Some(done) = self.commands.pop_front() else { return };
        self.head = self.head.wrapping_add(1);
        match cx.interrupt_mode() {
            _ if !done.command.interrupt => {}
            InterruptMode::MsiX | InterruptMode::Msi => cx.msix(STATUS, 0),
            // Whoever disables the pin may still ask configuration space for its level.
            InterruptMode::Intx | InterruptMode::Disabled => {
                if !std::mem::replace(&mut self.asserted, true) {
                    cx.assert_intx(STATUS);
                }
            }
        }
        self.advance(cx);
    }

    fn fetched(&mut self, cx: &mut Context<'_>, result: Result<Payload, DmaError>) {
        self.fetch = None;
        match result.as_ref().map(Payload::bytes) {
            Ok(Some(bytes)) => match bytes.try_into().map(Command::from_bytes) {
                Ok(command) => {
                    self.commands.push_back(UnderWay { command, begun: 0, over: 0, failed: false });
                    self.advance(cx);
                }
                Err(_) => {
                    cx.fault(format!("storage: a command has {} B, not {}", bytes.len(), Command::BYTES))
                }
            },
            Ok(None) => cx.fault(
                "storage: a command came without its bytes; control reads carry data in every run".into(),
            ),
            // Where its status word belongs is not lost with it.
            Err(_) => {
                let command =
                    Command { address: 0, lba: 0, sectors: 0, write: false, interrupt: true, listed: false };
                self.commands.push_back(UnderWay { command, begun: 0, over: 0, failed: true });
                self.advance(cx);
            }
        }
    }
}

impl Device for Storage {
    fn identity(&self) -> Identity {
        Identity {
            revision: 1,
            bars: vec![BarSpec::registers(0, 4096)],
            msix_vectors: 1,
            msi_vectors: 1,
            intx: true,
            ..Identity::new(VENDOR_ID, 0x0004, 0x01_80_00) // mass storage controller, other
        }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset, data, .. } => {
                if let Some(bytes) = data.bytes() {
                    self.write_registers(offset, bytes);
                    self.advance(cx);
                }
            }
            Event::MmioRead { offset, bytes, reply, .. } => {
                let data = self.read_registers(cx, offset, bytes);
                cx.reply(reply, data);
            }
            Event::DmaReadDone { op, result } if self.fetch == Some(op) => self.fetched(cx, result),
            Event::DmaReadDone { op, result } => {
                match self.sectors.iter().position(|sector| sector.listing == Some(op)) {
                    Some(place) => self.page_came(cx, place, result),
                    None => self.data_came(cx, op, result),
                }
            }
            Event::DmaWriteAccepted { op } => self.write_accepted(cx, op),
            Event::Timer { id } => self.accessed(cx, id),
            Event::Reset => {
                let medium = std::mem::take(&mut self.medium);
                *self = Self { medium, ..Self::new(self.config) };
            }
            Event::Start => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.clone()))
    }
}
