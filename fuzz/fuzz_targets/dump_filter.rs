#![no_main]

#[path = "../capture.rs"]
mod capture;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| capture::filter(bytes));
