//! Runs whose limits are easily named wrongly: work that ends early, phases that shrink, beginnings that are not like the rest, limits without an
//! exact double. Each comes with the resource that gains most by hand.

use super::whatif::{named, verdict};
use tlplab_experiment::Experiment;
use tlplab_experiment::result::{Document, Verdict};
use tlplab_experiment::run::{Inputs, run};
use tlplab_fabric::attribution::Cause;

/// A device below each of two root ports.
const TWO: &str = "title = \"two\"\n[device.a]\nunder = \"host.rp0\"\nlink = \"gen1 x1\"\n[device.b]\nunder = \"host.rp1\"\nlink = \"gen3 x4\"\n";

fn single(keys: &str, load: &str) -> String {
    format!("title = \"one\"\n{keys}\n[device.d]\nunder = \"host.rp0\"\n{load}")
}

fn assert_named(text: &str, resource: &str, gain: std::ops::Range<f64>) -> Verdict {
    let verdict = verdict(text);
    assert!(named(&verdict).contains(&resource), "{:?}: {}\n{text}", named(&verdict), verdict.sentence);
    let measured = verdict.limit.gain.unwrap();
    assert!(gain.contains(&measured), "{measured}: {}\n{text}", verdict.sentence);
    verdict
}

/// A run and what its own figures say of its limit.
fn figures(text: &str) -> Document {
    let experiment = Experiment::parse(&|_| Ok(text.to_owned()), "t.toml").unwrap_or_else(|e| panic!("{e}"));
    run(experiment, Inputs::default()).unwrap()
}

#[test]
fn figures_name_no_outstanding_of_a_load_that_never_had_so_many_under_way() {
    for count in [1, 20] {
        let load = format!(
            "link = \"gen3 x4\"\n[load]\nd = {{ op = \"write\", size = \"64B\", count = {count} }}\n"
        );
        let verdict = figures(&single("stop = \"60us\"", &load)).verdict;
        assert!(
            verdict.sentence.starts_with("Nothing limits the run: fewer than 32"),
            "{}",
            verdict.sentence
        );
    }
    // Lost UpdateFCs hold up all but the first: 64 are under way, but their latency is not that of those that ended.
    let lost = "link = \"gen3 x4\"\n[[fault]]\nlink = \"d\"\ndllp = 1\ncount = 100000\nof = \"UpdateFC\"\ndamage = \"drop\"\ndirection = \"down\"\n[load]\nd = { op = \"write\", size = \"4KiB\", outstanding = 64 }\n";
    let verdict = figures(&single("stop = \"200us\"", lost)).verdict;
    assert!(!verdict.sentence.contains("always under way"), "{}", verdict.sentence);
}

/// A transaction waits a small part of its time, but the port is never free: what it waits for limits, and not the transactions, of which more
/// would wait longer. A posted write is over when it has left.
#[test]
fn figures_name_short_waits_of_a_port_that_is_never_free() {
    let write = |outstanding| {
        format!("[load]\nd = {{ op = \"write\", size = \"64B\", outstanding = {outstanding} }}\n")
    };
    let read = "[load]\nd = { op = \"read\", size = \"64B\", outstanding = 36 }\n";
    let far = "link = { generation = 3, width = 16, flight = \"5us\" }\n";
    let replay = "link = { generation = 3, width = 16, flight = \"5us\", lower = { replay_tlps = 30 } }\n";
    for (device, load, resource) in [
        (far.to_owned(), write(1), "credits of d → host.rp0"),
        (format!("{far}tags = 32\n"), read.to_owned(), "tags of d"),
        (replay.to_owned(), write(1), "replay buffer of d → host.rp0"),
    ] {
        let text = single("stop = \"300us\"\nwarmup = \"60us\"", &format!("{device}{load}"));
        let Document { verdict, flows, .. } = figures(&text);
        assert_eq!(verdict.limit.resource, resource, "{}", verdict.sentence);
        let next = verdict.next.map_or_else(String::new, |next| next.resource);
        assert!(load == read || next != "the outstanding of d", "a posted write waits for none before it");
        let waits = |cause: &str| {
            let of_it = flows[0].attribution.iter().filter(|a| Cause::ALL[a.cause].name() == cause);
            of_it.map(|a| a.share).sum::<f64>()
        };
        let waited = ["credit wait", "tag wait", "replay buffer wait"].map(waits).iter().sum::<f64>();
        assert!((0.0..0.3).contains(&waited), "{waited}");
    }
    // One transaction at a time never waits for any of them.
    let one = read.replace("36", "1");
    let alone = figures(&single("stop = \"300us\"", &format!("{far}{one}"))).verdict;
    assert_eq!(alone.limit.resource, "the latency of d", "{}", alone.sentence);
}

