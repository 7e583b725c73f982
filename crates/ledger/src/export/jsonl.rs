//! Whole records as JSON lines.

use std::io::{self, Write};

use super::{Sink, columns};
use crate::expected::Absent;
use crate::read::Stored;

/// Records as stored, without the blanks between their parts; trials that were withheld are lines without a record.
pub(super) struct Lines<W> {
    to: W,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to }
    }
}

impl<W: Write> Sink for Lines<W> {
    fn take(&mut self, stored: &Stored, text: &[u8]) -> io::Result<()> {
        let mut line = if stored.is_weighed { weighed(stored, text)? } else { compact(text) };
        line.push(b'\n');
        self.to.write_all(&line)
    }

    fn withheld(&mut self, absent: &Absent) -> io::Result<()> {
        let mut line = serde_json::to_value(absent)?;
        line["outcome"] = columns::WITHHELD.into();
        self.to.write_all(&aec_base::jsonl::line(&line)?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.to.flush()
    }
}

/// A record of a package whose reward counts otherwise here, with the keys that this version does not know.
fn weighed(stored: &Stored, text: &[u8]) -> io::Result<Vec<u8>> {
    let mut value: serde_json::Value = aec_base::json::from_slice(text)?;
    value["outcome"] = serde_json::to_value(stored.record.outcome)?;
    value["evaluation"] = serde_json::to_value(&stored.record.evaluation)?;
    value["outputs"]["agent_result"] = serde_json::to_value(&stored.record.outputs.agent_result)?;
    Ok(serde_json::to_vec(&value)?)
}

/// JSON without blanks outside its strings. Keys, numbers and strings stay unchanged, even those that this version
/// does not know.
fn compact(json: &[u8]) -> Vec<u8> {
    let mut compact = Vec::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            in_string = *byte == b'"';
        }
        compact.push(*byte);
    }
    compact
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blanks_between_parts_are_dropped() {
        let text =
            r#"{ "a b" : [ 1.10 , "x \" { } y" ,  "\\" , "" ] , "n" : 123456789012345678901234567890 }"#;
        let compacted = String::from_utf8(compact(text.as_bytes())).unwrap();
        assert_eq!(compacted, r#"{"a b":[1.10,"x \" { } y","\\",""],"n":123456789012345678901234567890}"#);
    }

    proptest::proptest! {
        #[test]
        fn the_value_stays_the_same(texts in proptest::collection::vec("\\PC{0,8}|[\\\\\" ]{0,5}", 0..6)) {
            let value = serde_json::json!({"list": texts, "object": {"a": 1.5, "b": null}});
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            proptest::prop_assert_eq!(compact(pretty.as_bytes()), serde_json::to_vec(&value).unwrap());
        }
    }
}
