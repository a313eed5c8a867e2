//! Interrupts: the ways that they go, and masked ones that are remembered.

use proptest::prelude::*;
use tlplab_cfgspace::interrupt::{raise, take_pending};
use tlplab_cfgspace::*;

const MSI: u16 = 0x40;
const MSIX: u16 = 0x60;
const VECTORS: u16 = 70;

/// A function with INTA, 8 vectors of MSI with 64-bit addresses and masks, and 70 of MSI-X; it may master the bus.
fn function() -> (ConfigSpace, MsixTable) {
    let mut header = Type0 { interrupt_pin: 1, ..Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00)) };
    header.bars[0] = Some(Bar::memory32(1 << 12));
    let layout = Layout::new(header)
        .capability_at(MSI, Msi { vectors: 8, wide: true, masking: true })
        .capability_at(MSIX, MsiX { vectors: VECTORS, table: (0, 0), pending: (0, 0x800) });
    let mut space = ConfigSpace::new(&layout).unwrap();
    space.write(0x04, 0b1, 0x4);
    let table = MsixTable::new(space.msix().unwrap().vectors);
    (space, table)
}

/// MSI on, with that many vectors as an exponent of two.
fn enable_msi(space: &mut ConfigSpace, exponent: u32) {
    space.write(MSI + 4, 0xF, 0xFEE0_1000);
    space.write(MSI + 8, 0xF, 0x1);
    space.write(MSI + 12, 0xF, 0x4565);
    space.write(MSI, 0b1100, 1 << 16 | exponent << 20);
}

/// MSI-X on, with an address and data of its own for each vector, none masked.
fn enable_msix(space: &mut ConfigSpace, table: &mut MsixTable) {
    for vector in 0..u32::from(VECTORS) {
        table.write_table(16 * vector, 0xFEE0_0000 + 16 * vector);
        table.write_table(16 * vector + 8, 0x100 + vector);
        table.write_table(16 * vector + 12, 0);
    }
    space.write(MSIX, 0b1100, 1 << 31);
}

fn msix_message(vector: u16) -> MessageWrite {
    MessageWrite { address: 0xFEE0_0000 + 16 * u64::from(vector), data: 0x100 + u32::from(vector) }
}

#[test]
fn the_way_is_the_one_that_software_chose() {
    use InterruptMode::{Disabled, Intx};
    // MSI-X, MSI, Interrupt Disable, the pin.
    for case in 0..16 {
        let [msix, msi, disable, pin] = [0, 1, 2, 3].map(|bit| case >> bit & 1 == 1);
        let mut header =
            Type0 { interrupt_pin: u8::from(pin) * 3, ..Type0::new(Identity::new(0x71AB, 1, 0)) };
        header.bars[0] = Some(Bar::memory32(1 << 12));
        let layout = Layout::new(header)
            .capability_at(MSI, Msi { vectors: 1, wide: false, masking: false })
            .capability_at(MSIX, MsiX { vectors: 1, table: (0, 0), pending: (0, 0x800) });
        let mut space = ConfigSpace::new(&layout).unwrap();
        let mut table = MsixTable::new(1);
        table.write_table(12, 0);
        space.write(MSIX, 0xF, u32::from(msix) << 31);
        space.write(MSI, 0xF, u32::from(msi) << 16);
        space.write(0x04, 0b11, 0x4 | u32::from(disable) << 10);
        let wire = if pin && !disable { Intx } else { Disabled };
        let expected = if msix {
            InterruptMode::MsiX
        } else if msi {
            InterruptMode::Msi
        } else {
            wire
        };
        assert_eq!(space.interrupt_mode(), expected, "{case:04b}");
        let message = Signal::Write(MessageWrite { address: 0, data: 0 });
        let signal = match expected {
            InterruptMode::MsiX | InterruptMode::Msi => message,
            Intx | Disabled => Signal::Nothing,
        };
        assert_eq!(raise(&mut space, Some(&mut table), 0), signal, "{case:04b}");
        space.set_interrupt_status(true);
        assert_eq!(space.asserted_intx(), (expected == Intx).then_some(3), "{case:04b}");
    }
}

#[test]
fn a_wire_follows_its_status_and_its_permission() {
    let (mut space, _) = function();
    assert_eq!(space.asserted_intx(), None);
    assert_eq!(raise(&mut space, None, 0), Signal::Nothing, "no message is sent");
    assert_eq!(space.asserted_intx(), None, "nobody has asked for the wire");
    space.set_interrupt_status(true);
    assert_eq!(space.asserted_intx(), Some(1));
    assert!(space.write(0x04, 0b10, 0x400).interrupts);
    assert_eq!(space.asserted_intx(), None, "Interrupt Disable");
    assert_eq!(space.read(0x04) >> 19 & 1, 1, "it is still wanted");
    assert!(space.write(0x04, 0b10, 0).interrupts);
    assert_eq!(space.asserted_intx(), Some(1));
    space.set_interrupt_status(false);
    assert_eq!(space.asserted_intx(), None);
}

