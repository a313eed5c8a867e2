//! The library, as programs in C use it: each of `tests/c` is one, with a peer of its own that plays the adapter.

mod headers;
mod programs;

use programs::{ADDRESS, C, SHARED, compile, run_on};

#[test]
fn dma() {
    for variant in [C, SHARED, ADDRESS] {
        run_on(&compile("dma.c", variant), &[], "");
    }
}
