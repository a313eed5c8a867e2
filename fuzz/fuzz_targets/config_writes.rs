#![no_main]

#[path = "../config.rs"]
#[allow(dead_code)]
mod config;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    config::config_writes(bytes);
});
