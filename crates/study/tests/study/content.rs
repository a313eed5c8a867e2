//! A changed file is a changed point, and another point is not.

use crate::{Bench, count, run};
use std::fs;
use std::path::Path;
use tlplab_study::Build;
use tlplab_study::runner::Came;

const TRACE: &str = "# tlplab trace 1\ntime_ns,op,address,bytes,requester,tag,attributes\n0,write,0x1000,64,19:00.0,1,\n100,write,0x2000,64,19:00.0,2,\n";

/// How many runs of this study are not known, as a second store with the first's results tells: it makes them.
fn fresh(bench: &Bench, text: &str) -> usize {
    let outcome = bench.run(text);
    for row in &outcome.rows {
        assert!(matches!(&row.came, Came::Ran(record) if record.failure.is_none()), "{row:?}");
    }
    outcome.progress.done - outcome.progress.known
}

#[test]
fn a_finished_point_is_never_run_again() {
    let bench = Bench::new();
    let two = "[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen3 x4\", \"gen3 x8\"]";
    assert_eq!(fresh(&bench, two), 2);
    assert_eq!(fresh(&bench, two), 0);
    assert_eq!(count(&bench.path("store")), 2);
    let three = "[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen3 x8\", \"gen4 x4\", \"gen3 x4\"]";
    assert_eq!(fresh(&bench, three), 1, "studies share points, in whatever order");
    assert_eq!(fresh(&bench, "set = [\"device.ssd.link=gen4 x4\"]"), 0, "however a point is said");
    bench.write("one.toml", &crate::EXPERIMENT.replace("stop =", "# a comment\nstop ="));
    assert_eq!(fresh(&bench, three), 0, "the experiment counts as what it comes to");
    bench.write("one.toml", &crate::EXPERIMENT.replace("20us", "21us"));
    assert_eq!(fresh(&bench, three), 3);
}

#[test]
fn the_seed_the_build_and_the_verdict_count() {
    let bench = Bench::new();
    assert_eq!(fresh(&bench, "[repeats]\nseeds = 2"), 2);
    assert_eq!(fresh(&bench, "[repeats]\nseeds = 3"), 1);
    assert_eq!(fresh(&bench, ""), 0, "the experiment's own seed is 1");
    assert_eq!(fresh(&bench, "set = [\"seed=9\"]"), 1);
    assert_eq!(fresh(&bench, "verdict = true"), 1);
    let mut sweep = bench.sweep("");
    sweep.build = Build { python: "other".into(), ..sweep.build };
    assert_eq!(run(&sweep, 1).progress.known, 1, "nothing of it is in Python");
    sweep.build = Build { simulator: "other".into(), ..sweep.build };
    assert_eq!(run(&sweep, 1).progress.known, 0);
}

