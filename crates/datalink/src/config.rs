//! The configuration of a port: rate, buffers, policies.

use crate::credit;
use crate::event::CreditKind;
use crate::limits;
use alloc::string::String;
use tlplab_units::{Duration, FcClass, Generation, LinkMode, LinkRate, Mps, Vc, Width};
use tlplab_wire::dllp::{self, Scale};

/// Bytes of the largest TLP besides its payload: header, prefix or digest, and framing.
const LARGEST_OVERHEAD: u32 = 36;

/// Everything a port must know before the link comes up. All fields are public; [`check`](Self::check) finds faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Data rate.
    pub generation: Generation,
    /// Width.
    pub width: Width,
    /// Framed TLPs or flits.
    pub mode: LinkMode,
    /// The fate of TLPs for which the receiver has no room.
    pub flow_control: FlowControl,
    /// Largest payload on this link: it sets the Ack latency, and the credits below which a peer counts as blocked.
    pub mps: Mps,
    /// The buffers that this port advertises.
    pub receive: ReceiveBuffers,
    /// Offer scaled flow control in a data link feature exchange (required of ports that support 16 GT/s).
    pub scaled_flow_control: bool,
    /// The policy of Acks.
    pub ack: AckPolicy,
    /// The policy of UpdateFCs, which return credits.
    pub fc: UpdateFcPolicy,
    /// The size of the replay buffer.
    pub replay: ReplayBuffer,
    /// REPLAY_TIMER; `None` is the specification's limit, or the time until an Ack is back if [`round_trip`](Self::round_trip) is longer.
    pub replay_timer: Option<Duration>,
    /// The time that an Ack needs besides those that the specification's limits count.
    pub round_trip: RoundTrip,
    /// This port could run at 16 GT/s or more: at every non-flit rate its REPLAY_TIMER is the simplified one.
    pub supports_16gt: bool,
    /// The interval at which InitFC and feature DLLPs are repeated until the peer answers; the specification wants at most 34 µs.
    pub init_repeat: Duration,
}

impl Config {
    /// A port with generous buffers and the specification's limits; flit mode where the generation requires it.
    pub fn new(generation: Generation, width: Width, mps: Mps) -> Self {
        let supports_16gt = generation >= Generation::Gen4;
        Self {
            generation,
            width,
            mode: if generation.requires_flit_mode() { LinkMode::Flit } else { LinkMode::NonFlit },
            flow_control: FlowControl::Credits,
            mps,
            receive: ReceiveBuffers::generous(generation),
            scaled_flow_control: supports_16gt,
            ack: AckPolicy::default(),
            fc: UpdateFcPolicy::default(),
            replay: ReplayBuffer::default(),
            replay_timer: None,
            round_trip: RoundTrip::default(),
            supports_16gt,
            init_repeat: Duration::from_us(1),
        }
    }

    /// The link's rate.
    pub fn rate(&self) -> LinkRate {
        LinkRate::new(self.generation, self.width)
    }

    /// The longest time that an acknowledgement may wait.
    pub fn ack_latency(&self) -> Duration {
        self.ack_latency_by(self.ack.latency)
    }

    /// The same for an end of this link with another policy.
    fn ack_latency_by(&self, policy: AckLatency) -> Duration {
        match (policy, self.mode) {
            (AckLatency::AtOnce, _) => Duration::ZERO,
            (AckLatency::Fixed(time), _) => time,
            (AckLatency::Specification, _) if self.flow_control.drops() => {
                Duration::from_fs(self.replay_timeout().as_fs() / 3)
            }
            (AckLatency::Specification, _) => self.latency_limit(),
        }
    }

    /// The longest time that a freed credit may wait for its UpdateFC; `None`: until the batch is full.
    pub fn update_fc_latency(&self) -> Option<Duration> {
        match self.fc.latency {
            UpdateFcLatency::Unlimited => None,
            UpdateFcLatency::Specification => Some(self.latency_limit()),
            UpdateFcLatency::Fixed(time) => Some(time),
        }
    }

