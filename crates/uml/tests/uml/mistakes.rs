//! What a kernel can get wrong: each error has a test that provokes it.

use crate::dialogue::{Dialogue, NO_REPLY, WAIT, command, longs, memory_table, pair};
use crate::memory::{BASE, BYTES};
use crate::ring::Part;
use crate::script::{Broken, Script};
use tlplab_uml::vhost::{self, Header};
use tlplab_uml::virtqueue::{Queue, Rings};
use tlplab_uml::{Failure, GuestMemory, Interrupt, ProtocolError};
use tlplab_units::Time;

fn up() -> Dialogue {
    Dialogue::up(Script::default())
}

fn err(error: ProtocolError) -> Result<(), Failure<Broken>> {
    Err(Failure::Protocol(error))
}

/// What comes of a command.
fn tried(parts: &[Part]) -> Result<(), Failure<Broken>> {
    let mut d = up();
    d.offer(parts);
    let result = d.bell(0);
    assert!(d.machine.done.is_empty(), "nothing is carried out");
    result
}

#[test]
fn an_operation_that_the_calendar_has_not() {
    for code in [10, 11, u32::MAX] {
        assert_eq!(up().calendar(code, 0), Err(ProtocolError::Calendar(code)));
    }
}

#[test]
fn a_calendar_message_out_of_turn() {
    let mut d = up();
    d.sleep(100);
    assert!(matches!(d.calendar(WAIT, 0), Err(ProtocolError::OutOfTurn("it waits", _))));
    for operation in [6, 7] {
        let error = up().calendar(operation, 0);
        assert!(matches!(error, Err(ProtocolError::OutOfTurn("it gives leave to run", _))), "{error:?}");
    }
}

#[test]
fn a_wait_while_it_is_called() {
    let mut d = Dialogue::up(Script::default().interrupt(Time::from_fs(5), Interrupt::Wire));
    d.sleep(100);
    d.advance().expect("an interrupt");
    assert!(matches!(d.calendar(WAIT, 0), Err(ProtocolError::OutOfTurn("it waits", _))));
}

#[test]
fn an_unsolicited_answer_is_out_of_turn() {
    let wrong = |error| matches!(error, Err(ProtocolError::OutOfTurn("an answer on the back channel", _)));
    assert!(wrong(up().answer_call(0)));
    let mut d = up();
    d.sleep(100);
    assert!(wrong(d.answer_call(0)));
}

/// The kernel says that it has no such queue.
#[test]
fn a_call_that_is_refused() {
    let mut d = Dialogue::up(Script::default().interrupt(Time::from_fs(5), Interrupt::Wire));
    d.sleep(100);
    d.advance().expect("an interrupt");
    assert!(matches!(d.answer_call(1), Err(ProtocolError::OutOfTurn(..))));
}

#[test]
fn requests_that_the_device_has_not() {
    for request in [0, 4, 6, 7, 11, 12, 13, 14, 17, 19, 22, 24, 25, 34, 36, u32::MAX] {
        assert_eq!(up().device(request, &longs(&[0])), err(ProtocolError::Request(request)));
    }
}

#[test]
fn flags_of_another_version() {
    for flags in [0, 2, 1 | 1 << 2, 1 | 1 << 4, 1 << 3, u32::MAX] {
        let expected = err(ProtocolError::Flags { request: 1, flags });
        assert_eq!(up().device_with(1, flags, &[], 0), expected);
    }
}

#[test]
fn payloads_of_another_length() {
    let length = |request, found, expected| err(ProtocolError::Length { request, found, expected });
    for request in [2, 8, 10, 16, 18, 35] {
        assert_eq!(up().device(request, &[0; 7]), length(request, 7, 8));
        assert_eq!(up().device(request, &[0; 9]), length(request, 9, 8));
        assert_eq!(up().device(request, &[]), length(request, 0, 8));
    }
    assert_eq!(up().device(9, &[0; 24]), length(9, 24, 40));
    // Ranges of memory: their number, and as many as it says.
    for (payload, found) in [(longs(&[1]), 8), (longs(&[0]), 8), (longs(&[2, 0, 0, 0, 0]), 40), (vec![], 0)] {
        assert_eq!(up().device_with(5, 1, &payload, 8), length(5, found, 40));
    }
    let too_long = crate::dialogue::device_message(5, 1, &[0; 73]);
    let header = Header::parse(too_long.first_chunk().expect("a header"));
    assert_eq!(header, Err(ProtocolError::Length { request: 5, found: 73, expected: vhost::LARGEST }));
}

