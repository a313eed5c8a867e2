//! The model `nettlp-card` in the experiments that come with tlplab.

use tlplab_experiment::result::{Document, NetworkDirection};
use tlplab_experiment::run::{Inputs, run};
use tlplab_experiment::{Experiment, Options};

fn ran(name: &str, overrides: &[&str]) -> Document {
    let path = format!("{}/../../studies/nettlp/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    #[allow(clippy::disallowed_methods, reason = "the experiment is a file")]
    let text = std::fs::read_to_string(&path).expect("it is there");
    let read = |_: &str| Ok(text.clone());
    let set = overrides.iter().map(|&one| one.to_owned()).collect();
    let options = Options { set, ..Options::default() };
    let experiment = Experiment::parse_with(&read, &path, &options).unwrap_or_else(|e| panic!("{e}"));
    run(experiment, Inputs::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn gbps(direction: NetworkDirection) -> f64 {
    direction.payload_bps / 1e9
}

fn near(found: f64, wanted: f64, tolerance: f64) -> bool {
    (found / wanted - 1.0).abs() < tolerance
}

/// 10 Gb/s * 256 / (12 + 256 + 52 + 20).
const FORMULA: f64 = 7.5294;

#[test]
fn the_encapsulation_leaves_7_53_gigabits_per_second() {
    let document = ran("formula", &[]);
    assert!(near(gbps(document.networks[0].to_card), FORMULA, 1e-3));
    assert_eq!(document.verdict.limit.resource, "Ethernet of card");
    // Above 4 GiB a header has four bytes more.
    let document = ran("formula", &["load.card.address=\"8GiB\""]);
    assert!(near(gbps(document.networks[0].to_card), 10.0 * 256.0 / 344.0, 1e-3));
}

#[test]
fn posted_writes_that_ethernet_cannot_carry_are_lost_and_counted() {
    let document = ran("overflow", &["warmup=\"0s\""]);
    let network = &document.networks[0];
    // What is in the buffer at the end counts as sent.
    assert!(near(gbps(network.to_software), FORMULA, 0.04), "what arrives is what Ethernet carries");
    let written = document.flows[0].bytes;
    let told = (network.to_software.datagrams + network.to_software.dropped) * 256;
    // Up to a few TLPs that are under way to the card at the end.
    assert!(
        written >= told && written - told < 16 * 256,
        "{written} B were written, {told} B are accounted for"
    );
    assert!(document.verdict.sentence.starts_with("The Ethernet of card limits the run"));
    // On a link that is slower than Ethernet nothing is lost.
    let slow = ran("overflow", &["device.card.link=\"gen1 x2\""]);
    assert_eq!(slow.networks[0].to_software.dropped, 0);
}

#[test]
fn reads_have_the_teeth_of_request_size_and_payload() {
    let rate = |size: u32| {
        let document = ran("reads", &["stop=\"3ms\"", &format!("load.card.size=\"{size}B\"")]);
        document.flows[0].payload_bps / 1e9
    };
    // 528 B are two requests one after the other, 272 B two completions of one.
    let (at_256, at_272, at_512, at_528, at_1024) = (rate(256), rate(272), rate(512), rate(528), rate(1024));
    assert!(at_528 < 0.7 * at_512, "{at_528} after {at_512}");
    assert!(at_272 < at_256 && at_272 > 0.8 * at_256, "{at_272} after {at_256}");
    assert!(near(at_1024, at_512, 0.02), "longer reads gain nothing: {at_1024} after {at_512}");
}

#[test]
fn cores_add_up_until_ethernet_is_full() {
    let rate = |cores: u32| {
        let (cores, outstanding) =
            (format!("device.card.cores={cores}"), format!("load.card.outstanding={cores}"));
        let document = ran("reads", &["stop=\"3ms\"", &cores, &outstanding]);
        assert!(document.networks[0].to_software.dropped == 0 || document.networks[0].failed_reads > 0);
        document.flows[0].payload_bps / 1e9
    };
    let (one, eight) = (rate(1), rate(8));
    assert!(near(eight, 8.0 * one, 0.02), "{eight} with eight cores, {one} with one");
    // Completions of 256 B carry what writes of 256 B do.
    assert!(near(rate(64), FORMULA, 0.02));
}

#[test]
fn a_device_reads_software_in_the_time_that_software_takes() {
    let document = ran("psmem", &[]);
    let latency = document.flows[0].latency_ns.expect("it reads").p50;
    // Waking, reception and two sendings on one core, 11.4 + 2.5 + 2 * 2.5 us, wire and a little, and waits for its core.
    assert!((19_500.0..26_000.0).contains(&latency), "{latency}");
    assert_eq!(document.flows[0].errors.timeout, 0);
}
