//! Whatever a client sends, the port goes on or says why it does not; whatever a device does, memory is as if it were done in its order.

use crate::client::{ALL, Client};
use proptest::collection::vec;
use proptest::prelude::*;
use tlplab_device::{Action, Event, OpId};
use tlplab_units::Time;
use tlplab_vfio::message::{HEADER, Header};

proptest! {
    #[test]
    fn no_message_is_too_strange(
        agreed in any::<bool>(),
        messages in vec((0_u16..20, vec(prop_oneof![Just(0_u8), Just(1), Just(2), Just(7), any::<u8>()], 0..80), 0_usize..3, any::<bool>(), any::<bool>()), 1..20),
    ) {
        let mut client = if agreed { Client::agreed() } else { Client::new() };
        for (command, payload, descriptors, is_reply, no_reply) in messages {
            let size = (HEADER + payload.len()) as u32;
            let header = Header { id: 1, command, size, is_reply, no_reply, error: None };
            if client.port.handle_message(Time::ZERO, &header, &payload, descriptors, &mut client.machine).is_err() {
                break;
            }
            while let Some(message) = client.receive() {
                // Each command that wants a reply has one, later perhaps; nothing else is sent.
                prop_assert!(message.header.is_reply && !no_reply);
            }
            while client.take_event().is_some() {}
        }
    }

    #[test]
    fn headers_survive_parse_and_emit(bytes in any::<[u8; HEADER]>()) {
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert_eq!(Header::parse(&header.emit()), Ok(header));
        }
    }

    #[test]
    fn memory_is_as_if_writes_and_reads_were_done_in_their_order(
        transfers in vec((any::<bool>(), 0_u64..0x2F00, 0_u64..0x100, any::<u8>()), 1..40),
        serve in vec(any::<bool>(), 80),
    ) {
        let mut client = Client::agreed();
        for (address, mapped) in [(0, false), (0x1000, true), (0x2000, false)] {
            client.map(address, 0x1000, ALL, mapped).expect("it is free");
        }
        let mut expected = vec![0; 0x3000];
        let mut reads = std::collections::BTreeMap::new();
        let (mut waiting, mut serve) = (std::collections::VecDeque::new(), serve.into_iter());
        for (op, (is_write, address, bytes, value)) in (0..).zip(&transfers) {
            let (op, range) = (OpId(op), *address as usize..(*address + *bytes) as usize);
            let action = if *is_write {
                expected[range.clone()].fill(*value);
                Action::DmaWrite { op, stream: 0, address: *address, data: vec![*value; *bytes as usize].into() }
            } else {
                reads.insert(op, expected[range].to_vec());
                Action::DmaRead { op, stream: 0, address: *address, bytes: *bytes, carry: true }
            };
            client.port.act(Time::ZERO, action, &mut client.machine);
            waiting.extend(std::iter::from_fn(|| client.receive()));
            if serve.next().unwrap_or(true) && let Some(message) = waiting.pop_front() {
                client.serve(&message);
            }
        }
        loop {
            waiting.extend(std::iter::from_fn(|| client.receive()));
            let Some(message) = waiting.pop_front() else { break };
            client.serve(&message);
        }
        let mut done = 0;
        while let Some(event) = client.take_event() {
            done += 1;
            if let Event::DmaReadDone { op, result } = event {
                let data = result.expect("memory is there");
                // A later write may have been there before: a read may be passed, but sees each write before it.
                let mut seen = reads[&op].clone();
                let (_, first, _, _) = transfers[op.0 as usize];
                for (is_write, address, bytes, value) in &transfers[op.0 as usize..] {
                    for (at, (now, got)) in (first..).zip(seen.iter_mut().zip(data.bytes().unwrap_or(&[]))) {
                        if *is_write && (*address..address + bytes).contains(&at) && got == value {
                            *now = *value;
                        }
                    }
                }
                prop_assert_eq!(Some(&seen[..]), data.bytes().or(Some(&[])));
            }
        }
        prop_assert_eq!(done, transfers.len());
        prop_assert_eq!(&client.machine.memory[..0x3000], &expected[..]);
    }
}
