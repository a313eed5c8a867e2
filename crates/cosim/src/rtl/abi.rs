//! `rtl/include/tlplab_rtl.h` in Rust: its structures, and a library that has its six functions.
//!
//! This is the only place that calls into such a library. What it may do wrong beyond what is checked here (write past its structures,
//! keep a pointer that is the caller's) nobody can check: loading a model is as running a program.
#![allow(
    unsafe_code,
    reason = "a library in C is called by pointers; every block says what the header promises"
)]

use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use tlplab_device_library::dynamic;
use tlplab_device_library::interface::{Bar, ERROR_MAX};

/// Of what a library without these functions is none.
const OTHERWISE: &str = "model built with rtl/include/tlplab_rtl.h";
/// Version of the interface.
const ABI: u32 = 2;
/// Longest TLP.
const TLP_MAX: usize = 4132;
pub(super) const NO_BAR: u8 = 0xFF;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Identity {
    abi: u32,
    pub(super) vendor: u16,
    pub(super) device: u16,
    pub(super) subsystem_vendor: u16,
    pub(super) subsystem_device: u16,
    pub(super) class_code: u32,
    pub(super) revision: u8,
    pub(super) intx_pin: u8,
    pub(super) mps_supported: u8,
    pub(super) extended_tags: u8,
    pub(super) msix_vectors: u16,
    pub(super) msix_table_bar: u8,
    pub(super) msix_pba_bar: u8,
    pub(super) msix_table_offset: u32,
    pub(super) msix_pba_offset: u32,
    pub(super) msi_vectors: u8,
    pub(super) flr: u8,
    reserved: u16,
    pub(super) bars: [Bar; 6],
}

#[repr(C)]
pub(super) struct Registers {
    pub(super) id: u16,
    pub(super) mps: u8,
    pub(super) mrrs: u8,
    pub(super) bus_master: u8,
    pub(super) extended_tag: u8,
    pub(super) msix_enable: u8,
    pub(super) msix_mask: u8,
    pub(super) intx_disable: u8,
    pub(super) reset: u8,
    pub(super) read_boundary_128: u8,
    pub(super) msi_enable: u8,
    pub(super) msi_vectors: u8,
    pub(super) msi_data: u16,
    pub(super) msi_mask: u32,
    pub(super) msi_address: u64,
}

#[repr(C)]
pub(super) struct Output {
    pub(super) time: u64,
    pub(super) taken: [u32; 3],
    pub(super) intx: u8,
    pub(super) idle: u8,
    tlp_bytes: u16,
    tlp: [u8; TLP_MAX],
    error: [u8; ERROR_MAX],
}

type Open = unsafe extern "C" fn(u32, *const c_char, *mut Identity, *mut c_char) -> *mut c_void;
type Close = unsafe extern "C" fn(*mut c_void);
type Configure = unsafe extern "C" fn(*mut c_void, *const Registers);
type Receive = unsafe extern "C" fn(*mut c_void, *const u8, usize, u8) -> c_int;
type Run = unsafe extern "C" fn(*mut c_void, u64, u8, *mut Output) -> c_int;
type Trace = unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_char) -> c_int;

/// A library whose functions have been found.
pub(super) struct Functions {
    open: Open,
    close: Close,
    configure: Configure,
    receive: Receive,
    run: Run,
    trace: Trace,
    // Its functions are only there while it is.
    _library: Library,
}

impl Functions {
    /// Loads a library. The error says what is wrong with it.
    pub(super) fn load(path: &Path) -> Result<Arc<Self>, String> {
        let library = dynamic::open(path)?;
        // SAFETY: the symbols have these types, if the library was built with the header, which `open` tells by the version.
        unsafe {
            Ok(Arc::new(Self {
                open: dynamic::symbol(&library, "tlplab_rtl_open", OTHERWISE)?,
                close: dynamic::symbol(&library, "tlplab_rtl_close", OTHERWISE)?,
                configure: dynamic::symbol(&library, "tlplab_rtl_configure", OTHERWISE)?,
                receive: dynamic::symbol(&library, "tlplab_rtl_receive", OTHERWISE)?,
                run: dynamic::symbol(&library, "tlplab_rtl_run", OTHERWISE)?,
                trace: dynamic::symbol(&library, "tlplab_rtl_trace", OTHERWISE)?,
                _library: library,
            }))
        }
    }