#[test]
fn descriptors_that_do_not_come_along() {
    let missing = |request| err(ProtocolError::NoDescriptor(request));
    assert_eq!(up().device_with(5, NO_REPLY, &memory_table(), 0), missing(5));
    assert_eq!(up().device_with(21, NO_REPLY, &[], 0), missing(21));
    let two = longs(&[2, BASE, 0x1000, 0, 0, BASE + 0x1000, 0x1000, 0, 0]);
    assert_eq!(up().device_with(5, NO_REPLY, &two, 1), missing(5));
}

#[test]
fn queues_that_are_not() {
    for queue in [2, 255, u32::MAX] {
        for request in [8, 10, 18] {
            assert_eq!(up().device(request, &pair(queue, 16)), err(ProtocolError::Queue(queue)));
        }
        let addresses = longs(&[queue.into(), 0, 0, 0, 0]);
        assert_eq!(up().device(9, &addresses), err(ProtocolError::Queue(queue)));
    }
    assert_eq!(up().bell(2), err(ProtocolError::Queue(2)));
}

#[test]
fn a_bell_before_its_queue() {
    let ready = err(ProtocolError::QueueNotReady(0));
    let mut d = Dialogue::bare(Script::default());
    assert_eq!(d.bell(0), ready);
    // In use before it has a size.
    d.device(18, &pair(0, 1)).expect("VRING_ENABLE");
    assert_eq!(d.bell(0), ready);
    let mut d = up();
    d.device(18, &pair(0, 0)).expect("VRING_ENABLE");
    assert_eq!(d.bell(0), ready);
}

#[test]
fn sizes_that_a_queue_cannot_have() {
    for size in [0, 3, 12, 0x8001, 0x1_0000, u32::MAX] {
        let expected = err(ProtocolError::QueueSize { queue: 1, size });
        assert_eq!(up().device(8, &pair(1, size)), expected);
    }
    for power in 0..=15 {
        assert_eq!(up().device(8, &pair(1, 1 << power)), Ok(()));
    }
}

#[test]
fn rings_outside_of_the_memory() {
    let end = BASE + BYTES as u64;
    let rings = |descriptors: u64, available: u64, used: u64| {
        let mut d = up();
        d.device(18, &pair(0, 0)).expect("VRING_ENABLE");
        d.device(9, &longs(&[0, descriptors, used, available, 0])).expect("VRING_ADDR");
        d.device(18, &pair(0, 1)).expect("VRING_ENABLE");
        d.offer_read(3, 0, 4);
        d.bell(0)
    };
    let d = up();
    let (descriptors, available, used) = (d.commands.descriptors, d.commands.available, d.commands.used);
    assert_eq!(rings(descriptors, available, used), Ok(()));
    for outside in [0, BASE - 4, end - 2, end, u64::MAX - 17, u64::MAX - 2, u64::MAX - 1, u64::MAX] {
        for error in [
            rings(outside, available, used),
            rings(descriptors, outside, used),
            rings(descriptors, available, outside),
        ] {
            assert!(matches!(error, Err(Failure::Protocol(ProtocolError::Memory { .. }))), "{error:?}");
        }
    }
}

/// Of a guest whose memory begins at 0, too: addresses do not begin again there.
#[test]
fn rings_at_the_end_of_all_addresses() {
    struct Zeros;
    impl GuestMemory for Zeros {
        fn read(&self, address: u64, out: &mut [u8]) -> bool {
            out.fill(0);
            address < 0x1000
        }
        fn write(&mut self, _: u64, _: &[u8]) -> bool {
            false
        }
    }
    let rings = Rings { size: 16, descriptors: 0, available: u64::MAX - 1, used: 0x100 };
    let error = Queue::new(rings).take(&Zeros);
    assert_eq!(error, Err(ProtocolError::Memory { address: u64::MAX, bytes: 2 }));
    assert_eq!(Queue::new(Rings { available: 0, ..rings }).take(&Zeros), Ok(None));
}

