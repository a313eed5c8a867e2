//! The services of an adapter besides TLPs, for programs that ask and wait: configuration space ([`config_api`]) and what the driver on its host
//! knows ([`message_api`]), and its own registers ([`registers`]).

use super::error::Error;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};
use tlplab_units::Bdf;
use tlplab_wire::nettlp::config_api::{self, ConfigAccess};
use tlplab_wire::nettlp::message_api::{self, Message, Request, Written};
use tlplab_wire::nettlp::registers::{self, Operation, Register, RegisterAccess};

/// The wait for an answer before the request is sent again: a datagram may be lost.
const PATIENCE: Duration = Duration::from_millis(200);
/// The number of times that a request is sent.
const TRIES: u32 = 5;

/// Asks an adapter.
#[derive(Clone, Copy, Debug)]
pub struct Apis {
    /// The address here.
    pub local: Ipv4Addr,
    /// The adapter's; for the messages that of its host.
    pub adapter: Ipv4Addr,
}

impl Apis {
    /// The doubleword of the configuration space that begins at byte `register`. Asked at the adapter's newer port, then at the older one.
    ///
    /// # Errors
    /// Nobody answers, or what comes is no answer; a register that is not one.
    pub fn config_read(self, register: u16) -> Result<u32, Error> {
        let request = ConfigAccess::read(register).map_err(|e| Error::Setup(e.to_string()))?;
        let answer = |reply: &[u8]| {
            let reply = ConfigAccess::parse(reply).ok().filter(|reply| request.is_answered_by(*reply))?;
            Some(reply.data)
        };
        let newer = self.ask(config_api::PORT, "configuration", &request.emit(), 1, answer);
        newer
            .or_else(|_| self.ask(config_api::LIBRARY_PORT, "configuration", &request.emit(), TRIES, answer))
            .map_err(|error| {
                let refused = matches!(error, Error::Silent { refused: true, .. });
                self.silent("configuration", &[config_api::PORT, config_api::LIBRARY_PORT], refused)
            })
    }

    /// Writes the bytes of `data` that `enables` names (bit 0 the lowest) to the configuration space. There is no answer: a read must tell
    /// whether it came.
    ///
    /// # Errors
    /// It cannot be sent; a register that is not one.
    pub fn config_write(self, register: u16, enables: u8, data: u32) -> Result<(), Error> {
        let request =
            ConfigAccess::write(register, enables, data).map_err(|e| Error::Setup(e.to_string()))?;
        // Whoever answers at a port gets the write there, and only there.
        let port = match self.ask(
            config_api::PORT,
            "configuration",
            &ConfigAccess::read(0).expect("register 0").emit(),
            2,
            |_| Some(()),
        ) {
            Ok(()) => config_api::PORT,
            Err(_) => config_api::LIBRARY_PORT,
        };
        let socket = self.socket(port)?;
        let sent = socket.send(&request.emit());
        sent.map(|_| ()).map_err(|source| Error::io(format!("send to {}:{port:#x}", self.adapter), source))
    }

    /// The registers of the adapter itself.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn registers(self) -> Result<Vec<(Register, u32)>, Error> {
        let read = |register| {
            let request = RegisterAccess { operation: Operation::Read, register, data: 0 };
            self.ask(registers::PORT, "its registers", &request.emit(), TRIES, |reply| {
                let reply = RegisterAccess::parse(reply).ok()?;
                (RegisterAccess { data: 0, ..reply } == request).then_some((register, reply.data))
            })
        };
        Register::ALL.into_iter().map(read).collect()
    }

    /// The start of BAR4 in the address space of the adapter's host.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn bar4_base(self) -> Result<u64, Error> {
        self.message(Request::Bar4Base, |reply| message_api::parse_bar4_base(reply).ok())
    }

    /// Bus, device and function of the adapter.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn device_id(self) -> Result<Bdf, Error> {
        self.message(Request::DeviceId, |reply| message_api::parse_device_id(reply).ok())
    }

    /// The addresses for the device's interrupts.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn msix_table(self) -> Result<[Message; message_api::VECTORS], Error> {
        self.message(Request::MsixTable, |reply| message_api::parse_msix_table(reply).ok())
    }

    /// The device's writes to the host's memory since the adapter began; `None` if it does not report them: the card's driver does not.
    ///
    /// # Errors
    /// The question cannot be asked.
    pub fn written(self) -> Result<Option<Written>, Error> {
        let request = Request::Written.emit();
        match self.ask(message_api::PORT, "messages", &request, 2, |reply| Written::parse(reply).ok()) {
            Ok(written) => Ok(Some(written)),
            Err(Error::Silent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn message<R>(self, request: Request, answer: impl Fn(&[u8]) -> Option<R>) -> Result<R, Error> {
        self.ask(message_api::PORT, "messages", &request.emit(), TRIES, answer)
    }

    /// Sends `request` to `port` until `answer` takes what comes back.
    fn ask<R>(
        self,
        port: u16,
        what: &'static str,
        request: &[u8],
        tries: u32,
        answer: impl Fn(&[u8]) -> Option<R>,
    ) -> Result<R, Error> {
        let socket = self.socket(port)?;
        for _ in 0..tries {
            let failed = |source| Error::io(format!("ask {}:{port:#x}", self.adapter), source);
            match socket.send(request) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                sent => drop(sent.map_err(failed)?),
            }
            let until = Instant::now() + PATIENCE;
            loop {
                let left = until.saturating_duration_since(Instant::now());
                // If time is over, it is still looked whether an answer lies here: perhaps this machine stood still.
                socket.set_read_timeout(Some(left.max(Duration::from_millis(1)))).map_err(failed)?;
                let mut buffer = [0; 512];
                match socket.recv(&mut buffer) {
                    Ok(len) => match answer(&buffer[..len]) {
                        Some(answer) => return Ok(answer),
                        // A late answer to another question.
                        None if left.is_zero() => break,
                        None => continue,
                    },
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                        return Err(self.silent(what, &[port], true));
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                        break;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        Err(self.silent(what, &[port], false))
    }

    fn silent(self, what: &'static str, ports: &[u16], refused: bool) -> Error {
        let ports: Vec<String> = ports.iter().map(|port| format!("{port} ({port:#x})")).collect();
        let message = format!(
            "no answer for {what} from {}, UDP port {}: check that an adapter runs there with {} as its peer",
            self.adapter,
            ports.join(" or "),
            self.local,
        );
        Error::Silent { message, refused }
    }

    /// A socket for questions to `port`. It has the same port here, as the published adapter wants it, unless somebody else has it.
    fn socket(self, port: u16) -> Result<UdpSocket, Error> {
        let bound = UdpSocket::bind((self.local, port)).or_else(|error| match error.kind() {
            ErrorKind::AddrInUse => UdpSocket::bind((self.local, 0)),
            _ => Err(error),
        });
        let socket = bound.map_err(|source| Error::bind(self.local, port, source))?;
        let to = SocketAddrV4::new(self.adapter, port);
        let connected = socket.connect(to);
        connected
            .map_err(|source| Error::io(format!("reach {} from {}", self.adapter, self.local), source))?;
        Ok(socket)
    }
}
