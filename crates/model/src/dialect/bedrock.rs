//! Anthropic's models on Amazon Bedrock: the messages format inside `InvokeModel`.
//!
//! Bedrock puts the model and the choice of streaming in the path, and wraps each event of a stream in base64 inside an
//! AWS event stream. For what the format lacks, see [`crate::dialect::anthropic`].

use aec_base::text::percent_encoded;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Map;

use crate::dialect::anthropic::{Assembly, decode_message, encode_body};
use crate::dialect::aws_events::AwsFrames;
use crate::dialect::fields::{self, Fields, malformed};
use crate::dialect::{Dialect, StreamReader, Wire};
use crate::failure::Failure;
use crate::message::{Reply, Request};

/// `InvokeModel` with Anthropic bodies.
#[derive(Clone, Copy, Debug)]
pub struct BedrockInvoke;

impl Dialect for BedrockInvoke {
    fn path(&self, wire: &Wire) -> String {
        let operation = if wire.stream { "invoke-with-response-stream" } else { "invoke" };
        model_path(&wire.model, operation)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn encode(&self, request: &Request, wire: &Wire) -> serde_json::Result<Vec<u8>> {
        let mut body = Map::new();
        body.insert("anthropic_version".to_owned(), "bedrock-2023-05-31".into());
        body.extend(encode_body(request, wire));
        serde_json::to_vec(&body)
    }

    fn decode(&self, body: &[u8]) -> Result<Reply, Failure> {
        decode_message(fields::parse(body, "the answer")?)
    }

    fn reader(&self) -> Box<dyn StreamReader> {
        Box::new(Reader::default())
    }
}

/// The path of an operation on a model. Ids contain `:`, those of inference profiles also `/`; AWS expects the id as
/// one segment with all but unreserved characters escaped, and signs that spelling.
pub(crate) fn model_path(model: &str, operation: &str) -> String {
    format!("/model/{}/{operation}", percent_encoded(model))
}

/// Reads `chunk` events.
#[derive(Default)]
struct Reader {
    frames: AwsFrames,
    assembly: Assembly,
}

impl StreamReader for Reader {
    fn take(&mut self, bytes: &Bytes) -> Result<(), Failure> {
        let assembly = &mut self.assembly;
        self.frames.take(bytes, |event| {
            if assembly.is_done() || event.kind != "chunk" {
                return Ok(());
            }
            let chunk = fields::parse(&event.payload, "an event of the stream")?;
            let encoded = Fields::of(chunk, "chunk")?.need_text("bytes")?;
            let decoded = STANDARD.decode(encoded).map_err(|_| malformed("chunk.bytes", "base64"))?;
            assembly.take(fields::parse(&decoded, "an event of the stream")?)
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
