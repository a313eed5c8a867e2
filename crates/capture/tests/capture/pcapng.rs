//! The pcapng writer, judged by tshark and by our own reader.

use crate::support::id;
use std::path::Path;
use std::process::Command;
use tlplab_capture::{self as capture, Unit as Read};
use tlplab_trace::pcapng::{Settings, Writer};
use tlplab_trace::record::{Content, Flags, Flit, Link, Tlp, Unit};
use tlplab_units::{FcClass, Tag, Time, Vc};
use tlplab_wire::dllp::{self, FcPhase, FlowControl, Sequence};
use tlplab_wire::tlp::{Attributes, Repr, TransactionId};

fn links() -> Vec<Link> {
    let link = |lower: &str, upper: &str| Link { lower: lower.into(), upper: upper.into() };
    vec![link("ssd", "sw0"), link("sw0", "host.rp0")]
}

fn unit(link: u16, direction: u8, start_fs: u64, content: Content<'_>) -> Unit<'_> {
    let at = |fs| Time::from_fs(start_fs + fs);
    Unit {
        link,
        direction,
        start: at(0),
        end: at(1_000_000),
        arrive: at(2_000_000),
        content,
        flags: Flags::default(),
    }
}

fn tlp<'a>(repr: &'a Repr, payload: Option<&'a [u8]>) -> Content<'a> {
    Content::Tlp(Tlp { repr, sequence: 7, payload, transaction: Some(3), flow: Some(0) })
}

/// A read through a switch, its completion without payload, DLLPs, a flit, a corrupted replay.
fn sample(settings: Settings) -> Vec<u8> {
    let read = Repr::mem_read(id(0x12), 0x9000_0000, 256).unwrap();
    let write = Repr::mem_write(id(5), 0x1_0000_0000, 64).unwrap();
    let reply = Repr::completion_with_data(Default::default(), id(0x12), 256, 0, 256).unwrap();
    let data: Vec<u8> = (0..64).collect();
    let ack = dllp::Repr::Ack(Sequence::new(7));
    let credits =
        dllp::Repr::FlowControl(FlowControl::new(FcPhase::Update, FcClass::Posted, Vc::ZERO, 32, 512));
    let mut writer = Writer::new(Vec::new(), &links(), settings);
    writer.unit(&unit(0, 0, 1, tlp(&read, None)));
    writer.unit(&unit(1, 0, 100_000_001, tlp(&read, None)));
    writer.unit(&unit(0, 1, 110_000_000, Content::Dllp(ack)));
    writer.unit(&unit(1, 1, 6_400_000_000_000, tlp(&reply, None)));
    writer.unit(&unit(0, 0, 6_400_000_500_123, tlp(&write, Some(&data))));
    let flags = Flags { bad: true, replay: true, nullified: false };
    writer.unit(&Unit { flags, ..unit(0, 0, 6_400_001_000_000, tlp(&write, Some(&data))) });
    writer.unit(&unit(0, 1, 6_400_002_000_000, Content::Dllp(credits)));
    writer.unit(&unit(1, 0, 6_400_003_000_000, Content::Flit(Flit { sequence: 9, tlp_bytes: 80 })));
    writer.finish().unwrap()
}

#[test]
fn a_written_capture_reads_back() {
    let capture = capture::read(&sample(Settings::default())).unwrap();
    assert!(capture.problems.is_empty() && capture.others == 0, "{:?}", capture.problems);
    let names: Vec<String> =
        capture.records.iter().map(|r| capture.directions[usize::from(r.direction)].to_string()).collect();
    let (up, down) = ("ssd → sw0", "sw0 → ssd");
    let far = "sw0 → host.rp0";
    assert_eq!(names, [up, far, down, "host.rp0 → sw0", up, up, down, far]);
    assert_eq!(capture.start_fs, 0);
    let times: Vec<u64> = capture.records.iter().map(|r| r.time.as_fs()).collect();
    let expected = [0, 100_000_000, 110_000_000, 6_400_000_000_000, 6_400_000_500_000, 6_400_001_000_000];
    assert_eq!(times[..6], expected, "to 100 ps");
    let Read::Tlp { repr, header, port, .. } = &capture.records[3].unit else { panic!() };
    assert_eq!((repr.name(), repr.payload_bytes(), *port), ("CplD", 256, 0x3002));
    assert_eq!(
        (header.sequence, header.timestamp),
        (0, 1_000_000),
        "counted per interface, in ticks of 6.4 ns"
    );
    assert!(capture.payload(&capture.records[3]).is_empty());
    assert_eq!(capture.payload(&capture.records[4]), (0..64).collect::<Vec<u8>>());
    assert!(matches!(capture.records[2].unit, Read::Dllp(dllp::Repr::Ack(s)) if s.value() == 7));
    assert_eq!(capture.records[7].unit, Read::Flit { sequence: 9 });
    assert_eq!(capture.records[5].flags, Flags { bad: true, replay: true, nullified: false });
    let requests = capture::requests(&capture, Some(0));
    assert_eq!(requests.iter().map(|r| r.frame).collect::<Vec<_>>(), [1, 5], "without the corrupted copy");
}

#[test]
fn times_are_as_fine_as_the_horizon_lets_them() {
    let times = |horizon_fs: u64| -> Vec<i128> {
        let settings = Settings { horizon: Some(Time::from_fs(horizon_fs)), ..Settings::default() };
        let capture = capture::read(&sample(settings)).unwrap();
        capture.records.iter().map(|r| capture.start_fs + i128::from(r.time.as_fs())).collect()
    };
    assert_eq!(times(18_000_000_000)[1], 100_000_001, "18 µs: femtoseconds");
    assert_eq!(times(180_000_000_000)[1], 100_000_000, "180 µs: 10 fs");
    assert_eq!(times(7_000_000_000_000)[4], 6_400_000_500_000, "7 ms: ps");
    assert_eq!(times(6_500_000_000_000_000)[4], 6_400_000_500_000, "6.5 s: 100 ps");
}

#[test]
fn payloads_can_be_cut_and_the_link_layer_left_out() {
    let capture = capture::read(&sample(Settings { link_layer: false, payload: 10, horizon: None })).unwrap();
    assert!(capture.problems.is_empty(), "{:?}", capture.problems);
    assert_eq!(capture.records.len(), 5);
    assert_eq!(capture.payload(&capture.records[3]), (0..10).collect::<Vec<u8>>());
}

#[test]
fn the_first_error_of_the_sink_is_returned_at_the_end() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let repr = Repr::mem_read(id(1), 0, 4).unwrap();
    let mut writer = Writer::new(Full(800), &links(), Settings::default());
    (0..10).for_each(|i| writer.unit(&unit(0, 0, i, tlp(&repr, None))));
    assert_eq!(writer.finish().err().unwrap().kind(), std::io::ErrorKind::StorageFull);
}

