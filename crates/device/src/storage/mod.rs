//! `storage`: a block device that executes commands in host memory, as disks and SSDs do.
//!
//! The driver writes [`Command`]s into a ring in host memory and rings the doorbell. The device fetches one command at a time, ahead of
//! need by one, and moves its sectors in order: for a read the medium is accessed, then the sector is written to host memory; for a write
//! it is the other way round. At most `sectors_in_flight` sectors are anywhere between the beginning of their access and the end of
//! their DMA. With 1, as in a plain IDE disk, a sector begins when the last write of the one before was accepted: posted writes, when it
//! was sent; non-posted ones, when it was answered. When a command's sectors are done the device writes its status word, and once that is
//! accepted, interrupts. [`Dd`](crate::storage::dd::Dd) is the other side.

pub mod dd;

use crate::contract::{Context, Device, DmaError, Event, OpId, Stream};
use crate::identity::{BarSpec, Identity};
use crate::kit::{Alarms, Operations, Pin, RegisterFile, Ring, Touched};
use crate::pages::Pages;
use std::collections::VecDeque;
use tlplab_cfgspace::{InterruptMode, VENDOR_ID};
use tlplab_transaction::Payload;
use tlplab_units::Duration;

/// Bytes of a sector.
pub const SECTOR: u64 = 4096;

/// Registers in BAR 0, little-endian.
pub mod regs {
    crate::registers! {
        /// Address of the ring of commands.
        pub BASE: u64 = 0x00, rw;
        /// Number of commands in it.
        pub ENTRIES: u32 = 0x08, rw;
        /// Doorbell: commands ever posted, modulo 2^32.
        pub TAIL: u32 = 0x0C, rw;
        /// Commands done, modulo 2^32.
        pub HEAD: u32 = 0x10, ro;
        /// 1 if a legacy interrupt is asserted. Reading deasserts it.
        pub INTERRUPT: u32 = 0x14, ro;
    }
}

crate::record! {
    /// A command: 32 bytes in host memory, little-endian. Behind its flags stands its status, which is [`PENDING`](Self::PENDING) as the
    /// driver leaves it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Command [32] {
        /// The buffer in host memory, or the list of its pages.
        pub address: u64 = 0,
        /// The first sector on the medium.
        pub lba: u64 = 8,
        /// The number of sectors, at least 1.
        pub sectors: u32 = 16,
        /// The medium is written, from the buffer; otherwise it is read.
        pub write: bool = 20 bit 0,
        /// Interrupt when it is done.
        pub interrupt: bool = 20 bit 1,
        /// The pages of the buffer are scattered: `address` is that of a list of their addresses, 8 bytes each, and the device reads the
        /// one of a sector before it begins with it, as IDE disks read the entries of their physical region descriptor table.
        pub listed: bool = 20 bit 2,
    }
}

impl Command {
    /// The place in it where the device writes its status word.
    pub const STATUS: u64 = 24;
    /// Status: not done yet, as the driver leaves it.
    pub const PENDING: u32 = 0;
    /// Status: all sectors were moved.
    pub const DONE: u32 = 1;
    /// Status: some sectors were not.
    pub const FAILED: u32 = 2;
}

/// The data of a sector that was never written: the place of each 8 bytes on the medium, in bytes.
pub fn unwritten(lba: u64) -> Vec<u8> {
    let first = lba.wrapping_mul(SECTOR);
    (0..SECTOR).step_by(8).flat_map(|at| first.wrapping_add(at).to_le_bytes()).collect()
}

/// The properties of a storage device.
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

crate::streams! {
    /// Commands, and lists of pages.
    FETCH: "commands" = "read";
    /// Reads of host memory.
    FROM_HOST: "from_host" = "read";
    /// Sectors to host memory.
    TO_HOST: "to_host" = "write";
    /// Status words and interrupts. They begin when the sectors were accepted, so they stay behind them.
    STATUS: "status" = "write";
}

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
    /// Its status word is on its way.
    told: bool,
}

/// A sector under way.
#[derive(Clone, Copy, Debug)]
struct Sector {
    /// The number of its command.
    command: u32,
    /// Its place in the command.
    index: u32,
    /// Its page in host memory.
    page: u64,
}

/// The purpose of an operation.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// The address of a sector's page.
    Page(Sector),
    /// A sector's data, from the host or to it.
    Data(Sector),
    /// The status word of the first command.
    Status,
}

/// The storage device.
#[derive(Clone, Debug)]
pub struct Storage {
    config: StorageConfig,
    file: RegisterFile,
    pin: Pin,
    ring: Ring,
    /// In ring order; the first is the next that is done.
    commands: VecDeque<UnderWay>,
    operations: Operations<Purpose>,
    /// Sectors whose access to the medium is under way.
    accesses: Alarms<Sector>,
    /// Sectors under way, wherever they are.
    sectors: u32,
    medium: Pages,
}

