//! Reading a checked tree: every value knows its dotted key, so that what is found later can still be said exactly.

use crate::choices::Choice;
use crate::error::{At, Error, Problem, Sources};
use crate::keys::{self, Keys, Kind};
use crate::tree::{Node, Value, join};
use tlplab_units::{Duration, quantity};

/// A value in a tree, with its key.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) path: String,
    /// The place of the key (or of the value, in an array).
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
    /// The place of a key; of the whole table, where it is absent.
    pub(crate) fn at(&self, key: &str) -> View<'a> {
        self.get(key).unwrap_or_else(|| self.clone())
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
    /// The default of one of its keys, as a value of it.
    pub(crate) fn default<'b>(&self, key: &str, default: &'b Node) -> View<'b>
    where
        'a: 'b,
    {
        View { sources: self.sources, path: join(&self.path, key), key_at: default.at, node: default }
    }

    pub(crate) fn is_default(&self) -> bool {
        self.node.at == At::DEFAULT
    }
    pub(crate) fn text(&self) -> &'a str {
        self.node.as_str().unwrap_or_default()
    }
    /// The choice of this word.
    pub(crate) fn chosen<T: Choice>(&self) -> Result<T, Error> {
        self.choice().ok_or_else(|| self.problem(keys::no_choice(T::NAMES, self.text())))
    }
    /// The choice of this word, if it is one of the words.
    pub(crate) fn choice<T: Choice>(&self) -> Option<T> {
        T::WORDS.iter().find(|(word, _)| *word == self.text()).map(|(_, value)| *value)
    }
    pub(crate) fn time(&self) -> Result<Duration, Error> {
        quantity::time(self.text()).map_err(|error| self.error(error.to_string()))
    }
    /// A size.
    pub(crate) fn bytes(&self) -> Result<u64, Error> {
        quantity::size(self.text()).map_err(|error| self.error(error.to_string()))
    }
    /// A size that is one of a few.
    pub(crate) fn bytes_of<T>(&self, of: impl Fn(u32) -> Option<T>) -> Result<T, Error> {
        let known = u32::try_from(self.bytes()?).ok().and_then(of);
        known.ok_or_else(|| self.error(format!("unsupported size {}", self.text())))
    }
    pub(crate) fn rate(&self) -> Result<u64, Error> {
        quantity::rate(self.text()).map_err(|error| self.error(error.to_string()))
    }
    pub(crate) fn address(&self) -> Result<u64, Error> {
        keys::address(self.node).map_err(|problem| self.problem(problem))
    }
    /// A string with a form of its own, by what reads that form.
    pub(crate) fn word<T>(&self, parse: impl Fn(&str) -> Result<T, Problem>) -> Result<T, Error> {
        parse(self.text()).map_err(|problem| self.problem(problem))
    }
    /// An array of such strings.
    pub(crate) fn words<T>(&self, parse: impl Fn(&str) -> Result<T, Problem>) -> Result<Vec<T>, Error> {
        self.items().iter().map(|item| item.word(&parse)).collect()
    }
    /// An array of strings.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.items().iter().map(|item| item.text().to_owned()).collect()
    }
    /// A whole number that stands for something.
    pub(crate) fn whole_of<T>(&self, of: impl Fn(i64) -> Result<T, Problem>) -> Result<T, Error> {
        of(self.whole()?).map_err(|problem| self.problem(problem))
    }
    /// A whole number.
    pub(crate) fn whole<N: TryFrom<i64>>(&self) -> Result<N, Error> {
        let whole = if let Value::Integer(n) = self.node.value { N::try_from(n).ok() } else { None };
        whole.ok_or_else(|| self.error(format!("{} is out of range", self.node.describe())))
    }
    pub(crate) fn number(&self) -> Result<f64, Error> {
        if let Value::Float(x) = self.node.value { Ok(x) } else { Err(self.wrong(&Kind::Probability)) }
    }
    pub(crate) fn boolean(&self) -> Result<bool, Error> {
        if let Value::Boolean(b) = self.node.value { Ok(b) } else { Err(self.wrong(&Kind::Boolean)) }
    }
    /// The path of a file that it names, relative to the file in which it stands.
    pub(crate) fn file(&self) -> String {
        self.beside(self.text())
    }
    /// `file`, relative to the file in which this stands.
    pub(crate) fn beside(&self, file: &str) -> String {
        self.sources.beside(self.node.at, file)
    }

    fn wrong(&self, kind: &Kind) -> Error {
        self.problem(kind.wrong_type(self.node))
    }
    /// Its own key.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
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
    pub(crate) fn require(&self, keys: &dyn Keys, key: &str) -> Result<View<'a>, Error> {
        self.get(key).ok_or_else(|| self.missing(keys, key))
    }
    /// The mistake that `key` is not there.
    pub(crate) fn missing(&self, keys: &dyn Keys, key: &str) -> Error {
        let example = keys.keys().iter().find(|k| k.name == key).map_or("", |k| k.example);
        let problem = Problem::new(format!("{key} is missing"));
        self.key_error(problem.hint(format!("for example {key} = {example}")))
    }
}
