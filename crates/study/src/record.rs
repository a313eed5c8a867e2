//! What one run of a point came to, as text that is read back exactly.

use crate::metrics::Metrics;
use std::fmt::Write;

/// What a run of a point came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Why the run failed, if it did.
    pub failure: Option<String>,
    /// What limits it, if that was asked: the resource, and the sentence.
    pub verdict: Option<(String, String)>,
    /// Its figures.
    pub metrics: Metrics,
}

const HEAD: &str = "tlplab/point/1";
const END: &str = "end";

impl Record {
    /// As text, one line for each figure.
    pub fn write(&self) -> String {
        let mut text = format!("{HEAD}\n");
        let quoted = |words: &str| serde_json::Value::from(words).to_string();
        if let Some(failure) = &self.failure {
            let _ = writeln!(text, "failed {}", quoted(failure));
        }
        if let Some((resource, sentence)) = &self.verdict {
            let _ = writeln!(text, "limit {}\nverdict {}", quoted(resource), quoted(sentence));
        }
        for (name, value) in &self.metrics {
            // The shortest decimal that is read back as the same number.
            let _ = writeln!(text, "{name} = {value}");
        }
        let lines = text.lines().count();
        let _ = writeln!(text, "{END} {lines}");
        text
    }

    /// From text; `None` if it is not whole, or of another kind.
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return None;
        }
        let (mut record, mut resource) = (Self::default(), None);
        let unquoted = |words: &str| serde_json::from_str::<String>(words).ok();
        loop {
            let line = lines.next()?;
            match line.split_once(' ')? {
                ("failed", words) => record.failure = Some(unquoted(words)?),
                ("limit", words) => resource = Some(unquoted(words)?),
                ("verdict", words) => record.verdict = Some((resource.take()?, unquoted(words)?)),
                (END, count) => {
                    let whole = count.parse() == Ok(text.lines().count() - 1)
                        && text.ends_with('\n')
                        && lines.next().is_none();
                    return whole.then_some(record);
                }
                (name, value) => {
                    record.metrics.insert(name.to_owned(), value.strip_prefix("= ")?.parse().ok()?);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> Record {
        Record {
            failure: Some("at 3 us: \"it\"\n = 5\nend 0".into()),
            verdict: Some(("tags of dev".into(), "The tags of dev limit = the run.".into())),
            metrics: Metrics::from([
                ("a.throughput".into(), 0.1 + 0.2),
                ("b".into(), 1e300),
                ("c".into(), -0.0),
            ]),
        }
    }

    proptest! {
        #[test]
        fn a_record_is_read_back_exactly(bits in any::<u64>(), failure in any::<Option<String>>(), words in any::<Option<(String, String)>>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let record = Record { failure, verdict: words, metrics: Metrics::from([("x.latency.p99".into(), value)]) };
            let read = Record::read(&record.write()).unwrap();
            prop_assert_eq!(read.metrics["x.latency.p99"].to_bits(), bits);
            prop_assert_eq!(read, record);
        }
    }

    #[test]
    fn what_is_cut_or_changed_is_none() {
        let text = record().write();
        assert_eq!(Record::read(&text), Some(record()));
        for end in 0..text.len() {
            if text.is_char_boundary(end) {
                assert_eq!(Record::read(&text[..end]), None, "{:?}", &text[..end]);
            }
        }
        for n in 0..text.lines().count() {
            let kept =
                text.lines().enumerate().filter(|(at, _)| *at != n).map(|(_, line)| format!("{line}\n"));
            let read = Record::read(&kept.collect::<String>());
            assert_eq!(read, None, "line {n} is missing");
        }
        assert_eq!(Record::read(&text.replace("point/1", "point/2")), None);
        assert_eq!(Record::read(&format!("{text}more\n")), None);
    }
}
