//! The results of ports.

use super::Links;
use super::context::Context;
use super::port::WireCounters;
use crate::kernel::ids::PortId;
use crate::observe::level::{Level, LevelResult};
use crate::observe::timeline::{Gauge, SeriesId};
use crate::packet::attribution::Cause;
use tlplab_datalink::{Counters, CreditsLeft};
use tlplab_units::{Duration, FcClass, Time, Vc};

/// The results of one direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct DirectionResult {
    /// Bytes by use.
    pub wire: WireCounters,
    /// The counters of the data link layer at its transmitter.
    pub transmitter: Counters,
    /// The counters of the data link layer at its receiver.
    pub receiver: Counters,
    /// Time that payload, TLP overhead, DLLPs and what was sent again took longer than at the width that the link was built with, since lanes have failed.
    pub longer: [Duration; 4],
    /// Time that ordered sets had the wire.
    pub ordered_sets: Duration,
    /// Time that the heads of the posted, non-posted and completion queues were blocked for want of credits.
    pub credit_stalls: [Duration; 3],
    /// Time that non-posted requests waited for tags.
    pub tag_stall: Duration,
    /// Time that the posted, non-posted or completion queue waited for the replay buffer.
    pub replay_buffer_stalls: [Duration; 3],
}

impl Links {
    /// The direction of a link whose transmitter is `port`.
    pub(crate) fn direction_result(&mut self, port: PortId, now: Time) -> DirectionResult {
        let receiver = *self.ports[self.peer(port).index()].engine.counters();
        let port = &mut self.ports[port.index()];
        port.partition.advance(now);
        let by_class = |cause| FcClass::ALL.map(|class| port.partition.total(class.index(), cause));
        DirectionResult {
            wire: port.counters,
            transmitter: *port.engine.counters(),
            receiver,
            longer: port.longer(),
            ordered_sets: port.channel.ordered_set_time(now),
            credit_stalls: by_class(Cause::CreditWait),
            tag_stall: by_class(Cause::TagWait)[FcClass::NonPosted.index()],
            replay_buffer_stalls: by_class(Cause::ReplayBufferWait),
        }
    }

    /// Series of the wire time for payload, TLP overhead, DLLPs, and what was sent again.
    pub(crate) fn series(&self, port: PortId) -> [SeriesId; 4] {
        let series = &self.ports[port.index()].series;
        [series.payload, series.overhead, series.dllp, series.replay]
    }

    /// The counters of each wire.
    pub(crate) fn counters(&self) -> impl Iterator<Item = &WireCounters> {
        self.ports.iter().map(|port| &port.counters)
    }

    /// Credits left for sending VC0 TLPs of a class.
    pub(crate) fn credits(&self, port: PortId, class: FcClass) -> CreditsLeft {
        self.ports[port.index()].engine.credits(Vc::ZERO, class)
    }

    /// TLPs (flit mode: flits) that `port` has sent and nobody has acknowledged.
    pub(crate) fn replay_buffer(&self, port: PortId) -> u32 {
        self.ports[port.index()].engine.replay_occupancy().tlps
    }
}

impl Context {
    /// Credits, queues and replay buffers of all ports over time.
    pub(crate) fn add_levels(&mut self, levels: &mut Vec<LevelResult>) {
        let now = self.kernel.now();
        let Self { links, observe, topology, .. } = self;
        let timeline = &mut observe.timeline;
        for (i, port) in links.ports.iter_mut().enumerate() {
            let (place, link) =
                (topology.direction_name(PortId(i as u16)), Some((port.link, port.direction)));
            let series = &mut port.series;
            let mut add = |level, capacity: Option<u32>, gauge: &mut Gauge| {
                let capacity = capacity.map(u64::from);
                levels.push(timeline.level(level, place.clone(), link, capacity, gauge, now));
            };
            for class in FcClass::ALL.into_iter().filter(|_| !port.on_bus) {
                let index = class.index();
                if let of @ Some(_) = series.headers.of[index] {
                    add(Level::Headers(class), of, &mut series.headers.taken[index]);
                }
                if let of @ Some(_) = series.data.of[index] {
                    add(Level::Data(class), of, &mut series.data.taken[index]);
                }
            }
            add(Level::Queue, None, &mut series.queue);
            // A bus has neither credits nor acknowledgements.
            if !port.on_bus {
                add(Level::ReplayBuffer, None, &mut series.replay_buffer);
            }
        }
    }
}
