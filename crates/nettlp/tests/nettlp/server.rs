//! What a port does for its device beside DMA: interrupts, timers, resets, places of BARs.

use crate::raw::*;
use std::net::SocketAddrV4;
use tlplab_cfgspace::{InterruptMode, MessageWrite};
use tlplab_device::{
    Action, BarSpec, Context, Device, DmaError, Event, Identity, Nic, NicConfig, OpId, Payload,
};
use tlplab_nettlp::endpoint::Window;
use tlplab_nettlp::server::BarMapError;
use tlplab_nettlp::{BarMap, DevicePort, DeviceServer, EndpointConfig, Engine, Undeliverable, Vectors};
use tlplab_transaction::RequestPolicy;
use tlplab_units::{Bdf, Duration, Time};

const WINDOW: Window = Window { base: 0x38_0000_0000, size: 1 << 20 };

/// A register file of 4 KiB and a BAR of 64 KiB, and a note of all that it is told.
#[derive(Default)]
struct Notes(Vec<Event>);

impl Device for Notes {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::registers(0, 4096), BarSpec::memory(2, 65536), BarSpec::io(4, 64)];
        Identity { bars, ..Identity::new(0x71AB, 0x7357, 0xFF_00_00) }
    }
    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        if let Event::MmioRead { bytes, reply, .. } = event {
            cx.reply(reply, vec![0x5A; bytes as usize].into());
        }
        self.0.push(event);
    }
}

fn port(vectors: Vectors) -> DevicePort {
    let layout = Notes::default().layout();
    let bars = BarMap::packed(&layout, WINDOW).unwrap();
    let bars = if matches!(vectors, Vectors::Held(_)) { bars.with_table(WINDOW) } else { bars };
    DevicePort::new(EndpointConfig::new(ADAPTER, Bdf(DEVICE)), bars, vectors)
}

fn write(engine: &mut impl Engine, offset: u64, data: &[u8]) {
    let (dw, enables) = (data.len() as u32 / 4, if data.len() == 4 { 0x0F } else { 0xFF });
    deliver(engine, us(1), 0x4000, &host_request(0, WINDOW.base + offset, dw, enables, Some(data)));
}

#[test]
fn bars_lie_in_order_each_at_a_multiple_of_its_size() {
    let layout = Notes::default().layout();
    let bars = BarMap::packed(&layout, WINDOW).unwrap();
    let at = |offset, size| Window { base: WINDOW.base + offset, size };
    assert_eq!(bars.bars(), [(0, at(0, 4096)), (2, at(65536, 65536))]);
    let small = Window { size: 0x1_8000, ..WINDOW };
    assert_eq!(
        BarMap::packed(&layout, small),
        Err(BarMapError::TooBig { bar: 2, size: 65536, window: 0x1_8000 })
    );
    let askew = Window { base: 0x1000, ..WINDOW };
    assert_eq!(
        BarMap::packed(&layout, askew),
        Err(BarMapError::Misaligned { bar: 2, size: 65536, base: 0x1000 })
    );
    let own = BarMap::own(&layout, [Some(0x9000), None, None, None, Some(0x40), None]);
    assert_eq!(own.bars(), [(0, Window { base: 0x9000, size: 4096 })]);
}

#[test]
fn accesses_reach_the_bar_that_holds_them() {
    let mut server = DeviceServer::new(Notes::default(), port(Vectors::Given(Vec::new())));
    server.start(Time::ZERO);
    write(&mut server, 0xFFC, &[1, 2, 3, 4]);
    write(&mut server, 0x1000, &[1, 2, 3, 4]); // behind BAR 0, before BAR 2
    write(&mut server, 0x1_FFF8, &[0; 8]);
    deliver(&mut server, us(1), 0x4000, &host_request(0, WINDOW.base + 0x1_0010, 1, 0x0F, None));
    let seen = &server.device().0;
    assert!(matches!(seen[0], Event::Start));
    assert!(matches!(&seen[1], Event::MmioWrite { bar: 0, offset: 0xFFC, data } if data.len() == 4));
    assert!(matches!(&seen[2], Event::MmioWrite { bar: 2, offset: 0xFFF8, data } if data.len() == 8));
    assert!(matches!(seen[3], Event::MmioRead { bar: 2, offset: 0x10, bytes: 4, .. }));
    assert_eq!((seen.len(), server.port().counters().refused), (4, 1));
    assert_eq!(sent_bytes(&mut server, us(1))[0].1[18..], [0x5A; 4]);
}

