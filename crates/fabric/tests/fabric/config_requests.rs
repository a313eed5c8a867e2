//! What a host can do to functions through configuration space, once they are enumerated: read and write registers of any width, and
//! switch spaces, bus mastering, interrupts and whole functions off and on.

use crate::bench::mover::{byte_at, bytes_at};
use crate::bench::script::{
    BUSY, COPY, COPY_BYTES, Card, DOORBELL, Heard, Lived, Place, Script, Step, read, write,
};
use crate::bench::{Bench, Watch, ns};
use std::sync::{Arc, Mutex};
use tlplab_cfgspace::ConfigSpace;
use tlplab_device::{Device, DmaError, Identity};
use tlplab_fabric::config::*;
use tlplab_fabric::errors::ErrorKind;
use tlplab_fabric::{Driven, Ending, Fabric, MSI_ADDRESS};
use tlplab_transaction::{CompletionError, memory_access};
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::tlp::{CfgTarget, Kind, Repr};

const COMMAND: u16 = 0x04;
const INTERRUPT_LINE: u16 = 0x3C;

/// A card below a switch and a program on the host.
fn bench(policy: InterruptPolicy, steps: Vec<Step>) -> (Bench, Arc<Mutex<Heard>>, Arc<Mutex<Lived>>) {
    let mut bench = Bench::new();
    bench.config.host.interrupts = policy;
    bench.switch("sw0", "host.rp0", 3, 4).latency = ns(50);
    let (card, lived) = Card::new();
    bench.device("card", "sw0", 3, 4).model(card);
    let (script, heard) = Script::new(steps);
    bench.finishing_program(script);
    (bench, heard, lived)
}

fn finish(bench: Bench) -> (Fabric, Watch) {
    let watch = Watch::everything();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.host_memory().write(0x10_0000, &bytes_at(0x10_0000, COPY_BYTES));
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(50)) {}
    assert_eq!(fabric.fault(), None);
    assert!(fabric.is_done(), "{} transactions under way", fabric.transactions_live());
    fabric.run_until(fabric.now() + Duration::from_us(150));
    assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
    assert_eq!(fabric.protocol_errors().count(), 0);
    watch.check_attribution(&fabric);
    (fabric, watch)
}

fn run(policy: InterruptPolicy, steps: Vec<Step>) -> (Fabric, Watch, Heard, Lived) {
    let (bench, heard, lived) = bench(policy, steps);
    let (fabric, watch) = finish(bench);
    let (heard, lived) = (heard.lock().unwrap().clone(), lived.lock().unwrap().clone());
    (fabric, watch, heard, lived)
}

fn target(repr: &Repr) -> Option<(CfgTarget, bool)> {
    match repr.kind() {
        Kind::CfgRead { target, .. } => Some((*target, false)),
        Kind::CfgWrite { target, .. } => Some((*target, true)),
        _ => None,
    }
}

/// Configuration requests that went down a link: (type 1, write, register, byte enables).
fn requests_on(watch: &Watch, fabric: &Fabric, link: &str) -> Vec<(bool, bool, u16, u8)> {
    let tlps = watch.tlps(fabric, link, 1);
    let seen = tlps.iter().filter_map(|(_, repr)| target(repr));
    seen.map(|(target, write)| (target.is_type1(), write, target.register(), target.enables())).collect()
}

/// Where a capability is.
fn capability(identity: &Identity, id: u8) -> u16 {
    let space = ConfigSpace::new(&identity.layout()).unwrap();
    let mut at = space.read(0x34) as u16 & 0xFF;
    while space.read(at) as u8 != id {
        at = (space.read(at) >> 8) as u16 & 0xFF;
        assert_ne!(at, 0, "capability {id:#x} is there");
    }
    at
}

fn doorbell(address: u32) -> Step {
    write(Place::Bar("card", 0, DOORBELL), &address.to_le_bytes())
}

fn unsupported(read: &Result<Vec<u8>, DmaError>) -> bool {
    matches!(read, Err(DmaError::Completion(CompletionError::UnsupportedRequest { .. })))
}

