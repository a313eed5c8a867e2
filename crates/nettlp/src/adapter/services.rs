//! Requests of a device without TLPs: configuration space, the message service of the driver on the host, the card's registers.

use super::Adapter;
use super::counters::DeviceCounters;
use super::egress::ServiceReply;
use super::host::Host;
use super::port::Port;
use crate::engine::Datagram;
use tlplab_wire::nettlp::config_api::{Command, ConfigAccess};
use tlplab_wire::nettlp::message_api::{Message, Request, VECTORS, Written, emit_msix_table};
use tlplab_wire::nettlp::registers::{Operation, RegisterAccess};
use tlplab_wire::nettlp::{HEADER_BYTES, config_api, message_api, registers};

/// The shortest TLP, with its NetTLP header. On the port that the library uses for configuration a shorter datagram is no answer to a
/// host request of tag 1, and a longer one no access to configuration space.
const SHORTEST_TLP: usize = HEADER_BYTES + 12;

impl<H: Host> Adapter<H> {
    /// Serves a datagram that asks for a service; `false` if it is no such one.
    pub(super) fn service(&mut self, device: usize, datagram: Datagram<'_>) -> bool {
        let Datagram { from, port: from_port, payload } = datagram;
        let port = &mut self.ports[device];
        let answered = match from_port {
            config_api::PORT => config(port, payload),
            config_api::LIBRARY_PORT if payload.len() < SHORTEST_TLP => config(port, payload),
            message_api::PORT => message(port, payload),
            registers::PORT => register(port, payload),
            _ => return false,
        };
        port.counters.control += 1;
        match answered {
            Some(Some(bytes)) => {
                let reply = ServiceReply { to: from, from_port, bytes };
                port.counters.overflows += u64::from(port.egress.serve(reply).is_err());
            }
            Some(None) => {}
            None => port.counters.malformed += 1,
        }
        true
    }
}

/// True if it asks for vendor and device ID. A device does so when it begins, and when it is started again.
pub(super) fn asks_ids(datagram: &Datagram<'_>) -> bool {
    datagram.port == config_api::PORT
        && ConfigAccess::parse(datagram.payload)
            .is_ok_and(|access| access.command() == Command::Read && access.register() == 0)
}

/// The answer, if there is one; `None` for what is no request.
type Answered = Option<Option<Vec<u8>>>;

fn config(port: &mut Port, payload: &[u8]) -> Answered {
    let mut access = ConfigAccess::parse(payload).ok()?;
    Some(match access.command() {
        Command::Read => {
            access.data = port.function.config_read(access.register());
            Some(access.emit().to_vec())
        }
        Command::Write => {
            port.function.config_write(access.register(), access.enables(), access.data);
            None
        }
    })
}

fn message(port: &mut Port, payload: &[u8]) -> Answered {
    Some(Some(match Request::parse(payload).ok()? {
        Request::Bar4Base => port.function.bars()[4].map_or(0, |bar| bar.base).to_le_bytes().to_vec(),
        Request::DeviceId => port.bdf.0.to_le_bytes().to_vec(),
        Request::Written => {
            let DeviceCounters { writes: requests, bytes_written: bytes, .. } = port.counters;
            Written { requests, bytes }.emit().to_vec()
        }
        Request::MsixTable => {
            let mut table = [Message::default(); VECTORS];
            for (vector, message) in (0..).zip(&mut table) {
                (message.address, message.data) = port.function.vector(vector);
            }
            emit_msix_table(&table).to_vec()
        }
    }))
}

fn register(port: &mut Port, payload: &[u8]) -> Answered {
    let access = RegisterAccess::parse(payload).ok()?;
    let registers = &mut port.function.registers;
    Some(match access.operation {
        Operation::Read => {
            let data = registers.read(access.register);
            Some(RegisterAccess { data, ..access }.emit().to_vec())
        }
        Operation::Write => {
            registers.write(access.register, access.data);
            None
        }
    })
}
