//! A problem found in somebody's input: what is wrong, why it matters, where it is and what to do.
//!
//! Every reader of the workspace reports these instead of stopping at the first error, and every command
//! prints them the same way, so a person and a script see one shape.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The thing cannot be used as it is.
    Error,
    /// The thing works, but not as its author probably thinks.
    Warning,
    /// Advice. Never changes an exit code.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// One problem, as printed and as found in the `errors` list of the JSON envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How much it matters.
    pub severity: Severity,
    /// Stable id of the kind of problem, such as `T012`; absent for one-off errors.
    pub id: Option<String>,
    /// What the problem is about when that is not the file, such as a task id.
    pub about: Option<String>,
    /// What is wrong, in one sentence without a final full stop.
    pub what: String,
    /// Why it is wrong or matters.
    pub why: Option<String>,
    /// What to do about it.
    pub fix: Option<String>,
    pub file: Option<PathBuf>,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Column in characters, counted from 1.
    pub column: Option<u32>,
}

impl Problem {
    /// A problem of the given severity that has only a sentence so far.
    pub fn new(severity: Severity, what: impl Into<String>) -> Self {
        Self {
            severity,
            id: None,
            about: None,
            what: what.into(),
            why: None,
            fix: None,
            file: None,
            line: None,
            column: None,
        }
    }

    pub fn error(what: impl Into<String>) -> Self {
        Self::new(Severity::Error, what)
    }

    pub fn warning(what: impl Into<String>) -> Self {
        Self::new(Severity::Warning, what)
    }

    /// A piece of advice.
    pub fn note(what: impl Into<String>) -> Self {
        Self::new(Severity::Note, what)
    }

    /// With the stable id of this kind of problem.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// With the reason.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// With the remedy.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// With the thing it is about.
    #[must_use]
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = Some(about.into());
        self
    }

    #[must_use]
    pub fn in_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// With a place inside a file.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.file = Some(place.file);
        self.line = Some(place.line);
        self.column = Some(place.column);
        self
    }

    /// Whether this counts as a finding: an error or a warning, not advice.
    pub fn counts(&self) -> bool {
        self.severity != Severity::Note
    }

    /// `file:line:column` as far as known.
    pub fn place_text(&self) -> Option<String> {
        let file = self.file.as_deref().map(Path::display)?;
        Some(match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
            (Some(line), None) => format!("{file}:{line}"),
            _ => file.to_string(),
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place_text() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Problem {}

/// A position in a text file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    pub file: PathBuf,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}