#[test]
fn bytes_and_words_travel_as_byte_enables() {
    let at = |offset: u16| Place::Config("card", INTERRUPT_LINE + offset);
    let (fabric, watch, heard, _) = run(
        InterruptPolicy::MsiX,
        vec![
            write(at(0), &[0xA5]),
            read(at(0), 1),
            read(at(1), 1),
            read(at(0), 4),
            read(at(1), 2),
            // Latency and grant are read-only, and the line keeps its value.
            write(at(1), &[0xFF, 0xFF, 0xFF]),
            read(at(0), 2),
            // Across a doubleword there is no configuration request.
            read(at(2), 4),
        ],
    );
    assert_eq!(heard.reads[..5].iter().flatten().map(Vec::len).collect::<Vec<_>>(), [1, 1, 4, 2, 2]);
    let seen: Vec<_> = heard.reads[..5].iter().map(|read| read.clone().unwrap()).collect();
    assert_eq!(seen, [&[0xA5][..], &[1], &[0xA5, 1, 0, 0], &[1, 0], &[0xA5, 1]]);
    assert!(unsupported(&heard.reads[5]));
    let enables = [
        (true, 0b0001),
        (false, 0b0001),
        (false, 0b0010),
        (false, 0b1111),
        (false, 0b0110),
        (true, 0b1110),
        (false, 0b0011),
    ];
    // The switch's own bus and the one behind it: type 1 to the switch, type 0 to the card.
    for (link, type1) in [("sw0", true), ("card", false)] {
        let expected = enables.map(|(write, enables)| (type1, write, INTERRUPT_LINE, enables));
        assert_eq!(requests_on(&watch, &fabric, link), expected, "{link}");
    }
}

#[test]
fn absent_functions_read_all_ones() {
    let function = |bus, device, function| Bdf::new(bus, device, function).unwrap();
    let absent = [
        (function(0, 9, 0), None),         // no root port
        (function(0, 1, 1), None),         // no further function of one
        (function(77, 0, 0), None),        // no bus below any root port
        (function(1, 1, 0), None),         // the link to the switch has one device at its end
        (function(1, 0, 3), Some("sw0")),  // the switch's upstream port has one function
        (function(2, 7, 0), Some("sw0")),  // no downstream port
        (function(3, 0, 5), Some("card")), // the card has one function
    ];
    let mut steps: Vec<_> = absent.iter().map(|(bdf, _)| read(Place::Function(*bdf, 0), 4)).collect();
    steps.extend(absent.iter().map(|(bdf, _)| write(Place::Function(*bdf, COMMAND), &[0xFF, 0xFF])));
    steps.push(read(Place::Config("card", 0), 4));
    let (fabric, watch, heard, _) = run(InterruptPolicy::MsiX, steps);
    let mut expected = vec![0xFFFF_FFFF; absent.len()];
    expected.push(0x00FD_71AB);
    assert_eq!(heard.values(), expected);
    for link in ["sw0", "card"] {
        let detected =
            fabric.errors().filter(|error| matches!(error.kind, ErrorKind::UnsupportedRequest { .. }));
        let at_link = |error: &&tlplab_fabric::errors::ErrorCount| {
            fabric.topology().ports[error.port.index()].name == link
        };
        let refused = absent.iter().filter(|(_, by)| *by == Some(link)).count() as u64;
        // A read and a write each.
        assert_eq!(detected.filter(at_link).map(|error| error.count).sum::<u64>(), 2 * refused, "{link}");
    }
    // What the root complex knows to be absent never leaves it.
    assert_eq!(requests_on(&watch, &fabric, "sw0").len(), 2 * 3 + 1);
}

