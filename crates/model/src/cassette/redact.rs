//! Keeps secrets out of cassettes.
//!
//! Texts are scrubbed one by one before they become JSON, not line by line afterwards: a secret that happens to be a
//! word of the format (`system`) must not break a line, and a secret in JSON inside a text (the arguments of a tool) is
//! found in its escaped spelling too.
//!
//! No digest of a secret is written. From the digest of a request that contains a secret, anyone who has the rest of
//! the request could find the secret by trying values; for a password that is quick. A truncated digest would reveal as
//! much over the turns of a conversation, and a key for the digest would have to be beside the cassette. So the digest
//! is taken from the scrubbed request, and such a call is marked. [`could_be`] compares a replayed request that
//! contains the secret, or something in its place, with marked calls. A request that repeats a scrubbed reply is found
//! by its digest.

use aec_base::secret::Redactor;
use serde_json::{Map, Value};

use crate::event::CallEvent;
use crate::failure::Failure;
use crate::message::{Message, Part, Reply, Sampling, Stop, Tool, ToolCall, ToolChoice};

/// Scrubs texts in place and remembers whether it found a secret.
pub(super) struct Scrubber<'a> {
    redactor: &'a Redactor,
    pub(super) found: bool,
}

impl<'a> Scrubber<'a> {
    pub(super) fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, found: false }
    }

    pub(super) fn text(&mut self, text: &mut String) {
        self.found |= self.redactor.scrub_text(text);
    }

    pub(super) fn message(&mut self, message: &mut Message) {
        self.parts(&mut message.parts);
    }

    fn parts(&mut self, parts: &mut [Part]) {
        for part in parts {
            match part {
                Part::Text { text } => self.text(text),
                Part::Image { media_type, data } => {
                    self.text(media_type);
                    self.text(data);
                }
                Part::Reasoning { text, opaque } => {
                    self.text(text);
                    if let Some(value) = opaque {
                        self.value(value);
                    }
                }
                Part::ToolCall(ToolCall { id, name, arguments }) => {
                    self.text(id);
                    self.text(name);
                    self.text(arguments);
                }
                Part::ToolResult { call_id, parts, is_error: _ } => {
                    self.text(call_id);
                    self.parts(parts);
                }
            }
        }
    }

    pub(super) fn tools(&mut self, tools: &mut [Tool]) {
        for Tool { name, description, parameters } in tools {
            self.text(name);
            self.text(description);
            self.value(parameters);
        }
    }

    pub(super) fn choice(&mut self, choice: &mut ToolChoice) {
        if let ToolChoice::Tool(name) = choice {
            self.text(name);
        }
    }

    pub(super) fn sampling(&mut self, sampling: &mut Sampling) {
        sampling.stop.iter_mut().for_each(|text| self.text(text));
        sampling.reasoning_effort.iter_mut().for_each(|text| self.text(text));
        self.object(&mut sampling.extra);
    }

    pub(super) fn reply(&mut self, reply: &mut Reply) {
        self.parts(&mut reply.parts);
        if let Stop::Other(text) = &mut reply.stop {
            self.text(text);
        }
        reply.model.iter_mut().chain(&mut reply.id).for_each(|text| self.text(text));
        self.object(&mut reply.extra);
    }

    pub(super) fn failure(&mut self, failure: &mut Failure) {
        self.text(&mut failure.message);
    }

    pub(super) fn event(&mut self, event: &mut CallEvent) {
        self.found |= event.scrub(self.redactor);
    }

    fn object(&mut self, object: &mut Map<String, Value>) {
        self.found |= self.redactor.scrub_object(object);
    }

    fn value(&mut self, value: &mut Value) {
        self.found |= self.redactor.scrub_value(value);
    }
}

/// Whether the text contains a redaction mark.
pub(super) fn is_marked(text: &str) -> bool {
    next_mark(text).is_some()
}

