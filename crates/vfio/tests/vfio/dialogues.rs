//! What a virtual machine does with a function: find it, set it up, use it, let it go.

use crate::client::{ALL, Client, place, version, words};
use tlplab_device::{Action, DmaError, Event, OpId, Payload, Refusal, ReplyToken};
use tlplab_transaction::CompletionError;
use tlplab_units::{Duration, Time};
use tlplab_vfio::message::Command;
use tlplab_vfio::{Irq, ProtocolError};

const INVALID: u32 = 22;
const UNSUPPORTED: u32 = 95;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The read of BAR 0 that the device has to answer.
fn asked(client: &mut Client) -> (u64, u32, ReplyToken) {
    match client.take_event() {
        Some(Event::MmioRead { bar: 0, offset, bytes, reply }) => (offset, bytes, reply),
        other => panic!("{other:?} instead of a read of BAR 0"),
    }
}

fn act(client: &mut Client, action: Action) {
    client.port.act(Time::ZERO, action, &mut client.machine);
}

fn finished_read(client: &mut Client) -> Result<Payload, DmaError> {
    match client.take_event() {
        Some(Event::DmaReadDone { op: OpId(7), result }) => result,
        other => panic!("{other:?} instead of the end of a read"),
    }
}

fn read_memory(client: &mut Client, address: u64, bytes: u64) {
    act(client, Action::DmaRead { op: OpId(7), stream: 0, address, bytes, carry: true });
}

#[test]
fn the_version_is_agreed_on_first() {
    let mut client = Client::new();
    assert_eq!(client.send(4, &[], 0, false), Err(ProtocolError::NoVersion(4)));
    let mut client = Client::new();
    assert_eq!(client.send(1, &[1, 0, 0, 0], 0, false), Err(ProtocolError::Version(1, 0)));
    let mut client = Client::new();
    let text = r#"{"capabilities":{"max_msg_fds":8,"max_data_xfer_size":65536}}"#;
    let reply = client.call(Command::Version, &version(text), 0).expect("0.0 is spoken");
    // QEMU offers 0.0 and takes nothing else.
    assert_eq!(reply[..4], [0; 4]);
    assert_eq!(reply.last(), Some(&0));
    assert!(String::from_utf8_lossy(&reply[4..reply.len() - 1]).contains("max_data_xfer_size"));
}

#[test]
fn the_function_reports_its_regions_and_interrupts() {
    let mut client = Client::agreed();
    let info = client.call(Command::GetInfo, &[0; 16], 0).expect("it tells");
    assert_eq!(info, words(&[16, 3, 9, 5]));
    let sizes: Vec<u64> = (0..9)
        .map(|index| {
            let reply = client.call(Command::GetRegionInfo, &words(&[32, 0, index, 0, 0, 0, 0, 0]), 0);
            let reply = reply.expect("there are nine regions");
            assert_eq!(u32_at(&reply, 4), if u32_at(&reply, 16) == 0 { 0 } else { 3 });
            u64::from(u32_at(&reply, 16))
        })
        .collect();
    // BAR 5 has the MSI-X table.
    assert_eq!(sizes, [4096, 0, 0, 0, 0, 4096, 0, 4096, 0]);
    let counts: Vec<u32> = (0..5)
        .map(|index| client.call(Command::GetIrqInfo, &words(&[16, 0, index, 0]), 0).expect("five kinds"))
        .map(|reply| u32_at(&reply, 12))
        .collect();
    assert_eq!(counts, [1, 2, 4, 1, 0]);
    assert_eq!(client.call(Command::GetRegionInfo, &words(&[32, 0, 9, 0, 0, 0, 0, 0]), 0), Err(INVALID));
    assert_eq!(client.call(Command::GetIrqInfo, &words(&[16, 0, 5, 0]), 0), Err(INVALID));
    assert_eq!(client.call(Command::GetIrqInfo, &[], 0), Err(INVALID));
}

#[test]
fn configuration_space_is_read_and_written_in_any_piece() {
    let mut client = Client::agreed();
    assert_eq!(client.read(7, 0, 4), Ok(vec![0xE5, 0x1D, 1, 0]));
    assert_eq!(client.read(7, 1, 2), Ok(vec![0x1D, 1]));
    // The bytes of Command and of the BAR behind it, over three doublewords.
    client.write(7, 0x0E, &[0xFF; 8]).expect("it can be written");
    assert_eq!(client.read(7, 0x10, 4).map(|bar| bar[1..].to_vec()), Ok(vec![0xF0, 0xFF, 0xFF]));
    assert_eq!(client.read(7, 0, 4), Ok(vec![0xE5, 0x1D, 1, 0]));
    assert_eq!(client.read(7, 4095, 2), Err(INVALID));
    assert_eq!(client.read(8, 0, 1), Err(INVALID));
    assert_eq!(client.read(7, u64::MAX, 2), Err(INVALID));
    assert_eq!(client.read(7, 0, 0), Err(INVALID));
}

