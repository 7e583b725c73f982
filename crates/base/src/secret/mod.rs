//! Secrets: which variables hold them, how files refer to them, and how their values are kept out of all output and
//! stored files.

mod spelling;

use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use self::spelling::{Plain, encodings};
use crate::env::Env;
use crate::text::percent_encoded;

/// Shorter values are too common in ordinary text to be scrubbed from it.
const SHORTEST_SECRET: usize = 6;

/// Only longer values are looked for in other cases and encodings.
const SHORTEST_ENCODED: usize = 8;

/// How often an escape can be escaped again, as JSON in a text of JSON is.
const DEEPEST_ESCAPES: usize = 3;

/// Most bytes that one byte of a secret takes in a text with escapes.
const LONGEST_ESCAPE: usize = 12;

/// Whether a variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 8] =
        ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS"];
    name.to_ascii_uppercase().split(['_', '-', '.']).any(|word| {
        WORDS.contains(&word) || word.ends_with("APIKEY") || word.ends_with("TOKEN") && word.len() > 5
    })
}

/// A value that must not be printed; [`Self::reveal`] is the only way to read it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Replaces known secret values in text by the names of their variables, whatever they are encoded in.
#[derive(Default)]
pub struct Redactor {
    /// Values that are too short for anything but an exact search.
    short: Spellings,
    /// All others, in each of their encodings. Upper and lower case do not matter.
    long: Spellings,
}

/// Texts to be found, each with the name of its variable.
#[derive(Default)]
struct Spellings {
    names: Vec<String>,
    texts: Vec<String>,
    matcher: Option<AhoCorasick>,
}

impl Spellings {
    fn add(&mut self, name: &str, text: String) {
        if !self.texts.contains(&text) {
            self.names.push(name.to_owned());
            self.texts.push(text);
        }
    }

    fn compile(&mut self, ignores_case: bool) {
        let mut builder = AhoCorasick::builder();
        // Every command builds this when it starts, and few of them search much.
        let kind = Some(AhoCorasickKind::ContiguousNFA);
        builder.kind(kind).match_kind(MatchKind::LeftmostLongest).ascii_case_insensitive(ignores_case);
        self.matcher = if self.texts.is_empty() { None } else { builder.build(&self.texts).ok() };
    }

    fn find<'s>(&'s self, bytes: &[u8]) -> impl Iterator<Item = Found<'s>> {
        let found = self.matcher.iter().flat_map(move |matcher| matcher.find_iter(bytes));
        found.map(move |found| Found { range: found.range(), name: &self.names[found.pattern().as_usize()] })
    }

    fn longest(&self) -> usize {
        self.texts.iter().map(String::len).max().unwrap_or(0)
    }
}

/// A known secret in a text.
struct Found<'a> {
    range: Range<usize>,
    name: &'a str,
}

impl Redactor {
    /// Knows every variable of the environment whose name marks it as secret.
    pub fn from_env(env: &Env) -> Self {
        let mut redactor = Self::default();
        for (name, value) in env.iter().filter(|(name, _)| is_secret_name(name)) {
            redactor.learn(name, value);
        }
        redactor.compile();
        redactor
    }

