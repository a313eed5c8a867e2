//! The driver of a NIC, in the order in which Linux's `e1000e` goes about it: reset, address, PHY, rings, interrupts; then frames.

use crate::contract::OpId;
use crate::host::{HostContext, HostEvent, HostProgram};
use crate::nic::regs::{self, cause, ctrl, eerd, extcnf, mdic, rctl, status, tctl};
use crate::nic::{DEVICE, VENDOR};
use std::collections::VecDeque;
use tlplab_cfgspace::InterruptMode;
use tlplab_transaction::Payload;
use tlplab_units::{Duration, Time};

/// The work of a NIC driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicLoad {
    /// Descriptors in each ring: a multiple of 8, at least 8.
    pub entries: u32,
    /// Bytes of each frame that is sent, without its check sequence: 60 to 1514.
    pub bytes: u32,
    /// Frames to send.
    pub send: u32,
    /// Frames to wait for.
    pub receive: u32,
}

impl Default for NicLoad {
    /// Rings of 256, no frame to send or to wait for.
    fn default() -> Self {
        Self { entries: 256, bytes: 1514, send: 0, receive: 0 }
    }
}

const BUFFER: u64 = 2048;
const DESCRIPTOR: u64 = 16;
/// Bytes of a frame before what is its own.
const HEADER: usize = 14;
const RECEIVE_CAUSES: u32 = cause::RXT0 | cause::RXDMT0 | cause::RXO | cause::RXQ0;
const SEND_CAUSES: u32 = cause::TXDW | cause::TXQ0;

/// One step of the way up.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u32, u32),
    /// Reads until these bits have this value.
    Until(u32, u32, u32),
    /// Reads a register once and keeps its value.
    Keep(u32),
    Sleep(Duration),
}

/// Drives one NIC.
#[derive(Clone, Debug)]
pub struct NicDriver {
    device: String,
    load: NicLoad,
    index: usize,
    base: u64,
    interrupts: InterruptMode,
    steps: VecDeque<Step>,
    kept: Vec<u32>,
    /// The read that the current step, or the interrupt handler, waits for.
    waits: Option<OpId>,
    until: Option<Time>,
    up: bool,
    done: bool,
    receive_ring: u64,
    send_ring: u64,
    buffers: u64,
    /// Frames posted and reclaimed, and received, since the start.
    posted: u32,
    sent: u32,
    received: u32,
    /// The number of the next frame, if none is lost.
    expected: u32,
}

impl NicDriver {
    /// A driver for the NIC called `device`.
    pub fn new(device: &str, load: NicLoad) -> Self {
        let entries = load.entries.next_multiple_of(8).max(8);
        Self {
            device: device.to_string(),
            load: NicLoad { entries, bytes: load.bytes.clamp(60, 1514), ..load },
            index: 0,
            base: 0,
            interrupts: InterruptMode::Disabled,
            steps: VecDeque::new(),
            kept: Vec::new(),
            waits: None,
            until: None,
            up: false,
            done: false,
            receive_ring: 0,
            send_ring: 0,
            buffers: 0,
            posted: 0,
            sent: 0,
            received: 0,
            expected: 0,
        }
    }

    fn write(&self, cx: &mut HostContext<'_>, register: u32, value: u32) {
        cx.mmio_write(0, self.base + u64::from(register), value.to_le_bytes().into());
    }
    fn read(&mut self, cx: &mut HostContext<'_>, register: u32) {
        self.waits = Some(cx.mmio_read_register(0, self.base + u64::from(register), 4));
    }

