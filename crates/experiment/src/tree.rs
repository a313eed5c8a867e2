//! TOML text as a tree that knows where each value stands, and how trees of several files become one.

use crate::error::{At, Error, Problem, Sources};
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) value: Value,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Datetime,
    Array(Vec<Node>),
    Table(Table),
}

/// A table: the key's own place is kept, for messages about keys.
pub(crate) type Table = BTreeMap<String, Entry>;

/// The entry under a key.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key_at: At,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn table(at: At) -> Self {
        Self { at, value: Value::Table(Table::new()) }
    }
    pub(crate) fn string(at: At, text: impl Into<String>) -> Self {
        Self { at, value: Value::String(text.into()) }
    }
    pub(crate) fn as_table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }
    pub(crate) fn as_table_mut(&mut self) -> Option<&mut Table> {
        if let Value::Table(table) = &mut self.value { Some(table) } else { None }
    }
    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = &self.value { Some(text) } else { None }
    }
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.as_table()?.get(key).map(|entry| &entry.node)
    }
    /// Its kind, with its value where that is short: `the integer 5`.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::String(text) => format!("the string {text:?}"),
            Value::Integer(n) => format!("the integer {n}"),
            Value::Float(x) => format!("the number {x}"),
            Value::Boolean(b) => format!("the boolean {b}"),
            Value::Datetime => "a date".into(),
            Value::Array(_) => "an array".into(),
            Value::Table(_) => "a table".into(),
        }
    }
}

/// Reads a whole file.
pub(crate) fn parse(sources: &Sources, file: usize, text: &str) -> Result<Node, Error> {
    let document = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let at = At { file, offset: span.start };
        match (error.message(), text.get(span)) {
            ("duplicate key", Some(key)) => {
                let problem = Problem::new(format!("\"{key}\" is defined twice"));
                sources.error(at, "", problem.hint("names and keys are unique"))
            }
            (message, _) => sources.error(at, "", Problem::new(one_line(message))),
        }
    })?;
    let at = At { file, offset: document.span().start };
    Ok(Node { at, value: Value::Table(table(sources, file, document.get_ref())?) })
}

/// Reads one value, as it stands after a `=`.
pub(crate) fn parse_value(sources: &Sources, file: usize, text: &str) -> Result<Node, Error> {
    let value = DeValue::parse(text).map_err(|error| {
        sources.error(At { file, offset: 0 }, "", Problem::new(one_line(error.message())))
    })?;
    node(sources, file, value.span().start, value.get_ref())
}

fn one_line(message: &str) -> String {
    format!("this is not TOML: {}", message.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn table(sources: &Sources, file: usize, table: &DeTable<'_>) -> Result<Table, Error> {
    let mut out = Table::new();
    for (key, value) in table {
        let key_at = At { file, offset: key.span().start };
        let node = node(sources, file, value.span().start, value.get_ref())?;
        out.insert(key.get_ref().to_string(), Entry { key_at, node });
    }
    Ok(out)
}

fn node(sources: &Sources, file: usize, offset: usize, value: &DeValue<'_>) -> Result<Node, Error> {
    let at = At { file, offset };
    let value = match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
            Ok(n) => Value::Integer(n),
            Err(_) => {
                return Err(sources.error(at, "", Problem::new(format!("{n} does not fit in 64 bits"))));
            }
        },
        DeValue::Float(x) => Value::Float(x.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| node(sources, file, item.span().start, item.get_ref()))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(inner) => Value::Table(table(sources, file, inner)?),
    };
    Ok(Node { at, value })
}

/// Lays `over` upon `base`: tables merge key by key, arrays of tables are joined, any other value of `over` wins.
pub(crate) fn merge(base: &mut Node, over: Node) {
    match (&mut base.value, over.value) {
        (Value::Table(below), Value::Table(above)) => {
            for (key, entry) in above {
                match below.get_mut(&key) {
                    Some(existing) => {
                        merge(&mut existing.node, entry.node);
                        existing.key_at = entry.key_at;
                    }
                    None => {
                        below.insert(key, entry);
                    }
                }
            }
            base.at = over.at;
        }
        (Value::Array(below), Value::Array(above)) => below.extend(above),
        (slot, value) => {
            *slot = value;
            base.at = over.at;
        }
    }
}

/// The first key, dotted, that both trees set to a value (tables merge, so they are no conflict), with its place in `b`.
pub(crate) fn conflict(a: &Node, b: &Node, path: &str) -> Option<(String, At, At)> {
    match (&a.value, &b.value) {
        (Value::Table(left), Value::Table(right)) => right.iter().find_map(|(key, entry)| {
            let other = left.get(key)?;
            conflict(&other.node, &entry.node, &join(path, key))
        }),
        (Value::Array(_), Value::Array(_)) => None,
        _ => Some((path.into(), a.at, b.at)),
    }
}

/// The tree on one line, in one form: what means the same is written the same, wherever it came from.
pub(crate) fn canonical(node: &Node) -> String {
    match &node.value {
        Value::String(text) => format!("{text:?}"),
        Value::Integer(n) => n.to_string(),
        Value::Float(x) => format!("{x:?}"),
        Value::Boolean(b) => b.to_string(),
        Value::Datetime => "date".into(),
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Table(table) => {
            let pairs = table.iter().map(|(key, entry)| format!("{key:?}={}", canonical(&entry.node)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
        }
    }
}

/// `path.key`
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}
