//! Devices from libraries.
//!
//! Mistakes of a library beyond the checks here (it writes past its structures, or keeps a pointer of the caller) cannot be
//! checked: loading one is like running a program.
#![allow(
    unsafe_code,
    reason = "a library in C is called by pointers; every block says what the header promises"
)]

use crate::dynamic;
use crate::interface::{self, ABI, ERROR_MAX, code, interrupts, kind};
use libloading::Library;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Write as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use tlplab_cfgspace::InterruptMode;
use tlplab_device::{Context, Device, DmaError, Event, Identity, Refusal, ReplyToken};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Duration, Time};

/// A device that a library has made.
pub struct LibraryDevice {
    functions: Arc<Functions>,
    device: NonNull<c_void>,
    identity: Identity,
}

/// A library's functions.
struct Functions {
    open: interface::Open,
    handle: interface::Handle,
    close: interface::Close,
    // They are only there while it is.
    _library: Library,
}

// SAFETY: the header promises that a device may be used by any thread, by one at a time; nothing here is shared but `functions`, which
// hold no state.
unsafe impl Send for LibraryDevice {}

impl LibraryDevice {
    /// Loads the library and makes a device with these parameters.
    ///
    /// # Errors
    /// The fact and the expected state.
    pub fn open(path: &Path, parameters: &BTreeMap<String, String>) -> Result<Self, String> {
        if !path.is_file() {
            return Err("there is no such file; docs/write-a-device.md shows how to build one".into());
        }
        let mut lines = String::new();
        for (key, value) in parameters {
            writeln!(lines, "{key}={value}").expect("a string");
        }
        let lines = CString::new(lines).map_err(|_| "a parameter contains a zero byte")?;
        let functions = Arc::new(Functions::load(path)?);
        let (mut said, mut error) = (interface::Identity::default(), [0; ERROR_MAX]);
        // SAFETY: all four outlive the call; the library writes no more than a message of ERROR_MAX bytes.
        let device = unsafe {
            (functions.open)(ABI, lines.as_ptr(), &raw mut said, error.as_mut_ptr().cast::<c_char>())
        };
        let Some(device) = NonNull::new(device) else {
            return Err(dynamic::message(&error, "it gives no reason"));
        };
        let device = Self { functions, device, identity: identity(&said) };
        if said.abi != ABI {
            return Err(format!(
                "it was built with version {} of tlplab_device.h, but this is version {ABI}; rebuild it",
                said.abi
            ));
        }
        let wrong = |what: String| format!("it reports an invalid property: {what}");
        device.identity.check().map_err(|error| wrong(error.to_string()))?;
        tlplab_cfgspace::ConfigSpace::new(&device.layout()).map_err(|error| wrong(error.to_string()))?;
        Ok(device)
    }
}

impl Functions {
    fn load(path: &Path) -> Result<Self, String> {
        const OTHERWISE: &str = "device built with tlplab_device.h, or by export_device!";
        let library = dynamic::open(path)?;
        // SAFETY: the symbols have these types, if the library was built with the header, which `open` tells by the version.
        unsafe {
            Ok(Self {
                open: dynamic::symbol(&library, "tlplab_device_open", OTHERWISE)?,
                handle: dynamic::symbol(&library, "tlplab_device_handle", OTHERWISE)?,
                close: dynamic::symbol(&library, "tlplab_device_close", OTHERWISE)?,
                _library: library,
            })
        }
    }
}

/// A library's description of its function.
fn identity(said: &interface::Identity) -> Identity {
    Identity {
        revision: said.revision,
        subsystem: dynamic::subsystem(
            (said.subsystem_vendor, said.subsystem_device),
            (said.vendor, said.device),
        ),
        bars: dynamic::bars(&said.bars),
        // A number that is too large is refused as the largest is.
        msix_vectors: said.msix_vectors.try_into().unwrap_or(u16::MAX),
        msi_vectors: said.msi_vectors,
        intx: said.intx != 0,
        ..Identity::new(said.vendor, said.device, said.class_code)
    }
}

