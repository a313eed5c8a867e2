//! Random experiments: every TLP of every link is in the capture, as the fabric had it, and as often as the fabric counted.

use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tlplab_capture::dump::{Filter, Loading};
use tlplab_capture::summary::Sequences;
use tlplab_capture::{self as capture, Unit};
use tlplab_device::Record;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::{Experiment, FileKind};
use tlplab_fabric::probe::{Probe, TlpRecord, TransactionRecord, UnitContent, UnitRecord};
use tlplab_fabric::topology::Topology;
use tlplab_trace::pcapng::Settings;
use tlplab_trace::record::Flags;
use tlplab_trace::recorder::{Recorder, Targets};
use tlplab_units::Duration;
use tlplab_wire::tlp::Repr;

/// A component: what it is behind, by index into those before it, and its link.
#[derive(Clone, Debug)]
struct Place {
    parent: usize,
    link: &'static str,
}

/// What one device does.
#[derive(Clone, Debug)]
enum Work {
    /// DMA of this size, so far behind an aligned address.
    Dma { op: &'static str, size: u32, offset: u32 },
    /// These requests: read or write, address, bytes. Reads of nothing are flushes.
    Requests(Vec<(bool, u32, u32)>),
    /// What its driver tells it, with interrupts.
    Driven(&'static str),
    /// It is read or written by the host.
    Registers { op: &'static str, size: u32, offset: u32 },
}

#[derive(Clone, Debug)]
struct Fault {
    link: usize,
    up: bool,
    what: String,
}

#[derive(Clone, Debug)]
struct Sketch {
    seed: u64,
    flit: bool,
    length_only: bool,
    host: Vec<&'static str>,
    switches: Vec<Place>,
    devices: Vec<(Place, Work, u16)>,
    faults: Vec<Fault>,
}

fn place() -> impl Strategy<Value = Place> {
    let links = select(vec!["gen1 x1", "gen2 x4", "gen3 x2", "gen3 x8", "gen4 x4", "gen5 x16"]);
    (0..9usize, links).prop_map(|(parent, link)| Place { parent, link })
}

fn work() -> impl Strategy<Value = Work> {
    let size = || prop_oneof![1..20u32, 1..5000u32];
    let request = (any::<bool>(), 0..1u32 << 20, prop_oneof![Just(0), 1..20u32, 1..4096u32]);
    prop_oneof![
        3 => (select(vec!["read", "write", "both"]), size(), 0..70u32)
            .prop_map(|(op, size, offset)| Work::Dma { op, size, offset }),
        3 => prop::collection::vec(request, 1..20).prop_map(Work::Requests),
        1 => select(vec!["copier", "ring"]).prop_map(Work::Driven),
        2 => (select(vec!["mmio-read", "mmio-write"]), 1..65u32, 0..40u32)
            .prop_map(|(op, size, offset)| Work::Registers { op, size, offset }),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    let damages = vec![
        "corrupt",
        "drop",
        "poison",
        "ecrc",
        "type",
        "length",
        "payload",
        "boundary",
        "tag",
        "requester",
        "byte-count",
        "address",
        "abort",
        "refuse",
        "lose",
    ];
    let what = prop_oneof![
        select(vec!["1e-7", "1e-5", "1e-4"]).prop_map(|ber| format!("ber = {ber}")),
        (1..30u32, 1..9u32, select(damages))
            .prop_map(|(n, count, how)| format!("tlp = {n}\ncount = {count}\ndamage = \"{how}\"")),
        (10..60u32).prop_map(|n| format!("dllp = {n}\ndamage = \"drop\"")),
    ];
    (0..9usize, any::<bool>(), what).prop_map(|(link, up, what)| Fault { link, up, what })
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let host = select(vec![
        "",
        "ecrc = true",
        "enumeration = \"simulated\"",
        "interrupts = \"intx\"",
        "interrupts = \"msi\"",
        "completions = \"rcb\"",
        "rcb = \"128B\"",
        "latency = \"100ns\"",
    ]);
    let tags = select(vec![1, 3, 32, 256, 768]);
    (
        any::<u16>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        prop::collection::btree_set(host, 0..3),
        prop::collection::vec(place(), 0..3),
        prop::collection::vec((place(), work(), tags), 1..4),
        prop::collection::vec(fault(), 0..3),
    )
        .prop_map(|(seed, flit, length_only, host, switches, devices, faults)| Sketch {
            seed: seed.into(),
            flit,
            length_only,
            host: host.into_iter().collect(),
            switches,
            devices,
            faults,
        })
}

impl Sketch {
    /// As a file.
    fn text(&self) -> String {
        let fidelity = if self.length_only { "length-only" } else { "payload" };
        let mut text =
            format!("title = \"random\"\nstop = \"40us\"\nseed = {}\nfidelity = \"{fidelity}\"\n", self.seed);
        let mut keys = BTreeMap::new();
        keys.extend(self.host.iter().filter_map(|key| key.split_once(" = ")));
        let _ = writeln!(text, "[host]");
        keys.iter().for_each(|(key, value)| _ = writeln!(text, "{key} = {value}"));
        let link = |place: &Place| if self.flit { "gen6 x4 flit" } else { place.link };
        let mut above: Vec<String> = Vec::new();
        let under = |above: &[String], place: &Place, root: usize| match place.parent % (above.len() + 1) {
            n if n < above.len() => above[n].clone(),
            _ => format!("host.rp{root}"),
        };
        let mut roots = 0..;
        let mut components = Vec::new();
        for (n, switch) in self.switches.iter().enumerate() {
            let parent = under(&above, switch, roots.start);
            roots.start += usize::from(parent.starts_with("host"));
            let _ = writeln!(text, "[switch.sw{n}]\nunder = \"{parent}\"\nlink = \"{}\"", link(switch));
            above.push(format!("sw{n}"));
            components.push(format!("sw{n}"));
        }
        let mut loads = String::new();
        for (n, (place, work, tags)) in self.devices.iter().enumerate() {
            let parent = under(&above, place, roots.start);
            roots.start += usize::from(parent.starts_with("host"));
            let _ = writeln!(
                text,
                "[device.d{n}]\nunder = \"{parent}\"\nlink = \"{}\"\ntags = {tags}",
                link(place)
            );
            components.push(format!("d{n}"));
            match work {
                Work::Dma { op, size, offset } => {
                    let _ = writeln!(
                        loads,
                        "[load.d{n}]\nop = \"{op}\"\nsize = \"{size}B\"\noffset = \"{offset}B\"\noutstanding = 5"
                    );
                }
                Work::Requests(_) => {
                    let _ = writeln!(loads, "[load.d{n}]\nreplay = \"d{n}.csv\"\ntiming = \"fast\"");
                }
                Work::Driven(model) => _ = writeln!(text, "model = \"{model}\""),
                Work::Registers { op, size, offset } => {
                    let _ = writeln!(
                        loads,
                        "[load.r{n}]\ndevice = \"host\"\ntarget = \"d{n}\"\nop = \"{op}\"\nsize = \"{size}B\"\n\
                         offset = \"{offset}B\"\noutstanding = 3"
                    );
                }
            }
        }
        // Without digests none can be wrong.
        let possible = |fault: &&Fault| keys.contains_key("ecrc") || !fault.what.contains("ecrc");
        for fault in self.faults.iter().filter(|_| !self.flit).filter(possible) {
            let link = &components[fault.link % components.len()];
            let direction = if fault.up { "up" } else { "down" };
            let _ =
                writeln!(loads, "[[fault]]\nlink = \"{link}\"\ndirection = \"{direction}\"\n{}", fault.what);
        }
        text + &loads
    }

    /// What the devices that are told their requests ask for.
    fn trace(&self, file: &str) -> Vec<Record> {
        let device = file.rsplit('/').next().and_then(|name| name.strip_prefix('d')?.strip_suffix(".csv"));
        let device: usize = device.and_then(|n| n.parse().ok()).expect("the file of a device");
        let Work::Requests(requests) = &self.devices[device].1 else { panic!("{file}") };
        let record = |&(write, address, bytes): &(bool, u32, u32)| {
            let in_page = bytes.min(4096 - address % 4096);
            let bytes = if write { in_page.max(1) } else { in_page };
            Record { at: Duration::ZERO, write, address: address.into(), bytes }
        };
        requests.iter().map(record).collect()
    }
}

/// A TLP on a wire: what it was, what befell it, and its data.
type Sent = (Repr, Flags, Option<Vec<u8>>);

/// By link and direction, what was on it.
type Wires = BTreeMap<String, Vec<Sent>>;

/// Writes down what it sees, in its own way, and passes it on.
struct Witness {
    wires: Arc<Mutex<(Topology, Wires)>>,
    recorder: Box<dyn Probe>,
}

impl Witness {
    fn note(&self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>, replay: bool, nullified: bool) {
        let mut seen = self.wires.lock().unwrap();
        let (topology, wires) = &mut *seen;
        let ends =
            topology.links[record.link.index()].ports.map(|port| topology.ports[port.index()].name.clone());
        let [from, to] = if record.direction == 0 { [&ends[0], &ends[1]] } else { [&ends[1], &ends[0]] };
        let flags = Flags { bad: record.bad, replay, nullified };
        let data = tlp.payload.map(<[u8]>::to_vec);
        wires.entry(format!("{from} → {to}")).or_default().push((*tlp.repr, flags, data));
    }
}

impl Probe for Witness {
    fn begin(&mut self, topology: &Topology) {
        self.wires.lock().unwrap().0 = topology.clone();
        self.recorder.begin(topology);
    }
    fn unit(&mut self, record: &UnitRecord<'_>) {
        if let UnitContent::Tlp { replay, nullified, packet, .. } = &record.content {
            self.note(record, packet, *replay, *nullified);
        }
        self.recorder.unit(record);
    }
    fn tlp_in_flit(&mut self, record: &UnitRecord<'_>, tlp: &TlpRecord<'_>) {
        if let UnitContent::Flit { replay, .. } = record.content {
            self.note(record, tlp, replay, false);
        }
        self.recorder.tlp_in_flit(record, tlp);
    }
    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        self.recorder.transaction(record);
    }
}

/// TLPs of a direction as the fabric counts them: sent for the first time, and taken by the receiver, each once.
struct Counted {
    sent: u64,
    received: u64,
}

/// Runs a sketch with a capture; gives what was on the wires, and the fabric's counts.
fn run(sketch: &Sketch, path: &Path) -> (Wires, BTreeMap<String, Counted>) {
    let text = sketch.text();
    let experiment =
        Experiment::parse(&|_| Ok(text.clone()), "t.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let files = experiment.files.iter().filter(|file| file.kind == FileKind::Trace);
    let traces = files.map(|file| (file.path.clone(), sketch.trace(&file.path))).collect();
    let targets = Targets {
        pcapng: Some(path.into()),
        pcapng_settings: Settings { horizon: experiment.stop.time, ..Settings::default() },
        ..Targets::default()
    };
    let recorder = Recorder::create(targets).unwrap();
    let wires = Arc::default();
    let witness = Witness { wires: Arc::clone(&wires), recorder: recorder.probe() };
    let inputs = Inputs { traces, probe: Some(Box::new(witness)), ..Inputs::default() };
    let mut run = Run::new(experiment, inputs).unwrap_or_else(|e| panic!("{e}\n{text}"));
    // A run that fails, because a fault has broken what a driver waits for, has its capture, too.
    let _ = run.finish();
    recorder.finish().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let fabric = run.fabric();
    let topology = fabric.topology().clone();
    let mut counted = BTreeMap::new();
    for link in &topology.links {
        let name = link.ports.map(|port| topology.ports[port.index()].name.clone());
        for (from, to) in [(0, 1), (1, 0)] {
            let sent = fabric.direction_result(link.ports[from]).wire.tlps;
            let received = fabric.direction_result(link.ports[to]).transmitter.tlps_received;
            counted.insert(format!("{} → {}", name[from], name[to]), Counted { sent, received });
        }
    }
    let seen = std::mem::take(&mut wires.lock().unwrap().1);
    (seen, counted)
}

/// The payload of a TLP as a wire has it: its data where its header says that they are, and zeros.
fn on_the_wire(repr: &Repr, data: &[u8]) -> Vec<u8> {
    let start = match repr.kind() {
        tlplab_wire::tlp::Kind::Completion(completion) => usize::from(completion.lower_address() % 4),
        tlplab_wire::tlp::Kind::MemWrite { span, .. } => {
            (0..4).find(|bit| span.enables().first() >> bit & 1 == 1).unwrap_or(0)
        }
        _ => 0,
    };
    let mut payload = vec![0; repr.payload_bytes() as usize];
    payload[start..start + data.len()].copy_from_slice(data);
    payload
}

fn every_tlp_is_there(sketch: &Sketch) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.pcapng");
    let (wires, counted) = run(sketch, &path);
    let capture = capture::read_file(&path).unwrap();
    assert_eq!((capture.problems.as_slice(), capture.others), (&[][..], 0), "{}", sketch.text());
    let mut read: Wires = BTreeMap::new();
    for record in &capture.records {
        let Unit::Tlp { repr, .. } = record.unit else { continue };
        let data = (!sketch.length_only).then(|| capture.payload(record).to_vec());
        let direction = capture.directions[usize::from(record.direction)].to_string();
        read.entry(direction).or_default().push((repr, record.flags, data));
    }
    for (direction, count) in &counted {
        let (sent, found) = (wires.get(direction), read.get(direction));
        let (sent, found) = (sent.map_or(&[][..], Vec::as_slice), found.map_or(&[][..], Vec::as_slice));
        let place = || format!("{direction}\n{}", sketch.text());
        assert_eq!(found.len(), sent.len(), "{}", place());
        for (n, ((repr, flags, data), (its, befell, payload))) in sent.iter().zip(found).enumerate() {
            assert_eq!((repr, flags), (its, befell), "number {n} of {}", place());
            if let (Some(data), Some(payload)) = (data, payload) {
                assert_eq!(&on_the_wire(repr, data), payload, "number {n} of {}", place());
            }
        }
        let first = found.iter().filter(|(_, flags, _)| !flags.replay && !flags.nullified).count();
        assert_eq!(first as u64, count.sent, "the fabric's count of {}", place());
    }
    assert!(read.keys().all(|direction| counted.contains_key(direction)), "{:?}", read.keys());
    let loading = Loading::new(&path, Filter::parse::<&str>(&[]).unwrap(), false);
    for flow in loading.and_then(Loading::finish).unwrap().0.directions {
        let direction = flow.direction.to_string();
        let (Counted { sent, received }, summed) = (&counted[&direction], flow.kinds.values().sum::<u64>());
        assert!(
            (*received..=*sent).contains(&summed),
            "{summed} of {received} to {sent}: {direction}\n{}",
            sketch.text()
        );
        let Sequences { gaps, missing, duplicates, unproven, .. } = flow.sequences;
        assert_eq!(
            (gaps, missing, duplicates, unproven),
            (0, 0, 0, 0),
            "{}\n{}",
            flow.direction,
            sketch.text()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_tlp_of_a_random_experiment_is_in_its_capture(sketch in sketch()) {
        every_tlp_is_there(&sketch);
    }
}

/// A TLP or flit is damaged and sent again: the summary has each request and each completion once, and no other wants an answer.
#[test]
fn damaged_tlps_count_when_they_have_come() {
    for (link, unit) in [("gen3 x4", "tlp"), ("gen4 x4 flit", "flit")] {
        for (direction, damage) in [("up", "corrupt"), ("down", "corrupt"), ("up", "drop"), ("down", "drop")]
        {
            let text = format!(
                "title = \"damaged\"\n[device.d]\nunder = \"host.rp0\"\nlink = \"{link}\"\n[load]\n\
                 d = {{ op = \"read\", size = \"64B\", count = 40, outstanding = 5 }}\n[[fault]]\nlink = \"d\"\n\
                 direction = \"{direction}\"\n{unit} = 3\ncount = 4\ndamage = \"{damage}\"\n"
            );
            let experiment = Experiment::parse(&|_| Ok(text.clone()), "t.toml").unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("run.pcapng");
            let recorder =
                Recorder::create(Targets { pcapng: Some(path.clone()), ..Targets::default() }).unwrap();
            let inputs = Inputs { probe: Some(recorder.probe()), ..Inputs::default() };
            Run::new(experiment, inputs).unwrap().finish().unwrap();
            recorder.finish().unwrap();
            let loading = Loading::new(&path, Filter::parse::<&str>(&[]).unwrap(), false);
            let (summary, _) = loading.and_then(Loading::finish).unwrap();
            assert!(summary.repeated > 0);
            for flow in &summary.directions {
                // Messages about the errors come besides.
                let kinds = flow.kinds.iter().filter(|(name, _)| ["MRd", "CplD"].contains(name));
                let tlps: u64 = kinds.map(|(_, count)| count).sum();
                assert_eq!(
                    (tlps, flow.unexpected, flow.unanswered),
                    (40, 0, 0),
                    "{}\n{text}",
                    flow.direction
                );
            }
            let capture = capture::read_file(&path).unwrap();
            let statistics = capture::statistics(&capture);
            let counts =
                (statistics.reads, statistics.completed, statistics.unexpected, statistics.unanswered);
            assert_eq!(counts, (40, 40, 0, 0), "{text}");
            assert_eq!(capture::requests(&capture, None).len(), 40, "{text}");
        }
    }
}

/// The reads whose completions were missing: 16 B at offset 2, 300 B at offset 3, 1 B at offset 1; and a flush.
#[test]
fn completions_of_unaligned_reads_are_there() {
    let reads = vec![(false, 0x1002, 16), (false, 0x2003, 300), (false, 0x3001, 1), (false, 0x4003, 0)];
    let place = Place { parent: 0, link: "gen3 x4" };
    let (switches, faults) = (vec![place.clone()], Vec::new());
    let devices = vec![(place, Work::Requests(reads), 32)];
    let sketch = Sketch { seed: 1, flit: false, length_only: false, host: vec![], switches, devices, faults };
    every_tlp_is_there(&sketch);
    let folder = tempfile::tempdir().unwrap();
    let (wires, _) = run(&sketch, &folder.path().join("run.pcapng"));
    assert_eq!(
        wires["sw0 → d0"].iter().filter(|(repr, ..)| repr.name() == "CplD").count(),
        5,
        "300 B are two"
    );
}

/// Reads with tags of 14 bits, which only headers of flit mode have.
#[test]
fn a_tag_that_no_capture_holds_ends_it_with_a_message() {
    let text = "title = \"wide tags\"\nstop = \"40us\"\n[host]\nlatency = \"5us\"\n[device.ssd]\nunder = \"host.rp0\"\n\
                link = \"gen6 x16 flit\"\ntags = 2000\n[load.ssd]\nop = \"read\"\nsize = \"64B\"\noutstanding = 2000\n";
    let experiment = Experiment::parse(&|_| Ok(text.into()), "t.toml").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [capture, trace] = ["run.pcapng", "run.pftrace"].map(|name| folder.path().join(name));
    let targets =
        Targets { pcapng: Some(capture.clone()), perfetto: Some(trace.clone()), ..Targets::default() };
    let recorder = Recorder::create(targets).unwrap();
    let inputs = Inputs { probe: Some(recorder.probe()), ..Inputs::default() };
    Run::new(experiment, inputs).unwrap().finish().unwrap();
    let error = recorder.finish().unwrap_err().to_string();
    let path = capture.display();
    assert!(error.starts_with(&format!("{path}: cannot write: MRd, len 16, ")), "{error}");
    for part in
        [" tag 0x400, ", " on ssd → host.rp0 at 0s: ", "ten bits for the tag", "`tags` of 768 or fewer"]
    {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(!capture.exists() && trace.exists(), "the other file is whole");
}
