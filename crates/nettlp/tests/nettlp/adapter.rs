//! The adapter, datagram by datagram. TLPs are written by hand from PCIe 5.0 §2.2.

use crate::scene::cards::*;
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_device::DmaError;
use tlplab_nettlp::adapter::host::{HostInterrupt, MmioAccess};
use tlplab_nettlp::adapter::{DeviceCounters, MsixHome};
use tlplab_nettlp::{Datagram, Engine, MAX_DATAGRAM, Undeliverable};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Duration, Time};

/// A request that cannot be served is refused at once; a TLP without an answer is counted.
#[test]
fn unservable_requests_are_refused_at_once() {
    let cases: [(&str, &[u32], usize, u32); 9] = [
        ("beyond memory", &[0x0000_0001, 0x1B00_070F, 0x9000_0000], 0, 4),
        ("just beyond memory", &[0x0000_0002, 0x1B00_07FF, 0x0010_0000], 0, 8),
        ("a flush of nothing", &[0x0000_0001, 0x1B00_0700, 0x9000_0000], 0, 1),
        ("64-bit", &[0x2000_0001, 0x1B00_070F, 0x0000_0100, 0x0000_0000], 0, 4),
        ("its own BAR 4", &[0x0000_0001, 0x1B00_070F, 0xA000_0000], 0, 4),
        (
            "another's BAR 2, which the card holds",
            &[0x2000_0001, 0x1B00_070F, 0x0000_0100, 0x1000_0000],
            0,
            4,
        ),
        ("a fetch and add", &[0x4C00_0001, 0x1B00_070F, 0x0000_1000], 4, 4),
        ("an I/O read", &[0x0200_0001, 0x1B00_070F, 0x0000_1000], 0, 4),
        ("a locked read", &[0x0100_0001, 0x1B00_070F, 0x0000_1000], 0, 4),
    ];
    for (what, words, data, byte_count) in cases {
        let mut scene = Scene::new();
        let sent = scene.tlp(FIRST, words, &vec![0; data]);
        let locked = u32::from(what == "a locked read") << 24;
        assert_eq!(sent.len(), 1, "{what}");
        assert_eq!((sent[0].0, sent[0].1), (FIRST, 0x3007), "{what}");
        let [first, second, third] = header(&sent[0]);
        assert_eq!((first, second), (0x0A00_0000 | locked, 0x2000 | byte_count), "{what}: UR");
        assert_eq!(third >> 8, 0x1B_0007, "{what}");
        assert_eq!(scene.counters(0).refused, 1, "{what}");
    }
    let mut scene = Scene::new();
    assert_eq!(scene.tlp(FIRST, &[0x4000_0001, 0x1B00_070F, 0x9000_0000], &[0; 4]), []);
    assert_eq!(scene.tlp(FIRST, &[0x3000_0000, 0x1B00_0730, 0, 0], &[]), []); // ERR_COR
    assert_eq!(scene.tlp(FIRST, &[0x4000_4001, 0x1B00_070F, 0x0000_1000], &[0xFF; 4]), []); // poisoned
    let DeviceCounters { lost_writes, ignored, poisoned, .. } = scene.counters(0);
    assert_eq!((lost_writes, ignored, poisoned), (1, 1, 1));
    let mut data = [0; 4];
    scene.adapter.host().peek(0x1000, &mut data);
    assert_eq!(data, [0x10, 0x11, 0x12, 0x13], "poisoned data were not written");
    // Without bus mastering it may not even do what is allowed.
    assert_eq!(scene.send(FIRST, 0x5001, &[0x44, 1, 0, 0, 0, 2]), []);
    let refused = scene.tlp(FIRST, &[0x0000_0001, 0x1B00_070F, 0x0000_1000], &[]);
    assert_eq!(headers(&refused), [[0x0A00_0000, 0x0000_2004, 0x1B00_0700]]);
}

