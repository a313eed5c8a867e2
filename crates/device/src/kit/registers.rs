//! Registers from one table: place, width, reset value, and what software may do to each.
//!
//! ```
//! use tlplab_device::kit::{Field, RegisterFile};
//!
//! tlplab_device::registers! {
//!     /// Bits 6 to 4 are the mode.
//!     CONTROL: u32 = 0x00, rw.masked(0xFF).reset(0x21);
//!     /// Address of the ring.
//!     RING: u64 = 0x08, rw;
//!     /// Why it interrupts.
//!     CAUSE: u32 = 0x10, rw1c;
//! }
//! const MODE: Field = CONTROL.bits(6, 4);
//!
//! let mut file = RegisterFile::new(TABLE);
//! assert_eq!(file.field(MODE), 2);
//! assert!(file.write(0x0C, &vec![0x12].into()).touches(RING)); // one byte of its upper half
//! assert_eq!(file.get(RING), 0x12_0000_0000);
//! file.set(CAUSE, 0b11); // the device's own change
//! file.write(0x10, &vec![0b01].into()); // software clears one
//! assert_eq!(file.get(CAUSE), 0b10);
//! assert_eq!(file.read(0x10, 8), vec![2, 0, 0, 0, 0, 0, 0, 0].into()); // nothing is behind it
//! ```

use super::bytes::{self, Number};
use std::marker::PhantomData;
use std::ops::Add;
use tlplab_transaction::Payload;

/// The place of a register in its BAR, and its width: `u8` to `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register<T> {
    at: u32,
    holds: PhantomData<T>,
}

impl<T: Number> Register<T> {
    /// The register at that offset.
    #[inline]
    pub const fn at(offset: u32) -> Self {
        Self { at: offset, holds: PhantomData }
    }
    /// Its offset.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.at as u64
    }

    /// In the table of a file: software reads it, its writes are lost.
    pub const fn ro(self) -> RegisterEntry {
        self.entry(Access::ReadOnly)
    }
    /// Software reads what it wrote.
    pub const fn rw(self) -> RegisterEntry {
        self.entry(Access::ReadWrite)
    }
    /// Software reads it, and clears the bits in which it writes ones.
    pub const fn rw1c(self) -> RegisterEntry {
        self.entry(Access::ClearOnes)
    }
    /// Software writes it, and reads zero: a doorbell.
    pub const fn wo(self) -> RegisterEntry {
        self.entry(Access::WriteOnly)
    }
    const fn entry(self, access: Access) -> RegisterEntry {
        RegisterEntry { at: self.at, width: T::BYTES as u32, count: 1, reset: 0, mask: u64::MAX, access }
    }
}

impl Register<u32> {
    /// The field from bit `high` down to bit `low`.
    pub const fn bits(self, high: u32, low: u32) -> Field {
        assert!(low <= high && high < 32, "a field is from its high bit down to its low bit");
        Field { register: self, shift: low, mask: u32::MAX >> (31 - (high - low)) }
    }
}

/// The address of a register in a BAR at that address.
impl<T: Number> Add<Register<T>> for u64 {
    type Output = u64;
    fn add(self, register: Register<T>) -> u64 {
        self + register.offset()
    }
}

/// Some bits of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    register: Register<u32>,
    shift: u32,
    mask: u32,
}

/// The access of software to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read it.
    ReadOnly,
    /// Read what it wrote.
    ReadWrite,
    /// Read it, and clear bits by writing ones.
    ClearOnes,
    /// Write it. It reads as zero.
    WriteOnly,
}

/// A register in the table of a file, or several of a kind that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterEntry {
    at: u32,
    width: u32,
    count: u32,
    reset: u64,
    mask: u64,
    access: Access,
}

impl RegisterEntry {
    /// Its value after a reset; 0 by default.
    #[must_use]
    pub const fn reset(self, value: u64) -> Self {
        Self { reset: value, ..self }
    }
    /// Software changes only these bits; all by default.
    #[must_use]
    pub const fn masked(self, mask: u64) -> Self {
        Self { mask, ..self }
    }
    /// So many of them.
    #[must_use]
    pub const fn times(self, count: u32) -> Self {
        Self { count, ..self }
    }
    const fn end(&self) -> u32 {
        self.at + self.width * self.count
    }

