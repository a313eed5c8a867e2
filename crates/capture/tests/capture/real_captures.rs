//! The captures of the NetTLP paper (https://github.com/NetTLP/captured), where `TLPLAB_DATA` names a folder with them in `captures`.

use std::path::PathBuf;
use tlplab_capture::dump::{Filter, Loading};
use tlplab_capture::summary::{Flow, Pieces, Summary};
use tlplab_capture::{self as capture, Capture, Operation};
use tlplab_units::Duration;

fn captures() -> Option<PathBuf> {
    let folder = std::env::var_os("TLPLAB_DATA").map(|data| PathBuf::from(data).join("captures"));
    let folder = folder.filter(|folder| folder.is_dir());
    if folder.is_none() {
        println!("skipped: TLPLAB_DATA does not name a folder with the captures of the NetTLP paper");
    }
    folder
}

/// What an independent script counted in a capture; latencies in nanoseconds.
struct Known {
    name: &'static str,
    frames: u64,
    reads: u64,
    writes: u64,
    bytes: u64,
    completions: u64,
    tags: usize,
    outstanding: u32,
    duration: u64,
    latency: Option<[u64; 3]>,
}

#[rustfmt::skip]
const KNOWN: [Known; 10] = [
    Known { name: "mrd-512byte-plx", frames: 6, reads: 2, writes: 0, bytes: 1024, completions: 4, tags: 1, outstanding: 1, duration: 99_992, latency: Some([67_006, 67_006, 99_992]) },
    Known { name: "mrd-512byte-rc", frames: 19, reads: 9, writes: 0, bytes: 1024, completions: 10, tags: 8, outstanding: 8, duration: 175_026, latency: Some([81_156, 95_634, 175_026]) },
    Known { name: "p4600-read-32blk", frames: 64, reads: 0, writes: 64, bytes: 16_384, completions: 0, tags: 0, outstanding: 0, duration: 92_081, latency: None },
    Known { name: "p4600-write-32blk", frames: 96, reads: 32, writes: 0, bytes: 16_384, completions: 64, tags: 16, outstanding: 16, duration: 476_636, latency: Some([7_903, 139_021, 272_611]) },
    Known { name: "p4600-write-4blk", frames: 12, reads: 4, writes: 0, bytes: 2_048, completions: 8, tags: 4, outstanding: 4, duration: 166_456, latency: Some([123_014, 133_477, 160_801]) },
    Known { name: "pm1725-write-4blk", frames: 96, reads: 32, writes: 0, bytes: 16_384, completions: 64, tags: 32, outstanding: 32, duration: 382_937, latency: Some([117_365, 158_109, 334_465]) },
    Known { name: "simple-nic-ping", frames: 12, reads: 3, writes: 6, bytes: 260, completions: 3, tags: 2, outstanding: 1, duration: 2_618_000, latency: Some([12_000, 13_000, 14_000]) },
    Known { name: "x520-1024B-32pkt", frames: 192, reads: 64, writes: 0, bytes: 32_768, completions: 128, tags: 16, outstanding: 16, duration: 1_145_914, latency: Some([11_635, 108_623, 253_116]) },
    Known { name: "x520-1500B-16pkt", frames: 144, reads: 48, writes: 0, bytes: 24_000, completions: 96, tags: 16, outstanding: 9, duration: 976_357, latency: Some([36_002, 119_570, 212_001]) },
    Known { name: "x520-64B-32pkt", frames: 64, reads: 32, writes: 0, bytes: 2_048, completions: 32, tags: 16, outstanding: 15, duration: 586_867, latency: Some([39_499, 126_721, 206_521]) },
];

fn read(folder: &std::path::Path, name: &str) -> Capture {
    capture::read_file(folder.join(format!("{name}.pcap"))).unwrap_or_else(|error| panic!("{error}"))
}

fn summary(folder: &std::path::Path, name: &str) -> Summary {
    let loading =
        Loading::new(folder.join(format!("{name}.pcap")), Filter::parse::<&str>(&[]).unwrap(), false);
    loading.and_then(Loading::finish).unwrap_or_else(|error| panic!("{error}")).0
}

#[test]
fn counts_and_latencies_match_an_independent_script() {
    let Some(folder) = captures() else { return };
    for known in KNOWN {
        let name = known.name;
        let capture = read(&folder, name);
        assert!(capture.problems.is_empty() && capture.others == 0, "{name}: {:?}", capture.problems);
        let found = capture::statistics(&capture);
        assert_eq!(capture.frames, known.frames, "{name}");
        assert_eq!(
            (found.reads, found.writes, found.completions),
            (known.reads, known.writes, known.completions),
            "{name}"
        );
        assert_eq!(found.read_bytes + found.written_bytes, known.bytes, "{name}");
        assert_eq!((found.tags.len(), found.max_outstanding), (known.tags, known.outstanding), "{name}");
        assert_eq!((found.completed, found.unanswered, found.unexpected), (known.reads, 0, 0), "{name}");
        assert_eq!(found.duration, Duration::from_ns(known.duration), "{name}");
        let latency = found.latency.map(|l| [l.min, l.median, l.max].map(Duration::as_ns));
        assert_eq!(latency, known.latency, "{name}");
    }
}

