//! Many datagrams by one system call.
#![allow(unsafe_code, reason = "prctl takes a pointer")]

use nix::libc;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;
use tlplab_netio::{Batch, Transport, Udp};
use tlplab_nettlp::Outgoing;

/// More than go by one call of a loop that takes them one by one.
const MANY: usize = 40;

/// From now on this thread cannot receive or send single datagrams: the kernel refuses.
fn forbid_single_datagrams() {
    // linux/bpf_common.h; the number of the system call comes first in `struct seccomp_data`.
    let [load_word, jump_equal, give_back] = [0x20, 0x15, 0x06];
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![step(load_word, 0, 0, 0)];
    for call in [libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_sendto, libc::SYS_sendmsg] {
        program.push(step(jump_equal, 0, 1, call as u32));
        program.push(step(give_back, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    }
    program.push(step(give_back, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program is whole, and the kernel copies it.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(done, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_busy_socket_takes_and_sends_its_datagrams_without_a_call_for_each() {
    let id = std::process::id();
    let [local, peer] = [1, 2].map(|end| Ipv4Addr::new(127, 224 + (id >> 8 & 15) as u8, id as u8, end));
    let mut udp = Udp::open(local, [0x3000], Some(peer)).unwrap();
    let other = UdpSocket::bind((peer, 0x3000)).unwrap();
    other.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let send =
        |count| (0..count).for_each(|number| _ = other.send_to(&[number as u8], (local, 0x3000)).unwrap());
    // What a call asks for doubles with each call that brought as much as it asked for.
    send(1 + 2 + 4 + 8 + 16 + 32);
    for asked in [1, 2, 4, 8, 16, 32] {
        let mut batch = Batch::default();
        udp.receive(None, &mut batch).unwrap();
        assert_eq!(batch.len(), asked);
    }
    send(MANY);
    let came = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            forbid_single_datagrams();
            let (mut batch, mut back) = (Batch::default(), Batch::default());
            udp.receive(None, &mut batch).unwrap();
            for datagram in batch.datagrams() {
                back.push_with(|buffer| {
                    buffer[..1].copy_from_slice(datagram.payload);
                    Some(Outgoing::same_port(peer, 0x3000, 1))
                });
            }
            udp.send(&mut back).unwrap();
            batch.len()
        });
        run.join().unwrap()
    });
    assert_eq!(came, MANY);
    for number in 0..MANY {
        let mut buffer = [0];
        assert_eq!((other.recv(&mut buffer).unwrap(), buffer[0]), (1, number as u8));
    }
}
