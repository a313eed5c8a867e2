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
        bytes[bit / 8] |= u8::from(self) << (bit % 8);
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
