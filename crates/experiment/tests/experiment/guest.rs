//! `[guest]`: what is read, what a run by a guest is, and what is said of it.

use tlplab_device::{ECAM, HostAction};
use tlplab_experiment::guest::{GuestKind, GuestSpec};
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::{Experiment, Options, StopReason};
use tlplab_fabric::Driven;
use tlplab_fabric::config::EnumerationTime;
use tlplab_units::{Duration, Time};

const MACHINE: &str = r#"title = "t"
stop = "10us"
host = { profile = "ideal", latency = "150ns" }
[device.ssd]
under = "host.rp0"
link = "gen3 x4"
model = "memory"
[load]
host = { target = "ssd", op = "mmio-read", size = "4B" }
"#;

fn read(text: &str, guest: bool) -> Result<Experiment, String> {
    let read = |_: &str| Ok(text.to_owned());
    let guest = guest.then_some(GuestKind::UserMode);
    let options = Options { guest, ..Options::default() };
    Experiment::parse_with(&read, "dir/t.toml", &options).map_err(|error| error.to_string())
}

fn with(keys: &str) -> Result<Experiment, String> {
    read(&format!("{MACHINE}[guest]\n{keys}\n"), false)
}

#[test]
fn a_guest_has_defaults() {
    assert_eq!(read(MACHINE, false).unwrap().guest, None);
    let none = Duration::ZERO;
    let default =
        GuestSpec { memory: 128 << 20, run: None, files: Vec::new(), syscall: none, interrupt: none };
    assert_eq!(with("").unwrap().guest, Some(default.clone()));
    // Who runs an experiment with a guest need not say so in the file.
    assert_eq!(read(MACHINE, true).unwrap().guest, Some(default));
}

#[test]
fn a_guest_takes_its_settings_from_the_file() {
    let keys = "memory = \"256MiB\"\nrun = \"go.sh\"\nfiles = [\"a.ko\", \"sub/b\"]\ncpu = { syscall = \"200ns\", interrupt = \"1us\" }";
    let guest = with(keys).unwrap().guest.expect("a guest");
    assert_eq!(guest.memory, 256 << 20);
    // Beside the file that names them.
    assert_eq!(guest.run.as_deref(), Some("dir/go.sh"));
    assert_eq!(guest.files, ["dir/a.ko", "dir/sub/b"]);
    assert_eq!((guest.syscall, guest.interrupt), (Duration::from_ns(200), Duration::from_us(1)));
}

#[test]
fn memory_of_a_guest_has_bounds() {
    for good in ["64MiB", "2GiB", "65540KiB"] {
        assert!(with(&format!("memory = \"{good}\"")).is_ok(), "{good}");
    }
    for (bad, bytes) in [("63MiB", 66_060_288u64), ("3GiB", 3_221_225_472), ("67108865B", 67_108_865)] {
        let why = with(&format!("memory = \"{bad}\"")).unwrap_err();
        assert!(why.contains("dir/t.toml:11: guest.memory:"), "{why}");
        assert!(why.contains(&format!("a guest memory of {bytes} B is not supported")), "{why}");
        assert!(why.contains("use 64MiB to 2GiB, in whole pages"), "{why}");
    }
}

#[test]
fn misspelt_keys_of_a_guest_get_a_suggestion() {
    for (keys, meant) in [("memry = \"64MiB\"", "memory"), ("cpu = { sycall = \"1ns\" }", "syscall")] {
        let why = with(keys).unwrap_err();
        assert!(why.contains(&format!("did you mean \"{meant}\"")), "{why}");
    }
}

/// It is looked at, checked and drawn as any other: only its software is missing.
#[test]
fn a_guest_section_leaves_the_hardware_unchanged() {
    let (plain, with_guest) = (read(MACHINE, false).unwrap(), with("memory = \"64MiB\"").unwrap());
    assert_eq!(format!("{:?}", plain.fabric), format!("{:?}", with_guest.fabric));
    assert_eq!(format!("{:?}", plain.loads), format!("{:?}", with_guest.loads));
    assert!(!with_guest.guest_runs);
    let lacks = with_guest.lacks_guest().expect("it cannot run here").to_string();
    assert!(lacks.contains("dir/t.toml:10: guest:") && lacks.contains("tlplab guest uml"), "{lacks}");
    assert!(plain.lacks_guest().is_none());
}

