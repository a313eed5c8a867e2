//! Expressions over metrics and axes: `ssd.throughput / throughput`, `nic.latency.p99 <= 2us and lanes < 16`.
//!
//! ```text
//! expression = or
//! or         = and { "or" and }
//! and        = not { "and" not }
//! not        = "not" not | comparison
//! comparison = sum [ ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum ]
//! sum        = product { ( "+" | "-" ) product }
//! product    = sign { ( "*" | "/" ) sign }
//! sign       = "-" sign | value
//! value      = number [ unit ] | text | "true" | "false" | name | function "(" expression { "," expression } ")" | "(" expression ")"
//! function   = "min" | "max" | "abs"
//! ```
//!
//! A name is letters, digits, `_`, `-` and dots, as components and keys have them; a minus that subtracts has a space before it. Nothing
//! else can be said: an expression reads numbers and gives one, ends, and can do nothing to anybody. What is compared or added has the
//! same unit, or [`Expression::kind`] says where it has not.

mod evaluate;
mod kinds;
mod lexer;
mod parser;

pub use evaluate::Value;
pub use kinds::{Kind, NoName};

use std::fmt;

/// Expressions are no longer than this: nobody writes such, and what is read is never deep.
pub const LONGEST: usize = 2_000;

/// An expression that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
}

/// A mistake in an expression, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Column in characters, from 1.
    pub column: usize,
    /// The fact.
    pub message: String,
    /// The fix.
    pub hint: Option<String>,
}

impl Mistake {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { column: at + 1, message: message.into(), hint: None }
    }
    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

/// A part of an expression, and the character it begins at (of an operation, the operator's).
#[derive(Clone, Debug, PartialEq)]
struct Node {
    at: usize,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Value(Value),
    Name(String),
    Negative(Box<Node>),
    Not(Box<Node>),
    Two(Operator, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Unequal,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Min,
    Max,
    Abs,
}

impl Operator {
    const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::And => "and",
            Self::Or => "or",
        }
    }
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// The mistake, and its place.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        if text.chars().count() > LONGEST {
            return Err(Mistake::new(LONGEST, format!("an expression has at most {LONGEST} characters")));
        }
        Ok(Self { text: text.trim().to_owned(), root: parser::parse(text)? })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names in it, each with its column, in their order.
    pub fn names(&self) -> Vec<(&str, usize)> {
        let mut found = Vec::new();
        collect(&self.root, &mut found);
        found
    }

    /// The sign, and the character it is at, if it compares two things and does nothing else.
    pub(crate) fn comparison(&self) -> Option<(&'static str, usize)> {
        use Operator::{AtLeast, AtMost, Equal, Less, More, Unequal};
        match &self.root.what {
            What::Two(operator @ (Less | AtMost | More | AtLeast | Equal | Unequal), _, _) => {
                Some((operator.sign(), self.root.at))
            }
            _ => None,
        }
    }

    /// The name that it is, if it is nothing else.
    pub fn as_name(&self) -> Option<&str> {
        if let What::Name(name) = &self.root.what { Some(name) } else { None }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn collect<'a>(node: &'a Node, found: &mut Vec<(&'a str, usize)>) {
    match &node.what {
        What::Value(_) => {}
        What::Name(name) => found.push((name, node.at + 1)),
        What::Negative(inner) | What::Not(inner) => collect(inner, found),
        What::Two(_, left, right) => {
            collect(left, found);
            collect(right, found);
        }
        What::Call(_, arguments) => arguments.iter().for_each(|argument| collect(argument, found)),
    }
}
