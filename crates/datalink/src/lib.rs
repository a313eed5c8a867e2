//! Data link layer, sans-IO: credits, ack/nak and replay, link up, flits
#![no_std]
extern crate alloc;

pub(crate) mod ack;
pub mod config;
pub(crate) mod credit;
pub mod engine;
pub mod event;
pub mod flit;
pub(crate) mod flow;
pub(crate) mod init;
pub mod limits;
pub mod port;
pub(crate) mod replay;
pub(crate) mod sequence;

pub use config::{
    AckLatency, AckPolicy, ClassBuffer, Config, ConfigError, Credits, ReceiveBuffers, ReplayBuffer,
    UpdateFcPolicy, VcBuffers,
};
pub use event::{
    Blocked, Counters, CreditKind, Discard, Event, FlitAck, FlitTlp, FlitUnit, Integrity, ProtocolError,
    Retrain, Timer, TlpShape, TlpUnit, Unit,
};

pub use engine::Engine;
pub use flit::FlitPort;
pub use flow::CreditsLeft;
pub use port::Port;
pub use replay::Occupancy;

use tlplab_units::Time;
/// The DLLPs that units carry.
pub use tlplab_wire::dllp;

/// One end of a link, as its owner drives it. `H` is the owner's handle of a TLP (a slab index); the layer only carries it.
///
/// Time is an input. The owner calls [`poll_transmit`](Self::poll_transmit) whenever the wire is free, and
/// [`handle_timeout`](Self::handle_timeout) when [`deadline`](Self::deadline) is reached; both may change after any other call.
pub trait LinkLayer<H: Copy> {
    /// The physical layer is up: flow control initialisation starts.
    fn link_up(&mut self, now: Time);
    /// The physical layer is down: what is in the replay buffer is [`Event::Lost`], the state is as at power-on.
    fn link_down(&mut self, now: Time, events: &mut impl FnMut(Event<H>));
    /// The link enters Recovery: nothing is sent and REPLAY_TIMER is held; all state stays.
    fn link_recovering(&mut self, now: Time);
    /// Recovery is over.
    fn link_recovered(&mut self, now: Time);
    /// DL_Active: virtual channel 0 carries TLPs.
    fn is_active(&self) -> bool;
    /// May a TLP of this shape be sent now?
    fn admit(&self, shape: &TlpShape) -> Result<(), Blocked>;
    /// Takes a TLP that [`admit`](Self::admit) accepted: its credits are spent, it enters the replay buffer (flit mode: the flit
    /// under construction) and is due for the wire.
    fn send(&mut self, now: Time, handle: H, shape: TlpShape);
    /// A TLP that began to be forwarded before it turned out bad: it occupies the wire and is dropped by the receiver. No
    /// credits, no sequence number, no replay (flit mode: it is replayed with its flit), no [`Event::Acked`]; ask
    /// [`admit`](Self::admit) first all the same.
    fn send_nullified(&mut self, now: Time, handle: H, shape: TlpShape);
    /// The next unit for the free wire; `None` if there is nothing to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Unit<H>>;
    /// The last symbol of the unit polled last has left: REPLAY_TIMER starts here.
    fn transmitted(&mut self, now: Time);
    /// Would this TLP be delivered if its LCRC is good? (What cut-through may ask when the header is there.)
    fn expects(&self, unit: &TlpUnit<H>) -> bool;
    /// The last byte of a unit has arrived.
    fn handle_unit(
        &mut self,
        now: Time,
        unit: &Unit<H>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<H>),
    );
    /// A delivered TLP has left the receive buffer: its credits may return.
    fn release(&mut self, now: Time, shape: &TlpShape);
    /// The deadline was reached.
    fn handle_timeout(&mut self, now: Time, events: &mut impl FnMut(Event<H>));
    /// When to call [`handle_timeout`](Self::handle_timeout) next, and what for.
    fn deadline(&self) -> Option<(Time, Timer)>;
}