#[test]
fn io_requests_find_their_way_through_the_windows() {
    let at = |offset| Place::Bar("card", 1, offset);
    let (fabric, watch, heard, _) = run(
        InterruptPolicy::MsiX,
        vec![
            write(at(4), &[1, 2, 3, 4]),
            write(at(9), &[0x55]),
            read(at(4), 4),
            read(at(6), 2),
            read(at(9), 1),
            read(at(8), 4),
            read(at(6), 4),                                  // across a doubleword
            write(Place::Config("card", COMMAND), &[0b110]), // I/O off
            read(at(4), 4),
            write(Place::Config("card", COMMAND), &[0b111]),
            read(at(4), 4),
        ],
    );
    let data: Vec<_> = heard.reads.iter().map(|read| read.clone().ok()).collect();
    let ones = Some(vec![0xFF; 4]);
    let kept = Some(vec![1, 2, 3, 4]);
    assert_eq!(
        data,
        [kept.clone(), Some(vec![3, 4]), Some(vec![0x55]), Some(vec![0, 0x55, 0, 0]), None, ones, kept]
    );
    let io = watch.tlps(&fabric, "card", 1).into_iter().filter_map(|(_, repr)| match repr.kind() {
        Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => Some((port.address() & 31, port.enables())),
        _ => None,
    });
    let expected = [(4, 15), (8, 0b10), (4, 15), (4, 0b1100), (8, 0b10), (8, 15), (4, 15), (4, 15)];
    assert_eq!(io.collect::<Vec<_>>(), expected);
    let bridges: Vec<_> = fabric.topology().ports.iter().filter_map(|port| port.bridge).collect();
    assert_eq!(bridges.len(), 3);
    let base = fabric.devices()[0].bars[1].unwrap().0;
    assert!(
        fabric
            .hierarchy()
            .unwrap()
            .functions
            .iter()
            .filter_map(|f| f.bridge.as_ref())
            .all(|windows| { windows.io.as_ref().is_some_and(|window| window.contains(&base)) })
    );
}

#[test]
fn prefetchable_memory_lies_above_4_gib() {
    let at = |offset| Place::Bar("card", 2, offset);
    let data = bytes_at(0, 256);
    let (fabric, watch, heard, _) =
        run(InterruptPolicy::MsiX, vec![write(at(0xF_FF00), &data), read(at(0xF_FF00), 256)]);
    assert_eq!(heard.reads, [Ok(data)]);
    assert!(fabric.devices()[0].bars[2].unwrap().0 >= 1 << 40, "above all memory");
    let memory = |repr: &Repr| memory_access(repr).map(|access| access.address);
    let tlps = watch.tlps(&fabric, "card", 1);
    assert_eq!(
        tlps.iter().filter_map(|(_, repr)| memory(repr)).filter(|address| *address >= 1 << 40).count(),
        2
    );
}

#[test]
fn a_space_that_is_off_answers_nothing() {
    let command = |bits: u8| write(Place::Config("card", COMMAND), &[bits, 0]);
    let at = Place::Bar("card", 0, 0x40);
    let (fabric, _, heard, lived) = run(
        InterruptPolicy::MsiX,
        vec![
            write(at, &[1, 2, 3, 4]),
            command(0b101), // no memory
            read(at, 4),
            write(at, &[9, 9, 9, 9]), // lost: nobody answers a posted write
            command(0b111),
            read(at, 4),
            command(0b011), // no bus mastering
            doorbell(0x10_0000),
            Step::Wait(Duration::from_us(20)),
            read(at, 4),
            command(0b111),
            doorbell(0x10_0000),
            Step::Wait(Duration::from_us(20)),
        ],
    );
    assert!(unsupported(&heard.reads[0]));
    assert_eq!(heard.reads[1..], [Ok(vec![1, 2, 3, 4]), Ok(vec![1, 2, 3, 4])]);
    assert_eq!(lived.failed, [DmaError::BusMasterDisabled]);
    assert_eq!((lived.copied.len(), heard.interrupts.as_slice()), (1, &[(0, 1)][..]));
    assert_eq!(lived.starts, 2, "it started, and heard that it may master the bus again");
    let ur = fabric.errors().filter(|error| matches!(error.kind, ErrorKind::UnsupportedRequest { .. }));
    assert_eq!(ur.map(|error| error.count).sum::<u64>(), 2);
}

