//! A directory held by a descriptor: reads, writes, lists and copies below it and never leaves it.
//!
//! The kernel resolves paths and refuses links, so nothing that an agent puts there can lead elsewhere, and nothing
//! can be swapped between a check and its use.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};

use crate::spec::ROOM_UID;

#[derive(Debug)]
pub struct Tree(Inner);

#[derive(Debug)]
enum Inner {
    Here(Here),
    Elsewhere(Box<dyn Elsewhere>),
}

/// A directory of this machine, by descriptor.
#[derive(Debug)]
struct Here {
    directory: OwnedFd,
    /// The user to whom written files are given, if this process is root.
    owner: Option<u32>,
}

/// A directory that this process cannot open itself, such as one in a container: a process there follows the rules of
/// a [`Tree`].
pub trait Elsewhere: std::fmt::Debug + Send + Sync {
    /// A copy of a regular file, positioned at its beginning.
    fn open_file(&self, path: &Path) -> io::Result<File>;
    /// Writes a file and creates its parent directories.
    fn write(&self, path: &Path, bytes: &[u8], executable: bool) -> io::Result<()>;
    /// Makes a directory and its parents.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Everything below, sorted by path.
    fn list(&self, limits: WalkLimits) -> io::Result<Vec<Listed>>;
}

/// An entry below a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub path: PathBuf,
    pub kind: Kind,
    /// Size of a file in bytes.
    pub size: u64,
    /// Number of hard links.
    pub links: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    /// A symbolic link, which is never followed.
    Link,
    /// A device, pipe or socket.
    Special,
    /// A file or directory that its owner may not read. Only root could, and what counts must not depend on that.
    Closed,
}

/// Limits for walking a tree that another process filled.
#[derive(Clone, Copy, Debug)]
pub struct WalkLimits {
    /// Most entries of any kind.
    pub entries: usize,
    /// Deepest nesting of directories.
    pub depth: usize,
}

impl Tree {
    /// Takes over the descriptor of a directory in a room.
    pub fn new(directory: OwnedFd) -> Self {
        Self::of(directory, ROOM_UID)
    }

    /// Likewise, of a room whose commands are another user of the host.
    pub(crate) fn of(directory: OwnedFd, owner: u32) -> Self {
        Self(Inner::Here(Here { directory, owner: Some(owner) }))
    }

    /// A directory that another process accesses for this one.
    pub fn elsewhere(directory: impl Elsewhere + 'static) -> Self {
        Self(Inner::Elsewhere(Box::new(directory)))
    }

    /// Opens a directory of the host.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self(Inner::Here(Here { directory, owner: None })))
    }

    /// Opens a regular file for reading. Never blocks, never follows a link.
    pub fn open_file(&self, path: &Path) -> io::Result<File> {
        match &self.0 {
            Inner::Here(here) => here.open_file(path),
            Inner::Elsewhere(elsewhere) => elsewhere.open_file(path),
        }
    }

    /// Reads a regular file of at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open_file(path)?.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes")));
        }
        Ok(bytes)
    }

    /// Writes a file and creates its parent directories; the user of the room owns them.
    pub fn write(&self, path: &Path, bytes: &[u8], executable: bool) -> io::Result<()> {
        match &self.0 {
            Inner::Here(here) => here.write(path, bytes, executable),
            Inner::Elsewhere(elsewhere) => elsewhere.write(path, bytes, executable),
        }
    }

    /// Makes a directory and its parents.
    pub fn make_directory(&self, path: &Path) -> io::Result<()> {
        match &self.0 {
            Inner::Here(here) => here.make_parents(&path.join("x")),
            Inner::Elsewhere(elsewhere) => elsewhere.make_directory(path),
        }
    }

    /// Makes the directory itself readable again, if commands of a room took that away from its owner, who is this
    /// process's user.
    pub fn reopen(&self) -> io::Result<()> {
        match &self.0 {
            Inner::Here(here) if here.owner.is_some() => {
                Ok(rustix::fs::fchmod(&here.directory, Mode::from_raw_mode(0o755))?)
            }
            Inner::Here(_) | Inner::Elsewhere(_) => Ok(()),
        }
    }

    /// Everything below, sorted by path.
    pub fn list(&self, limits: WalkLimits) -> io::Result<Vec<Listed>> {
        match &self.0 {
            Inner::Here(here) => here.list(limits),
            Inner::Elsewhere(elsewhere) => elsewhere.list(limits),
        }
    }
}

impl Here {
    fn open_file(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(self.resolve(path, flags, Mode::empty())?);
        refuse_irregular(&file)?;
        Ok(file)
    }