    /// The specification's limit for the answer to a TLP.
    fn latency_limit(&self) -> Duration {
        match self.mode {
            LinkMode::NonFlit => {
                let symbols = limits::ack_latency_symbols(self.generation, self.width, self.mps);
                self.rate().symbol_times(u64::from(symbols))
            }
            LinkMode::Flit => self.flit_times(limits::FLIT_ACK_FLITS),
        }
    }

    /// REPLAY_TIMER's limit.
    pub fn replay_timeout(&self) -> Duration {
        if let Some(time) = self.replay_timer {
            return time;
        }
        let limit = self.replay_limit() + self.round_trip.stages;
        if self.flow_control.drops() { limit } else { limit.max(self.acknowledged_after()) }
    }

    /// The longest time from one Ack to the next: the rest of a TLP that was on the wire when the first one came, the wire both ways, stages, the peer's
    /// Ack latency, a TLP of the peer that goes first, and the ordered sets around both TLPs. The specification's limits do not count the wire (PCIe 5.0
    /// §3.6.2.1), which may be longer than they are.
    fn acknowledged_after(&self) -> Duration {
        let RoundTrip { flight, stages, ack_latency, padding, ordered_sets } = self.round_trip;
        let bytes = match self.mode {
            LinkMode::NonFlit => self.mps.bytes() + LARGEST_OVERHEAD + padding + dllp::WIRE_BYTES,
            LinkMode::Flit => 2 * crate::event::FLIT_BYTES,
        };
        let tlp = self.rate().time_of(u64::from(bytes));
        let sets = ordered_sets.map_or(Duration::ZERO, |sets| sets.around(tlp));
        flight * 2 + stages + self.ack_latency_by(ack_latency) + (tlp + sets) * 2
    }

    /// The specification's limit of REPLAY_TIMER; with drop-and-replay the same formula without internal delay.
    fn replay_limit(&self) -> Duration {
        match self.mode {
            _ if self.flow_control.drops() => {
                limits::undelayed_replay_timeout(self.rate(), self.width, self.mps)
            }
            LinkMode::NonFlit => {
                let symbols = if self.supports_16gt {
                    limits::SIMPLIFIED_REPLAY_SYMBOLS
                } else {
                    limits::replay_symbols(self.generation, self.width, self.mps)
                };
                self.rate().symbol_times(u64::from(symbols))
            }
            LinkMode::Flit => self.flit_times(limits::FLIT_REPLAY_FLITS),
        }
    }

    fn flit_times(&self, flits: u32) -> Duration {
        self.rate().time_of(u64::from(crate::event::FLIT_BYTES) * u64::from(flits))
    }

    /// Data credits that one TLP of `class` can need: the payload limit, or 2 for a non-posted request (a 32-byte CAS).
    pub fn max_data_credits(&self, class: FcClass) -> u16 {
        match class {
            FcClass::NonPosted => 2,
            _ => (self.mps.bytes() / 16) as u16,
        }
    }

