//! The MSI-X table and its pending bits, as software reaches them through BARs (PCIe 5.0 §7.7.2.5).

use tlplab_cfgspace::*;

const PLACE: MsiX = MsiX { vectors: 70, table: (2, 0x1000), pending: (4, 0x800) };

fn memory() -> MsixMemory {
    MsixMemory::new(PLACE)
}

/// 16 bytes for each vector; pending bits in quadwords.
#[test]
fn table_and_pending_bits_have_their_places() {
    let memory = memory();
    assert_eq!((memory.table.table_bytes(), memory.table.pending_bytes()), (70 * 16, 16));
    for (bar, offset, claimed) in [
        (2, 0x0FFF, false),
        (2, 0x1000, true),
        (2, 0x1000 + 70 * 16 - 1, true),
        (2, 0x1000 + 70 * 16, false),
        (4, 0x1000, false),
        (4, 0x7FF, false),
        (4, 0x800, true),
        (4, 0x80F, true),
        (4, 0x810, false),
        (2, 0x800, false),
        (0, 0x1000, false),
        (2, 0x1_0000_1000, false),
    ] {
        assert_eq!(memory.claims(bar, offset), claimed, "BAR {bar}, {offset:#x}");
    }
    let mut header = Type0::new(Identity::new(VENDOR_ID, 1, 0xFF_00_00));
    assert_eq!(MsixMemory::of(&ConfigSpace::new(&Layout::new(header.clone())).unwrap()), None);
    (header.bars[2], header.bars[4]) = (Some(Bar::memory32(1 << 13)), Some(Bar::memory32(1 << 12)));
    let space = ConfigSpace::new(&Layout::new(header).capability_at(0x40, PLACE)).unwrap();
    assert_eq!(MsixMemory::of(&space), Some(memory));
}

#[test]
fn software_reads_and_writes_entries() {
    let mut memory = memory();
    let entry: [u8; 16] = [0x00, 0x10, 0xE0, 0xFE, 1, 0, 0, 0, 0x21, 0x43, 0, 0, 0, 0, 0, 0];
    memory.write(2, 0x1010, &entry);
    assert_eq!(memory.read(2, 0x1010, 16), entry);
    // Any bytes are read, whole doublewords are written.
    assert_eq!(memory.read(2, 0x1012, 5), entry[2..7]);
    assert_eq!(memory.read(2, 0x101B, 1), entry[11..12]);
    memory.write(2, 0x1018, &[9, 9, 9]);
    assert_eq!(memory.read(2, 0x1018, 4), entry[8..12]);
    // The others are masked, as after a reset; past the end there is nothing.
    assert_eq!(memory.read(2, 0x100C, 4), [1, 0, 0, 0]);
    assert_eq!(memory.read(2, 0x1000 + 70 * 16 - 4, 8), [1, 0, 0, 0, 0, 0, 0, 0]);
    memory.write(0, 0x1010, &[0xFF; 16]);
    assert_eq!(memory.read(2, 0x1010, 16), entry);
    assert_eq!(memory.table.raise(1), Signal::Write(MessageWrite { address: 0x1_FEE0_1000, data: 0x4321 }));
}

#[test]
fn pending_bits_are_read_and_not_written() {
    let mut memory = memory();
    for vector in [0, 33, 69] {
        assert_eq!(memory.table.raise(vector), Signal::Pending);
    }
    let bits = [1, 0, 0, 0, 2, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(memory.read(4, 0x800, 16), bits);
    memory.write(4, 0x800, &[0xFF; 16]);
    assert_eq!(memory.read(4, 0x800, 16), bits);
}

#[test]
fn a_table_begins_where_its_bar_does() {
    let mut memory = MsixMemory::new(MsiX { vectors: 2, table: (0, 0), pending: (0, 0x800) });
    let entry: [u8; 16] = [0x00, 0x10, 0xE0, 0xFE, 1, 0, 0, 0, 0x21, 0x43, 0, 0, 0, 0, 0, 0];
    memory.write(0, 0, &entry);
    assert_eq!(memory.read(0, 0, 16), entry);
    assert_eq!(memory.read(0, 1, 3), entry[1..4]);
}
