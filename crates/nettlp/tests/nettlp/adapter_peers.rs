//! From device to device, TLP by TLP: through a switch, and through a root complex that reads in pieces and in its own name.

use crate::scene::cards::*;
use std::net::SocketAddrV4;
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{AdapterConfig, MsixHome, PeerToPeer};
use tlplab_nettlp::{Datagram, Engine};
use tlplab_units::Duration;

const BASE: u32 = SECOND_BAR4 as u32;

/// Two cards below a root complex, with so much room in each queue.
fn below_a_root_complex(queue: usize) -> Scene {
    let config = AdapterConfig { peer_to_peer: PeerToPeer::RootComplex, queue, ..cards(MsixHome::Bar2) };
    Scene::of(config)
}

/// The second device answers a request of the host with data, or with a status.
fn answer(scene: &mut Scene, request: &Sent, status: u32, data: &[u8]) -> Vec<Sent> {
    let [_, id, address] = header(request);
    let (dw, bytes) = (data.len() as u32 / 4, data.len().max(4) as u32);
    let fmt = if data.is_empty() { 0x0A00_0000 } else { 0x4A00_0000 };
    let words = [fmt | dw, 0x1C00_0000 | status << 13 | bytes, id & 0xFFFF_FF00 | address & 0x7F];
    scene.send(SECOND, request.1, &datagram(&words, data))
}

/// A read of 256 B that begins 16 B behind a multiple of 64: five pieces, each up to the next multiple. The answer has all of them in their
/// places, whatever their order.
#[test]
fn a_root_complex_reads_in_pieces_up_to_multiples_of_64() {
    let mut scene = below_a_root_complex(8);
    let pieces = scene.tlp(FIRST, &[0x0000_0040, 0x1B00_09FF, BASE + 0x10], &[]);
    let shape: Vec<_> =
        headers(&pieces).iter().map(|words| (words[0], words[1] >> 16, words[2] - BASE)).collect();
    assert_eq!(shape, [(12, 0, 0x10), (16, 0, 0x40), (16, 0, 0x80), (16, 0, 0xC0), (4, 0, 0x100)]);
    let byte = |at: u32| (at * 7) as u8;
    for (left, piece) in pieces.iter().rev().enumerate().map(|(n, piece)| (4 - n, piece)) {
        let [dw, _, address] = header(piece);
        let data: Vec<u8> = (address - BASE..address - BASE + 4 * dw).map(byte).collect();
        let sent = answer(&mut scene, piece, 0, &data);
        if left > 0 {
            assert_eq!(sent, []);
            continue;
        }
        let data: Vec<u8> = sent.iter().flat_map(|sent| sent.2[18..].to_vec()).collect();
        assert_eq!(data, (0x10..0x110).map(byte).collect::<Vec<_>>());
        assert!(sent.iter().all(|sent| (sent.0, sent.1, header(sent)[2] >> 8) == (FIRST, 0x3009, 0x1B_0009)));
    }
    assert_eq!((scene.adapter.backlog(), scene.adapter.deadline()), (0, None));
}

/// A piece that fails fails the read: with UR if one has got UR, else with CA, also where a piece is not answered in time.
#[test]
fn a_read_in_pieces_has_one_status() {
    for (statuses, wanted) in [
        ([Some(1), Some(0)], 1),
        ([Some(0), Some(4)], 4),
        ([Some(4), Some(1)], 1),
        ([Some(1), Some(4)], 1),
        ([Some(0), None], 4),
        ([None, Some(1)], 1),
    ] {
        let mut scene = below_a_root_complex(8);
        let pieces = scene.tlp(FIRST, &[0x0000_0020, 0x1B00_09FF, BASE], &[]);
        let mut sent = Vec::new();
        for (piece, status) in pieces.iter().zip(statuses) {
            let data: &[u8] = if status == Some(0) { &[9; 64] } else { &[] };
            sent.extend(status.into_iter().flat_map(|status| answer(&mut scene, piece, status, data)));
        }
        scene.now += Duration::from_ms(50);
        scene.adapter.handle_timeout(scene.now);
        sent.extend(scene.sent());
        assert_eq!(headers(&sent), [[0x0A00_0000, wanted << 13 | 128, 0x1B00_0900]], "{statuses:?}");
        assert_eq!((sent[0].0, scene.counters(0).refused), (FIRST, 1));
        let failed = statuses.iter().filter(|status| matches!(status, Some(1 | 4))).count() as u64;
        let timeouts = statuses.iter().filter(|status| status.is_none()).count() as u64;
        assert_eq!((scene.counters(1).failed, scene.counters(1).timeouts), (failed, timeouts));
        assert_eq!(scene.adapter.backlog(), 0);
    }
}

