//! What experiments mean once they are read.

use std::collections::BTreeMap;
use tlplab_experiment::device_models::ModelSpec;
use tlplab_experiment::load::{Generate, Op, Pace, Pattern, Timing, Work};
use tlplab_experiment::stop::Stop;
use tlplab_experiment::{Experiment, FileKind, Options, hosts};
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};

fn read(files: &[(&str, &str)], options: &Options) -> Result<Experiment, String> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let read = |path: &str| files.get(path).map(|t| (*t).to_owned()).ok_or("no such file".to_owned());
    Experiment::parse_with(&read, "dir/t.toml", options).map_err(|e| e.to_string())
}

fn one(text: &str) -> Experiment {
    read(&[("dir/t.toml", text)], &Options::default()).unwrap()
}

fn set(text: &str, sets: &[&str]) -> Experiment {
    let set = sets.iter().map(|s| (*s).to_owned()).collect();
    read(&[("dir/t.toml", text)], &Options { set, ..Options::default() }).unwrap()
}

const SMALL: &str = r#"
title = "Small"
stop = "10us"
[device.ssd]
under = "host.rp0"
link = "gen3 x8"
[load]
ssd = { op = "write", size = "256B" }
"#;

const BIG: &str = r#"
title = "Big"
[switch.sw0]
under = "host.rp1"
link = { generation = 6, width = 16, mode = "flit", mps = "512B" }
arbitration = { nic = 3, sw1 = 2 }
[switch.sw1]
under = "sw0"
link = "gen5 x8"
forwarding = "store-and-forward"
latency = "120ns"
[device.nic]
under = "sw0"
link = "gen4 x8"
mps = "1KiB"
[device.gpu]
under = "sw1"
link = "gen4 x16"
model = "memory"
bar = "16MiB"
[device.own]
under = "host.rp0"
link = "gen1 x1"
model = "devices/copier.py:Copier"
colour = "red"
driver = "devices/copier.py:driver"
[link.nic]
flight = "5ns"
skp = { length = 4, interval = 1538 }
upper = { replay_tlps = 8 }
[link.nic.lower]
ack_latency = "100ns"
buffers = { posted_headers = 8, posted_data = 64 }
[[fault]]
link = "nic"
ber = 0.5
[[fault]]
link = "sw0"
direction = "up"
flit = 2
damage = "drop"
[[fault]]
link = "gpu"
down = "1us"
until = "2us"
[load]
nic = { op = "write", size = "1500B", rate = "25Gb/s", count = 10 }
peer = { device = "nic", target = "gpu", op = "read", size = "512B", pattern = "random", count = 10 }
probe = { device = "host", target = "gpu", op = "mmio-read", size = "4B", count = 5 }
trace = { device = "nic", replay = "traces/x.pcapng", timing = "fast" }
"#;

#[test]
fn defaults_are_as_documented() {
    let e = one(SMALL);
    assert_eq!(e.stop, Stop { time: Some(Time::from_fs(10_000_000_000)), transactions: None });
    assert_eq!((e.fabric.seed, e.fabric.fidelity, e.fabric.warmup), (1, Fidelity::Payload, Time::ZERO));
    assert_eq!(e.fabric.host, HostConfig::default());
    let ssd = &e.fabric.devices[0];
    assert_eq!((ssd.tags, ssd.mrrs.bytes(), ssd.link.mps.bytes()), (32, 512, 256));
    assert_eq!(ssd.completion_timeout, Duration::from_ms(10));
    assert_eq!((ssd.link.skp, ssd.link.trained), (SkpPolicy::Standard, true));
    assert_eq!(e.devices[0].model, ModelSpec::Dma { bar: 1 << 20 });
    let expected = Generate {
        op: Op::Write,
        size: 256,
        pace: Pace::Outstanding(32),
        outstanding: 32,
        pattern: Pattern::Sequential,
        base: 4 << 30,
        window: 64 << 20,
        align: 64,
        offset: 0,
        warm: None,
        remote: false,
    };
    assert_eq!(e.loads[0].work, Work::Generate(expected));
    assert_eq!((e.loads[0].target.as_str(), e.loads[0].count), ("host", None));
}

#[test]
fn ideal_is_the_default_of_the_fabric() {
    let text = SMALL.replace("stop =", "host = { profile = \"ideal\" }\nstop =");
    assert_eq!(one(&text).fabric.host, HostConfig::default());
}

