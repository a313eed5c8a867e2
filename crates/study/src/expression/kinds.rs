//! The kind of an expression, before anything is known but the kinds of its names.

use super::{Expression, Function, Mistake, Node, Operator, Value, What};
use crate::unit::Unit;
use std::fmt;

/// The kind of a name or an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number with its unit.
    Number(Unit),
    /// True or false.
    Truth,
    /// A text.
    Text,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(Unit::NONE) => f.write_str("a plain number"),
            Self::Number(unit) => write!(f, "a number of {unit}"),
            Self::Truth => f.write_str("true or false"),
            Self::Text => f.write_str("a text"),
        }
    }
}

/// The mistake in a name, and the fix.
pub type NoName = (String, Option<String>);
type Checked = Result<Kind, Mistake>;

impl Expression {
    /// Its kind. `kind_of` gives the kind of each name, or its mistake: a message, and the fix.
    ///
    /// # Errors
    /// A name is not known; what is compared, added or called is not of one kind.
    pub fn kind(&self, kind_of: &dyn Fn(&str) -> Result<Kind, NoName>) -> Checked {
        check(&self.root, &|name, at| {
            kind_of(name).map_err(|(message, hint)| Mistake { column: at + 1, message, hint })
        })
    }
}

fn check(node: &Node, kind_of: &dyn Fn(&str, usize) -> Checked) -> Checked {
    match &node.what {
        What::Value(Value::Number(_, unit)) => Ok(Kind::Number(*unit)),
        What::Value(Value::Truth(_)) => Ok(Kind::Truth),
        What::Value(Value::Text(_)) => Ok(Kind::Text),
        What::Name(name) => kind_of(name, node.at),
        What::Negative(inner) => Ok(Kind::Number(number(inner, kind_of, "-")?)),
        What::Not(inner) => truth(inner, kind_of, "not"),
        What::Two(operator, left, right) => two(node, *operator, left, right, kind_of),
        What::Call(function, arguments) => {
            let name = match function {
                Function::Min => "min",
                Function::Max => "max",
                Function::Abs => "abs",
            };
            let first = number(&arguments[0], kind_of, name)?;
            for argument in &arguments[1..] {
                let other = number(argument, kind_of, name)?;
                if other != first {
                    return Err(differ(argument.at, name, Kind::Number(first), Kind::Number(other)));
                }
            }
            Ok(Kind::Number(first))
        }
    }
}

fn two(
    node: &Node,
    operator: Operator,
    left: &Node,
    right: &Node,
    kind_of: &dyn Fn(&str, usize) -> Checked,
) -> Checked {
    let sign = operator.sign();
    match operator {
        Operator::And | Operator::Or => {
            truth(left, kind_of, sign)?;
            truth(right, kind_of, sign)
        }
        Operator::Equal | Operator::Unequal => {
            let (a, b) = (check(left, kind_of)?, check(right, kind_of)?);
            if a == b { Ok(Kind::Truth) } else { Err(differ(node.at, sign, a, b)) }
        }
        Operator::Multiply | Operator::Divide => {
            let (a, b) = (number(left, kind_of, sign)?, number(right, kind_of, sign)?);
            let b = if operator == Operator::Divide { b.inverse() } else { Some(b) };
            let unit = b.and_then(|b| a.times(b));
            unit.map(Kind::Number)
                .ok_or_else(|| Mistake::new(node.at, "the unit of the result is not supported"))
        }
        _ => {
            let (a, b) = (number(left, kind_of, sign)?, number(right, kind_of, sign)?);
            if a != b {
                return Err(differ(node.at, sign, Kind::Number(a), Kind::Number(b)));
            }
            let adds = matches!(operator, Operator::Add | Operator::Subtract);
            Ok(if adds { Kind::Number(a) } else { Kind::Truth })
        }
    }
}

fn differ(at: usize, sign: &str, left: Kind, right: Kind) -> Mistake {
    let mistake = Mistake::new(at, format!("{sign} cannot combine {left} and {right}"));
    let example = |kind| match kind {
        Kind::Number(Unit::RATE) => Some("90 Gb/s"),
        Kind::Number(Unit::TIME) => Some("2 us"),
        Kind::Number(Unit::SIZE) => Some("4 KiB"),
        Kind::Number(Unit::FREQUENCY) => Some("10 MHz"),
        _ => None,
    };
    match (left, right) {
        (Kind::Text, _) | (_, Kind::Text) => mistake.hint("compare a text with a text in quotes"),
        (Kind::Number(Unit::NONE), other) | (other, Kind::Number(Unit::NONE)) => match example(other) {
            Some(example) => mistake.hint(format!("add a unit to the number, as in {example}")),
            None => mistake,
        },
        _ => mistake,
    }
}

fn number(node: &Node, kind_of: &dyn Fn(&str, usize) -> Checked, sign: &str) -> Result<Unit, Mistake> {
    match check(node, kind_of)? {
        Kind::Number(unit) => Ok(unit),
        kind => Err(Mistake::new(node.at, format!("{sign} takes numbers, but this is {kind}"))),
    }
}

fn truth(node: &Node, kind_of: &dyn Fn(&str, usize) -> Checked, sign: &str) -> Checked {
    match check(node, kind_of)? {
        Kind::Truth => Ok(Kind::Truth),
        kind => {
            let mistake = Mistake::new(node.at, format!("{sign} takes conditions, but this is {kind}"));
            Err(mistake.hint("compare it with something"))
        }
    }
}