/// Room for other devices' requests is freed by what has left or was answered: writes one after the other never fill it. Reads without an
/// answer do, and the next request is dropped and counted.
#[test]
fn requests_through_a_root_complex_are_bounded() {
    let mut scene = below_a_root_complex(3);
    let write = |n: u32| [0x4000_0001, 0x1B00_000F, BASE + 4 * n];
    for n in 0..10 {
        let sent = scene.tlp(FIRST, &write(n), &n.to_be_bytes());
        assert_eq!((sent.len(), sent[0].0, header(&sent[0])), (1, SECOND, [0x4000_0001, 0xF, BASE + 4 * n]));
        assert_eq!(sent[0].2[18..], n.to_be_bytes());
    }
    let read = |tag: u32| [0x0000_0001, 0x1B00_000F | tag << 8, BASE];
    let reads: Vec<Sent> = (0..3).flat_map(|tag| scene.tlp(FIRST, &read(tag), &[])).collect();
    assert_eq!((reads.len(), scene.adapter.backlog(), scene.counters(0).overflows), (3, 6, 0));
    assert_eq!(scene.tlp(FIRST, &read(3), &[]), []);
    assert_eq!(scene.tlp(FIRST, &write(3), &[0; 4]), []);
    assert_eq!(scene.counters(0).overflows, 2);
    assert_eq!(answer(&mut scene, &reads[1], 0, &[1; 4]).len(), 1);
    assert_eq!(scene.tlp(FIRST, &read(1), &[]).len(), 1, "there is room for one more");
    assert_eq!(scene.tlp(FIRST, &read(3), &[]), []);
    // The host's own programs, and the other device, have room of their own.
    assert_eq!(scene.access(1, 4, 0, MmioAccess::Read(4)).len(), 1);
    assert_eq!(scene.tlp(SECOND, &[0x0000_0001, 0x1C00_000F, 0xA000_0000], &[]).len(), 1);
    assert_eq!((scene.counters(0).peer_requests, scene.counters(1).peer_requests), (17, 1));
}

/// A switch lets a device ask in its own name only: a read in another's gets CA, a write is lost.
#[test]
fn a_switch_drops_writes_in_the_name_of_others() {
    let mut scene = Scene::new();
    for (id, passed) in [(0x1D00, 0), (0x1B00, 1), (0x1C00, 0)] {
        let words = [0x4000_0001, id << 16 | 0x000F, BASE];
        let sent = scene.send(FIRST, 0x3000, &datagram(&words, &[7; 4]));
        assert_eq!(
            sent.iter().filter(|sent| sent.0 == SECOND && header(sent) == words).count(),
            passed,
            "{id:#x}"
        );
    }
    assert_eq!((scene.counters(0).lost_writes, scene.counters(0).peer_requests), (2, 3));
}

/// What one device sends to another is bounded, too, requests and answers alike.
#[test]
fn tlps_through_a_switch_are_bounded() {
    let mut scene = Scene::of(AdapterConfig { queue: 2, ..cards(MsixHome::Bar2) });
    let come = |scene: &mut Scene, from, port, words: &[u32], data: &[u8]| {
        let (payload, from) = (datagram(words, data), SocketAddrV4::new(from, port));
        scene.adapter.handle_datagram(scene.now, Datagram { from, port, payload: &payload });
    };
    for tag in 0..3 {
        let read = [0x0000_0001, 0x1B00_000F | tag << 8, BASE + 0x40 * tag];
        come(&mut scene, FIRST, 0x3000 + tag as u16, &read, &[]);
    }
    assert_eq!((scene.adapter.backlog(), scene.counters(0).overflows), (2, 1));
    assert_eq!(scene.sent().len(), 2);
    come(&mut scene, FIRST, 0x3002, &[0x0000_0001, 0x1B00_020F, BASE + 0x80], &[]);
    assert_eq!(scene.sent().len(), 1);
    for tag in 0..4 {
        let lower = tag % 2 * 0x40;
        let completion = [0x4A00_0001, 0x1C00_0004, 0x1B00_0000 | tag << 8 | lower];
        come(&mut scene, SECOND, 0x4000 + tag as u16, &completion, &[tag as u8; 4]);
    }
    assert_eq!(
        (scene.adapter.backlog(), scene.counters(1).overflows, scene.counters(1).unexpected),
        (2, 1, 1)
    );
    let sent = scene.sent();
    assert_eq!(
        sent.iter().map(|sent| (sent.0, sent.1)).collect::<Vec<_>>(),
        [(FIRST, 0x3000), (FIRST, 0x3001)]
    );
}

