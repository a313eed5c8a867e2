//! A switch port's share of the egresses that it shares with others.

use super::{By, Candidate, Figures};
use crate::experiment::Experiment;
use crate::result::LimitKind;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::{Arbitration, FabricConfig, SwitchConfig};

/// The largest weight that an experiment can give.
const LARGEST: u16 = u16::MAX;
/// Queues wait for the wire rather than for their turn.
const WEIGHTED: f64 = 0.3;
/// All weights grow by as much before one of them grows by a tenth.
const FINER: u16 = 10;

pub(super) fn candidates(experiment: &Experiment, figures: &Figures<'_>) -> Vec<Candidate> {
    let mut all = Vec::new();
    for switch in &experiment.fabric.switches {
        let children = children(&experiment.fabric, &switch.name);
        // Equal shares seldom limit: they are tried behind all that is waited for.
        let suspicion = match switch.arbitration {
            Arbitration::RoundRobin => 0.0,
            Arbitration::Weighted(_) => figures.share_anywhere(&[Cause::Queueing]) * WEIGHTED,
        };
        for child in children.iter().filter(|_| children.len() > 1) {
            let (name, child, children) = (switch.name.clone(), child.clone(), children.clone());
            all.extend(Candidate::of_part(
                format!("weight of {child} in {name}"),
                LimitKind::Rate,
                suspicion,
                switch,
                move |experiment: &mut Experiment| {
                    experiment.fabric.switches.iter_mut().find(|switch| switch.name == name)
                },
                move |switch, by| prefer(switch, &children, &child, by),
            ));
        }
    }
    all
}

/// The components below a switch.
fn children(fabric: &FabricConfig, switch: &str) -> Vec<String> {
    let links = fabric.switches.iter().map(|below| (&below.name, &below.uplink));
    let links = links.chain(fabric.buses.iter().map(|below| (&below.name, &below.uplink)));
    let devices = fabric.devices.iter().filter(|device| device.function_of.is_none());
    let links = links.chain(devices.map(|below| (&below.name, &below.link)));
    links.filter(|(_, link)| link.under == switch).map(|(name, _)| name.clone()).collect()
}

fn prefer(switch: &mut SwitchConfig, children: &[String], child: &str, by: By) -> Option<String> {
    let given = match &switch.arbitration {
        Arbitration::RoundRobin => Vec::new(),
        Arbitration::Weighted(weights) => weights.clone(),
    };
    let weight_of =
        |name: &str| given.iter().find(|(other, _)| other == name).map_or(1, |(_, weight)| *weight);
    let finer = if by == By::Tenth { FINER } else { 1 };
    let before = weight_of(child).saturating_mul(finer);
    let more = by.count(before.into(), LARGEST.into())? as u16;
    let weights = children
        .iter()
        .map(|name| (name.clone(), if name == child { more } else { weight_of(name).saturating_mul(finer) }));
    switch.arbitration = Arbitration::Weighted(weights.collect());
    Some(format!("{before} → {more}"))
}
