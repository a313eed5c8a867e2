//! The experiments of `studies/differential`: what a checksum of the header's own brings, and what posted writes do to a register read.
#![allow(clippy::disallowed_methods, reason = "tests read the experiments from their files")]

use tlplab_experiment::result::{Document, Flow};
use tlplab_experiment::run::{Inputs, run};
use tlplab_experiment::{Experiment, Options};

fn go(name: &str, sets: &[String]) -> Document {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
    let path = format!("{}/../../studies/differential/{name}", env!("CARGO_MANIFEST_DIR"));
    let options = Options { set: sets.to_vec(), ..Options::default() };
    let experiment = Experiment::parse_with(&read, &path, &options).unwrap_or_else(|e| panic!("{e}"));
    run(experiment, Inputs::default()).unwrap()
}

fn flow<'a>(document: &'a Document, name: &str) -> &'a Flow {
    document.flows.iter().find(|flow| flow.name == name).unwrap()
}

/// Of one write of some size through three switches, the shortest time.
fn forwarded(how: &str, size: &str) -> f64 {
    let mut sets: Vec<String> = ["a", "b", "c"].map(|name| format!("switch.{name}.forwarding={how}")).into();
    sets.push(format!("load.card.size={size}"));
    flow(&go("header-checksum.toml", &sets), "card").latency_ns.unwrap().min
}

/// A byte takes 1 ns on a Gen1 x4 link, and a TLP with 64-bit or 32-bit address a header of 12 or 16 bytes, framing of 4 before it.
#[test]
fn a_checked_header_saves_the_payload_once_per_switch() {
    for (size, bytes) in [("64B", 64.0), ("128B", 128.0), ("256B", 256.0)] {
        let [cut, checked, stored] =
            ["cut-through", "header-checked", "store-and-forward"].map(|how| forwarded(how, size));
        println!("| {size} | {stored} | {checked} | {cut} |");
        // Three switches wait for 4 bytes more of the header, and the last link carries 4 more.
        assert_eq!(checked - cut, 16.0, "{size}");
        // Three switches wait for the payload and the LCRC and framing behind it.
        assert_eq!(stored - cut, 3.0 * (bytes + 4.0), "{size}");
    }
}

#[test]
fn posted_writes_starve_a_register_read() {
    let median = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let document = go("starvation.toml", &sets);
        let writes = flow(&document, "writes");
        let credits = document.causes.iter().position(|cause| cause.0.name() == "credit wait");
        let waiting =
            writes.attribution.iter().filter(|part| Some(part.cause) == credits).map(|part| part.share);
        (flow(&document, "probe").latency_ns.unwrap().p50, waiting.sum::<f64>())
    };
    let (alone, _) = median(&["load.writes.rate=1Mb/s"]);
    let (endless, without) = median(&["link.card.lower.buffers.posted_headers=0"]);
    let (starved, credits) = median(&[]);
    println!("| {alone} | {endless} | {starved} | {credits}");
    assert!(
        endless < 1.1 * alone,
        "writes alone hold it up by no more than one of them: {endless}, not {alone}"
    );
    assert!(starved > 4.0 * alone, "{starved}, not {alone}");
    assert!(without == 0.0 && credits > 0.5, "{credits} of the time of a write");
}
