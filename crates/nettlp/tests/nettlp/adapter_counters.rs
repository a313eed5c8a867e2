//! The counters of an adapter, and the services that tell of them.

use crate::scene::cards::*;
use std::net::SocketAddrV4;
use tlplab_device::DmaError;
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{AdapterConfig, DeviceCounters, MsixHome};
use tlplab_nettlp::{Datagram, Engine};
use tlplab_transaction::CompletionError;

/// The counters that are not zero.
fn counted(scene: &Scene, device: usize) -> Vec<(&'static str, u64)> {
    scene.counters(device).rows().into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Requests to memory with their bytes, interrupts, accesses of programs and of services: each is counted once, for its device.
#[test]
fn requests_are_counted_with_their_bytes() {
    let mut scene = Scene::new();
    for _ in 0..2 {
        scene.tlp(FIRST, &[0x0000_0003, 0x1B00_07FE, 0x1000], &[]); // 11 bytes
        scene.tlp(FIRST, &[0x4000_0002, 0x1B00_001F, 0x1000], &[1; 8]); // 5 bytes
        scene.tlp(FIRST, &[0x4000_0002, 0x1B00_005A, 0x1000], &[1; 8]); // 6 bytes, and 4 of them enabled
        scene.tlp(FIRST, &[0x4000_0001, 0x1B00_000F, 0xFEE0_0000], &[0x20, 0, 0, 0]);
        scene.tlp(FIRST, &[0x4000_0001, 0x1B00_000F, SECOND_BAR4 as u32], &[1; 4]);
        scene.access(0, 4, 0, MmioAccess::Write(vec![1; 4].into()));
        scene.access(0, 0, 0, MmioAccess::Read(4));
        scene.send(FIRST, 0x5001, &[0x3C, 0, 0, 0, 0, 0]);
    }
    let expected = [
        ("received", 12),
        ("sent", 6),
        ("reads", 2),
        ("bytes_read", 22),
        ("writes", 4),
        ("bytes_written", 22),
        ("interrupts", 2),
        ("peer_requests", 2),
        ("mmio", 4),
        ("control", 2),
    ];
    assert_eq!(counted(&scene, 0), expected);
    assert_eq!(counted(&scene, 1), [("sent", 2)]);
    let written = &scene.send(FIRST, 12287, &[100, 0, 0, 0])[0].2;
    assert_eq!((&written[..8], &written[8..]), (&4u64.to_le_bytes()[..], &22u64.to_le_bytes()[..]));
}

/// What comes wrong is counted each time, with what it is.
#[test]
fn tlps_that_are_not_carried_out_are_counted() {
    let mut scene = Scene::new();
    for _ in 0..2 {
        scene.tlp(FIRST, &[0x0000_0001, 0x1B00_070F, 0x9000_0000], &[]);
        scene.tlp(FIRST, &[0x4000_0001, 0x1B00_000F, 0x9000_0000], &[1; 4]);
        scene.tlp(FIRST, &[0x4000_4001, 0x1B00_000F, 0x1000], &[1; 4]);
        scene.tlp(FIRST, &[0x3000_0000, 0x1B00_0730, 0, 0], &[]);
        scene.tlp(FIRST, &[0x4A00_0001, 0x1B00_0004, 0x0000_0000], &[1; 4]);
        scene.tlp(FIRST, &[0x4A00_0001, 0x1B00_0004, 0x1C00_0000], &[1; 4]);
        scene.tlp(FIRST, &[0x4A00_0002, 0x1B00_0004, 0x1C00_0000], &[1; 4]); // cut off
        scene.adapter.handle_undeliverable(
            scene.now,
            SocketAddrV4::new(FIRST, 0x3000),
            tlplab_nettlp::Undeliverable::HostUnreachable,
        );
    }
    let expected = [
        ("received", 14),
        ("sent", 2),
        ("malformed", 2),
        ("refused", 2),
        ("lost_writes", 2),
        ("poisoned", 2),
        ("ignored", 2),
        ("unexpected", 4),
        ("undeliverable", 2),
    ];
    assert_eq!(counted(&scene, 0), expected);
}

/// Max_Payload_Size is 256: a write of it is as it should be, one of 260 is counted and carried out.
#[test]
fn writes_beyond_max_payload_size_are_counted() {
    let mut scene = Scene::new();
    for (dw, oversized) in [(1, 0), (64, 0), (65, 1), (128, 2)] {
        let data = vec![dw as u8; 4 * dw as usize];
        scene.tlp(FIRST, &[0x4000_0000 | dw, 0x1B00_0000 | if dw == 1 { 0x0F } else { 0xFF }, 0x1000], &data);
        assert_eq!(scene.counters(0).oversized, oversized);
        let mut found = vec![0; data.len()];
        scene.adapter.host().peek(0x1000, &mut found);
        assert_eq!(found, data);
    }
}

/// An interrupt is a write of one whole doubleword between FEE00000h and FEEFFFFFh; any other write there is lost, and a read gets UR.
#[test]
fn interrupts_are_writes_of_one_doubleword() {
    let mut scene = Scene::new();
    for (words, data, interrupt) in [
        ([0x4000_0001, 0x1B00_000F, 0xFEE0_0000], 4, true),
        ([0x4000_0001, 0x1B00_000F, 0xFEEF_FFFC], 4, true),
        ([0x4000_0001, 0x1B00_000F, 0xFEDF_FFFC], 4, false),
        ([0x4000_0001, 0x1B00_000F, 0xFEF0_0000], 4, false),
        ([0x4000_0001, 0x1B00_0003, 0xFEE0_0000], 4, false),
        ([0x4000_0002, 0x1B00_003C, 0xFEE0_0000], 8, false),
        ([0x4000_0002, 0x1B00_00FF, 0xFEE0_0000], 8, false),
    ] {
        let before = scene.counters(0);
        assert_eq!(scene.tlp(FIRST, &words, &vec![0x20; data]), []);
        let DeviceCounters { interrupts, lost_writes, .. } = scene.counters(0);
        let counted = (interrupts - before.interrupts, lost_writes - before.lost_writes);
        assert_eq!(counted, (u64::from(interrupt), u64::from(!interrupt)), "{words:x?}");
        assert_eq!(scene.adapter.host_mut().take_interrupt().is_some(), interrupt, "{words:x?}");
    }
    let read = scene.tlp(FIRST, &[0x0000_0001, 0x1B00_070F, 0xFEE0_0000], &[]);
    assert_eq!(header(&read[0])[1], 0x2004, "UR");
}

/// 64 answers of services wait to be sent, and no more.
#[test]
fn answers_of_services_are_bounded() {
    let mut scene = Scene::of(AdapterConfig { queue: 2, ..cards(MsixHome::Bar2) });
    let from = SocketAddrV4::new(FIRST, 0x5002);
    for n in 1..=66 {
        let payload = [0x10, 0, 0, 0, 0, 0];
        scene.adapter.handle_datagram(scene.now, Datagram { from, port: 0x5002, payload: &payload });
        assert_eq!(scene.counters(0).overflows, u64::max(n, 64) - 64);
    }
    assert_eq!((scene.sent().len(), scene.counters(0).control), (64, 66));
}

/// The shortest TLP on the port of tag 1 is an answer to the host, and anything shorter an access to configuration space.
#[test]
fn the_shortest_completion_on_the_library_port_is_a_completion() {
    let mut scene = Scene::new();
    for _ in 0..2 {
        assert_eq!(scene.access(0, 4, 0x40, MmioAccess::Read(4)).len(), 1);
    }
    let refusal = datagram(&[0x0A00_0000, 0x1B00_2004, 0x0000_0140], &[]);
    assert_eq!(refusal.len(), 18);
    scene.send(FIRST, 0x4001, &refusal[..17]);
    assert_eq!((scene.results(), scene.counters(0).control), (vec![], 1));
    scene.send(FIRST, 0x4001, &refusal);
    let results = scene.results();
    let ur =
        |result: &_| matches!(result, Err(DmaError::Completion(CompletionError::UnsupportedRequest { .. })));
    assert!(results.len() == 1 && ur(&results[0]), "{results:?}");
    assert_eq!((scene.counters(0).failed, scene.counters(0).control), (1, 1));
}

/// The table in a device is written when the device begins: it asks for its IDs at the port of configuration space. No other access means
/// that.
#[test]
fn only_a_read_of_the_ids_gets_the_table_again() {
    let mut scene = Scene::with(MsixHome::Bar4);
    let tables = |sent: Vec<Sent>| sent.iter().filter(|sent| sent.1 == 0x4000).count();
    assert_eq!(tables(scene.send(FIRST, 0x5001, &[0x3C, 0, 0, 0, 0, 0])), 1);
    for (port, payload) in [
        (0x5001, [0x3C, 2, 0, 0, 0, 0]),
        (0x5001, [0x7C, 0, 1, 2, 3, 4]),
        (0x4001, [0x3C, 0, 0, 0, 0, 0]),
        (0x5002, [0x10, 0, 0, 0, 0, 0]),
        (0x5002, [0x3C, 0, 0, 0, 0, 0]),
    ] {
        assert_eq!(tables(scene.send(FIRST, port, &payload)), 0, "{port:#x} {payload:?}");
    }
    assert_eq!(tables(scene.send(FIRST, 0x5001, &[0x3C, 0, 0, 0, 0, 0])), 1);
}