/// The table is in the window: vectors that are masked wait, and go when they may.
#[test]
fn a_table_that_the_port_holds() {
    let mut port = port(Vectors::in_window());
    let table = WINDOW.size - 4096;
    let msix = |vector| Action::Msix { stream: 0, vector };
    port.act(us(1), msix(3));
    assert_eq!((sent(&mut port, us(1)), port.interrupts()), (vec![], 0));
    // Reads of table and pending bits are the port's, not the device's.
    deliver(&mut port, us(1), 0x4001, &host_request(1, WINDOW.base + table + 2048, 1, 0x0F, None));
    assert_eq!(sent_bytes(&mut port, us(1))[0].1[18..], [8, 0, 0, 0], "vector 3 is pending");
    // Address and data, then the mask goes.
    write(&mut port, table + 48, &[[0, 0x30, 0xE0, 0xFE, 1, 0, 0, 0], [0x23, 0, 0, 0, 0, 0, 0, 0]].concat());
    let expected = |request: &Sent| {
        assert_eq!((request.fmt_type, request.address, request.port), (0x60, 0x1_FEE0_3000, 0x3000));
        assert_eq!((request.first, request.last, &request.data[..]), (15, 0, &[0x23, 0, 0, 0][..]));
    };
    let [interrupt] = &sent(&mut port, us(1))[..] else { panic!("one interrupt") };
    expected(interrupt);
    // Behind the data of its stream.
    port.act(us(2), Action::DmaWrite { op: OpId(0), stream: 0, address: 0x1000, data: [7; 4].into() });
    port.act(us(2), msix(3));
    let [data, interrupt] = &sent(&mut port, us(2))[..] else { panic!("data and interrupt") };
    assert_eq!((data.address, data.port), (0x1000, interrupt.port));
    expected(interrupt);
    assert!(
        port.deadline().is_some_and(|at| at <= us(2)),
        "what the device has not heard of does not wait for other news"
    );
    assert!(matches!(port.take_event(), Some(Event::DmaWriteAccepted { op: OpId(0) })));
    assert!(port.deadline().is_none_or(|at| at > us(2)));
    port.act(us(2), msix(16));
    assert_eq!((port.interrupts(), port.dropped_interrupts()), (2, 1));
    assert!(port.take_event().is_none());
}

#[test]
fn interrupts_of_a_table_elsewhere() {
    let none = MessageWrite { address: 0, data: 0 };
    let mut port = port(Vectors::Given(vec![none; 2]));
    port.act(us(1), Action::Msix { stream: 0, vector: 1 });
    assert_eq!((port.interrupts(), port.dropped_interrupts()), (0, 1), "nobody has said where to");
    let message = MessageWrite { address: 0xFEE0_0000, data: 0x31 };
    port.set_vectors(Vectors::Given(vec![none, message]));
    port.act(us(1), Action::Msix { stream: 0, vector: 1 });
    assert_eq!(sent(&mut port, us(1))[0].data, [0x31, 0, 0, 0]);
}

/// Cuts its transfers without regard to addresses that are multiples of MPS or MRRS.
struct PackedWriter;

