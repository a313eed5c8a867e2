//! Closed forms: the rates of a link, from the specification and the policies alone. No simulation, and no code shared with it,
//! so that the two can be held against each other.
//!
//! The link:
//! * [`link`]: line coding, ordered sets, the cost of TLPs, DLLPs and flits
//! * [`policy`]: how often a receiver acknowledges and returns credits
//! * [`saturation`]: the payload throughput of a saturated link whose receivers are known, per direction
//!
//! Any transfer, with Acks and UpdateFCs as often as the specification's limits ask:
//! * [`cut`]: how transfers become TLPs
//! * [`connection`]: a link and how it is cut: what a transfer costs, and how much of that there is
//! * [`mod@bandwidth`]: reads, writes, both
//! * [`in_flight`]: Little's law: tags, credits, replay buffer; which of them limits, and how much is needed
//! * [`data_path`]: what a data path inside a chip carries of TLPs
//! * [`nettlp`]: what Ethernet carries of TLPs in datagrams
//! * [`nic`], [`nic_file`], [`ethernet`]: NICs as data, their files, line rates
//! * [`loopback`]: what a NIC's latency is made of
//! * [`numbers`]: a connection in plain numbers, checked
//! * [`compat`]: the mistakes of the public model, to be made on request
//!
//! ```
//! use tlplab_analytic::*;
//! use tlplab_units::{Generation, Mps, Mrrs, Width};
//! let link = Link::new(Generation::Gen3, Width::new(8).unwrap());
//! let writes = link.capacity() * 256.0 / link.tlp(16.0, 256.0) * 8.0;
//! assert_eq!(format!("{:.2} Gb/s", writes / 1e9), "57.46 Gb/s");
//!
//! let mut connection = Connection::new(link, Mps::new(256).unwrap(), Mrrs::new(512).unwrap());
//! let one_line = Span::new(0, 64);
//! let gigabits = |c: &Connection| format!("{:.2}", bandwidth(c, Operation::Write, one_line).payload / 1e9);
//! assert_eq!(gigabits(&connection), "45.71");
//! connection.mistakes = Mistakes::PCIE_MODEL;
//! assert_eq!(gigabits(&connection), "42.10");
//! ```
//!
//! Floating point is fine here: nothing that runs in simulated time depends on it.

pub mod bandwidth;
pub mod compat;
pub mod connection;
pub mod cut;
pub mod data_path;
pub mod ethernet;
pub mod in_flight;
pub mod link;
pub mod loopback;
pub mod nettlp;
pub mod nic;
pub mod nic_file;
pub mod numbers;
pub mod policy;
pub mod saturation;

pub use bandwidth::{Bandwidth, Operation, bandwidth};
pub use compat::Mistakes;
pub use connection::{Access, Connection, Cost, Party, Utilization, Way};
pub use cut::{Completions, Requests, Span};
pub use data_path::DataPath;
pub use link::{Link, OrderedSets};
pub use nic::{NICS, Nic, Ways};
pub use numbers::Numbers;
pub use policy::{Buffer, Receiver, ack_latency_symbols};
pub use saturation::{Direction, Setup, Throughput, Traffic, Turnaround};
