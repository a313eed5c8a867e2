//! A driver without a link: one host program, some devices, memory, and fixed delays. Reads take turns in how long they take, so
//! that they end in another order than they began.

use std::collections::BTreeMap;
use tlplab_device::*;
use tlplab_units::{Bdf, Duration, Time};

enum Happening {
    Device(usize, Event),
    Host(HostEvent),
    /// A DMA read reaches memory.
    Fetch(usize, OpId, u64, u64, bool),
    /// A DMA write reaches memory or a peer.
    Store(u64, Payload),
    /// The handler of a device's pin is called because it was raised for the nth time, and again while it stays so.
    Handler(usize, u64),
    /// It is called because of somebody else.
    Stranger(usize),
}

pub(crate) struct Ideal {
    pub(crate) now: Time,
    pub(crate) ram: HostRam,
    pub(crate) infos: Vec<DeviceInfo>,
    pub(crate) devices: Vec<Box<dyn Device>>,
    pub(crate) program: Option<Box<dyn HostProgram>>,
    pub(crate) length_only: bool,
    /// Every DMA or MMIO operation: when, what, where, how long.
    pub(crate) log: Vec<(Time, &'static str, u64, u64)>,
    pub(crate) interrupts: u64,
    /// The vectors of the messages, in order.
    pub(crate) messages: Vec<u16>,
    pub(crate) mode: InterruptMode,
    /// Others share the pin's wire and raise it, too.
    pub(crate) strangers: bool,
    /// Level of the interrupt pin.
    pub(crate) pin: bool,
    pub(crate) finished: usize,
    pub(crate) faults: Vec<String>,
    /// Reads of this address fail.
    pub(crate) poison: Option<u64>,
    /// The next write of the program to this offset of a BAR is lost.
    pub(crate) lose: Option<u64>,
    /// Most operations of the devices under way at once.
    pub(crate) most_in_flight: usize,
    in_flight: usize,
    agenda: BTreeMap<(Time, u64), Happening>,
    sequence: u64,
    next_op: Vec<u64>,
    host_op: u64,
    waiting: BTreeMap<u64, OpId>,
    next_token: u64,
    /// What the device answered to a read by the test itself.
    answer: Option<Payload>,
    started: bool,
}

/// Of a read by the test itself.
const OWN: ReplyToken = ReplyToken(u64::MAX);

impl Ideal {
    pub(crate) fn new(length_only: bool) -> Self {
        Self {
            now: Time::ZERO,
            ram: HostRam::new(0x10_0000, 1 << 30),
            infos: vec![],
            devices: vec![],
            program: None,
            length_only,
            log: vec![],
            interrupts: 0,
            messages: vec![],
            mode: InterruptMode::MsiX,
            strangers: false,
            pin: false,
            finished: 0,
            faults: vec![],
            poison: None,
            lose: None,
            most_in_flight: 0,
            in_flight: 0,
            agenda: BTreeMap::new(),
            sequence: 0,
            next_op: vec![],
            host_op: 0,
            waiting: BTreeMap::new(),
            next_token: 0,
            answer: None,
            started: false,
        }
    }

    pub(crate) fn device(mut self, name: &str, device: impl Device + 'static) -> Self {
        let identity = device.identity();
        identity.check().expect("a possible identity");
        let index = self.devices.len() as u64;
        let mut bars = [None; 6];
        for bar in &identity.bars {
            bars[usize::from(bar.index)] =
                Some((0xF000_0000_0000 + (index << 40) + (u64::from(bar.index) << 36), bar.size));
        }
        let ids = (identity.vendor, identity.device);
        self.infos.push(DeviceInfo {
            name: name.into(),
            id: Bdf(index as u16 + 1),
            ids,
            own_vendor: tlplab_device::VENDOR_ID,
            bars,
            interrupts: InterruptMode::Disabled,
        });
        self.devices.push(Box::new(device));
        self.next_op.push(0);
        self
    }

    pub(crate) fn host(mut self, program: impl HostProgram + 'static) -> Self {
        self.program = Some(Box::new(program));
        self
    }

    fn at(&mut self, after: Duration, happening: Happening) {
        self.agenda.insert((self.now + after, self.sequence), happening);
        self.sequence += 1;
    }

    /// Runs until nothing happens, or until `stop`.
    pub(crate) fn run(&mut self, stop: Time) {
        if !std::mem::replace(&mut self.started, true) {
            self.start();
        }
        self.work(stop);
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        self.run(until);
        self.now = until;
    }

