//! The model of the DMA card and its driver, each the other's judge, on an ideal driver.

use crate::ideal::Ideal;
use tlplab_device::tlpdma::driver::{Descriptors, PageSize, Verify, Wait};
use tlplab_device::tlpdma::regs::{self, Descriptor, Record, ch};
use tlplab_device::*;
use tlplab_units::{Duration, Time};

const MIB: u64 = 1 << 20;
const RING: Descriptors = Descriptors::Ring { log2: 4 };
const PIO: Descriptors = Descriptors::Pio { interval: Duration::from_ns(100) };
const INTERRUPT: Wait = Wait::Interrupt { delay: Duration::ZERO };

fn end() -> Time {
    Time::ZERO + Duration::from_us(1_000_000)
}

fn run(
    card: impl Device + 'static,
    loads: Vec<TransferLoad>,
    mode: InterruptMode,
    length_only: bool,
) -> Ideal {
    let mut world = Ideal::new(length_only).device("card", card).host(TlpdmaDriver::new("card", loads));
    (world.mode, world.strangers) = (mode, true);
    world.run(end());
    world
}

fn measured(world: &Ideal) -> Vec<Measured> {
    world.program.as_ref().map(|program| program.measured()).expect("a program")
}

/// Every way to have descriptors, pages and completions; rings of 16 wrap many times. The driver finds every byte that is not right.
#[test]
fn every_byte_arrives_in_every_mode() {
    for (number, (descriptors, wait, pages, bytes, count, outstanding)) in [
        (RING, INTERRUPT, PageSize::Small, 100_000, 9, 3),
        (RING, Wait::Poll, PageSize::Small, 300_001, 2, 1),
        (PIO, INTERRUPT, PageSize::Small, 400_000, 3, 2),
        (PIO, Wait::Poll, PageSize::Large, MIB, 2, 1),
        (Descriptors::Ring { log2: 16 }, INTERRUPT, PageSize::Large, 3 * MIB + 5, 1, 1),
        (RING, INTERRUPT, PageSize::Small, 1, 5, 5),
    ]
    .into_iter()
    .enumerate()
    {
        for mode in [InterruptMode::MsiX, InterruptMode::Intx] {
            let load = |to_card, offset, card_offset| TransferLoad {
                descriptors,
                wait,
                pages,
                count,
                outstanding,
                offset,
                card_offset,
                to_card,
                ..TransferLoad::new(bytes)
            };
            let world =
                run(Tlpdma::new(16 * MIB), vec![load(true, 3, 30), load(false, 4090, 1)], mode, false);
            assert_eq!((world.faults.clone(), world.finished), (vec![], 1), "case {number}, {mode:?}");
            assert!(!world.pin, "case {number}: what interrupts is acknowledged");
            let measured = measured(&world);
            let seen: Vec<_> =
                measured.iter().map(|one| (one.stream, one.bytes, one.calls.unwrap().count)).collect();
            assert_eq!(seen, [(0, bytes * count, count), (1, bytes * count, count)], "case {number}");
        }
    }
}

/// A card that spoils one byte of what it writes.
struct Spoiled {
    card: Tlpdma,
    next_op: u64,
    bytes: u64,
}

