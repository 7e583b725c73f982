//! Upper bounds on the tokens of a request.
//!
//! Only the provider can count its tokens, but every tokenizer in use falls back to bytes: a token covers at least one
//! byte of text. So the bytes of all text, plus a generous constant for what the provider adds, are never fewer than
//! the tokens. Real text has three or four bytes per token, so a reservation is that many times the bill; the rest is
//! released when the call is settled.
//!
//! Two things make text longer before it becomes tokens, and both are counted. A tokenizer may first expand
//! compatibility characters (NFKC), which turns one character into up to eighteen. And a provider may rewrite JSON with
//! `\uXXXX` for characters outside ASCII.

use serde_json::{Map, Value};
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfkc_quick};

use crate::message::{Message, Part, Request, Sampling, Tool, ToolCall};

/// Role markers and separators of a message, of each of its parts, and of a call.
const PER_MESSAGE: u64 = 32;

/// Tokens around the description of a tool.
const PER_TOOL: u64 = 64;

/// Tokens at the beginning and end of a conversation.
const PER_REQUEST: u64 = 64;

/// Instructions that a provider adds when there are tools; some add several hundred tokens.
const WITH_TOOLS: u64 = 1024;

/// Keys of provider bodies that limit the output, at any depth in the further keys of a request.
const LIMIT_KEYS: [&str; 6] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxTokens",
    "max_new_tokens",
    "budget_tokens",
];

/// Keys of provider bodies that ask for several answers.
const COUNT_KEYS: [&str; 3] = ["n", "best_of", "candidate_count"];

/// An upper bound on the input of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    pub tokens: u64,
    /// Number of pictures; the tokens of each are part of a model's price.
    pub images: u64,
}

impl Bound {
    fn text(&mut self, text: &str) {
        self.tokens = self.tokens.saturating_add(text_bytes(text));
    }

    fn json(&mut self, text: &str) {
        self.tokens = self.tokens.saturating_add(json_bytes(text));
    }

    fn frame(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
    }

    fn message(&mut self, message: &Message) {
        self.frame(PER_MESSAGE);
        for part in &message.parts {
            self.part(part);
        }
    }

    fn part(&mut self, part: &Part) {
        self.frame(PER_MESSAGE);
        match part {
            Part::Text { text } => self.text(text),
            Part::Image { .. } => self.images += 1,
            Part::Reasoning { text, opaque } => {
                self.text(text);
                // An encrypted thought is longer than the thought.
                if let Some(opaque) = opaque {
                    self.json(&opaque.to_string());
                }
            }
            Part::ToolCall(ToolCall { id, name, arguments }) => {
                self.text(id);
                self.text(name);
                self.json(arguments);
            }
            Part::ToolResult { call_id, parts, .. } => {
                self.text(call_id);
                for part in parts {
                    self.part(part);
                }
            }
        }
    }
}

/// The upper bound of a request's input.
pub fn input_bound(request: &Request) -> Bound {
    let mut bound = Bound::default();
    bound.frame(PER_REQUEST);
    for message in &request.messages {
        bound.message(message);
    }
    if !request.tools.is_empty() {
        bound.frame(request.tools.most_tokens(tools_bound));
    }
    // For example, the schema of the answer is text that the model reads.
    if !request.sampling.extra.is_empty() {
        bound.json(&Value::Object(request.sampling.extra.clone()).to_string());
    }
    for stop in &request.sampling.stop {
        bound.text(stop);
    }
    bound
}

fn tools_bound(tools: &[Tool]) -> u64 {
    let mut bound = Bound::default();
    bound.frame(WITH_TOOLS);
    for tool in tools {
        bound.frame(PER_TOOL);
        bound.text(&tool.name);
        bound.text(&tool.description);
        bound.json(&tool.parameters.to_string());
    }
    bound.tokens
}

/// The most tokens that an answer can have. Further keys of the request may raise the limit or ask for several answers,
/// so they count too.
pub fn output_bound(sampling: &Sampling) -> u64 {
    let thoughts = u64::from(sampling.thinking_tokens.unwrap_or(0));
    let limit = u64::from(sampling.output_limit()).max(largest(&sampling.extra, &LIMIT_KEYS));
    let answers = largest(&sampling.extra, &COUNT_KEYS).max(1);
    limit.saturating_add(thoughts).saturating_mul(answers)
}

/// The largest number under one of the keys, at any depth.
fn largest(table: &Map<String, Value>, keys: &[&str]) -> u64 {
    let own = |key: &str, value: &Value| {
        if !keys.contains(&key) {
            return 0;
        }
        // A provider refuses a limit that is not an integer; here it is rounded up, so that it does not count as zero.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates as meant")]
        value.as_u64().or_else(|| value.as_f64().map(|number| number.ceil() as u64)).unwrap_or(0)
    };
    table
        .iter()
        .map(|(key, value)| own(key, value).max(value.as_object().map_or(0, |inner| largest(inner, keys))))
        .max()
        .unwrap_or(0)
}

