//! Names the shared library for the dynamic linker: programs ask for `libtlp.so.0`, whatever later 0.x they find.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtlp.so.{major}");
}
