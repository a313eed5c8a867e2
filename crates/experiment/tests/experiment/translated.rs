//! Devices behind an IOMMU: what they carry with translations of their own, what is counted of that, and where their windows are in host memory.

use tlplab_experiment::result::Document;
use tlplab_experiment::run::{Inputs, run};
use tlplab_experiment::{Experiment, Options};

const HEAD: &str =
    "title = \"t\"\nfidelity = \"length-only\"\n[device.dev]\nunder = \"host.rp0\"\ntags = 256\n";

fn go(text: &str, sets: &[&str]) -> Document {
    let read = |_: &str| Ok(text.to_owned());
    let set = sets.iter().map(|set| (*set).to_owned()).collect();
    let options = Options { set, ..Options::default() };
    let experiment = Experiment::parse_with(&read, "t.toml", &options).unwrap_or_else(|e| panic!("{e}"));
    run(experiment, Inputs::default()).unwrap()
}

fn gbps(text: &str, sets: &[&str]) -> f64 {
    go(text, sets).flows[0].payload_bps / 1e9
}

/// Pages are used in the order in which operations come, so what is asked for ahead is there until then, however many operations wait.
#[test]
fn more_operations_that_wait_lose_nothing_to_translations() {
    let rest = "link = \"gen4 x8\"\nats = { entries = 16, outstanding = 8 }\n[host]\nlatency = \"100ns\"\nmemory.latency = \"100ns\"\n\
                [host.iommu]\nentries = 16\nwalk = \"200ns\"\n[load]\ndev = { op = \"write\", size = \"4KiB\", window = \"64MiB\" }\n";
    let text = format!("stop = \"60us\"\nwarmup = \"10us\"\n{HEAD}{rest}");
    let without = gbps(&text, &["host.iommu.ats=false"]);
    for outstanding in [8, 9, 10, 16, 32, 128] {
        let set = format!("load.dev.outstanding={outstanding}");
        let document = go(&text, &[&set]);
        let with = document.flows[0].payload_bps / 1e9;
        // Requests for translations take some of the link.
        assert!(with > 0.985 * without, "{outstanding} outstanding: {with} of {without} Gb/s");
        // Each page is asked for once: one request in sixteen begins one.
        let ats = &document.translations[0];
        let requests = ats.hits + ats.waited;
        assert!((ats.asked as f64 - requests as f64 / 16.0).abs() < 40.0, "{ats:?}");
    }
}

/// Little's law: each of the concurrent translations takes a round trip and a walk. More translations or reads never carry less.
#[test]
fn more_translations_never_lower_the_rate_of_random_reads() {
    let rest = "link = \"gen4 x8\"\nats = { entries = 16, outstanding = 4 }\n[host]\nlatency = \"100ns\"\nmemory.latency = \"100ns\"\n\
                [host.iommu]\nentries = 16\nwalk = \"200ns\"\n[load]\ndev = { op = \"read\", size = \"64B\", pattern = \"random\", window = \"64MiB\" }\n";
    let text = format!("stop = \"60us\"\nwarmup = \"10us\"\n{HEAD}{rest}");
    let mut before = 0.0;
    for (asks, outstanding) in [(1, 4), (1, 64), (2, 64), (4, 8), (4, 64), (16, 17), (16, 24), (16, 256)] {
        let sets =
            [format!("device.dev.ats.outstanding={asks}"), format!("load.dev.outstanding={outstanding}")];
        let now = gbps(&text, &sets.each_ref().map(String::as_str));
        assert!(now > 0.97 * before, "asks {asks}, {outstanding} outstanding: {now} Gb/s after {before}");
        before = now;
    }
}

#[test]
fn requests_that_wait_for_their_translation_are_no_hits() {
    let rest = "link = \"gen4 x16\"\nats = { entries = 16, outstanding = 1 }\n[host.iommu]\nentries = 16\nwalk = \"200ns\"\n[load]\n\
                dev = { op = \"read\", size = \"64B\", outstanding = 1, align = \"4KiB\", window = \"64MiB\" }\n";
    let document = go(&format!("stop = {{ transactions = 200 }}\n{HEAD}{rest}"), &[]);
    let ats = &document.translations[0];
    assert_eq!((ats.hits, ats.waited), (0, 200));
    assert!((200..=201).contains(&ats.asked), "{ats:?}");
    let sentence = &document.verdict.sentence;
    assert!(!sentence.contains("of its requests wait") || sentence.contains("100"), "{sentence}");
}

/// One walker, 1 us a walk.
#[test]
fn no_more_walks_are_counted_than_can_have_begun() {
    let rest = "link = \"gen4 x8\"\n[host.iommu]\nentries = 1\nwalk = \"1us\"\nwalkers = 1\n[load]\n\
                dev = { op = \"write\", size = \"64B\", outstanding = 64, align = \"4KiB\", window = \"64MiB\" }\n";
    let document = go(&format!("stop = \"20us\"\n{HEAD}{rest}"), &[]);
    let iommu = document.host.as_ref().and_then(|host| host.iommu.as_ref()).unwrap();
    assert!((19..=20).contains(&iommu.walks), "{} walks", iommu.walks);
    assert!(iommu.busy <= 1.0, "{iommu:?}");
}

