//! Decides which of the things that an agent left is its answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::submission::is_output;

/// Which of several answers counts. Plans, records and packages name the order they were made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerOrder {
    /// The written file, else the submitted answer, else the last message: for plans and records that name no order.
    FileFirst,
    /// The submitted answer, else the written file, else the last message.
    SubmittedFirst,
}

impl AnswerOrder {
    /// The order for all new plans, records and packages.
    pub const PRESENT: Self = Self::SubmittedFirst;

    /// The order of plans and records that name none.
    pub fn unnamed() -> Self {
        Self::FileFirst
    }

    /// Whether plans and records leave it out, so that old ones keep their digests.
    pub fn is_unnamed(&self) -> bool {
        *self == Self::unnamed()
    }

    /// The name as written in plans, records and packages.
    pub fn name(self) -> &'static str {
        match self {
            Self::FileFirst => "file_first",
            Self::SubmittedFirst => "submitted_first",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::FileFirst, Self::SubmittedFirst].into_iter().find(|order| order.name() == name)
    }

    /// The source of the answer, given which ones exist.
    pub fn choose(self, submitted: bool, written: bool, said: bool) -> Option<Source> {
        let submitted = submitted.then_some(Source::Submitted);
        let written = written.then_some(Source::File);
        let first = match self {
            Self::FileFirst => written.or(submitted),
            Self::SubmittedFirst => submitted.or(written),
        };
        first.or_else(|| said.then_some(Source::FinalText))
    }
}

/// The source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The agent wrote the file.
    File,
    /// The agent submitted it.
    Submitted,
    /// It is the agent's last message.
    FinalText,
}

impl Source {
    /// The name as written in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Submitted => "submitted",
            Self::FinalText => "final_text",
        }
    }

    /// Its name in rows of evaluations and in packages.
    pub fn word(source: Option<Self>) -> &'static str {
        match source {
            Some(Self::Submitted) => "submission",
            Some(Self::File) => "workspace",
            Some(Self::FinalText) => "message",
            None => "none",
        }
    }
}

/// An answer that an agent submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// This content, whatever happens to files later. An empty content is an answer too.
    Content(Vec<u8>),
    /// The file at this path below the workspace, as it is when the work ends.
    File(String),
}

/// What an agent delivered besides the files of its workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handed {
    /// Its latest submission.
    pub submitted: Option<Submitted>,
    /// Its last message, if [`last_word`] accepts it.
    pub said: Option<String>,
}

/// The agent's last message, if it may be the answer: the text of its last reply, if that calls no tool and is not
/// blank. Text beside a tool call is not an answer.
pub fn last_word(text: &str, calls_tools: bool) -> Option<&str> {
    (!calls_tools && !text.trim().is_empty()).then_some(text)
}

/// Files of a workspace in memory, by path.
pub type Files = BTreeMap<String, Arc<[u8]>>;

/// Whether there are files below a path.
pub fn is_directory(files: &Files, place: &str) -> bool {
    let below = format!("{place}/");
    files.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below))
}

/// Settles the answer of an agent whose files are in memory.
#[derive(Clone, Copy, Debug)]
pub struct InMemory<'a> {
    /// Which of several answers counts.
    pub order: AnswerOrder,
    /// The path of the answer below the workspace.
    pub place: &'a str,
    /// Files that make up a submission; all if empty.
    pub outputs: &'a [String],
    /// The file that the agent got at the answer's path, if any.
    pub given: Option<&'a [u8]>,
}

impl InMemory<'_> {
    /// Reduces `files` to those that are judged, puts the answer in its place, and returns the answer's source.
    pub fn settle(&self, files: &mut Files, handed: &Handed) -> Option<Source> {
        let written = self.is_written(files);
        let source = self.order.choose(handed.submitted.is_some(), written, handed.said.is_some());
        let answer: Option<Arc<[u8]>> = match (source, &handed.submitted, &handed.said) {
            (Some(Source::Submitted), Some(Submitted::Content(content)), _) => {
                Some(content.as_slice().into())
            }
            (Some(Source::Submitted), Some(Submitted::File(path)), _) => files.get(path).cloned(),
            (Some(Source::FinalText), _, Some(text)) => Some(text.as_bytes().into()),
            _ => None,
        };
        files.retain(|path, _| is_output(path, self.outputs));
        if matches!(source, Some(Source::Submitted | Source::FinalText)) {
            files.retain(|path, _| !in_the_way(path, self.place));
            files.extend(answer.map(|answer| (self.place.to_owned(), answer)));
        }
        source
    }

    /// Whether the agent left something at the answer's path that it did not get with the task.
    fn is_written(&self, files: &Files) -> bool {
        match files.get(self.place) {
            Some(content) => self.given != Some(content),
            None => {
                let above = |(at, _)| files.contains_key(&self.place[..at]);
                is_directory(files, self.place) || self.place.match_indices('/').any(above)
            }
        }
    }
}

/// Whether a file must make way for the answer: it is the same file, or one of the two paths would have to be a
/// directory.
pub(crate) fn in_the_way(path: &str, place: &str) -> bool {
    let below = |path: &str, above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    path == place || below(path, place) || below(place, path)
}
