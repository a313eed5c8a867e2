//! Resources that limit only together, among more candidates than can be tried one by one, and sentences that say no more than runs have shown.

use super::whatif::{named, of_text, verdict};
use std::collections::BTreeSet;
use std::fmt::Write;
use tlplab_device::Random;
use tlplab_experiment::result::Verdict;
use tlplab_experiment::whatif::{By, Extent, Study};

const HEAD: &str = "title = \"together\"\nstop = \"20us\"\nwarmup = \"5us\"\nfidelity = \"length-only\"\n";

/// Writes over so many switches in a row, each with a core of this rate.
fn row(switches: usize, core: &str) -> String {
    let (mut text, mut under) = (HEAD.to_owned(), "host.rp0".to_owned());
    for number in 0..switches {
        write!(
            text,
            "[switch.s{number}]\nunder = \"{under}\"\nlink = \"gen4 x8\"\ncore = {{ rate = \"{core}\" }}\n"
        )
        .unwrap();
        under = format!("s{number}");
    }
    let load = "[load]\nd = { op = \"write\", size = \"1KiB\", outstanding = 16 }\n";
    format!("{text}[device.d]\nunder = \"{under}\"\nlink = \"gen4 x8\"\n{load}")
}

/// Writes through a core and out of a domain, of equal rates, beside so many devices that do nothing.
fn among(devices: usize) -> String {
    let mut text = format!(
        "{HEAD}[host.domain.q0]\nports = [\"host.rp0\"]\nrate = \"50Gb/s\"\n[host.domain.q1]\nports = [\"host.rp1\"]\n[switch.sw0]\nunder = \"host.rp0\"\nlink = \"gen4 x8\"\ncore = {{ rate = \"50Gb/s\" }}\n[device.a]\nunder = \"sw0\"\nlink = \"gen4 x8\"\n[device.b]\nunder = \"host.rp1\"\nlink = \"gen4 x8\"\n"
    );
    for number in 0..devices {
        let under = if number % 2 == 0 { format!("host.rp{}", number / 2 + 2) } else { "sw0".to_owned() };
        write!(text, "[device.x{number}]\nunder = \"{under}\"\nlink = \"gen3 x4\"\n").unwrap();
    }
    text + "[load]\na = { target = \"b\", op = \"write\", size = \"256B\", outstanding = 16 }\n"
}

fn parts(verdict: &Verdict) -> BTreeSet<String> {
    let names = verdict.limit.resource.split(" and ").flat_map(|names| names.split(", "));
    names.map(str::to_owned).collect()
}

/// The cores of nine switches: among 211 candidates, of which the budget tries a fifth one by one.
#[test]
fn nine_equal_stages_in_a_row_limit_together() {
    let verdict = verdict(&row(9, "30Gb/s"));
    let cores: BTreeSet<String> = (0..9).map(|switch| format!("core rate of s{switch}")).collect();
    assert_eq!(parts(&verdict), cores, "{}", verdict.sentence);
    assert!(verdict.limit.gain.unwrap() > 0.9, "{}", verdict.sentence);
    assert!(
        verdict.sentence.contains("each carries") && verdict.sentence.contains("none of them does alone")
    );
    let tried = verdict.tried.unwrap();
    assert!(tried.tried * 4 < tried.candidates);
}

#[test]
fn a_pair_among_hundreds_is_found() {
    for devices in [4, 8, 30] {
        let verdict = verdict(&among(devices));
        assert_eq!(verdict.limit.resource, "core rate of sw0 and rate of host.q0", "{}", verdict.sentence);
        assert!(verdict.sentence.contains("and neither does alone"), "{}", verdict.sentence);
        assert!((0.9..1.05).contains(&verdict.limit.gain.unwrap()), "{}", verdict.sentence);
    }
}

