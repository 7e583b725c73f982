//! Reading an archive that may be anything: every member is checked before it is used, and nothing is believed
//! until all hashes agree.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Write as _};
use std::path::Path;
use std::rc::Rc;

use aec_base::digest;
use aec_base::problem::Problem;
use aec_base::text::printable;
use tar::{EntryType, Header};

use super::archive::{Limits, TASKS};
use super::finding;
use super::hash::{HashedFile, task_hash};
use super::manifest::{MANIFEST_FILE, Manifest};
use super::paths::{self, PathSet};
use crate::id::TaskId;
use crate::task::TASK_FILE;

/// Why an archive was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// What is wrong with it, or stands in its way.
    #[error("the archive cannot be imported")]
    Problems(Vec<Problem>),
    /// The operating system said no.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Problem> for ImportError {
    fn from(problem: Problem) -> Self {
        Self::Problems(vec![problem])
    }
}

/// Where files go: nowhere in a trial.
pub(super) trait Sink {
    /// Called once, before the first file.
    fn begin(&mut self, manifest: &Manifest) -> Result<(), ImportError>;
    /// A file to write to, if it is to be kept.
    fn create(&mut self, id: &TaskId, path: &str, executable: bool) -> io::Result<Option<File>>;
}

/// Reads an archive from beginning to end.
pub(super) fn unpack(archive: &Path, limits: Limits, sink: &mut dyn Sink) -> Result<Manifest, ImportError> {
    let (file, _) = aec_base::file::open_regular(archive, limits.total, aec_base::file::Links::Follow)
        .map_err(|error| {
            finding(40, format!("cannot read the archive: {error}")).fix(error.fix()).in_file(archive)
        })?;
    let exceeded = Rc::new(Cell::new(false));
    let mut reader = Unpacker { archive, limits, exceeded: Rc::clone(&exceeded) };
    let mut decoder = zstd::Decoder::new(file)?.single_frame();
    // More than any archive of ours needs; a frame may ask for gigabytes.
    decoder.window_log_max(27)?;
    let mut tar = tar::Archive::new(Capped { from: decoder, left: limits.total, exceeded });
    let manifest = reader.members(&mut tar, sink)?;
    let Capped { from: mut decoder, .. } = reader.ending(tar.into_inner())?;
    // The checksum stands behind the last byte of the frame.
    decoder.finish_frame().map_err(|error| reader.broken(&error))?;
    let mut behind: BufReader<File> = decoder.finish();
    let mut byte = [0];
    match behind.read(&mut byte) {
        Ok(0) => Ok(manifest),
        _ => Err(reader.wrong(40, "there is something behind the end of the archive").into()),
    }
}

/// A reader of so many bytes and no more.
struct Capped<R> {
    from: R,
    left: u64,
    exceeded: Rc<Cell<bool>>,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)? as u64;
        match self.left.checked_sub(count) {
            Some(left) => self.left = left,
            None => {
                self.exceeded.set(true);
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }
}

/// A task of the manifest and the files of it that were read.
struct Declared {
    id: TaskId,
    files: Vec<HashedFile>,
}

struct Unpacker<'a> {
    archive: &'a Path,
    limits: Limits,
    exceeded: Rc<Cell<bool>>,
}

/// A member that was let in.
struct Member {
    name: String,
    kind: EntryType,
    executable: bool,
    size: u64,
}

