//! The machine behind an adapter: one that is only memory, and any other in a box.

use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_device::DmaError;
use tlplab_nettlp::adapter::host::*;
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, MemoryHost};
use tlplab_nettlp::{Adapter, Datagram, Engine, MAX_DATAGRAM};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration, Time};

const LOW_END: u64 = 0x8000_0000;
const HIGH: u64 = 1 << 32;

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}

/// Up to 2 GiB memory lies at 0, what is more at 4 GiB; an access may touch nothing else.
#[test]
fn memory_above_2_gib_goes_on_at_4_gib() {
    let mut small = MemoryHost::new(0x3000);
    let mut large = MemoryHost::new(LOW_END + 0x2000);
    assert_eq!((small.size(), large.size()), (0x3000, LOW_END + 0x2000));
    for (address, bytes, in_small, in_large) in [
        (0, 8, true, true),
        (0x2FF8, 8, true, true),
        (0x2FF9, 8, false, true),
        (0x2FFF, 0, true, true),
        (0x3000, 0, false, true),
        (LOW_END - 8, 8, false, true),
        (LOW_END - 7, 8, false, false),
        (LOW_END, 0, false, false),
        (HIGH - 1, 2, false, false),
        (HIGH, 0, false, true),
        (HIGH + 0x1FF8, 8, false, true),
        (HIGH + 0x1FF9, 8, false, false),
        (HIGH + 0x2000, 0, false, false),
        (u64::MAX, 8, false, false),
    ] {
        for (host, inside) in [(&mut small, in_small), (&mut large, in_large)] {
            let size = host.size();
            assert_eq!(host.claims(address, bytes), inside, "{bytes} B at {address:#x} of {size:#x}");
            let poked = host.poke(address, &vec![7; bytes as usize]);
            assert_eq!(poked.is_ok(), inside, "{bytes} B at {address:#x} of {size:#x}");
        }
    }
    let error = small.poke(0x2FFF, &[1, 2]).unwrap_err().to_string();
    assert!(error.starts_with("2 B at 0x2fff are not all memory: its 0x3000 B"), "{error}");
}

/// Data that cross pages stand where they were put; zeros over other data are zeros, too.
#[test]
fn poked_memory_is_read_as_it_was_written() {
    let mut host = MemoryHost::new(0x10_0000);
    let data: Vec<u8> = (0..10_000u32).map(|at| (at % 251) as u8 + 1).collect();
    host.poke(0x0FF1, &data).unwrap();
    host.poke(0x2FF0, &[0; 0x20]).unwrap();
    let mut expected = [vec![0; 0x0FF1], data, vec![0; 5]].concat();
    expected[0x2FF0..0x3010].fill(0);
    let mut found = vec![9; expected.len()];
    host.peek(0, &mut found);
    assert!(found == expected);
    // Zeros that begin in a page of zeros end in one with data.
    host.poke(0x2_1000, &[7; 32]).unwrap();
    host.poke(0x2_0FF0, &[0; 32]).unwrap();
    host.peek(0x2_0FF0, &mut found[..48]);
    assert_eq!(found[..48], [[0; 16], [0; 16], [7; 16]].concat());
}

fn interrupt(data: u32) -> HostInterrupt {
    HostInterrupt { device: 0, vector: None, address: 0xFEE0_0000, data }
}

/// Of what is not fetched the last 4096 are kept.
#[test]
fn results_and_interrupts_that_wait_are_bounded() {
    let mut host = MemoryHost::new(4096);
    for number in 0..4098 {
        host.interrupt(Time::ZERO, interrupt(number));
        host.mmio_done(Time::ZERO, MmioToken(number.into()), Ok(Payload::EMPTY));
    }
    let results: Vec<u64> = std::iter::from_fn(|| host.take_result()).map(|(token, _)| token.0).collect();
    assert!(results.into_iter().eq(2..4098));
    assert!(std::iter::from_fn(|| host.take_interrupt()).map(|one| one.data).eq(2..4098));
}

