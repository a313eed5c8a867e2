//! Memory does not grow with the run. A program of its own: other tests would share its memory. `make bench` measures the same over 10^8 TLPs.
#![cfg(target_os = "linux")]

#[path = "fabric/bench/mod.rs"]
mod bench;

use bench::Bench;
use tlplab_device::LoadConfig;
use tlplab_fabric::Fabric;
use tlplab_fabric::config::Fidelity;
use tlplab_units::Time;

/// Bytes of this process in memory.
fn resident() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "only the system knows")]
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux describes every process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a resident size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("kB") * 1024
}

fn run_to(fabric: &mut Fabric, tlps: u64) {
    while fabric.tlp_hops() < tlps {
        assert!(fabric.run_events(4096, Time::NEVER), "the load has no end");
    }
}

/// 400 000 TLPs need no more memory than 20 000 did.
#[test]
fn twenty_times_the_tlps_need_the_same_memory() {
    let mut bench = Bench::new();
    bench.config.fidelity = Fidelity::LengthOnly;
    bench.device("dev", "host.rp0", 3, 8).load(LoadConfig::default());
    let mut fabric = bench.build();
    run_to(&mut fabric, 20_000);
    let (after_first, live) = (resident(), fabric.tlps_live());
    run_to(&mut fabric, 400_000);
    let grown = resident().saturating_sub(after_first);
    // Nothing of the TLPs between may stay: even one byte of each would be 380 kB.
    assert!(grown < 200_000, "{grown} bytes more after 400 000 TLPs than after 20 000");
    assert!(fabric.tlps_live() <= live + 64, "{} TLPs are still alive", fabric.tlps_live());
}
