//! Reading a checked tree: every value knows its dotted key, so that what is found later can still be said exactly.

use crate::check;
use crate::choices::Choice;
use crate::error::{At, Error, Problem, Sources};
use crate::keys::{self, Section};
use crate::tree::{Node, Value, join};
use tlplab_units::{Duration, Time, quantity};

/// A value in a tree, with its key.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) path: String,
    /// Where the key stands (or the value, in an array).
    pub(crate) key_at: At,
    pub(crate) node: &'a Node,
}

impl<'a> View<'a> {
    pub(crate) fn root(sources: &'a Sources, node: &'a Node) -> Self {
        Self { sources, path: String::new(), key_at: node.at, node }
    }
    /// The same place with another tree, for tables that were put together from several.
    pub(crate) fn with<'b>(&self, node: &'b Node) -> View<'b>
    where
        'a: 'b,
    {
        View { sources: self.sources, path: self.path.clone(), key_at: self.key_at, node }
    }
    pub(crate) fn get(&self, key: &str) -> Option<View<'a>> {
        let entry = self.node.as_table()?.get(key)?;
        Some(View {
            sources: self.sources,
            path: join(&self.path, key),
            key_at: entry.key_at,
            node: &entry.node,
        })
    }
    /// The entries of a table, by name.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, View<'a>)> {
        let this = self.clone();
        self.node.as_table().into_iter().flatten().map(move |(name, entry)| {
            let view = View {
                sources: this.sources,
                path: join(&this.path, name),
                key_at: entry.key_at,
                node: &entry.node,
            };
            (name.as_str(), view)
        })
    }
    /// The items of an array.
    pub(crate) fn items(&self) -> Vec<View<'a>> {
        let Value::Array(items) = &self.node.value else { return Vec::new() };
        let view = |(index, node): (usize, &'a Node)| View {
            sources: self.sources,
            path: join(&self.path, &index.to_string()),
            key_at: node.at,
            node,
        };
        items.iter().enumerate().map(view).collect()
    }
    /// This table with the defaults of its section.
    pub(crate) fn filled(&self, section: &Section) -> Result<Node, Error> {
        let mut node = self.node.clone();
        check::fill(self.sources, &mut node, section)?;
        Ok(node)
    }

    pub(crate) fn is_default(&self) -> bool {
        self.node.at == At::DEFAULT
    }
    pub(crate) fn text(&self) -> &'a str {
        self.node.as_str().unwrap_or_default()
    }
    pub(crate) fn text_of(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.node.as_str()
    }
    /// What this word stands for.
    pub(crate) fn chosen<T: Choice>(&self) -> Result<T, Error> {
        let known = T::WORDS.iter().find(|(word, _)| *word == self.text());
        known.map(|(_, value)| *value).ok_or_else(|| self.problem(keys::no_choice(T::NAMES, self.text())))
    }
    /// What the word under `key` stands for; `None` without the key.
    pub(crate) fn choice<T: Choice>(&self, key: &str) -> Result<Option<T>, Error> {
        self.get(key).map(|word| word.chosen()).transpose()
    }
    pub(crate) fn integer(&self, key: &str) -> Option<u64> {
        match self.get(key)?.node.value {
            Value::Integer(n) => u64::try_from(n).ok(),
            _ => None,
        }
    }
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        match self.get(key)?.node.value {
            Value::Float(x) => Some(x),
            _ => None,
        }
    }
    pub(crate) fn boolean(&self, key: &str) -> Option<bool> {
        match self.get(key)?.node.value {
            Value::Boolean(b) => Some(b),
            _ => None,
        }
    }
    pub(crate) fn duration(&self, key: &str) -> Option<Duration> {
        quantity::time(self.text_of(key)?).ok()
    }
    pub(crate) fn instant(&self, key: &str) -> Option<Time> {
        self.duration(key).map(|d| Time::from_fs(d.as_fs()))
    }
    pub(crate) fn size(&self, key: &str) -> Option<u64> {
        quantity::size(self.text_of(key)?).ok()
    }
    pub(crate) fn rate(&self, key: &str) -> Option<u64> {
        quantity::rate(self.text_of(key)?).ok()
    }
    pub(crate) fn address(&self, key: &str) -> Option<u64> {
        keys::address(self.get(key)?.node).ok()
    }

    /// A mistake in the value.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        self.problem(Problem::new(message))
    }
    pub(crate) fn problem(&self, problem: Problem) -> Error {
        let at = if self.is_default() { self.key_at } else { self.node.at };
        self.sources.error(at, &self.path, problem)
    }
    /// A mistake in the key itself.
    pub(crate) fn key_error(&self, problem: Problem) -> Error {
        self.sources.error(self.key_at, &self.path, problem)
    }
    /// The value under `key`, or a mistake that shows how to write it.
    pub(crate) fn require(&self, section: &Section, key: &str) -> Result<View<'a>, Error> {
        self.get(key).ok_or_else(|| {
            let example = section.keys.iter().find(|k| k.name == key).map_or("", |k| k.example);
            self.key_error(
                Problem::new(format!("{key} is missing")).hint(format!("for example {key} = {example}")),
            )
        })
    }
}