#[test]
fn a_read_of_a_bar_is_answered_by_the_device() {
    let mut client = Client::agreed();
    client.send(9, &place(0, 8, 4), 0, false).expect("the connection lives");
    assert!(client.receive().is_none());
    let (offset, bytes, token) = asked(&mut client);
    assert_eq!((offset, bytes), (8, 4));
    act(&mut client, Action::Reply { token, data: vec![1, 2, 3, 4].into() });
    let reply = client.receive().expect("the device has answered");
    assert_eq!(reply.payload, [place(0, 8, 4), vec![1, 2, 3, 4]].concat());
    assert_eq!(client.port.fault(), None);
    act(&mut client, Action::Reply { token: ReplyToken(9), data: Payload::EMPTY });
    assert!(client.port.fault().is_some_and(|why| why.contains("never issued")));
}

#[test]
fn a_read_that_fails_or_is_late_gives_all_ones() {
    let mut client = Client::agreed();
    client.send(9, &place(0, 0, 8), 0, false).expect("the connection lives");
    let (.., token) = asked(&mut client);
    act(&mut client, Action::ReplyError { token, refusal: Refusal::UnsupportedRequest });
    assert_eq!(client.receive().map(|reply| reply.payload[16..].to_vec()), Some(vec![0xFF; 8]));
    client.send(9, &place(0, 0, 2), 0, false).expect("the connection lives");
    let (.., token) = asked(&mut client);
    let due = client.port.deadline().expect("the read is under way");
    client.port.handle_timeout(due);
    // Perhaps the machine stood still until now: the device gets another 10 ms.
    assert!(client.receive().is_none());
    let due = client.port.deadline().expect("the read is under way");
    client.port.handle_timeout(due);
    assert_eq!(client.receive().map(|reply| reply.payload[16..].to_vec()), Some(vec![0xFF; 2]));
    assert_eq!((client.port.late_reads(), client.port.deadline()), (1, None));
    // The device does not know, and answers all the same.
    act(&mut client, Action::Reply { token, data: vec![0; 2].into() });
    assert_eq!(client.port.fault(), None);
    assert!(client.receive().is_none());
}

#[test]
fn an_answer_of_another_length_is_a_fault() {
    let mut client = Client::agreed();
    client.send(9, &place(0, 0, 8), 0, false).expect("the connection lives");
    let (.., token) = asked(&mut client);
    act(&mut client, Action::Reply { token, data: vec![0; 4].into() });
    assert!(client.port.fault().is_some_and(|why| why.contains("8 B with 4 B")));
}

#[test]
fn posted_writes_are_not_answered() {
    let mut client = Client::agreed();
    let write = [place(0, 4, 2), vec![5, 6]].concat();
    client.send(10, &write, 0, true).expect("the connection lives");
    assert!(client.receive().is_none());
    match client.take_event() {
        Some(Event::MmioWrite { bar: 0, offset: 4, data }) => assert_eq!(data.bytes(), Some(&[5, 6][..])),
        other => panic!("{other:?} instead of a write"),
    }
    assert_eq!(client.write(0, 0, &[1]), Ok(place(0, 0, 1)));
    assert_eq!(client.write(0, 4095, &[1, 2]), Err(INVALID));
    // Fewer bytes than it says.
    assert_eq!(client.call(Command::RegionWrite, &place(0, 0, 4), 0), Err(INVALID));
}

#[test]
fn unsupported_commands_are_refused() {
    let mut client = Client::agreed();
    for command in [0, 6, 11, 12, 15, 16, 17, 18, 200] {
        client.send(command, &[0; 64], 0, false).expect("the connection lives");
        let reply = client.receive().expect("a reply");
        assert_eq!((reply.header.command, reply.header.error), (command, Some(UNSUPPORTED)));
    }
}

