//! Callbacks: what the host sends to the device, as it came.

use std::ffi::{c_int, c_void};
use std::net::SocketAddrV4;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use tlplab_netio::{Batch, Poller, Ready, Transport, Udp};
use tlplab_nettlp::endpoint::Runs;
use tlplab_nettlp::{Datagram, MAX_DATAGRAM, datagram};
use tlplab_transaction::Payload;
use tlplab_units::Bdf;
use tlplab_wire::nettlp::{HEADER_BYTES, Header, parse_udp_payload};
use tlplab_wire::tlp::{Attributes, CompletionStatus, Kind, Packet, Repr, Span};

use crate::context::{Context, Nettlp, at};
use crate::errno::{self, Result};
use crate::guard::or_errno;
use crate::header::{
    TlpCplHdr, TlpMrHdr, tlp_cpld_data, tlp_cpld_data_length, tlp_mr_data_length, tlp_mwr_data,
};
use crate::reply;

type OnHeader<H> = unsafe extern "C" fn(*mut Nettlp, *mut H, *mut c_void) -> c_int;
type OnData<H> = unsafe extern "C" fn(*mut Nettlp, *mut H, *mut c_void, usize, *mut c_void) -> c_int;

/// `struct tlp_hdr`.
#[repr(C, packed)]
pub struct TlpHdr([u8; 4]);

/// `struct nettlp_cb`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NettlpCb {
    start: usize,
    end: usize,
    mrd: Option<OnHeader<TlpMrHdr>>,
    mwr: Option<OnData<TlpMrHdr>>,
    cpl: Option<OnHeader<TlpCplHdr>>,
    cpld: Option<OnData<TlpCplHdr>>,
    other: Option<OnHeader<TlpHdr>>,
}

/// `NETTLP_CB_MAX_NTS`.
const MOST_CONTEXTS: usize = 16;
/// The number of the file descriptor that ends a run, among those it waits for.
const STOP: u64 = MOST_CONTEXTS as u64;
/// The sleep of a run before it checks for a stop: a signal handler can count, and do little else. (A signal ends the sleep of the
/// thread that it comes to.)
const LOOK: Duration = Duration::from_millis(100);

/// The number of calls of [`nettlp_stop_cb`]. A run ends when one came since it began; it is not a flag that would stop later runs.
static STOPS: AtomicUsize = AtomicUsize::new(0);

/// `libtlp.h`.
#[unsafe(no_mangle)]
pub extern "C" fn nettlp_stop_cb() {
    STOPS.fetch_add(1, Ordering::SeqCst);
}

/// `libtlp.h`.
///
/// # Safety
/// `contexts` points to `count` pointers to initialised contexts, `callbacks` to a `struct nettlp_cb`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_run_cb(
    contexts: *const *mut Nettlp,
    count: c_int,
    callbacks: *const NettlpCb,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe { nettlp_run_cb_until(contexts, count, callbacks, argument, -1) }
}

/// `libtlp.h`.
///
/// # Safety
/// As [`nettlp_run_cb`], and `stop` is -1 or an open file descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_run_cb_until(
    contexts: *const *mut Nettlp,
    count: c_int,
    callbacks: *const NettlpCb,
    argument: *mut c_void,
    stop: c_int,
) -> c_int {
    // Before anything else: who has called this may be stopped from here on.
    let stops = STOPS.load(Ordering::SeqCst);
    or_errno(-1, || {
        let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        if count == 0 || count > MOST_CONTEXTS {
            return Err(Errno::EINVAL);
        }
        if contexts.is_null() {
            return Err(Errno::EFAULT);
        }
        // SAFETY: the caller's promise.
        let structs = unsafe { std::slice::from_raw_parts(contexts, count) };
        // SAFETY: the caller's promise. It is copied, so that callbacks may change it for the next run.
        let callbacks = *unsafe { at(callbacks) }?;
        let mut run = Run::new(structs, callbacks, argument)?;
        if stop >= 0 {
            // SAFETY: not -1; that it stays open is the caller's promise.
            let stop = unsafe { BorrowedFd::borrow_raw(stop) };
            run.poller.watch(stop, STOP).map_err(|error| errno::of_transport(&error))?;
        }
        run.go_on(stops)?;
        Ok(0)
    })
}

/// A context of a run, and the struct that callbacks hear of.
struct Place {
    nettlp: *mut Nettlp,
    /// As whom it completes.
    requester: Bdf,
    context: Arc<Context>,
}

struct Run {
    places: Vec<Place>,
    callbacks: NettlpCb,
    argument: *mut c_void,
    udp: Udp,
    poller: Arc<Poller>,
    memory: Memory,
}

