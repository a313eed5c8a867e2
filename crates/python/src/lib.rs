//! The Python extension module
