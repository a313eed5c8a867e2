//! Libraries of devices in Rust: [`export_device!`](crate::export_device) defines the functions of the header.
#![allow(unsafe_code, reason = "a library is called by pointers; every block says what the header promises")]

use crate::interface::{self, ABI, ERROR_MAX, code, interrupts, kind};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use tlplab_cfgspace::InterruptMode;
use tlplab_device::{Action, Context, Device, DmaError, Event, Identity, OpId, Refusal, ReplyToken};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Duration, Mps, Mrrs, Tag, Time};

/// The further keys of a device in its experiment, as text; booleans are 0 and 1.
pub type Parameters = BTreeMap<String, String>;

/// Makes the functions of `tlplab_device.h` of a function that makes a device: `fn(&Parameters) -> Result<Box<dyn Device>, String>`. One in
/// each library; its crate is a `cdylib`. The error says what is wrong with a parameter, and what would be right.
///
/// The parts that only the contract in Rust has (a layout of configuration space beyond the identity, peers by name, requests that are packed) do
/// not go through the interface.
#[macro_export]
macro_rules! export_device {
    ($make:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn tlplab_device_open(
            abi: u32,
            parameters: *const ::std::ffi::c_char,
            identity: *mut $crate::interface::Identity,
            error: *mut ::std::ffi::c_char,
        ) -> *mut ::std::ffi::c_void {
            unsafe { $crate::export::open(abi, parameters, identity, error, $make) }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn tlplab_device_handle(
            device: *mut ::std::ffi::c_void,
            cx: *mut $crate::interface::Context,
            event: *const $crate::interface::Event,
        ) {
            unsafe { $crate::export::handle(device, cx, event) }
        }
        #[unsafe(no_mangle)]
        unsafe extern "C" fn tlplab_device_close(device: *mut ::std::ffi::c_void) {
            unsafe { $crate::export::close(device) }
        }
    };
}

/// A device, and what it calls its operations.
struct Exported {
    device: Box<dyn Device>,
    next_op: u64,
    /// The device's names of operations, by the caller's.
    operations: BTreeMap<u64, OpId>,
}

/// `tlplab_device_open`
///
/// # Safety
/// As the header says.
pub unsafe fn open(
    abi: u32,
    parameters: *const c_char,
    identity: *mut interface::Identity,
    error: *mut c_char,
    make: fn(&Parameters) -> Result<Box<dyn Device>, String>,
) -> *mut c_void {
    // SAFETY: a string that ends with 0.
    let lines = unsafe { CStr::from_ptr(parameters) }.to_string_lossy();
    let pairs = lines.lines().filter_map(|line| line.split_once('='));
    let parameters = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let made = if abi == ABI {
        make(&parameters)
    } else {
        Err(format!(
            "it was built with version {ABI} of tlplab_device.h, but version {abi} is requested; rebuild it"
        ))
    };
    match made {
        Ok(device) => {
            // SAFETY: there is an identity to be written.
            unsafe { *identity = said_of(&device.identity()) };
            let exported = Exported { device, next_op: 0, operations: BTreeMap::new() };
            Box::into_raw(Box::new(exported)).cast()
        }
        Err(why) => {
            let length = why.len().min(ERROR_MAX - 1);
            // SAFETY: there is room for ERROR_MAX bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(why.as_ptr(), error.cast(), length);
                *error.add(length) = 0;
            }
            std::ptr::null_mut()
        }
    }
}

/// `tlplab_device_close`
///
/// # Safety
/// As the header says.
pub unsafe fn close(device: *mut c_void) {
    // SAFETY: `open` has made it, and nobody uses it after this.
    drop(unsafe { Box::from_raw(device.cast::<Exported>()) });
}

/// `tlplab_device_handle`
///
/// # Safety
/// As the header says.
pub unsafe fn handle(device: *mut c_void, cx: *mut interface::Context, event: *const interface::Event) {
    // SAFETY: `open` has made the device, and one call uses it at a time; the event is there.
    let (exported, told) = unsafe { (&mut *device.cast::<Exported>(), &*event) };
    if told.kind == kind::REBASE {
        return exported.device.rebase(Duration::from_fs(told.bytes));
    }
    // SAFETY: the event's data and message are there.
    let event = match unsafe { exported.understand(told) } {
        Ok(event) => event,
        Err(why) => {
            // SAFETY: the context is that of this event.
            return unsafe { fail(cx, why) };
        }
    };
    let mut actions = Vec::new();
    // SAFETY: every other event has a context.
    let (now, mode, length_only, sizes) =
        unsafe { ((*cx).now, (*cx).interrupts, (*cx).length_only != 0, ((*cx).mps, (*cx).mrrs)) };
    let mps = Mps::ALL.iter().find(|mps| mps.bytes() == sizes.0).copied().unwrap_or(Mps::ALL[0]);
    let mrrs = Mrrs::ALL.iter().find(|mrrs| mrrs.bytes() == sizes.1).copied().unwrap_or(Mrrs::ALL[0]);
    let mut own = Context::new(Time::from_fs(now), &[], &mut exported.next_op, &mut actions)
        .with_length_only(length_only)
        .with_interrupts(match mode {
            interrupts::INTX => InterruptMode::Intx,
            interrupts::MSI => InterruptMode::Msi,
            interrupts::MSIX => InterruptMode::MsiX,
            _ => InterruptMode::Disabled,
        })
        .with_request_sizes(mps, mrrs);
    exported.device.handle(&mut own, event);
    for action in actions {
        // SAFETY: the context is that of this event.
        unsafe { exported.carry_out(cx, action) };
    }
}

