//! The TLPs that accesses, transfers and interrupts stand for.

use crate::client::{ALL, Client, place};
use tlplab_device::{Action, Event, OpId, Refusal, ReplyToken};
use tlplab_units::{Bdf, Time};
use tlplab_vfio::message::Command;

const BASE: u32 = 0xFE00_0000;
const CONFIG: u32 = 7;

/// A client whose device's TLPs are watched; its BAR is at `BASE`, and 32 KiB of memory are mapped at 0.
fn watched() -> Client {
    let mut client = Client::agreed();
    client.map(0, 0x8000, ALL, true).expect("it is free");
    client.machine.memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 3) as u8);
    client.write_config(0x10, &BASE.to_le_bytes());
    client.port.watch_tlps(Bdf(0x0100));
    client
}

fn act(client: &mut Client, action: Action) {
    client.port.act(Time::ZERO, action, &mut client.machine);
}

fn read(client: &mut Client, op: u64, address: u64, bytes: u64) {
    act(client, Action::DmaRead { op: OpId(op), stream: 0, address, bytes, carry: true });
}

/// What was seen: its way, the TLP, and the length of its data.
fn seen(client: &mut Client) -> Vec<String> {
    std::iter::from_fn(|| client.port.take_tlp())
        .map(|tlp| format!("{} {}: {} B", if tlp.up { "up" } else { "down" }, tlp.repr, tlp.data.len()))
        .collect()
}

/// The device is asked for bytes of its BAR.
fn read_register(client: &mut Client, offset: u64, bytes: u32) -> ReplyToken {
    let command = Command::RegionRead as u16;
    client.send(command, &place(0, offset, bytes), 0, false).expect("the connection lives");
    loop {
        match client.take_event() {
            Some(Event::MmioRead { reply, .. }) => return reply,
            Some(_) => {}
            None => panic!("the device is not asked"),
        }
    }
}

#[test]
fn accesses_have_the_byte_enables_of_the_processor() {
    let mut client = watched();
    client.write(0, 0x12, &[7, 8]).expect("it is in the BAR");
    client.write(0, 0x20, &[1, 2, 3, 4, 5, 6, 7, 8]).expect("it is in the BAR");
    let token = read_register(&mut client, 0x31, 1);
    act(&mut client, Action::Reply { token, data: vec![0xAB].into() });
    let token = read_register(&mut client, 0x40, 4);
    act(&mut client, Action::ReplyError { token, refusal: Refusal::UnsupportedRequest });
    assert_eq!(std::iter::from_fn(|| client.receive()).count(), 2, "both reads are answered");
    client.write_config(0x3C, &[9]);
    client.read(CONFIG, 2, 4).expect("it is there");
    let host = "requester 00:00.0, tag";
    let device = "completer 01:00.0";
    assert_eq!(
        seen(&mut client),
        [
            format!("down MWr, len 1, {host} 0x00, last 0x0, first 0xc, addr 0xfe000010: 2 B"),
            format!("down MWr, len 2, {host} 0x00, last 0xf, first 0xf, addr 0xfe000020: 8 B"),
            format!("down MRd, len 1, {host} 0x03, last 0x0, first 0x2, addr 0xfe000030: 0 B"),
            format!("up CplD, len 1, {device}, SC, byte count 1, {host} 0x03, lowaddr 0x31: 1 B"),
            format!("down MRd, len 1, {host} 0x04, last 0x0, first 0xf, addr 0xfe000040: 0 B"),
            format!("up Cpl, {device}, UR, byte count 4, {host} 0x04, lowaddr 0x40: 0 B"),
            format!("down CfgWr0, len 1, {host} 0x05, first 0x1, to 01:00.0, reg 0x03c: 4 B"),
            format!("up Cpl, {device}, SC, byte count 4, {host} 0x05, lowaddr 0x00: 0 B"),
            format!("down CfgRd0, {host} 0x06, first 0xc, to 01:00.0, reg 0x000: 0 B"),
            format!("up CplD, len 1, {device}, SC, byte count 4, {host} 0x06, lowaddr 0x00: 4 B"),
            format!("down CfgRd0, {host} 0x07, first 0x3, to 01:00.0, reg 0x004: 0 B"),
            format!("up CplD, len 1, {device}, SC, byte count 4, {host} 0x07, lowaddr 0x00: 4 B"),
        ]
    );
}

