//! Reads an archive that may be hostile: checks every member before using it, and accepts nothing until all hashes
//! agree.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use aec_base::archive::{self, ArchiveError, Content, CopyError, Member};
use aec_base::problem::Problem;
use aec_base::text::printable;

use super::archive::{Limits, TASKS};
use super::finding;
use super::hash::{HashedFile, task_hash};
use super::manifest::{MANIFEST_FILE, Manifest};
use super::paths::{self, PathSet};
use crate::id::TaskId;
use crate::task::TASK_FILE;

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("the archive cannot be imported")]
    Problems(Vec<Problem>),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Problem> for ImportError {
    fn from(problem: Problem) -> Self {
        Self::Problems(vec![problem])
    }
}

/// Where files are written; a trial import writes none.
pub(super) trait Sink {
    /// Called once, before the first file.
    fn begin(&mut self, manifest: &Manifest) -> Result<(), ImportError>;
    /// The file to write to, if this one is kept.
    fn create(&mut self, id: &TaskId, path: &str, executable: bool) -> io::Result<Option<File>>;
}

pub(super) fn unpack(archive: &Path, limits: Limits, sink: &mut dyn Sink) -> Result<Manifest, ImportError> {
    let (file, _) = aec_base::file::open_regular(archive, limits.total, aec_base::file::Links::Follow)
        .map_err(|error| {
            finding(40, format!("cannot read the archive: {error}")).fix(error.fix()).in_file(archive)
        })?;
    let mut unpacker = Unpacker { archive, limits, sink, begun: None };
    let bounds = archive::Limits { total: limits.total, file: limits.file };
    let read = archive::unpack(file, bounds, |member, content| unpacker.member(&member, content));
    read.map_err(|stop| match stop {
        Stop::Archive(error) => unpacker.unreadable(&error),
        Stop::Import(error) => error,
    })?;
    unpacker.finish()
}

enum Stop {
    Archive(ArchiveError),
    Import(ImportError),
}

impl From<ArchiveError> for Stop {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

impl<E: Into<ImportError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Import(error.into())
    }
}

/// A task of the manifest and its files read so far.
struct Declared {
    id: TaskId,
    files: Vec<HashedFile>,
}

/// The state after the manifest was read.
struct Begun {
    manifest: Manifest,
    declared: Vec<Declared>,
    places: Places,
    names: PathSet,
    /// Members after the manifest.
    members: usize,
}

struct Unpacker<'a> {
    archive: &'a Path,
    limits: Limits,
    sink: &'a mut dyn Sink,
    /// Absent until the first member was read.
    begun: Option<Begun>,
}