/// A window of a device with mappings is where they lead.
#[test]
fn windows_of_mapped_devices_are_placed_in_host_memory() {
    let map = "[host.iommu.map.m]\ndevice = \"dev\"\nfrom = \"0x40000000\"\nsize = \"2MiB\"\npage = \"2MiB\"\nto = \"0x140000000\"\n";
    let load = |what: &str| {
        format!(
            "stop = {{ transactions = 100 }}\n{HEAD}link = \"gen4 x16\"\n[host]\nnuma = {{ hop = \"300ns\" }}\n\
             cache = {{ size = \"1MiB\", ways = 16, ddio_ways = 2, hit = \"20ns\" }}\n[host.iommu]\nentries = 64\nwalk = \"100ns\"\n[load]\n\
             dev = {{ op = \"read\", size = \"64B\", outstanding = 1, address = \"0x40000000\", window = \"64KiB\", {what} }}\n"
        )
    };
    for what in ["node = \"remote\"", "cache = \"host-warm\"", "node = \"local\""] {
        let plain = load(what);
        let mapped = plain.replace("[load]", &format!("{map}[load]"));
        let median = |text: &str| go(text, &[]).flows[0].latency_ns.unwrap().p50;
        assert!(
            (median(&mapped) - median(&plain)).abs() < 1.0,
            "{what}: {} and {}",
            median(&mapped),
            median(&plain)
        );
    }
}

/// Addresses of a device with mappings are those of its mappings: beyond host memory, too, and not those that are memory but unmapped.
#[test]
fn addresses_of_mapped_devices_are_checked_against_their_mappings() {
    let map = |name: &str, from: &str, size: &str| {
        format!(
            "[host.iommu.map.{name}]\ndevice = \"dev\"\nfrom = \"{from}\"\nsize = \"{size}\"\nto = \"0x40000000\"\n"
        )
    };
    let parse = |maps: &str, load: &str| {
        let text = format!(
            "stop = {{ transactions = 100 }}\n{HEAD}link = \"gen4 x16\"\n[host.memory]\nsize = \"2GiB\"\n[host.iommu]\nentries = 64\nwalk = \"100ns\"\n\
             {maps}[load]\ndev = {{ op = \"read\", size = \"64B\", outstanding = 1, {load} }}\n"
        );
        let read = |_: &str| Ok(text.clone());
        Experiment::parse_with(&read, "t.toml", &Options::default()).map_err(|error| error.to_string())
    };
    // 512 TiB is nowhere in a memory of 2 GiB.
    let high = map("m", "0x2000000000000", "1MiB");
    let document =
        run(parse(&high, "address = \"0x2000000000000\", window = \"1MiB\"").unwrap(), Inputs::default());
    assert_eq!(document.unwrap().flows[0].transactions, 100);
    // Two mappings side by side, in whatever order, are one range.
    let both = map("a", "0x50001000", "4KiB") + &map("b", "0x50000000", "4KiB");
    parse(&both, "address = \"0x50000000\", window = \"8KiB\"").unwrap();
    for (maps, load, said) in [
        (&both, "address = \"0x50000000\", window = \"12KiB\"", "0x50002000 is not mapped"),
        (&both, "address = \"0x4ffff000\", window = \"8KiB\"", "0x4ffff000 is not mapped"),
        (&high, "window = \"1MiB\"", "0x100000000 is not mapped"),
        (&high, "address = 0, window = \"1MiB\"", "0x0 is not mapped"),
    ] {
        let error = parse(maps, load).unwrap_err();
        assert!(error.contains(said) && error.contains("load.dev"), "{load}: {error}");
    }
}

/// Each level translates nine bits more than the page of twelve.
#[test]
fn tables_translate_as_many_bits_as_they_have_levels() {
    for (levels, bits) in [(3, 39), (4, 48), (5, 57)] {
        let parse = |from: u64| {
            let text = format!(
                "stop = \"1us\"\n{HEAD}link = \"gen4 x16\"\n[host.iommu]\nentries = 64\ntables = {{ step = \"1ns\", levels = {levels} }}\n\
                 [host.iommu.map.m]\ndevice = \"dev\"\nfrom = {from}\nsize = \"4KiB\"\nto = 0\n[load]\n\
                 dev = {{ op = \"read\", size = \"64B\", address = {from}, window = \"4KiB\" }}\n"
            );
            let read = |_: &str| Ok(text.clone());
            Experiment::parse_with(&read, "t.toml", &Options::default()).map_err(|error| error.to_string())
        };
        parse((1 << bits) - 4096).unwrap();
        let error = parse(1 << bits).unwrap_err();
        assert!(error.contains("more than") && error.contains(&format!("{bits}")), "{error}");
    }
}

/// A device whose requests for translations are blocked waits for answers that bring none.
#[test]
fn denied_translations_are_named_in_the_verdict() {
    let text = format!(
        "stop = \"20us\"\n{HEAD}link = \"gen4 x8\"\nats = {{ entries = 8, outstanding = 2 }}\n[host]\nlatency = \"100ns\"\nmemory.latency = \"0ns\"\nacs = [\"translation-blocking\"]\n\
         [host.iommu]\nentries = 8\nwalk = \"1ns\"\n[load]\ndev = {{ op = \"read\", size = \"64B\", outstanding = 1, align = \"4KiB\" }}\n"
    );
    let document = go(&text, &[]);
    let ats = &document.translations[0];
    assert_eq!((ats.hits, ats.waited), (0, 0));
    let denied = format!("{} of the {} translations that it requested were denied", ats.denied, ats.asked);
    let sentence = &document.verdict.sentence;
    assert!(sentence.contains(&denied), "{sentence}");
    let blocked =
        "\"translation-blocking\" in host.acs forbids translated addresses and translation requests";
    assert!(
        document.verdict.limit.evidence.iter().any(|told| told.contains(blocked)),
        "{:?}",
        document.verdict
    );
}
