//! Assembles a message from the events of a stream. It does not depend on how events are framed, so both server-sent
//! events and AWS event streams use it.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::dialect::anthropic::decode::{decode_message, error_event};
use crate::dialect::fields::{Fields, append, arguments, malformed, merge, push};
use crate::failure::{Failure, FailureKind};
use crate::message::Reply;

/// A message in progress. It results in the JSON that the service sends without streaming, so one decoder serves both.
#[derive(Default)]
pub(crate) struct Assembly {
    message: Map<String, Value>,
    usage: Map<String, Value>,
    blocks: IndexMap<u64, Block>,
    started: bool,
    done: bool,
    received: usize,
}

#[derive(Default)]
struct Block {
    content: Map<String, Value>,
    json: String,
    closed: bool,
}

impl Assembly {
    pub(crate) fn take(&mut self, event: Value) -> Result<(), Failure> {
        let mut event = Fields::of(event, "event")?;
        let kind = event.need_text("type")?;
        match kind.as_str() {
            "message_start" => return self.start(&mut event),
            "error" => return Err(error_event(&mut event)),
            "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
                if !self.started =>
            {
                return Err(Failure::passing(
                    FailureKind::Protocol,
                    format!("the stream has a `{kind}` before its `message_start`"),
                ));
            }
            _ => {}
        }
        match kind.as_str() {
            "content_block_start" => self.open(&mut event),
            "content_block_delta" => self.grow(&mut event),
            "content_block_stop" => {
                let index = event.need_count("index")?;
                self.block(index)?.close();
                Ok(())
            }
            "message_delta" => self.change(event),
            "message_stop" => self.stop(event),
            // `ping` and unknown events.
            _ => Ok(()),
        }
    }

    /// Whether the closing event was seen.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Bytes of text, thoughts and arguments so far.
    pub(crate) fn received(&self) -> usize {
        self.received
    }

    /// The reply, if the stream is complete.
    pub(crate) fn finish(self) -> Result<Reply, Failure> {
        if !self.done {
            return Err(Failure::passing(
                FailureKind::Truncated,
                "the stream of the answer ended before its last event",
            ));
        }
        let mut message = self.message;
        if !self.usage.is_empty() {
            message.insert("usage".to_owned(), self.usage.into());
        }
        let content: Vec<Value> = self.blocks.into_values().map(|block| block.content.into()).collect();
        message.insert("content".to_owned(), content.into());
        decode_message(message.into())
    }

    fn start(&mut self, event: &mut Fields) -> Result<(), Failure> {
        if std::mem::replace(&mut self.started, true) {
            return Err(Failure::passing(FailureKind::Protocol, "the stream starts two messages"));
        }
        let mut message = event.need_object("message")?;
        if let Some(usage) = message.object("usage")? {
            self.usage = usage.rest();
            // This is a placeholder; the count comes with `message_delta`.
            self.usage.shift_remove("output_tokens");
        }
        message.take("content");
        self.message = message.rest();
        Ok(())
    }

    fn open(&mut self, event: &mut Fields) -> Result<(), Failure> {
        let index = event.need_count("index")?;
        let content = event.need_object("content_block")?.rest();
        self.received += ["text", "thinking", "data"]
            .into_iter()
            .filter_map(|key| content.get(key)?.as_str())
            .map(str::len)
            .sum::<usize>();
        let block = Block { content, ..Block::default() };
        match self.blocks.insert(index, block) {
            None => Ok(()),
            Some(_) => Err(malformed("index", "new: a content block starts twice")),
        }
    }

    fn grow(&mut self, event: &mut Fields) -> Result<(), Failure> {
        let index = event.need_count("index")?;
        let mut delta = event.need_object("delta")?;
        let kind = delta.need_text("type")?;
        let block = self.block(index)?;
        let belongs = match kind.as_str() {
            "text_delta" => &["text"][..],
            "thinking_delta" | "signature_delta" => &["thinking"],
            _ => &[],
        };
        let block_kind = block.content.get("type").and_then(Value::as_str).unwrap_or_default();
        if block.closed || !(belongs.is_empty() || belongs.contains(&block_kind)) {
            return Err(malformed(&format!("index {index}"), &format!("a block that can take a `{kind}`")));
        }
        let length = match kind.as_str() {
            "text_delta" => block.append("text", &delta.need_text("text")?),
            "thinking_delta" => block.append("thinking", &delta.need_text("thinking")?),
            "signature_delta" => block.append("signature", &delta.need_text("signature")?),
            "input_json_delta" => {
                let piece = delta.need_text("partial_json")?;
                block.json.push_str(&piece);
                piece.len()
            }
            "citations_delta" => {
                push(&mut block.content, "citations", delta.need("citation")?);
                0
            }
            _ => {
                delta.put("type", kind);
                push(&mut block.content, "deltas", delta.rest().into());
                0
            }
        };
        self.received += length;
        Ok(())
    }

    /// Takes the stop reason and the usage near the end of the message.
    fn change(&mut self, mut event: Fields) -> Result<(), Failure> {
        merge(&mut self.message, event.need_object("delta")?.rest());
        if let Some(usage) = event.object("usage")? {
            let mut usage = usage.rest();
            // Counters are cumulative; some servers send zero for what they counted at the start.
            usage.retain(|key, value| {
                value.as_u64() != Some(0) || self.usage.get(key).and_then(Value::as_u64).is_none()
            });
            merge(&mut self.usage, usage);
        }
        merge(&mut self.message, event.rest());
        Ok(())
    }

    fn stop(&mut self, event: Fields) -> Result<(), Failure> {
        if let Some(index) = self.blocks.iter().find_map(|(index, block)| (!block.closed).then_some(index)) {
            return Err(Failure::passing(
                FailureKind::Protocol,
                format!("the stream ends while its content block {index} is open"),
            ));
        }
        merge(&mut self.message, event.rest());
        self.done = true;
        Ok(())
    }

    fn block(&mut self, index: u64) -> Result<&mut Block, Failure> {
        self.blocks
            .get_mut(&index)
            .ok_or_else(|| malformed(&format!("index {index}"), "a content block that has started"))
    }
}

impl Block {
    fn append(&mut self, key: &str, piece: &str) -> usize {
        append(&mut self.content, key, piece);
        piece.len()
    }

    fn close(&mut self) {
        self.closed = true;
        let json = std::mem::take(&mut self.json);
        let is_call = self.content.get("type").and_then(Value::as_str) == Some("tool_use");
        if !json.is_empty() || is_call && !self.content.contains_key("input") {
            self.content.insert("input".to_owned(), arguments(json));
        }
    }
}
