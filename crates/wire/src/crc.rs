//! The three checksums: LCRC and ECRC (32 bits), DLLP CRC (16 bits).
//!
//! Both 32-bit ones use the polynomial 04C1_1DB7h, start from all ones, take each byte's bit 0 first and are sent complemented
//! (PCIe 5.0 §2.7.1, §3.6.2.1); the DLLP's uses 100Bh (§3.5.1) in the same way. Written little-endian, the results are the bytes in the order of
//! the wire.

const POLY_32: u32 = 0x04c1_1db7_u32.reverse_bits();
const POLY_16: u16 = 0x100b_u16.reverse_bits();
const SLICES: usize = 16;

/// `TABLES[n][b]` is the effect of byte `b` followed by `n` zero bytes.
static TABLES: [[u32; 256]; SLICES] = tables();
static TABLE_16: [u16; 256] = make_table_16();

const fn tables() -> [[u32; 256]; SLICES] {
    let mut tables = [[0; 256]; SLICES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { POLY_32 } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut slice = 1;
    while slice < SLICES {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[slice - 1][byte];
            tables[slice][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        slice += 1;
    }
    tables
}

const fn make_table_16() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u16;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { POLY_16 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// The effect of each byte on the 32-bit CRCs, for programs in other languages.
pub fn table_32() -> [u32; 256] {
    TABLES[0]
}

/// The same of the DLLP's CRC.
pub fn table_16() -> [u16; 256] {
    TABLE_16
}

/// A 32-bit CRC on its way, for bytes that come in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc32(u32);

impl Default for Crc32 {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc32 {
    /// Nothing seen yet.
    pub const fn new() -> Self {
        Self(u32::MAX)
    }

    /// The same after `bytes`, sixteen at a time.
    #[must_use]
    pub fn update(self, bytes: &[u8]) -> Self {
        let mut crc = self.0;
        let mut chunks = bytes.chunks_exact(SLICES);
        for chunk in &mut chunks {
            let mut next = 0;
            let head = crc.to_le_bytes();
            for (at, &byte) in chunk.iter().enumerate() {
                let byte = if at < 4 { byte ^ head[at] } else { byte };
                next ^= TABLES[SLICES - 1 - at][byte as usize];
            }
            crc = next;
        }
        for &byte in chunks.remainder() {
            crc = crc >> 8 ^ TABLES[0][((crc as u8) ^ byte) as usize];
        }
        Self(crc)
    }

    /// The checksum; little-endian, its bytes are those of the wire.
    pub const fn finish(self) -> u32 {
        !self.0
    }
}

/// LCRC of a TLP behind its sequence number (12 bits, in two bytes whose upper four bits are zero; PCIe 5.0 §3.6.2).
pub fn lcrc(sequence: u16, tlp: &[u8]) -> u32 {
    Crc32::new().update(&(sequence & 0xfff).to_be_bytes()).update(tlp).finish()
}

/// ECRC of a TLP, given from its first prefix or header byte to its last payload byte, without the digest (PCIe 5.0 §2.7.1).
///
/// Local prefixes are left out. The bits that may change on the way, bit 0 of Type and EP, count as 1.
pub fn ecrc(tlp: &[u8]) -> u32 {
    let view = crate::tlp::Packet::new(tlp);
    let header = view.header_offset();
    let (covered, rest) = tlp.split_at(header);
    let crc = Crc32::new().update(&covered[view.local_prefix_len()..]);
    let Some((dw0, rest)) = rest.split_first_chunk::<4>() else { return crc.update(rest).finish() };
    let variant = [dw0[0] | 0x01, dw0[1], dw0[2] | 0x40, dw0[3]];
    crc.update(&variant).update(rest).finish()
}

/// CRC of a DLLP's first four bytes (PCIe 5.0 §3.5.1).
pub fn dllp(bytes: [u8; 4]) -> u16 {
    !bytes.iter().fold(u16::MAX, |crc, &byte| crc >> 8 ^ TABLE_16[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as the specification draws the shift register.
    fn bitwise_32(bytes: &[u8]) -> u32 {
        let mut register = u32::MAX;
        for bit in bytes.iter().flat_map(|byte| (0..8).map(move |n| u32::from(byte >> n & 1))) {
            let feedback = register >> 31 ^ bit;
            register = (register << 1) ^ (feedback * 0x04c1_1db7);
        }
        (!register).reverse_bits()
    }

    fn bitwise_16(bytes: &[u8]) -> u16 {
        let mut register = u16::MAX;
        for bit in bytes.iter().flat_map(|byte| (0..8).map(move |n| u16::from(byte >> n & 1))) {
            let feedback = register >> 15 ^ bit;
            register = (register << 1) ^ (feedback * 0x100b);
        }
        (!register).reverse_bits()
    }

    #[test]
    fn tables_agree_with_the_shift_register() {
        let mut bytes = [0u8; 100];
        let mut state = 1u32;
        for byte in &mut bytes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        for end in 0..bytes.len() {
            assert_eq!(Crc32::new().update(&bytes[..end]).finish(), bitwise_32(&bytes[..end]), "{end} bytes");
            let (a, b) = bytes[..end].split_at(end / 3);
            assert_eq!(
                Crc32::new().update(a).update(b).finish(),
                bitwise_32(&bytes[..end]),
                "{end} bytes in two"
            );
        }
        for four in bytes.chunks_exact(4) {
            let four = [four[0], four[1], four[2], four[3]];
            assert_eq!(dllp(four), bitwise_16(&four));
        }
    }

    #[test]
    fn the_check_value_of_this_crc() {
        // The check value that every catalogue gives for this polynomial, reflected and complemented.
        assert_eq!(Crc32::new().update(b"123456789").finish(), 0xcbf4_3926);
    }

    #[test]
    fn ecrc_ignores_the_variant_bits() {
        let mut tlp = [0x44, 0, 0x80, 1, 0, 0, 7, 0x0f, 1, 0, 0, 0x10, 0xde, 0xad, 0xbe, 0xef];
        let sum = ecrc(&tlp);
        tlp[0] ^= 1;
        tlp[2] ^= 0x40;
        assert_eq!(ecrc(&tlp), sum);
        tlp[1] ^= 0x10;
        assert_ne!(ecrc(&tlp), sum);
    }
}
