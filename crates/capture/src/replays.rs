//! TLPs that are sent again on simulated links: of several copies one counts.

use tlplab_trace::linkunit::Flags;
use tlplab_wire::tlp::Repr;

/// TLPs whose copies have all been damaged so far: a good one, though sent again, is the first that arrives.
#[derive(Default)]
pub(crate) struct Replays {
    damaged: Vec<(u16, Repr)>,
}

impl Replays {
    /// True if this copy is left out: it is damaged or nullified, or a good one of its TLP was seen in this direction before.
    pub(crate) fn leaves_out(&mut self, direction: u16, repr: &Repr, flags: Flags) -> bool {
        if flags.bad && !flags.replay && !flags.nullified {
            self.damaged.push((direction, *repr));
        }
        if flags.bad || flags.nullified {
            return true;
        }
        if !flags.replay {
            return false;
        }
        match self.damaged.iter().position(|(at, one)| *at == direction && one == repr) {
            Some(index) => {
                self.damaged.remove(index);
                false
            }
            None => true,
        }
    }
}