/// The message of a capture that had to end at this unit, which ends no earlier message.
fn refused(unit: &Unit<'_>) -> String {
    let mut writer = Writer::new(Vec::new(), &links(), Settings::default());
    writer.unit(unit);
    let repr = Repr::mem_read(id(1), 0, 4).unwrap();
    writer.unit(&self::unit(9, 0, 0, tlp(&repr, None)));
    writer.finish().expect_err("nothing is left out in silence").to_string()
}

#[test]
fn an_unwritable_tlp_ends_the_capture_with_a_message() {
    let wide = TransactionId::new(id(0).requester, Tag::new(0x812).unwrap());
    let (wide, write) =
        (Repr::mem_read(wide, 0x9000_0000, 64).unwrap(), Repr::mem_write(id(5), 2, 6).unwrap());
    let error = refused(&unit(1, 1, 2_500_000, tlp(&wide, None)));
    assert!(error.starts_with("MRd, len 16, ") && error.contains(", tag 0x812, "), "{error}");
    assert!(
        error.contains(" on host.rp0 → sw0 at 2.5ns: ") && error.contains("ten bits for the tag"),
        "{error}"
    );
    // Six bytes from the third of eight on; seven do not fit, whole doublewords do.
    let error = refused(&unit(0, 0, 0, tlp(&write, Some(&[1; 7]))));
    assert!(error.contains("MWr") && error.contains(" on ssd → sw0 at 0s: Payload"), "{error}");
    let error = refused(&unit(2, 0, 1_000, tlp(&write, None)));
    assert!(error.ends_with(" on link 2 at 1ps: the capture was started without this link"), "{error}");
}

#[test]
fn payload_bytes_stand_at_the_offset_of_their_header() {
    let write = Repr::mem_write(id(5), 0x1002, 5).unwrap();
    let reply = Repr::completion_with_data(Default::default(), id(5), 16, 0x02, 16).unwrap();
    let digest = Attributes { digest: true, ..*reply.attributes() };
    let reply = reply.with_attributes(digest).unwrap();
    let flush = Repr::completion_with_data(Default::default(), id(5), 1, 0x03, 1).unwrap();
    let data: Vec<u8> = (1..=16).collect();
    let mut writer = Writer::new(Vec::new(), &links(), Settings::default());
    writer.unit(&unit(0, 0, 0, tlp(&write, Some(&data[..5]))));
    writer.unit(&unit(0, 1, 1, tlp(&reply, Some(&data))));
    writer.unit(&unit(0, 1, 2, tlp(&flush, Some(&[]))));
    let whole: Vec<u8> = (1..=8).collect();
    writer.unit(&unit(0, 0, 3, tlp(&write, Some(&whole))));
    let capture = capture::read(&writer.finish().unwrap()).unwrap();
    assert_eq!(capture.problems, []);
    let payloads: Vec<&[u8]> = capture.records.iter().map(|record| capture.payload(record)).collect();
    let framed = [&[0, 0][..], &data, &[0, 0]].concat();
    assert_eq!(payloads, [&[0, 0, 1, 2, 3, 4, 5, 0][..], &framed, &[0; 4], &whole]);
}

