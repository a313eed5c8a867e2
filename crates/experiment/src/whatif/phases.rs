//! The flows that a run moves over time: phases, each with its own set of them.

use std::ops::Range;
use tlplab_fabric::Fabric;
use tlplab_units::{Duration, Time};

/// A flow with less than one part in so many of all payload does not make a phase: descriptors and the like may go on all the time. A
/// flow that moves nothing for as great a part of the run is not active meanwhile.
const LITTLE: u64 = 10;
/// A phase shorter than one such part of the run is a passage to the next.
const SHORT: usize = 20;

/// Payload of each flow over time.
pub(super) struct Activity {
    /// Of the flows.
    names: Vec<String>,
    /// The length of a bin.
    width: Duration,
    /// Bytes that arrived, by flow and bin.
    bytes: Vec<Vec<u64>>,
    /// The rule of its phases.
    rule: Rule,
    /// In the order of time.
    phases: Vec<Span>,
}

/// The flows that make phases, and the pause after which one is not active. Of a relaxed run it is that of the run that it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    flows: Vec<usize>,
    pause: Duration,
}

/// A time in which the same flows are active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Their numbers, in order.
    pub(super) flows: Vec<usize>,
    /// Bins, the last one excluded.
    bins: Range<usize>,
}

impl Activity {
    pub(super) fn of(fabric: &Fabric) -> Self {
        let names = fabric.topology().flows.iter().map(|flow| flow.name.clone()).collect();
        let bytes = fabric.flow_ids().map(|flow| fabric.flow_series(flow)).collect();
        Self::new(names, fabric.bins().0, bytes)
    }

    fn new(names: Vec<String>, width: Duration, bytes: Vec<Vec<u64>>) -> Self {
        let total: u64 = bytes.iter().flatten().sum();
        let great = |flow: &usize| bytes[*flow].iter().sum::<u64>() * LITTLE > total;
        let end = filled(&bytes);
        let pause = width * (end as u64 / LITTLE).max(1);
        let rule = Rule { flows: (0..bytes.len()).filter(great).collect(), pause };
        let mut phases = spans(&bytes, width, &rule);
        phases.retain(|span| span.bins.len() * SHORT > end);
        let phases = phases.into_iter().fold(Vec::new(), joined);
        Self { names, width, bytes, rule, phases }
    }

    pub(super) fn phases(&self) -> &[Span] {
        &self.phases
    }

    /// The name of a flow.
    pub(super) fn name(&self, flow: usize) -> &str {
        self.names.get(flow).map_or("", String::as_str)
    }

    pub(super) fn from(&self, span: &Span) -> Time {
        Time::ZERO + self.width * span.bins.start as u64
    }

    pub(super) fn until(&self, span: &Span) -> Time {
        Time::ZERO + self.width * span.bins.end as u64
    }

    /// Payload per second of `flows`, in bits, whenever these and no others are active, by the rule of the run that this is compared
    /// `with`. `None`: they never are.
    pub(super) fn rate_of(&self, flows: &[usize], with: &Self) -> Option<f64> {
        let all = spans(&self.bytes, self.width, &with.rule).into_iter().fold(Vec::new(), joined);
        let its = || all.iter().filter(|span| span.flows == flows);
        // Its first and last bin belong to what was before and what comes, too.
        let inner = |span: &Span| match span.bins.len() {
            0..=2 => span.bins.clone(),
            _ => span.bins.start + 1..span.bins.end - 1,
        };
        let bins: usize = its().map(|span| inner(span).len()).sum();
        let bytes: u64 = its()
            .flat_map(|span| flows.iter().map(move |flow| self.bytes[*flow][inner(span)].iter().sum::<u64>()))
            .sum();
        (bins > 0).then(|| bytes as f64 * 8.0 / (bins as f64 * self.width.as_fs() as f64 / 1e15))
    }
}

/// Bins up to the last one in which anything arrived.
fn filled(bytes: &[Vec<u64>]) -> usize {
    let last = |bins: &Vec<u64>| bins.iter().rposition(|bytes| *bytes > 0).map_or(0, |last| last + 1);
    bytes.iter().map(last).max().unwrap_or(0)
}

