//! Anthropic's messages format.
//!
//! - `max_tokens` is always sent: it bounds all output including thoughts, and money is reserved for it. A
//!   thinking budget is sent unchanged: the service refuses one that exceeds the limit, and this program changes
//!   neither number silently.
//! - The format has no seed; [`crate::message::Sampling::seed`] is not sent.
//! - Signed and redacted thoughts are sent back unchanged. Thoughts without a signature or from another dialect
//!   are left out, because the service rejects them.
//! - Blank text blocks are left out for the same reason.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::dialect::events::EventFrames;
use crate::dialect::{Dialect, StreamReader, Wire, fields};
use crate::failure::Failure;
use crate::message::{Reply, Request};

mod assembly;
mod decode;
mod encode;

pub(crate) use assembly::Assembly;
pub(crate) use decode::decode_message;
pub(crate) use encode::{encode_body, input, object_schema};

/// The format of `api.anthropic.com` and compatible servers.
#[derive(Clone, Copy, Debug)]
pub struct AnthropicMessages;

impl Dialect for AnthropicMessages {
    fn path(&self, _wire: &Wire) -> String {
        "/v1/messages".to_owned()
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn encode(&self, request: &Request, wire: &Wire) -> serde_json::Result<Vec<u8>> {
        let mut body = Map::new();
        if wire.model_in_body {
            body.insert("model".to_owned(), Value::from(wire.model.as_str()));
        }
        body.extend(encode_body(request, wire));
        if wire.stream {
            body.insert("stream".to_owned(), Value::Bool(true));
        }
        serde_json::to_vec(&body)
    }

    fn decode(&self, body: &[u8]) -> Result<Reply, Failure> {
        decode_message(fields::parse(body, "the answer")?)
    }

    fn reader(&self) -> Box<dyn StreamReader> {
        Box::new(Reader::default())
    }
}

/// Reads server-sent events.
#[derive(Default)]
struct Reader {
    frames: EventFrames,
    assembly: Assembly,
}

impl StreamReader for Reader {
    fn take(&mut self, bytes: &Bytes) -> Result<(), Failure> {
        let assembly = &mut self.assembly;
        self.frames.take(bytes, |event| {
            if assembly.is_done() {
                return Ok(());
            }
            assembly.take(fields::parse(event.data.as_bytes(), "an event of the stream")?)
        })
    }

    fn is_done(&self) -> bool {
        self.assembly.is_done()
    }

    fn received(&self) -> usize {
        self.assembly.received()
    }

    fn finish(self: Box<Self>) -> Result<Reply, Failure> {
        self.assembly.finish()
    }
}