    fn write(&self, path: &Path, bytes: &[u8], executable: bool) -> io::Result<()> {
        self.make_parents(path)?;
        // Non-blocking: a named pipe in the file's place would otherwise block the writer until a reader comes.
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::TRUNC
            | OFlags::NONBLOCK
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC;
        let mode = if executable { 0o755 } else { 0o644 };
        let mut file = match self.resolve(path, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => File::from(file),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                return Err(irregular());
            }
            Err(error) => return Err(error),
        };
        refuse_irregular(&file)?;
        self.give_away(&file)?;
        file.write_all(bytes)
    }

    fn list(&self, limits: WalkLimits) -> io::Result<Vec<Listed>> {
        let mut found = Vec::new();
        let top = rustix::fs::openat(
            &self.directory,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        walk(&top, Path::new(""), 0, limits, &mut found)?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn make_parents(&self, path: &Path) -> io::Result<()> {
        let mut above = PathBuf::new();
        let mut parent: Option<OwnedFd> = None;
        // `resolve` refuses links with an error that says so.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parents = path.parent().into_iter().flat_map(Path::components);
        for component in parents {
            let Component::Normal(name) = component else {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path leaves the directory"));
            };
            above.push(name);
            // Created in its parent, which was opened without following links; resolving a whole path would follow
            // them.
            let made = rustix::fs::mkdirat(
                parent.as_ref().unwrap_or(&self.directory),
                name,
                Mode::from_raw_mode(0o755),
            );
            let opened = match made {
                Ok(()) | Err(rustix::io::Errno::EXIST) => self.resolve(&above, flags, Mode::empty())?,
                Err(error) => return Err(error.into()),
            };
            if made.is_ok() {
                self.give_away(&opened)?;
            }
            parent = Some(opened);
        }
        Ok(())
    }

    fn resolve(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(rustix::fs::openat2(&self.directory, path, flags, mode, rules)?)
    }

    /// If this process is root, gives the file to the room's user.
    fn give_away(&self, file: impl std::os::fd::AsFd) -> io::Result<()> {
        if self.owner.is_some() && rustix::process::geteuid().is_root() {
            std::os::unix::fs::fchown(file, self.owner, self.owner)?;
        }
        Ok(())
    }
}

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

fn refuse_irregular(file: &File) -> io::Result<()> {
    let kind = file.metadata()?.file_type();
    match () {
        () if kind.is_file() => Ok(()),
        () if kind.is_dir() => Err(rustix::io::Errno::ISDIR.into()),
        () => Err(irregular()),
    }
}

fn walk(
    directory: &OwnedFd,
    above: &Path,
    depth: usize,
    limits: WalkLimits,
    found: &mut Vec<Listed>,
) -> io::Result<()> {
    let too_much = |what: &str| io::Error::new(io::ErrorKind::QuotaExceeded, format!("{what} than allowed"));
    let mut inner = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if found.len() == limits.entries {
            return Err(too_much("more files"));
        }
        let status = rustix::fs::statat(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = Mode::from_raw_mode(status.st_mode);
        let kind = match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile if !mode.contains(Mode::RUSR) => Kind::Closed,
            FileType::RegularFile => Kind::File,
            FileType::Directory if !mode.contains(Mode::RUSR | Mode::XUSR) => Kind::Closed,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Special,
        };
        let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name.to_bytes());
        let path = above.join(name);
        if kind == Kind::Directory {
            inner.push(name.to_owned());
        }
        let size = if kind == Kind::File { u64::try_from(status.st_size).unwrap_or(0) } else { 0 };
        found.push(Listed { path, kind, size, links: status.st_nlink });
    }
    if depth == limits.depth && !inner.is_empty() {
        return Err(too_much("deeper directories"));
    }
    for name in inner {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = rustix::fs::openat(directory.as_fd(), name.as_os_str(), flags, Mode::empty())?;
        walk(&next, &above.join(&name), depth + 1, limits, found)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_or_written_through_a_link_and_a_pipe_holds_up_nobody() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), inside.path().join("out")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            inside.path().join("pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let tree = Tree::open(inside.path()).unwrap();
        assert!(tree.write(Path::new("out/a/b"), b"x", false).is_err());
        assert!(tree.make_directory(Path::new("out/c")).is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        let error = tree.write(Path::new("pipe"), b"x", false).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
        tree.write(Path::new("d/e/f"), b"x", false).unwrap();
        assert_eq!(tree.read(Path::new("d/e/f"), 1).unwrap(), b"x");
    }

    /// Listing failed for everybody but root as soon as one directory could not be opened.
    #[test]
    fn what_its_owner_may_not_read_is_closed_for_root_too() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("none/inside")).unwrap();
        std::fs::create_dir_all(at("listed/inside")).unwrap();
        std::fs::write(at("shut"), "x").unwrap();
        std::fs::write(at("open"), "x").unwrap();
        let closed = [("none", 0o000), ("listed", 0o400), ("shut", 0o000)];
        let change = |name: &str, mode| {
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for (name, mode) in closed {
            change(name, mode);
        }
        let listed = Tree::open(place.path()).unwrap().list(WalkLimits { entries: 9, depth: 9 });
        for (name, _) in closed {
            change(name, 0o700);
        }
        let listed: Vec<_> = listed.unwrap().into_iter().map(|entry| (entry.path, entry.kind)).collect();
        let expected = [("listed", Kind::Closed), ("none", Kind::Closed), ("open", Kind::File)];
        let expected = expected.into_iter().chain([("shut", Kind::Closed)]);
        assert_eq!(listed, expected.map(|(name, kind)| (name.into(), kind)).collect::<Vec<_>>());
    }
}
