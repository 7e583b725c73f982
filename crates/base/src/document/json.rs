//! Parses JSON text into a [`Node`] tree.
//!
//! `serde_json` keeps no positions. So it only checks that the text is sound and reads the single texts and numbers; the
//! structure between them is walked here, once. The depth is limited before, which bounds the recursion.

use serde::de::IgnoredAny;

use crate::json::{Limits, check, error_offset, error_text};

use super::{Entry, Node, SyntaxError, Value, repeated};

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    check(text.as_bytes(), Limits::DOCUMENT)
        .map_err(|excess| SyntaxError { message: excess.to_string(), offset: Some(excess.offset) })?;
    let _: IgnoredAny = serde_json::from_str(text).map_err(|error| SyntaxError {
        message: error_text(&error),
        offset: Some(error_offset(text, &error)),
    })?;
    Walk { text, at: 0 }.value()
}

/// A walk through JSON that is sound.
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl Walk<'_> {
    fn value(&mut self) -> Result<Node, SyntaxError> {
        self.pass_spaces();
        let offset = self.at;
        let value = match self.peek() {
            Some(b'{') => self.table()?,
            Some(b'[') => self.list()?,
            Some(b'"') => Value::String(self.string()?),
            _ => self.scalar()?,
        };
        Ok(Node { value, offset })
    }

    fn table(&mut self) -> Result<Value, SyntaxError> {
        let mut entries = Vec::new();
        // The opening bracket.
        self.at += 1;
        while let Some(offset) = self.next_member(b'}') {
            let key = self.string()?;
            self.pass_spaces();
            // The colon.
            self.at += 1;
            let value = self.value()?;
            entries.push(Entry { key, offset, value });
        }
        match repeated(&entries) {
            Some(Entry { key, offset, .. }) => {
                let message = format!("the key \"{key}\" occurs twice");
                Err(SyntaxError { message, offset: Some(*offset) })
            }
            None => Ok(Value::Table(entries)),
        }
    }

    fn list(&mut self) -> Result<Value, SyntaxError> {
        let mut items = Vec::new();
        self.at += 1;
        while self.next_member(b']').is_some() {
            items.push(self.value()?);
        }
        Ok(Value::List(items))
    }

    /// Passes a comma and returns the offset of the member behind it; `None` after the closing bracket.
    fn next_member(&mut self, closing: u8) -> Option<usize> {
        self.pass_spaces();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.pass_spaces();
        }
        match self.peek()? {
            byte if byte == closing => {
                self.at += 1;
                None
            }
            _ => Some(self.at),
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let offset = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(self.at..).unwrap_or_default()) {
            self.at += found + 1;
            if bytes[self.at - 1] == b'"' {
                break;
            }
            // What a backslash escapes.
            self.at += 1;
        }
        self.read(offset)
    }

    fn scalar(&mut self) -> Result<Value, SyntaxError> {
        let offset = self.at;
        while !matches!(self.peek(), None | Some(b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        Ok(match self.read(offset)? {
            serde_json::Value::Bool(value) => Value::Bool(value),
            serde_json::Value::Number(value) => match (value.as_i64(), value.as_f64()) {
                (Some(integer), _) => Value::Integer(integer),
                (None, Some(float)) => Value::Float(float),
                (None, None) => {
                    let message = "the number is out of range".to_owned();
                    return Err(SyntaxError { message, offset: Some(offset) });
                }
            },
            _ => Value::Null,
        })
    }

    /// The value that begins at an offset and ends here.
    fn read<T: serde::de::DeserializeOwned>(&self, offset: usize) -> Result<T, SyntaxError> {
        let part = self.text.get(offset..self.at).unwrap_or_default();
        serde_json::from_str(part)
            .map_err(|error| SyntaxError { message: error_text(&error), offset: Some(offset) })
    }

    fn pass_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}