#[test]
fn msi_vectors_fold_onto_the_granted_vectors() {
    // With n vectors, the low bits of the data are the function's, and of its 8 vectors it uses the first n.
    for (exponent, expected) in [
        (0, [0x4565; 8]),
        (1, [0x4564, 0x4565, 0x4564, 0x4565, 0x4564, 0x4565, 0x4564, 0x4565]),
        (2, [0x4564, 0x4565, 0x4566, 0x4567, 0x4564, 0x4565, 0x4566, 0x4567]),
        (3, [0x4560, 0x4561, 0x4562, 0x4563, 0x4564, 0x4565, 0x4566, 0x4567]),
    ] {
        let (mut space, _) = function();
        enable_msi(&mut space, exponent);
        for (vector, data) in (0..).zip(expected) {
            let message = MessageWrite { address: 0x1_FEE0_1000, data };
            assert_eq!(raise(&mut space, None, vector), Signal::Write(message), "{vector} of {exponent}");
        }
    }
}

#[test]
fn masked_vectors_of_msi_wait() {
    let (mut space, _) = function();
    enable_msi(&mut space, 3);
    space.write(MSI + 16, 0xF, 0b1010_0000);
    assert!(matches!(raise(&mut space, None, 4), Signal::Write(_)));
    for vector in [7, 5, 7] {
        assert_eq!(raise(&mut space, None, vector), Signal::Pending);
    }
    assert_eq!(space.read(MSI + 20), 0b1010_0000);
    assert_eq!(take_pending(&mut space, None), None);
    space.write(MSI + 20, 0xF, 0);
    assert_eq!(space.read(MSI + 20), 0b1010_0000, "pending bits are read-only");
    assert!(space.write(MSI + 16, 0xF, 0b0010_0000).interrupts);
    assert_eq!(take_pending(&mut space, None).map(|message| message.data), Some(0x4567));
    assert_eq!(take_pending(&mut space, None), None, "twice masked, once sent");
    space.write(MSI + 16, 0xF, 0);
    space.write(0x04, 0b1, 0);
    assert_eq!(take_pending(&mut space, None), None, "it may not master the bus");
    space.write(0x04, 0b1, 0x4);
    assert_eq!(take_pending(&mut space, None).map(|message| message.data), Some(0x4565));
    assert_eq!(space.read(MSI + 20), 0);
}

#[test]
fn masked_vectors_of_msix_wait() {
    let (mut space, mut table) = function();
    assert_eq!(table.read_table(16 * 69 + 12), 1, "all are masked after a reset");
    enable_msix(&mut space, &mut table);
    assert_eq!(raise(&mut space, Some(&mut table), 69), Signal::Write(msix_message(69)));
    table.write_table(16 * 69 + 12, u32::MAX);
    assert_eq!(table.read_table(16 * 69 + 12), 1, "the other bits are reserved");
    space.write(MSIX, 0b1000, 0xC000_0000);
    for vector in [69, 0, 40] {
        assert_eq!(raise(&mut space, Some(&mut table), vector), Signal::Pending);
    }
    assert_eq!([0, 4, 8, 12].map(|at| table.read_pending(at)), [1, 1 << 8, 1 << 5, 0]);
    assert_eq!(table.pending_bytes(), 16, "whole quadwords");
    assert_eq!(take_pending(&mut space, Some(&mut table)), None, "the function is masked");
    space.write(MSIX, 0b1000, 0x8000_0000);
    // Software may change a message while it is masked.
    table.write_table(16 * 40 + 8, 0xABCD);
    let mut next = || take_pending(&mut space, Some(&mut table));
    assert_eq!(next(), Some(msix_message(0)));
    assert_eq!(next(), Some(MessageWrite { data: 0xABCD, ..msix_message(40) }));
    assert_eq!(next(), None, "69 is masked itself");
    table.write_table(16 * 69 + 12, 0);
    assert_eq!(take_pending(&mut space, Some(&mut table)), Some(msix_message(69)));
    assert_eq!(raise(&mut space, Some(&mut table), VECTORS), Signal::Nothing, "there is no such vector");
    assert_eq!((table.read_table(16 * 70), table.read_pending(16)), (0, 0), "and nothing behind the table");
    table.reset();
    assert_eq!(table, MsixTable::new(VECTORS));
}

#[test]
fn no_message_is_sent_without_bus_mastering() {
    for msix in [false, true] {
        let (mut space, mut table) = function();
        if msix {
            enable_msix(&mut space, &mut table)
        } else {
            enable_msi(&mut space, 3)
        }
        space.write(0x04, 0b1, 0);
        assert_eq!(raise(&mut space, Some(&mut table), 0), Signal::Nothing);
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Raise(u16),
    /// Masks or unmasks a vector.
    Mask(u16, bool),
    /// Masks or unmasks all (MSI-X only).
    MaskAll(bool),
}

fn any_act(vectors: u16) -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0..vectors).prop_map(Act::Raise),
        2 => (0..vectors, any::<bool>()).prop_map(|(vector, on)| Act::Mask(vector, on)),
        1 => any::<bool>().prop_map(Act::MaskAll),
    ]
}

