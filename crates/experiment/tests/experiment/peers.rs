//! `experiments/p2p`: flows from device to device, against figures computed by hand.
#![allow(clippy::disallowed_methods, reason = "tests read the experiments from their files")]

use tlplab_experiment::result::{Document, MessageName};
use tlplab_experiment::run::{Inputs, run};
use tlplab_experiment::{Experiment, Options};

/// 16 lanes of 32 GT/s with 128b/130b, less the ordered sets: GB/s.
const LINK: f64 = 32.0 * 16.0 * 128.0 / 130.0 / 8.0 * (1.0 - 0.0026);
/// Beside the payload of a write: STP and sequence number, header with a 64-bit address, LCRC. Of a completion the header is 12 B.
const WRITE: f64 = 4.0 + 16.0 + 4.0;
const COMPLETION: f64 = 4.0 + 12.0 + 4.0;
const DLLP: f64 = 8.0;

fn go(name: &str, sets: &[&str]) -> Document {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
    let set = sets.iter().map(|s| (*s).to_owned()).collect();
    let options = Options { set, ..Options::default() };
    let path = format!("{}/../../experiments/p2p/{name}", env!("CARGO_MANIFEST_DIR"));
    let experiment = Experiment::parse_with(&read, &path, &options).unwrap_or_else(|e| panic!("{e}"));
    run(experiment, Inputs::default()).unwrap()
}

/// GB/s of a load.
fn rate(document: &Document, load: &str) -> f64 {
    document.flows.iter().find(|f| f.name == load).unwrap().payload_bps / 8e9
}

fn close(found: f64, by_hand: f64, within: f64) {
    assert!((found / by_hand - 1.0).abs() < within, "{found} GB/s against {by_hand} by hand");
}

#[test]
fn two_pairs_share_an_uplink() {
    for (set, payload) in [("defaults.link.mps=128B", 128.0), ("defaults.link.mps=256B", 256.0)] {
        let document = go("flat.toml", &[set]);
        let pair = LINK * payload / (payload + WRITE) / 2.0;
        for load in ["gpu0", "gpu1"] {
            close(rate(&document, load), pair, 0.005);
        }
        assert_eq!(document.verdict.limit.resource, "link sw1 → host.rp0");
    }
}

#[test]
fn two_pairs_below_one_switch_do_not() {
    let inside = ["load.gpu0.target=gpu2", "load.gpu1.target=gpu3"];
    let document = go("flat.toml", &inside);
    for load in ["gpu0", "gpu1"] {
        close(rate(&document, load), LINK * 128.0 / (128.0 + WRITE), 0.005);
    }
    let uplink = document.links.iter().find(|l| l.name == "sw1").unwrap();
    assert!(uplink.directions.iter().all(|d| d.payload_bytes == 0), "nothing goes up");
}

/// Each GPU of the ring of four sends and receives: every TLP of the other way takes an Ack.
#[test]
fn pairs_from_switch_to_switch_are_independent() {
    let document = go("four-roots.toml", &[]);
    let pair = LINK * 128.0 / (128.0 + WRITE + DLLP);
    for load in ["gpu0", "gpu4", "gpu8", "gpu12"] {
        close(rate(&document, load), pair, 0.005);
    }
}

/// GPU 0 reads from GPU 1, which reads from GPU 2: what GPU 1 sends are completions, a request of 24 B for each 512 B that it reads, and Acks of completions
/// that come (some of one and a request together, so a little less). Its requests take turns with the completions; behind them all, they would starve.
#[test]
fn a_device_that_is_read_from_still_reads() {
    let chain = ["load.gpu0.op=read", "load.gpu0.target=gpu1", "load.gpu1.op=read", "load.gpu1.target=gpu2"];
    let document = go("flat.toml", &chain);
    let each = LINK / ((128.0 + COMPLETION + DLLP) / 128.0 + (WRITE + DLLP) / 512.0);
    for load in ["gpu0", "gpu1"] {
        close(rate(&document, load), each, 0.02);
    }
}

/// One GPU that can 128 B: what all can is the payload of all, or each sends what it and the ports above it can. What is then too large for the one is
/// malformed there, and nothing of it arrives.
#[test]
fn one_device_with_small_payloads_costs_all_below_its_root_port() {
    let run = |policy: &str, target: &str| {
        let policy = format!("host.payloads={policy}");
        let to = format!("load.gpu0.target={target}");
        let small = "link.gpu2.lower.max_payload=128B";
        go("flat.toml", &["defaults.link.mps=512B", small, &policy, &to, "load.gpu1.target=gpu3"])
    };
    for (policy, payload) in [("common", 128.0), ("upward", 512.0), ("smallest", 128.0)] {
        let document = run(policy, "gpu1");
        // Both directions of GPU 1's link carry a flow, and Acks for the other.
        for load in ["gpu0", "gpu1"] {
            close(rate(&document, load), LINK * payload / (payload + WRITE + DLLP), 0.005);
        }
    }
    let refused = run("upward", "gpu2");
    close(rate(&refused, "gpu1"), LINK * 512.0 / (512.0 + WRITE), 0.005);
    let [malformed] = &refused.errors[..] else { panic!("{:?}", refused.errors) };
    assert_eq!((malformed.name.token(), malformed.port.as_str()), ("Malformed TLP", "gpu2 → sw1"));
    assert!(malformed.count > 1000 && malformed.message == Some(MessageName::Fatal), "{malformed:?}");
    assert_eq!(refused.flows.iter().find(|flow| flow.name == "gpu0").unwrap().bytes, 0);
}

