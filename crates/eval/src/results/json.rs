//! Writes parts of a row directly into bytes, in addition to [`aec_base::json`].

use aec_base::json::{push_line, push_text};
use serde_json::value::RawValue;

use crate::results::number::Finite;

/// A comma, a key and its colon.
pub(crate) fn push_key(out: &mut Vec<u8>, key: &str) {
    out.push(b',');
    push_text(out, key);
    out.push(b':');
}

/// A number with a fraction, as Python writes a float: `1.0`, not `1`.
pub(crate) fn push_number(out: &mut Vec<u8>, number: Finite) {
    // Writing a number into memory cannot fail.
    drop(serde_json::to_writer(out, &number.get()));
}

pub(crate) fn push_whole(out: &mut Vec<u8>, number: impl Into<i128>) {
    drop(serde_json::to_writer(out, &number.into()));
}

/// Raw JSON, on one line.
pub(crate) fn push_raw(out: &mut Vec<u8>, raw: &RawValue) {
    push_line(out, raw.get());
}