/// Each file that an experiment names is changed in turn, by a comment or by what it says. Two points name it, the third does not.
#[test]
fn a_changed_file_is_a_changed_point() {
    let bench = Bench::new();
    bench.write("loads.toml", "[load]\nssd = { op = \"write\", size = \"4KiB\" }\n");
    bench.write("base.toml", "[device.other]\nunder = \"host.rp1\"\nlink = \"gen3 x4\"\n");
    bench.write("trace.csv", TRACE);
    fs::write(bench.path("host.toml"), fs::read_to_string(profile("server.toml")).unwrap()).unwrap();
    let with_host = "set = [\"host.profile=host.toml\"]\n[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen3 x4\", \"gen3 x8\"]";
    let with_trace = "set = ['load.ssd={ replay = \"trace.csv\" }']\n[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen3 x4\", \"gen3 x8\"]";
    let with_load = "load = \"loads.toml\"";
    let alone = "[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen3 x4\"]";
    let included = format!("include = \"base.toml\"\n{}", crate::EXPERIMENT);
    bench.write("including.toml", &included);
    let all = |bench: &Bench| {
        let mut found = [with_host, with_trace, with_load, alone].map(|text| fresh(bench, text)).to_vec();
        let including = bench.sweep(alone);
        let experiment = bench.path("including.toml").to_str().unwrap().to_owned();
        let subject = tlplab_study::Subject::Experiment { path: experiment, load: None };
        let study = tlplab_study::Study { subject, ..including.study };
        let sweep = tlplab_study::Sweep { study, ..including };
        let outcome = run(&sweep, 1);
        found.push(outcome.progress.done - outcome.progress.known);
        found
    };
    assert_eq!(all(&bench), [2, 2, 1, 1, 1]);
    assert_eq!(all(&bench), [0, 0, 0, 0, 0]);
    let change = |name: &str, more: &str| {
        let text = fs::read_to_string(bench.path(name)).unwrap();
        bench.write(name, &format!("{text}{more}"));
    };
    change("host.toml", "# changed\n");
    assert_eq!(all(&bench), [2, 0, 0, 0, 0]);
    change("trace.csv", "200,write,0x3000,64,19:00.0,3,\n");
    assert_eq!(all(&bench), [0, 2, 0, 0, 0]);
    change("loads.toml", "# changed\n");
    assert_eq!(all(&bench), [0, 0, 1, 0, 0]);
    change("base.toml", "# changed\n");
    assert_eq!(all(&bench), [0, 0, 0, 0, 1]);
}

fn profile(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiment/profiles").join(name)
}

/// A device in Python is not run here, but its file counts all the same; so does a library, which has to be a file before it is one.
#[test]
fn files_with_code_count() {
    let bench = Bench::new();
    bench.write("mydev.py", "class Copier: pass\n");
    bench.write("one.toml", "title = \"t\"\nstop = \"1us\"\n[device.d]\nunder = \"host.rp0\"\nlink = \"gen3 x4\"\nmodel = \"mydev.py:Copier\"\n");
    let key = |bench: &Bench| run(&bench.sweep(""), 1).elsewhere[0].key.clone();
    let first = key(&bench);
    assert_eq!(key(&bench), first);
    bench.write("mydev.py", "class Copier: pass # changed\n");
    assert_ne!(key(&bench), first);
    for model in ["lib:dev.so", "rtl:core.so"] {
        bench.write("one.toml", &format!("title = \"t\"\nstop = \"1us\"\n[device.d]\nunder = \"host.rp0\"\nlink = \"gen3 x4\"\nmodel = \"{model}\"\n"));
        let outcome = bench.run("");
        let Came::Refused(why) = &outcome.rows[0].came else { panic!("{outcome:?}") };
        assert!(why.contains("device.d.model: cannot use") && why.contains("there is no such file"), "{why}");
    }
}

/// A file that is changed between the reading of the study and the end of a run would put a wrong result under a key.
#[test]
fn a_file_that_changes_meanwhile_is_noticed() {
    let bench = Bench::new();
    bench.write("mydev.py", "class Copier: pass\n");
    bench.write("one.toml", "title = \"t\"\nstop = \"1us\"\n[device.d]\nunder = \"host.rp0\"\nlink = \"gen3 x4\"\nmodel = \"mydev.py:Copier\"\n");
    let sweep = bench.sweep("");
    let elsewhere = run(&sweep, 1).elsewhere[0].clone();
    let record = tlplab_study::Record::default().write();
    assert!(sweep.keep(&elsewhere, b"junk").unwrap_err().contains("not a record"));
    bench.write("mydev.py", "class Copier: pass # changed\n");
    assert!(sweep.keep(&elsewhere, &record).unwrap_err().contains("mydev.py changed while the study ran"));
    assert_eq!(count(&bench.path("store")), 0);
    bench.write("mydev.py", "class Copier: pass\n");
    let sweep = bench.sweep("");
    let elsewhere = run(&sweep, 1).elsewhere[0].clone();
    assert_eq!(sweep.keep(&elsewhere, &record), Ok(None));
    assert_eq!(run(&sweep, 1).progress.known, 1);
}

