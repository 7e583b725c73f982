//! The only way in which this program reads JSON. A file from elsewhere, an answer of a service or a line of an agent
//! may be made to harm its reader, so its depth and the number of its values are counted before anything is built.
//!
//! `serde_json` limits the depth of what it builds, but not of what it passes over (raw values, unknown keys), and never
//! the number of values, each of which takes many times its text in memory. Counting takes one pass over the text.

use std::fmt;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::StreamDeserializer;
use serde_json::de::StrRead;

/// Limits of a text that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most levels of nesting.
    pub depth: usize,
    /// Most values of any kind.
    pub values: usize,
}

impl Limits {
    /// For everything that has no other limits.
    pub const USUAL: Self = Self { depth: 127, values: 400_000 };
    /// For lists of everything in a package, and for rows with every token. They are read into types, which leave out
    /// most or take less memory than values of any kind; the size of the file is limited separately.
    pub const TYPED: Self = Self { depth: 127, values: 20_000_000 };
    /// For documents that keep the position of each value.
    pub const DOCUMENT: Self = Self { depth: 64, values: 500_000 };
}

/// Most bytes of a text in which values are searched.
const MOST_SEARCHED: usize = 2 * 1024 * 1024;

/// What exceeds the limits, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    kind: ExcessKind,
    /// Byte offset.
    pub offset: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExcessKind {
    Deep(usize),
    Many(usize),
}

impl Excess {
    /// The error of a parser at this place. `serde_json` takes line and column from the end of a message.
    fn in_text(self, text: &[u8]) -> serde_json::Error {
        let before = &text[..self.offset];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = self.offset - line_start + 1;
        serde_json::Error::custom(format!("{self} at line {line} column {column}"))
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ExcessKind::Deep(limit) => write!(f, "it is nested deeper than {limit} levels"),
            ExcessKind::Many(limit) => write!(f, "it has more than {limit} values"),
        }
    }
}

impl std::error::Error for Excess {}

/// Reads a value.
pub fn from_slice<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    from_slice_within(bytes, Limits::USUAL)
}

/// Reads a value.
pub fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    from_str_within(text, Limits::USUAL)
}

/// Reads a value that may be larger than usual.
pub fn from_slice_within<'a, T: Deserialize<'a>>(bytes: &'a [u8], limits: Limits) -> serde_json::Result<T> {
    check(bytes, limits).map_err(|excess| excess.in_text(bytes))?;
    serde_json::from_slice(bytes)
}

/// Reads a value that may be larger than usual.
pub fn from_str_within<'a, T: Deserialize<'a>>(text: &'a str, limits: Limits) -> serde_json::Result<T> {
    check(text.as_bytes(), limits).map_err(|excess| excess.in_text(text.as_bytes()))?;
    serde_json::from_str(text)
}

/// The values at the beginning of a text that may go on with anything, for searching an answer in what a model said.
/// `T` must build what it reads: only then the parser limits the depth.
pub fn values<'a, T: Deserialize<'a>>(text: &'a str) -> StreamDeserializer<'a, StrRead<'a>, T> {
    let searched = &text[..text.floor_char_boundary(MOST_SEARCHED)];
    serde_json::Deserializer::from_str(searched).into_iter()
}

/// Counts levels and values. The text need not be JSON.
pub fn check(bytes: &[u8], limits: Limits) -> Result<(), Excess> {
    // A text without room for either cannot exceed them.
    if bytes.len() <= limits.depth.min(limits.values) {
        return Ok(());
    }
    let (mut depth, mut values, mut at) = (0_usize, 0_usize, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_text(bytes, at + 1),
            b'[' | b'{' => {
                depth += 1;
                values += 1;
                if depth > limits.depth {
                    return Err(Excess { kind: ExcessKind::Deep(limits.depth), offset: at });
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if values > limits.values {
            return Err(Excess { kind: ExcessKind::Many(limits.values), offset: at });
        }
        at += 1;
    }
    Ok(())
}

/// The offset of the quotation mark that ends a text beginning at `at`, or of the end.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    const SMALL: Limits = Limits { depth: 3, values: 5 };

    fn found(text: &str) -> Result<(), String> {
        check(text.as_bytes(), SMALL).map_err(|excess| format!("{}: {excess}", excess.offset))
    }

    #[test]
    fn levels_and_values_are_counted_outside_texts() {
        assert_eq!(found(r#"[[["[[[[[,,,,,,,\"[[[",1]]]"#), Ok(()));
        assert_eq!(found("[[[[1]]]]"), Err("3: it is nested deeper than 3 levels".to_owned()));
        assert_eq!(found("[1,2,3,4,5,6]"), Err("10: it has more than 5 values".to_owned()));
        assert_eq!(found("[][][][][][]"), Err("10: it has more than 5 values".to_owned()));
        for unsound in ["]]]]]]]]]", "\"\\", "\"\\\"", "[\"", "\\\\\\\\\\"] {
            assert_eq!(found(unsound), Ok(()), "{unsound}");
        }
    }

    /// Before there was one reader, a raw value of any depth was handed on, and the next step overflowed the stack.
    #[test]
    fn what_is_passed_over_is_limited_too() {
        let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
        assert!(serde_json::from_str::<&RawValue>(&deep).is_ok());
        assert!(from_str::<&RawValue>(&deep).is_err());
        assert!(from_slice::<serde::de::IgnoredAny>(deep.as_bytes()).is_err());
        let wide = format!("[{}0]", "0,".repeat(Limits::USUAL.values));
        assert!(from_str::<&RawValue>(&wide).unwrap_err().to_string().contains("more than 400000 values"));
    }

    #[test]
    fn an_excess_has_a_place() {
        let error = from_str::<Value>(&format!("{{\n \"a\": {}", "[".repeat(200))).unwrap_err();
        assert_eq!((error.line(), error.column(), error.is_data()), (2, 7 + 126, true), "{error}");
        assert_eq!(super::super::error_text(&error), "it is nested deeper than 127 levels");
    }

    #[test]
    fn values_are_searched_in_a_part_of_a_text() {
        let text = format!("[1] {}", "x".repeat(3 * 1024 * 1024));
        assert_eq!(values::<Value>(&text).next().unwrap().unwrap(), serde_json::json!([1]));
        let long = format!("\"{}\"", "ü".repeat(2 * 1024 * 1024));
        assert!(values::<Value>(&long).next().unwrap().is_err());
    }

    proptest! {
        #[test]
        fn what_fits_is_read_as_before(value in super::super::tests::value()) {
            let text = value.to_string();
            prop_assert_eq!(&from_str::<Value>(&text).unwrap(), &value);
            prop_assert_eq!(from_slice::<Value>(text.as_bytes()).unwrap(), value);
        }

        #[test]
        fn any_bytes_can_be_counted(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _unused = check(&bytes, SMALL);
        }
    }
}
