//! What axes make, and what is said of those that make nothing.

use crate::Bench;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tlplab_study::{Study, Subject};

fn read(text: &str) -> Result<Study, String> {
    let text = format!("experiment = \"one.toml\"\n{text}");
    let read = |path: &str| match path {
        "study.toml" => Ok(text.clone()),
        "points.csv" => Ok("a.b,c\n1,gen4 x4\n2,\"gen4, x8\"\n".to_owned()),
        "ragged.csv" => Ok("a,b\n1\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    };
    Study::read("study.toml", &read).map_err(|error| error.to_string())
}

/// What the points of a study set.
fn set(text: &str) -> Vec<String> {
    let study = read(text).unwrap_or_else(|error| panic!("{error}"));
    study.points().kept.iter().map(|point| study.overrides(point).join(" ")).collect()
}

fn axis(text: &str) -> Vec<String> {
    set(&format!("[[axis]]\nkey = \"k\"\n{text}"))
}

#[test]
fn lists_and_ranges_are_steps() {
    assert_eq!(
        axis("values = [\"gen4 x4\", 3, 0.5, true, { a = 1 }]"),
        ["k=\"gen4 x4\"", "k=3", "k=0.5", "k=true", "k={ \"a\" = 1 }"]
    );
    assert_eq!(axis("from = 1\nto = 9\nsteps = 3"), ["k=1", "k=5", "k=9"]);
    assert_eq!(axis("from = 0.5\nto = 1.5\nby = 0.5"), ["k=0.5", "k=1.0", "k=1.5"]);
    assert_eq!(
        axis("from = \"5Gb/s\"\nto = \"12Gb/s\"\nby = \"2.5Gb/s\""),
        ["k=\"5Gb/s\"", "k=\"7500Mb/s\"", "k=\"10Gb/s\""]
    );
    assert_eq!(
        axis("from = \"512B\"\nto = \"4KiB\"\nfactor = 2"),
        ["k=\"512B\"", "k=\"1KiB\"", "k=\"2KiB\"", "k=\"4KiB\""]
    );
    assert_eq!(axis("from = 1\nto = 1000\nsteps = 4\nscale = \"log\""), ["k=1", "k=10", "k=100", "k=1000"]);
    assert_eq!(axis("from = \"0ns\"\nto = \"1us\"\nsteps = 3"), ["k=\"0fs\"", "k=\"500ns\"", "k=\"1us\""]);
}

#[test]
fn axes_are_crossed_and_keys_of_one_axis_are_zipped() {
    let crossed = "[[axis]]\nkey = \"a\"\nvalues = [1, 2]\n[[axis]]\nkey = \"b\"\nvalues = [3, 4]";
    assert_eq!(set(crossed), ["a=1 b=3", "a=1 b=4", "a=2 b=3", "a=2 b=4"]);
    assert_eq!(set("[[axis]]\nkeys = [\"a\", \"b\"]\nvalues = [[1, 3], [2, 4]]"), ["a=1 b=3", "a=2 b=4"]);
    let one = "[[axis]]\nkey = \"a\"\nvalues = [1, 2]\n[[axis]]\nkey = \"b\"\nvalues = [3]\n[[axis]]\nkey = \"c\"\nvalues = [4, 5]";
    assert_eq!(set(one), ["a=1 b=3 c=4", "a=1 b=3 c=5", "a=2 b=3 c=4", "a=2 b=3 c=5"]);
    let named = "[[axis]]\nkeys = [\"a\", \"b\"]\nnames = [\"packet\", \"\"]\nvalues = [[1, 3], [2, 4]]";
    let study = read(named).unwrap();
    assert_eq!(study.columns().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["packet"]);
    assert_eq!(set(named), ["a=1 b=3", "a=2 b=4"]);
    assert_eq!(
        set("[[axis]]\nkeys = [\"a\", \"b\"]\nname = \"both\"\nvalues = [1, 2]"),
        ["a=1 b=1", "a=2 b=2"]
    );
    assert_eq!(
        set("set = [\"z=1\"]\n[[axis]]\ncsv = \"points.csv\""),
        ["z=1 a.b=1 c=\"gen4 x4\"", "z=1 a.b=2 c=\"gen4, x8\""]
    );
    let like_a_metric = "[[axis]]\nkey = \"load.nic.rate\"\nvalues = [\"5Gb/s\"]";
    assert_eq!(set(like_a_metric), ["load.nic.rate=\"5Gb/s\""]);
    assert_eq!(set("set = [\"z=1\"]"), ["z=1"], "without axes there is one point");
}

#[test]
fn filters_have_names_and_count() {
    let text = "[[axis]]\nkey = \"d.mps\"\nname = \"mps\"\nvalues = [\"128B\", \"256B\", \"512B\"]\n[[axis]]\nkey = \"d.mrrs\"\nvalues = [\"128B\", \"256B\"]\n\
        [[filter]]\nname = \"reads are no smaller\"\nkeep = \"mps <= d.mrrs\"\n[[filter]]\nname = \"small\"\nkeep = \"not (mps == 128B and d.mrrs == 128B)\"";
    let points = read(text).unwrap().points();
    assert_eq!(points.left_out, [("reads are no smaller".to_owned(), 3), ("small".to_owned(), 1)]);
    assert_eq!(
        points.kept.iter().map(|point| point.number).collect::<Vec<_>>(),
        [1, 3],
        "numbers are of all that are crossed"
    );
}

#[test]
fn mistakes_in_axes_are_reported_with_place_and_fix() {
    let told = |text: &str| read(text).expect_err(text);
    let of_axis = |text: &str| told(&format!("[[axis]]\nkey = \"k\"\n{text}"));
    for (text, place, words) in [
        ("", "study.toml:2:", "has no values"),
        ("values = []", "study.toml:4:", "the list is empty"),
        ("values = [1]\nfrom = 1", "study.toml:4:", "values and a range"),
        ("from = 1\nto = 1\nsteps = 2", "study.toml:5:", "this is not above from"),
        ("from = 1\nto = \"2us\"\nsteps = 2", "study.toml:5:", "of different kinds"),
        ("from = 1\nto = 3\nsteps = 4", "study.toml:6:", "this many steps repeat values"),
        ("from = 1\nto = 3", "study.toml:2:", "one of steps, by and factor"),
        ("from = 1\nto = 3\nby = 0", "study.toml:6:", "not a step between values"),
        ("from = 1\nto = 3\nfactor = 1", "study.toml:6:", "not above 1"),
        ("from = 0\nto = 3\nsteps = 2\nscale = \"log\"", "study.toml:7:", "cannot begin at 0"),
        ("from = 1\nto = 3\nsteps = 2\nscale = \"cubic\"", "study.toml:7:", "unknown scale"),
        ("from = true\nto = 3\nsteps = 2", "study.toml:4:", "not a number"),
        ("values = [1]\nnmae = \"x\"", "study.toml:5:", "unknown field"),
        ("values = [1]\nname = \"throughput\"", "study.toml:2:", "column of every data set"),
        (
            "values = [1]\n[[axis]]\nkey = \"k\"\nname = \"other\"\nvalues = [2]",
            "study.toml:5:",
            "k is set twice",
        ),
        (
            "values = [1]\n[[axis]]\nkey = \"l\"\nname = \"k\"\nvalues = [2]",
            "study.toml:5:",
            "two columns are called \"k\"",
        ),
        (
            "from = 1\nto = 100000\nby = 1\n[[axis]]\nkey = \"l\"\nfrom = 1\nto = 100000\nby = 1",
            "study.toml:7:",
            "ten million",
        ),
        (
            "values = [1]\n[[filter]]\nname = \"f\"\nkeep = \"j < 3\"",
            "study.toml:7:",
            "column 1: no axis is called j; did you mean k?",
        ),
        ("values = [1]\n[[filter]]\nname = \"f\"\nkeep = \"k + 3\"", "study.toml:7:", "must be a condition"),
        (
            "values = [\"1us\"]\n[[filter]]\nname = \"f\"\nkeep = \"k < 3\"",
            "study.toml:7:",
            "column 3: < cannot combine a number of ns and a plain number",
        ),
        ("values = [1]\n[repeats]\nseeds = 0", "study.toml:6:", "number of seeds is out of range"),
        (
            "values = [1]\n[repeats]\nseeds = 5\nuntil = \"throughput\"",
            "study.toml:7:",
            "width of the interval is missing",
        ),
        (
            "values = [1]\n[repeats]\nseeds = 5\nuntil = \"throughput within 2\"",
            "study.toml:7:",
            "not a percentage of the mean",
        ),
        (
            "values = [1]\n[repeats]\nseeds = 5\nuntil = \"nic.thruput within 2%\"",
            "study.toml:7:",
            "did you mean nic.throughput?",
        ),
    ] {
        let error = of_axis(text);
        assert!(error.starts_with(place) && error.contains(words), "{text}\n{error}");
    }
    let of_finding = |text: &str| {
        told(&format!("[[axis]]\nkey = \"k\"\nvalues = [1, 2]\n[finding]\nsays = \"It is {{a}}.\"\n{text}"))
    };
    for (text, place, words) in [
        (
            "holds = \"a > 3\"\nfigures = { a = { of = \"lanes\" } }",
            "study.toml:8:",
            "the points of this figure are missing",
        ),
        (
            "holds = \"a > 3\"\nfigures = { a = { of = \"lanes\", where = \"j == 1\" } }",
            "study.toml:8:",
            "no axis is called j",
        ),
        (
            "holds = \"a > 3\"\nfigures = { a = { of = \"lanes\", where = \"k == 1\", take = \"any\" } }",
            "study.toml:8:",
            "unknown value of take",
        ),
        (
            "holds = \"b > 3\"\nfigures = { a = { of = \"lanes\", where = \"k == 1\" } }",
            "study.toml:7:",
            "no figure is called b; did you mean a?",
        ),
        (
            "holds = \"a\"\nfigures = { a = { of = \"lanes\", where = \"k == 1\" } }",
            "study.toml:7:",
            "not a condition",
        ),
        (
            "holds = \"b > 3\"\nfigures = { b = { of = \"lanes\", where = \"k == 1\" } }",
            "study.toml:6:",
            "no figure is called a",
        ),
        (
            "holds = \"a > 3\"\nfigures = { a = { from = \"c + 1\" } }",
            "study.toml:8:",
            "no figure is called c",
        ),
    ] {
        let error = of_finding(text);
        assert!(error.starts_with(place) && error.contains(words), "{text}\n{error}");
    }
    assert!(told("[[axis]]\nvalues = [1]").contains("this axis sets no key"));
    assert!(
        told("[[axis]]\nkeys = [\"a\", \"b\"]\nvalues = [[1, 2], 3]")
            .contains("one for each key; as in […, …]")
    );
    assert!(
        told("[[axis]]\nkeys = [\"a\", \"b\"]\nnames = [\"x\"]\nvalues = [[1, 2]]")
            .contains("the names do not match the keys")
    );
    assert!(told("[[axis]]\ncsv = \"none.csv\"").contains("cannot use \"none.csv\": there is no such file"));
    assert!(told("[[axis]]\ncsv = \"ragged.csv\"").starts_with("ragged.csv: line 2"));
    assert!(told("[[axis]]\nlatin = 5").contains("its keys are missing"));
    assert!(told("metrics = [\"throughput < 5 Gb/s\"]").contains("a metric must be a number"));
    let missing = Study::read("none.toml", &|_| Err("there is no such file".into())).unwrap_err().to_string();
    assert_eq!(missing, "none.toml: cannot read it: there is no such file");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn each_stratum_of_a_hypercube_is_in_one_point(count in 1usize..40, seed in any::<u32>()) {
        let of = "of = [{ key = \"a\", from = 0.0, to = 1.0 }, { key = \"b\", from = 1.0, to = 1024.0, scale = \"log\" }, { key = \"c\", values = [true, false] }]";
        let text = format!("[[axis]]\nlatin = {count}\nseed = {seed}\n{of}");
        let study = read(&text).unwrap();
        let numbers = |n: usize| -> Vec<f64> { study.axes[0].columns[n].values.iter().filter_map(|value| value.number()).collect() };
        let strata = |parts: Vec<f64>| -> BTreeSet<usize> { parts.into_iter().map(|part| (part * count as f64) as usize).collect() };
        prop_assert_eq!(strata(numbers(0)).len(), count);
        prop_assert_eq!(strata(numbers(1).into_iter().map(|x| x.log2() / 10.0).collect()).len(), count);
        let truths = study.axes[0].columns[2].values.iter().filter(|value| **value == tlplab_study::expression::Value::Truth(true)).count();
        prop_assert!(truths.abs_diff(count - truths) <= 1);
        prop_assert_eq!(&study, &read(&text).unwrap(), "the same seed makes the same points");
        let order = |parts: Vec<f64>| -> Vec<usize> { parts.into_iter().map(|part| (part * count as f64) as usize).collect() };
        let (first, second) = (order(numbers(0)), order(numbers(1).into_iter().map(|x| x.log2() / 10.0).collect()));
        // One in ten factorial is in order, and one is as the other.
        prop_assert!(count < 10 || first != second && !first.is_sorted() && !second.is_sorted());
    }
}

#[test]
fn a_study_is_read_from_beside_it() {
    let bench = Bench::new();
    let study = bench.study("load = \"loads.toml\"");
    let path = |name: &str| bench.path(name).to_str().unwrap().to_owned();
    assert_eq!(study.subject, Subject::Experiment { path: path("one.toml"), load: Some(path("loads.toml")) });
    assert_eq!(study.title, "study");
}
