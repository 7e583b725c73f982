//! Writes answers in each wire format: whole, or event by event.

use bytes::BytesMut;
use serde_json::Value;

use crate::answer::Answer;
use crate::prompt::InputTokens;
use crate::route::Form;
use crate::{anthropic, converse, openai};

/// The creation time of every answer, in seconds: fixed, so that the same request gets the same bytes.
pub(crate) const CREATED: u64 = 1_767_225_600;

/// An answer with everything that a wire format adds to it.
pub(crate) struct Reply {
    pub(crate) form: Form,
    pub(crate) model: String,
    /// Letters and digits from which ids are made.
    pub(crate) id: String,
    pub(crate) answer: Answer,
    /// Tokens of the answer, including thoughts.
    pub(crate) output: u64,
    pub(crate) thoughts: u64,
    pub(crate) input: InputTokens,
    pub(crate) include_usage: bool,
    pub(crate) latency_ms: u64,
    /// The common beginning of a stream's events, if the format has one.
    pub(crate) head: String,
}

/// A writer of one wire format. It appends events to the given buffer.
pub(crate) trait Voice: Send + Sync {
    /// Writes the whole answer.
    fn whole(&self, reply: &Reply, out: &mut BytesMut);

    /// The media type of a stream.
    fn stream_type(&self) -> &'static str;

    /// Begins a stream.
    fn start(&self, reply: &mut Reply, out: &mut BytesMut);

    /// Begins a part.
    fn open(&self, reply: &Reply, index: usize, out: &mut BytesMut);

    /// Writes a token of a part.
    fn piece(&self, reply: &Reply, index: usize, piece: &str, out: &mut BytesMut);

    /// Ends a part.
    fn close(&self, reply: &Reply, index: usize, out: &mut BytesMut);

    /// Ends a stream.
    fn end(&self, reply: &Reply, out: &mut BytesMut);

    /// Writes an error in the middle of a stream: the service is overloaded.
    fn error(&self, out: &mut BytesMut);

    /// Writes an event with a wrong type in a field that every client reads.
    fn malformed(&self, reply: &Reply, out: &mut BytesMut);

    /// Writes bytes that are not an event.
    fn garbage(&self, out: &mut BytesMut);

    /// Puts a wrong type into a field of a whole answer that every client reads.
    fn spoil(&self, whole: &mut Value);
}

/// The writer of a wire format.
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
    // Texts, numbers and `Value`s always serialise, and a buffer accepts every write.
    let _unused = serde_json::to_writer(out.writer(), value);
}
