//! Methods over any target: the benchmarks of pcie-bench (Neugebauer et al., SIGCOMM 2018).
//!
//! ```
//! use tlplab_measure::{Case, Setup, Simulator, Target, Test};
//!
//! let setup = Setup { host: "server".into(), device: "ideal".into(), ..Setup::default() };
//! let simulator = Simulator::new(&setup, &|path| Err(format!("{path} is not here")))?;
//! let measured = simulator.run(&Case::new(Test::LatRd, 64), &mut |_fraction| true)?;
//! assert!((400..450).contains(&measured.latency.quantile(500).unwrap()), "nanoseconds");
//! # Ok::<(), tlplab_measure::MeasureError>(())
//! ```
//!
//! **The way of the data.** A [`Case`] says what is measured ([`case`]); a [`Target`] runs it ([`target`]); what it [`Measured`] keeps
//! exact distributions and a bounded time series ([`statistics`]) and becomes a row in the columns of the published data sets ([`csv`])
//! or JSON ([`json`]).
//!
//! **Targets.** [`simulator`]: a host profile, a link and a device profile ([`device`]) in the fabric.

pub mod case;
pub mod csv;
pub mod device;
pub mod json;
pub mod simulator;
pub mod statistics;
pub mod target;

pub use case::{Cache, Case, CaseError, Interface, Node, Pattern, Test};
pub use device::DeviceProfile;
pub use simulator::{Setup, Simulator};
pub use statistics::{Distribution, Series};
pub use target::{Description, MeasureError, Measured, Target};
