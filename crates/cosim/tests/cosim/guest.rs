//! A guest's process, sockets and memory. The kernels are this program, which says on its sockets what it is told to
//! ([`kernel`]), and programs that are no kernels at all.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration as WallTime;
use tlplab_cosim::uml::{GuestConfig, GuestEnd, GuestError, Progress, Session, SharedMemory};
use tlplab_device::HostMemory;
use tlplab_experiment::guest::GuestKind;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::{Experiment, Options};
use tlplab_uml::GuestMemory;
use tlplab_uml::vhost::Region;
use tlplab_units::{Duration, Time};

/// How often a session is asked, each time for 100 ms at most, before a test gives it up.
const PATIENCE: u16 = 100;
const LOOKS: u32 = 600;

fn a_run(memory: &SharedMemory) -> Run {
    let text = "title = \"t\"\n[device.dev]\nunder = \"host.rp0\"\nlink = \"gen3 x1\"\nmodel = \"memory\"\n";
    let read = |_: &str| Ok(text.to_owned());
    let options = Options { guest: Some(GuestKind::UserMode), ..Options::default() };
    let experiment = Experiment::parse_with(&read, "t.toml", &options).expect("an experiment");
    let inputs = Inputs { memory: Some(Box::new(memory.clone())), ..Inputs::default() };
    Run::new(experiment, inputs).expect("a run")
}

fn config(kernel: PathBuf, arguments: &[&str]) -> GuestConfig {
    GuestConfig {
        kernel,
        initramfs: "initramfs".into(),
        seed: 1,
        memory: 64 << 20,
        syscall_ns: 0,
        interrupt_ns: 0,
        share: None,
        arguments: arguments.iter().map(|argument| (*argument).into()).collect(),
        interactive: false,
    }
}

fn folder() -> PathBuf {
    tempfile::tempdir().expect("a folder").keep()
}

struct Outcome {
    end: Result<GuestEnd, GuestError>,
    console: String,
    now: Time,
}

/// Starts a kernel and lets it go on to its end. Nothing of it is left.
fn boot(config: &GuestConfig) -> Outcome {
    let (memory, folder) = (SharedMemory::new(), folder());
    let mut run = a_run(&memory);
    let mut session = Session::start(config, folder.clone(), memory).expect("it starts");
    let mut console = Vec::new();
    let mut end = None;
    for _ in 0..LOOKS {
        let gone_on = session.go_on(&mut run, &mut (), PATIENCE, Time::NEVER);
        console.extend(session.take_console().into_iter().flat_map(|(_, bytes)| bytes));
        end = match gone_on {
            Ok(Progress::Ended(end)) => Some(Ok(end)),
            Ok(_) => None,
            Err(failure) => Some(Err(failure)),
        };
        if end.is_some() {
            break;
        }
    }
    drop(session);
    assert!(!folder.exists(), "its folder goes with it");
    let console = String::from_utf8_lossy(&console).into_owned();
    Outcome { end: end.expect("it ends"), console, now: run.fabric().now() }
}

/// This program as a kernel that does `role`.
fn kernel_that(role: &str) -> GuestConfig {
    let itself = std::env::current_exe().expect("this program");
    let role = format!("role={role}");
    config(itself, &[&role, "--exact", "guest::kernel", "--nocapture", "--test-threads=1"])
}

/// A message of time travel, and the time in its answer.
fn ask(time: &mut UnixStream, operation: u32, at: u64) -> u64 {
    let mut bytes = [operation.to_le_bytes(), 7u32.to_le_bytes()].concat();
    bytes.extend(at.to_le_bytes());
    time.write_all(&bytes).expect("it is heard");
    let (operation, at) = hear(time);
    assert_eq!(operation, 0, "an answer");
    at
}

fn hear(time: &mut UnixStream) -> (u32, u64) {
    let mut bytes = [0; 16];
    time.read_exact(&mut bytes).expect("an answer");
    let [a, b, c, d, _, _, _, _, at @ ..] = bytes;
    (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(at))
}

/// Not a test, but the kernel of the tests: started by them, in a folder with sockets, it plays the role that it is told.
#[test]
fn kernel() {
    let Some(role) = std::env::args().find_map(|word| word.strip_prefix("role=").map(str::to_owned)) else {
        return;
    };
    let connect = |name: &str| UnixStream::connect(Path::new(name)).expect("a socket");
    let mut time = connect("time");
    assert_eq!(ask(&mut time, 1, 1), 0);
    let device = connect("pci");
    match role.as_str() {
        "power off" => println!("powering off"),
        "exit" => std::process::exit(3),
        "tell its status" => {
            // Another number is nobody's.
            ask(&mut time, 9, 0x1234_5601);
            ask(&mut time, 9, 0x746C_7000 | 42);
        }
        "sleep" => {
            ask(&mut time, 2, 30_000_000_000);
            ask(&mut time, 3, 0);
            assert_eq!(hear(&mut time), (6, 30_000_000_000));
            assert_eq!(ask(&mut time, 4, 0), 30_000_000_000);
            println!("slept");
        }
        "sleep for ever" => {
            ask(&mut time, 2, i64::MAX as u64);
            ask(&mut time, 3, 0);
            hear(&mut time);
        }
        "talk nonsense" => {
            ask(&mut time, 77, 0);
        }
        "close its sockets" => {
            drop((time, device));
            std::thread::sleep(WallTime::from_secs(600));
        }
        "hang" => {
            let mut child = Command::new("sleep").arg("600").spawn().expect("a process");
            println!("children {} {}", std::process::id(), child.id());
            child.wait().expect("it sleeps");
        }
        other => panic!("there is no role {other}"),
    }
    std::process::exit(0);
}

