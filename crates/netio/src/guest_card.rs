//! The NetTLP adapter as functions of a virtual machine: published cards, behind whose Ethernet devices are in other processes.
//!
//! ```text
//! guest ─QEMU─vfio-user─▶ Port ─Event─▶ GuestCards ─HostOutput─▶ Adapter ─datagram─▶ device
//!   its memory, interrupts ◀─ Port ◀─Action── GuestCards ◀──Host─── Adapter ◀─datagram─┘
//! ```

use super::adapter::adapter_ports;
use super::drive::Loop;
use super::error::Error;
use super::live_fabric::refusal;
use super::open::{Kind, Network};
use super::poller::Ready;
use super::recorded::{Capture, Recorded};
use super::transport::Transport;
use super::vfio_user::VfioUser;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration as Wall, Instant};
use tlplab_device::{Action, DmaError, Event, OpId, Payload, Refusal, ReplyToken};
use tlplab_nettlp::Adapter;
use tlplab_nettlp::adapter::host::{
    Answer, Host, HostInterrupt, HostOutput, HostRead, HostReadId, HostWrite, MmioAccess, MmioToken,
};
use tlplab_nettlp::adapter::{AdapterConfig, DeviceConfig, FunctionKind, INTERRUPTS, MsixHome, card_layout};
use tlplab_units::{Bdf, Duration, Time};
use tlplab_vfio::Port;

/// A function of a virtual machine, and what is under way for it.
struct Card {
    socket: VfioUser,
    reads: BTreeMap<OpId, HostReadId>,
    /// The guest's writes to BARs and command register, as the adapter knows them.
    configured: Option<([u64; 6], u16)>,
}

/// Functions of a virtual machine as what is behind an adapter.
pub struct GuestCards {
    cards: Vec<Card>,
    outputs: VecDeque<HostOutput>,
    accesses: BTreeMap<MmioToken, (usize, Option<ReplyToken>)>,
    next_token: u64,
}

impl GuestCards {
    fn new(sockets: Vec<VfioUser>) -> Self {
        let card = |socket| Card { socket, reads: BTreeMap::new(), configured: None };
        Self {
            cards: sockets.into_iter().map(card).collect(),
            outputs: VecDeque::new(),
            accesses: BTreeMap::new(),
            next_token: 0,
        }
    }

    /// Takes what the guest does with a function.
    fn take_events(&mut self, device: usize) {
        while let Some(event) = self.cards[device].socket.take_event() {
            match event {
                Event::MmioRead { bar, offset, bytes, reply } => {
                    self.access(device, bar, offset, MmioAccess::Read(bytes), Some(reply));
                }
                Event::MmioWrite { bar, offset, data } => {
                    self.access(device, bar, offset, MmioAccess::Write(data), None);
                }
                Event::DmaReadDone { op, result } => {
                    if let Some(id) = self.cards[device].reads.remove(&op) {
                        let result = result.map_err(|error| refusal(&error));
                        self.outputs.push_back(HostOutput::ReadDone { id, result });
                    }
                }
                // The device elsewhere is not told; what it has asked for is refused.
                Event::Reset => {
                    self.accesses.retain(|_, (of, _)| *of != device);
                    for (_, id) in std::mem::take(&mut self.cards[device].reads) {
                        let result = Err(Refusal::CompleterAbort);
                        self.outputs.push_back(HostOutput::ReadDone { id, result });
                    }
                }
                Event::Start | Event::DmaWriteAccepted { .. } | Event::Timer { .. } => {}
            }
        }
    }

    fn access(&mut self, device: usize, bar: u8, offset: u64, access: MmioAccess, reply: Option<ReplyToken>) {
        let token = MmioToken(self.next_token);
        self.next_token += 1;
        self.accesses.insert(token, (device, reply));
        self.outputs.push_back(HostOutput::Mmio { token, device, bar, offset, access });
    }

    fn act(&mut self, device: usize, action: Action) {
        let socket = &mut self.cards[device].socket;
        let now = socket.now();
        socket.act(now, action);
        self.take_events(device);
    }
}

impl Host for GuestCards {
    fn read(&mut self, _: Time, request: HostRead) -> Answer {
        let card = &mut self.cards[request.device];
        let op = card.socket.port.next_op();
        card.reads.insert(op, request.id);
        let (address, bytes) = (request.address, request.bytes.into());
        self.act(request.device, Action::DmaRead { op, stream: 0, address, bytes, carry: true });
        Answer::Later
    }

    fn write(&mut self, _: Time, write: HostWrite) {
        let op = self.cards[write.device].socket.port.next_op();
        self.act(write.device, Action::DmaWrite { op, stream: 0, address: write.address, data: write.data });
    }

    fn interrupt(&mut self, _: Time, interrupt: HostInterrupt) {
        if let Some(vector) = interrupt.vector {
            self.act(interrupt.device, Action::Msix { stream: 0, vector });
        }
    }

    /// Everything but interrupts and the cards is the guest's to answer for.
    fn claims(&self, address: u64, bytes: u32) -> bool {
        let end = address.saturating_add(bytes.max(1).into());
        let meets = |start: u64, bytes: u64| address < start.saturating_add(bytes) && end > start;
        let bars = self.cards.iter().flat_map(|card| card.socket.port.space().bars());
        !meets(INTERRUPTS.start, INTERRUPTS.end - INTERRUPTS.start)
            && !bars.flatten().any(|bar| meets(bar.base, bar.size))
    }

