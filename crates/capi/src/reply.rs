//! Answers to the host's reads, cut and filled in as the specification wants them.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::SystemTime;

use nix::errno::Errno;
use tlplab_netio::{Batch, send_connected};
use tlplab_nettlp::{Outgoing, datagram};
use tlplab_transaction::{Completer, CompletionPolicy, Payload};
use tlplab_units::{Bdf, Mps, Rcb};
use tlplab_wire::nettlp::Header;
use tlplab_wire::tlp::{CompletionStatus, Kind, Packet, Repr};

use crate::context::{Context, Nettlp, at};
use crate::dma::bytes;
use crate::errno::{self, Result};
use crate::guard::or_errno;
use crate::header::{TlpMrHdr, request};

thread_local! {
    static OUTBOX: RefCell<Batch> = RefCell::default();
}

/// Cuts as the host of the published system does: at 128 bytes, into at most 256.
fn completer(id: Bdf) -> Completer {
    Completer { id, rcb: Rcb::ALL[1], mps: Mps::ALL[1], policy: CompletionPolicy::Max }
}

/// Numbers the completions of a process, so that an adapter knows those that a network has doubled.
fn next_header() -> Header {
    static SENT: AtomicU16 = AtomicU16::new(0);
    let sequence = SENT.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    // The time of day tells this process from the one before it. Only differences matter.
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Header { sequence, timestamp: (since.as_nanos() * 1_000_000 / u128::from(Header::TICK.as_fs())) as u32 }
}

/// Sends completions; each comes with its data.
fn send(context: &Context, completions: impl Iterator<Item = (Repr, Payload)>) -> Result<()> {
    let to = SocketAddrV4::new(context.remote(), 0);
    OUTBOX.with_borrow_mut(|outbox| {
        let mut completions = completions.peekable();
        while completions.peek().is_some() {
            outbox.clear();
            while !outbox.is_full()
                && let Some((repr, data)) = completions.next()
            {
                outbox.push_with(|buffer| {
                    let len = datagram::emit(buffer, next_header(), &repr, &data).ok()?;
                    Some(Outgoing { to, from_port: 0, len })
                });
            }
            send_connected(context.socket(), outbox).map_err(|error| errno::of_io(&error))?;
        }
        Ok(())
    })
}

/// Answers a request with a status other than success, if it wants an answer. Who waits for it in vain has a timeout: that it cannot be sent
/// is not told twice.
pub(crate) fn refuse(context: &Context, id: Bdf, request: &Repr, status: CompletionStatus) {
    let completion = completer(id).refuse(request, status);
    let _ = send(context, completion.into_iter().map(|completion| (completion, Payload::EMPTY)));
}

/// The read that a program has the header of.
///
/// # Safety
/// As [`request`].
unsafe fn read_request(header: *const TlpMrHdr) -> Result<Repr> {
    if header.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: the caller's promise.
    let packet = unsafe { request(header) };
    let mut bytes = [0; 16];
    let bytes = &mut bytes[..packet.bytes().len()];
    bytes.copy_from_slice(packet.bytes());
    // The digest is behind what the program has shown us.
    bytes[2] &= 0x7F;
    match Repr::parse(&Packet::new(bytes)) {
        Ok(read) if matches!(read.kind(), Kind::MemRead { .. }) => Ok(read),
        _ => Err(Errno::EINVAL),
    }
}

/// `libtlp.h`.
///
/// # Safety
/// `nettlp` points to an initialised context, `header` to the header of a read, `data` to `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_send_cpld(
    nettlp: *const Nettlp,
    header: *const TlpMrHdr,
    data: *const c_void,
    count: usize,
) -> isize {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (nettlp, read, data) = unsafe { (at(nettlp)?, read_request(header)?, bytes(data, count)?) };
        let Kind::MemRead { span, .. } = *read.kind() else { return Err(Errno::EINVAL) };
        if count != span.byte_count() as usize {
            return Err(Errno::EINVAL);
        }
        let context = Context::of(nettlp)?;
        let data = Payload::from(data);
        let completions = completer(nettlp.requester()).succeed(&read);
        send(
            &context,
            completions.map(|part| (part.repr, data.slice(part.offset.into(), part.bytes.into()))),
        )?;
        Ok(count as isize)
    })
}

/// `libtlp.h`.
///
/// # Safety
/// As [`nettlp_send_cpld`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nettlp_send_cpl(
    nettlp: *const Nettlp,
    header: *const TlpMrHdr,
    status: c_int,
) -> c_int {
    or_errno(-1, || {
        // SAFETY: the caller's promises.
        let (nettlp, read) = unsafe { (at(nettlp)?, read_request(header)?) };
        let bits = u8::try_from(status >> 13).map_err(|_| Errno::EINVAL)?;
        let status = CompletionStatus::from_bits(bits).filter(|&status| status != CompletionStatus::Success);
        let context = Context::of(nettlp)?;
        let completion = completer(nettlp.requester()).refuse(&read, status.ok_or(Errno::EINVAL)?);
        send(&context, completion.into_iter().map(|completion| (completion, Payload::EMPTY)))?;
        Ok(0)
    })
}
