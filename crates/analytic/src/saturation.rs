//! The payload throughput of a saturated link, per direction.

use crate::link::{COMPLETION_HEADER, Link};
use crate::policy::{Arrivals, Busy, Receiver, Step};

/// The traffic of the device below the link, as fast as it can, with the host above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// DMA writes: payload goes up.
    Writes,
    /// DMA reads: payload goes down.
    Reads,
    /// Both, taking turns request by request as long as both have one to send.
    Both,
}

/// The conversion of transfers into TLPs, and their receivers. All sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// The link.
    pub link: Link,
    /// Header of a write: 12 below 4 GiB, 16 above.
    pub write_header: f64,
    /// Payload of a write: MPS, if transfers are aligned and long.
    pub write: f64,
    /// Header of a read request.
    pub read_header: f64,
    /// Bytes of a read request: MRRS, if transfers are aligned and long.
    pub read: f64,
    /// Payload of a completion: MPS, or the RCB with that policy, and at most `read`.
    pub completion: f64,
    /// Read requests that leave together because their operations are longer than one; 1 otherwise.
    pub read_group: f64,
    /// The delay between a TLP and its answer; it decides how Acks fall between TLPs. `None` for the mean over all possibilities.
    pub turnaround: Option<Turnaround>,
    /// The receiver at the upper end: root port.
    pub upper: Receiver,
    /// The receiver at the lower end: device.
    pub lower: Receiver,
}

/// Delays that make the TLPs of one direction keep step with those of the other, in seconds. Both include both flights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turnaround {
    /// From the end of a completion on the wire to the arrival of the request it makes room for, less that request's own time on
    /// the wire.
    pub device: f64,
    /// From the end of a request on the wire to the arrival of its completion, less that completion's own time on the wire.
    pub host: f64,
}

/// One direction of the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direction {
    /// Payload in bits per second.
    pub payload: f64,
    /// Part of the capacity that is payload.
    pub payload_share: f64,
    /// Part that is headers, framing and requests without payload.
    pub overhead_share: f64,
    /// Part that is DLLPs.
    pub dllp_share: f64,
}

impl Direction {
    /// Part of the capacity that is used: 1 in the direction that limits.
    pub fn utilization(&self) -> f64 {
        self.payload_share + self.overhead_share + self.dllp_share
    }
}

/// Both directions of a saturated link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// From the device to the host: writes, read requests.
    pub up: Direction,
    /// From the host to the device: completions.
    pub down: Direction,
}

/// TLPs per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rates {
    writes: f64,
    reads: f64,
}

impl Setup {
    /// The throughput if nothing but the link limits: enough tags, outstanding operations, credits and replay buffer.
    ///
    /// Each direction is a budget, capacity = TLPs · their cost + DLLPs · 8. The DLLPs of one direction answer the TLPs of
    /// the other, so the two budgets are solved together, by iteration.
    pub fn saturated(&self, traffic: Traffic) -> Throughput {
        let mut rates = Rates::default();
        let mut dllps = (0.0, 0.0);
        // Each round changes the DLLPs by a few per cent of the round before: 60 rounds are exact to the last bit.
        for _ in 0..60 {
            rates = self.rates(traffic, dllps);
            dllps = self.dllps(traffic, rates);
        }
        let (link, capacity) = (&self.link, self.link.capacity());
        let completions = self.completions_per_read();
        let direction = |payload: f64, tlps: f64, dllps: f64| Direction {
            payload: payload * 8.0,
            payload_share: payload / capacity,
            overhead_share: (tlps - payload) / capacity,
            dllp_share: dllps * link.dllp() / capacity,
        };
        let up_tlps = rates.writes * self.write_cost() + rates.reads * self.request_cost();
        let down_tlps = rates.reads * completions * self.completion_cost();
        Throughput {
            up: direction(rates.writes * self.write, up_tlps, dllps.0),
            down: direction(rates.reads * self.read, down_tlps, dllps.1),
        }
    }