#[test]
fn transfers_are_split_by_mps_and_mrrs_of_device_control() {
    let mut client = watched();
    read(&mut client, 1, 0x3F0, 600);
    act(&mut client, Action::DmaWrite { op: OpId(3), stream: 0, address: 0x1F1, data: vec![5; 200].into() });
    let requester = "requester 01:00.0, tag";
    let whole = |left: u32| {
        format!(
            "down CplD, len 32, completer 00:00.0, SC, byte count {left}, {requester} 0x02, lowaddr 0x00: 128 B"
        )
    };
    assert_eq!(
        seen(&mut client),
        [
            format!("up MRd, len 4, {requester} 0x01, last 0xf, first 0xf, addr 0x000003f0: 0 B"),
            format!(
                "down CplD, len 4, completer 00:00.0, SC, byte count 16, {requester} 0x01, lowaddr 0x70: 16 B"
            ),
            format!("up MRd, len 128, {requester} 0x02, last 0xf, first 0xf, addr 0x00000400: 0 B"),
            whole(512),
            whole(384),
            whole(256),
            whole(128),
            format!("up MRd, len 18, {requester} 0x03, last 0xf, first 0xf, addr 0x00000600: 0 B"),
            format!(
                "down CplD, len 18, completer 00:00.0, SC, byte count 72, {requester} 0x03, lowaddr 0x00: 72 B"
            ),
            format!("up MWr, len 4, {requester} 0x00, last 0xf, first 0xe, addr 0x000001f0: 15 B"),
            format!("up MWr, len 32, {requester} 0x00, last 0xf, first 0xf, addr 0x00000200: 128 B"),
            format!("up MWr, len 15, {requester} 0x00, last 0x1, first 0xf, addr 0x00000280: 57 B"),
        ]
    );
}

/// A read's completions hold the bytes of memory, whether mapped or read by messages; a failed read has the request that failed.
#[test]
fn completions_hold_the_bytes_of_memory() {
    let mut client = watched();
    client.map(0x8000, 0x2000, ALL, false).expect("it is free");
    for (op, address, bytes) in [(1, 0x123, 3001), (2, 0x7F00, 0x800), (3, 0x8001, 5000), (4, 0x500, 0)] {
        read(&mut client, op, address, bytes);
        while let Some(message) = client.receive() {
            client.serve(&message);
        }
        let mut data = Vec::new();
        while let Some(tlp) = client.port.take_tlp() {
            assert_eq!(tlp.up, tlp.data.is_empty() && tlp.repr.payload_dw() == 0, "{}", tlp.repr);
            data.extend(tlp.data);
        }
        assert_eq!(
            data,
            client.machine.memory[address as usize..][..bytes as usize],
            "{address:#x}, {bytes} B"
        );
    }
    read(&mut client, 5, 0x9F00, 600);
    let found = seen(&mut client);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("MRd, len 86,") && found[0].contains("addr 0x0000a000"), "{found:?}");
    assert!(found[1].starts_with("down Cpl, completer 00:00.0, UR"), "{found:?}");
}

#[test]
fn interrupts_are_messages() {
    let mut client = watched();
    for asserted in [true, true, false] {
        act(&mut client, Action::Intx { stream: 0, asserted });
    }
    let text = |what: &str| format!("up Msg, {what}, requester 01:00.0, tag 0x00: 0 B");
    assert_eq!(seen(&mut client), [text("Assert_INTA"), text("Deassert_INTA")]);
    client.enable_msi(0xFEE0_1000, 0x4041);
    while client.port.take_tlp().is_some() {}
    act(&mut client, Action::Msix { stream: 0, vector: 1 });
    let tlp = client.port.take_tlp().expect("the message");
    assert_eq!((tlp.up, tlp.data), (true, vec![0x41, 0x40, 0, 0]));
    assert!(tlp.repr.to_string().ends_with("addr 0xfee01000"), "{}", tlp.repr);
    // By MSI-X only the client knows the message.
    client.enable_msix();
    while client.port.take_tlp().is_some() {}
    act(&mut client, Action::Msix { stream: 0, vector: 1 });
    assert_eq!(client.port.take_tlp(), None);
}

/// A request to a client that is gone is never answered, and the next client's TLPs are seen, too.
#[test]
fn an_unanswered_register_read_has_no_completion() {
    let mut client = watched();
    read_register(&mut client, 0, 4);
    client.port.disconnect(&mut client.machine);
    assert_eq!(seen(&mut client).len(), 1);
    client.call(Command::Version, &crate::client::version("{}"), 0).expect("version 0.0 is spoken");
    client.write_config(4, &[0b110, 0]);
    assert_eq!(seen(&mut client).len(), 2);
    let due = client.port.deadline();
    let late = read_register(&mut client, 8, 4);
    assert_eq!(due, None);
    // At the second time: the first is a reprieve.
    for _ in 0..2 {
        client.port.handle_timeout(client.port.deadline().expect("it must answer"));
    }
    act(&mut client, Action::ReplyError { token: late, refusal: Refusal::CompleterAbort });
    assert_eq!(seen(&mut client).len(), 1, "an answer after the time limit completes nothing");
}
