//! The JSON Schema of the result document, made of its types: their comments are its descriptions.
//!
//! Beside what JSON Schema knows there are `x-revision`, the revision of the document that added a key, and of each cause its `x-group` and its
//! `x-colours` (on a light ground, on a dark one).

use super::{Document, SCHEMA};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use tlplab_fabric::attribution::Cause;

/// A cause, which documents write by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseName(pub Cause);

impl Serialize for CauseName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl JsonSchema for CauseName {
    fn schema_name() -> Cow<'static, str> {
        "Cause".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |cause: Cause| {
            json!({
                "type": "string",
                "const": cause.name(),
                "description": cause.about(),
                "x-group": cause.group().name(),
                "x-colours": cause.colours(),
            })
        };
        json_schema!({ "description": "A cause of latency.", "oneOf": Cause::ALL.map(one) })
    }
}

/// A whole number, or a string of digits where a JSON number would not be exact.
pub(super) struct Exact;

impl JsonSchema for Exact {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Exact".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+$" })
    }
}

/// Units that the names of keys end in, and how descriptions say them.
const UNITS: [(&str, &str); 4] =
    [("_fs", "femtoseconds"), ("_ns", "nanoseconds"), ("_bps", "bits per second"), ("bytes", "bytes")];

/// The JSON Schema (draft 2020-12) of a result document.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Document>().to_value();
    schema["title"] = format!("Result of tlplab, {SCHEMA}").into();
    schema["properties"]["schema"]["const"] = SCHEMA.into();
    say_units(&mut schema);
    schema
}

/// Ends the description of each key that has a unit with that unit, and joins the lines of all.
fn say_units(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (key, value) in properties {
            let unit = UNITS.iter().find(|(ending, _)| key.ends_with(ending));
            let said = value.get("description").and_then(Value::as_str);
            if let (Some((_, unit)), Some(said)) = (unit, said)
                && !said.contains(unit)
            {
                value["description"] = format!("{} ({unit}).", said.trim_end_matches('.')).into();
            }
        }
    }
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(said)) = map.get_mut("description") {
                *said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            map.values_mut().for_each(say_units);
        }
        Value::Array(items) => items.iter_mut().for_each(say_units),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::{FaultDamage, FaultOf, Operation};
    use super::schema;
    use serde_json::Value;

    /// Walks through all that describes something.
    fn each(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
        if let Value::Object(map) = schema {
            for (key, one) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
                visit(&format!("{path}.{key}"), one);
            }
            for (name, one) in map.get("$defs").and_then(Value::as_object).into_iter().flatten() {
                visit(name, one);
                each(one, name, visit);
            }
        }
    }

    #[test]
    fn every_key_has_a_description_and_a_unit() {
        let mut count = 0;
        let schema = schema();
        each(&schema, "result", &mut |path, one| {
            let said = one["description"].as_str().unwrap_or_default();
            assert!(said.ends_with('.') && said.len() > 3, "{path}: {said:?}");
            assert!(
                !said.contains("[`") && !said.contains("`None`"),
                "{path} is no text for readers of JSON: {said}"
            );
            for (ending, unit) in super::UNITS {
                let key = path.rsplit('.').next().unwrap_or_default();
                assert!(
                    !path.contains('.') || !key.ends_with(ending) || said.contains(unit),
                    "{path} has no unit: {said}"
                );
            }
            count += 1;
        });
        assert!(count > 200, "{count} keys and types");
    }

    /// Results have words for all that experiments can express.
    #[test]
    fn faults_have_the_words_of_experiments() {
        use crate::choices::Choice;
        for (word, _) in crate::fault::Harm::WORDS {
            assert!(FaultDamage::named(word).is_some(), "{word}");
        }
        for (name, _) in crate::fault::Called::WORDS {
            assert!(FaultOf::named(name).is_some(), "{name}");
        }
    }

    /// The operations of loads and of built-in devices have names in results: none of them becomes `dma`.
    #[test]
    fn flows_have_the_operations_of_loads_and_devices() {
        use crate::choices::Choice;
        use tlplab_device::{copier, nic, nvme, ring, simple_nic, storage, tlp_device, tlpdma};
        let loads =
            crate::load::Operation::WORDS.iter().map(|(word, _)| *word).filter(|word| *word != "both");
        let streams = [
            copier::STREAMS,
            nic::STREAMS,
            nvme::STREAMS,
            ring::STREAMS,
            simple_nic::STREAMS,
            storage::STREAMS,
            tlp_device::STREAMS,
            tlpdma::STREAMS,
        ];
        for word in loads.chain(streams.concat().into_iter().map(|(_, operation)| operation)) {
            assert!(Operation::named(word).is_some(), "{word}");
        }
    }
}