impl Unpacker<'_> {
    fn wrong(&self, number: u32, what: impl Into<String>) -> Problem {
        finding(number, what)
            .fix("get the archive again from where it came from; nothing of it was used")
            .in_file(self.archive)
    }

    /// What reading ended with: too much, or not what it claims to be.
    fn broken(&self, error: &io::Error) -> ImportError {
        let problem = if self.exceeded.get() {
            let what = format!("the archive unpacks to more than {} bytes", self.limits.total);
            self.wrong(41, what)
        } else {
            self.wrong(40, format!("this is not a whole archive of a dataset: {error}"))
        };
        problem.into()
    }

    fn members<R: Read>(
        &mut self,
        tar: &mut tar::Archive<R>,
        sink: &mut dyn Sink,
    ) -> Result<Manifest, ImportError> {
        // Raw entries: names and sizes are those of the headers, and nothing can change them from outside.
        let mut entries = tar.entries().map_err(|error| self.broken(&error))?.raw(true);
        let Some(first) = entries.next() else {
            return Err(self.wrong(42, "the archive is empty").into());
        };
        let manifest = self.manifest(first.map_err(|error| self.broken(&error))?)?;
        let mut declared = self.declared(&manifest)?;
        sink.begin(&manifest)?;
        let places = Places::of(&declared);
        let mut names = PathSet::default();
        for (count, entry) in entries.enumerate() {
            let mut entry = entry.map_err(|error| self.broken(&error))?;
            if count >= self.limits.members {
                let what = format!("the archive has more than {} members", self.limits.members);
                return Err(self.wrong(41, what).into());
            }
            let member = self.admit(entry.header())?;
            let shown = printable(&member.name).into_owned();
            let Some((index, path)) = places.owner(&member) else {
                return Err(self.wrong(46, format!("`{shown}` belongs to no task of the dataset")).into());
            };
            if member.kind == EntryType::Directory {
                continue;
            }
            names
                .add_file(&member.name)
                .map_err(|error| self.wrong(45, format!("`{shown}` cannot be unpacked: {error}")))?;
            let task = &mut declared[index];
            if task.files.len() == super::tree::MOST_FILES {
                return Err(self.wrong(41, format!("the task `{}` has too many files", task.id)).into());
            }
            let place = sink.create(&task.id, path, member.executable)?;
            let content = self.content(&mut entry, member.size, place)?;
            task.files.push(HashedFile { path: path.to_owned(), executable: member.executable, content });
        }
        self.compare(&manifest, declared)?;
        Ok(manifest)
    }

    /// The first member, which says what the others must be.
    fn manifest<R: Read>(&self, mut entry: tar::Entry<'_, R>) -> Result<Manifest, ImportError> {
        let member = self.admit(entry.header())?;
        if member.name != MANIFEST_FILE || member.kind != EntryType::Regular {
            return Err(self.wrong(42, format!("the archive does not begin with {MANIFEST_FILE}")).into());
        }
        if member.size > self.limits.manifest {
            return Err(self.wrong(41, format!("its {MANIFEST_FILE} is {} bytes long", member.size)).into());
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| self.broken(&error))?;
        if bytes.len() as u64 != member.size {
            return Err(self.broken(&io::ErrorKind::UnexpectedEof.into()));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| self.wrong(1, format!("its {MANIFEST_FILE} is not UTF-8 text")))?;
        // Problems are in the manifest inside the archive.
        Manifest::parse(&self.archive.join(MANIFEST_FILE), text).map_err(ImportError::Problems)
    }

    /// The tasks that the manifest declares, each where every archive has it.
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
            return Err(self.wrong(15, format!("a task of the archive does not lie in {TASKS}/")));
        }
        Ok(declared)
    }

    /// Checks a header; only plain files and directories with plain names come in.
    fn admit(&self, header: &Header) -> Result<Member, Problem> {
        let bytes = header.as_bytes();
        let (name_field, prefix_field) = (&bytes[..100], &bytes[345..500]);
        let name = header.path_bytes();
        let shown = printable(&String::from_utf8_lossy(&name)).into_owned();
        if header.as_ustar().is_none() {
            return Err(self.wrong(40, format!("`{shown}` is not stored in the ustar format")));
        }
        let kind = header.entry_type();
        if !matches!(kind, EntryType::Regular | EntryType::Directory) {
            return Err(self.wrong(43, format!("`{shown}` is {}, not a file", kind_name(kind))));
        }
        if header.link_name_bytes().is_some_and(|link| !link.is_empty()) {
            return Err(self.wrong(43, format!("`{shown}` is a file with the target of a link")));
        }
        let refuse = |why: String| self.wrong(44, format!("`{shown}` is not a name for a file: {why}"));
        // What follows a NUL is not part of the name, so it must be nothing.
        for field in [name_field, prefix_field] {
            let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
            if field[end..].iter().any(|byte| *byte != 0) {
                return Err(refuse("it has a NUL character".into()));
            }
        }
        let name = std::str::from_utf8(&name).map_err(|_| refuse("it is not UTF-8 text".into()))?;
        let name = if kind == EntryType::Directory { name.strip_suffix('/').unwrap_or(name) } else { name };
        paths::check(name).map_err(|error| refuse(error.to_string()))?;
        if name.split('/').any(paths::is_left_out) {
            return Err(refuse("no hash covers such a file".into()));
        }
        let mode = header.mode().map_err(|error| self.wrong(40, format!("`{shown}`: {error}")))?;
        let size = header.entry_size().map_err(|error| self.wrong(40, format!("`{shown}`: {error}")))?;
        if !matches!(mode, 0o644 | 0o755) {
            return Err(self.wrong(43, format!("`{shown}` has the mode {mode:o}, not 644 or 755")));
        }
        if kind == EntryType::Directory && size > 0 {
            return Err(self.wrong(43, format!("`{shown}` is a directory with content")));
        }
        if size > self.limits.file {
            return Err(
                self.wrong(41, format!("`{shown}` is {size} bytes long, more than {}", self.limits.file))
            );
        }
        Ok(Member { name: name.to_owned(), kind, executable: mode == 0o755, size })
    }

    /// Hashes a member, and writes it where it is to be kept.
    fn content<R: Read>(
        &self,
        entry: &mut tar::Entry<'_, R>,
        size: u64,
        mut place: Option<File>,
    ) -> Result<digest::Digest, ImportError> {
        let mut unwritten = None;
        let copied = digest::copy(entry, size, |piece| match &mut place {
            Some(file) => file.write_all(piece).map_err(|error| {
                let kind = error.kind();
                unwritten = Some(error);
                kind.into()
            }),
            None => Ok(()),
        });
        match (copied, unwritten) {
            (_, Some(error)) => Err(error.into()),
            (Ok((digest, length)), None) if length == size => Ok(digest),
            (Ok(_), None) => Err(self.broken(&io::ErrorKind::UnexpectedEof.into())),
            (Err(error), None) => Err(self.broken(&error)),
        }
    }

    /// Whether each task has the files that its hash says.
    fn compare(&self, manifest: &Manifest, declared: Vec<Declared>) -> Result<(), ImportError> {
        let mut problems = Vec::new();
        for (entry, mut task) in manifest.tasks.iter().zip(declared) {
            let what = if task.files.is_empty() {
                format!("the archive has no files of the task `{}`", task.id)
            } else if task_hash(&mut task.files) != entry.content_hash {
                format!("the files of the task `{}` are not those that its hash says", task.id)
            } else if !task.files.iter().any(|file| file.path == TASK_FILE) {
                format!("the task `{}` has no {TASK_FILE}", task.id)
            } else {
                continue;
            };
            problems.push(self.wrong(47, what).about(task.id.as_str()));
        }
        if problems.is_empty() { Ok(()) } else { Err(ImportError::Problems(problems)) }
    }

    /// Behind the last member there is nothing but a little padding.
    fn ending<R: Read>(&self, mut rest: R) -> Result<R, ImportError> {
        const MOST: u64 = 1024 * 1024;
        let mut length = 0;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = rest.read(&mut buffer).map_err(|error| self.broken(&error))?;
            if count == 0 {
                return Ok(rest);
            }
            length += count as u64;
            if length > MOST || buffer[..count].iter().any(|byte| *byte != 0) {
                return Err(self.wrong(40, "there is something behind the end of the archive").into());
            }
        }
    }
}

/// Where the declared tasks lie in the archive.
struct Places {
    tasks: HashMap<String, usize>,
    /// The directories above them.
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

    /// The task that a member is of, and its path there. A directory may also lead to a task.
    fn owner<'a>(&self, member: &'a Member) -> Option<(usize, &'a str)> {
        let name = member.name.as_str();
        let inside =
            |at: usize| Some((*self.tasks.get(&name[..at])?, name.get(at + 1..).unwrap_or_default()));
        let found = name.match_indices('/').find_map(|(at, _)| inside(at));
        if member.kind == EntryType::Directory {
            return found
                .or_else(|| inside(name.len()))
                .or_else(|| self.above.contains(name).then_some((0, "")));
        }
        found
    }
}

fn kind_name(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Link => "a hard link",
        EntryType::Symlink => "a symbolic link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a named pipe",
        EntryType::GNUSparse => "a sparse file",
        EntryType::XHeader | EntryType::XGlobalHeader => "an extended header",
        EntryType::GNULongName | EntryType::GNULongLink => "a long name",
        _ => "of an unknown kind",
    }
}
