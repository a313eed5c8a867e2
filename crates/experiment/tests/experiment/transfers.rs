//! The DMA card and its driver on the fabric.

use tlplab_experiment::result::{Document, Measured};
use tlplab_experiment::{Experiment, Options, StopReason, run};

const CARD: &str = r#"
title = "A DMA card"
host = { profile = "server", completions = "max" }
[device.card]
under = "host.rp0"
link = "gen1 x8"
model = "tlpdma"
[load.out]
device = "host"
target = "card"
op = "to-card"
size = "256KiB"
[load.in]
device = "host"
target = "card"
op = "from-card"
size = "256KiB"
"#;

/// Bytes of a transfer in [`CARD`].
const TRANSFER: u64 = 256 << 10;

fn read(set: &[&str]) -> Result<Experiment, String> {
    let read = |_: &str| Ok(CARD.to_owned());
    let options = Options { set: set.iter().map(|s| (*s).into()).collect(), ..Options::default() };
    Experiment::parse_with(&read, "card.toml", &options).map_err(|error| error.to_string())
}

fn go(set: &[&str]) -> Document {
    run::run(read(set).unwrap(), run::Inputs::default()).unwrap()
}

fn of<'a>(document: &'a Document, load: &str) -> &'a Measured {
    document.measured.iter().find(|one| one.name == load).expect("it was measured")
}

/// Whatever the built-in devices are called, their drivers know them.
#[test]
fn the_vendor_id_is_a_setting() {
    for vendor in ["71ab", "1234", "1e10"] {
        let experiment = read(&[&format!("vendor={vendor}")]).unwrap();
        let mut run = run::Run::new(experiment, run::Inputs::default()).unwrap();
        run.finish().unwrap();
        let (document, _) = tlplab_experiment::lspci::lspci(&mut run).unwrap();
        let ids: Vec<&str> = document.functions.iter().map(|function| &function.ids[..4]).collect();
        assert_eq!(ids, [vendor; 3], "host bridge, root port, card");
    }
    assert!(read(&["vendor=ffff"]).unwrap_err().contains("is not a vendor ID"));
    let nobody = read(&["host.root_ports=[\"ffff:0001\"]"]).unwrap_err();
    assert!(
        nobody.contains("host.root_ports") && nobody.contains("is not a vendor and a device ID"),
        "{nobody}"
    );
}

#[test]
fn both_directions_are_measured_at_once_and_every_byte_is_checked() {
    for interrupts in ["msi-x", "intx"] {
        let document =
            go(&["load.in.count=3", "load.in.outstanding=2", &format!("host.interrupts={interrupts}")]);
        assert_eq!(document.stop_reason, StopReason::LoadsDone);
        let (out, back) = (of(&document, "out"), of(&document, "in"));
        assert_eq!((out.bytes, back.bytes), (TRANSFER, 3 * TRANSFER));
        let calls = back.calls.unwrap();
        assert_eq!(calls.count, 3);
        assert!(calls.min_ns > 0.0 && calls.min_ns <= calls.mean_ns && calls.mean_ns <= calls.max_ns);
        assert!((1..=3).contains(&calls.interrupts), "{calls:?}");
        // What is beside the measurement: the upper half is filled, the lower read back. The link carries 1.86 GB/s.
        let moved = |flow: &str| document.flows.iter().find(|f| f.name == flow).unwrap().bytes;
        assert_eq!(moved("card.to_card"), (1 + 2) * TRANSFER);
        // Records and messages keep their place behind the data, and are in the same flow.
        assert!((4 * TRANSFER..4 * TRANSFER + 64).contains(&moved("card.from_card")));
        let bound = 1.86e9 * 8.0;
        assert!(out.payload_bps < bound && out.payload_bps > 0.9 * bound, "{}", out.payload_bps);
    }
}

#[test]
fn descriptor_stores_limit_transfers_of_4_kib_pages() {
    let rate = |set: &[&str]| {
        let all = [
            &["load.in.verify=none", "load.out.verify=none", "load.in.size=4KiB", "load.out.size=1MiB"],
            set,
        ]
        .concat();
        of(&go(&all), "out").payload_bps / 8e6
    };
    let pio = ["load.out.descriptors=pio", "load.out.store_interval=1.3us"];
    // Four stores of 1.3 us for each 4 KiB: 788 MB/s, and less by the first.
    let small = rate(&pio);
    assert!((770.0..788.0).contains(&small), "{small}");
    let large = rate(&[pio[0], pio[1], "load.out.pages=2MiB"]);
    assert!(large > 1700.0, "{large}");
    assert!(rate(&[]) > 1800.0);
}

#[test]
fn software_cost_is_in_every_call() {
    let mean = |set: &[&str]| {
        of(&go(&[&["load.out.size=4B", "load.out.count=10"], set].concat()), "out").calls.unwrap().mean_ns
    };
    let (interrupt, poll) = (mean(&["load.in.size=4B"]), mean(&["load.in.size=4B", "load.out.wait=poll"]));
    assert!(poll < interrupt + 20.0 && poll > 1000.0, "{poll} {interrupt}");
    let late = mean(&["load.in.size=4B", "load.out.interrupt_delay=5us"]) - interrupt;
    let cost = mean(&["load.in.size=4B", "load.out.call_cost=7us"]) - interrupt;
    assert!((late - 5000.0).abs() < 50.0 && (cost - 7000.0).abs() < 50.0, "{late} {cost}");
}

#[test]
fn impossible_transfers_are_refused_with_a_hint() {
    for (set, why) in [
        (&["load.in.op=to-card"][..], "\"in\" is also to-card on \"card\""),
        (&["load.in.size=0B"], "a transfer of 0 B moves nothing"),
        (&["load.in.rate=1Gb/s"], "a transfer has no rate"),
        (&["load.in.entries=100"], "a ring of 100 descriptors is not supported"),
        (&["load.in.store_interval=1us"], "store_interval belongs to descriptors = \"pio\""),
        (
            &["load.in.wait=poll", "load.in.interrupt_delay=1us"],
            "interrupt_delay belongs to wait = \"interrupt\"",
        ),
        (&["device.card.model=ring"], "\"card\" is a ring, which this driver does not support"),
        (&["device.card.memory=3MiB"], "a card memory of 3145728 B is not supported"),
        (&["load.in.op=mmio-read", "load.in.pages=2MiB"], "pages belongs to transfers of a card"),
    ] {
        let error = read(set).err().unwrap_or_default();
        assert!(error.contains(why), "{set:?}: {error}");
    }
    let refused =
        run::run(read(&["device.card.memory=2MiB", "load.in.size=2MiB"]).unwrap(), run::Inputs::default());
    assert!(refused.unwrap_err().to_string().contains("does not fit half of the 2 MiB of card"));
}
