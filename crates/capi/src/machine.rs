//! `tlplab_machine.h`: a simulated machine under a driver in C.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;

use nix::errno::Errno;
use tlplab_cfgspace::InterruptMode;
use tlplab_cosim::machine::{Machine, MachineError};
use tlplab_experiment::Options;
use tlplab_units::Duration;

use crate::errno::{Result, of_dma};
use crate::guard::no_panic;

/// `struct tlplab_machine`.
pub struct TlplabMachine {
    machine: Machine,
    error: CString,
}

/// `struct tlplab_machine_info`.
#[repr(C)]
pub struct TlplabMachineInfo {
    vendor: u16,
    device: u16,
    id: u16,
    interrupts: u16,
    bar_base: [u64; 6],
    bar_size: [u64; 6],
}

/// A failure, as number and sentence.
struct Failure(Errno, String);

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self(errno, errno.desc().to_owned())
    }
}

impl From<MachineError> for Failure {
    fn from(error: MachineError) -> Self {
        let errno = match &error {
            MachineError::Experiment(_) | MachineError::LengthOnly(_) | MachineError::OutsideBar { .. } => {
                Errno::EINVAL
            }
            MachineError::Run(_) => Errno::EIO,
            MachineError::NoDevice { .. } => Errno::ENODEV,
            MachineError::Access(error) => of_dma(error),
            MachineError::Stuck(_) => Errno::EDEADLK,
        };
        Self(errno, error.to_string())
    }
}

/// A sentence for C, which ends at its first NUL.
fn sentence(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).expect("it has no NUL")
}

/// The result of `body` on the machine, or `failed`, with `errno` and the machine's sentence set.
///
/// # Safety
/// `machine` is null or came from [`tlplab_machine_open`] and was not closed.
unsafe fn with<T>(
    machine: *mut TlplabMachine,
    failed: T,
    body: impl FnOnce(&mut Machine) -> std::result::Result<T, Failure>,
) -> T {
    // SAFETY: the caller's promise.
    let Some(own) = (unsafe { machine.as_mut() }) else {
        Errno::EFAULT.set();
        return failed;
    };
    let defect = || Err(Failure::from(Errno::ENOTRECOVERABLE));
    no_panic(defect(), || body(&mut own.machine)).unwrap_or_else(|Failure(errno, text)| {
        own.error = sentence(&text);
        errno.set();
        failed
    })
}

/// Bytes that C lends.
///
/// # Safety
/// `data` points to `bytes` bytes that nobody changes meanwhile, unless it is null or there are none.
unsafe fn slice<'a>(data: *const c_void, bytes: usize) -> Result<&'a [u8]> {
    match (data.is_null(), bytes) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno::EFAULT),
        // SAFETY: the caller's promise.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(data.cast(), bytes) }),
    }
}

/// Bytes that C lends to be written.
///
/// # Safety
/// As for [`slice`], and nobody else has them.
unsafe fn slice_mut<'a, T>(data: *mut T, count: usize) -> Result<&'a mut [T]> {
    match (data.is_null(), count) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Errno::EFAULT),
        // SAFETY: the caller's promise.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(data, count) }),
    }
}

/// A text of C's.
///
/// # Safety
/// `text` is null or a string of C.
unsafe fn text<'a>(text: *const c_char) -> std::result::Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Errno::EFAULT.into());
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure(Errno::EINVAL, "a string is not valid UTF-8".into()))
}

/// Overrides.
///
/// # Safety
/// `set` is null, or points to strings of C and a null pointer behind them.
unsafe fn overrides(set: *const *const c_char) -> std::result::Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    while !set.is_null() {
        // SAFETY: the caller's promise: before the null pointer there are strings.
        let one = unsafe { *set.add(found.len()) };
        if one.is_null() {
            break;
        }
        // SAFETY: the caller's promise.
        found.push(unsafe { text(one) }?.to_owned());
    }
    Ok(found)
}

/// `tlplab_machine.h`.
///
/// # Safety
/// The texts are strings of C; `set` is null or ends with a null pointer; `message` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_open(
    experiment: *const c_char,
    device: *const c_char,
    set: *const *const c_char,
    message: *mut c_char,
    size: usize,
) -> *mut TlplabMachine {
    let open = || {
        // SAFETY: the caller's promise.
        let (file, device, set) = unsafe { (text(experiment)?, text(device)?, overrides(set)?) };
        let options = Options { set, ..Options::default() };
        Ok(Machine::open(Path::new(file), device, &options)?)
    };
    match no_panic(Err(Failure::from(Errno::ENOTRECOVERABLE)), open) {
        Ok(machine) => Box::into_raw(Box::new(TlplabMachine { machine, error: CString::default() })),
        Err(Failure(errno, why)) => {
            let why = sentence(&why);
            // SAFETY: the caller's promise.
            if let Ok(message) = unsafe { slice_mut(message.cast::<u8>(), size) }
                && let Some(room) = size.checked_sub(1)
            {
                let length = why.as_bytes().len().min(room);
                message[..length].copy_from_slice(&why.as_bytes()[..length]);
                message[length] = 0;
            }
            errno.set();
            std::ptr::null_mut()
        }
    }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// `machine` is null or came from [`tlplab_machine_open`], and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_close(machine: *mut TlplabMachine) {
    if !machine.is_null() {
        // SAFETY: the caller's promise; it was made by `Box::into_raw`.
        no_panic((), || drop(unsafe { Box::from_raw(machine) }));
    }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// `machine` is null or came from [`tlplab_machine_open`] and was not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_error(machine: *const TlplabMachine) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { machine.as_ref() }.map_or(c"the machine is null".as_ptr(), |own| own.error.as_ptr())
}

