//! How the user names an environment: the grammar of `env_id`, and the names derived from it.

use std::path::PathBuf;

use aec_base::name;
use aec_base::problem::Problem;
use aec_base::text::printable;

use crate::config::{FAMILY, number};

const LONGEST_VERSION: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environment {
    /// A package or a dataset, given by name.
    Named { owner: Option<String>, name: String, version: Option<String> },
    /// A directory: the text is absolute, begins with `.` or `~`, ends with `/` or has more than two parts.
    Directory(PathBuf),
}

impl Environment {
    /// Reads an `env_id`. `owner/name` and a directory of two parts look alike; this function returns the former, and
    /// the caller that looks for the environment may try a directory of that path first.
    pub fn parse(env_id: &str) -> Result<Self, Problem> {
        let wrong = |reason: &str| {
            Problem::error(format!("`env_id` \"{}\" names no environment: {reason}", shown(env_id)))
                .id(FAMILY.number(number::ENVIRONMENT))
                .fix("write a name, owner/name, name@version or the path of a directory such as ./my-env")
        };
        if env_id.trim().is_empty() {
            return Err(wrong("it is empty"));
        }
        if env_id.chars().any(char::is_control) {
            return Err(wrong("it has control characters"));
        }
        if is_path(env_id) {
            return Ok(Self::Directory(PathBuf::from(env_id)));
        }
        let (path, version) = match env_id.split_once('@') {
            Some((path, version)) => (path, Some(version)),
            None => (env_id, None),
        };
        let (owner, name) = match path.split_once('/') {
            Some((owner, name)) => (Some(owner), name),
            None => (None, path),
        };
        if let Some(owner) = owner {
            name::check(owner).map_err(|error| wrong(&format!("the owner {error}")))?;
        }
        name::check(name).map_err(|error| wrong(&format!("the name {error}")))?;
        if let Some(version) = version {
            check_version(version).map_err(|reason| wrong(&format!("the version {reason}")))?;
        }
        Ok(Self::Named {
            owner: owner.map(str::to_owned),
            name: name.to_owned(),
            version: version.map(str::to_owned),
        })
    }
}

/// Name of the Python module of an environment: the last part of the path without its version, `-` as `_`. Empty when
/// a path ends without a name, as `.` does: make such a path absolute first.
pub fn module_name(env_id: &str) -> String {
    let name = last_part(env_id);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.replace('-', "_")
}

/// Name of an environment for people: the id itself, or the last part of a directory's path.
pub fn display_name(env_id: &str) -> String {
    let last = last_part(env_id);
    if is_path(env_id) && !last.is_empty() { last.to_owned() } else { env_id.to_owned() }
}

fn is_path(env_id: &str) -> bool {
    env_id.starts_with(['/', '.', '~']) || env_id.ends_with('/') || env_id.matches('/').count() > 1
}

fn last_part(env_id: &str) -> &str {
    match env_id.split('/').rfind(|part| !matches!(*part, "" | ".")) {
        None | Some("..") => "",
        Some(part) => part,
    }
}

fn check_version(version: &str) -> Result<(), String> {
    if version.is_empty() {
        return Err("is empty".to_owned());
    }
    if version.len() > LONGEST_VERSION {
        return Err(format!("is longer than {LONGEST_VERSION} characters"));
    }
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || ".-_+!".contains(letter);
    match version.chars().find(|letter| !allowed(*letter)) {
        Some(bad) => {
            Err(format!("contains {bad:?}; letters, digits, `.`, `-`, `_`, `+` and `!` are allowed"))
        }
        None => Ok(()),
    }
}

/// The beginning of a text, escaped for printing.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    printable(&short.replace(['\n', '\t'], " ")).into_owned()
}