/// A machine without loads is enough for a guest.
#[test]
fn a_guest_is_enough_to_happen() {
    let idle = &MACHINE[..MACHINE.find("[load]").expect("loads")];
    assert!(read(idle, false).is_err(), "nothing happens");
    assert!(read(&format!("{idle}[guest]\n"), false).is_ok());
    assert!(read(idle, true).is_ok());
}

#[test]
fn a_guest_takes_over_the_host() {
    let run = read(&format!("{MACHINE}[guest]\nmemory = \"64MiB\"\n"), true).unwrap();
    assert!(run.guest_runs && run.lacks_guest().is_none());
    assert!(run.loads.is_empty(), "all loads are the guest's");
    let (host, plain) = (&run.fabric.host, &read(MACHINE, false).unwrap().fabric.host);
    assert_eq!(host.enumeration, EnumerationTime::Outside);
    assert_eq!(host.memory.size, 64 << 20);
    assert_eq!(host.addresses.io, None);
    assert_eq!(host.addresses.interrupts, 0xA_0000..0xA_0004);
    // The rest of the machine is what it was.
    assert_eq!(host.latency, plain.latency);
    assert_ne!(plain.enumeration, EnumerationTime::Outside);
    assert_eq!(
        format!("{:?}", run.fabric.devices),
        format!("{:?}", read(MACHINE, false).unwrap().fabric.devices)
    );
}

/// What the guest did with its time nobody else knows.
/// Software that gives root port and device numbers, addresses and leave, and then writes now and then. The clock goes on in strides.
/// What the software is told.
fn write_registers<D: Driven<Failure: std::fmt::Debug>>(machine: &mut D, stride: Duration) -> Vec<String> {
    let (port, device, bar) = (ECAM + (1 << 15), ECAM + (1 << 20), 0xF000_0000u32);
    let mut steps = vec![
        (port + 0x18, 0x01_01_00),
        (port + 0x20, bar | bar >> 16),
        (port + 0x04, 6),
        (device + 0x10, bar),
        (device + 0x04, 6),
    ];
    steps.extend((0..20).map(|step| (u64::from(bar), step)));
    let mut all_told = Vec::new();
    for (step, (address, value)) in (1..).zip(steps) {
        let op = machine.next_host_op(0);
        let data = value.to_le_bytes().to_vec().into();
        machine.host_acts(0, HostAction::MmioWrite { op, stream: 0, address, data });
        let until = Time::ZERO + Duration::from_ns(400 * step);
        while machine.now() < until {
            machine.advance_until(until.min(machine.now() + stride)).unwrap();
            all_told.extend(machine.take_told().programs.iter().map(|told| format!("{told:?}")));
        }
    }
    all_told
}

#[test]
fn the_strides_of_an_outside_clock_change_nothing() {
    let machine = || Run::new(read(MACHINE, true).unwrap(), Inputs::default()).unwrap();
    let in_strides = |ns| {
        let mut run = machine();
        let told = write_registers(&mut run, Duration::from_ns(ns));
        (told, run.fabric().trace_hash())
    };
    let whole = in_strides(400);
    assert!(whole.0.len() >= 25, "each write is accepted: {whole:?}");
    for ns in [1, 7, 150, 1000] {
        assert_eq!(in_strides(ns), whole, "{ns} ns");
    }
    // The fabric alone is driven in the same way.
    let mut run = machine();
    let told = write_registers(run.fabric(), Duration::from_ns(9));
    assert_eq!((told, run.fabric().trace_hash()), whole);
}

#[test]
fn the_verdict_names_the_guests_pace() {
    let experiment = read(MACHINE, true).unwrap();
    let mut run = Run::new(experiment, Inputs::default()).unwrap();
    write_registers(&mut run, Duration::from_ns(400));
    run.stop(StopReason::GuestOff);
    let document = run.document();
    assert_eq!(document.stop_reason, StopReason::GuestOff);
    let verdict = document.verdict;
    assert_eq!(
        verdict.sentence,
        "The pace of the guest's software limits the run: nothing below it is busy all the time."
    );
    assert_eq!(verdict.limit.resource, "the pace of the guest's software");
    assert!(
        verdict.limit.evidence.iter().any(|line| line.contains("is busy for")),
        "{:?}",
        verdict.limit.evidence
    );
    assert!(verdict.next.is_none(), "{:?}", verdict.next);
}