    /// Adds these values, whatever their names.
    #[must_use]
    pub fn with<'a>(mut self, secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let before = self.short.texts.len() + self.long.texts.len();
        for (name, value) in secrets {
            self.learn(name, value);
        }
        if self.short.texts.len() + self.long.texts.len() > before {
            self.compile();
        }
        self
    }

    fn learn(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if value.len() < SHORTEST_SECRET {
            return;
        }
        let spellings = if value.len() < SHORTEST_ENCODED { &mut self.short } else { &mut self.long };
        // Inside a JSON string the same value may be spelled with escapes, inside an address with percent signs.
        let quoted = Value::from(value).to_string();
        let escaped = quoted[1..quoted.len() - 1].to_owned();
        let slashes = escaped.replace('/', "\\/");
        for spelling in [value.to_owned(), escaped, slashes, percent_encoded(value)] {
            spellings.add(name, spelling);
        }
        if value.len() >= SHORTEST_ENCODED {
            for spelling in encodings(value) {
                spellings.add(name, spelling);
            }
        }
    }

    fn compile(&mut self) {
        self.short.compile(false);
        self.long.compile(true);
    }

    fn knows_nothing(&self) -> bool {
        self.short.matcher.is_none() && self.long.matcher.is_none()
    }

    /// Whether the text holds a known secret.
    pub fn finds(&self, text: &str) -> bool {
        self.finds_in(text.as_bytes())
    }

    fn finds_in(&self, bytes: &[u8]) -> bool {
        self.short.find(bytes).next().is_some() || self.long.find(bytes).next().is_some() || {
            self.views(bytes).iter().any(|plain| self.long.find(&plain.bytes).next().is_some())
        }
    }

    /// The text with its escapes resolved, and with the escapes resolved that were inside escapes.
    fn views(&self, bytes: &[u8]) -> Vec<Plain> {
        let mut views: Vec<Plain> = Vec::new();
        while self.long.matcher.is_some() && views.len() < DEEPEST_ESCAPES {
            let Some(plain) = Plain::of(views.last().map_or(bytes, |plain| &plain.bytes)) else { break };
            views.push(plain);
        }
        views
    }

    /// Every known secret, in order; places do not overlap.
    fn all<'s>(&'s self, text: &str) -> Vec<(Range<usize>, &'s str)> {
        let bytes = text.as_bytes();
        let direct = self.short.find(bytes).chain(self.long.find(bytes));
        let mut found: Vec<(Range<usize>, &'s str)> = direct.map(|found| (found.range, found.name)).collect();
        let views = self.views(bytes);
        for (depth, plain) in views.iter().enumerate() {
            for Found { mut range, name } in self.long.find(&plain.bytes) {
                for above in views[..=depth].iter().rev() {
                    range = above.source_of(&range);
                }
                found.push((text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end), name));
            }
        }
        found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut apart: Vec<(Range<usize>, &'s str)> = Vec::new();
        for (range, name) in found {
            match apart.last_mut() {
                Some((last, _)) if range.start < last.end => last.end = last.end.max(range.end),
                _ => apart.push((range, name)),
            }
        }
        apart
    }

    /// Starts a search through bytes that arrive in pieces.
    pub fn search(&self) -> Search<'_> {
        let longest = self.short.longest().max(self.long.longest().saturating_mul(LONGEST_ESCAPE));
        Search { redactor: self, longest, tail: Vec::new(), found: false }
    }

    /// The text with every known secret replaced by `[NAME redacted]`.
    pub fn scrub(&self, text: String) -> String {
        if self.knows_nothing() {
            return text;
        }
        let found = self.all(&text);
        if found.is_empty() {
            return text;
        }
        let mut scrubbed = String::with_capacity(text.len());
        let mut at = 0;
        for (range, name) in found {
            scrubbed.push_str(&text[at..range.start]);
            scrubbed.push_str(&mark(name));
            at = range.end;
        }
        scrubbed.push_str(&text[at..]);
        scrubbed
    }
}

fn mark(name: &str) -> String {
    format!("[{name} redacted]")
}

impl Redactor {
    /// Scrubs a JSON value: texts, keys and numbers, and texts of neighbours that a reader joins. Returns whether there was
    /// anything to scrub.
    pub fn scrub_value(&self, value: &mut Value) -> bool {
        if self.knows_nothing() {
            return false;
        }
        match value {
            Value::String(text) => self.scrub_text(text),
            Value::Array(items) => {
                let mut found = false;
                for item in &mut *items {
                    found |= self.scrub_value(item);
                }
                self.scrub_joined(items) || found
            }
            Value::Object(object) => self.scrub_object(object),
            Value::Number(number) => {
                let mut text = number.to_string();
                let found = self.scrub_text(&mut text);
                if found {
                    *value = Value::String(text);
                }
                found
            }
            Value::Null | Value::Bool(_) => false,
        }
    }

