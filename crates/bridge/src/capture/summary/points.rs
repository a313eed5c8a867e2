//! What happened when, for plots: a column for each fact, a row for each TLP.

use super::super::matching::{Matcher, is_non_posted};
use super::super::requests::{request, reverse};
use super::super::{Capture, Unit};
use super::in_order;
use tlplab_units::Time;
use tlplab_wire::tlp::Kind;

/// The columns.
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

/// The TLPs of a capture in the order of their times, without those that were damaged or sent again.
pub fn points(capture: &Capture) -> Points {
    let mut points = Points::default();
    let back = reverse(capture);
    let mut waiting: Matcher<Time> = Matcher::default();
    let mut outstanding = vec![0i64; capture.directions.len()];
    for record in in_order(capture) {
        let Unit::Tlp { repr, .. } = &record.unit else { continue };
        if record.flags.any() {
            continue;
        }
        let id = repr.transaction_id();
        let mut asked = record.direction;
        let mut latency = f64::NAN;
        let (kind, bytes) = match repr.kind() {
            Kind::Completion(completion) => {
                if let Some(back) = back[usize::from(record.direction)] {
                    asked = back;
                    let answered = waiting.answer(back, id, completion.is_last());
                    if let (true, Some(at)) = (completion.is_last(), answered) {
                        outstanding[usize::from(back)] -= 1;
                        latency = (record.time - at).as_fs() as f64 / 1e6;
                    }
                }
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
        if is_non_posted(repr) && waiting.ask(record.direction, id, record.time).is_none() {
            outstanding[usize::from(record.direction)] += 1;
        }
        points.time_ns.push((record.time - Time::ZERO).as_fs() as f64 / 1e6);
        points.direction.push(record.direction.into());
        points.kind.push(kind);
        points.tag.push(id.tag.value().into());
        points.bytes.push(bytes.into());
        points.outstanding.push(outstanding[usize::from(asked)]);
        points.latency_ns.push(latency);
    }
    points
}
