//! When a run ends.

use crate::error::{Error, Problem};
use crate::load::LoadSpec;
use crate::tree::{Entry, Node, Table, Value};
use crate::view::View;
use tlplab_units::Time;

/// When a run ends: at whatever comes first; with neither, when everything that has an end has come to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// At this simulated time.
    pub time: Option<Time>,
    /// When the loads together have finished so many transactions.
    pub transactions: Option<u64>,
}

/// A `stop` in its long form: a table.
pub(crate) fn expand(node: &mut Node) {
    if let Value::String(time) = &node.value {
        let at = node.at;
        let entry = Entry { key_at: at, node: Node::string(at, time.clone()) };
        node.value = Value::Table(Table::from([("time".to_owned(), entry)]));
    }
}

/// Reads `stop`, and refuses a run that would never end.
pub(crate) fn read(root: &View<'_>, loads: &[LoadSpec], warmup: Time) -> Result<Stop, Error> {
    let Some(view) = root.get("stop") else {
        for (name, load) in root.get("load").iter().flat_map(View::entries) {
            let ends = |l: &LoadSpec| l.count.is_some() || l.work.ends_by_itself();
            if !loads.iter().any(|l| l.name == name && ends(l)) {
                let problem = Problem::new("this load never ends, and the experiment has no stop");
                return Err(load.key_error(problem.hint("add stop = \"200us\", or a count to each load")));
            }
        }
        return Ok(Stop::default());
    };
    let mut node = view.node.clone();
    expand(&mut node);
    let table = view.with(&node);
    let stop = Stop { time: table.instant("time"), transactions: table.integer("transactions") };
    match stop.time {
        None if stop.transactions.is_none() => {
            let problem = Problem::new("this says neither time nor transactions");
            Err(view.problem(problem.hint("write stop = \"200us\" or stop = { transactions = 10000 }")))
        }
        Some(time) if time <= warmup => {
            let problem = Problem::new(format!("the run stops at {time}, before anything is counted"));
            Err(view.problem(problem.hint(format!("warmup is {warmup}, so stop later"))))
        }
        _ => Ok(stop),
    }
}
