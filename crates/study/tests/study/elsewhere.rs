//! What is made elsewhere is what would be made here, or it is refused.

use crate::{Bench, run};
use std::fs;
use tlplab_study::{Build, Elsewhere, Made, Maker, Sweep};

fn build() -> Build {
    Build { simulator: "this".into(), python: "that".into() }
}

/// Makes all runs as somebody elsewhere does, who gets them as text, until there are none; how many.
fn make_all(sweep: &Sweep) -> usize {
    let mut waiting = run(sweep, 2).elsewhere;
    let maker = Maker::new(build());
    let mut count = 0;
    while let Some(one) = waiting.pop() {
        let one = Elsewhere::read(&one.write()).unwrap();
        let Made::Ran(record) = maker.make(&one) else { panic!("{one:?}") };
        waiting.extend(sweep.keep(&one, &record.write()).unwrap());
        count += 1;
    }
    count
}

#[test]
fn rows_are_the_same_wherever_they_are_made() {
    let noisy = "set = [\"host=xeon-e5-2637v3\", \"load.ssd.op=read\"]\n[repeats]\nseeds = 12\nuntil = \"latency.mean within 5%\"\n[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen3 x4\", \"gen9 x4\", \"gen3 x8\"]\n";
    let verdict = "verdict = true\n[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen3 x4\"]\n";
    for text in [noisy, verdict] {
        let (here, there) = (Bench::new(), Bench::new());
        let (here, mut there) = (here.sweep(text), there.sweep(text));
        let outcome = run(&here, 2);
        there.all_elsewhere = true;
        let count = make_all(&there);
        assert_eq!(count, outcome.progress.made, "as many repeats as are made here");
        let again = run(&there, 2);
        assert_eq!((again.elsewhere.len(), again.progress.known), (0, count));
        assert_eq!(there.table(&again.rows), here.table(&outcome.rows));
    }
}

#[test]
fn models_and_benchmarks_are_made_elsewhere_too() {
    for text in [
        "[model]\nkind = \"nic\"\nnic = \"nic.toml\"\n[[axis]]\nkey = \"frame\"\nfrom = \"64B\"\nto = \"1518B\"\nsteps = 5",
        "[bench]\ntest = \"lat_rd\"\ncount = 16\n[[axis]]\nkey = \"size\"\nvalues = [\"8B\", \"64B\"]",
    ] {
        let bench = Bench::new();
        let nic = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../analytic/nics/dpdk.toml");
        fs::copy(nic, bench.path("nic.toml")).unwrap();
        let sweep = Sweep { all_elsewhere: true, ..bench.sweep_of(bench.read(text).unwrap()) };
        let count = make_all(&sweep);
        let kept = run(&sweep, 1);
        assert_eq!((kept.progress.known, kept.elsewhere.len()), (count, 0));
        let other = Bench::new();
        fs::copy(bench.path("nic.toml"), other.path("nic.toml")).unwrap();
        assert_eq!(run(&other.sweep_of(other.read(text).unwrap()), 1).rows, kept.rows);
    }
}

/// With any difference between there and here nothing is made, and the difference is named.
#[test]
fn a_worker_with_differing_files_or_build_refuses() {
    let bench = Bench::new();
    bench.write("base.toml", crate::EXPERIMENT);
    bench.write("one.toml", "include = \"base.toml\"\n");
    bench.write("loads.toml", "[load]\nssd = { op = \"write\", size = \"4KiB\" }\n");
    let mut sweep = bench.sweep("load = \"loads.toml\"");
    sweep.all_elsewhere = true;
    let one = run(&sweep, 1).elsewhere.swap_remove(0);
    let differs = |build: Build| match Maker::new(build).make(&one) {
        Made::Differs(why) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(differs(Build { simulator: "other".into(), ..build() }), "its build of tlplab differs");
    let python = Build { python: "other".into(), ..build() };
    assert!(matches!(Maker::new(python).make(&one), Made::Ran(_)), "nothing of it is in Python");
    for name in ["loads.toml", "base.toml"] {
        let text = fs::read_to_string(bench.path(name)).unwrap();
        bench.write(name, &format!("{text}# changed\n"));
        let why = differs(build());
        assert!(why.ends_with(&format!("{name} is a different file there")), "{why}");
        fs::remove_file(bench.path(name)).unwrap();
        let why = differs(build());
        assert!(why.contains(name) && why.contains("there is no such file"), "{why}");
        bench.write(name, &text);
    }
    bench.write("one.toml", "include = \"base.toml\"\nseed = 3\n");
    assert_eq!(differs(build()), "the experiment resolves to different settings there");
    bench.write("one.toml", "include = \"base.toml\"\n# a comment\n");
    assert!(matches!(Maker::new(build()).make(&one), Made::Ran(_)), "it counts as what it comes to");
    assert_eq!(Elsewhere::read("junk"), None);
}
