//! What the fuzz target `capture` and the tests of `tlplab-bridge` feed bytes to: whatever they are, nothing panics, and every frame
//! is a record, a problem that says something, or other traffic.

use tlplab_bridge::capture::{self, Format};

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
    let requests = capture::requests(&capture, None);
    assert_eq!(requests.len() as u64, statistics.reads + statistics.writes);
    assert!(requests.is_sorted_by_key(|request| request.time));
}