/// A result that the budget did not suffice for is not presented as shown.
#[test]
fn an_unreduced_set_of_limits_is_marked_in_the_verdict() {
    let (mut text, mut loads) = (HEAD.to_owned(), "[load]\n".to_owned());
    for number in 0..30 {
        write!(text, "[device.d{number}]\nunder = \"host.rp{number}\"\nlink = \"gen3 x4\"\n").unwrap();
        writeln!(
            loads,
            "d{number} = {{ op = \"write\", size = \"256B\", rate = \"{}Mb/s\" }}",
            1000 + number * 10
        )
        .unwrap();
    }
    let verdict = verdict(&(text + &loads));
    let sentence = &verdict.sentence;
    assert!(sentence.contains("limit the run together, or some of them"), "{sentence}");
    assert!(sentence.contains("the smallest set was not found in") && sentence.contains("--whatif full"));
    assert!(!sentence.contains("alone does") && !sentence.contains("does alone"), "{sentence}");
}

/// A maximum payload size that gains 1.2 %, and a link beside it that gains less than one: that one does not tie.
#[test]
fn a_gain_below_one_percent_does_not_tie() {
    let text = "title = \"tie\"\nstop = \"30us\"\nwarmup = \"10us\"\nfidelity = \"length-only\"\n[device.a]\nunder = \"host.rp0\"\nlink = { generation = 5, width = 32, mps = \"1KiB\" }\n[device.b]\nunder = \"host.rp1\"\nlink = \"gen3 x1\"\n[load]\na = { op = \"write\", size = \"4KiB\", outstanding = 256 }\nb = { op = \"write\", size = \"4KiB\" }\n";
    let verdict = verdict(text);
    assert_eq!(named(&verdict), ["the maximum payload size"], "{}", verdict.sentence);
}

/// Two peers whose links are equally wide carry nine tenths of all; a wider link of the third device gains a tenth.
#[test]
fn a_small_flow_does_not_hide_a_pair() {
    let text = format!(
        "{HEAD}[switch.sw0]\nunder = \"host.rp0\"\nlink = \"gen4 x16\"\n[device.a]\nunder = \"sw0\"\nlink = \"gen3 x8\"\n[device.b]\nunder = \"sw0\"\nlink = \"gen3 x8\"\n[device.c]\nunder = \"host.rp1\"\nlink = \"gen1 x4\"\n[load]\na = {{ op = \"write\", size = \"4KiB\", target = \"b\" }}\nc = {{ op = \"write\", size = \"4KiB\" }}\n"
    );
    let verdict = verdict(&text);
    assert_eq!(parts(&verdict).len(), 2, "{}", verdict.sentence);
    assert!(verdict.limit.gain.unwrap() > 0.8, "{}", verdict.sentence);
}

/// Two pairs of peers, one twice as fast as the other: that pair gains by itself. Credits of two hops that are too few for their cables limit together,
/// though TLPs wait at one of them only.
#[test]
fn of_two_pairs_one_is_named() {
    let pair = |switch: u32, a: &str, b: &str, width: u32| {
        format!(
            "[switch.s{switch}]\nunder = \"host.rp{switch}\"\nlink = \"gen4 x16\"\n[device.{a}]\nunder = \"s{switch}\"\nlink = \"gen3 x{width}\"\n[device.{b}]\nunder = \"s{switch}\"\nlink = \"gen3 x{width}\"\n"
        )
    };
    let load = |a: &str, b: &str| format!("{a} = {{ op = \"write\", size = \"4KiB\", target = \"{b}\" }}\n");
    let text = format!(
        "{HEAD}{}{}[load]\n{}{}",
        pair(0, "a", "b", 8),
        pair(1, "c", "d", 4),
        load("a", "b"),
        load("c", "d")
    );
    let told = verdict(&text);
    assert_eq!(told.limit.resource, "link a → s0 and link s0 → b", "{}", told.sentence);
    assert!((0.6..0.72).contains(&told.limit.gain.unwrap()), "{}", told.sentence);
    let link = "link = { generation = 3, width = 8, flight = \"300ns\", upper = { buffers = { posted_headers = 8, posted_data = 128 } } }";
    let hops = format!(
        "{HEAD}[switch.s]\nunder = \"host.rp0\"\n{link}\n[device.a]\nunder = \"s\"\n{link}\n[load]\na = {{ op = \"write\", size = \"256B\", outstanding = 64 }}\n"
    );
    let told = verdict(&hops);
    assert!(told.limit.gain.unwrap() > 0.5, "{}", told.sentence);
}

