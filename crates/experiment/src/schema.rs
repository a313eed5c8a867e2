//! The JSON Schema of an experiment file, for editors; and the reference of its keys.

use crate::device_models::MODELS;
use crate::keys::{Key, Keys, Kind};
use crate::tables;
use serde_json::{Map, Value, json};
use tlplab_units::{Generation, Width};

const TIME: &str = r"^\s*\d[\d_]*(\.\d+)?\s*(fs|ps|ns|us|µs|ms|s)\s*$";
const SIZE: &str = r"^\s*\d[\d_]*(\.\d+)?\s*(B|KiB|MiB|GiB|TiB|kB|MB|GB)\s*$";
const RATE: &str = r"^\s*\d[\d_]*(\.\d+)?\s*([kMGT]?b/s|[kMG]?B/s)\s*$";

/// The JSON Schema (draft 7, which TOML editors understand) of an experiment.
pub fn schema() -> Value {
    let mut schema = section(&tables::EXPERIMENT, &[]);
    let map = schema.as_object_mut().expect("a section is an object");
    map.insert("$schema".into(), "http://json-schema.org/draft-07/schema#".into());
    map.insert("title".into(), "tlplab experiment".into());
    map.insert("definitions".into(), definitions().into());
    schema
}

/// The tables of the grammar, which refer to each other by name.
fn definitions() -> Map<String, Value> {
    let define = |table: &dyn Keys| match table.extra() {
        Some(_) => device(table),
        None => section(table, &[]),
    };
    // The first is the whole file.
    let tables = tables::ALL.iter().skip(1);
    let mut out: Map<String, Value> = tables.map(|(_, table)| (name(*table), define(*table))).collect();
    let whole: Vec<(String, Value)> = out
        .iter()
        .filter(|(_, section)| section.get("required").is_some())
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    for (name, mut section) in whole {
        require_nothing(&mut section);
        refer_to_parts(&mut out["machine"], &name);
        out.insert(part_of(&name), section);
    }
    out
}

/// A machine's own tables say only what differs from the tables that all machines share.
fn part_of(name: &str) -> String {
    format!("part-of-{name}")
}

fn require_nothing(section: &mut Value) {
    if let Value::Object(map) = section {
        map.remove("required");
        map.remove("if");
        map.remove("then");
    }
    for_each_child(section, require_nothing);
}

fn refer_to_parts(section: &mut Value, name: &str) {
    if section.get("$ref").is_some_and(|to| *to == reference_to(name)) {
        section["$ref"] = reference_to(&part_of(name)).into();
    }
    for_each_child(section, |child| refer_to_parts(child, name));
}

fn reference_to(name: &str) -> String {
    format!("#/definitions/{name}")
}

fn for_each_child(value: &mut Value, mut work: impl FnMut(&mut Value)) {
    match value {
        Value::Object(map) => map.values_mut().for_each(&mut work),
        Value::Array(items) => items.iter_mut().for_each(&mut work),
        _ => {}
    }
}

/// `a switch` is defined as `switch`.
fn name(section: &dyn Keys) -> String {
    let title = section.title();
    let short = ["a ", "an ", "the "].iter().find_map(|article| title.strip_prefix(article)).unwrap_or(title);
    short.replace(' ', "-")
}

fn section(section: &dyn Keys, more: &[&Key]) -> Value {
    let mut properties = Map::new();
    for key in section.keys().into_iter().chain(more.iter().copied()) {
        let mut value = kind(&key.kind);
        let map = value.as_object_mut().expect("a kind is an object");
        map.insert("description".into(), key.doc.into());
        if let Some(default) = toml_to_json(key.default) {
            map.insert("default".into(), default);
        }
        if let Some(example) = toml_to_json(key.example) {
            map.insert("examples".into(), json!([example]));
        }
        properties.insert(key.name.into(), value);
    }
    let required: Vec<&str> =
        section.keys().into_iter().filter(|k| k.is_required()).map(|k| k.name).collect();
    let mut out = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !required.is_empty() {
        out["required"] = json!(required);
    }
    out
}

fn kind(kind: &Kind) -> Value {
    let string = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Integer { min, max: i64::MAX } => json!({ "type": "integer", "minimum": min }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Generation => json!({ "type": "integer", "minimum": 1, "maximum": Generation::LAST.number() }),
        Kind::Width => json!({ "enum": Width::ALL.map(Width::lanes) }),
        Kind::Probability => {
            json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 })
        }
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Time => string(TIME),
        Kind::Size | Kind::SizeOf { .. } => string(SIZE),
        Kind::Rate => string(RATE),
        Kind::Address => json!({ "type": ["string", "integer"] }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Word(word) => string(word.pattern),
        // Beside a bare $ref, draft 7 ignores everything else, such as the description.
        Kind::Table(table) => json!({ "allOf": [{ "$ref": reference_to(&name(*table)) }] }),
        Kind::Map { of, .. } => json!({ "type": "object", "additionalProperties": self::kind(of) }),
        Kind::Expected => json!({ "type": "object" }),
        Kind::List(of) => json!({ "type": "array", "items": self::kind(of) }),
        Kind::OneOf(kinds) => json!({ "anyOf": kinds.iter().map(self::kind).collect::<Vec<_>>() }),
    }
}

/// A device has its own keys and those of its model; a model in Python or RTL has any.
fn device(table: &dyn Keys) -> Value {
    let mut out = section(table, &[]);
    let mut forms = Vec::new();
    for model in MODELS {
        let mut form = section(table, &model.keys.keys());
        form["properties"]["model"] = json!({ "const": model.name });
        form.as_object_mut().expect("an object").remove("required");
        if model.name != "dma" {
            form["required"] = json!(["model"]);
        }
        forms.push(form);
    }
    forms.push(json!({
        "required": ["model"],
        "properties": { "model": { "type": "string", "pattern": r"^(.+\.py:[A-Za-z_][A-Za-z0-9_]*|(lib|rtl):.+\.so)$" } }
    }));
    out["required"] = json!(["under"]);
    let under = |pattern: &str| json!({ "properties": { "under": { "pattern": pattern } } });
    // A further function shares the link of its device. Whether another name is a bus's, so that there is no link, only the reader knows.
    out["allOf"] = json!([
        { "if": under(r"\.fn[1-7]$"), "then": { "properties": { "link": false } } },
        { "if": under(r"\.rp[0-9]+$"), "then": { "required": ["link"] } },
    ]);
    out["additionalProperties"] = json!(true);
    out["anyOf"] = json!(forms);
    out
}

fn toml_to_json(text: &str) -> Option<Value> {
    if text.is_empty() {
        return None;
    }
    let table: toml::Table = format!("value = {text}").parse().ok()?;
    serde_json::to_value(table.get("value")?).ok()
}

/// Every key with its meaning, as Markdown.
pub fn reference() -> String {
    let mut out = String::new();
    for (path, section) in tables::ALL {
        let heading = if path.is_empty() { "The file".into() } else { format!("`{path}`") };
        out.push_str(&format!("## {heading}\n\n"));
        table_of(&mut out, &section.keys());
    }
    for model in MODELS {
        out.push_str(&format!("## `device.NAME` with `model = \"{}\"`\n\n{}.\n\n", model.name, model.doc));
        table_of(&mut out, &model.keys.keys());
    }
    out
}

fn table_of(out: &mut String, keys: &[&Key]) {
    out.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in keys {
        let default = if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
        let wanted = key.kind.wanted().replace('|', "\\|");
        out.push_str(&format!("| `{}` | {wanted} | {default} | {} |\n", key.name, key.doc));
    }
    out.push('\n');
}