impl Exported {
    /// An event that came through the interface. The error is one of its kind that the contract in Rust has no value for.
    ///
    /// # Safety
    /// The data that the event points to are valid.
    unsafe fn understand(&mut self, told: &interface::Event) -> Result<Event, String> {
        let data = || {
            if told.data.is_null() {
                return Payload::Length(told.bytes);
            }
            // SAFETY: as the caller says.
            unsafe { std::slice::from_raw_parts(told.data, told.bytes as usize) }.to_vec().into()
        };
        let (bar, offset) = (told.bar as u8, told.offset);
        Ok(match told.kind {
            kind::START => Event::Start,
            kind::MMIO_READ => {
                Event::MmioRead { bar, offset, bytes: told.bytes as u32, reply: ReplyToken(told.id) }
            }
            kind::MMIO_WRITE => Event::MmioWrite { bar, offset, data: data() },
            kind::DMA_READ_DONE => {
                let op = self.over(told.id)?;
                let result = match error_of(told) {
                    Some(Ok(error)) => Err(error),
                    // SAFETY: as the caller says.
                    Some(Err(())) => return Err(unsafe { message_of(told) }),
                    None => Ok(data()),
                };
                Event::DmaReadDone { op, result }
            }
            kind::DMA_WRITE_ACCEPTED => Event::DmaWriteAccepted { op: self.over(told.id)? },
            kind::TIMER => Event::Timer { id: told.id },
            kind::RESET => {
                self.operations.clear();
                Event::Reset
            }
            other => {
                return Err(format!("unknown event kind {other} in version {ABI} of tlplab_device.h"));
            }
        })
    }

    /// The device's name of an operation that is over.
    fn over(&mut self, told: u64) -> Result<OpId, String> {
        self.operations.remove(&told).ok_or_else(|| format!("operation {told} ended, but is not outstanding"))
    }

    /// Tells the caller of what the device does.
    ///
    /// # Safety
    /// The context is that of the event under way.
    unsafe fn carry_out(&mut self, cx: *mut interface::Context, action: Action) {
        // SAFETY: as the caller says; pointers are to what outlives each call.
        unsafe {
            match action {
                Action::DmaRead { op, stream, address, bytes, carry } => {
                    let told = ((*cx).dma_read)(cx, stream, address, bytes, carry.into());
                    self.operations.insert(told, op);
                }
                Action::DmaWrite { op, stream, address, data } => {
                    let told = ((*cx).dma_write)(cx, stream, address, pointer(&data), data.len());
                    self.operations.insert(told, op);
                }
                Action::Msix { stream, vector } => ((*cx).msix)(cx, stream, vector),
                Action::Intx { stream, asserted } => ((*cx).intx)(cx, stream, asserted.into()),
                Action::Reply { token, data } => {
                    ((*cx).reply)(cx, token.0, pointer(&data), data.len());
                }
                Action::ReplyError { token, refusal } => {
                    ((*cx).refuse)(cx, token.0, (refusal == Refusal::CompleterAbort).into());
                }
                Action::Timer { at, id } => ((*cx).timer)(cx, (at - Time::ZERO).as_fs(), id),
                Action::SetConfig { offset, data } => {
                    // More than there are is refused by the number.
                    let bytes = data.len().try_into().unwrap_or(u16::MAX);
                    ((*cx).set_config)(cx, offset, data.as_ptr(), bytes);
                }
                Action::Finished => ((*cx).finished)(cx),
                Action::Fault(message) => fail(cx, message),
            }
        }
    }
}

fn pointer(data: &Payload) -> *const u8 {
    data.bytes().map_or(std::ptr::null(), |bytes| bytes.as_ptr())
}

/// # Safety
/// The context is that of the event under way.
unsafe fn fail(cx: *mut interface::Context, message: String) {
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // SAFETY: as the caller says; the message outlives the call.
    unsafe { ((*cx).fail)(cx, message.as_ptr()) }
}

