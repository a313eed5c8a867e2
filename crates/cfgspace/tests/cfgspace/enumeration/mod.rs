//! Enumeration on machines in memory.

mod limits;
mod machine;
mod random;
mod registers;
mod slots;
mod small;
mod writes;
