//! The kernel's side as it behaves (`arch/um/kernel/time.c`, `virtio_uml.c`, `virtio_pcidev.c`): a program that waits where the kernel waits,
//! over two sockets and a back channel that are read in any order, with the engine at their other ends.

use crate::dialogue::{
    GET, KICK, REPLY_WANTED, REQUEST, START, Said, UPDATE, WAIT, calendar_message, command, device_message,
    longs, pair,
};
use crate::memory::Memory;
use crate::ring::{Part, Ring};
use crate::script::Script;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tlplab_uml::pcidev::Access;
use tlplab_uml::vhost::Header;
use tlplab_uml::{Guest, Interrupt, Machine as _};
use tlplab_units::Time;

/// What a program does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Offers these accesses, rings the bell, and waits until it is answered.
    Bell(Vec<Access>),
    /// Sleeps for so many nanoseconds, and takes the interrupts that come.
    Sleep(u64),
    /// Asks for the time.
    Look,
}

/// What the kernel sees, with the time that its clock shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// An access is over: its number and what it brought.
    Over(usize, Vec<u8>),
    /// The bell is answered.
    Answered,
    Interrupt(Interrupt),
    /// It has slept enough.
    Awake,
    /// The calendar says what time it is.
    Time,
}

/// Both directions of what lies between kernel and engine, and the memory that both see.
struct Between {
    to_calendar: VecDeque<[u8; 16]>,
    to_device: VecDeque<Vec<u8>>,
    to_back: VecDeque<Vec<u8>>,
    from_calendar: VecDeque<Said>,
    from_device: VecDeque<Said>,
    from_back: VecDeque<Said>,
    memory: Memory,
}

type Shared = Rc<RefCell<Between>>;

struct Kernel {
    between: Shared,
    commands: Ring,
    interrupts: Ring,
    /// Which socket it looks at first while it waits for a bell's answer. The kernel: the device's.
    calendar_first: bool,
    time: u64,
    propagated: u64,
    requested: Option<u64>,
    sequence: u32,
    called: bool,
    accesses: usize,
    seen: Vec<(u64, Seen)>,
}

impl Kernel {
    fn new(between: Shared, buffers: u16, calendar_first: bool) -> Self {
        let (commands, interrupts) = {
            let memory = &mut between.borrow_mut().memory;
            (Ring::new(memory, 0, 32, 512), Ring::new(memory, 1, buffers, 64))
        };
        Self {
            between,
            commands,
            interrupts,
            calendar_first,
            time: 0,
            propagated: 0,
            requested: None,
            sequence: 0,
            called: false,
            accesses: 0,
            seen: Vec::new(),
        }
    }

    fn see(&mut self, seen: Seen) {
        self.seen.push((self.time, seen));
    }

    fn set_time(&mut self, time: u64) {
        assert!(time >= self.time, "time travel: time goes backwards {} -> {time}", self.time);
        self.time = time;
    }

    /// Hears a message of the calendar that is not an answer: leave to run.
    fn handle_run(&mut self, said: &Said) {
        let Said::Run { sequence, time } = *said else { panic!("{said:?} comes unasked") };
        self.set_time(time);
        self.requested = None;
        self.between.borrow_mut().to_calendar.push_back(calendar_message(0, sequence, 0));
    }

    /// Asks the calendar and reads until it has the answer.
    async fn ask(&mut self, operation: u32, time: u64) -> u64 {
        self.sequence += 1;
        let message = calendar_message(operation, self.sequence, time);
        self.between.borrow_mut().to_calendar.push_back(message);
        loop {
            let said = self.read(|between| between.from_calendar.pop_front()).await;
            if let Said::Ack { sequence, time } = said {
                assert_eq!(sequence, self.sequence, "ACK message has different seqno");
                return time;
            }
            self.handle_run(&said);
        }
    }

