//! A machine whose programs use devices behind an adapter, and the devices behind their end points.

use crate::network::{Impairment, Network, Node};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_cfgspace::{BarWindow, InterruptMode, MessageWrite};
use tlplab_device::*;
use tlplab_nettlp::adapter::host::*;
use tlplab_nettlp::adapter::{DeviceConfig, FunctionKind, MsixHome};
use tlplab_nettlp::endpoint::Window;
use tlplab_nettlp::*;
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::nettlp::{message_api, registers};

pub(crate) const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DEVICE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const ID: Bdf = Bdf(0x1B00);

/// Memory and one program. Accesses to addresses of BARs go to the adapter; its own memory takes no time.
pub(crate) struct Machine {
    now: Time,
    pub(crate) ram: HostRam,
    infos: Vec<DeviceInfo>,
    /// The BARs that the adapter has, and where.
    bars: [Option<BarWindow>; 6],
    program: Box<dyn HostProgram>,
    next_op: u64,
    agenda: VecDeque<HostEvent>,
    timers: BTreeMap<(Time, u64), u64>,
    outputs: VecDeque<HostOutput>,
    /// Accesses under way: the operation, and whether it is a read.
    waiting: BTreeMap<u64, OpId>,
    next_token: u64,
    pub(crate) interrupts: u64,
    pub(crate) finished: bool,
    pub(crate) fault: Option<String>,
}

impl Machine {
    fn settle(&mut self, now: Time) {
        self.now = now;
        while let Some(event) = self.agenda.pop_front() {
            let mut actions = Vec::new();
            let mut cx = HostContext::new(now, &self.infos, &mut self.ram, &mut self.next_op, &mut actions);
            self.program.handle(&mut cx, event);
            actions.into_iter().for_each(|action| self.carry_out(action));
        }
    }

    fn carry_out(&mut self, action: HostAction) {
        match action {
            HostAction::MmioRead { op, address, bytes, .. } => {
                self.access(op, address, MmioAccess::Read(bytes as u32));
            }
            HostAction::MmioWrite { op, address, data, .. } => {
                self.access(op, address, MmioAccess::Write(data));
                self.agenda.push_back(HostEvent::MmioWriteAccepted { op });
            }
            HostAction::Timer { at, id } => {
                self.timers.insert((at, self.next_op + self.timers.len() as u64), id);
            }
            HostAction::Finished => self.finished = true,
            HostAction::Fault(message) => self.fault = Some(message),
        }
    }

    fn access(&mut self, op: OpId, address: u64, access: MmioAccess) {
        let found = (0u8..).zip(&self.bars).find_map(|(bar, place)| {
            let BarWindow { base, size, .. } = (*place)?;
            (address >= base && address - base < size).then(|| (bar, address - base))
        });
        let (bar, offset) = found.expect("an address of a BAR");
        let token = MmioToken(self.next_token);
        self.next_token += 1;
        if matches!(access, MmioAccess::Read(_)) {
            self.waiting.insert(token.0, op);
        }
        self.outputs.push_back(HostOutput::Mmio { token, device: 0, bar, offset, access });
    }
}

impl Host for Machine {
    fn read(&mut self, _: Time, request: HostRead) -> Answer {
        let mut data = vec![0; request.bytes as usize];
        self.ram.read(request.address, &mut data);
        Answer::Now(Ok(data.into()))
    }
    fn write(&mut self, _: Time, write: HostWrite) {
        self.ram.write(write.address, write.data.bytes().expect("bytes"));
    }
    fn interrupt(&mut self, now: Time, interrupt: HostInterrupt) {
        self.interrupts += 1;
        let vector = interrupt.vector.expect("a vector of the table");
        self.agenda.push_back(HostEvent::Interrupt { device: interrupt.device, vector });
        self.settle(now);
    }
    fn claims(&self, address: u64, _: u32) -> bool {
        address < 1 << 31
    }
    fn poll(&mut self, now: Time) -> Option<HostOutput> {
        self.settle(now);
        self.outputs.pop_front()
    }
    fn mmio_done(&mut self, now: Time, token: MmioToken, result: Result<Payload, DmaError>) {
        if let Some(op) = self.waiting.remove(&token.0) {
            self.agenda.push_back(HostEvent::MmioReadDone { op, result });
            self.settle(now);
        }
    }
    fn deadline(&self) -> Option<Time> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }
    fn handle_timeout(&mut self, now: Time) {
        while let Some(entry) = self.timers.first_entry().filter(|entry| entry.key().0 <= now) {
            let id = entry.remove();
            self.agenda.push_back(HostEvent::Timer { id });
        }
        self.settle(now);
    }
    fn rebase(&mut self, _: Duration) {}
}

/// How the function at the adapter looks, and where the MSI-X table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    Card(MsixHome),
    Own,
}

struct AdapterNode(Adapter<Machine>);
impl Node for AdapterNode {
    fn address(&self) -> Ipv4Addr {
        HOST
    }
    fn engine(&mut self) -> &mut dyn Engine {
        &mut self.0
    }
    fn turn(&mut self, _: Time) {}
}

struct DeviceNode<D>(DeviceServer<D>);
impl<D: Device> Node for DeviceNode<D> {
    fn address(&self) -> Ipv4Addr {
        DEVICE
    }
    fn engine(&mut self) -> &mut dyn Engine {
        &mut self.0
    }
    fn turn(&mut self, _: Time) {}
}

