//! Threads, parts, repeats and interruptions make no difference to the rows.

use crate::{Bench, count, figure, run};
use tlplab_study::pareto::Objective;
use tlplab_study::runner::Came;
use tlplab_study::{Named, Progress, Sweep};

const STUDY: &str = r#"
metrics = ["throughput", "for each lane = throughput / lanes"]
[[axis]]
key = "device.ssd.link"
name = "link"
values = ["gen3 x4", "gen3 x8", "gen9 x8"]
[[axis]]
key = "load.ssd.size"
from = "512B"
to = "4KiB"
factor = 2
[[filter]]
name = "whole pages"
keep = "load.ssd.size != 1KiB"
"#;

#[test]
fn rows_are_the_same_on_any_number_of_threads_and_in_parts() {
    let study = STUDY.replace("for each lane =", "lane =");
    let table = |threads: usize| {
        let bench = Bench::new();
        let sweep = bench.sweep(&study);
        sweep.table(&run(&sweep, threads).rows)
    };
    let one = table(1);
    assert_eq!(one, table(2));
    assert_eq!(one, table(7));
    let names: Vec<&str> = one.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names[..8], ["point", "link", "load.ssd.size", "repeat", "seed", "kind", "message", "lane"]);
    assert!(names.contains(&"ssd.latency.p99") && !names.contains(&"limit"));
    let unit = |name: &str| one.columns.iter().find(|column| column.name == name).unwrap().unit.clone();
    assert_eq!(
        [unit("ssd.latency.p99"), unit("load.ssd.size"), unit("lane")].map(Option::unwrap),
        ["ns", "B", "b/s"]
    );
    let bench = Bench::new();
    let part = |part: usize| run(&Sweep { shard: (part, 2), ..bench.sweep(&study) }, 1);
    let (first, second) = (part(0), part(1));
    assert_eq!((first.rows.len(), second.rows.len()), (5, 4), "nine of twelve points are kept");
    let sweep = bench.sweep(&study);
    let merged = run(&sweep, 1);
    assert_eq!(
        merged.progress,
        Progress { done: 9, of: 9, known: 6, made: 0 },
        "what is refused is never kept"
    );
    assert_eq!(sweep.table(&merged.rows), one);
    let mut joined = [first.rows, second.rows].concat();
    joined.sort_by_key(|row| row.point);
    assert_eq!(joined, merged.rows);
}

#[test]
fn a_bad_value_becomes_a_refused_row() {
    let bench = Bench::new();
    let outcome = bench.run(&STUDY.replace("for each lane =", "lane ="));
    let refused: Vec<_> = outcome
        .rows
        .iter()
        .filter_map(|row| match &row.came {
            Came::Refused(why) => Some((row.point, why.clone())),
            Came::Ran(_) => None,
        })
        .collect();
    assert_eq!(refused.iter().map(|(point, _)| *point).collect::<Vec<_>>(), [8, 10, 11]);
    assert!(refused[0].1.contains("device.ssd.link") && refused[0].1.contains("gen9"), "{}", refused[0].1);
    let bench = Bench::new();
    let outcome = bench.run(
        "[repeats]\nseeds = 4\n[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen9 x4\", \"gen3 x4\"]",
    );
    assert_eq!(outcome.rows.len(), 5, "it is told once, however many seeds it has");
}

