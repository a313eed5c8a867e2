//! Single messages: what is written can be read, and whatever may come is read or refused.

use crate::dialogue::{calendar_message, command, device_message, longs};
use proptest::prelude::*;
use tlplab_uml::calendar::{self, Message, Operation};
use tlplab_uml::pcidev::{Access, emit_interrupt};
use tlplab_uml::vhost::{self, Header, Request};
use tlplab_uml::{Interrupt, ProtocolError};

fn accesses() -> impl Strategy<Value = Access> {
    let data = |sizes: &'static [usize]| {
        proptest::sample::select(sizes).prop_flat_map(|bytes| proptest::collection::vec(any::<u8>(), bytes))
    };
    let offset = 0u32..(1 << 28) - 8;
    prop_oneof![
        (offset.clone(), proptest::sample::select(&[1u32, 2, 4, 8][..]))
            .prop_map(|(offset, bytes)| Access::ConfigRead { offset, bytes }),
        (offset, data(&[1, 2, 4, 8])).prop_map(|(offset, data)| Access::ConfigWrite { offset, data }),
        (any::<u64>(), 1u32..=16 << 20).prop_map(|(address, bytes)| Access::MemoryRead { address, bytes }),
        (any::<u64>(), proptest::collection::vec(any::<u8>(), 1..300))
            .prop_map(|(address, data)| Access::MemoryWrite { address, data }),
    ]
}

/// As the kernel writes it, and the room that it has.
pub(crate) fn written(access: &Access) -> (Vec<u8>, u32) {
    match access {
        Access::ConfigRead { offset, bytes } => (command(1, 0, *bytes, (*offset).into(), &[]), *bytes),
        Access::ConfigWrite { offset, data } => {
            let mut eight = data.clone();
            eight.resize(8, 0);
            (command(2, 0, data.len() as u32, (*offset).into(), &eight), 0)
        }
        Access::MemoryRead { address, bytes } => (command(3, 7, *bytes, *address, &[]), *bytes),
        Access::MemoryWrite { address, data } => (command(4, 7, data.len() as u32, *address, data), 0),
    }
}

