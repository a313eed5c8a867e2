//! The library, as programs in C use it: each of `tests/c` is one, with a peer of its own that plays the adapter.

mod examples;
mod headers;
mod junk;
mod programs;
mod published;

use programs::{ADDRESS, C, THREAD, compile, run_on};

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

#[test]
fn threads() {
    check("threads.c");
}
