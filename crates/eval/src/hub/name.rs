//! Names of datasets on the hub.

use std::fmt;

use aec_base::digest::Digest;

use super::error::HubError;
use aec_http::excerpt;

/// Longest name that the hub takes.
const LONGEST_NAME: usize = 96;

/// Digits that keep shortened names distinct.
const MARK_LENGTH: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    owner: String,
    name: String,
}

impl Repository {
    pub fn new(owner: &str, name: &str) -> Result<Self, HubError> {
        let bad = |reason| HubError::Name { name: excerpt(&format!("{owner}/{name}")), reason };
        check(owner).map_err(|reason| bad(format!("the owner {reason}")))?;
        check(name).map_err(|reason| bad(format!("the name {reason}")))?;
        Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// User or organisation.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.owner, self.name)
    }
}

/// A name as the user gives it: `name` or `owner/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedName {
    owner: Option<String>,
    name: String,
}

impl WantedName {
    pub fn parse(text: &str) -> Result<Self, HubError> {
        let bad = |reason: String| HubError::Name { name: excerpt(text), reason };
        let (owner, name) = match text.split_once('/') {
            Some((owner, name)) => (Some(owner), name),
            None => (None, text),
        };
        if name.contains('/') {
            return Err(bad("it has more than one `/`".to_owned()));
        }
        if let Some(owner) = owner {
            check(owner).map_err(|reason| bad(format!("the owner {reason}")))?;
        }
        check(name).map_err(|reason| bad(format!("the name {reason}")))?;
        Ok(Self { owner: owner.map(ToOwned::to_owned), name: name.to_owned() })
    }

    /// The name that an evaluation gets if the user gives none.
    pub fn of_evaluation(env_id: &str, model: &str, examples: i64, rollouts: i64) -> Self {
        Self { owner: None, name: default_name(env_id, model, examples, rollouts) }
    }

    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dataset, which belongs to `user` unless another owner is named.
    pub fn owned_by(&self, user: &str) -> Result<Repository, HubError> {
        Repository::new(self.owner.as_deref().unwrap_or(user), &self.name)
    }
}

/// `<env_id>_<model>_n<examples>_r<rollouts>`, with characters that the hub refuses replaced. A name that is too long
/// keeps its numbers and gets a mark, so that two long names stay distinct.
pub fn default_name(env_id: &str, model: &str, examples: i64, rollouts: i64) -> String {
    let subject = format!("{env_id}_{model}");
    let numbers = format!("_n{examples}_r{rollouts}");
    let name = acceptable(&format!("{subject}{numbers}"));
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let numbers = acceptable(&numbers);
    let mark = &Digest::of(subject.as_bytes()).hex()[..MARK_LENGTH];
    let room = LONGEST_NAME - numbers.len() - MARK_LENGTH - 1;
    // All characters are ASCII here.
    let start = acceptable(&subject);
    let start = &start[..room.min(start.len())];
    format!("{start}_{mark}{numbers}")
}

/// The text with other characters replaced, and with dashes and dots only where the hub allows them.
fn acceptable(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        let c = match c {
            '/' => '_',
            c if is_allowed(c) => c,
            _ => '-',
        };
        let last = name.chars().next_back();
        if matches!(c, '-' | '.') && last.is_none_or(|last| matches!(last, '-' | '.')) {
            continue;
        }
        name.push(c);
    }
    let kept = name.trim_end_matches(['-', '.']).len();
    name.truncate(kept);
    name
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// What is wrong with one part of a name, after "the name".
fn check(part: &str) -> Result<(), String> {
    if part.is_empty() {
        return Err("is empty".to_owned());
    }
    if let Some(c) = part.chars().find(|c| !is_allowed(*c)) {
        return Err(format!("has {c:?}, which is not allowed"));
    }
    if part.len() > LONGEST_NAME {
        return Err(format!("has {} characters, more than {LONGEST_NAME}", part.len()));
    }
    if part.starts_with(['-', '.']) || part.ends_with(['-', '.']) {
        return Err("begins or ends with `-` or `.`".to_owned());
    }
    if part.contains("--") || part.contains("..") {
        return Err("has `--` or `..`".to_owned());
    }
    if part.to_ascii_lowercase().ends_with(".git") {
        return Err("ends with `.git`".to_owned());
    }
    Ok(())
}