/// Each bound holds alone: requests to a device that have not left, and answers to one that have not.
#[test]
fn requests_and_answers_have_bounds_of_their_own() {
    let mut scene = below_a_root_complex(3);
    let come = |scene: &mut Scene, words: [u32; 3], data: &[u8]| {
        let from = SocketAddrV4::new(FIRST, 0x3000 + (words[1] >> 8 & 0xFF) as u16);
        let payload = datagram(&words, data);
        scene.adapter.handle_datagram(scene.now, Datagram { from, port: from.port(), payload: &payload });
        scene.counters(0).overflows
    };
    for (n, overflows) in [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2)] {
        assert_eq!(come(&mut scene, [0x4000_0001, 0x1B00_000F, BASE + 4 * n], &[0; 4]), overflows);
    }
    assert_eq!(scene.sent().len(), 3);
    for tag in 0..3 {
        assert_eq!(
            come(&mut scene, [0x0000_0001, 0x1B00_000F | tag << 8, 0x9000_0000], &[]),
            2,
            "UR is to be sent"
        );
    }
    assert_eq!(come(&mut scene, [0x0000_0001, 0x1B00_030F, BASE], &[]), 3, "counted once");
    let sent = scene.sent();
    assert!(sent.len() == 3 && sent.iter().all(|sent| sent.0 == FIRST), "{sent:?}");
}

/// What devices ask of another through a root complex takes turns with what programs of the host ask, whoever was first.
#[test]
fn devices_and_programs_take_turns_through_a_root_complex() {
    let mut scene = below_a_root_complex(8);
    let from = SocketAddrV4::new(FIRST, 0x3000);
    for n in 0..3 {
        let payload = datagram(&[0x4000_0001, 0x1B00_000F, BASE + 0x10 * n], &[7; 4]);
        scene.adapter.handle_datagram(scene.now, Datagram { from, port: 0x3000, payload: &payload });
        scene.adapter.host_mut().access(
            1,
            4,
            0x100 + 0x10 * u64::from(n),
            MmioAccess::Write(vec![8; 4].into()),
        );
    }
    let programs: Vec<bool> = headers(&scene.sent()).iter().map(|words| words[2] >= BASE + 0x100).collect();
    assert_eq!(programs.len(), 6);
    assert!(programs.windows(2).all(|pair| pair[0] != pair[1]), "{programs:?}");
}

/// A read that was refused is over: whatever comes then for its tag is unexpected.
#[test]
fn a_refusal_through_a_switch_ends_a_read() {
    let mut scene = Scene::new();
    assert_eq!(scene.tlp(FIRST, &[0x0000_0002, 0x1B00_09FF, BASE], &[]).len(), 1);
    let refusal = datagram(&[0x0A00_0000, 0x1C00_2008, 0x1B00_0900], &[]);
    let passed = scene.send(SECOND, 0x4009, &refusal);
    assert_eq!((passed.len(), passed[0].0, &passed[0].2[6..]), (1, FIRST, &refusal[6..]));
    let data = datagram(&[0x4A00_0002, 0x1C00_0008, 0x1B00_0900], &[1; 8]);
    for (late, unexpected) in [(&refusal, 1), (&data, 2)] {
        assert_eq!(scene.send(SECOND, 0x4009, late), []);
        assert_eq!(scene.counters(1).unexpected, unexpected);
    }
}
