#![no_main]
//! Expressions of studies: whatever is written, it is read or refused with a column in it, and worked out in time. The grammar stands here without
//! the crate around it, which would bring the simulator.

#[allow(dead_code, unused_imports)]
#[path = "../../crates/study/src/expression/mod.rs"]
mod expression;
#[path = "../../crates/study/src/unit.rs"]
mod unit;

use expression::{Expression, Kind, Value};
use unit::Unit;

fn value_of(name: &str) -> Value {
    match name.len() % 5 {
        0 => Value::Number(256.0, Unit::SIZE),
        1 => Value::Number(1e-3, Unit::NONE),
        2 => Value::Number(90e9, Unit::RATE),
        3 => Value::Truth(true),
        _ => Value::Text(name.to_owned()),
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Expression::parse(text) {
        Err(mistake) => assert!(mistake.column <= text.chars().count() + 1 && !mistake.message.is_empty()),
        Ok(expression) => {
            let kind = expression.kind(&|name| {
                Ok(match value_of(name) {
                    Value::Number(_, unit) => Kind::Number(unit),
                    Value::Truth(_) => Kind::Truth,
                    Value::Text(_) => Kind::Text,
                })
            });
            let value = expression.evaluate(&|name| Some(value_of(name)));
            // What is of one kind gives it, or nothing where something is divided by zero or too large.
            match (kind, value) {
                (Ok(Kind::Number(unit)), Some(Value::Number(number, of))) => {
                    assert!(unit == of && !number.is_nan())
                }
                (Ok(Kind::Truth), Some(Value::Truth(_)))
                | (Ok(Kind::Text), Some(Value::Text(_)))
                | (_, None)
                | (Err(_), _) => {}
                (kind, value) => panic!("{kind:?} {value:?}"),
            }
            assert!(
                expression
                    .names()
                    .iter()
                    .all(|(name, column)| !name.is_empty() && *column <= text.chars().count())
            );
        }
    }
});
