//! A program in C under whatever its adapter may send: [`letter`] writes it, the sanitizers watch.

#[path = "../../../../fuzz/letter.rs"]
mod letter;

use crate::examples::Running;
use crate::programs::{ADDRESS, C, compile};
use letter::{Choices, Letter};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;
use tlplab_device::Random;

const PORT: u16 = 0x4000;
/// Datagrams that its socket surely holds.
const BURST: usize = 64;

/// No letter has it.
const TAG: u8 = 0x40;

/// A read of four bytes of the window by the host; the NetTLP header, and so each copy, is another.
fn question(number: u32) -> Vec<u8> {
    let tlp = [0, 0, 0, 1, 0, 0, TAG, 0x0f, 0xb0, 0, 0, 0];
    let [a, b, rest @ ..] = number.to_be_bytes();
    [&[a, b, 0xff, rest[0], rest[1], 0xff][..], &tlp].concat()
}

/// A tenth of `TLPLAB_DATAGRAMS` datagrams (`make prove`), in bursts; the program still answers after each burst.
#[test]
fn junk_datagrams_neither_stop_nor_grow_a_program() {
    let wanted = std::env::var("TLPLAB_DATAGRAMS").map_or(1_000_000, |n| n.parse().expect("a number")) / 10;
    let program = compile("sink.c", if ADDRESS.works() { ADDRESS } else { C });
    let id = std::process::id();
    let [adapter, device] = [1, 2].map(|end| Ipv4Addr::new(127, 248 + (id >> 8 & 3) as u8, id as u8, end));
    let host = UdpSocket::bind((adapter, PORT)).unwrap();
    host.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut command = Command::new(program);
    // What is freed is not kept for long, so that memory that grows is memory that leaks.
    command.env("ASAN_OPTIONS", "quarantine_size_mb=1").args([adapter.to_string(), device.to_string()]);
    let mut child = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(child.0.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    host.connect((device, PORT)).unwrap();

    let mut random = Random::keyed(1, "junk", "datagrams");
    let (mut letter, mut bytes) = (Letter::new(), vec![0; 1 << 16]);
    let (mut sent, mut asked, mut sizes) = (0, 0, Vec::new());
    while sent < wanted {
        bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_ne_bytes()));
        let mut choices = Choices(&bytes);
        while !choices.is_used_up() {
            for _ in 0..BURST {
                letter.write(&mut choices);
                host.send(letter.payload()).unwrap();
                sent += 1;
            }
            asked += 1;
            host.send(&question(asked)).unwrap();
            wait_for_answer(&host);
        }
        sizes.push(resident_kib(child.0.id()));
    }
    drop(child.0.stdin.take());
    line.clear();
    said.read_to_string(&mut line).unwrap();
    let status = child.0.wait().unwrap();
    assert!(status.success(), "{status} after {sent} datagrams");
    let (first, last) = (sizes[sizes.len() / 4], sizes[sizes.len() - 1]);
    println!("{sent} datagrams, {first} and {last} KiB; {line}");
    assert!(
        last <= first + first / 10 + 4096,
        "{first} KiB after a quarter of {sent} datagrams, {last} KiB at the end"
    );
}

/// Takes answers until that to the question is among them: it is the last one.
fn wait_for_answer(host: &UdpSocket) {
    let mut answer = [0; 8192];
    loop {
        let bytes = host.recv(&mut answer).expect("it goes on");
        if bytes == 22 && answer[6] == 0x4a && answer[16] == TAG {
            return;
        }
    }
}

/// What a process has in memory.
fn resident_kib(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
