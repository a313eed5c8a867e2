//! Characters become words, each with its place.

use super::{Mistake, Value};
use crate::unit::Unit;

/// A word of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Value(Value),
    Name(String),
    Sign(&'static str),
    End,
}

/// The longer ones first.
const SIGNS: [&str; 13] = ["<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")", ","];
const UNITS: &str =
    "units are fs ps ns us ms s, B KiB MiB GiB kB MB GB, b/s kb/s Mb/s Gb/s Tb/s, Hz kHz MHz GHz, and %";

/// All words of a text, with the characters they begin at; the last is [`Word::End`].
pub(super) fn words(text: &str) -> Result<Vec<(usize, Word)>, Mistake> {
    let mut reader = Reader { characters: text.chars().collect(), at: 0 };
    let mut words = Vec::new();
    loop {
        reader.skip(char::is_whitespace);
        let at = reader.at;
        let word = reader.word()?;
        let ends = word == Word::End;
        words.push((at, word));
        if ends {
            return Ok(words);
        }
    }
}

struct Reader {
    characters: Vec<char>,
    at: usize,
}

impl Reader {
    fn look(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.look(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let begin = self.at;
        self.skip(wanted);
        self.characters[begin..self.at].iter().collect()
    }

    fn word(&mut self) -> Result<Word, Mistake> {
        match self.look(0) {
            None => Ok(Word::End),
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => Ok(self.name()),
            Some(c @ ('"' | '\'')) => self.text(c),
            Some(c) => self.sign(c),
        }
    }

    fn name(&mut self) -> Word {
        let name = self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        match name.as_str() {
            "true" => Word::Value(Value::Truth(true)),
            "false" => Word::Value(Value::Truth(false)),
            _ => Word::Name(name),
        }
    }

    fn text(&mut self, quote: char) -> Result<Word, Mistake> {
        let begin = self.at;
        self.at += 1;
        let text = self.take(|c| c != quote);
        if self.look(0).is_none() {
            return Err(Mistake::new(begin, "the closing quote is missing")
                .hint(format!("add {quote} at the end of the text")));
        }
        self.at += 1;
        Ok(Word::Value(Value::Text(text)))
    }

    fn sign(&mut self, first: char) -> Result<Word, Mistake> {
        let second = self.look(1);
        for sign in SIGNS {
            let mut wanted = sign.chars();
            let (begins, then) = (wanted.next() == Some(first), wanted.next());
            if begins && (then.is_none() || then == second) {
                self.at += sign.len();
                return Ok(Word::Sign(sign));
            }
        }
        let mistake = Mistake::new(self.at, format!("unexpected {first:?}"));
        Err(match first {
            '=' => mistake.hint("compare with =="),
            '&' => mistake.hint("write and"),
            '|' => mistake.hint("write or"),
            '!' => mistake.hint("write not"),
            '≤' => mistake.hint("write <="),
            '≥' => mistake.hint("write >="),
            '^' => mistake.hint("write a product"),
            _ => mistake.hint("expected numbers, names, texts, + - * / ( ) , < <= > >= == != and, or, not"),
        })
    }

    /// A number, with the unit behind it if there is one.
    fn number(&mut self) -> Result<Word, Mistake> {
        let begin = self.at;
        let mut number = self.take(|c| c.is_ascii_digit() || c == '_').replace('_', "");
        if self.look(0) == Some('.') && self.look(1).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
            number += ".";
            number += &self.take(|c| c.is_ascii_digit());
        }
        let exponent = usize::from(matches!(self.look(1), Some('+' | '-'))) + 1;
        let mut whole = number.clone();
        if matches!(self.look(0), Some('e' | 'E')) && self.look(exponent).is_some_and(|c| c.is_ascii_digit())
        {
            whole += &self.characters[self.at..self.at + exponent].iter().collect::<String>();
            self.at += exponent;
            whole += &self.take(|c| c.is_ascii_digit());
        }
        let after = self.at;
        self.skip(|c| c == ' ');
        let place = self.at;
        let word = self.unit();
        if word.is_empty() || matches!(word.as_str(), "and" | "or") {
            self.at = after;
            let value = whole.parse().ok().filter(|value: &f64| value.is_finite());
            let value = value.ok_or_else(|| Mistake::new(begin, format!("{whole} is too large")))?;
            return Ok(Word::Value(Value::Number(value, Unit::NONE)));
        }
        if whole != number {
            return Err(Mistake::new(begin, "a number with a unit cannot have an exponent")
                .hint("write it out, or use a larger unit"));
        }
        let found = Unit::read(&number, &word);
        let (value, unit) = found.ok_or_else(|| {
            let known = Unit::read("1", &word).is_some();
            let why = if known {
                format!("{number}{word} cannot be represented exactly")
            } else {
                format!("unknown unit {word:?}")
            };
            Mistake::new(place, why).hint(UNITS)
        })?;
        Ok(Word::Value(Value::Number(value, unit)))
    }

    /// Letters that may be a unit: `Gb/s` is one word, `B/x` is not.
    fn unit(&mut self) -> String {
        if self.look(0) == Some('%') {
            self.at += 1;
            return "%".into();
        }
        let mut word = self.take(|c| c.is_alphabetic());
        let ends = !self.look(2).is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        if (word.ends_with('b') || word.ends_with('B'))
            && self.look(0) == Some('/')
            && self.look(1) == Some('s')
            && ends
        {
            self.at += 2;
            word += "/s";
        }
        word
    }
}
