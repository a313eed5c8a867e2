//! The value of an expression at one point.

use super::{Expression, Function, Node, Operator, What};
use crate::unit::Unit;

/// A value of a metric, of an axis, or of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number and its unit.
    Number(f64, Unit),
    /// True or false.
    Truth(bool),
    /// A text.
    Text(String),
}

impl Value {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        if let Self::Number(number, _) = self { Some(*number) } else { None }
    }
}

impl Expression {
    /// Its value, where `value_of` gives the value of each name. `None` where a name has none, where something is divided by zero,
    /// and where kinds differ, which [`Expression::kind`] tells before.
    pub fn evaluate(&self, value_of: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
        evaluate(&self.root, value_of)
    }
}

type ValueOf<'a> = &'a dyn Fn(&str) -> Option<Value>;

fn evaluate(node: &Node, value_of: ValueOf<'_>) -> Option<Value> {
    match &node.what {
        What::Value(value) => Some(value.clone()),
        What::Name(name) => value_of(name),
        What::Negative(inner) => {
            let (number, unit) = number(inner, value_of)?;
            Some(Value::Number(-number, unit))
        }
        What::Not(inner) => Some(Value::Truth(!truth(inner, value_of)?)),
        What::Two(operator, left, right) => two(*operator, left, right, value_of),
        What::Call(function, arguments) => {
            let mut numbers =
                arguments.iter().map(|one| number(one, value_of)).collect::<Option<Vec<_>>>()?.into_iter();
            let (first, unit) = numbers.next()?;
            let of = match function {
                Function::Abs => first.abs(),
                Function::Min => numbers.fold(first, |least, (number, _)| least.min(number)),
                Function::Max => numbers.fold(first, |most, (number, _)| most.max(number)),
            };
            Some(Value::Number(of, unit))
        }
    }
}

fn two(operator: Operator, left: &Node, right: &Node, value_of: ValueOf<'_>) -> Option<Value> {
    match operator {
        Operator::And => return Some(Value::Truth(truth(left, value_of)? && truth(right, value_of)?)),
        Operator::Or => return Some(Value::Truth(truth(left, value_of)? || truth(right, value_of)?)),
        Operator::Equal | Operator::Unequal => {
            let same = evaluate(left, value_of)? == evaluate(right, value_of)?;
            return Some(Value::Truth(same == (operator == Operator::Equal)));
        }
        _ => {}
    }
    let ((a, unit), (b, other)) = (number(left, value_of)?, number(right, value_of)?);
    let number = |value: f64, unit| value.is_finite().then_some(Value::Number(value, unit));
    match operator {
        Operator::Add => number(a + b, unit),
        Operator::Subtract => number(a - b, unit),
        Operator::Multiply => number(a * b, unit.times(other)?),
        Operator::Divide => number(a / b, unit.times(other.inverse()?)?),
        Operator::Less => Some(Value::Truth(a < b)),
        Operator::AtMost => Some(Value::Truth(a <= b)),
        Operator::More => Some(Value::Truth(a > b)),
        Operator::AtLeast => Some(Value::Truth(a >= b)),
        Operator::Equal | Operator::Unequal | Operator::And | Operator::Or => None,
    }
}

fn number(node: &Node, value_of: ValueOf<'_>) -> Option<(f64, Unit)> {
    if let Value::Number(number, unit) = evaluate(node, value_of)? { Some((number, unit)) } else { None }
}

fn truth(node: &Node, value_of: ValueOf<'_>) -> Option<bool> {
    if let Value::Truth(truth) = evaluate(node, value_of)? { Some(truth) } else { None }
}
