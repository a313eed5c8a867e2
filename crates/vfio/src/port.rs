//! The device contract over vfio-user, for a device that is elsewhere: events come out, actions go in.

use crate::dma::{Counters, Dma};
use crate::error::{ProtocolError, Refused};
use crate::host::{Host, Irq};
use crate::message::{Command, Header, message};
use crate::tlps::{SeenTlp, Tlps};
use std::collections::{BTreeMap, VecDeque};
use tlplab_cfgspace::{ConfigSpace, InterruptMode, Layout, LayoutError, MsixMemory, Reset};
use tlplab_device::{Action, DmaError, Event, OpId, Refusal, ReplyToken, Timers};
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::tlp::CompletionStatus;

/// The device answers a read of a BAR within this; later it reads as all ones. Below the five seconds after which QEMU gives a server up.
const COMPLETION_TIMEOUT: Duration = Duration::from_ms(2000);
/// A read that is late gets this once: perhaps the machine stood still, and the device with it.
const REPRIEVE: Duration = Duration::from_ms(10);

/// An access that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Access {
    header: Header,
    /// As it stands in command and reply: offset, region, count.
    place: [u8; 16],
    /// Data of the answer; none for a write.
    bytes: u32,
    due: Time,
    /// It was late once.
    reprieved: bool,
}

/// The news of a port for its owner.
#[derive(Clone, Debug)]
pub enum PortEvent {
    /// An event of the device contract.
    Device(Event),
    /// A read of configuration space of a function whose registers are [elsewhere](Port::registers_elsewhere); the answer is an
    /// [`Action::Reply`].
    ConfigRead {
        /// First byte.
        offset: u16,
        /// Length, within configuration space.
        bytes: u16,
        /// For the answer.
        reply: ReplyToken,
    },
    /// A write of it; once it has arrived, the answer is a reply without data.
    ConfigWrite {
        /// First byte.
        offset: u16,
        /// The data written, within configuration space.
        data: Vec<u8>,
        /// For the answer.
        reply: ReplyToken,
    },
    /// The client lets the legacy interrupt come again: [`Port::unmask_intx`], once the device has taken what was written before. A level that is
    /// about to fall is none.
    UnmaskIntx,
}

/// A function that a client, such as QEMU, has in a machine of its own; see the [crate](crate).
#[derive(Clone, Debug)]
pub struct Port {
    pub(crate) space: ConfigSpace,
    /// For a client that leaves the MSI-X table to the server.
    pub(crate) msix: Option<MsixMemory>,
    pub(crate) dma: Dma,
    pub(crate) agreed: bool,
    accesses: BTreeMap<u64, Access>,
    next_access: u64,
    timers: Timers,
    next_op: u64,
    events: VecDeque<PortEvent>,
    /// The registers of configuration space are elsewhere; `space` follows what is written.
    pub(crate) elsewhere: bool,
    out: VecDeque<Vec<u8>>,
    /// The level of the legacy interrupt, and whether the client has masked it, as it is once it was signalled.
    intx: (bool, bool),
    late: u64,
    finished: bool,
    fault: Option<String>,
}

impl Port {
    /// A function with this configuration space, which no client has yet. The device is told to start with its first event.
    ///
    /// # Errors
    /// The layout cannot be.
    pub fn new(layout: &Layout) -> Result<Self, LayoutError> {
        Ok(Self::of(ConfigSpace::new(layout)?))
    }

    /// A function whose registers are elsewhere, as in a simulated fabric, and were these after power-on. Accesses of configuration space are
    /// told, and answered by the owner; one that resets the function is told as [`Event::Reset`].
    pub fn registers_elsewhere(space: ConfigSpace) -> Self {
        Self { elsewhere: true, ..Self::of(space) }
    }

    fn of(space: ConfigSpace) -> Self {
        let msix = MsixMemory::of(&space);
        Self {
            space,
            msix,
            dma: Dma::new(Counters::default()),
            agreed: false,
            accesses: BTreeMap::new(),
            next_access: 0,
            timers: Timers::default(),
            next_op: 0,
            events: VecDeque::from([PortEvent::Device(Event::Start)]),
            elsewhere: false,
            out: VecDeque::new(),
            intx: (false, false),
            late: 0,
            finished: false,
            fault: None,
        }
    }

