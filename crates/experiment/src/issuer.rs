//! A device that issues the requests of its loads: of one as it is, of several side by side, each in streams of its own.

use std::collections::VecDeque;
use tlplab_device::{
    Action, BarSpec, Bytes, Context, Device, DeviceInfo, Event, Identity, OpId, Payload, VENDOR_ID,
};
use tlplab_transaction::RequestPolicy;

/// One load of an [`Issuer`].
pub(crate) struct Part {
    pub(crate) device: Box<dyn Device>,
    /// The number of streams that it uses.
    pub(crate) streams: u16,
    /// It ends by itself.
    pub(crate) finishes: bool,
    /// Devices it aims at.
    pub(crate) peers: Vec<String>,
}

/// A device with loads.
pub(crate) struct Issuer {
    bar: u64,
    parts: Vec<Side>,
    peers: Vec<DeviceInfo>,
    /// The part that owns each operation, from `first` on, and its number there; `None` once it is over.
    owners: VecDeque<Option<(u16, OpId)>>,
    first: u64,
    actions: Vec<Action>,
    unfinished: usize,
}

struct Side {
    part: Part,
    first_stream: u16,
    next_op: u64,
}

impl Issuer {
    /// A device with a BAR of `bar` bytes and these loads.
    pub(crate) fn new(bar: u64, parts: Vec<Part>) -> Self {
        let mut first_stream = 0;
        let unfinished = parts.iter().filter(|p| p.finishes).count();
        let parts = parts
            .into_iter()
            .map(|part| {
                let side = Side { first_stream, next_op: 0, part };
                first_stream += side.part.streams;
                side
            })
            .collect();
        Self {
            bar,
            parts,
            peers: Vec::new(),
            owners: VecDeque::new(),
            first: 0,
            actions: Vec::new(),
            unfinished,
        }
    }

    /// Lets a part handle an event, and does in the device's name what the part does.
    fn tell(&mut self, cx: &mut Context<'_>, number: usize, event: Event) {
        let side = &mut self.parts[number];
        let mut inner = Context::new(cx.now(), &self.peers, &mut side.next_op, &mut self.actions)
            .with_length_only(cx.length_only());
        side.part.device.handle(&mut inner, event);
        let (first_stream, parts) = (side.first_stream, self.parts.len() as u64);
        for action in self.actions.drain(..) {
            let (op, inner_op) = match action {
                Action::DmaRead { op, stream, address, bytes, carry: false } => {
                    (cx.dma_read(first_stream + stream, address, bytes), op)
                }
                Action::DmaRead { op, stream, address, bytes, carry: true } => {
                    (cx.dma_read_control(first_stream + stream, address, bytes), op)
                }
                Action::DmaWrite { op, stream, address, data } => {
                    (cx.dma_write(first_stream + stream, address, data), op)
                }
                Action::Timer { at, id } => {
                    cx.timer(at, id * parts + number as u64);
                    continue;
                }
                Action::Finished => {
                    self.unfinished = self.unfinished.saturating_sub(1);
                    if self.unfinished == 0 {
                        cx.finished();
                    }
                    continue;
                }
                Action::Msix { stream, vector } => {
                    cx.msix(first_stream + stream, vector);
                    continue;
                }
                Action::Intx { stream, asserted } => {
                    cx.set_intx(first_stream + stream, asserted);
                    continue;
                }
                Action::SetConfig { offset, data } => {
                    cx.set_config(offset, &data);
                    continue;
                }
                Action::Fault(message) => {
                    cx.fault(message);
                    continue;
                }
                // The BAR is the issuer's own: parts are not asked.
                Action::Reply { .. } | Action::ReplyError { .. } => continue,
            };
            if self.owners.is_empty() {
                self.first = op.0;
            }
            debug_assert_eq!(op.0, self.first + self.owners.len() as u64, "operations are counted");
            self.owners.push_back(Some((number as u16, inner_op)));
        }
    }

    /// The owner of an operation, and its number there; it is over.
    fn take(&mut self, op: OpId) -> Option<(usize, OpId)> {
        let index = usize::try_from(op.0.checked_sub(self.first)?).ok()?;
        let (part, inner) = self.owners.get_mut(index)?.take()?;
        while let Some(None) = self.owners.front() {
            self.owners.pop_front();
            self.first += 1;
        }
        Some((usize::from(part), inner))
    }

    fn mmio(&self, cx: &mut Context<'_>, event: Event) {
        if let Event::MmioRead { bytes, reply, .. } = event {
            let data = match cx.length_only() {
                true => Payload::Length(bytes.into()),
                false => Payload::Bytes(Bytes::from(vec![0; bytes as usize])),
            };
            cx.reply(reply, data);
        }
    }
}

