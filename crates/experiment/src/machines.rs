//! `[machine]` and `[cable]`: several machines in one experiment, on Ethernet cables.

use crate::device_models::{ModelSpec, NicSpec};
use crate::error::{At, Error, Problem, Sources, suggest};
use crate::experiment::Experiment;
use crate::tables;
use crate::tree::{self, Node};
use crate::view::View;
use tlplab_units::Duration;

/// Machines that cables join.
#[derive(Clone, Debug, Default)]
pub struct Machines {
    /// Each, by its name; none, if the experiment is one machine.
    pub machines: Vec<(String, Experiment)>,
    /// The cables between them.
    pub cables: Vec<CableSpec>,
}

/// A cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CableSpec {
    /// Its name.
    pub name: String,
    /// A machine, by its place among [`Machines::machines`], and its NIC, by name.
    pub ends: [(usize, String); 2],
    /// From one end to the other, in whole nanoseconds.
    pub delay: Duration,
}

/// The names of the machines that a file describes.
pub(crate) fn names(root: &Node) -> Vec<String> {
    let machines = root.get("machine").and_then(Node::as_table);
    machines.into_iter().flat_map(|table| table.keys().cloned()).collect()
}

/// Leaves of a file with several machines what one of them is: what is common to all, and what its own table says instead.
pub(crate) fn select(sources: &Sources, root: &mut Node, machine: Option<&str>) -> Result<(), Error> {
    let names = names(root);
    let Some(table) = root.as_table_mut() else { return Ok(()) };
    let (machines, cables) = (table.remove("machine"), table.remove("cable"));
    let Some(mut machines) = machines else {
        return cables.map_or(Ok(()), |cables| Err(without_machines(sources, cables.key_at)));
    };
    let Some(machine) = machine else {
        let problem = Problem::new(format!("there are several machines: {}", names.join(", ")));
        let hint = "boot their guests together with tlplab guest uml, or inspect them with tlplab check";
        return Err(sources.error(machines.key_at, "machine", problem.hint(hint)));
    };
    let own = machines.node.as_table_mut().and_then(|table| table.remove(machine));
    if let Some(title) = table.get_mut("title")
        && let Some(text) = title.node.as_str()
    {
        title.node = Node::string(title.node.at, format!("{text}: {machine}"));
    }
    if let Some(own) = own {
        tree::merge(root, own.node);
    }
    Ok(())
}

fn without_machines(sources: &Sources, cables: At) -> Error {
    let problem = Problem::new("a cable joins NICs of several machines, and there are none");
    sources.error(cables, "cable", problem.hint("describe them: [machine.left], [machine.right]"))
}

/// The cables of a file, whose machines have been read.
pub(crate) fn cables(
    sources: &Sources,
    root: &Node,
    machines: &[(String, Experiment)],
) -> Result<Vec<CableSpec>, Error> {
    let view = View::root(sources, root);
    let mut cables: Vec<CableSpec> = Vec::new();
    if machines.is_empty()
        && let Some(cables) = root.as_table().and_then(|table| table.get("cable"))
    {
        return Err(without_machines(sources, cables.key_at));
    }
    for (name, cable) in view.get("cable").iter().flat_map(View::entries) {
        let mut delay = Duration::ZERO;
        tables::CABLE.read(&cable, &mut delay)?;
        let ends = cable.require(&tables::CABLE, "ends")?;
        let read = ends.items().iter().map(|end| plug(end, machines)).collect::<Result<Vec<_>, _>>()?;
        let [(one, nic), (other, partner)] = <[_; 2]>::try_from(read).map_err(|_| {
            let problem = Problem::new("a cable has two ends");
            ends.problem(problem.hint(r#"for example ["left.nic0", "right.nic0"]"#))
        })?;
        let taken = |end| cables.iter().any(|cable| cable.ends.contains(end));
        if let Some((_, device)) = [&one, &other].into_iter().find(|end| taken(*end) || one == other) {
            return Err(ends.error(format!("\"{device}\" has one port, but two ends of cables name it")));
        }
        if nic.ethernet != partner.ethernet {
            let problem = Problem::new("the two NICs send at different rates");
            return Err(ends.problem(problem.hint("give both the same `ethernet`")));
        }
        if nic.mac == partner.mac {
            let problem = Problem::new("the two NICs have the same address");
            let hint = r#"give one of them another, as in mac = "02:1d:e5:00:00:02""#;
            return Err(ends.problem(problem.hint(hint)));
        }
        let whole = Duration::from_ns(delay.as_ns());
        if whole != delay || whole.is_zero() {
            let at = cable.at("delay");
            return Err(at.error("a cable's delay must be a whole number of nanoseconds, at least 1ns"));
        }
        cables.push(CableSpec { name: name.into(), ends: [one, other], delay });
    }
    Ok(cables)
}

type Plug<'a> = ((usize, String), &'a NicSpec);

/// An end of a cable, `MACHINE.DEVICE`.
fn plug<'a>(end: &View<'_>, machines: &'a [(String, Experiment)]) -> Result<Plug<'a>, Error> {
    let text = end.text();
    let Some((machine, device)) = text.split_once('.') else {
        let problem = Problem::new(format!("\"{text}\" is not a machine's name and its NIC's"));
        return Err(end.problem(problem.hint("as in left.nic0")));
    };
    let names = machines.iter().map(|(name, _)| name.as_str());
    let Some(index) = names.clone().position(|name| name == machine) else {
        let problem = Problem::new(format!("unknown machine \"{machine}\""));
        return Err(end.problem(problem.hint(suggest(machine, names, "machines"))));
    };
    let nics = machines[index].1.devices.iter().filter_map(|spec| match &spec.model {
        ModelSpec::Nic(nic) => Some((spec.name.as_str(), nic)),
        _ => None,
    });
    let Some((name, nic)) = nics.clone().find(|(name, _)| *name == device) else {
        let problem = Problem::new(format!("\"{machine}\" has no NIC \"{device}\""));
        let names = nics.map(|(name, _)| name);
        return Err(end.problem(problem.hint(suggest(device, names, r#"NICs with model = "nic""#))));
    };
    Ok(((index, name.to_owned()), nic))
}