/// Requests of all sizes and alignments: cut at 64-byte boundaries, at most 256 bytes each, the right bytes in the right places.
#[test]
fn reads_are_cut_and_lose_nothing() {
    for (address, bytes) in
        [(0x1000u32, 4096u32), (0x1030, 600), (0x1001, 1), (0x103F, 700), (0x1003, 1022), (0x1FFF, 1)]
    {
        let mut scene = Scene::new();
        let (first, last) = (address & !3, (address + bytes - 1) & !3);
        let dw = (last - first) / 4 + 1;
        let first_enables = 0xF << (address & 3) & 0xF;
        let last_enables = 0xF >> (3 - ((address + bytes - 1) & 3));
        let enables = if dw == 1 { first_enables & last_enables } else { last_enables << 4 | first_enables };
        let sent = scene.tlp(FIRST, &[dw & 0x3FF, 0x1B00_FF00 | enables, first], &[]);
        let mut at = address;
        for sent in &sent {
            let [start, count, low] = header(sent);
            let left = address + bytes - at;
            assert_eq!((sent.1, start >> 10, low >> 8), (0x30FF, 0x4A00_0000 >> 10, 0x1B_00FF));
            assert_eq!(count, left & 0xFFF, "byte count at {at:#x}");
            assert_eq!(low & 0x7F, at & 0x7F, "lower address at {at:#x}");
            let room = (start & 0x3FF) * 4 - (at & 3);
            let here = room.min(left);
            assert!(here == left || (at + here) % 64 == 0, "cut at {:#x}", at + here);
            assert!((start & 0x3FF) * 4 <= 256);
            let data = &sent.2[18 + (at & 3) as usize..][..here as usize];
            let wanted: Vec<u8> = (at..at + here).map(|at| (at ^ at >> 8) as u8).collect();
            assert_eq!(data, wanted, "data at {at:#x}");
            at += here;
        }
        assert_eq!(at, address + bytes, "{bytes} B at {address:#x}");
    }
}

/// Byte enables with holes: only what is enabled is written.
#[test]
fn holes_in_a_write_stay() {
    let mut scene = Scene::new();
    assert_eq!(scene.tlp(FIRST, &[0x4000_0002, 0x1B00_05A5, 0x0000_1000], &[0xEE; 8]), []);
    let mut data = [0; 8];
    scene.adapter.host().peek(0x1000, &mut data);
    assert_eq!(data, [0xEE, 0x11, 0xEE, 0x13, 0x14, 0xEE, 0x16, 0xEE]);
}

/// One running number and a clock of 6.4 ns for all TLPs to a device, and none of either for other services.
#[test]
fn datagrams_are_numbered_and_timed() {
    let mut scene = Scene::new();
    let mut seen = Vec::new();
    for n in 0..3u64 {
        scene.now = Time::ZERO + Duration::from_ns(640 * n);
        let sent = scene.tlp(FIRST, &[0x0000_0080, 0x1B00_00FF, 0x0000_1000], &[]);
        assert_eq!(scene.send(SECOND, 0x5001, &[0x3C, 0, 0, 0, 0, 0]).len(), 1);
        seen.extend(sent.iter().map(|sent| sent.2[..6].to_vec()));
    }
    let wanted = [[0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 2, 0, 0, 0, 100], [0, 3, 0, 0, 0, 100]];
    assert_eq!(seen[..4], wanted);
}