    /// A timer of a device, or of the program, that is over now.
    pub(crate) fn wake(&mut self, index: usize, id: u64) {
        self.at(Duration::ZERO, Happening::Device(index, Event::Timer { id }));
    }
    pub(crate) fn wake_host(&mut self, id: u64) {
        self.at(Duration::ZERO, Happening::Host(HostEvent::Timer { id }));
    }

    /// The test reads or writes a device as the processor would, at once.
    pub(crate) fn read(&mut self, bar: u8, offset: u64, bytes: u32) -> Payload {
        self.tell(0, Event::MmioRead { bar, offset, bytes, reply: OWN });
        self.answer.take().expect("it answers at once")
    }
    pub(crate) fn write(&mut self, bar: u8, offset: u64, data: Payload) {
        self.tell(0, Event::MmioWrite { bar, offset, data });
    }

    fn start(&mut self) {
        for index in 0..self.devices.len() {
            self.infos[index].interrupts = self.mode;
            self.at(Duration::ZERO, Happening::Device(index, Event::Start));
            if self.mode == InterruptMode::Intx && self.strangers {
                self.at(Duration::ZERO, Happening::Stranger(index));
            }
        }
        self.at(Duration::ZERO, Happening::Host(HostEvent::Start));
    }

    fn work(&mut self, stop: Time) {
        while let Some((&(time, _), _)) = self.agenda.first_key_value().filter(|((time, _), _)| *time <= stop)
        {
            self.now = time;
            let (_, happening) = self.agenda.pop_first().expect("just seen");
            match happening {
                Happening::Device(index, event) => self.tell(index, event),
                Happening::Host(event) => self.tell_host(event),
                Happening::Fetch(index, op, address, bytes, carry) => {
                    let result = if self.poison == Some(address) {
                        Err(tlplab_transaction::CompletionError::Poisoned { address }.into())
                    } else if self.length_only && !carry {
                        Ok(Payload::Length(bytes))
                    } else {
                        let mut data = vec![0; bytes as usize];
                        self.ram.read(address, &mut data);
                        Ok(data.into())
                    };
                    self.tell(index, Event::DmaReadDone { op, result });
                }
                Happening::Handler(index, raised) => {
                    if self.pin && raised == self.interrupts {
                        self.tell_host(HostEvent::Interrupt { device: index, vector: 0 });
                        self.at(Duration::from_us(2), Happening::Handler(index, raised));
                    }
                }
                Happening::Stranger(index) => {
                    self.tell_host(HostEvent::Interrupt { device: index, vector: 0 });
                    if self.finished == 0 {
                        self.at(Duration::from_ns(1700), Happening::Stranger(index));
                    }
                }
                Happening::Store(address, data) => match self.claim(address) {
                    Some((index, bar, offset)) => self.tell(index, Event::MmioWrite { bar, offset, data }),
                    None => {
                        if let Some(bytes) = data.bytes() {
                            self.ram.write(address, bytes);
                        }
                    }
                },
            }
        }
    }

    fn claim(&self, address: u64) -> Option<(usize, u8, u64)> {
        self.infos.iter().enumerate().find_map(|(index, info)| {
            (0u8..6).find_map(|bar| {
                let (base, size) = info.bars[usize::from(bar)]?;
                (base..base + size).contains(&address).then(|| (index, bar, address - base))
            })
        })
    }

    pub(crate) fn tell(&mut self, index: usize, event: Event) {
        if matches!(event, Event::DmaReadDone { .. } | Event::DmaWriteAccepted { .. }) {
            self.in_flight -= 1;
        }
        let mut actions = Vec::new();
        let mut cx = Context::new(self.now, &self.infos, &mut self.next_op[index], &mut actions)
            .with_length_only(self.length_only)
            .with_interrupts(self.mode);
        self.devices[index].handle(&mut cx, event);
        for action in actions {
            self.act(index, action);
        }
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
    }

