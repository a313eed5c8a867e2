//! Time and order: the event queue, and the numbers by which ties in it are broken. Nothing here knows of PCI Express.

pub(crate) mod ids;
pub(crate) mod queue;
