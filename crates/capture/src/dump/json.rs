//! A frame as a line of JSON. The object of a TLP is the `meaning` of `vectors/tlp.json`, in which fields that have their default
//! are left out.

use super::super::control::Control;
use super::super::decode::{Decoded, What};
use super::super::direction::Directions;
use super::super::matching::{Matcher, is_non_posted};
use super::stamp;
use serde_json::{Map, Value, json};
use tlplab_wire::dllp;
use tlplab_wire::tlp::{AddressType, Attributes, Completion, Kind, Message, Repr};

/// Writes lines; remembers the requests that wait, so that completions can tell what they answer.
#[derive(Default)]
pub(super) struct Lines {
    directions: Directions,
    waiting: Matcher<(u64, i128)>,
}

impl Lines {
    /// Takes notice of a frame: of a completion, the frame of the request and the time since it in femtoseconds.
    pub(super) fn notice(&mut self, decoded: &Decoded<'_>) -> Option<(u64, i128)> {
        let Ok(What::Tlp(tlp)) = &decoded.content else { return None };
        if decoded.flags.any() {
            return None;
        }
        let direction = self.directions.of(decoded);
        let id = tlp.repr.transaction_id();
        if is_non_posted(&tlp.repr) {
            self.waiting.ask(direction, id, (decoded.frame, decoded.fs));
            return None;
        }
        let Kind::Completion(completion) = tlp.repr.kind() else { return None };
        let asked = self.directions.back(direction)?;
        let (frame, fs) = self.waiting.answer(asked, id, completion.is_last())?;
        Some((frame, decoded.fs - fs))
    }

    /// Writes the object, without the end of the line; `verbose` with the payload.
    pub(super) fn write(
        &self,
        out: &mut String,
        decoded: &Decoded<'_>,
        answers: Option<(u64, i128)>,
        verbose: bool,
    ) {
        let mut line = Map::new();
        line.insert("frame".into(), decoded.frame.into());
        let mut time = String::new();
        stamp::seconds(&mut time, decoded.fs, decoded.digits);
        line.insert("time".into(), time.into());
        let (from, to) = decoded.ends();
        line.insert("from".into(), from.to_string().into());
        line.insert("to".into(), to.to_string().into());
        if let Some(ends) = decoded.endpoints {
            line.insert("source_port".into(), ends.source_port.into());
            line.insert("port".into(), ends.port.into());
            if let Some(vlan) = ends.vlan {
                line.insert("vlan".into(), vlan.into());
            }
        }
        content(&mut line, decoded, verbose);
        for (set, word) in [
            (decoded.flags.bad, "corrupted"),
            (decoded.flags.replay, "replay"),
            (decoded.flags.nullified, "nullified"),
        ] {
            if set {
                line.insert(word.into(), true.into());
            }
        }
        if let Some((frame, fs)) = answers {
            line.insert("response_to".into(), frame.into());
            line.insert("latency_ns".into(), json!(fs as f64 / 1e6));
        }
        out.push_str(&Value::Object(line).to_string());
    }
}

fn content(line: &mut Map<String, Value>, decoded: &Decoded<'_>, verbose: bool) {
    let (key, value) = match &decoded.content {
        Ok(What::Tlp(tlp)) => {
            line.insert("sequence".into(), tlp.header.sequence.into());
            line.insert("timestamp".into(), tlp.header.timestamp.into());
            if tlp.repr.payload_bytes() > 0 {
                line.insert("captured".into(), tlp.payload.len().into());
            }
            if verbose && !tlp.payload.is_empty() {
                line.insert("data".into(), hex(tlp.payload).into());
            }
            if let Some(numbers) = tlp.numbers {
                line.insert("link_sequence".into(), numbers.sequence.into());
                line.insert("link_acknowledged".into(), numbers.acknowledged.into());
            }
            if let Some(good) = tlp.ecrc {
                line.insert("ecrc".into(), if good { "good" } else { "bad" }.into());
            }
            ("tlp", meaning(&tlp.repr))
        }
        Ok(What::Dllp(repr)) => ("dllp", dllp(repr)),
        Ok(What::Flit { sequence }) => ("flit", json!({"sequence": sequence})),
        Ok(What::Control(control)) => ("control", self::control(control)),
        Ok(What::Other) => ("other", true.into()),
        Err(reason) => ("malformed", reason.to_string().into()),
    };
    line.insert(key.into(), value);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The content of a TLP, in the words of the vectors.
pub(super) fn meaning(repr: &Repr) -> Value {
    let mut map = Map::new();
    let id = repr.transaction_id();
    let mut put = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    put("kind", repr.name().into());
    put("requester", id.requester.to_string().into());
    put("tag", id.tag.value().into());
    match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => {
            put("address", format!("{:#x}", span.address()).into());
            put("length", span.length().dw().into());
            put("first_be", span.enables().first().into());
            put("last_be", span.enables().last().into());
        }
        Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => {
            put("address", format!("{:#x}", port.address()).into());
            put("first_be", port.enables().into());
        }
        Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => {
            put("target", target.function().to_string().into());
            put("register", format!("{:#x}", target.register()).into());
            put("first_be", target.enables().into());
        }
        Kind::AtomicOp { target, .. } => {
            put("address", format!("{:#x}", target.address()).into());
            put("operand", target.operand_bytes().into());
        }
        Kind::Message(message) => put_message(&mut put, message),
        Kind::Completion(completion) => put_completion(&mut put, completion),
    }
    put_attributes(&mut put, repr.attributes());
    if !repr.prefixes().is_empty() {
        let prefixes: Vec<String> = repr.prefixes().iter().map(|prefix| hex(&prefix.bytes())).collect();
        put("prefixes", prefixes.into());
    }
    Value::Object(map)
}