proptest! {
    /// Every interrupt is sent, or merged into one that is sent later; and none is sent while it is masked.
    #[test]
    fn none_is_lost(acts in proptest::collection::vec(any_act(8), 0..60), msix: bool) {
        let (mut space, mut table) = function();
        if msix { enable_msix(&mut space, &mut table) } else { enable_msi(&mut space, 3) }
        let number = |message: MessageWrite| (message.data & 7) as usize; // in both ways
        let (mut masked, mut all) = ([false; 8], false);
        let mut wanted = [false; 8];
        let unmask = [Act::MaskAll(false)].into_iter().chain((0..8).map(|vector| Act::Mask(vector, false)));
        for act in acts.into_iter().chain(unmask) {
            match act {
                Act::Raise(vector) => {
                    let signal = raise(&mut space, Some(&mut table), vector);
                    let index = usize::from(vector);
                    if all || masked[index] {
                        prop_assert_eq!(signal, Signal::Pending);
                        wanted[index] = true;
                    } else {
                        let Signal::Write(message) = signal else { panic!("{signal:?}") };
                        prop_assert_eq!(number(message), index);
                    }
                }
                Act::Mask(vector, on) => {
                    masked[usize::from(vector)] = on;
                    if msix {
                        table.write_table(16 * u32::from(vector) + 12, on.into());
                    } else {
                        let bits = (0..8).fold(0, |bits, i| bits | u32::from(masked[i]) << i);
                        space.write(MSI + 16, 0xF, bits);
                    }
                }
                Act::MaskAll(on) if msix => {
                    all = on;
                    space.write(MSIX, 0b1000, 1 << 31 | u32::from(on) << 30);
                }
                Act::MaskAll(_) => {}
            }
            while let Some(message) = take_pending(&mut space, Some(&mut table)) {
                let index = number(message);
                prop_assert!(wanted[index] && !masked[index] && !all, "{}", index);
                wanted[index] = false;
            }
        }
        prop_assert_eq!(wanted, [false; 8]);
    }
}

/// The places of data, masks and the upper half of the address depend on the shape of the capability; the bytes behind it are another's.
#[test]
fn msi_of_each_shape() {
    for (wide, masking) in [(false, false), (false, true), (true, false), (true, true)] {
        let part = Msi { vectors: 4, wide, masking };
        let bytes = if wide { 0x10 } else { 0x0C } + if masking { 8 } else { 0 };
        let layout = Layout::new(Type0::new(Identity::new(0x71AB, 1, 0)))
            .capability_at(0x80, part)
            .capability_at(0x80 + bytes, Capability::Vendor(vec![0xFF; 21]));
        let mut space = ConfigSpace::new(&layout).unwrap();
        let data = if wide { 0x8C } else { 0x88 };
        space.write(0x04, 0b11, 0x4);
        space.write(0x84, 0xF, 0xFEE0_1000);
        if wide {
            space.write(0x88, 0xF, 0x0000_0012);
        }
        space.write(data, 0b11, 0xABCF);
        space.write(0x80, 0b1100, 0x0021 << 16); // enabled, four vectors
        let address = if wide { 0x12_FEE0_1000 } else { 0xFEE0_1000 };
        for vector in 0..4 {
            let message = MessageWrite { address, data: 0xABCC + u32::from(vector) };
            assert_eq!(raise(&mut space, None, vector), Signal::Write(message), "{part:?}");
        }
        // Two vectors: the others are folded onto them.
        space.write(0x80, 0b1100, 0x0011 << 16);
        let message = MessageWrite { address, data: 0xABCF };
        assert_eq!(raise(&mut space, None, 3), Signal::Write(message));
        assert_eq!(take_pending(&mut space, None), None);
        if masking {
            space.write(data + 4, 0xF, 0b10);
            assert_eq!(raise(&mut space, None, 3), Signal::Pending);
            assert_eq!(space.read(data + 8), 0b10);
            assert_eq!(take_pending(&mut space, None), None, "it is masked");
            space.write(data + 4, 0xF, 0);
            assert_eq!(take_pending(&mut space, None), Some(message));
            assert_eq!((take_pending(&mut space, None), space.read(data + 8)), (None, 0));
        }
    }
}

/// A function changes no more of the data than the vectors that it was given need (PCIe 5.0 §7.7.1.2), whatever waits from before.
#[test]
fn a_vector_that_waits_folds_when_there_are_fewer() {
    let (mut space, _) = function();
    enable_msi(&mut space, 3);
    space.write(MSI + 12, 0b11, 0x4560);
    space.write(MSI + 16, 0xF, 0xFF);
    assert_eq!(raise(&mut space, None, 6), Signal::Pending);
    space.write(MSI, 0b1100, 1 << 16 | 1 << 20); // two vectors
    space.write(MSI + 16, 0xF, 0);
    assert_eq!(take_pending(&mut space, None).map(|message| message.data), Some(0x4560));
    assert_eq!(take_pending(&mut space, None), None);
}
