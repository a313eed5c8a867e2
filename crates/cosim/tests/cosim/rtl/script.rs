//! A host program that does one thing after the other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tlplab_device::{DmaError, HostContext, HostEvent, HostProgram, Payload};
use tlplab_units::Duration;

/// What it does with BAR 0 of the card.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes bytes at an offset.
    Write(u64, Vec<u8>),
    /// Reads so many bytes at an offset.
    Read(u64, u64),
    /// Until the card interrupts.
    Interrupt,
    /// For so long.
    Wait(Duration),
}

/// What its reads gave, in their order.
pub(crate) type Answers = Arc<Mutex<Vec<Result<Payload, DmaError>>>>;

pub(crate) struct Script {
    steps: VecDeque<Step>,
    answers: Answers,
    interrupts: u32,
    waits_for_interrupt: bool,
}

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> (Box<Self>, Answers) {
        let answers = Answers::default();
        let steps = steps.into_iter().collect();
        let script = Self { steps, answers: answers.clone(), interrupts: 0, waits_for_interrupt: false };
        (Box::new(script), answers)
    }

    fn go_on(&mut self, cx: &mut HostContext<'_>) {
        let (_, card) = cx.device("card").expect("a card");
        let base = card.bars[0].map_or(0, |(base, _)| base);
        while let Some(step) = self.steps.pop_front() {
            match step {
                Step::Write(offset, data) => {
                    cx.mmio_write(0, base + offset, data.into());
                    return;
                }
                Step::Read(offset, bytes) => {
                    cx.mmio_read_register(0, base + offset, bytes);
                    return;
                }
                Step::Interrupt if self.interrupts == 0 => {
                    self.waits_for_interrupt = true;
                    return;
                }
                Step::Interrupt => self.interrupts -= 1,
                Step::Wait(time) => return cx.timer(cx.now() + time, 0),
            }
        }
        cx.finished();
    }
}

impl HostProgram for Script {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::MmioReadDone { result, .. } => self.answers.lock().expect("no panic").push(result),
            HostEvent::Interrupt { .. } => {
                self.interrupts += 1;
                if !std::mem::take(&mut self.waits_for_interrupt) {
                    return;
                }
                self.interrupts -= 1;
            }
            HostEvent::PortInterrupt { .. } | HostEvent::Message { .. } | HostEvent::Wire { .. } => return,
            HostEvent::Start | HostEvent::MmioWriteAccepted { .. } | HostEvent::Timer { .. } => {}
        }
        self.go_on(cx);
    }
}

/// Starts a copy.
pub(crate) fn copy(from: u64, to: u64, bytes: u32) -> [Step; 2] {
    let addresses = [from.to_le_bytes(), to.to_le_bytes()].concat();
    [Step::Write(0, addresses), Step::Write(0x10, bytes.to_le_bytes().into())]
}
