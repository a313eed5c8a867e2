//! The way out of a function's interrupt: by MSI-X, MSI, INTx or not at all (PCIe 5.0 §6.1).

use crate::registers::{command, header, msi, msix, status};
use crate::space::ConfigSpace;

/// The way that software has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptMode {
    /// Memory writes from a table.
    MsiX,
    /// Memory writes to one address.
    Msi,
    /// Messages that stand for a wire.
    Intx,
    /// None.
    Disabled,
}

/// A memory write that is an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageWrite {
    /// The address.
    pub address: u64,
    /// The data.
    pub data: u32,
}

/// The result of raising an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// This must be written.
    Write(MessageWrite),
    /// The vector is masked; it is remembered.
    Pending,
    /// There is no message to send.
    Nothing,
}

/// The memory behind the BAR of an MSI-X capability: the table and its pending bits (PCIe 5.0 §7.7.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MsixTable {
    /// Address (two dwords), data, vector control.
    entries: Vec<[u32; 4]>,
    pending: Vec<u32>,
}

impl MsixTable {
    /// The table of that many vectors, all masked, as after a reset.
    pub fn new(vectors: u16) -> Self {
        let words = usize::from(vectors).div_ceil(64) * 2;
        Self { entries: vec![[0, 0, 0, 1]; usize::from(vectors)], pending: vec![0; words] }
    }
    /// The number of vectors.
    pub fn vectors(&self) -> u16 {
        self.entries.len() as u16
    }
    /// The bytes of the table.
    pub fn table_bytes(&self) -> u32 {
        16 * self.entries.len() as u32
    }
    /// The bytes of the pending bits.
    pub fn pending_bytes(&self) -> u32 {
        4 * self.pending.len() as u32
    }
    /// The dword at that byte of the table.
    pub fn read_table(&self, offset: u32) -> u32 {
        self.entries.get(offset as usize / 16).map_or(0, |entry| entry[offset as usize / 4 % 4])
    }
    /// Writes a dword of the table. Afterwards vectors may be due: see [`take_pending`].
    pub fn write_table(&mut self, offset: u32, value: u32) {
        if let Some(entry) = self.entries.get_mut(offset as usize / 16) {
            let writable = [!0b11, u32::MAX, u32::MAX, 1][offset as usize / 4 % 4];
            entry[offset as usize / 4 % 4] = value & writable;
        }
    }
    /// The dword at that byte of the pending bits, which software cannot write.
    pub fn read_pending(&self, offset: u32) -> u32 {
        self.pending.get(offset as usize / 4).copied().unwrap_or(0)
    }
    /// Everything as it was at first.
    pub fn reset(&mut self) {
        *self = Self::new(self.vectors());
    }

    /// Raises interrupt `vector`. See [`raise`] for a function whose configuration space is known.
    pub fn raise(&mut self, vector: u16) -> Signal {
        if vector < self.vectors() && !self.is_masked(vector) {
            return Signal::Write(self.message(vector));
        }
        self.hold(vector)
    }
    /// Interrupt `vector` of a function that is masked as a whole: it waits until [`take_pending`](Self::take_pending) finds it unmasked.
    pub fn hold(&mut self, vector: u16) -> Signal {
        if vector >= self.vectors() {
            return Signal::Nothing;
        }
        self.set_pending(vector, true);
        Signal::Pending
    }
    /// The next interrupt that waited for its mask to go, if any; call until there is none.
    pub fn take_pending(&mut self) -> Option<MessageWrite> {
        let pending = |vector: &u16| self.pending[usize::from(vector / 32)] >> (vector % 32) & 1 == 1;
        let vector = (0..self.vectors()).find(|vector| pending(vector) && !self.is_masked(*vector))?;
        self.set_pending(vector, false);
        Some(self.message(vector))
    }

    fn is_masked(&self, vector: u16) -> bool {
        self.entries[usize::from(vector)][3] & 1 == 1
    }
    fn message(&self, vector: u16) -> MessageWrite {
        let [low, high, data, _] = self.entries[usize::from(vector)];
        MessageWrite { address: u64::from(high) << 32 | u64::from(low), data }
    }
    fn set_pending(&mut self, vector: u16, pending: bool) {
        let (word, bit) = (usize::from(vector / 32), 1 << (vector % 32));
        if pending {
            self.pending[word] |= bit;
        } else {
            self.pending[word] &= !bit;
        }
    }
}

impl ConfigSpace {
    /// The way that software has chosen. With both enabled, which it must not do, MSI-X wins.
    pub fn interrupt_mode(&self) -> InterruptMode {
        if self.positions.msix.is_some_and(|span| self.read(span.start) & msix::ENABLE != 0) {
            InterruptMode::MsiX
        } else if self.positions.msi.is_some_and(|span| self.read(span.start) & msi::ENABLE != 0) {
            InterruptMode::Msi
        } else if self.has_intx() && self.read16(header::COMMAND) & command::INTX_DISABLE == 0 {
            InterruptMode::Intx
        } else {
            InterruptMode::Disabled
        }
    }

    /// The MSI vectors that the function asks for: a power of two up to 32, or 0 without MSI.
    pub fn msi_vectors(&self) -> u16 {
        self.msi_registers().map_or(0, |registers| 1 << (registers.control >> 17 & 7).min(5))
    }

    /// The MSI vector that stands for `vector`: software may have granted fewer than were asked for. `None` without MSI.
    pub fn granted_msi_vector(&self, vector: u16) -> Option<u16> {
        self.msi_registers().map(|registers| registers.fold(vector))
    }