/// A link that goes down when its load is over, or that no load crosses, limits nothing. One that still had something to carry does.
#[test]
fn figures_name_no_link_that_went_down_after_its_work() {
    let loads = |rest: &str| {
        format!(
            "{TWO}[[fault]]\nlink = \"b\"\ndown = \"60us\"\n[load]\na = {{ op = \"read\", size = \"256B\", outstanding = 8 }}\n{rest}"
        )
        .replace("title = \"two\"", "title = \"two\"\nstop = \"100us\"")
    };
    for (rest, limit) in [
        ("", "link host.rp0 → a"),
        ("b = { op = \"write\", size = \"64B\", count = 1 }\n", "link host.rp0 → a"),
        ("b = { op = \"write\", size = \"64B\", rate = \"1Gb/s\" }\n", "link b → host.rp1"),
        ("b = { op = \"write\", size = \"64B\", rate = \"1Gb/s\", count = 9000 }\n", "link b → host.rp1"),
    ] {
        let verdict = figures(&loads(rest)).verdict;
        assert_eq!(verdict.limit.resource, limit, "{}\n{rest}", verdict.sentence);
    }
}

/// A crossbar is called one, with its own rate.
#[test]
fn figures_name_a_crossbar() {
    let load = "link = { generation = 3, width = 4, crossbar = \"10Gb/s\" }\n[load]\nd = { op = \"write\", size = \"256B\", outstanding = 4 }\n";
    let verdict = figures(&single("stop = \"20us\"", load)).verdict;
    let said = "The crossbar of d limits the run: it is busy 100.0 % of the time with 10.00 Gb/s of payload";
    assert!(verdict.sentence.starts_with(said), "{}", verdict.sentence);
}

/// Where a full port drops nearly all that comes, its buffers limit: not the tags behind it, nor the wire that is busy with copies.
#[test]
fn figures_name_the_port_buffers_that_drop_tlps() {
    for (lanes, buffers, latency) in [(1, 1, "10ns"), (4, 8, "500ns"), (8, 2, "150ns")] {
        let keys = format!("stop = \"300us\"\nhost = {{ port_buffer = {buffers}, latency = \"{latency}\" }}");
        let load = format!(
            "link = {{ generation = 3, width = {lanes}, flow_control = \"drop-and-replay\" }}\n[load]\nd = {{ op = \"read\", size = \"128B\", outstanding = 64 }}\n"
        );
        let text = single(&keys, &load);
        let document = figures(&text);
        assert_eq!(document.verdict.limit.resource, "port buffers of host", "{}", document.verdict.sentence);
        assert!(document.verdict.next.is_none(), "replays hide how long an answer takes");
        assert_named(&text, "port buffers of host", 0.2..9.0);
    }
}

#[test]
fn figures_name_no_latency_where_no_transaction_ended() {
    let ber = "link = { generation = 3, width = 4, flight = \"2us\" }\n[[fault]]\nlink = \"d\"\nber = 1e-3\n[load]\nd = { op = \"write\", size = \"4KiB\", outstanding = 64 }\n";
    let document = figures(&single("stop = \"200us\"", ber));
    assert_eq!(document.flows[0].transactions, 0);
    assert!(document.verdict.sentence.starts_with("No transaction ended: "), "{}", document.verdict.sentence);
}

