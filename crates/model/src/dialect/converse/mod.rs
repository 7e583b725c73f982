//! Amazon Bedrock's Converse format, which all model families there share except Anthropic's (see
//! [`crate::dialect::bedrock`]).
//!
//! - `inferenceConfig.maxTokens` is always sent; it bounds all output.
//! - The format has no seed; [`crate::message::Sampling::seed`] is not sent.
//! - [`crate::message::Sampling::extra`] becomes `additionalModelRequestFields`, without the keys that model
//!   families use for the output limit.
//! - A thinking budget is sent in the spelling of the only family that has one; others refuse it.
//! - There is no choice "none". Instead the tools are left out, unless the conversation already contains calls, which
//!   the service only accepts together with tools; then the model is free to call one.
//! - Cache points are only sent to families that accept them.

use bytes::Bytes;

use crate::dialect::aws_events::AwsFrames;
use crate::dialect::bedrock::model_path;
use crate::dialect::{Dialect, StreamReader, Wire, fields};
use crate::failure::{Failure, FailureKind};
use crate::message::{Reply, Request};

mod assembly;
mod decode;
mod encode;

use assembly::Assembly;

/// `Converse` and `ConverseStream`.
#[derive(Clone, Copy, Debug)]
pub struct BedrockConverse;

impl Dialect for BedrockConverse {
    fn path(&self, wire: &Wire) -> String {
        model_path(&wire.model, if wire.stream { "converse-stream" } else { "converse" })
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn encode(&self, request: &Request, wire: &Wire) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&encode::encode_body(request, wire))
    }

    fn decode(&self, body: &[u8]) -> Result<Reply, Failure> {
        decode::decode_answer(fields::parse(body, "the answer")?)
    }

    fn reader(&self) -> Box<dyn StreamReader> {
        Box::new(Reader::default())
    }
}

/// Reads the events of `ConverseStream`.
#[derive(Default)]
struct Reader {
    frames: AwsFrames,
    assembly: Assembly,
}

impl StreamReader for Reader {
    fn take(&mut self, bytes: &Bytes) -> Result<(), Failure> {
        let assembly = &mut self.assembly;
        self.frames.take(bytes, |event| {
            if assembly.is_done() || !assembly::is_known(&event.kind) {
                return Ok(());
            }
            assembly.take(&event.kind, fields::parse(&event.payload, "an event of the stream")?)
        })
    }

    fn is_done(&self) -> bool {
        self.assembly.is_done()
    }

    fn received(&self) -> usize {
        self.assembly.received()
    }

    fn finish(self: Box<Self>) -> Result<Reply, Failure> {
        if !self.assembly.is_done() && !self.frames.is_between_frames() {
            return Err(Failure::passing(
                FailureKind::Truncated,
                "the stream of the answer ended inside a frame",
            ));
        }
        self.assembly.finish()
    }
}
