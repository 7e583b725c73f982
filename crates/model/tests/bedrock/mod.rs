//! Amazon Bedrock: wire bodies and event streams.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod converse;
mod invoke;

use aec_model::dialect::{Dialect, Wire};
use aec_model::failure::Failure;
use aec_model::message::{Message, Part, Reply, Request, Role, Tool, ToolCall};
use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message as Frame};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// The encoded body.
fn sent(dialect: &dyn Dialect, request: &Request, wire: &Wire) -> Map<String, Value> {
    serde_json::from_slice(&dialect.encode(request, wire).unwrap()).unwrap()
}

/// The reply in a stream that arrives in the given pieces.
fn read(dialect: &dyn Dialect, pieces: &[&[u8]]) -> Result<Reply, Failure> {
    let mut reader = dialect.reader();
    for piece in pieces {
        reader.take(&Bytes::copy_from_slice(piece))?;
    }
    reader.finish()
}

/// One frame of an event stream.
fn frame(message_type: &'static str, kind: &str, payload: &Value) -> Vec<u8> {
    let text = |value: &str| HeaderValue::String(value.to_owned().into());
    let kind_header = if message_type == "event" { ":event-type" } else { ":exception-type" };
    let frame = Frame::new(Bytes::from(payload.to_string()))
        .add_header(Header::new(kind_header, text(kind)))
        .add_header(Header::new(":content-type", text("application/json")))
        .add_header(Header::new(":message-type", text(message_type)));
    let mut bytes = Vec::new();
    write_message_to(&frame, &mut bytes).unwrap();
    bytes
}

/// Cuts bytes at some positions.
fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| (*cut).min(bytes.len())).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn weather_tool() -> Tool {
    Tool {
        name: "get_weather".to_owned(),
        description: "Weather in a city".to_owned(),
        parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    }
}

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "get_weather".to_owned(),
        arguments: arguments.to_owned(),
    })
}

/// A conversation with every kind of part; the thought is sealed with the given data.
fn conversation(opaque: Value) -> Request {
    let image = Part::Image { media_type: "image/jpeg".to_owned(), data: "/9j/4AAQSkZJRg==".to_owned() };
    let result = |id: &str, parts: Vec<Part>, is_error: bool| Part::ToolResult {
        call_id: id.to_owned(),
        parts,
        is_error,
    };
    let says = |role: Role, parts: Vec<Part>| Message { role, parts };
    Request {
        messages: vec![
            Message::text(Role::System, "Be brief."),
            says(Role::User, vec![image.clone(), Part::text("Weather in these cities?")]),
            says(
                Role::Assistant,
                vec![
                    Part::Reasoning { text: "Two cities.".to_owned(), opaque: Some(opaque) },
                    Part::Reasoning { text: "unsigned".to_owned(), opaque: None },
                    call("tooluse_1", r#"{"city": "Paris"}"#),
                    call("tooluse_2", "{\"city"),
                ],
            ),
            says(
                Role::User,
                vec![
                    Part::text("Hurry."),
                    result("tooluse_1", vec![Part::text("18 °C"), image], false),
                    result("tooluse_2", vec![], true),
                ],
            ),
        ],
        tools: vec![weather_tool()].into(),
        ..Request::default()
    }
}
