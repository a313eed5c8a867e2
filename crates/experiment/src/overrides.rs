//! `--set key=value`: one value of the tree replaced, by its dotted key.

use crate::error::{At, Error, Problem, Sources, suggest};
use crate::hosts;
use crate::keys::{Key, Keys, Kind};
use crate::link;
use crate::tables;
use crate::tree::{self, Entry, Node, Value, join};

/// Sets `key` to `value`: TOML, or a bare string (`switch.sw0.link=gen4 x8`).
pub(crate) fn apply(sources: &mut Sources, root: &mut Node, key: &str, value: &str) -> Result<(), Error> {
    let value = value.trim();
    let file = sources.add_fragment("--set", &format!("{key} = {value}"));
    let node = match tree::parse_value(sources, file, value) {
        Ok(node) => node,
        Err(_) => Node::string(At { file, offset: 0 }, value),
    };
    let at = node.at;
    let path = steps(key);
    let result = if path.iter().any(|step| step.is_empty()) {
        Err((
            key.to_owned(),
            Problem::new("this is not a key").hint("write a dotted key such as switch.sw0.link"),
        ))
    } else if path == ["include"] {
        Err((
            key.to_owned(),
            Problem::new("files are included before keys are set").hint("write it in the experiment"),
        ))
    } else {
        set(root, &Kind::Table(&tables::EXPERIMENT), &path, String::new(), Given { node, text: value })
    };
    result.map_err(|(key, problem)| sources.error(at, &key, problem))
}

/// The names of a dotted key; one in quotation marks may have dots, as TOML writes it: `expect."nic.throughput"`.
fn steps(key: &str) -> Vec<&str> {
    let mut quote = None;
    let dots = key.split(|c| {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(mark), c) if mark == c => quote = None,
            _ => {}
        }
        quote.is_none() && c == '.'
    });
    dots.map(|step| {
        let step = step.trim();
        let bare = ['"', '\''].iter().find_map(|mark| step.strip_prefix(*mark)?.strip_suffix(*mark));
        bare.unwrap_or(step)
    })
    .collect()
}

type Refusal = (String, Problem);

/// A value as TOML reads it, and as it was written.
struct Given<'a> {
    node: Node,
    text: &'a str,
}

impl Given<'_> {
    /// The value of a key of this kind: some words, such as the vendor ID 8086, look like numbers.
    fn of(self, kind: &Kind) -> Node {
        match (kind, &self.node.value) {
            (Kind::Word(_), Value::Integer(_) | Value::Float(_)) => Node::string(self.node.at, self.text),
            _ => self.node,
        }
    }
}

fn set(node: &mut Node, kind: &Kind, path: &[&str], done: String, value: Given<'_>) -> Result<(), Refusal> {
    let Some((&step, rest)) = path.split_first() else {
        *node = value.of(kind);
        return Ok(());
    };
    lengthen(node, kind);
    let here = join(&done, step);
    let kind = table_kind(kind, &node.value);
    match (kind, &mut node.value) {
        (Some(Kind::Table(section)), Value::Table(table)) => {
            let (keys, open) = section.keys_for(table);
            let known = find(&keys, step, *section, &here);
            let inner = match known {
                Ok(key) => &key.kind,
                Err(_) if open => &Kind::Text,
                Err(refusal) => return Err(refusal),
            };
            let at = value.node.at;
            let entry =
                table.entry(step.into()).or_insert_with(|| Entry { key_at: at, node: empty(inner, at) });
            set(&mut entry.node, inner, rest, here, value)
        }
        (Some(Kind::Map { what, of }), Value::Table(table)) => {
            let at = value.node.at;
            // A whole table may be new (and so may a link's, which exists wherever its component does).
            let may_be_new = rest.is_empty() || *what == "link";
            if !may_be_new && !table.contains_key(step) {
                let names = table.keys().map(String::as_str);
                let hint = suggest(step, names, &format!("{}s", what));
                return Err((here, Problem::new(format!("there is no {what} \"{step}\"")).hint(hint)));
            }
            let entry =
                table.entry(step.into()).or_insert_with(|| Entry { key_at: at, node: Node::table(at) });
            set(&mut entry.node, of, rest, here, value)
        }
        (Some(Kind::Expected), Value::Table(figures)) => {
            let entry = Entry { key_at: value.node.at, node: value.of(&Kind::Expected) };
            figures.insert(path.join("."), entry);
            Ok(())
        }
        (Some(Kind::List(of)), Value::Array(items)) => {
            let hint = match items.len() {
                0 => format!("there is none; set {done} as a whole"),
                count => format!("there are {count}, counted from 0"),
            };
            let item = step.parse::<usize>().ok().and_then(|n| items.get_mut(n));
            let item =
                item.ok_or_else(|| (here.clone(), Problem::new(format!("there is no {here}")).hint(hint)))?;
            set(item, of, rest, here, value)
        }
        _ => {
            let problem = Problem::new(format!("{done} is {}, which has no keys", node.describe()));
            Err((here, problem.hint(format!("set {done} as a whole"))))
        }
    }
}

/// The value under a key before anything is set in it.
fn empty(kind: &Kind, at: At) -> Node {
    match kind {
        Kind::List(_) => Node { at, value: Value::Array(Vec::new()) },
        _ => Node::table(at),
    }
}

fn find<'k>(keys: &[&'k Key], name: &str, section: &dyn Keys, here: &str) -> Result<&'k Key, Refusal> {
    keys.iter().find(|key| key.name == name).copied().ok_or_else(|| {
        let hint = suggest(name, keys.iter().map(|k| k.name), &format!("the keys of {}", section.title()));
        (here.to_owned(), Problem::new(format!("unknown key \"{name}\"")).hint(hint))
    })
}

/// The form of a kind that a table or an array takes.
fn table_kind<'k>(kind: &'k Kind, value: &Value) -> Option<&'k Kind> {
    match kind {
        Kind::OneOf(kinds) => kinds.iter().find(|kind| kind.takes(value)),
        kind => kind.takes(value).then_some(kind),
    }
}

/// Turns a value in its short form into a table, so that one key of it can be set.
fn lengthen(node: &mut Node, kind: &Kind) {
    let Kind::OneOf(kinds) = kind else { return };
    for kind in *kinds {
        let Kind::Table(section) = kind else { continue };
        if std::ptr::addr_eq(*section, &tables::LINK) {
            link::expand(node);
        } else if std::ptr::addr_eq(*section, &tables::HOST) {
            hosts::expand(node);
        } else if std::ptr::addr_eq(*section, &tables::STOP) {
            crate::stop::expand(node);
        }
    }
}