/// In the first phase a pair limits, which no trial of one resource shows: none is named for it.
#[test]
fn a_phase_that_a_pair_limits_names_no_single_resource() {
    let text = "title = \"phases\"\nstop = \"400us\"\nfidelity = \"length-only\"\n[switch.sw0]\nunder = \"host.rp0\"\nlink = \"gen4 x16\"\n[device.a]\nunder = \"sw0\"\nlink = \"gen3 x4\"\n[device.b]\nunder = \"sw0\"\nlink = \"gen3 x4\"\n[device.c]\nunder = \"host.rp1\"\nlink = \"gen3 x2\"\n[load.first]\ndevice = \"a\"\nop = \"write\"\nsize = \"4KiB\"\ntarget = \"b\"\ncount = 100\n[load.second]\ndevice = \"c\"\nop = \"write\"\nsize = \"4KiB\"\ncount = 100\nstart = \"140us\"\n";
    let sentence = verdict(text).sentence;
    let head = "The phases of the run have different limits: no single resource and link c → host.rp1";
    assert!(sentence.starts_with(head), "{sentence}");
}

/// A run that does 30 times as much in the same time is not cut off within its warm-up: it carries something.
#[test]
fn the_next_limit_comes_from_a_run_that_carries_data() {
    let head = HEAD.replace("20us", "40us").replace("\"5us", "\"10us");
    let (mut text, mut under) = (head, "host.rp0".to_owned());
    for number in 0..3 {
        write!(text, "[switch.s{number}]\nunder = \"{under}\"\nlink = \"gen1 x1\"\n").unwrap();
        under = format!("s{number}");
    }
    let load = "[load]\nd = { op = \"write\", size = \"4KiB\" }\n";
    write!(text, "[device.d]\nunder = \"{under}\"\nlink = \"gen1 x1\"\n{load}").unwrap();
    let verdict = verdict(&text);
    assert_eq!(parts(&verdict).len(), 4, "{}", verdict.sentence);
    let next = verdict.next.unwrap();
    assert!(!next.text.contains("instead of nothing") && next.headroom > 10.0, "{}", next.text);
    let longer = HEAD.replace("20us", "60us").replace("\"5us", "\"10us");
    let credits = format!(
        "{longer}[device.a]\nunder = \"host.rp0\"\nlink = {{ generation = 4, width = 8, flight = \"300ns\", upper = {{ buffers = {{ posted_headers = 8, posted_data = 128 }} }} }}\n[load]\na = {{ op = \"write\", size = \"256B\", outstanding = 64 }}\n"
    );
    let next = super::whatif::verdict(&credits).next.unwrap().text;
    assert!(
        next.starts_with("With no limit of credits of host.rp0, link a → host.rp0 would limit next"),
        "{next}"
    );
}

/// A paced load is limited by its rate alone, or by nothing that more of helps: nobody is named for what all together do not gain.
#[test]
fn all_together_gain_nothing_where_a_fixed_number_of_bytes_is_asked_for() {
    let text = "title = \"late\"\nhost = { profile = \"server\", enumeration = \"simulated\" }\n[device.d]\nunder = \"host.rp0\"\nlink = \"gen3 x4\"\nready = \"100us\"\n[load]\nd = { op = \"read\", size = \"512B\", count = 20 }\n";
    let sentence = verdict(text).sentence;
    assert!(
        sentence.starts_with("No resource that was tried limits the run: twice as much of any, or of "),
        "{sentence}"
    );
}