fn put_message(put: &mut impl FnMut(&str, Value), message: &Message) {
    put("code", message.code().name().into());
    put("routing", message.routing().name().into());
    if message.payload_dw() > 0 {
        put("length", message.payload_dw().into());
    }
    if message.content() != [0; 8] {
        put("content", hex(&message.content()).into());
    }
}

fn put_completion(put: &mut impl FnMut(&str, Value), completion: &Completion) {
    put("completer", completion.completer().to_string().into());
    put("status", completion.status().name().into());
    put("byte_count", completion.byte_count().into());
    put("lower_address", completion.lower_address().into());
    if let Some(length) = completion.length() {
        put("length", length.dw().into());
    }
    if completion.is_byte_count_modified() {
        put("bcm", true.into());
    }
}

fn put_attributes(put: &mut impl FnMut(&str, Value), attributes: &Attributes) {
    let named = [
        (attributes.relaxed_ordering, "RO"),
        (attributes.id_based_ordering, "IDO"),
        (attributes.no_snoop, "NS"),
    ];
    let set: Vec<&str> = named.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect();
    if !set.is_empty() {
        put("attr", set.into());
    }
    if attributes.tc.value() != 0 {
        put("tc", attributes.tc.value().into());
    }
    match attributes.at {
        AddressType::Untranslated => {}
        AddressType::TranslationRequest => put("at", "translation request".into()),
        AddressType::Translated => put("at", "translated".into()),
    }
    if attributes.poisoned {
        put("poisoned", true.into());
    }
    if attributes.digest {
        put("digest", true.into());
    }
    if let Some(hints) = attributes.hints {
        put("hint", json!({"ph": hints.hint as u8, "st": hints.steering_tag}));
    }
}

/// The content of a DLLP, in the words of `vectors/dllp.json`.
pub(super) fn dllp(repr: &dllp::Repr) -> Value {
    let kind = repr.name();
    match repr {
        dllp::Repr::Ack(sequence) | dllp::Repr::Nak(sequence) => {
            json!({"kind": kind, "sequence": sequence.value()})
        }
        dllp::Repr::FlowControl(fc) => json!({
            "kind": kind, "vc": fc.vc.value(),
            "header_scale": fc.header_scale as u8, "header": fc.header,
            "data_scale": fc.data_scale as u8, "data": fc.data(),
        }),
        dllp::Repr::Feature { ack, supported } => {
            json!({"kind": kind, "ack": ack, "supported": supported.bits()})
        }
        dllp::Repr::Vendor(body) => json!({"kind": kind, "body": hex(body)}),
        dllp::Repr::Pm(_) | dllp::Repr::Nop => json!({"kind": kind}),
    }
}

fn control(control: &Control) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    put("channel", control.channel().name().into());
    put("operation", control.operation().into());
    match *control {
        Control::Config(access) => {
            put("mask", access.enables().into());
            put("register", access.register().into());
            put("data", access.data.into());
        }
        Control::Register(access) => {
            put("register", (access.register as u8).into());
            put("data", access.data.into());
        }
        Control::Ask(request) => {
            put("code", (request as i32).into());
        }
        Control::Bar4(address) => {
            put("bar4", format!("{address:#x}").into());
        }
        Control::DeviceId(id) => {
            put("device_id", id.to_string().into());
        }
        Control::Written(written) => {
            put("writes", written.requests.into());
            put("bytes_written", written.bytes.into());
        }
        Control::MsixTable(first) => {
            put("address", format!("{:#x}", first.address).into());
            put("data", first.data.into());
        }
    }
    Value::Object(map)
}
