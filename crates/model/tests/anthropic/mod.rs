//! Anthropic's messages format: wire bodies in both directions.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod gateway;
mod reply;
mod request;
mod stream;

use aec_model::dialect::Dialect;
use aec_model::dialect::anthropic::AnthropicMessages;
use aec_model::failure::Failure;
use aec_model::message::{Reply, Tool, ToolCall};
use bytes::Bytes;
use serde_json::{Value, json};

/// The reply in a stream that arrives in the given pieces.
fn read(pieces: &[&[u8]]) -> Result<Reply, Failure> {
    let mut reader = AnthropicMessages.reader();
    for piece in pieces {
        reader.take(&Bytes::copy_from_slice(piece))?;
    }
    reader.finish()
}

fn decode(body: &Value) -> Result<Reply, Failure> {
    AnthropicMessages.decode(body.to_string().as_bytes())
}

/// Server-sent events as the service frames them.
fn sse(events: &[Value]) -> String {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(event).collect()
}

fn weather_tool() -> Tool {
    Tool {
        name: "get_weather".to_owned(),
        description: "Weather in a city".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }),
    }
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "get_weather".to_owned(), arguments: arguments.to_owned() }
}
