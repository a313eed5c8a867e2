//! A client with its memory: the other end of a port.

use std::collections::BTreeSet;
use tlplab_device::{BarSpec, Event, Identity};
use tlplab_units::Time;
use tlplab_vfio::message::{Command, HEADER, Header};
use tlplab_vfio::{DmaRange, Host, Irq, Port, PortEvent, ProtocolError};

pub(crate) const ALL: u32 = 0b11;

/// Guest memory from address 0, of which what is mapped is reached without messages.
pub(crate) struct Machine {
    pub(crate) memory: Vec<u8>,
    pub(crate) mapped: Vec<DmaRange>,
    pub(crate) triggers: BTreeSet<(Irq, u32)>,
    /// Interrupts as they came, and how many bytes of memory were not 0 then.
    pub(crate) signalled: Vec<(Irq, u32, usize)>,
}

impl Machine {
    fn written(&self) -> usize {
        self.memory.iter().filter(|byte| **byte != 0).count()
    }
}

impl Host for Machine {
    fn map(&mut self, range: &DmaRange, file: usize) -> bool {
        assert_eq!(file, 0);
        self.mapped.push(*range);
        true
    }
    fn unmap(&mut self, range: &DmaRange) {
        self.mapped.retain(|mapped| mapped != range);
    }
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        out.copy_from_slice(&self.memory[address as usize..][..out.len()]);
        true
    }
    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        self.memory[address as usize..][..data.len()].copy_from_slice(data);
        true
    }
    fn set_trigger(&mut self, irq: Irq, vector: u32, file: Option<usize>) {
        match file {
            Some(_) => self.triggers.insert((irq, vector)),
            None => self.triggers.remove(&(irq, vector)),
        };
    }
    fn trigger(&mut self, irq: Irq, vector: u32) -> bool {
        let written = self.written();
        self.signalled.push((irq, vector, written));
        self.triggers.contains(&(irq, vector))
    }
}

/// A port and its client, between which messages go at once.
pub(crate) struct Client {
    pub(crate) port: Port,
    pub(crate) machine: Machine,
    id: u16,
}

