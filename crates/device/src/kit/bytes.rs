//! Numbers in descriptors, lists and registers: little-endian, at any place.
//!
//! ```
//! use tlplab_device::kit::bytes::{get, put};
//!
//! let mut descriptor = [0; 16];
//! put(&mut descriptor, 0, 0x1_0000_2000u64);
//! put(&mut descriptor, 8, 1500u32);
//! let (address, bytes): (u64, u32) = (get(&descriptor, 0), get(&descriptor, 8));
//! assert_eq!((address, bytes), (0x1_0000_2000, 1500));
//! ```

use std::fmt::Debug;

/// An unsigned number of 1, 2, 4 or 8 bytes.
pub trait Number: Copy + Debug + PartialEq {
    /// Its size in bytes.
    const BYTES: usize;
    /// From that many bytes.
    fn from_slice(bytes: &[u8]) -> Self;
    /// Into that many bytes.
    fn to_slice(self, bytes: &mut [u8]);
    /// So much more, modulo its size.
    #[must_use]
    fn plus(self, more: u64) -> Self;
}

macro_rules! number {
    ($($number:ty),*) => {
        $(impl Number for $number {
            const BYTES: usize = size_of::<$number>();
            #[inline]
            fn from_slice(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("as many bytes as it has"))
            }
            #[inline]
            fn to_slice(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn plus(self, more: u64) -> Self {
                self.wrapping_add(more as Self)
            }
        })*
    };
}
number!(u8, u16, u32, u64);

/// The number at byte `at`.
///
/// # Panics
/// If it does not end within `bytes`.
#[inline]
pub fn get<T: Number>(bytes: &[u8], at: usize) -> T {
    T::from_slice(&bytes[at..at + T::BYTES])
}

/// Puts a number at byte `at`.
///
/// # Panics
/// If it does not end within `bytes`.
#[inline]
pub fn put<T: Number>(bytes: &mut [u8], at: usize, number: T) {
    number.to_slice(&mut bytes[at..at + T::BYTES]);
}

/// A value in a structure in memory: a number, or a flag.
pub trait Stored {
    /// Puts it at the beginning of `bytes`; a flag at that bit.
    fn store(self, bytes: &mut [u8], bit: usize);
    /// The value.
    fn load(bytes: &[u8], bit: usize) -> Self;
}

impl<T: Number> Stored for T {
    fn store(self, bytes: &mut [u8], _: usize) {
        put(bytes, 0, self);
    }
    fn load(bytes: &[u8], _: usize) -> Self {
        get(bytes, 0)
    }
}

impl Stored for bool {
    fn store(self, bytes: &mut [u8], bit: usize) {
        let (byte, mask) = (&mut bytes[bit / 8], 1 << (bit % 8));
        *byte = if self { *byte | mask } else { *byte & !mask };
    }
    fn load(bytes: &[u8], bit: usize) -> Self {
        bytes[bit / 8] >> (bit % 8) & 1 == 1
    }
}

