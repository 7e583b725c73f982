//! The canonical form of a request, which two requests share if and only if they are equivalent.
//!
//! The form ignores spelling: the order of keys, `1` or `1.0` or `1e0`, an explicit default. It contains everything
//! that reaches the model, but not endpoint, key, streaming or retries.

use std::borrow::Cow;

use aec_base::digest::{Digest, Hasher};
use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::message::{Message, Part, Request, Sampling, Tool, ToolChoice};

/// Prefix of every digest, so that digests of different canonical forms never agree.
const VERSION: &[u8] = b"aec-bench request 1";

/// The digest of a request to a model, as stored in cassettes.
pub fn request_digest(model: &str, request: &Request) -> Digest {
    Prints::of(request).digest(model)
}

/// Digests of the parts of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prints {
    pub(super) messages: Vec<Digest>,
    pub(super) tools: Digest,
    pub(super) settings: Digest,
}

impl Prints {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            messages: request.messages.iter().map(message_print).collect(),
            tools: Digest::of(tools_text(&request.tools).as_bytes()),
            settings: Digest::of(settings_text(&request.tool_choice, &request.sampling).as_bytes()),
        }
    }

    pub(super) fn digest(&self, model: &str) -> Digest {
        let mut hasher = Hasher::default();
        for part in [VERSION, model.as_bytes(), self.tools.bytes(), self.settings.bytes()] {
            hasher.part(part);
        }
        for message in &self.messages {
            hasher.part(message.bytes());
        }
        hasher.finish()
    }
}

pub(super) fn message_print(message: &Message) -> Digest {
    Digest::of(message_text(message).as_bytes())
}

/// A message in canonical form. Only data that providers want back unchanged has several spellings.
pub(super) fn message_text(message: &Message) -> String {
    json(&*canonical_message(message))
}

/// Whether the canonical form may differ from the plain JSON of the message.
pub(super) fn has_spellings(message: &Message) -> bool {
    has_opaque(&message.parts)
}

/// A list of tools in canonical form.
pub(super) fn tools_text(tools: &[Tool]) -> String {
    let tools: Vec<Tool> =
        tools.iter().map(|tool| Tool { parameters: canonical(&tool.parameters), ..tool.clone() }).collect();
    json(&tools)
}

/// Everything except messages and tools, in canonical form.
pub(super) fn settings_text(choice: &ToolChoice, sampling: &Sampling) -> String {
    json(&settings(choice, sampling))
}

/// Everything except messages and tools, under the names that users see.
pub(super) fn settings(choice: &ToolChoice, sampling: &Sampling) -> Value {
    let explicit = Sampling { max_tokens: Some(sampling.output_limit()), ..sampling.clone() };
    let sampling = serde_json::to_value(&explicit).unwrap_or_default();
    let choice = serde_json::to_value(choice).unwrap_or_default();
    canonical(&serde_json::json!({"sampling": sampling, "tool_choice": choice}))
}

/// JSON of one of our own types. Their keys are texts, so this cannot fail.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn has_opaque(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Reasoning { opaque, .. } => opaque.is_some(),
        Part::ToolResult { parts, .. } => has_opaque(parts),
        _ => false,
    })
}

fn canonical_message(message: &Message) -> Cow<'_, Message> {
    if !has_spellings(message) {
        return Cow::Borrowed(message);
    }
    let mut message = message.clone();
    canonicalise_parts(&mut message.parts);
    Cow::Owned(message)
}

fn canonicalise_parts(parts: &mut [Part]) {
    for part in parts {
        match part {
            // An absent value and an absent key are equivalent here.
            Part::Reasoning { opaque, .. } => {
                *opaque = opaque.take().filter(|value| !value.is_null()).map(|value| canonical(&value));
            }
            Part::ToolResult { parts, .. } => canonicalise_parts(parts),
            _ => {}
        }
    }
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(canonical_number(number)),
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort_unstable();
            let sorted: Map<String, Value> =
                keys.into_iter().map(|key| (key.clone(), canonical(&object[key]))).collect();
            Value::Object(sorted)
        }
        other => other.clone(),
    }
}

