//! Every mistake has its message: file, line, key, what is wrong, what would be right.

use tlplab_experiment::{Experiment, Options};

const GOOD: &str = r#"title = "Two devices share one uplink"
stop = "200us"
host = "ideal"

[switch.sw0]
under = "host.rp0"
link = "gen4 x4"
mps = "256B"

[device.ssd]
under = "sw0"
link = "gen4 x4"
model = "dma"

[device.nic]
under = "sw0"
link = "gen4 x8"

[load]
ssd = { op = "write", size = "4KiB", outstanding = 32 }
nic = { op = "write", size = "1500B", rate = "25Gb/s" }
"#;

fn parse(text: &str, options: &Options) -> Result<Experiment, String> {
    let read = |path: &str| match path {
        "t.toml" => Ok(text.to_owned()),
        _ => Err("no such file".to_owned()),
    };
    Experiment::parse_with(&read, "t.toml", options).map_err(|e| e.to_string())
}

/// The message after one line of [`GOOD`] has been replaced.
fn with(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old), "{old}");
    match parse(&GOOD.replacen(old, new, 1), &Options::default()) {
        Err(message) => message,
        Ok(_) => "accepted".into(),
    }
}

fn set(key_value: &str) -> String {
    let options = Options { set: vec![key_value.into()], ..Options::default() };
    match parse(GOOD, &options) {
        Err(message) => message,
        Ok(_) => "accepted".into(),
    }
}

