//! The differential method on a made-up machine: a tree of files as the kernel shows it, and a reader that stands in for the functions.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tlplab_hostprobe::Failure;
use tlplab_hostprobe::access::{Access, Reading};
use tlplab_hostprobe::clock::Calibration;
use tlplab_hostprobe::document::document;
use tlplab_hostprobe::plan::Plan;
use tlplab_hostprobe::sampling::{Budget, Collected, sample};

/// What `/sys` holds of a machine.
struct Machine {
    root: tempfile::TempDir,
}

const BRIDGE: u32 = 0x06_04_00;
const NVME: u32 = 0x01_08_02;

impl Machine {
    fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(machine.root.path().join("bus/pci/devices")).unwrap();
        machine
    }

    /// A root port, a switch with one port below it, an end point; beside them the host bridge, and a domain of its own behind a function.
    fn usual() -> Self {
        let machine = Self::new();
        machine.function("pci0000:00/0000:00:00.0", 0x06_00_00);
        machine.function("pci0000:00/0000:00:1c.0", BRIDGE);
        machine.function("pci0000:00/0000:00:1c.0/0000:01:00.0", BRIDGE);
        machine.function("pci0000:00/0000:00:1c.0/0000:01:00.0/0000:02:00.0", BRIDGE);
        machine.function("pci0000:00/0000:00:1c.0/0000:01:00.0/0000:02:00.0/0000:03:00.0", NVME);
        machine.function("pci0000:00/0000:00:0e.0", 0x01_04_00);
        machine.function("pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0", BRIDGE);
        machine.function("pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0", NVME);
        machine
    }

    fn function(&self, place: &str, class: u32) {
        let folder = self.root.path().join("devices").join(place);
        fs::create_dir_all(&folder).unwrap();
        let mut config = vec![0; 256];
        config[..6].copy_from_slice(&[0x86, 0x80, 0x34, 0x12, 0x06, 0x00]);
        fs::write(folder.join("config"), config).unwrap();
        let files = [
            ("vendor", "0x8086\n".into()),
            ("device", "0x1234\n".into()),
            ("class", format!("{class:#08x}\n")),
        ];
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
        let address = folder.file_name().unwrap();
        symlink(&folder, self.root.path().join("bus/pci/devices").join(address)).unwrap();
    }

    fn folder(&self, address: &str) -> PathBuf {
        fs::canonicalize(self.root.path().join("bus/pci/devices").join(address)).unwrap()
    }

    fn file(&self, place: &str, text: &str) {
        let path = self.root.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn plan(&self, devices: &[&str], registers: &[&str]) -> Result<Plan, Failure> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Plan::make(self.root.path(), false, &owned(devices), &owned(registers))
    }
}

/// Names of the targets and, of each, the one above it.
fn tree(plan: &Plan) -> Vec<(&str, Option<&str>)> {
    let name = |at: usize| plan.functions[plan.targets[at].function].address.as_str();
    (0..plan.targets.len()).map(|at| (name(at), plan.targets[at].parent.map(name))).collect()
}

/// The clock of the paper: 3 GHz, in steps of 3 ns.
const CLOCK: Calibration =
    Calibration { name: "rdtsc", ns_per_tick: 1.0 / 3.0, step_ticks: 9, overhead_ticks: 90 };

/// Functions whose reads take so many nanoseconds, and now and then longer.
struct StandIn {
    nanoseconds: Vec<u64>,
    reads: u64,
}

impl Access for StandIn {
    fn read(&mut self, target: usize) -> Result<Reading, Failure> {
        self.reads += 1;
        let held_up = [0, 0, 4, 90, 0, 7][(self.reads % 6) as usize];
        let value = if self.nanoseconds[target] == 0 { u32::MAX } else { 0x1234_8086 };
        Ok(Reading { ticks: 3 * self.nanoseconds[target] + 9 * held_up + CLOCK.overhead_ticks, value })
    }
}

const PLENTY: Budget = Budget { samples: 1000, time: Duration::from_secs(60) };

/// What is said of a machine whose reads take so long; the last one is the system call alone.
fn said(plan: &Plan, nanoseconds: &[u64]) -> Value {
    let mut access = StandIn { nanoseconds: nanoseconds.to_vec(), reads: 0 };
    let collected = sample(&mut access, plan.readers(), CLOCK.overhead_ticks, PLENTY, &mut |_| true).unwrap();
    document(plan, &CLOCK, &collected, 0, "Linux")
}

