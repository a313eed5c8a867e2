//! Reads of a guest's mapped memory by a device in this process: 10^9 bytes a second. `guest_memory BYTES READS`

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::error::Error;
use std::io::{IoSlice, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use tlplab_device::{Action, Event, Identity};
use tlplab_netio::VfioUser;
use tlplab_vfio::message::{Command, HEADER, Header};

/// Bytes of the guest's memory.
const MEMORY: u64 = 64 << 20;
const WAIT: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<u64> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let [bytes, reads] = given[..] else { return Err("guest_memory BYTES READS".into()) };
    let folder = tempfile::tempdir()?;
    let layout = Identity::new(0x71AB, 1, 0xFF_00_00).layout();
    let mut socket = VfioUser::listen(&folder.path().join("device.sock"), &layout)?;
    let mut client = connect(&mut socket)?;
    // Bus mastering.
    let place = [&4_u64.to_le_bytes()[..], &7_u32.to_le_bytes(), &2_u32.to_le_bytes(), &6_u16.to_le_bytes()];
    call(&mut client, &mut socket, Command::RegionWrite, &place.concat())?;
    while socket.take_event().is_some() {}
    let begun = Instant::now();
    for number in 0..reads {
        let address = (number * bytes) % (MEMORY - bytes + 1);
        let (now, op) = (socket.now(), socket.port.next_op());
        socket.act(now, Action::DmaRead { op, stream: 0, address, bytes, carry: true });
        match socket.take_event() {
            Some(Event::DmaReadDone { result: Ok(data), .. }) if data.len() == bytes => {}
            other => return Err(format!("no data: {other:?}").into()),
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{:.3}", (bytes * reads) as f64 / seconds / 1e9);
    Ok(())
}

/// A client that has agreed on the protocol and shared its memory.
fn connect(socket: &mut VfioUser) -> Result<UnixStream, Box<dyn Error>> {
    let mut client = UnixStream::connect(socket.path())?;
    socket.wait_turn(Instant::now() + WAIT)?;
    call(&mut client, socket, Command::Version, b"\0\0\0\0{}\0")?;
    let file = memfd_create("guest", MFdFlags::empty())?;
    nix::unistd::ftruncate(&file, MEMORY as i64)?;
    let fields = [&32_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), &[0; 16], &MEMORY.to_le_bytes()].concat();
    let mapping = message(Command::DmaMap, &fields);
    let beside = [file.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&beside)];
    sendmsg::<()>(client.as_raw_fd(), &[IoSlice::new(&mapping)], &rights, MsgFlags::empty(), None)?;
    answered(&mut client, socket)?;
    Ok(client)
}

fn message(command: Command, payload: &[u8]) -> Vec<u8> {
    let size = (HEADER + payload.len()) as u32;
    let header =
        Header { id: 1, command: command as u16, size, is_reply: false, no_reply: false, error: None };
    [&header.emit()[..], payload].concat()
}

fn call(
    client: &mut UnixStream,
    socket: &mut VfioUser,
    command: Command,
    payload: &[u8],
) -> Result<(), Box<dyn Error>> {
    client.write_all(&message(command, payload))?;
    answered(client, socket)
}

/// Lets the server answer, and takes its answer.
fn answered(client: &mut UnixStream, socket: &mut VfioUser) -> Result<(), Box<dyn Error>> {
    socket.wait_turn(Instant::now() + WAIT)?;
    let mut head = [0; HEADER];
    client.read_exact(&mut head)?;
    let header = Header::parse(&head)?;
    let mut rest = vec![0; header.size as usize - HEADER];
    client.read_exact(&mut rest)?;
    match header.error {
        None => Ok(()),
        Some(error) => Err(format!("refused: {error}").into()),
    }
}
