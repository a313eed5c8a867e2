//! Stages of links: named delays that make TLPs later, are charged to their names, and change nothing else.

use tlplab_experiment::result::{Document, Flow};
use tlplab_experiment::run::{Inputs, run};
use tlplab_experiment::{Experiment, Options};

/// Below a switch, or at a root port; with `KEYS` for the link above the card.
fn experiment(under: &str, link: &str, keys: &str, load: &str) -> Result<Experiment, String> {
    let text = format!(
        r#"
        title = "Stages"
        [switch.sw]
        under = "host.rp0"
        link = {{ generation = 1, width = 4, skp = "off" }}
        latency = "10ns"
        forwarding = "store-and-forward"
        [device.other]
        under = "sw"
        link = "gen1 x1"
        [device.card]
        under = "{under}"
        link = "{link}"
        mrrs = "256B"
        tags = 256
        [link.card]
        skp = "off"
        flight = "3ns"
        {keys}
        {load}
        "#
    );
    Experiment::parse_with(&|_| Ok(text.clone()), "stages.toml", &Options::default())
        .map_err(|e| e.to_string())
}

fn go(under: &str, link: &str, keys: &str, load: &str) -> Document {
    let experiment = experiment(under, link, keys, load).unwrap_or_else(|e| panic!("{e}"));
    let document = run(experiment, Inputs::default()).unwrap();
    for flow in &document.flows {
        assert_eq!(flow.errors, Default::default());
    }
    document
}

const READ: &str = r#"
    [load]
    host = { op = "mmio-read", target = "card", size = "4B", count = 1 }
"#;

const ALL: &str = r#"
    [link.card.upper.stages]
    tx_transaction = "101ns"
    tx_data_link = "13ns"
    tx_physical = "17ns"
    tx_transceiver = "19ns"
    rx_transceiver = "23ns"
    rx_physical = "29ns"
    rx_data_link = "31ns"
    rx_transaction = "37ns"
    [link.card.lower.stages]
    tx_transaction = "211ns"
    tx_data_link = "41ns"
    tx_physical = "43ns"
    tx_transceiver = "47ns"
    rx_transceiver = "53ns"
    rx_physical = "59ns"
    rx_data_link = "61ns"
    rx_transaction = "67ns"
    register_response = "500ns"
    config_response = "900ns"
"#;
const NAMES: [&str; 8] = [
    "tx_transaction",
    "tx_data_link",
    "tx_physical",
    "tx_transceiver",
    "rx_transceiver",
    "rx_physical",
    "rx_data_link",
    "rx_transaction",
];
const DOWN: [f64; 8] = [101., 13., 17., 19., 53., 59., 61., 67.];
const UP: [f64; 8] = [211., 41., 43., 47., 23., 29., 31., 37.];

fn at(flow: &Flow, place: &str) -> f64 {
    flow.attribution.iter().filter(|part| part.place == place).map(|part| part.total_ns).sum()
}

