//! Turns the files that an agent left into a frozen submission with the answer in its place.

use std::io;
use std::path::Path;
use std::sync::MutexGuard;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::secret::Redactor;
use aec_sandbox::{Sandbox, SandboxError, Tree};

use super::order::{AnswerOrder, Files, Handed, InMemory, Source, Submitted};
use super::outcome::RoomFault;
use crate::submission::{FreezeError, Submission, SubmissionLimits};

const WORKSPACE: &str = "/workspace";

/// The fault of an agent that used more memory than its room has.
pub const TOO_MUCH_MEMORY: &str = "the agent's commands took more memory than the room has";

/// A submission and the source of its answer.
#[derive(Debug)]
pub struct Frozen {
    pub submission: Submission,
    /// Absent if there is no answer.
    pub source: Option<Source>,
}

#[derive(Debug, thiserror::Error)]
pub enum Unfrozen {
    #[error("{0}")]
    Unfit(String),
    #[error("{}", .0.message)]
    Machine(RoomFault),
}

impl From<FreezeError> for Unfrozen {
    fn from(error: FreezeError) -> Self {
        match error {
            FreezeError::TooLarge(_) => Self::Unfit(error.to_string()),
            FreezeError::Unreadable(error) => Self::Machine(error.into()),
            FreezeError::Io(error) => error.into(),
        }
    }
}

impl From<io::Error> for Unfrozen {
    fn from(error: io::Error) -> Self {
        Self::Machine(error.to_string().into())
    }
}

impl From<SandboxError> for Unfrozen {
    fn from(error: SandboxError) -> Self {
        Self::Machine(error.into())
    }
}

/// A file that the agent got with the task.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub path: &'a str,
    pub content: &'a [u8],
}

/// The files that an agent left: in memory, or in its room.
pub enum AgentFiles<'a> {
    InMemory(Files),
    InRoom(MutexGuard<'a, Box<dyn Sandbox>>),
}

/// The parts of a task and of this machine that freezing depends on.
pub struct Freezer<'a> {
    /// Which of several answers counts.
    pub order: AnswerOrder,
    /// The path of the answer below the workspace.
    pub place: &'a str,
    /// Files that make up a submission; all if empty.
    pub outputs: &'a [String],
    /// Files that the agent got with the task.
    pub given: Vec<Given<'a>>,
    pub contents: &'a ContentStore,
    /// Knows the secrets of this machine.
    pub redactor: &'a Redactor,
}

