//! Framing of AWS event streams: bytes cut at any point become whole events; exceptions become failures.

use aws_smithy_eventstream::frame::read_message_from;
use aws_smithy_types::event_stream::Message;
use bytes::{Buf, Bytes, BytesMut};
use serde_json::Value;

use crate::dialect::reported;
use crate::failure::{Failure, FailureKind};

/// In bytes; a longer frame is an error.
const LONGEST_FRAME: usize = 16 * 1024 * 1024;

/// Shortest frame: two lengths and two checksums.
const SHORTEST_FRAME: usize = 16;

#[derive(Debug, Default)]
pub struct AwsFrames {
    buffer: BytesMut,
}

#[derive(Debug, PartialEq, Eq)]
pub struct AwsEvent {
    /// The `:event-type` header.
    pub kind: String,
    /// Usually JSON.
    pub payload: Bytes,
}

impl AwsFrames {
    /// Takes bytes and passes every completed event to `sink`.
    pub fn take(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(AwsEvent) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.buffer.extend_from_slice(bytes);
        while let Some(frame) = self.frame()? {
            let message = read_message_from(frame).map_err(|error| {
                Failure::passing(FailureKind::Protocol, format!("a frame of the stream is damaged: {error}"))
            })?;
            sink(event(&message)?)?;
        }
        Ok(())
    }

    /// Whether no incomplete frame is waiting.
    pub fn is_between_frames(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The bytes of the next complete frame. Every frame begins with its length.
    fn frame(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(mut length) = self.buffer.get(..4) else { return Ok(None) };
        let length = usize::try_from(length.get_u32()).unwrap_or(usize::MAX);
        if !(SHORTEST_FRAME..=LONGEST_FRAME).contains(&length) {
            let message = format!("a frame of the stream claims to have {length} bytes");
            return Err(Failure::passing(FailureKind::Protocol, message));
        }
        Ok((self.buffer.len() >= length).then(|| self.buffer.split_to(length).freeze()))
    }
}

fn event(message: &Message) -> Result<AwsEvent, Failure> {
    let header = |name: &str| {
        message
            .headers()
            .iter()
            .find(|header| header.name().as_str() == name)
            .and_then(|header| header.value().as_string().ok())
            .map(|value| value.as_str().to_owned())
    };
    match header(":message-type").as_deref() {
        Some("event") => Ok(AwsEvent {
            kind: header(":event-type").unwrap_or_default(),
            payload: message.payload().clone(),
        }),
        Some("exception") => {
            let kind = header(":exception-type").unwrap_or_else(|| "exception".to_owned());
            Err(reported::by_bedrock(&kind, &exception_text(message.payload())))
        }
        Some("error") => {
            let kind = header(":error-code").unwrap_or_else(|| "error".to_owned());
            Err(reported::by_bedrock(&kind, &header(":error-message").unwrap_or_default()))
        }
        _ => Err(Failure::passing(
            FailureKind::Protocol,
            "a frame of the stream is neither an event nor an exception",
        )),
    }
}

/// The message of an exception, and that of the model's server behind it.
fn exception_text(payload: &[u8]) -> String {
    let Ok(value) = aec_base::json::from_slice::<Value>(payload) else {
        return String::from_utf8_lossy(payload).into_owned();
    };
    let words: Vec<&str> = ["message", "Message", "originalMessage"]
        .into_iter()
        .filter_map(|key| value.get(key)?.as_str())
        .collect();
    if words.is_empty() { value.to_string() } else { words.join(": ") }
}

#[cfg(test)]
mod tests {
    use aws_smithy_eventstream::frame::write_message_to;
    use aws_smithy_types::event_stream::{Header, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    fn frame(headers: &[(&'static str, &'static str)], payload: &[u8]) -> Vec<u8> {
        let mut message = Message::new(Bytes::copy_from_slice(payload));
        for (name, value) in headers {
            message = message.add_header(Header::new(*name, HeaderValue::String((*value).into())));
        }
        let mut bytes = Vec::new();
        write_message_to(&message, &mut bytes).unwrap();
        bytes
    }

    fn stream() -> Vec<u8> {
        let mut bytes = frame(&[(":message-type", "event"), (":event-type", "chunk")], b"{\"a\":1}");
        bytes.extend(frame(&[(":event-type", "metadata"), (":message-type", "event")], b""));
        bytes
    }

    fn events(pieces: &[&[u8]]) -> Result<Vec<AwsEvent>, Failure> {
        let mut frames = AwsFrames::default();
        let mut found = Vec::new();
        for piece in pieces {
            frames.take(piece, |event| {
                found.push(event);
                Ok(())
            })?;
        }
        Ok(found)
    }

    #[test]
    fn frames_become_events() {
        let event = |kind: &str, payload: &'static [u8]| AwsEvent {
            kind: kind.to_owned(),
            payload: Bytes::from_static(payload),
        };
        let expected = vec![event("chunk", b"{\"a\":1}"), event("metadata", b"")];
        assert_eq!(events(&[&stream()]).unwrap(), expected);
    }

