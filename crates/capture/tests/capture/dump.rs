//! Frames as lines, and which of them are shown.

use crate::support::{Pcap, Pcapng, READ, frame};
use std::fs;
use tlplab_capture::dump::{Counts, Dump, Filter, Options, TimeStyle};
use tlplab_wire::dllp;

const COMPLETION: [u8; 16] = [0x4a, 0, 0x20, 1, 0x1b, 0, 0, 4, 0x19, 0, 2, 0, 0xde, 0xad, 0xbe, 0xef];
/// The completer aborts: status 4.
const ABORT: [u8; 12] = [0x0a, 0, 0, 0, 0x1b, 0, 0x82, 0, 0x19, 0x1d, 2, 0];

fn options(filter: &str) -> Options {
    Options {
        filter: Filter::parse(&[filter]).unwrap_or_else(|error| panic!("{error}")),
        json: false,
        time: TimeStyle::Epoch,
        verbose: false,
        limit: None,
        copy: None,
        quiet: false,
    }
}

fn dump(file: &[u8], options: Options) -> (Vec<String>, Counts) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcap");
    fs::write(&path, file).unwrap();
    let mut dump = Dump::file(&path, options).unwrap_or_else(|error| panic!("{error}"));
    let mut lines = String::new();
    while dump.step(&mut lines).unwrap() {}
    (lines.lines().map(String::from).collect(), dump.finish().unwrap())
}

/// A read, its completion, an aborted one, something malformed, other traffic, and the three interfaces beside the TLPs.
fn mixed() -> Vec<u8> {
    let mut back = frame(1, 0x3002, &COMPLETION);
    // The completion comes back.
    let (from, to) = (30, 34);
    let source: [u8; 4] = back[from..from + 4].try_into().unwrap();
    back.copy_within(to..to + 4, from);
    back[to..to + 4].copy_from_slice(&source);
    let frames = [
        frame(0, 0x3002, &READ),
        back,
        frame(0, 0x3002, &ABORT),
        frame(0, 0x3002, &[0xa0; 12]),
        frame(0, 53, &READ),
        control(0x5001, &[0x40 | 0xf << 2 | 1, 4, 0x12, 0x34, 0x56, 0x78]),
        control(12287, &[1, 0, 0, 0]),
        control(0x5002, &[0x10, 5, 10, 0, 0, 1]),
    ];
    let frames: Vec<_> = (0..).zip(&frames).map(|(n, f)| (7, n * 1500, f.len(), f.as_slice())).collect();
    Pcap::NANO.file(&frames)
}

/// A datagram without the NetTLP header.
fn control(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = frame(0, port, &[0; 12]);
    let length = 8 + payload.len() as u16;
    frame[16..18].copy_from_slice(&(20 + length).to_be_bytes());
    frame[38..40].copy_from_slice(&length.to_be_bytes());
    frame.truncate(42);
    frame.extend(payload);
    frame.resize(60, 0);
    frame
}

#[test]
fn lines_have_the_format_of_the_paper() {
    let (lines, counts) = dump(&mixed(), options(""));
    let (there, back) = ("IP 192.168.10.1.", "IP 192.168.10.3.");
    assert_eq!(counts, Counts { frames: 8, shown: 7, malformed: 1, others: 1, dropped: 0 });
    let expected = [
        format!(
            "7.000000000 {there}12290 > 192.168.10.3.12290: NetTLP: MRd, len 128, requester 19:00.0, tag 0x02, last 0xf, first 0xf, Addr 0x90000000, RO"
        ),
        format!(
            "7.000001500 {back}12290 > 192.168.10.1.12290: NetTLP: CplD, len 1, completer 1b:00.0, success, bc 4, requester 19:00.0, tag 0x02, lowaddr 0x00, RO"
        ),
        format!(
            "7.000003000 {there}12290 > 192.168.10.3.12290: NetTLP: Cpl, completer 1b:00.0, CA, bc 512, requester 19:03.5, tag 0x02, lowaddr 0x00"
        ),
        format!(
            "7.000004500 {there}12290 > 192.168.10.3.12290: NetTLP: malformed: not a TLP: Fmt/Type at byte 0: 0xa0 is not a defined prefix (PCIe 5.0 §2.2.10)"
        ),
        format!(
            "7.000007500 {there}20481 > 192.168.10.3.20481: NetTLP config write, mask 0xf, reg 0x410, data 0x12345678"
        ),
        format!("7.000009000 {there}12287 > 192.168.10.3.12287: NetTLP message request, BAR4 address"),
        format!(
            "7.000010500 {there}20482 > 192.168.10.3.20482: NetTLP registers read, reg 0x05 dstip, data 0x0100000a"
        ),
    ];
    for (line, expected) in lines.iter().zip(&expected) {
        let malformed = expected.contains("malformed");
        assert!(
            if malformed { line.starts_with(&expected[..70]) } else { line == expected },
            "{line}\n{expected}"
        );
    }
    assert_eq!(lines.len(), expected.len());
}