impl Device for LibraryDevice {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        // What `told` points to, until the call is over.
        let (data, message);
        let mut told = interface::Event::of(kind::START);
        match event {
            Event::Start => {}
            Event::MmioRead { bar, offset, bytes, reply } => {
                (told.kind, told.bar, told.offset) = (kind::MMIO_READ, bar.into(), offset);
                (told.bytes, told.id) = (bytes.into(), reply.0);
            }
            Event::MmioWrite { bar, offset, data: written } => {
                data = written;
                (told.kind, told.bar, told.offset) = (kind::MMIO_WRITE, bar.into(), offset);
                point_to(&mut told, &data);
            }
            Event::DmaReadDone { op, result } => {
                (told.kind, told.id) = (kind::DMA_READ_DONE, op.0);
                match result {
                    Ok(read) => {
                        data = read;
                        point_to(&mut told, &data);
                    }
                    Err(error) => {
                        message = CString::new(error.to_string()).unwrap_or_default();
                        told.message = message.as_ptr();
                        tell_error(&mut told, &error);
                    }
                }
            }
            Event::DmaWriteAccepted { op } => (told.kind, told.id) = (kind::DMA_WRITE_ACCEPTED, op.0),
            Event::Timer { id } => (told.kind, told.id) = (kind::TIMER, id),
            Event::Reset => told.kind = kind::RESET,
        }
        let mut context = context(cx);
        // SAFETY: the device is open; context, event and what the event points to outlive the call. The calls of the context use `cx`,
        // which nobody else does until this returns.
        unsafe { (self.functions.handle)(self.device.as_ptr(), &raw mut context, &raw const told) }
    }

    fn rebase(&mut self, by: Duration) {
        let told = interface::Event { bytes: by.as_fs(), ..interface::Event::of(kind::REBASE) };
        // SAFETY: the device is open; this event has no context.
        unsafe { (self.functions.handle)(self.device.as_ptr(), std::ptr::null_mut(), &raw const told) }
    }
}

impl Drop for LibraryDevice {
    fn drop(&mut self) {
        // SAFETY: the device is open, and nobody uses it after this.
        unsafe { (self.functions.close)(self.device.as_ptr()) }
    }
}

fn point_to(told: &mut interface::Event, data: &Payload) {
    told.bytes = data.len();
    if let Some(bytes) = data.bytes() {
        told.data = bytes.as_ptr();
    }
}

fn tell_error(told: &mut interface::Event, error: &DmaError) {
    use CompletionError as E;
    (told.error, told.offset) = match *error {
        DmaError::Completion(E::UnsupportedRequest { address }) => (code::UNSUPPORTED_REQUEST, address),
        DmaError::Completion(E::CompleterAbort { address }) => (code::COMPLETER_ABORT, address),
        DmaError::Completion(E::RetryStatus) => (code::RETRY_STATUS, 0),
        DmaError::Completion(E::Poisoned { address }) => (code::POISONED, address),
        DmaError::Completion(E::Timeout { address, tag, after }) => {
            (told.bar, told.bytes) = (tag.value().into(), after.as_fs());
            (code::TIMEOUT, address)
        }
        DmaError::BusMasterDisabled => (code::BUS_MASTER_DISABLED, 0),
        DmaError::Completion(E::Undelivered { .. } | E::Mismatch { .. })
        | DmaError::Request(_)
        | DmaError::Unacknowledged => (code::OTHER, 0),
    };
}

/// The actions open to a library during one event of its device.
fn context(cx: &mut Context<'_>) -> interface::Context {
    let (mps, mrrs) = cx.request_sizes();
    interface::Context {
        now: (cx.now() - Time::ZERO).as_fs(),
        interrupts: match cx.interrupt_mode() {
            InterruptMode::Disabled => interrupts::NONE,
            InterruptMode::Intx => interrupts::INTX,
            InterruptMode::Msi => interrupts::MSI,
            InterruptMode::MsiX => interrupts::MSIX,
        },
        length_only: cx.length_only().into(),
        mps: mps.bytes(),
        mrrs: mrrs.bytes(),
        simulator: std::ptr::from_mut(cx).cast(),
        dma_read,
        dma_write,
        msix,
        intx,
        reply,
        refuse,
        timer,
        finished,
        fail,
        set_config,
    }
}

