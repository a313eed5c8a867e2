#![no_main]

#[path = "../cfgspace.rs"]
#[allow(dead_code)]
mod cfgspace;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    cfgspace::config_writes(bytes);
});