/// The interrupt of a copy as software allows it: MSI-X has two vectors, MSI one, and without both nothing is written to memory.
#[test]
fn functions_interrupt_as_software_allows() {
    for (policy, expected) in
        [(InterruptPolicy::MsiX, Some(1)), (InterruptPolicy::Msi, Some(0)), (InterruptPolicy::Intx, None)]
    {
        let (mut fabric, watch, heard, lived) =
            run(policy, vec![doorbell(0x10_0000), Step::Wait(Duration::from_us(20))]);
        assert_eq!(lived.copied.len(), 1, "{policy:?}");
        let expected: Vec<_> = expected.into_iter().map(|vector| (0, vector)).collect();
        assert_eq!(heard.interrupts, expected, "{policy:?}");
        let up = watch.tlps(&fabric, "card", 0);
        let written = up.iter().filter_map(|(_, repr)| memory_access(repr)).map(|access| access.address);
        let messages = written.filter(|address| address >> 20 == MSI_ADDRESS >> 20);
        assert_eq!(messages.count(), expected.len(), "{policy:?}");
        let mut copy = vec![0; COPY_BYTES as usize];
        fabric.host_memory().read(0x10_0000 + COPY, &mut copy);
        assert_eq!(copy, bytes_at(0x10_0000, COPY_BYTES));
    }
}

/// A function-level reset in the middle of DMA: what was under way is over, nothing of it is heard of again, and once it is set up again
/// it works.
#[test]
fn a_function_level_reset_ends_all_that_was_under_way() {
    let (card, _) = Card::new();
    let control = capability(&card.identity(), 0x10) + 8;
    let config = |register, data: &[u8]| write(Place::Config("card", register), data);
    let bar = |register| read(Place::Config("card", register), 4);
    let (mut bench, heard, lived) = bench(
        InterruptPolicy::MsiX,
        vec![
            bar(0x10),
            doorbell(BUSY),
            Step::Wait(Duration::from_us(10)),
            read(Place::Config("card", control), 2),
            // Max_Payload_Size is in the other byte.
            config(control + 1, &[0xA8]),
            Step::Wait(Duration::from_us(100)), // the time that it may need (PCIe 5.0 §6.6.2), shortened
            bar(0x10),
            read(Place::Config("card", COMMAND), 2),
            read(Place::Bar("card", 0, 0), 4),
            // Set up again, where it was.
            config(0x10, &0xC000_0000u32.to_le_bytes()),
            config(COMMAND, &[0b110, 0]),
            Step::Wait(Duration::from_us(10)),
            doorbell(0x10_0000),
            Step::Wait(Duration::from_us(20)),
            read(Place::Bar("card", 0, 0x40), 4),
        ],
    );
    bench.config.host.memory.latency = ns(700);
    let (mut fabric, watch) = finish(bench);
    let (heard, lived) = (heard.lock().unwrap(), lived.lock().unwrap());
    let ok = |index: usize| heard.reads[index].clone().unwrap();
    assert_eq!(ok(0), 0xC000_0000u32.to_le_bytes(), "BAR 0 was there");
    assert_eq!((ok(2), ok(3)), (vec![0; 4], vec![0; 2]), "BAR and command after the reset");
    assert!(unsupported(&heard.reads[4]));
    assert_eq!(ok(5), [0; 4]);
    assert_eq!((lived.resets, lived.starts, lived.copied.len()), (1, 2, 1));
    assert_eq!(lived.timers, [] as [u64; 0], "timers are gone, too");
    // One read was under way; its two completions of 256 B are for nobody.
    let endings = |ending| watch.transactions().iter().filter(|t| t.ending == ending).count();
    assert_eq!((endings(Ending::Lost), fabric.unexpected_completions()), (1, 2));
    // The table of MSI-X was not set up again, so its interrupt is not sent.
    assert_eq!(heard.interrupts, []);
    let mut copy = vec![0; COPY_BYTES as usize];
    fabric.host_memory().read(0x10_0000 + COPY, &mut copy);
    assert!((0..).zip(&copy).all(|(at, byte)| *byte == byte_at(0x10_0000 + at)));
}

