//! The NetTLP adapter as a function of a virtual machine: the published card, behind whose Ethernet a device is in another process.
//!
//! ```text
//! guest ─QEMU─vfio-user─▶ Port ─Event─▶ GuestCard ─HostOutput─▶ Adapter ─datagram─▶ device
//!   its memory, interrupts ◀─ Port ◀─Action── GuestCard ◀───Host─── Adapter ◀─datagram─┘
//! ```

use super::adapter::adapter_ports;
use super::drive::Loop;
use super::error::Error;
use super::open::{Kind, Network};
use super::poller::Ready;
use super::recorded::{Capture, Recorded};
use super::transport::Transport;
use super::vfio_user::VfioUser;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration as Wall, Instant};
use tlplab_device::{Action, DmaError, Event, OpId, Payload, Refusal, ReplyToken};
use tlplab_nettlp::Adapter;
use tlplab_nettlp::adapter::host::{
    Answer, Host, HostInterrupt, HostOutput, HostRead, HostReadId, HostWrite, MmioAccess, MmioToken,
};
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, FunctionKind, INTERRUPTS, MsixHome, card_layout};
use tlplab_transaction::CompletionError;
use tlplab_units::{Bdf, Duration, Time};
use tlplab_vfio::Port;

/// The one device of the adapter.
const DEVICE: usize = 0;

/// The function of a virtual machine as what is behind an adapter.
pub struct GuestCard {
    /// The function, on its socket.
    pub socket: VfioUser,
    outputs: VecDeque<HostOutput>,
    accesses: BTreeMap<MmioToken, Option<ReplyToken>>,
    reads: BTreeMap<OpId, HostReadId>,
    next_token: u64,
}

impl GuestCard {
    fn new(socket: VfioUser) -> Self {
        Self {
            socket,
            outputs: VecDeque::new(),
            accesses: BTreeMap::new(),
            reads: BTreeMap::new(),
            next_token: 0,
        }
    }

    /// Takes what the guest does.
    fn take_events(&mut self) {
        while let Some(event) = self.socket.take_event() {
            match event {
                Event::MmioRead { bar, offset, bytes, reply } => {
                    self.access(bar, offset, MmioAccess::Read(bytes), Some(reply));
                }
                Event::MmioWrite { bar, offset, data } => {
                    self.access(bar, offset, MmioAccess::Write(data), None);
                }
                Event::DmaReadDone { op, result } => {
                    if let Some(id) = self.reads.remove(&op) {
                        let result = result.map_err(|error| refusal(&error));
                        self.outputs.push_back(HostOutput::ReadDone { id, result });
                    }
                }
                // The device elsewhere is not told; what it has asked for is refused.
                Event::Reset => {
                    self.accesses.clear();
                    for (_, id) in std::mem::take(&mut self.reads) {
                        let result = Err(Refusal::CompleterAbort);
                        self.outputs.push_back(HostOutput::ReadDone { id, result });
                    }
                }
                Event::Start | Event::DmaWriteAccepted { .. } | Event::Timer { .. } => {}
            }
        }
    }

    fn access(&mut self, bar: u8, offset: u64, access: MmioAccess, reply: Option<ReplyToken>) {
        let token = MmioToken(self.next_token);
        self.next_token += 1;
        self.accesses.insert(token, reply);
        self.outputs.push_back(HostOutput::Mmio { token, device: DEVICE, bar, offset, access });
    }

    fn act(&mut self, action: Action) {
        let now = self.socket.now();
        self.socket.act(now, action);
        self.take_events();
    }
}

fn refusal(error: &DmaError) -> Refusal {
    match error {
        DmaError::Completion(CompletionError::UnsupportedRequest { .. }) | DmaError::BusMasterDisabled => {
            Refusal::UnsupportedRequest
        }
        _ => Refusal::CompleterAbort,
    }
}

impl Host for GuestCard {
    fn read(&mut self, _: Time, request: HostRead) -> Answer {
        let op = self.socket.port.next_op();
        self.reads.insert(op, request.id);
        let (address, bytes) = (request.address, request.bytes.into());
        self.act(Action::DmaRead { op, stream: 0, address, bytes, carry: true });
        Answer::Later
    }

    fn write(&mut self, _: Time, write: HostWrite) {
        let op = self.socket.port.next_op();
        self.act(Action::DmaWrite { op, stream: 0, address: write.address, data: write.data });
    }

    fn interrupt(&mut self, _: Time, interrupt: HostInterrupt) {
        if let Some(vector) = interrupt.vector {
            self.act(Action::Msix { stream: 0, vector });
        }
    }

    /// Everything but interrupts is the guest's to answer for.
    fn claims(&self, address: u64, bytes: u32) -> bool {
        let end = address.saturating_add(bytes.max(1).into());
        end <= INTERRUPTS.start || address >= INTERRUPTS.end
    }

