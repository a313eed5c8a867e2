//! The resolved settings of an experiment, key by key, for the comparison of two of them.

use crate::check;
use crate::error::{Error, Sources};
use crate::keys::Keys;
use crate::tables;
use crate::tree::{Node, Value, join};
use std::collections::BTreeMap;

/// Values by their dotted keys, as `--set` takes both. A list of tables has its numbers in the keys; what is empty is left out.
pub type Settings = BTreeMap<String, serde_json::Value>;

/// Keys that make no difference to a run.
const IDLE: [&str; 4] = ["title", "expect", "include", "ladder"];
/// Tables of named tables that have defaults of their own.
const FILLED: [(&str, &dyn Keys); 3] =
    [("device", &tables::DEVICE), ("switch", &tables::SWITCH), ("load", &tables::LOAD)];

/// Every key of the tree with its value. Defaults of devices, switches and loads are among them; those of links are not, since a link may be
/// described in several places.
pub(crate) fn settings(sources: &Sources, root: &Node) -> Result<Settings, Error> {
    let mut root = root.clone();
    if let Some(table) = root.as_table_mut() {
        table.retain(|key, _| !IDLE.contains(&key.as_str()));
        for (key, section) in FILLED {
            let named = table.get_mut(key).and_then(|entry| entry.node.as_table_mut());
            for entry in named.into_iter().flat_map(|named| named.values_mut()) {
                check::fill(sources, &mut entry.node, section)?;
            }
        }
    }
    let mut found = Settings::new();
    gather(&root, "", &mut found);
    Ok(found)
}

fn gather(node: &Node, path: &str, found: &mut Settings) {
    match &node.value {
        Value::Table(table) => {
            for (key, entry) in table {
                gather(&entry.node, &join(path, key), found);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.as_table().is_some()) => {
            for (index, item) in items.iter().enumerate() {
                gather(item, &join(path, &index.to_string()), found);
            }
        }
        _ => {
            found.insert(path.to_owned(), plain(node));
        }
    }
}

fn plain(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::String(text) => text.clone().into(),
        Value::Integer(n) => (*n).into(),
        Value::Float(x) => (*x).into(),
        Value::Boolean(b) => (*b).into(),
        Value::Datetime => "date".into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Table(table) => table
            .iter()
            .map(|(key, entry)| (key.clone(), plain(&entry.node)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Experiment, Options};

    const TEXT: &str = r#"
        title = "One"
        stop = "20us"
        [device.ssd]
        under = "host.rp0"
        link = "gen3 x4"
        [[fault]]
        link = "ssd"
        direction = "up"
        ber = 1e-9
        [load]
        ssd = { op = "write", size = "4KiB" }
        [expect]
        throughput = "> 1 Gb/s"
    "#;

    fn settings(text: &str, set: &[&str], seed: Option<u64>) -> super::Settings {
        let options =
            Options { set: set.iter().map(|&one| one.to_owned()).collect(), seed, ..Options::default() };
        Experiment::parse_with(&|_| Ok(text.to_owned()), "one.toml", &options).unwrap().settings
    }

    #[test]
    fn defaults_and_overrides_are_among_them() {
        let found = settings(TEXT, &["device.ssd.mrrs=1024B"], Some(7));
        assert_eq!(found["device.ssd.mrrs"], "1024B");
        assert_eq!(found["device.ssd.link"], "gen3 x4");
        assert_eq!(found["fault.0.ber"], 1e-9);
        assert_eq!(found["seed"], 7);
        assert_eq!(found["device.ssd.model"], "dma", "a default");
        assert_eq!(found["host.profile"], "ideal", "another one");
        assert!(!found.keys().any(|key| key == "title" || key.starts_with("expect")));
    }

    /// A key at its default and an absent key are the same.
    #[test]
    fn a_key_at_its_default_equals_an_absent_key() {
        let said = settings(TEXT, &["device.ssd.model=dma", "seed=1", "title=Two"], None);
        assert_eq!(said, settings(TEXT, &[], None));
        assert_ne!(said, settings(TEXT, &["stop=21us"], None));
    }
}