#[test]
fn buffers_outside_of_the_memory() {
    let end = BASE + BYTES as u64;
    let read = command(3, 7, 4, 0x1000, &[]);
    for (address, bytes) in [(0, 16), (end, 16), (end - 15, 16), (u64::MAX, 16), (BASE, 1 << 24)] {
        let mut d = up();
        d.commands.describe(&mut d.memory, 0, (address, bytes, 0, 0));
        d.commands.make_available(&mut d.memory, 0);
        assert_eq!(d.bell(0), err(ProtocolError::Memory { address, bytes: bytes.into() }));
        // What the device fills.
        let mut d = up();
        let place = d.commands.place(0);
        d.memory.store(place, &read);
        d.commands.describe(&mut d.memory, 0, (place, 16, 1, 1));
        d.commands.describe(&mut d.memory, 1, (address.max(end - 3), 4, 2, 0));
        d.commands.make_available(&mut d.memory, 0);
        let error = d.bell(0);
        assert!(matches!(error, Err(Failure::Protocol(ProtocolError::Memory { bytes: 4, .. }))), "{error:?}");
    }
}

/// No access is that long.
#[test]
fn a_buffer_that_is_longer_than_any_access() {
    let mut d = up();
    d.commands.describe(&mut d.memory, 0, (BASE, (32 << 20) + 1, 0, 0));
    d.commands.make_available(&mut d.memory, 0);
    assert_eq!(d.bell(0), err(ProtocolError::Buffer(0)));
    // One part many times: no more is copied than an access has.
    let mut d = up();
    d.set_up(0, 256).expect("a queue");
    for index in 0..256 {
        d.commands.describe(&mut d.memory, index, (BASE, 1 << 20, u16::from(index < 255), index + 1));
    }
    d.commands.make_available(&mut d.memory, 0);
    assert_eq!(d.bell(0), err(ProtocolError::Buffer(0)));
}

#[test]
fn chains_without_an_end() {
    // The first descriptor is outside of the table.
    let mut d = up();
    d.commands.make_available(&mut d.memory, 16);
    assert_eq!(d.bell(0), err(ProtocolError::Chain(16)));
    // The next is.
    let mut d = up();
    let place = d.commands.place(0);
    d.commands.describe(&mut d.memory, 0, (place, 4, 1, 500));
    d.commands.make_available(&mut d.memory, 0);
    assert_eq!(d.bell(0), err(ProtocolError::Chain(500)));
    // It goes round.
    let mut d = up();
    for index in 0..3 {
        d.commands.describe(&mut d.memory, index, (place, 4, 1, (index + 1) % 3));
    }
    d.commands.make_available(&mut d.memory, 0);
    let error = d.bell(0);
    assert!(matches!(error, Err(Failure::Protocol(ProtocolError::Chain(_)))), "{error:?}");
}

/// A chain may use every descriptor there is.
#[test]
fn a_chain_of_the_whole_table() {
    let mut d = up();
    let mut parts = vec![Part::Sent(command(3, 7, 15, 0, &[]))];
    parts.extend([const { Part::Room(1) }; 15]);
    d.offer(&parts);
    d.bell(0).expect("a bell");
    assert_eq!(d.done().map(|(_, data)| data), Some(Script::data(0, 15)));
}

#[test]
fn more_buffers_than_a_queue_has() {
    let mut d = up();
    for _ in 0..17 {
        d.commands.make_available(&mut d.memory, 0);
    }
    assert_eq!(d.bell(0), err(ProtocolError::Available(17, 16)));
}