/// The store's file with this ending: there is one.
fn the_file(bench: &Bench, ending: &str) -> std::path::PathBuf {
    let entries = fs::read_dir(bench.path("store")).unwrap().map(|entry| entry.unwrap().path());
    let mut found = entries.filter(|path| path.extension().is_some_and(|of| of == ending));
    let file = found.next().unwrap();
    assert_eq!(found.next(), None);
    file
}

#[test]
fn broken_records_in_the_store_are_run_again() {
    let bench = Bench::new();
    assert_eq!(fresh(&bench, ""), 1);
    let whole = fs::read(the_file(&bench, "pack")).unwrap();
    for broken in [&b""[..], &whole[..whole.len() - 1], b"junk"] {
        fs::remove_dir_all(bench.path("store")).unwrap();
        fs::create_dir(bench.path("store")).unwrap();
        fs::write(bench.path("store/broken.pack"), broken).unwrap();
        assert_eq!(fresh(&bench, ""), 1);
        assert_eq!(fresh(&bench, ""), 0);
    }
}

/// The kept keys of a study's points equal the keys that follow from their experiments.
#[test]
fn kept_keys_hold_for_their_files_and_study_only() {
    let bench = Bench::new();
    let study = "[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen3 x4\", \"gen9 x8\", \"gen3 x8\"]\n[repeats]\nseeds = 2";
    let rows = bench.run(study).rows;
    let kept = the_file(&bench, "keys");
    let whole = fs::read(&kept).unwrap();
    let again = |bench: &Bench| {
        let outcome = bench.run(study);
        assert_eq!((&outcome.rows, outcome.progress.known), (&rows, 4));
    };
    again(&bench);
    // Whatever happens to the keys, rows are the same.
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        fs::write(&kept, if at % 2 == 0 { &changed[..] } else { &whole[..at] }).unwrap();
        again(&bench);
    }
    // A key of which the result is gone is one whose run is made.
    let pack = the_file(&bench, "pack");
    fs::remove_file(pack).unwrap();
    let outcome = bench.run(study);
    assert_eq!((&outcome.rows, outcome.progress.made), (&rows, 4));
    // The same points with another value, and the same value in another experiment.
    let other = bench.run(&study.replace("gen9 x8", "gen3 x2"));
    assert_eq!(other.progress.made, 2);
    bench.write("one.toml", &crate::EXPERIMENT.replace("20us", "21us"));
    assert_eq!(bench.run(study).progress.made, 4);
}

/// A file that was not there is one that may be there now.
#[test]
fn a_point_that_was_refused_for_want_of_a_file_runs_when_the_file_is_there() {
    let bench = Bench::new();
    let study = "set = ['load.ssd={ replay = \"trace.csv\" }']";
    for _ in 0..2 {
        let outcome = bench.run(study);
        assert!(matches!(&outcome.rows[0].came, Came::Refused(why) if why.contains("there is no such file")));
    }
    bench.write("trace.csv", TRACE);
    assert_eq!(fresh(&bench, study), 1);
    fs::remove_file(bench.path("trace.csv")).unwrap();
    assert!(matches!(&bench.run(study).rows[0].came, Came::Refused(_)));
}

#[test]
fn a_medium_in_a_file_is_refused() {
    let bench = Bench::new();
    bench.write("one.toml", "title = \"t\"\nstop = \"1us\"\n[device.d]\nunder = \"host.rp0\"\nlink = \"gen3 x4\"\nmodel = \"nvme\"\nfile = \"disk.img\"\nsize = \"1MiB\"\n[device.dma]\nunder = \"host.rp1\"\nlink = \"gen3 x4\"\n[load]\ndma = { op = \"write\", size = \"64B\" }\n");
    let outcome = bench.run("");
    let Came::Refused(why) = &outcome.rows[0].came else { panic!("{outcome:?}") };
    assert!(why.contains("leave it out"), "{why}");
}
