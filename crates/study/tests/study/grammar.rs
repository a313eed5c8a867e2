//! Expressions: what they give, and where a mistake is.

use proptest::prelude::*;
use tlplab_study::expression::{Kind, LONGEST, Value};
use tlplab_study::unit::Unit;
use tlplab_study::{Expression, Named};

fn kind_of(name: &str) -> Result<Kind, (String, Option<String>)> {
    match name {
        "a" | "b" | "a-b" => Ok(Kind::Number(Unit::NONE)),
        "rate" => Ok(Kind::Number(Unit::RATE)),
        "x.latency.p99" => Ok(Kind::Number(Unit::TIME)),
        "mps" => Ok(Kind::Number(Unit::SIZE)),
        "yes" => Ok(Kind::Truth),
        "link" => Ok(Kind::Text),
        _ => Err((format!("there is no {name}"), Some("did you mean a?".into()))),
    }
}

fn value_of(name: &str) -> Option<Value> {
    match name {
        "a" => Some(Value::Number(6.0, Unit::NONE)),
        "b" => Some(Value::Number(4.0, Unit::NONE)),
        "a-b" => Some(Value::Number(100.0, Unit::NONE)),
        "rate" => Some(Value::Number(90e9, Unit::RATE)),
        "x.latency.p99" => Some(Value::Number(1500.0, Unit::TIME)),
        "mps" => Some(Value::Number(256.0, Unit::SIZE)),
        "yes" => Some(Value::Truth(true)),
        "link" => Some(Value::Text("gen4 x4".into())),
        _ => None,
    }
}

