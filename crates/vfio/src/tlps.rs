//! The TLPs that accesses, transfers and interrupts of a function stand for, for a capture: vfio-user itself carries none.
//!
//! Requests are cut by the sizes in Device Control, completions by an RCB of 64 bytes. The root complex is the requester 00:00.0. A transfer of
//! the device is shown when it is over, each request with its completions; of one that fails, the request that failed. Accesses of
//! configuration space that the client answers itself are not seen, nor are interrupts whose message only the client knows (MSI-X).

use std::collections::{BTreeMap, VecDeque};
use tlplab_cfgspace::ConfigSpace;
use tlplab_transaction::{Completer, CompletionPolicy, RequestPolicy, split_request};
use tlplab_units::{Bdf, Mps, Mrrs, Rcb, Tag};
use tlplab_wire::tlp::{CfgTarget, CfgType, Code, CompletionStatus, Kind, Message, Repr, TransactionId};

/// The root complex as a requester and completer.
const HOST: Bdf = Bdf(0);

/// A TLP on the link above the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTlp {
    /// It goes to the host.
    pub up: bool,
    /// The TLP.
    pub repr: Repr,
    /// The bytes that travel beside it, or whole doublewords.
    pub data: Vec<u8>,
}

/// TLPs that were seen and not yet taken.
#[derive(Clone, Debug)]
pub(crate) struct Tlps {
    function: Bdf,
    seen: VecDeque<SeenTlp>,
    /// Reads of BARs that the device has not answered, with the bytes before each request.
    asked: BTreeMap<u64, Vec<(Repr, u64)>>,
    next_tag: u16,
}

impl Tlps {
    pub(crate) fn new(function: Bdf) -> Self {
        Self { function, seen: VecDeque::new(), asked: BTreeMap::new(), next_tag: 0 }
    }

    pub(crate) fn take(&mut self) -> Option<SeenTlp> {
        self.seen.pop_front()
    }

    /// The reads under way are over, and nobody answers them.
    pub(crate) fn forget_reads(&mut self) {
        self.asked.clear();
    }

    /// A read of a BAR comes.
    pub(crate) fn read_register(
        &mut self,
        space: &ConfigSpace,
        token: u64,
        bar: u8,
        offset: u64,
        bytes: u32,
    ) {
        let requests = self.register_requests(space, bar, offset, bytes, false);
        for (repr, _) in &requests {
            self.see(false, *repr, &[]);
        }
        self.asked.insert(token, requests);
    }

    /// The device answers it, or refuses it.
    pub(crate) fn answer(
        &mut self,
        space: &ConfigSpace,
        token: u64,
        answer: Result<&[u8], CompletionStatus>,
    ) {
        let completer = completer(self.function, mps(space), Rcb::ALL[1]);
        for (request, before) in self.asked.remove(&token).unwrap_or_default() {
            match answer {
                Ok(data) => self.complete(true, &completer, &request, &data[before as usize..]),
                Err(status) => self.refuse(true, &completer, &request, status),
            }
        }
    }

    /// A read of a BAR is not answered in time.
    pub(crate) fn give_up(&mut self, token: u64) {
        self.asked.remove(&token);
    }

    /// A write of a BAR comes.
    pub(crate) fn write_register(&mut self, space: &ConfigSpace, bar: u8, offset: u64, data: &[u8]) {
        for (repr, before) in self.register_requests(space, bar, offset, data.len() as u32, true) {
            let part = &data[before as usize..];
            match repr.kind() {
                Kind::IoWrite { port, .. } => {
                    self.see(false, repr, &doubleword((port.address() & 3) as usize, part));
                    self.succeed_without_data(&repr, space);
                }
                _ => self.see(false, repr, &part[..tlplab_transaction::data_bytes(&repr) as usize]),
            }
        }
    }

    /// Bytes of configuration space are read, or written if `data` is there; the space is as it was before.
    pub(crate) fn configure(&mut self, space: &ConfigSpace, offset: u16, bytes: u16, data: Option<&[u8]>) {
        let end = offset + bytes;
        for register in (offset & !3..end).step_by(4) {
            let (first, last) = (register.max(offset), (register + 4).min(end));
            let enables = (register..register + 4)
                .filter(|at| (first..last).contains(at))
                .fold(0, |enables, at| enables | 1 << (at - register));
            let Ok(target) = CfgTarget::new(self.function, register, enables, CfgType::Type0) else { return };
            let id = self.next_id(HOST);
            let completer = completer(self.function, mps(space), Rcb::ALL[1]);
            match data {
                None => {
                    let request = Repr::cfg_read(id, target);
                    self.see(false, request, &[]);
                    self.complete(true, &completer, &request, &space.shown(register).to_le_bytes());
                }
                Some(data) => {
                    let request = Repr::cfg_write(id, target);
                    let part = &data[usize::from(first - offset)..usize::from(last - offset)];
                    self.see(false, request, &doubleword(usize::from(first - register), part));
                    self.succeed_without_data(&request, space);
                }
            }
        }
    }