    /// The bytes of the file from byte `at` on, which are of this register, after software wrote `new` over them.
    fn write(&self, at: usize, bytes: &mut [u8], new: &[u8]) {
        match self.access {
            Access::ReadOnly => {}
            Access::ReadWrite | Access::WriteOnly if self.mask == u64::MAX => bytes.copy_from_slice(new),
            Access::ReadWrite | Access::WriteOnly => {
                self.each(at, bytes, new, |old, new, mask| old & !mask | new & mask)
            }
            Access::ClearOnes => self.each(at, bytes, new, |old, new, mask| old & !(new & mask)),
        }
    }
    fn each(&self, at: usize, bytes: &mut [u8], new: &[u8], becomes: impl Fn(u8, u8, u8) -> u8) {
        let masks = self.mask.to_le_bytes();
        for (number, (byte, new)) in bytes.iter_mut().zip(new).enumerate() {
            let place = (at + number - self.at as usize) % self.width as usize;
            *byte = becomes(*byte, *new, masks[place]);
        }
    }
}

/// The table of a file, checked when the program is built: in the order of offsets, none in another.
pub const fn table(entries: &[RegisterEntry]) -> &[RegisterEntry] {
    let mut place = 1;
    while place < entries.len() {
        assert!(entries[place - 1].end() <= entries[place].at, "registers out of order, or in each other");
        place += 1;
    }
    entries
}

