//! What the fuzz target `capture` and the tests of `tlplab-capture` feed bytes to: whatever they are, nothing panics, and every frame
//! is a record, a problem that says something, or other traffic.

use std::io::Cursor;
use tlplab_capture::dump::{Dump, Filter, Loading, Options, TimeStyle};
use tlplab_capture::{self as capture, Capture, Format};

/// Bytes of a capture file.
pub(crate) fn capture(bytes: &[u8]) {
    let capture = match capture::read(bytes) {
        Ok(capture) => capture,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let told = capture.records.len() as u64 + capture.others + capture.problems.len() as u64;
    assert_eq!(told, capture.frames);
    assert!(capture.problems.iter().all(|problem| !problem.reason.to_string().is_empty()));
    assert!(capture.problems.is_empty() || capture.format != Format::Table);
    for (record, repr) in capture.tlps() {
        assert!(capture.payload(record).len() <= repr.payload_bytes() as usize);
        assert!(usize::from(record.direction) < capture.directions.len());
    }
    let statistics = capture::statistics(&capture);
    assert_eq!(statistics.reads, statistics.completed + statistics.unanswered);
    if capture.format != Format::Table {
        summed(bytes, &capture);
        lines(bytes, &capture);
    }
    let requests = capture::requests(&capture, None);
    assert_eq!(requests.len() as u64, statistics.reads + statistics.writes);
    assert!(requests.is_sorted_by_key(|request| request.time));
}

/// Every TLP is summed up, and is a point.
fn summed(bytes: &[u8], capture: &Capture) {
    let filter = Filter::parse::<&str>(&[]).expect("no filter at all");
    let loading = Loading::reading(Cursor::new(bytes.to_vec()), "input", filter, true);
    let (summed, points) = loading.and_then(Loading::finish).expect("it was read before");
    assert_eq!(summed.tlps + summed.repeated, capture.tlps().count() as u64);
    assert_eq!((summed.frames, summed.others), (capture.frames, capture.others));
    assert_eq!(summed.problems, capture.problems);
    assert!(
        summed.directions.iter().all(|flow| flow.max_outstanding as u64 <= flow.completed + flow.unanswered)
    );
    assert!(summed.to_json().starts_with('{'));
    assert_eq!(points.tag.len() as u64, summed.tlps);
}

/// Every frame that is not other traffic is a line.
fn lines(bytes: &[u8], capture: &Capture) {
    for json in [false, true] {
        let filter = Filter::parse::<&str>(&[]).expect("no filter at all");
        let time = TimeStyle::Date;
        let options = Options { filter, json, time, verbose: true, limit: None, copy: None, quiet: false };
        let mut dump =
            Dump::reading(Cursor::new(bytes.to_vec()), "input", options).expect("it was read before");
        let mut lines = String::new();
        while dump.step(&mut lines).expect("memory can be read") {
            lines.clear();
        }
        let counts = dump.counts();
        assert_eq!((counts.frames, counts.others), (capture.frames, capture.others));
        assert!(counts.shown == counts.frames - counts.others && counts.malformed <= counts.shown);
    }
}

/// Words of a filter: read, or refused with a reason.
#[allow(dead_code, reason = "a target of its own")]
pub(crate) fn filter(bytes: &[u8]) {
    let words = String::from_utf8_lossy(bytes);
    if let Err(error) = Filter::parse(&[words]) {
        assert!(!error.to_string().is_empty());
    }
}
