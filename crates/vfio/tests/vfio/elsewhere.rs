//! A function whose registers are elsewhere: its owner carries out what the client does to configuration space.

use crate::client::{Client, identity, place, version, words};
use tlplab_cfgspace::ConfigSpace;
use tlplab_device::{Action, Event, Payload, ReplyToken};
use tlplab_units::Time;
use tlplab_vfio::message::Command;
use tlplab_vfio::{Port, PortEvent};

fn client() -> Client {
    let space = ConfigSpace::new(&identity().layout()).expect("it has room");
    let mut client = Client::of(Port::registers_elsewhere(space));
    client.call(Command::Version, &version("{}"), 0).expect("version 0.0 is spoken");
    assert!(matches!(client.port.take_event(), Some(PortEvent::Device(Event::Start))));
    client
}

fn reply(client: &mut Client, token: ReplyToken, data: &[u8]) {
    let data = Payload::from(data.to_vec());
    client.port.act(Time::ZERO, Action::Reply { token, data }, &mut client.machine);
}

/// Sends a command, whose answer may come later.
fn send(client: &mut Client, command: Command, payload: &[u8]) {
    client.send(command as u16, payload, 0, false).expect("the connection lives");
}

fn region(offset: u64, bytes: u32) -> Vec<u8> {
    place(7, offset, bytes)
}

#[test]
fn configuration_space_is_answered_by_the_owner() {
    let mut client = client();
    send(&mut client, Command::RegionRead, &region(2, 8));
    let Some(PortEvent::ConfigRead { offset: 2, bytes: 8, reply: token }) = client.port.take_event() else {
        panic!("it is told")
    };
    assert!(client.receive().is_none(), "nobody has answered yet");
    reply(&mut client, token, &[7; 8]);
    assert_eq!(client.receive().expect("the answer").payload[16..], [7; 8]);
    // Of a write the client hears when it has arrived.
    send(&mut client, Command::RegionWrite, &[region(4, 2), vec![6, 0]].concat());
    let Some(PortEvent::ConfigWrite { offset: 4, data, reply: token }) = client.port.take_event() else {
        panic!("it is told")
    };
    assert_eq!((data, client.receive().is_none()), (vec![6, 0], true));
    reply(&mut client, token, &[]);
    assert_eq!(client.receive().expect("the answer").payload, region(4, 2));
    // What was written decides whether interrupts may come.
    assert!(client.port.space().command().bus_master);
}

#[test]
fn accesses_stay_in_order_with_a_reset_behind_them() {
    let mut client = client();
    send(&mut client, Command::RegionWrite, &[region(4, 2), vec![6, 0]].concat());
    client.write(0, 4, &[5]).expect("a register");
    send(&mut client, Command::RegionRead, &region(0, 4));
    send(&mut client, Command::Reset, &[]);
    let told: Vec<_> = std::iter::from_fn(|| client.port.take_event()).collect();
    assert!(
        matches!(
            told[..],
            [
                PortEvent::ConfigWrite { .. },
                PortEvent::Device(Event::MmioWrite { .. }),
                PortEvent::ConfigRead { .. },
                PortEvent::Device(Event::Reset)
            ]
        ),
        "{told:?}"
    );
    // What is answered afterwards is nobody's any more.
    let PortEvent::ConfigRead { reply: token, .. } = told[2] else { panic!("a read") };
    while client.receive().is_some() {}
    reply(&mut client, token, &[0; 4]);
    assert!(client.receive().is_none());
    assert_eq!(client.port.fault(), None);
}

#[test]
fn a_function_level_reset_is_the_owners_to_carry_out() {
    let mut client = client();
    let control = client.port.space().reset_register().expect("it has one");
    send(&mut client, Command::RegionWrite, &[region(control.into(), 1), vec![0x80]].concat());
    assert!(matches!(client.port.take_event(), Some(PortEvent::Device(Event::Reset))));
    assert!(client.port.take_event().is_none(), "the write itself goes nowhere");
    assert!(client.receive().is_some());
}

#[test]
fn a_legacy_interrupt_is_unmasked_by_the_owner() {
    let mut client = client();
    let set = |flags: u32| words(&[20, flags, 0, 0, 1]);
    client.call(Command::SetIrqs, &set(1 | 16), 0).expect("it can be unmasked");
    client.write(0, 4, &[5]).expect("a register");
    assert!(matches!(client.port.take_event(), Some(PortEvent::UnmaskIntx)));
    assert!(matches!(client.port.take_event(), Some(PortEvent::Device(Event::MmioWrite { .. }))));
}