impl Freezer<'_> {
    /// Freezes the files that an agent left. If there is a room, everything in it ends.
    pub fn freeze(&self, files: AgentFiles<'_>, handed: &Handed) -> Result<Frozen, Unfrozen> {
        match files {
            AgentFiles::InMemory(files) => self.files(files, handed),
            AgentFiles::InRoom(mut room) => self.room(room.as_mut(), handed),
        }
    }

    fn room(&self, room: &mut dyn Sandbox, handed: &Handed) -> Result<Frozen, Unfrozen> {
        // An agent that brings down its room by using up its memory leaves nothing to judge. This is not an accident,
        // so the trial is not repeated.
        if room.out_of_memory() && room.lost().is_some() {
            let what = format!("{TOO_MUCH_MEMORY}, and its room with everything in it was ended");
            return Err(Unfrozen::Unfit(what));
        }
        let frozen = room.freeze().map_err(Unfrozen::from).and_then(|()| {
            let tree = room.directory(WORKSPACE).ok_or(SandboxError::Gone)?;
            // An ordinary user could not read a workspace that its commands have closed.
            tree.reopen().map_err(|error| Unfrozen::Machine(error.into()))?;
            self.tree(tree, &[], handed)
        });
        frozen.map_err(|error| match (error, room.lost()) {
            (Unfrozen::Machine(_), Some(why)) => why.into(),
            (error, _) => error,
        })
    }

    /// Freezes a directory that no process changes meanwhile. This program wrote the files called `ours`.
    pub fn tree(&self, tree: &Tree, ours: &[&str], handed: &Handed) -> Result<Frozen, Unfrozen> {
        let limits = SubmissionLimits::default();
        let written = self.is_written(tree);
        let source = self.order.choose(handed.submitted.is_some(), written, handed.said.is_some());
        let mut submission = Submission::freeze(tree, self.outputs, &limits, self.contents)?;
        submission.leave_out(ours);
        match (source, &handed.submitted, &handed.said) {
            (Some(Source::Submitted), Some(Submitted::Content(content)), _) => {
                submission.put(self.place, content)?;
            }
            (Some(Source::Submitted), Some(Submitted::File(path)), _) if path != self.place => {
                match tree.read(Path::new(path), limits.file_bytes) {
                    Ok(content) => submission.put(self.place, &content)?,
                    Err(error) => submission.withhold(self.place, path, &error.to_string()),
                }
            }
            // Not through the workspace, which the agent may have filled completely.
            (Some(Source::FinalText), _, Some(text)) => submission.put(self.place, text.as_bytes())?,
            _ => {}
        }
        self.checked(Frozen { submission, source })
    }

    /// Freezes files that are in memory.
    fn files(&self, mut files: Files, handed: &Handed) -> Result<Frozen, Unfrozen> {
        SubmissionLimits::default().check(&files, self.outputs)?;
        let given = self.given.iter().find(|given| given.path == self.place).map(|given| given.content);
        let settling = InMemory { order: self.order, place: self.place, outputs: self.outputs, given };
        let source = settling.settle(&mut files, handed);
        let files = files.into_iter().map(|(path, content)| (path, content.to_vec()));
        let submission = Submission::from_contents(files, self.contents)?;
        self.checked(Frozen { submission, source })
    }

    /// The files that the agent got with the task, in memory.
    pub fn given_files(&self) -> Files {
        self.given.iter().map(|given| (given.path.to_owned(), given.content.into())).collect()
    }

    /// Whether the agent wrote the task's output: the file exists and differs from the one that the agent got.
    fn is_written(&self, tree: &Tree) -> bool {
        let mut file = match tree.open_file(Path::new(self.place)) {
            Ok(file) => file,
            // The agent left a link or a directory in its place; it will be refused later, with its name.
            Err(error) => return error.kind() != io::ErrorKind::NotFound,
        };
        let Some(given) = self.given.iter().find(|given| given.path == self.place) else { return true };
        let limit = SubmissionLimits::default().file_bytes;
        let found = aec_base::digest::copy(&mut file, limit, |_| Ok(()));
        found.map_or(true, |(digest, _)| digest != Digest::of(given.content))
    }

    /// Refuses a submission that contains a secret. Agents never get secrets, but one that an agent found anyway must
    /// not be kept.
    fn checked(&self, frozen: Frozen) -> Result<Frozen, Unfrozen> {
        let is_given = |digest: Digest, size: u64| {
            let alike = |given: &&Given<'_>| given.content.len() as u64 == size;
            self.given.iter().filter(alike).any(|given| Digest::of(given.content) == digest)
        };
        let mut refused = None;
        for (path, file) in &frozen.submission.files {
            if self.redactor.finds(path) {
                refused.get_or_insert(path);
            }
            if is_given(file.digest, file.size) {
                continue;
            }
            let kept = self.contents.path(file.digest);
            let mut search = self.redactor.search();
            match fs_err::File::open(&kept) {
                Ok(content) => {
                    aec_base::digest::copy(content, file.size, |piece| {
                        search.feed(piece);
                        Ok(())
                    })?;
                    if !search.found() {
                        continue;
                    }
                    // Remove all files with secrets, although one is enough to refuse.
                    fs_err::remove_file(&kept).or_else(gone_is_fine)?;
                }
                // It was frozen a moment ago. Only another trial that was refused for the same content could have
                // removed it.
                Err(error) => gone_is_fine(error)?,
            }
            refused.get_or_insert(path);
        }
        match refused {
            Some(path) => Err(secret_in(path)),
            None => Ok(frozen),
        }
    }
}

fn gone_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Why a submission that contains a secret is refused.
pub fn secret_in(path: &str) -> Unfrozen {
    Unfrozen::Unfit(format!("the file `{path}` holds the value of a secret of this machine"))
}