    /// The frame in the format's documentation: no headers, payload `{'foo':'bar'}`.
    #[test]
    fn checksums_are_those_of_the_format() {
        let frame = b"\0\0\0\x1d\0\0\0\0\xfd\x52\x8c\x5a{'foo':'bar'}\xc3\x65\x39\x36";
        let failure = events(&[frame]).unwrap_err();
        assert_eq!(failure.message, "a frame of the stream is neither an event nor an exception");
    }

    #[test]
    fn each_damaged_bit_is_noticed() {
        let whole = stream();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // A greater length only makes the reader wait; other damage is an error at once.
            match events(&[&damaged]) {
                Ok(found) => assert!(found.len() < 2, "bit {bit}"),
                Err(failure) => assert_eq!((failure.kind, failure.retryable), (FailureKind::Protocol, true)),
            }
        }
    }

    #[test]
    fn a_frame_cannot_be_endless() {
        let claim = u32::try_from(LONGEST_FRAME + 1).unwrap().to_be_bytes();
        assert_eq!(events(&[&claim]).unwrap_err().kind, FailureKind::Protocol);
    }

    #[test]
    fn each_exception_has_its_kind() {
        use FailureKind as K;
        let cases = [
            ("throttlingException", "Too many tokens, please wait", K::Rate, true),
            ("modelStreamErrorException", "The system encountered an error", K::Server, true),
            ("internalServerException", "internal", K::Server, true),
            ("serviceUnavailableException", "Bedrock is unable to process your request", K::Server, true),
            ("modelTimeoutException", "Model has timed out", K::Server, true),
            ("validationException", "Input is too long for requested model.", K::Overlong, false),
            ("validationException", "temperature: out of range", K::Request, false),
            ("ValidationException", "The provided model identifier is invalid.", K::Request, false),
            ("accessDeniedException", "You don't have access to the model", K::Auth, false),
            ("somethingNewException", "?", K::Server, true),
        ];
        for (exception, message, kind, retryable) in cases {
            let payload = serde_json::json!({"message": message}).to_string();
            let bytes =
                frame(&[(":message-type", "exception"), (":exception-type", exception)], payload.as_bytes());
            let failure = events(&[&bytes]).unwrap_err();
            assert_eq!((failure.kind, failure.retryable), (kind, retryable), "{exception}: {message}");
            assert_eq!(failure.message, format!("the provider reports {exception}: {message}"));
            assert_eq!(failure.status, None);
        }
    }

    #[test]
    fn an_unmodeled_error_is_in_the_headers() {
        let bytes = frame(
            &[(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "oops")],
            b"",
        );
        let failure = events(&[&bytes]).unwrap_err();
        assert_eq!(failure.message, "the provider reports InternalFailure: oops");
        assert_eq!(failure.kind, FailureKind::Server);
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(cuts in proptest::collection::vec(0_usize..200, 0..12)) {
            let whole = stream();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
            prop_assert_eq!(events(&pieces).unwrap(), events(&[&whole]).unwrap());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), length in 0_u8..=200) {
            let mut bytes = bytes;
            drop(events(&[&bytes]));
            // A small length makes the decoder parse the frame.
            bytes.splice(0..0, [0, 0, 0, length]);
            drop(events(&[&bytes]));
        }
    }
}
