//! A stream of chat-completion chunks, put together to the body that the same answer has without streaming.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::decode::{self, arguments_text, content_text, error_in, take_text};
use super::malformed;
use super::reasoning::{DETAILS_KEY, TEXT_KEYS};
use crate::dialect::StreamReader;
use crate::dialect::events::{Event, EventFrames};
use crate::dialect::refusal::refused_within;
use crate::failure::{Failure, FailureKind, excerpt};
use crate::message::Reply;

/// Reads a stream.
#[derive(Default)]
pub(super) struct Reader {
    frames: EventFrames,
    answer: Answer,
}

impl StreamReader for Reader {
    fn take(&mut self, bytes: &Bytes) -> Result<(), Failure> {
        let answer = &mut self.answer;
        self.frames.take(bytes, |event| answer.take_event(&event))
    }

    fn is_done(&self) -> bool {
        self.answer.done
    }

    fn received(&self) -> usize {
        self.answer.received
    }

    fn finish(self: Box<Self>) -> Result<Reply, Failure> {
        // Many servers close the connection without the closing event; the reason is what an answer ends with.
        if self.answer.finish.is_none() {
            return Err(Failure::passing(FailureKind::Truncated, "the stream ended before the answer did"));
        }
        decode::reply(self.answer.into_body())
    }
}

/// What has come of the answer.
#[derive(Default)]
struct Answer {
    done: bool,
    received: usize,
    finish: Option<String>,
    body: Map<String, Value>,
    choice: Map<String, Value>,
    message: Map<String, Value>,
    content: String,
    refusal: String,
    thoughts: [String; TEXT_KEYS.len()],
    details: Details,
    calls: Calls,
}

impl Answer {
    fn take_event(&mut self, event: &Event) -> Result<(), Failure> {
        let data = event.data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let Ok(Value::Object(chunk)) = serde_json::from_str(data) else {
            let message = format!("a chunk of the stream is not a JSON object: {}", excerpt(data));
            return Err(Failure::passing(FailureKind::Protocol, message));
        };
        if let Some(error) = error_in(&chunk) {
            return Err(refused_within(error));
        }
        if event.name == "error" || chunk.get("object").is_some_and(|object| object == "error") {
            return Err(refused_within(&Value::Object(chunk)));
        }
        self.take_chunk(chunk)
    }

    fn take_chunk(&mut self, mut chunk: Map<String, Value>) -> Result<(), Failure> {
        let choices = match chunk.shift_remove("choices") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(choices)) => choices,
            Some(_) => return Err(malformed("choices of a chunk", "a list")),
        };
        for (key, value) in chunk {
            // Azure's first chunk names neither the answer nor the model.
            if !value.is_null() && value != "" {
                self.body.insert(key, value);
            }
        }
        let mut choices = choices.into_iter();
        let Some(choice) = choices.next() else { return Ok(()) };
        let Value::Object(mut choice) = choice else {
            return Err(malformed("choice of a chunk", "an object"));
        };
        let index = choice.shift_remove("index");
        if choices.next().is_some() || index.is_some_and(|index| !index.is_null() && index != 0) {
            return Err(malformed("choices of a chunk", "one choice"));
        }
        if let Some(error) = error_in(&choice) {
            return Err(refused_within(error));
        }
        if let Some(finish) = take_text(&mut choice, "finish_reason", "finish_reason of a chunk")? {
            self.finish = Some(finish);
        }
        let delta = choice.shift_remove("delta");
        merge(&mut self.choice, choice);
        match delta {
            None | Some(Value::Null) => Ok(()),
            Some(Value::Object(delta)) => self.take_delta(delta),
            Some(_) => Err(malformed("delta of a chunk", "an object")),
        }
    }

    fn take_delta(&mut self, mut delta: Map<String, Value>) -> Result<(), Failure> {
        delta.shift_remove("role");
        let text = content_text(delta.shift_remove("content").unwrap_or_default(), "content of a delta")?;
        self.received += text.len();
        self.content.push_str(&text);
        if let Some(text) = take_text(&mut delta, "refusal", "refusal of a delta")? {
            self.received += text.len();
            self.refusal.push_str(&text);
        }
        // The same thought may come under several keys; it was thought once.
        let mut thought = 0;
        for (key, all) in TEXT_KEYS.into_iter().zip(&mut self.thoughts) {
            if let Some(text) = take_text(&mut delta, key, "reasoning of a delta")? {
                thought = thought.max(text.len());
                all.push_str(&text);
            }
        }
        if let Some(details) = delta.shift_remove(DETAILS_KEY).filter(|details| !details.is_null()) {
            thought = thought.max(self.details.take(details)?);
        }
        self.received += thought;
        match delta.shift_remove("tool_calls") {
            None | Some(Value::Null) => {}
            Some(Value::Array(pieces)) => {
                for piece in pieces {
                    self.received += self.calls.take(piece)?;
                }
            }
            Some(_) => return Err(malformed("tool_calls of a delta", "a list")),
        }
        merge(&mut self.message, delta);
        Ok(())
    }

    /// The body that the whole answer would have been.
    fn into_body(self) -> Map<String, Value> {
        let mut message = self.message;
        let texts = [("content", self.content), ("refusal", self.refusal)];
        for (key, text) in texts.into_iter().chain(TEXT_KEYS.into_iter().zip(self.thoughts)) {
            message.insert(key.to_owned(), Value::String(text));
        }
        message.insert(DETAILS_KEY.to_owned(), Value::Array(self.details.all));
        message.insert("tool_calls".to_owned(), self.calls.all.into_iter().map(Call::into_value).collect());
        let mut choice = self.choice;
        choice.insert("finish_reason".to_owned(), json!(self.finish));
        choice.insert("message".to_owned(), Value::Object(message));
        let mut body = self.body;
        body.insert("choices".to_owned(), Value::Array(vec![Value::Object(choice)]));
        body
    }
}