#[test]
fn every_part_is_read() {
    let e = one(BIG);
    assert_eq!(e.stop, Stop::default());
    let names: Vec<_> = e.fabric.switches.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["sw0", "sw1"]);
    let names: Vec<_> = e.fabric.devices.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["gpu", "nic", "own"]);
    let sw0 = &e.fabric.switches[0];
    assert_eq!(sw0.arbitration, Arbitration::Weighted(vec![("nic".into(), 3), ("sw1".into(), 2)]));
    assert_eq!(sw0.uplink.generation.number(), 6);
    assert_eq!(
        sw0.uplink.faults,
        [Fault {
            direction: Direction::Up,
            kind: FaultKind::Nth { unit: FaultUnit::Flit, n: 2, count: 1, damage: Damage::Drop }
        }]
    );
    let nic = &e.fabric.devices[1].link;
    assert_eq!((nic.mps.bytes(), nic.flight), (1024, Duration::from_ns(5)));
    assert_eq!(nic.skp, SkpPolicy::Custom { length: 4, interval: 1538 });
    assert_eq!((nic.upper.replay_tlps, nic.lower.replay_tlps), (Some(8), None));
    assert_eq!(nic.lower.ack_latency, Some(Duration::from_ns(100)));
    let buffers = nic.lower.buffers.unwrap();
    assert_eq!((buffers.posted_headers, buffers.posted_data, buffers.completion_data), (8, 64, 0));
    let half = FaultKind::BitErrors { numerator: 1 << 63 };
    assert_eq!(nic.faults.iter().map(|f| f.kind).collect::<Vec<_>>(), [half, half]);
    assert_eq!(e.fabric.devices[0].link.faults.len(), 1);
}

#[test]
fn policies_of_credits_and_cuts_are_read() {
    let with = |update_fc: &str| {
        let text =
            BIG.replace("upper = { replay_tlps = 8 }", &format!("upper = {{ update_fc = \"{update_fc}\" }}"));
        one(&text).fabric.devices[1].link.upper.update_fc
    };
    for (word, policy) in [
        ("each", UpdateFcPolicy::EACH_TLP),
        ("eighth", UpdateFcPolicy::EIGHTHS),
        ("quarter", UpdateFcPolicy::QUARTERS),
        ("half", UpdateFcPolicy::HALVES),
        ("specification", UpdateFcPolicy::SPECIFICATION),
    ] {
        assert_eq!(with(word), policy);
    }
    assert_eq!(with("70ns").latency, UpdateFcLatency::Fixed(Duration::from_ns(70)));
    assert_eq!(one(BIG).fabric.devices[1].link.upper.update_fc, UpdateFcPolicy::EIGHTHS);
    let cut = |word: &str| {
        one(&BIG.replace("mps = \"1KiB\"", &format!("mps = \"1KiB\"\ncut = \"{word}\""))).fabric.devices[1]
            .cut
    };
    assert_eq!((cut("aligned"), cut("packed")), (Some(RequestPolicy::Aligned), Some(RequestPolicy::Packed)));
    assert_eq!(one(BIG).fabric.devices[1].cut, None);
}

#[test]
fn loads_are_read() {
    let e = one(BIG);
    let names: Vec<_> =
        e.loads.iter().map(|l| (l.name.as_str(), l.device.as_str(), l.target.as_str())).collect();
    assert_eq!(
        names,
        [("nic", "nic", "host"), ("peer", "nic", "gpu"), ("probe", "host", "gpu"), ("trace", "nic", "host")]
    );
    let Work::Generate(peer) = &e.loads[1].work else { panic!() };
    assert_eq!((peer.base, peer.window, peer.pattern), (0, 16 << 20, Pattern::Random));
    let Work::Generate(probe) = &e.loads[2].work else { panic!() };
    assert_eq!((probe.op, probe.pace), (Op::MmioRead, Pace::Outstanding(1)));
    let trace = Work::Replay {
        file: "dir/traces/x.pcapng".into(),
        timing: Timing::Fast,
        outstanding: None,
        fold: None,
    };
    assert_eq!(e.loads[3].work, trace);
}

#[test]
fn needed_files_are_named_with_their_place() {
    let e = one(BIG);
    let files: Vec<_> = e.files.iter().map(|f| (f.path.as_str(), f.kind)).collect();
    let python = ("dir/devices/copier.py", FileKind::Python);
    assert_eq!(files, [("dir/traces/x.pcapng", FileKind::Trace), python, python]);
    let line = BIG.lines().position(|l| l.starts_with("trace")).unwrap() + 1;
    let expected =
        format!("dir/t.toml:{line}: load.trace.replay: cannot use \"dir/traces/x.pcapng\": no such file");
    assert_eq!(e.files[0].missing("no such file").to_string(), expected);
    let ModelSpec::Python { parameters, object } = &e.devices[2].model else { panic!() };
    assert_eq!((object.name.as_str(), &parameters["colour"]), ("Copier", &"red".into()));
}