    fn act(&mut self, index: usize, action: Action) {
        let (near, far) = (Duration::from_ns(10), Duration::from_ns(100));
        match action {
            Action::DmaRead { op, address, bytes, carry, .. } => {
                self.in_flight += 1;
                self.log.push((self.now, "read", address, bytes));
                let slow = Duration::from_ns(300 * (op.0 % 3));
                self.at(far + slow, Happening::Fetch(index, op, address, bytes, carry));
            }
            Action::DmaWrite { op, address, data, .. } => {
                self.in_flight += 1;
                self.log.push((self.now, "write", address, data.len()));
                self.at(near, Happening::Device(index, Event::DmaWriteAccepted { op }));
                self.at(far, Happening::Store(address, data));
            }
            Action::Msix { vector, .. } => {
                let identity = self.devices[index].identity();
                match self.mode {
                    InterruptMode::MsiX => assert!(vector < identity.msix_vectors),
                    // Software grants one, and the function folds its vectors onto it.
                    InterruptMode::Msi => assert!(identity.msi_vectors > 0),
                    InterruptMode::Intx | InterruptMode::Disabled => panic!("no messages may be sent"),
                }
                let vector = if self.mode == InterruptMode::Msi { 0 } else { vector };
                self.interrupts += 1;
                self.messages.push(vector);
                self.at(far, Happening::Host(HostEvent::Interrupt { device: index, vector }));
            }
            Action::Intx { asserted, .. } => {
                assert!(self.devices[index].identity().intx);
                assert!(matches!(self.mode, InterruptMode::Intx | InterruptMode::Disabled));
                assert_ne!(asserted, self.pin, "the level changes");
                self.pin = asserted;
                if asserted {
                    self.interrupts += 1;
                    self.at(far, Happening::Handler(index, self.interrupts));
                }
            }
            Action::Reply { token: OWN, data } => self.answer = Some(data),
            Action::Reply { token, data } => {
                let op = self.waiting.remove(&token.0).expect("answered once");
                self.at(far, Happening::Host(HostEvent::MmioReadDone { op, result: Ok(data) }));
            }
            Action::ReplyError { token, .. } => {
                let op = self.waiting.remove(&token.0).expect("answered once");
                let error = tlplab_transaction::CompletionError::UnsupportedRequest { address: 0 };
                self.at(far, Happening::Host(HostEvent::MmioReadDone { op, result: Err(error.into()) }));
            }
            Action::Timer { at, id } => {
                let after = at - self.now;
                self.at(after, Happening::Device(index, Event::Timer { id }));
            }
            Action::SetConfig { .. } => panic!("no built-in device changes what it is"),
            Action::Finished => self.finished += 1,
            Action::Fault(why) => self.faults.push(why),
        }
    }

    fn tell_host(&mut self, event: HostEvent) {
        let Some(program) = &mut self.program else { return };
        let mut actions = Vec::new();
        let (now, length_only) = (self.now, self.length_only);
        let mut cx = HostContext::new(now, &self.infos, &mut self.ram, &mut self.host_op, &mut actions)
            .with_length_only(length_only);
        program.handle(&mut cx, event);
        let far = Duration::from_ns(100);
        for action in actions {
            match action {
                HostAction::MmioRead { op, address, bytes, .. } => {
                    self.log.push((now, "mmio read", address, bytes));
                    let (index, bar, offset) = self.claim(address).expect("an address of a device");
                    let reply = ReplyToken(self.next_token);
                    self.next_token += 1;
                    self.waiting.insert(reply.0, op);
                    let event = Event::MmioRead { bar, offset, bytes: bytes as u32, reply };
                    self.at(far, Happening::Device(index, event));
                }
                HostAction::MmioWrite { op, address, data, .. } => {
                    self.log.push((now, "mmio write", address, data.len()));
                    self.at(Duration::from_ns(10), Happening::Host(HostEvent::MmioWriteAccepted { op }));
                    let offset = self.claim(address).map(|(_, _, offset)| offset);
                    if offset.is_some() && self.lose.take_if(|lost| Some(*lost) == offset).is_some() {
                        continue;
                    }
                    self.at(far, Happening::Store(address, data));
                }
                HostAction::Timer { at, id } => self.at(at - now, Happening::Host(HostEvent::Timer { id })),
                HostAction::Finished => self.finished += 1,
                HostAction::Fault(why) => self.faults.push(why),
            }
        }
    }

    pub(crate) fn ops(&self, what: &str) -> Vec<(u64, u64)> {
        self.log.iter().filter(|entry| entry.1 == what).map(|entry| (entry.2, entry.3)).collect()
    }
    pub(crate) fn times(&self, what: &str) -> Vec<u64> {
        self.log.iter().filter(|entry| entry.1 == what).map(|entry| entry.0.as_fs()).collect()
    }
}