    async fn read<T>(&self, take: impl Fn(&mut Between) -> Option<T>) -> T {
        poll_fn(|_| take(&mut self.between.borrow_mut()).map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Asks the device, and waits for its answer while it hears the calendar.
    async fn tell_device(&mut self, request: u32, payload: &[u8]) {
        let message = device_message(request, REPLY_WANTED, payload);
        self.between.borrow_mut().to_device.push_back(message);
        let first = self.calendar_first;
        loop {
            let said = self.read(|between| {
                let calendar = if first { between.from_calendar.pop_front() } else { None };
                calendar
                    .or_else(|| between.from_device.pop_front())
                    .or_else(|| between.from_calendar.pop_front())
            });
            let said = said.await;
            if let Said::Answer { request: answered, number } = said {
                assert_eq!((answered, number), (request, 0));
                return;
            }
            self.handle_run(&said);
        }
    }

    async fn ring_bell(&mut self, queue: u64) {
        if self.propagated != self.time {
            self.propagated = self.time;
            self.ask(UPDATE, self.time).await;
        }
        self.tell_device(KICK, &longs(&[queue])).await;
    }

    async fn request(&mut self, time: u64) {
        if self.requested != Some(time) {
            self.requested = Some(time);
            self.ask(REQUEST, time).await;
        }
    }

    /// Waits for leave to run, and is called meanwhile.
    async fn wait(&mut self, until: u64) {
        self.request(until).await;
        self.requested = None;
        self.ask(WAIT, u64::MAX).await;
        loop {
            let said = self
                .read(|between| between.from_calendar.pop_front().or_else(|| between.from_back.pop_front()));
            match said.await {
                Said::Call { queue } => {
                    assert_eq!(queue, 1);
                    self.called = true;
                    let now = self.ask(GET, u64::MAX).await;
                    self.set_time(now);
                    self.request(now).await;
                    let answer = device_message(4, 1 | 1 << 2, &longs(&[0]));
                    self.between.borrow_mut().to_back.push_back(answer);
                }
                said => {
                    self.handle_run(&said);
                    return;
                }
            }
        }
    }

    async fn start(&mut self) {
        self.ask(START, 0).await;
        for queue in 0..2 {
            let ring = if queue == 0 { &self.commands } else { &self.interrupts };
            let addresses = longs(&[queue, ring.descriptors, ring.used, ring.available, 0]);
            let size = ring.size.into();
            self.tell_device(8, &pair(queue as u32, size)).await;
            self.tell_device(10, &pair(queue as u32, 0)).await;
            self.tell_device(9, &addresses).await;
            self.tell_device(18, &pair(queue as u32, 1)).await;
        }
        for _ in 0..self.interrupts.size {
            self.interrupts.offer(&mut self.between.borrow_mut().memory, &[Part::Room(64)]);
        }
        self.ring_bell(1).await;
    }

    async fn bell(&mut self, accesses: &[Access]) {
        for access in accesses {
            let parts = match access {
                Access::ConfigRead { offset, bytes } => {
                    vec![Part::Sent(command(1, 0, *bytes, (*offset).into(), &[])), Part::Room(*bytes)]
                }
                Access::MemoryRead { address, bytes } => {
                    vec![Part::Sent(command(3, 7, *bytes, *address, &[])), Part::Room(*bytes)]
                }
                Access::ConfigWrite { offset, data } => {
                    let bytes = data.len() as u32;
                    vec![Part::Sent(command(2, 0, bytes, (*offset).into(), data))]
                }
                Access::MemoryWrite { address, data } => {
                    let header = command(4, 7, data.len() as u32, *address, &[]);
                    vec![Part::Sent(header), Part::Sent(data.clone())]
                }
            };
            self.commands.offer(&mut self.between.borrow_mut().memory, &parts);
        }
        self.ring_bell(0).await;
        for _ in accesses {
            let (_, data) = self.commands.done(&self.between.borrow().memory).expect("the bell was answered");
            self.see(Seen::Over(self.accesses, data));
            self.accesses += 1;
        }
        assert!(self.commands.done(&self.between.borrow().memory).is_none());
        self.see(Seen::Answered);
    }

    async fn take_interrupts(&mut self) {
        if !std::mem::take(&mut self.called) {
            return;
        }
        let mut taken = 0;
        while let Some((_, bytes)) = { self.interrupts.done(&self.between.borrow().memory) } {
            let interrupt = match bytes[0] {
                7 => Interrupt::Message { data: u32::from_le_bytes(bytes[16..].try_into().expect("4 B")) },
                op => {
                    assert_eq!((op, bytes.len()), (6, 16));
                    Interrupt::Wire
                }
            };
            self.see(Seen::Interrupt(interrupt));
            self.interrupts.offer(&mut self.between.borrow_mut().memory, &[Part::Room(64)]);
            taken += 1;
        }
        assert!(taken > 0, "a call without an interrupt");
        self.ring_bell(1).await;
    }

    async fn sleep(&mut self, ns: u64) {
        let until = self.time + ns;
        loop {
            self.wait(until.max(self.time)).await;
            let called = self.called;
            self.take_interrupts().await;
            if self.time >= until && !called {
                return self.see(Seen::Awake);
            }
        }
    }

    async fn run(&mut self, program: &[Step]) {
        self.start().await;
        for step in program {
            match step {
                Step::Bell(accesses) => self.bell(accesses).await,
                Step::Sleep(ns) => self.sleep(*ns).await,
                Step::Look => {
                    let now = self.ask(GET, u64::MAX).await;
                    self.set_time(now);
                    self.see(Seen::Time);
                }
            }
        }
    }
}

/// How the sockets are read: whoever may go on next, the choice says.
pub(crate) struct Choices<'a> {
    pub(crate) choices: &'a [u8],
    pub(crate) calendar_first: bool,
}

/// What comes of a program.
pub(crate) struct Outcome {
    /// What the kernel saw, and when.
    pub(crate) seen: Vec<(u64, Seen)>,
    /// All that the engine said.
    pub(crate) said: Vec<Said>,
    /// What the machine did.
    pub(crate) done: Vec<(Access, Time)>,
}

/// Who can go on.
#[derive(Clone, Copy, Debug)]
enum Who {
    Kernel,
    Calendar,
    Device,
    Back,
}

/// Runs a program of a kernel that has `buffers` for interrupts.
pub(crate) fn run(program: &[Step], mut machine: Script, buffers: u16, order: &Choices<'_>) -> Outcome {
    let between = Rc::new(RefCell::new(Between {
        to_calendar: VecDeque::new(),
        to_device: VecDeque::new(),
        to_back: VecDeque::new(),
        from_calendar: VecDeque::new(),
        from_device: VecDeque::new(),
        from_back: VecDeque::new(),
        memory: Memory::new(),
    }));
    let mut kernel = Kernel::new(between.clone(), buffers, order.calendar_first);
    let (mut engine, mut said) = (Guest::new(), Vec::new());
    let mut context = Context::from_waker(Waker::noop());
    let mut choices = order.choices.iter().copied().chain(std::iter::repeat(0));
    {
        let mut running = pin!(kernel.run(program));
        // The kernel may have something to hear.
        let mut stirs = true;
        loop {
            while let Some(output) = engine.poll_output() {
                let what = Said::read(&output);
                said.push(what.clone());
                let mut between = between.borrow_mut();
                match what {
                    Said::Ack { .. } | Said::Run { .. } => between.from_calendar.push_back(what),
                    Said::Answer { .. } => between.from_device.push_back(what),
                    Said::Call { .. } => between.from_back.push_back(what),
                    other => panic!("{other:?} is out of place"),
                }
                stirs = true;
            }
            if engine.waits() {
                // In one stride, or in short ones.
                let stride = choices.next().expect("without end");
                let soon = Time::from_fs(
                    (machine.now().as_fs().div_ceil(1_000_000) + u64::from(stride)) * 1_000_000,
                );
                let limit = if stride % 2 == 0 { Time::NEVER } else { soon };
                engine.advance(&mut machine, &mut between.borrow_mut().memory, limit).expect("it goes on");
                continue;
            }
            let mut able = Vec::new();
            {
                let between = between.borrow();
                able.extend(stirs.then_some(Who::Kernel));
                able.extend((!between.to_calendar.is_empty()).then_some(Who::Calendar));
                able.extend((!between.to_device.is_empty()).then_some(Who::Device));
                able.extend((!between.to_back.is_empty()).then_some(Who::Back));
            }
            assert!(!able.is_empty(), "kernel and engine wait for each other");
            let choice = usize::from(choices.next().expect("without end"));
            match able[choice % able.len()] {
                Who::Kernel => {
                    stirs = false;
                    if running.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                }
                Who::Calendar => {
                    let message = between.borrow_mut().to_calendar.pop_front().expect("a message");
                    engine.handle_calendar(&mut machine, &message).expect("it keeps to the protocol");
                }
                Who::Device => {
                    let message = between.borrow_mut().to_device.pop_front().expect("a message");
                    let (header, payload) = message.split_first_chunk().expect("a header");
                    let header = Header::parse(header).expect("a header");
                    engine.handle_device(header, payload, 0).expect("it keeps to the protocol");
                }
                Who::Back => {
                    let answer = between.borrow_mut().to_back.pop_front().expect("an answer");
                    let answer = answer.as_slice().try_into().expect("20 B");
                    engine.handle_call_answer(answer).expect("it keeps to the protocol");
                }
            }
        }
    }
    Outcome { seen: kernel.seen, said, done: machine.done }
}