/// The simulator's context.
///
/// # Safety
/// `cx` is that which [`context`] made, and the device handles an event.
unsafe fn simulator<'a>(cx: *mut interface::Context) -> &'a mut Context<'a> {
    // SAFETY: `context` put it there; the reference does not outlive the call that is under way, and there is one at a time.
    unsafe { &mut *(*cx).simulator.cast() }
}

/// Bytes of a library, which are its own again when the call is over; where there are none, zeros, or in a length-only run their number.
///
/// # Safety
/// `data` is null or points to so many bytes.
unsafe fn payload(cx: &Context<'_>, data: *const u8, bytes: u64) -> Payload {
    if data.is_null() {
        return if cx.length_only() { Payload::Length(bytes) } else { vec![0; bytes as usize].into() };
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(data, bytes as usize) }.to_vec().into()
}

unsafe extern "C" fn dma_read(
    cx: *mut interface::Context,
    stream: u16,
    address: u64,
    bytes: u64,
    control: c_int,
) -> u64 {
    // SAFETY: the header says who may call this, and when; so below.
    let cx = unsafe { simulator(cx) };
    if control == 0 {
        cx.dma_read(stream, address, bytes).0
    } else {
        cx.dma_read_control(stream, address, bytes).0
    }
}

unsafe extern "C" fn dma_write(
    cx: *mut interface::Context,
    stream: u16,
    address: u64,
    data: *const u8,
    bytes: u64,
) -> u64 {
    // SAFETY: the library gives so many bytes.
    unsafe {
        let cx = simulator(cx);
        let data = payload(cx, data, bytes);
        cx.dma_write(stream, address, data).0
    }
}

unsafe extern "C" fn msix(cx: *mut interface::Context, stream: u16, vector: u16) {
    // SAFETY: as above.
    unsafe { simulator(cx) }.msix(stream, vector);
}

unsafe extern "C" fn intx(cx: *mut interface::Context, stream: u16, asserted: c_int) {
    // SAFETY: as above.
    unsafe { simulator(cx) }.set_intx(stream, asserted != 0);
}

unsafe extern "C" fn reply(cx: *mut interface::Context, read: u64, data: *const u8, bytes: u64) {
    // SAFETY: the library gives so many bytes.
    unsafe {
        let cx = simulator(cx);
        let data = payload(cx, data, bytes);
        cx.reply(ReplyToken(read), data);
    }
}

unsafe extern "C" fn refuse(cx: *mut interface::Context, read: u64, completer_abort: c_int) {
    let refusal = if completer_abort == 0 { Refusal::UnsupportedRequest } else { Refusal::CompleterAbort };
    // SAFETY: as above.
    unsafe { simulator(cx) }.reply_error(ReplyToken(read), refusal);
}

unsafe extern "C" fn timer(cx: *mut interface::Context, at: u64, id: u64) {
    // SAFETY: as above.
    unsafe { simulator(cx) }.timer(Time::from_fs(at), id);
}

unsafe extern "C" fn finished(cx: *mut interface::Context) {
    // SAFETY: as above.
    unsafe { simulator(cx) }.finished();
}

unsafe extern "C" fn set_config(cx: *mut interface::Context, offset: u16, data: *const u8, bytes: u16) {
    // SAFETY: the library gives so many bytes.
    unsafe {
        let data = if data.is_null() { &[] } else { std::slice::from_raw_parts(data, bytes.into()) };
        simulator(cx).set_config(offset, data);
    }
}

unsafe extern "C" fn fail(cx: *mut interface::Context, message: *const c_char) {
    // SAFETY: the library gives a string that ends with 0.
    unsafe {
        let text = if message.is_null() {
            "it gives no reason".into()
        } else {
            CStr::from_ptr(message).to_string_lossy().into_owned()
        };
        simulator(cx).fault(text);
    }
}