    fn poll(&mut self, _: Time) -> Option<HostOutput> {
        self.outputs.pop_front()
    }

    fn mmio_done(&mut self, _: Time, token: MmioToken, result: Result<Payload, DmaError>) {
        let Some((device, Some(reply))) = self.accesses.remove(&token) else { return };
        let action = match result {
            Ok(data) => Action::Reply { token: reply, data },
            Err(error) => Action::ReplyError { token: reply, refusal: refusal(&error) },
        };
        self.act(device, action);
        self.cards[device].socket.transmit();
    }

    fn deadline(&self) -> Option<Time> {
        (!self.outputs.is_empty()).then_some(Time::ZERO)
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn rebase(&mut self, _: Duration) {}
}

/// Cards in a virtual machine, with their devices elsewhere. Between them the adapter is a switch.
pub struct CardServer {
    driven: Loop<Adapter<GuestCards>, Box<dyn Transport>>,
    ready: Ready,
    datagrams: Option<Capture>,
}

/// A card, and its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardPlace {
    /// Its socket.
    pub path: PathBuf,
    /// Its device's address.
    pub peer: Ipv4Addr,
    /// The guest's name of the function: bus, device, function.
    pub id: Bdf,
    /// Bytes of BAR 4.
    pub window: u64,
    /// Bytes of BAR 2, which has only the MSI-X table.
    pub table: u64,
}

impl CardServer {
    /// Cards of an adapter at the address `local`. `datagrams` is a file for what passes on the network.
    ///
    /// # Errors
    /// The sockets' or the network's; a window that no BAR can have, or two cards with one device.
    pub fn open(local: Ipv4Addr, places: &[CardPlace], datagrams: Option<&Path>) -> Result<Self, Error> {
        let setup = |failure: &dyn std::fmt::Display| Error::Setup(failure.to_string());
        let msix = MsixHome::Bar2;
        let device = |place: &CardPlace| DeviceConfig {
            function: FunctionKind::Card { window: place.window, msix },
            ..DeviceConfig::card(place.peer, place.id)
        };
        let config = AdapterConfig::new(local, places.iter().map(device).collect());
        let layouts = places.iter().map(|place| card_layout(place.window, msix, place.table));
        let layouts = layouts.collect::<Result<Vec<_>, _>>().map_err(|failure| setup(&failure))?;
        let network = Network { kind: Kind::Udp, local, interface: None };
        let peers = places.iter().map(|place| place.peer).collect();
        let opened = network.open_for(adapter_ports().collect(), peers, config.mps.bytes() as usize);
        let mut transport = opened?;
        let datagrams = datagrams.map(Capture::create).transpose().map_err(|why| setup(&why))?;
        if let Some(capture) = &datagrams {
            transport = Box::new(Recorded::new(transport, local, capture.clone()));
        }
        let mut sockets = Vec::new();
        for (number, (place, layout)) in places.iter().zip(&layouts).enumerate() {
            let port = Port::new(layout).map_err(|failure| setup(&failure))?;
            sockets.push(VfioUser::beside(&place.path, port, transport.poller(), number)?);
        }
        let adapter = Adapter::new(config, GuestCards::new(sockets)).map_err(|failure| setup(&failure))?;
        Ok(Self { driven: Loop::new(adapter, transport), ready: Ready::default(), datagrams })
    }

    /// The adapter, with the functions behind it.
    pub fn adapter(&self) -> &Adapter<GuestCards> {
        &self.driven.engine
    }
    /// The function of a card.
    pub fn function(&mut self, device: usize) -> Option<&mut VfioUser> {
        self.driven.engine.host_mut().cards.get_mut(device).map(|card| &mut card.socket)
    }
    /// The number of cards.
    pub fn cards(&self) -> usize {
        self.driven.engine.host().cards.len()
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
            for device in 0..self.cards() {
                let host = self.driven.engine.host_mut();
                host.cards[device].socket.turn(&self.ready)?;
                host.take_events(device);
                self.configure(device);
            }
            self.driven.turn(Some(&self.ready))?;
            self.driven.engine.host_mut().cards.iter_mut().for_each(|card| card.socket.transmit());
        }
        Ok(())
    }

    /// The adapter hears of what the guest has written to the function's registers.
    fn configure(&mut self, device: usize) {
        let adapter = &mut self.driven.engine;
        let card = &mut adapter.host_mut().cards[device];
        let space = card.socket.port.space();
        let command = u16::from_le_bytes([space.bytes()[4], space.bytes()[5]]);
        let bases = space.base_addresses().map(|bar| bar.map_or(0, |bar| bar.base));
        if card.configured.replace((bases, command)) != Some((bases, command)) {
            adapter.configure(device, &bases, command);
        }
    }

    /// Ends the captures, if there are any.
    ///
    /// # Errors
    /// They could not be written.
    pub fn finish(&mut self) -> Result<(), Error> {
        let datagrams = self.datagrams.take().map_or(Ok(()), |capture| capture.finish());
        for card in &mut self.driven.engine.host_mut().cards {
            card.socket.finish_capture()?;
        }
        datagrams.map_err(|why| Error::Setup(why.to_string()))
    }
}
