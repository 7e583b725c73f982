//! Environment variables as the program sees them: the shell first, then the project's `.env`.
//!
//! The process environment is never changed; code that needs a variable takes an [`Env`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::document::{Family, Shared, place, unreadable};
use crate::file::{Links, ReadError, read_text};
use crate::problem::Problem;

/// A larger `.env` is a mistake.
const DOTENV_LIMIT: u64 = 256 * 1024;

/// Where a variable's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvOrigin {
    /// The process environment.
    Shell,
    /// The project's `.env`.
    File,
}

/// The variables of the shell, with the project's `.env` filling the gaps.
#[derive(Clone, Default)]
pub struct Env {
    shell: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
    /// Names that code asked for, here or in a clone: the same work needs them on another machine.
    asked: Arc<Mutex<BTreeSet<String>>>,
}

impl Env {
    /// Only the process environment, which the caller has read.
    pub fn from_shell(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { shell: variables.into_iter().collect(), file: BTreeMap::new(), asked: Arc::default() }
    }

    /// Adds these variables; they replace variables of the process environment with the same names.
    #[must_use]
    pub fn with(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.shell.extend(variables);
        self
    }

    /// Adds the `.env` of a project root; a missing file adds nothing.
    pub fn load_dotenv(&mut self, root: &Path) -> Result<Option<PathBuf>, Vec<Problem>> {
        let path = root.join(".env");
        let family = Family('V');
        let text = match read_text(&path, DOTENV_LIMIT, Links::Follow) {
            Ok(text) => text,
            Err(ReadError::Missing) => return Ok(None),
            Err(error) => return Err(vec![unreadable(&path, &error, family)]),
        };
        let shell = &self.shell;
        let parsed = parse_dotenv(&text, |name| shell.get(name).cloned());
        self.file = parsed.map_err(|errors| {
            errors
                .into_iter()
                .map(|(offset, what)| {
                    Problem::error(format!("cannot read this line of .env: {what}"))
                        .id(family.id(Shared::Syntax))
                        .fix("write NAME=value, or begin the line with #")
                        .at(place(&path, &text, offset))
                })
                .collect::<Vec<_>>()
        })?;
        tracing::debug!(file = %path.display(), variables = self.file.len(), ".env loaded");
        Ok(Some(path))
    }

    /// The value of a variable. An empty value counts as unset, as credentials cannot be empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.look_up(name);
        if found.is_some() {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        }
        found
    }

    fn look_up(&self, name: &str) -> Option<&str> {
        self.shell
            .get(name)
            .filter(|value| !value.is_empty())
            .or_else(|| self.file.get(name).filter(|value| !value.is_empty()))
            .map(String::as_str)
    }

    pub fn origin(&self, name: &str) -> Option<EnvOrigin> {
        self.look_up(name)?;
        let in_shell = self.shell.get(name).is_some_and(|value| !value.is_empty());
        Some(if in_shell { EnvOrigin::Shell } else { EnvOrigin::File })
    }

    /// Every variable with its effective value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let names: BTreeSet<&str> = self.shell.keys().chain(self.file.keys()).map(String::as_str).collect();
        names.into_iter().filter_map(|name| self.look_up(name).map(|value| (name, value)))
    }

    /// The variables of the process environment that code has asked for by name. A machine that has the project's
    /// `.env` needs only these.
    pub fn asked_of_shell(&self) -> BTreeMap<String, String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let given = |name: &String| self.shell.get(name).filter(|value| !value.is_empty()).cloned();
        asked.iter().filter_map(|name| Some((name.clone(), given(name)?))).collect()
    }
}

impl fmt::Debug for Env {
    /// Names only: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("shell", &self.shell.keys())
            .field("file", &self.file.keys())
            .finish_non_exhaustive()
    }
}

