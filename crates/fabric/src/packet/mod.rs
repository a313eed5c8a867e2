//! The TLPs under way in a slab, the transactions they belong to, and the ledger of their time.

pub(crate) mod access;
pub mod attribution;
pub(crate) mod causes;
pub(crate) mod flaw;
pub(crate) mod routing;
pub(crate) mod slab;
pub(crate) mod transactions;
pub(crate) mod wires;
