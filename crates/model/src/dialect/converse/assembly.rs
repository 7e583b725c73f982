//! Assembles a Converse answer from the events of a stream.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::dialect::converse::decode::decode_answer;
use crate::dialect::fields::{Fields, append, arguments, malformed, merge, push};
use crate::failure::{Failure, FailureKind};
use crate::message::Reply;

/// An answer in progress; it results in the JSON of an answer without streaming.
#[derive(Default)]
pub(super) struct Assembly {
    answer: Map<String, Value>,
    blocks: IndexMap<u64, Block>,
    started: bool,
    /// `messageStop` was received. `metadata` usually follows it.
    stopped: bool,
    done: bool,
    received: usize,
}

/// The content of a block so far. Only tool calls have a start event; others begin with their first piece.
#[derive(Default)]
struct Block {
    /// The block's start event, or pieces of an unknown kind.
    content: Map<String, Value>,
    text: Option<String>,
    thought: Map<String, Value>,
    redacted: Vec<u8>,
    json: String,
    closed: bool,
}

/// Whether events of this kind are handled here.
pub(super) fn is_known(kind: &str) -> bool {
    matches!(
        kind,
        "messageStart"
            | "contentBlockStart"
            | "contentBlockDelta"
            | "contentBlockStop"
            | "messageStop"
            | "metadata"
    )
}

impl Assembly {
    /// Takes one event of a known kind.
    pub(super) fn take(&mut self, kind: &str, event: Value) -> Result<(), Failure> {
        let mut event = Fields::of(event, kind)?;
        // Padding that hides the length of the text from eavesdroppers.
        event.take("p");
        if (kind == "messageStart") == self.started || self.stopped && kind != "metadata" {
            return Err(Failure::passing(
                FailureKind::Protocol,
                format!("the stream has a `{kind}` in the wrong place"),
            ));
        }
        match kind {
            "messageStart" => self.started = true,
            "contentBlockStart" => self.open(&mut event)?,
            "contentBlockDelta" => self.grow(&mut event)?,
            "contentBlockStop" => {
                let index = event.need_count("contentBlockIndex")?;
                self.block(index)?.closed = true;
            }
            "messageStop" => {
                self.stopped = true;
                merge(&mut self.answer, event.rest());
            }
            _ => {
                merge(&mut self.answer, event.rest());
                self.done = self.stopped;
            }
        }
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Bytes of text, thoughts and arguments so far.
    pub(super) fn received(&self) -> usize {
        self.received
    }

    /// The reply. Without `metadata` it lacks the usage, but is complete.
    pub(super) fn finish(self) -> Result<Reply, Failure> {
        if !self.stopped {
            return Err(Failure::passing(
                FailureKind::Truncated,
                "the stream of the answer ended before its last event",
            ));
        }
        if let Some(index) = self.blocks.iter().find_map(|(index, block)| (!block.closed).then_some(index)) {
            return Err(Failure::passing(
                FailureKind::Protocol,
                format!("the stream ends while its content block {index} is open"),
            ));
        }
        let content: Vec<Value> = self.blocks.into_values().map(Block::into_content).collect();
        let mut answer = self.answer;
        answer.insert("output".to_owned(), json!({"message": {"role": "assistant", "content": content}}));
        decode_answer(answer.into())
    }

    fn open(&mut self, event: &mut Fields) -> Result<(), Failure> {
        let index = event.need_count("contentBlockIndex")?;
        let content = event.need_object("start")?.rest();
        match self.blocks.insert(index, Block { content, ..Block::default() }) {
            None => Ok(()),
            Some(_) => Err(malformed("contentBlockIndex", "new: a content block starts twice")),
        }
    }

    fn grow(&mut self, event: &mut Fields) -> Result<(), Failure> {
        let index = event.need_count("contentBlockIndex")?;
        let delta = event.need_object("delta")?;
        let block = self.block(index)?;
        let length = block.grow(delta)?;
        self.received += length;
        Ok(())
    }

    fn block(&mut self, index: u64) -> Result<&mut Block, Failure> {
        let block = self.blocks.entry(index).or_default();
        if block.closed {
            return Err(malformed("contentBlockIndex", "that of an open block"));
        }
        Ok(block)
    }
}

impl Block {
    /// Adds a piece and returns its length.
    fn grow(&mut self, mut delta: Fields) -> Result<usize, Failure> {
        if let Some(piece) = delta.text("text")? {
            self.text.get_or_insert_default().push_str(&piece);
            return Ok(piece.len());
        }
        if let Some(mut call) = delta.object("toolUse")? {
            if !self.content.contains_key("toolUse") {
                return Err(malformed("contentBlockIndex", "that of a call that was announced"));
            }
            let piece = call.need_text("input")?;
            self.json.push_str(&piece);
            return Ok(piece.len());
        }
        if let Some(mut thought) = delta.object("reasoningContent")? {
            let mut length = 0;
            for key in ["text", "signature"] {
                if let Some(piece) = thought.text(key)? {
                    append(&mut self.thought, key, &piece);
                    length += piece.len();
                }
            }
            if let Some(piece) = thought.text("redactedContent")? {
                let at = thought.path("redactedContent");
                let bytes = STANDARD.decode(&piece).map_err(|_| malformed(&at, "base64"))?;
                self.redacted.extend_from_slice(&bytes);
                length += piece.len();
            }
            return Ok(length);
        }
        push(&mut self.content, "deltas", delta.rest().into());
        Ok(0)
    }

    /// The block in the form of an answer without streaming.
    fn into_content(self) -> Value {
        let mut content = self.content;
        if let Some(Value::Object(call)) = content.get_mut("toolUse") {
            call.insert("input".to_owned(), arguments(self.json));
        } else if !self.redacted.is_empty() {
            content.insert(
                "reasoningContent".to_owned(),
                json!({"redactedContent": STANDARD.encode(self.redacted)}),
            );
        } else if !self.thought.is_empty() {
            content.insert("reasoningContent".to_owned(), json!({"reasoningText": self.thought}));
        } else if let Some(text) = self.text {
            content.insert("text".to_owned(), text.into());
        } else if content.is_empty() {
            // A block with only an end: an empty text.
            content.insert("text".to_owned(), "".into());
        }
        content.into()
    }
}
