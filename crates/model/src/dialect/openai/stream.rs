//! Assembles a stream of chat-completion chunks into the body that the same answer has without streaming.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::decode::{self, arguments_text, check_error, content_text, text};
use super::malformed;
use super::node::{Node, Object};
use super::reasoning::{DETAILS_KEY, TEXT_KEYS};
use crate::dialect::StreamReader;
use crate::dialect::events::{Event, EventFrames};
use crate::dialect::refusal::refused_within;
use crate::failure::{Failure, FailureKind, excerpt};
use crate::message::Reply;

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
        // Many servers close the connection without the closing event; the finish reason marks a complete answer.
        if self.answer.finish.is_none() {
            return Err(Failure::passing(FailureKind::Truncated, "the stream ended before the answer did"));
        }
        decode::reply(self.answer.into_body().into())
    }
}

/// The answer so far.
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
        let Ok(Node::Object(chunk)) = aec_base::json::from_str(data) else {
            let message = format!("a chunk of the stream is not a JSON object: {}", excerpt(data));
            return Err(Failure::passing(FailureKind::Protocol, message));
        };
        check_error(&chunk)?;
        if event.name == "error" || chunk.get("object").and_then(Node::as_text) == Some("error") {
            return Err(refused_within(&Value::from(Node::Object(chunk))));
        }
        self.take_chunk(chunk)
    }

    fn take_chunk(&mut self, mut chunk: Object<'_>) -> Result<(), Failure> {
        let choices = match chunk.take("choices") {
            Node::Null => Vec::new(),
            Node::List(choices) => choices,
            _ => return Err(malformed("choices of a chunk", "a list")),
        };
        // Azure's first chunk names neither the answer nor the model; all others repeat them.
        chunk.retain(|key, value| match value {
            Node::Null => false,
            Node::Text(text) => {
                !text.is_empty() && self.body.get(key).and_then(Value::as_str) != Some(&**text)
            }
            _ => true,
        });
        self.body.append(&mut chunk.rest());
        let mut choices = choices.into_iter();
        let Some(choice) = choices.next() else { return Ok(()) };
        let Node::Object(mut choice) = choice else {
            return Err(malformed("choice of a chunk", "an object"));
        };
        let index = choice.take("index");
        if choices.next().is_some() || !(index.is_null() || index.as_u64() == Some(0)) {
            return Err(malformed("choices of a chunk", "one choice"));
        }
        check_error(&choice)?;
        if let Some(finish) = text(choice.take("finish_reason"), || "finish_reason of a chunk".to_owned())? {
            self.finish = Some(finish);
        }
        let delta = choice.take("delta");
        merge(&mut self.choice, choice.rest());
        match delta {
            Node::Null => Ok(()),
            Node::Object(delta) => self.take_delta(delta),
            _ => Err(malformed("delta of a chunk", "an object")),
        }
    }

    fn take_delta(&mut self, mut delta: Object<'_>) -> Result<(), Failure> {
        delta.take("role");
        let said = content_text(delta.take("content"), "content of a delta")?;
        self.received += said.len();
        self.content.push_str(&said);
        if let Some(text) = text(delta.take("refusal"), || "refusal of a delta".to_owned())? {
            self.received += text.len();
            self.refusal.push_str(&text);
        }
        // The same thought may come under several keys; its length counts once.
        let mut thought = 0;
        for (key, all) in TEXT_KEYS.into_iter().zip(&mut self.thoughts) {
            if let Some(text) = text(delta.take(key), || "reasoning of a delta".to_owned())? {
                thought = thought.max(text.len());
                all.push_str(&text);
            }
        }
        let details = delta.take(DETAILS_KEY);
        if !details.is_null() {
            thought = thought.max(self.details.take(details.into())?);
        }
        self.received += thought;
        match delta.take("tool_calls") {
            Node::Null => {}
            Node::List(pieces) => {
                for piece in pieces {
                    self.received += self.calls.take(piece)?;
                }
            }
            _ => return Err(malformed("tool_calls of a delta", "a list")),
        }
        merge(&mut self.message, delta.rest());
        Ok(())
    }

    /// The body of the whole answer.
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

/// Adds the fields of a later chunk: lists grow, objects are merged, other values replaced. Nulls are ignored.
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

/// Pieces of a thought. Pieces with the same number and type are one.
#[derive(Default)]
struct Details {
    all: Vec<Value>,
    /// The position of the piece with a number and type.
    places: BTreeMap<(u64, String), usize>,
}

impl Details {
    /// Adds pieces and returns how many bytes of thought they hold.
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

/// Fields of a thought's piece that arrive in fragments.
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

/// Tool calls so far, in the order of their first pieces.
#[derive(Default)]
struct Calls {
    all: Vec<Call>,
    /// The position of the call with a number. Servers choose the numbers freely.
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
    /// Adds a piece of a call and returns how many bytes of it the model wrote.
    fn take(&mut self, piece: Node<'_>) -> Result<usize, Failure> {
        let wrong = |expected: &str| malformed("tool_calls of a delta", expected);
        let of_call = |what: &'static str| move || format!("{what} of a tool call");
        let Node::Object(mut piece) = piece else { return Err(wrong("a list of objects")) };
        let kind = text(piece.take("type"), of_call("type"))?;
        if kind.is_some_and(|kind| kind != "function") {
            return Err(wrong("a list of functions"));
        }
        let id = text(piece.take("id"), of_call("id"))?;
        let index = match piece.take("index") {
            Node::Null => None,
            index => Some(index.as_u64().ok_or_else(|| wrong("numbered"))?),
        };
        let (name, arguments) = match piece.take("function") {
            Node::Null => (None, String::new()),
            Node::Object(mut function) => {
                let name = text(function.take("name"), of_call("name"))?;
                let arguments = arguments_text(function.take("arguments"));
                (name, arguments.ok_or_else(|| wrong("of textual arguments"))?)
            }
            _ => return Err(wrong("a list of functions")),
        };
        let place = self.place(index, id.as_deref(), name.is_some()).ok_or_else(|| wrong("begun"))?;
        let call = &mut self.all[place];
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            self.by_id.insert(id.clone(), place);
            call.id = id;
        }
        let mut received = arguments.len();
        // Some servers repeat the name with every piece.
        if let Some(name) = name.filter(|name| *name != call.name) {
            received += name.len();
            call.name.push_str(&name);
        }
        call.arguments.push_str(&arguments);
        Ok(received)
    }

    /// The call to which a piece belongs; a new one if the piece begins one. Some servers send no numbers and some
    /// always 0, so a name with another id also begins a call.
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