/// Of a Gen3 x8 link two lanes are left before the warm-up ends: it is as busy as a Gen3 x2 link, and is named as such a link is.
#[test]
fn a_link_is_busy_by_the_lanes_that_it_has() {
    let load = "tags = 256\n[load]\nd = { op = \"read\", size = \"4KiB\", outstanding = 64 }\n";
    let fault = "[[fault]]\nlink = \"d\"\nnarrow = \"50us\"\nlanes = 2\n";
    let head = "stop = \"400us\"\nwarmup = \"100us\"\nfidelity = \"length-only\"";
    let narrowed = figures(&(single(head, &format!("link = \"gen3 x8\"\n{load}")) + fault));
    let native = figures(&single(head, &format!("link = \"gen3 x2\"\n{load}")));
    let used = |document: &Document| {
        document.links[0].directions.iter().map(|d| d.utilization.payload).fold(0.0, f64::max)
    };
    assert!((used(&narrowed) - used(&native)).abs() < 0.01, "{} {}", used(&narrowed), used(&native));
    let sentence = &narrowed.verdict.sentence;
    assert!(sentence.starts_with("The link host.rp0 → d limits"), "{sentence}");
    assert!(sentence.contains("on the lanes that are left with 14.4"), "{sentence}");
    // The lanes fail in the middle: before, an eighth of the bytes' time at eight lanes, after, at two.
    let middle =
        figures(&(single(&head.replace("100us", "0us"), &format!("link = \"gen3 x8\"\n{load}")) + fault));
    let idle = middle.links[0].directions.iter().map(|d| d.utilization.idle).fold(1.0, f64::min);
    assert!(idle < 0.05, "{idle}");
}

/// A port below 16 GT/s has 127 header credits at most: twice as many as 100 are those, and more than 127 are no limit, which is what is said.
#[test]
fn twice_as_many_credits_are_no_more_than_a_port_can_have() {
    let at = |credits: &str| {
        format!(
            "title = \"t\"\nstop = \"100us\"\nfidelity = \"length-only\"\n[device.d]\nunder = \"host.rp0\"\nlink = {{ generation = 3, width = 4, flight = \"20us\"{credits} }}\n[load]\nd = {{ op = \"write\", size = \"4KiB\", outstanding = 64 }}\n"
        )
    };
    let some = verdict(&at(", upper = { buffers = { posted_headers = 100, posted_data = 0 } }"));
    assert!(!some.sentence.contains("100 → no limit"), "{}", some.sentence);
    for limit in &some.limits {
        assert!(
            !limit.resource.contains("credits") || limit.gain.is_none_or(|gain| gain < 1.05),
            "{limit:?}"
        );
    }
    let all = verdict(&at(""));
    let told = format!("{} {}", all.sentence, all.limit.evidence.join(" "));
    assert!(
        !told.contains("twice as many of each would") && !told.contains("twice as many of each carries"),
        "{told}"
    );
}

/// Two peers below a switch whose uplink is a quarter as wide: straight they have four times as much, with a wider uplink twice.
#[test]
fn access_control_limits_peers_that_could_go_straight() {
    let text = "title = \"peers\"\nstop = \"30us\"\nhost = { acs = \"isolation\" }\n[switch.s]\nunder = \"host.rp0\"\nlink = \"gen3 x2\"\nacs = \"isolation\"\n[device.a]\nunder = \"s\"\nlink = \"gen3 x8\"\n[device.b]\nunder = \"s\"\nlink = \"gen3 x8\"\n[load]\na = { target = \"b\", op = \"write\", size = \"4KiB\" }\n";
    let judged = assert_named(text, "access control between peers", 2.9..3.2);
    assert_eq!(judged.limit.change.as_deref(), Some("redirected → straight"));
    let off = text.replace("gen3 x2\"\nacs = \"isolation\"", "gen3 x2\"\nacs = \"off\"");
    assert_named(&off, "link a → s and link s → b", 0.9..1.05);
}