/// The services of the adapter besides TLPs.
#[test]
fn services_answer_their_device_on_the_port_of_the_request() {
    let mut scene = Scene::new();
    let read = |dword: u8| [0x3C, dword, 0, 0, 0, 0];
    for port in [0x5001, 0x4001] {
        assert_eq!(scene.send(FIRST, port, &read(0)), [(FIRST, port, vec![0x3C, 0, 0x80, 0x22, 0x37, 0x76])]);
        assert_eq!(scene.send(FIRST, port, &read(8))[0].2[2..], [0xA0, 0, 0, 0x0C], "BAR 4");
        assert_eq!(scene.send(SECOND, port, &read(8))[0].2[2..], [0xB0, 0, 0, 0x0C], "BAR 4 of the other");
        // Cache line size, byte 0 of dword 3, can be written.
        assert_eq!(scene.send(FIRST, port, &[0x44, 3, 0xFF, 0xFF, 0xFF, 0x40]), []);
        assert_eq!(scene.send(FIRST, port, &read(3))[0].2[5], 0x40);
    }
    let ask = |scene: &mut Scene, n| scene.send(FIRST, 12287, &[n, 0, 0, 0])[0].2.clone();
    assert_eq!(ask(&mut scene, 1), 0xA000_0000u64.to_le_bytes());
    assert_eq!(ask(&mut scene, 2), [0x00, 0x1B]);
    let table = ask(&mut scene, 3);
    assert_eq!(
        (table.len(), &table[12 * 5..12 * 6]),
        (192, &[0, 0, 0xE0, 0xFE, 0, 0, 0, 0, 0x25, 0, 0, 0][..])
    );
    assert_eq!(scene.send(FIRST, 0x5002, &[0x10, 0, 0, 0, 0, 0])[0].2, [0x10, 0, 0x67, 0x45, 0x23, 0x01]);
    assert_eq!(
        scene.send(FIRST, 0x5002, &[0x10, 5, 0, 0, 0, 0])[0].2,
        [0x10, 5, 2, 0, 0, 10],
        "its own address"
    );
    // A device cannot send the adapter's traffic elsewhere.
    assert_eq!(scene.send(FIRST, 0x5002, &[0x11, 5, 1, 1, 1, 1]), []);
    assert_eq!(scene.send(FIRST, 0x5002, &[0x10, 5, 0, 0, 0, 0])[0].2, [0x10, 5, 2, 0, 0, 10]);
    assert_eq!(scene.send(FIRST, 0x5001, &[1, 2, 3]), []);
    assert_eq!(scene.send(Ipv4Addr::new(10, 9, 9, 9), 0x5001, &read(0)), []);
    assert_eq!((scene.counters(0).malformed, scene.adapter.counters().foreign), (1, 1));
}

/// Port 4001h is that of configuration space and of the host's requests with tag 1.
#[test]
fn a_completion_on_the_library_port_is_no_configuration_access() {
    let mut scene = Scene::new();
    for _ in 0..18 {
        scene.adapter.host_mut().access(0, 4, 0x40, MmioAccess::Read(4));
    }
    let asked = scene.sent();
    let ports: Vec<u16> = asked.iter().map(|sent| sent.1).collect();
    assert_eq!(ports, (0..18).map(|tag| 0x4000 + tag % 16).collect::<Vec<_>>(), "18 tags share 16 ports");
    for (tag, sent) in asked.iter().enumerate() {
        assert_eq!(header(sent), [0x0000_0001, (tag as u32) << 8 | 0xF, 0xA000_0040]);
        let answer = datagram(&[0x4A00_0001, 0x1B00_0004, (tag as u32) << 8 | 0x40], &[tag as u8; 4]);
        assert_eq!(scene.send(FIRST, sent.1, &answer), []);
        let result = scene.adapter.host_mut().take_result().expect("answered").1;
        assert_eq!(result, Ok(Payload::from([tag as u8; 4])), "tag {tag}");
    }
}

