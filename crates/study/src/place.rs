//! Places in a study's file, and mistakes that point at them.

use std::ops::Range;
use tlplab_experiment::Error;

/// A study's file: its name for messages, and its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Place<'_> {
    /// A mistake in the key that begins at `span`.
    pub(crate) fn mistake(
        &self,
        span: Range<usize>,
        key: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Error {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        Error {
            file: self.file.into(),
            line: before.matches('\n').count() as u32 + 1,
            column: before[start..].chars().count() as u32 + 1,
            key: key.into(),
            message: message.into(),
            hint,
        }
    }

    /// The message of the TOML reader.
    pub(crate) fn syntax(&self, error: &toml::de::Error) -> Error {
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        self.mistake(error.span().unwrap_or_default(), "", message, None)
    }
}

/// A mistake in a file as a whole, or in what was said on the command line.
pub(crate) fn whole(file: &str, key: &str, message: impl Into<String>, hint: Option<String>) -> Error {
    Error { file: file.into(), line: 0, column: 0, key: key.into(), message: message.into(), hint }
}
