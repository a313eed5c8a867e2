//! Data link layer, sans-IO: two ports of a link agree on credits, number the TLPs that they send, acknowledge them, and send
//! lost ones again. A TLP that [`LinkLayer::send`] took is delivered at the other end exactly once and in order, whatever the
//! wire does short of going down.
//!
//! # The way through
//! [`LinkLayer`] below is the whole interface: `send` takes TLPs and `handle_unit` the units that arrive, `poll_transmit` gives
//! the next unit for the wire, `deadline` the time to come back. [`Engine`] is a port of any kind:
//!
//! * [`Port`] ([`port`]): framed TLPs and DLLPs. [`FlitPort`] ([`flit`]): 256-byte flits; its page describes the model.
//!   [`DropReplayPort`] ([`drop_replay`]): a link without credits, as a published model has it. [`DirectPort`] ([`direct`]): no link, but
//!   a crossbar. All but the last are made of the same parts. A custom layer: [`custom`].
//! * `end`: the common part of the first two; `framed`: the TLPs of links without flits
//! * `init`: the feature exchange and InitFC1/2, until [`Event::Up`]; [`Engine::established`] skips to its result
//! * `flow`: credits of every class and virtual channel, and the UpdateFCs that are due; `credit`: one counter
//! * `ack`: the receiver's next sequence number, its Acks and Naks; `replay`: the sender's buffer, its timer, REPLAY_NUM;
//!   `sequence`: the two rings of numbers
//! * [`config`]: buffers and policies; [`limits`]: the specification's latency tables; [`event`]: units and events
//!
//! The tests are dialogues (`tests/dialogue.rs`, `tests/flit.rs`): read one to see a conversation unit by unit.
//!
//! # The cost of DLLPs
//! All DLLPs take 8 bytes of the direction that is opposite to the TLPs they are about, and go before TLPs. Their number
//! follows from the policies alone. Let TLPs with `d` data credits arrive regularly, one each `T`, and be released at once:
//!
//! * **Acks.** The latency `L` ([`Config::ack_latency`]) runs from the first TLP that no Ack covers; the Ack then waits for the unit on
//!   its wire (`W`, from 0 to one TLP time) and covers all that arrived until it starts. So one Ack is sent per
//!   `floor((L + W) / T) + 1` TLPs, or per `ack.every` if that is fewer. With [`AckLatency::AtOnce`] `L` is 0.
//! * **UpdateFC.** Of a class with `H` header and `D` data credits and a batch of one part in `n`, one is sent per
//!   `max(1, min(floor(H / n), floor(D / n d)))` TLPs; with `fc.unblock` and little buffer, per `floor((D - largest) / d) + 1` if that is
//!   fewer, where `largest` is [`Config::max_data_credits`]. Infinite kinds do not count. (An UpdateFC says no more than its scale
//!   can.) With a latency, one per `floor(latency / T) + 1` if that is fewer. [`UpdateFcPolicy`] tells the cost of each named policy.
//! * **Refresh.** A finite class that had no UpdateFC for `fc.refresh` gets one: 8 bytes per idle class and 30 µs.
//!
//! In flit mode all of these ride in flits that carry TLPs, and cost nothing while there are such flits.
//!
//! A saturated sender never waits if the peer's buffers cover the loop: TLPs sent during flight, hold time, the batch,
//! the wait for the wire, and flight back. The same holds for the replay buffer with `L` in place of hold time and batch.
#![no_std]
extern crate alloc;

pub(crate) mod ack;
pub mod config;
pub(crate) mod credit;
pub mod custom;
pub mod direct;
pub mod drop_replay;
pub(crate) mod end;
pub mod engine;
pub mod event;
pub mod flit;
pub(crate) mod flow;
pub(crate) mod framed;
pub(crate) mod init;
pub mod limits;
pub mod port;
pub(crate) mod replay;
pub(crate) mod sequence;
pub mod unacknowledged;