#[test]
fn a_kernel_powers_off() {
    let outcome = boot(&kernel_that("power off"));
    assert_eq!(outcome.end.expect("no error"), GuestEnd::PoweredOff(None));
    assert!(outcome.console.contains("powering off"), "{}", outcome.console);
}

#[test]
fn a_kernel_exits_otherwise() {
    let end = boot(&kernel_that("exit")).end.expect("no error");
    assert_eq!(end, GuestEnd::Died("it exited with status 3".into()));
}

#[test]
fn a_script_passes_its_exit_status() {
    let end = boot(&kernel_that("tell its status")).end.expect("no error");
    assert_eq!(end, GuestEnd::PoweredOff(Some(42)));
}

/// Half a minute passes in the simulation.
#[test]
fn a_kernel_sleeps() {
    let outcome = boot(&kernel_that("sleep"));
    assert_eq!(outcome.end.expect("no error"), GuestEnd::PoweredOff(None));
    assert_eq!(outcome.now, Time::ZERO + Duration::from_ms(30_000));
    assert!(outcome.console.contains("slept"), "{}", outcome.console);
}

#[test]
fn a_kernel_that_sleeps_for_ever_is_asleep() {
    let end = boot(&kernel_that("sleep for ever")).end;
    assert!(matches!(end, Err(GuestError::Asleep(_))), "{end:?}");
}

#[test]
fn a_kernel_that_talks_nonsense_is_not_believed() {
    let end = boot(&kernel_that("talk nonsense")).end;
    assert!(matches!(end, Err(GuestError::Protocol(_))), "{end:?}");
}

/// It is looked at for some seconds, and then ended.
#[test]
fn a_kernel_that_closes_its_sockets_and_stays_is_ended() {
    let end = boot(&kernel_that("close its sockets")).end.expect("no error");
    assert_eq!(end, GuestEnd::Died("it closed its sockets but did not exit".into()));
}

#[test]
fn a_program_that_is_not_a_kernel_is_reported() {
    let outcome = boot(&config("/bin/false".into(), &[]));
    let Err(GuestError::Stillborn(how)) = outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!(how, "it exited with status 1");
    assert_eq!(outcome.now, Time::ZERO);
}

#[test]
fn a_script_that_is_no_kernel_is_heard() {
    let scripts = tempfile::tempdir().expect("a folder");
    let script = scripts.path().join("kernel.sh");
    std::fs::write(&script, "echo \"I am $1\"\nexit 7\n").expect("a script");
    // The words of a command line go to the script; what would be its first is `mem=`.
    let mut config = config("/bin/sh".into(), &[]);
    let link = scripts.path().join("kernel");
    std::fs::write(&link, format!("#!/bin/sh\nexec /bin/sh {} \"$@\"\n", script.display()))
        .expect("a script");
    make_executable(&link);
    config.kernel = link;
    let outcome = boot(&config);
    assert!(
        matches!(&outcome.end, Err(GuestError::Stillborn(how)) if how.contains("7")),
        "{:?}",
        outcome.end
    );
    assert_eq!(outcome.console, "I am mem=67108864\n");
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a file");
}

#[test]
fn a_kernel_that_is_not_there_leaves_nothing() {
    let folder = folder();
    let error = Session::start(&config("/nowhere/linux".into(), &[]), folder.clone(), SharedMemory::new());
    let Err(GuestError::Start { what, .. }) = error else { panic!("it started") };
    assert_eq!(what, "its kernel");
    assert!(!folder.exists());
}

