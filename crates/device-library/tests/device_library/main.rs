//! Devices from libraries in C: what the header promises, and what a library gets wrong.

mod copier;
mod layout;
pub(crate) mod mistakes;

use std::path::{Path, PathBuf};
use std::process::Command;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A C compiler with the header, and warnings that are errors.
fn compiler() -> Command {
    let mut command = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(here("include"));
    command
}

/// A source as a library.
fn compile(name: &str, source: &Path) -> PathBuf {
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let done = compiler().args(["-shared", "-fPIC", "-o"]).args([&library, source]).status();
    assert!(done.expect("a C compiler, cc or $CC").success(), "{} compiles", source.display());
    library
}
