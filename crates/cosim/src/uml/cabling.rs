//! Several guests, each with a machine of its own, on Ethernet cables.
//!
//! Each machine has its own simulated time. What one end of a cable sends reaches the other a `delay` later, so a machine may go on to that much
//! behind the next event of the others before it has heard from them. The one whose next event is the earliest has the turn;
//! whose turn it is and how far depends on simulated time alone, so the machines' runs do, too.

use super::{GuestEnd, GuestError, Progress, Session};
use tlplab_device::Action;
use tlplab_device::nic::{OpenEnd, SIGNAL, Signal};
use tlplab_experiment::outside::Residents;
use tlplab_experiment::run::Run;
use tlplab_fabric::{Driven, NodeId};
use tlplab_units::{Duration, Time};

const FS_PER_NS: u64 = 1_000_000;
/// Turns between two returns of [`Cabling::go_on`].
const TURNS: u32 = 4096;

/// A guest and its machine.
pub struct Party<'a> {
    /// The guest.
    pub session: &'a mut Session,
    /// Its machine.
    pub run: &'a mut Run,
    /// The machine's devices from outside.
    pub residents: &'a mut dyn Residents,
}

/// An end of a cable.
#[derive(Clone, Debug)]
pub struct Plug {
    /// The machine's number among the parties.
    pub party: usize,
    /// Its NIC.
    pub node: NodeId,
    /// The NIC's own end.
    pub end: OpenEnd,
}

/// A cable between two NICs.
#[derive(Clone, Debug)]
pub struct Cable {
    /// Its ends.
    pub plugs: [Plug; 2],
    /// From one to the other, a whole number of nanoseconds, one at least.
    pub delay: Duration,
}

/// A signal that went over a cable.
#[derive(Clone, Debug)]
pub struct Carried {
    /// The cable.
    pub cable: usize,
    /// The plug that it came from.
    pub from: usize,
    /// The time at which it left.
    pub at: Time,
    /// The signal.
    pub signal: Signal,
}

/// The cables between some guests.
pub struct Cabling {
    cables: Vec<Cable>,
    ends: Vec<Option<GuestEnd>>,
    /// The machine in turn, and the end of its turn.
    turn: Option<(usize, Time)>,
    carried: Vec<Carried>,
}

impl Cabling {
    /// Cables between so many guests.
    pub fn new(parties: usize, cables: Vec<Cable>) -> Self {
        Self { cables, ends: vec![None; parties], turn: None, carried: Vec::new() }
    }

    /// The end of each guest, if it has ended.
    pub fn ends(&self) -> &[Option<GuestEnd>] {
        &self.ends
    }

    /// The signals that have left NICs since the last call, in the order of turns.
    pub fn take_carried(&mut self) -> Vec<Carried> {
        std::mem::take(&mut self.carried)
    }

    /// Goes on for a while: at most `patience` milliseconds without a message of the guest that runs, or some thousand turns. True once all
    /// guests have ended.
    ///
    /// # Errors
    /// The guest that cannot go on, by its number, and why.
    pub fn go_on(&mut self, parties: &mut [Party<'_>], patience: u16) -> Result<bool, (usize, GuestError)> {
        for _ in 0..TURNS {
            // A guest that runs says what it does next before time passes for anybody.
            for index in 0..parties.len() {
                let now = parties[index].run.fabric().now();
                let whose = self.turn.filter(|(party, _)| *party == index);
                let limit = whose.map_or_else(|| whole(now), |(_, limit)| limit);
                if !self.advance(parties, index, patience, limit)? {
                    return Ok(false);
                }
                self.turn = self.turn.filter(|(party, _)| *party != index);
            }
            let Some(turn) = self.next_turn(parties) else { return Ok(true) };
            self.turn = Some(turn);
        }
        Ok(false)
    }

    /// Lets a guest go on to `limit`; false, if it is not there yet.
    fn advance(
        &mut self,
        parties: &mut [Party<'_>],
        index: usize,
        patience: u16,
        limit: Time,
    ) -> Result<bool, (usize, GuestError)> {
        if self.ends[index].is_some() {
            return Ok(true);
        }
        let Party { session, run, residents } = &mut parties[index];
        let progress = session.go_on(run, *residents, patience, limit).map_err(|error| (index, error))?;
        self.carry(parties);
        if let Progress::Ended(end) = &progress {
            self.ends[index] = Some(end.clone());
            self.unplug(parties, index);
        }
        Ok(progress != Progress::UnderWay)
    }

    /// Takes what NICs have sent to the other ends.
    fn carry(&mut self, parties: &mut [Party<'_>]) {
        for (cable, Cable { plugs, delay }) in self.cables.iter().enumerate() {
            for (from, plug) in plugs.iter().enumerate() {
                let to = &plugs[1 - from];
                for (at, signal) in plug.end.take_sent() {
                    if self.ends[to.party].is_none() {
                        deliver(parties, to, after(at, *delay), signal.clone());
                    }
                    self.carried.push(Carried { cable, from, at, signal });
                }
            }
        }
    }

    /// A machine is off: its NICs' ends are dead.
    fn unplug(&mut self, parties: &mut [Party<'_>], index: usize) {
        let now = parties[index].run.fabric().now();
        for Cable { plugs, delay } in &self.cables {
            for (from, plug) in plugs.iter().enumerate() {
                let to = &plugs[1 - from];
                if plug.party == index && self.ends[to.party].is_none() {
                    deliver(parties, to, after(now, *delay), Signal::Ready(false));
                }
            }
        }
    }

    /// The guest whose next event is the earliest, and how far it may go before it has heard from the others; none, if all have ended.
    fn next_turn(&self, parties: &mut [Party<'_>]) -> Option<(usize, Time)> {
        let next: Vec<Time> = parties
            .iter_mut()
            .zip(&self.ends)
            .map(|(party, end)| match end {
                Some(_) => Time::NEVER,
                None => party.session.next_event(party.run, party.residents),
            })
            .collect();
        let living = (0..next.len()).filter(|index| self.ends[*index].is_none());
        let first = living.min_by_key(|index| next[*index])?;
        let bounds = self.cables.iter().flat_map(|Cable { plugs, delay }| {
            let [a, b] = plugs.each_ref().map(|plug| plug.party);
            let other = if a == first { b } else { a };
            let theirs = (a == first || b == first).then(|| after(next[other], *delay));
            // An answer to what it is about to send comes no earlier.
            theirs.map(|theirs| theirs.min(after(after(next[first], *delay), *delay)))
        });
        Some((first, whole(bounds.min().unwrap_or(Time::NEVER))))
    }
}

fn deliver(parties: &mut [Party<'_>], to: &Plug, at: Time, signal: Signal) {
    let run = &mut *parties[to.party].run;
    debug_assert!(run.fabric().now() <= at, "a machine has gone on without hearing from the others");
    to.end.bring(at, signal);
    run.device_acts(to.node, Action::Timer { at, id: SIGNAL });
}

fn after(time: Time, delay: Duration) -> Time {
    Time::from_fs(time.as_fs().saturating_add(delay.as_fs()))
}

/// The clocks of guests have whole nanoseconds.
fn whole(time: Time) -> Time {
    if time == Time::NEVER { time } else { Time::from_fs(time.as_fs() / FS_PER_NS * FS_PER_NS) }
}
