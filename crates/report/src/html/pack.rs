//! Tables as columns, each text stored once, and the page's encoding of bytes: JSON, gzip, base64.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use indexmap::IndexMap;
use serde::{Serialize, Serializer};

use super::HtmlError;

/// A column of texts. The page reads it with `unpackTexts`.
///
/// Index 0 is the next text of the list, and `n` is text `n` of the list, counted from 1. So a column in which every
/// text is new costs little more than its texts.
#[derive(Debug, Default, Serialize)]
pub(super) struct Texts {
    texts: IndexMap<String, ()>,
    places: Vec<usize>,
}

impl Texts {
    pub(super) fn push(&mut self, text: &str) {
        if let Some(place) = self.texts.get_index_of(text) {
            self.places.push(place + 1);
        } else {
            self.texts.insert(text.to_owned(), ());
            self.places.push(0);
        }
    }
}

#[derive(Serialize)]
struct PackedTexts<'a> {
    t: Vec<&'a str>,
    p: &'a [usize],
}

pub(super) fn texts<S: Serializer>(column: &Texts, serializer: S) -> Result<S::Ok, S::Error> {
    PackedTexts { t: column.texts.keys().map(String::as_str).collect(), p: &column.places }
        .serialize(serializer)
}

/// A number that may be unknown, rounded and as short as JSON allows. Numbers that are not finite count as unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(Option<f64>);

impl Number {
    pub(super) fn rounded(value: Option<f64>, decimals: i32) -> Self {
        let scale = 10_f64.powi(decimals);
        Self(value.filter(|value| value.is_finite()).map(|value| {
            let scaled = (value * scale).round() / scale;
            if scaled.is_finite() { scaled } else { value }
        }))
    }

    #[expect(clippy::cast_precision_loss, reason = "the page has no other numbers")]
    pub(super) fn count(value: Option<u64>) -> Self {
        Self(value.map(|value| value as f64))
    }
}

impl Serialize for Number {
    #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_unit(),
            Some(value) if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 => {
                serializer.serialize_i64(value as i64)
            }
            Some(value) => serializer.serialize_f64(value),
        }
    }
}

/// JSON, gzip, base64. The same value gives the same bytes on every machine: no time, no name, and a compressor that
/// does not depend on the processor.
pub(super) fn pack(value: &impl Serialize) -> Result<String, HtmlError> {
    pack_json(&serde_json::to_vec(value).map_err(HtmlError::Json)?)
}

/// The same for existing JSON.
pub(super) fn pack_json(json: &[u8]) -> Result<String, HtmlError> {
    let buffer = Vec::with_capacity(json.len() / 4);
    let mut encoder = GzBuilder::new().mtime(0).operating_system(255).write(buffer, Compression::new(5));
    encoder
        .write_all(json)
        .and_then(|()| encoder.finish())
        .map_or_else(|error| Err(HtmlError::Compress(error)), |bytes| Ok(STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_texts_are_zero_and_known_ones_name_their_place() {
        let mut column = Texts::default();
        for text in ["a", "b", "a", "c", "c"] {
            column.push(text);
        }
        let json = serde_json::to_string(&texts(&column, serde_json::value::Serializer).unwrap()).unwrap();
        assert_eq!(json, r#"{"t":["a","b","c"],"p":[0,0,1,0,3]}"#);
    }

    #[test]
    fn numbers_are_short_and_never_invalid() {
        let json = |value, decimals| serde_json::to_string(&Number::rounded(value, decimals)).unwrap();
        assert_eq!(json(Some(1.0), 6), "1");
        assert_eq!(json(Some(0.162_729_738), 3), "0.163");
        assert_eq!(json(Some(-0.0), 3), "0");
        assert_eq!(json(Some(f64::NAN), 3), "null");
        assert_eq!(json(Some(f64::INFINITY), 3), "null");
        assert_eq!(json(Some(f64::MAX), 3), "1.7976931348623157e+308");
        assert_eq!(json(None, 3), "null");
        assert_eq!(serde_json::to_string(&Number::count(Some(u64::MAX))).unwrap(), "1.8446744073709552e+19");
    }
}