/// Both ends, and what is between.
pub(crate) struct World<D> {
    pub(crate) network: Network,
    adapter: AdapterNode,
    device: DeviceNode<D>,
}

impl<D: Device> World<D> {
    /// A device called `name` and the program that drives it.
    pub(crate) fn new(name: &str, device: D, program: impl HostProgram + 'static, looks: Looks) -> Self {
        let identity = device.identity();
        let (ids, layout) = ((identity.vendor, identity.device), device.layout());
        let function = match looks {
            Looks::Card(msix) => FunctionKind::Card { window: 256 << 20, msix },
            Looks::Own => FunctionKind::Own(identity),
        };
        let machine = Machine {
            now: Time::ZERO,
            ram: HostRam::new(0x10_0000, 1 << 24),
            infos: Vec::new(),
            bars: [None; 6],
            program: Box::new(program),
            next_op: 0,
            agenda: VecDeque::new(),
            timers: BTreeMap::new(),
            outputs: VecDeque::new(),
            waiting: BTreeMap::new(),
            next_token: 0,
            interrupts: 0,
            finished: false,
            fault: None,
        };
        let config = DeviceConfig { function, ..DeviceConfig::card(DEVICE, ID) };
        let mut adapter = Adapter::new(AdapterConfig::new(HOST, vec![config]), machine).unwrap();

        let served = adapter.devices().next().unwrap();
        let base = |bar: usize| served.bars[bar].map(|bar| bar.base);
        let (bars, vectors) = match looks {
            Looks::Own => {
                let messages = Vectors::Given(ask_for_messages(&mut adapter));
                (BarMap::own(&layout, std::array::from_fn(base)), messages)
            }
            Looks::Card(home) => {
                let window = Window { base: base(4).unwrap(), size: 256 << 20 };
                let bars = BarMap::packed(&layout, window).unwrap();
                match home {
                    MsixHome::Bar2 => (bars, Vectors::Given(ask_for_messages(&mut adapter))),
                    MsixHome::Bar4 => (bars.with_table(window), Vectors::in_window()),
                }
            }
        };
        // The program sees the device where its BARs are.
        let mut places = [None; 6];
        for (bar, window) in bars.bars().iter().filter(|(bar, _)| *bar < 6) {
            places[usize::from(*bar)] = Some((window.base, window.size));
        }
        let info = DeviceInfo {
            name: name.into(),
            id: ID,
            ids,
            own_vendor: tlplab_device::VENDOR_ID,
            bars: places,
            interrupts: InterruptMode::MsiX,
        };
        adapter.host_mut().infos.push(info);
        adapter.host_mut().bars = served.bars;
        let port = DevicePort::new(EndpointConfig::new(HOST, ID), bars, vectors);
        let device = DeviceNode(DeviceServer::new(device, port));
        Self { network: Network::new(1, Impairment::default()), adapter: AdapterNode(adapter), device }
    }

    /// Runs until the program is done, has failed, or the time is over.
    pub(crate) fn run(&mut self, time: Duration) {
        self.device.0.start(self.network.now);
        // The adapter hears of its device, and its host's software sets up what the device itself holds.
        let magic = registers::RegisterAccess {
            operation: registers::Operation::Write,
            register: registers::Register::Magic,
            data: 0,
        };
        let (from, to) =
            (SocketAddrV4::new(DEVICE, registers::PORT), SocketAddrV4::new(HOST, registers::PORT));
        self.network.send(from, to, &magic.emit()); // changes nothing, and is not answered
        let heard = self.network.now + Duration::from_us(100);
        self.network.run_until(&mut [&mut self.adapter, &mut self.device], heard);
        self.adapter.0.host_mut().agenda.push_back(HostEvent::Start);
        let end = self.network.now + time;
        while self.network.now < end && !self.machine().finished && self.machine().fault.is_none() {
            let next = self.network.now + Duration::from_us(100);
            self.network.run_until(&mut [&mut self.adapter, &mut self.device], next);
        }
    }

    pub(crate) fn machine(&self) -> &Machine {
        self.adapter.0.host()
    }
    pub(crate) fn machine_mut(&mut self) -> &mut Machine {
        self.adapter.0.host_mut()
    }
    pub(crate) fn server(&mut self) -> &mut DeviceServer<D> {
        &mut self.device.0
    }
}

/// Asks the message API for the MSI-X table, as a device does when it starts.
fn ask_for_messages(adapter: &mut Adapter<Machine>) -> Vec<MessageWrite> {
    let from = SocketAddrV4::new(DEVICE, 40_000);
    let request = message_api::Request::MsixTable.emit();
    let datagram = Datagram { from, port: message_api::PORT, payload: &request };
    adapter.handle_datagram(Time::ZERO, datagram);
    let mut buffer = [0; MAX_DATAGRAM];
    let answer = adapter.poll_transmit(Time::ZERO, &mut buffer).expect("an answer");
    assert_eq!(answer.to, from);
    let table = message_api::parse_msix_table(&buffer[..answer.len]).unwrap();
    table.iter().map(|message| MessageWrite { address: message.address, data: message.data }).collect()
}