    /// Scrubs the keys and values of an object.
    pub fn scrub_object(&self, object: &mut Map<String, Value>) -> bool {
        let mut found = !self.knows_nothing() && object.keys().any(|key| self.finds(key));
        if found {
            let entries = std::mem::take(object).into_iter();
            *object = entries.map(|(key, value)| (self.scrub(key), value)).collect();
        }
        for value in object.values_mut() {
            found |= self.scrub_value(value);
        }
        found
    }

    /// Scrubs a text in place and returns whether there was anything to scrub.
    pub fn scrub_text(&self, text: &mut String) -> bool {
        let found = !self.knows_nothing() && self.finds(text);
        if found {
            *text = self.scrub(std::mem::take(text));
        }
        found
    }

    pub fn scrub_some(&self, text: &mut Option<String>) {
        if let Some(inner) = text {
            self.scrub_text(inner);
        }
    }

    /// Scrubs a text that may be JSON, such as a line of a file, so that it stays JSON.
    pub fn scrub_json(&self, text: String) -> String {
        if self.knows_nothing() || !self.finds(&text) {
            return text;
        }
        match crate::json::from_str::<Value>(&text) {
            Ok(mut value) => {
                self.scrub_value(&mut value);
                value.to_string()
            }
            Err(_) => self.scrub(text),
        }
    }

    /// Scrubs a secret that is split between neighbouring texts, such as the parts of a message: whoever reads them joins
    /// them.
    fn scrub_joined(&self, items: &mut [Value]) -> bool {
        if items.len() < 2 || self.knows_nothing() {
            return false;
        }
        let mut texts: Vec<&mut String> = items.iter_mut().filter_map(text_of).collect();
        // Only the ends of long texts can be parts of a secret that is split.
        let most = self.long.longest().max(self.short.longest());
        let mut joined = String::new();
        let mut pieces: Vec<(usize, Range<usize>, Range<usize>)> = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let (head, tail) =
                (text.floor_char_boundary(most), text.ceil_char_boundary(text.len().saturating_sub(most)));
            let (first, second) =
                if head < tail { (0..head, Some(tail..text.len())) } else { (0..text.len(), None) };
            for (number, part) in std::iter::once(first).chain(second).enumerate() {
                if number > 0 {
                    // Nothing reaches from the head of a long text to its tail.
                    joined.push('\u{0}');
                }
                let start = joined.len();
                joined.push_str(&text[part.clone()]);
                pieces.push((index, part, start..joined.len()));
            }
        }
        let found: Vec<(Range<usize>, String)> =
            self.all(&joined).into_iter().map(|(range, name)| (range, mark(name))).collect();
        let mut is_split = false;
        for (range, mark) in found.into_iter().rev() {
            let touched: Vec<_> = pieces
                .iter()
                .filter(|(_, _, place)| place.start < range.end && range.start < place.end)
                .collect();
            let Some((first, ..)) = touched.first() else { continue };
            is_split = true;
            for (index, part, place) in touched.iter().rev() {
                let from = part.start + range.start.saturating_sub(place.start);
                let to = (part.start + (range.end - place.start)).min(part.end);
                texts[*index].replace_range(from..to, if index == first { &mark } else { "" });
            }
        }
        is_split
    }
}

/// The text of an element: itself, or the text or content of a part.
fn text_of(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        Value::Object(object) => {
            let key =
                ["text", "content"].into_iter().find(|key| object.get(*key).is_some_and(Value::is_string))?;
            match object.get_mut(key) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A search for known secrets in bytes that arrive in pieces; it also finds a secret that is split between two
/// pieces.
pub struct Search<'a> {
    redactor: &'a Redactor,
    longest: usize,
    /// The end of the bytes seen so far, in which a secret may have begun.
    tail: Vec<u8>,
    found: bool,
}

impl Search<'_> {
    pub fn feed(&mut self, piece: &[u8]) {
        if self.found || self.redactor.knows_nothing() {
            return;
        }
        self.tail.extend_from_slice(piece);
        self.found = self.redactor.finds_in(&self.tail);
        let kept = self.tail.len().min(self.longest.saturating_sub(1));
        self.tail.drain(..self.tail.len() - kept);
    }

    /// Whether a known secret has been seen.
    pub fn found(&self) -> bool {
        self.found
    }
}

