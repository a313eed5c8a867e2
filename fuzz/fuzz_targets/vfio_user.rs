#![no_main]

#[path = "../vfio.rs"]
#[allow(dead_code, unused_imports)]
mod vfio;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    vfio::vfio_user(bytes);
});
