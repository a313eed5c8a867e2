//! The closed forms, over numpy arrays.

use crate::error;
use crate::table::{Columns, Table};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tlplab_analytic::ethernet::{frames, packet, transferred};
use tlplab_analytic::in_flight::{Delays, Limit, Supply};
use tlplab_analytic::loopback::Loopback;
use tlplab_analytic::nettlp::NetTlp;
use tlplab_analytic::numbers::Invalid;
use tlplab_analytic::{
    Completions, Connection, Mistakes, NICS, Nic, Numbers, Operation, Requests, Span, Ways, bandwidth,
    in_flight,
};

/// Arrays of equal length, in the order of `Numbers::NAMES`.
type Arrays<'py> = [PyReadonlyArray1<'py, i64>; 10];
type Slices<'a> = [&'a [i64]; 10];

/// The rules for a whole grid: where transfers are cut, and which mistakes are made.
#[derive(FromPyObject)]
pub(crate) struct Rules {
    #[pyo3(item)]
    requests: String,
    #[pyo3(item)]
    completions: String,
    #[pyo3(item)]
    compat: Vec<String>,
}

#[derive(Clone, Copy)]
struct Read {
    requests: Requests,
    completions: Completions,
    mistakes: Mistakes,
}

/// The one of `choices` that `given` names.
fn choose<T: Copy>(name: &str, given: &str, choices: &[(&str, T)]) -> PyResult<T> {
    choices.iter().find(|(choice, _)| *choice == given).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<String> = choices.iter().map(|(choice, _)| format!("{choice:?}")).collect();
        PyValueError::new_err(format!("{name} is {given:?}; expected {}", names.join(", ")))
    })
}

impl Rules {
    fn read(&self) -> PyResult<Read> {
        let requests = [("aligned", Requests::Aligned), ("packed", Requests::Packed)];
        let completions = [("max", Completions::Max), ("rcb", Completions::Rcb)];
        let mistakes = self.compat.iter().try_fold(Mistakes::NONE, |mistakes, name| {
            mistakes.and(name).ok_or_else(|| {
                let names = Mistakes::NAMES.join(", ");
                PyValueError::new_err(format!("unknown compat {name:?}; expected {names}"))
            })
        })?;
        Ok(Read {
            requests: choose("requests", &self.requests, &requests)?,
            completions: choose("completions", &self.completions, &completions)?,
            mistakes,
        })
    }
}

impl Read {
    fn connection(self, numbers: &Numbers) -> Result<Connection, Invalid> {
        numbers.connection(self.requests, self.completions, self.mistakes)
    }
}

fn operation(name: &str) -> PyResult<Operation> {
    let all = [("read", Operation::Read), ("write", Operation::Write), ("rdwr", Operation::ReadWrite)];
    choose("op", name, &all)
}

fn invalid(error: &Invalid) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn slices<'a>(arrays: &'a Arrays<'_>) -> PyResult<Slices<'a>> {
    let mut slices: Slices<'a> = [&[]; 10];
    for (slice, array) in slices.iter_mut().zip(arrays) {
        *slice = array.as_slice()?;
    }
    if slices.iter().any(|slice| slice.len() != slices[0].len()) {
        return Err(PyValueError::new_err("the arrays differ in length"));
    }
    Ok(slices)
}

/// Calculates `N` figures for every point of a grid.
fn each<const N: usize>(
    py: Python<'_>,
    grid: Slices<'_>,
    names: [&'static str; N],
    figures: impl Fn(&Numbers) -> Result<[f64; N], Invalid> + Sync,
) -> PyResult<Table> {
    let (inputs, results) = py
        .detach(|| {
            let points = grid[0].len();
            let mut results: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(points));
            for point in 0..points {
                let found = figures(&Numbers::from_values(grid.map(|slice| slice[point])))?;
                results.iter_mut().zip(found).for_each(|(column, figure)| column.push(figure));
            }
            Ok((grid.map(<[i64]>::to_vec), results))
        })
        .map_err(|error| invalid(&error))?;
    let mut columns = Columns::default();
    Numbers::NAMES.into_iter().zip(inputs).for_each(|(name, values)| columns.integers(name, values));
    names.into_iter().zip(results).for_each(|(name, values)| columns.floats(name, values));
    columns.finish()
}

/// Bandwidth of transfers.
#[pyfunction]
pub(crate) fn model_bandwidth(py: Python<'_>, op: &str, grid: Arrays<'_>, rules: Rules) -> PyResult<Table> {
    let (operation, rules) = (operation(op)?, rules.read()?);
    let names = [
        "bandwidth_bps",
        "transfers_per_s",
        "up_utilization",
        "down_utilization",
        "up_bytes",
        "down_bytes",
        "tlp_bps",
        "raw_bps",
    ];
    each(py, slices(&grid)?, names, |numbers| {
        let connection = rules.connection(numbers)?;
        let found = bandwidth(&connection, operation, Span::new(numbers.offset()?, numbers.size()?));
        let (up, down) = (found.utilization.up, found.utilization.down);
        let (tlps, raw) = (connection.capacity() * 8.0, connection.raw() * 8.0);
        let (up_bytes, down_bytes) = (found.cost.up.bytes, found.cost.down.bytes);
        Ok([found.payload, found.transfers, up, down, up_bytes, down_bytes, tlps, raw])
    })
}