/// A random fabric: writes over up to three switches in a row, some of whose links and cores are equally fast, beside a smaller flow. With it the
/// resources that could limit the writes.
fn random(seed: u64) -> (String, Vec<String>) {
    let mut random = Random::keyed(seed, "whatif", "together");
    let mut pick = |of: &[&'static str]| of[random.below(of.len() as u64) as usize];
    let memory = pick(&["", "memory = { latency = \"90ns\", bandwidth = \"28.7Gb/s\" }", ""]);
    let mut text = format!(
        "title = \"random\"\nstop = \"12us\"\nwarmup = \"4us\"\nfidelity = \"length-only\"\n[host]\n{memory}\n"
    );
    let (mut under, mut stages) = ("host.rp0".to_owned(), Vec::new());
    if !memory.is_empty() {
        stages.push("memory of host".to_owned());
    }
    for number in 0..pick(&["1", "2", "3"]).parse().unwrap() {
        let (link, core) = (pick(&["gen3 x4", "gen4 x4", "gen4 x8"]), pick(&["", "28.7Gb/s", "60Gb/s"]));
        write!(text, "[switch.s{number}]\nunder = \"{under}\"\nlink = \"{link}\"\n").unwrap();
        stages.push(format!("link s{number} → {under}"));
        if !core.is_empty() {
            writeln!(text, "core = {{ rate = \"{core}\" }}").unwrap();
            stages.push(format!("core rate of s{number}"));
        }
        under = format!("s{number}");
    }
    let link = pick(&["gen3 x4", "gen4 x4"]);
    stages.push(format!("link d → {under}"));
    write!(text, "[device.d]\nunder = \"{under}\"\nlink = \"{link}\"\n").unwrap();
    let mut loads = format!(
        "[load]\nd = {{ op = \"write\", size = \"1KiB\", outstanding = 32{} }}\n",
        pick(&["", ", rate = \"26Gb/s\""])
    );
    if loads.contains("rate") {
        stages.push("the rate of d".to_owned());
    }
    if pick(&["yes", "no"]) == "yes" {
        text += "[device.e]\nunder = \"host.rp1\"\nlink = \"gen1 x1\"\n";
        loads += "e = { op = \"write\", size = \"256B\" }\n";
        stages.push("link e → host.rp1".to_owned());
    }
    (text + &loads, stages)
}

/// The gain of candidates, by their names.
fn gain(study: &Study, names: &[&String]) -> f64 {
    let at = |name: &String| study.candidates().iter().position(|one| one.resource == *name);
    let set: Vec<usize> = names.iter().filter_map(|name| at(name)).collect();
    if set.is_empty() { 0.0 } else { study.trial(&set, By::Twice).map_or(0.0, |trial| trial.gain) }
}

/// All sets of some names, but for none and all.
fn proper_sets<'n>(names: &'n [&'n String]) -> impl Iterator<Item = Vec<&'n String>> {
    let of = |bits: usize| (0..names.len()).filter(|at| bits >> at & 1 == 1).map(|at| names[at]).collect();
    (1..(1usize << names.len()) - 1).map(of)
}

/// What the verdict names is true: it gains what is told, and no part of it nearly as much. What it does not name is not there: no set of resources gains
/// much more than a single one that is named, nor anything if none is. `TOGETHER_CASES` asks for more.
#[test]
#[allow(clippy::disallowed_methods, reason = "more cases by request")]
fn no_set_of_resources_refutes_the_verdict() {
    let cases = std::env::var("TOGETHER_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(5u64);
    let mut several = 0;
    for seed in 0..cases {
        let (text, stages) = random(seed);
        let study = of_text(&text, Extent::Full);
        let verdict = verdict(&text);
        let told = verdict.limit.gain.unwrap_or(0.0);
        let context = format!("{seed}: {}\n{text}", verdict.sentence);
        let names = parts(&verdict);
        let names: Vec<&String> = names.iter().collect();
        several += u64::from(names.len() > 1);
        if names.len() > 1 {
            let measured = gain(&study, &names);
            assert!((measured - told).abs() < 0.02 * (1.0 + told), "{measured}: {context}");
            for part in proper_sets(&names) {
                assert!(gain(&study, &part) < 0.9 * told, "{part:?}: {context}");
            }
        } else {
            let most = if told < 0.01 { 0.01 } else { 2.0 * told + 0.05 };
            let stages: Vec<&String> = stages.iter().collect();
            for set in proper_sets(&stages).chain([stages.clone()]).filter(|_| told < 0.1) {
                assert!(gain(&study, &set) < most, "{set:?}: {context}");
            }
        }
    }
    assert!(several * 4 >= cases, "{several} of {cases} by several");
}
