//! The specification's latency tables, as the formulas they were computed from.
//!
//! All limits are in *symbol times*: one byte on every lane, whatever the width (PCIe 5.0 §3.6.2.1, §3.6.3.1).

use tlplab_units::{Duration, Generation, LinkRate, Mps, Width};

/// Header, sequence number, LCRC and framing that the tables add to the payload, in bytes (§3.6.3.1, "TLPOverhead").
pub const TLP_OVERHEAD: u32 = 28;

/// REPLAY_TIMER limit of ports that support 16 GT/s or more, at every non-flit rate, in symbol times: the middle of the
/// 24 000 to 31 000 that the specification allows (PCIe 4.0 §3.6.2.1, "simplified" limits).
pub const SIMPLIFIED_REPLAY_SYMBOLS: u32 = 27_500;

/// The time that a flit may stay unacknowledged before it is sent again, in flit times. The specification counts flits, not
/// time, and asks for at least 1 500 (PCIe 6.0 §4.2.3.4.2.1, REPLAY_TIMEOUT_FLIT_COUNT); a link that sends nothing is
/// modelled as silent, so here it is the time of as many flits.
pub const FLIT_REPLAY_FLITS: u32 = 1_500;

/// The time that a received flit may wait for its acknowledgement when no flit leaves anyway, in flit times. A real link
/// fills every idle slot with a flit; a silent one is woken this rarely, which costs no throughput while the replay
/// buffer covers it.
pub const FLIT_ACK_FLITS: u32 = 16;

/// The number of TLPs of the maximum size that one Ack may cover, in tenths (§3.6.3.1, "AckFactor").
const fn ack_factor_tenths(width: Width, mps: Mps) -> u32 {
    let small = mps.bytes() <= 256;
    match width.lanes() {
        1 | 2 | 4 => {
            if small {
                14
            } else {
                10
            }
        }
        8 => {
            if small {
                25
            } else {
                10
            }
        }
        _ => {
            if small {
                30
            } else {
                20
            }
        }
    }
}

/// Symbol times a port may need inside (§3.6.3.1, "InternalDelay").
const fn internal_delay(generation: Generation) -> u32 {
    match generation {
        Generation::Gen1 => 19,
        Generation::Gen2 => 70,
        Generation::Gen3 | Generation::Gen4 | Generation::Gen5 | Generation::Gen6 | Generation::Gen7 => 115,
    }
}

/// Maximum Ack latency in symbol times: from the last symbol of a TLP to the first of the Ack (PCIe 5.0 tables 3-7 to 3-9).
pub const fn ack_latency_symbols(generation: Generation, width: Width, mps: Mps) -> u32 {
    let tenths = (mps.bytes() + TLP_OVERHEAD) * ack_factor_tenths(width, mps);
    tenths / (10 * width.lanes() as u32) + internal_delay(generation)
}

/// REPLAY_TIMER limit in symbol times of ports that do not support 16 GT/s: three times the Ack latency (PCIe 3.0 tables 3-4 to 3-6,
/// unadjusted). For the others it is [`SIMPLIFIED_REPLAY_SYMBOLS`].
pub const fn replay_symbols(generation: Generation, width: Width, mps: Mps) -> u32 {
    3 * ack_latency_symbols(generation, width, mps)
}

/// The bytes of a TLP with a 12-byte header on the wire besides payload: sequence number, header, LCRC and framing.
const LEAST_OVERHEAD: u32 = 2 + 12 + 4 + 2;

/// The replay timeout of the gem5 model of Alian et al. (2018, section V.C), unrounded: three times the Ack latency's formula with an
/// InternalDelay of 0 and the overhead that the model counts (table I).
pub const fn undelayed_replay_timeout(rate: LinkRate, width: Width, mps: Mps) -> Duration {
    let tenths = 3 * (mps.bytes() + LEAST_OVERHEAD) * ack_factor_tenths(width, mps);
    Duration::from_fs(rate.time_of(tenths as u64).as_fs().div_ceil(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PCIe 3.0 table 3-7 (2.5 GT/s) as printed, columns x1 x2 x4 x8 x12 x16 x32.
    const ACK_GEN1: [(u32, [u32; 7]); 6] = [
        (128, [237, 128, 73, 67, 58, 48, 33]),
        (256, [416, 217, 118, 107, 90, 72, 45]),
        (512, [559, 289, 154, 86, 109, 86, 52]),
        (1024, [1071, 545, 282, 150, 194, 150, 84]),
        (2048, [2095, 1057, 538, 278, 365, 278, 148]),
        (4096, [4143, 2081, 1050, 534, 706, 534, 276]),
    ];

    #[test]
    fn ack_table_of_every_generation() {
        for (mps, row) in ACK_GEN1 {
            for (width, at_gen1) in Width::ALL.into_iter().zip(row) {
                for (generation, extra) in [
                    (Generation::Gen1, 0),
                    (Generation::Gen2, 51),
                    (Generation::Gen3, 96),
                    (Generation::Gen5, 96),
                ] {
                    let ours = ack_latency_symbols(generation, width, Mps::new(mps).unwrap());
                    assert_eq!(ours, at_gen1 + extra, "{generation} {width} {mps}");
                }
            }
        }
    }

    #[test]
    fn replay_table() {
        let limit = |generation, lanes, mps| {
            replay_symbols(generation, Width::new(lanes).unwrap(), Mps::new(mps).unwrap())
        };
        assert_eq!(limit(Generation::Gen1, 1, 128), 711);
        assert_eq!(limit(Generation::Gen1, 32, 128), 99);
        assert_eq!(limit(Generation::Gen2, 1, 128), 864);
        assert_eq!(limit(Generation::Gen3, 8, 256), 609);
        assert!((24_000..=31_000).contains(&SIMPLIFIED_REPLAY_SYMBOLS));
    }
}