/// The throughput of a NIC with frames of `size` bytes.
#[pyfunction]
pub(crate) fn model_nic(
    py: Python<'_>,
    file: &str,
    text: &str,
    ways: &str,
    ethernet_bps: f64,
    grid: Arrays<'_>,
    rules: Rules,
) -> PyResult<Table> {
    let nic = Nic::parse(file, text).map_err(|mistake| error::nic(py, &mistake))?;
    let all = [("transmit", Ways::Transmit), ("receive", Ways::Receive), ("both", Ways::Both)];
    let (ways, rules) = (choose("ways", ways, &all)?, rules.read()?);
    let names =
        ["bandwidth_bps", "packets_per_s", "up_bytes", "down_bytes", "ethernet_bps", "ethernet_frames_per_s"];
    each(py, slices(&grid)?, names, |numbers| {
        let connection = rules.connection(numbers)?;
        let frame = numbers.size()?;
        let bytes = packet(frame);
        let cost = nic.cost(&connection, ways, Span::new(numbers.offset()?, bytes));
        let packets = connection.rate(cost);
        let ethernet = transferred(ethernet_bps, frame, rules.mistakes);
        let line = frames(ethernet_bps, frame, rules.mistakes);
        Ok([packets * bytes as f64 * 8.0, packets, cost.up.bytes, cost.down.bytes, ethernet, line])
    })
}

/// The latency of a NIC whose Ethernet port is connected to itself.
#[pyfunction]
pub(crate) fn model_loopback(
    py: Python<'_>,
    ethernet_bps: f64,
    store: u64,
    pcie_ns: f64,
    nic_ns: f64,
    grid: Arrays<'_>,
    rules: Rules,
) -> PyResult<Table> {
    let rules = rules.read()?;
    each(py, slices(&grid)?, ["pcie_ns", "nic_ns"], |numbers| {
        let (pcie, nic) = (pcie_ns / 1e9, nic_ns / 1e9);
        let connection = rules.connection(numbers)?;
        let found =
            Loopback { connection, ethernet: ethernet_bps, store, pcie, nic }.latency(numbers.size()?);
        Ok([found.pcie * 1e9, found.nic * 1e9])
    })
}

/// The rate of TLPs in datagrams on Ethernet, in bits per second: for each size of writes, of reads.
#[pyfunction]
pub(crate) fn model_nettlp(
    sizes: Vec<u64>,
    ethernet_bps: f64,
    mps: u64,
    mrrs: u64,
    header: u64,
) -> PyResult<Vec<(f64, f64)>> {
    let right = |size: u64| size.is_power_of_two() && (128..=4096).contains(&size);
    for (name, given) in [("mps", mps), ("mrrs", mrrs)] {
        if !right(given) {
            let message = format!("{name} is {given}; expected 128, 256, 512, 1024, 2048 or 4096");
            return Err(PyValueError::new_err(message));
        }
    }
    if ethernet_bps.is_nan() || ethernet_bps <= 0.0 {
        return Err(PyValueError::new_err(format!("ethernet is {ethernet_bps}; expected a rate above 0")));
    }
    let card = NetTlp { ethernet: ethernet_bps, mps, mrrs, header };
    if let Some(wrong) = sizes.iter().find(|size| !(1..=1 << 32).contains(*size)) {
        return Err(PyValueError::new_err(format!("size is {wrong}; expected 1 to 4294967296")));
    }
    Ok(sizes.into_iter().map(|size| (card.writes(size), card.reads(size))).collect())
}

/// The rate of TLPs on a data path, in bits per second: each in words of its own, and packed.
#[pyfunction]
pub(crate) fn model_data_path(bits: u32, clock: f64, payload: u64, header: u64) -> (f64, f64) {
    let path = tlplab_analytic::DataPath { bits, clock };
    (path.beats(payload, header), path.packed(payload, header))
}

/// Little's law for one kind of transfer. Times in nanoseconds; `supply` in the order of `Resource::ALL`.
#[pyfunction]
pub(crate) fn model_in_flight<'py>(
    py: Python<'py>,
    op: &str,
    point: [i64; 10],
    wanted: Option<f64>,
    delays: [f64; 3],
    supply: Supply,
    rules: Rules,
) -> PyResult<Bound<'py, PyDict>> {
    let numbers = Numbers::from_values(point);
    let rules = rules.read()?;
    let read = || Ok((rules.connection(&numbers)?, Span::new(numbers.offset()?, numbers.size()?)));
    let (connection, transfer) = read().map_err(|error| invalid(&error))?;
    let [latency, flight, drain] = delays.map(|ns| ns / 1e9);
    let delays = Delays { latency, flight, drain };
    let found = in_flight::in_flight(&connection, operation(op)?, transfer, wanted, delays, supply);
    let told = PyDict::new(py);
    told.set_item("link_transfers_per_s", found.link)?;
    told.set_item("transfers_per_s", found.reached)?;
    told.set_item(
        "limit",
        match found.limit {
            Limit::Demand => "demand",
            Limit::Link => "link",
            Limit::Resource(resource) => resource.name(),
        },
    )?;
    let uses = found.uses.iter().map(|one| {
        let row = PyDict::new(py);
        row.set_item("resource", one.resource.name())?;
        row.set_item("each", one.each)?;
        row.set_item("held_ns", one.held * 1e9)?;
        row.set_item("needed", one.needed)?;
        row.set_item("available", one.available)?;
        row.set_item("transfers_per_s", one.transfers)?;
        Ok(row)
    });
    told.set_item("resources", uses.collect::<PyResult<Vec<_>>>()?)?;
    Ok(told)
}

/// The NICs that come with tlplab: name and TOML text.
#[pyfunction]
pub(crate) fn nics() -> Vec<(&'static str, &'static str)> {
    NICS.to_vec()
}

/// A NIC's title, from its file.
#[pyfunction]
pub(crate) fn nic_title(py: Python<'_>, file: &str, text: &str) -> PyResult<String> {
    Ok(Nic::parse(file, text).map_err(|mistake| error::nic(py, &mistake))?.title)
}
