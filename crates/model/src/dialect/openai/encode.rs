//! Encodes a request as a chat-completions body, directly: with many turns the body is long, and building a tree of
//! values first takes several times as long as sending it.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::reasoning;
use crate::dialect::{LimitKey, Wire};
use crate::message::{Message, Part, Request, Role, Tool, ToolCall, ToolChoice, join_text};

/// Keys that a request's further keys cannot set. The meter relies on a single answer of bounded length, and the rest
/// of the program on the values that it set itself.
const OURS: [&str; 12] = [
    "messages",
    "model",
    "stream",
    "stream_options",
    "n",
    "best_of",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "max_tokens",
    "max_completion_tokens",
];

/// What a tool message says when the tool returned nothing but images, which it cannot hold.
const IMAGES_FOLLOW: &str = "see the images in the next message";

/// The body. Equal requests give equal bytes.
pub(super) fn body(request: &Request, wire: &Wire) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Body { request, wire })
}

struct Body<'a> {
    request: &'a Request,
    wire: &'a Wire,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, wire } = self;
        let sampling = &request.sampling;
        let mut body =
            Keys { map: serializer.serialize_map(None)?, extra: &sampling.extra, replaced: vec![] };
        if wire.model_in_body {
            body.put("model", &wire.model)?;
        }
        body.put("messages", &messages(&request.messages))?;
        // Some servers refuse a tool choice without tools.
        if !request.tools.is_empty() {
            body.put("tools", &Offers(&request.tools))?;
            if let Some(choice) = tool_choice(&request.tool_choice) {
                body.put("tool_choice", &choice)?;
            }
        }
        let limit_key = match wire.limit_key {
            LimitKey::MaxCompletionTokens => "max_completion_tokens",
            LimitKey::MaxTokens => "max_tokens",
        };
        body.put(limit_key, &sampling.output_limit())?;
        for (key, number) in [("temperature", sampling.temperature), ("top_p", sampling.top_p)] {
            if let Some(number) = number.filter(|number| number.is_finite()) {
                body.put(key, &number)?;
            }
        }
        if !sampling.stop.is_empty() {
            body.put("stop", &sampling.stop)?;
        }
        if let Some(seed) = sampling.seed {
            body.put("seed", &seed)?;
        }
        if let Some(effort) = &sampling.reasoning_effort {
            body.put("reasoning_effort", effort)?;
        }
        if wire.stream {
            body.put("stream", &true)?;
            body.put("stream_options", &json!({"include_usage": true}))?;
        }
        body.end()
    }
}

/// The keys of a body. Further keys of the request replace existing ones or are appended.
struct Keys<'a, M> {
    map: M,
    extra: &'a Map<String, Value>,
    replaced: Vec<&'static str>,
}

impl<M: SerializeMap> Keys<'_, M> {
    fn put(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) -> Result<(), M::Error> {
        match self.extra.get(key) {
            Some(other) if !OURS.contains(&key) => {
                self.replaced.push(key);
                self.map.serialize_entry(key, other)
            }
            _ => self.map.serialize_entry(key, value),
        }
    }

    fn end(mut self) -> Result<M::Ok, M::Error> {
        let is_new = |key: &str| !OURS.contains(&key) && !self.replaced.contains(&key);
        // Maps are equal in any order, so the order of the given keys must not matter.
        let mut extra: Vec<(&String, &Value)> = self.extra.iter().filter(|(key, _)| is_new(key)).collect();
        extra.sort_unstable_by_key(|(key, _)| *key);
        for (key, value) in extra {
            self.map.serialize_entry(key, value)?;
        }
        self.map.end()
    }
}

struct Offers<'a>(&'a [Tool]);

impl Serialize for Offers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Function::of))
    }
}

/// A tool, or a call of one.
#[derive(serde::Serialize)]
#[expect(clippy::struct_field_names, reason = "the format calls both so")]
struct Function<'a, F> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    r#type: &'static str,
    function: F,
}

impl<'a> Function<'a, &'a Tool> {
    fn of(tool: &'a Tool) -> Self {
        Self { id: None, r#type: "function", function: tool }
    }
}

