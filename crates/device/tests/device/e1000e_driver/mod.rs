//! What Linux's e1000e driver does to an 82574, register by register and in its order, as far as a device can notice: bring the hardware
//! up, open the interface, watch the link, send, receive, close. Wherever the driver would give up, or rely on something that it does not
//! check, this one panics.

use crate::ideal::Ideal;
use tlplab_device::nic::regs::{self, cause, ctrl, ctrl_ext, eecd, eerd, extcnf, mdic, rctl, status, tctl};
use tlplab_device::nic::statistics;
use tlplab_device::{Cable, HostMemory, InterruptMode, Nic, NicConfig};
use tlplab_units::Duration;

/// Registers that only keep what the driver writes, or that it only writes.
mod more {
    pub(crate) const FCAL: u32 = 0x0028;
    pub(crate) const FCAH: u32 = 0x002C;
    pub(crate) const FCT: u32 = 0x0030;
    pub(crate) const FCTTV: u32 = 0x0170;
    pub(crate) const AIT: u32 = 0x0458;
    pub(crate) const LEDCTL: u32 = 0x0E00;
    pub(crate) const POEMB: u32 = 0x0F10;
    pub(crate) const FCRTL: u32 = 0x2160;
    pub(crate) const FCRTH: u32 = 0x2168;
    pub(crate) const RXDCTL1: u32 = 0x2928;
    pub(crate) const TARC0: u32 = 0x3840;
    pub(crate) const TXDCTL1: u32 = 0x3928;
    pub(crate) const TARC1: u32 = 0x3940;
    pub(crate) const WUC: u32 = 0x5800;
    pub(crate) const MRQC: u32 = 0x5818;
    pub(crate) const MANC: u32 = 0x5820;
    pub(crate) const GCR: u32 = 0x5B00;
    pub(crate) const GCR2: u32 = 0x5B64;
    pub(crate) const RETA: u32 = 0x5C00;
    pub(crate) const RSSRK: u32 = 0x5C80;
    pub(crate) const TSYNCTXCTL: u32 = 0xB614;
    pub(crate) const TXSTMPH: u32 = 0xB61C;
    pub(crate) const TSYNCRXCTL: u32 = 0xB620;
    pub(crate) const RXSTMPH: u32 = 0xB628;
}
use more::*;

pub(crate) const ENTRIES: u32 = 256;
pub(crate) const MAC: [u8; 6] = [0x02, 0x1D, 0xE5, 0xAA, 0xBB, 0xCC];
const DRV_LOAD: u32 = 1 << 28;
const RXSEQ: u32 = 1 << 3;
/// What the driver lets interrupt without MSI-X, and with it besides the queues.
const ENABLED: u32 = cause::RXT0 | cause::TXDW | cause::RXDMT0 | RXSEQ | cause::LSC;
const OTHERS: u32 =
    cause::OTHER | cause::LSC | cause::RXO | cause::MDAC | cause::SRPD | cause::ACK | cause::MNG;

/// A received frame, with status and errors, and the tag that was taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) data: Vec<u8>,
    pub(crate) status: u32,
    pub(crate) tag: u16,
}

pub(crate) struct Driver {
    pub(crate) world: Ideal,
    mode: InterruptMode,
    /// Rings: address, next to clean; and, for transmission, next to use.
    receive: (u64, u32),
    send: (u64, u32, u32),
    buffers: u64,
    link_changed: bool,
    pub(crate) received: Vec<Received>,
    /// Interrupts that were handled.
    pub(crate) handled: u32,
}

impl Driver {
    pub(crate) fn new(cable: Cable, mode: InterruptMode) -> Self {
        Self::of(Nic::new(NicConfig { mac: MAC, cable, ..NicConfig::default() }), mode)
    }

    pub(crate) fn of(nic: Nic, mode: InterruptMode) -> Self {
        let mut world = Ideal::new(false).device("nic", nic);
        world.mode = mode;
        world.wait(Duration::from_ms(1));
        let mut take = |bytes: u64| world.ram.alloc(bytes, 4096).expect("there is room");
        let bytes = u64::from(ENTRIES) * 16;
        let (receive, send) = ((take(bytes), 0), (take(bytes), 0, 0));
        let buffers = take(2 * u64::from(ENTRIES) * 2048);
        let (link_changed, received, handled) = (false, Vec::new(), 0);
        Self { world, mode, receive, send, buffers, link_changed, received, handled }
    }