#[test]
fn malformed_frames_of_the_pm1725_are_all_reported() {
    let Some(folder) = captures() else { return };
    let capture = read(&folder, "pm1725-read-8blk");
    assert_eq!((capture.frames, capture.records.len(), capture.problems.len()), (167, 121, 46));
    // Frames 1 to 121 are memory writes of 256 bytes; the adapter lost its way after them.
    let frames: Vec<u64> = capture.problems.iter().map(|problem| problem.frame).collect();
    assert_eq!(frames, (122..=167).collect::<Vec<_>>());
    let requests = capture::requests(&capture, None);
    assert!(requests.iter().all(|r| r.operation == Operation::Write && r.bytes == 256));
}

#[test]
fn a_request_is_seen_once_on_each_link_it_crosses() {
    let Some(folder) = captures() else { return };
    let capture = read(&folder, "mrd-512byte-rc");
    let lengths = |direction| -> Vec<u32> {
        capture::requests(&capture, Some(direction)).iter().map(|request| request.bytes).collect()
    };
    assert_eq!((lengths(0), lengths(1)), (vec![512], vec![64; 8]));
    assert_eq!(capture::busiest_direction(&capture), Some(1));
}

/// The direction in which requests that are answered, or else any requests, travel.
fn asking(folder: &std::path::Path, name: &str) -> Flow {
    let flows = summary(folder, name).directions;
    flows.into_iter().max_by_key(|flow| (flow.tags.len(), flow.sizes.len())).expect("a direction")
}

/// Requests (bytes, how many), lowest and highest tag, the most that wait.
type Observed = (&'static [(Operation, u32, u64)], Option<(u16, u16)>, u32);

/// §6.1.2 of the paper: figure 14.
#[test]
fn the_observations_of_the_paper_come_out() {
    use Operation::{Read, Write};
    let Some(folder) = captures() else { return };
    let cases: [(&str, Observed); 6] = [
        ("x520-1024B-32pkt", (&[(Read, 512, 64)], Some((0, 15)), 16)),
        ("x520-1500B-16pkt", (&[(Read, 476, 16), (Read, 512, 32)], Some((0, 15)), 9)),
        ("x520-64B-32pkt", (&[(Read, 64, 32)], Some((0, 15)), 15)),
        ("p4600-write-32blk", (&[(Read, 512, 32)], Some((0, 15)), 16)),
        ("p4600-read-32blk", (&[(Write, 256, 64)], None, 0)),
        ("pm1725-write-4blk", (&[(Read, 512, 32)], Some((0, 63)), 32)),
    ];
    for (name, (sizes, tags, outstanding)) in cases {
        let flow = asking(&folder, name);
        let found: Vec<_> = flow.sizes.iter().map(|(&(op, bytes), &count)| (op, bytes, count)).collect();
        assert_eq!(found, sizes, "{name}");
        let ends = flow.tags.keys().next().zip(flow.tags.keys().last());
        assert_eq!(ends.map(|(first, last)| (first.value(), last.value())), tags, "{name}");
        assert_eq!((flow.max_outstanding, flow.unanswered), (outstanding, 0), "{name}");
        assert_eq!((flow.sequences.missing, flow.sequences.duplicates), (0, 0), "{name}");
    }
}

/// §6.1.1: figure 13.
#[test]
fn a_switch_passes_whole_reads_that_a_root_complex_splits() {
    let Some(folder) = captures() else { return };
    let some = |count, bytes| Pieces { count, bytes, mixed: false };
    for (name, unmodified, requests, behind) in [
        ("mrd-512byte-plx", true, some(1, 512), some(2, 256)),
        ("mrd-512byte-rc", false, some(8, 64), some(8, 64)),
    ] {
        let found = summary(&folder, name);
        let [crossing] = &found.crossings[..] else { panic!("{name}: {:?}", found.crossings) };
        let [(passage, 1)] = crossing.passages.iter().map(|(p, n)| (*p, *n)).collect::<Vec<_>>()[..] else {
            panic!("{name}: {:?}", crossing.passages)
        };
        assert_eq!(
            (passage.operation, passage.bytes, passage.unmodified),
            (Operation::Read, 512, unmodified)
        );
        assert_eq!((passage.requests, passage.completions_behind), (requests, behind), "{name}");
        assert_eq!(passage.completions_before, some(2, 256), "{name}");
        // Both adapters have the same addresses.
        let adapters: Vec<u32> = found.directions.iter().map(|flow| flow.sequences.adapters).collect();
        assert_eq!(adapters, [0, 2], "{name}");
    }
}