impl Device for Issuer {
    /// One BAR that ignores writes and reads as zero.
    fn identity(&self) -> Identity {
        Identity {
            revision: 1,
            bars: vec![BarSpec::memory(0, self.bar)],
            ..Identity::new(VENDOR_ID, 0x0010, 0x12_00_00) // processing accelerator
        }
    }

    fn request_policy(&self) -> RequestPolicy {
        match self.parts.as_slice() {
            [side] => side.part.device.request_policy(),
            _ => RequestPolicy::default(),
        }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioRead { .. } | Event::MmioWrite { .. } => return self.mmio(cx, event),
            _ => {}
        }
        if let [side] = self.parts.as_mut_slice() {
            return side.part.device.handle(cx, event);
        }
        match event {
            Event::DmaReadDone { op, result } => {
                if let Some((part, op)) = self.take(op) {
                    self.tell(cx, part, Event::DmaReadDone { op, result });
                }
            }
            Event::DmaWriteAccepted { op } => {
                if let Some((part, op)) = self.take(op) {
                    self.tell(cx, part, Event::DmaWriteAccepted { op });
                }
            }
            Event::Timer { id } => {
                let parts = self.parts.len() as u64;
                self.tell(cx, (id % parts) as usize, Event::Timer { id: id / parts });
            }
            event => {
                let peers = self.parts.iter().flat_map(|side| &side.part.peers);
                self.peers = peers.filter_map(|name| cx.peer(name).cloned()).collect();
                if matches!(event, Event::Reset) {
                    self.owners.clear();
                }
                for part in 0..self.parts.len() {
                    self.tell(cx, part, event.clone());
                }
            }
        }
    }

    fn snapshot(&self) -> Option<Box<dyn Device>> {
        let copy = |side: &Side| {
            let part =
                Part { device: side.part.device.snapshot()?, peers: side.part.peers.clone(), ..side.part };
            Some(Side { part, ..*side })
        };
        Some(Box::new(Self {
            bar: self.bar,
            parts: self.parts.iter().map(copy).collect::<Option<_>>()?,
            peers: self.peers.clone(),
            owners: self.owners.clone(),
            first: self.first,
            actions: self.actions.clone(),
            unfinished: self.unfinished,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_device::{Load, LoadConfig, LoadOp, Target};
    use tlplab_units::Time;

    fn part(op: LoadOp, outstanding: u32, streams: u16) -> Part {
        let target = Target::Address(0x10_0000 * u64::from(outstanding));
        let config = LoadConfig { op, outstanding, target, count: Some(3), ..LoadConfig::default() };
        let device = Box::new(Load::new(config, 1, "load").unwrap());
        Part { device, streams, finishes: true, peers: Vec::new() }
    }

    fn tell(issuer: &mut Issuer, next_op: &mut u64, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        issuer
            .handle(&mut Context::new(Time::ZERO, &[], next_op, &mut actions).with_length_only(true), event);
        actions
    }

    #[test]
    fn loads_side_by_side_keep_their_operations_apart() {
        let mut issuer = Issuer::new(4096, vec![part(LoadOp::Both, 1, 2), part(LoadOp::Write, 2, 1)]);
        let mut next_op = 0;
        let mut pending = VecDeque::from(tell(&mut issuer, &mut next_op, Event::Start));
        let mut seen = Vec::new();
        let mut finished = 0;
        while let Some(action) = pending.pop_front() {
            let event = match action {
                Action::DmaRead { op, stream, address, .. } => {
                    seen.push((stream, address >> 20));
                    Event::DmaReadDone { op, result: Ok(Payload::Length(256)) }
                }
                Action::DmaWrite { op, stream, address, .. } => {
                    seen.push((stream, address >> 20));
                    Event::DmaWriteAccepted { op }
                }
                Action::Finished => {
                    finished += 1;
                    continue;
                }
                other => panic!("{other:?}"),
            };
            pending.extend(tell(&mut issuer, &mut next_op, event));
        }
        seen.sort_unstable();
        assert_eq!(seen, [(0, 1), (0, 1), (0, 1), (1, 1), (1, 1), (1, 1), (2, 2), (2, 2), (2, 2)]);
        assert_eq!((finished, next_op, issuer.owners.len()), (1, 9, 0));
    }

    #[test]
    fn events_of_foreign_operations_are_ignored() {
        let mut issuer = Issuer::new(4096, vec![part(LoadOp::Read, 1, 1), part(LoadOp::Read, 2, 1)]);
        let mut next_op = 0;
        tell(&mut issuer, &mut next_op, Event::Start);
        let event = Event::DmaWriteAccepted { op: OpId(99) };
        assert!(tell(&mut issuer, &mut next_op, event).is_empty());
    }
}