    /// Checks that a port with this configuration can work. The error names the first field that is wrong, and the values that would be right.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field: &str, why: String| Err(ConfigError { field: field.into(), why });
        if self.generation.requires_flit_mode() && self.mode == LinkMode::NonFlit {
            return wrong("mode", alloc::format!("{} exists in flit mode only", self.generation));
        }
        if self.flow_control.drops() && self.mode == LinkMode::Flit {
            return wrong("flow_control", "links in flit mode use credits".into());
        }
        if self.receive.vcs[0].is_none() {
            return wrong("receive", "virtual channel 0 must have buffers".into());
        }
        for (vc, buffers) in self.receive.vcs.iter().enumerate() {
            for class in FcClass::ALL {
                let Some(buffers) = buffers else { continue };
                self.check_class(vc, class, buffers.0[class.index()])?;
            }
        }
        let largest = match self.mode {
            LinkMode::NonFlit => self.mps.bytes() + LARGEST_OVERHEAD,
            LinkMode::Flit => crate::event::FLIT_BYTES,
        };
        if self.replay.tlps == Some(0) {
            return wrong("replay.tlps", "the replay buffer must hold at least one TLP".into());
        }
        if self.replay.bytes.is_some_and(|bytes| bytes < largest) {
            let why = match self.mode {
                LinkMode::NonFlit => {
                    alloc::format!("the largest TLP (MPS {}) needs {largest} bytes", self.mps)
                }
                LinkMode::Flit => alloc::format!("a flit needs {largest} bytes"),
            };
            return wrong("replay.bytes", why);
        }
        match (self.fc.batch, self.fc.latency) {
            (CreditBatch::Part(0 | 1), _) => {
                return wrong(
                    "fc.batch",
                    "a batch above half of the buffer leaves no room for a second one".into(),
                );
            }
            (CreditBatch::Unlimited, UpdateFcLatency::Unlimited) => {
                return wrong("fc", "UpdateFCs need a batch of credits or a latency".into());
            }
            _ => {}
        }
        if self.flow_control.drops() && self.ack.every.is_some() {
            return wrong("ack.every", "without credits Acks are scheduled by time only".into());
        }
        if self.ack.every == Some(0) {
            return wrong("ack.every", "it must be at least 1".into());
        }
        if self.init_repeat.is_zero() || self.fc.refresh.is_some_and(Duration::is_zero) {
            return wrong("init_repeat, fc.refresh", "the interval must be above 0".into());
        }
        Ok(())
    }

    fn check_class(&self, vc: usize, class: FcClass, buffer: ClassBuffer) -> Result<(), ConfigError> {
        let data = u32::from(self.max_data_credits(class));
        for (kind, name, credits, least) in
            [(CreditKind::Header, "header", buffer.header, 1), (CreditKind::Data, "data", buffer.data, data)]
        {
            let most = credit::most(kind, Scale::By16);
            let Credits::Finite(count) = credits else { continue };
            if !(least..=most).contains(&u32::from(count)) {
                let field = alloc::format!("receive VC{vc} {class:?} {name} credits");
                let why = alloc::format!("{count} is out of range; expected {least} to {most}, or infinite");
                return Err(ConfigError { field, why });
            }
        }
        Ok(())
    }
}

/// The fate of TLPs for which the receiver has no room. Both ends of a link do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FlowControl {
    /// They are not sent: the receiver grants credits (PCIe 5.0 §2.6), as every real link does.
    #[default]
    Credits,
    /// They are sent, dropped without a word, and sent again when REPLAY_TIMER expires. No real link does this; the gem5 model of
    /// Alian et al. (2018) does. See [`DropReplayPort`](crate::DropReplayPort).
    DropAndReplay,
    /// As [`DropAndReplay`](Self::DropAndReplay), with the slips of that model's code: a replay passes over as many TLPs as Acks take
    /// from the replay buffer meanwhile, and over the one before which an Ack is sent.
    DropAndReplaySlipping,
    /// There is no data link layer: the two ends are ports of a crossbar. See [`DirectPort`](crate::DirectPort).
    Crossbar,
}

impl FlowControl {
    /// True if TLPs that find no room are dropped.
    pub const fn drops(self) -> bool {
        matches!(self, Self::DropAndReplay | Self::DropAndReplaySlipping)
    }
}

/// The reason that a [`Config`] cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct ConfigError {
    /// The field.
    pub field: String,
    /// The fault, and the values that would be right.
    pub why: String,
}

/// Receive buffer per virtual channel, as advertised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveBuffers {
    /// By virtual channel; `None` is a channel that is not enabled.
    pub vcs: [Option<VcBuffers>; 8],
}

/// Receive buffer of one virtual channel, by [`FcClass::index`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcBuffers(pub [ClassBuffer; 3]);

/// Receive buffer of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassBuffer {
    /// TLPs.
    pub header: Credits,
    /// Payload in units of 16 bytes.
    pub data: Credits,
}

impl ClassBuffer {
    /// No limit, as end points and root complexes must advertise for completions.
    pub const INFINITE: Self = Self { header: Credits::Infinite, data: Credits::Infinite };
    /// `header` TLPs and `data` units of 16 bytes.
    pub const fn finite(header: u16, data: u16) -> Self {
        Self { header: Credits::Finite(header), data: Credits::Finite(data) }
    }
}

/// A number of credits. More than 127 header or 2 047 data credits are advertised scaled, by the smallest factor that
/// holds them (and rounded down to a multiple of it); without scaled flow control they are capped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credits {
    /// Never runs out.
    Infinite,
    /// At most 2 032 header or 32 752 data credits.
    Finite(u16),
}