#[test]
fn filters_pass_the_matching_frames() {
    let file = mixed();
    let cases: [(&str, &[usize]); 28] = [
        ("type=MRd", &[1]),
        ("type=mrd,cpl", &[1, 3]),
        ("type=tlp", &[1, 2, 3]),
        ("type!=tlp", &[4, 6, 7, 8]),
        ("type=control", &[6, 7, 8]),
        ("type=registers or type=config", &[6, 8]),
        ("tag=2", &[1, 2, 3]),
        ("tag=0x2 and type=MRd", &[1]),
        ("tag=0-1,3-255", &[]),
        ("requester=19:00", &[1, 2]),
        ("requester=19:03", &[3]),
        ("requester=19:03.4", &[]),
        ("completer=1b:00.0 status=CA", &[3]),
        ("status!=SC type=Cpl,CplD", &[3]),
        ("port=12287,0x5002", &[7, 8]),
        ("host=192.168.10.1", &[1, 2, 3, 4, 6, 7, 8]),
        ("src=192.168.10.3", &[2]),
        ("not dst=192.168.10.3", &[2]),
        ("address=0x900001ff", &[1]),
        ("address=0x90000200", &[]),
        ("address=0x8fffffff+2", &[1]),
        ("bytes=4", &[2]),
        ("malformed", &[4]),
        ("errors", &[3, 4]),
        ("not (errors or type=control)", &[1, 2]),
        ("type=MRd or type=CplD bytes=5", &[1]),
        ("vlan=5", &[2]),
        ("frame=2-3 seq=598", &[2, 3]),
    ];
    for (filter, frames) in cases {
        let json = Options { json: true, ..options(filter) };
        let (lines, counts) = dump(&file, json);
        let frame = |line: &String| {
            line.split("\"frame\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
        };
        assert_eq!(lines.iter().map(frame).collect::<Vec<usize>>(), frames, "{filter}");
        assert_eq!(counts.shown, frames.len() as u64, "{filter}");
    }
}

#[test]
fn a_wrong_filter_names_the_wrong_word() {
    let cases = [
        ("type=MRdd", "\"type=MRdd\": unknown type \"MRdd\"; expected one of MRd, MWr"),
        ("type=ackermann", "\"type=ackermann\": unknown type \"ackermann\"; expected one of MRd"),
        ("type=PM_Enter_L9", "\"type=PM_Enter_L9\": unknown type \"PM_Enter_L9\"; expected one of MRd"),
        ("type=UpdateFC-X", "\"type=UpdateFC-X\": unknown type \"UpdateFC-X\"; expected one of MRd"),
        ("host=10.0.0.400", "\"host=10.0.0.400\": \"10.0.0.400\" is not valid; expected an address such as"),
        ("src!=10.0.0.1,", "\"src!=10.0.0.1,\": \"\" is not valid; expected an address such as"),
        ("tag=0-16384", "\"tag=0-16384\": tag is too large; expected at most 16383"),
        ("tc=8", "\"tc=8\": tc is too large; expected at most 7"),
        ("port=65536", "\"port=65536\": port is too large; expected at most 65535"),
        ("vlan=4096", "\"vlan=4096\": vlan is too large; expected at most 4095"),
        ("seq=1,65536", "\"seq=1,65536\": seq is too large; expected at most 65535"),
        ("tga=3", "\"tga=3\": unknown key; expected one of type, tag"),
        ("frobnicate", "\"frobnicate\": expected key=value or one of malformed"),
        ("tag=9-3", "\"tag=9-3\": not a number; expected numbers such as"),
        ("address=0x1000+0", "\"address=0x1000+0\": not a number; expected numbers such as"),
        ("requester=1b", "\"requester=1b\": expected a function such as"),
        ("requester=1b:20", "\"requester=1b:20\": expected a function such as"),
        ("status=XY", "\"status=XY\": unknown status; expected SC"),
        ("tag=1 or", "the filter ends where a test is expected"),
        ("(tag=1", "\"(\": the closing ) is missing"),
        ("tag=1)", "\")\": the opening ( is missing"),
        ("and tag=1", "\"and\": a test is expected here"),
    ];
    for (filter, message) in cases {
        let error = Filter::parse(&[filter]).unwrap_err().to_string();
        assert!(error.starts_with(message), "{filter}: {error}");
    }
    let deep = "not ".repeat(100_000) + "tag=1";
    assert!(Filter::parse(&[deep]).is_err());
    assert!(Filter::parse(&["(".repeat(100_000)]).is_err());
}

#[test]
fn every_dllp_can_be_asked_for() {
    let names =
        (0..=255).filter_map(|byte| dllp::Repr::from_content([byte, 0, 0, 0]).ok()).map(|dllp| dllp.name());
    for name in names.chain(["InitFC", "InitFC1", "InitFC2", "UpdateFC"]) {
        assert!(Filter::parse(&[format!("type={name}")]).is_ok(), "{name}");
    }
    for most in ["tag=16383", "tc=7", "port=65535", "vlan=4095", "seq=0-65535", "host=10.0.0.1,sw0.up"] {
        assert!(Filter::parse(&[most]).is_ok(), "{most}");
    }
}

#[test]
fn completions_name_their_request_and_latency() {
    let (lines, _) = dump(&mixed(), Options { json: true, ..options("type=CplD") });
    assert!(
        lines[0].contains("\"response_to\":1,") && lines[0].contains("\"latency_ns\":1500.0"),
        "{}",
        lines[0]
    );
    // The abort came from the wrong side.
    let (lines, _) = dump(&mixed(), Options { json: true, ..options("type=Cpl") });
    assert!(!lines[0].contains("response_to"), "{}", lines[0]);
}

#[test]
fn shown_frames_are_copied_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.pcapng");
    let (lines, _) = dump(&mixed(), Options { copy: Some(copy.clone()), ..options("type=tlp") });
    let (again, counts) = dump(&fs::read(&copy).unwrap(), options(""));
    assert_eq!((again, counts.frames), (lines, 3));
    let none = Options { copy: Some(copy.clone()), limit: Some(2), ..options("") };
    assert_eq!(dump(&mixed(), none).1.shown, 2);
    assert_eq!(dump(&fs::read(&copy).unwrap(), options("")).1.frames, 2);
}

#[test]
fn times_are_as_fine_as_the_file() {
    let frame = frame(0, 0x3002, &READ);
    let mut file = Pcapng::new(false);
    file.interface(1, Some(15), None);
    file.packet(0, 1_000_000_000_000_007, &frame);
    let (lines, _) = dump(&file.bytes, options(""));
    assert!(lines[0].starts_with("1.000000000000007 IP "), "{}", lines[0]);
    let mut file = Pcapng::new(true);
    file.interface(1, None, Some(-2));
    file.packet(0, 1_500_000, &frame);
    let (lines, _) = dump(&file.bytes, options(""));
    assert!(lines[0].starts_with("-0.500000 IP "), "{}", lines[0]);
}