/// What is replaced, by what.
const CASES: &[(&str, &str)] = &[
    ("mps = ", "msp = "),
    ("mps = \"256B\"", "colour = \"red\""),
    ("[switch.sw0]", "[swich.sw0]"),
    ("mps = \"256B\"", "mps = 256"),
    ("mps = \"256B\"", "mps = \"100B\""),
    ("mps = \"256B\"", "mps = true"),
    ("mps = \"256B\"", "latency = \"-5ns\""),
    ("mps = \"256B\"", "latency = \"5\""),
    ("mps = \"256B\"", "latency = 5"),
    ("mps = \"256B\"", "latency = \"5 parsecs\""),
    ("mps = \"256B\"", "forwarding = \"cut-trough\""),
    ("mps = \"256B\"", "arbitration = { sdd = 2 }"),
    ("mps = \"256B\"", "arbitration = { ssd = 0 }"),
    ("mps = \"256B\"", "mps = \"256B\"\nmps = \"512B\""),
    ("mps = \"256B\"", "mps = "),
    ("mps = \"256B\"", "mps = 99999999999999999999"),
    ("gen4 x4", "gen4 x3"),
    ("gen4 x4", "gen8 x4"),
    ("gen4 x4", "gen6 x4"),
    ("gen4 x4", "x4"),
    ("link = \"gen4 x4\"", "link = { generation = 4, width = 3 }"),
    ("link = \"gen4 x4\"", "link = { generation = 8, width = 4 }"),
    ("link = \"gen4 x4\"", "link = { generation = 4 }"),
    ("link = \"gen4 x4\"", "link = 4"),
    ("link = \"gen4 x4\"", ""),
    ("under = \"host.rp0\"", "under = \"sw0\""),
    ("under = \"host.rp0\"", "under = \"ssd\""),
    ("under = \"host.rp0\"", "under = \"host\""),
    ("under = \"host.rp0\"", "under = \"host.rp32\""),
    ("under = \"host.rp0\"", ""),
    ("under = \"sw0\"", "under = \"sw1\""),
    ("under = \"sw0\"", "under = \"hub\""),
    ("under = \"sw0\"", "under = \"host.rp0\""),
    ("[device.nic]\nunder = \"sw0\"", "[device.nic]\nunder = \"ssd.fn300\""),
    ("[device.nic]", "[device.ssd]"),
    ("[device.nic]", "[device.sw0]"),
    ("[device.nic]", "[device.host]"),
    ("[device.nic]", "[device.\"n i c\"]"),
    ("host = \"ideal\"", "host = \"idael\""),
    ("host = \"ideal\"", "host = { profile = \"server\", latncy = \"1ns\" }"),
    ("host = \"ideal\"", "host = { p2p = \"split 48B\" }"),
    ("host = \"ideal\"", "host = \"mine.toml\""),
    ("host = \"ideal\"", "host = { rcb = \"256B\" }"),
    ("model = \"dma\"", "model = \"mda\""),
    ("model = \"dma\"", "model = \"rtl:core\""),
    ("model = \"dma\"", "model = \"memory\""),
    ("model = \"dma\"", "bar = \"1000B\""),
    ("model = \"dma\"", "tags = 1024"),
    ("model = \"dma\"", "tags = 0"),
    ("model = \"dma\"", "tags = \"many\""),
    ("title = \"Two devices share one uplink\"", ""),
    ("stop = \"200us\"", ""),
    ("stop = \"200us\"", "stop = {}"),
    ("stop = \"200us\"", "stop = \"10us\"\nwarmup = \"10us\""),
    ("nic = {", "nik = {"),
    ("nic = {", "probe = {"),
    ("nic = {", "probe = { device = \"host\","),
    ("op = \"write\"", "op = \"wriet\""),
    ("op = \"write\"", "op = \"mmio-read\""),
    ("op = \"write\", ", ""),
    ("size = \"4KiB\", ", ""),
    ("size = \"4KiB\"", "size = \"0B\""),
    ("op = \"write\", size = \"4KiB\", outstanding = 32", "op = \"read\", size = \"0B\", rate = \"1Gb/s\""),
    ("under = \"sw0\"\nlink = \"gen4 x4\"", "under = \"sw0\"\nlink = \"gen4 x4\"\ncut = \"short\""),
    (
        "under = \"sw0\"\nlink = \"gen4 x4\"",
        "under = \"sw0\"\nlink = { generation = 4, width = 4, upper = { update_fc = \"often\" } }",
    ),
    ("size = \"4KiB\"", "size = \"4KiB\", window = \"1KiB\""),
    ("size = \"4KiB\"", "size = \"4KiB\", window = \"4KiB\", offset = \"64B\""),
    ("size = \"4KiB\"", "size = \"4KiB\", target = \"nic\", window = \"2MiB\""),
    ("size = \"4KiB\"", "size = \"4KiB\", target = \"ssd\""),
    ("size = \"4KiB\"", "size = \"4KiB\", target = \"nix\""),
    ("size = \"4KiB\"", "size = \"4KiB\", address = \"1TiB\""),
    ("size = \"4KiB\"", "size = \"4KiB\", address = \"0xzz\""),
    ("size = \"4KiB\"", "size = \"4KiB\", align = \"0B\""),
    ("size = \"4KiB\"", "size = \"4KiB\", timing = \"fast\""),
    ("size = \"4KiB\"", "size = \"4KiB\", replay = \"x.pcapng\""),
    ("op = \"write\", size = \"4KiB\", outstanding = 32", "replay = \"x.csv\", outstanding = 3"),
    ("op = \"write\", size = \"4KiB\", outstanding = 32", "op = \"dd-read\", size = \"4KiB\""),
    (
        "ssd = { op = \"write\", size = \"4KiB\", outstanding = 32 }",
        "dd = { device = \"host\", target = \"ssd\", op = \"dd-read\", size = \"4KiB\" }",
    ),
    (
        "model = \"dma\"",
        "model = \"storage\"\n[load.dd]\ndevice = \"host\"\ntarget = \"ssd\"\nop = \"dd-read\"\nsize = \"1500B\"",
    ),
    ("size = \"4KiB\", outstanding = 32", "size = \"4KiB\", host_cost = \"1us\""),
    ("op = \"write\", size = \"4KiB\", outstanding = 32", "replay = \"x.csv\", address = 0x1000"),
    ("op = \"write\", size = \"4KiB\", outstanding = 32", "replay = \"x.csv\", window = \"1000B\""),
    ("op = \"write\", size = \"4KiB\", outstanding = 32", "replay = \"x.csv\", target = \"nic\""),
    ("op = \"write\", size = \"4KiB\", outstanding = 32", "replay = \"x.csv\", timing = \"slow\""),
    ("outstanding = 32", "cache = \"host-warm\""),
    ("outstanding = 32", "node = \"remote\""),
    ("outstanding = 32", "target = \"nic\", cache = \"cold\""),
    ("outstanding = 32", "outstanding = 0"),
    ("outstanding = 32", "start = \"-1ns\""),
    ("rate = \"25Gb/s\"", "rate = \"0Gb/s\""),
    ("rate = \"25Gb/s\"", "rate = \"25\""),
    ("rate = \"25Gb/s\"", "rate = 25"),
    ("host = \"ideal\"", "host = { memory = { bandwidth = \"5b/s\" } }"),
    ("host = \"ideal\"", "host = { reads = 0 }"),
    ("host = \"ideal\"", "host = { io_cache = { rate = \"0.5kb/s\" } }"),
    ("host = \"ideal\"", "host = { cache = { size = \"15MB\", ways = 20, ddio_ways = 2, hit = \"60ns\" } }"),
    (
        "host = \"ideal\"",
        "host = { cache = { size = \"15MiB\", ways = 20, ddio_ways = 21, hit = \"60ns\" } }",
    ),
    ("host = \"ideal\"", "host = { cache = { size = \"15MiB\", ways = 20, hit = \"60ns\" } }"),
    ("host = \"ideal\"", "host = { iommu = { entries = 64 } }"),
    ("host = \"ideal\"", "host = { iommu = { mode = \"nosp\", entries = 64, walk = \"200ns\" } }"),
    (
        "host = \"ideal\"",
        "host = { iommu = { entries = 64, walk = \"200ns\", map = { m = { size = \"4KiB\", to = 0 } } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { iommu = { entries = 64, walk = \"200ns\", map = { m = { from = 0, size = \"4KiB\" } } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { iommu = { entries = 64, walk = \"200ns\", map = { m = { from = 0, size = \"5KiB\", to = 0 } } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { iommu = { entries = 64, walk = \"200ns\", map = { m = { from = 4096, size = \"2MiB\", to = 0, page = \"2MiB\" } } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { iommu = { entries = 64, walk = \"200ns\", map = { m = { device = \"nik\", from = 0, size = \"4KiB\", to = 0 } } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { iommu = { entries = 64, walk = \"200ns\", map = { m = { from = 0, size = \"4KiB\", bar = \"nik\" } } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { iommu = { entries = 64, walk = \"200ns\", map = { m = { from = 0, size = \"4KiB\", to = 0, since = \"2us\", until = \"1us\" } } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { iommu = { entries = 64, walk = \"200ns\", map = { m = { from = \"0x200000000000000\", size = \"4KiB\", to = 0 } } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { iommu = { entries = 64, walk = \"200ns\", map = { a = { from = 0, size = \"8KiB\", to = 0 }, b = { device = \"nic\", from = 4096, size = \"4KiB\", to = 0 } } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { iommu = { mode = \"off\", entries = 64, walk = \"200ns\", map = { m = { from = 0, size = \"4KiB\", to = 0 } } } }",
    ),
    ("host = \"ideal\"", "host = { iommu = { entries = 64, tables = { levels = 4 } } }"),
    ("[load]", "[device.nic.ats]\nentries = 4\noutstanding = 8\n[load]"),
    ("[load]", "[device.nic.ats]\nentries = 4\n[load]"),
    ("host = \"ideal\"", "host = { jitter = { quantiles = [\"0% 0ns\", \"99% 20ns\"] } }"),
    ("host = \"ideal\"", "host = { jitter = { quantiles = [\"0% 5ns\", \"100% 2ns\"] } }"),
    ("host = \"ideal\"", "host = { sleep = { after = \"400ns\", wake = [\"0% 5ns\", \"100% 2ns\"] } }"),
    ("host = \"ideal\"", "host = { stall = { every = \"0s\", lasts = \"2ms\" } }"),
    ("host = \"ideal\"", "host = { jitter = { memory = [\"p50 5ns\"] } }"),
    ("host = \"ideal\"", "host = { jitter = { memory = [\"0% 0ns\", \"101% 5ns\"] } }"),
    ("[load]", "[link.nic]\ncrossbar = \"0Gb/s\"\n[load]"),
    ("[load]", "[link.nics]\nflight = \"5ns\"\n[load]"),
    ("[load]", "[link.nic]\nwidth = 8\n[load]"),
    ("[load]", "[link.nic]\nskp = { length = 4, interval = 4 }\n[load]"),
    ("[load]", "[link.nic]\nskp = { length = 4 }\n[load]"),
    ("[load]", "[link.nic]\ncrossbar = \"25Gb/s\"\nskp = \"off\"\n[load]"),
    ("[load]", "[link.nic]\ncrossbar = \"25Gb/s\"\nlower = { latency = \"5ns\", ack_every = 4 }\n[load]"),
    (
        "[load]",
        "[defaults.link]\nskp = \"off\"\n[link.nic]\ncrossbar = \"25Gb/s\"\nmode = \"flit\"\ntlp_alignment = \"16B\"\n[load]",
    ),
    ("[load]", "[device.more]\nunder = \"nic.fn1\"\nmps = \"512B\"\n[load]"),
    ("[load]", "[link.nic.lower.buffers]\nposted_data = 8\n[load]"),
    (
        "[load]",
        "[device.d]\nunder = \"host.rp1\"\nlink = \"gen3 x4\"\n[link.d.upper]\nbuffers = { posted_headers = 200 }\n[load]",
    ),
    (
        "[load]",
        "[device.d]\nunder = \"host.rp1\"\nlink = \"gen3 x4\"\nposted_writes = false\n[link.d.upper]\nbuffers = { non_posted_headers = 2, non_posted_data = 2 }\n[load]",
    ),
    ("[load]", "[[fault]]\nlink = \"nik\"\nber = 1e-9\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\nber = 1e-9\ntlp = 5\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\nber = 2.0\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\nflit = 5\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 0\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\nof = \"CplD\"\ndamage = \"abort\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\nof = \"MRd\"\ndamage = \"poison\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\nof = \"MRd\"\ndamage = \"byte-count\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\nof = \"MWr\"\ndamage = \"retry\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\nof = \"CfgRd0\"\ndamage = \"address\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\ndamage = \"ecrc\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\ndamage = \"late\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\nby = \"1us\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\ndamage = \"data\"\nbyte = 4\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\ndamage = \"lose\"\nflip = 4\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\nof = \"MRd\"\ndamage = \"data\"\nflip = 4\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ntlp = 5\nof = \"MRd\"\ndamage = \"ones\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"nic\"\ndown = \"20us\"\nuntil = \"10us\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"sw0\"\nnarrow = \"20us\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"sw0\"\nnarrow = \"20us\"\nlanes = 4\n[load]"),
    ("[load]", "[[fault]]\nlink = \"sw0\"\nnarrow = \"20us\"\nlanes = 3\n[load]"),
    (
        "[load]",
        "[[fault]]\nlink = \"sw0\"\nnarrow = \"5us\"\nlanes = 1\n[[fault]]\nlink = \"sw0\"\nnarrow = \"20us\"\nlanes = 2\n[load]",
    ),
    (
        "[load]",
        "[[fault]]\nlink = \"sw0\"\nnarrow = \"20us\"\nlanes = 2\n[[fault]]\nlink = \"sw0\"\nnarrow = \"5us\"\nlanes = 1\n[load]",
    ),
    ("[load]", "[[fault]]\nlink = \"sw0\"\ntlp = 3\nlanes = 1\n[load]"),
    ("[load]", "[[fault]]\nlink = \"sw0\"\nreset = \"20us\"\nuntil = \"10us\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"sw0\"\nnarrow = \"20us\"\nlanes = 1\nuntil = \"30us\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"sw0\"\nnarrow = \"20us\"\nlanes = 1\ndamage = \"drop\"\n[load]"),
    ("[load]", "[[fault]]\nlink = \"sw0\"\nreset = \"20us\"\nlanes = 1\n[load]"),
    ("[load]", "[[fault]]\nlink = \"sw0\"\nreset = \"20us\"\nby = \"1us\"\n[load]"),
    (HOST, r#"host = { domain = { q0 = { ports = ["host.rp3"] } } }"#),
    (HOST, r#"host = { domain = { q0 = { ports = ["host.rp0"] }, q1 = { ports = ["host.rp0"] } } }"#),
    (HOST, r#"host = { domain = { q0 = { ports = ["host.rp0"], under = "q9" } } }"#),
    (HOST, r#"host = { domain = { q0 = { under = "q1" }, q1 = { under = "q0" } } }"#),
    (HOST, r#"host = { p2p = "split 64B", domain = { q0 = { ports = ["host.rp0"] } } }"#),
    (
        HOST,
        r#"host = { iommu = { entries = 1, tables = { step = "1ns", levels = 3 }, map = { m = { from = "0x8000000000", size = "4KiB", to = 0 } } } }"#,
    ),
    (
        HOST,
        r#"host = { iommu = { entries = 1, tables = { step = "1ns" }, map = { m = { from = "0xfffffffff000", size = "8KiB", to = 0 } } } }"#,
    ),
    (
        HOST,
        r#"host = { iommu = { entries = 1, walk = "1ns", map = { m = { from = 0, size = "2MiB", to = "0xfffff00000" } } } }"#,
    ),
    (
        HOST,
        r#"host = { iommu = { entries = 1, walk = "1ns", map = { m = { from = 0, size = "2MiB", to = "0xbff00000" } } } }"#,
    ),
    (
        HOST,
        r#"host = { iommu = { entries = 1, walk = "1ns", map = { m = { from = 0, size = "8KiB", to = "0xfedff000" } } } }"#,
    ),
    (
        HOST,
        r#"host = { iommu = { entries = 1, walk = "1ns", map = { m = { from = "0xfeeff000", size = "8KiB", to = 0 } } } }"#,
    ),
    (
        HOST,
        r#"host = { iommu = { entries = 1, walk = "1ns", map = { m = { from = 0, size = "64MiB", bar = "nic" } } } }"#,
    ),
    (
        HOST,
        r#"host = { iommu = { entries = 1, walk = "1ns", map = { m = { from = 0, size = "4KiB", bar = "nic", to = "0x40000000" } } } }"#,
    ),
    (
        HOST,
        r#"host = { iommu = { entries = 1, walk = "1ns", map = { m = { device = "ssd", from = "0x40000000", size = "1MiB", to = 0 } } } }"#,
    ),
    (
        HOST,
        r#"host = { iommu = { entries = 1, walk = "1ns", map = { a = { device = "nic", from = 0, size = "4KiB", to = 0 }, b = { from = 4096, size = "8KiB", to = 0 } } } }"#,
    ),
    (HOST, r#"host = { acs = "redirect" }"#),
    ("[load]", "[link.ssd.lower]\nforwarding = \"cut-through\"\n[load]"),
    ("[load]", "[link.sw0.upper]\nforwarding = \"cut-through\"\n[load]"),
    ("[load]", "[link.ssd.upper]\nforwarding = \"header-checked\"\n[load]"),
    ("[load]", "[link.ssd.upper]\nmax_payload = \"300B\"\n[load]"),
    ("host = \"ideal\"", "host = { payloads = \"large\" }"),
    (
        "host = \"ideal\"",
        "host = { write_turnaround = \"9ns\", domain = { q0 = { ports = [\"host.rp0\"], entries = 4 } } }",
    ),
    ("host = \"ideal\"", "host = { memory = { domain = \"q0\" } }"),
    (
        "host = \"ideal\"",
        "host = { memory = { domain = \"q1\" }, domain = { q0 = { ports = [\"host.rp0\"] } } }",
    ),
    (
        "host = \"ideal\"",
        "host = { line_interval = \"4ns\", memory = { domain = \"q0\" }, domain = { q0 = { ports = [\"host.rp0\"] } } }",
    ),
    (HOST, r#"host = { acs = ["redirect"] }"#),
    ("[load]", "[link.ssd.lower]\nacs = \"off\"\n[load]"),
    ("[load]", "[link.ssd.upper]\nacs_forbids = [\"nic\"]\n[load]"),
    ("[load]", "[link.ssd.upper]\nacs = [\"egress-control\"]\nacs_forbids = [\"nc\"]\n[load]"),
    ("mps = \"256B\"", "acs = \"isolation\"\n[link.ssd.upper]\nacs_forbids = [\"nic\"]"),
    (
        "mps = \"256B\"",
        "acs = [\"egress-control\"]\n[link.ssd.upper]\nacs = \"off\"\nacs_forbids = [\"nic\"]",
    ),
    ("mps = \"256B\"", "acs = [\"egress-control\"]\n[link.ssd.upper]\nacs_forbids = [\"sw0\"]"),
    ("host = \"ideal\"", "include = [\"gone.toml\"]"),
    ("host = \"ideal\"", "include = [\"t.toml\"]"),
];

const SETS: &[&str] = &[
    "switch.sw0.lnk=gen4 x8",
    "switch.sw1.link=gen4 x8",
    "switch.sw0.link=gen4 x3",
    "switch.sw0.link.wdith=8",
    "switch.sw0.mps.size=8",
    "sitch.sw0.link=gen4 x8",
    "load.sdd.size=8KiB",
    "link.sdd.flight=5ns",
    "seed=-1",
    "seed",
    "a..b=1",
    "fault.0.tlp=1",
    "host.latncy=5ns",
    "include=gone.toml",
];

const HOST: &str = "host = \"ideal\"";

/// Every case and its message, as one text.
fn actual() -> String {
    let cases =
        CASES.iter().map(|(old, new)| format!("{} → {}\n    {}\n", show(old), show(new), with(old, new)));
    let sets = SETS.iter().map(|s| format!("--set {s}\n    {}\n", set(s)));
    cases.chain(sets).collect()
}

fn show(text: &str) -> String {
    text.replace('\n', " ⏎ ")
}

#[test]
fn every_mistake_has_its_message() {
    let expected = include_str!("mistakes.txt");
    let actual = actual();
    if expected != actual {
        let differs = expected.lines().zip(actual.lines()).find(|(e, a)| e != a);
        panic!("tests/experiment/mistakes.txt differs, first at {differs:#?}; all of it is now:\n{actual}");
    }
}

#[test]
fn no_mistake_is_accepted_and_all_have_a_place() {
    for (old, new) in CASES {
        let message = with(old, new);
        assert!(message.starts_with("t.toml:"), "{new}: {message}");
    }
    for text in SETS {
        assert!(set(text).starts_with("--set: "), "{text}: {}", set(text));
    }
}

#[test]
fn the_text_without_a_mistake_is_accepted() {
    parse(GOOD, &Options::default()).unwrap();
}