proptest! {
    #[test]
    fn a_calendar_message_survives_parse_and_emit(code in 0u32..10, sequence: u32, time: u64) {
        let bytes = calendar_message(code, sequence, time);
        let message = Message::parse(&bytes).expect("an operation");
        prop_assert_eq!((message.sequence, message.time), (sequence, time));
        prop_assert_eq!(message.emit(), bytes);
        let ack = message.ack(5);
        prop_assert_eq!(ack, Message { operation: Operation::Ack, sequence, time: 5 });
    }

    #[test]
    fn calendar_messages_of_all_kinds(bytes: [u8; calendar::BYTES]) {
        let code = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        match Message::parse(&bytes) {
            Ok(message) => prop_assert_eq!(message.emit(), bytes),
            Err(error) => prop_assert_eq!(error, ProtocolError::Calendar(code)),
        }
    }

    #[test]
    fn a_command_survives_parse_and_emit(access in accesses()) {
        let (sent, room) = written(&access);
        prop_assert_eq!(Access::parse(&sent, room.into()), Ok(access));
    }

    #[test]
    fn memory_that_is_set_is_a_write(address: u64, value: u8, bytes in 1u32..5000) {
        let sent = command(5, 7, bytes, address, &[value]);
        let write = Access::MemoryWrite { address, data: vec![value; bytes as usize] };
        prop_assert_eq!(Access::parse(&sent, 0), Ok(write));
    }

    #[test]
    fn commands_of_all_kinds(mut sent in proptest::collection::vec(any::<u8>(), 0..64), op in 0u8..9, size in 0u32..70, room in 0u64..70) {
        if let Some(header) = sent.first_chunk_mut::<8>() {
            (header[0], header[1]) = (op, header[1] % 8);
            header[4..].copy_from_slice(&size.to_le_bytes());
        }
        if let Ok(access) = Access::parse(&sent, room) {
            let bytes = match access {
                Access::ConfigRead { bytes, .. } | Access::MemoryRead { bytes, .. } => bytes,
                Access::ConfigWrite { data, .. } | Access::MemoryWrite { data, .. } => data.len() as u32,
            };
            prop_assert_eq!(bytes, size);
        }
    }

    /// Header and payload: what is read is no longer than what came.
    #[test]
    fn device_messages_of_all_kinds(request in 0u32..40, flags in 0u32..16, payload in proptest::collection::vec(any::<u8>(), 0..80)) {
        let bytes = device_message(request, flags, &payload);
        if let Ok(header) = Header::parse(bytes.first_chunk().expect("a header")) {
            prop_assert_eq!((header.request, header.size as usize), (request, payload.len()));
            prop_assert_eq!(header.wants_reply, flags & 8 != 0);
            if let Ok(Request::SetMemory(regions)) = Request::parse(header, &payload) {
                prop_assert_eq!(8 + 32 * regions.len(), payload.len());
            }
        }
    }

    #[test]
    fn headers_of_all_kinds(bytes: [u8; vhost::HEADER]) {
        let _ = Header::parse(&bytes);
    }

    #[test]
    fn a_number_is_answered(request: u32, number: u64) {
        prop_assert_eq!(vhost::answer(request, number), device_message(request, 1 | 1 << 2, &longs(&[number])));
        prop_assert_eq!(vhost::call(request), device_message(4, 1 | 1 << 3, &longs(&[request.into()])));
    }

    #[test]
    fn only_success_takes_a_call(request in 0u32..8, flags in 0u32..16, number in 0u64..3) {
        let answer = device_message(request, flags, &longs(&[number]));
        let taken = vhost::is_taken(answer.as_slice().try_into().expect("20 B"));
        prop_assert_eq!(taken, (request, flags, number) == (4, 1 | 1 << 2, 0));
    }

    #[test]
    fn an_interrupt_is_written(data: u32) {
        let message = emit_interrupt(Interrupt::Message { data });
        prop_assert_eq!(message, command(7, 0, 4, 0, &data.to_le_bytes()));
        prop_assert_eq!(emit_interrupt(Interrupt::Wire), command(6, 0, 0, 0, &[]));
    }
}

/// The fields of each request, as `vhost_user.h` has them.
#[test]
fn requests_have_their_fields() {
    let parse = |request: u32, payload: &[u8]| {
        let bytes = device_message(request, 1, payload);
        let header = Header::parse(bytes.first_chunk().expect("a header")).expect("a header");
        Request::parse(header, payload).expect("a request")
    };
    let both = longs(&[7 << 32 | 1]);
    assert_eq!(parse(2, &longs(&[5])), Request::SetFeatures(5));
    assert_eq!(parse(3, &[]), Request::SetOwner);
    assert_eq!(parse(8, &both), Request::SetQueueSize(1, 7));
    // Index and flags, then descriptors, used, available, log.
    let addresses = longs(&[1 << 32 | 1, 0x10, 0x20, 0x30, 0x40]);
    assert_eq!(parse(9, &addresses), Request::SetQueueAddresses(1, [0x10, 0x30, 0x20]));
    assert_eq!(parse(10, &both), Request::SetQueueBase(1, 7));
    assert_eq!(parse(16, &longs(&[6])), Request::SetProtocolFeatures(6));
    assert_eq!(parse(18, &both), Request::EnableQueue(1, true));
    assert_eq!(parse(18, &longs(&[1])), Request::EnableQueue(1, false));
    assert_eq!(parse(35, &longs(&[0xFF01])), Request::Kick(1));
    assert_eq!(parse(1, &[]), Request::GetFeatures);
    assert_eq!(parse(15, &[]), Request::GetProtocolFeatures);
    assert_eq!(parse(21, &[]), Request::SetBackChannel);
}
