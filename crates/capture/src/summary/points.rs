//! Events over time, for plots: a column for each fact, a row for each TLP.

use super::super::requests::request;
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::{Kind, Repr};

/// The columns: the TLPs of a capture in the order of their times, without those that were damaged or sent again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// Nanoseconds since the first record.
    pub time_ns: Vec<f64>,
    /// Index of the direction.
    pub direction: Vec<i64>,
    /// 0 read, 1 write, 2 completion with data, 3 without, 4 anything else.
    pub kind: Vec<i64>,
    /// The tag.
    pub tag: Vec<i64>,
    /// Bytes that a request asks for or carries, or a completion carries.
    pub bytes: Vec<i64>,
    /// Requests that wait then, of the direction that asked.
    pub outstanding: Vec<i64>,
    /// From request to last completion, of last completions; not a number otherwise.
    pub latency_ns: Vec<f64>,
}

impl Points {
    pub(super) fn add(
        &mut self,
        time: Time,
        direction: u16,
        repr: &Repr,
        outstanding: u32,
        latency: Option<Duration>,
    ) {
        let (kind, bytes) = match repr.kind() {
            Kind::Completion(completion) => {
                (if completion.payload_dw() > 0 { 2 } else { 3 }, completion.data_bytes())
            }
            kind => {
                let code = match kind {
                    Kind::MemRead { .. } => 0,
                    Kind::MemWrite { .. } => 1,
                    _ => 4,
                };
                (code, request(repr).map_or(0, |(_, _, _, bytes)| bytes))
            }
        };
        self.time_ns.push((time - Time::ZERO).as_fs() as f64 / 1e6);
        self.direction.push(direction.into());
        self.kind.push(kind);
        self.tag.push(repr.transaction_id().tag.value().into());
        self.bytes.push(bytes.into());
        self.outstanding.push(outstanding.into());
        self.latency_ns.push(latency.map_or(f64::NAN, |latency| latency.as_fs() as f64 / 1e6));
    }
}
