//! A port: the data link layer, the wire it transmits on, and the egress queues in front of it.

use crate::kernel::ids::{FlowId, LinkId, NodeId, PortId};
use crate::link::channel::Channel;
use crate::link::egress::Egress;
use crate::link::fault::Tampering;
use crate::link::lines::Lines;
use crate::link::stages::Stages;
use crate::observe::timeline::{Gauge, SeriesId, Timeline};
use crate::packet::attribution::{Partition, Place};
use crate::packet::slab::TlpHandle;
use crate::packet::wires::Wires;
use tlplab_datalink::{Engine, TlpShape};
use tlplab_device::Random;
use tlplab_units::{Duration, FcClass, LinkMode, LinkRate, Mps, Time};

#[derive(Clone)]
pub(crate) struct Port {
    pub(super) node: NodeId,
    /// Its index among its node's ports.
    pub(super) index: usize,
    /// Its source at the egress queues of other nodes: the other partitions of its chip.
    pub(super) inside: Vec<(NodeId, usize)>,
    pub(super) peer: PortId,
    pub(super) link: LinkId,
    /// 0: it transmits towards the root complex.
    pub(super) direction: u8,
    pub(super) mode: LinkMode,
    /// A framed TLP takes whole words of the wire: their bytes, a power of two, less one.
    pub(super) word_mask: u32,
    /// Bytes of the checksum that a framed TLP's header has of its own.
    pub(super) header_check: u32,
    /// The byte of a TLP that an error hits.
    pub(super) hits: Random,
    /// From the arrival of a TLP in its receive buffer to the node's decision about it.
    pub(super) latency: Duration,
    /// Its node's requester, if that has one: of a device with several functions that of function 0.
    pub(super) requester: Option<NodeId>,
    /// Retraining takes so long.
    pub(super) recovery: Duration,
    /// Delays by layer, of this port or its peer.
    pub(super) stages: Option<Box<Stages>>,
    pub(super) engine: Engine<TlpHandle>,
    pub(super) channel: Channel<TlpHandle>,
    /// Faults in what it sends.
    pub(super) tampering: Tampering,
    /// Max_Payload_Size: what it takes as a receiver, and how long the root complex makes completions.
    pub(super) max_payload: Mps,
    /// Max_Payload_Size of the functions of the device behind it, by their sources in the egress queues.
    pub(super) payloads: Vec<Option<Mps>>,
    /// TLPs that end behind it are checked against their digest, and TLPs made there get one.
    pub(super) checks_digests: bool,
    /// A TLP was found bad or missing, and has not come since: more of that is no news.
    pub(super) missing: bool,
    pub(super) egress: Egress,
    /// Of a root port whose host answers reads line by line: the answers that wait for the egress.
    pub(super) lines: Option<Box<Lines>>,
    pub(super) partition: Partition,
    /// A unit is on the wire.
    pub(super) transmitting: bool,
    /// Its last symbol goes out then.
    pub(super) transmits_until: Time,
    /// Classes whose latest UpdateFC has not reached the peer as it was sent, a bit each: it learns from the next refresh.
    pub(super) updates_lost: u8,
    /// The physical layer is up.
    pub(super) wire_up: bool,
    /// It is in recovery.
    pub(super) recovering: bool,
    /// The end of the latest recovery.
    pub(super) recovery_ends: Time,
    /// At the lower end: how many faults hold its link down, or a link above it.
    pub(super) held_down: u32,
    /// Software resets what is below it.
    pub(super) resets_below: bool,
    /// The peer is a switch that forwards after the header.
    pub(super) peer_cuts_through: bool,
    /// TLPs that come in here and leave by a faster port are stored.
    pub(super) stores_for_faster: bool,
    /// Receive buffers that are free again when the unit on the wire has left.
    pub(super) leaving: Vec<Leaving>,
    /// The link went down and is not up again: what is routed here is discarded (PCIe 5.0 §2.9.1).
    pub(super) discards: bool,
    /// It is on a parallel bus: what it sends goes by transactions there, and never over a wire.
    pub(super) on_bus: bool,
    /// The due time of the pending timer event of the data link layer.
    pub(super) timer: Time,
    /// The due time of the one after it.
    pub(super) later_timer: Time,
    pub(super) counters: WireCounters,
    /// Each time that lanes failed: the rate until then, and the counters at that time.
    pub(super) rates_before: Vec<(LinkRate, WireCounters)>,
    /// Flow of the last TLP that ended in a flit.
    pub(super) flit_flow: Option<FlowId>,
    /// Bytes of flits not yet accounted to payload or overhead; negative: payload counted ahead.
    pub(super) flit_debt: i64,
    pub(super) series: PortSeries,
    /// Legacy interrupts that messages from below have raised.
    pub(super) wires_below: Wires,
    /// Legacy interrupts that the port above has been told of.
    pub(super) wires_told: Wires,
    /// Legacy interrupts that the functions of the device behind it assert, by their sources in the egress queues.
    pub(super) wires_asserted: Vec<Wires>,
}

/// A TLP that is on the wire and still in the receive buffer it came by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub(crate) ingress: PortId,
    pub(crate) shape: TlpShape,
    /// The arrival of its last byte in that buffer.
    pub(crate) tail: Time,
}

impl Port {
    /// Lanes have failed: from now on its wire has this rate.
    pub(super) fn narrow(&mut self, rate: LinkRate) {
        self.rates_before.push((self.channel.rate(), self.counters));
        self.channel.set_rate(rate);
    }