impl Device for PackedWriter {
    fn identity(&self) -> Identity {
        Notes::default().identity()
    }
    fn request_policy(&self) -> RequestPolicy {
        RequestPolicy::Packed
    }
    fn handle(&mut self, _: &mut Context<'_>, _: Event) {}
}

#[test]
fn transfers_are_split_by_the_policy_of_the_device() {
    fn lengths(device: impl Device) -> Vec<usize> {
        let mut server = DeviceServer::new(device, port(Vectors::Given(Vec::new())));
        server.with_device(us(0), |_, cx| _ = cx.dma_write(0, 0x1_0040, vec![7; 512].into()));
        sent(&mut server, us(0)).iter().map(|tlp| tlp.data.len()).collect()
    }
    assert_eq!(lengths(Notes::default()), [192, 256, 64], "MPS is 256 B");
    assert_eq!(lengths(PackedWriter), [256, 256]);
}

#[test]
fn timers_ring_in_order_and_move_with_time() {
    let mut server = DeviceServer::new(Notes::default(), port(Vectors::Given(Vec::new())));
    server.with_device(us(0), |_, cx| [30, 10, 20, 10].map(|at| cx.timer(us(at), at)));
    assert_eq!(server.deadline(), Some(us(10)));
    server.rebase(Duration::from_us(5));
    assert_eq!(server.deadline(), Some(us(5)));
    server.handle_timeout(us(15));
    let rung: Vec<_> = server.device().0.iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(rung, ["Timer { id: 10 }", "Timer { id: 10 }", "Timer { id: 20 }"]);
    assert_eq!(server.deadline(), Some(us(25)));
}

/// A reset ends all that was under way, and nobody hears of it again.
#[test]
fn a_reset_forgets() {
    let mut port = port(Vectors::in_window());
    write(&mut port, WINDOW.size - 4096 + 8, &[9, 0, 0, 0, 0, 0, 0, 0]);
    port.act(us(1), Action::DmaRead { op: OpId(4), stream: 0, address: 0x1000, bytes: 64, carry: false });
    port.act(us(1), Action::Timer { at: us(50), id: 0 });
    assert_eq!(sent(&mut port, us(1)).len(), 1);
    deliver(&mut port, us(1), 0x4000, &host_request(0, WINDOW.base, 1, 0x0F, None));
    let Some(Event::MmioRead { reply, .. }) = port.take_event() else { panic!("a read") };
    port.reset(us(2));
    assert!(matches!(port.take_event(), Some(Event::Reset)));
    Cpl::of_memory(0, 0x1000, 64, 64).deliver(&mut port, us(3));
    port.handle_timeout(us(60_000));
    assert!(port.take_event().is_none());
    assert_eq!((port.counters().late, port.endpoint().is_idle(), port.deadline()), (1, true, None));
    deliver(&mut port, us(4), 0x4000, &host_request(0, WINDOW.base + WINDOW.size - 4096 + 8, 1, 0x0F, None));
    assert_eq!(sent_bytes(&mut port, us(4))[0].1[18..], [0; 4], "the table is as at first");
    // Who answers now answers a read that is over.
    port.act(us(5), Action::Reply { token: reply, data: Payload::Length(4) });
    assert!(port.fault().unwrap().contains("has ended"));
}

/// Between two resets a read fails because the adapter's port is closed: the device is told of all of it.
#[test]
fn resets_and_undeliverable_reads_reach_the_device() {
    let mut server = DeviceServer::new(Notes::default(), port(Vectors::Given(Vec::new())));
    server.reset(us(1));
    server.with_device(us(1), |_, cx| _ = cx.dma_read(0, 0x1000, 64));
    assert_eq!(sent(&mut server, us(1)).len(), 1);
    server.handle_undeliverable(us(2), SocketAddrV4::new(ADAPTER, 0x3000), Undeliverable::PortRefused);
    let failed = |event: &Event| matches!(event, Event::DmaReadDone { result: Err(_), .. });
    let [Event::Reset, over] = &server.device().0[..] else { panic!("{:?}", server.device().0) };
    assert!(failed(over), "{over:?}");
    server.reset(us(3));
    assert!(matches!(server.device().0[2..], [Event::Reset]));
}

#[test]
fn faulty_device_actions_are_reported_with_the_rule() {
    let mut port = port(Vectors::Given(Vec::new()));
    deliver(&mut port, us(1), 0x4000, &host_request(0, WINDOW.base, 2, 0xFF, None));
    let Some(Event::MmioRead { reply, .. }) = port.take_event() else { panic!("a read") };
    port.act(us(1), Action::Reply { token: reply, data: [0; 4].into() });
    assert_eq!(
        port.fault(),
        Some("answered a read of 8 B with 4 B; the answer must have the requested size")
    );
    port.act(us(1), Action::DmaRead { op: OpId(1), stream: 0, address: u64::MAX, bytes: 2, carry: false });
    assert!(matches!(port.take_event(), Some(Event::DmaReadDone { op: OpId(1), result: Err(_) })));
    // Marked as bad (EP): not written.
    let mut poisoned = host_request(0, WINDOW.base, 1, 0x0F, Some(&[1; 4]));
    poisoned[8] |= 0x40;
    deliver(&mut port, us(1), 0x4000, &poisoned);
    assert!(port.take_event().is_none());
    assert_eq!(port.ignored(), 1);
}

/// All of the last 4 KiB of the window are the port's: what is neither table nor pending bits reads as zeros, and writes there change nothing.
#[test]
fn a_device_hears_nothing_of_the_page_of_the_table() {
    let mut port = port(Vectors::in_window());
    for offset in [256, 1024, 2056, 4092] {
        write(&mut port, WINDOW.size - 4096 + offset, &[9; 4]);
        deliver(
            &mut port,
            us(1),
            0x4001,
            &host_request(1, WINDOW.base + WINDOW.size - 4096 + offset, 1, 0xF, None),
        );
        assert_eq!(sent_bytes(&mut port, us(1))[0].1[18..], [0; 4], "{offset}");
        assert!(port.take_event().is_none(), "{offset}");
    }
    // The adapter has taken the table over: its page belongs to no device.
    port.set_vectors(Vectors::Given(Vec::new()));
    deliver(&mut port, us(1), 0x4001, &host_request(1, WINDOW.base + WINDOW.size - 4096, 1, 0xF, None));
    assert_eq!(sent_bytes(&mut port, us(1))[0].1[18..], [0; 4]);
    assert!(port.take_event().is_none());
}

/// Interrupts without a message, with an address that is no multiple of 4, or by wire are dropped and counted.
#[test]
fn interrupts_that_cannot_be_sent_are_counted() {
    let message = |address| MessageWrite { address, data: 7 };
    let messages = vec![message(0), message(0xFEE0_0000), message(0xFEE0_0002)];
    let mut port = port(Vectors::Given(messages));
    let wire = |asserted| Action::Intx { stream: 0, asserted };
    let msix = |vector| Action::Msix { stream: 0, vector };
    let mut expected = (0, 0);
    for (action, sent, dropped) in [
        (msix(0), 0, 1),
        (msix(1), 1, 0),
        (msix(2), 0, 1),
        (msix(3), 0, 1),
        (wire(true), 0, 1),
        (wire(false), 0, 0),
        (msix(1), 1, 0),
        (wire(true), 0, 1),
    ] {
        port.act(us(1), action);
        expected = (expected.0 + sent, expected.1 + dropped);
        assert_eq!((port.interrupts(), port.dropped_interrupts()), expected);
    }
    assert_eq!(sent(&mut port, us(1)).len(), 2);
    assert!(port.take_event().is_none(), "a device does not hear that an interrupt has left");
}

/// MSI-X is what a device may use where there is a table, and nothing where the adapter has told of none.
#[test]
fn a_port_with_vectors_has_msix() {
    let one = MessageWrite { address: 0xFEE0_0000, data: 7 };
    for (vectors, mode) in [
        (Vectors::Given(Vec::new()), InterruptMode::Disabled),
        (Vectors::Given(vec![one]), InterruptMode::MsiX),
        (Vectors::in_window(), InterruptMode::MsiX),
    ] {
        assert_eq!(port(vectors).interrupt_mode(), mode);
    }
}

/// What a device says of itself is there for its owner: that it is done, and the first fault.
#[test]
fn a_port_reports_finished_and_faulty_devices() {
    let mut port = port(Vectors::Given(Vec::new()));
    assert_eq!((port.is_finished(), port.fault()), (false, None));
    port.act(us(1), Action::Fault("the first".into()));
    port.act(us(1), Action::Fault("the second".into()));
    assert_eq!((port.is_finished(), port.fault()), (false, Some("the first")));
    port.act(us(1), Action::Finished);
    assert_eq!((port.is_finished(), port.fault()), (true, Some("the first")));
    assert_eq!([port.next_op(), port.next_op(), port.next_op()], [OpId(0), OpId(1), OpId(2)]);
    let bars = BarMap::packed(&Notes::default().layout(), WINDOW).unwrap();
    assert_eq!(port.bars(), &bars);
}

/// Poisoned writes, and TLPs that are no reads and writes, are ignored and counted; an atomic gets UR.
#[test]
fn tlps_that_a_device_hears_nothing_of_are_counted() {
    let mut port = port(Vectors::Given(Vec::new()));
    let poisoned = |port: &mut DevicePort| {
        let mut write = host_request(0, WINDOW.base, 1, 0x0F, Some(&[1; 4]));
        write[8] |= 0x40;
        deliver(port, us(1), 0x4000, &write);
    };
    let fetch_add = |port: &mut DevicePort| {
        let mut add = host_request(2, WINDOW.base, 1, 0, Some(&[1; 4]));
        add[6] = 0x6C; // with 64 bits of address
        deliver(port, us(1), 0x4002, &add);
    };
    for (n, act) in (1..).zip([&poisoned as &dyn Fn(&mut DevicePort), &fetch_add, &fetch_add, &poisoned]) {
        act(&mut port);
        assert_eq!(port.ignored(), n);
    }
    assert!(port.take_event().is_none());
    assert_eq!(sent_bytes(&mut port, us(1)).len(), 2, "UR");
}

/// Ports of one device number their datagrams together.
#[test]
fn ports_number_together() {
    let mut ports = [(), ()].map(|()| port(Vectors::Given(Vec::new())));
    let [first, second] = &mut ports;
    second.count_with(first);
    let mut numbers = Vec::new();
    for turn in 0..4 {
        let port = &mut ports[turn % 2];
        port.act(us(1), Action::DmaWrite { op: OpId(0), stream: 0, address: 0x1000, data: [7; 4].into() });
        numbers.extend(sent_bytes(port, us(1)).iter().map(|(_, udp)| u16::from_be_bytes([udp[0], udp[1]])));
    }
    assert_eq!(numbers, [1, 2, 3, 4]);
}

/// A timer that is set to a moment before rings at once, as soon as the driver looks. With operations under way the first deadline counts.
#[test]
fn timers_in_the_past_ring_at_once() {
    let mut port = port(Vectors::Given(Vec::new()));
    port.act(us(5), Action::Timer { at: us(1), id: 3 });
    assert_eq!(port.deadline(), Some(us(5)));
    port.handle_timeout(us(5));
    assert!(matches!(port.take_event(), Some(Event::Timer { id: 3 })));
    assert_eq!(port.deadline(), None);
    port.act(us(10), Action::DmaRead { op: OpId(0), stream: 0, address: 0x1000, bytes: 4, carry: false });
    assert_eq!(sent(&mut port, us(10)).len(), 1);
    let over = us(10) + port.endpoint().config().completion_timeout;
    assert_eq!(port.deadline(), Some(over));
    port.act(us(10), Action::Timer { at: us(20), id: 4 });
    assert_eq!(port.deadline(), Some(us(20)));
    port.handle_timeout(over);
    let events: Vec<Event> = std::iter::from_fn(|| port.take_event()).collect();
    assert!(
        matches!(events[..], [Event::DmaReadDone { result: Err(_), .. }, Event::Timer { id: 4 }]),
        "{events:?}"
    );
}

/// Operations that cannot be sent at all are over at once, reads and writes.
#[test]
fn operations_beyond_all_addresses_fail_at_once() {
    let mut port = port(Vectors::Given(Vec::new()));
    let data = Payload::from([1; 8]);
    port.act(us(1), Action::DmaWrite { op: OpId(1), stream: 0, address: u64::MAX - 3, data });
    port.act(
        us(1),
        Action::DmaRead { op: OpId(2), stream: 0, address: u64::MAX - 3, bytes: 8, carry: false },
    );
    for number in 1..=2 {
        let event = port.take_event();
        assert!(
            matches!(event, Some(Event::DmaReadDone { op: OpId(n), result: Err(_) }) if n == number),
            "{event:?}"
        );
    }
    assert_eq!(sent(&mut port, us(1)).len(), 0);
}

/// An adapter that gives no acknowledged link: the operations that waited for it fail.
#[test]
fn operations_of_a_device_fail_without_a_link() {
    let mut config = port(Vectors::Given(Vec::new())).endpoint().config().clone();
    config.acknowledged = true;
    let bars = BarMap::packed(&Notes::default().layout(), WINDOW).unwrap();
    let mut port =
        DevicePort::new(config, bars, Vectors::Given(vec![MessageWrite { address: 0xFEE0_0000, data: 7 }]));
    port.act(us(0), Action::DmaRead { op: OpId(1), stream: 0, address: 0x1000, bytes: 8, carry: false });
    port.act(us(0), Action::Msix { stream: 0, vector: 0 });
    port.act(us(0), Action::DmaWrite { op: OpId(2), stream: 0, address: 0x1000, data: [1; 8].into() });
    let (mut now, mut asked, mut failed) = (us(0), 0, Vec::new());
    while failed.len() < 2 && asked < 100 {
        asked += sent_bytes(&mut port, now).len();
        now = port.deadline().unwrap();
        port.handle_timeout(now);
        failed.extend(std::iter::from_fn(|| port.take_event()));
    }
    let error = |event: &Event| match event {
        Event::DmaReadDone { op, result: Err(error) } => Some((op.0, *error)),
        _ => None,
    };
    let mut failed: Vec<_> =
        failed.iter().map(|event| error(event).unwrap_or_else(|| panic!("{event:?}"))).collect();
    failed.sort_by_key(|(op, _)| *op);
    assert_eq!(failed, [(1, DmaError::Unacknowledged), (2, DmaError::Unacknowledged)]);
    assert_eq!((asked, port.deadline()), (13, None));
}

/// A device that keeps instants hears that the origin has moved. Naive: its clock goes back, or what it puts off until then comes an hour
/// late.
#[test]
fn a_clock_does_not_notice_that_time_begins_anew() {
    let hour = Duration::from_ms(3_600_000);
    let nic = Nic::new(NicConfig::default());
    let layout = nic.layout();
    let window = Window { base: 0x38_0000_0000, size: 1 << 20 };
    let bars = BarMap::packed(&layout, window).unwrap();
    let config = EndpointConfig::new(ADAPTER, Bdf(DEVICE));
    let mut server = DeviceServer::new(nic, DevicePort::new(config, bars, Vectors::Given(Vec::new())));
    server.start(Time::ZERO);
    let write = |server: &mut DeviceServer<Nic>, now, register: u64, value: u32| {
        let data = value.to_le_bytes();
        deliver(server, now, 0x4000, &host_request(0, window.base + register, 1, 0x0F, Some(&data)));
    };
    // TIMINCA: 1 each 40 ns; SYSTIML reads the low half of the clock.
    write(&mut server, Time::ZERO, 0xB608, 1 << 24 | 1);
    let clock = |server: &mut DeviceServer<Nic>, now| {
        deliver(server, now, 0x4000, &host_request(0, window.base + 0xB600, 1, 0x0F, None));
        let answer = sent_bytes(server, now).pop().expect("an answer").1;
        u32::from_le_bytes(answer[18..22].try_into().unwrap())
    };
    let late = Time::ZERO + hour + Duration::from_us(1);
    let before = clock(&mut server, late);
    assert_ne!(before, 0);
    server.rebase(hour);
    assert_eq!(clock(&mut server, us(1)), before);
    assert!(clock(&mut server, us(2)) > before);
}
