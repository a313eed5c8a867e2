//! Candidates for limits in the loads: their transactions under way, their offered rate, the time of their software.

use super::{By, Candidate, Figures, relax_any, relax_count, relax_rate, relax_time};
use crate::experiment::Experiment;
use crate::load::{LoadSpec, Pace, Timing, Work};
use crate::result::{Flow, LimitKind};
use tlplab_device::tlpdma::driver::{Descriptors, Wait};

type OfWork = fn(&mut Work, By) -> Option<String>;

pub(super) fn candidates(experiment: &Experiment, figures: &Figures<'_>) -> Vec<Candidate> {
    let mut all = Vec::new();
    for load in &experiment.loads {
        for (what, kind, change) in of_work(&load.work) {
            let name = load.name.clone();
            let suspicion = if *kind == LimitKind::Rate { served(load, figures) } else { 0.5 };
            let resource = format!("the {what} of {name}");
            all.extend(Candidate::of_part(
                resource,
                *kind,
                suspicion,
                &load.work,
                move |experiment: &mut Experiment| {
                    let load = experiment.loads.iter_mut().find(|load| load.name == name);
                    load.map(|load| &mut load.work)
                },
                *change,
            ));
        }
    }
    all
}

/// The part of its offered rate that a load gets: one that gets all is the limit itself.
fn served(load: &LoadSpec, figures: &Figures<'_>) -> f64 {
    let Work::Generate(generate) = &load.work else { return 0.5 };
    let Pace::Rate(bps) = generate.pace else { return 0.0 };
    let its = |flow: &&Flow| {
        flow.name.strip_prefix(load.name.as_str()).is_some_and(|rest| matches!(rest, "" | ".read" | ".write"))
    };
    let carried: f64 = figures.document.flows.iter().filter(its).map(|flow| flow.payload_bps).sum();
    carried / bps.max(1) as f64
}

fn of_work(work: &Work) -> &'static [(&'static str, LimitKind, OfWork)] {
    match work {
        Work::Generate(generate) => match generate.pace {
            Pace::Outstanding(_) => &[("outstanding", LimitKind::Outstanding, |work, by| match work {
                Work::Generate(generate) => {
                    let Pace::Outstanding(count) = &mut generate.pace else { return None };
                    let words = relax_any(count, by, u32::MAX.into())?;
                    generate.outstanding = generate.outstanding.max(*count);
                    Some(words)
                }
                _ => None,
            })],
            Pace::Rate(_) => &[
                ("rate", LimitKind::Rate, |work, by| match work {
                    Work::Generate(generate) => {
                        let Pace::Rate(bps) = &mut generate.pace else { return None };
                        relax_rate(bps, by)
                    }
                    _ => None,
                }),
                ("outstanding", LimitKind::Outstanding, |work, by| match work {
                    Work::Generate(generate) => relax_any(&mut generate.outstanding, by, u32::MAX.into()),
                    _ => None,
                }),
            ],
        },
        Work::Replay { timing: Timing::Fast, outstanding: Some(_), .. } => {
            &[("outstanding", LimitKind::Outstanding, |work, by| match work {
                Work::Replay { outstanding: Some(count), .. } => relax_any(count, by, u32::MAX.into()),
                _ => None,
            })]
        }
        Work::Replay { .. } => &[],
        Work::Dd(_) => &[
            ("software's time between requests", LimitKind::Latency, |work, by| match work {
                Work::Dd(dd) => relax_time(&mut dd.cost, by),
                _ => None,
            }),
            ("software's time ahead of a request", LimitKind::Latency, |work, by| match work {
                Work::Dd(dd) => relax_time(&mut dd.ahead, by),
                _ => None,
            }),
            ("software's start", LimitKind::Latency, |work, by| match work {
                Work::Dd(dd) => relax_time(&mut dd.start, by),
                _ => None,
            }),
            ("request size", LimitKind::Outstanding, |work, by| match work {
                Work::Dd(dd) => relax_count(&mut dd.request, by, 1 << 30),
                _ => None,
            }),
        ],
        Work::Transfer(_) => &[
            ("outstanding", LimitKind::Outstanding, |work, by| match work {
                Work::Transfer(transfer) => relax_count(&mut transfer.outstanding, by, 4096),
                _ => None,
            }),
            ("software's time for a call", LimitKind::Latency, |work, by| match work {
                Work::Transfer(transfer) => relax_time(&mut transfer.call_cost, by),
                _ => None,
            }),
            ("time between stores", LimitKind::Latency, |work, by| match work {
                Work::Transfer(transfer) => match &mut transfer.descriptors {
                    Descriptors::Pio { interval } => relax_time(interval, by),
                    Descriptors::Ring { .. } => None,
                },
                _ => None,
            }),
            ("interrupt delay", LimitKind::Latency, |work, by| match work {
                Work::Transfer(transfer) => match &mut transfer.wait {
                    Wait::Interrupt { delay } => relax_time(delay, by),
                    _ => None,
                },
                _ => None,
            }),
        ],
    }
}