/// Answers that are late, double, or about something else touch nothing.
#[test]
fn answers_must_fit_their_requests() {
    let mut scene = Scene::new();
    let token = scene.adapter.host_mut().access(0, 4, 0x40, MmioAccess::Read(8));
    assert_eq!(scene.sent().len(), 1);
    let answer = |tag: u32, requester: u32| {
        datagram(&[0x4A00_0002, 0x1B00_0008, requester << 16 | tag << 8 | 0x40], &[7; 8])
    };
    scene.send(FIRST, 0x4001, &answer(1, 0)); // another tag
    scene.send(FIRST, 0x4000, &answer(0, 0x6400)); // another requester
    scene.send(SECOND, 0x4000, &answer(0, 0)); // another device
    assert_eq!(scene.adapter.host_mut().take_result(), None);
    scene.send(FIRST, 0x4000, &answer(0, 0));
    assert_eq!(scene.adapter.host_mut().take_result(), Some((token, Ok(Payload::from([7; 8])))));
    scene.send(FIRST, 0x4000, &answer(0, 0)); // again
    assert_eq!((scene.counters(0).unexpected, scene.counters(1).unexpected), (3, 1));
    // A late one, after the request was given up, is not taken for the next request's.
    scene.adapter.host_mut().access(0, 4, 0x40, MmioAccess::Read(8));
    let old = header(&scene.sent()[0])[1] >> 8 & 0xFF;
    scene.now += Duration::from_ms(50);
    scene.adapter.handle_timeout(scene.now);
    let given_up = scene.adapter.host_mut().take_result().expect("given up").1;
    assert!(matches!(given_up, Err(DmaError::Completion(CompletionError::Timeout { .. }))), "{given_up:?}");
    for _ in 0..255 {
        scene.adapter.host_mut().access(0, 4, 0x40, MmioAccess::Read(8));
    }
    let tags: Vec<u32> = scene.sent().iter().map(|sent| header(sent)[1] >> 8 & 0xFF).collect();
    assert!(tags.len() == 255 && !tags.contains(&old), "the old tag rests");
    scene.send(FIRST, 0x4000 + old as u16 % 16, &answer(old, 0));
    assert_eq!(scene.adapter.host_mut().take_result(), None);
}

/// Between devices: the requester's ID is its own, and an answer is the next one that is due.
#[test]
fn the_adapter_switch_passes_only_due_completions() {
    let mut scene = Scene::new();
    let read = [0x0000_0002, 0x1B00_09FF, SECOND_BAR4 as u32 + 0x40];
    let spoofed = scene.tlp(FIRST, &[read[0], 0x1D00_09FF, read[2]], &[]);
    assert_eq!(headers(&spoofed), [[0x0A00_0000, 0x0000_8008, 0x1D00_0940]], "CA");
    let passed = scene.tlp(FIRST, &read, &[]);
    assert_eq!((passed[0].0, passed[0].1, header(&passed[0])), (SECOND, 0x4009, read));
    let answer =
        |count: u32, low: u32| datagram(&[0x4A00_0001, 0x1C00_0000 | count, 0x1B00_0900 | low], &[3; 4]);
    for (what, count, low, due) in [
        ("out of order", 4, 0x44, false),
        ("another address", 8, 0x48, false),
        ("the first", 8, 0x40, true),
        ("the first again", 8, 0x40, false),
        ("the second", 4, 0x44, true),
        ("the second again", 4, 0x44, false),
    ] {
        let sent = scene.send(SECOND, 0x4009, &answer(count, low));
        let there = sent.first().map(|sent| (sent.0, sent.1, sent.2[6..].to_vec()));
        assert_eq!(there, due.then(|| (FIRST, 0x3009, answer(count, low)[6..].to_vec())), "{what}");
    }
    assert_eq!(scene.counters(1).unexpected, 4);
    // A switch has no completion timeout: the requester may wait for longer than the host does.
    assert_eq!(scene.tlp(FIRST, &read, &[]).len(), 1);
    scene.now += Duration::from_ms(1000);
    scene.adapter.handle_timeout(scene.now);
    assert_eq!(scene.send(SECOND, 0x4009, &answer(8, 0x40)).len(), 1);
}

/// A device that moves its BAR takes nobody else's addresses, and gets its own back when it moves home.
#[test]
fn a_device_cannot_take_addresses() {
    let mut scene = Scene::new();
    let write = |scene: &mut Scene, base: [u8; 4]| {
        scene.send(SECOND, 0x5001, &[[0x7C, 8].as_slice(), &base].concat());
    };
    let home = [0x0000_0001, 0x1B00_090F, SECOND_BAR4 as u32];
    let away = [0x0000_0001, 0x1B00_090F, 0xC000_0000];
    assert_eq!(scene.tlp(FIRST, &home, &[])[0].0, SECOND);
    write(&mut scene, [0xC0, 0, 0, 0]);
    for words in [away, home] {
        assert_eq!(header(&scene.tlp(FIRST, &words, &[])[0])[1], 0x2004, "UR");
    }
    write(&mut scene, [0xB0, 0, 0, 0]);
    assert_eq!(scene.tlp(FIRST, &home, &[])[0].0, SECOND);
}