/// A naive reader of the tree would take the function that a domain is behind for a bridge above it.
#[test]
fn the_tree_is_that_of_the_folders() {
    let machine = Machine::usual();
    let all = machine.plan(&[], &[]).unwrap();
    assert_eq!(
        tree(&all),
        [
            ("0000:00:00.0", None),
            ("0000:00:0e.0", None),
            ("0000:00:1c.0", None),
            ("0000:01:00.0", Some("0000:00:1c.0")),
            ("0000:02:00.0", Some("0000:01:00.0")),
            ("0000:03:00.0", Some("0000:02:00.0")),
            ("10000:e0:06.0", None),
            ("10000:e1:00.0", Some("10000:e0:06.0")),
        ]
    );
    let path = machine.plan(&["03:00.0"], &[]).unwrap();
    assert_eq!(tree(&path), tree(&all)[2..6]);
    assert_eq!(machine.plan(&["10000:E1:00.0"], &[]).unwrap().targets.len(), 2);
}

#[test]
fn differences_are_the_links() {
    let plan = Machine::usual().plan(&["03:00.0"], &[]).unwrap();
    let said = said(&plan, &[563, 815, 818, 1500, 500]);
    assert_eq!(said["schema"], "tlplab/differential/1");
    let told = |key: &str| {
        said["links"].as_array().unwrap().iter().map(|link| link[key].clone()).collect::<Vec<_>>()
    };
    assert_eq!(told("far"), ["0000:01:00.0", "0000:02:00.0", "0000:03:00.0"]);
    assert_eq!(
        told("latency_ns").iter().map(|ns| ns.as_f64().unwrap().round()).collect::<Vec<_>>(),
        [252.0, 3.0, 682.0]
    );
    assert_eq!(told("verdict"), ["measured", "unresolved", "measured"]);
    assert_eq!(said["system_call_ns"].as_f64().unwrap().round(), 500.0);
    assert_eq!(said["targets"][0]["min_ns"].as_f64().unwrap().round(), 563.0);
    assert!(said["machine"]["refusal"].is_null());
}

