//! The tests of tlplab-cfgspace, in one program.
//!
//! * [`bits`]: Random functions and random accesses, with the oracle and the entry points of the fuzz targets.
//! * [`enumeration`]: Enumeration on machines in memory.
//! * [`error`]: Errors: what each kind sets, who is told, and what bridges and root ports make of the message.
//! * [`facts`]: What dumped registers say: as much as the views of the whole space, no more than was dumped, whatever the bytes.
//! * [`interrupt`]: Interrupts: which way they go, and that what is masked is remembered.
//! * [`layout`]: Layouts that cannot be are refused, with what is wrong and where.
//! * [`lspci`]: The dumps, judged by the real `lspci` (pciutils) where it is installed.
//! * [`msix_memory`]: The MSI-X table and its pending bits, as software reaches them through BARs.
//! * [`views`]: What registers mean: each bit that software can write, on and off.
//! * [`registers`]: Registers that do something: sizes of BARs, requests in control registers, and what hardware shows of links and slots.

mod bits;
mod enumeration;
mod error;
mod facts;
mod interrupt;
mod layout;
mod lspci;
mod msix_memory;
mod registers;
mod views;