fn text_bytes(text: &str) -> u64 {
    bytes(text, unfolded)
}

fn json_bytes(text: &str) -> u64 {
    bytes(text, |c| unfolded(c).max(6 * c.len_utf16() as u64))
}

/// Bytes of a text, with a given count for each character outside ASCII; most texts have few of those.
fn bytes(text: &str, beyond_ascii: impl Fn(char) -> u64) -> u64 {
    // How many bytes are checked for ASCII in one step.
    const BLOCK: usize = 32;
    let mut all = text.len() as u64;
    for (number, block) in text.as_bytes().chunks(BLOCK).enumerate() {
        if block.is_ascii() {
            continue;
        }
        for at in number * BLOCK..number * BLOCK + block.len() {
            // An index inside a character gives `None`.
            let begun = text.get(at..).and_then(|rest| rest.chars().next());
            if let Some(c) = begun.filter(|c| !c.is_ascii()) {
                all = all - c.len_utf8() as u64 + beyond_ascii(c);
            }
        }
    }
    all
}

/// Bytes of a character, or of its expansion if that is longer.
fn unfolded(c: char) -> u64 {
    let own = c.len_utf8();
    // Nearly all characters are their own normal form, and normalising them to find that out is slow.
    if is_nfkc_quick(std::iter::once(c)) == IsNormalized::Yes {
        return own as u64;
    }
    let unfolded: usize = std::iter::once(c).nfkc().map(char::len_utf8).sum();
    unfolded.max(own) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::message::{DEFAULT_MAX_TOKENS, Role, Tool};

    fn request(parts: Vec<Part>) -> Request {
        Request { messages: vec![Message { role: Role::User, parts }], ..Request::default() }
    }

    #[test]
    fn pictures_are_counted_and_not_measured() {
        let image = || Part::Image { media_type: "image/png".into(), data: "A".repeat(1_000_000) };
        let result = Part::ToolResult { call_id: "1".into(), parts: vec![image(), image()], is_error: false };
        let bound = input_bound(&request(vec![image(), result]));
        assert_eq!(bound.images, 3);
        assert!(bound.tokens < 1000);
    }

    #[test]
    fn everything_that_is_read_counts() {
        let long = "x".repeat(10_000);
        let empty = input_bound(&request(vec![])).tokens;
        let call = ToolCall { id: String::new(), name: String::new(), arguments: long.clone() };
        for part in [
            Part::text(long.clone()),
            Part::Reasoning { text: long.clone(), opaque: None },
            Part::Reasoning { text: String::new(), opaque: Some(json!({ "signature": long })) },
            Part::ToolCall(call),
            Part::ToolResult {
                call_id: String::new(),
                parts: vec![Part::text(long.clone())],
                is_error: false,
            },
        ] {
            let bound = input_bound(&request(vec![part])).tokens;
            assert!(bound > empty + 10_000 && bound < empty + 10_200, "{bound}");
        }
        let mut other = request(vec![]);
        let tool =
            Tool { name: "t".into(), description: long.clone(), parameters: json!({ "description": long }) };
        other.tools = vec![tool].into();
        assert!(input_bound(&other).tokens > empty + 21_000);
        other.tools = Vec::new().into();
        other.sampling.extra.insert("response_format".into(), json!(long));
        assert!(input_bound(&other).tokens > empty + 10_000);
    }

    #[test]
    fn characters_that_unfold_count_as_what_they_become() {
        assert_eq!(text_bytes("é"), 2);
        assert_eq!(text_bytes("한글"), 6);
        assert_eq!(text_bytes("\u{fdfa}"), 33);
        assert_eq!(json_bytes("\"é😀\""), 2 + 6 + 12);
    }

    #[test]
    fn further_keys_cannot_hide_output() {
        let bound = |extra: Value, thinking_tokens| {
            let Value::Object(extra) = extra else { panic!() };
            output_bound(&Sampling { max_tokens: Some(100), thinking_tokens, extra, ..Sampling::default() })
        };
        assert_eq!(output_bound(&Sampling::default()), u64::from(DEFAULT_MAX_TOKENS));
        assert_eq!(bound(json!({}), Some(50)), 150);
        assert_eq!(bound(json!({ "max_completion_tokens": 500 }), None), 500);
        assert_eq!(bound(json!({ "max_tokens": 7 }), None), 100);
        assert_eq!(bound(json!({ "inferenceConfig": { "maxTokens": 2e3 } }), None), 2000);
        assert_eq!(bound(json!({ "n": 8 }), Some(20)), 960);
        assert_eq!(bound(json!({ "max_tokens": u64::MAX, "n": u64::MAX }), Some(1)), u64::MAX);
    }

    proptest! {
        #[test]
        fn no_normal_form_of_the_text_has_more_bytes(text in "\\PC{0,40}") {
            let bound = input_bound(&request(vec![Part::text(text.clone())])).tokens;
            let whole: String = text.nfkc().collect();
            prop_assert!(bound >= text.len() as u64 && bound >= whole.len() as u64);
        }
    }
}