    fn poll(&mut self, _: Time) -> Option<HostOutput> {
        self.outputs.pop_front()
    }

    fn mmio_done(&mut self, _: Time, token: MmioToken, result: Result<Payload, DmaError>) {
        let Some(Some(reply)) = self.accesses.remove(&token) else { return };
        let action = match result {
            Ok(data) => Action::Reply { token: reply, data },
            Err(error) => Action::ReplyError { token: reply, refusal: refusal(&error) },
        };
        self.act(action);
        self.socket.transmit();
    }

    fn deadline(&self) -> Option<Time> {
        (!self.outputs.is_empty()).then_some(Time::ZERO)
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn rebase(&mut self, _: Duration) {}
}

/// A card in a virtual machine, with its device elsewhere.
pub struct CardServer {
    driven: Loop<Adapter<GuestCard>, Box<dyn Transport>>,
    ready: Ready,
    configured: Option<([u64; 6], u16)>,
    datagrams: Option<Capture>,
}

/// Where a card is, and its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardPlace {
    /// The adapter's address.
    pub local: Ipv4Addr,
    /// The device's.
    pub peer: Ipv4Addr,
    /// What the guest calls the function: bus, device, function.
    pub id: Bdf,
    /// Bytes of BAR 4.
    pub window: u64,
}

impl CardServer {
    /// A card whose function is at the socket `path`. `datagrams` is a file for what passes on the network.
    ///
    /// # Errors
    /// The socket or the network's; a window that no BAR can have.
    pub fn open(path: &Path, place: CardPlace, datagrams: Option<&Path>) -> Result<Self, Error> {
        let setup = |why: String| Error::Setup(why);
        let layout =
            card_layout(place.window, MsixHome::Bar2).map_err(|failure| setup(failure.to_string()))?;
        let port = Port::new(&layout).map_err(|failure| setup(failure.to_string()))?;
        let function = FunctionKind::Card { window: place.window, msix: MsixHome::Bar2 };
        let device = DeviceConfig { function, ..DeviceConfig::card(place.peer, place.id) };
        let config = AdapterConfig::new(place.local, vec![device]);
        let network = Network { kind: Kind::Udp, local: place.local, interface: None };
        let opened =
            network.open_for(adapter_ports().collect(), vec![place.peer], config.mps.bytes() as usize);
        let mut transport = opened?;
        let datagrams = datagrams.map(Capture::create).transpose().map_err(|why| setup(why.to_string()))?;
        if let Some(capture) = &datagrams {
            transport = Box::new(Recorded::new(transport, place.local, capture.clone()));
        }
        let socket = VfioUser::beside(path, port, transport.poller())?;
        let adapter =
            Adapter::new(config, GuestCard::new(socket)).map_err(|failure| setup(failure.to_string()))?;
        let driven = Loop::new(adapter, transport);
        Ok(Self { driven, ready: Ready::default(), configured: None, datagrams })
    }

    /// The adapter, with the function behind it.
    pub fn adapter(&self) -> &Adapter<GuestCard> {
        &self.driven.engine
    }
    /// The function.
    pub fn function(&mut self) -> &mut VfioUser {
        &mut self.driven.engine.host_mut().socket
    }

    /// Serves for so long.
    ///
    /// # Errors
    /// The system's.
    pub fn serve(&mut self, wall: Wall) -> Result<(), Error> {
        let end = Instant::now() + wall;
        while Instant::now() < end {
            let until = self.driven.deadline().map_or(end, |deadline| deadline.min(end));
            self.driven.poller().clone().wait(&mut self.ready, Some(until))?;
            let card = self.driven.engine.host_mut();
            card.socket.turn(&self.ready)?;
            card.take_events();
            self.configure();
            self.driven.turn(Some(&self.ready))?;
            self.driven.engine.host_mut().socket.transmit();
        }
        Ok(())
    }

    /// The adapter hears of what the guest has written to the function's registers.
    fn configure(&mut self) {
        let space = self.driven.engine.host().socket.port.space();
        let command = u16::from_le_bytes([space.bytes()[4], space.bytes()[5]]);
        let bases = space.base_addresses().map(|bar| bar.map_or(0, |bar| bar.base));
        if self.configured.replace((bases, command)) != Some((bases, command)) {
            self.driven.engine.configure(DEVICE, &bases, command);
        }
    }

    /// Ends the captures, if there are any.
    ///
    /// # Errors
    /// They could not be written.
    pub fn finish(&mut self) -> Result<(), Error> {
        let datagrams = self.datagrams.take().map_or(Ok(()), |capture| capture.finish());
        self.function().finish_capture()?;
        datagrams.map_err(|why| Error::Setup(why.to_string()))
    }
}
