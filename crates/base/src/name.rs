//! One grammar for names that become file names, ids and command-line words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest name; leaves space for suffixes within the 255 bytes of a file name.
pub const MAX_NAME: usize = 128;

/// A name of an experiment, agent, dataset, suite or one segment of a task id: an ASCII letter or digit, then
/// letters, digits, `.`, `_` or `-`, not ending in a dot and without two dots in a row. Nothing in it can leave
/// a directory, hide a file, colour a terminal or look like another letter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^[A-Za-z0-9](?:[A-Za-z0-9_-]|\\.(?=[A-Za-z0-9_-]))*$", "maxLength" = 128))]
pub struct Name(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("is empty")]
    Empty,
    #[error("is {0} characters long, more than the {MAX_NAME} allowed")]
    TooLong(usize),
    #[error("contains {0:?}; letters, digits, `.`, `_` and `-` are allowed")]
    Character(char),
    #[error("begins with {0:?}; the first character must be a letter or digit")]
    Start(char),
    #[error("has dots at its end or two in a row")]
    Dots,
}

impl Name {
    /// Checks a text against the grammar.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        check(text)?;
        Ok(Self(text.to_owned()))
    }

    /// The text itself if it is a name. Otherwise other characters become `-`, and the beginning of a digest keeps
    /// such names distinct.
    pub fn nearest(text: &str) -> Self {
        const TAG: usize = 8;
        if check(text).is_ok() {
            return Self(text.to_owned());
        }
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let letters = text.chars().map(|letter| if plain(letter) { letter } else { '-' });
        let head: String =
            letters.skip_while(|letter| !letter.is_ascii_alphanumeric()).take(MAX_NAME - TAG - 1).collect();
        let tag = &crate::digest::Digest::of(text.as_bytes()).hex()[..TAG];
        let head = head.trim_end_matches('-');
        Self(if head.is_empty() { tag.to_owned() } else { format!("{head}-{tag}") })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub fn check(text: &str) -> Result<(), NameError> {
    let first = text.chars().next().ok_or(NameError::Empty)?;
    if text.len() > MAX_NAME {
        return Err(NameError::TooLong(text.chars().count()));
    }
    if let Some(bad) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-')) {
        return Err(NameError::Character(bad));
    }
    if !first.is_ascii_alphanumeric() {
        return Err(NameError::Start(first));
    }
    if text.contains("..") || text.ends_with('.') {
        return Err(NameError::Dots);
    }
    Ok(())
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        check(&text)?;
        Ok(Self(text))
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_a_name_and_tells_texts_apart() {
        assert_eq!(Name::nearest("Qwen3.5-4B").as_str(), "Qwen3.5-4B");
        let texts = [
            "Qwen/Qwen3.5-4B",
            "Qwen.Qwen3/5-4B",
            "",
            "..",
            "\u{1d465}",
            "-a",
            "a.",
            &"x".repeat(500),
            "../a",
        ];
        let mut seen = std::collections::BTreeSet::new();
        for text in texts {
            let name = Name::nearest(text);
            assert_eq!(check(name.as_str()), Ok(()), "{text:?}");
            assert!(seen.insert(name.as_str().to_owned()), "{text:?} is not told apart");
        }
        assert!(seen.iter().any(|name| name.starts_with("Qwen-Qwen3-5-4B-")));
    }

    #[test]
    fn the_grammar() {
        for good in ["a", "voltage-drop", "exp-20260412-001", "1.0.0", "gpt4_direct"] {
            assert_eq!(Name::parse(good).unwrap().as_str(), good);
        }
        assert_eq!(check(""), Err(NameError::Empty));
        assert_eq!(check("../../x"), Err(NameError::Character('/')));
        assert_eq!(check(".."), Err(NameError::Start('.')));
        assert_eq!(check("a..b"), Err(NameError::Dots));
        assert_eq!(check("a."), Err(NameError::Dots));
        assert_eq!(check("-rf"), Err(NameError::Start('-')));
        assert_eq!(check("a\x1b[2J"), Err(NameError::Character('\x1b')));
        assert_eq!(check("a\0"), Err(NameError::Character('\0')));
        // A Cyrillic letter that looks like a Latin one.
        assert_eq!(check("vоltage"), Err(NameError::Character('о')));
        assert_eq!(check(&"x".repeat(129)), Err(NameError::TooLong(129)));
    }

    proptest::proptest! {
        #[test]
        fn a_name_is_one_safe_path_component(text in "\\PC{0,20}|[a-c./\\\\-]{0,6}") {
            if check(&text).is_ok() {
                let path = std::path::Path::new(&text);
                proptest::prop_assert_eq!(path.components().count(), 1);
                proptest::prop_assert!(matches!(path.components().next(), Some(std::path::Component::Normal(_))));
            }
        }
    }
}