    fn probe(&mut self, cx: &mut HostContext<'_>) -> Result<(), String> {
        let (index, info) = cx.driven(&self.device)?;
        if info.ids != (VENDOR, DEVICE) {
            let (vendor, device) = info.ids;
            return Err(format!(
                "{} is {vendor:04x}:{device:04x}; this driver is for 8086:10d3",
                self.device
            ));
        }
        self.interrupts = info.interrupting()?;
        (self.index, self.base) = (index, info.base(0)?);
        let entries = u64::from(self.load.entries);
        let mut alloc = |bytes| cx.memory().alloc(bytes, 4096).map_err(|error| error.to_string());
        self.receive_ring = alloc(entries * DESCRIPTOR)?;
        self.send_ring = alloc(entries * DESCRIPTOR)?;
        // One half of the buffers is for reception.
        self.buffers = alloc(2 * entries * BUFFER)?;
        for slot in 0..entries {
            self.give(cx, slot);
        }
        self.steps = self.way_up();
        Ok(())
    }

    fn way_up(&self) -> VecDeque<Step> {
        use Step::{Keep, Sleep, Until, Write};
        let phy = |register: u32, write: Option<u32>| {
            let command = write.map_or(mdic::READ, |data| mdic::WRITE | data) | 1 << 21 | register << 16;
            [Write(regs::MDIC, command), Until(regs::MDIC, mdic::READY, mdic::READY)]
        };
        let mut steps = VecDeque::from([
            // Nothing may be under way when the function is reset.
            Write(regs::CTRL, ctrl::GIO_MASTER_DISABLE),
            Until(regs::STATUS, status::GIO_MASTER_ENABLE, 0),
            Write(regs::IMC, u32::MAX),
            Write(regs::RCTL, 0),
            Write(regs::TCTL, tctl::PSP),
            Write(regs::EXTCNF_CTRL, extcnf::MDIO_SW_OWNERSHIP),
            Until(regs::EXTCNF_CTRL, extcnf::MDIO_SW_OWNERSHIP, extcnf::MDIO_SW_OWNERSHIP),
            Write(regs::CTRL, ctrl::RST),
            Sleep(Duration::from_us(2)),
            Until(regs::CTRL, ctrl::RST, 0),
            Write(regs::IMC, u32::MAX),
            Keep(regs::ICR),
        ]);
        for word in 0..64 {
            steps.push_back(Write(regs::EERD, word << 2 | eerd::START));
            steps.push_back(Until(regs::EERD, eerd::DONE, eerd::DONE));
            steps.push_back(Keep(regs::EERD));
        }
        steps.push_back(Write(regs::PBA, 20));
        for register in [2, 3] {
            steps.extend(phy(register, None));
            steps.push_back(Keep(regs::MDIC));
        }
        steps.push_back(Write(regs::CTRL, ctrl::SLU));
        steps.extend(phy(0, Some(0x1340))); // negotiate anew
        steps.push_back(Until(regs::STATUS, status::LU, status::LU));
        steps.extend(self.rings());
        steps
    }

    fn rings(&self) -> Vec<Step> {
        use Step::Write;
        let bytes = self.load.entries * DESCRIPTOR as u32;
        let mut steps = Vec::new();
        for (registers, ring) in [(regs::RDBAL, self.receive_ring), (regs::TDBAL, self.send_ring)] {
            let words = [(0, ring as u32), (4, (ring >> 32) as u32), (8, bytes), (0x10, 0), (0x18, 0)];
            steps.extend(words.map(|(register, value)| Write(registers + register, value)));
            // Fetch ahead when fewer than 32 descriptors are held and 4 are there.
            steps.push(Write(registers + 0x28, 1 << 24 | 4 << 8 | 32));
        }
        let mask = cause::LSC | RECEIVE_CAUSES | SEND_CAUSES;
        steps.extend([
            Write(regs::IVAR, 0x000A_0908), // receive 0, send 1, other 2
            Write(regs::EIAC, cause::RXQ0 | cause::TXQ0 | cause::OTHER),
            Write(regs::RFCTL, 1 << 15), // extended receive descriptors
            Write(regs::RXCSUM, 3 << 8),
            Write(regs::TCTL, tctl::EN | tctl::PSP),
            // One is never given, so that a full ring does not look empty.
            Write(regs::RDT, self.load.entries - 1),
            Write(regs::RCTL, rctl::EN | rctl::BAM | rctl::SECRC),
            Write(
                regs::IMS,
                if self.interrupts == InterruptMode::MsiX {
                    cause::RXQ0 | cause::TXQ0 | cause::OTHER
                } else {
                    mask
                },
            ),
        ]);
        steps
    }

