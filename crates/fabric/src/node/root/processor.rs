//! The processor's accesses to registers in configuration and I/O space: it sees both as memory, and the root complex makes
//! configuration and I/O requests of what it reads and writes there (ECAM, PCIe 5.0 §7.2.2).

use crate::config::AddressMap;
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::node::config_request::{ConfigWay, way_down};
use crate::node::function::{Functions, dword};
use crate::node::initiator::{Initiate, Ticket, ending_of};
use crate::node::root::Root;
use crate::packet::routing::Route;
use crate::packet::slab::TlpHandle;
use crate::packet::transactions::{Ending, TransactionRef};
use std::collections::VecDeque;
use tlplab_device::{DmaError, ECAM, OpId};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Bdf, FcClass, Tag, Time};
use tlplab_wire::tlp::{CfgTarget, CfgType, Repr, TransactionId};

/// 4 KiB for each of 65 536 functions.
const ECAM_BYTES: u64 = 1 << 28;
const IO_BYTES: u64 = 1 << 16;
/// The value of a read of configuration space without a responder.
const ALL_ONES: [u8; 4] = [0xFF; 4];
/// The value of a read of the vendor ID while the device is not ready, with CRS Software Visibility (PCIe 5.0 §2.3.2).
const NOT_READY: [u8; 4] = [0x01, 0x00, 0xFF, 0xFF];

/// A register that the processor sees in its address map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    Config { function: Bdf, offset: u16 },
    Io(u32),
}

impl Register {
    /// The register at an address of the processor; `None` where there is memory, or a device's.
    pub(crate) fn at(address: u64, map: &AddressMap) -> Option<Self> {
        if let Some(place) = address.checked_sub(ECAM).filter(|place| *place < ECAM_BYTES) {
            let (function, offset) = (place >> 12, place & 0xFFF);
            return Some(Self::Config { function: Bdf(function as u16), offset: offset as u16 });
        }
        let port = address.checked_sub(map.io?).filter(|port| *port < IO_BYTES)?;
        Some(Self::Io(port as u32))
    }

    pub(crate) fn route(self) -> Route {
        match self {
            Self::Config { function, .. } => Route::Id(function),
            Self::Io(port) => Route::Io(u64::from(port)),
        }
    }

    fn byte(self) -> u32 {
        match self {
            Self::Config { offset, .. } => u32::from(offset & 3),
            Self::Io(port) => port & 3,
        }
    }
}

/// The bytes of a doubleword that an access means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    first: u8,
    count: u8,
}

impl Lanes {
    fn new(first: u32, count: u64) -> Option<Self> {
        let fits = count > 0 && u64::from(first) + count <= 4;
        fits.then_some(Self { first: first as u8, count: count as u8 })
    }
    fn enables(self) -> u8 {
        ((1u16 << (self.first + self.count)) - (1 << self.first)) as u8
    }
    /// The bytes meant of a doubleword.
    fn take(self, dword: [u8; 4]) -> Payload {
        Payload::from(dword[usize::from(self.first)..usize::from(self.first + self.count)].to_vec())
    }
    /// A doubleword with `data` where it is meant to go.
    fn place(self, data: &Payload) -> [u8; 4] {
        let mut dword = [0; 4];
        let data = data.bytes().unwrap_or(&[]);
        let count = data.len().min(usize::from(self.count));
        dword[usize::from(self.first)..][..count].copy_from_slice(&data[..count]);
        dword
    }
}

/// An access that has reached the root complex.
#[derive(Clone, Debug)]
pub(crate) struct RegisterAccess {
    pub(crate) owner: u16,
    pub(crate) stream: u16,
    pub(crate) asked: Time,
    pub(crate) op: OpId,
    pub(crate) address: u64,
    pub(crate) register: Register,
    pub(crate) bytes: u64,
    /// The data written; `None` for a read.
    pub(crate) data: Option<Payload>,
}