    fn write_cost(&self) -> f64 {
        self.link.tlp(self.write_header, self.write)
    }
    fn request_cost(&self) -> f64 {
        self.link.tlp(self.read_header, 0.0)
    }
    fn completions_per_read(&self) -> f64 {
        (self.read / self.completion).ceil()
    }
    /// Mean cost of a completion.
    fn completion_cost(&self) -> f64 {
        self.link.tlp(COMPLETION_HEADER, self.read / self.completions_per_read())
    }

    /// The rates that fit with this many DLLPs per second, up and down.
    fn rates(&self, traffic: Traffic, (up, down): (f64, f64)) -> Rates {
        let room = |dllps: f64| (self.link.capacity() - dllps * self.link.dllp()).max(0.0);
        let (up, down) = (room(up), room(down));
        let by_completions = down / (self.completions_per_read() * self.completion_cost());
        match traffic {
            Traffic::Writes => Rates { writes: up / self.write_cost(), reads: 0.0 },
            Traffic::Reads => Rates { writes: 0.0, reads: by_completions.min(up / self.request_cost()) },
            Traffic::Both => {
                let in_turn = up / (self.write_cost() + self.request_cost());
                let reads = by_completions.min(in_turn);
                Rates { writes: (up - reads * self.request_cost()) / self.write_cost(), reads }
            }
        }
    }

    /// DLLPs per second that the TLPs of the other direction cause, up and down.
    fn dllps(&self, traffic: Traffic, rates: Rates) -> (f64, f64) {
        let completions = rates.reads * self.completions_per_read();
        let payload = self.read / self.completions_per_read();
        let down = [Arrivals { rate: completions, group: 1.0, payload, class: 2 }];
        let writes = Arrivals { rate: rates.writes, group: 1.0, payload: self.write, class: 0 };
        let requests = Arrivals { rate: rates.reads, group: self.read_group, payload: 0.0, class: 1 };
        let capacity = self.link.capacity();
        let (w, r) = (self.write_cost(), self.request_cost());
        let squares = rates.writes * w * w + rates.reads * r * r;
        let up_unit = squares / (rates.writes * w + rates.reads * r).max(f64::MIN_POSITIVE) / capacity;
        let ack = self.link.dllp() / capacity;
        // A read is answered by one completion, and sent for each write: then completions keep step with the way up.
        let in_turn = (rates.reads / rates.writes - 1.0).abs() < 1e-6 && self.completions_per_read() == 1.0;
        let (w, r) = (w / capacity, r / capacity);
        let down_unit = self.completion_cost() / capacity;
        let patterns = self.completions_per_read() * self.read_group;
        let up_step = |t: Turnaround| Step { after: t.host + down_unit, pattern: [w, r], patterns: 1.0 };
        let down_step = |t: Turnaround| Step { after: t.device + r, pattern: [down_unit, 0.0], patterns };
        let mixed = rates.reads > 0.0;
        let up_wire =
            Busy { unit: up_unit, mixed, ack, step: self.turnaround.filter(|_| in_turn).map(up_step) };
        let down_wire = Busy { unit: down_unit, mixed: false, ack, step: None };
        let step = self.turnaround.map(down_step);
        match traffic {
            Traffic::Writes => (
                self.lower.updates(&[]),
                self.upper.acks(&[writes], Busy::IDLE) + self.upper.updates(&[writes]),
            ),
            Traffic::Reads => (
                self.lower.acks(&down, Busy::IDLE) + self.lower.updates(&down),
                self.upper.acks(&[requests], Busy { step, ..down_wire }) + self.upper.updates(&[requests]),
            ),
            Traffic::Both => (
                self.lower.acks(&down, up_wire) + self.lower.updates(&down),
                self.upper.acks(&[writes, requests], down_wire) + self.upper.updates(&[writes, requests]),
            ),
        }
    }
}
