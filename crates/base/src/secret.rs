//! Secrets: which variables hold them, how files refer to them, and how their values are kept out of all output and
//! stored files.

use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::env::Env;
use crate::text::percent_encoded;

/// Shorter values are too common in ordinary text to be scrubbed from it.
const SHORTEST_SECRET: usize = 6;

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

/// Replaces known secret values in text by the names of their variables.
#[derive(Default)]
pub struct Redactor {
    names: Vec<String>,
    values: Vec<String>,
    matcher: Option<AhoCorasick>,
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
        for (name, value) in secrets {
            self.learn(name, value);
        }
        self.compile();
        self
    }

    fn learn(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if value.len() < SHORTEST_SECRET {
            return;
        }
        // Inside a JSON string the same value may be spelled with escapes, inside an address with percent signs.
        let quoted = Value::from(value).to_string();
        let escaped = quoted[1..quoted.len() - 1].to_owned();
        let slashes = escaped.replace('/', "\\/");
        for spelling in [value.to_owned(), escaped, slashes, percent_encoded(value)] {
            if !self.values.contains(&spelling) {
                self.names.push(name.to_owned());
                self.values.push(spelling);
            }
        }
    }

    fn compile(&mut self) {
        self.matcher = if self.values.is_empty() {
            None
        } else {
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&self.values).ok()
        };
    }

    /// Whether the text holds a known secret.
    pub fn finds(&self, text: &str) -> bool {
        self.matcher.as_ref().is_some_and(|matcher| matcher.is_match(text))
    }

    /// Starts a search through bytes that arrive in pieces.
    pub fn search(&self) -> Search<'_> {
        let longest = self.values.iter().map(String::len).max().unwrap_or(0);
        Search { redactor: self, longest, tail: Vec::new(), found: false }
    }

    /// The text with every known secret replaced by `[NAME redacted]`.
    pub fn scrub(&self, text: String) -> String {
        let Some(matcher) = &self.matcher else { return text };
        if !matcher.is_match(&text) {
            return text;
        }
        let mut scrubbed = String::with_capacity(text.len());
        matcher.replace_all_with(&text, &mut scrubbed, |found, _, result| {
            result.push('[');
            result.push_str(&self.names[found.pattern().as_usize()]);
            result.push_str(" redacted]");
            true
        });
        scrubbed
    }
}

impl Redactor {
    /// Scrubs every text in a JSON value. Keys and numbers stay, because they give a value its form.
    pub fn scrub_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.scrub(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub_value(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.scrub_value(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub fn scrub_some(&self, text: &mut Option<String>) {
        if let Some(inner) = text {
            *inner = self.scrub(std::mem::take(inner));
        }
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
        let Some(matcher) = self.redactor.matcher.as_ref().filter(|_| !self.found) else { return };
        self.tail.extend_from_slice(piece);
        self.found = matcher.is_match(&self.tail);
        let kept = self.tail.len().min(self.longest - 1);
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