/// Traffic leaves a quadrant at 1 GB/s; links carry two and more.
#[test]
fn the_exit_of_a_domain_limits_outgoing_traffic() {
    let text = format!(
        "{TWO}[host.domain.q0]\nports = [\"host.rp1\"]\nrate = \"1Gb/s\"\n[load]\nb = {{ target = \"a\", op = \"write\", size = \"4KiB\", count = 30 }}\n"
    );
    let judged = assert_named(&text, "rate of host.q0", 0.5..1.05);
    assert_eq!(judged.limit.kind, tlplab_experiment::result::LimitKind::Routing);
}

/// What comes from memory in another domain leaves it at 1 GB/s, the link carries more than three.
#[test]
fn the_rate_of_the_domain_that_memory_is_in_limits_reads() {
    let text = format!(
        "{TWO}[host]\nmemory = {{ domain = \"m\", latency = \"0s\" }}\n[host.domain.q0]\nports = [\"host.rp1\"]\n[host.domain.m]\nrate = \"8Gb/s\"\n[load]\nb = {{ op = \"read\", size = \"4KiB\", count = 60 }}\n"
    );
    assert_named(&text, "rate of host.m", 0.9..1.05);
    let near =
        text.replace("ports = [\"host.rp1\"]\n[host.domain.m]", "[host.domain.m]\nports = [\"host.rp1\"]");
    assert_named(&near, "link host.rp1 → b", 0.9..1.05);
}

/// Two devices of one root port, each with writes to another root port: 256 B in 200 ns for both, where their links carry 3.6 GB/s. Writes that need no
/// order do not wait.
#[test]
fn the_turnaround_between_root_ports_limits_writes_that_need_order() {
    let text = "title = \"turns\"\nstop = \"60us\"\nwarmup = \"10us\"\nhost = { write_turnaround = \"200ns\" }\n[switch.s]\nunder = \"host.rp0\"\nlink = \"gen3 x4\"\n[device.a]\nunder = \"s\"\nlink = \"gen3 x4\"\n[device.b]\nunder = \"s\"\nlink = \"gen3 x4\"\n[device.x]\nunder = \"host.rp1\"\nlink = \"gen3 x4\"\n[device.y]\nunder = \"host.rp2\"\nlink = \"gen3 x4\"\n[load]\na = { target = \"x\", op = \"write\", size = \"4KiB\" }\nb = { target = \"y\", op = \"write\", size = \"4KiB\" }\n";
    assert_named(text, "relaxed ordering of a", 0.95 * (3.6 / 1.28 - 1.0)..1.05 * (3.6 / 1.28 - 1.0));
}

/// A core of 1 GB/s between links of two and more.
#[test]
fn the_core_of_a_switch_limits_its_traffic() {
    let text = "title = \"core\"\nstop = \"30us\"\n[switch.s]\nunder = \"host.rp0\"\nlink = \"gen3 x8\"\nforwarding = \"store-and-forward\"\ncore = { rate = \"8Gb/s\" }\n[device.a]\nunder = \"s\"\nlink = \"gen3 x8\"\n[load]\na = { op = \"write\", size = \"4KiB\" }\n";
    assert_named(text, "core rate of s", 0.9..1.1);
}