    /// Goes on until something must be waited for.
    fn climb(&mut self, cx: &mut HostContext<'_>) {
        while let Some(step) = self.steps.front().copied() {
            match step {
                Step::Write(register, value) => self.write(cx, register, value),
                Step::Until(register, ..) | Step::Keep(register) => return self.read(cx, register),
                Step::Sleep(time) => {
                    let until = cx.now() + time;
                    self.until = Some(until);
                    return cx.timer(until, 0);
                }
            }
            self.steps.pop_front();
        }
        let sum = self.kept[1..65].iter().fold(0u16, |sum, word| sum.wrapping_add((word >> 16) as u16));
        let id = (self.kept[65] & 0xFFFF) << 16 | self.kept[66] & 0xFFFF;
        if sum != 0xBABA {
            return cx.fault(format!(
                "the words of the NVM of {} sum to {sum:#06x}; expected 0xbaba",
                self.device
            ));
        }
        if id != 0x0141_0CB1 {
            return cx.fault(format!("the PHY ID of {} is {id:#010x}; expected 0x01410cb1", self.device));
        }
        self.up = true;
        self.post(cx);
        self.end(cx);
    }

    /// A register was read while going up.
    fn answered(&mut self, cx: &mut HostContext<'_>, value: u32) {
        match self.steps.front() {
            Some(Step::Until(_, mask, wanted)) if value & mask != *wanted => return self.climb(cx),
            Some(Step::Keep(_)) => self.kept.push(value),
            _ => {}
        }
        self.steps.pop_front();
        self.climb(cx);
    }

    /// Gives a receive buffer to the NIC.
    fn give(&self, cx: &mut HostContext<'_>, slot: u64) {
        let mut descriptor = [0; DESCRIPTOR as usize];
        descriptor[..8].copy_from_slice(&(self.buffers + slot * BUFFER).to_le_bytes());
        cx.memory().write(self.receive_ring + slot * DESCRIPTOR, &descriptor);
    }

    fn frame(&self, number: u32) -> Vec<u8> {
        let mut frame = vec![0xFF; 6]; // to all, so that whoever hears it takes it
        frame.extend([0x02, 0x1D, 0xE5, 0, 0, 1, 0x88, 0xB5]);
        frame
            .extend((0..self.load.bytes.saturating_sub(HEADER as u32)).map(|i| i.wrapping_add(number) as u8));
        frame
    }

    /// The number that a frame has if it is one of ours: the next with such data, since the NIC may have missed (and counted) frames before it.
    fn number(&self, frame: &[u8]) -> u32 {
        let first = frame.get(HEADER).copied().unwrap_or_default();
        self.expected + u32::from(first.wrapping_sub(self.expected as u8))
    }

    /// Posts as many frames as the ring has room for.
    fn post(&mut self, cx: &mut HostContext<'_>) {
        let entries = self.load.entries;
        let new = (self.load.send - self.posted).min(entries - 1 - (self.posted - self.sent));
        for number in self.posted..self.posted + new {
            let slot = u64::from(number % entries);
            let buffer = self.buffers + (u64::from(entries) + slot) * BUFFER;
            if !cx.length_only() {
                cx.memory().write(buffer, &self.frame(number));
            }
            let mut descriptor = [0; DESCRIPTOR as usize];
            descriptor[..8].copy_from_slice(&buffer.to_le_bytes());
            // End of frame, add the check sequence, report.
            descriptor[8..12].copy_from_slice(&(0x0B00_0000 | self.load.bytes).to_le_bytes());
            cx.memory().write(self.send_ring + slot * DESCRIPTOR, &descriptor);
        }
        self.posted += new;
        if new > 0 {
            self.write(cx, regs::TDT, self.posted % entries);
        }
    }