impl Unpacker<'_> {
    fn wrong(&self, number: u32, what: impl Into<String>) -> Problem {
        finding(number, what)
            .fix("get the archive again from where it came from; nothing of it was used")
            .in_file(self.archive)
    }

    /// The archive is too large, broken, or contains something that is not allowed.
    fn unreadable(&self, error: &ArchiveError) -> ImportError {
        let problem = match error {
            ArchiveError::Broken(error) => {
                self.wrong(40, format!("this is not a whole archive of a dataset: {error}"))
            }
            ArchiveError::Form(what) => self.wrong(40, what),
            ArchiveError::TooLarge(what) => self.wrong(41, what),
            ArchiveError::NotAFile(what) => self.wrong(43, what),
            ArchiveError::BadName(what) => self.wrong(44, what),
        };
        problem.into()
    }

    fn member(&mut self, member: &Member, content: &mut Content<'_>) -> Result<(), Stop> {
        let Some(mut begun) = self.begun.take() else {
            let manifest = self.manifest(member, content)?;
            let declared = self.declared(&manifest)?;
            self.sink.begin(&manifest)?;
            let places = Places::of(&declared);
            self.begun = Some(Begun { manifest, declared, places, names: PathSet::default(), members: 0 });
            return Ok(());
        };
        self.file(&mut begun, member, content)?;
        self.begun = Some(begun);
        Ok(())
    }

    fn file(&mut self, begun: &mut Begun, member: &Member, content: &mut Content<'_>) -> Result<(), Stop> {
        begun.members += 1;
        if begun.members > self.limits.members {
            let what = format!("the archive has more than {} members", self.limits.members);
            return Err(self.wrong(41, what).into());
        }
        let shown = printable(&member.name).into_owned();
        if member.name.split('/').any(paths::is_left_out) {
            let what = format!("`{shown}` is not a name for a file: no hash covers such a file");
            return Err(self.wrong(44, what).into());
        }
        let Some((index, path)) = begun.places.owner(member) else {
            return Err(self.wrong(46, format!("`{shown}` belongs to no task of the dataset")).into());
        };
        if member.is_directory {
            return Ok(());
        }
        begun
            .names
            .add_file(&member.name)
            .map_err(|error| self.wrong(45, format!("`{shown}` cannot be unpacked: {error}")))?;
        let task = &mut begun.declared[index];
        if task.files.len() == super::tree::MOST_FILES {
            return Err(self.wrong(41, format!("the task `{}` has too many files", task.id)).into());
        }
        let mut place = self.sink.create(&task.id, path, member.executable)?;
        let digest = content.copy(|piece| place.as_mut().map_or(Ok(()), |file| file.write_all(piece)));
        let content = digest.map_err(|error| match error {
            CopyError::Archive(error) => Stop::Archive(error),
            CopyError::Write(error) => error.into(),
        })?;
        task.files.push(HashedFile { path: path.to_owned(), executable: member.executable, content });
        Ok(())
    }

    fn finish(self) -> Result<Manifest, ImportError> {
        let Some(Begun { manifest, declared, .. }) = &self.begun else {
            return Err(self.wrong(42, "the archive is empty").into());
        };
        self.compare(manifest, declared)?;
        Ok(manifest.clone())
    }

    /// Reads the first member, the manifest, which determines what the others must be.
    fn manifest(&self, member: &Member, content: &mut Content<'_>) -> Result<Manifest, Stop> {
        if member.name != MANIFEST_FILE || member.is_directory {
            return Err(self.wrong(42, format!("the archive does not begin with {MANIFEST_FILE}")).into());
        }
        if member.size > self.limits.manifest {
            return Err(self.wrong(41, format!("its {MANIFEST_FILE} is {} bytes long", member.size)).into());
        }
        let text = String::from_utf8(content.bytes()?)
            .map_err(|_| self.wrong(1, format!("its {MANIFEST_FILE} is not UTF-8 text")))?;
        // Problems name the manifest inside the archive.
        Ok(Manifest::parse(&self.archive.join(MANIFEST_FILE), text).map_err(ImportError::Problems)?)
    }

    /// The tasks that the manifest declares.
    fn declared(&self, manifest: &Manifest) -> Result<Vec<Declared>, Problem> {
        let declared: Vec<Declared> = manifest
            .tasks
            .iter()
            .filter_map(|entry| {
                let id = entry.id()?;
                (entry.task_path == format!("{TASKS}/{id}")).then(|| Declared { id, files: Vec::new() })
            })
            .collect();
        if declared.len() < manifest.tasks.len() {
            return Err(self.wrong(15, format!("a task of the archive is not in {TASKS}/")));
        }
        Ok(declared)
    }

    /// Checks that the files of each task give the hash in the manifest.
    fn compare(&self, manifest: &Manifest, declared: &[Declared]) -> Result<(), ImportError> {
        let mut problems = Vec::new();
        for (entry, task) in manifest.tasks.iter().zip(declared) {
            let mut files = task.files.clone();
            let what = if task.files.is_empty() {
                format!("the archive has no files of the task `{}`", task.id)
            } else if task_hash(&mut files) != entry.content_hash {
                format!("the files of the task `{}` do not match its hash", task.id)
            } else if !task.files.iter().any(|file| file.path == TASK_FILE) {
                format!("the task `{}` has no {TASK_FILE}", task.id)
            } else {
                continue;
            };
            problems.push(self.wrong(47, what).about(task.id.as_str()));
        }
        if problems.is_empty() { Ok(()) } else { Err(ImportError::Problems(problems)) }
    }
}

/// The directories of the declared tasks in the archive.
struct Places {
    tasks: HashMap<String, usize>,
    /// Their parent directories.
    above: HashSet<String>,
}

impl Places {
    fn of(declared: &[Declared]) -> Self {
        let mut places = Self { tasks: HashMap::new(), above: HashSet::new() };
        for (index, task) in declared.iter().enumerate() {
            let place = format!("{TASKS}/{}", task.id);
            places.above.extend(place.match_indices('/').map(|(at, _)| place[..at].to_owned()));
            places.tasks.insert(place, index);
        }
        places
    }

    /// The task of a member, and the path within the task. A directory may also be a parent of tasks.
    fn owner<'a>(&self, member: &'a Member) -> Option<(usize, &'a str)> {
        let name = member.name.as_str();
        let inside =
            |at: usize| Some((*self.tasks.get(&name[..at])?, name.get(at + 1..).unwrap_or_default()));
        let found = name.match_indices('/').find_map(|(at, _)| inside(at));
        if member.is_directory {
            return found
                .or_else(|| inside(name.len()))
                .or_else(|| self.above.contains(name).then_some((0, "")));
        }
        found
    }
}