/// A structure in memory, a descriptor or a command: the bytes that it has, and where in them each field is. Flags are bits of the bytes from
/// there on. What no field holds is zero.
///
/// ```
/// tlplab_device::record! {
///     /// A descriptor: 16 bytes.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     struct Descriptor [16] {
///         address: u64 = 0,
///         bytes: u32 = 8,
///         last: bool = 12 bit 31,
///     }
/// }
/// let descriptor = Descriptor { address: 0x2000, bytes: 1500, last: true };
/// assert_eq!(descriptor.to_bytes(), [0, 0x20, 0, 0, 0, 0, 0, 0, 0xDC, 5, 0, 0, 0, 0, 0, 0x80]);
/// assert_eq!(Descriptor::from_bytes(&descriptor.to_bytes()), descriptor);
/// assert_eq!(Descriptor::BYTES, 16);
/// ```
#[macro_export]
macro_rules! record {
    ($(#[$about:meta])* $see:vis struct $name:ident [$bytes:literal] {
        $($(#[$doc:meta])* $shown:vis $field:ident: $kind:ty = $at:literal $(bit $bit:literal)?,)+
    }) => {
        $(#[$about])*
        $see struct $name {
            $($(#[$doc])* $shown $field: $kind,)+
        }
        #[allow(unreachable_pub)]
        impl $name {
            /// Size in memory.
            pub const BYTES: u64 = $bytes;
            /// As in memory.
            pub fn to_bytes(self) -> [u8; $bytes] {
                let mut bytes = [0; $bytes];
                $($crate::kit::bytes::Stored::store(self.$field, &mut bytes[$at..], 0 $(+ $bit)?);)+
                bytes
            }
            /// From memory.
            pub fn from_bytes(bytes: &[u8; $bytes]) -> Self {
                Self { $($field: $crate::kit::bytes::Stored::load(&bytes[$at..], 0 $(+ $bit)?),)+ }
            }
        }
    };
}

/// The whole doublewords of `data`, which are written from `offset` on, each with its offset.
///
/// ```
/// let written: Vec<_> = tlplab_device::kit::bytes::doublewords(0x10, &[1, 0, 0, 0, 2, 0, 0, 0, 3]).collect();
/// assert_eq!(written, [(0x10, 1), (0x14, 2)]);
/// ```
pub fn doublewords(offset: u64, data: &[u8]) -> impl Iterator<Item = (u64, u32)> + '_ {
    (offset..).step_by(4).zip(data.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    crate::record! {
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct Command [20] {
            code: u8 = 0,
            tag: u16 = 2,
            address: u64 = 4,
            bytes: u32 = 12,
            first: bool = 16 bit 0,
            last: bool = 16 bit 7,
            again: bool = 16 bit 8,
            done: bool = 16 bit 31,
        }
    }
    const NOTHING: Command = Command {
        code: 0,
        tag: 0,
        address: 0,
        bytes: 0,
        first: false,
        last: false,
        again: false,
        done: false,
    };

    fn command() -> impl Strategy<Value = Command> {
        (any::<u8>(), any::<u16>(), any::<u64>(), any::<u32>(), any::<[bool; 4]>()).prop_map(
            |(code, tag, address, bytes, [first, last, again, done])| Command {
                code,
                tag,
                address,
                bytes,
                first,
                last,
                again,
                done,
            },
        )
    }

    proptest! {
        #[test]
        fn a_record_is_in_memory_where_its_fields_are(command in command()) {
            let [first, last, again, done] =
                [command.first, command.last, command.again, command.done].map(u32::from);
            let expected = [
                &[command.code, 0][..],
                &command.tag.to_le_bytes(),
                &command.address.to_le_bytes(),
                &command.bytes.to_le_bytes(),
                &(first | last << 7 | again << 8 | done << 31).to_le_bytes(),
            ];
            prop_assert_eq!(&command.to_bytes()[..], expected.concat());
            prop_assert_eq!(Command::from_bytes(&command.to_bytes()), command);
        }

        /// Bits between the fields belong to none of them.
        #[test]
        fn a_record_is_read_among_other_bits(bytes in any::<[u8; 20]>()) {
            let read = Command::from_bytes(&bytes);
            let word = u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]);
            let flags = [0, 7, 8, 31].map(|bit| word & 1 << bit != 0);
            prop_assert_eq!([read.first, read.last, read.again, read.done], flags);
            prop_assert_eq!((read.code, read.tag), (bytes[0], u16::from_le_bytes([bytes[2], bytes[3]])));
        }
    }

    #[test]
    fn a_flag_leaves_its_neighbours() {
        let mut bytes = [0xA5; 4];
        true.store(&mut bytes, 9);
        true.store(&mut bytes, 0);
        assert_eq!(bytes, [0xA5, 0xA7, 0xA5, 0xA5]);
        false.store(&mut bytes, 9);
        false.store(&mut bytes, 25);
        false.store(&mut bytes, 16);
        assert_eq!(bytes, [0xA5, 0xA5, 0xA4, 0xA5]);
        assert_eq!(NOTHING.to_bytes(), [0; 20]);
        assert_eq!(Command::BYTES, 20);
    }

    #[test]
    fn numbers_count_modulo_their_size() {
        assert_eq!((0xFFu8.plus(2), 0xFFFFu16.plus(0x1_0001)), (1, 0));
        assert_eq!((u32::MAX.plus(1 << 32), u64::MAX.plus(2)), (u32::MAX, 1));
    }

    #[test]
    fn a_part_of_a_doubleword_is_none() {
        let words = |offset, bytes| doublewords(offset, &vec![1; bytes]).collect::<Vec<_>>();
        assert_eq!(words(8, 3), []);
        assert_eq!(words(8, 11), [(8, 0x0101_0101), (12, 0x0101_0101)]);
    }
}
