//! The device's end of an acknowledged link: it asks for one, and again when it is lost.

use super::config::EndpointConfig;
use crate::link::Link;
use tlplab_units::{Duration, Time};
use tlplab_wire::nettlp::Header;
use tlplab_wire::nettlp::link::{Lane, LinkMessage, NUMBERS};

/// Between the first two requests for a link; later ones are further apart, up to the second.
const FIRST_WAIT: Duration = Duration::from_ms(5);
const LONGEST_WAIT: Duration = Duration::from_ms(100);
/// Requests for a link before it is given up: they take a second. Counted, since a machine that stands still for a second asks nobody meanwhile.
const MOST_REQUESTS: u32 = 13;

#[derive(Clone, Debug)]
enum State<T> {
    /// There is none, and nobody asks for one before something is to be sent.
    Down,
    /// Asked for.
    Calling {
        lane: Lane,
        next: Time,
        wait: Duration,
        /// Requests that may still be sent.
        left: u32,
    },
    Up(Link<T>),
}

/// A device's link.
#[derive(Clone, Debug)]
pub(super) struct Line<T> {
    state: State<T>,
    /// It has been asked for once: at the beginning that is done unasked, so that the adapter knows the lane.
    begun: bool,
    /// Tells this link from the one before.
    epochs: u32,
}

impl<T: Copy> Line<T> {
    pub(super) fn new() -> Self {
        Self { state: State::Down, begun: false, epochs: 0 }
    }

    /// The link, if it is up.
    pub(super) fn link(&mut self) -> Option<&mut Link<T>> {
        if let State::Up(link) = &mut self.state { Some(link) } else { None }
    }
    /// True if a TLP may leave.
    pub(super) fn has_room(&self) -> bool {
        matches!(&self.state, State::Up(link) if link.has_room())
    }
    /// TLPs that are not acknowledged.
    pub(super) fn under_way(&self) -> usize {
        if let State::Up(link) = &self.state { link.under_way() } else { 0 }
    }

    /// The next message to be sent; `wanted`: something waits for the link.
    pub(super) fn poll(&mut self, now: Time, wanted: bool, config: &EndpointConfig) -> Option<LinkMessage> {
        if matches!(self.state, State::Down) && (wanted || !self.begun) {
            self.begun = true;
            self.epochs = self.epochs.wrapping_add(1);
            let ticks = (now.as_fs() / Header::TICK.as_fs()) as u32;
            let epoch = ticks.wrapping_mul(0x9e37_79b1).wrapping_add(self.epochs);
            let lane = Lane {
                epoch,
                first_tag: *config.tags.start(),
                last_tag: *config.tags.end(),
                host_ports: config.host_ports,
                sequence: epoch % NUMBERS,
            };
            self.state = State::Calling { lane, next: now, wait: FIRST_WAIT, left: MOST_REQUESTS };
        }
        match &mut self.state {
            State::Down => None,
            State::Calling { lane, next, wait, left } if *next <= now && *left > 0 => {
                *left -= 1;
                (*next, *wait) = (now + *wait, Duration::from_fs(wait.as_fs() * 2).min(LONGEST_WAIT));
                Some(LinkMessage::Connect(*lane))
            }
            State::Calling { .. } => None,
            State::Up(link) => link.poll_ack(now),
        }
    }

    /// A message has come. Calls `done` with what is acknowledged; `false` if the link is lost.
    pub(super) fn handle_message(&mut self, now: Time, message: LinkMessage, done: impl FnMut(T)) -> bool {
        match (&mut self.state, message) {
            (State::Calling { lane, .. }, LinkMessage::Accept(theirs)) if theirs.epoch == lane.epoch => {
                self.state = State::Up(Link::new(now, lane.epoch, lane.sequence, theirs.sequence));
            }
            (State::Up(link), LinkMessage::Ack { epoch, acknowledged, beyond }) if epoch == link.epoch() => {
                link.handle_ack(now, acknowledged, beyond, done);
            }
            // One that answers an older TLP says nothing of this link.
            (State::Up(link), LinkMessage::Reset { sequence }) => return !link.holds(sequence),
            _ => {}
        }
        true
    }

    /// Time has passed; `false` if the link is lost, or was not given.
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        match &mut self.state {
            State::Down => true,
            State::Calling { next, left, .. } => *left > 0 || *next > now,
            State::Up(link) => {
                link.handle_timeout(now);
                !link.is_alone(now)
            }
        }
    }

    /// It is lost. Calls `lost` with what is not acknowledged.
    pub(super) fn hang_up(&mut self, lost: impl FnMut(T)) {
        if let State::Up(link) = &mut self.state {
            link.forget().for_each(lost);
        }
        self.state = State::Down;
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Down => None,
            State::Calling { next, .. } => Some(*next),
            State::Up(link) => link.deadline(),
        }
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        match &mut self.state {
            State::Down => {}
            State::Calling { next, .. } => *next = next.earlier(by),
            State::Up(link) => link.rebase(by),
        }
    }
}