/// Adds what a later chunk says: lists grow, objects are merged, the rest is replaced. Nulls say nothing.
fn merge(all: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (key, value) in piece {
        match (all.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::Array(all)), Value::Array(items)) => all.extend(items),
            (Some(Value::Object(all)), Value::Object(object)) => merge(all, object),
            (_, value) => {
                all.insert(key, value);
            }
        }
    }
}

/// Pieces of a thought. Those with the same number and type are one.
#[derive(Default)]
struct Details {
    all: Vec<Value>,
    /// Where the piece with a number and type stands.
    places: BTreeMap<(u64, String), usize>,
}

impl Details {
    /// Adds pieces and says how many bytes of thought they hold.
    fn take(&mut self, details: Value) -> Result<usize, Failure> {
        let Value::Array(details) = details else {
            return Err(malformed("reasoning_details of a delta", "a list"));
        };
        let mut received = 0;
        for detail in details {
            let Value::Object(detail) = detail else {
                return Err(malformed("reasoning_details of a delta", "a list of objects"));
            };
            let text = |key: &str| detail.get(key).and_then(Value::as_str);
            received += GROWING.iter().filter_map(|key| text(key)).map(str::len).sum::<usize>();
            let number = detail.get("index").and_then(Value::as_u64);
            let place = number.map(|number| (number, text("type").unwrap_or_default().to_owned()));
            let known = place.as_ref().and_then(|place| self.places.get(place)).copied();
            match known.and_then(|known| self.all.get_mut(known)) {
                Some(Value::Object(all)) => extend_detail(all, detail),
                _ => {
                    if let Some(place) = place {
                        self.places.insert(place, self.all.len());
                    }
                    self.all.push(Value::Object(detail));
                }
            }
        }
        Ok(received)
    }
}

/// Fields of a piece of thought that come bit by bit.
const GROWING: [&str; 3] = ["text", "summary", "data"];

fn extend_detail(all: &mut Map<String, Value>, detail: Map<String, Value>) {
    for (key, value) in detail {
        match (all.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(before)), Value::String(more)) if GROWING.contains(&key.as_str()) => {
                before.push_str(&more);
            }
            (_, value) => {
                all.insert(key, value);
            }
        }
    }
}

/// Tool calls as far as they have come, in the order of their first pieces.
#[derive(Default)]
struct Calls {
    all: Vec<Call>,
    /// Where the call with a number stands. Numbers are the server's and can be anything.
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl Call {
    fn into_value(self) -> Value {
        json!({"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}})
    }
}

impl Calls {
    /// Adds a piece of a call and says how many bytes the model wrote in it.
    fn take(&mut self, piece: Value) -> Result<usize, Failure> {
        let wrong = |expected: &str| malformed("tool_calls of a delta", expected);
        let Value::Object(mut piece) = piece else { return Err(wrong("a list of objects")) };
        let kind = take_text(&mut piece, "type", "type of a tool call")?;
        if kind.is_some_and(|kind| kind != "function") {
            return Err(wrong("a list of functions"));
        }
        let id = take_text(&mut piece, "id", "id of a tool call")?;
        let index = match piece.shift_remove("index") {
            None | Some(Value::Null) => None,
            Some(index) => Some(index.as_u64().ok_or_else(|| wrong("numbered"))?),
        };
        let (name, arguments) = match piece.shift_remove("function") {
            None | Some(Value::Null) => (None, String::new()),
            Some(Value::Object(mut function)) => {
                let name = take_text(&mut function, "name", "name of a tool call")?;
                let arguments = function.shift_remove("arguments").unwrap_or_default();
                (name, arguments_text(arguments).ok_or_else(|| wrong("of textual arguments"))?)
            }
            Some(_) => return Err(wrong("a list of functions")),
        };
        let place = self.place(index, id.as_deref(), name.is_some()).ok_or_else(|| wrong("begun"))?;
        let call = &mut self.all[place];
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            self.by_id.insert(id.clone(), place);
            call.id = id;
        }
        let mut received = arguments.len();
        // Some repeat the name with every piece.
        if let Some(name) = name.filter(|name| *name != call.name) {
            received += name.len();
            call.name.push_str(&name);
        }
        call.arguments.push_str(&arguments);
        Ok(received)
    }

    /// The call that a piece belongs to; a new one where the piece begins one. There are servers without numbers and
    /// servers where every number is 0, so a name under another id begins a call too.
    fn place(&mut self, index: Option<u64>, id: Option<&str>, named: bool) -> Option<usize> {
        let known = match (index, id) {
            (Some(index), _) => self.by_index.get(&index).copied(),
            (None, Some(id)) => self.by_id.get(id).copied(),
            (None, None) if named => None,
            (None, None) => Some(self.all.len().checked_sub(1)?),
        };
        let another = |call: &Call| named && id.is_some_and(|id| !call.id.is_empty() && call.id != id);
        if let Some(known) = known.filter(|known| !another(&self.all[*known])) {
            return Some(known);
        }
        let place = self.all.len();
        self.all.push(Call::default());
        if let Some(index) = index {
            self.by_index.insert(index, place);
        }
        Some(place)
    }
}
