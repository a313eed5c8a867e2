//! What the host sees of the devices: which configurations are possible, where BARs are, what software moves.

use crate::scene::cards::*;
use std::net::Ipv4Addr;
use tlplab_device::{BarSpec, Identity};
use tlplab_nettlp::Adapter;
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{AdapterConfig, AdapterError, DeviceConfig, FunctionKind, MemoryHost, MsixHome};
use tlplab_units::{Bdf, Mps, Mrrs};

/// Addresses and IDs tell devices apart: a configuration that gives one to two of them, or the adapter's to a device, is refused.
#[test]
fn devices_with_one_address_or_one_id_are_refused() {
    let refusal = |devices: Vec<DeviceConfig>| {
        Adapter::new(AdapterConfig::new(LOCAL, devices), MemoryHost::new(4096)).err()
    };
    let card = |peer, bdf| DeviceConfig::card(peer, Bdf(bdf));
    assert_eq!(refusal(vec![]), Some(AdapterError::NoDevice));
    assert_eq!(refusal(vec![card(LOCAL, 0x1B00)]), Some(AdapterError::OwnAddress(LOCAL)));
    let twice = vec![card(FIRST, 0x1B00), card(FIRST, 0x1C00)];
    assert_eq!(refusal(twice), Some(AdapterError::PeerTwice(FIRST)));
    let twice = vec![card(FIRST, 0x1B00), card(SECOND, 0x1B00)];
    assert_eq!(refusal(twice), Some(AdapterError::IdTwice(Bdf(0x1B00))));
    assert_eq!(refusal(vec![card(FIRST, 0)]), Some(AdapterError::IdTwice(Bdf(0))), "the host's");
    assert_eq!(refusal(vec![card(FIRST, 0x1B00), card(SECOND, 0x1C00)]), None);
}

/// Software moves a BAR: requests to the new address reach the device, those to the old one get UR. Without memory decoding (bit 1 of the
/// command register) none does, without bus mastering (bit 2) the device itself may ask for nothing.
#[test]
fn a_function_has_the_bases_and_the_command_that_software_writes() {
    let mut scene = Scene::new();
    let read = |address: u32| [0x0000_0001, 0x1B00_090F, address];
    let moved = [0xE100_0000, 0, 0x200_0000_0000, 0, 0xC000_0000, 0];
    scene.adapter.configure(1, &moved, 0x0406);
    let bases = scene.adapter.devices().nth(1).expect("a card").bars.map(|bar| bar.map(|bar| bar.base));
    assert_eq!(bases, [Some(moved[0]), None, Some(moved[2]), None, Some(moved[4]), None]);
    assert_eq!(header(&scene.tlp(FIRST, &read(SECOND_BAR4 as u32), &[])[0])[1], 0x2004, "UR");
    let there = &scene.tlp(FIRST, &read(0xC000_0040), &[])[0];
    assert_eq!((there.0, header(there)[2]), (SECOND, 0xC000_0040));
    let program = scene.access(1, 4, 0x10, MmioAccess::Read(4));
    assert_eq!(headers(&program), [[0x0000_0001, 0x0000_000F, 0xC000_0010]]);
    let wide = 0x200_0000_0000u64 + 8;
    let far = [0x2000_0001, 0x1B00_090F, (wide >> 32) as u32, wide as u32];
    assert_eq!(header(&scene.tlp(FIRST, &far, &[])[0])[1], 0x2004, "BAR 2 is the card's own");
    scene.adapter.configure(1, &moved, 0x0404);
    assert_eq!(header(&scene.tlp(FIRST, &read(0xC000_0040), &[])[0])[1], 0x2004, "nothing is decoded");
    assert_eq!(scene.access(1, 4, 0x10, MmioAccess::Read(4)), []);
    assert!(scene.results()[0].is_err());
    let own = [0x0000_0001, 0x1C00_090F, 0x1000];
    assert_eq!(header(&scene.tlp(SECOND, &own, &[])[0])[1], 4, "it may read memory");
    scene.adapter.configure(1, &moved, 0x0402);
    assert_eq!(header(&scene.tlp(SECOND, &own, &[])[0])[1], 0x2004, "it may not");
    assert_eq!(scene.tlp(FIRST, &read(0xC000_0040), &[])[0].0, SECOND);
    scene.adapter.configure(2, &moved, 0); // there is none
}

/// Configuration space: the IDs, in Device Control (PCIe 5.0 §7.5.3.4) the sizes as exponents above 128 B and tags of eight bits, and MSI-X with
/// 16 vectors, enabled (§7.7.2.2).
#[test]
fn configuration_space_shows_ids_and_sizes() {
    let scene = Scene::new();
    assert!(scene.adapter.devices().all(|device| device.ids == (0x3776, 0x8022)));
    let config = AdapterConfig { mps: Mps::ALL[2], mrrs: Mrrs::ALL[5], ..cards(MsixHome::Bar2) };
    for (mut scene, control) in [(scene, 0x2120u16), (Scene::of(config), 0x5140)] {
        let answer = scene.send(FIRST, 0x5001, &[0x3C, 0x68 / 4, 0, 0, 0, 0]);
        assert_eq!(answer[0].2[4..], control.to_be_bytes());
        assert_eq!(scene.send(FIRST, 0x5001, &[0x3C, 0x9C / 4, 0, 0, 0, 0])[0].2[2..4], [0x80, 0x0F]);
    }
}