/// The spans in which the same flows are active, however short.
fn spans(bytes: &[Vec<u64>], width: Duration, rule: &Rule) -> Vec<Span> {
    let pause = (rule.pause.as_fs() / width.as_fs().max(1)).max(1) as usize;
    let mut active: Vec<Vec<usize>> = vec![Vec::new(); filled(bytes)];
    for flow in &rule.flows {
        let bins = &bytes[*flow];
        let mut last: Option<usize> = None;
        for bin in (0..bins.len()).filter(|bin| bins[*bin] > 0) {
            let from = last.filter(|last| bin - last < pause).map_or(bin, |last| last + 1);
            active[from..=bin].iter_mut().for_each(|flows| flows.push(*flow));
            last = Some(bin);
        }
    }
    let one = active.into_iter().enumerate().map(|(bin, flows)| Span { flows, bins: bin..bin + 1 });
    one.filter(|span| !span.flows.is_empty()).fold(Vec::new(), |mut spans: Vec<Span>, span| {
        match spans.last_mut().filter(|last| last.flows == span.flows && last.bins.end == span.bins.start) {
            Some(last) => last.bins.end = span.bins.end,
            None => spans.push(span),
        }
        spans
    })
}

/// Spans of the same flows are one, with what is between them.
fn joined(mut spans: Vec<Span>, span: Span) -> Vec<Span> {
    match spans.last_mut().filter(|last| last.flows == span.flows) {
        Some(last) => last.bins.end = span.bins.end,
        None => spans.push(span),
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[Vec<u64>]) -> Vec<(Vec<usize>, usize, usize)> {
        let activity = Activity::new(Vec::new(), Duration::from_ns(1), bytes.to_vec());
        activity.phases.iter().map(|span| (span.flows.clone(), span.bins.start, span.bins.end)).collect()
    }

    fn flow(spans: &[(usize, usize)], every: usize) -> Vec<u64> {
        (0..200)
            .map(|bin| {
                u64::from(
                    bin % every == 0 && spans.iter().any(|(from, until)| (*from..*until).contains(&bin)),
                ) * 100
            })
            .collect()
    }

    #[test]
    fn flows_that_overlap_make_three_phases() {
        let bytes = [flow(&[(0, 120)], 1), flow(&[(60, 200)], 1)];
        assert_eq!(told(&bytes), [(vec![0], 0, 60), (vec![0, 1], 60, 120), (vec![1], 120, 200)]);
        let activity = Activity::new(Vec::new(), Duration::from_ns(1), bytes.to_vec());
        assert_eq!(activity.rate_of(&[0], &activity), Some(800e9));
        assert_eq!(activity.rate_of(&[0, 1], &activity), Some(1600e9));
        assert_eq!(activity.rate_of(&[2], &activity), None);
    }

    #[test]
    fn rare_transactions_and_small_flows_make_none() {
        assert_eq!(told(&[flow(&[(0, 200)], 15), flow(&[(0, 200)], 1)]).len(), 1);
        assert_eq!(told(&[flow(&[(0, 200)], 15), flow(&[(0, 200)], 7)]), [(vec![0, 1], 0, 196)]);
        assert_eq!(told(&[flow(&[(0, 200)], 50)]), []);
        assert_eq!(told(&[]), []);
    }

    #[test]
    fn alternating_flows_make_alternating_phases() {
        let bytes = [flow(&[(0, 50), (100, 150)], 1), flow(&[(50, 100), (150, 200)], 1)];
        let flows: Vec<_> = told(&bytes).into_iter().map(|span| span.0).collect();
        assert_eq!(flows, [[0], [1], [0], [1]]);
        // Often enough, it is one thing.
        let (one, other): (Vec<_>, Vec<_>) =
            (0..10).map(|at| ((at * 20, at * 20 + 10), (at * 20 + 10, at * 20 + 20))).unzip();
        assert_eq!(told(&[flow(&one, 1), flow(&other, 1)]).len(), 1);
    }
}