#[test]
fn a_failed_run_is_a_row_and_is_kept() {
    let bench = Bench::new();
    let card = |name: &str, port: u8| {
        format!(
            "[device.{name}]\nunder = \"host.rp{port}\"\nlink = \"gen3 x1\"\nmodel = \"nettlp-card\"\nwindow = \"256MiB\"\n"
        )
    };
    let head = "title = \"t\"\nstop = \"20us\"\n[load]\na = { op = \"write\", size = \"64B\" }\n";
    bench.write("one.toml", &format!("{head}{}{}", card("a", 0), card("b", 1)));
    for known in [0, 1] {
        let sweep = bench.sweep("");
        let outcome = run(&sweep, 1);
        assert_eq!(outcome.progress, Progress { done: 1, of: 1, known, made: 1 - known });
        let Came::Ran(record) = &outcome.rows[0].came else { panic!("{outcome:?}") };
        assert!(record.failure.as_ref().unwrap().contains("no address below 4 GiB"), "{record:?}");
        let summary = &sweep.summaries(&outcome.rows, &Named::parse_list("throughput").unwrap())[0];
        assert_eq!(
            (summary.runs, summary.trouble.as_ref().unwrap().0, &summary.means),
            (0, "failed", &vec![None])
        );
    }
}

/// A NIC whose receive buffer overflows loses frames, and then waits for them.
#[test]
fn a_run_that_gets_nowhere_has_failed() {
    let bench = Bench::new();
    let nic = "title = \"t\"\nhost = \"server\"\n[device.nic]\nunder = \"host.rp0\"\nlink = \"gen1 x1\"\nmodel = \"nic\"\ndirection = \"receive\"\nrequests = 300\n";
    bench.write("one.toml", nic);
    let outcome = bench.run("[[axis]]\nkey = \"device.nic.ethernet\"\nvalues = [\"1Gb/s\", \"100Gb/s\"]");
    let failures: Vec<_> = outcome
        .rows
        .iter()
        .map(|row| match &row.came {
            Came::Ran(record) => record.failure.clone(),
            Came::Refused(why) => panic!("{why}"),
        })
        .collect();
    assert_eq!(failures[0], None);
    assert!(
        failures[1].as_ref().unwrap().starts_with("the run made no progress: no transaction has ended since"),
        "{failures:?}"
    );
}

#[test]
fn figures_of_a_study_match_the_hand_calculation() {
    let bench = Bench::new();
    let outcome = bench.run("");
    let row = &outcome.rows[0];
    // By hand: Gen3 x4 carries 31.5077 Gb/s after 128b/130b; of 280 bytes of a TLP 256 are payload, in 375 of 376 blocks: 28.73 Gb/s, of
    // which the first 150 ns or so carry nothing.
    assert!((28.4e9..28.74e9).contains(&figure(row, "throughput")), "{}", figure(row, "throughput"));
    assert_eq!(figure(row, "throughput"), figure(row, "ssd.throughput"));
    assert_eq!(figure(row, "lanes"), 4.0);
    assert_eq!(figure(row, "span"), 20_000.0);
    // The last transfers have arrived in part.
    assert!((0.97..=1.0).contains(&(figure(row, "rate") * 4096.0 * 8.0 / figure(row, "throughput"))));
    assert!(figure(row, "ssd.up.utilisation") > 0.99 && figure(row, "ssd.down.utilisation") < 0.2);
    let shares: f64 = match &row.came {
        Came::Ran(record) => record
            .metrics
            .iter()
            .filter(|(name, _)| name.starts_with("ssd.share."))
            .map(|(_, share)| share)
            .sum(),
        Came::Refused(why) => panic!("{why}"),
    };
    assert!((shares - 1.0).abs() < 1e-9, "causes share all of the latency: {shares}");
}

