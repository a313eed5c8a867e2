//! Blocking and submitted operations.

use super::memory::{BASE, Ends, Memory, SIZE, Served, content};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tlplab_device::DmaError;
use tlplab_netio::{Context, Error, Failure, Loop, Udp, Wait};
use tlplab_nettlp::endpoint::Counters;
use tlplab_nettlp::{Datagram, EndpointConfig, Engine, Outgoing};
use tlplab_transaction::{CompletionError, Undeliverable};
use tlplab_units::{Bdf, Mrrs, Time};

const DEVICE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);

/// An address for the other end that no other test has, nor another process, so that tests can run at once.
fn adapter() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(2);
    let id = std::process::id();
    Ipv4Addr::new(127, 64 + (id >> 8 & 31) as u8, id as u8, NEXT.fetch_add(1, Ordering::Relaxed))
}

fn device() -> Ipv4Addr {
    let [a, b, c, d] = adapter().octets();
    Ipv4Addr::new(a, b + 32, c, d)
}

/// Longer than a busy machine lets a thread wait, for reads that are answered.
const PATIENT: Duration = Duration::from_secs(10);
/// For reads that are not.
const SHORT: Duration = Duration::from_millis(50);

fn config(to: Ipv4Addr, tags: RangeInclusive<u8>, limit: Duration) -> EndpointConfig {
    EndpointConfig {
        tags,
        host_ports: 0,
        completion_timeout: tlplab_units::Duration::from_ms(limit.as_millis() as u64),
        ..EndpointConfig::new(to, Bdf(0x1b00))
    }
}

fn open_as(config: EndpointConfig, wait: Wait) -> Context {
    let udp = Udp::open(device(), config.ports(), Some(config.adapter)).unwrap();
    Context::new(config, Box::new(udp), wait)
}

fn open(to: Ipv4Addr, tags: RangeInclusive<u8>, wait: Wait) -> Context {
    open_as(config(to, tags, PATIENT), wait)
}

fn expected(address: u64, bytes: usize) -> Vec<u8> {
    (address..address + bytes as u64).map(content).collect()
}

#[test]
fn every_offset_and_length_comes_back() {
    let to = adapter();
    let memory = Served::new(to, 0..=3);
    for wait in [Wait::Sleep, Wait::Spin] {
        let context = open(to, 0..=3, wait);
        for (offset, bytes) in
            [(0, 1), (3, 1), (1, 2), (5, 256), (63, 130), (4095, 2), (0x7_fff1, 9000), (0, SIZE)]
        {
            let mut buffer = vec![0; bytes];
            context.dma_read(BASE + offset, &mut buffer).unwrap();
            assert!(buffer == expected(BASE + offset, bytes), "{bytes} bytes at {offset:#x}, {wait:?}");
        }
        context.flush(BASE).unwrap();
        context.dma_read(BASE, &mut []).unwrap();
    }
    drop(memory);
}

#[test]
fn a_read_sees_the_writes_before_it() {
    let to = adapter();
    let _memory = Served::new(to, 0..=0);
    let context = open(to, 0..=0, Wait::Sleep);
    let data: Vec<u8> = (0..5000u32).map(|at| (at * 7 + 1) as u8).collect();
    context.dma_write(BASE + 13, &data).unwrap();
    let mut back = vec![0; data.len() + 2];
    context.dma_read(BASE + 12, &mut back).unwrap();
    assert_eq!(back[1..=data.len()], data);
    assert_eq!((back[0], back[data.len() + 1]), (content(BASE + 12), content(BASE + 13 + data.len() as u64)));
}

#[test]
fn each_failure_has_its_own_error() {
    let to = adapter();
    let memory = Served::new(to, 0..=1);
    let why = |context: &Context, address| match context.dma_read(address, &mut [0; 64]) {
        Err(Failure::Dma(DmaError::Completion(error))) => error,
        other => panic!("{other:?}"),
    };
    // Nothing there: UR, at once.
    let begin = Instant::now();
    let refused = why(&open(to, 0..=1, Wait::Sleep), 0x1000);
    assert!(matches!(refused, CompletionError::UnsupportedRequest { .. }), "{refused}");
    // Nobody listens at this tag's port, though others do.
    let refused = why(&open(to, 2..=2, Wait::Sleep), BASE);
    assert!(
        matches!(refused, CompletionError::Undelivered { why: Undeliverable::PortRefused, .. }),
        "{refused}"
    );
    assert!(begin.elapsed() < PATIENT, "told, not timed out");
    // Somebody listens and says nothing.
    let silent = adapter();
    let _deaf = std::net::UdpSocket::bind((silent, 0x3000)).unwrap();
    let timeout = why(&open_as(config(silent, 0..=0, SHORT), Wait::Sleep), BASE);
    assert!(matches!(timeout, CompletionError::Timeout { .. }), "{timeout}");
    // It goes on after every one of them.
    let context = open(to, 0..=1, Wait::Sleep);
    why(&context, 0x1000);
    let mut buffer = [0; 4];
    context.dma_read(BASE, &mut buffer).unwrap();
    assert_eq!(buffer[..], expected(BASE, 4));
    drop(memory);
}