#[test]
fn the_order_of_declaration_means_nothing() {
    let blocks: Vec<&str> = BIG.split_inclusive('\n').collect();
    let start = blocks.iter().position(|l| l.starts_with('[')).unwrap();
    let (head, rest) = blocks.split_at(start);
    let mut tables: Vec<String> = Vec::new();
    for line in rest {
        if line.starts_with('[') {
            tables.push(String::new());
        }
        tables.last_mut().unwrap().push_str(line);
    }
    tables.reverse();
    let reversed = one(&(head.concat() + &tables.concat()));
    let straight = one(BIG);
    assert_eq!(format!("{:?}", reversed.fabric), format!("{:?}", straight.fabric));
    assert_eq!((&reversed.loads, &reversed.devices), (&straight.loads, &straight.devices));
}

#[test]
fn a_longer_loop_is_shown_whole() {
    let text = "title = \"Loop\"\n[switch.a]\nunder = \"b\"\nlink = \"gen3 x1\"\n[switch.b]\nunder = \"c\"\nlink = \"gen3 x1\"\n\
        [switch.c]\nunder = \"a\"\nlink = \"gen3 x1\"\n[device.d]\nunder = \"a\"\nlink = \"gen3 x1\"\n";
    let error = read(&[("dir/t.toml", text)], &Options::default()).unwrap_err();
    assert_eq!(
        error,
        "dir/t.toml:3: switch.a.under: this makes a loop: a under b under c under a; one of them belongs under a root port"
    );
}

#[test]
fn overrides_take_toml_and_bare_strings() {
    let e = set(
        SMALL,
        &["device.ssd.link=gen4 x16", "load.ssd.size=\"1KiB\"", "seed = 9", "stop.transactions=5"],
    );
    let link = &e.fabric.devices[0].link;
    assert_eq!((link.generation.number(), link.width.lanes(), e.fabric.seed), (4, 16, 9));
    assert_eq!((e.stop.transactions, e.stop.time.is_some()), (Some(5), true));
    let Work::Generate(load) = &e.loads[0].work else { panic!() };
    assert_eq!(load.size, 1024);
    assert!(e.source.contains("# --set device.ssd.link = gen4 x16"), "{}", e.source);
}

#[test]
fn overrides_replace_keys_in_quotation_marks() {
    let text = format!("{SMALL}[expect]\n\"ssd.latency.p99\" = \"< 5 us\"\n");
    for text in [SMALL, &text] {
        for key in ["expect.\"ssd.latency.p99\"", "expect . 'ssd.latency.p99'", "expect.ssd.latency.p99"] {
            let e = set(text, &[&format!("{key}=< 7 us")]);
            let expected: Vec<_> =
                e.expected.iter().map(|one| (&one.figure[..], &one.comparison[..])).collect();
            assert_eq!(expected, [("ssd.latency.p99", "< 7 us")]);
        }
    }
}

#[test]
fn overrides_reach_into_short_forms_and_new_tables() {
    let e = set(SMALL, &["device.ssd.link.width=4", "host.memory.latency=90ns", "link.ssd.flight=5ns"]);
    let link = &e.fabric.devices[0].link;
    assert_eq!((link.generation.number(), link.width.lanes(), link.flight), (3, 4, Duration::from_ns(5)));
    assert_eq!(e.fabric.host.memory.latency, Duration::from_ns(90));
    let e = set(SMALL, &["load.more={ device = \"ssd\", op = \"read\", size = \"64B\" }", "host=server"]);
    assert_eq!(e.loads.len(), 2);
    assert_eq!(e.fabric.host.latency, Duration::from_ns(150));
}

#[test]
fn the_seed_option_has_the_last_word() {
    let options = Options { seed: Some(42), set: vec!["seed=9".into()], ..Options::default() };
    assert_eq!(read(&[("dir/t.toml", SMALL)], &options).unwrap().fabric.seed, 42);
}