/// Each of these machines has reads whose difference could be a link, or looks like a real one; only the last two are real.
#[test]
fn a_virtual_machine_is_recognised_by_its_files_and_read_times() {
    let real: &[u64] = &[563, 815, 818, 1500, 500];
    let trapped: &[u64] = &[33_100, 33_160, 33_190, 33_140, 200];
    let far = &[700, 9_000, 12_000, 33_000, 500];
    type Files<'a> = &'a [(&'a str, &'a str)];
    let cases: &[(Files<'_>, &[u64], Option<&str>)] = &[
        (&[("class/dmi/id/sys_vendor", "QEMU\n")], real, Some("firmware names QEMU")),
        (&[("hypervisor/type", "xen\n")], real, Some("xen")),
        (&[("firmware/devicetree/base/compatible", "linux,dummy-virt\0")], real, Some("device tree")),
        (
            &[("class/dmi/id/sys_vendor", "Amazon EC2\n"), ("class/dmi/id/product_name", "m7i.large\n")],
            real,
            Some("Amazon"),
        ),
        (&[("class/dmi/id/sys_vendor", "QEMU\n")], trapped, Some("a trap (a VM exit)")),
        (&[], trapped, Some("looks like a virtual machine")),
        (
            &[("class/dmi/id/sys_vendor", "Amazon EC2\n"), ("class/dmi/id/product_name", "m7i.metal-24xl\n")],
            real,
            None,
        ),
        (
            &[
                ("class/dmi/id/sys_vendor", "Microsoft Corporation\n"),
                ("class/dmi/id/product_name", "Surface\n"),
            ],
            far,
            None,
        ),
    ];
    for (files, times, wanted) in cases {
        let machine = Machine::usual();
        files.iter().for_each(|(place, text)| machine.file(place, text));
        let said = said(&machine.plan(&["03:00.0"], &[]).unwrap(), times);
        let refusal = said["machine"]["refusal"].as_str();
        assert_eq!(refusal.is_some(), wanted.is_some(), "{files:?} {times:?}: {refusal:?}");
        assert!(wanted.is_none_or(|part| refusal.unwrap().contains(part)), "{files:?}: {refusal:?}");
        let links = said["links"].as_array().unwrap();
        let none = links.iter().all(|link| link["latency_ns"].is_null() && link["verdict"] == "refused");
        assert_eq!(none, wanted.is_some(), "{files:?}: a refusal is of every link, and of nothing else");
    }
}

#[test]
fn registers_are_checked_before_anything_is_read() {
    let machine = Machine::usual();
    let folder = machine.folder("0000:03:00.0");
    let nothing = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    let table = format!(
        "0x00000000fe000000 0x00000000fe003fff 0x0000000000140204\n{nothing}0x000000000000e000 0x000000000000e07f 0x0000000000040101\n"
    );
    fs::write(folder.join("resource"), table).unwrap();
    let mut page = vec![0_u8; 16384];
    page[8..12].copy_from_slice(&0x0102_0304_u32.to_le_bytes());
    fs::write(folder.join("resource0"), page).unwrap();
    for (said, why) in [
        ("03:00.0:0", "the + with the offset is missing"),
        ("03:00.0:6+0x0", "the BAR is not 0 to 5"),
        ("03:00.0:0+0x6", "not a multiple of 4"),
        ("03:00.0:0+eight", "not a number"),
        ("03:00.0:0+0x4000", "beyond BAR 0, which has 16384 bytes"),
        ("03:00.0:0+0xfffffffffffffffc", "beyond BAR 0, which has 16384 bytes"),
        ("03:00.0:1+0x0", "has no BAR 1"),
        ("03:00.0:2+0x0", "I/O space"),
        ("04:00.0:0+0x0", "unknown function 04:00.0"),
    ] {
        let Err(Failure::Input(message)) = machine.plan(&[], &[said]) else {
            panic!("{said} is not refused")
        };
        assert!(message.contains(why), "{said}: {message}");
    }
    let plan = machine.plan(&[], &["03:00.0:0+0x8"]).unwrap();
    let names = tree(&plan);
    assert_eq!(names.len(), 5, "the path, its end, and the register");
    assert_eq!(names[4], ("0000:03:00.0", Some("0000:02:00.0")));
    let mut access = plan.open().unwrap();
    assert_eq!(access.read(4).unwrap().value, 0x0102_0304);
    assert_eq!(access.read(3).unwrap().value, 0x1234_8086);

    fs::write(folder.join("power_state"), "D3hot\n").unwrap();
    assert!(plan.open().err().unwrap().to_string().contains("power state D3hot"));
    fs::write(folder.join("power_state"), "D0\n").unwrap();
    let mut config = fs::read(folder.join("config")).unwrap();
    config[4] = 0x04; // masters the bus, but does not answer for its memory
    fs::write(folder.join("config"), &config).unwrap();
    assert!(plan.open().err().unwrap().to_string().contains("memory space is not enabled"));
}

#[test]
fn missing_functions_and_folders_are_reported() {
    let nowhere = Plan::make(Path::new("/nowhere"), false, &[], &[]).unwrap_err().to_string();
    assert!(
        nowhere.contains("no PCI functions") && nowhere.contains("/nowhere/bus/pci/devices"),
        "{nowhere}"
    );
    let empty = Machine::new().plan(&[], &[]).unwrap_err().to_string();
    assert!(empty.contains("is empty"), "{empty}");
    let machine = Machine::usual();
    let unknown = machine.plan(&["3:0.0"], &[]).unwrap_err().to_string();
    assert!(unknown.contains("expected an address such as") && unknown.contains("0000:00:00.0"), "{unknown}");

    // A function that has gone reads as all ones, where the kernel still knows what it was.
    let plan = machine.plan(&["03:00.0"], &[]).unwrap();
    fs::write(machine.folder("0000:03:00.0").join("config"), [0xff; 256]).unwrap();
    assert!(plan.open().err().unwrap().to_string().contains("powered off or removed"));
}

#[test]
fn all_ones_are_no_latencies() {
    let plan = Machine::usual().plan(&["03:00.0"], &[]).unwrap();
    let said = said(&plan, &[563, 815, 1500, 0, 500]);
    assert_eq!(
        (&said["links"][1]["verdict"], &said["links"][2]["verdict"]),
        (&"measured".into(), &"refused".into())
    );
    let notes = said["notes"].to_string();
    assert!(notes.contains("0000:03:00.0: 1000 reads returned all ones"), "{notes}");
}

/// Who is interrupted keeps what there is; who has no time reads every target at least once.
#[test]
fn sampling_ends_by_count_by_time_and_by_hand() {
    let run = |budget: Budget, looks: usize| -> Collected {
        let mut access = StandIn { nanoseconds: vec![100, 200], reads: 0 };
        let mut left = looks;
        let mut last = 0.0;
        let mut watch = |part: f64| {
            assert!((last..=1.0).contains(&part), "{part} after {last}");
            last = part;
            left -= 1;
            left > 0
        };
        sample(&mut access, 2, 90, budget, &mut watch).unwrap()
    };
    let counts = |collected: &Collected| collected.samples.iter().map(|one| one.count()).collect::<Vec<_>>();
    let whole = run(Budget { samples: 1234, ..PLENTY }, 1_000_000);
    assert_eq!((counts(&whole), whole.interrupted), (vec![1234, 1234], false));
    let hasty = run(Budget { samples: 1_000_000, time: Duration::from_nanos(1) }, 1_000_000);
    assert!(!hasty.interrupted && hasty.samples.iter().all(|one| (1..10_000).contains(&one.count())));
    let stopped = run(Budget { samples: 1_000_000, ..PLENTY }, 7);
    assert!(stopped.interrupted && counts(&stopped)[0] > 0 && counts(&stopped)[0] < 1_000_000);
    assert_eq!(stopped.samples[1].min(), Some(600));
}