#[test]
fn memory_is_mapped_once_and_gone_when_unmapped() {
    let mut client = Client::agreed();
    client.map(0x1000, 0x1000, ALL, true).expect("it is free");
    assert_eq!(client.map(0x1FFF, 0x1000, ALL, true), Err(17));
    assert_eq!(client.map(0x4000, 0, ALL, true), Err(17));
    client.machine.memory[0x1800] = 42;
    read_memory(&mut client, 0x1800, 1);
    assert_eq!(finished_read(&mut client).map(|data| data.bytes().map(<[u8]>::to_vec)), Ok(Some(vec![42])));
    let unmap = |address: u64, bytes: u64, flags| {
        [words(&[24, flags]), [address, bytes].map(u64::to_le_bytes).concat()].concat()
    };
    assert_eq!(client.call(Command::DmaUnmap, &unmap(0x1000, 0x800, 0), 0), Err(2));
    client.call(Command::DmaUnmap, &unmap(0x1000, 0x1000, 0), 0).expect("it is mapped");
    assert!(client.machine.mapped.is_empty());
    read_memory(&mut client, 0x1800, 1);
    let error = DmaError::Completion(CompletionError::UnsupportedRequest { address: 0x1800 });
    assert_eq!(finished_read(&mut client), Err(error));
    client.map(0, 0x1000, ALL, true).expect("it is free");
    client.map(0x1000, 0x1000, ALL, false).expect("it is free");
    client.call(Command::DmaUnmap, &unmap(0, 0, 2), 0).expect("all of them go");
    assert!(client.machine.mapped.is_empty());
}

#[test]
fn a_device_without_bus_mastering_neither_reads_nor_interrupts() {
    let mut client = Client::agreed();
    client.map(0, 0x1000, ALL, true).expect("it is free");
    client.write_config(4, &[0b010, 0]);
    read_memory(&mut client, 0, 4);
    assert_eq!(finished_read(&mut client), Err(DmaError::BusMasterDisabled));
    act(&mut client, Action::Msix { stream: 0, vector: 0 });
    assert!(client.machine.signalled.is_empty());
    assert_eq!(client.port.counters().dropped_interrupts, 1);
}

#[test]
fn a_reset_cancels_all_and_answers_reads_under_way() {
    let mut client = Client::agreed();
    client.map(0, 0x1000, ALL, false).expect("it is free");
    client.send(9, &place(0, 0, 4), 0, false).expect("the connection lives");
    asked(&mut client);
    read_memory(&mut client, 0, 16);
    act(&mut client, Action::Timer { at: Time::ZERO + Duration::from_ns(5), id: 3 });
    let question = client.receive().expect("memory is asked for");
    client.send(13, &[], 0, false).expect("the connection lives");
    assert_eq!(client.receive().map(|reply| reply.payload[16..].to_vec()), Some(vec![0xFF; 4]));
    assert_eq!(client.receive().map(|reply| reply.header.error), Some(None));
    assert!(matches!(client.take_event(), Some(Event::Reset)));
    client.serve(&question);
    assert!(client.take_event().is_none());
    assert_eq!(client.port.deadline(), None);
    // Bus Master Enable is clear again.
    assert_eq!(client.read(7, 4, 1), Ok(vec![0]));
}

