//! The chat-completions format in both directions: vendors' bytes and ours.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]
#![expect(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]

mod agents;
mod gateway;
mod requests;
mod shapes;
mod streams;

use aec_model::dialect::openai::OpenAiChat;
use aec_model::dialect::{Dialect, Wire};
use aec_model::failure::Failure;
use aec_model::message::Reply;
use bytes::Bytes;

/// Reads a complete body.
fn decode(body: &str) -> Result<Reply, Failure> {
    OpenAiChat.decode(body.as_bytes())
}

/// Reads a stream that comes in the given pieces and then ends.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Reply, Failure> {
    let mut reader = OpenAiChat.reader();
    for piece in pieces {
        reader.take(&Bytes::copy_from_slice(piece))?;
    }
    reader.finish()
}

/// A wire that names the model in the body.
fn wire() -> Wire {
    Wire { model: "gpt-x".to_owned(), model_in_body: true, ..Wire::default() }
}
