//! A storage device and dd on the fabric.

use tlplab_experiment::result::Document;
use tlplab_experiment::{Experiment, Options, StopReason, run};

const DISK: &str = r#"
title = "dd reads a disk"
host = { profile = "ideal", latency = "150ns" }
[defaults.link]
mps = "128B"
skp = "off"
[switch.sw]
under = "host.rp0"
link = "gen2 x4"
latency = "150ns"
[device.disk]
under = "sw"
link = "gen2 x1"
model = "storage"
[load.dd]
device = "host"
target = "disk"
op = "dd-read"
size = "256KiB"
"#;

fn go(set: &[&str]) -> Document {
    run_text(DISK, set)
}

fn run_text(text: &str, set: &[&str]) -> Document {
    let read = |_: &str| Ok(text.to_owned());
    let options = Options { set: set.iter().map(|s| (*s).into()).collect(), ..Options::default() };
    let experiment = Experiment::parse_with(&read, "disk.toml", &options).unwrap();
    run::run(experiment, run::Inputs::default()).unwrap()
}

#[test]
fn every_byte_is_moved_and_time_is_the_same_without_data() {
    for (op, interrupts) in
        [("dd-read", "msi-x"), ("dd-write", "msi-x"), ("dd-write", "msi"), ("dd-read", "intx")]
    {
        let (op, interrupts) = (format!("load.dd.op={op}"), format!("host.interrupts={interrupts}"));
        let document = go(&[&op, &interrupts]);
        let lengths = go(&[&op, &interrupts, "fidelity=length-only"]);
        assert_eq!(document.trace_hash, lengths.trace_hash);
        assert_eq!(document.stop_reason, StopReason::LoadsDone);
        let moved: u64 = document
            .flows
            .iter()
            .filter(|f| ["disk.to_host", "disk.from_host"].contains(&f.name.as_str()))
            .map(|f| f.bytes)
            .sum();
        assert_eq!((moved, document.measured[0].bytes), (256 << 10, 256 << 10));
    }
}

#[test]
fn a_sector_read_takes_access_wire_and_host_time() {
    // A sector is 32 TLPs of 128 + 16 (64-bit header) + 8 B at 2 ns a byte; the next begins when the last is accepted for sending.
    let sector = 32.0 * 152.0 * 2.0;
    let span = |set: &[&str]| {
        let document = go(set);
        let dd = &document.measured[0];
        (dd.to_fs - dd.from_fs) as f64 / 1e6
    };
    let plain = span(&["device.disk.access=0s"]);
    let each = |set: &[&str]| (span(set) - plain) / 64.0;
    assert!((plain / 64.0 / sector - 1.0).abs() < 0.03, "{plain} ns");
    // While the next sector is accessed the last TLPs of the one before are still on their way: at most the wire's buffer is won.
    assert!((1000.0 - each(&[])).abs() < 310.0, "{}", each(&[]));
    let cost = each(&["load.dd.host_cost=2us"]) - each(&[]);
    assert!((cost - 2000.0).abs() < 10.0, "{cost}");
    // With many in flight the access hides behind the wire.
    assert!(each(&["device.disk.sectors_in_flight=8"]) < 100.0);
}

/// The slot and the disk below share a wire: dd is asked what the slot's interrupt is about while the disk is away, and after.
#[test]
fn a_disk_that_is_pulled_out_does_not_end_the_run() {
    let text =
        format!("stop = \"400us\"\n{DISK}[[fault]]\nlink = \"disk\"\ndown = \"100us\"\nuntil = \"150us\"\n");
    let document = run_text(&text, &["host.interrupts=intx"]);
    assert_eq!(document.stop_reason, StopReason::StopTime);
    let [outage] = &document.outages[..] else { panic!("{:?}", document.outages) };
    assert!(outage.heard_fs.is_some() && outage.configured_fs.is_some(), "{outage:?}");
}