/// Byte offset of a line and what is wrong with it.
type LineError = (usize, &'static str);

/// The `.env` dialect that python-dotenv, the loader of the seeds, reads: `export` is allowed, `#` starts a comment
/// after white space, single quotes take text literally, double quotes know escapes, quoted values may span lines,
/// and `${NAME}` (never a bare `$`) refers to the shell or an earlier line.
fn parse_dotenv(
    text: &str,
    shell: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, Vec<LineError>> {
    let mut variables = BTreeMap::new();
    let mut errors = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let offset = text.len() - rest.len();
        let line_end = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
        let line = rest[..line_end].trim();
        if line.is_empty() || line.starts_with('#') {
            rest = &rest[line_end..];
            continue;
        }
        match parse_binding(rest) {
            Ok(binding) => {
                let value = if binding.literal {
                    binding.value
                } else {
                    interpolate(&binding.value, |name| {
                        shell(name).or_else(|| variables.get(name).cloned()).unwrap_or_default()
                    })
                };
                variables.insert(binding.name, value);
                rest = &rest[binding.length..];
            }
            Err(what) => {
                errors.push((offset, what));
                rest = &rest[line_end..];
            }
        }
    }
    if errors.is_empty() { Ok(variables) } else { Err(errors) }
}

struct Binding {
    name: String,
    value: String,
    /// Single-quoted: nothing in it is a reference.
    literal: bool,
    /// Bytes consumed from the text, including the line break.
    length: usize,
}

fn parse_binding(text: &str) -> Result<Binding, &'static str> {
    let line_end = text.find('\n').unwrap_or(text.len());
    let equals = text[..line_end].find('=').ok_or("there is no `=`")?;
    let name = text[..equals].trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(valid) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("the name before `=` must be letters, digits and `_`");
    }
    let name = name.to_owned();
    let after = &text[equals + 1..];
    let spaces = after.len() - after.trim_start_matches([' ', '\t']).len();
    let start = equals + 1 + spaces;
    let (value, literal, end) = if let Some(quote @ ('\'' | '"')) = text[start..].chars().next() {
        let (value, length) = parse_quoted(&text[start + 1..], quote)?;
        (value, quote == '\'', start + 1 + length)
    } else {
        let raw = &text[start..line_end];
        // `#` is part of a value unless it follows white space.
        let end = raw
            .char_indices()
            .find(|(at, c)| *c == '#' && (*at == 0 || raw[..*at].ends_with([' ', '\t'])))
            .map_or(raw.len(), |(at, _)| at);
        (raw[..end].trim().to_owned(), false, line_end)
    };
    let tail_end = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
    let tail = text[end..tail_end].trim();
    if !tail.is_empty() && !tail.starts_with('#') {
        return Err("there is text after the closing quote");
    }
    Ok(Binding { name, value, literal, length: (tail_end + 1).min(text.len()) })
}

/// The text up to the closing quote, and how many bytes it and the quote take.
fn parse_quoted(text: &str, quote: char) -> Result<(String, usize), &'static str> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        if c == quote {
            return Ok((value, at + 1));
        }
        if c != '\\' {
            value.push(c);
            continue;
        }
        let Some((_, escaped)) = characters.next() else { break };
        match (quote, escaped) {
            ('"', 'n') => value.push('\n'),
            ('"', 'r') => value.push('\r'),
            ('"', 't') => value.push('\t'),
            (_, '\\') => value.push('\\'),
            (_, c) if c == quote => value.push(c),
            (_, c) => {
                value.push('\\');
                value.push(c);
            }
        }
    }
    Err("the quote is never closed")
}

