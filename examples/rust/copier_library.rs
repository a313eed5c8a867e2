//! The copier of `copier.rs` as a library that experiments can name, `model = "lib:FILE.so"`. Build it with
//! `cargo build --release --example copier_library`; the file is `target/release/examples/libcopier_library.so`.

#[allow(dead_code)] // its main, its driver
#[path = "copier.rs"]
mod copier;

use tlplab_device_library::export_device;

export_device!(|parameters| match parameters.keys().next() {
    Some(key) => Err(format!("{key}: the copier has no parameters")),
    None => Ok(Box::<copier::Copier>::default()),
});