/// The variable that a value refers to, if it is a reference (`$NAME`, `${NAME}` or `env:NAME`) and nothing else.
pub fn reference(value: &str) -> Option<&str> {
    let name = value
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .or_else(|| value.strip_prefix('$'))
        .or_else(|| value.strip_prefix("env:"))?;
    let valid = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    valid.then_some(name)
}

/// A value in a file that must refer to a variable: a literal would be kept and sent with the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String", extend("pattern" = r"^(\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\}|env:[A-Za-z_][A-Za-z0-9_]*)$"))]
pub struct Reference(String);

impl Reference {
    pub fn variable(&self) -> &str {
        reference(&self.0).unwrap_or_default()
    }

    pub fn value(&self, env: &Env) -> Result<Secret, ExpandError> {
        let name = self.variable();
        env.get(name).map(Secret::new).ok_or_else(|| ExpandError::Unset(name.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReferenceVisitor)
    }
}

/// Accepts references only. Any other value may be a token, even if it looks like a number, so errors do not repeat
/// it.
struct ReferenceVisitor;

impl ReferenceVisitor {
    const LITERAL: &'static str =
        "is not a reference; put the value into .env and write the name of its variable as $NAME";
}

impl Visitor<'_> for ReferenceVisitor {
    type Value = Reference;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reference such as $NAME")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Reference, E> {
        let found = reference(text).map(|_| Reference(text.to_owned()));
        found.ok_or_else(|| E::custom(Self::LITERAL))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Reference, E> {
        Err(E::custom(Self::LITERAL))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Reference, E> {
        Err(E::custom(Self::LITERAL))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Reference, E> {
        Err(E::custom(Self::LITERAL))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Reference, E> {
        Err(E::custom(Self::LITERAL))
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    #[error("refers to the variable {0}, which is not set")]
    Unset(String),
    #[error("refers to {0}, which holds a secret; this value is printed and stored")]
    Secret(String),
}

/// Expands a reference in a value that is itself public, such as a model name.
pub fn expand_public(value: &str, env: &Env) -> Result<String, ExpandError> {
    let Some(name) = reference(value) else { return Ok(value.to_owned()) };
    if is_secret_name(name) {
        return Err(ExpandError::Secret(name.to_owned()));
    }
    env.get(name).map(str::to_owned).ok_or_else(|| ExpandError::Unset(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        Env::from_shell(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn names_that_hold_secrets() {
        for name in [
            "ANTHROPIC_API_KEY",
            "HARBOR_TOKEN",
            "AWS_BEARER_TOKEN_BEDROCK",
            "MODAL_TOKEN_ID",
            "MODAL_TOKEN_SECRET",
            "db-password",
            "OPENAI_APIKEY",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["AWS_REGION", "AZURE_OPENAI_ENDPOINT", "PATH", "KEYBOARD", "MONKEY", "AGENT_MAX_TOKENS"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn known_values_are_scrubbed_in_every_spelling() {
        let env = env(&[("A_KEY", "sk-12345\"q"), ("B_TOKEN", "sk-12345\"q-longer"), ("PIN_KEY", "123")]);
        let redactor = Redactor::from_env(&env);
        assert_eq!(redactor.scrub("x sk-12345\"q y".into()), "x [A_KEY redacted] y");
        assert_eq!(redactor.scrub("sk-12345\"q-longer".into()), "[B_TOKEN redacted]");
        assert_eq!(redactor.scrub("{\"k\":\"sk-12345\\\"q\"}".into()), "{\"k\":\"[A_KEY redacted]\"}");
        assert_eq!(redactor.scrub("123 stays".into()), "123 stays");
        assert_eq!(redactor.scrub("?k=sk-12345%22q&".into()), "?k=[A_KEY redacted]&");
        let slash = Redactor::from_env(&self::env(&[("S_KEY", "abc/def/ghi")]));
        assert_eq!(slash.scrub("{\"k\":\"abc\\/def\\/ghi\"}".into()), "{\"k\":\"[S_KEY redacted]\"}");
        assert!(redactor.finds("x sk-12345\"q y") && !redactor.finds("123 stays"));
        let redactor = redactor.with([("PLAIN", "another-value")]);
        assert_eq!(redactor.scrub("another-value sk-12345\"q".into()), "[PLAIN redacted] [A_KEY redacted]");
        assert_eq!(format!("{:?}", Secret::new("hidden")), "[redacted]");
    }

    /// Every way in which an agent that found a secret could write it down so that the value itself does not occur.
    #[test]
    fn encoded_values_are_scrubbed() {
        const SECRET: &str = "sk-Canary/4711+value";
        let redactor = Redactor::from_env(&env(&[("A_KEY", SECRET), ("PIN_TOKEN", "abc123")]));
        let base64 = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
        let url =
            |text: &str| base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, text);
        let each = |form: fn(u8) -> String| SECRET.bytes().map(form).collect::<String>();
        let swapped: String = SECRET
            .chars()
            .map(|c| if c.is_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() })
            .collect();
        let mut spellings = vec![
            swapped,
            SECRET.to_uppercase(),
            SECRET.chars().rev().collect(),
            each(|byte| format!("{byte:02x}")),
            each(|byte| format!("{byte:02X}")),
            each(|byte| format!("{byte:02x} ")),
            each(|byte| format!("%{byte:02x}")),
            each(|byte| format!("%{byte:02X}")),
            each(|byte| format!("\\x{byte:02x}")),
            each(|byte| format!("\\u{byte:04x}")),
            each(|byte| format!("\\u{byte:04X}")),
            each(|byte| format!("\\\\u{byte:04x}")),
            SECRET.replacen('n', "\\u006e", 1),
            SECRET.replacen('a', "%61", 1).replace('/', "\\/"),
            format!("{}\n{}", &SECRET[..7], &SECRET[7..]),
            format!("{}\\n{}", &SECRET[..7], &SECRET[7..]),
            format!("{}\\\n{}", &SECRET[..7], &SECRET[7..]),
        ];
        for lead in ["", "k", "ke", "key"] {
            for tail in ["", "t", "ta"] {
                spellings.push(base64(&format!("{lead}{SECRET}{tail}")));
                spellings.push(url(&format!("{lead}{SECRET}{tail}")));
            }
        }
        let wrapped = base64(SECRET);
        spellings.push(format!("{}\n{}", &wrapped[..11], &wrapped[11..]));
        for spelling in spellings {
            let text = format!("before {spelling} after\n");
            assert!(redactor.finds(&text), "{spelling}");
            let scrubbed = redactor.scrub(text.clone());
            assert!(scrubbed.starts_with("before ") && scrubbed.ends_with(" after\n"), "{scrubbed}");
            assert!(scrubbed.contains("[A_KEY redacted]"), "{spelling}: {scrubbed}");
            assert!(!redactor.finds(&scrubbed), "{scrubbed}");
            let mut search = redactor.search();
            text.as_bytes().chunks(5).for_each(|piece| search.feed(piece));
            assert!(search.found(), "{spelling}");
            let mut line = serde_json::json!({"text": text});
            assert!(redactor.scrub_value(&mut line));
            assert!(redactor.finds(&serde_json::json!({"text": text}).to_string()), "{spelling} as JSON");
        }
        // A short value is replaced as it stands, and in no other form.
        assert_eq!(
            redactor.scrub("abc123 ABC123 616263313233 abc\n123".into()),
            "[PIN_TOKEN redacted] ABC123 616263313233 abc\n123"
        );
    }

    #[test]
    fn keys_numbers_and_neighbours_are_scrubbed() {
        let redactor = Redactor::from_env(&env(&[("A_KEY", "sk-12345678"), ("B_KEY", "1234567890")]));
        let mut value = serde_json::json!({
            "sk-12345678": {"x sk-12345678": 1}, "number": 1_234_567_890_u64,
            "parts": [{"type": "text", "text": "it is sk-1"}, {"type": "text", "text": "2345678."}, {"n": 3}],
            "pieces": ["s", "k", "-1234", "5678", " and on"],
        });
        assert!(redactor.scrub_value(&mut value));
        assert_eq!(
            value,
            serde_json::json!({
                "[A_KEY redacted]": {"x [A_KEY redacted]": 1}, "number": "[B_KEY redacted]",
                "parts": [{"type": "text", "text": "it is [A_KEY redacted]"}, {"type": "text", "text": "."}, {"n": 3}],
                "pieces": ["[A_KEY redacted]", "", "", "", " and on"],
            })
        );
        let line = serde_json::json!({"n": 1_234_567_890_u64, "text": "a"}).to_string();
        assert_eq!(redactor.scrub_json(line), r#"{"n":"[B_KEY redacted]","text":"a"}"#);
        assert_eq!(redactor.scrub_json("{\"torn\": \"sk-12345678".into()), "{\"torn\": \"[A_KEY redacted]");
        let mut clean = serde_json::json!({"a": ["b", "c"]});
        assert!(!redactor.scrub_value(&mut clean));
    }

    proptest::proptest! {
        /// Texts without a secret stay as they are, whatever is in them.
        #[test]
        fn ordinary_text_stays(text in "(\\PC|[\\\\%\n\r\"u0-9a-f]){0,80}") {
            let redactor = Redactor::from_env(&env(&[("A_KEY", "sk-Canary/4711+value"), ("B_TOKEN", "zq-7xw")]));
            proptest::prop_assert_eq!(redactor.scrub(text.clone()), text);
        }
    }

    #[test]
    fn a_secret_across_two_pieces_is_found() {
        let redactor = Redactor::from_env(&env(&[("A_KEY", "sk-12345"), ("B_KEY", "a-much-longer-value")]));
        let text = b"\xffbinary sk-12345 and more";
        for size in 1..text.len() {
            let mut search = redactor.search();
            text.chunks(size).for_each(|piece| search.feed(piece));
            assert!(search.found(), "{size}");
            let mut search = redactor.search();
            text[..15].chunks(size).for_each(|piece| search.feed(piece));
            assert!(!search.found(), "{size}");
        }
        let nothing = Redactor::default();
        let mut search = nothing.search();
        search.feed(text);
        assert!(!search.found());
    }

    #[test]
    fn references() {
        assert_eq!(reference("$MODEL"), Some("MODEL"));
        assert_eq!(reference("${MODEL}"), Some("MODEL"));
        assert_eq!(reference("env:MODEL"), Some("MODEL"));
        for literal in ["MODEL", "$", "$1", "env:", "a$MODEL", "$MO DEL", "${MODEL", "$MODEL/x"] {
            assert_eq!(reference(literal), None, "{literal}");
        }
        let env = env(&[("MODEL", "m-1"), ("X_KEY", "secret-value")]);
        assert_eq!(expand_public("$MODEL", &env).unwrap(), "m-1");
        assert_eq!(expand_public("literal", &env).unwrap(), "literal");
        assert_eq!(expand_public("$NONE", &env), Err(ExpandError::Unset("NONE".into())));
        assert_eq!(expand_public("$X_KEY", &env), Err(ExpandError::Secret("X_KEY".into())));
    }

    proptest::proptest! {
        #[test]
        fn a_secret_never_survives(secret in "[!-~]{6,30}", before in "\\PC{0,20}", after in "\\PC{0,20}") {
            let redactor = Redactor::from_env(&env(&[("THE_KEY", &secret)]));
            let scrubbed = redactor.scrub(format!("{before}{secret}{after}"));
            proptest::prop_assert!(!scrubbed.contains(&secret) || "[THE_KEY redacted]".contains(&secret));
        }
    }
}
