//! Framing of server-sent events: bytes cut at any point become whole events.

use crate::failure::{Failure, FailureKind};

/// In bytes; a longer incomplete event is an error.
const LONGEST_EVENT: usize = 16 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct EventFrames {
    /// Bytes of an incomplete line.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    after_return: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// The `event:` field; empty when absent.
    pub name: String,
    /// The `data:` fields, joined by line breaks.
    pub data: String,
}

impl EventFrames {
    /// Takes bytes and passes every completed event to `sink`.
    pub fn take(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(Event) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (before, after) = (&rest[..end], &rest[end + 1..]);
            // A line ends with \n, \r or both; the \n of a \r\n may come with the next bytes.
            let second_half = rest[end] == b'\n' && end == 0 && self.line.is_empty() && self.after_return;
            self.after_return = rest[end] == b'\r';
            rest = after;
            if second_half {
                continue;
            }
            self.line.extend_from_slice(before);
            let line = std::mem::take(&mut self.line);
            if let Some(event) = self.line(&line)? {
                sink(event)?;
            }
        }
        if !rest.is_empty() {
            self.after_return = false;
            self.line.extend_from_slice(rest);
        }
        if self.line.len() + self.data.len() > LONGEST_EVENT {
            return Err(Failure::lasting(FailureKind::Protocol, "an event of the stream is endless"));
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<Event>, Failure> {
        if line.is_empty() {
            if !self.has_data {
                self.name.clear();
                return Ok(None);
            }
            self.has_data = false;
            return Ok(Some(Event {
                name: std::mem::take(&mut self.name),
                data: std::mem::take(&mut self.data),
            }));
        }
        let Ok(line) = std::str::from_utf8(line) else {
            return Err(Failure::passing(FailureKind::Protocol, "the stream is not UTF-8 text"));
        };
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "event" => value.clone_into(&mut self.name),
            // Comments, ids and retry hints are ignored.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<Event> {
        let mut frames = EventFrames::default();
        let mut found = Vec::new();
        for piece in pieces {
            frames
                .take(piece, |event| {
                    found.push(event);
                    Ok(())
                })
                .unwrap();
        }
        found
    }

    const STREAM: &str = ": hello\nevent: a\ndata: 1\ndata:2\n\ndata: {\"x\":\"ü\"}\r\n\r\nid: 7\r\revent: lost\n\ndata: unfinished";

    #[test]
    fn lines_fields_and_comments() {
        let event = |name: &str, data: &str| Event { name: name.into(), data: data.into() };
        let expected = vec![event("a", "1\n2"), event("", "{\"x\":\"ü\"}")];
        assert_eq!(events(&[STREAM.as_bytes()]), expected);
    }

    proptest::proptest! {
        #[test]
        fn cuts_do_not_matter(cuts in proptest::collection::vec(0..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &STREAM.as_bytes()[pair[0]..pair[1]]).collect();
            proptest::prop_assert_eq!(events(&pieces), events(&[STREAM.as_bytes()]));
        }
    }
}