/// The figures in the file: what a read takes at least, in ns.
#[test]
fn memory_is_nearer_to_the_root_port_in_its_quadrant() {
    let least = |sets: &[&str]| {
        let document = go("two-dies.toml", sets);
        ["far", "near"].map(|load| {
            let flow = document.flows.iter().find(|flow| flow.name == load).unwrap();
            flow.latency_ns.as_ref().unwrap().min
        })
    };
    let bytes_per_ns = 32.0 * 16.0 * 128.0 / 130.0 / 8.0;
    let alone = 100.0 + 80.0 + 100.0 + (24.0 + 84.0) / bytes_per_ns;
    let same = |found: [f64; 2], by_hand: [f64; 2]| {
        let close = found.iter().zip(by_hand).all(|(found, by_hand)| (found - by_hand).abs() < 0.01);
        assert!(close, "{found:?} {by_hand:?}");
    };
    same(least(&[]), [alone + 80.0, alone]);
    same(least(&["host.memory.domain=q0"]), [alone, alone + 80.0]);
    same(least(&["host.memory={ latency = \"80ns\" }"]), [alone, alone]);
    // What the first spends in passages is there by name.
    let document = go("two-dies.toml", &[]);
    let far = document.flows.iter().find(|flow| flow.name == "far").unwrap();
    for passage in ["host.q0.exit", "host.q0.entrance", "host.q1.exit", "host.q1.entrance"] {
        let share = far.attribution.iter().find(|part| part.place == passage).map_or(0.0, |part| part.share);
        assert!((share / (20.0 / (alone + 80.0)) - 1.0).abs() < 0.01, "{passage}: {share}");
    }
}

fn parsed(text: &str, sets: &[&str]) -> Result<Experiment, String> {
    let read = |_: &str| Ok(text.to_owned());
    let set = sets.iter().map(|s| (*s).to_owned()).collect();
    let options = Options { set, ..Options::default() };
    Experiment::parse_with(&read, "t.toml", &options).map_err(|error| error.to_string())
}

/// Two devices below a switch, of which one writes to the other and reads from it.
const TWO: &str = r#"
title = "t"
stop = { transactions = 8 }
[switch.sw0]
under = "host.rp0"
link = "gen4 x8"
[device.a]
under = "sw0"
link = "gen4 x8"
[device.b]
under = "sw0"
link = "gen4 x8"
[load]
a = { target = "b", op = "write", size = "256B", outstanding = 1 }
"#;

fn sentence(sets: &[&str]) -> String {
    let document = run(parsed(TWO, sets).unwrap(), Inputs::default()).unwrap();
    let evidence = document.verdict.limit.evidence.join("\n");
    let told = document.verdict.sentence.split_once(" failed, and ").map_or("", |(_, clause)| clause);
    assert!(evidence.contains(told.trim_end_matches('.')), "{told} is not in {evidence}");
    document.verdict.sentence
}

#[test]
fn a_port_may_forbid_peers_if_its_switch_or_host_gives_it_access_control() {
    let forbids = "link.a.upper.acs_forbids=[\"b\"]";
    for given in [
        "switch.sw0.acs=[\"egress-control\"]",
        "defaults.link.upper.acs=[\"egress-control\"]",
        "link.a.upper.acs=[\"egress-control\"]",
    ] {
        let refused = sentence(&[given, forbids]);
        assert!(refused.contains("because link.a.upper.acs_forbids names the peer"), "{given}: {refused}");
    }
    let of_host = ["host.acs=[\"egress-control\"]", "device.b.under=host.rp1", "device.a.under=host.rp2"];
    let refused = sentence(&[&of_host[..], &[forbids]].concat());
    assert!(refused.contains("access control at host.rp2 → a refused"), "{refused}");
    // With nothing at the port or above it, or of a sibling only, it is refused.
    for sets in [&[forbids][..], &[forbids, "link.b.upper.acs=[\"egress-control\"]"]] {
        let error = parsed(TWO, sets).unwrap_err();
        assert!(error.contains("acs_forbids without acs at this port or in sw0"), "{error}");
    }
}

/// Both a port with access control and one without: the verdict has the port, the reason and the key.
#[test]
fn the_verdict_names_port_and_key_of_an_access_control_refusal() {
    let redirect = "switch.sw0.acs=[\"request-redirect\"]";
    let lacks = "from a, because the peer is below the same port and";
    for (sets, said) in [
        (&["host.acs=[\"source-validation\"]", redirect][..], "host.acs lacks \"upstream-forwarding\""),
        (
            &["host.acs=[\"source-validation\"]", "link.sw0.upper.acs=\"off\"", redirect],
            "link.sw0.upper.acs lacks",
        ),
    ] {
        let sentence = sentence(sets);
        assert!(sentence.starts_with("No transaction ended well: "), "{sentence}");
        assert!(sentence.contains("access control at host.rp0 → sw0 refused"), "{sentence}");
        assert!(sentence.contains(&format!("{lacks} {said}")), "{sentence}");
    }
    let forwards = sentence(&["host.acs=[\"upstream-forwarding\"]", redirect]);
    assert!(!forwards.contains("refused"), "{forwards}");
    // Completions that are redirected come to the same port.
    let reads = ["load.a.op=read", "host.acs=\"off\"", "switch.sw0.acs=[\"completion-redirect\"]"];
    let completions = sentence(&[&reads[..], &["device.a.completion_timeout=20us"]].concat());
    assert!(
        completions.contains("completions, the first from b, because the peer is below the same port"),
        "{completions}"
    );
    let off = sentence(&["device.b.under=host.rp1", "host.p2p=off"]);
    assert!(off.contains("the root complex at host.rp0 → sw0 refused"), "{off}");
    assert!(off.contains("because host.p2p is \"off\""), "{off}");
}