/// Accesses under way.
#[derive(Clone, Default)]
pub(crate) struct RegisterAccesses {
    /// Accesses that became requests, in a slab.
    requests: Vec<Option<Pending>>,
    /// Answers of the root complex itself on their way to the processor, in order.
    answers: VecDeque<OwnAnswer>,
}

#[derive(Clone)]
struct OwnAnswer {
    owner: u16,
    op: OpId,
    result: Option<Result<Payload, DmaError>>,
}

#[derive(Clone)]
struct Pending {
    access: RegisterAccess,
    lanes: Lanes,
    transaction: TransactionRef,
}

impl RegisterAccesses {
    fn insert(&mut self, pending: Pending) -> u32 {
        let free = self.requests.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() - 1
        });
        self.requests[index] = Some(pending);
        index as u32
    }
    fn remove(&mut self, index: u32) -> Option<Pending> {
        self.requests[index as usize].take()
    }
}

impl Root {
    /// The processor's access becomes a request, or is answered by the root complex itself.
    pub(crate) fn access_register(&mut self, cx: &mut Context, access: RegisterAccess) {
        let RegisterAccess { owner, op, address, register, bytes, .. } = access;
        let read = access.data.is_none();
        let Some(lanes) = Lanes::new(register.byte(), bytes) else {
            let error = CompletionError::UnsupportedRequest { address };
            return self.report_operation(cx, owner, op, Some(Err(error.into())));
        };
        if let Register::Config { function, offset } = register
            && function.bus() == 0
        {
            let written = access.data.as_ref().map(|data| u32::from_le_bytes(lanes.place(data)));
            let value = self.root_register(cx, function, offset & !3, lanes.enables(), written);
            let value = value.map_or(ALL_ONES, u32::to_le_bytes);
            return self
                .root_answers(cx, OwnAnswer { owner, op, result: read.then(|| Ok(lanes.take(value))) });
        }
        if self.egress_for(register.route()).is_none() || self.is_no_device(register) {
            cx.observe.counts.refused += 1;
            return self.report_operation(cx, owner, op, read.then(|| Ok(lanes.take(ALL_ONES))));
        }
        self.issue_register(cx, access, lanes);
    }

    /// The root complex answers for its own functions: the answer goes back as a completion would.
    fn root_answers(&mut self, cx: &mut Context, answer: OwnAnswer) {
        let stages = self.path.of_processor().into_iter().flatten();
        let latency = stages.fold(self.latency, |sum, (_, latency)| sum + latency);
        if latency.is_zero() {
            return self.report_operation(cx, answer.owner, answer.op, answer.result);
        }
        self.registers.answers.push_back(answer);
        let at = cx.node_event(self.node);
        cx.schedule(cx.now() + latency, EventKind::OwnAnswer, at, 0);
    }

    /// The oldest of these answers is at the processor.
    pub(crate) fn own_answer(&mut self, cx: &mut Context) {
        if let Some(OwnAnswer { owner, op, result }) = self.registers.answers.pop_front() {
            self.report_operation(cx, owner, op, result);
        }
    }

    /// The link below a root port has one device at its end, number 0 (PCIe 5.0 §7.3.1).
    fn is_no_device(&self, register: Register) -> bool {
        let Register::Config { function, .. } = register else { return false };
        let port = self.port_for(Route::Id(function));
        port.is_some_and(|index| way_down(index, &self.bridges[index], function) == ConfigWay::Nowhere)
    }

    fn issue_register(&mut self, cx: &mut Context, access: RegisterAccess, lanes: Lanes) {
        let RegisterAccess { owner, stream, asked, op, address, register, bytes, .. } = access;
        let (now, node) = (cx.now(), self.node);
        let route = register.route();
        let read = access.data.is_none();
        let payload = access.data.as_ref().map(|data| Payload::from(lanes.place(data)));
        let flow = self.initiator.flow(stream);
        let transaction = cx.open_transaction(node, flow, asked, read, address, bytes);
        let record = cx.transactions.get(transaction);
        (record.op, record.owner, record.carry, record.submitted) = (op, owner, true, now);
        record.posted = false;
        if let Some(egress) = self.egress_for(route) {
            cx.links.snapshot(egress, FcClass::NonPosted, now, &mut record.snapshot);
        }
        let template = self.template(register, lanes, !read);
        let index = self.registers.insert(Pending { access, lanes, transaction });
        let ticket = Ticket::Register { index, transaction };
        // The template is a request of one doubleword, and so is the payload of a write.
        let _ = self.initiator.requester.request(now, stream, ticket, template, payload);
        cx.agenda.pump(node);
    }

