//! The NIC under what the real driver of an 82574 does to it, in each interrupt mode: see `e1000e_driver`.

use crate::e1000e_driver::{Driver, MAC};
use tlplab_device::nic::{OpenEnd, SIGNAL, Signal, regs, statistics};
use tlplab_device::{Cable, Event, InterruptMode, Nic, NicConfig};
use tlplab_units::{Duration, Time};

const MODES: [InterruptMode; 3] = [InterruptMode::MsiX, InterruptMode::Msi, InterruptMode::Intx];

/// The ones' complement sum of RFC 1071.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = bytes
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | two.get(1).map_or(0, |b| u32::from(*b)))
        .sum::<u32>();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// A TCP segment over IPv4 to ourselves, with only the pseudo-header's sum (of `length` B, 0 for segmentation) in place of its checksum.
fn tcp(data: usize, length: u16) -> Vec<u8> {
    let mut frame = [MAC, MAC].concat();
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend(if length == 0 { 0 } else { 20 + length }.to_be_bytes());
    frame.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    if length != 0 {
        let header = !sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&header.to_be_bytes());
    }
    let pseudo = sum(&[&[10, 0, 0, 1, 10, 0, 0, 2, 0, 6][..], &length.to_be_bytes()].concat());
    frame.extend([0x04, 0xD2, 0x00, 0x50, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 0xFF, 0xFF]);
    frame.extend(pseudo.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..data).map(|i| (i * 31 % 251) as u8));
    frame
}

fn plain(bytes: usize, number: u8) -> Vec<u8> {
    let mut frame = [[0xFF; 6], MAC].concat();
    frame.extend([0x88, 0xB5, number]);
    frame.resize(bytes, number);
    frame
}

/// Status bits of a received frame: checksums seen and right, nothing wrong.
const IP: u32 = 1 << 6;
const TCP: u32 = 1 << 5;
const WRONG: u32 = 0xFF00_0000;

#[test]
fn the_driver_brings_it_up_uses_it_and_puts_it_away() {
    for mode in MODES {
        let mut driver = Driver::new(Cable::LoopBack, mode);
        driver.probe();
        for _ in 0..2 {
            driver.open();
            frames_of_each_kind(&mut driver);
            many_frames(&mut driver);
            driver.close();
        }
    }
}

/// Legacy descriptors, checksums, segments, tags: what is sent comes back as the stack expects it.
fn frames_of_each_kind(driver: &mut Driver) {
    driver.received.clear();
    let ask = |driver: &mut Driver, frames: usize| {
        driver.wait_for("a frame", |driver| driver.received.len() >= frames && driver.all_sent());
    };
    // As it is, in two pieces.
    let frame = plain(600, 7);
    let (first, second) = (driver.data(&frame), {
        let at = u64::from_le_bytes(driver.data(&frame)) + 100;
        at.to_le_bytes()
    });
    driver.send(&[(first, 0x0200_0000 | 100, 0), (second, 0x0200_0000 | 500, 0)]);
    ask(driver, 1);
    assert_eq!((&driver.received[0].data, driver.received[0].status & (WRONG | 4)), (&frame, 4));

    // With the transport's checksum; the context says where.
    let frame = tcp(101, 121);
    let at = driver.data(&frame);
    let context = [0, 0, 0, 0, 34, 50, 0, 0];
    driver.send(&[(context, 0x2100_0000, 0), (at, 0x2210_0000 | frame.len() as u32, 2 << 8)]);
    ask(driver, 2);
    let back = driver.received[1].clone();
    assert_eq!(back.status & (IP | TCP | WRONG), IP | TCP);
    assert_eq!((&back.data[..50], &back.data[54..]), (&frame[..50], &frame[54..]));

    // Cut into segments.
    let frame = tcp(3000, 0);
    let at = driver.data(&frame);
    let context = [14, 24, 33, 0, 34, 50, 0, 0];
    driver.send(&[
        (context, 0x2700_0000 | 3000, 1400 << 16 | 54 << 8),
        (at, 0x2610_0000 | frame.len() as u32, 3 << 8),
    ]);
    ask(driver, 5);
    let segments = &driver.received[2..5];
    assert!(segments.iter().all(|back| back.status & (IP | TCP | WRONG) == IP | TCP));
    assert_eq!(
        segments.iter().flat_map(|back| &back.data[54..]).collect::<Vec<_>>(),
        frame[54..].iter().collect::<Vec<_>>()
    );

    // With a tag put in, and taken out again.
    let frame = plain(60, 9);
    let at = driver.data(&frame);
    driver.send(&[(at, 0x4200_0000 | 60, 0x6123 << 16)]);
    ask(driver, 6);
    let back = &driver.received[5];
    assert_eq!((back.status & 8, back.tag, &back.data), (8, 0x6123, &frame));

    let counted =
        [statistics::GOOD_SENT, statistics::GOOD_RECEIVED, statistics::SEGMENTATIONS, statistics::MISSED];
    assert_eq!(counted.map(|at| driver.get(at)), [6, 6, 1, 0]);
}

