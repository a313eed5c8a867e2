//! Closed forms: what a link can carry, from the specification and the policies alone. No simulation, and no code shared with it,
//! so that the two can be held against each other.
//!
//! * [`link`]: line coding, ordered sets, the cost of TLPs, DLLPs and flits
//! * [`policy`]: how often a receiver acknowledges and returns credits
//! * [`saturation`]: the payload throughput of a saturated link, per direction
//!
//! ```
//! use tlplab_model::*;
//! use tlplab_units::{Generation, Mps, Width};
//! let link = Link::new(Generation::Gen3, Width::new(8).unwrap());
//! let writes = link.capacity() * 256.0 / link.tlp(16.0, 256.0) * 8.0;
//! assert_eq!(format!("{:.2} Gb/s", writes / 1e9), "57.46 Gb/s");
//! ```
//!
//! Floating point is fine here: nothing that runs in simulated time depends on it.

pub mod link;
pub mod policy;
pub mod saturation;

pub use link::{Link, OrderedSets};
pub use policy::{Buffer, Receiver, ack_latency_symbols};
pub use saturation::{Direction, Setup, Throughput, Traffic, Turnaround};
