//! Methods over any target: the benchmarks of pcie-bench (Neugebauer et al., SIGCOMM 2018), and the differential method.
//!
//! ```
//! use tlplab_bench::{Case, Machine, Setup, Simulator, Target, Test};
//!
//! let setup = Setup { host: "server".into(), device: "ideal".into(), ..Setup::default() };
//! let machine = Machine::new(&setup, &|path| Err(format!("{path} is not here")))?;
//! let simulator = Simulator::new(machine);
//! let measured = simulator.run(&Case::new(Test::LatRd, 64), &mut |_fraction| true)?;
//! assert!((400..450).contains(&measured.latency.quantile(500).unwrap()), "nanoseconds");
//! # Ok::<(), tlplab_bench::MeasureError>(())
//! ```
//!
//! **The way of the data.** A [`Case`] says what is measured ([`case`]); a [`Target`] runs it ([`target`]), from the state that the host is brought into
//! ([`preparation`]); what it [`Measured`] ([`recorder`]) keeps
//! exact distributions and a bounded time series ([`statistics`]) and becomes a row in the columns of the published data sets ([`csv`])
//! or JSON ([`json`]).
//!
//! **Targets.** A [`machine`] is a host profile, a link and a device profile ([`device`]). [`simulator`] runs it in the fabric,
//! [`closed_form`] says what the specification and the profiles alone tell.
//!
//! **Another method.** [`differential`] finds the latency of each link from reads of what is at its ends.

pub mod case;
pub mod clock;
pub mod closed_form;
pub mod csv;
pub mod device;
mod device_file;
pub mod differential;
pub mod json;
pub mod machine;
pub mod preparation;
pub mod recorder;
pub mod simulator;
pub mod statistics;
pub mod target;

pub use case::{Cache, Case, CaseError, Interface, Node, Pattern, Test};
pub use clock::Clock;
pub use closed_form::ClosedForm;
pub use device::DeviceProfile;
pub use machine::{Machine, Setup};
pub use recorder::Recorder;
pub use simulator::Simulator;
pub use statistics::{Distribution, Series};
pub use target::{MeasureError, Measured, Target};
