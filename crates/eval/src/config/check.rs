//! Which values are allowed. The same checks serve files, where the caller adds the place, and resolved settings.

use std::time::Duration;

use aec_base::document::Shared;
use aec_base::name;
use aec_base::problem::Problem;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use crate::config::environment::shown;
use crate::config::options::Workers;
use crate::config::{FAMILY, number};

/// Headers that belong to the connection.
const RULED: [&str; 5] = ["host", "content-length", "content-type", "transfer-encoding", "connection"];

/// Longest name of a column.
const LONGEST_COLUMN: usize = 128;

pub(crate) fn bad_value(what: String, fix: &str) -> Problem {
    Problem::error(what).id(FAMILY.id(Shared::BadValue)).fix(fix)
}

/// Two keys that contradict each other.
pub(crate) fn conflict(what: String, fix: &str) -> Problem {
    Problem::error(what).id(FAMILY.id(Shared::Conflict)).fix(fix)
}

pub(crate) fn not_empty(key: &str, text: &str) -> Result<(), Problem> {
    if text.trim().is_empty() {
        return Err(bad_value(format!("`{key}` is empty"), "write something there, or remove the key"));
    }
    Ok(())
}

pub(crate) fn positive(key: &str, number: u32) -> Result<(), Problem> {
    if number == 0 {
        return Err(bad_value(format!("`{key}` must be at least 1"), "remove the key, or raise it"));
    }
    Ok(())
}

pub(crate) fn workers(key: &str, workers: Workers) -> Result<(), Problem> {
    match workers {
        Workers::Auto => Ok(()),
        Workers::Count(count) => positive(key, count),
    }
}

pub(crate) fn temperature(key: &str, number: f64) -> Result<(), Problem> {
    if !number.is_finite() || number < 0.0 {
        let what = format!("`{key}` must be a number of at least 0, not {number}");
        return Err(bad_value(what, "write a number such as 0.7"));
    }
    Ok(())
}

pub(crate) fn timeout(key: &str, seconds: f64) -> Result<Duration, Problem> {
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero()).ok_or_else(|| {
        let what = format!("`{key}` must be a number of seconds above 0, not {seconds}");
        bad_value(what, "write seconds such as 600, or remove the key")
    })
}

/// An http or https address. It is not repeated in the problem, as it may hold a secret.
pub(crate) fn address(key: &str, text: &str) -> Result<(), Problem> {
    let parsed =
        Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match parsed {
        Some(_) => Ok(()),
        None => Err(bad_value(
            format!("`{key}` is not an http or https address"),
            "write the whole address, with https:// in front",
        )),
    }
}

/// The name of a variable. The text is not repeated in the problem: it may be the key itself.
pub(crate) fn variable(key: &str, text: &str) -> Result<(), Problem> {
    let mut letters = text.chars();
    let first = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    if first && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Ok(());
    }
    Err(bad_value(
        format!("`{key}` is not the name of a variable"),
        "put the key into .env or the shell, and write the variable's name here",
    ))
}

/// A name that becomes part of paths, such as an experiment's.
pub(crate) fn plain_name(key: &str, text: &str) -> Result<(), Problem> {
    name::check(text).map_err(|error| {
        let what = format!("`{key}` \"{}\" {error}", shown(text));
        bad_value(what, "use letters, digits, `.`, `_` and `-`")
    })
}

/// A header of `key`. The value is not repeated in the problem: it may be a secret.
pub(crate) fn header(key: &str, name: &str, value: &str) -> Result<(), Problem> {
    header_name(key, name)?;
    if !value.is_ascii() || HeaderValue::from_str(value).is_err() {
        let what =
            format!("the value of the header `{name}` in `{key}` has characters that headers cannot have");
        return Err(header_problem(what, "use printable ASCII on one line"));
    }
    Ok(())
}

/// A header of `key` whose value comes from the rollout's state.
pub(crate) fn header_from_state(key: &str, name: &str, state_key: &str) -> Result<(), Problem> {
    header_name(key, name)?;
    if state_key.trim().is_empty() {
        let what = format!("the header `{name}` in `{key}` names no key of the state");
        return Err(header_problem(what, "write the key, such as example_id"));
    }
    Ok(())
}

fn header_name(key: &str, name: &str) -> Result<(), Problem> {
    let Ok(header) = name.parse::<HeaderName>() else {
        let what = format!("\"{}\" in `{key}` cannot be the name of a header", shown(name));
        return Err(header_problem(what, "use letters, digits and -"));
    };
    if RULED.contains(&header.as_str()) {
        let what = format!("the header `{header}` in `{key}` is not yours to set");
        return Err(header_problem(what, "remove it; it belongs to the connection"));
    }
    Ok(())
}

pub(crate) fn header_problem(what: String, fix: &str) -> Problem {
    Problem::error(what).id(FAMILY.number(number::HEADER)).fix(fix)
}

/// Names of columns: each must be usable as a key of a result, and none may occur twice.
pub(crate) fn columns(key: &str, columns: &[String]) -> Vec<Problem> {
    let problem = |what: String, fix: &str| Problem::error(what).id(FAMILY.number(number::COLUMN)).fix(fix);
    let mut problems = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for column in columns {
        let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        if column.is_empty() || column.len() > LONGEST_COLUMN || !column.chars().all(is_name) {
            let what = format!("\"{}\" in `{key}` cannot be the name of a column", shown(column));
            problems.push(problem(what, "write the key of the state, of letters, digits, `_`, `-` and `.`"));
        } else if !seen.insert(column) {
            problems.push(problem(format!("the column `{column}` is twice in `{key}`"), "keep one of them"));
        }
    }
    problems
}

/// Keys of a JSON object that is passed on as arguments.
pub(crate) fn arguments(key: &str, map: &Map<String, Value>) -> Result<(), Problem> {
    if map.keys().any(|name| name.trim().is_empty()) {
        return Err(bad_value(
            format!("`{key}` has a key without a name"),
            "name the argument, or remove it",
        ));
    }
    Ok(())
}
