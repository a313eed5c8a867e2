//! Closed forms and benchmarks: their keys, figures and results.

use crate::{Bench, count, figure, run};
use std::fs;
use tlplab_study::runner::{Came, Row};
use tlplab_study::{Build, Outcome, Sweep};

fn sweep(bench: &Bench, text: &str) -> Sweep {
    bench.sweep_of(bench.read(text).unwrap_or_else(|error| panic!("{error}")))
}

fn done(bench: &Bench, text: &str) -> Outcome {
    let outcome = run(&sweep(bench, text), 2);
    for row in &outcome.rows {
        assert!(matches!(&row.came, Came::Ran(record) if record.failure.is_none()), "{row:?}");
    }
    outcome
}

fn made(outcome: &Outcome) -> (usize, usize) {
    (outcome.progress.made, outcome.progress.known)
}

fn mistake(text: &str) -> String {
    Bench::new().read(text).unwrap_err().to_string()
}

fn refusal(row: &Row) -> &str {
    if let Came::Refused(why) = &row.came { why } else { panic!("{row:?}") }
}

/// The numbers of `tlplab model`, which are held against the specification there: 64 B writes on Gen3 x8 get 45.71 Gb/s.
#[test]
fn a_closed_form_has_its_figures() {
    let bench = Bench::new();
    let text = "[model]\nkind = \"bw\"\n[[axis]]\nkey = \"size\"\nvalues = [\"64B\", \"256B\"]\n[[axis]]\nkey = \"op\"\nvalues = [\"write\", \"read\"]";
    let outcome = done(&bench, text);
    assert_eq!(format!("{:.2}", figure(&outcome.rows[0], "throughput") / 1e9), "45.71");
    assert_eq!(format!("{:.2}", figure(&outcome.rows[2], "throughput") / 1e9), "57.46");
    assert_eq!(figure(&outcome.rows[0], "lanes"), 8.0);
    assert_eq!(outcome.rows[0].seed, None, "there is nothing random in it");
    // 40 Gb/s of frames of 64 B: 40e9 / 8 / (64 + 20).
    let nic = done(&bench, "[model]\nkind = \"nic\"\nnic = \"dpdk\"");
    assert_eq!(format!("{:.0}", figure(&nic.rows[0], "ethernet.rate")), "59523810");
    // 10 * 256 / (12 + 256 + 72), see the analytic room.
    let card = done(&bench, "[model]\nkind = \"nettlp\"\nsize = \"256B\"");
    assert_eq!(format!("{:.4}", figure(&card.rows[0], "throughput") / 1e9), "7.5294");
}

/// By hand: 32 tags of 512 B each, held for a microsecond, allow 32 · 4096 b / 1 µs.
#[test]
fn littles_law_names_tags_or_link_as_the_limit() {
    let bench = Bench::new();
    let text = "metrics = [\"throughput\"]\n[model]\nkind = \"lat\"\nsize = \"512B\"\nlatency = \"1us\"\nlink = \"gen4 x16\"\n[[axis]]\nkey = \"tags\"\nvalues = [32, 1024]";
    let sweep = sweep(&bench, text);
    let outcome = run(&sweep, 1);
    assert_eq!(figure(&outcome.rows[0], "throughput"), 32.0 * 4096.0 / 1e-6);
    assert_eq!(figure(&outcome.rows[0], "tags.allowed"), 32.0 * 4096.0 / 1e-6);
    assert_eq!(figure(&outcome.rows[0], "tags.held"), 1000.0);
    let limits: Vec<_> = sweep
        .summaries(&outcome.rows, &sweep.study.metrics)
        .into_iter()
        .map(|one| one.limit.unwrap())
        .collect();
    assert_eq!(limits, ["tags", "link"]);
    let table = sweep.table(&outcome.rows);
    assert!(table.columns.iter().any(|column| column.name == "limit"), "it is in the data set, too");
}

#[test]
fn a_benchmark_is_measured_by_the_simulator_and_by_the_model() {
    let bench = Bench::new();
    let text = "[bench]\ntest = \"lat_rd\"\ncount = 64\n[[axis]]\nkey = \"on\"\nvalues = [\"model\", \"simulator\"]\n[[axis]]\nkey = \"host\"\nvalues = [\"server\", \"xeon-e5-2620v2\"]";
    let outcome = done(&bench, text);
    let of = |row: usize| figure(&outcome.rows[row], "latency.p50");
    assert!((of(0) / of(2) - 1.0).abs() < 0.05, "{} {}", of(0), of(2));
    assert!(of(0) != of(1) && of(2) != of(3), "the host counts");
    assert_eq!(figure(&outcome.rows[2], "transactions"), 64.0);
    assert_eq!(figure(&outcome.rows[2], "lanes"), 8.0);
    let known = run(&sweep(&bench, text), 1);
    assert_eq!(made(&known), (0, 4));
    assert_eq!(known.rows, outcome.rows);
    let one = done(&bench, "[bench]\ntest = \"bw_wr\"\ncount = 256");
    let rate = figure(&one.rows[0], "rate");
    assert!((figure(&one.rows[0], "throughput") / (rate * 64.0 * 8.0) - 1.0).abs() < 1e-9);
}