/// Reads end after the host's latency, in their order, whatever is written meanwhile; accesses of programs leave at once, those that are
/// due first. The origin of time may move between.
#[test]
fn reads_end_after_the_latency() {
    let mut host = MemoryHost::new(4096).with_latency(Duration::from_us(7));
    let read = |id| HostRead { id: HostReadId(id), device: 0, requester: Bdf(0), address: 0, bytes: 4 };
    assert_eq!(host.deadline(), None);
    assert_eq!(host.read(us(10), read(1)), Answer::Later);
    assert_eq!(host.read(us(12), read(2)), Answer::Later);
    let data = Payload::from([1, 2, 3, 4]);
    host.write(us(12), HostWrite { device: 0, requester: Bdf(0), address: 0, data: data.clone() });
    assert_eq!((host.deadline(), host.poll(us(16))), (Some(us(17)), None));
    let token = host.access(3, 4, 8, MmioAccess::Read(4));
    assert_eq!(host.deadline(), Some(Time::ZERO));
    let done = |id, data: Payload| Some(HostOutput::ReadDone { id: HostReadId(id), result: Ok(data) });
    assert_eq!(host.poll(us(17)), done(1, [0; 4].into()));
    let access = HostOutput::Mmio { token, device: 3, bar: 4, offset: 8, access: MmioAccess::Read(4) };
    assert_eq!(host.poll(us(17)), Some(access));
    host.rebase(Duration::from_us(10));
    assert_eq!(
        (host.deadline(), host.poll(us(8)), host.poll(us(9))),
        (Some(us(9)), None, done(2, [0; 4].into()))
    );
    assert_eq!((host.deadline(), host.poll(us(9))), (None, None));
    let mut prompt = MemoryHost::new(4096);
    prompt.poke(0, &[1, 2, 3, 4]).unwrap();
    assert_eq!(prompt.read(us(0), read(1)), Answer::Now(Ok(data)));
}

/// A host that notes all that it is told.
#[derive(Debug, Default)]
struct Notes {
    told: Vec<String>,
    reads: Vec<HostReadId>,
}

impl Host for Notes {
    fn device_appears(&mut self, _: Time, device: usize) {
        self.told.push(format!("device {device}"));
    }
    fn read(&mut self, _: Time, request: HostRead) -> Answer {
        self.told.push(format!("read {:#x}", request.address));
        self.reads.push(request.id);
        Answer::Later
    }
    fn write(&mut self, _: Time, write: HostWrite) {
        self.told.push(format!("write {:#x}", write.address));
    }
    fn interrupt(&mut self, _: Time, interrupt: HostInterrupt) {
        self.told.push(format!("interrupt {:#x}", interrupt.data));
    }
    fn claims(&self, address: u64, _: u32) -> bool {
        address < 0x2000
    }
    fn poll(&mut self, _: Time) -> Option<HostOutput> {
        let id = self.reads.pop()?;
        Some(HostOutput::ReadDone { id, result: Ok(vec![5; 4].into()) })
    }
    fn mmio_done(&mut self, _: Time, token: MmioToken, result: Result<Payload, DmaError>) {
        self.told.push(format!("access {} {}", token.0, result.is_ok()));
    }
    fn deadline(&self) -> Option<Time> {
        Some(us(33))
    }
    fn handle_timeout(&mut self, _: Time) {
        self.told.push("timeout".into());
    }
    fn rebase(&mut self, by: Duration) {
        self.told.push(format!("rebase {}", by.as_fs()));
    }
}

/// A host in a box hears and says what it does without.
#[test]
fn a_host_in_a_box_hears_everything() {
    let device = Ipv4Addr::new(10, 0, 0, 2);
    let config =
        AdapterConfig::new(Ipv4Addr::new(10, 0, 0, 1), vec![DeviceConfig::card(device, Bdf(0x1B00))]);
    let mut adapter = Adapter::new(config, Box::new(Notes::default())).unwrap();
    let mut buffer = [0; MAX_DATAGRAM];
    let mut answers = Vec::new();
    for (words, data) in [
        ([0x0000_0001, 0x1B00_070F, 0x1000], 0),
        ([0x0000_0001, 0x1B00_070F, 0x2000], 0),
        ([0x0000_0002, 0x1B00_07FF, 0x1004], 0),
        ([0x4000_0001, 0x1B00_000F, 0x1008], 4),
        ([0x4000_0001, 0x1B00_000F, 0xFEE0_0000u32], 4),
    ] {
        let words = words.into_iter().flat_map(u32::to_be_bytes).collect::<Vec<_>>();
        let payload = [&[0; 6][..], &words, &vec![0x11; data]].concat();
        let from = SocketAddrV4::new(device, 0x3007);
        adapter.handle_datagram(us(1), Datagram { from, port: 0x3007, payload: &payload });
        while let Some(out) = adapter.poll_transmit(us(1), &mut buffer) {
            answers.push((buffer[12] >> 5, out.len - 18));
        }
    }
    assert_eq!(answers, [(0, 4), (1, 0), (4, 0)], "data, UR, and CA where the host answers with 4 B for 8 B");
    assert_eq!(adapter.deadline(), Some(us(33)));
    adapter.handle_timeout(us(33));
    adapter.rebase(Duration::from_fs(3));
    adapter.host_mut().mmio_done(us(33), MmioToken(8), Ok(Payload::EMPTY));
    let told = [
        "device 0",
        "read 0x1000",
        "read 0x1004",
        "write 0x1008",
        "interrupt 0x11111111",
        "timeout",
        "rebase 3",
        "access 8 true",
    ];
    assert_eq!(adapter.host().told, told);
}
