//! Programs of all kinds, on machines of all kinds, with sockets that are read in any order.

use crate::kernel::{Choices, Outcome, Seen, Step, run};
use crate::script::Script;
use proptest::collection::vec;
use proptest::prelude::*;
use tlplab_uml::Interrupt;
use tlplab_uml::pcidev::Access;
use tlplab_units::{Duration, Time};

const FS_PER_NS: u64 = 1_000_000;

fn access() -> impl Strategy<Value = Access> {
    let data = |bytes| vec(any::<u8>(), bytes);
    prop_oneof![
        (0u32..1 << 27, proptest::sample::select(&[1u32, 2, 4, 8][..]))
            .prop_map(|(offset, bytes)| Access::ConfigRead { offset, bytes }),
        (0u32..1 << 27, data(4..=4)).prop_map(|(offset, data)| Access::ConfigWrite { offset, data }),
        (any::<u64>(), 1u32..300).prop_map(|(address, bytes)| Access::MemoryRead { address, bytes }),
        (any::<u64>(), data(1..=300)).prop_map(|(address, data)| Access::MemoryWrite { address, data }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => vec(access(), 0..6).prop_map(Step::Bell),
        3 => (0u64..3000).prop_map(Step::Sleep),
        1 => Just(Step::Look),
    ]
}

/// Latencies and times between interrupts: none, within a nanosecond, some nanoseconds, microseconds.
fn while_() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..FS_PER_NS, (0u64..100).prop_map(|ns| ns * FS_PER_NS), 0..2000 * FS_PER_NS]
}

fn interrupt() -> impl Strategy<Value = Interrupt> {
    prop_oneof![
        3 => any::<u32>().prop_map(|data| Interrupt::Message { data }),
        1 => Just(Interrupt::Wire),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    program: Vec<Step>,
    latencies: Vec<u64>,
    interrupts: Vec<(u64, Interrupt)>,
    buffers: u16,
}

impl Case {
    fn script(&self) -> Script {
        let mut script = Script::new(self.latencies.iter().map(|fs| Duration::from_fs(*fs)));
        // So that the last does not go on for ever.
        script.latencies.extend([Duration::ZERO, Duration::ZERO]);
        // At the very start a wait of no time is over before anything comes.
        let mut at = 1;
        for (later, interrupt) in &self.interrupts {
            at += later;
            script = script.interrupt(Time::from_fs(at), *interrupt);
        }
        script
    }

    fn run(&self, order: &Choices<'_>) -> Outcome {
        run(&self.program, self.script(), self.buffers, order)
    }

    /// What a processor sees that stands still during its accesses, takes interrupts when it sleeps, and has a clock of whole nanoseconds:
    /// arithmetic, without messages and buffers.
    fn expected(&self) -> Vec<(u64, Seen)> {
        let mut script = self.script();
        let mut seen = Vec::new();
        let (mut now, mut number) = (0u64, 0);
        let up = |fs: u64| fs.div_ceil(FS_PER_NS);
        for step in &self.program {
            match step {
                Step::Bell(accesses) => {
                    let first = number;
                    for _ in accesses {
                        now += script.latencies.pop_front().unwrap_or_default().as_fs();
                        number += 1;
                    }
                    now = up(now) * FS_PER_NS;
                    for (at, access) in (first..).zip(accesses) {
                        let bytes = match access {
                            Access::ConfigRead { bytes, .. } | Access::MemoryRead { bytes, .. } => *bytes,
                            _ => 0,
                        };
                        seen.push((up(now), Seen::Over(at, Script::data(at, bytes))));
                    }
                    seen.push((up(now), Seen::Answered));
                }
                Step::Sleep(ns) => {
                    let until = now + ns * FS_PER_NS;
                    while let Some((at, _)) = script.coming.front() {
                        if *at > Time::from_fs(until.max(now)) {
                            break;
                        }
                        now = now.max(up(at.as_fs()) * FS_PER_NS);
                        let (_, interrupt) = script.coming.pop_front().expect("the first");
                        seen.push((up(now), Seen::Interrupt(interrupt)));
                    }
                    now = now.max(until);
                    seen.push((up(now), Seen::Awake));
                }
                Step::Look => seen.push((up(now), Seen::Time)),
            }
        }
        seen
    }
}

fn case() -> impl Strategy<Value = Case> {
    let buffers = proptest::sample::select(&[1u16, 2, 4, 16][..]);
    (vec(step(), 0..25), vec(while_(), 0..60), vec((while_(), interrupt()), 0..30), buffers).prop_map(
        |(program, latencies, interrupts, buffers)| Case { program, latencies, interrupts, buffers },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Each access is answered once with its own data and in order; the kernel's clock is the machine's, rounded up, whenever it
    /// runs; each interrupt comes once, in order, at its time or when the processor next waits.
    #[test]
    fn the_kernel_sees_calculated_answers_clock_and_interrupts(case in case(), choices in vec(any::<u8>(), 0..400), calendar_first: bool) {
        let outcome = case.run(&Choices { choices: &choices, calendar_first });
        prop_assert_eq!(outcome.seen, case.expected());
        let asked: Vec<_> = case.program.iter().filter_map(|step| match step {
            Step::Bell(accesses) => Some(accesses.clone()),
            _ => None,
        }).flatten().collect();
        let done: Vec<_> = outcome.done.into_iter().map(|(access, _)| access).collect();
        prop_assert_eq!(done, asked);
    }

    /// In which order the sockets are read says nothing about what is said.
    #[test]
    fn every_order_of_reading_gives_the_same(case in case(), orders in vec((vec(any::<u8>(), 0..400), any::<bool>()), 2..6)) {
        let first = case.run(&Choices { choices: &[], calendar_first: false });
        for (choices, calendar_first) in orders {
            let other = case.run(&Choices { choices: &choices, calendar_first });
            prop_assert_eq!(&other.said, &first.said);
            prop_assert_eq!(&other.seen, &first.seen);
            prop_assert_eq!(&other.done, &first.done);
        }
    }
}

/// What the properties are about happens in the cases.
#[test]
fn orders_of_reading_differ() {
    let bell = |bytes| Step::Bell(vec![Access::MemoryRead { address: 0, bytes }]);
    let case = Case {
        program: vec![Step::Sleep(10), bell(4), Step::Sleep(10), bell(8)],
        latencies: vec![7 * FS_PER_NS, 1],
        interrupts: vec![(3, Interrupt::Wire), (0, Interrupt::Wire)],
        buffers: 1,
    };
    let expected: [(u64, Seen); 8] = [
        (1, Seen::Interrupt(Interrupt::Wire)),
        (1, Seen::Interrupt(Interrupt::Wire)),
        (10, Seen::Awake),
        (17, Seen::Over(0, Script::data(0, 4))),
        (17, Seen::Answered),
        (27, Seen::Awake),
        (28, Seen::Over(1, Script::data(1, 8))),
        (28, Seen::Answered),
    ];
    for calendar_first in [false, true] {
        for choice in 0..6 {
            let outcome = case.run(&Choices { choices: &[choice; 300], calendar_first });
            assert_eq!(outcome.seen, expected);
        }
    }
    assert_eq!(case.expected(), expected);
}