    fn template(&mut self, register: Register, lanes: Lanes, write: bool) -> Repr {
        // The requester puts its own ID and tag here.
        let id = TransactionId::new(Bdf(0), Tag::default());
        match register {
            Register::Config { function, offset } => {
                let secondary = self.port_for(Route::Id(function)).map(|i| self.bridges[i].secondary);
                let is_there = secondary == Some(function.bus());
                let of = if is_there { CfgType::Type0 } else { CfgType::Type1 };
                let target = CfgTarget::new(function, offset & !3, lanes.enables(), of)
                    .expect("an aligned register below 4096");
                if write { Repr::cfg_write(id, target) } else { Repr::cfg_read(id, target) }
            }
            Register::Io(port) => {
                let repr = if write { Repr::io_write } else { Repr::io_read };
                repr(id, port, u32::from(lanes.count)).expect("within a doubleword")
            }
        }
    }

    /// A register of the root complex's own functions, on bus 0; `None` if there is no such function.
    fn root_register(
        &mut self,
        cx: &mut Context,
        function: Bdf,
        register: u16,
        enables: u8,
        written: Option<u32>,
    ) -> Option<u32> {
        let index = self.function_on_bus_0(function)?;
        let target = CfgTarget::new(function, register, enables, CfgType::Type0).ok()?;
        Some(self.access(cx, index, target, written))
    }

    pub(crate) fn function_on_bus_0(&self, function: Bdf) -> Option<usize> {
        let index = usize::from(function.device());
        (function.function() == 0 && index <= self.ports.len()).then_some(index)
    }

    /// True if the root port above a function shows Retry Status to software.
    fn crs_visible(&self, function: Bdf) -> bool {
        let port = self.port_for(Route::Id(function));
        let space = port.map(|index| &self.functions[index + 1].space);
        space.and_then(|space| space.pcie()).is_some_and(|pcie| pcie.retry_visibility)
    }

    /// The completion of a register access is there, or does not come.
    pub(crate) fn register_completed(
        &mut self,
        cx: &mut Context,
        index: u32,
        handle: Option<TlpHandle>,
        result: Result<Payload, CompletionError>,
    ) {
        let Some(Pending { access, lanes, transaction }) = self.registers.remove(index) else {
            return;
        };
        let ending = match (&result, access.register) {
            (Ok(_), _) => Ending::Done,
            // That nobody is there, or not yet, is an answer to software that looks for functions.
            (
                Err(CompletionError::UnsupportedRequest { .. } | CompletionError::RetryStatus),
                Register::Config { .. },
            ) => Ending::Done,
            (Err(error), _) => ending_of(error),
        };
        cx.end_transaction(transaction, handle, ending);
        let read = access.data.is_none();
        let value = match (result, access.register) {
            (Ok(payload), _) => Ok(dword(&payload).to_le_bytes()),
            (Err(CompletionError::RetryStatus), Register::Config { function, offset: 0..=3 })
                if read && self.crs_visible(function) =>
            {
                Ok(NOT_READY)
            }
            // Without that the root complex asks again until the device is ready.
            (Err(CompletionError::RetryStatus), _) => return self.access_register(cx, access),
            (Err(error @ CompletionError::Timeout { .. }), _) => Err(DmaError::from(error)),
            (Err(_), _) => Ok(ALL_ONES),
        };
        let value = read.then(|| value.map(|dword| lanes.take(dword)));
        self.report_operation(cx, access.owner, access.op, value);
    }
}