/// A message from the server.
pub(crate) struct Message {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn words(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

pub(crate) fn identity() -> Identity {
    Identity {
        bars: vec![BarSpec::memory(0, 4096)],
        msix_vectors: 4,
        msi_vectors: 2,
        intx: true,
        ..Identity::new(0x1DE5, 1, 0xFF_0000)
    }
}

impl Client {
    /// The next event of the device, whose registers the port has itself.
    pub(crate) fn take_event(&mut self) -> Option<Event> {
        loop {
            match self.port.take_event()? {
                PortEvent::Device(event) => return Some(event),
                PortEvent::UnmaskIntx => self.port.unmask_intx(&mut self.machine),
                other => panic!("{other:?}"),
            }
        }
    }

    /// A client of the [`identity`], before the first message.
    pub(crate) fn new() -> Self {
        Self::of(Port::new(&identity().layout()).expect("it has room"))
    }

    /// A client of a port, before the first message.
    pub(crate) fn of(port: Port) -> Self {
        let (mapped, triggers, signalled) = (Vec::new(), BTreeSet::new(), Vec::new());
        let machine = Machine { memory: vec![0; 1 << 16], mapped, triggers, signalled };
        Self { port, machine, id: 0 }
    }

    /// One that has agreed on the version, and whose device may be a bus master and has started.
    pub(crate) fn agreed() -> Self {
        let mut client = Self::new();
        client.call(Command::Version, &version("{}"), 0).expect("version 0.0 is spoken");
        client.write_config(4, &[0b110, 0]);
        assert!(matches!(client.take_event(), Some(Event::Start)));
        client
    }

    pub(crate) fn send(
        &mut self,
        command: u16,
        payload: &[u8],
        descriptors: usize,
        no_reply: bool,
    ) -> Result<(), ProtocolError> {
        self.id += 1;
        let size = (HEADER + payload.len()) as u32;
        let header = Header { id: self.id, command, size, is_reply: false, no_reply, error: None };
        self.port.handle_message(Time::ZERO, &header, payload, descriptors, &mut self.machine)
    }

    /// The next message of the server.
    pub(crate) fn receive(&mut self) -> Option<Message> {
        let bytes = self.port.take_message()?;
        let (header, payload) = bytes.split_first_chunk::<HEADER>().expect("a message has a header");
        let header = Header::parse(header).expect("its size is right");
        assert_eq!(header.size as usize, bytes.len());
        Some(Message { header, payload: payload.to_vec() })
    }

    /// Sends a command and takes its reply.
    pub(crate) fn call(
        &mut self,
        command: Command,
        payload: &[u8],
        descriptors: usize,
    ) -> Result<Vec<u8>, u32> {
        self.send(command as u16, payload, descriptors, false).expect("the connection lives");
        let reply = self.receive().expect("a reply");
        assert!(reply.header.is_reply);
        assert_eq!((reply.header.id, reply.header.command), (self.id, command as u16));
        reply.header.error.map_or(Ok(reply.payload), Err)
    }

    /// Answers a message of the server.
    pub(crate) fn answer(&mut self, message: &Message, payload: &[u8], error: Option<u32>) {
        let size = (HEADER + payload.len()) as u32;
        let header = Header { size, is_reply: true, error, ..message.header };
        self.port.handle_message(Time::ZERO, &header, payload, 0, &mut self.machine).expect("it was asked");
    }

    /// Does to memory as the server asks, and says so.
    pub(crate) fn serve(&mut self, message: &Message) {
        assert!(!message.header.is_reply);
        let place: [u8; 16] = message.payload[..16].try_into().expect("address and count");
        let (address, count) = place.split_at(8);
        let at = u64::from_le_bytes(address.try_into().expect("eight bytes")) as usize;
        let count = u64::from_le_bytes(count.try_into().expect("eight bytes")) as usize;
        if message.header.command == Command::DmaRead as u16 {
            let data = self.machine.memory[at..at + count].to_vec();
            self.answer(message, &[&place[..], &data].concat(), None);
        } else {
            assert_eq!(message.payload.len(), 16 + count);
            self.machine.memory[at..at + count].copy_from_slice(&message.payload[16..]);
            self.answer(message, &place, None);
        }
    }

    pub(crate) fn map(&mut self, address: u64, bytes: u64, flags: u32, file: bool) -> Result<Vec<u8>, u32> {
        let rest = [0, address, bytes].map(u64::to_le_bytes).concat();
        self.call(Command::DmaMap, &[words(&[32, flags]), rest].concat(), usize::from(file))
    }

    pub(crate) fn read(&mut self, region: u32, offset: u64, bytes: u32) -> Result<Vec<u8>, u32> {
        let place = place(region, offset, bytes);
        self.call(Command::RegionRead, &place, 0).map(|reply| reply[16..].to_vec())
    }

    pub(crate) fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<Vec<u8>, u32> {
        let place = place(region, offset, data.len() as u32);
        self.call(Command::RegionWrite, &[&place, data].concat(), 0)
    }

    pub(crate) fn write_config(&mut self, offset: u64, data: &[u8]) {
        self.write(7, offset, data).expect("configuration space can be written");
    }
}

impl Client {
    /// Where a capability begins, as the list of capabilities leads to it.
    fn capability(&mut self, id: u8) -> u64 {
        let mut at = self.read(7, 0x34, 1).expect("the list begins here")[0];
        while self.read(7, at.into(), 1) != Ok(vec![id]) {
            at = self.read(7, u64::from(at) + 1, 1).expect("the list goes on")[0];
            assert_ne!(at, 0, "there is no capability {id:#x}");
        }
        at.into()
    }

    /// Sets MSI-X Enable.
    pub(crate) fn enable_msix(&mut self) {
        let at = self.capability(0x11);
        self.write_config(at + 3, &[0x80]);
    }

    /// Lets the device write two messages.
    pub(crate) fn enable_msi(&mut self, address: u32, data: u16) {
        let at = self.capability(0x05);
        let wide = self.read(7, at + 2, 1).expect("its control")[0] & 0x80 != 0;
        self.write_config(at + 4, &address.to_le_bytes());
        self.write_config(at + if wide { 12 } else { 8 }, &data.to_le_bytes());
        self.write_config(at + 2, &[0b1_0001]);
    }
}

pub(crate) fn place(region: u32, offset: u64, bytes: u32) -> Vec<u8> {
    [offset.to_le_bytes().to_vec(), words(&[region, bytes])].concat()
}

pub(crate) fn version(text: &str) -> Vec<u8> {
    [&[0; 4], text.as_bytes(), &[0]].concat()
}