    /// Takes what the NIC has received and sent.
    fn clean(&mut self, cx: &mut HostContext<'_>) {
        let entries = self.load.entries;
        let mut descriptor = [0; DESCRIPTOR as usize];
        let mut taken = 0;
        loop {
            let slot = u64::from(self.received % entries);
            cx.memory().read(self.receive_ring + slot * DESCRIPTOR, &mut descriptor);
            if descriptor[8] & 1 == 0 {
                break;
            }
            if self.load.send > 0 && !cx.length_only() {
                let mut data = vec![0; u16::from_le_bytes([descriptor[12], descriptor[13]]).into()];
                cx.memory().read(self.buffers + slot * BUFFER, &mut data);
                let number = self.number(&data);
                if number >= self.posted || data != self.frame(number) {
                    let (device, number) = (&self.device, self.expected);
                    return cx
                        .fault(format!("frame {number} that {device} received differs from the frame sent"));
                }
                self.expected = number + 1;
            }
            self.give(cx, slot);
            self.received += 1;
            taken += 1;
        }
        if taken > 0 {
            self.write(cx, regs::RDT, (self.received + entries - 1) % entries);
        }
        while self.sent < self.posted {
            let at = self.send_ring + u64::from(self.sent % entries) * DESCRIPTOR;
            cx.memory().read(at, &mut descriptor);
            if descriptor[12] & 1 == 0 {
                break;
            }
            self.sent += 1;
        }
        self.post(cx);
        self.end(cx);
    }

    fn end(&mut self, cx: &mut HostContext<'_>) {
        let over = self.sent == self.load.send && self.received >= self.load.receive;
        if over && !std::mem::replace(&mut self.done, true) {
            cx.finished();
        }
    }

    fn interrupt(&mut self, cx: &mut HostContext<'_>, vector: u16) {
        match self.interrupts {
            // The message itself has cleared its cause.
            InterruptMode::MsiX if vector < 2 => self.clean(cx),
            InterruptMode::MsiX => self.write(cx, regs::ICR, cause::LSC | cause::RXO),
            // The read tells why, and acknowledges.
            _ if self.waits.is_none() => self.read(cx, regs::ICR),
            _ => {}
        }
    }

    fn read_done(&mut self, cx: &mut HostContext<'_>, data: &Payload) {
        let Some(word) = data.bytes().and_then(|bytes| bytes.first_chunk()) else { return };
        let value = u32::from_le_bytes(*word);
        if !self.up {
            self.answered(cx, value);
        } else if value & (RECEIVE_CAUSES | SEND_CAUSES) != 0 {
            self.clean(cx);
        }
    }
}

impl HostProgram for NicDriver {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => match self.probe(cx) {
                Ok(()) => self.climb(cx),
                Err(why) => cx.fault(why),
            },
            HostEvent::Interrupt { device, vector } if device == self.index && self.up => {
                self.interrupt(cx, vector);
            }
            HostEvent::MmioReadDone { op, result } if self.waits == Some(op) => {
                self.waits = None;
                match result {
                    Ok(data) => self.read_done(cx, &data),
                    // Somebody else's interrupt, as that of the slot below which the device was: it is gone.
                    Err(_) if self.up => {}
                    Err(why) => cx.fault(format!("{} does not answer: {why}", self.device)),
                }
            }
            HostEvent::Timer { .. } if self.until.take_if(|until| *until == cx.now()).is_some() => {
                self.steps.pop_front();
                self.climb(cx);
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Option<Box<dyn HostProgram>> {
        Some(Box::new(self.clone()))
    }
}
