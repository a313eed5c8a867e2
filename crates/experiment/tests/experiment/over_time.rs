//! What a document tells over time: configuration spaces, transactions under way, and whose addresses samples have.
#![allow(clippy::disallowed_methods, reason = "tests read the experiments from their files")]

use std::collections::BTreeMap;
use tlplab_experiment::result::{Access, ConfigSpaces, Document, RegisterCause};
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::{Experiment, Options};

fn finished(experiment: Experiment, inputs: Inputs) -> (Run, Document) {
    let mut run = Run::new(experiment, inputs).unwrap();
    run.finish().unwrap();
    let document = run.document();
    (run, document)
}

fn of_file(name: &str) -> Experiment {
    let path = format!("{}/../../experiments/{name}", env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
    Experiment::parse_with(&read, &path, &Options::default()).unwrap()
}

fn of_text(text: &str) -> Experiment {
    Experiment::parse(&|_| Ok(text.to_owned()), "t.toml").unwrap()
}

/// The registers of a function at the end, as a reader of the document finds them.
fn replayed(spaces: &ConfigSpaces, function: usize) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    for block in &spaces.functions[function].start {
        for (i, digits) in block.data.as_bytes().chunks(2).enumerate() {
            let byte = u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
            bytes[usize::from(block.offset) + i] = byte;
        }
    }
    for change in spaces.changes.iter().filter(|change| change.function == function) {
        let word = &mut bytes[usize::from(change.offset)..][..4];
        assert_eq!(word, change.old.to_le_bytes(), "{change:?}");
        word.copy_from_slice(&change.new.to_le_bytes());
    }
    bytes
}

#[test]
fn registers_replayed_from_a_document_match_the_fabric_at_the_end() {
    let mut causes = Vec::new();
    for name in ["error-reporting.toml", "hotplug.toml", "enumeration.toml", "quickstart.toml"] {
        let (mut run, document) = finished(of_file(name), Inputs::default());
        let spaces = document.config_spaces.unwrap();
        assert!(spaces.changes.is_sorted_by_key(|change| change.time_fs), "{name}");
        assert!(spaces.changes.iter().all(|change| change.time_fs <= document.end_fs), "{name}");
        let by_id: BTreeMap<_, _> =
            spaces.functions.iter().zip(0..).map(|(f, i)| (f.function.clone(), i)).collect();
        let real = run.fabric().config_spaces();
        assert!(!real.is_empty(), "{name}");
        for (id, space) in real {
            let function = by_id[&Some(id.to_string())];
            assert_eq!(replayed(&spaces, function), space.shown_bytes(), "{name}: {id}");
        }
        causes.extend(spaces.changes.iter().map(|change| change.by));
    }
    for cause in [RegisterCause::Write, RegisterCause::Reset, RegisterCause::Hardware] {
        assert!(causes.contains(&cause), "{cause}");
    }
}

const FOUR: &str = r#"
    title = "Four at a time"
    stop = "400us"
    [device.reader]
    under = "host.rp0"
    link = "gen3 x4"
    latency = "500ns"
    [device.writer]
    under = "host.rp1"
    link = "gen3 x4"
    [load]
    reader = { op = "read", size = "256B", outstanding = 4 }
    writer = { op = "write", size = "256B", rate = "1Gb/s" }
"#;

/// Little's law: the average number of outstanding transactions is the rate times the latency. A load that keeps four under way has four, though the
/// device works on each for half a microsecond before its requester has it.
#[test]
fn outstanding_transactions_match_the_load_in_every_bin() {
    let (_, document) = finished(of_text(FOUR), Inputs::default());
    let of = |name: &str| document.flows.iter().position(|flow| flow.name == name).unwrap();
    let series = |flow: usize| document.series.flows.iter().find(|series| series.flow == flow).unwrap();
    let reader = series(of("reader"));
    let max = reader.outstanding_max.as_ref().unwrap();
    let mean = reader.outstanding_mean.as_ref().unwrap();
    assert_eq!((max.len(), mean.len()), (document.series.bins, document.series.bins));
    assert!(max.iter().all(|most| *most == 4), "{max:?}");
    assert!(mean.iter().all(|mean| (3.9..=4.0).contains(mean)), "{mean:?}");
    let writer = &document.flows[of("writer")];
    let rate = writer.transactions as f64 / (document.end_fs as f64 / 1e6);
    let expected = rate * writer.latency_ns.unwrap().mean;
    let mean = series(of("writer")).outstanding_mean.as_ref().unwrap();
    let found = mean.iter().sum::<f64>() / mean.len() as f64;
    assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
}

#[test]
fn samples_have_address_requester_and_tag() {
    let (_, document) = finished(of_text(FOUR), Inputs::default());
    let ladder = document.ladder.unwrap();
    let (mut both, mut tags) = (0, 0);
    for sample in &document.samples {
        let name = document.flows[sample.flow].name.as_str();
        let (access, requester) = match name {
            "reader" => (Access::Read, "01:00.0"),
            _ => (Access::Write, "02:00.0"),
        };
        assert_eq!((sample.access, sample.requester.as_str(), sample.bytes), (access, requester, 256));
        assert_eq!(
            sample.tag.is_some(),
            access == Access::Read,
            "a posted write has none that means something"
        );
        tags = tags.max(sample.tag.unwrap_or(0));
        if let Some(same) = ladder.transactions.iter().find(|t| t.id == sample.transaction) {
            both += 1;
            assert!(
                same.text.ends_with(&format!("{} of 256 B at {}", access, sample.address)),
                "{}",
                same.text
            );
            assert_eq!((same.flow, same.start_fs), (sample.flow, sample.start_fs));
            let packets = ladder.packets.iter().filter(|p| p.transaction == Some(same.id));
            let last = packets.rev().find(|p| p.kind.starts_with("Cpl"));
            if let Some(last) = last {
                assert_eq!(last.tag, sample.tag);
            }
        }
    }
    assert!(both > 10 && tags > 0, "{both} {tags}");
}

#[test]
fn a_run_that_keeps_no_ladder_keeps_no_history_and_is_the_same() {
    let (_, with) = finished(of_text(FOUR), Inputs::default());
    let (_, without) = finished(of_text(FOUR), Inputs { no_ladder: true, ..Inputs::default() });
    assert_eq!(without.config_spaces, None);
    assert!(without.series.flows.iter().all(|s| s.outstanding_mean.is_none() && s.outstanding_max.is_none()));
    assert_eq!(with.trace_hash, without.trace_hash);
    assert_eq!((with.flows, with.samples), (without.flows, without.samples));
}
