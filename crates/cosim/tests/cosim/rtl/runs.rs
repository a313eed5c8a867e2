//! What a device at the level of TLPs does in a fabric.

use super::script::{Script, Step, copy};
use super::{Bench, run};
use tlplab_device::Random;
use tlplab_fabric::config::{Buffers, FaultKind};
use tlplab_fabric::errors::ErrorKind;
use tlplab_fabric::results::Level;
use tlplab_fabric::{Ending, Fabric};
use tlplab_units::{Bdf, Duration, Time, Width};

/// Payload bytes that arrived, by operation.
fn bytes_of(fabric: &Fabric, operation: &str) -> u64 {
    let flows = fabric.flow_ids().zip(&fabric.topology().flows);
    flows.filter(|(_, info)| info.operation == operation).map(|(id, _)| fabric.flow_results(id).bytes).sum()
}

fn failures(fabric: &Fabric, operation: &str, ending: Ending) -> u64 {
    let flows = fabric.flow_ids().zip(&fabric.topology().flows);
    let of = flows.filter(|(_, info)| info.operation == operation);
    of.map(|(id, _)| fabric.flow_results(id).count_of(ending)).sum()
}

/// Nothing is left once the last acknowledgements have come.
fn is_clean(fabric: &mut Fabric) {
    fabric.run_until(fabric.now() + Duration::from_us(100));
    assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
    assert_eq!(fabric.protocol_errors().count(), 0);
}

#[test]
fn rtl_copier_moves_as_many_bytes_as_the_built_in_copier() {
    for bytes in [1, 4, 63, 4096, 10_001] {
        let mut rtl = Bench::copies(bytes, 5).of_rtl(&[]);
        run(&mut rtl).expect("it copies"); // the driver compares every byte
        let mut built_in = Bench::copies(bytes, 5).built_in();
        run(&mut built_in).expect("it copies");
        assert_eq!(bytes_of(&rtl, "read"), u64::from(bytes) * 5);
        assert_eq!(bytes_of(&rtl, "write"), u64::from(bytes) * 5);
        assert_eq!(bytes_of(&rtl, "read") + bytes_of(&rtl, "write"), bytes_of(&built_in, "copy"));
        assert_eq!((rtl.interrupts(), built_in.interrupts()), (5, 5));
        is_clean(&mut rtl);
    }
}

/// Reads and writes of every length and alignment: TLPs must enable the bytes that the built-in device gets.
#[test]
fn rtl_registers_behave_as_in_the_built_in_copier() {
    let mut random = Random::keyed(3, "card", "registers");
    let mut steps = Vec::new();
    for _ in 0..300 {
        let offset = random.below(16);
        let bytes = 1 + random.below(16 - offset);
        if random.below(2) == 0 {
            steps.push(Step::Write(offset, (0..bytes).map(|_| random.below(256) as u8).collect()));
        } else {
            steps.push(Step::Read(offset, 1 + random.below(24)));
        }
    }
    let answers = [false, true].map(|rtl| {
        let (script, answers) = Script::new(steps.clone());
        let mut fabric = if rtl { Bench::of(script).of_rtl(&[]) } else { Bench::of(script).built_in() };
        run(&mut fabric).expect("it answers");
        is_clean(&mut fabric);
        std::mem::take(&mut *answers.lock().expect("no panic"))
    });
    assert!(answers[0].len() > 100 && answers[0].iter().all(Result::is_ok));
    assert_eq!(answers[0], answers[1]);
}

/// Time that is skipped, and how far a run goes at once, change nothing on any wire.
#[test]
fn a_run_does_not_depend_on_how_it_is_stepped() {
    let whole = |parameters: &[(&str, &str)]| {
        let mut fabric = Bench::copies(5000, 4).of_rtl(parameters);
        run(&mut fabric).expect("it copies");
        fabric.trace_hash()
    };
    let hash = whole(&[]);
    assert_eq!(whole(&[]), hash);
    assert_eq!(whole(&[("idle", "0")]), hash);
    assert_ne!(whole(&[("pcie_clock", "125000000")]), hash);

    let mut fabric = Bench::copies(5000, 4).of_rtl(&[]);
    while !fabric.is_done() {
        fabric.run_until(fabric.now() + Duration::from_fs(1_234_567));
    }
    assert_eq!(fabric.trace_hash(), hash);
}

