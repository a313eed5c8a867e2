//! A device in Rust does the same whether it is told what happens, or its library is.

#[allow(dead_code)] // its main, its driver
#[path = "../copier.rs"]
mod copier;

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tlplab_device::{Action, Context, Device, DmaError, Event, OpId, ReplyToken};
use tlplab_device_library::LibraryDevice;
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Duration, Tag, Time};

/// The example `copier_library`, built as `cargo test --workspace` has built it.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--profile", "test", "--workspace", "--example", "copier_library"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo").success());
        let tests = std::env::current_exe().expect("this test");
        tests.ancestors().nth(2).expect("target/…/deps").join("examples/libcopier_library.so")
    })
}

fn event() -> impl Strategy<Value = Event> {
    let data = prop::collection::vec(any::<u8>(), 1..=8);
    let failure = prop::sample::select(vec![
        DmaError::BusMasterDisabled,
        CompletionError::UnsupportedRequest { address: 0x1234 }.into(),
        CompletionError::CompleterAbort { address: 0x1234 }.into(),
        CompletionError::RetryStatus.into(),
        CompletionError::Poisoned { address: 0x1234 }.into(),
        CompletionError::Timeout { address: 8, tag: Tag::new(77).unwrap(), after: Duration::from_ms(50) }
            .into(),
    ]);
    let result = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 1..=64).prop_map(|data| Ok(data.into())),
        1 => failure.prop_map(Err),
        1 => (1u64..99).prop_map(|bytes| Ok(Payload::Length(bytes))),
    ];
    let register = prop::sample::select(vec![0u64, 8, 0x10, 0x14, 0x20]);
    prop_oneof![
        1 => Just(Event::Start),
        4 => (register.clone(), data)
            .prop_map(|(offset, data)| Event::MmioWrite { bar: 0, offset, data: data.into() }),
        2 => (register, 0u32..=8, any::<u64>()).prop_map(|(offset, bytes, token)| Event::MmioRead {
            bar: 0, offset, bytes, reply: ReplyToken(token)
        }),
        4 => (0u64..12, result).prop_map(|(op, result)| Event::DmaReadDone { op: OpId(op), result }),
        2 => (0u64..12).prop_map(|op| Event::DmaWriteAccepted { op: OpId(op) }),
        1 => any::<u64>().prop_map(|id| Event::Timer { id }),
        1 => Just(Event::Reset),
    ]
}

fn tell(device: &mut dyn Device, next_op: &mut u64, length_only: bool, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut cx = Context::new(Time::ZERO + Duration::from_ns(9), &[], next_op, &mut actions)
        .with_length_only(length_only);
    device.handle(&mut cx, event);
    actions
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_library_acts_as_the_device_in_rust(length_only: bool, events in prop::collection::vec(event(), 1..40)) {
        let mut device = copier::Copier::default();
        let mut library = LibraryDevice::open(library(), &BTreeMap::new()).unwrap();
        prop_assert_eq!(device.identity(), library.identity());
        let (mut next, mut next_of_library) = (0, 0);
        let mut under_way = BTreeSet::new();
        for event in events {
            match &event {
                Event::DmaReadDone { result: Ok(Payload::Length(_)), .. } if !length_only => continue,
                // Only what is under way can end.
                Event::DmaReadDone { op, .. } | Event::DmaWriteAccepted { op } if !under_way.remove(op) => continue,
                Event::Reset => under_way.clear(),
                _ => {}
            }
            let expected = tell(&mut device, &mut next, length_only, event.clone());
            let told = tell(&mut library, &mut next_of_library, length_only, event);
            under_way.extend(expected.iter().filter_map(|action| match action {
                Action::DmaRead { op, .. } | Action::DmaWrite { op, .. } => Some(*op),
                _ => None,
            }));
            let faults = |actions: &[Action]| actions.iter().any(|action| matches!(action, Action::Fault(_)));
            prop_assert_eq!(&told, &expected);
            if faults(&told) {
                break; // the run is over
            }
        }
    }
}

#[test]
fn parameters_that_the_device_does_not_have_are_refused() {
    let parameters = BTreeMap::from([("depth".to_owned(), "4".to_owned())]);
    let refused = LibraryDevice::open(library(), &parameters).err();
    assert_eq!(refused.as_deref(), Some("depth: the copier has no parameters"));
}
