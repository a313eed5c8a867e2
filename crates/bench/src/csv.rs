//! Rows in the columns of the published pcie-bench data sets, header and spelling included.
//!
//! The column `BW (GB/s)` holds gigabits per second, there and here.

use crate::case::{Cache, Case, Interface, Pattern, Test};
use crate::target::Measured;

/// The columns of latency files.
pub const LATENCY: &str = "Test,PAT,Cache,HO,DO,WinSZ,SZ,TAvg,Avg,Med,Min,Max,95%,99.9%,\
    TAvg(ns),Avg(ns),Med(ns),Min(ns),Max(ns),95%(ns),99.9%(ns),#outliers,#samples";
/// The columns of bandwidth files.
pub const BANDWIDTH: &str = "Test,PAT,Cache,HO,DO,WinSZ,SZ,Time(cyc),Time,Bytes,Trans,BW (GB/s),Trans/s";
/// The columns of files of distributions.
pub const CDF: &str = "cycles,ns,cdf";

/// The first seven columns.
fn of_case(case: &Case) -> String {
    let interface = match case.interface {
        Interface::Command => "CMD",
        Interface::Dma => "DMA",
    };
    let test = match case.test {
        Test::LatRd => format!("LAT_{interface}_RD"),
        Test::LatWrrd => format!("LAT_{interface}_WRRD"),
        Test::BwRd => format!("BW_{interface}_RD"),
        Test::BwWr => format!("BW_{interface}_WR"),
        Test::BwRdwr => format!("BW_{interface}_RW"),
    };
    let pattern = match case.pattern {
        Pattern::Sequential => "Seq",
        Pattern::Random => "Rand",
    };
    let cache = match case.cache {
        Cache::Cold => "Cold",
        Cache::HostWarm => "HWarm",
        Cache::DeviceWarm => "DWarm",
        Cache::DeviceThrash => "DThrash",
    };
    let Case { host_offset, device_offset, window, size, .. } = case;
    format!("{test},{pattern},{cache},{host_offset},{device_offset},{window},{size}")
}

/// The row of a measurement, under [`LATENCY`] or [`BANDWIDTH`].
pub fn row(measured: &Measured) -> String {
    if measured.case.test.is_latency() { latency(measured) } else { bandwidth(measured) }
}

fn latency(measured: &Measured) -> String {
    let (clock, ticks) = (measured.clock, &measured.latency);
    let per_ns = clock.hz as f64 / 1e9;
    let cycles = |ticks: Option<u64>| clock.cycles_of(ticks.unwrap_or(0));
    let total = clock.ticks(tlplab_units::Time::ZERO + measured.elapsed);
    let whole = clock.cycles_of(total).checked_div(measured.operations).unwrap_or(0);
    let average = ticks.mean().unwrap_or(0.0) * f64::from(clock.cycles_per_tick);
    let [median, p95, p999] = [500, 950, 999].map(|p| cycles(ticks.quantile(p)) as f64);
    let (min, max) = (cycles(ticks.min()), cycles(ticks.max()));
    let nanoseconds = [whole as f64, average, median, min as f64, max as f64, p95, p999]
        .map(|cycles| format!("{:?}", cycles / per_ns))
        .join(",");
    let case = of_case(&measured.case);
    let samples = ticks.samples();
    format!("{case},{whole},{average:?},{median:?},{min},{max},{p95:?},{p999:?},{nanoseconds},0,{samples}")
}

fn bandwidth(measured: &Measured) -> String {
    let clock = measured.clock;
    let cycles = clock.cycles_of(clock.ticks(tlplab_units::Time::ZERO + measured.elapsed));
    let nanoseconds = cycles as f64 / (clock.hz as f64 / 1e9);
    let (transfers, bytes) = (measured.operations, measured.operations * measured.case.size);
    let per = |what: f64| if cycles == 0 { 0.0 } else { what / nanoseconds };
    let (rate, each) = (per((bytes * 8) as f64), per(transfers as f64 * 1e9));
    let case = of_case(&measured.case);
    format!("{case},{cycles},{nanoseconds:?},{bytes},{transfers},{rate:?},{each:?}")
}

/// The distribution of a latency, under [`CDF`]: as in the data sets, a first row with 0.
pub fn cdf(measured: &Measured) -> Vec<String> {
    let clock = measured.clock;
    let row = |ticks: u64, part: String| {
        let cycles = clock.cycles_of(ticks);
        format!("{cycles},{:?},{part}", cycles as f64 / (clock.hz as f64 / 1e9))
    };
    let first = measured.latency.min().map(|ticks| row(ticks, "0".into()));
    first
        .into_iter()
        .chain(measured.latency.cdf().map(|(ticks, part)| row(ticks, format!("{part:?}"))))
        .collect()
}
