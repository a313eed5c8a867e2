//! The result of one run of a point, as bytes that are read back exactly.
//!
//! Two parts: the names of the figures, which many runs have in common and a pack holds once, and the rest.

use crate::bytes::{put_text, take_text};
use crate::figures::{Metrics, Names};

/// The result of a run of a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The reason that the run failed, if it did.
    pub failure: Option<String>,
    /// The limit, if it was asked for: the resource, and the sentence.
    pub verdict: Option<(String, String)>,
    /// Its figures.
    pub metrics: Metrics,
}

const HEAD: &[u8] = b"tlplab/point/2\n";
const FAILED: u8 = 1;
const JUDGED: u8 = 2;

impl Record {
    /// As bytes: [`Self::read`] reads them back.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = HEAD.to_vec();
        put_text(&mut bytes, &names_text(self.metrics.names()));
        self.write_rest(&mut bytes);
        bytes
    }

    /// From bytes; `None` if they are not whole, or of another kind.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut bytes = bytes.strip_prefix(HEAD)?;
        let names = names_of(take_text(&mut bytes)?)?;
        Self::read_rest(&names, bytes)
    }

    /// Adds all but the names.
    pub(crate) fn write_rest(&self, bytes: &mut Vec<u8>) {
        let failed = if self.failure.is_some() { FAILED } else { 0 };
        bytes.push(failed | if self.verdict.is_some() { JUDGED } else { 0 });
        let verdict = self.verdict.iter().flat_map(|(resource, sentence)| [resource, sentence]);
        self.failure.iter().chain(verdict).for_each(|text| put_text(bytes, text));
        bytes.extend(self.metrics.values().iter().flat_map(|value| value.to_le_bytes()));
    }

    /// From all but the names, and these.
    pub(crate) fn read_rest(names: &Names, mut bytes: &[u8]) -> Option<Self> {
        let (flags, rest) = bytes.split_first().filter(|(flags, _)| **flags & !(FAILED | JUDGED) == 0)?;
        bytes = rest;
        let mut text = |flag| if flags & flag == 0 { Some(None) } else { take_text(&mut bytes).map(Some) };
        let failure = text(FAILED)?.map(str::to_owned);
        let verdict = match text(JUDGED)? {
            Some(resource) => Some((resource.to_owned(), take_text(&mut bytes)?.to_owned())),
            None => None,
        };
        let (values, []) = bytes.as_chunks::<8>() else { return None };
        if values.len() != names.len() {
            return None;
        }
        let values = values.iter().map(|value| f64::from_le_bytes(*value)).collect();
        Some(Self { failure, verdict, metrics: Metrics::of_names(names.clone(), values) })
    }
}

/// Names as a text, a line each.
pub(crate) fn names_text(names: &Names) -> String {
    names.join("\n")
}

/// The names of a text; `None` if they are not in order.
pub(crate) fn names_of(text: &str) -> Option<Names> {
    let names: Names = text.split('\n').filter(|_| !text.is_empty()).map(str::to_owned).collect();
    names.windows(2).all(|pair| pair[0] < pair[1]).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_is_read_back_exactly(bits in any::<u64>(), failure in any::<Option<String>>(), words in any::<Option<(String, String)>>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let record = Record { failure, verdict: words, metrics: Metrics::from([("x.latency.p99".into(), value), ("a".into(), 1.0)]) };
            let read = Record::read(&record.write()).unwrap();
            prop_assert_eq!(read.metrics["x.latency.p99"].to_bits(), bits);
            prop_assert_eq!(read, record);
        }

        #[test]
        fn bytes_are_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let whole = [HEAD, &bytes].concat();
            if let Some(record) = Record::read(&whole) {
                prop_assert_eq!(record.write(), whole);
            }
        }
    }

    #[test]
    fn a_record_that_is_cut_is_none() {
        let record = Record {
            failure: Some("at 3 us".into()),
            verdict: Some(("tags of dev".into(), "The tags of dev limit the run.".into())),
            metrics: Metrics::from([("b".into(), 1e300), ("a.throughput".into(), 0.1 + 0.2)]),
        };
        let bytes = record.write();
        assert_eq!(Record::read(&bytes), Some(record.clone()));
        for end in 0..bytes.len() {
            assert_eq!(Record::read(&bytes[..end]), None, "{end}");
        }
        assert_eq!(Record::read(&[&bytes[..], b"m"].concat()), None);
        let empty = Record::default();
        assert_eq!(Record::read(&empty.write()), Some(empty));
    }
}