/// Both functions of a device move data over one link, each with its own ID, registers and interrupts.
#[test]
fn functions_of_a_device_use_their_own_ids() {
    let mut steps = vec![Step::Wait(Duration::from_us(1))];
    for (name, address) in [("card", 0x10_0000u32), ("second", 0x20_0000)] {
        steps.push(write(Place::Bar(name, 0, DOORBELL), &address.to_le_bytes()));
    }
    steps.push(Step::Wait(Duration::from_us(20)));
    for name in ["card", "second"] {
        steps.push(write(Place::Bar(name, 0, 0x40), name.as_bytes()[..4].as_ref()));
        steps.push(write(Place::Bar(name, 1, 8), name.as_bytes()[..2].as_ref()));
    }
    for name in ["card", "second"] {
        steps.extend([read(Place::Bar(name, 0, 0x40), 4), read(Place::Bar(name, 1, 8), 2)]);
        steps.push(read(Place::Config(name, 0), 4));
    }
    let (mut bench, heard, lived) = bench(InterruptPolicy::MsiX, steps);
    let (second, second_lived) = Card::with(Identity { device: 0x00FC, ..Card::new().0.identity() });
    bench
        .device("second", "unused", 1, 1)
        .config(|config| config.function_of = Some(FunctionOf { device: "card".into(), number: 5 }))
        .model(second);
    let (mut fabric, watch) = finish(bench);
    let heard = heard.lock().unwrap();
    let ids = ["card", "second"].map(|name| fabric.id_of(name).unwrap());
    assert_eq!(ids.map(|id| id.to_string()), ["03:00.0", "03:00.5"]);
    assert_eq!(lived.lock().unwrap().copied.len() + second_lived.lock().unwrap().copied.len(), 2);
    assert_eq!(
        heard.reads.iter().map(|read| read.clone().unwrap()).collect::<Vec<_>>(),
        [&b"card"[..], b"ca", &0x00FD_71ABu32.to_le_bytes(), b"seco", b"se", &0x00FC_71ABu32.to_le_bytes()]
    );
    let mut interrupts = heard.interrupts.clone();
    interrupts.sort_unstable();
    assert_eq!(interrupts, [(0, 1), (1, 1)]);
    // Requests of each by its ID: a read, the pieces of a write, and an interrupt.
    for (id, address) in ids.into_iter().zip([0x10_0000u64, 0x20_0000]) {
        let up = watch.tlps(&fabric, "card", 0);
        let of = |repr: &Repr| {
            let request = matches!(repr.kind(), Kind::MemRead { .. } | Kind::MemWrite { .. });
            request && repr.transaction_id().requester == id
        };
        let own: Vec<_> = up.iter().filter(|(_, repr)| of(repr)).collect();
        assert_eq!(own.len(), 1 + COPY_BYTES as usize / 256 + 1, "{id}");
        let mut copy = vec![0; COPY_BYTES as usize];
        let mut original = copy.clone();
        fabric.host_memory().read(address, &mut original);
        fabric.host_memory().read(address + COPY, &mut copy);
        assert_eq!(copy, original, "{id}");
    }
}

const ROOT_PORT: Bdf = Bdf(0x0008);
const ABOVE_CARD: Bdf = Bdf(0x0200);

/// Where a function's Device Control is, once it is configured.
fn device_control(at: Bdf) -> u16 {
    let (bench, ..) = bench(InterruptPolicy::MsiX, Vec::new());
    let (mut fabric, _) = finish(bench);
    let (_, space) = fabric.config_spaces().into_iter().find(|(id, _)| *id == at).expect("it is there");
    let mut offset = space.read(0x34) as u16 & 0xFC;
    while space.read(offset) as u8 != 0x10 {
        offset = (space.read(offset) >> 8) as u16 & 0xFC;
    }
    offset + 8
}

/// Max_Payload_Size 128 bytes, reads of 512.
const PAYLOAD_128: [u8; 2] = 0x2810u16.to_le_bytes();

/// PCIe 5.0 §2.2.2: the payload of a TLP does not exceed the transmitter's Max_Payload_Size.
#[test]
fn completions_of_the_root_complex_follow_max_payload_size_of_the_root_port() {
    let longest = |steps: Vec<Step>| {
        let (fabric, watch, _, lived) =
            run(InterruptPolicy::MsiX, steps.into_iter().chain([doorbell(0x10_0000)]).collect());
        assert_eq!(lived.copied.len(), 1);
        let down = watch.tlps(&fabric, "card", 1);
        down.iter().map(|(_, repr)| repr.payload_dw() * 4).max()
    };
    assert_eq!(longest(vec![]), Some(256));
    let less = write(Place::Function(ROOT_PORT, device_control(ROOT_PORT)), &PAYLOAD_128);
    assert_eq!(longest(vec![less]), Some(128));
}

