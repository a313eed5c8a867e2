#![no_main]

#[path = "../guest.rs"]
#[allow(dead_code, unused_imports)]
mod guest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    guest::guest(bytes);
});
