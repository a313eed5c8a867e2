//! `include/tlplab_device.h` in Rust. The sizes of its structures are tested against a C compiler's.
#![allow(missing_docs, reason = "the header has them")]

use std::ffi::{c_char, c_int, c_void};

/// Version of the interface.
pub const ABI: u32 = 2;
/// Longest message of an error, with its final 0.
pub const ERROR_MAX: usize = 512;

pub const BAR_64BIT: u32 = 1;
pub const BAR_PREFETCHABLE: u32 = 2;
pub const BAR_IO: u32 = 4;

/// `struct tlplab_device_bar`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Bar {
    pub size: u64,
    pub flags: u32,
    pub reserved: u32,
}

/// `struct tlplab_device_identity`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity {
    pub abi: u32,
    pub vendor: u16,
    pub device: u16,
    pub subsystem_vendor: u16,
    pub subsystem_device: u16,
    pub class_code: u32,
    pub revision: u8,
    pub intx: u8,
    pub msi_vectors: u8,
    pub reserved: u8,
    pub msix_vectors: u32,
    pub bars: [Bar; 6],
}

/// `enum tlplab_device_event_kind`
pub mod kind {
    pub const START: u32 = 0;
    pub const MMIO_READ: u32 = 1;
    pub const MMIO_WRITE: u32 = 2;
    pub const DMA_READ_DONE: u32 = 3;
    pub const DMA_WRITE_ACCEPTED: u32 = 4;
    pub const TIMER: u32 = 5;
    pub const RESET: u32 = 6;
    pub const REBASE: u32 = 7;
}

/// `enum tlplab_device_error`
pub mod code {
    pub const OK: u32 = 0;
    pub const UNSUPPORTED_REQUEST: u32 = 1;
    pub const COMPLETER_ABORT: u32 = 2;
    pub const RETRY_STATUS: u32 = 3;
    pub const POISONED: u32 = 4;
    pub const TIMEOUT: u32 = 5;
    pub const BUS_MASTER_DISABLED: u32 = 6;
    pub const OTHER: u32 = 7;
}

/// `enum tlplab_device_interrupts`
pub mod interrupts {
    pub const NONE: u32 = 0;
    pub const INTX: u32 = 1;
    pub const MSI: u32 = 2;
    pub const MSIX: u32 = 3;
}

/// `struct tlplab_device_event`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub kind: u32,
    pub bar: u32,
    pub offset: u64,
    pub id: u64,
    pub bytes: u64,
    pub data: *const u8,
    pub error: u32,
    pub reserved: u32,
    pub message: *const c_char,
}

impl Event {
    /// An event of which nothing is to be told but its kind.
    pub const fn of(kind: u32) -> Self {
        Self {
            kind,
            bar: 0,
            offset: 0,
            id: 0,
            bytes: 0,
            data: std::ptr::null(),
            error: code::OK,
            reserved: 0,
            message: std::ptr::null(),
        }
    }
}

/// `struct tlplab_device_context`
#[repr(C)]
pub struct Context {
    pub simulator: *mut c_void,
    pub now: u64,
    pub interrupts: u32,
    pub length_only: u32,
    pub mps: u32,
    pub mrrs: u32,
    pub dma_read: unsafe extern "C" fn(*mut Self, u16, u64, u64, c_int) -> u64,
    pub dma_write: unsafe extern "C" fn(*mut Self, u16, u64, *const u8, u64) -> u64,
    pub msix: unsafe extern "C" fn(*mut Self, u16, u16),
    pub intx: unsafe extern "C" fn(*mut Self, u16, c_int),
    pub reply: unsafe extern "C" fn(*mut Self, u64, *const u8, u64),
    pub refuse: unsafe extern "C" fn(*mut Self, u64, c_int),
    pub timer: unsafe extern "C" fn(*mut Self, u64, u64),
    pub finished: unsafe extern "C" fn(*mut Self),
    pub fail: unsafe extern "C" fn(*mut Self, *const c_char),
    pub set_config: unsafe extern "C" fn(*mut Self, u16, *const u8, u16),
}

/// `tlplab_device_open`
pub type Open = unsafe extern "C" fn(u32, *const c_char, *mut Identity, *mut c_char) -> *mut c_void;
/// `tlplab_device_handle`
pub type Handle = unsafe extern "C" fn(*mut c_void, *mut Context, *const Event);
/// `tlplab_device_close`
pub type Close = unsafe extern "C" fn(*mut c_void);
