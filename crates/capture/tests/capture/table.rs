//! The trace table, and the traces that come with the project.

use crate::support::{Pcap, READ, frame};
use tlplab_capture::{self as capture, Capture, Format, Operation, TraceRequest, table};
use tlplab_units::Time;

const HEAD: &str =
    "# tlplab trace 1\n# source: here\n# a remark\ntime_ns,op,address,bytes,requester,tag,attributes\n";

fn read(text: &str) -> Capture {
    capture::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn lines_become_requests() {
    let capture = read(&format!(
        "{HEAD}0,read,0x90000000,512,19:00.0,2,RO\n4313.25,write,4096,0,1f:1f.7,0x3ff,RO+NS\n"
    ));
    assert_eq!((capture.format, capture.source.as_deref(), capture.frames), (Format::Table, Some("here"), 2));
    let requests = capture::requests(&capture, None);
    assert_eq!(
        (requests[0].address, requests[0].bytes, requests[0].operation),
        (0x9000_0000, 512, Operation::Read)
    );
    assert!(requests[0].attributes.relaxed_ordering && !requests[0].attributes.no_snoop);
    let write = &requests[1];
    assert_eq!((write.time, write.address, write.bytes), (Time::from_fs(4_313_250_000), 4096, 0));
    assert_eq!((write.requester.to_string().as_str(), write.tag.value()), ("1f:1f.7", 0x3ff));
    assert!(write.attributes.no_snoop);
}

#[test]
fn the_last_column_may_be_left_out() {
    let capture = read("time_ns,op,address,bytes,requester,tag\n\n0,read,0x1000,64,00:01.0,0\n");
    assert_eq!(capture.records.len(), 1);
}

#[test]
fn a_written_trace_table_reads_back() {
    let frame = frame(0, 0x3002, &READ);
    let pcap = Pcap::NANO.file(&[(0, 5, frame.len(), &frame), (0, 4_318, frame.len(), &frame)]);
    let requests = capture::requests(&capture::read(&pcap).unwrap(), None);
    let mut text = Vec::new();
    table::write(&mut text, "one\ntwo", &requests).unwrap();
    let capture = capture::read(&text).unwrap();
    assert_eq!(capture.source.as_deref(), Some("one\ntwo"));
    // Frames are counted in lines there.
    let again = capture::requests(&capture, None);
    let same: Vec<_> =
        again.iter().zip(&requests).map(|(a, r)| TraceRequest { frame: r.frame, ..*a }).collect();
    assert_eq!(same, requests);
}

#[test]
fn errors_name_line_and_column() {
    for (line, message) in [
        ("0,read,0x1000,64,00:01.0", ", line 5: the line has 5 columns; expected seven"),
        ("x,read,0x1000,64,00:01.0,0,", ", line 5: time_ns is \"x\"; expected nanoseconds"),
        ("1.1234567,read,0x1000,64,00:01.0,0,", ", line 5: time_ns is"),
        ("99999999999999999,read,0x1000,64,00:01.0,0,", ", line 5: time_ns is"),
        ("0,copy,0x1000,64,00:01.0,0,", ", line 5: op is \"copy\"; expected \"read\" or \"write\""),
        ("0,read,1000h,64,00:01.0,0,", ", line 5: address is \"1000h\""),
        ("0,read,0x1000,-1,00:01.0,0,", ", line 5: bytes is \"-1\""),
        ("0,read,0x1000,64,00:20.0,0,", ", line 5: requester is \"00:20.0\"; expected bus:device.function"),
        ("0,read,0x1000,64,00:01.0,16384,", ", line 5: tag is \"16384\"; expected a number below 16384"),
        ("0,read,0x1000,64,00:01.0,0,XX", ", line 5: attributes is \"XX\"; expected RO, IDO and NS"),
        ("0,read,0x1ff0,64,00:01.0,0,", ", line 5: Length: the request crosses a 4 KiB boundary (PCIe"),
    ] {
        let error = capture::read(format!("{HEAD}{line}\n").as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("input{message}")), "{error}");
    }
    let error = capture::read(b"# tlplab trace 1\nop,time\n").unwrap_err().to_string();
    assert!(error.contains("line 2: the columns are \"op,time\""), "{error}");
    let error = capture::read(b"# tlplab trace 1\n").unwrap_err().to_string();
    assert!(error.contains("the line with the columns is missing"), "{error}");
}

/// File, reads, writes, bytes, tags in use: counted in the captures by an independent script.
const TRACES: [(&str, u64, u64, u64, usize); 7] = [
    ("x520-1024B-32pkt", 64, 0, 32_768, 16),
    ("x520-1500B-16pkt", 48, 0, 24_000, 16),
    ("x520-64B-32pkt", 32, 0, 2_048, 16),
    ("p4600-read-32blk", 0, 64, 16_384, 0),
    ("p4600-write-32blk", 32, 0, 16_384, 16),
    ("p4600-write-4blk", 4, 0, 2_048, 4),
    ("pm1725-write-4blk", 32, 0, 16_384, 32),
];

#[test]
fn traces_of_the_project_hold_the_requests_of_their_captures() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/traces");
    for (name, reads, writes, bytes, tags) in TRACES {
        let capture =
            capture::read_file(format!("{folder}/{name}.csv")).unwrap_or_else(|error| panic!("{error}"));
        let statistics = capture::statistics(&capture);
        assert_eq!((statistics.reads, statistics.writes), (reads, writes), "{name}");
        assert_eq!(statistics.read_bytes + statistics.written_bytes, bytes, "{name}");
        assert_eq!(statistics.tags.len(), tags, "{name}");
        assert!(capture.source.unwrap().contains(&format!("{name}.pcap")), "{name}");
        assert_eq!(capture.records[0].time, Time::ZERO);
    }
}
