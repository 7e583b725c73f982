//! Counts the tokens of a prompt, and how many of them a provider's cache would hold.

use serde_json::Value;

use crate::ask::{messages, role};
use crate::draw::{Prefixes, mix, mix_bytes};
use crate::route::Form;

const BYTES_PER_TOKEN: u64 = 4;
/// The length of a picture, in bytes of text.
const PICTURE: u64 = 4_000;
/// A cached prefix is found if it ends at most this many blocks before the mark.
const LOOK_BACK: usize = 20;
/// OpenAI caches prompts of at least this many tokens, in steps.
const OPENAI_LEAST: u64 = 1_024;
const OPENAI_STEP: u64 = 128;

/// Keys inside messages whose values are not text of the conversation.
const NO_TEXT: [&str; 10] = [
    "role",
    "type",
    "id",
    "tool_call_id",
    "tool_use_id",
    "toolUseId",
    "cache_control",
    "cachePoint",
    "media_type",
    "signature",
];

/// The length of a prompt and where it may be cached.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    bytes: u64,
    /// Ends of blocks; empty when the request does not use the cache.
    ends: Vec<End>,
    automatic: bool,
}

/// The end of a block: length and fingerprint of everything before it, and whether the request marks it.
#[derive(Debug)]
struct End {
    bytes: u64,
    fingerprint: u64,
    marked: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InputTokens {
    /// Neither read from the cache nor written to it.
    pub(crate) fresh: u64,
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl InputTokens {
    pub(crate) fn all(self) -> u64 {
        self.fresh + self.read + self.written
    }
}

impl Prompt {
    pub(crate) fn of(form: Form, model: &str, body: &Value) -> Self {
        let mut tally = Tally::default();
        visit(form, body, &mut |item, kind| tally.add(item, kind));
        let automatic = matches!(form, Form::OpenAi | Form::Azure);
        let everywhere = body.get("cache_control").is_some();
        let cached = if automatic {
            tally.bytes >= OPENAI_LEAST * BYTES_PER_TOKEN
        } else {
            everywhere || tally.marked
        };
        let mut prompt = Self { bytes: tally.bytes, ends: Vec::new(), automatic };
        if !cached {
            return prompt;
        }
        let mut tally = Tally { hash: Some(mix_bytes(form as u64, model.as_bytes())), ..Tally::default() };
        visit(form, body, &mut |item, kind| {
            let marks_itself = automatic && kind == Kind::Message;
            tally.marked = false;
            tally.add(item, kind);
            let marked = marks_itself || tally.marked;
            prompt.ends.push(End { bytes: tally.bytes, fingerprint: tally.hash.unwrap_or(0), marked });
        });
        if everywhere && let Some(last) = prompt.ends.last_mut() {
            last.marked = true;
        }
        prompt
    }

    /// The number of tokens, without regard to the cache.
    pub(crate) fn tokens(&self) -> u64 {
        tokens(self.bytes)
    }

    /// Counts the tokens and adds the prompt to the cache.
    pub(crate) fn count(&self, cache: &Prefixes) -> InputTokens {
        let known = self.ends.iter().enumerate().rev().find(|(index, end)| {
            let reach = self.ends.iter().skip(*index).take(LOOK_BACK + 1);
            reach.into_iter().any(|later| later.marked) && cache.knows(end.fingerprint)
        });
        let read = known.map_or(0, |(_, end)| tokens(end.bytes));
        let written = self.ends.iter().rev().find(|end| end.marked).map_or(0, |end| tokens(end.bytes));
        for end in self.ends.iter().filter(|end| end.marked) {
            cache.learn(end.fingerprint);
        }
        let all = self.tokens();
        if self.automatic {
            let read = if read < OPENAI_LEAST { 0 } else { read - read % OPENAI_STEP };
            return InputTokens { fresh: all - read, read, written: 0 };
        }
        let written = written.saturating_sub(read);
        InputTokens { fresh: all.saturating_sub(read + written), read, written }
    }
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tool,
    Block,
    /// A whole message in OpenAI's format.
    Message,
}

/// Visits every part of the prompt, in the order in which providers assemble it.
fn visit(form: Form, body: &Value, see: &mut dyn FnMut(&Value, Kind)) {
    let mut list = |value: Option<&Value>, kind| match value {
        Some(Value::Array(items)) => items.iter().for_each(|item| see(item, kind)),
        Some(text @ Value::String(_)) => see(text, kind),
        _ => {}
    };
    match form {
        Form::OpenAi | Form::Azure => {
            list(body.get("tools"), Kind::Tool);
            list(body.get("messages"), Kind::Message);
            return;
        }
        Form::Anthropic | Form::Invoke => list(body.get("tools"), Kind::Tool),
        Form::Converse => list(body.pointer("/toolConfig/tools"), Kind::Tool),
    }
    list(body.get("system"), Kind::Block);
    for message in messages(body) {
        list(message.get("content"), Kind::Block);
    }
}

/// A walk through the prompt.
#[derive(Default)]
struct Tally {
    bytes: u64,
    /// Absent while no cache needs it.
    hash: Option<u64>,
    /// Whether a cache mark was found.
    marked: bool,
}

impl Tally {
    fn add(&mut self, item: &Value, kind: Kind) {
        if let Value::Object(fields) = item {
            self.marked |= fields.contains_key("cache_control") || fields.contains_key("cachePoint");
        }
        if let Some(hash) = &mut self.hash {
            *hash = mix_bytes(*hash, role(item).as_bytes());
        }
        if kind == Kind::Tool { self.everything(item) } else { self.text(item) }
    }

    fn piece(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        if let Some(hash) = &mut self.hash {
            *hash = mix_bytes(*hash, text.as_bytes());
        }
    }

    /// Values that are text of the conversation.
    fn text(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.piece(text),
            Value::Array(items) => items.iter().for_each(|item| self.text(item)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    match key.as_str() {
                        key if NO_TEXT.contains(&key) => {}
                        "image_url" => self.picture(value),
                        "source" if value.is_object() => self.picture(value),
                        _ => self.text(value),
                    }
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => self.scalar(value),
        }
    }

    /// Keys and values, as in a schema.
    fn everything(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.piece(text),
            Value::Array(items) => items.iter().for_each(|item| self.everything(item)),
            Value::Object(fields) => {
                for (key, value) in fields.iter().filter(|(key, _)| *key != "cache_control") {
                    self.piece(key);
                    self.everything(value);
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => self.scalar(value),
        }
    }

    fn scalar(&mut self, value: &Value) {
        self.bytes += BYTES_PER_TOKEN;
        if let Some(hash) = &mut self.hash {
            *hash = mix_bytes(*hash, value.to_string().as_bytes());
        }
    }

    fn picture(&mut self, value: &Value) {
        let before = self.bytes;
        self.everything(value);
        self.bytes = before + PICTURE;
        if let Some(hash) = &mut self.hash {
            *hash = mix(*hash, PICTURE);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_token_for_four_bytes_in_every_format() {
        let tokens = |form, body: Value| Prompt::of(form, "m", &body).tokens();
        let openai = json!({"messages": [{"role": "system", "content": "12345678"},
            {"role": "user", "content": [{"type": "text", "text": "123"}]}]});
        let anthropic = json!({"system": "12345678", "messages": [{"role": "user", "content": "123"}]});
        let converse = json!({"system": [{"text": "12345678"}], "messages": [{"role": "user", "content": [{"text": "123"}]}]});
        assert_eq!(tokens(Form::OpenAi, openai), 3);
        assert_eq!(tokens(Form::Anthropic, anthropic), 3);
        assert_eq!(tokens(Form::Converse, converse), 3);
        let picture = json!({"messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]}]});
        assert_eq!(tokens(Form::Anthropic, picture), 1_000);
    }

    fn marked(text: &str) -> Value {
        json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}})
    }

    #[test]
    fn a_marked_prefix_is_written_and_then_read() {
        let cache = Prefixes::new();
        let count = |body: &Value| Prompt::of(Form::Anthropic, "m", body).count(&cache);
        let first = json!({"system": [marked(&"s".repeat(400))], "messages": [{"role": "user", "content": "12345678"}]});
        assert_eq!(count(&first), InputTokens { fresh: 2, read: 0, written: 100 });
        assert_eq!(count(&first), InputTokens { fresh: 2, read: 100, written: 0 });
        // The mark moves with the conversation; the prefix that was written before is read.
        let next = json!({"system": [{"type": "text", "text": "s".repeat(400)}],
            "messages": [{"role": "user", "content": "12345678"}, {"role": "assistant", "content": "1234"},
                {"role": "user", "content": [marked("12345678")]}]});
        assert_eq!(count(&next), InputTokens { fresh: 0, read: 100, written: 5 });
        assert_eq!(count(&next), InputTokens { fresh: 0, read: 105, written: 0 });
        let other = json!({"system": [marked(&"t".repeat(400))], "messages": [{"role": "user", "content": "12345678"}]});
        assert_eq!(count(&other).read, 0);
        assert_eq!(
            Prompt::of(Form::Anthropic, "other", &first).count(&cache).read,
            0,
            "each model has its own"
        );
        let plain = json!({"messages": [{"role": "user", "content": "12345678"}]});
        assert_eq!([count(&plain), count(&plain)], [InputTokens { fresh: 2, ..InputTokens::default() }; 2]);
    }

    #[test]
    fn converse_marks_with_blocks() {
        let cache = Prefixes::new();
        let body = json!({"system": [{"text": "s".repeat(400)}, {"cachePoint": {"type": "default"}}],
            "messages": [{"role": "user", "content": [{"text": "1234"}]}]});
        let count = || Prompt::of(Form::Converse, "m", &body).count(&cache);
        assert_eq!(count(), InputTokens { fresh: 1, read: 0, written: 100 });
        assert_eq!(count(), InputTokens { fresh: 1, read: 100, written: 0 });
    }

    #[test]
    fn openai_caches_long_prompts_by_itself_in_steps() {
        let cache = Prefixes::new();
        let count = |bytes, more: &str| {
            let messages =
                json!([{"role": "user", "content": "u".repeat(bytes)}, {"role": "user", "content": more}]);
            Prompt::of(Form::OpenAi, "m", &json!({"messages": messages})).count(&cache)
        };
        assert_eq!(count(400, "a").read, 0);
        assert_eq!(count(400, "a").read, 0, "too short");
        assert_eq!(count(5_000, "a").read, 0);
        let again = count(5_000, "b");
        assert_eq!((again.read, again.all(), again.written), (1_152, 1_251, 0));
    }
}
