//! The places of fields: the codecs are asked, by setting each bit of a header alone and looking which bit of the field it is.

use std::fmt::Write;
use tlplab_wire::dllp;
use tlplab_wire::nettlp::Header;
use tlplab_wire::nettlp::config_api::ConfigAccess;
use tlplab_wire::nettlp::link;
use tlplab_wire::tlp::{ByteEnables, Packet, ParseOptions, Repr};

/// A codec's reading of a field; `None` where it refuses the header.
type Codec = fn(&[u8]) -> Option<u64>;

/// Fields that one kind of header has: the name of the kind, a header of it without any of them, their names and codecs.
type Kind = (&'static str, &'static [u8], &'static [(&'static str, Codec)]);

/// TH set, one DW: the smallest memory requests with a hint.
const READ_WITH_HINT: &[u8] = &[0x00, 0x01, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
const WRITE_WITH_HINT: &[u8] = &[0x40, 0x01, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

/// All kinds; the names of fields are those of the dissector.
pub(super) const KINDS: [Kind; 14] = [
    (
        "nettlp",
        &[0; 6],
        &[
            ("seq", |bytes| value(Header::parse(bytes).ok()?.sequence)),
            ("tstamp", |bytes| value(Header::parse(bytes).ok()?.timestamp)),
        ],
    ),
    (
        "numbers",
        &[link::MARK, 0, 0, 0, 0, 0, 0, 0],
        &[
            ("sequence", |bytes| value(link::numbers(bytes)?.0.sequence)),
            ("acknowledged", |bytes| value(link::numbers(bytes)?.0.acknowledged)),
        ],
    ),
    (
        "tlp",
        &[0; 12],
        &[
            ("tc", |bytes| value(Packet::new(bytes).tc()?)),
            ("ido", |bytes| value(Packet::new(bytes).attr()? & 4 != 0)),
            ("ro", |bytes| value(Packet::new(bytes).attr()? & 2 != 0)),
            ("ns", |bytes| value(Packet::new(bytes).attr()? & 1 != 0)),
            ("th", |bytes| value(Packet::new(bytes).th()?)),
            ("td", |bytes| value(Packet::new(bytes).td()?)),
            ("poisoned", |bytes| value(Packet::new(bytes).ep()?)),
            ("at", |bytes| value(Packet::new(bytes).at()?)),
            ("length", |bytes| value(Packet::new(bytes).length_field()?)),
        ],
    ),
    (
        "request",
        &[0; 12],
        &[
            ("requester", |bytes| value(Packet::new(bytes).requester()?.0)),
            ("tag", |bytes| value(Packet::new(bytes).tag()?.value())),
            ("first_be", |bytes| value(ByteEnables::from_byte(Packet::new(bytes).byte7()?).first())),
            ("last_be", |bytes| value(ByteEnables::from_byte(Packet::new(bytes).byte7()?).last())),
            ("code", |bytes| value(Packet::new(bytes).byte7()?)),
            ("target", |bytes| value(Packet::new(bytes).target()?.0)),
            ("register", |bytes| value(Packet::new(bytes).register()?)),
        ],
    ),
    ("three_dw", &[0; 12], &ADDRESS),
    ("four_dw", &[0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &ADDRESS),
    ("read", READ_WITH_HINT, &[("st", steering_tag)]),
    ("write", WRITE_WITH_HINT, &[("st", steering_tag)]),
    (
        "completion",
        &[0x4a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[
            ("completer", |bytes| value(Packet::new(bytes).completer()?.0)),
            ("status", |bytes| value(Packet::new(bytes).status()?)),
            ("bcm", |bytes| value(Packet::new(bytes).bcm()?)),
            ("byte_count", |bytes| value(Packet::new(bytes).byte_count()? % 4096)),
            ("requester", |bytes| value(Packet::new(bytes).requester()?.0)),
            ("tag", |bytes| value(Packet::new(bytes).tag()?.value())),
            ("lower_address", |bytes| value(Packet::new(bytes).lower_address()?)),
        ],
    ),
    ("dllp", &[0; 6], &[("crc", |bytes| value(dllp::Packet::new(bytes).crc()?))]),
    ("sequence", &[0; 4], &[("sequence", |bytes| value(dllp::Packet::new(bytes).sequence()?))]),
    (
        "credits",
        &[0x80, 0, 0, 0],
        &[
            ("vc", |bytes| value(credits(bytes)?.vc.value())),
            ("header_scale", |bytes| value(credits(bytes)?.header_scale as u8)),
            ("header", |bytes| value(credits(bytes)?.header)),
            ("data_scale", |bytes| value(credits(bytes)?.data_scale as u8)),
            ("data", |bytes| value(credits(bytes)?.data())),
        ],
    ),
    (
        "feature",
        &[0x02, 0, 0, 0],
        &[
            ("ack", |bytes| match content(bytes)? {
                dllp::Repr::Feature { ack, .. } => value(ack),
                _ => None,
            }),
            ("supported", |bytes| match content(bytes)? {
                dllp::Repr::Feature { supported, .. } => value(supported.bits()),
                _ => None,
            }),
        ],
    ),
    (
        "config",
        &[0; 6],
        &[
            ("mask", |bytes| value(ConfigAccess::parse(bytes).ok()?.enables())),
            ("register", |bytes| value(ConfigAccess::parse(bytes).ok()?.register())),
            ("data", |bytes| value(ConfigAccess::parse(bytes).ok()?.data)),
        ],
    ),
];

const ADDRESS: [(&str, Codec); 2] =
    [("address", |bytes| Packet::new(bytes).address()), ("ph", |bytes| value(Packet::new(bytes).ph()?))];

fn value(field: impl Into<u64>) -> Option<u64> {
    Some(field.into())
}

fn steering_tag(header: &[u8]) -> Option<u64> {
    let options = ParseOptions { truncated: true, ..ParseOptions::default() };
    let repr = Repr::parse_with(&Packet::new(header), options).ok()?;
    value(repr.attributes().hints?.steering_tag)
}

fn content(dllp: &[u8]) -> Option<dllp::Repr> {
    dllp::Repr::from_content(dllp.try_into().ok()?).ok()
}

fn credits(dllp: &[u8]) -> Option<dllp::FlowControl> {
    match content(dllp)? {
        dllp::Repr::FlowControl(credits) => Some(credits),
        _ => None,
    }
}

/// Bits of a header that follow each other in a field, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// The first, counted from the header's most significant.
    bit: usize,
    width: usize,
    /// The weight of the last of them in the field.
    weight: u64,
}

/// The bits that a field is made of: those that change it, set alone in `header`.
fn runs(header: &[u8], codec: Codec) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for bit in 0..header.len() * 8 {
        let mut changed = header.to_vec();
        changed[bit / 8] ^= 0x80 >> (bit % 8);
        let (Some(before), Some(after)) = (codec(header), codec(&changed)) else { continue };
        let weight = before ^ after;
        match runs.last_mut() {
            _ if weight == 0 => {}
            Some(last) if last.bit + last.width == bit && last.weight == weight * 2 => {
                (last.width, last.weight) = (last.width + 1, weight);
            }
            _ => runs.push(Run { bit, width: 1, weight }),
        }
    }
    runs
}

/// A field as a Lua table: `{ at = 6, bytes = 1, { 8, 1, 512 }, { 12, 1, 256 }, { 48, 8, 1 } }`, where `at` and `bytes` tell the
/// bytes that hold its low part, and the rest the runs.
pub(super) fn in_lua(header: &[u8], codec: Codec) -> String {
    let runs = runs(header, codec);
    let held: Vec<usize> = runs.iter().flat_map(|run| run.bit / 8..=(run.bit + run.width - 1) / 8).collect();
    let low = runs.iter().min_by_key(|run| run.weight).map_or(0, |run| run.bit / 8);
    let mut shown = low..low + 1;
    while shown.start > 0 && held.contains(&(shown.start - 1)) {
        shown.start -= 1;
    }
    while held.contains(&shown.end) {
        shown.end += 1;
    }
    let mut lua = format!("{{ at = {}, bytes = {}", shown.start, shown.len());
    for Run { bit, width, weight } in runs {
        let _ = write!(lua, ", {{ {bit}, {width}, {weight} }}"); // a String takes everything
    }
    lua + " }"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8], runs: &[Run]) -> u64 {
        let bit = |at: usize| u64::from(bytes[at / 8] >> (7 - at % 8) & 1);
        let value = |run: &Run| (run.bit..run.bit + run.width).fold(0, |value, at| value * 2 + bit(at));
        runs.iter().map(|run| value(run) * run.weight).sum()
    }

    proptest! {
        /// A field consists of its bits only: for a header that the codec accepts, the runs give the codec's value.
        #[test]
        fn bit_runs_give_the_values_of_the_codec(random in any::<[u8; 16]>()) {
            for (kind, header, fields) in KINDS {
                for (name, codec) in fields {
                    let mut bytes = random[..header.len()].to_vec();
                    bytes[0] = header[0];
                    let runs = runs(header, *codec);
                    prop_assert!(!runs.is_empty(), "{kind}.{name}");
                    if let Some(value) = codec(&bytes) {
                        prop_assert_eq!(read(&bytes, &runs), value, "{}.{}", kind, name);
                    }
                }
            }
        }
    }

    #[test]
    fn a_tag_of_ten_bits_lies_in_two_bytes() {
        let tag = |bytes: &[u8]| Some(u64::from(Packet::new(bytes).tag()?.value()));
        assert_eq!(
            in_lua(&[0; 12], tag),
            "{ at = 6, bytes = 1, { 8, 1, 512 }, { 12, 1, 256 }, { 48, 8, 1 } }"
        );
    }
}
