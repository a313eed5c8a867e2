//! The tests of tlplab-wire, in one program.
//!
//! * [`fields`]: Packets seen field by field, and the little protocols beside NetTLP's datagrams.
//! * [`known`]: Known answers, computed by hand from the specification.
//! * [`properties`]: Properties of every packet: there and back, bit flips, checksums.
//! * [`smoke`]: The fuzz targets' entry functions on mutated vectors, so that stable Rust and CI exercise them without a fuzzer.
//! * [`text`]: Packets and errors as lines of text.
//! * [`vectors`]: Replays `vectors/*.json`: bytes from independent sources, and their meaning.

mod any;
mod fields;
mod known;
mod properties;
mod smoke;
mod text;
mod vectors;
