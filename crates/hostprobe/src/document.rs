//! The measurements on this machine, as `tlplab/differential/1`, with its description and the limits of the conclusions.

use super::clock::Calibration;
use super::plan::{Plan, Target};
use super::sampling::Collected;
use super::surroundings;
use serde_json::{Value, json};
use tlplab_bench::differential::{self, Clock, Kind, Verdict, attribute};

/// The document. `core` is where it was measured, and `kernel` what the system calls itself.
pub fn document(plan: &Plan, clock: &Calibration, collected: &Collected, core: usize, kernel: &str) -> Value {
    let scale = Clock {
        source: clock.name.into(),
        ns_per_tick: clock.ns_per_tick,
        step_ticks: clock.step_ticks,
        overhead_ns: clock.ns(clock.overhead_ticks),
    };
    let targets: Vec<differential::Target> =
        plan.targets.iter().map(|target| describe(plan, target)).collect();
    let (samples, call) = collected.samples.split_at(targets.len());
    let call_ns = call.first().and_then(|call| call.min()).map(|ticks| clock.ns(ticks));
    let refusal = refusal(plan, clock, collected, call_ns);
    let mut links = attribute(&targets, samples, &scale, refusal.as_deref());
    for link in links.iter_mut().filter(|link| collected.ones[link.near] + collected.ones[link.far] > 0) {
        link.latency_ns = None;
        link.verdict = Verdict::Refused;
        link.note = "reads of one end returned all ones, as reads without a completion do".into();
    }
    let mut document = differential::document("machine", &scale, &targets, samples, &links);
    let facts = document["targets"].as_array_mut().into_iter().flatten();
    for ((fact, target), ones) in facts.zip(&plan.targets).zip(&collected.ones) {
        fact["link"] = plan.functions[target.function].link.clone().into();
        fact["all_ones"] = (*ones).into();
    }
    document["system_call_ns"] = call_ns.into();
    document["interrupted"] = collected.interrupted.into();
    document["machine"] = json!({
        "kernel": kernel,
        "core": core,
        "virtual_machine": plan.signs,
        "refusal": refusal,
    });
    document["notes"] = notes(plan, collected).into();
    document
}

fn describe(plan: &Plan, target: &Target) -> differential::Target {
    let function = &plan.functions[target.function];
    let (name, register) = match target.mapped {
        None => (function.address.clone(), "configuration 0x0".into()),
        Some(register) => (
            format!("{}:{}+{:#x}", function.address, register.bar, register.offset),
            format!("BAR {} + {:#x}", register.bar, register.offset),
        ),
    };
    let kind = match (function.is_bridge(), function.parent) {
        (true, _) => Kind::Bridge,
        (false, None) => Kind::Root,
        (false, Some(_)) => Kind::EndPoint,
    };
    let acknowledgements_ns = function.acknowledgements_ns().unwrap_or(0.0);
    differential::Target { name, parent: target.parent, kind, register, acknowledgements_ns }
}

/// The reason that no difference between reads of this machine is the latency of a link.
fn refusal(plan: &Plan, clock: &Calibration, collected: &Collected, call_ns: Option<f64>) -> Option<String> {
    let configuration =
        plan.targets.iter().zip(&collected.samples).filter(|(target, _)| target.mapped.is_none());
    let minima: Vec<f64> = configuration
        .filter_map(|(_, samples)| Some((clock.ns(samples.min()?) - call_ns?).max(0.0)))
        .collect();
    let trapped = surroundings::trapped(&minima);
    match (plan.signs.first(), trapped) {
        (Some(sign), Some(trapped)) => Some(format!("this is a virtual machine ({sign}), and {trapped}")),
        (Some(sign), None) => Some(format!(
            "this is a virtual machine ({sign}), whose hypervisor may answer any of these reads"
        )),
        (None, Some(trapped)) => Some(format!("this looks like a virtual machine: {trapped}")),
        (None, None) => None,
    }
}

fn notes(plan: &Plan, collected: &Collected) -> Vec<String> {
    let mut notes = Vec::new();
    let asleep: Vec<&str> = plan
        .targets
        .iter()
        .map(|target| &plan.functions[target.function])
        .filter(|function| function.sleeps)
        .map(|function| function.address.as_str())
        .collect();
    if !asleep.is_empty() {
        notes.push(format!(
            "the kernel had suspended these functions and woke them up for the reads: {}",
            asleep.join(", ")
        ));
    }
    for (target, ones) in plan.targets.iter().zip(&collected.ones).filter(|(_, ones)| **ones > 0) {
        let name = describe(plan, target).name;
        notes.push(format!("{name}: {ones} reads returned all ones, as reads without a completion do; their times are not latencies"));
    }
    notes
}
