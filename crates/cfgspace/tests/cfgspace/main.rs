//! The tests of tlplab-cfgspace, in one program.
//!
//! * [`bits`]: Random functions and random accesses, with the oracle and the entry points of the fuzz targets.
//! * [`enumeration`]: Enumeration on machines in memory.
//! * [`error`]: Errors: the bits that each kind sets, the message that it sends, and the reaction of bridges and root ports to the message.
//! * [`facts`]: Facts of dumped registers: as much as the views of the whole space, no more than was dumped, whatever the bytes.
//! * [`interrupt`]: Interrupts: the ways that they go, and masked ones that are remembered.
//! * [`layout`]: Layouts that cannot be are refused, with the fault and its place.
//! * [`lspci`]: The dumps, judged by the real `lspci` (pciutils) where it is installed.
//! * [`msix_memory`]: The MSI-X table and its pending bits, as software reaches them through BARs.
//! * [`views`]: The meaning of registers: each bit that software can write, on and off.
//! * [`shown`]: What a device changes of its own registers: software's reads of the others, and what obeys them, are as before.
//! * [`registers`]: Registers that do something: sizes of BARs, requests in control registers, and the state of links and slots that hardware shows.

mod bits;
mod enumeration;
mod error;
mod facts;
mod interrupt;
mod layout;
mod lspci;
mod msix_memory;
mod registers;
mod shown;
mod views;
