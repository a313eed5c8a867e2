//! The Ethernet side of a simple NIC.

use crate::nic::ethernet::Speed;
use crate::nic::{Cable, Traffic};
use std::collections::VecDeque;
use tlplab_transaction::Payload;
use tlplab_units::Duration;

/// The destination and source of frames. A frame begins with its destination address and ends with the last byte of its data.
///
/// A port keeps no time: it asks to be called back after a while.
pub trait Port: Send + 'static {
    /// The driver is there: what sends by itself may begin.
    fn enable(&mut self, mac: [u8; 6], length_only: bool) {
        let _ = (mac, length_only);
    }

    /// The driver is gone: what sends by itself stops.
    fn disable(&mut self) {}

    /// Takes a frame.
    ///
    /// # Errors
    /// The frame, if there is no room for it now; it is offered again when something has elapsed.
    fn send(&mut self, frame: Payload) -> Result<(), Payload>;

    /// The next frame that has come.
    fn receive(&mut self) -> Option<Payload>;

    /// Something to be called back for: after how long, and as what. Asked until there is no more.
    fn wait(&mut self) -> Option<(Duration, u64)> {
        None
    }
    /// That time has passed.
    fn elapsed(&mut self, id: u64) {
        let _ = id;
    }

    /// A copy; none, if others share the port.
    fn snapshot(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Frames that came and were lost, because there was no room.
    fn dropped(&self) -> u64 {
        0
    }

    /// The NIC was reset: nothing will elapse any more.
    fn reset(&mut self) {}
}

/// Frames that have come and found no buffer, at most.
const WAITING: usize = 64;
const SENT: u64 = 1;
const ARRIVED: u64 = 2;

/// A simulated cable, and what is at its other end.
#[derive(Clone, Debug)]
pub struct CablePort {
    cable: Cable,
    speed: Speed,
    /// The frame that is on the line, if it comes back; `Some(None)` if it does not.
    line: Option<Option<Payload>>,
    arrived: VecDeque<Payload>,
    /// Frames that found no room.
    dropped: u64,
    /// The number of frames that the generator has sent; `None` while it waits for a driver.
    number: Option<u64>,
    mac: [u8; 6],
    length_only: bool,
    asks: VecDeque<(Duration, u64)>,
}

impl CablePort {
    /// A port with this plugged in, whose cable is so fast.
    pub fn new(cable: Cable, speed: Speed) -> Self {
        Self {
            cable,
            speed,
            line: None,
            arrived: VecDeque::new(),
            dropped: 0,
            number: None,
            mac: [0; 6],
            length_only: false,
            asks: VecDeque::new(),
        }
    }

    fn arrive(&mut self, frame: Payload) {
        if self.arrived.len() < WAITING {
            self.arrived.push_back(frame);
        } else {
            self.dropped += 1;
        }
    }

    /// Asks for the time at which the generator's next frame arrives.
    fn expect(&mut self) {
        if let (Some((traffic, _)), Some(number)) = (self.next_generated(), self.number) {
            let at = |number: u64| traffic.arrival(number, self.speed);
            let before = number.checked_sub(1).map_or(Duration::ZERO, at);
            self.asks.push_back((at(number) - before, ARRIVED));
        }
    }

    fn next_generated(&self) -> Option<(Traffic, u64)> {
        let (Cable::Source(traffic), Some(number)) = (self.cable, self.number) else { return None };
        traffic.count.is_none_or(|count| number < count).then_some((traffic, number))
    }
}

impl Port for CablePort {
    fn enable(&mut self, mac: [u8; 6], length_only: bool) {
        (self.mac, self.length_only) = (mac, length_only);
        if self.number.is_none() {
            self.number = Some(0);
            self.expect();
        }
    }

    fn disable(&mut self) {
        self.number = None;
    }

    fn send(&mut self, frame: Payload) -> Result<(), Payload> {
        if self.cable == Cable::Unplugged {
            return Ok(());
        }
        if self.line.is_some() {
            return Err(frame);
        }
        self.asks.push_back((self.speed.frame(frame.len()), SENT));
        self.line = Some((self.cable == Cable::LoopBack).then_some(frame));
        Ok(())
    }

    fn receive(&mut self) -> Option<Payload> {
        self.arrived.pop_front()
    }

    fn wait(&mut self) -> Option<(Duration, u64)> {
        self.asks.pop_front()
    }

    fn elapsed(&mut self, id: u64) {
        match id {
            SENT => {
                if let Some(frame) = self.line.take().flatten() {
                    self.arrive(frame);
                }
            }
            ARRIVED => {
                if let Some((traffic, number)) = self.next_generated() {
                    self.number = Some(number + 1);
                    self.expect();
                    self.arrive(traffic.frame(number, self.mac, self.length_only));
                }
            }
            _ => {}
        }
    }

    fn reset(&mut self) {
        *self = Self { dropped: self.dropped, ..Self::new(self.cable, self.speed) };
    }
    fn dropped(&self) -> u64 {
        self.dropped
    }
    fn snapshot(&self) -> Option<Self> {
        Some(self.clone())
    }
}
