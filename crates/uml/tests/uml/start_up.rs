//! A kernel starts: calendar first, then its device, as `virtio_uml.c` does it.

use crate::dialogue::{
    BROADCAST, Dialogue, GET, GET_TOD, NO_REPLY, START, Said, UPDATE, longs, memory_table, pair,
};
use crate::memory::{BASE, BYTES};
use crate::script::Script;
use tlplab_uml::vhost::Region;
use tlplab_uml::{Machine, START_OF_TIME};
use tlplab_units::Time;

const OWNER: u32 = 3;
const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const GET_PROTOCOL: u32 = 15;
const SET_PROTOCOL: u32 = 16;
const BACK_CHANNEL: u32 = 21;
const MEMORY: u32 = 5;

fn answer(request: u32, number: u64) -> Said {
    Said::Answer { request, number }
}

#[test]
fn a_kernel_starts() {
    let mut d = Dialogue::bare(Script::default());
    let sequence = d.calendar(START, 7).expect("START");
    assert_eq!(d.said(), [Said::Ack { sequence, time: 0 }]);
    let sequence = d.calendar(GET_TOD, u64::MAX).expect("GET_TOD");
    assert_eq!(d.said(), [Said::Ack { sequence, time: 1_767_225_600_000_000_000 }]);

    // Until it has the protocol features, it wants answers only to what it asks for.
    d.device_with(OWNER, NO_REPLY, &[], 0).expect("SET_OWNER");
    assert_eq!(d.said(), []);
    d.device_with(GET_FEATURES, NO_REPLY, &[], 0).expect("GET_FEATURES");
    // Protocol features, and virtio 1; neither indirect descriptors nor event indices, which the engine has not.
    assert_eq!(d.said(), [answer(GET_FEATURES, 1 << 30 | 1 << 32)]);
    d.device_with(GET_PROTOCOL, NO_REPLY, &[], 0).expect("GET_PROTOCOL_FEATURES");
    // REPLY_ACK, SLAVE_REQ, INBAND_NOTIFICATIONS
    assert_eq!(d.said(), [answer(GET_PROTOCOL, 1 << 3 | 1 << 5 | 1 << 14)]);
    d.device(SET_PROTOCOL, &longs(&[1 << 3 | 1 << 5 | 1 << 14])).expect("SET_PROTOCOL_FEATURES");
    assert_eq!(d.said(), [answer(SET_PROTOCOL, 0)]);
    d.device_with(BACK_CHANNEL, 1 | 1 << 3, &[], 1).expect("SET_SLAVE_REQ_FD");
    assert_eq!(d.said(), [Said::BackChannel, answer(BACK_CHANNEL, 0)]);
    d.device(SET_FEATURES, &longs(&[1 << 30 | 1 << 32])).expect("SET_FEATURES");
    assert_eq!(d.said(), [answer(SET_FEATURES, 0)]);

    d.device_with(MEMORY, 1 | 1 << 3, &memory_table(), 1).expect("SET_MEM_TABLE");
    let region = Region { address: BASE, bytes: BYTES as u64, offset: 0x20_0000 };
    assert_eq!(d.said(), [Said::Map(vec![region]), answer(MEMORY, 0)]);

    for (queue, size) in [(0, 16), (1, 4)] {
        d.set_up(queue, size).expect("a queue");
        assert_eq!(d.said(), [8, 10, 9, 18].map(|request| answer(request, 0)));
    }
    // Its first command.
    let head = d.offer_read(1, 0, 4);
    d.bell(0).expect("a bell");
    assert_eq!(d.said(), [answer(35, 0)]);
    assert_eq!(d.done(), Some((head, Script::data(0, 4))));
}

#[test]
fn two_ranges_of_memory_are_mapped() {
    let mut d = Dialogue::bare(Script::default());
    let (low, high) = ([BASE, 0x1000, 1, 0], [0x1_0000_0000, 0x2000, 2, 0x1000]);
    let table = longs(&[&[2][..], &low, &high].concat());
    d.device_with(MEMORY, NO_REPLY, &table, 2).expect("SET_MEM_TABLE");
    let region = |[address, bytes, _, offset]: [u64; 4]| Region { address, bytes, offset };
    assert_eq!(d.said(), [Said::Map(vec![region(low), region(high)])]);
}

#[test]
fn the_time_is_the_machines() {
    let mut d = Dialogue::up(Script::default());
    d.machine.advance(Time::from_fs(1_234_000_000)).expect("time passes");
    for (operation, time) in [(GET, 1234), (GET_TOD, START_OF_TIME + 1234), (UPDATE, 0), (START, 0)] {
        let sequence = d.calendar(operation, 99).expect("a question");
        assert_eq!(d.said(), [Said::Ack { sequence, time }]);
    }
}

#[test]
fn a_broadcast_is_reported_and_acknowledged() {
    let mut d = Dialogue::up(Script::default());
    let sequence = d.calendar(BROADCAST, 0x746C_7003).expect("BROADCAST");
    assert_eq!(d.said(), [Said::Broadcast(0x746C_7003), Said::Ack { sequence, time: 0 }]);
}

#[test]
fn a_queue_begins_anew_when_it_is_enabled_again() {
    let mut d = Dialogue::up(Script::default());
    for number in 0..3 {
        d.offer_read(3, 0x1000, 8);
        d.bell(0).expect("a bell");
        assert_eq!(d.done().map(|(_, data)| data), Some(Script::data(number, 8)));
    }
    d.device(18, &pair(0, 0)).expect("VRING_ENABLE");
    d.commands = crate::ring::Ring::new(&mut d.memory, 0, 8, 4096);
    d.set_up(0, 8).expect("a queue");
    d.offer_read(3, 0x1000, 8);
    d.bell(0).expect("a bell");
    assert_eq!(d.done().map(|(_, data)| data), Some(Script::data(3, 8)));
}
