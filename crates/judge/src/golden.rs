//! Golden answers: submissions that come with a task, with the reward that its verifier must give them.

use std::io;
use std::path::{Path, PathBuf};

use aec_base::content::ContentStore;
use aec_sandbox::{Kind, Tree, WalkLimits};
use aec_task::task::{Task, primary_output};

use crate::submission::{FreezeError, Submission, SubmissionLimits};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    Full,
    /// At most half.
    AtMostHalf,
}

impl Expectation {
    pub fn is_met(self, reward: f64) -> bool {
        match self {
            Self::Full => reward >= 1.0,
            Self::AtMostHalf => reward <= 0.5,
        }
    }

    /// The expectation as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Full => "1",
            Self::AtMostHalf => "at most 0.5",
        }
    }
}

/// A golden answer of a task.
#[derive(Clone, Debug)]
pub struct Golden {
    /// File name below `tests/fixtures`.
    pub name: String,
    pub expectation: Expectation,
    path: PathBuf,
}

/// The golden answers of a task: `tests/fixtures/golden_pass*` and `golden_fail*`, files or directories.
pub fn golden_answers(task: &Task) -> Vec<Golden> {
    let Ok(entries) = fs_err::read_dir(task.path.join("tests/fixtures")) else { return Vec::new() };
    let mut found: Vec<Golden> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let expectation = if name.starts_with("golden_pass") {
                Expectation::Full
            } else if name.starts_with("golden_fail") {
                Expectation::AtMostHalf
            } else {
                return None;
            };
            Some(Golden { name, expectation, path: entry.path() })
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

impl Golden {
    pub fn submission(&self, task: &Task, store: &ContentStore) -> Result<Submission, FreezeError> {
        submission_from(task, &self.path, store)
    }
}

/// Makes a submission from a path: a directory is the workspace that an agent would leave; a file is the primary
/// output, beside the agent's initial files.
pub fn submission_from(task: &Task, path: &Path, store: &ContentStore) -> Result<Submission, FreezeError> {
    if path.is_dir() {
        return Submission::freeze(
            &Tree::open(path)?,
            &task.agent.outputs,
            &SubmissionLimits::default(),
            store,
        );
    }
    submission_with_output(task, &fs_err::read(path)?, store)
}

/// A submission whose primary output has this content, beside the agent's initial files.
pub fn submission_with_output(
    task: &Task,
    output: &[u8],
    store: &ContentStore,
) -> Result<Submission, FreezeError> {
    let instruction = task.instruction().map_err(|error| io::Error::other(error.to_string()))?;
    let place = primary_output(&instruction);
    let place = place.strip_prefix("/workspace/").unwrap_or(&place).to_owned();
    let mut contents = Vec::new();
    for file in task.workspace_files()? {
        contents.push((file.place, fs_err::read(&file.source)?));
    }
    contents.retain(|(known, _)| *known != place);
    contents.push((place, output.to_vec()));
    Submission::from_contents(contents, store)
}

/// The golden answers of a task as contents of the primary output; directories are left out.
pub fn golden_outputs(task: &Task, expectation: Expectation) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut outputs = Vec::new();
    for golden in golden_answers(task).into_iter().filter(|golden| golden.expectation == expectation) {
        if golden.path.is_file() {
            outputs.push((golden.name, fs_err::read(&golden.path)?));
        } else if let Some(output) = output_of_directory(task, &golden.path)? {
            outputs.push((golden.name, output));
        }
    }
    Ok(outputs)
}

fn output_of_directory(task: &Task, directory: &Path) -> io::Result<Option<Vec<u8>>> {
    let instruction = task.instruction().map_err(|error| io::Error::other(error.to_string()))?;
    let place = primary_output(&instruction);
    let place = Path::new(place.strip_prefix("/workspace/").unwrap_or(&place));
    let tree = Tree::open(directory)?;
    let listed = tree.list(WalkLimits { entries: 10_000, depth: 16 })?;
    let there = listed.iter().any(|entry| entry.path == place && entry.kind == Kind::File);
    if there { tree.read(place, 64 * 1024 * 1024).map(Some) } else { Ok(None) }
}
