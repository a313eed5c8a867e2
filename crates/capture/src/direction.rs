//! The senders and receivers.

use super::decode::Decoded;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// A direction of travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direction {
    /// The sender: a node's name, or an IP address.
    pub from: String,
    /// The receiver.
    pub to: String,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.from, self.to)
    }
}

/// The directions seen so far, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Directions {
    pub(super) all: Vec<Direction>,
    /// By sender and receiver, a line each.
    numbers: BTreeMap<String, u16>,
    key: String,
}

impl Directions {
    /// The number of a frame's direction.
    pub(super) fn of(&mut self, decoded: &Decoded<'_>) -> u16 {
        if let Some(known) = self.known(decoded) {
            return known;
        }
        let (from, to) = decoded.ends();
        let number = u16::try_from(self.all.len()).unwrap_or(u16::MAX);
        self.all.push(Direction { from: from.to_string(), to: to.to_string() });
        self.numbers.insert(self.key.clone(), number);
        number
    }

    /// The same, if it has been seen before.
    pub(super) fn known(&mut self, decoded: &Decoded<'_>) -> Option<u16> {
        let (from, to) = decoded.ends();
        self.key.clear();
        let _ = write!(self.key, "{from}\n{to}"); // a String takes everything
        self.numbers.get(&self.key).copied()
    }

    /// The number of the way back.
    pub(super) fn back(&self, direction: u16) -> Option<u16> {
        let Direction { from, to } = self.all.get(usize::from(direction))?;
        self.numbers.get(&format!("{to}\n{from}")).copied()
    }
}
