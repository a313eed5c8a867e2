//! The Python extension module `tlplab._core`: conversion only, no logic.
//!
//! `python/tlplab/_core.pyi` is the typed mirror of what is exported here, and tells what each function does.
//!
//! * [`simulation`]: a run, stepped from Python
//! * [`cabling`]: several runs of guests, on Ethernet cables
//! * [`outline`]: an experiment read and checked, as data
//! * [`bench`]: benchmarks, on a target
//! * [`capture`]: captures shown as lines, and summed up
//! * [`sweep`]: studies: many points of an experiment
//! * [`serve`]: devices behind an adapter
//! * [`registers`]: what the registers of a real machine's function say
//! * [`catalog`]: what experiments can name, their schema
//! * [`analytic`]: the closed forms over numpy arrays; [`table`]: the columns that come out, as Arrow or numpy
//! * [`files`]: the files that an experiment names
//! * [`dma`], [`perf`]: NetTLP: DMA, and how fast it is; [`proxy`]: a bad network between its ends
//! * [`probe`]: the functions of this machine, read and timed
//! * [`adapter`]: the NetTLP adapter in software
//! * [`error`]: mistakes become Python exceptions
//!
//! Devices and drivers in Python are driven from outside the fabric: [`party`] is what both have in common, [`device`] and
//! [`driver`] turn the fabric's events into tuples and tuples into actions. [`identity`] is what a device says of itself.

mod adapter;
mod analytic;
mod bench;
mod cabling;
mod capture;
mod card;
mod catalog;
mod chosen;
mod device;
mod differential;
mod dma;
mod driver;
mod error;
mod files;
mod guest;
mod guest_fabric;
mod identity;
mod judge;
mod live;
mod outline;
mod party;
mod perf;
mod probe;
mod proxy;
mod registers;
mod residents;
mod serve;
mod simulation;
mod sweep;
mod table;
mod vfio;
mod watching;

use pyo3::prelude::*;

/// Objects of one size lie side by side: a run of a large fabric takes 30 % less time than with the allocator of glibc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::adapter::AdapterService;
    #[pymodule_export]
    use super::analytic::{
        model_bandwidth, model_data_path, model_in_flight, model_loopback, model_nettlp, model_nic,
        nic_title, nics,
    };
    #[pymodule_export]
    use super::bench::{Bench, BenchRecorder, bench_columns, bench_devices, check_case};
    #[pymodule_export]
    use super::cabling::Cabling;
    #[pymodule_export]
    use super::capture::{CaptureReader, Dump, dissector, dump_filters};
    #[pymodule_export]
    use super::card::CardServer;
    #[pymodule_export]
    use super::catalog::{
        duration_fs, generations, hosts, models, rate, reference, result_schema, schema, size, widths,
    };
    #[pymodule_export]
    use super::chosen::{comparison, expect, figures};
    #[pymodule_export]
    use super::differential::measure_on;
    #[pymodule_export]
    use super::dma::{Dma, adapter_registers, config_read, config_write};
    #[pymodule_export]
    use super::files::{Output, write_text};
    #[pymodule_export]
    use super::guest_fabric::FabricServer;
    #[pymodule_export]
    use super::identity::check_device;
    #[pymodule_export]
    use super::judge::{Judge, Task};
    #[pymodule_export]
    use super::live::LiveService;
    #[pymodule_export]
    use super::outline::{check, check_guests};
    #[pymodule_export]
    use super::perf::Perf;
    #[pymodule_export]
    use super::probe::probe;
    #[pymodule_export]
    use super::proxy::Proxy;
    #[pymodule_export]
    use super::registers::registers;
    #[pymodule_export]
    use super::serve::Server;
    #[pymodule_export]
    use super::simulation::{Progress, Simulation, report_page, report_style, write_report};
    #[pymodule_export]
    use super::sweep::{
        RunMaker, Summaries, Sweep, Swept, count_results, failed_record, metric, metric_reference, metrics,
        record_figures, study_keys,
    };
    #[pymodule_export]
    use super::table::{Table, table};
    #[pymodule_export]
    use super::vfio::VfioServer;

    /// The version of this build.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