#[test]
fn each_stage_is_charged_its_time_and_nothing_else_changes() {
    let read = READ;
    for (under, link) in
        [("host.rp1", "gen1 x1"), ("host.rp1", "gen5 x16"), ("sw", "gen2 x4"), ("sw", "gen6 x4 flit")]
    {
        let (plain, staged) = (go(under, link, "", read), go(under, link, ALL, read));
        let (plain, staged) = (&plain.flows[0], &staged.flows[0]);
        let latency = |flow: &Flow| flow.latency_ns.unwrap().min;
        let sum: f64 = DOWN.iter().chain(&UP).sum::<f64>() + 500.0;
        assert!((latency(staged) - latency(plain) - sum).abs() < 1e-6, "{under} {link}");
        for (direction, delays) in [(format!("{under} → card"), DOWN), (format!("card → {under}"), UP)] {
            for (name, delay) in NAMES.iter().zip(delays) {
                assert_eq!(at(staged, &format!("{direction}: {name}")), delay, "{direction}: {name}");
            }
            // The wire itself is as it was.
            assert_eq!(at(staged, &direction), at(plain, &direction));
        }
        assert_eq!(at(staged, "card: register_response"), 500.0);
        assert_eq!(at(staged, "card: config_response"), 0.0);
        let shares: f64 = staged.attribution.iter().map(|part| part.share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }
}

/// Credits that cover every round trip.
const CREDITS: &str = "[link.card.upper.buffers]\n";

#[test]
fn stages_are_pipelines() {
    for (op, ways) in [("write", 1), ("read", 2)] {
        for link in ["gen1 x1", "gen3 x8", "gen5 x16", "gen6 x8 flit"] {
            let load = format!(
                "[load]\ncard = {{ op = \"{op}\", size = \"64B\", count = 3000, outstanding = 250 }}"
            );
            let end =
                |keys: &str| go("host.rp1", link, &format!("{keys}{CREDITS}"), &load).end_fs as f64 / 1e6;
            let (plain, staged) = (end(""), end(ALL));
            let once: f64 = UP.iter().chain(if ways == 2 { DOWN.as_slice() } else { &[] }).sum();
            // What a later start and later credits and tags cost; a stage that held one TLP at a time would cost 3000 times as much.
            let slack = once * 0.2 + if ways == 2 { once * 3000.0 / 250.0 } else { 0.0 };
            assert!(staged - plain >= once * 0.9, "{op} {link}: {plain} {staged}");
            assert!(staged - plain <= once + slack, "{op} {link}: {plain} {staged}");
        }
    }
}

#[test]
fn a_clock_is_of_the_link_or_of_its_own() {
    let read = READ;
    let latency = |link: &str, keys: &str| {
        let keys = if keys.is_empty() { String::new() } else { format!("[link.card.lower.stages]\n{keys}") };
        go("host.rp1", link, &keys, read).flows[0].latency_ns.unwrap().min
    };
    for (link, keys, ns) in [
        // 2.5 Gb/s with 8b/10b bring 8 bytes in 32 ns.
        ("gen1 x1", "tx_transaction = 33", 1056.0),
        ("gen1 x1", "tx_data_link = \"10.5 clocks\"", 336.0),
        ("gen1 x8", "tx_transaction = 33", 132.0),
        ("gen2 x8", "tx_transaction = 33", 66.0),
        ("gen1 x1", "data_path = \"32b\"\ntx_transaction = 33", 528.0),
        ("gen1 x1", "clock = \"250MHz\"\ntx_transaction = 33", 132.0),
        ("gen3 x8", "data_path = \"256b\"\nrx_transaction = 16", 65.0),
        ("gen1 x1", "rx_transceiver = \"183ns\"\nregister_response = 5", 343.0),
    ] {
        let difference = latency(link, keys) - latency(link, "");
        assert!((difference - ns).abs() < 1e-6, "{link} {keys}: {difference}");
    }
}

#[test]
fn mistakes_in_stages_are_reported() {
    for (keys, what) in [
        ("[link.card.upper.stages]\nregister_response = 5", "behind the lower end"),
        ("[link.card.lower.stages]\nclock = \"0Hz\"", "a clock of 0 Hz is not supported"),
        ("[link.card.lower.stages]\ntx_physical = \"2ms\"", "less than 1 ms"),
        ("[link.card.lower.stages]\ntx_physical = \"2 parsecs\"", "10.5 clocks"),
        ("[link.card.lower.stages]\ntx_fysical = 2", "tx_physical"),
    ] {
        let error = experiment("host.rp1", "gen1 x1", keys, "").err().unwrap_or_default();
        assert!(error.contains(what), "{keys}: {error}");
    }
}

/// A link that goes down takes what is in its stages with it; nobody waits for ever, and nothing is charged twice.
#[test]
fn a_link_that_goes_down_empties_its_stages() {
    let text = r#"
        [[fault]]
        link = "card"
        down = "4us"
        until = "9us"
        [load]
        card = { op = "both", size = "64B", count = 400, outstanding = 16 }
        host = { op = "mmio-read", target = "card", size = "4B", count = 20 }
    "#;
    for under in ["sw", "host.rp1"] {
        let slow = ALL.replace("101ns", "1us").replace("211ns", "1us");
        let experiment = experiment(under, "gen3 x4", &slow, &format!("{text}\n")).unwrap();
        let document = run(experiment, Inputs::default()).unwrap();
        assert!(document.end_fs > 9_000_000_000, "{}", document.stop_text);
        let ended: u64 = document
            .flows
            .iter()
            .map(|f| f.transactions + f.errors.lost + f.errors.ur + f.errors.timeout)
            .sum();
        assert!(ended > 0, "{:?}", document.stop_reason);
    }
}