/// Credits return when the model takes a TLP, not before: its buffer never holds more than was advertised, and it is never starved.
#[test]
fn credits_return_when_a_tlp_is_taken() {
    for headers in [1, 2, 5] {
        let steps = (0..60u64).flat_map(|i| [Step::Write(8 * (i % 2), vec![i as u8; 8]), Step::Read(0, 4)]);
        let (script, answers) = Script::new(steps);
        let mut bench = Bench::of(script);
        bench.link().lower.buffers = Some(Buffers {
            posted_headers: headers,
            posted_data: 64,
            non_posted_headers: headers,
            non_posted_data: 8,
            completion_headers: 0,
            completion_data: 0,
        });
        let most = headers.to_string();
        let mut fabric = bench.of_rtl(&[("intx", "1"), ("slow", "400"), ("most", &most)]);
        run(&mut fabric).expect("never more than there is room for");
        assert_eq!(answers.lock().expect("no panic").len(), 60);
        is_clean(&mut fabric);
    }
}

/// A slow link pushes back: the model is told that there is no room, and what waits stays bounded.
#[test]
fn a_slow_link_pushes_back() {
    let mut bench = Bench::copies(60_000, 2);
    bench.link().width = Width::new(1).expect("a width");
    let mut fabric = bench.of_rtl(&[]);
    run(&mut fabric).expect("it copies");
    let levels = fabric.level_results();
    let queues = levels.iter().filter(|level| level.of == Level::Queue && level.place.starts_with("card"));
    let most = queues.flat_map(|level| &level.max).max().copied();
    assert!(most.is_some_and(|most| (3..=4).contains(&most)), "{most:?}");
}

#[test]
fn it_interrupts_by_a_wire() {
    let mut fabric = Bench::copies(4096, 3).of_rtl(&[("intx", "1")]);
    run(&mut fabric).expect("it copies");
    assert_eq!(fabric.interrupts(), 3);
}

/// The last of the vectors that software grants, which are as many as the card asks for.
#[test]
fn it_interrupts_by_msi() {
    for vectors in ["1", "4", "32"] {
        let steps = copy(0x10_0000, 0x20_0000, 700).into_iter().chain([Step::Interrupt, Step::Read(0x14, 4)]);
        let (script, answers) = Script::new(steps);
        let mut fabric = Bench::of(script).of_rtl(&[("msi", vectors)]);
        run(&mut fabric).expect("it copies");
        assert_eq!(*answers.lock().expect("no panic"), [Ok([1, 0, 0, 0].into())]);
        assert_eq!(fabric.interrupts(), 1);
        is_clean(&mut fabric);
    }
}

/// What its buffer of completions has no room for is lost: its reads end when they are overdue, and the run says why.
#[test]
fn completions_that_it_has_no_room_for_are_lost_and_counted() {
    let mut bench = Bench::of(Script::new(copy(0x10_0000, 0x20_0000, 4096)).0);
    bench.config.devices[0].completion_timeout = Duration::from_us(50);
    let mut fabric = bench.of_rtl(&[("room", "2"), ("slow", "100")]);
    fabric.run_until(Time::ZERO + Duration::from_us(200));
    let overflow = fabric.errors().find(|error| error.kind == ErrorKind::ReceiverOverflow).expect("an error");
    assert!(overflow.count > 5, "{overflow:?}");
    assert!(failures(&fabric, "read", Ending::TimedOut) > 2);
    assert_eq!(failures(&fabric, "write", Ending::Done), 0);
    is_clean(&mut fabric);
}