fn number(text: &str) -> f64 {
    let expression = Expression::parse(text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
    expression.kind(&kind_of).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
    expression.evaluate(&value_of).unwrap().number().unwrap()
}

fn truth(text: &str) -> bool {
    let expression = Expression::parse(text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
    assert_eq!(expression.kind(&kind_of), Ok(Kind::Truth), "{text}");
    expression.evaluate(&value_of) == Some(Value::Truth(true))
}

#[test]
fn expressions_are_worked_out_as_people_do() {
    for (text, value) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("7 - 2 - 1", 4.0),
        ("24 / 4 / 2", 3.0),
        ("-a + 10", 4.0),
        ("- - 3", 3.0),
        ("a - b", 2.0),
        ("a-b", 100.0),
        ("a -b", 2.0),
        ("2a-b", f64::NAN),
        ("min(a, b, 5)", 4.0),
        ("max(a, b) / b", 1.5),
        ("abs(b - a)", 2.0),
        ("1.5e3", 1500.0),
        ("1_000", 1000.0),
        ("rate / 1 Gb/s", 90.0),
        ("x.latency.p99 / 1us", 1.5),
        ("mps / 1 KiB * 100 %", 0.25),
    ] {
        if value.is_nan() {
            assert!(Expression::parse(text).is_err(), "{text}");
        } else {
            assert_eq!(number(text), value, "{text}");
        }
    }
    for (text, value) in [
        ("rate >= 90Gb/s", true),
        ("rate > 90 Gb/s", false),
        ("x.latency.p99 < 2us and mps == 256 B", true),
        ("not yes or a != b", true),
        ("not (yes or a != b)", false),
        ("a > b == yes", false),
        ("link == 'gen4 x4'", true),
        ("link != \"gen4 x4\"", false),
        ("true and yes", true),
        ("2 < 3 and 3 < 2 or true", true),
    ] {
        if text == "a > b == yes" {
            assert!(Expression::parse(text).is_err());
        } else {
            assert_eq!(truth(text), value, "{text}");
        }
    }
    assert_eq!(
        Expression::parse("a / (b - 4)").unwrap().evaluate(&value_of),
        None,
        "nothing is divided by zero"
    );
    assert_eq!(Expression::parse("a + nowhere").unwrap().evaluate(&value_of), None);
}

#[test]
fn a_mistake_in_an_expression_has_its_column_and_fix() {
    for (text, told) in [
        ("", "column 1: the expression is empty; write a metric, such as throughput"),
        ("a +", "column 4: an operand is missing at the end"),
        ("a + * b", "column 5: an operand is missing before *"),
        ("a b", "column 3: an operator is missing before this; expected + - * / < <= > >= == != and, or"),
        ("(a + b", "column 7: a closing parenthesis is missing; it opens in column 1"),
        ("a)", "column 2: the opening parenthesis is missing"),
        ("a = b", "column 3: unexpected '='; compare with =="),
        ("a & b", "column 3: unexpected '&'; write and"),
        ("1 < a < 3", "column 7: comparisons cannot be chained; write a < b and b < c"),
        ("sqrt(a)", "column 1: unknown function sqrt; expected min, max or abs"),
        ("abs(a, b)", "column 1: abs takes one number"),
        ("'x", "column 1: the closing quote is missing; add ' at the end of the text"),
        ("a..b", "column 1: a..b is not a valid name; put dots between words, as in nic.latency.p99"),
        ("or a", "column 1: an operand is missing before or"),
        ("1e999", "column 1: 1e999 is too large"),
        (
            "2 < 1e3us",
            "column 5: a number with a unit cannot have an exponent; write it out, or use a larger unit",
        ),
        ("rate < 0.3 b/s", "column 12: 0.3b/s cannot be represented exactly; "),
        ("a < 3 parsec", "column 7: unknown unit \"parsec\"; units are fs ps ns us ms s, "),
    ] {
        let mistake = Expression::parse(text).unwrap_err().to_string();
        assert!(mistake.starts_with(told), "{text}: {mistake}");
    }
    for (text, told) in [
        ("a + c", "column 5: there is no c; did you mean a?"),
        (
            "rate > 90",
            "column 6: > cannot combine a number of b/s and a plain number; add a unit to the number, as in 90 Gb/s",
        ),
        ("rate > x.latency.p99", "column 6: > cannot combine a number of b/s and a number of ns"),
        ("rate + mps", "column 6: + cannot combine a number of b/s and a number of B"),
        ("link > 3", "column 1: > takes numbers, but this is a text"),
        (
            "link == 3",
            "column 6: == cannot combine a text and a plain number; compare a text with a text in quotes",
        ),
        (
            "yes and a",
            "column 9: and takes conditions, but this is a plain number; compare it with something",
        ),
        ("-yes", "column 2: - takes numbers, but this is true or false"),
        ("max(a, rate)", "column 8: max cannot combine a plain number and a number of b/s"),
    ] {
        let mistake = Expression::parse(text).unwrap().kind(&kind_of).unwrap_err().to_string();
        assert!(mistake.starts_with(told), "{text}: {mistake}");
    }
}

#[test]
fn units_follow_from_the_operations() {
    let unit = |text: &str| Named::parse(text).unwrap().unit.to_string();
    assert_eq!(unit("share = ssd.throughput / throughput"), "1");
    assert_eq!(unit("throughput / lanes"), "b/s");
    assert_eq!(unit("throughput * latency.mean"), "b/s·ns");
    assert_eq!(unit("nic.rate"), "1/s");
    assert_eq!(Named::parse("share = ssd.throughput / throughput").unwrap().name, "share");
    assert_eq!(Named::parse("throughput/lanes").unwrap().name, "throughput/lanes");
    let mistake = Named::parse("x = ssd.thruput").unwrap_err();
    assert_eq!((mistake.column, mistake.hint.as_deref()), (5, Some("did you mean ssd.throughput?")));
    let list = Named::parse_list("throughput, m = max(latency.p50, 1us), lanes").unwrap();
    assert_eq!(list.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["throughput", "m", "lanes"]);
    assert_eq!(Named::parse_list("throughput, m = max(latency.p50, 1)").unwrap_err().column, 34);
}

#[test]
fn too_deep_or_long_expressions_are_refused_without_overflow() {
    for deep in ["(", "-", "not ", "min("] {
        let mistake = Expression::parse(&deep.repeat(400)).unwrap_err();
        assert!(mistake.message.contains("nested more than"), "{mistake}");
    }
    let long = format!("a{}", "+a".repeat(LONGEST / 2 - 1));
    assert_eq!(number(&long), 6.0 * (LONGEST / 2) as f64);
    assert!(Expression::parse(&format!("{long}+a")).unwrap_err().message.contains("at most"));
}

proptest! {
    #[test]
    fn arbitrary_text_is_parsed_or_refused_in_a_column(text in "[a-c0-9 .+*/<>=!()&'\",%µé-]{0,40}|(min|not|and|or|true|1|2us|90 Gb/s|rate|link|a|b|[-+*/(),<>=])*") {
        match Expression::parse(&text) {
            Ok(expression) => {
                if expression.kind(&kind_of).is_ok() {
                    expression.evaluate(&value_of);
                }
                prop_assert_eq!(Expression::parse(expression.text()).unwrap().evaluate(&value_of), expression.evaluate(&value_of));
            }
            Err(mistake) => prop_assert!(mistake.column <= text.chars().count() + 1, "{}", mistake),
        }
    }
}
