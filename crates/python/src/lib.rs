//! The Python extension module `tlplab._core`: conversion only, no logic.
//!
//! `python/tlplab/_core.pyi` is the typed mirror of what is exported here, and tells what each function does.
//!
//! * [`catalog`]: what experiments can name, their schema
//! * [`outline`]: an experiment read and checked, as data
//! * [`files`]: the files that an experiment names
//! * [`error`]: mistakes become Python exceptions

mod catalog;
mod device;
mod error;
mod files;
mod outline;
mod party;
mod program;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::catalog::{duration_fs, hosts, models, reference, schema, size};
    #[pymodule_export]
    use super::files::write_text;
    #[pymodule_export]
    use super::outline::check;

    /// The version of this build.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
