//! The Perfetto writer: decoded with a reader of our own, and by Perfetto's own Python package where it is installed.

use std::collections::BTreeMap;
use std::process::Command;
use tlplab_trace::perfetto::{Scale, Writer};
use tlplab_trace::record::{Content, Flags, Flit, Interval, Link, Tlp, Transaction, Unit};
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::dllp::{self, Sequence};
use tlplab_wire::tlp::{Repr, TransactionId};

fn id(tag: u8) -> TransactionId {
    TransactionId::new(Bdf::new(0x19, 0, 0).unwrap(), Tag::from(tag))
}

const fn ns(ns: u64) -> Time {
    Time::from_fs(ns * 1_000_000)
}

fn sample(scale: Scale) -> Vec<u8> {
    let links = [Link { lower: "ssd".into(), upper: "host.rp0".into() }];
    let repr = Repr::mem_write(id(1), 0x1000, 256).unwrap();
    let mut writer = Writer::new(Vec::new(), &links, &["ssd".to_string()], scale);
    let tags = writer.counter("tags of ssd", "tags");
    writer.level(tags, ns(0), 3);
    let tlp =
        Content::Tlp(Tlp { repr: &repr, sequence: 11, payload: None, transaction: Some(0), flow: Some(0) });
    let flags = Flags::default();
    let (start, end, arrive) = (Time::from_fs(1_500_000), Time::from_fs(4_546_875), ns(6));
    writer.unit(&Unit { link: 0, direction: 0, start, end, arrive, content: tlp, flags });
    let content = Content::Dllp(dllp::Repr::Ack(Sequence::new(11)));
    let (start, end, arrive) = (ns(7), Time::from_fs(7_200_000), ns(8));
    let flags = Flags { bad: true, ..Flags::default() };
    writer.unit(&Unit { link: 0, direction: 1, start, end, arrive, content, flags });
    let intervals = |first, second, behind| {
        [
            Interval {
                cause: "queueing",
                place: "ssd → host.rp0",
                behind,
                duration: Duration::from_ns(first),
            },
            Interval {
                cause: "flight",
                place: "ssd → host.rp0",
                behind: None,
                duration: Duration::from_ns(second),
            },
        ]
    };
    let flit = Content::Flit(Flit { sequence: 5, tlp_bytes: 20 });
    let carrier = Unit {
        link: 0,
        direction: 0,
        start: ns(20),
        end: ns(24),
        arrive: ns(25),
        content: flit,
        flags: Flags::default(),
    };
    writer.unit(&carrier);
    writer.tlp_in_flit(&Unit { content: tlp, ..carrier });
    // Transactions 0 and 1 overlap, 2 begins when 0 has ended.
    for (id, start, first, second) in [(0, 1, 2, 3), (1, 2, 3, 4), (2, 6, 1, 4)] {
        let end = ns(start + first + second);
        let intervals = intervals(first, second, Some("nic"));
        let text = "write 256 B @ 0x1000";
        writer.transaction(&Transaction { id, flow: 0, start: ns(start), end, text, intervals: &intervals });
    }
    writer.level(tags, ns(12), 0);
    writer.finish().unwrap()
}

/// A protobuf field: number and value.
#[derive(Clone, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn decode(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (word, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Number(u64::from_le_bytes(word.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(content)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn number(fields: &[(u64, Value<'_>)], field: u64) -> Option<u64> {
    fields.iter().find_map(|(f, v)| match v {
        Value::Number(n) if *f == field => Some(*n),
        _ => None,
    })
}

fn all<'a>(fields: &[(u64, Value<'a>)], field: u64) -> Vec<&'a [u8]> {
    fields
        .iter()
        .filter_map(|(f, v)| match v {
            Value::Bytes(b) if *f == field => Some(*b),
            _ => None,
        })
        .collect()
}

