//! The library, as programs in C use it: each of `tests/c` is one, with a peer of its own that plays the adapter.

mod examples;
mod headers;
mod junk;
mod programs;
mod published;
mod tlp_layout_header;

use programs::{ADDRESS, C, CPP, SHARED, THREAD, compile, run_on};
use std::path::Path;

/// Runs a program with the static library and, under the sanitizers, with the shared one.
fn check(source: &str) {
    for variant in [C, ADDRESS, THREAD].into_iter().filter(|variant| variant.works()) {
        run_on(&compile(source, variant), &[], "");
    }
}

#[test]
fn dma() {
    check("dma.c");
}

#[test]
fn callbacks() {
    check("callbacks.c");
}

#[test]
fn messages_and_configuration() {
    check("messages.c");
}

#[test]
fn asynchronous_contexts() {
    check("async.c");
}

/// A copier below a switch, one of which there is no model here, and memory.
#[test]
fn machine() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let text = "title = \"A copier\"\n[switch.sw0]\nunder = \"host.rp0\"\nlink = \"gen2 x4\"\n\
        [device.copier]\nunder = \"sw0\"\nlink = \"gen2 x4\"\nmodel = \"copier\"\n";
    let memory =
        "title = \"Memory\"\n[device.ram]\nunder = \"host.rp0\"\nlink = \"gen3 x1\"\nmodel = \"memory\"\n";
    let files = [
        ("copier.toml", text.to_owned()),
        ("unknown.toml", text.replace("\"copier\"", "\"copier.py:X\"")),
        ("memory.toml", memory.to_owned()),
    ];
    let paths = files.map(|(name, text)| {
        std::fs::write(folder.join(name), text).expect("the build's folder can be written");
        folder.join(name).into_os_string().into_string().expect("UTF-8")
    });
    for variant in [C, SHARED, ADDRESS, CPP].into_iter().filter(|variant| variant.works()) {
        run_on(&compile("machine.c", variant), &[&paths[0], &paths[1], &paths[2]], "");
    }
}

#[test]
fn threads() {
    check("threads.c");
}
