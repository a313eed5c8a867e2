//! The conclusions from the difference of two minima about the link between them, and their limits.

use super::{Clock, Samples, Target};

/// Fewer reads say nothing about the shortest one.
pub const FEWEST: u64 = 100;

/// The quality of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the latency of the link, to within the resolution.
    Measured,
    /// It is smaller than what can be told apart.
    Unresolved,
    /// It is no latency of a link at all.
    Refused,
}

impl Verdict {
    /// As in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Unresolved => "unresolved",
            Self::Refused => "refused",
        }
    }
}

/// One link, there and back.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLatency {
    /// The end that is nearer to the processor, as an index into the targets.
    pub near: usize,
    /// The other end.
    pub far: usize,
    /// Minimum at the far end less minimum at the near end, ns; `None` where it is refused.
    pub latency_ns: Option<f64>,
    /// The difference is right to within this, ns, either way: a step of the clock, the spread, and the acknowledgements of the path.
    pub resolution_ns: f64,
    /// By how much the minima of parts of the samples disagree, both ends together, ns.
    pub spread_ns: f64,
    /// Its quality.
    pub verdict: Verdict,
    /// The reason, unless it is simply measured.
    pub note: String,
}

/// The latency of every link that has a target at both ends. `refusal` is why no difference means anything on this machine.
pub fn attribute(
    targets: &[Target],
    samples: &[Samples],
    clock: &Clock,
    refusal: Option<&str>,
) -> Vec<LinkLatency> {
    let ends = targets.iter().enumerate().filter_map(|(far, target)| Some((target.parent?, far)));
    ends.map(|(near, far)| {
        let path = std::iter::successors(Some(far), |at| targets[*at].parent);
        let own = path.map(|at| targets[at].acknowledgements_ns).sum();
        difference(near, far, [&samples[near], &samples[far]], own, clock, refusal)
    })
    .collect()
}

fn difference(
    near: usize,
    far: usize,
    ends: [&Samples; 2],
    acknowledgements_ns: f64,
    clock: &Clock,
    refusal: Option<&str>,
) -> LinkLatency {
    let ns = |ticks: u64| ticks as f64 * clock.ns_per_tick;
    let spread_ns: f64 = ends.iter().filter_map(|samples| samples.disagreement()).map(ns).sum();
    let resolution_ns = clock.step_ns() + spread_ns + acknowledgements_ns;
    let link = |latency_ns, verdict, note: String| LinkLatency {
        near,
        far,
        latency_ns,
        resolution_ns,
        spread_ns,
        verdict,
        note,
    };
    if let Some(why) = refusal {
        return link(None, Verdict::Refused, why.into());
    }
    let fewest = ends.map(Samples::count).into_iter().min().unwrap_or(0);
    let [Some(from), Some(to)] = ends.map(Samples::min) else {
        return link(None, Verdict::Refused, "one end of the link was never read".into());
    };
    if fewest < FEWEST {
        return link(
            None,
            Verdict::Refused,
            format!("only {fewest} samples of one end; a minimum takes at least {FEWEST}"),
        );
    }
    let latency_ns = ns(to) - ns(from);
    if latency_ns.abs() <= resolution_ns {
        let note = format!("below the resolution of {resolution_ns:.1} ns");
        return link(Some(latency_ns), Verdict::Unresolved, note);
    }
    if latency_ns < 0.0 {
        let note = "the far end answers sooner than the near one, which takes longer to answer a read than to forward one";
        return link(None, Verdict::Refused, note.into());
    }
    link(Some(latency_ns), Verdict::Measured, String::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::Kind;

    fn constant(ticks: u64, count: u64) -> Samples {
        let mut samples = Samples::default();
        (0..count).for_each(|_| samples.record(ticks));
        samples
    }

    fn targets(parents: &[Option<usize>]) -> Vec<Target> {
        let name = |at: usize| format!("t{at}");
        let target = |(at, parent): (usize, &Option<usize>)| Target {
            name: name(at),
            parent: *parent,
            kind: Kind::Bridge,
            register: "configuration 0x0".into(),
            acknowledgements_ns: 0.0,
        };
        parents.iter().enumerate().map(target).collect()
    }

    /// The paper's clock: 3 GHz in steps of 3 ns.
    fn clock() -> Clock {
        Clock { source: "rdtsc".into(), ns_per_tick: 1.0 / 3.0, step_ticks: 9, overhead_ns: 0.0 }
    }

    /// Mb, then the FPGA at x1, and the RAID card at x8: 63, 2169 and 315 ns in the paper's table 4.
    #[test]
    fn link_latencies_match_the_papers_table_4() {
        let samples = [constant(189, 1000), constant(6507, 1000), constant(945, 1000)];
        let links = attribute(&targets(&[None, Some(0), Some(0)]), &samples, &clock(), None);
        let found: Vec<_> =
            links.iter().map(|l| (l.near, l.far, l.latency_ns.unwrap().round(), l.verdict)).collect();
        assert_eq!(found, [(0, 1, 2106.0, Verdict::Measured), (0, 2, 252.0, Verdict::Measured)]);
        assert!((links[0].resolution_ns - 3.0).abs() < 1e-9);
    }

    #[test]
    fn uncertain_differences_are_unresolved_or_refused() {
        let two = targets(&[None, Some(0)]);
        let verdict = |samples: [Samples; 2], refusal| {
            let link = attribute(&two, &samples, &clock(), refusal).remove(0);
            assert!(!link.note.is_empty(), "it says why");
            (link.verdict, link.latency_ns.is_some())
        };
        assert_eq!(verdict([constant(189, 1000), constant(198, 1000)], None), (Verdict::Unresolved, true));
        assert_eq!(verdict([constant(945, 1000), constant(189, 1000)], None), (Verdict::Refused, false));
        assert_eq!(verdict([constant(189, 1000), constant(945, 99)], None), (Verdict::Refused, false));
        assert_eq!(verdict([constant(189, 1000), Samples::default()], None), (Verdict::Refused, false));
        assert_eq!(
            verdict([constant(189, 1000), constant(945, 1000)], Some("a guest")),
            (Verdict::Refused, false)
        );
        // One lucky read in a thousand is no minimum: the difference of 100 ticks is within what the samples disagree by.
        let mut lucky = constant(289, 999);
        lucky.record(150);
        assert_eq!(verdict([lucky, constant(289, 1000)], None), (Verdict::Unresolved, true));
    }
}
