//! Enumeration on machines in memory.

mod machine;
mod random;
mod slots;
mod small;