impl Device for Spoiled {
    fn identity(&self) -> Identity {
        self.card.identity()
    }
    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        let mut actions = Vec::new();
        let mut own =
            Context::new(cx.now(), &[], &mut self.next_op, &mut actions).with_interrupts(cx.interrupt_mode());
        self.card.handle(&mut own, event);
        for action in actions {
            match action {
                Action::DmaRead { stream, address, bytes, .. } => drop(cx.dma_read(stream, address, bytes)),
                Action::DmaWrite { stream, address, data, .. } => {
                    let mut data = data.bytes().expect("it carries data").to_vec();
                    if data.len() as u64 == self.bytes {
                        data[7] ^= 1;
                    }
                    cx.dma_write(stream, address, data.into());
                }
                Action::Msix { stream, vector } => cx.msix(stream, vector),
                Action::Reply { token, data } => cx.reply(token, data),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// One bit in one piece of a page is found, in the measured transfers from the card and in what is read back; the ends of a transfer
/// are looked at where not all is.
#[test]
fn one_wrong_bit_ends_the_run() {
    let spoiled = |bytes| Spoiled { card: Tlpdma::new(16 * MIB), next_op: 0, bytes };
    let verify = |to_card, verify| TransferLoad { verify, offset: 96, to_card, ..TransferLoad::new(200_000) };
    for (load, bytes, wrong) in [
        (verify(false, Verify::All), 4000, true),
        (verify(false, Verify::Ends), 4000, true),
        (verify(false, Verify::None), 4000, false),
        (verify(true, Verify::All), 4096, true),
    ] {
        let world = run(spoiled(bytes), vec![load], InterruptMode::MsiX, false);
        assert_eq!(
            world.faults.iter().any(|why| why.contains("is wrong from byte 7 on")),
            wrong,
            "{load:?} {:?}",
            world.faults
        );
    }
}

#[test]
fn a_poisoned_read_halts_its_channel_with_a_message() {
    let mut world = Ideal::new(false)
        .device("card", Tlpdma::new(16 * MIB))
        .host(TlpdmaDriver::new("card", vec![TransferLoad::new(64 << 10)]));
    world.run(Time::ZERO + Duration::from_us(1));
    let pages: Vec<u64> = world.ops("read").iter().filter(|op| op.1 == 4096).map(|op| op.0).collect();
    let mut world = Ideal::new(false)
        .device("card", Tlpdma::new(16 * MIB))
        .host(TlpdmaDriver::new("card", vec![TransferLoad::new(64 << 10)]));
    world.poison = Some(pages[5]);
    world.run(end());
    assert_eq!(world.faults, ["the channel to the card halted at descriptor 5: poisoned data"]);
}

/// Without data the same happens at the same times, but nothing is filled or read back.
#[test]
fn a_length_only_run_takes_as_long() {
    let load = |to_card| TransferLoad { count: 4, outstanding: 2, to_card, ..TransferLoad::new(100_000) };
    let took = |length_only| {
        let world =
            run(Tlpdma::new(16 * MIB), vec![load(true), load(false)], InterruptMode::MsiX, length_only);
        assert!(world.faults.is_empty(), "{:?}", world.faults);
        measured(&world).iter().map(|one| one.bytes).collect::<Vec<_>>()
    };
    assert_eq!(took(false), took(true));
}

/// Software that hears of an end a millisecond later loses nothing as long as there is work in the ring; the 64 descriptors that the card
/// holds are not enough.
#[test]
fn a_late_handler_costs_nothing_with_a_ring_and_much_without() {
    let took = |descriptors, delay| {
        let delay = Duration::from_us(delay);
        let wait = Wait::Interrupt { delay };
        // 64 pages of 4 KiB take about 3 us here: a millisecond is many of them.
        let load = TransferLoad {
            descriptors,
            wait,
            count: 4,
            outstanding: 4,
            verify: Verify::None,
            ..TransferLoad::new(MIB)
        };
        let world = run(Tlpdma::new(16 * MIB), vec![load], InterruptMode::MsiX, false);
        assert!(world.faults.is_empty(), "{:?}", world.faults);
        let one = measured(&world)[0];
        (one.to - one.from).as_fs() as f64 / 1e9
    };
    let (ring, pio) = (Descriptors::Ring { log2: 16 }, Descriptors::Pio { interval: Duration::ZERO });
    assert!(took(ring, 1000) < took(ring, 0) + 1000.1);
    assert!(took(pio, 1000) > took(pio, 0) + 10_000.0);
}

/// A descriptor is the card's from its last store on, however long that keeps the processor.
#[test]
fn a_card_may_be_faster_than_the_processor_stores() {
    let descriptors = Descriptors::Pio { interval: Duration::from_us(100) };
    let load = TransferLoad { descriptors, ..TransferLoad::new(8192) };
    let world = run(Tlpdma::new(16 * MIB), vec![load], InterruptMode::MsiX, false);
    assert_eq!((world.faults.clone(), measured(&world).len()), (vec![], 1));
}

/// The registers, as the map says: counters, halves of addresses, the buffer for PIO, and the window.
#[test]
fn registers_are_as_in_the_map() {
    let mut world = Ideal::new(false).device("card", Tlpdma::new(16 * MIB));
    let word = |world: &mut Ideal, at| {
        let read = world.read(0, at, 4);
        u32::from_le_bytes(read.bytes().unwrap()[..4].try_into().unwrap())
    };
    let set = |world: &mut Ideal, at, value: u32| world.write(0, at, value.to_le_bytes().into());
    assert_eq!(
        [regs::ID, regs::VERSION, regs::MEM_MIB].map(|at| word(&mut world, at.offset())),
        [0x544C_5044, 0x1_0000, 16]
    );
    let channel = regs::FROM_CARD;
    for (at, value) in [(0x00, 0x1234_5000), (0x04, 7), (0x08, 9), (0x18, 0x40), (0x1C, 1)] {
        set(&mut world, channel + at, value);
        assert_eq!(word(&mut world, channel + at), value);
    }
    // No run bit: descriptors that are pushed stay in the buffer, and the 65th is one too many.
    set(&mut world, channel + ch::CONTROL, ch::PIO);
    for pushed in 0..65 {
        assert_eq!(word(&mut world, channel + ch::PIO_ROOM), 64 - pushed.min(64));
        (0..4).for_each(|word| set(&mut world, channel + ch::PIO_DESCRIPTOR + 4 * word, 1));
    }
    assert_eq!(
        (word(&mut world, channel + ch::STATUS), word(&mut world, channel + ch::FETCHED)),
        (1 << 8, 64)
    );
    set(&mut world, channel + ch::CONTROL, ch::RESET);
    assert_eq!(
        [ch::STATUS.offset(), ch::FETCHED.offset(), ch::BASE.offset()]
            .map(|at| word(&mut world, channel + at)),
        [0, 0, 0x1234_5000]
    );
    set(&mut world, regs::WINDOW.offset(), 3);
    world.write(2, 0x10, vec![1, 2, 3].into());
    assert_eq!(world.read(2, 0x0F, 5).bytes().unwrap()[..], [0, 1, 2, 3, 0]);
    set(&mut world, regs::WINDOW.offset(), 2);
    assert_eq!(world.read(2, 0x10, 3).bytes().unwrap()[..], [0, 0, 0]);
}

#[test]
fn descriptors_and_records_are_laid_out_as_the_card_reads_them() {
    let descriptor = Descriptor {
        host: 0x0102_0304_0506_0708,
        local: 0x1112_1314,
        bytes: 0x21_2223,
        interrupt: true,
        write_back: false,
    };
    let bytes = descriptor.to_bytes();
    assert_eq!(bytes, [8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x23, 0x22, 0x21, 1]);
    assert_eq!(Descriptor::from_bytes(&bytes), descriptor);
    let record = Record { head: 0x0102_0304, status: 0x0B };
    assert_eq!(record.to_bytes(), [4, 3, 2, 1, 0x0B, 0, 0, 0]);
    assert_eq!(Record::from_bytes(record.to_bytes()), record);
}

#[test]
fn impossible_transfers_and_foreign_cards_are_refused() {
    for (loads, why) in [
        (vec![TransferLoad::new(9 * MIB)], "a transfer of 9437184 B does not fit half of the 16 MiB of card"),
        (vec![], ""),
    ] {
        let world = run(Tlpdma::new(16 * MIB), loads, InterruptMode::MsiX, true);
        assert!(
            world.faults.iter().all(|fault| fault.contains(why))
                && (why.is_empty() || world.faults.len() == 1),
            "{:?}",
            world.faults
        );
    }
    let world = run(Dma::new(), vec![TransferLoad::new(1)], InterruptMode::MsiX, true);
    assert_eq!(world.faults, ["card is 71ab:0001; this driver is for 71ab:7d0a"]);
}