impl ReceiveBuffers {
    /// Virtual channel 0 only, with these buffers for posted, non-posted and completion.
    pub const fn vc0(posted: ClassBuffer, non_posted: ClassBuffer, completion: ClassBuffer) -> Self {
        let vc0 = Some(VcBuffers([posted, non_posted, completion]));
        Self { vcs: [vc0, None, None, None, None, None, None, None] }
    }
    /// As much as can be advertised unscaled (127 TLPs and 32 KiB of each class), four times that from 16 GT/s on.
    pub const fn generous(generation: Generation) -> Self {
        let one = if generation.number() >= 4 {
            ClassBuffer::finite(508, 8188)
        } else {
            ClassBuffer::finite(127, 2047)
        };
        Self::vc0(one, one, one)
    }
    /// The same with infinite completion credits, as an end point or root complex has.
    pub const fn end_point(generation: Generation) -> Self {
        let mut buffers = Self::generous(generation);
        if let Some(vc0) = &mut buffers.vcs[0] {
            vc0.0[FcClass::Completion.index()] = ClassBuffer::INFINITE;
        }
        buffers
    }
    /// Adds (or replaces) a virtual channel.
    pub const fn with(mut self, vc: Vc, buffers: VcBuffers) -> Self {
        self.vcs[vc.value() as usize] = Some(buffers);
        self
    }
}

/// The policy by which a port acknowledges. Acks share the wire with the port's own TLPs, so this sets the cost of an incoming
/// stream to the outgoing direction: an Ack (8 bytes) leaves `latency` after the first TLP that the last Ack did not cover, or when
/// `every` TLPs are unacknowledged, whichever is first; it waits for the unit on the wire, goes before TLPs, and covers
/// all that arrived until it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AckPolicy {
    /// Longest wait.
    pub latency: AckLatency,
    /// Acknowledge at once when so many TLPs (flits) wait for it. `None`: only the latency counts.
    pub every: Option<u16>,
}

/// The longest time that a received TLP may wait for its Ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AckLatency {
    /// The specification's maximum ([`limits::ack_latency_symbols`]; flit mode: [`limits::FLIT_ACK_FLITS`]); without credits, a third of the
    /// replay timeout.
    #[default]
    Specification,
    /// Every TLP is acknowledged as soon as the wire is free.
    AtOnce,
    /// This long. The peer's REPLAY_TIMER has to outlast it and the round trip, or every TLP is sent twice.
    Fixed(Duration),
}

/// The parts of the way of a TLP and its Ack that the specification's limits do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RoundTrip {
    /// Propagation along the wire, one way.
    pub flight: Duration,
    /// Stages of both ends, both ways.
    pub stages: Duration,
    /// The policy of the peer's Acks.
    pub ack_latency: AckLatency,
    /// Bytes on the wire by which a TLP may take more than with its framing.
    pub padding: u32,
    /// The ordered sets on the peer's wire.
    pub ordered_sets: Option<OrderedSets>,
}

/// Ordered sets that interrupt the TLPs and DLLPs of a wire at regular intervals. They go over all lanes at once, so that their times do not depend on the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedSets {
    /// The time that one takes.
    pub length: Duration,
    /// From one to the next.
    pub interval: Duration,
}

impl OrderedSets {
    /// The longest time of the ordered sets before and behind a unit: as many as fall due in the time of the unit, of one as long before it, and of the
    /// ordered sets themselves.
    fn around(&self, unit: Duration) -> Duration {
        let free = self.interval.saturating_sub(self.length).as_fs().max(1);
        self.length * ((unit * 2 + self.interval).as_fs() / free)
    }
}

/// The policy by which a port returns credits. Each UpdateFC (8 bytes) covers one class of one virtual channel and goes before TLPs. It is due
/// as soon as one of these conditions holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateFcPolicy {
    /// So much of the buffer is free and not yet advertised.
    pub batch: CreditBatch,
    /// The first credit that is free and not yet advertised has waited for so long.
    pub latency: UpdateFcLatency,
    /// The peer may be blocked: the credits advertised less those of TLPs that arrived are below one TLP of the largest size, and some were freed.
    pub unblock: bool,
    /// Every finite class gets one at least this often (the specification: 30 µs, or 120 µs with extended synch).
    /// `None` breaks the rule, which loses nothing on a link that loses nothing.
    pub refresh: Option<Duration>,
}

