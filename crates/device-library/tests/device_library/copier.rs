//! `examples/c/copier.c`, event by event.

use crate::mistakes::doing;
use crate::{compile, here};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tlplab_device::{Action, BarSpec, Context, Device, DmaError, Event, OpId, ReplyToken};
use tlplab_device_library::LibraryDevice;
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Duration, Time};

pub(crate) fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| compile("copier", &here("../../examples/c/copier.c"))).clone()
}

struct Bench {
    device: LibraryDevice,
    next_op: u64,
}

impl Bench {
    fn new() -> Self {
        Self::of(&library())
    }

    fn of(library: &Path) -> Self {
        Self { device: LibraryDevice::open(library, &BTreeMap::new()).unwrap(), next_op: 7 }
    }

    fn tell(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        let now = Time::ZERO + Duration::from_ns(5);
        let mut cx = Context::new(now, &[], &mut self.next_op, &mut actions);
        self.device.handle(&mut cx, event);
        actions
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Vec<Action> {
        self.tell(Event::MmioWrite { bar: 0, offset, data: data.to_vec().into() })
    }

    fn done(&mut self) -> u64 {
        let actions = self.tell(Event::MmioRead { bar: 0, offset: 0x14, bytes: 4, reply: ReplyToken(3) });
        let [Action::Reply { token: ReplyToken(3), data }] = &actions[..] else { panic!("{actions:?}") };
        u32::from_le_bytes(data.bytes().unwrap()[..].try_into().unwrap()).into()
    }
}

#[test]
fn identity_comes_from_the_library() {
    let identity = Bench::new().device.identity();
    assert_eq!((identity.vendor, identity.device, identity.class), (0x71AB, 1, 0xFF_0000));
    assert_eq!(identity.subsystem, (0x71AB, 1));
    assert_eq!(identity.bars, [BarSpec::registers(0, 4096)]);
    assert_eq!((identity.msix_vectors, identity.msi_vectors, identity.intx), (1, 0, false));
}

#[test]
fn a_copy_is_a_read_then_a_write_and_an_interrupt_behind_it() {
    let mut bench = Bench::new();
    assert_eq!(bench.tell(Event::Start), []);
    assert_eq!(bench.write(0x00, &0x1000u64.to_le_bytes()), []);
    assert_eq!(bench.write(0x08, &0x2_0000_0000u64.to_le_bytes()), []);
    let read = Action::DmaRead { op: OpId(7), stream: 0, address: 0x1000, bytes: 5, carry: false };
    assert_eq!(bench.write(0x10, &5u32.to_le_bytes()), [read]);
    let data = Payload::from(b"hello".to_vec());
    assert_eq!(
        bench.tell(Event::DmaReadDone { op: OpId(7), result: Ok(data.clone()) }),
        [
            Action::DmaWrite { op: OpId(8), stream: 0, address: 0x2_0000_0000, data },
            Action::Msix { stream: 0, vector: 0 }
        ]
    );
    assert_eq!(bench.done(), 0);
    assert_eq!(bench.tell(Event::DmaWriteAccepted { op: OpId(8) }), []);
    assert_eq!(bench.done(), 1);
    assert_eq!(bench.tell(Event::Reset), []);
    assert_eq!(bench.done(), 0);
    bench.device.rebase(Duration::from_ns(1));
}

#[test]
fn a_library_changes_bytes_of_its_configuration_space() {
    let handle = "static const uint8_t ids[] = { 0xff, 0xff, 3 }; cx->set_config(cx, 0x100, ids, 3); cx->set_config(cx, 7, 0, 0);";
    let mut bench = Bench::of(&doing("changing", "", handle));
    let set = |offset, data: &[u8]| Action::SetConfig { offset, data: data.to_vec() };
    assert_eq!(bench.tell(Event::Start), [set(0x100, &[0xFF, 0xFF, 3]), set(7, &[])]);
}

/// The library is told of an error by its number and in words.
#[test]
fn a_failed_read_ends_the_run_in_words() {
    let mut bench = Bench::new();
    bench.write(0x10, &5u32.to_le_bytes());
    let error = DmaError::Completion(CompletionError::UnsupportedRequest { address: 0x1000 });
    let actions = bench.tell(Event::DmaReadDone { op: OpId(7), result: Err(error) });
    assert_eq!(actions, [Action::Fault(error.to_string())]);
}