/// One read after the other goes round 16 pages, of which the device keeps 8: each waits 600 ns for its translation, and takes 200 ns. With all of them
/// kept none waits.
#[test]
fn translations_that_a_device_does_not_keep_limit_it() {
    let text = single(
        "stop = \"60us\"\nwarmup = \"20us\"\n[host]\nlatency = \"100ns\"\niommu = { entries = 1, walk = \"400ns\" }",
        "link = \"gen5 x16\"\nats = { entries = 8, outstanding = 1 }\n[load]\nd = { op = \"read\", size = \"64B\", align = \"4KiB\", window = \"64KiB\", outstanding = 1 }\n",
    );
    assert_named(&text, "kept translations of d", 2.7..3.1);
    let tables = text.replace("walk = \"400ns\"", "tables = { nested = 4, step = \"100ns\" }");
    let verdict = verdict(&tables);
    let others = format!("{:?}", verdict.tried);
    assert!(named(&verdict).contains(&"kept translations of d"), "{}", verdict.sentence);
    assert!(others.contains("time of reading a table of host"), "{others}");
}

/// Work is as fast as its last byte: a flow that ends early is not what limits.
#[test]
fn a_flow_that_ends_early_does_not_limit() {
    let text = format!(
        "{TWO}[load]\na = {{ op = \"read\", size = \"4KiB\", count = 30, outstanding = 1 }}\nb = {{ op = \"write\", size = \"4KiB\", count = 30 }}\n"
    );
    assert_named(&text, "link host.rp0 → a", 0.95..1.05);
}

#[test]
fn work_that_ends_within_the_warm_up_is_compared_from_its_beginning() {
    let text = single(
        "warmup = \"60us\"",
        "link = \"gen3 x4\"\n[load]\nd = { op = \"write\", size = \"4KiB\", count = 80 }\n",
    );
    assert_named(&text, "link d → host.rp0", 0.95..1.05);
}

/// A ring's driver works from the start, whenever loads beside it begin.
#[test]
fn a_model_that_works_from_the_start_counts_from_there() {
    let text = TWO.replace("link = \"gen1 x1\"", "link = \"gen1 x1\"\nmodel = \"ring\"\nrequests = 200")
        + "[load]\nb = { op = \"write\", size = \"4KiB\", count = 100, start = \"1ms\" }\n";
    assert_named(&text, "link a → host.rp0", 0.15..0.25);
}

/// The IO-TLB is cold at the beginning only.
#[test]
fn a_beginning_that_is_not_like_the_run_does_not_take_its_place() {
    let text = single(
        "stop = \"12ms\"\nhost = { iommu = { entries = 1024, walk = \"5us\", walkers = 1 } }",
        "link = \"gen3 x8\"\n[load]\nd = { op = \"read\", size = \"4KiB\", window = \"2MiB\" }\n",
    );
    let judged = assert_named(&text, "link host.rp0 → d", 0.8..1.05);
    assert!(judged.sentence.contains("resources were tried"));
}

/// What makes a phase short must not be left out of its comparison.
#[test]
fn a_phase_that_shrinks_is_compared() {
    let text = TWO.replace("title", "host = \"server\"\ntitle").replace("gen3 x4\"", "gen3 x4\"\ntags = 1")
        + "[load]\na = { op = \"write\", size = \"4KiB\", count = 60 }\nb = { op = \"read\", size = \"512B\", count = 150, start = \"1100us\" }\n";
    let verdict = verdict(&text);
    let limits: Vec<_> = verdict.phases.iter().map(|phase| phase.limits[0].resource.as_str()).collect();
    assert_eq!(limits, ["link a → host.rp0", "tags of b"], "{}", verdict.sentence);
    let gain = verdict.phases[1].limits[0].gain.unwrap();
    assert!((0.9..1.1).contains(&gain), "{gain}");
    assert!(
        verdict.sentence.contains("; of all of it, tags of b (1 → 2) carries 3."),
        "{}",
        verdict.sentence
    );
}

