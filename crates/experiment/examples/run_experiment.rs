//! Runs an experiment without traces and prints the verdict and the flows: `cargo run -p tlplab-experiment --example run_experiment --
//! experiments/quickstart.toml [key=value]…`
#![allow(clippy::disallowed_methods, reason = "an example reads its file itself")]

use tlplab_experiment::run::{Inputs, run};
use tlplab_experiment::{Experiment, Options};

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("the path of an experiment");
    let options = Options { set: args.collect(), ..Options::default() };
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
    let experiment = Experiment::parse_with(&read, &path, &options).unwrap_or_else(|e| panic!("{e}"));
    let document = run(experiment, Inputs::default()).unwrap_or_else(|e| panic!("{e}"));
    println!("{}", document.verdict.sentence);
    for line in &document.verdict.limit.evidence {
        println!("  {line}");
    }
    if let Some(next) = &document.verdict.next {
        println!("  {}", next.text);
    }
    for direction in document.links.iter().flat_map(|link| &link.directions) {
        let u = &direction.utilization;
        println!(
            "{:24} payload {:5.1} %, overhead {:5.1} %, DLLPs {:4.1} %, idle {:5.1} %",
            format!("{} → {}", direction.from, direction.to),
            100.0 * u.payload,
            100.0 * u.overhead,
            100.0 * u.dllp,
            100.0 * u.idle,
        );
    }
    for flow in &document.flows {
        let mean = flow.latency_ns.map_or(0.0, |l| l.mean);
        let rate = flow.payload_bps / 1e9;
        println!(
            "{:16} {:>8} transactions {rate:>8.3} Gb/s, mean {mean:.1} ns",
            flow.name, flow.transactions
        );
    }
}