impl Run {
    fn new(structs: &[*mut Nettlp], callbacks: NettlpCb, argument: *mut c_void) -> Result<Self> {
        let places = structs
            .iter()
            .map(|&nettlp| {
                // SAFETY: the caller's promise: each points to a context.
                let context = unsafe { at(nettlp) }?;
                Ok(Place { nettlp, requester: context.requester(), context: Context::of(context)? })
            })
            .collect::<Result<Vec<Place>>>()?;
        // The places' numbers, from 1 on, stand for the ports; the peer is each context's own, and matters for what is sent only.
        let sockets = (1..).zip(places.iter().map(|place| place.context.socket()));
        let udp =
            Udp::lent(sockets, places[0].context.remote()).map_err(|error| errno::of_transport(&error))?;
        let poller = udp.poller().clone();
        places.iter().for_each(|place| place.context.traffic.add_run(&poller));
        Ok(Self { places, callbacks, argument, udp, poller, memory: Memory::default() })
    }

    fn go_on(&mut self, stops: usize) -> Result<()> {
        let mut ready = Ready::default();
        let mut batch = Batch::default();
        while STOPS.load(Ordering::SeqCst) == stops {
            for number in 0..self.places.len() {
                while let Some(datagram) = self.places[number].context.traffic.take_request() {
                    self.handle(number, &datagram);
                }
            }
            let transport = |error| errno::of_transport(&error);
            self.poller.wait(&mut ready, Some(Instant::now() + LOOK)).map_err(transport)?;
            batch.clear();
            self.udp.receive(Some(&ready), &mut batch).map_err(transport)?;
            // That a completion of ours could not be delivered is nothing that a callback could hear of.
            while self.udp.undeliverable().is_some() {}
            let datagrams =
                || batch.datagrams().map(|datagram| (usize::from(datagram.port) - 1, datagram.payload));
            // First all that is somebody else's: a callback may wait for who waits for that.
            let handed_over: Vec<bool> =
                datagrams().map(|(number, payload)| self.hand_over(number, payload)).collect();
            for ((number, payload), _) in datagrams().zip(handed_over).filter(|(_, handed_over)| !handed_over)
            {
                self.handle(number, payload);
            }
            if ready.has(STOP) {
                break;
            }
        }
        Ok(())
    }

    /// Gives a completion to the read that waits for it, if there is one.
    fn hand_over(&self, number: usize, payload: &[u8]) -> bool {
        let context = &self.places[number].context;
        let is_awaited = parse_udp_payload(payload).is_ok_and(|(_, tlp)| {
            tlp.is_completion() == Some(true) && context.traffic.awaits(tlp.requester(), tlp.tag_byte())
        });
        if is_awaited {
            context.traffic.give_completion(payload);
        }
        is_awaited
    }

    /// A datagram that came to the socket of a context.
    fn handle(&mut self, number: usize, payload: &[u8]) {
        let Self { places, callbacks, argument, memory, .. } = self;
        let Place { nettlp, requester, context } = &places[number];
        let from = SocketAddrV4::new(context.remote(), 0);
        let mut gate = context.gate.lock().unwrap_or_else(PoisonError::into_inner);
        // The socket is connected: whatever comes is from the adapter.
        let Some((packet, repr)) = gate.admit(Datagram { from, port: 0, payload }) else { return };
        let call = Call { nettlp: *nettlp, callbacks, argument: *argument };
        let is_refused = call.is_refused(&repr);
        let counters = gate.counters_mut();
        *(match repr.kind() {
            _ if is_refused => &mut counters.refused,
            Kind::MemRead { .. } => &mut counters.host_reads,
            Kind::MemWrite { .. } => &mut counters.host_writes,
            _ => &mut counters.other,
        }) += 1;
        // Callbacks may use the context; nothing of it is locked then.
        drop(gate);
        if is_refused {
            reply::refuse(context, *requester, &repr, CompletionStatus::UnsupportedRequest);
        } else {
            call.make(memory, payload, &packet, &repr);
        }
    }
}

/// A datagram in memory that programs may write to, with zeros behind it: as in the published library the NetTLP header stands before the
/// TLP. The TLP is aligned for its doublewords and quadwords.
#[repr(C, align(8))]
struct Memory([u8; Memory::BEFORE + MAX_DATAGRAM + 16]);

impl Default for Memory {
    fn default() -> Self {
        Self([0; Memory::BEFORE + MAX_DATAGRAM + 16])
    }
}

impl Memory {
    const BEFORE: usize = 8 - HEADER_BYTES;