    // --- access ---

    pub(crate) fn get(&mut self, register: u32) -> u32 {
        let data = self.world.read(0, register.into(), 4);
        u32::from_le_bytes(data.bytes().expect("bytes").try_into().expect("four"))
    }
    pub(crate) fn put(&mut self, register: u32, value: u32) {
        self.world.write(0, register.into(), value.to_le_bytes().into());
    }
    /// Reads, changes, writes; the change must stay.
    fn change(&mut self, register: u32, clear: u32, set: u32) {
        let value = self.get(register) & !clear | set;
        self.put(register, value);
        assert_eq!(self.get(register), value, "register {register:04x}");
    }
    /// Writes what must read back.
    fn keep(&mut self, register: u32, value: u32) {
        self.put(register, value);
        assert_eq!(self.get(register), value, "register {register:04x}");
    }
    fn until(&mut self, register: u32, mask: u32, wanted: u32) -> u32 {
        for _ in 0..800 {
            let value = self.get(register);
            if value & mask == wanted {
                return value;
            }
            self.world.wait(Duration::from_us(100));
        }
        panic!("register {register:04x} never got {wanted:#x} in {mask:#x}");
    }

    fn own(&mut self, owned: bool) {
        let bit = extcnf::MDIO_SW_OWNERSHIP;
        self.change(regs::EXTCNF_CTRL, bit, if owned { bit } else { 0 });
    }
    fn nvm(&mut self, word: u32) -> u16 {
        assert!(word < 64 << (self.get(regs::EECD) >> 11 & 0xF), "the NVM is smaller");
        self.put(regs::EERD, word << 2 | eerd::START);
        (self.until(regs::EERD, eerd::DONE, eerd::DONE) >> 16) as u16
    }
    fn mdic(&mut self, command: u32) -> u32 {
        self.put(regs::MDIC, command);
        self.world.wait(Duration::from_us(50));
        let value = self.until(regs::MDIC, mdic::READY, mdic::READY);
        assert_eq!((value & mdic::ERROR, value >> 16 & 0x1F), (0, command >> 16 & 0x1F));
        value & 0xFFFF
    }
    fn phy(&mut self, register: u32, write: Option<u16>) -> u16 {
        self.own(true);
        if register > 15 {
            self.mdic(mdic::WRITE | 1 << 21 | 22 << 16); // page 0
        }
        let operation = write.map_or(mdic::READ, |data| mdic::WRITE | u32::from(data));
        let value = self.mdic(operation | 1 << 21 | register << 16);
        self.own(false);
        value as u16
    }
    fn change_phy(&mut self, register: u32, clear: u16, set: u16) {
        let value = self.phy(register, None) & !clear | set;
        self.phy(register, Some(value));
    }
    fn phy_link(&mut self) -> bool {
        // The bit latches low: the second read tells how it is.
        self.phy(1, None);
        self.phy(1, None) & 1 << 2 != 0
    }

    // --- probe ---

    pub(crate) fn probe(&mut self) {
        // Whoever read the semaphore may have taken it.
        let semaphore = self.get(regs::SWSM);
        self.put(regs::SWSM, semaphore & !1);
        assert_ne!(self.get(regs::EECD) >> 15 & 3, 3, "no flash for an NVM");
        assert_eq!([2, 3].map(|register| self.phy(register, None)), [0x0141, 0x0CB1]);
        assert_eq!(self.get(MANC) & 1 << 18, 0, "nobody blocks resets of the PHY");
        assert_eq!(self.get(MANC) & 1 << 17, 0, "no manageability");
        self.reset_hardware();
        let sum = (0..64).fold(0u16, |sum, word| sum.wrapping_add(self.nvm(word)));
        assert_eq!(sum, 0xBABA);
        let (low, high) = (self.get(regs::RAL), self.get(regs::RAL + 4));
        let [a, b, c, d] = low.to_le_bytes();
        let [e, f, ..] = high.to_le_bytes();
        assert_eq!(([a, b, c, d, e, f], high >> 31), (MAC, 1));
        let [address, leds, wakes, management] = [0, 4, 0x24, 0x0F].map(|word| self.nvm(word));
        assert_eq!(address, u16::from_le_bytes([MAC[0], MAC[1]]));
        assert!(![0, 0xFFFF].contains(&leds), "what the LEDs show");
        assert_eq!((wakes & 0x0400, management & 0x6000), (0, 0), "no wake-up, no manageability");
        self.reset();
        self.change(regs::CTRL_EXT, 0, DRV_LOAD);
        self.change(regs::CTRL_EXT, DRV_LOAD, 0);
    }