/// More frames than the rings hold, several under way: all come back, in order, with fewer interrupts than frames.
fn many_frames(driver: &mut Driver) {
    driver.received.clear();
    driver.handled = 0;
    driver.get(statistics::INTERRUPTS);
    for burst in 0..40u8 {
        for number in 0..16 {
            let number = burst.wrapping_mul(16).wrapping_add(number);
            let at = driver.data(&plain(60 + usize::from(number), number));
            driver.send(&[(at, 0x0200_0000 | (60 + u32::from(number)), 0)]);
        }
        driver.wait_for("a burst", |driver| driver.all_sent());
    }
    driver.wait_for("the last frames", |driver| driver.received.len() == 640);
    let expected = (0..640usize).map(|number| plain(60 + number % 256, number as u8));
    assert!(driver.received.iter().map(|back| &back.data).eq(expected.collect::<Vec<_>>().iter()));
    let interrupts = driver.get(statistics::INTERRUPTS);
    assert_eq!(interrupts, driver.handled, "each is counted");
    assert!((40..640).contains(&interrupts), "{interrupts}");
}

/// A link that was never there is no error: the driver opens later, or never.
#[test]
fn without_a_partner_the_link_stays_down() {
    let mut driver = Driver::new(Cable::Unplugged, InterruptMode::MsiX);
    driver.probe();
    driver.world.wait(Duration::from_ms(10));
    assert_eq!(driver.get(regs::STATUS) & 2, 0);
    assert!(driver.world.messages.is_empty());
}

/// What the end of a cable brings, now.
fn bring(driver: &mut Driver, end: &OpenEnd, signal: Signal) {
    end.bring(driver.world.now, signal);
    driver.world.wake(0, SIGNAL);
    driver.world.wait(Duration::from_us(1));
}

fn link_is_up(driver: &mut Driver) -> bool {
    driver.get(regs::STATUS) & 2 != 0
}

/// The link is up while both ends are ready, and only then frames pass: out, with the time at which the last byte has left, and in.
#[test]
fn frames_pass_an_open_end_while_both_ends_are_ready() {
    let end = OpenEnd::new();
    let nic = Nic::with_open_end(NicConfig { mac: MAC, ..NicConfig::default() }, end.clone());
    let mut driver = Driver::of(nic, InterruptMode::MsiX);
    driver.probe();
    driver.world.wait(Duration::from_ms(1));
    assert!(!link_is_up(&mut driver), "the other end is not ready");
    assert_eq!(end.take_sent().pop_back().map(|(_, signal)| signal), Some(Signal::Ready(true)));
    bring(&mut driver, &end, Signal::Ready(true));
    assert!(link_is_up(&mut driver));
    driver.open();
    assert!(end.take_sent().iter().all(|(_, signal)| matches!(signal, Signal::Ready(_))));

    let frame = plain(600, 7);
    let at = driver.data(&frame);
    driver.send(&[(at, 0x0200_0000 | 600, 0)]);
    driver.wait_for("the frame", |driver| driver.all_sent());
    let sent: Vec<(Time, Signal)> = end.take_sent().into();
    assert_eq!(
        sent.iter().map(|(_, signal)| signal).collect::<Vec<_>>(),
        [&Signal::Frame(frame.clone().into())]
    );
    assert!(sent[0].0 <= driver.world.now);
    assert!(driver.received.is_empty(), "it does not come back");

    bring(&mut driver, &end, Signal::Frame(frame.clone().into()));
    driver.wait_for("the answer", |driver| driver.received.len() == 1);
    assert_eq!(driver.received[0].data, frame);

    bring(&mut driver, &end, Signal::Ready(false));
    assert!(!link_is_up(&mut driver));
    bring(&mut driver, &end, Signal::Frame(frame.into()));
    driver.world.wait(Duration::from_ms(1));
    assert_eq!(driver.received.len(), 1, "nobody hears what comes over a dead link");
}

/// A reset of the function leaves the cable as it is: what is under way arrives, and what the other end said holds.
#[test]
fn a_reset_does_not_cut_an_open_end() {
    let end = OpenEnd::new();
    let nic = Nic::with_open_end(NicConfig { mac: MAC, ..NicConfig::default() }, end.clone());
    let mut driver = Driver::of(nic, InterruptMode::MsiX);
    driver.probe();
    bring(&mut driver, &end, Signal::Ready(true));
    end.take_sent();
    end.bring(driver.world.now + Duration::from_us(100), Signal::Ready(false));
    driver.world.tell(0, Event::Reset);
    driver.world.wait(Duration::from_us(50));
    let said: Vec<Signal> = end.take_sent().into_iter().map(|(_, signal)| signal).collect();
    assert_eq!(said, [Signal::Ready(false), Signal::Ready(true)]);
    assert!(link_is_up(&mut driver), "it has negotiated again");
    // The reset has taken the timer of what is under way; the NIC asks for another.
    driver.world.wait(Duration::from_us(100));
    assert!(!link_is_up(&mut driver));
}