impl Default for Storage {
    fn default() -> Self {
        Self::new(StorageConfig::default())
    }
}

impl Storage {
    /// An idle storage device with nothing written on it.
    pub fn new(config: StorageConfig) -> Self {
        Self {
            config: StorageConfig { sectors_in_flight: config.sectors_in_flight.max(1), ..config },
            file: RegisterFile::new(regs::TABLE),
            pin: Pin::default(),
            ring: Ring::new(FETCH, Command::BYTES as u32),
            commands: VecDeque::new(),
            operations: Operations::new(),
            accesses: Alarms::new(),
            sectors: 0,
            medium: Pages::new(),
        }
    }

    /// The data on the medium, from a payload-carrying run.
    pub fn sector(&self, lba: u64) -> Vec<u8> {
        let mut data = vec![0; SECTOR as usize];
        let at = lba.wrapping_mul(SECTOR);
        if !self.medium.holds(at, SECTOR) {
            return unwritten(lba);
        }
        self.medium.read(at, &mut data);
        data
    }

    /// The level of the pin, which software reads in a register.
    fn set_pin(&mut self, cx: &mut Context<'_>, asserted: bool) {
        self.pin.set(cx, STATUS, asserted);
        self.file.set(regs::INTERRUPT, asserted.into());
    }

    /// Begins all that can begin.
    fn advance(&mut self, cx: &mut Context<'_>) {
        let (base, entries) = (self.file.get(regs::BASE), self.file.get(regs::ENTRIES));
        let room = u32::from(self.commands.len() < COMMANDS);
        self.ring.fetch(cx, base, entries, self.file.get(regs::TAIL), room);
        while self.sectors < self.config.sectors_in_flight && self.begin_sector(cx) {}
        self.retire(cx);
    }

    /// Begins the next sector, if there is one.
    fn begin_sector(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(place) = self.commands.iter().position(|way| way.begun < way.command.sectors) else {
            return false;
        };
        let way = &mut self.commands[place];
        let (Command { address, write, listed, .. }, index) = (way.command, way.begun);
        way.begun += 1;
        self.sectors += 1;
        let at = |stride: u64| address.wrapping_add(u64::from(index) * stride);
        let sector = Sector { command: self.ring.done().wrapping_add(place as u32), index, page: at(SECTOR) };
        if listed {
            self.operations.begin(cx.dma_read_control(FETCH, at(8), 8), Purpose::Page(sector));
        } else {
            self.begin_access(cx, sector, write);
        }
        true
    }

    /// A sector's page is known: its data are read from there, or from the medium.
    fn begin_access(&mut self, cx: &mut Context<'_>, sector: Sector, write: bool) {
        if write {
            self.operations.begin(cx.dma_read(FROM_HOST, sector.page, SECTOR), Purpose::Data(sector));
        } else {
            self.accesses.set(cx, cx.now() + self.config.access, sector);
        }
    }

    /// The address of a sector's page came.
    fn page_came(&mut self, cx: &mut Context<'_>, sector: Sector, result: &Result<Payload, DmaError>) {
        let address = result.as_ref().ok().and_then(Payload::bytes).and_then(|bytes| bytes.try_into().ok());
        match (address, self.way(sector.command).map(|way| way.command.write)) {
            (Some(address), Some(write)) => {
                self.begin_access(cx, Sector { page: u64::from_le_bytes(address), ..sector }, write);
            }
            _ => self.sector_over(cx, sector, true),
        }
    }

    fn way(&mut self, command: u32) -> Option<&mut UnderWay> {
        self.commands.get_mut(command.wrapping_sub(self.ring.done()) as usize)
    }

    /// The access of a sector is over: its data are there (read), or on the medium (write).
    fn accessed(&mut self, cx: &mut Context<'_>, sector: Sector) {
        let Some(way) = self.way(sector.command) else { return };
        let Command { lba, write, .. } = way.command;
        if write {
            return self.sector_over(cx, sector, false);
        }
        let data = match cx.length_only() {
            true => Payload::Length(SECTOR),
            false => self.sector(lba.wrapping_add(u64::from(sector.index))).into(),
        };
        self.operations.begin(cx.dma_write(TO_HOST, sector.page, data), Purpose::Data(sector));
    }