    /// The message of an MSI vector, as software has written it; `None` without MSI.
    pub fn msi_message(&self, vector: u16) -> Option<MessageWrite> {
        self.msi_registers().map(|registers| registers.message(self, vector))
    }

    /// The MSI registers that software has written; `None` without MSI.
    pub fn msi(&self) -> Option<MsiView> {
        let registers = self.msi_registers()?;
        let message = registers.message(self, 0);
        Some(MsiView {
            enable: registers.control & msi::ENABLE != 0,
            vectors: 1 << registers.enabled(),
            address: message.address,
            data: self.read16(registers.data),
            mask: registers.masks().map_or(0, |masks| self.read(masks)),
        })
    }

    /// The wire that this function asserts now: 1 to 4 for INTA to INTD. Whoever owns the function sends a message when this changes.
    pub fn asserted_intx(&self) -> Option<u8> {
        let wanted = self.read16(header::STATUS) & status::INTERRUPT != 0;
        let usable = self.interrupt_mode() == InterruptMode::Intx;
        (wanted && usable).then(|| self.bytes[usize::from(header::INTERRUPT) + 1])
    }

    /// The bytes of address and data of MSI.
    pub(crate) fn msi_message_registers(&self) -> Option<core::ops::Range<u16>> {
        self.msi_registers().map(|msi| msi.start + msi::ADDRESS..msi.data + 2)
    }

    fn has_intx(&self) -> bool {
        self.bytes[usize::from(header::INTERRUPT) + 1] != 0
    }

    /// The registers of MSI: the places of message data, masks and pending bits.
    fn msi_registers(&self) -> Option<MsiRegisters> {
        let start = self.positions.msi?.start;
        let control = self.read(start);
        let data = start + if control & msi::WIDE != 0 { 12 } else { 8 };
        Some(MsiRegisters { start, control, data })
    }
}

/// The registers of MSI, for hardware that sends the messages itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MsiView {
    /// MSI Enable.
    pub enable: bool,
    /// The vectors that software grants: a power of two up to 32. Their number replaces the low bits of the data.
    pub vectors: u8,
    /// Message Address.
    pub address: u64,
    /// Message Data.
    pub data: u16,
    /// Mask bits, by vector.
    pub mask: u32,
}

struct MsiRegisters {
    start: u16,
    control: u32,
    data: u16,
}

impl MsiRegisters {
    /// Vectors that software allows, as the exponent of two.
    fn enabled(&self) -> u32 {
        (self.control >> 20 & 7).min(5)
    }
    /// The offset of the mask bits, if there are any; the pending bits follow.
    fn masks(&self) -> Option<u16> {
        (self.control & msi::MASKING != 0).then_some(self.data + 4)
    }
    /// A function that was given fewer vectors than it asked for folds the others onto them.
    fn fold(&self, vector: u16) -> u16 {
        vector & ((1 << self.enabled()) - 1)
    }
    /// The message of a vector. One that waits may be of a time when there were more.
    fn message(&self, space: &ConfigSpace, vector: u16) -> MessageWrite {
        let wide = self.control & msi::WIDE != 0;
        let high = if wide { u64::from(space.read(self.start + 8)) << 32 } else { 0 };
        let base = u32::from(space.read16(self.data)) & !((1 << self.enabled()) - 1);
        MessageWrite {
            address: high | u64::from(space.read(self.start + msi::ADDRESS)),
            data: base | u32::from(self.fold(vector)),
        }
    }
}

/// Raises the message of interrupt `vector` of a function whose MSI-X table, if it has one, is `table`. A function that has a wire instead
/// says so by [`ConfigSpace::set_interrupt_status`].
pub fn raise(space: &mut ConfigSpace, table: Option<&mut MsixTable>, vector: u16) -> Signal {
    match space.interrupt_mode() {
        InterruptMode::Disabled | InterruptMode::Intx => Signal::Nothing,
        _ if !space.command().bus_master => Signal::Nothing,
        InterruptMode::Msi => raise_msi(space, vector),
        InterruptMode::MsiX => match table {
            None => Signal::Nothing,
            Some(table) if function_masked(space) => table.hold(vector),
            Some(table) => table.raise(vector),
        },
    }
}

fn raise_msi(space: &mut ConfigSpace, vector: u16) -> Signal {
    let Some(registers) = space.msi_registers() else { return Signal::Nothing };
    let vector = registers.fold(vector);
    if let Some(masks) = registers.masks()
        && space.read(masks) >> vector & 1 == 1
    {
        space.update32(masks + 4, 1 << vector, 1 << vector);
        return Signal::Pending;
    }
    Signal::Write(registers.message(space, vector))
}

/// True if all vectors of MSI-X are masked at once.
pub fn function_masked(space: &ConfigSpace) -> bool {
    space.positions.msix.is_some_and(|span| space.read(span.start) & msix::FUNCTION_MASK != 0)
}

/// The next interrupt that waited for its mask to go, if any; call until there is none, after masks may have changed.
pub fn take_pending(space: &mut ConfigSpace, table: Option<&mut MsixTable>) -> Option<MessageWrite> {
    if !space.command().bus_master {
        return None;
    }
    match space.interrupt_mode() {
        InterruptMode::Msi => {
            let registers = space.msi_registers()?;
            let masks = registers.masks()?;
            let due = space.read(masks + 4) & !space.read(masks);
            let vector = (due != 0).then(|| due.trailing_zeros() as u16)?;
            space.update32(masks + 4, 1 << vector, 0);
            Some(registers.message(space, vector))
        }
        InterruptMode::MsiX if !function_masked(space) => table?.take_pending(),
        _ => None,
    }
}