/// A receiver takes no payload above its own Max_Payload_Size: the TLP is malformed.
#[test]
fn a_port_refuses_payloads_above_its_max_payload_size() {
    let less = write(Place::Function(ABOVE_CARD, device_control(ABOVE_CARD)), &PAYLOAD_128);
    let (bench, _, lived) = bench(InterruptPolicy::MsiX, vec![less, doorbell(0x10_0000)]);
    let mut fabric = bench.build();
    fabric.host_memory().write(0x10_0000, &bytes_at(0x10_0000, COPY_BYTES));
    fabric.run_until(Time::ZERO + Duration::from_ms(1));
    let errors: Vec<_> = fabric.errors().map(|error| (error.kind, error.count)).collect();
    assert_eq!(errors, [(ErrorKind::Malformed, 2)], "two writes of 256 bytes");
    let mut copy = [0; COPY_BYTES as usize];
    fabric.host_memory().read(0x10_0000 + COPY, &mut copy);
    assert_eq!(copy, [0; COPY_BYTES as usize]);
    assert!(!lived.lock().unwrap().copied.is_empty(), "the card has seen nothing of it");
}

/// PCIe 5.0 §2.2.6.4: Relaxed Ordering is clear in a message signalled interrupt.
#[test]
fn interrupts_of_a_device_with_relaxed_ordering_are_ordered() {
    let (mut bench, heard, _) = bench(InterruptPolicy::MsiX, vec![doorbell(0x10_0000)]);
    bench.config.devices[0].relaxed_ordering = true;
    let (fabric, watch) = finish(bench);
    assert_eq!(heard.lock().unwrap().interrupts.len(), 1);
    let up = watch.tlps(&fabric, "card", 0);
    let relaxed = |interrupt: bool| {
        let requests = up.iter().filter(|(_, repr)| {
            let address = memory_access(repr).filter(|_| !matches!(repr.kind(), Kind::Completion(_)));
            address.is_some_and(|access| {
                (access.address >= MSI_ADDRESS && access.address < MSI_ADDRESS + (1 << 20)) == interrupt
            })
        });
        requests.map(|(_, repr)| repr.attributes().relaxed_ordering).collect::<Vec<_>>()
    };
    assert_eq!(relaxed(true), [false]);
    assert_eq!(relaxed(false), [true; 3], "a read and two writes");
}

/// PCIe 5.0 §7.5.1.3.13, §6.6.1: devices below are reset, and are there again, unconfigured, when the bit is clear.
#[test]
fn secondary_bus_reset_resets_devices_below_without_an_error() {
    const BRIDGE_CONTROL: u16 = 0x3E;
    for bridge in [ABOVE_CARD, ROOT_PORT] {
        let reset = |bits: u8| write(Place::Function(bridge, BRIDGE_CONTROL), &[bits, 0]);
        let card = Place::Function(Bdf(0x0300), 0);
        let steps = vec![
            doorbell(BUSY),
            Step::Wait(Duration::from_us(10)),
            reset(0x40),
            Step::Wait(Duration::from_us(10)),
            read(card, 4),
            reset(0),
            // Software hears of the link, and configures what is below.
            Step::Wait(Duration::from_ms(2)),
            read(card, 4),
            doorbell(0x10_0000),
            Step::Wait(Duration::from_us(50)),
        ];
        let (mut bench, heard, lived) = bench(InterruptPolicy::MsiX, steps);
        bench.config.host.enumeration = EnumerationTime::Simulated;
        let mut fabric = bench.build();
        fabric.host_memory().write(0x10_0000, &bytes_at(0x10_0000, COPY_BYTES));
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(60)) {}
        let (heard, lived) = (heard.lock().unwrap(), lived.lock().unwrap());
        let values = heard.values();
        assert_eq!(values[0], 0xFFFF_FFFF, "nothing is below a link in reset");
        assert_eq!(values[1] & 0xFFFF, 0x71AB);
        assert_eq!((lived.resets, lived.starts, lived.copied.len()), (1, 2, 1));
        let kinds: Vec<_> = fabric.errors().map(|error| error.kind).collect();
        assert!(!kinds.contains(&ErrorKind::SurpriseDown), "{kinds:?}");
        assert_eq!(fabric.protocol_errors().count(), 0);
    }
}
