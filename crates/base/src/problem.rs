//! A problem in the user's input: what is wrong, why it matters, where it is and how to fix it.
//!
//! All readers in the workspace collect problems instead of stopping at the first error, and all commands print them
//! the same way, so people and scripts always get the same form.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The input cannot be used as it is.
    Error,
    /// The input works, but probably not as its author expects.
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
    pub severity: Severity,
    /// Stable id of the kind of problem, such as `T012`; absent for one-off errors.
    pub id: Option<String>,
    /// The subject if it is not the file, such as a task id.
    pub about: Option<String>,
    /// What is wrong, in one sentence without a final full stop.
    pub what: String,
    /// Why it is wrong or matters.
    pub why: Option<String>,
    /// What to do about it.
    pub fix: Option<String>,
    #[serde(serialize_with = "as_shown")]
    pub file: Option<PathBuf>,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Column in characters, counted from 1.
    pub column: Option<u32>,
}

/// A path as text, whatever bytes are in it: a problem must be told in any case.
#[expect(clippy::ref_option, reason = "serde passes the field as it is")]
fn as_shown<S: serde::Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

impl Problem {
    /// A problem that has only a sentence so far.
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

    pub fn note(what: impl Into<String>) -> Self {
        Self::new(Severity::Note, what)
    }

    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

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

    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.file = Some(place.file);
        self.line = Some(place.line);
        self.column = Some(place.column);
        self
    }

    /// Whether this counts as a finding: errors and warnings do, advice does not.
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