/// A card whose window has so many bytes, alone behind an adapter; or why there is none.
fn window(window: u64, msix: MsixHome) -> Result<Adapter<MemoryHost>, AdapterError> {
    let card = DeviceConfig {
        function: FunctionKind::Card { window, msix },
        ..DeviceConfig::card(FIRST, Bdf(0x1B00))
    };
    Adapter::new(AdapterConfig::new(LOCAL, vec![card]), MemoryHost::new(4096))
}

/// A window is a power of two from 4 KiB on. With the MSI-X table in it, the table's place must be below 4 GiB, as its register has 32 bits.
#[test]
fn windows_that_no_bar_can_have_are_refused() {
    for (bytes, msix) in [
        (0, MsixHome::Bar2),
        (2048, MsixHome::Bar2),
        (4097, MsixHome::Bar2),
        (3 << 20, MsixHome::Bar2),
        (1 << 63, MsixHome::Bar2),
        (8 << 30, MsixHome::Bar4),
    ] {
        assert_eq!(window(bytes, msix).err(), Some(AdapterError::Window(bytes)));
    }
    for (bytes, msix) in [(4096, MsixHome::Bar2), (4096, MsixHome::Bar4), (4 << 30, MsixHome::Bar4)] {
        let adapter = window(bytes, msix).expect("a card");
        let bar = adapter.devices().next().and_then(|device| device.bars[4]).expect("BAR 4");
        assert_eq!(bar.size, bytes);
    }
    let none = AdapterError::NoAddress { device: Bdf(0x1B00), bar: 4, bytes: 1 << 46 };
    assert_eq!(window(1 << 46, MsixHome::Bar2).err(), Some(none));
    assert!(window(1 << 45, MsixHome::Bar2).is_ok());
}

/// Windows lie below 4 GiB, up to the last byte before the registers, and above 1 TiB when no room is left there.
#[test]
fn windows_lie_below_4_gib_while_there_is_room() {
    let card = |number: u8| DeviceConfig {
        function: FunctionKind::Card { window: 512 << 20, msix: MsixHome::Bar2 },
        ..DeviceConfig::card(Ipv4Addr::new(10, 0, 0, 10 + number), Bdf(0x1B00 + u16::from(number)))
    };
    let config = AdapterConfig::new(LOCAL, (0..3).map(card).collect());
    let adapter = Adapter::new(config, MemoryHost::new(4096)).expect("three cards");
    let bases: Vec<_> = adapter
        .devices()
        .map(|device| [0, 2, 4].map(|bar: usize| device.bars[bar].expect("a BAR").base))
        .collect();
    let tib = 1 << 40;
    assert_eq!(
        bases,
        [
            [0xE000_0000, tib, 0xA000_0000],
            [0xE000_4000, tib + (256 << 20), 0xC000_0000],
            [0xE000_8000, tib + (512 << 20), tib + (1 << 30)]
        ]
    );
}

/// A function with IDs and BARs of its own: the adapter answers for the BAR of the MSI-X table, the device for the others; those in I/O space
/// are out of reach.
#[test]
fn a_function_of_its_own_serves_all_bars_but_that_of_the_table() {
    let bars = vec![BarSpec::registers(0, 64), BarSpec::memory(2, 65536), BarSpec::io(4, 64)];
    let identity = Identity { bars, msix_vectors: 3, ..Identity::new(0x71AB, 0x7357, 0xFF_00_00) };
    let mut config = cards(MsixHome::Bar2);
    config.devices[1].function = FunctionKind::Own(identity);
    let mut scene = Scene::of(config);
    let served = scene.adapter.devices().nth(1).expect("the second");
    assert_eq!(served.ids, (0x71AB, 0x7357));
    let base = served.bars.map(|bar| bar.map(|bar| bar.base));
    let [registers, table] = [0xE000_4000u64, 0xE000_5000];
    assert_eq!(base, [Some(registers), None, Some(SECOND_BAR4), None, None, Some(table)]);
    for (bar, offset, there) in [(0, 8, registers), (2, 0x1_0000 - 4, SECOND_BAR4)] {
        let sent = scene.access(1, bar, offset, MmioAccess::Read(4));
        assert_eq!(headers(&sent)[0][2], (there + offset) as u32);
        let passed = scene.tlp(FIRST, &[0x0000_0001, 0x1B00_090F, (there + offset) as u32], &[]);
        assert_eq!((passed[0].0, header(&passed[0])[2]), (SECOND, (there + offset) as u32));
    }
    assert_eq!(scene.results(), []);
    // Vector 2 of device 1, and what is behind its table: nothing is pending.
    for (offset, data) in [(32, 0xFEE0_1000u32), (40, 0x22), (48, 0)] {
        assert_eq!(scene.access(1, 5, offset, MmioAccess::Read(4)), []);
        assert_eq!(scene.results(), [Ok(data.to_le_bytes().into())]);
    }
    for (words, byte_count) in [
        ([0x0000_0001, 0x1B00_090F, table as u32], 4),
        ([0x0000_0002, 0x1B00_09FF, registers as u32 + 60], 8),
    ] {
        assert_eq!(header(&scene.tlp(FIRST, &words, &[])[0])[1], 0x2000 | byte_count, "UR");
    }
    assert_eq!(scene.access(1, 4, 0, MmioAccess::Read(4)), []);
    assert!(matches!(scene.results()[..], [Err(_)]));
    scene.tlp(SECOND, &[0x4000_0001, 0x1C00_000F, 0xFEE0_1000], &[0x22, 0, 0, 0]);
    assert_eq!(scene.adapter.host_mut().take_interrupt().and_then(|interrupt| interrupt.vector), Some(2));
}