/// Where a wider or faster link, bus or width exists, it is tried, though it is no exact double.
#[test]
fn the_next_wider_link_and_the_next_faster_bus_are_tried() {
    let text =
        single("stop = \"40us\"", "link = \"gen5 x12\"\n[load]\nd = { op = \"write\", size = \"4KiB\" }\n");
    assert_named(&text, "link d → host.rp0", 0.3..0.36);
    let bus = "title = \"bus\"\nstop = \"100us\"\n[bus.p]\nunder = \"host.rp0\"\nlink = \"gen3 x8\"\nmode = \"pci-x 100\"\nwidth = \"64b\"\n[device.d]\nunder = \"p\"\n[load]\nd = { op = \"write\", size = \"4KiB\" }\n";
    assert_named(bus, "bus p", 0.3..0.36);
}

#[test]
fn flight_over_a_crossbar_and_stores_of_a_processor_are_tried() {
    let crossbar = single(
        "stop = \"60us\"",
        "link = { generation = 3, width = 4, crossbar = \"40Gb/s\", flight = \"1us\" }\ntags = 4\n[load]\nd = { op = \"read\", size = \"512B\", outstanding = 4 }\n",
    );
    assert_named(&crossbar, "cable of link d", 0.8..1.0);
    let stores = single(
        "host = \"server\"",
        "link = \"gen3 x4\"\nmodel = \"tlpdma\"\n[load]\no = { device = \"host\", target = \"d\", op = \"to-card\", size = \"64KiB\", count = 4, descriptors = \"pio\", store_interval = \"1us\" }\n",
    );
    assert_named(&stores, "the time between stores of o", 0.7..0.95);
}

/// Half of 300 faults are 150.
#[test]
fn half_the_faults_are_half() {
    let text = single(
        "stop = \"100us\"",
        "link = \"gen3 x4\"\n[[fault]]\nlink = \"d\"\ndirection = \"up\"\ntlp = 10\ncount = COUNT\n[load]\nd = { op = \"write\", size = \"256B\" }\n",
    );
    let rate = |count: &str| super::whatif::rate(&super::whatif::ran(&text.replace("COUNT", count), &[]));
    let by_hand = rate("150") / rate("300") - 1.0;
    let verdict = verdict(&text.replace("COUNT", "300"));
    let gains = verdict.tried.unwrap().gains;
    let faults = gains.iter().find(|gain| gain.resource == "faults of link d → host.rp0").unwrap();
    assert_eq!(faults.change, "half");
    assert!((faults.gain - by_hand).abs() < 0.01, "{} and by hand {by_hand}", faults.gain);
}

#[test]
fn a_run_that_carries_nothing_is_tried() {
    let text = single(
        "stop = \"100us\"\nhost = { profile = \"server\", port_buffer = 2 }",
        "link = { generation = 3, width = 4, flow_control = \"drop-and-replay\" }\n[load]\nd = { op = \"write\", size = \"4KiB\" }\n",
    );
    let before = super::whatif::rate(&super::whatif::ran(&text, &[]));
    let verdict = verdict(&text);
    assert!(verdict.limit.gain.unwrap() > 1.0, "{before}: {}", verdict.sentence);
}

/// Each hierarchy has its own Max_Payload_Size.
#[test]
fn payload_sizes_of_all_hierarchies_grow() {
    let text = TWO
        .replace("\"gen1 x1\"", "{ generation = 1, width = 1, mps = \"128B\" }")
        .replace("\"gen3 x4\"", "{ generation = 5, width = 32, mps = \"256B\" }")
        .replace("title", "stop = \"60us\"\ntitle")
        + "[load]\na = { op = \"write\", size = \"4KiB\", rate = \"0.1Gb/s\" }\nb = { op = \"write\", size = \"4KiB\" }\n";
    assert_named(&text, "the maximum payload size", 0.03..0.06);
}