/// A point is the same in any notation, and another if any of its inputs differs.
#[test]
fn results_are_keyed_by_all_their_inputs() {
    let bench = Bench::new();
    let model = |more: &str| made(&done(&bench, &format!("[model]\nkind = \"bw\"\n{more}")));
    assert_eq!(model("size = \"1KiB\""), (1, 0));
    assert_eq!(model("size = \"1024B\"\nlink = \"gen3  x8\""), (0, 1));
    assert_eq!(model("size = \"1024B\"\n[[axis]]\nkey = \"mps\"\nvalues = [\"256B\"]"), (0, 1));
    assert_eq!(model("size = \"1KiB\"\necrc = true"), (1, 0));
    let other = Build { simulator: "other".into(), python: "that".into() };
    let sweep_of_other = Sweep { build: other, ..sweep(&bench, "[model]\nkind = \"bw\"\nsize = \"1KiB\"") };
    assert_eq!(made(&run(&sweep_of_other, 1)), (1, 0));
    let measure =
        |more: &str| made(&done(&bench, &format!("[bench]\ntest = \"lat_rd\"\ncount = 16\n{more}")));
    assert_eq!(measure(""), (1, 0));
    assert_eq!(measure("seed = 1\nhost = \"server\""), (0, 1));
    assert_eq!(measure("[repeats]\nseeds = 2"), (1, 1), "the first seed is 1, as it is without repeats");
    assert_eq!(measure("[[axis]]\nkey = \"host.memory.latency\"\nvalues = [\"90ns\", \"95ns\"]"), (2, 0));
}

#[test]
fn a_changed_file_is_a_changed_point_here_too() {
    let bench = Bench::new();
    let profiles = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let copy = |from: &str, to: &str| fs::copy(profiles.join(from), bench.path(to)).unwrap();
    copy("experiment/profiles/server.toml", "host.toml");
    copy("bench/profiles/devices/ideal.toml", "dev.toml");
    copy("analytic/nics/dpdk.toml", "nic.toml");
    bench.write("dev.py", "class Dev: pass\n");
    let studies = [
        "[bench]\ntest = \"lat_rd\"\ncount = 16\nhost = \"host.toml\"",
        "[bench]\ntest = \"lat_rd\"\ncount = 16\ndevice = \"dev.toml\"",
        "[model]\nkind = \"nic\"\nnic = \"nic.toml\"",
    ];
    let fresh = |bench: &Bench| studies.map(|text| made(&done(bench, text)).0);
    assert_eq!(fresh(&bench), [1, 1, 1]);
    assert_eq!(fresh(&bench), [0, 0, 0]);
    for (name, wanted) in [("host.toml", [1, 0, 0]), ("dev.toml", [0, 1, 0]), ("nic.toml", [0, 0, 1])] {
        let text = fs::read_to_string(bench.path(name)).unwrap();
        bench.write(name, &format!("{text}# changed\n"));
        assert_eq!(fresh(&bench), wanted, "{name}");
    }
    let key =
        || run(&sweep(&bench, "[bench]\ntest = \"lat_rd\"\non = \"dev.py:Dev\""), 1).elsewhere[0].key.clone();
    let first = key();
    assert_eq!(key(), first);
    bench.write("dev.py", "class Dev: pass # changed\n");
    assert_ne!(key(), first, "a device in Python is run elsewhere, and counts by what is in its file");
}

