//! The tests of tlplab-bench, in one program.
//!
//! * [`agreement`]: The closed form and the simulator share nothing but their inputs; on hosts where nothing varies they agree.
//! * [`data_sets`]: Rows are those of the published data sets, to the last byte; device profiles say what was measured of the devices.
//! * [`differential`]: The differential method on simulated topologies: what it recovers is what was configured, and it says what it cannot tell.
//! * [`nfp6000`]: The NFP-6000 in an Xeon E5-2620 v3, against what pcie-bench measured there (data set hsw-Xeon-E5-2620v3_dell-t630, host-warm window of
//! * [`simulator`]: The simulator as a target.

mod agreement;
mod data_sets;
mod differential;
mod nfp6000;
mod simulator;