    /// The unit on its wire has left then; now, if there is none.
    pub(super) fn wire_free_at(&self, now: Time) -> Time {
        if self.transmitting { self.transmits_until } else { now }
    }

    /// See [`DirectionResult::longer`](super::results::DirectionResult::longer).
    pub(super) fn longer(&self) -> [Duration; 4] {
        let Some((first, _)) = self.rates_before.first() else { return [Duration::ZERO; 4] };
        let bytes =
            |counters: &WireCounters| [counters.payload, counters.overhead, counters.dllp, counters.replay];
        let now = (self.channel.rate(), self.counters);
        let mut longer = [Duration::ZERO; 4];
        let mut before = [0; 4];
        for (rate, counters) in self.rates_before.iter().chain([&now]) {
            let until = bytes(counters);
            for ((longer, until), before) in longer.iter_mut().zip(until).zip(before) {
                *longer += rate.time_of(until - before) - first.time_of(until - before);
            }
            before = until;
        }
        longer
    }

    /// An UpdateFC of a class was sent, and reaches the peer, or is lost.
    pub(super) fn note_update(&mut self, class: FcClass, is_lost: bool) {
        let bit = 1 << class.index();
        self.updates_lost = self.updates_lost & !bit | if is_lost { bit } else { 0 };
    }

    /// The bytes of a framed TLP of this size on the wire: with its header's checksum, if it has one, whole words.
    #[inline]
    pub(crate) fn whole_words(&self, bytes: u32) -> u32 {
        (bytes + self.header_check + self.word_mask) & !self.word_mask
    }

    /// The time that a framed TLP of so many bytes takes there.
    #[inline]
    pub(crate) fn time_on_wire(&self, bytes: u32) -> Duration {
        self.channel.rate().time_of(u64::from(self.whole_words(bytes + 8)))
    }

    /// Framing, sequence number and header, and the checksum that the header may have: what has come when forwarding begins.
    pub(crate) fn header_on_wire(&self, header: u32) -> u32 {
        4 + header + self.header_check
    }

    /// Of a framed TLP that has arrived with a bad checksum: whether that was seen before forwarding began.
    pub(crate) fn header_is_bad(&mut self, header: u32, bytes: u32) -> bool {
        self.header_check > 0
            && self.hits.below(u64::from(self.whole_words(bytes))) < u64::from(self.header_on_wire(header))
    }

    pub(crate) fn place(id: PortId) -> Place {
        Place(id.0)
    }
}

/// Bytes that went over the wire of a port, by what they were for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// TLP payload, sent for the first time.
    pub payload: u64,
    /// TLP headers, digests, framing, sequence and LCRC; in flit mode headers, CRC, FEC and fill.
    pub overhead: u64,
    /// DLLPs; in flit mode the DLP bytes.
    pub dllp: u64,
    /// Units that were sent again, and nullified TLPs.
    pub replay: u64,
    /// TLPs sent for the first time.
    pub tlps: u64,
    /// TLPs (or flits) sent again.
    pub replayed: u64,
    /// TLPs sent with EDB and an inverted LCRC.
    pub nullified: u64,
    /// Acks.
    pub acks: u64,
    /// Naks.
    pub naks: u64,
    /// UpdateFCs.
    pub update_fcs: u64,
    /// UpdateFCs that were worked out ([`Fabric::skip_idle`](crate::Fabric::skip_idle)): no probe has seen them.
    pub worked_out: u64,
    /// InitFC1 and InitFC2.
    pub init_fcs: u64,
    /// Other DLLPs.
    pub other_dllps: u64,
    /// Units that a fault damaged, swallowed or changed.
    pub damaged: u64,
    /// TLPs dropped because the link went down.
    pub discarded: u64,
    /// TLPs that the receiver dropped for want of room (drop and replay only).
    pub no_room: u64,
}

/// Series over time that a port fills: femtoseconds of wire time by use, and levels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortSeries {
    pub(crate) payload: SeriesId,
    pub(crate) overhead: SeriesId,
    pub(crate) dllp: SeriesId,
    pub(crate) replay: SeriesId,
    pub(crate) queue: Gauge,
    pub(crate) replay_buffer: Gauge,
    pub(crate) headers: CreditSeries,
    pub(crate) data: CreditSeries,
}

/// Credits of the receiver that are taken, by class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreditSeries {
    pub(crate) taken: [Gauge; 3],
    /// The limits; `None` is without limit.
    pub(crate) of: [Option<u32>; 3],
}

impl CreditSeries {
    fn new(timeline: &mut Timeline) -> Self {
        Self { taken: std::array::from_fn(|_| timeline.add_gauge()), of: [None; 3] }
    }

    /// So many credits of a class are left.
    pub(crate) fn left(&mut self, timeline: &mut Timeline, now: Time, class: usize, left: Option<u32>) {
        if let (Some(left), Some(of)) = (left, self.of[class]) {
            timeline.set(&mut self.taken[class], now, u64::from(of.saturating_sub(left)));
        }
    }
}

impl PortSeries {
    pub(crate) fn new(timeline: &mut Timeline) -> Self {
        Self {
            payload: timeline.add_series(),
            overhead: timeline.add_series(),
            dllp: timeline.add_series(),
            replay: timeline.add_series(),
            queue: timeline.add_gauge(),
            replay_buffer: timeline.add_gauge(),
            headers: CreditSeries::new(timeline),
            data: CreditSeries::new(timeline),
        }
    }
}
