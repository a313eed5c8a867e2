//! The NVMe controller on the fabric, with a driver that writes a drive and reads it back, by each way to interrupt.

use crate::bench::{Bench, Watch, ns};
use tlplab_cfgspace::enumerate::InterruptPolicy;
use tlplab_device::nvme::{Nvme, NvmeConfig, regs};
use tlplab_device::{HostContext, HostEvent, HostProgram};
use tlplab_fabric::config::{Direction, Fault, FaultKind, Fidelity};
use tlplab_units::{Duration, Time};

const PAGE: u64 = 4096;
const ENTRIES: u32 = 16;
/// Commands of each kind: writes, a flush, reads.
const COMMANDS: u32 = 40;
/// Bytes of each: two pages.
const BYTES: u64 = 2 * PAGE;

/// One queue pair in memory.
#[derive(Default)]
struct Queue {
    submission: u64,
    completion: u64,
    tail: u32,
    head: u32,
    phase: bool,
}

/// Two admin commands create a queue pair, which then carries all others, eight at a time.
struct Driver {
    bar: u64,
    queues: [Queue; 2],
    data: u64,
    created: u32,
    submitted: u32,
    completed: u32,
}

impl Driver {
    fn new() -> Self {
        let queue = || Queue { phase: true, ..Queue::default() };
        let queues = [queue(), queue()];
        Self { bar: 0, queues, data: 0, created: 0, submitted: 0, completed: 0 }
    }

    fn start(&mut self, cx: &mut HostContext<'_>) {
        self.bar = cx.device("drive").expect("it is there").1.bars[0].expect("registers").0;
        for queue in &mut self.queues {
            queue.submission = cx.memory().alloc(PAGE, PAGE).expect("memory");
            queue.completion = cx.memory().alloc(PAGE, PAGE).expect("memory");
        }
        self.data = cx.memory().alloc(2 * u64::from(COMMANDS) * BYTES, PAGE).expect("memory");
        for byte in 0..u64::from(COMMANDS) * BYTES / 8 {
            let value = byte.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            cx.memory().write(self.data + byte * 8, &value.to_le_bytes());
        }
        let admin = (self.queues[0].submission, self.queues[0].completion);
        let sizes = (ENTRIES - 1) << 16 | (ENTRIES - 1);
        cx.mmio_write(0, self.bar + regs::AQA, sizes.to_le_bytes().into());
        cx.mmio_write(0, self.bar + regs::ASQ, admin.0.to_le_bytes().into());
        cx.mmio_write(0, self.bar + regs::ACQ, admin.1.to_le_bytes().into());
        cx.mmio_write(0, self.bar + regs::CC, (1u32 | 6 << 16 | 4 << 20).to_le_bytes().into());
        cx.mmio_read_register(0, self.bar + regs::CSTS, 4);
    }

    fn submit(&mut self, cx: &mut HostContext<'_>, number: usize, words: [u32; 16]) {
        let queue = &mut self.queues[number];
        let at = queue.submission + u64::from(queue.tail) * 64;
        cx.memory().write(at, &words.map(u32::to_le_bytes).concat());
        queue.tail = (queue.tail + 1) % ENTRIES;
        let doorbell = self.bar + regs::DOORBELLS + 8 * number as u64;
        cx.mmio_write(0, doorbell, queue.tail.to_le_bytes().into());
    }

    /// A command with its data pointer and dwords 10 to 12.
    fn words(head: u32, namespace: u32, prp: [u64; 2], rest: [u32; 3]) -> [u32; 16] {
        let mut words = [0; 16];
        (words[0], words[1]) = (head, namespace);
        for (place, pointer) in prp.into_iter().enumerate() {
            (words[6 + 2 * place], words[7 + 2 * place]) = (pointer as u32, (pointer >> 32) as u32);
        }
        words[10..13].copy_from_slice(&rest);
        words
    }

    fn create(&mut self, cx: &mut HostContext<'_>) {
        let of = &self.queues[1];
        let (opcode, base, flags) =
            if self.created == 0 { (5, of.completion, 3) } else { (1, of.submission, 1 << 16 | 1) };
        let size = (ENTRIES - 1) << 16 | 1;
        self.submit(cx, 0, Self::words(opcode, 0, [base, 0], [size, flags, 0]));
    }

