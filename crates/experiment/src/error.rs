//! Mistakes, and the place in a file where each was made.

use std::fmt;

/// A mistake in an experiment: where it is, what is wrong, what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file as the caller named it, or `--set` for an override.
    pub file: String,
    /// Line, counted from 1; 0 where there is no line (an override, a file that cannot be read).
    pub line: u32,
    /// Column in characters, counted from 1; 0 where there is no line.
    pub column: u32,
    /// The dotted key, such as `switch.sw0.link`; empty for a syntax error.
    pub key: String,
    /// The fact.
    pub message: String,
    /// The fix, if it is known.
    pub hint: Option<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// A mistake in a value, before the value's place is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// A hint where there is none.
    pub(crate) fn or_hint(mut self, hint: String) -> Self {
        self.hint.get_or_insert(hint);
        self
    }
}

/// A place in one of the files of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    /// Index in [`Sources`].
    pub(crate) file: usize,
    /// Byte offset.
    pub(crate) offset: usize,
}

/// The files an experiment was read from, in the order in which they were read.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    files: Vec<Source>,
}

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: String,
    has_lines: bool,
    /// Comes with tlplab, so it is no part of what the user wrote.
    hidden: bool,
}

impl Default for Sources {
    /// Begins with one fragment, [`At::DEFAULT`], where values come from that nobody wrote.
    fn default() -> Self {
        Self {
            files: vec![Source {
                name: "(default)".into(),
                text: String::new(),
                has_lines: false,
                hidden: true,
            }],
        }
    }
}

impl At {
    /// The place of a default.
    pub(crate) const DEFAULT: Self = Self { file: 0, offset: 0 };
}

impl Sources {
    /// Adds a file; its index goes into [`At`].
    pub(crate) fn add(&mut self, name: &str, text: &str) -> usize {
        self.push(name, text, true)
    }
    /// Adds something that is no file, such as an override.
    pub(crate) fn add_fragment(&mut self, name: &str, text: &str) -> usize {
        self.push(name, text, false)
    }
    /// Adds a file that comes with tlplab.
    pub(crate) fn add_hidden(&mut self, name: &str, text: &str) -> usize {
        let file = self.push(name, text, true);
        self.files[file].hidden = true;
        file
    }
    fn push(&mut self, name: &str, text: &str, has_lines: bool) -> usize {
        self.files.push(Source { name: name.into(), text: text.into(), has_lines, hidden: false });
        self.files.len() - 1
    }
    pub(crate) fn name(&self, file: usize) -> &str {
        &self.files[file].name
    }
    /// A path relative to the file that says it; in an override, to the first file.
    pub(crate) fn beside(&self, at: At, path: &str) -> String {
        let file = &self.files[at.file];
        let from = if file.has_lines { file } else { &self.files[1] };
        join_path(&from.name, path)
    }
    /// Every file and override that the user gave, with its text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter(|s| !s.hidden).map(|s| (s.name.as_str(), s.text.as_str()))
    }
    /// File, line and column of a place.
    pub(crate) fn locate(&self, at: At) -> (String, u32, u32) {
        let source = &self.files[at.file];
        if !source.has_lines {
            return (source.name.clone(), 0, 0);
        }
        let before = source.text.get(..at.offset).unwrap_or(&source.text);
        let line_start = before.rfind('\n').map_or(0, |n| n + 1);
        let line = before.matches('\n').count() as u32 + 1;
        (source.name.clone(), line, before[line_start..].chars().count() as u32 + 1)
    }
    /// `file:line`, for messages that point at a second place.
    pub(crate) fn place(&self, at: At) -> String {
        match self.locate(at) {
            (file, 0, _) => file,
            (file, line, _) => format!("{file}:{line}"),
        }
    }
    pub(crate) fn error(&self, at: At, key: &str, problem: Problem) -> Error {
        let (file, line, column) = self.locate(at);
        Error { file, line, column, key: key.into(), message: problem.message, hint: problem.hint }
    }
}

/// `path`, relative to the file `from`.
pub(crate) fn join_path(from: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.into();
    }
    format!("{}{path}", from.rfind('/').map_or("", |slash| &from[..=slash]))
}

/// The word most like `word`, unless nothing is much like it.
pub(crate) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    words
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len().max(word.len()) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// `did you mean "x"?`, or the list of what there is.
pub(crate) fn suggest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>, what: &str) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    match nearest(word, words.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if words.is_empty() => format!("there are no {what}"),
        None => format!("{what} are {}", words.join(", ")),
    }
}