fn interpolate(value: &str, lookup: impl Fn(&str) -> String) -> String {
    let mut result = String::new();
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start + 2..].find('}') else { break };
        result.push_str(&rest[..start]);
        let name = &rest[start + 2..start + 2 + length];
        match name.split_once(":-") {
            Some((name, default)) => {
                let found = lookup(name);
                result.push_str(if found.is_empty() { default } else { &found });
            }
            None => result.push_str(&lookup(name)),
        }
        rest = &rest[start + 3 + length..];
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_of_the_shell_is_known() {
        let pairs = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_owned(), format!("{name}-value"))).collect::<Vec<_>>()
        };
        let mut env = Env::from_shell(pairs(&["ASKED", "NOT_ASKED", "REPLACED"]));
        env.file.insert("FROM_FILE".to_owned(), "x".to_owned());
        assert_eq!(env.iter().count(), 4, "looking at all of them asks for none");
        assert_eq!(env.origin("NOT_ASKED"), Some(EnvOrigin::Shell));
        let clone = env.clone().with([("REPLACED".to_owned(), "new".to_owned())]);
        for name in ["ASKED", "FROM_FILE", "ABSENT", "REPLACED"] {
            clone.get(name);
        }
        let asked = clone.asked_of_shell();
        assert_eq!(asked.keys().collect::<Vec<_>>(), ["ASKED", "REPLACED"]);
        assert_eq!(asked["REPLACED"], "new");
        assert_eq!(env.asked_of_shell().len(), 2, "clones know what others asked for");
    }

    fn parse(text: &str) -> Result<Vec<(String, String)>, Vec<LineError>> {
        parse_dotenv(text, |name| (name == "SHELL_SET").then(|| "shell".to_owned()))
            .map(|variables| variables.into_iter().collect())
    }

    fn one(text: &str) -> String {
        parse(text).unwrap().into_iter().next().unwrap().1
    }

    #[test]
    fn the_dialect() {
        assert_eq!(one("A=b"), "b");
        assert_eq!(one("export A = b c # comment\n"), "b c");
        assert_eq!(one("A=b#c"), "b#c");
        assert_eq!(one("A=pa$word$"), "pa$word$");
        assert_eq!(one("A='x # ${SHELL_SET} \\n' # comment"), "x # ${SHELL_SET} \\n");
        assert_eq!(one("A=\"x\\n\\\"y\\\"\""), "x\n\"y\"");
        assert_eq!(one("A=\"two\nlines\"\nB=1"), "two\nlines");
        assert_eq!(one("A=${SHELL_SET}/${NOT_SET:-else}/${NOT_SET}"), "shell/else/");
        assert_eq!(one("A="), "");
        assert_eq!(one("A=b\r\n"), "b");
        assert_eq!(parse("# c\n\nA=1\nB=${A}2\n").unwrap()[1].1, "12");
        assert_eq!(parse("A=1\nA=2\n").unwrap(), [("A".to_owned(), "2".to_owned())]);
    }

    #[test]
    fn bad_lines_are_all_named() {
        let errors = parse("A=1\nnonsense\n2X=3\nB='open\n").unwrap_err();
        assert_eq!(errors.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [4, 13, 18]);
        assert!(parse("A='x' y").is_err());
    }

    #[test]
    fn the_shell_wins_and_empty_is_unset() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join(".env"), "A=file\nB=file\nC=\nD=file\n").unwrap();
        let shell = [("A", "shell"), ("B", ""), ("E", "shell")];
        let mut env = Env::from_shell(shell.map(|(k, v)| (k.to_owned(), v.to_owned())));
        env.load_dotenv(dir.path()).unwrap();
        assert_eq!(env.get("A"), Some("shell"));
        assert_eq!(env.get("B"), Some("file"));
        assert_eq!(env.get("C"), None);
        assert_eq!(env.origin("A"), Some(EnvOrigin::Shell));
        assert_eq!(env.origin("D"), Some(EnvOrigin::File));
        assert_eq!(env.origin("C"), None);
        assert_eq!(env.iter().map(|(name, _)| name).collect::<String>(), "ABDE");
        assert!(!format!("{env:?}").contains("shell\""), "values must not be printed");
    }

    proptest::proptest! {
        #[test]
        fn quoted_values_come_back_as_written(value in "[^'\\\\\r]{0,40}") {
            proptest::prop_assert_eq!(one(&format!("A='{value}'\n")), value);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[A-C='\"\\\\$\\{\\}# \n]{0,60}") {
            parse(&text).ok();
        }
    }
}
