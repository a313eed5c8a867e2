#![no_main]

#[path = "../vfio.rs"]
mod vfio;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    vfio::vfio_user(bytes);
});