    fn reset_hardware(&mut self) {
        let value = self.get(regs::CTRL);
        self.put(regs::CTRL, value | ctrl::GIO_MASTER_DISABLE);
        self.until(regs::STATUS, status::GIO_MASTER_ENABLE, 0);
        self.put(regs::IMC, u32::MAX);
        self.keep(regs::RCTL, 0);
        self.change(regs::TCTL, tctl::EN, 0);
        self.world.wait(Duration::from_ms(10));
        self.own(true);
        let value = self.get(regs::CTRL);
        self.put(regs::CTRL, value | ctrl::RST);
        self.own(false);
        self.until(regs::EECD, eecd::AUTO_RD, eecd::AUTO_RD);
        assert_eq!(self.get(regs::CTRL) & (ctrl::RST | ctrl::GIO_MASTER_DISABLE), 0);
        assert_ne!(self.get(regs::STATUS) & status::GIO_MASTER_ENABLE, 0);
        self.put(regs::IMC, u32::MAX);
        self.get(regs::ICR);
        assert_eq!((self.get(regs::ICR), self.get(regs::IMS)), (0, 0), "nothing is pending");
    }

    fn reset(&mut self) {
        self.put(regs::PBA, 32);
        assert_eq!(self.get(regs::PBA), 8 << 16 | 32, "what reception leaves is for transmission");
        self.reset_hardware();
        self.put(WUC, 0);
        self.initialize();
        self.keep(regs::VET, 0x8100);
        self.keep(AIT, 0);
        self.time_stamps();
        self.change_phy(25, 1, 0); // no smart power down
        self.phy_link();
        self.phy(17, None);
    }

    fn initialize(&mut self) {
        self.change(regs::TXDCTL, 0, 1 << 22);
        self.change(TXDCTL1, 0, 1 << 22);
        self.change(TARC0, 0xF << 27, 1 << 26);
        self.change(TARC1, 0, 0);
        self.change(regs::CTRL, 1 << 29, 0);
        self.change(regs::CTRL_EXT, 1 << 23, 1 << 22);
        self.change(GCR, 0, 1 << 22);
        self.change(GCR2, 0, 1);
        assert_ne!(self.get(LEDCTL), 0);
        for word in 0..128 {
            self.keep(regs::VFTA + 4 * word, 0);
        }
        let address = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        self.keep(regs::RAL, address(&MAC[..4]));
        self.keep(regs::RAL + 4, 1 << 31 | address(&MAC[4..]));
        for pair in 1..15 {
            self.keep(regs::RAL + 8 * pair, 0);
            self.keep(regs::RAL + 8 * pair + 4, 0);
        }
        for word in 0..128 {
            self.keep(regs::MTA + 4 * word, 0);
        }
        self.set_up_link();
        self.change(regs::TXDCTL, 0x3F << 16, 1 << 24 | 1 << 16);
        self.change(GCR, 0, 1 << 27);
        for counter in (0x4000..0x4128).step_by(4) {
            self.get(counter);
            assert_eq!(self.get(counter), 0, "counter {counter:04x} is cleared by its read");
        }
    }

    fn set_up_link(&mut self) {
        self.change(regs::CTRL, 3 << 11, ctrl::SLU);
        // Downshift off, committed, and on again; then an erratum's registers.
        self.change_phy(16, 1 << 11 | 1 << 1, 3 << 5);
        self.change_phy(0, 0, 1 << 15);
        self.change_phy(16, 0, 1 << 11);
        assert_eq!(self.phy(16, None) & (1 << 11 | 3 << 5), 1 << 11 | 3 << 5);
        self.phy(29, Some(3));
        self.phy(30, Some(0));
        self.change_phy(0, 0, 1 << 15);
        assert_eq!(self.phy(0, None) >> 15, 0, "the reset is over");
        self.change_phy(4, 0x0C00, 0x01E1);
        self.change_phy(9, 0x0100, 0x0200);
        self.change_phy(0, 0, 1 << 12 | 1 << 9);
        self.phy_link();
        for (register, value) in [(FCT, 0x8808), (FCAH, 0x100), (FCAL, 0x00C2_8001), (FCTTV, 0xFFFF)] {
            self.keep(register, value);
        }
        self.keep(FCRTL, 0);
        self.keep(FCRTH, 0);
        self.change(POEMB, 1 << 1, 0);
    }