pub use config::{
    AckLatency, AckPolicy, ClassBuffer, Config, ConfigError, CreditBatch, Credits, FlowControl, OrderedSets,
    ReceiveBuffers, ReplayBuffer, RoundTrip, UpdateFcLatency, UpdateFcPolicy, VcBuffers,
};
pub use custom::{CustomLinkLayer, CustomPort};
pub use direct::DirectPort;
pub use drop_replay::DropReplayPort;
pub use engine::Engine;
pub use event::{
    Blocked, Counters, CreditKind, Discard, Event, FlitAck, FlitTlp, FlitUnit, Integrity, ProtocolError,
    Retrain, Timer, TlpShape, TlpUnit, Unit,
};
pub use flit::FlitPort;
pub use flow::CreditsLeft;
pub use port::Port;
pub use replay::Occupancy;
pub use unacknowledged::Unacknowledged;

use tlplab_units::Time;
/// The DLLPs that units carry.
pub use tlplab_wire::dllp;

/// One end of a link, as its owner drives it. `H` is the owner's handle of a TLP (a slab index); the layer only carries it.
///
/// The layer refers to a TLP from `send` until [`Event::Acked`] or [`Event::Lost`]. Units on the wire refer to it on their own: a
/// late copy may still be under way when the peer's Ack arrives.
///
/// Time is an input. The owner calls [`poll_transmit`](Self::poll_transmit) whenever the wire is free, and
/// [`handle_timeout`](Self::handle_timeout) when [`deadline`](Self::deadline) is reached; both may change after any other call.
/// Methods with a default are for layers that have more to say: a layer without timers, buffers and recovery does without.
pub trait LinkLayer<H: Copy> {
    /// The physical layer is up: flow control initialisation starts.
    fn link_up(&mut self, now: Time);
    /// The physical layer is down: the TLPs in the replay buffer are [`Event::Lost`], the state is as at power-on.
    fn link_down(&mut self, now: Time, events: &mut impl FnMut(Event<H>));
    /// The link enters Recovery: nothing is sent and REPLAY_TIMER is held; all state stays, and the units that the peer has sent arrive still.
    fn link_recovering(&mut self, _now: Time) {}
    /// Recovery is over.
    fn link_recovered(&mut self, _now: Time) {}
    /// DL_Active: virtual channel 0 carries TLPs.
    fn is_active(&self) -> bool;
    /// Checks that a TLP of this shape may be sent now; the error is the reason that it may not. A layer without credits, which sends any TLP
    /// while it is active, need not define it.
    #[inline]
    fn admit(&self, _shape: &TlpShape) -> Result<(), Blocked> {
        if self.is_active() { Ok(()) } else { Err(Blocked::LinkDown) }
    }
    /// Takes a TLP that [`admit`](Self::admit) accepted: its credits are spent, it enters the replay buffer (flit mode: the flit
    /// under construction) and is due for the wire.
    fn send(&mut self, now: Time, handle: H, shape: TlpShape);
    /// A TLP that began to be forwarded before it turned out bad: it occupies the wire and is dropped by the receiver. No
    /// credits, no sequence number, no replay (flit mode: it is replayed with its flit), no [`Event::Acked`]: the
    /// layer forgets it with the unit that carries its last byte. Ask [`admit`](Self::admit) first all the same.
    fn send_nullified(&mut self, now: Time, handle: H, shape: TlpShape);
    /// The next unit for the free wire; `None` if there is nothing to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Unit<H>>;
    /// The last symbol of the unit polled last has left: REPLAY_TIMER starts here.
    fn transmitted(&mut self, _now: Time) {}
    /// True if this TLP is sure to be delivered if its LCRC is good. (Cut-through may ask when the header is there.)
    fn expects(&self, unit: &TlpUnit<H>) -> bool {
        self.is_active() && !unit.nullified
    }
    /// The last byte of a unit has arrived.
    fn handle_unit(
        &mut self,
        now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    );
    /// A delivered TLP has left the receive buffer: its credits may return.
    fn release(&mut self, _now: Time, _shape: &TlpShape) {}
    /// The deadline was reached.
    fn handle_timeout(&mut self, _now: Time, _events: &mut impl FnMut(Event<H>)) {}
    /// The time of the next call of [`handle_timeout`](Self::handle_timeout), and its purpose.
    fn deadline(&self) -> Option<(Time, Timer)> {
        None
    }
    /// The time of [`deadline`](Self::deadline) alone, [`Time::NEVER`] if there is none.
    fn due(&self) -> Time {
        self.deadline().map_or(Time::NEVER, |(time, _)| time)
    }
}
