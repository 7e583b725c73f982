//! From what an agent left to a frozen submission: what it submitted, else the file that it wrote, else the last thing
//! it said.

use std::io;
use std::path::Path;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::secret::Redactor;
use aec_judge::submission::{FreezeError, Submission, SubmissionLimits};
use aec_ledger::record::OutputSource;
use aec_sandbox::{SandboxError, Tree};

use crate::harness::Rollout;
use crate::harness::RoomFault;
use crate::harness::tools::Submitted;
use crate::task::PreparedTask;
use crate::workspace::{WORKSPACE, Workspace};

/// A submission, and where its answer came from.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) submission: Submission,
    pub(crate) source: Option<OutputSource>,
}

/// Why nothing was frozen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    /// What the agent left cannot be a submission.
    #[error("{0}")]
    Unfit(String),
    /// The room or the disk failed.
    #[error("{}", .0.message)]
    Machine(RoomFault),
}

impl From<FreezeError> for AnswerError {
    fn from(error: FreezeError) -> Self {
        match error {
            FreezeError::TooLarge(_) => Self::Unfit(error.to_string()),
            FreezeError::Io(error) => Self::Machine(error.to_string().into()),
        }
    }
}

impl From<io::Error> for AnswerError {
    fn from(error: io::Error) -> Self {
        Self::Machine(error.to_string().into())
    }
}

impl From<SandboxError> for AnswerError {
    fn from(error: SandboxError) -> Self {
        Self::Machine(error.into())
    }
}

/// Freezes what an agent left. Everything in its room is ended first.
pub(crate) fn freeze(
    task: &PreparedTask,
    workspace: Option<&Workspace>,
    rollout: &Rollout,
    contents: &ContentStore,
    redactor: &Redactor,
) -> Result<Frozen, AnswerError> {
    let said = match (&rollout.submitted, &rollout.final_text) {
        (Some(Submitted::Content(text)), _) => Some((text, OutputSource::Submitted)),
        (None, Some(text)) => Some((text, OutputSource::FinalText)),
        (Some(Submitted::File(_)), _) | (None, None) => None,
    };
    let said = said.map(|(text, source)| (redactor.scrub(text.clone()), source));
    let frozen = match workspace {
        Some(workspace) => {
            let mut room = workspace.lock()?;
            room.freeze()?;
            let tree = room.directory(WORKSPACE).ok_or(SandboxError::Gone)?;
            let written = is_written(task, tree);
            let outputs = &task.task.agent.outputs;
            let mut submission = Submission::freeze(tree, outputs, &SubmissionLimits::default(), contents)?;
            let source = match (said, &rollout.submitted) {
                (None, Some(Submitted::File(place))) => {
                    let limit = SubmissionLimits::default().file_bytes;
                    if let Ok(bytes) = tree.read(Path::new(place), limit) {
                        submission.put(task.output_place(), &bytes)?;
                    }
                    Some(OutputSource::Submitted)
                }
                (Some((text, source)), submitted) if submitted.is_some() || !written => {
                    // Not through the workspace, which the agent may have filled to the brim.
                    submission.put(task.output_place(), text.as_bytes())?;
                    Some(source)
                }
                _ => written.then_some(OutputSource::File),
            };
            Frozen { submission, source }
        }
        None => {
            let place = task.output_place();
            let answer = said.as_ref().map(|(text, _)| (place.to_owned(), text.clone().into_bytes()));
            let has_answer = answer.is_some();
            let given = task.files.iter().filter(|file| file.place != place || !has_answer);
            let given = given.map(|file| (file.place.clone(), file.content.to_vec()));
            let submission = Submission::from_contents(given.chain(answer), contents)?;
            Frozen { submission, source: said.map(|(_, source)| source) }
        }
    };
    refuse_secrets(&frozen.submission, task, contents, redactor)?;
    Ok(frozen)
}

/// Freezes a workspace that came from elsewhere. Files called `ours` were written by this program there.
pub(crate) fn freeze_returned(
    task: &PreparedTask,
    tree: &Tree,
    ours: &[&str],
    contents: &ContentStore,
    redactor: &Redactor,
) -> Result<Frozen, AnswerError> {
    let outputs = &task.task.agent.outputs;
    let mut submission = Submission::freeze(tree, outputs, &SubmissionLimits::default(), contents)?;
    submission.leave_out(ours);
    let source = is_written(task, tree).then_some(OutputSource::File);
    refuse_secrets(&submission, task, contents, redactor)?;
    Ok(Frozen { submission, source })
}

/// Whether the agent wrote the task's output: a file that is there and is not one that it was given.
fn is_written(task: &PreparedTask, tree: &Tree) -> bool {
    let given = task.files.iter().find(|file| file.place == task.output_place());
    let mut file = match tree.open_file(Path::new(task.output_place())) {
        Ok(file) => file,
        // A link or a directory in its place is what the agent left; it will be refused by name.
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    let Some(given) = given else { return true };
    let limit = SubmissionLimits::default().file_bytes;
    let found = aec_base::digest::copy(&mut file, limit, |_| Ok(()));
    found.map_or(true, |(digest, _)| digest != given.facts.hash)
}

/// An agent is never told a secret, but what one got hold of must not be kept.
fn refuse_secrets(
    submission: &Submission,
    task: &PreparedTask,
    contents: &ContentStore,
    redactor: &Redactor,
) -> Result<(), AnswerError> {
    let given = |digest: Digest| task.files.iter().any(|file| file.facts.hash == digest);
    for (path, file) in &submission.files {
        if given(file.digest) {
            continue;
        }
        let mut search = redactor.search();
        let found = match fs_err::File::open(contents.path(file.digest)) {
            Ok(content) => {
                aec_base::digest::copy(content, file.size, |piece| {
                    search.feed(piece);
                    Ok(())
                })?;
                search.found()
            }
            // It was frozen a moment ago. Only another trial that left the same, and was refused for it, takes it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error.into()),
        };
        if found {
            match fs_err::remove_file(contents.path(file.digest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            return Err(AnswerError::Unfit(format!(
                "the file `{path}` holds the value of a secret of this machine"
            )));
        }
    }
    Ok(())
}