#[test]
fn a_buffer_that_is_too_small_for_an_interrupt() {
    let wire = Script::default().interrupt(Time::from_fs(5), Interrupt::Wire);
    let mut d = Dialogue::bare(wire);
    d.set_up(1, 4).expect("a queue");
    d.interrupts.offer(&mut d.memory, &[Part::Room(10), Part::Room(9)]);
    d.said();
    d.sleep(100);
    assert_eq!(d.advance(), err(ProtocolError::InterruptBuffer(19)));
}

#[test]
fn commands_that_are_not() {
    for op in [0, 6, 7, 8, 255] {
        let sent = Part::Sent(command(op, 7, 4, 0, &[0; 4]));
        assert_eq!(tried(&[sent]), err(ProtocolError::Command(op)));
    }
}

#[test]
fn commands_of_a_size_that_they_cannot_have() {
    let size = |op, size, sent, room| err(ProtocolError::CommandSize { op, size, sent, room });
    // Shorter than its header.
    assert_eq!(tried(&[Part::Sent(vec![1; 15])]), size(0, 0, 15, 0));
    assert_eq!(tried(&[Part::Room(4)]), size(0, 0, 0, 4));
    for bytes in [0, 3, 5, 16, u32::MAX] {
        assert_eq!(tried(&[Part::Sent(command(1, 0, bytes, 0, &[])), Part::Room(4)]), size(1, bytes, 0, 4));
        assert_eq!(tried(&[Part::Sent(command(2, 0, bytes, 0, &[0; 8]))]), size(2, bytes, 8, 0));
    }
    // The room must be what is read.
    for (op, bar) in [(1, 0), (3, 7)] {
        for room in [3, 5] {
            assert_eq!(
                tried(&[Part::Sent(command(op, bar, 4, 0, &[])), Part::Room(room)]),
                size(op, 4, 0, room.into())
            );
        }
    }
    // What is written must have come.
    assert_eq!(tried(&[Part::Sent(command(2, 0, 8, 0, &[0; 7]))]), size(2, 8, 7, 0));
    assert_eq!(tried(&[Part::Sent(command(4, 7, 8, 0, &[0; 7]))]), size(4, 8, 7, 0));
    assert_eq!(tried(&[Part::Sent(command(5, 7, 8, 0, &[]))]), size(5, 8, 0, 0));
    let longest = 16 << 20;
    for bytes in [0, longest + 1, u32::MAX] {
        assert_eq!(tried(&[Part::Sent(command(3, 7, bytes, 0, &[])), Part::Room(4)]), size(3, bytes, 0, 4));
        assert_eq!(tried(&[Part::Sent(command(5, 7, bytes, 0, &[1]))]), size(5, bytes, 1, 0));
    }
    // Configuration space has 256 MiB.
    for (address, bytes) in
        [(1 << 28, 1), ((1 << 28) - 1, 2), ((1 << 28) - 4, 8), (u64::MAX, 4), (1 << 32, 4)]
    {
        let read = Part::Sent(command(1, 0, bytes, address, &[]));
        assert_eq!(tried(&[read, Part::Room(bytes)]), size(1, bytes, 0, bytes.into()));
    }
}

#[test]
fn the_last_register_of_configuration_space() {
    let mut d = up();
    d.offer_read(1, (1 << 28) - 4, 4);
    assert_eq!(d.bell(0), Ok(()));
}

#[test]
fn an_access_to_a_device_without_the_tunnel() {
    for op in [3, 4, 5] {
        let sent = Part::Sent(command(op, 0, 4, 0, &[0; 4]));
        assert_eq!(tried(&[sent, Part::Room(4)]), err(ProtocolError::NotTunnelled(0)));
    }
}

#[test]
fn protocol_errors_name_the_wrong_value() {
    let says = |error: ProtocolError| error.to_string();
    assert_eq!(
        says(ProtocolError::Calendar(12)),
        "time travel: unknown operation 12; expected at most 9 (broadcast)"
    );
    assert!(says(ProtocolError::NotTunnelled(0)).contains("um_pci_tunnel"));
    assert!(says(ProtocolError::Memory { address: 0x1234, bytes: 5 }).contains("5 B at 0x1234"));
}