/// The registers of a file, stated once: a constant with the place of each, and `TABLE`, of which a [`RegisterFile`] is made. Behind the place
/// stands what software may do: `ro`, `rw`, `rw1c` or `wo`, with `.reset(value)`, `.masked(bits)` or `.times(count)`; see [`RegisterEntry`].
#[macro_export]
macro_rules! registers {
    ($($(#[$doc:meta])* $see:vis $name:ident: $width:ty = $at:expr, $access:ident $(.$option:ident($value:expr))*;)+) => {
        $($(#[$doc])* $see const $name: $crate::kit::Register<$width> = $crate::kit::Register::at($at);)+
        /// The access of software to each.
        #[allow(unreachable_pub)]
        pub const TABLE: &[$crate::kit::RegisterEntry] =
            $crate::kit::table(&[$($name.$access()$(.$option($value))*),+]);
    };
}

/// The bytes that a write reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    from: u64,
    to: u64,
}

impl Touched {
    /// The bytes of an access to `bytes` bytes from `offset` on.
    #[inline]
    pub fn by(offset: u64, bytes: u64) -> Self {
        Self { from: offset, to: offset.saturating_add(bytes) }
    }
    /// True if a byte of that register is among them.
    #[inline]
    pub fn touches<T: Number>(self, register: Register<T>) -> bool {
        let end = register.offset() + T::BYTES as u64;
        self.from < self.to && self.from < end && register.offset() < self.to
    }
}

/// The values of a table of registers. Addresses outside the table read as zero, and writes to them are lost.
#[derive(Clone, Debug)]
pub struct RegisterFile {
    table: &'static [RegisterEntry],
    bytes: Vec<u8>,
    /// Some of it reads as zero, whatever it holds.
    hides: bool,
}

impl RegisterFile {
    /// The registers of a [`table`] after a reset.
    pub fn new(table: &'static [RegisterEntry]) -> Self {
        let mut bytes = vec![0; table.last().map_or(0, |last| last.end() as usize)];
        for entry in table.iter().filter(|entry| entry.reset != 0) {
            let value = &entry.reset.to_le_bytes()[..entry.width as usize];
            bytes[entry.at as usize..entry.end() as usize].chunks_mut(value.len()).for_each(|one| {
                one.copy_from_slice(value);
            });
        }
        let hides = table.iter().any(|entry| entry.access == Access::WriteOnly);
        Self { table, bytes, hides }
    }

    /// The value of a register.
    ///
    /// # Panics
    /// Like all that the device does with a register: if it lies behind the table.
    #[inline]
    pub fn get<T: Number>(&self, register: Register<T>) -> T {
        bytes::get(&self.bytes, register.at as usize)
    }
    /// The device's own change: it may change what software may not.
    #[inline]
    pub fn set<T: Number>(&mut self, register: Register<T>, value: T) {
        bytes::put(&mut self.bytes, register.at as usize, value);
    }
    /// Counts, modulo the size of the register.
    #[inline]
    pub fn add<T: Number>(&mut self, register: Register<T>, more: u64) {
        self.set(register, self.get(register).plus(more));
    }
    /// Some bits of a register.
    #[inline]
    pub fn field(&self, field: Field) -> u32 {
        self.get(field.register) >> field.shift & field.mask
    }
    /// Changes some bits of a register.
    #[inline]
    pub fn set_field(&mut self, field: Field, value: u32) {
        let others = self.get(field.register) & !(field.mask << field.shift);
        self.set(field.register, others | (value & field.mask) << field.shift);
    }

    /// A read by software.
    pub fn read(&self, offset: u64, bytes: u32) -> Payload {
        let mut data = vec![0; bytes as usize];
        self.read_into(offset, &mut data);
        data.into()
    }
    /// The same, for as many bytes as `data` has.
    pub fn read_into(&self, offset: u64, data: &mut [u8]) {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let there = &self.bytes[from..self.bytes.len().min(from.saturating_add(data.len()))];
        data[..there.len()].copy_from_slice(there);
        data[there.len()..].fill(0);
        if !self.hides {
            return;
        }
        for hidden in self.table.iter().filter(|entry| entry.access == Access::WriteOnly) {
            for at in hidden.at as usize..hidden.end() as usize {
                if let Some(byte) = at.checked_sub(from).and_then(|place| data.get_mut(place)) {
                    *byte = 0;
                }
            }
        }
    }

    /// A write by software: of each byte the bits that it may change. A write of which only the length is known has no effect.
    pub fn write(&mut self, offset: u64, data: &Payload) -> Touched {
        data.bytes().map_or(Touched::by(offset, 0), |data| self.write_bytes(offset, data))
    }
    /// The same of bytes.
    pub fn write_bytes(&mut self, offset: u64, data: &[u8]) -> Touched {
        let touched = Touched::by(offset, data.len() as u64);
        let first = self.table.partition_point(|entry| u64::from(entry.end()) <= offset);
        for entry in self.table[first..].iter().take_while(|entry| u64::from(entry.at) < touched.to) {
            let (from, to) = (touched.from.max(entry.at.into()), touched.to.min(entry.end().into()));
            let new = &data[(from - offset) as usize..(to - offset) as usize];
            entry.write(from as usize, &mut self.bytes[from as usize..to as usize], new);
        }
        touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    crate::registers! {
        PLAIN: u32 = 0x00, rw.reset(0x1234_5678);
        WIDE: u64 = 0x08, rw.masked(!0xFFF);
        FIXED: u32 = 0x10, ro.reset(7);
        CAUSE: u16 = 0x14, rw1c.masked(0x0FFF).reset(0xFFFF);
        BELL: u32 = 0x18, wo;
        MANY: u8 = 0x1C, rw.masked(0x0F).reset(0x30).times(5);
    }

    /// Byte `at` by the rules, stated again and one by one; `None` if there is none.
    fn rule(at: u64, old: u8, new: u8) -> Option<u8> {
        match at {
            0x00..0x04 => Some(new),
            0x08 => Some(old),
            0x09 => Some(old & 0x0F | new & 0xF0),
            0x0A..0x10 => Some(new),
            0x10..0x14 => Some(old),
            0x14 => Some(old & !new),
            0x15 => Some(old & !(new & 0x0F)),
            0x18..0x1C => Some(new),
            0x1C..0x21 => Some(old & 0xF0 | new & 0x0F),
            _ => None,
        }
    }

    fn shown(file: &RegisterFile, at: u64) -> u8 {
        file.read(at, 1).bytes().expect("bytes")[0]
    }

    proptest! {
        #[test]
        fn registers_read_back_by_their_access_rules(
            writes in proptest::collection::vec((0u64..0x30, proptest::collection::vec(any::<u8>(), 0..20)), 1..40),
        ) {
            let mut file = RegisterFile::new(TABLE);
            let mut kept: Vec<u8> = (0..0x60).map(|at| file.bytes.get(at).copied().unwrap_or(0)).collect();
            for (offset, data) in writes {
                let touched = file.write(offset, &data.clone().into());
                for (at, byte) in (offset..).zip(&data) {
                    if let Some(value) = rule(at, kept[at as usize], *byte) {
                        kept[at as usize] = value;
                    }
                }
                let inside = |at: u64| (offset..offset + data.len() as u64).contains(&at);
                prop_assert_eq!(touched.touches(WIDE), (0x08..0x10).any(inside));
                prop_assert_eq!(touched.touches(MANY), inside(0x1C));
                for at in 0..0x40u64 {
                    let expected = if (0x18..0x1C).contains(&at) { 0 } else { kept[at as usize] };
                    prop_assert_eq!(shown(&file, at), expected, "byte {:#x}", at);
                }
                prop_assert_eq!(&file.get(BELL).to_le_bytes()[..], &kept[0x18..0x1C]);
                let wide = file.read(offset, 32);
                let one_by_one: Vec<u8> = (offset..offset + 32).map(|at| shown(&file, at)).collect();
                prop_assert_eq!(wide, one_by_one.into());
            }
        }
    }

    #[test]
    fn the_device_may_change_all_of_it() {
        const LOW: Field = FIXED.bits(3, 0);
        const ALL: Field = FIXED.bits(31, 0);
        let mut file = RegisterFile::new(TABLE);
        assert_eq!((file.get(PLAIN), file.get(FIXED), file.get(CAUSE)), (0x1234_5678, 7, 0xFFFF));
        file.set(FIXED, 0xFFFF_FFF0);
        file.set_field(LOW, 0x1A);
        assert_eq!((file.field(LOW), file.field(ALL)), (0xA, 0xFFFF_FFFA));
        file.add(FIXED, 7);
        assert_eq!((file.get(FIXED), 0x1000 + FIXED), (1, 0x1010));
        file.add(CAUSE, 3);
        assert_eq!(file.get(CAUSE), 2);
        assert_eq!(file.read(u64::MAX, 4), vec![0; 4].into());
        assert!(!file.write(u64::MAX, &vec![1, 2].into()).touches(PLAIN));
        assert!(!file.write(0x0C, &Payload::Length(4)).touches(WIDE));
        assert_eq!(file.get(PLAIN), 0x1234_5678);
    }

    #[test]
    fn a_mask_goes_with_its_register_wherever_that_begins() {
        const ODD: Register<u32> = Register::at(1);
        const ODDS: &[RegisterEntry] = table(&[ODD.rw().masked(0x00FF_0000).times(2)]);
        let mut file = RegisterFile::new(ODDS);
        file.write(0, &vec![0xFF; 9].into());
        assert_eq!((file.get(ODD), file.get(Register::<u32>::at(5))), (0x00FF_0000, 0x00FF_0000));
    }

    #[test]
    fn doorbells_alone_read_as_zero() {
        const BELLS: &[RegisterEntry] = table(&[BELL.wo().reset(5)]);
        let mut file = RegisterFile::new(BELLS);
        file.write(BELL.offset(), &vec![1, 2, 3, 4].into());
        assert_eq!((file.get(BELL), file.read(0x14, 12)), (0x0403_0201, vec![0; 12].into()));
    }

    #[test]
    fn fields_are_of_one_bit_to_all() {
        let mut file = RegisterFile::new(TABLE);
        for (bit, field) in [(0, PLAIN.bits(0, 0)), (31, PLAIN.bits(31, 31)), (17, PLAIN.bits(17, 17))] {
            file.set(PLAIN, !0);
            file.set_field(field, 0);
            assert_eq!((file.get(PLAIN), file.field(field)), (!(1 << bit), 0));
            file.set(PLAIN, 0);
            file.set_field(field, !0);
            assert_eq!((file.get(PLAIN), file.field(field)), (1 << bit, 1));
        }
    }

    #[test]
    #[should_panic(expected = "a field is from its high bit down")]
    fn a_field_beyond_its_register_is_refused() {
        PLAIN.bits(32, 1);
    }

    #[test]
    #[should_panic(expected = "a field is from its high bit down")]
    fn a_field_from_its_low_bit_up_is_refused() {
        PLAIN.bits(3, 4);
    }

    #[test]
    #[should_panic(expected = "in each other")]
    fn a_register_in_another_is_refused() {
        table(&[MANY.rw().times(5), Register::<u8>::at(0x20).rw()]);
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn a_table_out_of_order_is_refused() {
        table(&[WIDE.rw(), PLAIN.rw()]);
    }
}
