//! The program that an interface runs on each frame that comes: to our ports, into the socket; everything else, on its way.
#![allow(unsafe_code, reason = "bpf(2) takes structures with pointers")]

use nix::errno::Errno;
use nix::libc;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The program on the interface, for as long as this lives.
pub(super) struct Program {
    _link: OwnedFd,
}

impl Program {
    /// Puts it on the interface with this index: UDP datagrams to `local` and one of the ports in `ranges` (first and last) that come by
    /// `queue` go to `socket`.
    pub(super) fn attach(
        interface: usize,
        queue: u32,
        socket: BorrowedFd<'_>,
        local: Ipv4Addr,
        ranges: &[(u16, u16)],
    ) -> nix::Result<Self> {
        let sockets = map_of_sockets(queue + 1)?;
        insert(&sockets, queue, socket)?;
        let program = load(&instructions(&sockets, local, ranges))?;
        let attr = LinkCreate {
            program: program.as_raw_fd() as u32,
            interface: interface as u32,
            kind: ATTACH_XDP,
            flags: 0,
        };
        // The link keeps the program, and the program the map.
        Ok(Self { _link: bpf_fd(LINK_CREATE, &attr)? })
    }
}

// linux/bpf.h: commands, types, and the parts of `union bpf_attr` that they use.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const TYPE_SOCKETS: u32 = 17;
const TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    _gap: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
    log: [u64; 2],
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    kind: u32,
    flags: u32,
}

fn bpf<T>(command: libc::c_int, attr: &T) -> nix::Result<i64> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes, which is how long the command's part of the union is, and what its pointers point to,
    // which those who fill it in keep alive.
    let status = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attr), size_of::<T>()) };
    Errno::result(status)
}

fn bpf_fd<T>(command: libc::c_int, attr: &T) -> nix::Result<OwnedFd> {
    let fd = bpf(command, attr)?;
    // SAFETY: these commands make a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn map_of_sockets(entries: u32) -> nix::Result<OwnedFd> {
    bpf_fd(MAP_CREATE, &MapCreate { kind: TYPE_SOCKETS, key_bytes: 4, value_bytes: 4, entries })
}

fn insert(map: &OwnedFd, key: u32, socket: BorrowedFd<'_>) -> nix::Result<()> {
    let value = socket.as_raw_fd() as u32;
    let [key, value] = [&key, &value].map(|of| std::ptr::from_ref(of) as u64);
    bpf(MAP_UPDATE, &MapUpdate { map: map.as_raw_fd() as u32, _gap: 0, key, value, flags: 0 }).map(drop)
}

fn load(program: &[Instruction]) -> nix::Result<OwnedFd> {
    // It calls nothing that asks for another one.
    let licence = c"MIT OR Apache-2.0";
    bpf_fd(
        PROGRAM_LOAD,
        &ProgramLoad {
            kind: TYPE_XDP,
            count: program.len() as u32,
            instructions: program.as_ptr() as u64,
            licence: licence.as_ptr() as u64,
            log: [0; 2],
        },
    )
}

/// An instruction (RFC 9669).
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

// Registers.
const R0: u8 = 0;
const CALL_1: u8 = 1;
const CALL_2: u8 = 2;
const CALL_3: u8 = 3;
const VALUE: u8 = 5;
const CONTEXT: u8 = 6;
const FRAME: u8 = 7;
const END: u8 = 8;
// Codes.
const LOAD_BYTE: u8 = 0x71;
const LOAD_HALF: u8 = 0x69;
const LOAD_WORD: u8 = 0x61;
const LOAD_MAP: u8 = 0x18;
const MOVE: u8 = 0xbf;
const SET: u8 = 0xb7;
const ADD: u8 = 0x07;
const AND: u8 = 0x57;
const TO_BIG_ENDIAN: u8 = 0xdc;
const JUMP_ABOVE: u8 = 0x2d;
const JUMP_ABOVE_NUMBER: u8 = 0x25;
const JUMP_BELOW_NUMBER: u8 = 0xa5;
const JUMP_UNEQUAL_WORD: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
// `struct xdp_md`, actions, and the helper `bpf_redirect_map`.
const MD_DATA: i16 = 0;
const MD_DATA_END: i16 = 4;
const MD_QUEUE: i16 = 16;
const PASS: i32 = 2;
const REDIRECT_MAP: i32 = 51;
const A_MAP: u8 = 1;

/// Ethernet, IPv4 without options, UDP.
const HEADERS: i32 = 14 + 20 + 8;

const fn instruction(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    let registers = if cfg!(target_endian = "little") { to | from << 4 } else { to << 4 | from };
    Instruction { code, registers, offset, immediate }
}

/// The program. What is not for us, and what has no plain header, passes.
fn instructions(sockets: &OwnedFd, local: Ipv4Addr, ranges: &[(u16, u16)]) -> Vec<Instruction> {
    let redirect = [
        instruction(LOAD_MAP, CALL_1, A_MAP, 0, sockets.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        instruction(LOAD_WORD, CALL_2, CONTEXT, MD_QUEUE, 0),
        instruction(SET, CALL_3, 0, 0, PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ];
    let pass = [instruction(SET, R0, 0, 0, PASS), instruction(EXIT, 0, 0, 0, 0)];
    // As they stand in the frame, so that none has to be turned round.
    let half = |bytes: [u8; 2]| i32::from(u16::from_ne_bytes(bytes));
    let address = i32::from_ne_bytes(local.octets());
    let fields = [
        (LOAD_HALF, 12, None, half([0x08, 0x00])),
        (LOAD_BYTE, 14, None, 0x45),
        // No fragment: neither more of them nor an offset.
        (LOAD_HALF, 20, Some(half([0x3f, 0xff])), 0),
        (LOAD_BYTE, 23, None, 17),
        (LOAD_WORD, 30, None, address),
    ];
    let begin = [
        instruction(MOVE, CONTEXT, CALL_1, 0, 0),
        instruction(LOAD_WORD, FRAME, CONTEXT, MD_DATA, 0),
        instruction(LOAD_WORD, END, CONTEXT, MD_DATA_END, 0),
        instruction(MOVE, VALUE, FRAME, 0, 0),
        instruction(ADD, VALUE, 0, 0, HEADERS),
    ];
    // A jump to `pass`, which stands behind everything, is mended when it is known how far that is.
    const TO_PASS: i16 = i16::MAX;
    let mut program = Vec::from(begin);
    program.push(instruction(JUMP_ABOVE, VALUE, END, TO_PASS, 0));
    for (load, at, mask, wanted) in fields {
        program.push(instruction(load, VALUE, FRAME, at, 0));
        program.extend(mask.map(|mask| instruction(AND, VALUE, 0, 0, mask)));
        program.push(instruction(JUMP_UNEQUAL_WORD, VALUE, 0, TO_PASS, wanted));
    }
    program.push(instruction(LOAD_HALF, VALUE, FRAME, 36, 0));
    program.push(instruction(TO_BIG_ENDIAN, VALUE, 0, 0, 16));
    for &(first, last) in ranges {
        // Over the redirection.
        program.push(instruction(JUMP_BELOW_NUMBER, VALUE, 0, 1 + redirect.len() as i16, first.into()));
        program.push(instruction(JUMP_ABOVE_NUMBER, VALUE, 0, redirect.len() as i16, last.into()));
        program.extend(redirect);
    }
    let end = program.len();
    for (at, instruction) in program.iter_mut().enumerate() {
        if instruction.offset == TO_PASS {
            instruction.offset = (end - at - 1) as i16;
        }
    }
    program.extend(pass);
    program
}
