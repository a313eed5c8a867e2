//! The result document is what its schema says.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tlplab_experiment::result::*;
use tlplab_experiment::{Experiment, run};

type Fields = BTreeMap<String, BTreeSet<String>>;

/// The keys of each type that the JSON Schema describes.
fn schema_types() -> Fields {
    let schema = schema();
    let keys =
        |one: &Value| Some(one["properties"].as_object()?.keys().cloned().collect::<BTreeSet<String>>());
    let parts = schema["$defs"].as_object().expect("the schema has parts");
    let mut out: Fields = parts.iter().filter_map(|(name, one)| Some((name.clone(), keys(one)?))).collect();
    out.insert("Document".to_owned(), keys(&schema).expect("a document has keys"));
    out
}

fn keys(value: impl serde::Serialize) -> BTreeSet<String> {
    match serde_json::to_value(value).unwrap() {
        Value::Object(map) => map.keys().cloned().collect(),
        other => panic!("{other} is no object"),
    }
}

/// One with all fields, which no TLP has.
fn whole_header() -> TlpHeader {
    TlpHeader {
        requester: String::new(),
        length: Some(1),
        address: Some(String::new()),
        first_be: Some(1),
        last_be: Some(1),
        function: Some(String::new()),
        register: Some(1),
        completer: Some(String::new()),
        status: Some(CompletionWord::Success),
        byte_count: Some(1),
        lower_address: Some(1),
    }
}

/// A component with all keys.
fn switch() -> Node {
    Node {
        forwarding: Some(Forwarding::CutThrough),
        arbitration: Some(Arbitration::Weighted),
        ..Node::default()
    }
}

fn our_types() -> Fields {
    let pairs: Vec<(&str, BTreeSet<String>)> = vec![
        ("Document", keys(Document::default())),
        ("Verdict", keys(Verdict::default())),
        ("Limit", keys(Limit::default())),
        ("Next", keys(Next::default())),
        ("Errors", keys(Errors::default())),
        ("Topology", keys(Topology::default())),
        ("Dllps", keys(Dllps::default())),
        ("Stalls", keys(Stalls::default())),
        ("FlowSeries", keys(FlowSeries::default())),
        ("DirectionSeries", keys(DirectionSeries::default())),
        ("Phase", keys(Phase::default())),
        ("Tried", keys(Tried::default())),
        ("Gain", keys(Gain::default())),
        ("Guest", keys(Guest::default())),
        ("Waiting", keys(Waiting::default())),
        ("Problem", keys(Problem::default())),
        ("Flow", keys(Flow::default())),
        ("Detected", keys(Detected::default())),
        ("Reported", keys(Reported::default())),
        ("RefusedPeers", keys(RefusedPeers::default())),
        ("Outage", keys(Outage::default())),
        ("Struck", keys(Struck::default())),
        ("Measured", keys(Measured::default())),
        ("Calls", keys(Calls::default())),
        ("Frames", keys(Frames::default())),
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
        ("Node", keys(switch())),
        ("Link", keys(Link::default())),
        ("Utilization", keys(Utilization::default())),
        ("Direction", keys(Direction::default())),
        ("Series", keys(Series::default())),
        ("Resource", keys(Resource::default())),
        ("Sample", keys(Sample { parts: vec![(0, 0, -1, 1.0)], ..Sample::default() })),
        ("Ladder", keys(Ladder::default())),
        ("Packet", keys(Packet::default())),
        ("Transaction", keys(Transaction::default())),
        ("TlpHeader", keys(whole_header())),
        ("Interval", keys(Interval::default())),
        ("ConfigSpaces", keys(ConfigSpaces::default())),
        ("FunctionRegisters", keys(FunctionRegisters::default())),
        ("RegisterBlock", keys(RegisterBlock::default())),
        ("RegisterGap", keys(RegisterGap::default())),
        ("RegisterChange", keys(RegisterChange::default())),
    ];
    pairs.into_iter().map(|(name, keys)| (name.to_owned(), keys)).collect()
}

#[test]
fn written_types_match_the_schema() {
    assert_eq!(schema_types(), our_types());
}

/// A key, a name or a cause that is new has to reach Python, the page and the reference, which are made of this file.
#[test]
fn the_schema_in_the_documentation_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/result.schema.json");
    #[allow(clippy::disallowed_methods, reason = "the schema is a file of the documentation")]
    let written = std::fs::read_to_string(path).expect("the schema");
    assert!(written == format!("{:#}\n", schema()), "run `make generate`");
}

#[test]
fn seeds_stay_exact() {
    let json = |seed| serde_json::to_value(Document { seed, ..Document::default() }).unwrap()["seed"].clone();
    assert_eq!(json(7), Value::from(7));
    assert_eq!(json(u64::MAX), Value::from("18446744073709551615"));
}

#[test]
fn kinds_have_the_names_of_before() {
    let text = |kind: LimitKind| serde_json::to_value(kind).unwrap();
    assert_eq!(text(LimitKind::Outstanding), "outstanding");
    assert_eq!(serde_json::to_value(Stopped::LoadsDone).unwrap(), "loads-done");
    assert_eq!(serde_json::to_value(ErrorName::BadTlp).unwrap(), "Bad TLP");
    assert_eq!(serde_json::to_value(NodeKind::RootPort).unwrap(), "root port");
    assert_eq!(serde_json::to_value(PacketClass::Dllp).unwrap(), "dllp");
}

/// Forwarding and arbitration of a switch, and the operation of each flow, are names of their sets, besides the line for people.
#[test]
fn components_and_flows_have_words() {
    let text = r#"
        title = "words"
        stop = "20us"
        [switch.plain]
        under = "host.rp0"
        link = "gen3 x4"
        [switch.weighted]
        under = "plain"
        link = "gen3 x4"
        forwarding = "store-and-forward"
        arbitration = { load = 2, copier = 3 }
        [device.load]
        under = "weighted"
        link = "gen3 x4"
        [device.copier]
        model = "copier"
        under = "weighted"
        link = "gen3 x4"
        [load]
        load = { op = "both", size = "4KiB" }
    "#;
    let experiment = Experiment::parse(&|_| Ok(text.to_owned()), "t.toml").expect("an experiment");
    let document = run::run(experiment, run::Inputs::default()).expect("a run");
    let node = |name: &str| document.topology.nodes.iter().find(|node| node.name == name).expect("its node");
    let words = |name: &str| (node(name).forwarding, node(name).arbitration);
    assert_eq!(words("plain"), (Some(Forwarding::CutThrough), Some(Arbitration::RoundRobin)));
    assert_eq!(words("weighted"), (Some(Forwarding::StoreAndForward), Some(Arbitration::Weighted)));
    assert_eq!(words("load"), (None, None));
    assert!(serde_json::to_value(node("load")).unwrap().get("forwarding").is_none());
    assert!(node("weighted").detail.starts_with("store-and-forward, "), "{}", node("weighted").detail);
    let flows: BTreeMap<&str, Operation> =
        document.flows.iter().map(|flow| (flow.name.as_str(), flow.op)).collect();
    let expected = [
        ("copier", Operation::Copy),
        ("copier.driver", Operation::Mmio),
        ("load.read", Operation::Read),
        ("load.write", Operation::Write),
    ];
    assert_eq!(flows, BTreeMap::from(expected));
    assert_eq!(
        serde_json::to_value(&document.flows).unwrap()[0]["op"],
        flows[document.flows[0].name.as_str()].token()
    );
}
