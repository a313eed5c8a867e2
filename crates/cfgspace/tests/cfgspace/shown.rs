//! What a device changes of its own registers: software's reads of the others, and what obeys them, are as before.

use tlplab_cfgspace::*;

const MSIX: u16 = 0x40;

fn drive() -> ConfigSpace {
    let mut header = Type0::new(Identity::new(0x71AB, 0x11A2, 0x01_08_02));
    header.bars[0] = Some(Bar::memory32(16 << 10));
    header.bars[5] = Some(Bar::memory32(4096));
    let msix = MsiX { vectors: 4, table: (5, 0), pending: (5, 2048) };
    ConfigSpace::new(&Layout::new(header).capability_at(MSIX, msix)).unwrap()
}

#[test]
fn software_reads_shown_bytes_and_the_function_is_unchanged() {
    let mut space = drive();
    space.show(0, &[0xFF; 4]).unwrap();
    assert_eq!((space.shown(0), space.read(0)), (0xFFFF_FFFF, 0x11A2_71AB));
    // Eight vectors, and the bits that software writes as it has written them.
    space.write(MSIX, 0b1000, 1 << 31);
    space.show(MSIX + 2, &[7, 0]).unwrap();
    assert_eq!(space.shown(MSIX) >> 16, 0x8007);
    assert_eq!(MsixMemory::of(&space).map(|memory| memory.table.vectors()), Some(4));
    space.write(MSIX, 0b1000, 0);
    assert_eq!(space.shown(MSIX) >> 16, 7);
    // The last of two changes counts, and single bytes of a dword can be changed.
    space.show(1, &[0x12]).unwrap();
    assert_eq!(space.shown(0), 0xFFFF_12FF);
    let bytes = space.shown_bytes();
    assert!((0..4096).step_by(4).all(|at| bytes[at..at + 4] == space.shown(at as u16).to_le_bytes()));
}

#[test]
fn a_bar_can_look_smaller_and_decodes_as_before() {
    let mut space = drive();
    space.write(0x04, 0b1, 2);
    space.show(0x11, &[0x30]).unwrap();
    space.write(0x10, 0xF, u32::MAX);
    assert_eq!(space.shown(0x10), 0xFFFF_F000, "4 KiB");
    space.write(0x10, 0xF, 0xFEB0_0000);
    assert_eq!(space.bars()[0].map(|bar| (bar.base, bar.size)), Some((0xFEB0_0000, 16 << 10)));
}

#[test]
fn only_a_cold_reset_clears_shown_bytes() {
    let mut space = drive();
    space.show(8, &[0x17]).unwrap();
    for (reset, revision) in [(Reset::FunctionLevel, 0x17), (Reset::Hot, 0x17), (Reset::Cold, 0)] {
        space.reset(reset);
        assert_eq!(space.shown(8) & 0xFF, revision, "{reset:?}");
    }
}

/// One byte that cannot be refuses all of them.
#[test]
fn bytes_that_are_not_the_devices_are_refused() {
    let mut space = drive();
    let cases: [(u16, usize, &str); 5] = [
        (0, 0, "0 bytes of its configuration space at 0x0; expected one or more bytes within its 4096"),
        (4094, 3, "3 bytes of its configuration space at 0xffe"),
        (u16::MAX, 4, "4 bytes of its configuration space at 0xffff"),
        (0x0C, 1, "the byte at 0xc of its configuration space"),
        (0x10, 4, "the byte at 0x12 of its configuration space"),
    ];
    for (offset, bytes, why) in cases {
        let error = space.show(offset, &vec![0xA5; bytes]).expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(space.shown_bytes(), *drive().bytes());
    space.show(4092, &[1; 4]).unwrap();
}