/// A whole number that fits an integer becomes one; larger ones are floats after parsing.
fn canonical_number(number: &Number) -> Number {
    const EDGE: f64 = 18_446_744_073_709_551_616.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 =>
        {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
            if (0.0..EDGE).contains(&float) {
                Number::from(float as u64)
            } else if (-EDGE / 2.0..0.0).contains(&float) {
                Number::from(float as i64)
            } else {
                number.clone()
            }
        }
        _ => number.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::message::{DEFAULT_MAX_TOKENS, Role, ToolCall};

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn spellings_of_numbers() {
        for (one, other) in [
            ("1", "1.0"),
            ("1", "1e0"),
            ("0", "-0.0"),
            ("100", "1E2"),
            ("-3", "-3.0"),
            ("18446744073709549568", "18446744073709549568.0"),
            ("-9223372036854775808", "-9223372036854775808.0"),
            ("1e300", "10e299"),
            ("0.1", "1e-1"),
        ] {
            assert_eq!(json(&canonical(&parse(one))), json(&canonical(&parse(other))), "{one} {other}");
        }
        for (one, other) in
            [("1", "1.5"), ("1", "-1"), ("9007199254740993", "9007199254740992.0"), ("1", "\"1\"")]
        {
            assert_ne!(json(&canonical(&parse(one))), json(&canonical(&parse(other))), "{one} {other}");
        }
    }

    fn example() -> Request {
        Request {
            messages: vec![
                Message::text(Role::System, "Be brief."),
                Message::text(Role::User, "Why?"),
                Message {
                    role: Role::Assistant,
                    parts: vec![
                        Part::Reasoning {
                            text: "hm".into(),
                            opaque: Some(json!({"b": {"y": 1.0, "x": 2}, "a": "s"})),
                        },
                        Part::ToolCall(ToolCall {
                            id: "c1".into(),
                            name: "look".into(),
                            arguments: "{\"at\": 1}".into(),
                        }),
                    ],
                },
                Message {
                    role: Role::User,
                    parts: vec![Part::ToolResult {
                        call_id: "c1".into(),
                        parts: vec![Part::text("seen")],
                        is_error: false,
                    }],
                },
            ],
            tools: vec![Tool {
                name: "look".into(),
                description: "Looks.".into(),
                parameters: json!({"type": "object", "properties": {"at": {"maximum": 10.0}}}),
            }]
            .into(),
            tool_choice: ToolChoice::Auto,
            sampling: Sampling {
                temperature: Some(1.0),
                extra: parse(r#"{"z": 1, "a": [1, {"k": 2.0, "j": null}]}"#).as_object().unwrap().clone(),
                ..Sampling::default()
            },
        }
    }

    #[test]
    fn the_digest_is_the_same_everywhere() {
        // If this digest changes, every cassette is useless: that needs a new schema version.
        insta::assert_snapshot!(request_digest("m", &example()), @"sha256:0bc44069fac3474cbd9d70164b17b42b4ed8e8e2b43c91a527d27d871239fc58");
    }

    #[test]
    fn spelling_does_not_count() {
        let request = example();
        let mut other = example();
        let Part::Reasoning { opaque, .. } = &mut other.messages[2].parts[0] else { panic!() };
        *opaque = Some(parse(r#"{"a": "s", "b": {"x": 2e0, "y": 1}}"#));
        let parameters = parse(r#"{"properties": {"at": {"maximum": 10}}, "type": "object"}"#);
        other.tools.edit(|tools| tools[0].parameters = parameters);
        other.sampling.max_tokens = Some(DEFAULT_MAX_TOKENS);
        other.sampling.extra =
            parse(r#"{"a": [1.0, {"j": null, "k": 2}], "z": 1.0}"#).as_object().unwrap().clone();
        assert_ne!(request, other);
        assert_eq!(request_digest("m", &request), request_digest("m", &other));
    }

    #[test]
    fn every_real_change_counts() {
        type Change = fn(&mut Request);
        let changes: Vec<Change> = vec![
            |r| r.messages[0].role = Role::User,
            |r| r.messages[0].parts.push(Part::text("")),
            |r| r.messages.swap(0, 1),
            |r| drop(r.messages.pop()),
            |r| r.messages.push(Message { role: Role::User, parts: vec![] }),
            |r| {
                let Part::ToolCall(call) = &mut r.messages[2].parts[1] else { panic!() };
                call.arguments = "{\"at\":1}".into();
            },
            |r| {
                let Part::Reasoning { opaque, .. } = &mut r.messages[2].parts[0] else { panic!() };
                *opaque = None;
            },
            |r| {
                let Part::ToolResult { is_error, .. } = &mut r.messages[3].parts[0] else { panic!() };
                *is_error = true;
            },
            |r| r.tools.edit(Vec::clear),
            |r| r.tools.edit(|tools| tools[0].description.push(' ')),
            |r| r.tools.edit(|tools| tools[0].parameters["properties"]["at"]["maximum"] = json!(11)),
            |r| r.tool_choice = ToolChoice::Required,
            |r| r.tool_choice = ToolChoice::Tool("look".into()),
            |r| r.sampling.max_tokens = Some(DEFAULT_MAX_TOKENS - 1),
            |r| r.sampling.temperature = None,
            |r| r.sampling.temperature = Some(0.0),
            |r| r.sampling.top_p = Some(1.0),
            |r| r.sampling.stop.push(String::new()),
            |r| r.sampling.seed = Some(0),
            |r| r.sampling.reasoning_effort = Some("low".into()),
            |r| r.sampling.thinking_tokens = Some(1),
            |r| drop(r.sampling.extra.insert("new".into(), Value::Null)),
        ];
        let mut digests = vec![request_digest("m", &example()), request_digest("n", &example())];
        for change in changes {
            let mut request = example();
            change(&mut request);
            digests.push(request_digest("m", &request));
        }
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1000_i32..1000).prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |float| float.is_finite()).prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-d]{1,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The same value in another spelling: keys reversed, small whole numbers as floats.
    fn respell(value: &Value) -> Value {
        match value {
            #[expect(clippy::cast_precision_loss, reason = "bounded")]
            Value::Number(number) => match number.as_i64() {
                Some(whole) if whole.abs() < 1 << 53 => json!(whole as f64),
                _ => value.clone(),
            },
            Value::Array(items) => items.iter().map(respell).collect(),
            Value::Object(object) => {
                Value::Object(object.iter().rev().map(|(key, value)| (key.clone(), respell(value))).collect())
            }
            other => other.clone(),
        }
    }

    fn with_value(value: &Value, place: u8) -> Request {
        let mut request = example();
        match place {
            0 => request.tools.edit(|tools| tools[0].parameters = value.clone()),
            1 => drop(request.sampling.extra.insert("k".into(), value.clone())),
            _ => {
                request.messages[2].parts[0] =
                    Part::Reasoning { text: String::new(), opaque: Some(value.clone()) };
            }
        }
        request
    }

    proptest! {
        #[test]
        fn values_count_and_their_spelling_does_not(one in value(), other in value(), place in 0_u8..3) {
            let digest = |value: &Value| request_digest("m", &with_value(value, place));
            prop_assert_eq!(digest(&one), digest(&respell(&one)));
            let text = json(&respell(&one));
            prop_assert_eq!(digest(&one), digest(&parse(&text)));
            let equal = canonical(&one) == canonical(&other);
            prop_assert_eq!(digest(&one) == digest(&other), equal);
        }
    }
}