#[test]
fn a_load_file_replaces_the_loads() {
    let heavy = "title = \"heavy\"\nstop = { transactions = 7 }\n[load]\nx = { device = \"ssd\", op = \"read\", size = \"64B\" }\n";
    let options = Options { load: Some("other/heavy.toml".into()), ..Options::default() };
    let e = read(&[("dir/t.toml", SMALL), ("other/heavy.toml", heavy)], &options).unwrap();
    assert_eq!((e.title.as_str(), e.loads.len(), e.loads[0].name.as_str()), ("Small: heavy", 1, "x"));
    assert_eq!(e.stop, Stop { time: None, transactions: Some(7) });
    let wrong = read(&[("dir/t.toml", SMALL), ("other/heavy.toml", "device = 1")], &options).unwrap_err();
    assert!(wrong.starts_with("other/heavy.toml:1: device: unknown key"), "{wrong}");
}

#[test]
fn a_file_overrides_keys_of_its_included_file() {
    let base = "host = \"server\"\nstop = \"5us\"\n[device.ssd]\nunder = \"host.rp0\"\nlink = \"gen3 x8\"\nmrrs = \"128B\"\n";
    let text = "title = \"On top\"\ninclude = \"../base.toml\"\nstop = \"7us\"\n[device.ssd]\ntags = 8\n\
        [load]\nssd = { op = \"read\", size = \"64B\" }\n";
    let e = read(&[("dir/t.toml", text), ("dir/../base.toml", base)], &Options::default()).unwrap();
    let ssd = &e.fabric.devices[0];
    assert_eq!((ssd.mrrs.bytes(), ssd.tags), (128, 8));
    assert_eq!(e.stop.time, Some(Time::from_fs(7_000_000_000)));
    let both = text.replace("\"../base.toml\"", "[\"../base.toml\", \"b2.toml\"]");
    let b2 = "\nhost = \"ideal\"\n";
    let files = [("dir/t.toml", both.as_str()), ("dir/../base.toml", base), ("dir/b2.toml", b2)];
    let error = read(&files, &Options::default()).unwrap_err();
    assert_eq!(
        error,
        "dir/b2.toml:2: host: this key is also set at dir/../base.toml:1, and both files are included; set it once"
    );
}

#[test]
fn defaults_of_links_yield_to_links() {
    let text = SMALL.replace(
        "[device.ssd]",
        "[defaults.link]\nmps = \"512B\"\nflight = \"3ns\"\n[device.ssd]\nmps = \"128B\"",
    );
    let link = &one(&text).fabric.devices[0].link;
    assert_eq!((link.mps.bytes(), link.flight), (128, Duration::from_ns(3)));
}

#[test]
fn a_profile_can_be_a_file() {
    let profile = "title = \"Mine\"\nsource = \"measured\"\n[host]\nlatency = \"77ns\"\n";
    let text = SMALL.replace("stop =", "host = { profile = \"mine.toml\", tags = 4 }\nstop =");
    let e = read(&[("dir/t.toml", &text), ("dir/mine.toml", profile)], &Options::default()).unwrap();
    assert_eq!((e.fabric.host.latency, e.fabric.host.tags), (Duration::from_ns(77), 4));
    let wrong = profile.replace("latency", "latncy");
    let error = read(&[("dir/t.toml", &text), ("dir/mine.toml", &wrong)], &Options::default()).unwrap_err();
    assert_eq!(error, "dir/mine.toml:4: host.latncy: unknown key \"latncy\"; did you mean \"latency\"?");
}

#[test]
fn profiles_state_every_value_with_a_source() {
    for profile in hosts::PROFILES {
        let e = set(SMALL, &[&format!("host={}", profile.name)]);
        assert!(e.fabric.host.memory.size > 0);
        for key in [
            "latency",
            "rcb",
            "completions",
            "p2p",
            "tags",
            "completion_timeout",
            "bandwidth",
            "size",
            "source",
        ] {
            assert!(profile.text.contains(key), "{} says nothing of {key}", profile.name);
        }
    }
}

#[test]
fn check_finds_every_mistake_of_a_file() {
    let text = SMALL.replace("under", "undr").replace("{ op =", "{ opp =").replace("gen3 x8", "gen3 x3");
    let read = |_: &str| Ok(text.clone());
    let errors = Experiment::parse_all(&read, "t.toml", &Options::default()).unwrap_err();
    let keys: Vec<_> = errors.iter().map(|e| (e.line, e.key.as_str())).collect();
    assert_eq!(keys, [(5, "device.ssd.undr"), (6, "device.ssd.link"), (8, "load.ssd.opp")]);
}