    /// The device has read memory: its data, or the address at which it failed and how.
    pub(crate) fn read_memory(
        &mut self,
        space: &ConfigSpace,
        address: u64,
        bytes: u64,
        answer: Result<&[u8], (u64, CompletionStatus)>,
    ) {
        let mrrs = space.pcie().map_or(Mrrs::ALL[2], |pcie| pcie.mrrs);
        let completer = completer(HOST, mps(space), Rcb::ALL[0]);
        for chunk in split_request(address, bytes, mrrs.bytes(), RequestPolicy::Aligned) {
            let is_failed = |at: u64| at.wrapping_sub(chunk.address) < u64::from(chunk.bytes.max(1));
            if answer.is_err_and(|(at, _)| !is_failed(at)) {
                continue;
            }
            let id = self.next_id(self.function);
            let Ok(request) = Repr::mem_read(id, chunk.address, chunk.bytes) else { return };
            self.see(true, request, &[]);
            match answer {
                Ok(data) => self.complete(false, &completer, &request, &data[chunk.offset as usize..]),
                Err((_, status)) => self.refuse(false, &completer, &request, status),
            }
        }
    }

    /// The device writes memory.
    pub(crate) fn write_memory(&mut self, space: &ConfigSpace, address: u64, data: &[u8]) {
        for chunk in split_request(address, data.len() as u64, mps(space).bytes(), RequestPolicy::Aligned) {
            let id = TransactionId::new(self.function, Tag::default());
            let Ok(request) = Repr::mem_write(id, chunk.address, chunk.bytes) else { return };
            self.see(true, request, &data[chunk.offset as usize..][..chunk.bytes as usize]);
        }
    }

    /// The device interrupts by a message.
    pub(crate) fn interrupt(&mut self, address: u64, data: u32) {
        if let Ok(repr) = Repr::msi(self.function, address) {
            self.see(true, repr, &data.to_le_bytes());
        }
    }

    /// The level of the legacy interrupt changes; `pin` is 1 for INTA.
    pub(crate) fn wire(&mut self, pin: u8, asserted: bool) {
        const CODES: [[Code; 2]; 4] = [
            [Code::DeassertIntA, Code::AssertIntA],
            [Code::DeassertIntB, Code::AssertIntB],
            [Code::DeassertIntC, Code::AssertIntC],
            [Code::DeassertIntD, Code::AssertIntD],
        ];
        let code = CODES.get(usize::from(pin).wrapping_sub(1)).map(|codes| codes[usize::from(asserted)]);
        if let Some(Ok(message)) = code.map(|code| Message::simple(self.function, code)) {
            self.see(true, Kind::Message(message).into(), &[]);
        }
    }

    fn register_requests(
        &mut self,
        space: &ConfigSpace,
        bar: u8,
        offset: u64,
        bytes: u32,
        write: bool,
    ) -> Vec<(Repr, u64)> {
        let Some(window) = space.base_addresses().get(usize::from(bar)).copied().flatten() else {
            return Vec::new();
        };
        let is_io = window.kind.is_io();
        let limit = if is_io { 4 } else { mps(space).bytes() };
        let chunks = split_request(window.base + offset, bytes.into(), limit, RequestPolicy::Aligned);
        let request = |chunk: tlplab_transaction::Chunk| {
            let id = self.next_id(HOST);
            let (address, bytes) = (chunk.address, chunk.bytes);
            let repr = match (is_io, write) {
                (false, false) => Repr::mem_read(id, address, bytes),
                (false, true) => Repr::mem_write(TransactionId::new(HOST, Tag::default()), address, bytes),
                (true, false) => Repr::io_read(id, address as u32, bytes),
                (true, true) => Repr::io_write(id, address as u32, bytes),
            };
            repr.ok().map(|repr| (repr, chunk.offset))
        };
        chunks.filter_map(request).collect()
    }

    /// The completions of a read, whose data begin with `data`.
    fn complete(&mut self, up: bool, completer: &Completer, request: &Repr, data: &[u8]) {
        for completion in completer.succeed(request) {
            let part = match request.kind() {
                Kind::IoRead { port, .. } => doubleword((port.address() & 3) as usize, data).to_vec(),
                _ => data[completion.offset as usize..][..completion.bytes as usize].to_vec(),
            };
            self.see(up, completion.repr, &part);
        }
    }

    fn succeed_without_data(&mut self, request: &Repr, space: &ConfigSpace) {
        for completion in completer(self.function, mps(space), Rcb::ALL[1]).succeed(request) {
            self.see(true, completion.repr, &[]);
        }
    }

    fn refuse(&mut self, up: bool, completer: &Completer, request: &Repr, status: CompletionStatus) {
        if let Some(repr) = completer.refuse(request, status) {
            self.see(up, repr, &[]);
        }
    }

    fn see(&mut self, up: bool, repr: Repr, data: &[u8]) {
        self.seen.push_back(SeenTlp { up, repr, data: data.to_vec() });
    }

    /// A requester's next tag, of eight bits: no request is under way for as long as it takes to come round.
    fn next_id(&mut self, requester: Bdf) -> TransactionId {
        self.next_tag = (self.next_tag + 1) & 0xFF;
        TransactionId::new(requester, Tag::new(self.next_tag).unwrap_or_default())
    }
}

fn mps(space: &ConfigSpace) -> Mps {
    space.pcie().map_or(Mps::ALL[0], |pcie| pcie.mps)
}

fn completer(id: Bdf, mps: Mps, rcb: Rcb) -> Completer {
    Completer { id, rcb, mps, policy: CompletionPolicy::default() }
}

/// Bytes in their place in a doubleword.
fn doubleword(first: usize, data: &[u8]) -> [u8; 4] {
    let mut whole = [0; 4];
    for (at, byte) in whole[first..].iter_mut().zip(data) {
        *at = *byte;
    }
    whole
}