    fn time_stamps(&mut self) {
        self.change(TSYNCTXCTL, 1 << 4, 0);
        self.change(TSYNCRXCTL, 1 << 4, 0);
        self.get(RXSTMPH);
        self.get(TXSTMPH);
        // 40 ns in units of 2^-18 ns, every period of 25 MHz.
        let step = 40 << 18;
        self.keep(regs::TIMINCA, 1 << 24 | step);
        let mut before = self.get(regs::SYSTIML);
        for _ in 0..3 {
            self.world.wait(Duration::from_us(1));
            let now = self.get(regs::SYSTIML);
            assert_eq!(now.wrapping_sub(before), 25 * step, "the clock counts nanoseconds");
            before = now;
        }
    }

    // --- open ---

    pub(crate) fn open(&mut self) {
        self.change_phy(0, 1 << 11, 0); // power up
        self.change(regs::CTRL_EXT, 0, DRV_LOAD);
        self.change(regs::RCTL, rctl::UPE | rctl::MPE, 0);
        self.change(regs::CTRL, 0, ctrl::VME);
        self.configure_send();
        self.configure_receive();
        if self.mode == InterruptMode::Msi {
            self.test_msi();
        }
        if self.mode == InterruptMode::MsiX {
            self.configure_msix();
        }
        self.enable_interrupts();
        // The driver makes its own link change, so that it looks.
        let made = if self.mode == InterruptMode::MsiX { cause::LSC | cause::OTHER } else { cause::LSC };
        self.put(regs::ICS, made);
        self.wait_for("the link change", |driver| std::mem::take(&mut driver.link_changed));
        self.watch_link();
    }

    fn ring(&mut self, registers: u32, address: u64) {
        self.keep(registers, address as u32);
        self.keep(registers + 4, (address >> 32) as u32);
        self.keep(registers + 8, ENTRIES * 16);
        self.keep(registers + 0x10, 0);
        self.keep(registers + 0x18, 0);
    }

    fn configure_send(&mut self) {
        self.send = (self.send.0, 0, 0);
        self.world.ram.write(self.send.0, &vec![0; ENTRIES as usize * 16]);
        self.ring(regs::TDBAL, self.send.0);
        self.keep(regs::TIDV, 8);
        self.keep(regs::TADV, 32);
        self.change(regs::TXDCTL, 0x3F_3F3F, 1 << 24 | 1 << 22 | 1 << 16 | 1 << 8 | 0x1F);
        self.change(TXDCTL1, 0, 0);
        self.change(regs::TCTL, 0xFF0, tctl::PSP | 1 << 24 | 15 << 4);
    }

    fn configure_receive(&mut self) {
        for word in 0..10 {
            self.keep(RSSRK + 4 * word, 0x6D5A_56DA ^ word);
        }
        for word in 0..32 {
            self.keep(RETA + 4 * word, 0);
        }
        self.change(regs::RXCSUM, 0, 1 << 13);
        self.keep(MRQC, 0x0037_0000);
        // Enabled at the end; 2 KiB buffers, no check sequence, half of the ring as threshold.
        let control = self.get(regs::RCTL) | rctl::EN | rctl::BAM | rctl::SECRC;
        self.change(regs::RFCTL, 0, 1 << 15);
        self.keep(regs::RXDCTL, 1 << 24 | 4 << 16 | 4 << 8 | 0x20);
        self.keep(RXDCTL1, 1 << 24 | 4 << 16 | 4 << 8 | 0x20);
        self.keep(regs::RDTR, 0x20);
        self.keep(regs::RADV, 0x20);
        self.keep(regs::ITR, 195);
        self.change(regs::CTRL_EXT, 0, ctrl_ext::IAME);
        self.keep(regs::IAM, u32::MAX);
        self.receive = (self.receive.0, 0);
        self.ring(regs::RDBAL, self.receive.0);
        self.change(regs::RXCSUM, 0, 3 << 8);
        self.keep(regs::RCTL, control);
        for slot in 0..ENTRIES {
            self.give(slot);
            if slot % 16 == 15 {
                self.keep(regs::RDT, slot);
            }
        }
    }

