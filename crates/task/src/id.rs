//! Task ids: the path of a task directory below the tasks root.
//!
//! The canonical form has slashes (`electrical/voltage-drop/basic`). Dataset manifests may carry a dotted form
//! (`electrical.voltage-drop.basic`); every command accepts both.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use aec_base::name::{self, Name, NameError};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TaskId(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskIdError {
    #[error("a task id cannot be empty")]
    Empty,
    #[error("`{segment}` cannot be part of a task id: it {error}")]
    Segment {
        /// The segment, made safe to print.
        segment: String,
        error: NameError,
    },
    #[error("a task id must be plain text")]
    NotText,
    #[error("a task id has at most {MAX_ID} characters")]
    TooLong,
}

/// Longest id; leaves space for file names below it within the limits of file systems.
const MAX_ID: usize = 512;

impl TaskId {
    /// Parses an id in its canonical form.
    pub fn parse(text: &str) -> Result<Self, TaskIdError> {
        if text.is_empty() {
            return Err(TaskIdError::Empty);
        }
        if text.len() > MAX_ID {
            return Err(TaskIdError::TooLong);
        }
        for segment in text.split('/') {
            name::check(segment).map_err(|error| TaskIdError::Segment {
                segment: aec_base::text::printable(segment).into_owned(),
                error,
            })?;
        }
        Ok(Self(text.to_owned()))
    }

    /// An id for what another program calls its task: names stay as they are, everything else becomes `-`, with the
    /// beginning of a digest.
    pub fn nearest(text: &str) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut length = 0;
        for segment in text.split('/').filter(|segment| !segment.is_empty()) {
            let name = Name::nearest(segment).to_string();
            length += name.len() + 1;
            names.push(name);
        }
        if names.is_empty() || length > MAX_ID {
            // One name of what the whole text says.
            return Self(Name::nearest(&format!("{text} ")).to_string());
        }
        Self(names.join("/"))
    }

    /// The id of a directory below the tasks root.
    pub fn from_relative_path(path: &Path) -> Result<Self, TaskIdError> {
        let mut segments = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(part) => segments.push(part.to_str().ok_or(TaskIdError::NotText)?),
                Component::CurDir => {}
                _ => return Err(TaskIdError::NotText),
            }
        }
        Self::parse(&segments.join("/"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The dotted form that manifests may use.
    pub fn dotted(&self) -> String {
        self.0.replace('/', ".")
    }

    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// The directory of this task below the tasks root.
    pub fn relative_path(&self) -> PathBuf {
        self.segments().collect()
    }

    /// Whether `text`, in either form, names this task.
    pub fn is(&self, text: &str) -> bool {
        let text = text.trim_end_matches('/');
        self.0 == text || (!text.contains('/') && self.dotted() == text)
    }

    /// Whether `text`, in either form, names a parent directory of this task.
    pub fn is_below(&self, text: &str) -> bool {
        let text = text.trim_end_matches('/');
        let below =
            |id: &str, separator: char| id.strip_prefix(text).is_some_and(|rest| rest.starts_with(separator));
        !text.is_empty() && (below(&self.0, '/') || (!text.contains('/') && below(&self.dotted(), '.')))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for TaskId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_name_a_task_and_its_directories() {
        let id = TaskId::parse("electrical/voltage-drop/basic").unwrap();
        for text in [
            "electrical/voltage-drop/basic",
            "electrical.voltage-drop.basic",
            "electrical/voltage-drop/basic/",
        ] {
            assert!(id.is(text), "{text}");
        }
        for text in ["electrical", "electrical/", "electrical/voltage-drop", "electrical.voltage-drop"] {
            assert!(id.is_below(text), "{text}");
            assert!(!id.is(text), "{text}");
        }
        for text in ["", "/", "elec", "electrical/voltage", "voltage-drop", "electrical/voltage-drop/basic"] {
            assert!(!id.is_below(text), "{text}");
        }
    }

    #[test]
    fn ids_cannot_leave_the_tasks_root() {
        for text in
            ["", "../x", "a/../b", "/a", "a//b", "a/", "a/.", "a\0/b", "a/b\x1b[0m", "a\\..\\b", "~/a"]
        {
            assert!(TaskId::parse(text).is_err(), "{text:?}");
        }
        assert!(TaskId::parse(&"a/".repeat(300)).is_err());
        assert!(TaskId::from_relative_path(Path::new("../a/b")).is_err());
        assert_eq!(TaskId::from_relative_path(Path::new("./a/b")).unwrap().as_str(), "a/b");
    }

    proptest::proptest! {
        #[test]
        fn an_id_and_its_path_are_the_same_thing(segments in proptest::collection::vec("[a-z0-9][a-z0-9_-]{0,8}", 1..5)) {
            let id = TaskId::parse(&segments.join("/")).unwrap();
            proptest::prop_assert_eq!(&TaskId::from_relative_path(&id.relative_path()).unwrap(), &id);
            proptest::prop_assert!(id.is(&id.dotted()));
        }
    }
}