/// Whether a scrubbed text may come from this text: equal except at the marks.
pub(super) fn could_be(scrubbed: &str, text: &str) -> bool {
    let Some((first, mut rest)) = next_mark(scrubbed) else { return scrubbed == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    while let Some((literal, after)) = next_mark(rest) {
        let Some(at) = text.find(literal) else { return false };
        text = &text[at + literal.len()..];
        rest = after;
    }
    text.ends_with(rest)
}

/// The text before and after the first `[NAME redacted]`.
fn next_mark(text: &str) -> Option<(&str, &str)> {
    const END: &str = " redacted]";
    let mut searched = 0;
    loop {
        let end = searched + text[searched..].find(END)?;
        searched = end + END.len();
        let Some(start) = text[..end].rfind('[') else { continue };
        let name = &text[start + 1..end];
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Some((&text[..start], &text[searched..]));
        }
    }
}

#[cfg(test)]
mod tests {
    use aec_base::env::Env;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::message::Role;

    #[test]
    fn marks_stand_for_anything() {
        for (scrubbed, text) in [
            ("plain", "plain"),
            ("a [X_KEY redacted] b", "a secret b"),
            ("a [X_KEY redacted] b", "a  b"),
            ("a [X_KEY redacted] b", "a [X_KEY redacted] b"),
            ("[A redacted][B redacted]", "anything"),
            ("[A redacted], [B redacted]!", "one, two, three!"),
            ("not [a mark redacted] but [K redacted]", "not [a mark redacted] but this"),
        ] {
            assert!(could_be(scrubbed, text), "{scrubbed} {text}");
        }
        for (scrubbed, text) in [
            ("plain", "plan"),
            ("a [X_KEY redacted] b", "a secret c"),
            ("a [X_KEY redacted] b", "c secret b"),
            ("a[X_KEY redacted]a", "a"),
            ("[A redacted], [B redacted]!", "one two!"),
            ("[ redacted]", "x"),
            ("x redacted] [", "y redacted] ["),
        ] {
            assert!(!could_be(scrubbed, text), "{scrubbed} {text}");
        }
    }

    #[test]
    fn secrets_are_found_wherever_a_message_has_text() {
        let secret = "hun\"ter22";
        let env = Env::from_shell([("DB_PASSWORD".to_owned(), secret.to_owned())]);
        let redactor = Redactor::from_env(&env);
        let arguments = json!({"password": secret}).to_string();
        let mut message = Message {
            role: Role::System,
            parts: vec![
                Part::text(format!("it is {secret}.")),
                Part::Reasoning { text: secret.into(), opaque: Some(json!([{secret: [secret, 1]}])) },
                Part::ToolCall(ToolCall { id: secret.into(), name: secret.into(), arguments }),
                Part::ToolResult {
                    call_id: secret.into(),
                    parts: vec![Part::Image { media_type: secret.into(), data: secret.into() }],
                    is_error: true,
                },
            ],
        };
        let mut scrubber = Scrubber::new(&redactor);
        scrubber.message(&mut message);
        assert!(scrubber.found);
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(text.matches("[DB_PASSWORD redacted]").count(), 10, "{text}");
        assert!(!text.contains("ter22"), "{text}");
    }

    #[test]
    fn words_of_the_format_may_be_secrets() {
        let env = Env::from_shell([("A_TOKEN".to_owned(), "system".to_owned())]);
        let redactor = Redactor::from_env(&env);
        let mut message = Message::text(Role::System, "a system");
        Scrubber::new(&redactor).message(&mut message);
        assert_eq!(message, Message::text(Role::System, "a [A_TOKEN redacted]"));
    }

    proptest! {
        #[test]
        fn a_scrubbed_text_could_be_its_original(
            secret in "[a-zA-Z0-9\"\\\\]{6,12}",
            pieces in proptest::collection::vec("\\PC{0,12}", 1..5),
        ) {
            let redactor = Redactor::from_env(&Env::from_shell([("S_KEY".to_owned(), secret.clone())]));
            let original = pieces.join(&secret);
            let scrubbed = redactor.scrub(original.clone());
            prop_assert!(could_be(&scrubbed, &original), "{} {}", scrubbed, original);
        }
    }
}