    /// The driver only believes in MSI when it has seen one.
    fn test_msi(&mut self) {
        self.get(regs::ICR);
        self.world.messages.clear();
        self.put(regs::IMS, ENABLED);
        self.put(regs::ICS, RXSEQ);
        self.world.wait(Duration::from_ms(1));
        assert_eq!(std::mem::take(&mut self.world.messages), [0]);
        assert_ne!(self.get(regs::ICR) & RXSEQ, 0);
        self.put(regs::IMC, u32::MAX);
    }

    fn configure_msix(&mut self) {
        for vector in 0..5 {
            self.keep(regs::EITR + 4 * vector, 195);
        }
        self.keep(regs::EITR + 8, 1);
        // Receive, send and the rest, each with its vector; an interrupt for every write-back.
        self.keep(regs::IVAR, 1 << 31 | 0xA << 16 | 0x9 << 8 | 0x8);
        self.change(regs::CTRL_EXT, ctrl_ext::IAME, 1 << 31 | ctrl_ext::EIAME);
    }

    fn enable_interrupts(&mut self) {
        if self.mode == InterruptMode::MsiX {
            self.keep(regs::EIAC, cause::RXQ0 | cause::TXQ0);
            self.put(regs::IMS, cause::RXQ0 | cause::TXQ0 | OTHERS);
        } else {
            self.put(regs::IMS, ENABLED);
        }
    }

    /// What the watchdog does after a link change.
    fn watch_link(&mut self) {
        for tries in 0.. {
            if self.phy_link() {
                break;
            }
            assert!(tries < 100, "the link stays down");
            self.world.wait(Duration::from_us(100));
        }
        assert_eq!(self.phy(17, None) & 1 << 5, 0, "no downshift");
        assert_ne!(self.phy(1, None) & 1 << 5, 0, "negotiated");
        assert_ne!(self.phy(5, None) & 0x01E0, 0, "the partner can something");
        let wanted = status::LU | status::FD | status::SPEED_1000;
        assert_eq!(self.get(regs::STATUS) & (wanted | 3 << 6), wanted);
        assert!(self.phy(21, None) != 0xFFFF && self.phy(10, None) & 0xFF == 0, "the PHY does not hang");
        self.change(regs::TCTL, 0, tctl::EN);
        self.receive_nudge();
    }

    /// The watchdog has the receive ring looked at, and what waits for its delay flushed.
    fn receive_nudge(&mut self) {
        let made = if self.mode == InterruptMode::MsiX { cause::RXQ0 } else { cause::RXDMT0 };
        self.put(regs::ICS, made);
        self.put(regs::TIDV, 8 | 1 << 31);
        self.put(regs::RDTR, 0x20 | 1 << 31);
    }

    // --- interrupts ---

    /// Handles interrupts until something has come true.
    pub(crate) fn wait_for(&mut self, what: &str, over: impl Fn(&mut Self) -> bool) {
        for _ in 0..20_000 {
            self.handle_interrupts();
            if over(self) {
                return;
            }
            self.world.wait(Duration::from_us(1));
        }
        panic!("{what} never came");
    }

    fn handle_interrupts(&mut self) {
        for vector in std::mem::take(&mut self.world.messages) {
            self.handled += 1;
            if let (InterruptMode::MsiX, Some(own)) =
                (self.mode, [cause::RXQ0, cause::TXQ0].get(usize::from(vector)))
            {
                assert_eq!(self.get(regs::IMS) & own, 0, "the message has masked its cause");
            }
            match (self.mode, vector) {
                (InterruptMode::MsiX, 0) => {
                    self.clean_receive();
                    self.put(regs::IMS, cause::RXQ0);
                }
                (InterruptMode::MsiX, 1) => {
                    self.clean_send();
                    self.put(regs::IMS, cause::TXQ0);
                }
                (InterruptMode::MsiX, _) => self.handle_others(),
                _ => self.handle_single(),
            }
        }
        if self.world.pin {
            self.handled += 1;
            self.handle_single();
        }
    }

    fn handle_others(&mut self) {
        let causes = self.get(regs::ICR);
        assert_ne!(causes & cause::ASSERTED, 0);
        assert_eq!(self.get(regs::ICR) & cause::LSC, 0, "the read has cleared it");
        let again = causes & (cause::RXQ0 | cause::TXQ0);
        if again != 0 {
            self.put(regs::ICS, again);
        }
        self.link_changed |= causes & cause::LSC != 0;
        self.put(regs::IMS, OTHERS);
    }