/// True if there is a process with this number that has not ended.
fn lives(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

#[test]
fn a_kernel_that_hangs_goes_with_its_children() {
    let (memory, folder) = (SharedMemory::new(), folder());
    let mut run = a_run(&memory);
    let mut session = Session::start(&kernel_that("hang"), folder.clone(), memory).expect("it starts");
    let mut console = String::new();
    let processes: Vec<String> = loop {
        let gone_on = session.go_on(&mut run, &mut (), PATIENCE, Time::NEVER).expect("it goes on");
        assert_eq!(gone_on, Progress::UnderWay);
        let new = session.take_console().into_iter().flat_map(|(_, bytes)| bytes).collect();
        console += &String::from_utf8(new).expect("text");
        let told = console.split_once("children ").and_then(|(_, rest)| rest.split_once('\n'));
        if let Some((numbers, _)) = told {
            break numbers.split(' ').map(str::to_owned).collect();
        }
    };
    assert_eq!(processes.len(), 2);
    assert!(processes.iter().all(|process| lives(process)), "{processes:?}");
    drop(session);
    assert!(!folder.exists());
    for _ in 0..LOOKS {
        if !processes.iter().any(|process| lives(process)) {
            return;
        }
        std::thread::sleep(WallTime::from_millis(50));
    }
    panic!("{processes:?} are left");
}

/// A file of four pages, of which a guest shares two ranges.
fn shared() -> (SharedMemory, File) {
    let memory = SharedMemory::new();
    let file = tempfile::tempfile().expect("a file");
    file.set_len(0x4000).expect("four pages");
    let regions = [
        Region { address: 0x10_0000, bytes: 0x2000, offset: 0x1000 },
        Region { address: 0x8000_0000, bytes: 0x1000, offset: 0x3000 },
    ];
    let files: Vec<OwnedFd> = (0..2).map(|_| file.try_clone().expect("a descriptor").into()).collect();
    memory.map(&regions, &files).expect("it is mapped");
    (memory, file)
}

fn guest_read(memory: &SharedMemory, address: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut out = vec![0xEE; bytes];
    GuestMemory::read(memory, address, &mut out).then_some(out)
}

#[test]
fn memory_is_shared() {
    let (mut memory, file) = shared();
    let mut copy = memory.clone();
    assert!(GuestMemory::write(&mut memory, 0x10_0010, b"device"));
    let mut found = [0; 6];
    file.read_exact_at(&mut found, 0x1010).expect("a file");
    assert_eq!(&found, b"device");
    file.write_all_at(b"kernel", 0x3FFA).expect("a file");
    assert_eq!(guest_read(&copy, 0x8000_0FFA, 6).as_deref(), Some(&b"kernel"[..]));
    HostMemory::write(&mut copy, 0x10_0010, b"D");
    assert_eq!(guest_read(&memory, 0x10_0010, 6).as_deref(), Some(&b"Device"[..]));
    let mut out = [0; 3];
    HostMemory::read(&memory, 0x8000_0FFA, &mut out);
    assert_eq!(&out, b"ker");
    assert_eq!(memory.missed(), None);
}

#[test]
fn memory_has_bounds() {
    let (mut memory, file) = shared();
    let inside = [(0x10_0000, 0x2000), (0x10_1FFF, 1), (0x8000_0000, 0x1000), (0x10_2000, 0)];
    for (address, bytes) in inside {
        assert!(guest_read(&memory, address, bytes).is_some(), "{bytes} B at {address:#x}");
    }
    let outside =
        [(0, 1), (0x0F_FFFF, 2), (0x10_1FFF, 2), (0x10_0000, 0x2001), (0x8000_1000, 1), (u64::MAX, 2)];
    for (address, bytes) in outside {
        assert_eq!(guest_read(&memory, address, bytes), None, "{bytes} B at {address:#x}");
        assert!(!GuestMemory::write(&mut memory, address, &vec![1; bytes]));
    }
    assert_eq!(memory.missed(), None, "what virtqueues miss is an error of theirs");
    let mut all = vec![0xFF; 0x4000];
    file.read_exact_at(&mut all, 0).expect("a file");
    assert!(all.iter().all(|byte| *byte == 0), "nothing was written");
}

#[test]
fn dma_outside_shared_memory_reads_zero_and_is_reported() {
    let (mut memory, _file) = shared();
    let mut out = [7; 8];
    HostMemory::read(&memory, 0x10_1FFC, &mut out);
    assert_eq!(out, [0; 8]);
    HostMemory::write(&mut memory, 0x40, &[1; 4]);
    let copy = memory.clone();
    assert_eq!(copy.missed().map(|(address, _)| address), Some(0x10_1FFC), "the first");
    assert!(memory.alloc(4096, 4096).is_err(), "all of it is the guest's");
}

#[test]
fn unshared_memory_is_reported_as_missed() {
    let memory = SharedMemory::new();
    assert_eq!(guest_read(&memory, 0, 1), None);
    HostMemory::read(&memory, 0x1000, &mut [0; 4]);
    assert!(memory.missed().is_some());
}

#[test]
fn memory_that_cannot_be_mapped_is_refused() {
    let file = tempfile::tempfile().expect("a file");
    file.set_len(0x1000).expect("a page");
    for (bytes, offset) in [(0, 0), (0x1000, u64::MAX), (u64::MAX, 0), (0x1000, 1)] {
        let region = Region { address: 0, bytes, offset };
        let files = [OwnedFd::from(file.try_clone().expect("a descriptor"))];
        assert!(SharedMemory::new().map(&[region], &files).is_err(), "{bytes:#x} B at {offset:#x}");
    }
}
