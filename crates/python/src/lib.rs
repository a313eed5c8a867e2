//! The Python extension module `tlplab._core`: conversion only, no logic.

use pyo3::prelude::*;

/// What Python calls; `python/tlplab/_core.pyi` is its typed mirror.
#[pymodule]
mod _core {
    /// The version of this build.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
