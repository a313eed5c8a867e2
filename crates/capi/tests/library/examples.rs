//! The programs of `examples/c`, behind tlplab's own adapter: what the host reads and writes, and what devices do in its memory.

use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::programs::{ADDRESS, C, compile, run_on};
use tlplab_device::DmaError;
use tlplab_netio::{Loop, Ready, Udp, adapter_ports};
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{Adapter, AdapterConfig, DeviceConfig, MemoryHost};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::Bdf;

type Machine = Loop<Adapter<MemoryHost>, Udp>;

/// An adapter with 1 MiB of memory behind it, on addresses of this test's own.
fn machine(net: u8) -> (Machine, Ipv4Addr, Ipv4Addr) {
    let id = std::process::id();
    let at = |end| Ipv4Addr::new(127, 240 + (id >> 8 & 7) as u8, id as u8, 8 * net + end);
    let (device, adapter) = (at(1), at(2));
    let config = AdapterConfig::new(adapter, vec![DeviceConfig::card(device, Bdf(0x1b00))]);
    let serves = Adapter::new(config, MemoryHost::new(1 << 20)).expect("an adapter");
    let udp = Udp::open(adapter, adapter_ports(), None).expect("ports");
    (Loop::new(serves, udp), device, adapter)
}

/// Serves until `done` has something.
fn serve<R>(machine: &mut Machine, mut done: impl FnMut(&mut MemoryHost) -> Option<R>) -> R {
    let give_up = Instant::now() + Duration::from_secs(20);
    while Instant::now() < give_up {
        let mut ready = Ready::default();
        let soon = Instant::now() + Duration::from_millis(5);
        machine.transmit().expect("a network");
        machine.poller().clone().wait(&mut ready, Some(soon)).expect("a poller");
        machine.turn(Some(&ready)).expect("a network");
        if let Some(result) = done(machine.engine.host_mut()) {
            return result;
        }
    }
    panic!("nothing in 20 s");
}

fn example(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c");
    let variant = if ADDRESS.works() { ADDRESS } else { C };
    compile(folder.join(name).to_str().expect("UTF-8"), variant)
}

/// Ends a program that a failed test would leave behind.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn gather_reads_the_memory_of_the_host() {
    let program = example("gather.c");
    let (mut machine, device, adapter) = machine(1);
    let memory: Vec<u8> = (0..70_000u32).map(|i| b' ' + (i * 7 / 3 % 90) as u8).collect();
    machine.engine.host_mut().poke(0x1003, &memory).expect("it is memory");
    let (adapter, device) = (adapter.to_string(), device.to_string());
    let reader =
        std::thread::spawn(move || run_on(&program, &[&adapter, &device, "1b00", "0x1003", "70000"], ""));
    serve(&mut machine, |_| reader.is_finished().then_some(()));
    assert_eq!(reader.join().expect("no panic").into_bytes(), memory);
}

#[test]
fn memory_is_read_and_written_by_the_host() {
    let program = example("memory.c");
    let (mut machine, device, adapter) = machine(2);
    let mut command = Command::new(program);
    command.args([adapter.to_string(), device.to_string()]).stdout(Stdio::piped());
    let mut child = Running(command.spawn().expect("it runs"));
    let output = child.0.stdout.take().expect("it is piped");
    let line = std::thread::spawn(move || BufReader::new(output).lines().next());
    serve(&mut machine, |_| line.is_finished().then_some(()));
    let said = line.join().expect("no panic").expect("a line").expect("UTF-8");
    assert!(said.starts_with("64 KiB at 0x"), "{said}");

    let mut access = |offset, access: MmioAccess| {
        let wanted = machine.engine.host_mut().access(0, 4, offset, access);
        serve(&mut machine, |host| {
            std::iter::from_fn(|| host.take_result())
                .find(|(token, _)| *token == wanted)
                .map(|(_, result)| result)
        })
    };
    let data: Vec<u8> = (0..=255).collect();
    for offset in [0, 0x1001, 0xFF00] {
        access(offset, MmioAccess::Write(Payload::from(&data[..]))).expect("written");
        let read = access(offset + 3, MmioAccess::Read(200)).expect("read");
        assert_eq!(read.bytes(), Some(&data[3..203]));
    }
    // Behind the window nobody is: UR, not silence.
    let refused = access(0x10000, MmioAccess::Read(4)).expect_err("nobody is there");
    assert!(matches!(refused, DmaError::Completion(CompletionError::UnsupportedRequest { .. })), "{refused}");

    kill(Pid::from_raw(child.0.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let status = serve(&mut machine, |_| child.0.try_wait().expect("it can be waited for"));
    assert!(status.success(), "{status}");
}