/// The host's programs see the card: registers in BAR 0, the table in BAR 2, the device in BAR 4.
#[test]
fn programs_see_the_card() {
    let mut scene = Scene::new();
    let read = |scene: &mut Scene, bar, offset, bytes| {
        scene.adapter.host_mut().access(0, bar, offset, MmioAccess::Read(bytes));
        assert_eq!(scene.sent(), []);
        scene.adapter.host_mut().take_result().expect("the card answers itself").1
    };
    assert_eq!(read(&mut scene, 0, 0, 4), Ok([0x67, 0x45, 0x23, 0x01].into()));
    assert_eq!(read(&mut scene, 0, 0x40, 2), Ok([0x00, 0x1B].into()), "its ID");
    assert_eq!(read(&mut scene, 2, 8, 4), Ok([0x20, 0, 0, 0].into()), "data of vector 0");
    let entry: Vec<u8> = [0xFEE0_1000u32, 0, 0x77, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    scene.adapter.host_mut().access(0, 2, 16, MmioAccess::Write(entry.into()));
    assert_eq!(scene.sent(), []);
    assert_eq!(
        scene.send(FIRST, 12287, &[3, 0, 0, 0])[0].2[12..24],
        [0, 0x10, 0xE0, 0xFE, 0, 0, 0, 0, 0x77, 0, 0, 0]
    );
    // The device's write of that message is vector 1; another message is none.
    for (address, data, vector) in [(0xFEE0_1000, 0x77, Some(1)), (0xFEE0_0000, 0x99, None)] {
        scene.tlp(FIRST, &[0x4000_0001, 0x1B00_000F, address], &u32::to_le_bytes(data));
        let interrupt = HostInterrupt { device: 0, vector, address: address.into(), data };
        assert_eq!(scene.adapter.host_mut().take_interrupt(), Some(interrupt));
    }
    scene.adapter.host_mut().access(0, 4, 0x10, MmioAccess::Write(vec![5; 300].into()));
    let sent = scene.sent();
    assert_eq!(
        headers(&sent).iter().map(|h| (h[0] & 0x3FF, h[2])).collect::<Vec<_>>(),
        [(60, 0xA000_0010), (15, 0xA000_0100)]
    );
    let beyond = scene.adapter.host_mut().access(0, 4, (256 << 20) - 2, MmioAccess::Read(4));
    assert_eq!(scene.sent(), []);
    let results: Vec<_> = std::iter::from_fn(|| scene.adapter.host_mut().take_result()).collect();
    assert!(matches!(results.last(), Some((token, Err(_))) if *token == beyond), "{results:?}");
}

/// With the table in the device, the host writes it there when it hears of the device, and messages tell nothing.
#[test]
fn a_device_may_hold_the_table_itself() {
    let mut scene = Scene::with(MsixHome::Bar4);
    let sent = scene.send(FIRST, 0x5001, &[0x3C, 0x28, 0, 0, 0, 0]);
    let table = sent.iter().find(|sent| sent.1 == 0x4000).expect("the table");
    assert_eq!(header(table), [0x4000_0040, 0x0000_00FF, 0xAFFF_F000]);
    assert_eq!(table.2[18 + 16 * 3..][..16], [0, 0, 0xE0, 0xFE, 0, 0, 0, 0, 0x23, 0, 0, 0, 0, 0, 0, 0]);
    // Capability at 9Ch: BAR 4 in the low bits of table and pending bits.
    assert_eq!(
        sent.iter().find(|sent| sent.1 == 0x5001).expect("its place").2[2..],
        [0x0F, 0xFF, 0xF0, 0x04]
    );
    assert_eq!(scene.send(FIRST, 12287, &[3, 0, 0, 0])[0].2, [0; 192]);
    scene.tlp(FIRST, &[0x4000_0001, 0x1B00_000F, 0xFEE0_0000], &[0x23, 0, 0, 0]);
    assert_eq!(scene.adapter.host_mut().take_interrupt().and_then(|i| i.vector), Some(3));
    assert_eq!(scene.send(FIRST, 0x5001, &[0x3C, 1, 0, 0, 0, 0]).len(), 1, "once");
    // It was started again, has an empty table, and asks what it is. Naive: no interrupt of its will ever have an address.
    let again = scene.send(FIRST, 0x5001, &[0x3C, 0, 0, 0, 0, 0]);
    assert_eq!(again.iter().map(|sent| sent.1).collect::<Vec<_>>(), [0x4000, 0x5001]);
    assert_eq!(again[0].2[6..], table.2[6..]);
}

/// A read that was given up: behind each late completion another may come later still, so its tag rests. Naive: the last one
/// ends the rest, and a completion after it fits the next read with that tag.
#[test]
fn a_host_tag_rests_after_a_timeout_despite_late_completions() {
    let mut scene = Scene::new();
    let read = |scene: &mut Scene| scene.adapter.host_mut().access(0, 4, 0, MmioAccess::Read(256));
    read(&mut scene);
    let request = header(&scene.sent()[0])[1];
    let tag = request >> 8 & 0xFF;
    scene.now = Time::ZERO + Duration::from_ms(51);
    scene.adapter.handle_timeout(scene.now);
    scene.tlp(FIRST, &[0x4A00_0020, 0x1B00_0080, request & 0xFFFF_FF00], &[0; 128]);
    assert_eq!(scene.counters(0).unexpected, 1);
    for _ in 0..256 {
        read(&mut scene);
    }
    let tags: Vec<u32> = headers(&scene.sent()).iter().map(|words| words[1] >> 8 & 0xFF).collect();
    assert!(tags.len() == 255 && !tags.contains(&tag), "{}: {tags:?}", tags.len());
}

/// A network may turn the completions of one answer round. Naive: what comes first contradicts the request, which fails.
#[test]
fn completions_of_a_device_may_overtake_each_other() {
    let mut scene = Scene::new();
    scene.adapter.host_mut().access(0, 4, 0, MmioAccess::Read(192));
    let request = header(&scene.sent()[0])[1] & 0xFFFF_FF00;
    // Byte count, lower address, data: 64 bytes each.
    for (left, lower, data) in [(64, 0, 3), (128, 0x40, 2), (128, 0x40, 9), (192, 0, 1)] {
        let words = [0x4A00_0010, 0x1B00_0000 | left, request | lower];
        assert_eq!(scene.tlp(FIRST, &words, &[data; 64]), []);
    }
    let (_, result) = scene.adapter.host_mut().take_result().expect("the read is over");
    let expected = [[1; 64], [2; 64], [3; 64]].concat();
    assert_eq!(result.expect("data").bytes(), Some(&expected[..]));
    assert_eq!((scene.counters(0).duplicates, scene.counters(0).unexpected), (1, 0));
}

/// PCIe 5.0 table 2-39: no completion passes a posted request. Naive: answers and requests take turns, and a device sees the flag in
/// memory before the doorbell that was rung before.
#[test]
fn an_answer_does_not_pass_the_hosts_writes() {
    let mut scene = Scene::new();
    let mut sent = Vec::new();
    for _ in 0..3 {
        scene.adapter.host_mut().access(0, 4, 0, MmioAccess::Write(vec![1; 300].into()));
        let mut buffer = [0; MAX_DATAGRAM];
        let out = scene.adapter.poll_transmit(scene.now, &mut buffer).expect("the first of two");
        sent.push((*out.to.ip(), out.to.port(), buffer[..out.len].to_vec()));
        sent.extend(scene.tlp(FIRST, &[0x0000_0001, 0x1B00_070F, 0x1000], &[]));
    }
    let kinds: Vec<u32> = headers(&sent).iter().map(|words| words[0] >> 24).collect();
    assert_eq!(kinds, [[0x40, 0x40, 0x4A]; 3].concat());
}

/// What comes twice, and what does not come, is counted, also where a device has several lanes and the copy is much later.
#[test]
fn numbers_of_a_device_are_watched() {
    let mut scene = Scene::new();
    let mut datagram = datagram(&[0x0000_0001, 0x1B00_070F, 0x1000], &[]);
    let mut send = |tag: u32, number: u16| {
        datagram[..2].copy_from_slice(&number.to_be_bytes());
        datagram[5] = 1;
        datagram[12] = tag as u8;
        scene.send(FIRST, 0x3000 + tag as u16, &datagram).len()
    };
    for number in (1..3000).filter(|number| number % 100 != 50) {
        assert_eq!(send(7, number), 1);
    }
    assert_eq!(send(7, 1), 0, "a copy");
    assert_eq!(send(8, 1), 1, "the first of another lane");
    assert_eq!((send(7, 2999), send(8, 1)), (0, 0), "copies, both");
    let rows = scene.counters(0).rows();
    let row = |wanted| rows.iter().find(|(name, _)| *name == wanted).map(|(_, count)| *count);
    // The other lane's number hides one of thirty.
    assert_eq!((row("duplicates"), row("lost")), (Some(3), Some(29)));
}

/// The origin of time moves, and nobody notices: what waits still waits as long.
#[test]
fn time_may_begin_again() {
    for rebased in [false, true] {
        let mut scene = Scene::new();
        scene.now = Time::ZERO + Duration::from_ms(1000);
        scene.adapter.host_mut().access(0, 4, 0, MmioAccess::Read(4));
        scene.sent();
        assert_eq!(scene.tlp(FIRST, &[0x0000_0001, 0x1B00_090F, SECOND_BAR4 as u32], &[]).len(), 1);
        if rebased {
            scene.adapter.rebase(Duration::from_ms(990));
            scene.now = Time::ZERO + Duration::from_ms(10);
        }
        let begin = scene.now;
        assert_eq!(scene.adapter.deadline(), Some(begin + Duration::from_ms(50)), "rebased: {rebased}");
        scene.now = begin + Duration::from_ms(50);
        let answer = datagram(&[0x4A00_0001, 0x1C00_0004, 0x1B00_0900], &[3; 4]);
        assert_eq!(scene.send(SECOND, 0x4009, &answer).len(), 1, "rebased: {rebased}");
    }
}

/// The network says that a port of a device is closed: the reads of all tags that go there end, and no others.
#[test]
fn a_refused_port_ends_all_reads_of_its_tags() {
    let mut scene = Scene::new();
    for _ in 0..20 {
        scene.access(0, 4, 0x40, MmioAccess::Read(4));
    }
    let refused = |scene: &mut Scene, to| {
        scene.adapter.handle_undeliverable(Time::ZERO, to, Undeliverable::PortRefused);
        scene.results()
    };
    for (peer, port, ended) in
        [(SECOND, 0x4002, 0), (FIRST, 0x3002, 0), (FIRST, 0x4002, 2), (FIRST, 0x4003, 2)]
    {
        let results = refused(&mut scene, SocketAddrV4::new(peer, port));
        let undelivered = |result: &_| matches!(result, Err(DmaError::Completion(CompletionError::Undelivered { tag, .. })) if tag.value() % 16 == port % 16);
        assert!(results.len() == ended && results.iter().all(undelivered), "{port:#x}: {results:?}");
    }
    assert_eq!((scene.counters(0).undeliverable, scene.counters(0).failed), (3, 4));
    assert_eq!(scene.counters(1).undeliverable, 1);
}

/// Datagrams to ports that are no TLP's and no service's are counted.
#[test]
fn datagrams_to_other_ports_are_counted() {
    let mut scene = Scene::new();
    let read = datagram(&[0x0000_0001, 0x1B00_070F, 0x1000], &[]);
    for (port, answers, counted) in [(0x2000, 0, 1), (0x6000, 0, 2), (0x3007, 1, 2), (0x5003, 0, 3)] {
        assert_eq!(scene.send(FIRST, port, &read).len(), answers, "{port:#x}");
        assert_eq!(scene.adapter.counters().other_ports, counted, "{port:#x}");
    }
}

/// What leaves for several devices takes turns, datagram by datagram.
#[test]
fn datagrams_to_two_devices_take_turns() {
    let mut scene = Scene::new();
    for (from, id) in [(FIRST, 0x1B00), (SECOND, 0x1C00)] {
        let payload = datagram(&[0x0000_0000, id << 16 | 0x07FF, 0x1000], &[]);
        let datagram = Datagram { from: SocketAddrV4::new(from, 0x3007), port: 0x3007, payload: &payload };
        scene.adapter.handle_datagram(scene.now, datagram);
    }
    let to: Vec<Ipv4Addr> = scene.sent().iter().map(|sent| sent.0).collect();
    assert_eq!(to, [[FIRST, SECOND]; 16].concat());
}

/// The clock in the headers counts ticks of 6.4 ns since the start, however often the origin of time moves.
#[test]
fn the_header_clock_goes_on_when_time_begins_anew() {
    let mut scene = Scene::new();
    let whole = Duration::from_fs(u64::MAX) - Duration::from_ms(1000);
    for round in 1..=1000u128 {
        if round % 100 == 1 {
            scene.now = Time::ZERO + whole;
            let sent = scene.tlp(FIRST, &[0x0000_0001, 0x1B00_070F, 0x1000], &[]);
            let ticks = u128::from(whole.as_fs()) * round / 6_400_000;
            assert_eq!(sent[0].2[2..6], (ticks as u32).to_be_bytes(), "round {round}");
        }
        scene.adapter.rebase(whole);
    }
}

/// Nothing is sent for a datagram that is no TLP, and each is counted.
#[test]
fn datagrams_that_are_no_tlps_are_counted() {
    let mut scene = Scene::new();
    let read = datagram(&[0x0000_0001, 0x1B00_070F, 0x1000], &[]);
    let no_such_type = [&[0; 6][..], &[0x0F], &read[7..]].concat();
    for (n, payload) in (1..).zip([&[][..], &read[..5], &read[..6], &read[..17], &no_such_type, &read[..9]]) {
        assert_eq!(scene.send(FIRST, 0x3007, payload), []);
        assert_eq!(scene.counters(0).malformed, n, "{payload:?}");
    }
}

/// The backlog is all that waits to be sent or to be answered, each item once.
#[test]
fn the_backlog_counts_each_waiting_item() {
    let mut scene = Scene::of(cards(MsixHome::Bar2));
    let come = |scene: &mut Scene, from, port, payload: &[u8]| {
        let from = SocketAddrV4::new(from, port);
        scene.adapter.handle_datagram(scene.now, Datagram { from, port, payload });
        scene.adapter.backlog()
    };
    let nowhere = datagram(&[0x0000_0001, 0x1B00_070F, 0x9000_0000], &[]);
    let passed = datagram(&[0x4000_0001, 0x1C00_000F, 0xA000_0000], &[1; 4]);
    let service = [0x3C, 0, 0, 0, 0, 0];
    let items = [
        (FIRST, 0x3007, &nowhere[..]),
        (FIRST, 0x3007, &nowhere),
        (FIRST, 0x5001, &service),
        (FIRST, 0x5001, &service),
        (FIRST, 0x5001, &service),
        (SECOND, 0x3000, &passed),
        (SECOND, 0x3000, &passed),
    ];
    for (n, (from, port, payload)) in (1..).zip(items) {
        assert_eq!(come(&mut scene, from, port, payload), n);
    }
    for _ in 0..5 {
        scene.adapter.host_mut().access(0, 4, 0, MmioAccess::Read(4));
    }
    let mut buffer = [0; MAX_DATAGRAM];
    assert!(scene.adapter.poll_transmit(scene.now, &mut buffer).is_some());
    assert_eq!(scene.adapter.backlog(), 6 + 5, "one has left, and the host has asked for more");
    assert_eq!(scene.sent().len(), 6 + 5);
    assert_eq!(scene.adapter.backlog(), 5, "answers of the device are waited for");
}
