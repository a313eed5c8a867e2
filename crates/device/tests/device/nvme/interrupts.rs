//! Messages, and the level of the pin.

use super::bench::{Bench, Entry};
use super::small;
use tlplab_device::nvme::{NvmeConfig, Offered, regs};
use tlplab_device::{Device, InterruptMode};
use tlplab_units::Duration;

#[test]
fn the_pin_is_up_while_completions_wait_that_are_not_masked() {
    let mut bench = Bench::new(NvmeConfig { interrupts: Offered::Intx, ..small() });
    bench.mode = InterruptMode::Intx;
    bench.enable();
    bench.create(1, 16, 0);
    bench.settle();
    assert!(!bench.pin);
    bench.lazy = true;
    (0..3).for_each(|_| {
        bench.put(1, Entry::new(0).namespace(1));
    });
    bench.ring(1);
    bench.settle();
    assert!(bench.pin);
    assert!(bench.reap_one(1) && bench.reap_one(1));
    bench.settle();
    assert!(bench.pin, "there is one left");
    bench.write32(regs::INTMS.offset(), 1);
    assert_eq!(bench.read32(regs::INTMS.offset()), 1);
    bench.settle();
    assert!(!bench.pin, "masked");
    bench.write32(regs::INTMC.offset(), 1);
    bench.settle();
    assert!(bench.pin);
    assert!(bench.reap_one(1));
    bench.settle();
    assert!(!bench.pin);
    // One vector is all there is.
    let at = bench.alloc(4096);
    bench.lazy = false;
    assert_eq!(bench.admin(Entry::new(5).prp(at, 0).words(7 << 16 | 2, 1 << 16 | 3)).code(), 0x108);
    // A controller that is disabled tells nothing.
    bench.lazy = true;
    bench.submit(1, Entry::new(0).namespace(1));
    bench.settle();
    assert!(bench.pin);
    bench.write32(regs::CC.offset(), 0);
    bench.settle();
    assert!(!bench.pin);
}

#[test]
fn a_queue_without_interrupts_is_polled() {
    for mode in [InterruptMode::MsiX, InterruptMode::Intx] {
        let mut bench = Bench::new(small());
        bench.mode = mode;
        bench.enable();
        let (submission, completion) = bench.pair(1, 16);
        assert_eq!(bench.admin(Entry::new(5).prp(completion, 0).words(15 << 16 | 1, 1)).status, 0);
        assert_eq!(bench.admin(Entry::new(1).prp(submission, 0).words(15 << 16 | 1, 1 << 16 | 1)).status, 0);
        bench.settle();
        let before = bench.messages.len();
        bench.lazy = true;
        bench.submit(1, Entry::new(0).namespace(1));
        bench.settle();
        assert!(bench.messages.len() == before && !bench.pin);
        assert!(bench.reap_one(1));
    }
}

#[test]
fn msi_messages_carry_the_queues_vector_and_obey_the_mask() {
    let mut bench = Bench::new(NvmeConfig { interrupts: Offered::Msi, ..small() });
    assert_eq!((bench.nvme.identity().msix_vectors, bench.nvme.identity().msi_vectors), (0, 16));
    bench.mode = InterruptMode::Msi;
    bench.enable();
    bench.create(1, 16, 3);
    bench.settle();
    bench.messages.clear();
    assert_eq!(bench.command(1, Entry::new(0).namespace(1)).status, 0);
    bench.settle();
    assert_eq!(bench.messages, [3]);
    bench.write32(regs::INTMS.offset(), 1 << 3);
    assert_eq!(bench.command(1, Entry::new(0).namespace(1)).status, 0);
    assert_eq!(bench.command(1, Entry::new(0).namespace(1)).status, 0);
    bench.settle();
    assert_eq!(bench.messages, [3]);
    bench.write32(regs::INTMC.offset(), 1 << 3);
    bench.settle();
    assert_eq!(bench.messages, [3, 3], "one for what was masked");
}

#[test]
fn coalesced_interrupts_come_together_or_after_their_time() {
    let mut bench = Bench::new(small());
    bench.enable();
    bench.create(1, 64, 1);
    bench.create(2, 64, 2);
    // Four completions, or 200 us; vector 2 does not wait.
    assert_eq!(bench.admin(Entry::new(9).words(8, 0x0203)).status, 0);
    assert_eq!(bench.admin(Entry::new(9).words(9, 1 << 16 | 2)).status, 0);
    bench.settle();
    bench.messages.clear();
    for _ in 0..10 {
        bench.put(1, Entry::new(0).namespace(1));
        bench.put(2, Entry::new(0).namespace(1));
    }
    bench.ring(1);
    bench.ring(2);
    bench.run_for(Duration::from_us(50));
    let of = |bench: &Bench, vector| bench.messages.iter().filter(|of| **of == vector).count();
    assert_eq!((of(&bench, 1), of(&bench, 2)), (2, 10));
    bench.run_for(Duration::from_us(250));
    assert_eq!(of(&bench, 1), 3, "the last two after their time");
}