#[test]
fn a_failed_open_of_a_transport_states_its_reason() {
    let to = adapter();
    let first = Udp::open(to, [0x3000], None).unwrap();
    let Err(error) = Udp::open(to, [0x3000], None).map(drop) else { panic!("the port is taken") };
    assert!(matches!(error, Error::InUse { port: 0x3000, .. }), "{error}");
    drop(first);
    let elsewhere = Ipv4Addr::new(192, 0, 2, 1);
    let Err(error) = Udp::open(elsewhere, [0x3000], None).map(drop) else { panic!("TEST-NET-1 is nobody's") };
    assert!(matches!(error, Error::NotLocal { .. }), "{error}");
    assert!(Udp::open(DEVICE, [], None).is_ok(), "a device that only answers has no tags");
}

#[test]
fn many_operations_of_one_caller_overlap() {
    let to = adapter();
    let memory = Served::new(to, 0..=31);
    let context = open(to, 0..=31, Wait::Sleep);
    assert_eq!(context.next(None).unwrap(), None, "nothing is under way");
    for token in 0..500 {
        context.submit_read(token, BASE + token * 700, 700).unwrap();
    }
    let mut seen = vec![false; 500];
    for _ in 0..500 {
        let done = context.next(Some(2 * PATIENT)).unwrap().expect("within its time limit");
        let data = done.result.unwrap();
        assert_eq!(data.bytes().unwrap(), expected(BASE + done.token * 700, 700));
        assert!(!std::mem::replace(&mut seen[done.token as usize], true), "{} twice", done.token);
    }
    assert_eq!(context.next(None).unwrap(), None);
    context.submit_write(1, BASE, b"written").unwrap();
    assert_eq!(context.next(None).unwrap().unwrap().token, 1);
    let past_the_end = context.submit_read(2, u64::MAX - 3, 8);
    assert!(matches!(past_the_end, Err(Failure::Dma(DmaError::Request(_)))));
    assert_eq!(context.next(None).unwrap(), None, "an operation that did not begin does not end");
    drop(memory);
}

#[test]
fn threads_share_a_context() {
    let to = adapter();
    let memory = Served::new(to, 0..=7);
    let context = open(to, 0..=7, Wait::Sleep);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let context = &context;
            scope.spawn(move || {
                for turn in 0..300 {
                    let address = BASE + thread * 0x1_0000 + turn * 37;
                    let mut buffer = vec![0; 1 + (turn as usize * 53) % 900];
                    context.dma_read(address, &mut buffer).unwrap();
                    assert!(buffer == expected(address, buffer.len()), "thread {thread}, turn {turn}");
                }
            });
        }
        // One who waits for nothing that comes does not hold the others up.
        scope.spawn(|| assert_eq!(context.next(Some(Duration::from_millis(50))).unwrap(), None));
    });
    drop(memory);
}

/// A thread that drives the loop has no reason to wake up; another thread's request that fails by its time limit gives it one.
#[test]
fn a_sleeping_driver_hears_of_new_deadlines() {
    let silent = adapter();
    let _deaf = std::net::UdpSocket::bind((silent, 0x3000)).unwrap();
    let _deaf_too = std::net::UdpSocket::bind((silent, 0x3001)).unwrap();
    let context = open_as(config(silent, 0..=1, SHORT), Wait::Sleep);
    std::thread::scope(|scope| {
        context.submit_read(7, BASE, 4).unwrap();
        let waits = scope.spawn(|| context.next(None).unwrap());
        std::thread::sleep(SHORT / 2);
        assert!(context.dma_read(BASE, &mut [0; 4]).is_err());
        assert!(waits.join().unwrap().unwrap().result.is_err());
    });
}

#[test]
fn concurrent_reads_return_the_data_of_their_own_addresses() {
    let to = adapter();
    let memory = Served::new(to, 0..=7);
    let context = open(to, 0..=7, Wait::Sleep);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let context = &context;
            scope.spawn(move || {
                for turn in 0..20 {
                    let mut places: Vec<(u64, u64)> = (0..30)
                        .map(|at| (BASE + thread * 0x1_0000 + turn * 977 + at * 1500, 700 - at))
                        .collect();
                    places[7].0 = 0x1000;
                    places[8].0 = u64::MAX;
                    let results = context.read_many(&places).unwrap();
                    assert_eq!(results.len(), places.len());
                    for (at, (result, &(address, bytes))) in results.iter().zip(&places).enumerate() {
                        match at {
                            7 => assert!(matches!(result, Err(DmaError::Completion(_))), "{result:?}"),
                            8 => assert!(matches!(result, Err(DmaError::Request(_))), "{result:?}"),
                            _ => {
                                let data = result.as_ref().unwrap().bytes().unwrap();
                                assert!(
                                    data == expected(address, bytes as usize),
                                    "thread {thread}, {turn}, {at}"
                                );
                            }
                        }
                    }
                }
            });
        }
    });
    drop(memory);
}