    /// Makes a model. The error is the library's own.
    pub(super) fn open(self: &Arc<Self>, parameters: &str) -> Result<(Handle, Identity), String> {
        let parameters = CString::new(parameters).map_err(|_| "a parameter contains a zero byte")?;
        let (mut identity, mut error) = (Identity::default(), [0; ERROR_MAX]);
        // SAFETY: all four outlive the call; the library writes no more than a message of ERROR_MAX bytes.
        let model = unsafe {
            (self.open)(ABI, parameters.as_ptr(), &raw mut identity, error.as_mut_ptr().cast::<c_char>())
        };
        let Some(model) = NonNull::new(model) else { return Err(text(&error)) };
        let handle = Handle { functions: self.clone(), model, output: Box::new(Output::EMPTY) };
        if identity.abi != ABI {
            return Err(format!(
                "it was built with version {} of tlplab_rtl.h, but this is version {ABI}; rebuild it",
                identity.abi
            ));
        }
        Ok((handle, identity))
    }
}

/// The message of an error.
fn text(message: &[u8; ERROR_MAX]) -> String {
    dynamic::message(message, "its model gives no reason")
}

/// An open model.
pub(super) struct Handle {
    functions: Arc<Functions>,
    model: NonNull<c_void>,
    output: Box<Output>,
}

// SAFETY: the header promises that a handle may be used by any thread, by one at a time; nothing here is shared but `functions`, which
// hold no state.
unsafe impl Send for Handle {}

impl Handle {
    pub(super) fn configure(&mut self, registers: &Registers) {
        // SAFETY: the model is open, and reads the registers during the call.
        unsafe { (self.functions.configure)(self.model.as_ptr(), registers) }
    }

    /// True if there was room for it.
    pub(super) fn receive(&mut self, tlp: &[u8], bar: u8) -> bool {
        // SAFETY: the model is open, and reads so many bytes during the call.
        unsafe { (self.functions.receive)(self.model.as_ptr(), tlp.as_ptr(), tlp.len(), bar) == 0 }
    }

    /// The output, and the TLP in it.
    pub(super) fn run(&mut self, until: u64, room: u8) -> Result<(&Output, &[u8]), String> {
        // SAFETY: the model is open, and writes the whole of a structure of this size and nothing else.
        let status = unsafe { (self.functions.run)(self.model.as_ptr(), until, room, &raw mut *self.output) };
        let output = &*self.output;
        if status != 0 {
            return Err(text(&output.error));
        }
        let tlp = output.tlp.get(..output.tlp_bytes.into());
        tlp.map(|tlp| (output, tlp))
            .ok_or_else(|| format!("its model sent a TLP of {} bytes, above the maximum", output.tlp_bytes))
    }

    pub(super) fn trace(&mut self, path: &Path) -> Result<(), String> {
        let path =
            CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| "its name contains a zero byte")?;
        let mut error = [0; ERROR_MAX];
        // SAFETY: the model is open; the library writes no more than a message of ERROR_MAX bytes.
        let status = unsafe {
            (self.functions.trace)(self.model.as_ptr(), path.as_ptr(), error.as_mut_ptr().cast::<c_char>())
        };
        if status == 0 { Ok(()) } else { Err(text(&error)) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the model is open, and nobody uses it after this.
        unsafe { (self.functions.close)(self.model.as_ptr()) }
    }
}

impl Output {
    const EMPTY: Self = Self {
        time: 0,
        taken: [0; 3],
        intx: 0,
        idle: 0,
        tlp_bytes: 0,
        tlp: [0; TLP_MAX],
        error: [0; ERROR_MAX],
    };
}