#[derive(serde::Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: &'a str,
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({"type": "function", "function": {"name": name}})),
    }
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Sent<'a> {
    Spoken { role: &'static str, content: Content<'a> },
    Result { role: &'static str, tool_call_id: &'a str, content: Cow<'a, str> },
    Assistant(Assistant<'a>),
}

/// The model's turn: text, calls, and the thoughts that this format supports.
#[derive(serde::Serialize)]
struct Assistant<'a> {
    role: &'static str,
    content: Option<Cow<'a, str>>,
    #[serde(flatten)]
    thoughts: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Function<'a, Called<'a>>>,
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Pieces(Vec<Piece<'a>>),
}

#[derive(serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Address },
}

#[derive(serde::Serialize)]
struct Address {
    url: String,
}

fn messages(messages: &[Message]) -> Vec<Sent<'_>> {
    let mut list = Vec::with_capacity(messages.len());
    for run in messages.chunk_by(|one, next| one.role == Role::User && next.role == Role::User) {
        match run[0].role {
            Role::System => push_spoken("system", &[], &run[0].parts, &mut list),
            Role::User => push_user_run(run, &mut list),
            Role::Assistant => list.push(Sent::Assistant(assistant(&run[0].parts))),
        }
    }
    list
}

/// Consecutive user messages. Tool messages must directly follow the calls they answer, so all results come first;
/// their images come with the next user text.
fn push_user_run<'a>(run: &'a [Message], list: &mut Vec<Sent<'a>>) {
    let mut images: Vec<&Part> = Vec::new();
    for part in run.iter().flat_map(|message| &message.parts) {
        let Part::ToolResult { call_id, parts, .. } = part else { continue };
        let before = images.len();
        images.extend(parts.iter().filter(|part| matches!(part, Part::Image { .. })));
        let mut content = join_text(parts);
        if content.is_empty() && images.len() > before {
            content = Cow::Borrowed(IMAGES_FOLLOW);
        }
        list.push(Sent::Result { role: "tool", tool_call_id: call_id, content });
    }
    for message in run {
        if message.parts.iter().any(is_spoken) {
            push_spoken("user", &std::mem::take(&mut images), &message.parts, list);
        }
    }
    push_spoken("user", &images, &[], list);
}

fn is_spoken(part: &Part) -> bool {
    matches!(part, Part::Text { .. } | Part::Image { .. })
}

/// A message of text and images, unless it would be empty. Other parts are not allowed here.
fn push_spoken<'a>(role: &'static str, images: &[&'a Part], parts: &'a [Part], list: &mut Vec<Sent<'a>>) {
    let is_image = |part: &&Part| matches!(part, Part::Image { .. });
    let content = if images.is_empty() && !parts.iter().any(|part| is_image(&part)) {
        if !parts.iter().any(is_spoken) {
            return;
        }
        Content::Text(join_text(parts))
    } else {
        Content::Pieces(images.iter().copied().chain(parts).filter_map(piece).collect())
    };
    list.push(Sent::Spoken { role, content });
}

fn piece(part: &Part) -> Option<Piece<'_>> {
    match part {
        Part::Text { text } if !text.is_empty() => Some(Piece::Text { text }),
        Part::Image { media_type, data } => {
            Some(Piece::ImageUrl { image_url: Address { url: format!("data:{media_type};base64,{data}") } })
        }
        _ => None,
    }
}

fn assistant(parts: &[Part]) -> Assistant<'_> {
    let tool_calls: Vec<_> = parts
        .iter()
        .filter_map(|part| match part {
            Part::ToolCall(ToolCall { id, name, arguments }) => {
                Some(Function { id: Some(id), r#type: "function", function: Called { name, arguments } })
            }
            _ => None,
        })
        .collect();
    let text = join_text(parts);
    let content = (!text.is_empty() || tool_calls.is_empty()).then_some(text);
    Assistant { role: "assistant", content, thoughts: reasoning::put_back(parts), tool_calls }
}