#[test]
fn repeats_end_when_the_mean_is_known() {
    let bench = Bench::new();
    let sure = bench.run("[repeats]\nseeds = 20\nfirst = 5\nuntil = \"throughput within 1%\"");
    let seeds: Vec<_> = sure.rows.iter().map(|row| row.seed.unwrap()).collect();
    assert_eq!(seeds, [5, 6, 7], "what is always the same is known after three");
    assert_eq!(sure.progress, Progress { done: 3, of: 3, known: 0, made: 3 });
    let all = bench.run("[repeats]\nseeds = 4");
    assert_eq!(all.rows.iter().map(|row| row.seed.unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn an_interrupted_study_keeps_its_finished_points() {
    let bench = Bench::new();
    let text = "[repeats]\nseeds = 12";
    let mut calls = 0;
    let outcome = bench
        .sweep(text)
        .run(1, &mut |progress| {
            calls += 1;
            progress.done < 3
        })
        .unwrap();
    assert!(outcome.interrupted && calls > 0);
    let kept = outcome.progress.done;
    assert!((3..12).contains(&kept), "{kept}");
    assert_eq!(count(&bench.path("store")), kept, "nothing half");
    let rest = bench.run(text);
    assert_eq!(rest.progress, Progress { done: 12, of: 12, known: kept, made: 12 - kept });
}

#[test]
fn a_verdict_is_a_column_only_if_it_is_asked() {
    let bench = Bench::new();
    let sweep = bench.sweep("verdict = true");
    let rows = run(&sweep, 1).rows;
    let table = sweep.table(&rows);
    assert!(table.columns.iter().any(|column| column.name == "limit"));
    assert_eq!(sweep.summaries(&rows, &[])[0].limit.as_deref(), Some("link ssd → host.rp0"));
}

#[test]
fn figures_are_of_something() {
    let bench = Bench::new();
    let sweep = bench.sweep("");
    let rows = run(&sweep, 1).rows;
    let told = |text: &str| {
        sweep.check_figures(&rows, &Named::parse_list(text).unwrap()).map_err(|error| error.to_string())
    };
    assert_eq!(told("throughput, ssd.latency.p99"), Ok(()));
    let error = told("throughput / sd.throughput").unwrap_err();
    assert!(error.ends_with("in \"throughput / sd.throughput\", column 14: no point has sd.throughput; did you mean ssd.throughput?"), "{error}");
    assert!(Objective::parse_list("throughput,ssd.latency.p99,lanes").is_ok());
}

#[test]
fn an_unwritable_store_is_reported() {
    let bench = Bench::new();
    bench.write("store", "a file");
    let error = bench.sweep("").run(1, &mut |_| true).unwrap_err();
    assert!(error.contains("store") && error.contains("cannot make the folder"), "{error}");
}

#[test]
fn a_finding_is_held_against_the_points() {
    let bench = Bench::new();
    let study = |holds: &str, more: &str| {
        format!(
            "[[axis]]\nkey = \"device.ssd.link\"\nname = \"link\"\nvalues = [\"gen3 x4\", \"gen3 x8\", \"gen9 x1\"]\n\
             [finding]\nsays = \"Twice the lanes carry {{times}} times as much.\"\nholds = \"{holds}\"\n[finding.figures]\n\
             narrow = {{ of = \"throughput\", where = \"link == 'gen3 x4'\" }}\n\
             wide = {{ of = \"throughput\", where = \"link == 'gen3 x8'\" }}\n\
             least = {{ of = \"lanes\", where = \"true\", take = \"least\" }}\n\
             most = {{ of = \"lanes\", where = \"true\", take = \"most\" }}\n\
             times = {{ from = \"wide / narrow\" }}\n{more}"
        )
    };
    let found = |text: &str| {
        let sweep = bench.sweep(text);
        sweep.finding(&run(&sweep, 1).rows).unwrap()
    };
    let yes = found(&study("times > 1.9 and times < 2.1 and most / least == 2", "")).unwrap();
    assert!(yes.holds && (yes.figures["times"].0 - 2.0).abs() < 0.1);
    assert!(!found(&study("times > 2.1", "")).unwrap().holds);
    let several = found(&study("times > 2", "all = { of = \"lanes\", where = \"link != 'x'\" }\n"))
        .unwrap_err()
        .to_string();
    assert!(several.contains("finding.figures.all: 2 points match link != 'x'"), "{several}");
    let none = found(&study("times > 2", "none = { of = \"lanes\", where = \"link == 'gen9 x1'\" }\n"))
        .unwrap_err()
        .to_string();
    assert!(none.contains("no point that matches link == 'gen9 x1' has lanes"), "{none}");
    assert!(bench.sweep("").finding(&[]).is_none());
}
