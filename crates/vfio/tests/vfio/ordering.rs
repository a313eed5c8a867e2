//! The order of transfers and interrupts, where some memory is mapped and some is reached by messages.

use crate::client::{ALL, Client, Message};
use tlplab_device::{Action, Event, OpId};
use tlplab_units::Time;

/// Memory by messages at 0, mapped at 0x1000; MSI-X is enabled.
fn both() -> Client {
    let mut client = Client::agreed();
    client.map(0, 0x1000, ALL, false).expect("it is free");
    client.map(0x1000, 0x1000, ALL, true).expect("it is free");
    client.enable_msix();
    client
}

fn act(client: &mut Client, action: Action) {
    client.port.act(Time::ZERO, action, &mut client.machine);
}

fn write(client: &mut Client, op: u64, address: u64, bytes: usize) {
    let data = vec![op as u8; bytes].into();
    act(client, Action::DmaWrite { op: OpId(op), stream: 0, address, data });
}

fn events(client: &mut Client) -> Vec<u64> {
    std::iter::from_fn(|| client.take_event())
        .map(|event| match event {
            Event::DmaWriteAccepted { op } => op.0,
            Event::DmaReadDone { op, result } => {
                result.expect("memory is there");
                100 + op.0
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

fn messages(client: &mut Client) -> Vec<Message> {
    std::iter::from_fn(|| client.receive()).collect()
}

#[test]
fn an_interrupt_waits_for_the_writes_before_it() {
    let mut client = both();
    write(&mut client, 1, 0x10, 8);
    write(&mut client, 2, 0x20, 8);
    act(&mut client, Action::Msix { stream: 0, vector: 0 });
    assert_eq!(events(&mut client), [1, 2]);
    let sent = messages(&mut client);
    assert_eq!(sent.len(), 2);
    client.serve(&sent[0]);
    assert!(client.machine.signalled.is_empty());
    client.serve(&sent[1]);
    assert_eq!(client.machine.signalled.iter().map(|(.., written)| *written).collect::<Vec<_>>(), [16]);
}

#[test]
fn a_mapped_write_and_a_read_wait_for_a_write_by_message() {
    let mut client = both();
    write(&mut client, 1, 0x10, 8);
    // It ends in mapped memory.
    write(&mut client, 2, 0xFFC, 8);
    act(&mut client, Action::DmaRead { op: OpId(3), stream: 0, address: 0x1000, bytes: 4, carry: true });
    act(&mut client, Action::DmaRead { op: OpId(4), stream: 0, address: 0, bytes: 0, carry: true });
    assert_eq!(events(&mut client), [1]);
    assert_eq!(client.machine.memory[0x1000], 0);
    for message in messages(&mut client) {
        client.serve(&message);
    }
    assert_eq!(events(&mut client), [2, 103, 104]);
    assert_eq!(client.machine.memory[0xFFC..0x1004], [2; 8]);
}

#[test]
fn reads_by_messages_are_cut_and_put_together() {
    let mut client = Client::new();
    let text = r#"{"capabilities":{"max_data_xfer_size":4096}}"#;
    let command = tlplab_vfio::message::Command::Version;
    client.call(command, &crate::client::version(text), 0).expect("0.0 is spoken");
    client.write_config(4, &[0b110, 0]);
    assert!(matches!(client.take_event(), Some(Event::Start)));
    client.map(0, 0x8000, ALL, false).expect("it is free");
    client.machine.memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 3) as u8);
    act(&mut client, Action::DmaRead { op: OpId(1), stream: 0, address: 100, bytes: 10_000, carry: true });
    let mut asked = messages(&mut client);
    assert_eq!(asked.len(), 3);
    // A client may answer in any order.
    asked.reverse();
    asked.iter().for_each(|message| client.serve(message));
    match client.take_event() {
        Some(Event::DmaReadDone { result: Ok(data), .. }) => {
            assert_eq!(data.bytes(), Some(&client.machine.memory[100..10_100]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_read_ends_with_the_first_part_that_fails() {
    let mut client = both();
    act(&mut client, Action::DmaRead { op: OpId(1), stream: 0, address: 0, bytes: 8, carry: true });
    let asked = messages(&mut client);
    client.answer(&asked[0], &[], Some(14));
    assert!(matches!(client.take_event(), Some(Event::DmaReadDone { result: Err(_), .. })));
    // Fewer bytes than were asked for.
    act(&mut client, Action::DmaRead { op: OpId(2), stream: 0, address: 0, bytes: 8, carry: true });
    let asked = messages(&mut client);
    client.answer(&asked[0], &[0; 20], None);
    assert!(matches!(client.take_event(), Some(Event::DmaReadDone { result: Err(_), .. })));
    assert_eq!(client.port.counters().refused, 2);
}

#[test]
fn a_write_to_nowhere_is_posted_and_counted() {
    let mut client = both();
    write(&mut client, 1, 0x9000, 8);
    assert_eq!(events(&mut client), [1]);
    assert_eq!((messages(&mut client).len(), client.port.counters().refused), (0, 1));
}
