//! What limits a run is what it gains most from, shown by runs: cases that figures judged wrongly, random experiments against all candidates,
//! and the same changes made by hand.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use tlplab_device::Random;
use tlplab_experiment::result::{Document, Verdict};
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::whatif::{By, Extent, Judge, Study};
use tlplab_experiment::{Experiment, Options};

fn read(text: &str, sets: &[&str]) -> Experiment {
    let options = Options { set: sets.iter().map(|set| (*set).to_owned()).collect(), ..Options::default() };
    Experiment::parse_with(&|_| Ok(text.to_owned()), "experiment.toml", &options)
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn study(text: &str, sets: &[&str]) -> Result<Study, String> {
    study_of(text, sets, Extent::Bounded)
}

fn study_of(text: &str, sets: &[&str], extent: Extent) -> Result<Study, String> {
    let mut run = Run::new(read(text, sets), Inputs::default()).unwrap();
    run.finish().unwrap();
    let document = run.document();
    Study::new(&mut run, document, Arc::new(BTreeMap::new()), extent)
}

/// All that the judge asks for, one after the other.
fn judge(study: Arc<Study>) -> Judge {
    let mut judge = Judge::new(study);
    while let Some(task) = judge.next_task() {
        judge.tell(task.id, task.run());
    }
    assert!(judge.is_over());
    judge
}

pub(super) fn verdict(text: &str) -> Verdict {
    judge(Arc::new(study(text, &[]).unwrap())).verdict()
}

/// Payload per second of all flows.
pub(super) fn rate(document: &Document) -> f64 {
    document.flows.iter().map(|flow| flow.payload_bps).sum()
}

pub(super) fn ran(text: &str, sets: &[&str]) -> Document {
    let mut run = Run::new(read(text, sets), Inputs::default()).unwrap();
    run.finish().unwrap();
    run.document()
}

/// A device below a root port: its link, the host, and its load.
fn one(link: &str, host: &str, load: &str) -> String {
    format!(
        "title = \"one\"\nstop = \"100us\"\n[host]\n{host}\n[device.dev]\nunder = \"host.rp0\"\nlink = {link}\n[load]\ndev = {{ {load} }}\n"
    )
}

const WRITES: &str = "op = \"write\", size = \"256B\", outstanding = 32";
const READS: &str = "op = \"read\", size = \"512B\", outstanding = 32";
const GEN3: &str = "\"gen3 x8\"";

/// Limits that thresholds on figures named wrongly.
#[test]
fn limits_missed_by_thresholds_are_named() {
    let credits = "{ generation = 3, width = 8, flight = \"100ns\", upper = { buffers = { posted_headers = 4, posted_data = 512 } } }";
    let replay =
        "{ generation = 3, width = 8, lower = { replay_tlps = 16 }, upper = { ack_latency = \"700ns\" } }";
    let cases = [
        (one(GEN3, "io_cache = { rate = \"10Gb/s\" }", READS), "rate of host.io_cache", 1.0),
        (one(GEN3, "memory_bus = { rate = \"10Gb/s\" }", READS), "rate of host.memory_bus", 1.0),
        (
            one(
                GEN3,
                "memory = { latency = \"20ns\" }\nio_cache = { latency = \"300ns\", entries = 2 }",
                READS,
            ),
            "entries of host.io_cache",
            1.0,
        ),
        (one(credits, "", WRITES), "posted header credits of host.rp0", 0.5),
        (one(replay, "", WRITES), "ack latency of host.rp0", 0.3),
        (one(GEN3, "reads = 2\nmemory = { latency = \"300ns\" }", READS), "reads of host", 0.5),
        (one(GEN3, "memory = { bandwidth = \"8Gb/s\" }", READS), "memory of host", 0.9),
        (one(GEN3, "", "op = \"write\", size = \"256B\", rate = \"5Gb/s\""), "the rate of dev", 1.0),
        (
            one(GEN3, "latency = \"300ns\"", "op = \"read\", size = \"64B\", outstanding = 1"),
            "the outstanding of dev",
            1.0,
        ),
        (one(GEN3, "", WRITES), "link dev → host.rp0", 1.0),
    ];
    for (text, resource, gain) in cases {
        let verdict = verdict(&text);
        let named: Vec<&str> = verdict.limits.iter().map(|limit| limit.resource.as_str()).collect();
        assert!(named.contains(&resource), "{named:?}, not {resource}\n{}\n{text}", verdict.sentence);
        let measured = verdict.limit.gain.unwrap();
        assert!(measured > gain - 0.1, "{resource}: {measured}, not {gain}");
        assert!(verdict.sentence.contains("carries"), "{}", verdict.sentence);
    }
}

/// A run that is over, of an experiment.
pub(super) fn of_text(text: &str, extent: Extent) -> Study {
    study_of(text, &[], extent).unwrap()
}

fn of_file(path: &str) -> Verdict {
    let file = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    #[allow(clippy::disallowed_methods, reason = "the study's experiment is read from its file")]
    verdict(&std::fs::read_to_string(file).unwrap())
}

pub(super) fn named(verdict: &Verdict) -> Vec<&str> {
    verdict.limits.iter().map(|limit| limit.resource.as_str()).collect()
}

/// What twice as much of a resource gains, as the verdict's list has it.
fn gain_of(verdict: &Verdict, resource: &str) -> f64 {
    let gains = &verdict.tried.as_ref().unwrap().gains;
    gains.iter().find(|gain| gain.resource == resource).map_or(0.0, |gain| gain.gain)
}

/// One posted header credit on a slow link is a loop of link time and credits: both gains are named.
#[test]
fn a_loop_of_link_time_and_credits_names_both_gains() {
    let link = "{ generation = 1, width = 1, flight = \"200ns\", upper = { buffers = { posted_headers = 1, posted_data = 64 } } }";
    let verdict = verdict(&one(link, "", "op = \"write\", size = \"64B\", outstanding = 8"));
    let (link, credits) =
        (gain_of(&verdict, "link dev → host.rp0"), gain_of(&verdict, "posted header credits of host.rp0"));
    let cable = gain_of(&verdict, "cable of link dev");
    assert!(link > 0.2 && credits > 0.2 && cable > 0.2, "{link} {credits} {cable} {}", verdict.sentence);
    assert!(
        (verdict.limit.gain.unwrap() - link.max(credits).max(cable)).abs() < 1e-9,
        "{}",
        verdict.sentence
    );
}

/// Credits of a switch's ingress, entries of the bridge, Ethernet of a NIC, a replay timer that ends before Acks can come.
#[test]
fn resources_without_a_figure_are_named() {
    let ingress = "title = \"ingress\"\nstop = \"60us\"\n[switch.sw0]\nunder = \"host.rp0\"\nlink = \"gen3 x8\"\n[device.dev]\nunder = \"sw0\"\nlink = { generation = 3, width = 8, flight = \"300ns\", lower = { replay_timer = \"5us\" }, upper = { buffers = { posted_headers = 8, posted_data = 512 } } }\n[load]\ndev = { op = \"write\", size = \"256B\", outstanding = 32 }\n";
    let bridge = one(
        GEN3,
        "bridge = { latency = \"500ns\", entries = 1 }",
        "device = \"host\", target = \"dev\", op = \"mmio-read\", size = \"4B\", outstanding = 8",
    );
    let nic = "title = \"nic\"\n[device.nic]\nunder = \"host.rp0\"\nlink = \"gen2 x1\"\nmodel = \"nic\"\ndirection = \"transmit\"\nrequests = 300\n";
    let timer = ingress
        .replace("replay_timer = \"5us\"", "replay_timer = \"500ns\"")
        .replace("posted_headers = 8", "posted_headers = 64");
    let cases = [
        (ingress.to_owned(), "posted header credits of sw0 for dev"),
        (bridge, "entries of host.bridge"),
        (nic.to_owned(), "Ethernet of nic"),
        (timer, "replay timer of dev"),
    ];
    for (text, resource) in cases {
        let verdict = verdict(&text);
        assert!(named(&verdict).contains(&resource), "not {resource}: {}\n{text}", verdict.sentence);
        assert!(verdict.limit.gain.unwrap() > 0.8, "{}", verdict.sentence);
    }
}

/// Each way of the card's link is full by itself, then both, then the other.
#[test]
fn the_dma_card_has_three_phases() {
    let verdict = of_file("experiments/dma-card.toml");
    let limits: Vec<_> = verdict.phases.iter().map(|phase| phase.limits[0].resource.as_str()).collect();
    let [to, both, from] = ["link sw0 → card", "both directions of link card → sw0", "link card → sw0"];
    assert_eq!(limits, [to, both, from], "{}", verdict.sentence);
    assert!(verdict.sentence.starts_with("Each phase of the run has its own limit"));
}

#[test]
fn an_outage_is_a_phase_of_its_own() {
    let verdict = of_file("experiments/hotplug.toml");
    let limits: Vec<_> = verdict.phases.iter().map(|phase| phase.limits[0].resource.as_str()).collect();
    let (full, alone) = ("link sw1 → ssd1", "the rate of nic");
    assert_eq!(limits, [full, "outages of link sw1 → sw0", alone, full], "{}", verdict.sentence);
    let down = one(GEN3, "", "op = \"write\", size = \"4KiB\", rate = \"20Gb/s\"").replace("100us", "360us");
    let verdict = verdict_of_outage(&down);
    assert_eq!((verdict.phases.len(), named(&verdict)), (1, vec!["the rate of dev"]), "{}", verdict.sentence);
    assert!((0.05..0.12).contains(&gain_of(&verdict, "outages of link dev → host.rp0")));
}

/// The device's link is away for 50 of 360 µs.
fn verdict_of_outage(text: &str) -> Verdict {
    verdict(&format!("{text}[[fault]]\nlink = \"dev\"\ndown = \"100us\"\nuntil = \"150us\"\n"))
}

/// A beginning is no likeness of what comes later: long work with two phases is tried on the whole, as far as it goes.
#[test]
fn phases_of_long_work_are_tried_on_the_whole() {
    let device =
        |name: &str, port: u32| format!("[device.{name}]\nunder = \"host.rp{port}\"\nlink = \"gen3 x8\"\n");
    let load = |name: &str, device: &str, start: &str| {
        format!(
            "[load.{name}]\ndevice = \"{device}\"\nop = \"write\"\nsize = \"4KiB\"\ncount = 9000\nstart = \"{start}\"\n"
        )
    };
    let text = &format!(
        "title = \"late\"\nstop = \"20ms\"\n{}{}{}{}",
        device("a", 0),
        device("b", 1),
        load("first", "a", "0us"),
        load("second", "b", "5135us")
    );
    let verdict = verdict(text);
    let tried = verdict.tried.as_ref().unwrap();
    assert!(tried.until_fs.is_none() && tried.tried < tried.candidates, "{}", verdict.sentence);
    assert_eq!(verdict.phases.len(), 2, "{}", verdict.sentence);
    let full = study_of(text, &[], Extent::Full).unwrap();
    assert_eq!((full.until(), full.budget()), (None, u64::MAX));
}

/// The tag of a lost completion rests: the fault limits, and so does the only tag.
#[test]
fn a_tag_that_rests_is_a_limit() {
    let text = one(GEN3, "", "op = \"read\", size = \"512B\", outstanding = 4")
        .replace("link = \"gen3 x8\"", "link = \"gen3 x8\"\ntags = 1\ncompletion_timeout = \"50us\"");
    let text = format!("{text}[[fault]]\nlink = \"dev\"\ndirection = \"down\"\ntlp = 3\ndamage = \"lose\"\n");
    let verdict = verdict(&text);
    let named: Vec<&str> = verdict.limits.iter().map(|limit| limit.resource.as_str()).collect();
    assert_eq!(named, ["faults of link dev → host.rp0", "tags of dev"], "{}", verdict.sentence);
    assert!(verdict.limit.gain.unwrap() > 1000.0 && verdict.sentence.ends_with("; 1 transaction failed."));
}

/// What a card takes and its Ethernet loses was not carried: a wider link to the card brings nothing.
#[test]
fn payload_that_a_network_loses_is_not_carried() {
    let verdict = of_file("studies/nettlp/overflow.toml");
    assert_eq!(verdict.limit.resource, "Ethernet of card", "{}", verdict.sentence);
    assert!(verdict.limit.gain.unwrap() > 0.9, "{}", verdict.sentence);
}

/// One read that begins late gains as much as one that begins at once.
#[test]
fn a_load_that_begins_late_is_not_slow() {
    let read = "op = \"read\", size = \"200B\", outstanding = 1, count = 1";
    let gain = |load: &str| verdict(&one(GEN3, "latency = \"300ns\"", load)).limit.gain.unwrap();
    let (at_once, late) = (gain(read), gain(&format!("{read}, start = \"50us\"")));
    assert!((at_once - late).abs() < 0.02, "{at_once} and {late}");
}

/// Long work that has an end is tried on its beginning, until as much is carried.
#[test]
fn the_beginning_of_finite_work_is_as_much_work() {
    let text = "title = \"finite\"\nstop = \"20ms\"\n[device.dev]\nunder = \"host.rp0\"\nlink = \"gen3 x8\"\n\
        [load]\ndev = { op = \"write\", size = \"4KiB\", count = 9000 }\n";
    let verdict = verdict(text);
    assert!(verdict.tried.unwrap().until_fs.is_some(), "{}", verdict.sentence);
    let gain = verdict.limit.gain.unwrap();
    assert_eq!(verdict.limit.resource, "link dev → host.rp0", "{}", verdict.sentence);
    assert!((0.9..1.1).contains(&gain), "{gain}: {}", verdict.sentence);
}

/// The same changes, made by hand in the experiment.
#[test]
fn gains_match_the_experiment_changed_by_hand() {
    let text = one(
        GEN3,
        "reads = 2\nmemory = { latency = \"300ns\", bandwidth = \"20Gb/s\" }\nlatency = \"80ns\"",
        READS,
    );
    let before = rate(&ran(&text, &[]));
    let study = study(&text, &[]).unwrap();
    for (resource, set) in [
        ("reads of host", "host.reads=4"),
        ("latency of host memory", "host.memory.latency=150ns"),
        ("memory of host", "host.memory.bandwidth=40Gb/s"),
        ("latency of host", "host.latency=40ns"),
        ("tags of dev", "device.dev.tags=64"),
        ("the outstanding of dev", "load.dev.outstanding=64"),
        ("link host.rp0 → dev", "device.dev.link=gen3 x16"),
    ] {
        let index =
            study.candidates().iter().position(|candidate| candidate.resource == resource).expect(resource);
        let trial = study.trial(&[index], By::Twice).unwrap();
        let by_hand = rate(&ran(&text, &[set])) / before - 1.0;
        assert!((trial.gain - by_hand).abs() < 1e-9, "{resource}: {} and by hand {by_hand}", trial.gain);
    }
}

#[test]
fn two_links_in_a_row_limit_together() {
    let text = "title = \"peers\"\nstop = \"60us\"\n[switch.sw0]\nunder = \"host.rp0\"\nlink = \"gen4 x16\"\n[device.a]\nunder = \"sw0\"\nlink = \"gen3 x4\"\n[device.b]\nunder = \"sw0\"\nlink = \"gen3 x4\"\n[load]\na = { op = \"write\", size = \"4KiB\", target = \"b\" }\n";
    let verdict = verdict(text);
    assert_eq!(verdict.limit.resource, "link a → sw0 and link sw0 → b", "{}", verdict.sentence);
    assert!(verdict.sentence.contains("limit the run together"), "{}", verdict.sentence);
    assert!(verdict.limit.gain.unwrap() > 0.9);
    let three = text.replace(
        "[device.b]\nunder = \"sw0\"",
        "[switch.sw1]\nunder = \"sw0\"\nlink = \"gen3 x4\"\n[device.b]\nunder = \"sw1\"",
    );
    let verdict = self::verdict(&three);
    assert_eq!(
        verdict.limit.resource, "link a → sw0, link sw0 → sw1 and link sw1 → b",
        "{}",
        verdict.sentence
    );
    assert!(verdict.sentence.contains("x4 → x8 each carries 100"), "{}", verdict.sentence);
}

#[test]
fn phases_have_limits_of_their_own() {
    let text = "title = \"phases\"\nstop = \"400us\"\n[host]\nmemory = { latency = \"400ns\" }\n[device.dev]\nunder = \"host.rp0\"\nlink = \"gen3 x8\"\ntags = 2\n\
        [load.first]\ndevice = \"dev\"\nop = \"write\"\nsize = \"4KiB\"\ncount = 200\n\
        [load.second]\ndevice = \"dev\"\nop = \"read\"\nsize = \"512B\"\nstart = \"120us\"\ncount = 600\noutstanding = 32\n";
    let verdict = verdict(text);
    let phases: Vec<(&[String], &str)> =
        verdict.phases.iter().map(|phase| (&phase.flows[..], phase.limits[0].resource.as_str())).collect();
    let (first, second) = (["first".to_owned()], ["second".to_owned()]);
    assert_eq!(phases, [(&first[..], "link dev → host.rp0"), (&second[..], "tags of dev")]);
    assert!(verdict.sentence.starts_with("Each phase of the run has its own limit"), "{}", verdict.sentence);
    let down =
        format!("{}\n[[fault]]\nlink = \"dev\"\ndown = \"20us\"\nuntil = \"40us\"\n", one(GEN3, "", WRITES));
    let verdict = self::verdict(&down);
    assert_eq!(verdict.phases.len(), 1);
    assert_eq!(verdict.phases[0].limits[0].resource, "outages of link dev → host.rp0");
    assert!(verdict.sentence.contains("failed"), "{}", verdict.sentence);
}

/// Whoever has more processors hears the same.
#[test]
fn the_verdict_does_not_depend_on_the_order_of_trials() {
    let text = random(3);
    let study = Arc::new(study(&text, &[]).unwrap());
    let straight = judge(study.clone()).verdict();
    let mut judge = Judge::new(study);
    while !judge.is_over() {
        let mut tasks: Vec<_> = std::iter::from_fn(|| judge.next_task()).take(7).collect();
        tasks.reverse();
        tasks.into_iter().for_each(|task| judge.tell(task.id, task.run()));
    }
    assert_eq!(judge.verdict(), straight);
}

#[test]
fn runs_with_python_devices_refuse_a_second_run() {
    let python = "title = \"python\"\nstop = \"1us\"\n[device.dev]\nunder = \"host.rp0\"\nlink = \"gen3 x8\"\nmodel = \"copier.py:Copier\"\n";
    let refusal = tlplab_experiment::whatif::refusal(&read(python, &[])).unwrap();
    assert!(refusal.contains("copier.py") && refusal.contains("cannot be run again"), "{refusal}");
    let idle = one(GEN3, "", "op = \"write\", size = \"256B\", start = \"99us\", rate = \"1kb/s\"");
    let verdict = verdict(&idle.replace("100us", "1us"));
    assert!(
        verdict.limits.is_empty() && verdict.sentence.starts_with("Nothing limits"),
        "{}",
        verdict.sentence
    );
}

/// A random experiment that goes on for a while: devices below root ports and switches, with what limits somewhere.
fn random(seed: u64) -> String {
    let mut random = Random::keyed(seed, "whatif", "experiment");
    let mut pick = |of: &[&str]| of[random.below(of.len() as u64) as usize].to_owned();
    let mut text = format!(
        "title = \"random {seed}\"\nseed = {seed}\nstop = \"{}\"\nlength_only = true\n",
        pick(&["30us", "60us", "200us"])
    )
    .replace("length_only = true\n", "");
    let memory = format!(
        "{{ latency = \"{}\"{} }}",
        pick(&["50ns", "90ns", "300ns"]),
        pick(&["", "", ", bandwidth = \"60Gb/s\"", ", bandwidth = \"15Gb/s\""])
    );
    let more = pick(&[
        "",
        "",
        "reads = 8",
        "io_cache = { entries = 4, latency = \"100ns\" }",
        "memory_bus = { rate = \"30Gb/s\" }",
        "io_cache = { rate = \"20Gb/s\" }",
        "cache = { size = \"4MiB\", ways = 16, ddio_ways = 2, hit = \"60ns\" }",
        "completions = \"rcb\"",
        "jitter = { quantiles = [\"0% 0ns\", \"50% 30ns\", \"100% 400ns\"] }",
    ]);
    writeln!(text, "[host]\nlatency = \"{}\"\nmemory = {memory}\n{more}", pick(&["20ns", "150ns"])).unwrap();
    let mut parents = vec!["host.rp1".to_owned(), "host.rp2".to_owned()];
    if pick(&["yes", "no"]) == "yes" {
        let link = format!("{} {}", pick(&["gen3", "gen4"]), pick(&["x4", "x8", "x16"]));
        let forwarding = pick(&["cut-through", "cut-through", "store-and-forward"]);
        let weights = pick(&["", "", "arbitration = { a = 1, b = 4 }"]);
        let switch = "[switch.sw0]\nunder = \"host.rp0\"\nlatency = \"110ns\"";
        writeln!(text, "{switch}\nlink = \"{link}\"\nforwarding = \"{forwarding}\"\n{weights}").unwrap();
        parents = vec!["sw0".to_owned(), "sw0".to_owned()];
    }
    let mut loads = String::new();
    for (name, under) in [("a", &parents[0]), ("b", &parents[1])] {
        let (generation, width) = (pick(&["1", "3", "4"]), pick(&["1", "4", "8"]));
        let buffers = pick(&[
            "",
            "",
            ", upper = { buffers = { posted_headers = 4, posted_data = 128 } }",
            ", upper = { buffers = { posted_headers = 16, posted_data = 64 } }",
        ]);
        let flight = pick(&["0ns", "5ns", "200ns", "400ns"]);
        writeln!(text, "[device.{name}]\nunder = \"{under}\"\nlink = {{ generation = {generation}, width = {width}, flight = \"{flight}\"{buffers} }}\ntags = {}", pick(&["2", "8", "32", "64"])).unwrap();
        let pace = pick(&["outstanding = 1", "outstanding = 4", "outstanding = 32", "rate = \"4Gb/s\""]);
        writeln!(
            loads,
            "{name} = {{ op = \"{}\", size = \"{}\", {pace} }}",
            pick(&["read", "write", "both"]),
            pick(&["64B", "512B", "4KiB"])
        )
        .unwrap();
    }
    format!("{text}[load]\n{loads}")
}

/// What twice as much of each candidate gains.
fn gains(study: &Study) -> Vec<(String, f64)> {
    let gain = |index: usize| {
        Some((study.candidates()[index].resource.clone(), study.trial(&[index], By::Twice)?.gain))
    };
    (0..study.candidates().len()).filter_map(gain).collect()
}

/// The greatest gain, of those that `named` chooses.
fn most(gains: &[(String, f64)], named: impl Fn(&str) -> bool) -> f64 {
    gains.iter().filter(|(name, _)| named(name)).map(|(_, gain)| *gain).fold(0.0, f64::max)
}

/// Candidates by a limit's name, which may be several together.
fn candidates_of(study: &Study, resource: &str) -> Vec<usize> {
    let index = |name: &str| study.candidates().iter().position(|one| one.resource == name).unwrap();
    resource.split(" and ").flat_map(|names| names.split(", ")).map(index).collect()
}

/// True if no other resource gains more than the named one, on the whole run.
fn is_named(seed: u64, text: &str, verdict: &Verdict) -> bool {
    let whole = study_of(text, &[], Extent::Full).unwrap();
    let gains = gains(&whole);
    let (named, best) = (&verdict.limit.resource, most(&gains, |_| true));
    let gain = match verdict.limits.is_empty() {
        true => 0.0,
        false => {
            let gain = whole.trial(&candidates_of(&whole, named), By::Twice).unwrap().gain;
            gain.max(most(&gains, |name| name == named))
        }
    };
    let right = best - gain <= 0.01 * (1.0 + best);
    if !right {
        println!("{seed}: {named} gains {gain}, the best {best}\n{text}");
    }
    right
}

/// Whether the resource that would limit next gains most where the limit is gone; `None`: none was told.
fn is_next(seed: u64, text: &str, study: &Study, verdict: &Verdict) -> Option<bool> {
    let said = verdict.next.as_ref().filter(|_| !verdict.limits.is_empty())?;
    let gone = study.trial(&candidates_of(study, &verdict.limit.resource), By::Gone).unwrap();
    let gains = gains(&gone.after);
    let (then, best) = (most(&gains, |name| name == said.resource), most(&gains, |_| true));
    let right = (said.headroom - gone.gain.max(0.0)).abs() <= 0.02 && best - then <= 0.02 * (1.0 + best);
    if !right {
        let (told, headroom) = (said.headroom, gone.gain);
        println!(
            "{seed}: next {} gains {then}, the best {best}; {told} and {headroom}\n{text}",
            said.resource
        );
    }
    Some(right)
}

/// Whether a case's limit and what limits next were right, and whether nothing gained anything.
struct Judged {
    right: bool,
    next: Option<bool>,
    nothing: bool,
}

/// `WHATIF_CASES` asks for more, and tells how many were right.
#[test]
#[allow(clippy::disallowed_methods, reason = "cases that know nothing of each other")]
fn no_other_resource_gains_more_than_the_named_one() {
    let cases = std::env::var("WHATIF_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(5u64);
    let seeds = Mutex::new(0..cases);
    let judged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(seed) = { seeds.lock().unwrap().next() } {
                    let text = random(seed);
                    let study = Arc::new(study(&text, &[]).unwrap());
                    let verdict = judge(study.clone()).verdict();
                    let right = is_named(seed, &text, &verdict);
                    let next = is_next(seed, &text, &study, &verdict);
                    judged.lock().unwrap().push(Judged { right, next, nothing: verdict.limits.is_empty() });
                }
            });
        }
    });
    let judged = judged.into_inner().unwrap();
    let right = judged.iter().filter(|one| one.right).count();
    let nexts = judged.iter().filter(|one| one.next.is_some()).count();
    let next = judged.iter().filter(|one| one.next == Some(true)).count();
    let nothing = judged.iter().filter(|one| one.nothing).count();
    println!("limits: {right} of {cases} ({nothing} without a limit), next: {next} of {nexts}");
    assert!(judged.len() as u64 == cases && right * 100 >= judged.len() * 99, "{right} of {cases}");
    assert!(next * 100 >= nexts * 97, "{next} of {nexts}");
}