/// # Safety
/// The event's message is there.
unsafe fn message_of(told: &interface::Event) -> String {
    if told.message.is_null() {
        return "an operation failed without a reason".into();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(told.message) }.to_string_lossy().into_owned()
}

/// The error of a failed operation; `Err` for an error without a code.
fn error_of(told: &interface::Event) -> Option<Result<DmaError, ()>> {
    let address = told.offset;
    Some(Ok(match told.error {
        code::OK => return None,
        code::UNSUPPORTED_REQUEST => CompletionError::UnsupportedRequest { address }.into(),
        code::COMPLETER_ABORT => CompletionError::CompleterAbort { address }.into(),
        code::RETRY_STATUS => CompletionError::RetryStatus.into(),
        code::POISONED => CompletionError::Poisoned { address }.into(),
        code::TIMEOUT => {
            let tag = Tag::new(told.bar as u16).unwrap_or_default();
            CompletionError::Timeout { address, tag, after: Duration::from_fs(told.bytes) }.into()
        }
        code::BUS_MASTER_DISABLED => DmaError::BusMasterDisabled,
        _ => return Some(Err(())),
    }))
}

fn said_of(identity: &Identity) -> interface::Identity {
    let mut said = interface::Identity {
        abi: ABI,
        vendor: identity.vendor,
        device: identity.device,
        subsystem_vendor: identity.subsystem.0,
        subsystem_device: identity.subsystem.1,
        class_code: identity.class,
        revision: identity.revision,
        intx: identity.intx.into(),
        msi_vectors: identity.msi_vectors,
        reserved: 0,
        msix_vectors: identity.msix_vectors.into(),
        bars: [interface::Bar::default(); 6],
    };
    for bar in &identity.bars {
        let flags = [
            (bar.is_64_bit, interface::BAR_64BIT),
            (bar.prefetchable, interface::BAR_PREFETCHABLE),
            (bar.io, interface::BAR_IO),
        ];
        let flags = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum();
        said.bars[usize::from(bar.index)] = interface::Bar { size: bar.size, flags, reserved: 0 };
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Changing;

    impl Device for Changing {
        fn identity(&self) -> Identity {
            Identity::new(0x71AB, 1, 0xFF_00_00)
        }
        fn handle(&mut self, cx: &mut Context<'_>, _event: Event) {
            cx.set_config(0x2C, &[0x12, 0x34]);
        }
    }

    unsafe extern "C" fn set_config(cx: *mut interface::Context, offset: u16, data: *const u8, bytes: u16) {
        // SAFETY: the test has put a list there, and so many bytes are given.
        unsafe {
            let data = std::slice::from_raw_parts(data, bytes.into()).to_vec();
            (*(*cx).simulator.cast::<Vec<(u16, Vec<u8>)>>()).push((offset, data));
        }
    }

    #[test]
    fn configuration_space_changes_of_a_device_reach_the_caller() {
        unsafe extern "C" fn read(
            _: *mut interface::Context,
            _: u16,
            _: u64,
            _: u64,
            _: std::ffi::c_int,
        ) -> u64 {
            0
        }
        unsafe extern "C" fn write(_: *mut interface::Context, _: u16, _: u64, _: *const u8, _: u64) -> u64 {
            0
        }
        unsafe extern "C" fn msix(_: *mut interface::Context, _: u16, _: u16) {}
        unsafe extern "C" fn intx(_: *mut interface::Context, _: u16, _: std::ffi::c_int) {}
        unsafe extern "C" fn reply(_: *mut interface::Context, _: u64, _: *const u8, _: u64) {}
        unsafe extern "C" fn refuse(_: *mut interface::Context, _: u64, _: std::ffi::c_int) {}
        unsafe extern "C" fn timer(_: *mut interface::Context, _: u64, _: u64) {}
        unsafe extern "C" fn finished(_: *mut interface::Context) {}
        unsafe extern "C" fn fail(_: *mut interface::Context, _: *const c_char) {}
        let mut heard: Vec<(u16, Vec<u8>)> = Vec::new();
        let mut cx = interface::Context {
            simulator: (&raw mut heard).cast(),
            now: 0,
            interrupts: interrupts::NONE,
            length_only: 0,
            mps: 128,
            mrrs: 512,
            dma_read: read,
            dma_write: write,
            msix,
            intx,
            reply,
            refuse,
            timer,
            finished,
            fail,
            set_config,
        };
        let (mut identity, mut error) = (interface::Identity::default(), [0; ERROR_MAX]);
        // SAFETY: as the header asks for.
        unsafe {
            let error = error.as_mut_ptr();
            let device = open(ABI, c"".as_ptr(), &raw mut identity, error, |_| Ok(Box::new(Changing)));
            handle(device, &raw mut cx, &interface::Event::of(kind::START));
            close(device);
        }
        assert_eq!(heard, [(0x2C, vec![0x12, 0x34])]);
    }
}
