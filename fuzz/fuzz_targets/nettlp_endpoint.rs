#![no_main]

#[path = "../engines.rs"]
#[allow(dead_code, unused_imports)]
mod engines;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    engines::endpoint(bytes);
});