/// The answers are there, more of them than one batch takes, before the thread that waits for them runs again.
#[test]
fn a_thread_that_did_not_run_has_not_missed_its_answers() {
    let to = adapter();
    let ports = (0..32).map(|tag| 0x3000 + tag);
    let mut memory = Loop::new(Memory::default(), Udp::open(to, ports, None).unwrap());
    let context = open_as(EndpointConfig { mrrs: Mrrs::ALL[5], ..config(to, 0..=31, SHORT) }, Wait::Sleep);
    for token in 0..32 {
        context.submit_read(token, BASE + token * 4096, 4096).unwrap();
    }
    serve(&mut memory, 32);
    std::thread::sleep(2 * SHORT);
    for _ in 0..32 {
        let done = context.next(None).unwrap().unwrap();
        assert!(done.result.unwrap().bytes().unwrap() == expected(BASE + done.token * 4096, 4096));
    }
}

/// Serves this many datagrams.
fn serve(memory: &mut Loop<Memory, Udp>, datagrams: usize) {
    let (begun, mut served) = (std::time::Instant::now(), 0);
    while served < datagrams {
        served += memory.turn(None).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(60), "{served} of {datagrams} datagrams have come");
    }
}

/// More late answers than one batch takes lie in the sockets, and by the clock their tags have rested: they are read first.
#[test]
fn late_answers_are_all_read_before_their_tags_are_used_again() {
    let to = adapter();
    let ports = (0..100).map(|tag| 0x3000 + tag);
    let mut memory = Loop::new(Memory::default(), Udp::open(to, ports, None).unwrap());
    let quarantine = tlplab_units::Duration::from_ms(1);
    let context = open_as(EndpointConfig { quarantine, ..config(to, 0..=99, SHORT) }, Wait::Sleep);
    for token in 0..100 {
        context.submit_read(token, BASE + token * 4096, 256).unwrap();
    }
    for _ in 0..100 {
        assert!(context.next(None).unwrap().unwrap().result.is_err(), "nobody has answered");
    }
    serve(&mut memory, 100);
    std::thread::sleep(SHORT);
    context.set_time_limits(tlplab_units::Duration::from_ms(PATIENT.as_millis() as u64), quarantine);
    let over = AtomicBool::new(false);
    let places: Vec<(u64, u64)> = (0..100).map(|at| (BASE + at * 4096 + 2048, 256)).collect();
    let results = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                memory.turn(None).unwrap();
            }
        });
        let _ends = Ends(|| over.store(true, Ordering::Relaxed));
        context.read_many(&places)
    });
    for (result, &(address, _)) in results.unwrap().iter().zip(&places) {
        assert!(result.as_ref().unwrap().bytes().unwrap() == expected(address, 256), "{address:#x}");
    }
    let Counters { late, unexpected, .. } = context.counters();
    assert_eq!(late + unexpected, 4 * 100, "of four completions each");
}

/// Posted writes have no acknowledgement: more of them than a socket holds must not leave before those ahead have been taken.
#[test]
fn a_long_write_waits_for_a_slow_adapter() {
    struct Slow(Memory);
    impl Engine for Slow {
        fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
            std::thread::sleep(Duration::from_micros(20));
            self.0.handle_datagram(now, datagram);
        }
        fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Outgoing> {
            self.0.poll_transmit(now, buffer)
        }
        fn deadline(&self) -> Option<Time> {
            None
        }
        fn handle_timeout(&mut self, _: Time) {}
        fn handle_undeliverable(&mut self, _: Time, _: SocketAddrV4, _: Undeliverable) {}
        fn rebase(&mut self, _: tlplab_units::Duration) {}
    }
    let to = adapter();
    let memory = Served::engine(Slow(Memory::default()), Udp::open(to, [0x3000], None).unwrap());
    let context = open_as(config(to, 0..=0, PATIENT), Wait::Sleep);
    let data: Vec<u8> = (0..SIZE as u64).map(|at| !content(at)).collect();
    context.dma_write(BASE, &data).unwrap();
    let mut back = vec![0; SIZE];
    context.dma_read(BASE, &mut back).unwrap();
    let wrong = back.iter().zip(&data).filter(|(a, b)| a != b).count();
    assert_eq!(wrong, 0, "bytes of {SIZE}");
    drop(memory);
}