fn text(fields: &[(u64, Value<'_>)], field: u64) -> String {
    String::from_utf8(all(fields, field).concat()).unwrap()
}

/// The trace as lines: `track | depth | name | begin..end | arguments`, after checking that slices nest.
fn lines(trace: &[u8]) -> Vec<String> {
    let mut tracks = BTreeMap::new();
    let mut names = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<(u64, usize)>> = BTreeMap::new();
    let mut lines: Vec<String> = Vec::new();
    for packet in all(&decode(trace), 1) {
        let packet = decode(packet);
        assert_eq!(number(&packet, 10), Some(1), "one sequence");
        for descriptor in all(&packet, 60) {
            let descriptor = decode(descriptor);
            let parent = number(&descriptor, 5).map_or(String::new(), |p| format!("{}/", tracks[&p]));
            let uuid = number(&descriptor, 1).unwrap();
            assert!(tracks.insert(uuid, parent + &text(&descriptor, 2)).is_none());
        }
        for entry in all(&packet, 12).iter().flat_map(|data| all(&decode(data), 2)) {
            let entry = decode(entry);
            names.insert(number(&entry, 1).unwrap(), text(&entry, 2));
        }
        for event in all(&packet, 11) {
            let event = decode(event);
            let at = number(&packet, 8).unwrap();
            let track = number(&event, 11).unwrap();
            let stack = open.entry(track).or_default();
            match number(&event, 9) {
                Some(1) => {
                    let arguments: Vec<String> = all(&event, 4).iter().map(|a| argument(a)).collect();
                    let name = &names[&number(&event, 10).unwrap()];
                    let depth = stack.len();
                    stack.push((at, lines.len()));
                    lines.push(format!("{}|{depth}|{name}|{at}..|{}", tracks[&track], arguments.join(" ")));
                }
                Some(2) => {
                    let (begin, line) = stack.pop().expect("every end has a beginning");
                    assert!(begin <= at);
                    lines[line] = lines[line].replace("..|", &format!("..{at}|"));
                }
                Some(3) => lines.push(format!(
                    "{}|mark|{}|{at}",
                    tracks[&track],
                    names[&number(&event, 10).unwrap()]
                )),
                Some(4) => lines.push(format!("{}|{}|{at}", tracks[&track], number(&event, 30).unwrap())),
                other => panic!("event type {other:?}"),
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    lines
}

fn argument(bytes: &[u8]) -> String {
    let fields = decode(bytes);
    let value = number(&fields, 3).map_or_else(|| text(&fields, 6), |n| n.to_string());
    format!("{}={value}", text(&fields, 10))
}

#[test]
fn slices_and_counters_match_the_run() {
    let lines = lines(&sample(Scale::Nanosecond));
    let begin = |prefix: &str| {
        let found: Vec<&String> = lines.iter().filter(|line| line.starts_with(prefix)).collect();
        assert_eq!(found.len(), 1, "{prefix}: {lines:#?}");
        found[0].clone()
    };
    let write = begin("links/ssd → host.rp0|0|MWr|1..4|");
    for argument in [
        "start_fs=1500000",
        "end_fs=4546875",
        "arrive_fs=6000000",
        "sequence=11",
        "bytes=268",
        "transaction=0",
    ] {
        assert!(write.contains(argument), "{write}");
    }
    assert!(begin("links/host.rp0 → ssd|0|Ack|7..7|").contains("flags=corrupted"));
    begin("resources/tags of ssd|3|0");
    begin("resources/tags of ssd|0|12");
    begin("links/ssd → host.rp0|0|flit|20..24|text=flit 5, 20 of 236 bytes used");
    begin("links/ssd → host.rp0|mark|MWr|20");
    // Three transactions with two causes each; a row holds nothing that overlaps.
    let first = begin("transactions/ssd/ssd|0|write|1..6|");
    assert!(first.contains("text=write 256 B @ 0x1000 transaction=0"), "{first}");
    assert!(begin("transactions/ssd/ssd|1|queueing|1..3|").contains("behind=nic"));
    begin("transactions/ssd/ssd|1|flight|3..6|");
    begin("transactions/ssd/ssd|0|write|2..9|");
    begin("transactions/ssd/ssd|0|write|6..11|");
    assert_eq!(lines.len(), 2 + 2 + 2 + 3 * 3);
}

#[test]
fn the_fine_scale_shows_picoseconds() {
    let lines = lines(&sample(Scale::Picosecond));
    assert!(
        lines.iter().any(|line| line.starts_with("links/ssd → host.rp0|0|MWr|1500..4546|")),
        "{lines:#?}"
    );
    assert!(
        lines.iter().any(|line| line.starts_with("links/host.rp0 → ssd|0|Ack|7000..7200|")),
        "{lines:#?}"
    );
}

/// Perfetto's own message definitions (PyPI `perfetto`) know every field.
#[test]
fn perfettos_definitions_decode_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.pftrace");
    std::fs::write(&path, sample(Scale::Nanosecond)).unwrap();
    let python = std::env::var("TLPLAB_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = r#"
import sys
try:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
except ImportError as missing:
    print("skipped:", missing); sys.exit()
trace = Trace(); trace.ParseFromString(open(sys.argv[1], "rb").read())
def unknown(message):
    from google.protobuf.unknown_fields import UnknownFieldSet
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for item in (value if hasattr(value, "__len__") else [value]): unknown(item)
unknown(trace)
events = [p.track_event for p in trace.packet if p.HasField("track_event")]
count = lambda kind: sum(e.type == kind for e in events)
flows = sorted(f for e in events for f in e.flow_ids)
tracks = [p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")]
print(count(TrackEvent.TYPE_SLICE_BEGIN), count(TrackEvent.TYPE_SLICE_END), count(TrackEvent.TYPE_COUNTER), flows,
      [t.name for t in tracks if t.HasField("counter")])
"#;
    let output = match Command::new(python).arg("-c").arg(script).arg(&path).output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: no Python: {error}");
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if said.starts_with("skipped") {
        println!("{said}");
        return;
    }
    assert_eq!(said.trim(), "12 12 2 [1, 1, 1, 2, 3] ['tags of ssd']");
}

#[test]
fn an_unknown_link_or_flow_ends_the_trace_with_a_message() {
    let repr = Repr::mem_write(id(1), 0x1000, 256).unwrap();
    let begun = || {
        let links = [Link { lower: "ssd".into(), upper: "host.rp0".into() }];
        Writer::new(Vec::new(), &links, &["ssd".to_string()], Scale::Nanosecond)
    };
    let tlp = Tlp { repr: &repr, sequence: 11, payload: None, transaction: None, flow: None };
    let (content, flags) = (Content::Tlp(tlp), Flags::default());
    let unit = Unit { link: 1, direction: 0, start: ns(1), end: ns(2), arrive: ns(3), content, flags };
    let mut writer = begun();
    writer.unit(&unit);
    let error = writer.finish().unwrap_err().to_string();
    assert_eq!(error, "a unit on link 1, which the trace was begun without");
    let mut writer = begun();
    writer.transaction(&Transaction {
        id: 0,
        flow: 3,
        start: ns(0),
        end: ns(1),
        text: "read",
        intervals: &[],
    });
    writer.tlp_in_flit(&unit);
    let error = writer.finish().unwrap_err().to_string();
    assert_eq!(error, "a transaction of flow 3, which the trace was begun without", "the first of two");
}