    /// Its configuration space.
    pub fn space(&self) -> &ConfigSpace {
        &self.space
    }
    /// Transfers and interrupts so far.
    pub fn counters(&self) -> Counters {
        self.dma.counters
    }
    /// Reads of BARs that the device did not answer in time.
    pub fn late_reads(&self) -> u64 {
        self.late
    }
    /// The way in which software lets the device interrupt.
    pub fn interrupt_mode(&self) -> InterruptMode {
        self.space.interrupt_mode()
    }
    /// True once the device has said that it is done.
    pub fn is_finished(&self) -> bool {
        self.finished
    }
    /// The reason why the device cannot go on.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Keeps the TLPs that pass from now on, of a function with this ID, to be taken: see [`SeenTlp`].
    pub fn watch_tlps(&mut self, function: Bdf) {
        self.dma.tlps = Some(Tlps::new(function));
    }
    /// The next TLP that has passed.
    pub fn take_tlp(&mut self) -> Option<SeenTlp> {
        self.dma.tlps.as_mut().and_then(Tlps::take)
    }

    /// The next event.
    pub fn take_event(&mut self) -> Option<PortEvent> {
        self.events.pop_front()
    }
    /// The next message for the client.
    pub fn take_message(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }
    /// A number for an operation of the device.
    pub fn next_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op - 1)
    }
    /// The count of operations, for a device in this process.
    pub fn op_counter(&mut self) -> &mut u64 {
        &mut self.next_op
    }

    /// A message of the client, with so many descriptors.
    ///
    /// # Errors
    /// The connection is of no more use.
    pub fn handle_message(
        &mut self,
        now: Time,
        header: &Header,
        payload: &[u8],
        descriptors: usize,
        host: &mut impl Host,
    ) -> Result<(), ProtocolError> {
        if header.is_reply {
            self.dma.handle_reply(&self.space, header, payload, &mut self.events)?;
        } else if !self.agreed && header.command != Command::Version as u16 {
            return Err(ProtocolError::NoVersion(header.command));
        } else {
            match self.command(now, header, payload, descriptors, host)? {
                Ok(Some(reply)) => self.reply(header, &reply),
                Ok(None) => {}
                Err(refused) => self.reply_error(header, refused),
            }
        }
        self.go_on(host);
        Ok(())
    }

    /// The client is gone: its memory is not there any more, and the device is reset, as by the loss of its power.
    pub fn disconnect(&mut self, host: &mut impl Host) {
        self.dma.maps.clear().iter().for_each(|range| host.unmap(range));
        self.out.clear();
        self.accesses.clear();
        let mut tlps = self.dma.tlps.take();
        tlps.iter_mut().for_each(Tlps::forget_reads);
        self.dma = Dma::new(self.dma.counters);
        self.dma.tlps = tlps;
        self.agreed = false;
        self.intx = (false, false);
        self.space.reset(Reset::Cold);
        self.reset_device();
    }

    /// The device acts.
    pub fn act(&mut self, now: Time, action: Action, host: &mut impl Host) {
        let may = self.space.command().bus_master;
        match action {
            Action::DmaRead { op, .. } | Action::DmaWrite { op, .. } if !may => {
                let result = Err(DmaError::BusMasterDisabled);
                self.tell(Event::DmaReadDone { op, result });
            }
            Action::DmaRead { op, address, bytes, .. } => self.dma.read(op, address, bytes),
            Action::DmaWrite { op, address, data, .. } => {
                if let (Some(tlps), Some(data)) = (&mut self.dma.tlps, data.bytes()) {
                    tlps.write_memory(&self.space, address, data);
                }
                self.dma.write(op, address, data);
            }
            Action::Msix { vector, .. } => self.raise(vector),
            Action::Intx { asserted, .. } => {
                if let Some(tlps) = self.dma.tlps.as_mut().filter(|_| asserted != self.intx.0) {
                    tlps.wire(self.space.bytes()[0x3D], asserted);
                }
                self.intx.0 = asserted;
                self.signal_intx();
            }
            Action::Reply { token, data } => {
                self.answer(token, data.bytes().unwrap_or(&vec![0; data.len() as usize]))
            }
            Action::ReplyError { token, refusal } => {
                if let Some(tlps) = &mut self.dma.tlps {
                    tlps.answer(&self.space, token.0, Err(status_of(refusal)));
                }
                self.answer_with_ones(token.0);
            }
            Action::Timer { at, id } => self.timers.set(at.max(now), id),
            Action::SetConfig { offset, data } => {
                if let Err(wrong) = self.space.show(offset, &data) {
                    self.fail(wrong.to_string());
                }
            }
            Action::Finished => self.finished = true,
            Action::Fault(message) => self.fail(message),
        }
        self.go_on(host);
    }

    /// The time at which [`handle_timeout`](Self::handle_timeout) is due.
    pub fn deadline(&self) -> Option<Time> {
        let access = self.accesses.values().next().map(|access| access.due);
        access.into_iter().chain(self.timers.next()).min()
    }

    /// Timers that are due ring, and reads that are not answered end.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(id) = self.timers.take_due(now) {
            self.tell(Event::Timer { id });
        }
        while let Some((token, access)) = self.accesses.first_key_value()
            && access.due <= now
        {
            let token = *token;
            if let Some(access) = self.accesses.get_mut(&token)
                && !std::mem::replace(&mut access.reprieved, true)
            {
                access.due = now + REPRIEVE;
                continue;
            }
            self.late += 1;
            self.answer_with_ones(token);
        }
    }

    /// The origin of time moves on.
    pub fn rebase(&mut self, by: Duration) {
        self.timers.rebase(by);
        self.accesses.values_mut().for_each(|access| access.due = access.due.earlier(by));
    }

    fn go_on(&mut self, host: &mut impl Host) {
        self.dma.go_on(&self.space, host, &mut self.events, &mut self.out);
    }

    fn tell(&mut self, event: Event) {
        self.events.push_back(PortEvent::Device(event));
    }

    /// A read of registers that are elsewhere.
    pub(crate) fn read_config_elsewhere(
        &mut self,
        now: Time,
        header: &Header,
        place: [u8; 16],
        offset: u16,
        bytes: u16,
    ) {
        let reply = ReplyToken(self.open_access(now, header, place, bytes.into()));
        self.events.push_back(PortEvent::ConfigRead { offset, bytes, reply });
    }

    /// A write of registers that are elsewhere.
    pub(crate) fn write_config_elsewhere(
        &mut self,
        now: Time,
        header: &Header,
        place: [u8; 16],
        offset: u16,
        data: &[u8],
    ) {
        let reply = ReplyToken(self.open_access(now, header, place, 0));
        self.events.push_back(PortEvent::ConfigWrite { offset, data: data.to_vec(), reply });
    }

    fn fail(&mut self, message: String) {
        self.fault.get_or_insert(message);
    }

    /// A reset of the function, by the client or by a register.
    pub(crate) fn reset(&mut self, reset: Reset) {
        self.space.reset(reset);
        // Nothing completes the reads under way any more.
        while let Some((token, _)) = self.accesses.first_key_value() {
            self.answer_with_ones(*token);
        }
        self.dma.cancel();
        self.intx.0 = false;
        self.reset_device();
    }

    fn reset_device(&mut self) {
        self.timers.clear();
        if !self.elsewhere {
            self.events.clear();
        }
        if let Some(memory) = &mut self.msix {
            memory.table.reset();
        }
        self.tell(Event::Reset);
    }

    /// A read of a BAR reaches the device.
    pub(crate) fn read_bar(
        &mut self,
        now: Time,
        header: &Header,
        place: [u8; 16],
        bar: u8,
        offset: u64,
        bytes: u32,
    ) {
        let token = self.open_access(now, header, place, bytes);
        if let Some(tlps) = &mut self.dma.tlps {
            tlps.read_register(&self.space, token, bar, offset, bytes);
        }
        self.tell(Event::MmioRead { bar, offset, bytes, reply: ReplyToken(token) });
    }

    /// An access that is answered later, by its number.
    pub(crate) fn open_access(&mut self, now: Time, header: &Header, place: [u8; 16], bytes: u32) -> u64 {
        let token = self.next_access;
        self.next_access += 1;
        self.accesses.insert(
            token,
            Access { header: *header, place, bytes, due: now + COMPLETION_TIMEOUT, reprieved: false },
        );
        token
    }

    /// A write of a BAR reaches the device.
    pub(crate) fn write_bar(&mut self, bar: u8, offset: u64, data: &[u8]) {
        if let Some(tlps) = &mut self.dma.tlps {
            tlps.write_register(&self.space, bar, offset, data);
        }
        self.tell(Event::MmioWrite { bar, offset, data: data.into() });
    }

    fn answer(&mut self, token: ReplyToken, data: &[u8]) {
        match self.accesses.remove(&token.0) {
            // A read that was not answered in time is over, and the device does not know.
            None if token.0 < self.next_access => {}
            None => self.fail("answered a read that was never issued".into()),
            Some(access) if data.len() != access.bytes as usize => {
                self.fail(format!(
                    "answered a read of {} B with {} B; the answer must have the requested size",
                    access.bytes,
                    data.len()
                ));
            }
            Some(access) => {
                if let Some(tlps) = &mut self.dma.tlps {
                    tlps.answer(&self.space, token.0, Ok(data));
                }
                self.reply(&access.header, &[&access.place[..], data].concat());
            }
        }
    }

    /// Software reads all ones where a read fails (PCIe 5.0 §2.3.2).
    fn answer_with_ones(&mut self, token: u64) {
        if let Some(tlps) = &mut self.dma.tlps {
            tlps.give_up(token);
        }
        if let Some(access) = self.accesses.remove(&token) {
            let ones = vec![0xFF; access.bytes as usize];
            self.reply(&access.header, &[&access.place[..], &ones].concat());
        }
    }

    fn raise(&mut self, vector: u16) {
        let may = self.space.command().bus_master;
        let signalled = match self.space.interrupt_mode() {
            InterruptMode::MsiX => Some((Irq::Msix, vector)),
            InterruptMode::Msi => self.space.granted_msi_vector(vector).map(|vector| (Irq::Msi, vector)),
            InterruptMode::Intx | InterruptMode::Disabled => None,
        };
        match signalled.filter(|_| may) {
            Some((irq, vector)) => {
                let message = (irq == Irq::Msi).then(|| self.space.msi_message(vector)).flatten();
                if let (Some(tlps), Some(message)) = (&mut self.dma.tlps, message) {
                    tlps.interrupt(message.address, message.data);
                }
                self.dma.interrupt(irq, vector.into());
            }
            None => self.dma.counters.dropped_interrupts += 1,
        }
    }

    /// Signals the legacy interrupt as long as it is asserted and not masked. To be signalled masks it.
    pub(crate) fn signal_intx(&mut self) {
        if self.intx == (true, false) && self.space.interrupt_mode() == InterruptMode::Intx {
            self.intx.1 = true;
            self.dma.interrupt(Irq::Intx, 0);
        }
    }

    /// The client masks the legacy interrupt, or lets it come again, once the device knows what was written before.
    pub(crate) fn mask_intx(&mut self, masked: bool) {
        self.intx.1 |= masked;
        if !masked {
            self.events.push_back(PortEvent::UnmaskIntx);
        }
    }

    /// A fatal error of the function: the client is told at once, if it wants to be. True if it was.
    pub fn report_error(&mut self, host: &mut impl Host) -> bool {
        host.trigger(Irq::Error, 0)
    }

    /// The legacy interrupt may come again: see [`PortEvent::UnmaskIntx`].
    pub fn unmask_intx(&mut self, host: &mut impl Host) {
        self.intx.1 = false;
        self.signal_intx();
        self.go_on(host);
    }

    fn reply(&mut self, header: &Header, payload: &[u8]) {
        if !header.no_reply {
            self.out.push_back(message(Header { is_reply: true, error: None, ..*header }, &[payload]));
        }
    }

    fn reply_error(&mut self, header: &Header, refused: Refused) {
        if !header.no_reply {
            self.out
                .push_back(message(Header { is_reply: true, error: Some(refused as u32), ..*header }, &[]));
        }
    }
}

/// The completion status of the device's refusal.
fn status_of(refusal: Refusal) -> CompletionStatus {
    match refusal {
        Refusal::UnsupportedRequest => CompletionStatus::UnsupportedRequest,
        Refusal::CompleterAbort => CompletionStatus::CompleterAbort,
    }
}