#[test]
fn ten_links_in_a_row_limit_together() {
    let mut text = "title = \"row\"\nstop = \"60us\"\n".to_owned();
    let mut under = "host.rp0".to_owned();
    for number in 0..9 {
        text += &format!("[switch.s{number}]\nunder = \"{under}\"\nlink = \"gen3 x4\"\n");
        under = format!("s{number}");
    }
    text += &format!(
        "[device.d]\nunder = \"{under}\"\nlink = \"gen3 x4\"\n[load]\nd = {{ op = \"write\", size = \"4KiB\" }}\n"
    );
    let verdict = verdict(&text);
    assert_eq!(verdict.limit.resource.matches("link").count(), 10, "{}", verdict.sentence);
    assert!(verdict.limit.gain.unwrap() > 0.95, "{}", verdict.sentence);
}

/// What the figures name was tried, and gains nothing: nobody is named.
#[test]
fn two_stages_of_the_same_rate_limit_together() {
    let text = "title = \"stages\"\nstop = \"40us\"\nwarmup = \"10us\"\nfidelity = \"length-only\"\n[host.domain.q0]\nports = [\"host.rp0\"]\nrate = \"50Gb/s\"\n[host.domain.q1]\nports = [\"host.rp1\"]\n[switch.sw0]\nunder = \"host.rp0\"\nlink = \"gen4 x8\"\ncore = { rate = \"50Gb/s\" }\n[device.a]\nunder = \"sw0\"\nlink = \"gen4 x8\"\n[device.b]\nunder = \"host.rp1\"\nlink = \"gen4 x8\"\n[load]\na = { target = \"b\", op = \"write\", size = \"256B\", outstanding = 16 }\n";
    assert_named(text, "core rate of sw0 and rate of host.q0", 0.9..1.05);
    let walks = "title = \"walks\"\nstop = \"60us\"\nwarmup = \"20us\"\nfidelity = \"length-only\"\n[host]\nmemory = { latency = \"100ns\", bandwidth = \"5.12Gb/s\" }\n[host.iommu]\nentries = 1\nwalk = \"200ns\"\nwalkers = 2\n[device.d]\nunder = \"host.rp0\"\nlink = \"gen4 x8\"\ntags = 256\n[load]\nd = { op = \"read\", size = \"64B\", outstanding = 64, pattern = \"random\", window = \"64MiB\" }\n";
    let verdict = verdict(walks);
    assert!(verdict.sentence.contains("memory of host"), "{}", verdict.sentence);
    assert!((0.8..1.1).contains(&verdict.limit.gain.unwrap()), "{}", verdict.sentence);
}

#[test]
fn resources_without_a_gain_are_not_named() {
    let text = single(
        "host = { profile = \"server\", enumeration = \"simulated\" }",
        "link = \"gen3 x4\"\nready = \"100us\"\n[load]\nd = { op = \"read\", size = \"512B\", count = 20 }\n",
    );
    let verdict = verdict(&text);
    assert!(
        verdict.sentence.starts_with("No resource that was tried limits the run"),
        "{}",
        verdict.sentence
    );
    assert!(verdict.next.is_none() && verdict.limits.is_empty());
}

/// Long work whose beginning is not like the rest: the flow that ends last limits.
#[test]
fn the_beginning_of_long_work_must_be_like_it() {
    let text = TWO
        .replace("gen1 x1", "gen3 x4x")
        .replace("gen3 x4\"", "gen1 x1\"")
        .replace("gen3 x4x", "gen3 x4")
        + "[load]\na = { op = \"write\", size = \"4KiB\", count = 3500 }\nb = { op = \"write\", size = \"4KiB\", count = 3500 }\n";
    assert_named(&text, "link b → host.rp1", 0.95..1.05);
}

/// The resource that removes a phase has the largest gain in it.
#[test]
fn the_resource_that_removes_a_phase_is_its_limit() {
    let text = TWO
        .replace("gen1 x1", "gen3 x4")
        .replace("rp1\"\nlink = \"gen3 x4", "rp1\"\nlink = \"gen3 x2")
        + "[load]\na = { op = \"write\", size = \"4KiB\", count = 300 }\nb = { op = \"write\", size = \"4KiB\", count = 250 }\n";
    let verdict = verdict(&text);
    let limits: Vec<_> = verdict.phases.iter().map(|phase| phase.limits[0].resource.as_str()).collect();
    assert_eq!(limits, ["link a → host.rp0", "link b → host.rp1"], "{}", verdict.sentence);
}

