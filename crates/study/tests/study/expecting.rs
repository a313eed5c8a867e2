//! What an experiment says that its figures have to be.

use crate::{Bench, EXPERIMENT};
use tlplab_experiment::Experiment;
use tlplab_study::expect;
use tlplab_study::figures::Metrics;

fn read(expect: &str) -> Result<Vec<expect::Expectation>, String> {
    let text = format!("{EXPERIMENT}\n[expect]\n{expect}");
    let experiment =
        Experiment::parse(&|_| Ok(text.clone()), "one.toml").map_err(|error| error.to_string())?;
    expect::read(&experiment)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn comparisons_are_judged_by_the_figures() {
    let metrics = Metrics::from([
        ("ssd.throughput".to_owned(), 28e9),
        ("ssd.latency.p99".to_owned(), 1500.0),
        ("lanes".to_owned(), 4.0),
    ]);
    let judged = |text: &str| {
        let all = read(text).unwrap_or_else(|error| panic!("{error}"));
        all.iter().map(|one| one.judge(&metrics)).collect::<Vec<_>>()
    };
    let holds = |text: &str| judged(text).iter().map(|one| one.holds).collect::<Vec<_>>();
    assert_eq!(holds("ssd.throughput = \">= 28 Gb/s\""), [true]);
    assert_eq!(holds("ssd.throughput = \"> 28 Gb/s\""), [false]);
    assert_eq!(holds("ssd.latency.p99 = [\"> 1 us\", \"< 1.5us\", \"< 2 us\"]"), [true, false, true]);
    assert_eq!(
        holds("[expect.ssd]\nthroughput = \">= 28 Gb/s\"\nlatency = { p99 = \"< 2us\" }"),
        [true, true]
    );
    assert_eq!(
        holds("'ssd.throughput / lanes' = \"== 7 Gb/s\"\n'ssd.throughput + 1 Gb/s' = \"> 28 Gb/s\""),
        [true, true]
    );
    let missing = &judged("sd.throughput = \">= 1 Gb/s\"")[0];
    assert!(!missing.holds);
    assert_eq!((missing.figures[0].1, missing.meant.as_deref()), (None, Some("ssd.throughput")));
    assert_eq!(missing.text, "sd.throughput >= 1 Gb/s");
}

#[test]
fn mistakes_point_at_their_lines() {
    for (text, told) in [
        (
            "ssd.throughput = \"90\"",
            "one.toml:11: expect.ssd.throughput: in \"ssd.throughput 90\", column 16: an operator is missing",
        ),
        (
            "ssd.throughput = \">= 90\"",
            "one.toml:11: expect.ssd.throughput: in \"ssd.throughput >= 90\", column 16: >= cannot combine a number of b/s",
        ),
        ("ssd.thruput = \">= 90 Gb/s\"", "did you mean ssd.throughput?"),
        ("lanes = \"+ 3\"", "is a plain number, not a comparison; begin with <"),
        ("lanes = 4", "one.toml:11: expect.lanes: the integer 4 is not a comparison; write it in quotes"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(told), "{text}\n{error}");
    }
    let both = read("lanes = \"<\"\nerrors = \"<\"").unwrap_err();
    assert_eq!(both.lines().count(), 2, "{both}");
    let wrong = Experiment::parse(&|_| Ok(EXPERIMENT.replace("[device", "expect = 3\n[device")), "one.toml")
        .unwrap_err()
        .to_string();
    assert!(wrong.contains("expect: expected a table of figures"), "{wrong}");
}

#[test]
fn expectations_and_titles_are_no_part_of_a_points_key() {
    let bench = Bench::new();
    assert_eq!(bench.run("").progress.made, 1);
    bench.write(
        "one.toml",
        &format!("{}\n[expect]\nlanes = \"== 4\"\n", EXPERIMENT.replace("\"one\"", "\"another\"")),
    );
    assert_eq!(bench.run("").progress.known, 1);
}