/// The freed credits that make an UpdateFC due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditBatch {
    /// The credits of any one TLP.
    EachTlp,
    /// One part in so many, 2 at least, of the headers or the data first advertised, rounded down to whole TLPs: as soon as one more TLP
    /// like the last would be more than that. So with `n` parts there are always `n` batches under way, however odd the buffer, and more
    /// buffer never carries less, if `n` is 4 or more. With halves a buffer that is a little larger than another window of the flow, such as
    /// its tags, can carry less than one of the same size.
    Part(u8),
    /// Any number: only time counts. (With batches besides, those that fill none wait for the time, and all others behind them.)
    Unlimited,
}

/// The longest time that a freed credit may wait for its UpdateFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateFcLatency {
    /// As long as the batch takes.
    Unlimited,
    /// The specification's guideline, which is the limit of Acks, too (PCIe 3.0 §2.6.1.2, tables 2-39 to 2-41;
    /// [`limits::ack_latency_symbols`], flit mode: [`limits::FLIT_ACK_FLITS`]).
    Specification,
    /// This long.
    Fixed(Duration),
}

impl UpdateFcPolicy {
    /// The specification's interval with extended synch.
    pub const EXTENDED_SYNC: Duration = Duration::from_us(120);
    /// An UpdateFC for each TLP that leaves the buffer: the shortest loop, and the most DLLPs. PLX's switches typically send so many
    /// (PEX 8532 data book 1.6, §8.4.5.3).
    pub const EACH_TLP: Self = Self { batch: CreditBatch::EachTlp, ..Self::EIGHTHS };
    /// An UpdateFC when an eighth is free: less than an eighth of the buffer is ever missing from the loop, for a few per mille of the wire.
    /// Between [`EACH_TLP`](Self::EACH_TLP) and [`QUARTERS`](Self::QUARTERS), as most ports are.
    pub const EIGHTHS: Self = Self {
        batch: CreditBatch::Part(8),
        latency: UpdateFcLatency::Unlimited,
        unblock: true,
        refresh: Some(Duration::from_us(30)),
    };
    /// An UpdateFC when a quarter is free: as Altera's hard IP lets UpdateFCs go before TLPs on a busy wire (IP Compiler for PCI Express User
    /// Guide, chapter 11, which has [`unblock`](Self::unblock) and the 30 µs, too).
    pub const QUARTERS: Self = Self { batch: CreditBatch::Part(4), ..Self::EIGHTHS };
    /// An UpdateFC when half is free: the fewest DLLPs, and a loop half as long again.
    pub const HALVES: Self = Self { batch: CreditBatch::Part(2), ..Self::EIGHTHS };
    /// Within the specification's guideline, which data books recommend for timers of UpdateFCs (PEX 8532, table 8-5).
    pub const SPECIFICATION: Self =
        Self { batch: CreditBatch::Unlimited, latency: UpdateFcLatency::Specification, ..Self::EIGHTHS };
}

impl Default for UpdateFcPolicy {
    fn default() -> Self {
        Self::EIGHTHS
    }
}

/// Size of the replay buffer. Never more than 2 048 TLPs, half the sequence numbers, or 511 flits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReplayBuffer {
    /// TLPs (flit mode: flits).
    pub tlps: Option<u32>,
    /// Bytes of TLPs, with their 8 bytes of framing (flit mode: 256 per flit).
    pub bytes: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_buffer_holds_at_least_one_flit_or_tlp() {
        let mut config = Config::new(Generation::Gen6, Width::ALL[0], Mps::ALL[0]);
        config.replay.bytes = Some(255);
        let error = config.check().unwrap_err();
        assert_eq!((error.field.as_str(), error.why.as_str()), ("replay.bytes", "a flit needs 256 bytes"));
        config.replay.bytes = Some(256);
        assert_eq!(config.check(), Ok(()));
        config.mode = LinkMode::NonFlit;
        config.generation = Generation::Gen5;
        config.replay.bytes = Some(163);
        assert!(config.check().is_err());
    }
}
