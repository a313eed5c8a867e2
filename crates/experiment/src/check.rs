//! Refuses unknown keys and values of another kind, and fills in the defaults.

use crate::error::{At, Error, Problem, Sources, suggest};
use crate::keys::{Keys, Kind};
use crate::tree::{Entry, Node, Value, join};

/// Checks a whole tree against a kind and collects every mistake, in the order of the files.
pub(crate) fn check(sources: &Sources, node: &Node, kind: &Kind) -> Vec<Error> {
    let mut found = Vec::new();
    walk(sources, node, kind, "", &mut found);
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, error)| error).collect()
}

type Found = Vec<(At, Error)>;

fn walk(sources: &Sources, node: &Node, kind: &Kind, path: &str, found: &mut Found) {
    let mut refuse = |at: At, path: &str, problem: Problem| {
        found.push((at, sources.error(at, path, problem)));
    };
    match (kind, &node.value) {
        (Kind::OneOf(kinds), value) => {
            let possible: Vec<&Kind> = kinds.iter().filter(|kind| kind.takes(value)).collect();
            match (possible.iter().find(|kind| kind.check_scalar(node).is_ok()), possible.as_slice()) {
                (Some(kind), _) | (None, [kind]) => walk(sources, node, kind, path, found),
                (None, []) => refuse(node.at, path, kind.wrong_type(node)),
                (None, [others @ .., last]) => {
                    let others: Vec<String> = others.iter().map(|kind| kind.wanted()).collect();
                    if let Err(problem) = last.check_scalar(node) {
                        refuse(
                            node.at,
                            path,
                            problem.or_hint(format!("it may also be {}", others.join(", or "))),
                        );
                    }
                }
            }
        }
        (Kind::Table(section), Value::Table(_)) => walk_section(sources, node, *section, path, found),
        (Kind::Map { what, of }, Value::Table(table)) => {
            for (name, entry) in table {
                if let Err(problem) = check_name(what, name) {
                    let at = entry.key_at;
                    found.push((at, sources.error(at, &join(path, name), problem)));
                }
                walk(sources, &entry.node, of, &join(path, name), found);
            }
        }
        (Kind::List(of), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                walk(sources, item, of, &join(path, &index.to_string()), found);
            }
        }
        _ => {
            if let Err(problem) = kind.check_scalar(node) {
                refuse(node.at, path, problem);
            }
        }
    }
}

fn walk_section(sources: &Sources, node: &Node, section: &dyn Keys, path: &str, found: &mut Found) {
    let Some(table) = node.as_table() else { return };
    let (keys, open) = section.keys_for(table);
    for (name, entry) in table {
        let inner = join(path, name);
        match keys.iter().find(|key| key.name == name) {
            Some(key) => walk(sources, &entry.node, &key.kind, &inner, found),
            None if open => {}
            None => {
                let known = keys.iter().map(|k| k.name);
                let hint = suggest(name, known, &format!("the keys of {}", section.title()));
                let problem = Problem::new(format!("unknown key \"{name}\"")).hint(hint);
                found.push((entry.key_at, sources.error(entry.key_at, &inner, problem)));
            }
        }
    }
}

/// Names travel in result tables, dotted keys and file names: letters, digits, `-` and `_`.
fn check_name(what: &str, name: &str) -> Result<(), Problem> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(good) {
        return Ok(());
    }
    Err(Problem::new(format!("\"{name}\" is not a valid name for a {what}"))
        .hint("names begin with a letter and consist of letters, digits, - and _"))
}

/// Adds what a table leaves out and its section has a default for. The table has been checked.
pub(crate) fn fill(sources: &Sources, node: &mut Node, section: &dyn Keys) -> Result<(), Error> {
    let Some(table) = node.as_table_mut() else { return Ok(()) };
    let (keys, _) = section.keys_for(table);
    for key in keys {
        if table.contains_key(key.name) {
            continue;
        }
        if let Some(node) = key.default(sources)? {
            table.insert(key.name.into(), Entry { key_at: node.at, node });
        }
    }
    Ok(())
}
