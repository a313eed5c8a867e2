//! Figures in words.

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

pub(super) fn one_decimal(number: f64) -> String {
    format!("{number:.1}")
}

pub(crate) fn nanoseconds(ns: f64) -> String {
    if ns < 1000.0 { format!("{ns:.1} ns") } else { format!("{:.2} us", ns / 1000.0) }
}

pub(crate) fn rate(bps: f64) -> String {
    match bps {
        b if b >= 1e9 => format!("{:.2} Gb/s", b / 1e9),
        b if b >= 1e6 => format!("{:.2} Mb/s", b / 1e6),
        b => format!("{:.2} kb/s", b / 1e3),
    }
}

/// Names that a sentence can hold; of more the first are told, and how many others there are.
const NAMES: usize = 8;

/// Of so many names, the number that is told.
fn told_of(names: usize) -> usize {
    if names > NAMES { NAMES - 2 } else { names }
}

pub(crate) fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        many if many.len() > NAMES => {
            let (told, others) = many.split_at(told_of(many.len()));
            format!("{} and {} others", told.join(", "), others.len())
        }
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// `link a → b` begins a sentence as `The link a → b`.
pub(crate) fn capital(resource: &str) -> String {
    let resource = resource.strip_prefix("the ").unwrap_or(resource);
    format!("The {resource}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_many_names_end_with_their_number() {
        let names: Vec<String> = (0..20).map(|n| format!("d{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(list(&names[..1]), "d0");
        assert_eq!(list(&names[..3]), "d0, d1 and d2");
        assert_eq!(list(&names[..8]), "d0, d1, d2, d3, d4, d5, d6 and d7");
        assert_eq!(list(&names[..9]), "d0, d1, d2, d3, d4, d5 and 3 others");
        assert_eq!(list(&names), "d0, d1, d2, d3, d4, d5 and 14 others");
    }
}