/// A run that ends after so many transactions may be over before the warm-up; one that ends by its time keeps it.
#[test]
fn the_warm_up_counts_only_where_time_ends_the_run() {
    let counted = single(
        "stop = { transactions = 100 }\nwarmup = \"60us\"",
        "link = \"gen3 x4\"\n[load]\nd = { op = \"write\", size = \"4KiB\" }\n",
    );
    assert_named(&counted, "link d → host.rp0", 0.9..1.1);
    let mixed = TWO
        .replace("title", "stop = \"200us\"\nwarmup = \"100us\"\ntitle")
        .replace("gen3 x4", "gen3 x8")
        + "[load]\nb = { op = \"write\", size = \"4KiB\", count = 130 }\na = { op = \"write\", size = \"4KiB\" }\n";
    assert_named(&mixed, "link a → host.rp0", 0.95..1.05);
}

/// A resource shared by many equal devices is tried, too.
#[test]
fn memory_shared_by_many_devices_is_tried() {
    let mut text = "title = \"many\"\nhost = \"server\"\nstop = \"20us\"\nwarmup = \"5us\"\n".to_owned();
    let mut loads = String::new();
    for number in 0..16 {
        if number % 4 == 0 {
            let port = number / 4;
            text += &format!("[switch.s{port}]\nunder = \"host.rp{port}\"\nlink = \"gen4 x8\"\n");
        }
        text += &format!("[device.d{number}]\nunder = \"s{}\"\nlink = \"gen3 x4\"\n", number / 4);
        loads += &format!("d{number} = {{ op = \"write\", size = \"1KiB\", outstanding = 4 }}\n");
    }
    assert_named(&format!("{text}[load]\n{loads}"), "memory of host", 0.1..0.2);
}

/// On the beginning, cold page walks would limit as soon as the link did not; on the whole run they do not.
#[test]
fn the_winner_of_a_beginning_is_confirmed_on_the_whole_run() {
    let text = single(
        "host = { profile = \"server\", iommu = { entries = 512, walk = \"500ns\", walkers = 1 } }",
        "link = \"gen3 x8\"\n[load]\nd = { op = \"read\", size = \"4KiB\", window = \"2MiB\", count = 12000 }\n",
    );
    assert_named(&text, "link host.rp0 → d", 0.85..1.05);
}

/// Of `count` devices that queue for one uplink, the evidence names all up to four, else three, and of each no more flows ahead.
#[test]
fn evidence_names_three_of_many_waiting_flows() {
    for (count, named, others) in
        [(4, 4, None), (5, 3, Some("2 more flows queue there")), (10, 3, Some("7 more flows queue there"))]
    {
        let devices = (0..count).map(|n| format!("[device.d{n}]\nunder = \"s\"\nlink = \"gen3 x4\"\n"));
        let loads =
            (0..count).map(|n| format!("d{n} = {{ op = \"write\", size = \"512B\", outstanding = 8 }}\n"));
        let text = format!(
            "title = \"many\"\nstop = \"60us\"\n[switch.s]\nunder = \"host.rp0\"\nlink = \"gen3 x1\"\n{}[load]\n{}",
            devices.collect::<String>(),
            loads.collect::<String>()
        );
        let evidence = verdict(&text).limit.evidence;
        let waiting: Vec<_> = evidence.iter().filter(|line| line.contains("queueing there")).collect();
        assert_eq!(waiting.len(), named, "{evidence:?}");
        assert!(waiting.iter().all(|line| (3..=5).contains(&line.matches("behind").count())), "{waiting:?}");
        assert_eq!(evidence.iter().find(|line| line.contains("more flows")).map(String::as_str), others);
    }
}