/// Runs tshark on a file, or says why not.
fn tshark(path: &Path, arguments: &[&str]) -> Option<Vec<String>> {
    let Ok(output) = Command::new("tshark").arg("-n").arg("-r").arg(path).args(arguments).output() else {
        println!("skipped: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(String::from).collect())
}

fn fields<'a>(names: &[&'a str]) -> Vec<&'a str> {
    ["-T", "fields", "-E", "separator=;"]
        .into_iter()
        .chain(names.iter().flat_map(|name| ["-e", name]))
        .collect()
}

#[test]
fn tshark_reads_it_as_it_was_meant() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.pcapng");
    // Both the coarse times and the finest that this run can have.
    for horizon in [None, Some(Time::from_fs(18_000_000_000_000))] {
        std::fs::write(&path, sample(Settings { horizon, ..Settings::default() })).unwrap();
        if judge(&path).is_none() {
            return;
        }
    }
}

fn judge(path: &Path) -> Option<()> {
    let names = ["frame.number", "frame.time_epoch", "frame.interface_name", "frame.encap_type", "frame.len"];
    let lines = tshark(path, &fields(&names))?;
    // tshark shows nanoseconds; what is finer is cut off. Encapsulations: 1 Ethernet, 45 user 0.
    let expected = [
        "1;0.000000000;ssd → sw0;1;60",
        "2;0.000000100;sw0 → host.rp0;1;60",
        "3;0.000000110;sw0 → ssd (link layer);45;7",
        "4;0.006400000;host.rp0 → sw0;1;316",
        "5;0.006400000;ssd → sw0;1;128",
        "6;0.006400001;ssd → sw0;1;128",
        "7;0.006400002;sw0 → ssd (link layer);45;7",
        "8;0.006400003;sw0 → host.rp0 (link layer);45;259",
    ];
    assert_eq!(lines, expected);
    let names = [
        "frame.number",
        "frame.cap_len",
        "udp.srcport",
        "udp.dstport",
        "udp.length",
        "ip.checksum.status",
        "ip.id",
    ];
    let arguments = [fields(&names), vec!["-o", "ip.check_checksum:TRUE", "-Y", "udp"]].concat();
    let expected = [
        "1;60;12290;12290;26;1;0x0007",
        "2;60;12290;12290;26;1;0x0007",
        "4;60;12290;12290;282;1;0x0007",
        "5;128;12293;12293;94;1;0x0007",
        "6;128;12293;12293;94;1;0x0007",
    ];
    assert_eq!(tshark(path, &arguments)?, expected);
    let comments = tshark(path, &fields(&["frame.comment", "frame.packet_flags_crc_error"]))?;
    assert_eq!(comments[5], "corrupted, replay;1");
    assert!(comments[..5].iter().all(|line| line == ";"), "{comments:?}");
    let malformed = tshark(path, &["-Y", "_ws.malformed || _ws.expert.severity >= 8388608"])?;
    assert!(malformed.is_empty(), "{malformed:?}");
    Some(())
}

#[test]
fn addresses_resolve_to_the_names_of_the_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.pcapng");
    std::fs::write(&path, sample(Settings::default())).unwrap();
    let names = fields(&["ip.src_host", "ip.dst_host"]);
    let Some(lines) = tshark(&path, &[&["-Nn", "-Y", "udp"], &names[..]].concat()) else { return };
    assert_eq!(lines[..2], ["ssd;sw0", "sw0;host.rp0"]);
}

/// The field's own decoder of NetTLP is a Lua plugin; this one reads the same fields at the same ports.
#[test]
fn a_lua_plugin_on_the_published_ports_sees_the_tlps() {
    let directory = tempfile::tempdir().unwrap();
    let (path, script) = (directory.path().join("run.pcapng"), directory.path().join("ports.lua"));
    std::fs::write(&path, sample(Settings::default())).unwrap();
    let plugin = r#"
local nettlp = Proto("nettlpports", "NetTLP ports")
local head = ProtoField.uint32("nettlpports.dw0", "DW0", base.HEX)
nettlp.fields = { head }
function nettlp.dissector(buffer, pinfo, tree) tree:add(nettlp, buffer()):add(head, buffer(6, 4)) end
DissectorTable.get("udp.port"):add("12288-12544", nettlp)
"#;
    std::fs::write(&script, plugin).unwrap();
    let option = format!("lua_script:{}", script.display());
    let arguments = [vec!["-X", &option, "-Y", "udp"], fields(&["nettlpports.dw0"])].concat();
    let Some(lines) = tshark(&path, &arguments) else { return };
    assert_eq!(lines, ["0x00000040", "0x00000040", "0x4a000040", "0x60000010", "0x60000010"]);
}