    /// Keeps eight commands under way; what was written is flushed, and then read, when all before it is done.
    fn go_on(&mut self, cx: &mut HostContext<'_>) {
        while self.submitted < 2 * COMMANDS + 1 && self.submitted < self.completed + 8 {
            let number = self.submitted;
            if (number == COMMANDS || number == COMMANDS + 1) && self.completed < number {
                return;
            }
            self.submitted += 1;
            if number == COMMANDS {
                self.submit(cx, 1, Self::words(number << 16, 1, [0, 0], [0, 0, 0]));
                continue;
            }
            let (opcode, index, place) =
                if number < COMMANDS { (1, number, number) } else { (2, number - COMMANDS - 1, number - 1) };
            let at = self.data + u64::from(place) * BYTES;
            let words = Self::words(number << 16 | opcode, 1, [at, at + PAGE], [index * 16, 0, 15]);
            self.submit(cx, 1, words);
        }
    }

    /// Takes what is in a completion queue.
    fn reap(&mut self, cx: &mut HostContext<'_>, number: usize) {
        loop {
            let queue = &mut self.queues[number];
            let mut entry = [0; 16];
            cx.memory().read(queue.completion + u64::from(queue.head) * 16, &mut entry);
            if (entry[14] & 1 == 1) != queue.phase {
                return;
            }
            assert_eq!((entry[14] & !1, entry[15]), (0, 0), "it succeeded");
            queue.head = (queue.head + 1) % ENTRIES;
            queue.phase ^= queue.head == 0;
            let doorbell = self.bar + regs::DOORBELLS + 8 * number as u64 + 4;
            cx.mmio_write(0, doorbell, queue.head.to_le_bytes().into());
            self.done(cx, number);
        }
    }

    fn done(&mut self, cx: &mut HostContext<'_>, number: usize) {
        if number == 0 {
            self.created += 1;
            return if self.created < 2 { self.create(cx) } else { self.go_on(cx) };
        }
        self.completed += 1;
        self.go_on(cx);
        if self.completed == 2 * COMMANDS + 1 {
            let half = u64::from(COMMANDS) * BYTES;
            let (mut written, mut read) = (vec![0; half as usize], vec![0; half as usize]);
            cx.memory().read(self.data, &mut written);
            cx.memory().read(self.data + half, &mut read);
            assert!(cx.length_only() || written == read);
            cx.finished();
        }
    }
}

impl HostProgram for Driver {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => self.start(cx),
            HostEvent::MmioReadDone { result, .. } => {
                let ready = result.is_ok_and(|data| data.bytes().is_some_and(|bytes| bytes[0] & 1 == 1));
                if ready {
                    self.create(cx);
                } else {
                    cx.mmio_read_register(0, self.bar + regs::CSTS, 4);
                }
            }
            HostEvent::Interrupt { vector, .. } => {
                assert_eq!(vector, 0);
                self.reap(cx, 0);
                self.reap(cx, 1);
            }
            HostEvent::Message { .. }
            | HostEvent::Wire { .. }
            | HostEvent::MmioWriteAccepted { .. }
            | HostEvent::PortInterrupt { .. }
            | HostEvent::Timer { .. } => {}
        }
    }
}

fn run(interrupts: InterruptPolicy, fidelity: Fidelity, cache: u64, bad: bool) -> u64 {
    let mut bench = Bench::new();
    bench.config.fidelity = fidelity;
    bench.config.host.interrupts = interrupts;
    bench.config.host.latency = ns(50);
    let switch = bench.switch("sw0", "host.rp0", 3, 4);
    if bad {
        let numerator = u64::MAX / 100_000;
        for direction in [Direction::Up, Direction::Down] {
            switch.uplink.faults.push(Fault { direction, kind: FaultKind::BitErrors { numerator } });
        }
    }
    let config = NvmeConfig { cache, ready: Duration::from_us(5), ..NvmeConfig::default() };
    let media = config.sparse_media();
    bench.device("drive", "sw0", 3, 4).model(Box::new(Nvme::new(config, media)));
    bench.finishing_program(Box::new(Driver::new()));
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(50)) {}
    assert_eq!(fabric.fault(), None);
    assert!(fabric.is_done());
    fabric.run_until(fabric.now() + Duration::from_us(100));
    assert_eq!((fabric.tlps_live(), fabric.refused(), fabric.unexpected_completions()), (0, 0, 0));
    watch.check_attribution(&fabric);
    fabric.trace_hash()
}

#[test]
fn a_driver_writes_a_drive_and_reads_it_back() {
    for interrupts in [InterruptPolicy::MsiX, InterruptPolicy::Msi, InterruptPolicy::Intx] {
        for cache in [0, 64 << 10] {
            run(interrupts, Fidelity::Payload, cache, false);
        }
    }
}

#[test]
fn lengths_alone_and_another_run_are_the_same() {
    let once = run(InterruptPolicy::MsiX, Fidelity::Payload, 16 << 10, true);
    assert_eq!(once, run(InterruptPolicy::MsiX, Fidelity::Payload, 16 << 10, true));
    assert_eq!(once, run(InterruptPolicy::MsiX, Fidelity::LengthOnly, 16 << 10, true));
}
