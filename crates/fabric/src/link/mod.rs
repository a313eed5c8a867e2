//! Links: ports with their egress queues, the data link layer on both ends, and the wire between, with its faults.

pub(crate) mod channel;
pub(crate) mod egress;
pub(crate) mod fault;
pub(crate) mod idle;
pub(crate) mod port;
pub(crate) mod port_buffer;
pub(crate) mod receive;
pub(crate) mod stages;
pub(crate) mod trail;
pub(crate) mod transmit;
