//! Rows are those of the published data sets, to the last byte; device profiles say what was measured of the devices.

use tlplab_bench::{
    Cache, Case, Clock, Distribution, Interface, Measured, Pattern, Series, Test, csv, device,
};
use tlplab_units::Duration;

/// The NFP-6000's: 16 cycles of 1.2 GHz.
const CLOCK: Clock = Clock { hz: 1_200_000_000, cycles_per_tick: 16 };

fn measured(case: Case, elapsed_ns: u64, operations: u64, latency: Distribution) -> Measured {
    let elapsed = Duration::from_ns(elapsed_ns);
    Measured { case, complete: true, clock: CLOCK, elapsed, operations, latency, series: Series::default() }
}

/// `bw_dma_off_rd.csv` of the E5-2620v3, first row. (Data: pcie-bench, Apache-2.0.)
#[test]
fn a_published_row_of_bandwidth() {
    let row = csv::row(&measured(Case::new(Test::BwRd, 64), 131_678_720, 8_388_608, Distribution::default()));
    assert_eq!(
        row,
        "BW_DMA_RD,Seq,HWarm,0,0,8192,64,158014464,131678720.0,536870912,8388608,32.617018877461746,63705114.99504248"
    );
}

/// `lat_dma_details.csv` of the E5-2620v3 has a row like this one: what it says follows from its distribution.
#[test]
fn a_row_of_latency_by_hand() {
    let mut latency = Distribution::default();
    for (ticks, times) in [(39, 20), (41, 900), (42, 79), (45, 1)] {
        latency.record_many(ticks, times);
    }
    let case = Case {
        interface: Interface::Command,
        pattern: Pattern::Random,
        cache: Cache::DeviceThrash,
        host_offset: 3,
        device_offset: 5,
        ..Case::new(Test::LatWrrd, 8)
    };
    let row = csv::row(&measured(case, 1_000 * 745, 1_000, latency.clone()));
    // 745 000 ns are 894 000 cycles, and so 55 875 ticks.
    assert_eq!(
        row,
        "LAT_CMD_WRRD,Rand,DThrash,3,5,8192,8,894,656.688,656.0,624,720,672.0,672.0,\
         745.0,547.24,546.6666666666667,520.0,600.0,560.0,560.0,0,1000"
    );
    assert_eq!(row.split(',').count(), csv::LATENCY.split(',').count());
    let cdf = csv::cdf(&measured(Case::new(Test::LatRd, 8), 0, 1_000, latency));
    assert_eq!(
        cdf,
        ["624,520.0,0", "624,520.0,0.02", "656,546.6666666666667,0.92", "672,560.0,0.999", "720,600.0,1.0"]
    );
}

/// The time that the NFP-6000's engine is occupied by a read and by a write of a number of bytes at an offset of its memory, in picoseconds.
#[test]
fn nfp6000_engine_times_match_the_hand_calculation() {
    let engine = device::profile("nfp6000", &|_| Err(String::new())).unwrap().engine.dma;
    let picoseconds = |time: Duration| time.as_fs() / 1000;
    // Unaligned at one end: 4 ns and 17 ns for each 128 bytes of whole words before the last; at both ends one more in each 1024 bytes.
    for (offset, bytes, expected) in [
        (0, 63, 21_000),
        (0, 65, 21_000),
        (0, 127, 21_000),
        (0, 407, 72_000),
        (1, 64, 38_000),
        (1, 128, 38_000),
        (1, 256, 55_000),
        (1, 416, 89_000),
        (1, 1024, 157_000),
        // Aligned: 17 ns for 128 bytes. A single word has no ends.
        (0, 128, 17_000),
        (8, 2048, 272_000),
        (0, 4, 1_062),
    ] {
        assert_eq!(picoseconds(engine.read_passes(offset, bytes)), expected, "read of {bytes} B at {offset}");
    }
    for (offset, bytes, expected) in
        [(0, 64, 21_000), (0, 129, 38_000), (1, 128, 38_000), (8, 256, 38_000), (1, 1024, 157_000)]
    {
        assert_eq!(
            picoseconds(engine.write_passes(offset, bytes)),
            expected,
            "write of {bytes} B at {offset}"
        );
    }
}