#[test]
fn an_unclaimed_read_is_answered_ur_and_counted() {
    let nowhere = 0x7_0000_0000_0000;
    let steps = copy(nowhere, 0x20_0000, 64).into_iter().chain([Step::Interrupt, Step::Read(0x18, 4)]);
    let (script, answers) = Script::new(steps);
    let mut fabric = Bench::of(script).of_rtl(&[]);
    run(&mut fabric).expect("the run goes on");
    let failed = [1, 0, 0, 0].into();
    assert_eq!(*answers.lock().expect("no panic"), [Ok(failed)]);
    assert_eq!(failures(&fabric, "read", Ending::Unsupported), 1);
    is_clean(&mut fabric);
}

/// The link goes down in the middle of a copy: all that was under way ends, the card is reset, enumerated again, and works again.
#[test]
fn a_link_that_goes_down_resets_it() {
    let again = copy(0x10_0000, 0x20_0000, 256).into_iter().chain([Step::Interrupt, Step::Read(0x14, 4)]);
    let steps = copy(0x10_0000, 0x20_0000, 100_000)
        .into_iter()
        .chain([Step::Wait(Duration::from_ms(250)), Step::Read(0, 8), Step::Read(0x14, 4)])
        .chain(again);
    let (script, answers) = Script::new(steps);
    let mut bench = Bench::of(script);
    let at = |us| Time::ZERO + Duration::from_us(us);
    bench.link().faults.push(tlplab_fabric::config::Fault {
        direction: tlplab_fabric::config::Direction::Up,
        kind: FaultKind::Down { at: at(30), until: Some(at(80)) },
    });
    let mut fabric = bench.of_rtl(&[]);
    fabric.run_until(at(40));
    assert!(failures(&fabric, "read", Ending::Lost) > 0, "what was under way is lost");
    assert_eq!(fabric.id_of("card"), Some(Bdf(0)));
    fabric.run_events(10_000_000, Time::ZERO + Duration::from_ms(400));
    assert_eq!(fabric.fault(), None);
    let zeros: Vec<_> = [vec![0; 8], vec![0; 4], vec![1, 0, 0, 0]].map(|bytes| Ok(bytes.into())).into();
    assert_eq!(*answers.lock().expect("no panic"), zeros);
    assert_ne!(fabric.id_of("card"), Some(Bdf(0)));
    is_clean(&mut fabric);
}

/// Two clocks that have nothing to do with each other: who runs ahead of whom must not show.
#[test]
fn two_cores_share_a_fabric() {
    let once = || {
        let mut fabric = Bench::copies(20_000, 2).beside_another(&[("pcie_clock", "133333333")]);
        run(&mut fabric).expect("both copy");
        assert_eq!(bytes_of(&fabric, "write"), 2 * 2 * 20_000);
        is_clean(&mut fabric);
        fabric.trace_hash()
    };
    assert_eq!(once(), once());
}

/// A core needs its data even where bulk data are lengths.
#[test]
fn a_run_of_lengths_has_data_for_a_core() {
    let (script, answers) = Script::new(
        [Step::Write(0, vec![0x5A; 8])].into_iter().chain(copy(0x10_0000, 0x20_0000, 700)).chain([
            Step::Interrupt,
            Step::Read(0, 8),
            Step::Read(0x14, 4),
        ]),
    );
    let mut bench = Bench::of(script);
    bench.config.fidelity = tlplab_fabric::config::Fidelity::LengthOnly;
    let mut fabric = bench.of_rtl(&[]);
    run(&mut fabric).expect("it copies");
    let source = 0x10_0000_u64.to_le_bytes().to_vec();
    assert_eq!(*answers.lock().expect("no panic"), [Ok(source.into()), Ok([1, 0, 0, 0].into())]);
    assert_eq!((bytes_of(&fabric, "read"), bytes_of(&fabric, "write")), (700, 700));
}
