//! Frames of Amazon's event streams.

use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use bytes::BytesMut;
use serde_json::{Value, json};

/// The media type of a stream of frames.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.amazon.eventstream";

/// Appends an event.
pub(crate) fn event(out: &mut BytesMut, name: &'static str, payload: &Value) {
    append(
        out,
        [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")],
        payload,
    );
}

/// Appends the exception of an overloaded service.
pub(crate) fn overloaded(out: &mut BytesMut) {
    let headers = [
        (":exception-type", "serviceUnavailableException"),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    append(out, headers, &json!({"message": "Bedrock is unable to process your request."}));
}

/// Appends bytes with the length of a frame and a wrong checksum.
pub(crate) fn garbage(out: &mut BytesMut) {
    out.extend_from_slice(&[0, 0, 0, 20, 0, 0, 0, 0, 1, 2, 3, 4, b'h', b't', b'm', b'l', 5, 6, 7, 8]);
}

fn append(out: &mut BytesMut, headers: [(&'static str, &'static str); 3], payload: &Value) {
    let mut message = Message::new(payload.to_string().into_bytes());
    for (name, value) in headers {
        message = message.add_header(Header::new(name, HeaderValue::String(value.into())));
    }
    // Writing fails only for frames larger than 4 GiB.
    let _unused = write_message_to(&message, out);
}