#[test]
fn a_device_changes_bytes_of_its_configuration_space() {
    let mut client = Client::agreed();
    let set = |client: &mut Client, offset: u16, data: &[u8]| {
        act(client, Action::SetConfig { offset, data: data.to_vec() });
    };
    set(&mut client, 0, &[0xFF, 0xFF]);
    assert_eq!(client.read(7, 0, 4), Ok(vec![0xFF, 0xFF, 1, 0]));
    // It still is the bus master that it was, and another client finds it as it was made.
    set(&mut client, 9, &[2, 8, 1]);
    assert_eq!(client.read(7, 4, 8), Ok(vec![0b110, 0, 0x10, 0, 0, 2, 8, 1]));
    assert_eq!(client.port.fault(), None);
    client.port.disconnect(&mut client.machine);
    assert_eq!(client.port.space().shown(0), 0x0001_1DE5);
    set(&mut client, 4, &[0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert!(
        client.port.fault().is_some_and(|why| why.contains("the byte at 0xc")),
        "{:?}",
        client.port.fault()
    );
}

#[test]
fn the_legacy_interrupt_is_a_level() {
    let mut client = Client::agreed();
    let set = |flags: u32, count: u32| words(&[20, flags, 0, 0, count]);
    client.call(Command::SetIrqs, &set(4 | 32, 1), 1).expect("INTx can be signalled");
    act(&mut client, Action::Intx { stream: 0, asserted: true });
    assert_eq!(client.machine.signalled.len(), 1);
    // It is masked until the client says so.
    act(&mut client, Action::Intx { stream: 0, asserted: true });
    assert_eq!(client.machine.signalled.len(), 1);
    client.call(Command::SetIrqs, &set(1 | 16, 1), 0).expect("it can be unmasked");
    assert!(client.take_event().is_none());
    assert_eq!(client.machine.signalled.len(), 2);
    // A write before that has the device lower it first.
    client.write(0, 4, &[1]).expect("it is a register");
    client.call(Command::SetIrqs, &set(1 | 16, 1), 0).expect("it can be unmasked");
    assert!(matches!(client.take_event(), Some(Event::MmioWrite { .. })));
    act(&mut client, Action::Intx { stream: 0, asserted: false });
    assert!(client.take_event().is_none());
    assert_eq!(client.machine.signalled.len(), 2);
    // Interrupt Disable.
    client.write_config(4, &[0b110, 0b100]);
    act(&mut client, Action::Intx { stream: 0, asserted: true });
    assert_eq!(client.machine.signalled.len(), 2);
    client.write_config(4, &[0b110, 0]);
    assert_eq!(client.machine.signalled.len(), 3);
}

/// An error is signalled whatever the device may do otherwise, and is no interrupt of it.
#[test]
fn an_error_is_signalled_if_the_client_wants_that() {
    let mut client = Client::agreed();
    client.write_config(4, &[0, 0]);
    assert!(!client.port.report_error(&mut client.machine));
    let set = |flags: u32, start: u32, count: u32| words(&[20, flags, 3, start, count]);
    assert_eq!(client.call(Command::SetIrqs, &set(4 | 32, 1, 1), 1), Err(INVALID));
    client.call(Command::SetIrqs, &set(4 | 32, 0, 1), 1).expect("there is one");
    assert!(client.port.report_error(&mut client.machine));
    let counters = client.port.counters();
    assert_eq!((counters.interrupts, counters.dropped_interrupts), (0, 0));
    client.call(Command::SetIrqs, &set(1 | 32, 0, 0), 0).expect("it can go");
    assert!(!client.port.report_error(&mut client.machine));
}

#[test]
fn msix_messages_signal_the_triggers_of_the_client() {
    let mut client = Client::agreed();
    client.enable_msix();
    let set = |start: u32, count: u32, flags: u32| words(&[20, flags, 2, start, count]);
    client.call(Command::SetIrqs, &set(1, 2, 4 | 32), 2).expect("there are four");
    assert_eq!(client.call(Command::SetIrqs, &set(3, 2, 4 | 32), 2), Err(INVALID));
    for vector in 0..3 {
        act(&mut client, Action::Msix { stream: 0, vector });
    }
    let counters = client.port.counters();
    assert_eq!((counters.interrupts, counters.dropped_interrupts), (2, 1));
    client.call(Command::SetIrqs, &set(0, 0, 1 | 32), 0).expect("all go");
    assert!(client.machine.triggers.is_empty());
    assert_eq!(
        client.machine.signalled.iter().map(|(irq, vector, _)| (*irq, *vector)).collect::<Vec<_>>(),
        [(Irq::Msix, 0), (Irq::Msix, 1), (Irq::Msix, 2)]
    );
}

#[test]
fn a_client_that_is_gone_leaves_a_function_as_at_first() {
    let mut client = Client::agreed();
    client.map(0, 0x1000, ALL, true).expect("it is free");
    client.port.disconnect(&mut client.machine);
    assert!(client.machine.mapped.is_empty());
    assert!(matches!(client.take_event(), Some(Event::Reset)));
    assert_eq!(client.send(4, &[], 0, false), Err(ProtocolError::NoVersion(4)));
    client.call(Command::Version, &version("{}"), 0).expect("another client may come");
    assert_eq!(client.read(7, 4, 1), Ok(vec![0]));
}

#[test]
fn a_reply_to_nothing_ends_the_connection() {
    let mut client = Client::agreed();
    client.map(0, 0x1000, ALL, false).expect("it is free");
    read_memory(&mut client, 0, 4);
    let question = client.receive().expect("memory is asked for");
    client.serve(&question);
    let machine = &mut client.machine;
    let again = client.port.handle_message(
        Time::ZERO,
        &tlplab_vfio::message::Header { is_reply: true, ..question.header },
        &[],
        0,
        machine,
    );
    assert_eq!(again, Err(ProtocolError::Reply(question.header.id)));
}
