//! The result document and the page's types say the same.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tlplab_experiment::result::*;

type Fields = BTreeMap<String, BTreeSet<String>>;

/// Field names of each interface of `report/src/result.ts`, inline objects left out.
fn page_types() -> Fields {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../report/src/result.ts");
    #[allow(clippy::disallowed_methods, reason = "the page's types are in a file of another language")]
    let text = std::fs::read_to_string(path).expect("the page's types");
    let mut out = Fields::new();
    for part in text.split("export interface ").skip(1) {
        let (name, rest) = part.split_once('{').expect("an interface has a body");
        let mut fields = BTreeSet::new();
        let mut depth = 0;
        for line in rest.lines() {
            let line = line.trim();
            if depth == 0 && line == "}" {
                break;
            }
            if depth == 0
                && !line.starts_with(['/', '*', '}', '&', ')'])
                && let Some((field, _)) = line.split_once(':')
            {
                fields.insert(field.trim_end_matches('?').trim().to_owned());
            }
            depth += line.matches(['{', '(']).count() as i32 - line.matches(['}', ')']).count() as i32;
        }
        out.insert(name.trim().into(), fields);
    }
    out
}

fn keys(value: impl serde::Serialize) -> BTreeSet<String> {
    match serde_json::to_value(value).unwrap() {
        Value::Object(map) => map.keys().cloned().collect(),
        other => panic!("{other} is no object"),
    }
}

fn our_types() -> Fields {
    let pairs: Vec<(&str, BTreeSet<String>)> = vec![
        ("Result", keys(Document::default())),
        ("Verdict", keys(Verdict::default())),
        ("Phase", keys(Phase::default())),
        ("Tried", keys(Tried::default())),
        ("Gain", keys(Gain::default())),
        ("Guest", keys(Guest::default())),
        ("Waiting", keys(Waiting::default())),
        ("Problem", keys(Problem::default())),
        ("Flow", keys(Flow::default())),
        ("Detected", keys(Detected::default())),
        ("Reported", keys(Reported::default())),
        ("Outage", keys(Outage::default())),
        ("Struck", keys(Struck::default())),
        ("Measured", keys(Measured::default())),
        ("Calls", keys(Calls::default())),
        ("Network", keys(Network::default())),
        ("NetworkDirection", keys(NetworkDirection::default())),
        ("Latency", keys(Latency::default())),
        ("Bar", keys(Bar::default())),
        ("Attribution", keys(Attribution { others: Some(1), ..Attribution::default() })),
        ("Failures", keys(Failures::default())),
        ("HostUse", keys(HostUse::default())),
        ("CacheUse", keys(CacheUse::default())),
        ("IommuUse", keys(IommuUse::default())),
        ("TranslationFault", keys(TranslationFault::default())),
        ("AnsweredTranslations", keys(AnsweredTranslations::default())),
        ("DeviceTranslations", keys(DeviceTranslations::default())),
        ("Node", keys(Node::default())),
        ("Link", keys(Link::default())),
        ("Utilization", keys(Utilization::default())),
        ("Direction", keys(Direction::default())),
        ("Series", keys(Series::default())),
        ("Resource", keys(Resource::default())),
        ("Sample", keys(Sample { parts: vec![(0, 0, -1, 1.0)], ..Sample::default() })),
        ("Ladder", keys(Ladder::default())),
        ("Packet", keys(Packet::default())),
        ("Transaction", keys(Transaction::default())),
        ("Interval", keys(Interval::default())),
    ];
    pairs.into_iter().map(|(name, keys)| (name.to_owned(), keys)).collect()
}

#[test]
fn the_page_and_the_document_have_the_same_fields() {
    assert_eq!(page_types(), our_types());
}

#[test]
fn seeds_stay_exact() {
    let json = |seed| serde_json::to_value(Document { seed, ..Document::default() }).unwrap()["seed"].clone();
    assert_eq!(json(7), Value::from(7));
    assert_eq!(json(u64::MAX), Value::from("18446744073709551615"));
}

#[test]
fn kinds_are_written_as_the_page_reads_them() {
    let text = |kind: LimitKind| serde_json::to_value(kind).unwrap();
    assert_eq!(text(LimitKind::Outstanding), "outstanding");
    assert_eq!(serde_json::to_value(NodeKind::RootPort).unwrap(), "root port");
    assert_eq!(serde_json::to_value(PacketClass::Dllp).unwrap(), "dllp");
}
