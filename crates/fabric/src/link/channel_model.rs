//! Custom channels: the fate of each unit on one direction of a link.

use crate::config::Damage;
use crate::kernel::ids::PortId;
use crate::link::channel::WireTime;
use crate::link::context::Context;
use crate::observe::probe::UnitRecord;
use crate::packet::slab::TlpHandle;
use tlplab_datalink::Unit;
use tlplab_units::Duration;

/// One direction of a link. Serialisation, ordered sets and the flight are the fabric's, and so are the faults of the configuration, which have struck
/// before; the data link layers at both ends learn of what a channel does as they would of a real one.
pub trait ChannelModel: Send {
    /// A unit starts on the wire. Returns its fate. `unit` has the effect of the faults and the time at which it would arrive.
    fn carry(&mut self, unit: &UnitRecord<'_>) -> Passage;

    /// A copy that goes on from here as this channel does; none, if part of its state is elsewhere.
    fn snapshot(&self) -> Option<Box<dyn ChannelModel>> {
        None
    }
}

/// The fate of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrives as the faults have left it.
    Clear,
    /// It arrives so much later. No unit overtakes the one before it, so those behind it may be late, too. The time counts as flight.
    Late(Duration),
    /// It arrives with a bad CRC.
    Damaged,
    /// It does not arrive at all.
    Lost,
}

/// A channel model at its place.
pub(crate) struct CustomChannel(Box<dyn ChannelModel>);

impl CustomChannel {
    pub(crate) fn new(model: Box<dyn ChannelModel>) -> Self {
        Self(model)
    }

    pub(crate) fn has_copy(&self) -> bool {
        self.0.snapshot().is_some()
    }
}

impl Clone for CustomChannel {
    fn clone(&self) -> Self {
        Self(self.0.snapshot().expect("it was asked whether it has a copy"))
    }
}

impl Context {
    /// Passes a unit that faults have done `damage` to through the channel behind `id`: its damage then, and its delay.
    #[cold]
    pub(crate) fn pass_custom_channel(
        &mut self,
        id: PortId,
        unit: &Unit<TlpHandle>,
        wire: WireTime,
        damage: Option<Damage>,
    ) -> (Option<Damage>, Duration) {
        let Some(mut own) = self.links.take_channel(id) else { return (damage, Duration::ZERO) };
        let passage = own.0.carry(&self.record_of(id, unit, wire, damage.is_some(), Duration::ZERO));
        let late = self.links.give_channel(id, own, wire, passage);
        let damage = match (damage, passage) {
            (Some(Damage::Drop), _) | (_, Passage::Lost) => Some(Damage::Drop),
            (Some(Damage::Corrupt), _) | (_, Passage::Damaged) => Some(Damage::Corrupt),
            (None, Passage::Clear | Passage::Late(_)) => None,
        };
        (damage, late)
    }
}