/// `tlplab_machine.h`.
///
/// # Safety
/// As [`tlplab_machine_error`]; `info` points to a `struct tlplab_machine_info`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_info(
    machine: *mut TlplabMachine,
    info: *mut TlplabMachineInfo,
) -> c_int {
    let body = |machine: &mut Machine| {
        let known = machine.info();
        let told = TlplabMachineInfo {
            vendor: known.ids.0,
            device: known.ids.1,
            id: known.id.0,
            interrupts: match known.interrupts {
                InterruptMode::Disabled => 0,
                InterruptMode::Intx => 1,
                InterruptMode::Msi => 2,
                InterruptMode::MsiX => 3,
            },
            bar_base: known.bars.map(|bar| bar.map_or(0, |(base, _)| base)),
            bar_size: known.bars.map(|bar| bar.map_or(0, |(_, size)| size)),
        };
        if info.is_null() {
            return Err(Errno::EFAULT.into());
        }
        // SAFETY: the caller's promise.
        unsafe { info.write(told) };
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(machine, -1, body) }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// As [`tlplab_machine_error`]; `data` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_read(
    machine: *mut TlplabMachine,
    bar: c_uint,
    offset: u64,
    data: *mut c_void,
    bytes: usize,
) -> c_int {
    let body = |machine: &mut Machine| {
        // SAFETY: the caller's promise.
        let data = unsafe { slice_mut(data.cast::<u8>(), bytes) }?;
        machine.read(u8::try_from(bar).unwrap_or(u8::MAX), offset, data)?;
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(machine, -1, body) }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// As [`tlplab_machine_error`]; `data` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_write(
    machine: *mut TlplabMachine,
    bar: c_uint,
    offset: u64,
    data: *const c_void,
    bytes: usize,
) -> c_int {
    let body = |machine: &mut Machine| {
        // SAFETY: the caller's promise.
        let data = unsafe { slice(data, bytes) }?;
        machine.write(u8::try_from(bar).unwrap_or(u8::MAX), offset, data)?;
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(machine, -1, body) }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// As [`tlplab_machine_error`]; `address` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_alloc(
    machine: *mut TlplabMachine,
    bytes: u64,
    align: u64,
    address: *mut u64,
) -> c_int {
    let body = |machine: &mut Machine| {
        if address.is_null() {
            return Err(Errno::EFAULT.into());
        }
        if !align.is_power_of_two() || bytes == 0 {
            return Err(Failure(
                Errno::EINVAL,
                format!(
                    "cannot allocate {bytes} B aligned to {align} B: the size must be above 0, the alignment a power of two"
                ),
            ));
        }
        let got = machine.memory().alloc(bytes, align);
        let got = got.map_err(|error| Failure(Errno::ENOMEM, error.to_string()))?;
        // SAFETY: the caller's promise.
        unsafe { address.write(got) };
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(machine, -1, body) }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// As [`tlplab_machine_error`]; `addresses` has room for `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_alloc_pages(
    machine: *mut TlplabMachine,
    count: usize,
    addresses: *mut u64,
) -> c_int {
    let body = |machine: &mut Machine| {
        // SAFETY: the caller's promise.
        let addresses = unsafe { slice_mut(addresses, count) }?;
        let pages = machine.alloc_pages(count as u64);
        let pages = pages.map_err(|error| Failure(Errno::ENOMEM, error.to_string()))?;
        for (address, page) in addresses.iter_mut().zip(pages) {
            *address = page;
        }
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(machine, -1, body) }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// As [`tlplab_machine_error`]; `data` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_load(
    machine: *mut TlplabMachine,
    address: u64,
    data: *mut c_void,
    bytes: usize,
) -> c_int {
    let body = |machine: &mut Machine| {
        // SAFETY: the caller's promise.
        machine.memory().read(address, unsafe { slice_mut(data.cast::<u8>(), bytes) }?);
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(machine, -1, body) }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// As [`tlplab_machine_error`]; `data` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_store(
    machine: *mut TlplabMachine,
    address: u64,
    data: *const c_void,
    bytes: usize,
) -> c_int {
    let body = |machine: &mut Machine| {
        // SAFETY: the caller's promise.
        machine.memory().write(address, unsafe { slice(data, bytes) }?);
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(machine, -1, body) }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// As [`tlplab_machine_error`]; `vector` is null or points to an `unsigned`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_wait(
    machine: *mut TlplabMachine,
    fs: u64,
    vector: *mut c_uint,
) -> c_int {
    let body = |machine: &mut Machine| {
        let Some(raised) = machine.wait(Duration::from_fs(fs))? else { return Ok(0) };
        if !vector.is_null() {
            // SAFETY: the caller's promise.
            unsafe { vector.write(raised.into()) };
        }
        Ok(1)
    };
    // SAFETY: the caller's promise.
    unsafe { with(machine, -1, body) }
}

/// `tlplab_machine.h`.
///
/// # Safety
/// As [`tlplab_machine_error`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tlplab_machine_now(machine: *mut TlplabMachine) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { with(machine, 0, |machine| Ok(machine.now().as_fs())) }
}
