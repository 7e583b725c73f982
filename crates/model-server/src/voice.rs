//! How an answer is written in each wire format: whole, or event by event.

use bytes::BytesMut;
use serde_json::Value;

use crate::answer::Answer;
use crate::prompt::InputTokens;
use crate::route::Form;
use crate::{anthropic, converse, openai};

/// When every answer was made, in seconds: a fixed moment, so that the same request gets the same bytes.
pub(crate) const CREATED: u64 = 1_767_225_600;

/// An answer with all that a wire format says around it.
pub(crate) struct Reply {
    pub(crate) form: Form,
    pub(crate) model: String,
    /// Letters and digits to make ids of.
    pub(crate) id: String,
    pub(crate) answer: Answer,
    /// Tokens of the answer, and those of them that are thoughts.
    pub(crate) output: u64,
    pub(crate) thoughts: u64,
    pub(crate) input: InputTokens,
    pub(crate) include_usage: bool,
    pub(crate) latency_ms: u64,
    /// What every event of a stream begins with, where the format has such a thing.
    pub(crate) head: String,
}

/// A wire format as it is written. Events are appended to the given buffer.
pub(crate) trait Voice: Send + Sync {
    /// The whole answer.
    fn whole(&self, reply: &Reply, out: &mut BytesMut);

    /// The media type of a stream.
    fn stream_type(&self) -> &'static str;

    /// What begins a stream.
    fn start(&self, reply: &mut Reply, out: &mut BytesMut);

    /// What begins a part.
    fn open(&self, reply: &Reply, index: usize, out: &mut BytesMut);

    /// A token of a part.
    fn piece(&self, reply: &Reply, index: usize, piece: &str, out: &mut BytesMut);

    /// What ends a part.
    fn close(&self, reply: &Reply, index: usize, out: &mut BytesMut);

    /// What ends a stream.
    fn end(&self, reply: &Reply, out: &mut BytesMut);

    /// An error in the middle of a stream: the service is overloaded.
    fn error(&self, out: &mut BytesMut);

    /// An event with a wrong type in a field that everybody reads.
    fn malformed(&self, reply: &Reply, out: &mut BytesMut);

    /// Bytes that are no event.
    fn garbage(&self, out: &mut BytesMut);

    /// Puts a wrong type in a field of a whole answer that everybody reads.
    fn spoil(&self, whole: &mut Value);
}

/// The voice of a wire format.
pub(crate) fn voice(form: Form) -> &'static dyn Voice {
    match form {
        Form::OpenAi | Form::Azure => &openai::OpenAi,
        Form::Anthropic => &anthropic::Events,
        Form::Invoke => &anthropic::Frames,
        Form::Converse => &converse::Converse,
    }
}

/// Appends JSON.
pub(crate) fn json(out: &mut BytesMut, value: &impl serde::Serialize) {
    use bytes::BufMut as _;
    // Texts, numbers and `Value`s are always JSON, and a buffer takes everything.
    let _unused = serde_json::to_writer(out.writer(), value);
}