/// An access reaches a BAR if all of its bytes do: the last of them, but none over its end.
#[test]
fn accesses_over_the_end_of_a_window_are_refused() {
    let mut scene = Scene::new();
    let size = 256 << 20;
    for (offset, bytes, inside) in
        [(size - 4, 4, true), (size - 4, 5, false), (size - 1, 1, true), (size, 1, false)]
    {
        let sent = scene.access(1, 4, offset, MmioAccess::Read(bytes));
        assert_eq!(
            (sent.len(), scene.results().len()),
            (usize::from(inside), usize::from(!inside)),
            "{offset:#x}"
        );
    }
    assert_eq!(scene.access(1, 4, u64::MAX, MmioAccess::Read(4)), []);
    assert_eq!(scene.access(2, 4, 0, MmioAccess::Read(4)), [], "there is no third device");
    assert!(scene.results().iter().all(Result::is_err));
    let end = SECOND_BAR4 as u32 + size as u32;
    for (words, inside) in [
        ([0x0000_0002, 0x1B00_09FF, end - 8], true),
        ([0x0000_0001, 0x1B00_0908, end - 4], true),
        ([0x0000_0001, 0x1B00_0900, end - 4], true), // a flush
        ([0x0000_0001, 0x1B00_0900, end], false),
    ] {
        assert_eq!(scene.tlp(FIRST, &words, &[])[0].0 == SECOND, inside, "{words:x?}");
    }
}

/// BAR 0: registers at multiples of four, zeros elsewhere, and any bytes of them.
#[test]
fn registers_are_read_in_any_pieces() {
    let mut scene = Scene::new();
    let mut read = |offset, bytes| {
        assert_eq!(scene.access(1, 0, offset, MmioAccess::Read(bytes)), []);
        let result = scene.results().pop().expect("the card answers itself").expect("data");
        result.bytes().expect("bytes").to_vec()
    };
    // Magic number, destination MAC, source MAC, addresses, ports.
    let words = [0x0123_4567, u32::MAX, 0xFFFF, 0x2233_4455, 0x11, 0x0A00_0003, 0x0A00_0001, 0x3776, 0x3776];
    let all: Vec<u8> =
        words.into_iter().chain([0; 7]).chain([0x1C00, 0]).flat_map(u32::to_le_bytes).collect();
    assert_eq!(read(0, 72), all);
    for (offset, bytes) in [(1, 1), (3, 2), (2, 7), (15, 6), (0x41, 1)] {
        assert_eq!(read(offset, bytes), all[offset as usize..][..bytes as usize], "{bytes} B at {offset:#x}");
    }
}

/// Of the registers a device may write MAC addresses and ports, each as wide as it is; nothing follows from it.
#[test]
fn registers_that_name_a_device_cannot_be_written() {
    let mut scene = Scene::new();
    let kept = [(0, 0x0123_4567), (5, 0x0A00_0002), (6, 0x0A00_0001), (16, 0x1B00)];
    let written = [(1, 0xA1B2_C3D4), (2, 0xC3D4), (3, 0xA1B2_C3D4), (4, 0xC3D4), (7, 0xC3D4), (8, 0xC3D4u32)];
    for (register, value) in kept.into_iter().chain(written) {
        assert_eq!(scene.send(FIRST, 0x5002, &[0x11, register, 0xD4, 0xC3, 0xB2, 0xA1]), []);
        let answer = scene.send(FIRST, 0x5002, &[0x10, register, 0, 0, 0, 0]);
        assert_eq!(answer[0].2[2..], value.to_le_bytes(), "register {register}");
    }
}

/// A driver may write any message to the table that the card holds: the device is told of all 64 bits of its address.
#[test]
fn messages_of_the_table_have_addresses_of_64_bits() {
    let mut scene = Scene::new();
    let entry: Vec<u8> = [0xFEE0_3000u32, 0x12, 0x77, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    assert_eq!(scene.access(0, 2, 16 * 15, MmioAccess::Write(entry.clone().into())), []);
    let table = &scene.send(FIRST, 12287, &[3, 0, 0, 0])[0].2;
    assert_eq!(table[12 * 15..], entry[..12]);
}
