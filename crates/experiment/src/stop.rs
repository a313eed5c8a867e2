//! The end of a run, and its reason.

use crate::error::{Error, Problem};
use crate::load::LoadSpec;
use crate::result::Stopped;
use crate::tables::STOP;
use crate::tree::{Entry, Node, Table, Value};
use crate::view::View;
use serde::{Serialize, Serializer};
use std::fmt;
use tlplab_units::Time;

/// The end of a run: the first of these conditions; with neither, the end of everything that has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// At this simulated time.
    pub time: Option<Time>,
    /// The number of transactions that the loads finish together.
    pub transactions: Option<u64>,
}

/// The reason that a run has ended, or that it has not. Documents have its [`token`](Self::token); people read its display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// It goes on.
    #[default]
    Running,
    /// Its stop time has come.
    StopTime,
    /// So many transactions have ended, as many as it was to do or more.
    Transactions(u64),
    /// All loads and programs have said that they are done.
    LoadsDone,
    /// Nothing will ever happen again, though not all are done.
    NothingMore,
    /// Nothing has ended since then, for longer than any request can wait.
    Stuck(Time),
    /// The guest that was the host's software has powered off, or died.
    GuestOff,
    /// Somebody interrupted it.
    Interrupted,
    /// The wall-clock time that it was given is over.
    TimeLimit,
    /// A device or a driver of the user's own has raised.
    Failed,
}

impl StopReason {
    /// The reasons that somebody outside can give.
    pub const FROM_OUTSIDE: [Self; 4] = [Self::Interrupted, Self::TimeLimit, Self::GuestOff, Self::Failed];

    /// The reason without figures, as documents have it.
    pub const fn word(self) -> Stopped {
        match self {
            Self::Running => Stopped::Running,
            Self::StopTime => Stopped::StopTime,
            Self::Transactions(_) => Stopped::Transactions,
            Self::LoadsDone => Stopped::LoadsDone,
            Self::NothingMore => Stopped::NothingMore,
            Self::Stuck(_) => Stopped::Stuck,
            Self::GuestOff => Stopped::GuestOff,
            Self::Interrupted => Stopped::Interrupted,
            Self::TimeLimit => Stopped::TimeLimit,
            Self::Failed => Stopped::Failed,
        }
    }

    /// Its name in documents.
    pub const fn token(self) -> &'static str {
        self.word().token()
    }

    /// Did the run end because it got nowhere, though not all was done? Whoever waited then waits for ever.
    pub const fn is_deadlock(self) -> bool {
        match self {
            Self::NothingMore | Self::Stuck(_) => true,
            Self::Running
            | Self::StopTime
            | Self::Transactions(_)
            | Self::LoadsDone
            | Self::GuestOff
            | Self::Interrupted
            | Self::TimeLimit
            | Self::Failed => false,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("still running"),
            Self::StopTime => f.write_str("the stop time"),
            Self::Transactions(1) => f.write_str("1 transaction has ended"),
            Self::Transactions(count) => write!(f, "{count} transactions have ended"),
            Self::LoadsDone => f.write_str("all loads are done"),
            Self::NothingMore => f.write_str("no event is left"),
            Self::Stuck(since) => write!(f, "no transaction has ended since {since}"),
            Self::GuestOff => f.write_str("the guest is off"),
            Self::Interrupted => f.write_str("interrupt"),
            Self::TimeLimit => f.write_str("the wall-clock time limit"),
            Self::Failed => f.write_str("a device or driver failed"),
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.word().serialize(serializer)
    }
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
    let stop = STOP.read_into(&table, Stop::default())?;
    match stop.time {
        None if stop.transactions.is_none() => {
            let problem = Problem::new("neither time nor transactions is set");
            Err(view.problem(problem.hint("write stop = \"200us\" or stop = { transactions = 10000 }")))
        }
        Some(time) if time <= warmup => {
            let problem = Problem::new(format!("the run stops at {time}, before anything is counted"));
            Err(view.problem(problem.hint(format!("warmup is {warmup}, so stop later"))))
        }
        _ => Ok(stop),
    }
}
