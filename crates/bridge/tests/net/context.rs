//! Blocking and submitted operations.

use crate::memory::{BASE, SIZE, Served, content};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tlplab_bridge::net::{Context, Error, Failure, Udp, Wait};
use tlplab_device::DmaError;
use tlplab_nettlp::EndpointConfig;
use tlplab_transaction::{CompletionError, Undeliverable};
use tlplab_units::Bdf;

const SOON: tlplab_units::Duration = tlplab_units::Duration::from_ms(50);
const DEVICE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);

/// An address for the other end that no other test has, so that tests can run at once.
fn adapter() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(2);
    Ipv4Addr::new(127, 0, 7, NEXT.fetch_add(1, Ordering::Relaxed))
}

fn device() -> Ipv4Addr {
    let [a, _, c, d] = adapter().octets();
    Ipv4Addr::new(a, 1, c, d)
}

/// With more patience than a busy machine needs.
fn open(to: Ipv4Addr, tags: RangeInclusive<u8>, wait: Wait) -> Context {
    open_with(to, tags, wait, tlplab_units::Duration::from_ms(5000))
}

fn open_with(
    to: Ipv4Addr,
    tags: RangeInclusive<u8>,
    wait: Wait,
    patience: tlplab_units::Duration,
) -> Context {
    let config = EndpointConfig {
        tags,
        host_ports: 0,
        completion_timeout: patience,
        ..EndpointConfig::new(to, Bdf(0x1b00))
    };
    let udp = Udp::open(device(), config.ports(), Some(to)).unwrap();
    Context::new(config, Box::new(udp), wait)
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
    assert!(begin.elapsed() < Duration::from_secs(4), "told, not timed out");
    // Somebody listens and says nothing.
    let silent = adapter();
    let _deaf = std::net::UdpSocket::bind((silent, 0x3000)).unwrap();
    let timeout = why(&open_with(silent, 0..=0, Wait::Sleep, SOON), BASE);
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
fn a_transport_that_cannot_be_opened_says_why() {
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
        let done = context.next(Some(Duration::from_secs(5))).unwrap().expect("within five seconds");
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
    let context = open_with(silent, 0..=1, Wait::Sleep, SOON);
    std::thread::scope(|scope| {
        context.submit_read(7, BASE, 4).unwrap();
        let waits = scope.spawn(|| context.next(None).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        let begin = Instant::now();
        assert!(context.dma_read(BASE, &mut [0; 4]).is_err());
        assert!(begin.elapsed() < Duration::from_millis(500), "took {:?}", begin.elapsed());
        assert!(waits.join().unwrap().unwrap().result.is_err());
    });
}