    fn data_came(&mut self, cx: &mut Context<'_>, sector: Sector, result: &Result<Payload, DmaError>) {
        let Some(way) = self.way(sector.command) else { return };
        let at = way.command.lba.wrapping_add(u64::from(sector.index)).wrapping_mul(SECTOR);
        match result {
            Ok(data) => {
                if let Some(bytes) = data.bytes() {
                    self.medium.write(at, bytes);
                }
                self.accesses.set(cx, cx.now() + self.config.access, sector);
            }
            Err(_) => self.sector_over(cx, sector, true),
        }
    }

    fn read_done(&mut self, cx: &mut Context<'_>, op: OpId, result: &Result<Payload, DmaError>) {
        if self.ring.over(op).is_some() {
            return self.fetched(cx, result);
        }
        match self.operations.end(op) {
            Some(Purpose::Page(sector)) => self.page_came(cx, sector, result),
            Some(Purpose::Data(sector)) => self.data_came(cx, sector, result),
            Some(Purpose::Status) | None => {}
        }
    }

    fn write_accepted(&mut self, cx: &mut Context<'_>, op: OpId) {
        match self.operations.end(op) {
            Some(Purpose::Status) => self.command_over(cx),
            Some(Purpose::Data(sector)) => self.sector_over(cx, sector, false),
            Some(Purpose::Page(_)) | None => {}
        }
    }

    fn sector_over(&mut self, cx: &mut Context<'_>, sector: Sector, failed: bool) {
        self.sectors -= 1;
        if let Some(way) = self.way(sector.command) {
            way.over += 1;
            way.failed |= failed;
        }
        self.advance(cx);
    }

    /// Writes the status of the first command if it is done.
    fn retire(&mut self, cx: &mut Context<'_>) {
        if let Some(first) = self.commands.front_mut()
            && first.over == first.command.sectors
            && !std::mem::replace(&mut first.told, true)
        {
            let status = if first.failed { Command::FAILED } else { Command::DONE };
            let (base, entries) = (self.file.get(regs::BASE), self.file.get(regs::ENTRIES));
            let at = self.ring.address(base, entries, self.ring.done()) + Command::STATUS;
            self.operations.begin(cx.dma_write(STATUS, at, status.to_le_bytes().into()), Purpose::Status);
        }
    }

    fn command_over(&mut self, cx: &mut Context<'_>) {
        let Some(done) = self.commands.pop_front() else { return };
        self.ring.finish();
        self.file.set(regs::HEAD, self.ring.done());
        match cx.interrupt_mode() {
            _ if !done.command.interrupt => {}
            InterruptMode::MsiX | InterruptMode::Msi => cx.msix(STATUS, 0),
            // Whoever disables the pin may still ask configuration space for its level.
            InterruptMode::Intx | InterruptMode::Disabled => self.set_pin(cx, true),
        }
        self.advance(cx);
    }

    fn fetched(&mut self, cx: &mut Context<'_>, result: &Result<Payload, DmaError>) {
        let (command, failed) = match result.as_ref().map(Payload::bytes) {
            Ok(Some(bytes)) => match bytes.try_into().map(Command::from_bytes) {
                Ok(command) => (command, false),
                Err(_) => {
                    return cx.fault(format!(
                        "storage: a command has {} B, not {}",
                        bytes.len(),
                        Command::BYTES
                    ));
                }
            },
            Ok(None) => {
                return cx.fault(
                    "storage: a command came without its bytes; control reads carry data in every run".into(),
                );
            }
            // Where its status word belongs is not lost with it.
            Err(_) => (
                Command { address: 0, lba: 0, sectors: 0, write: false, interrupt: true, listed: false },
                true,
            ),
        };
        self.ring.advance(1);
        self.commands.push_back(UnderWay { command, begun: 0, over: 0, failed, told: false });
        self.advance(cx);
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

    fn streams(&self) -> &'static [Stream] {
        STREAMS
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset, data, .. } => {
                self.file.write(offset, &data);
                self.advance(cx);
            }
            Event::MmioRead { offset, bytes, reply, .. } => {
                let data = self.file.read(offset, bytes);
                if Touched::by(offset, bytes.into()).touches(regs::INTERRUPT) {
                    self.set_pin(cx, false);
                }
                cx.reply(reply, data);
            }
            Event::DmaReadDone { op, result } => self.read_done(cx, op, &result),
            Event::DmaWriteAccepted { op } => self.write_accepted(cx, op),
            Event::Timer { id } => {
                if let Some(sector) = self.accesses.due(id) {
                    self.accessed(cx, sector);
                }
            }
            Event::Reset => {
                self.accesses.clear();
                let (medium, accesses) =
                    (std::mem::take(&mut self.medium), std::mem::take(&mut self.accesses));
                *self = Self { medium, accesses, ..Self::new(self.config) };
            }
            Event::Start => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        Some(Box::new(self.clone()))
    }
}