#[test]
fn mistakes_in_a_subject_are_reported_with_their_place() {
    let told = [
        ("title = \"x\"", "study.toml: this study has no subject; name one subject: experiment = "),
        (
            "experiment = \"one.toml\"\n[model]\nkind = \"bw\"",
            "study.toml:2: model: this study has two subjects",
        ),
        (
            "[model]\nsize = \"64B\"",
            "study.toml:1: model.kind: kind, the model, is missing; write kind = one of \"bw\", \"nic\", \"lat\", \"nettlp\"",
        ),
        ("[model]\nkind = \"bandwidth\"", "study.toml:2: model.kind: unknown model; expected one of \"bw\""),
        (
            "[model]\nkind = \"bw\"\nsise = \"64B\"",
            "study.toml:3: model.sise: the model bw has no key sise; did you mean size?",
        ),
        (
            "[model]\nkind = \"bw\"\nsize = 64",
            "study.toml:3: model.size: 64 is not a size such as \"256B\"; the unit is missing, as in \"64B\"",
        ),
        (
            "[model]\nkind = \"bw\"\nlink = \"gen9 x8\"",
            "model.link: unsupported generation \"gen9\"; expected gen1 to gen7",
        ),
        ("[model]\nkind = \"bw\"\ncompat = [\"one-skipp\"]", "did you mean \"one-skip\"?"),
        (
            "[model]\nkind = \"bw\"\n[[axis]]\nkey = \"tags\"\nvalues = [1]",
            "study.toml:4: axis.key: the model bw has no key tags",
        ),
        (
            "[model]\nkind = \"bw\"\n[[axis]]\nkey = \"kind\"\nvalues = [\"bw\", \"nic\"]",
            "a study covers one kind of model",
        ),
        (
            "[model]\nkind = \"lat\"\n[[axis]]\nkey = \"rate\"\nvalues = [\"1Gb/s\"]",
            "study.toml:3: axis: \"rate\" is already a column of every data set; give the axis another name",
        ),
        (
            "set = [\"sizze=3\"]\n[model]\nkind = \"bw\"",
            "study.toml:1: set: the model bw has no key sizze; did you mean size?",
        ),
        ("load = \"a.toml\"\n[model]\nkind = \"bw\"", "study.toml:1: load: only experiments have loads"),
        ("verdict = true\n[model]\nkind = \"bw\"", "study.toml:1: verdict: this study has no experiment"),
        (
            "[model]\nkind = \"bw\"\n[repeats]\nseeds = 3",
            "study.toml:4: repeats.seeds: a closed form gives the same result with every seed",
        ),
        (
            "[bench]\ntest = \"lat_rdd\"",
            "bench.test: \"lat_rdd\" is not one of lat_rd, lat_wrrd, bw_rd, bw_wr, bw_rdwr; did you mean \"lat_rd\"?",
        ),
        (
            "[bench]\ntest = \"lat_rd\"\non = \"cuda\"",
            "study.toml:3: bench.on: measurements on a GPU do not repeat",
        ),
        ("[bench]\ntest = \"lat_rd\"\non = \"simulater\"", "unknown target \"simulater\""),
        ("[bench]\ntest = \"lat_rd\"\n[[axis]]\nkey = \"at-once\"\nvalues = [1]", "did you mean at_once?"),
    ];
    for (text, words) in told {
        let said = mistake(text).replace('\n', " ");
        let said =
            said.split_once("/study.toml").map_or(said.clone(), |(_, rest)| format!("study.toml{rest}"));
        assert!(said.contains(words), "{text}\n{said}\n{words}");
    }
    let experiment = mistake(crate::EXPERIMENT);
    assert!(
        experiment.contains("this is an experiment, not a study; run it with `tlplab run"),
        "{experiment}"
    );
}

/// A point that the model refuses is a row, as with experiments: the other points run.
#[test]
fn a_bad_value_of_an_axis_becomes_a_refused_row() {
    let bench = Bench::new();
    let refusals = [
        ("[model]\nkind = \"bw\"", "mps", "\"100B\", \"128B\"", "mps is 100; expected 128"),
        ("[model]\nkind = \"bw\"", "size", "\"0B\", \"1B\"", "size is 0; expected 1"),
        (
            "[model]\nkind = \"nic\"",
            "nic",
            "\"none.toml\", \"dpdk\"",
            "none.toml: there is no such file; name a file, or one of simple, kernel, dpdk",
        ),
        ("[model]\nkind = \"lat\"", "latency", "\"0ns\", \"1ns\"", "latency is 0"),
        (
            "[bench]\ntest = \"bw_rd\"\ncount = 16",
            "window",
            "\"8B\", \"8KiB\"",
            "a window of 8 B is too small for a transfer",
        ),
        (
            "[bench]\ntest = \"bw_rd\"\ncount = 16",
            "link",
            "\"gen9 x8\", \"gen3 x8\"",
            "unsupported generation \"gen9\"",
        ),
        (
            "[bench]\ntest = \"bw_rd\"\ncount = 16",
            "on",
            "\"cuda:1\", \"model\"",
            "measurements on a GPU do not repeat",
        ),
        ("[bench]\ncount = 16", "test", "\"bw_rdd\", \"bw_rd\"", "did you mean \"bw_rd\"?"),
        ("[bench]\ntest = \"bw_rd\"\ncount = 16", "host.memory.latensy", "\"8ns\"", "latensy"),
    ];
    for (head, key, values, words) in refusals {
        let outcome =
            run(&sweep(&bench, &format!("{head}\n[[axis]]\nkey = \"{key}\"\nvalues = [{values}]")), 1);
        assert!(refusal(&outcome.rows[0]).contains(words), "{}", refusal(&outcome.rows[0]));
        assert!(outcome.rows[1..].iter().all(|row| matches!(row.came, Came::Ran(_))), "{outcome:?}");
    }
    assert_eq!(
        count(&bench.path("store")),
        6,
        "two of the eight are said to be what a benchmark is in any case"
    );
}