    /// Writes a datagram by `fill`, which returns its length; its TLP, from `offset` on.
    fn place(&mut self, offset: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> *mut u8 {
        let end = Self::BEFORE + fill(&mut self.0[Self::BEFORE..]);
        self.0[end..].iter_mut().take(16).for_each(|byte| *byte = 0);
        self.0[Self::BEFORE + HEADER_BYTES + offset..].as_mut_ptr()
    }

    /// As it came.
    fn copy(&mut self, payload: &[u8], packet: &Packet<'_>) -> *mut u8 {
        self.place(packet.header_offset(), |buffer| {
            buffer[..payload.len()].copy_from_slice(payload);
            payload.len()
        })
    }
}

impl Memory {
    /// The write of `bytes` of those that a write enables, from `address` on.
    fn part(&mut self, packet: &Packet<'_>, whole: &Repr, address: u64, bytes: u32) -> *mut u8 {
        let part = Repr::mem_write(whole.transaction_id(), address, bytes).expect("part of a valid write");
        let attributes = Attributes { digest: false, ..*whole.attributes() };
        let part = part.with_attributes(attributes).expect("a write had them");
        let start = (address - packet.address().unwrap_or(address)) as usize;
        let data = Payload::from(&packet.payload()[start..start + bytes as usize]);
        self.place(0, |buffer| datagram::emit(buffer, Header::default(), &part, &data).expect("it fits"))
    }
}

/// The callback for one TLP.
struct Call<'a> {
    nettlp: *mut Nettlp,
    callbacks: &'a NettlpCb,
    argument: *mut c_void,
}

impl Call<'_> {
    /// True if it is outside the window, or has no callback. Then it is refused, if it wants an answer.
    fn is_refused(&self, repr: &Repr) -> bool {
        let NettlpCb { start, end, mrd, mwr, cpl, cpld, other } = *self.callbacks;
        let outside = |span: Span| {
            let (first, bytes) = (span.first_byte(), u64::from(span.byte_count()));
            end > start && (first < start as u64 || first.saturating_add(bytes) > end as u64)
        };
        let unheard = other.is_none();
        match *repr.kind() {
            Kind::MemRead { span, locked, .. } => outside(span) || unheard && (mrd.is_none() || locked),
            Kind::MemWrite { span, .. } => outside(span) || unheard && mwr.is_none(),
            Kind::Completion(_) if repr.payload_dw() > 0 => unheard && cpld.is_none(),
            Kind::Completion(_) => unheard && cpl.is_none(),
            _ => unheard,
        }
    }

    /// Calls what the TLP is for.
    fn make(&self, memory: &mut Memory, payload: &[u8], packet: &Packet<'_>, repr: &Repr) {
        let tlp = memory.copy(payload, packet);
        let NettlpCb { mrd, mwr, cpl, cpld, other, .. } = *self.callbacks;
        let (nettlp, argument) = (self.nettlp, self.argument);
        let is_with_data = repr.payload_dw() > 0;
        // SAFETY, of all calls here: the program gave these functions for these arguments. `tlp` points to a whole TLP that the gate has let in,
        // so its header and data are as long as its fields say, and no reference to that memory is alive.
        match (*repr.kind(), mrd, mwr, cpl, cpld) {
            (Kind::MemRead { locked: false, .. }, Some(mrd), ..) => {
                // SAFETY: as above.
                unsafe { mrd(nettlp, tlp.cast(), argument) };
            }
            (Kind::MemWrite { span, .. }, _, Some(mwr), ..) => {
                let write = |tlp: *mut u8| {
                    // SAFETY: as above.
                    unsafe {
                        let bytes = tlp_mr_data_length(tlp.cast()) as usize;
                        mwr(nettlp, tlp.cast(), tlp_mwr_data(tlp.cast()), bytes, argument);
                    }
                };
                let runs = Runs::of(span);
                if runs.is_single() {
                    return write(tlp);
                }
                for (address, bytes) in runs {
                    write(memory.part(packet, repr, address, bytes));
                }
            }
            (Kind::Completion(_), _, _, Some(cpl), _) if !is_with_data => {
                // SAFETY: as above.
                unsafe { cpl(nettlp, tlp.cast(), argument) };
            }
            (Kind::Completion(_), _, _, _, Some(cpld)) if is_with_data => {
                // SAFETY: as above.
                unsafe {
                    let bytes = tlp_cpld_data_length(tlp.cast()) as usize;
                    cpld(nettlp, tlp.cast(), tlp_cpld_data(tlp.cast()), bytes, argument);
                }
            }
            _ => {
                if let Some(other) = other {
                    // SAFETY: as above.
                    unsafe { other(nettlp, tlp.cast(), argument) };
                }
            }
        }
    }
}