    fn handle_single(&mut self) {
        let causes = self.get(regs::ICR);
        assert_ne!(causes & cause::ASSERTED, 0);
        assert_eq!(self.get(regs::IMS), 0, "the read has masked all");
        assert!(!self.world.pin, "and lowered the pin");
        self.link_changed |= causes & cause::LSC != 0;
        self.clean_receive();
        self.clean_send();
        self.put(regs::IMS, ENABLED);
    }

    // --- frames ---

    fn give(&mut self, slot: u32) {
        let mut descriptor = [0; 16];
        descriptor[..8].copy_from_slice(&(self.buffers + 2048 * u64::from(slot)).to_le_bytes());
        self.world.ram.write(self.receive.0 + 16 * u64::from(slot), &descriptor);
    }

    fn clean_receive(&mut self) {
        loop {
            let slot = self.receive.1 % ENTRIES;
            let mut back = [0; 16];
            self.world.ram.read(self.receive.0 + 16 * u64::from(slot), &mut back);
            let status = u32::from_le_bytes(back[8..12].try_into().expect("four"));
            if status & 1 == 0 {
                return;
            }
            assert_eq!(status & 2, 2, "a frame in one buffer");
            let mut data = vec![0; u16::from_le_bytes([back[12], back[13]]).into()];
            self.world.ram.read(self.buffers + 2048 * u64::from(slot), &mut data);
            self.received.push(Received { data, status, tag: u16::from_le_bytes([back[14], back[15]]) });
            self.give(slot);
            self.receive.1 += 1;
            if slot % 16 == 15 {
                self.put(regs::RDT, slot);
            }
        }
    }

    /// Queues descriptors; the last is reported, after a delay. Words 2 and 3 of each: what is beside the address.
    pub(crate) fn send(&mut self, descriptors: &[([u8; 8], u32, u32)]) {
        for (number, (first, word2, word3)) in descriptors.iter().enumerate() {
            let last = if number + 1 == descriptors.len() { 0x8900_0000 } else { 0 };
            let mut descriptor = [0; 16];
            descriptor[..8].copy_from_slice(first);
            descriptor[8..12].copy_from_slice(&(word2 | last).to_le_bytes());
            descriptor[12..].copy_from_slice(&word3.to_le_bytes());
            let slot = u64::from(self.send.2 % ENTRIES);
            self.world.ram.write(self.send.0 + 16 * slot, &descriptor);
            self.send.2 += 1;
        }
        let tail = self.send.2 % ENTRIES;
        self.put(regs::TDT, tail);
    }

    /// Puts the data of a frame where a descriptor can point to.
    pub(crate) fn data(&mut self, data: &[u8]) -> [u8; 8] {
        let slot = u64::from(self.send.2 % (ENTRIES / 4)) * 4;
        let address = self.buffers + (u64::from(ENTRIES) + slot) * 2048;
        self.world.ram.write(address, data);
        address.to_le_bytes()
    }

    pub(crate) fn all_sent(&mut self) -> bool {
        self.send.1 == self.send.2
    }

    /// Only the last descriptor of a frame is reported; with it all before it are done.
    fn clean_send(&mut self) {
        for next in self.send.1..self.send.2 {
            let mut back = [0; 16];
            self.world.ram.read(self.send.0 + 16 * u64::from(next % ENTRIES), &mut back);
            if back[12] & 1 != 0 && back[11] & 8 != 0 {
                self.send.1 = next + 1;
            }
        }
    }

    // --- close ---

    pub(crate) fn close(&mut self) {
        self.change(regs::RCTL, rctl::EN, 0);
        self.change(regs::TCTL, tctl::EN, 0);
        self.world.wait(Duration::from_ms(10));
        self.put(regs::IMC, u32::MAX);
        self.keep(regs::EIAC, 0);
        assert_eq!(self.get(regs::IMS), 0);
        self.get(statistics::MISSED);
        self.reset();
        self.change_phy(0, 0, 1 << 11); // power down
        self.world.wait(Duration::from_ms(1));
        assert_eq!(self.get(regs::STATUS) & status::LU, 0);
        assert!(!self.phy_link());
        self.change(regs::CTRL_EXT, DRV_LOAD, 0);
        self.world.messages.clear();
        assert!(!self.world.pin);
    }
}
