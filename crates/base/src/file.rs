//! Reads files that may be of any kind, and writes files that are never half written.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::staging::partial_file;

/// Whether the last component of a path may be a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Follow it: for files that the user names.
    Follow,
    /// Refuse it: for files inside a tree that must not pull in content from outside.
    Refuse,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("there is no such file")]
    Missing,
    #[error("it is a {0}, not a regular file")]
    NotAFile(&'static str),
    #[error("it is {size} bytes long, more than the {limit} allowed")]
    TooLarge { size: u64, limit: u64 },
    #[error("it is not UTF-8 text (byte {offset})")]
    NotText {
        /// Offset of the first bad byte.
        offset: usize,
    },
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl ReadError {
    /// The equivalent kind of I/O error.
    pub fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::Missing => io::ErrorKind::NotFound,
            Self::NotAFile(_) => io::ErrorKind::InvalidInput,
            Self::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            Self::NotText { .. } => io::ErrorKind::InvalidData,
            Self::Io(error) => error.kind(),
        }
    }

    /// What the user can do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Missing => "create the file, or correct the path",
            Self::NotAFile(_) => "put a regular file there",
            Self::TooLarge { .. } => "this is far more than such a file needs: check what wrote it",
            Self::NotText { .. } => "save the file as UTF-8",
            Self::Io(_) => "check the path and its permissions",
        }
    }
}

/// Opens a regular file of at most `limit` bytes. Never blocks on a FIFO or a device.
pub fn open_regular(path: &Path, limit: u64, links: Links) -> Result<(File, Metadata), ReadError> {
    // NONBLOCK keeps `open` from waiting for the other end of a FIFO; regular files ignore it.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) => return Err(explain_open_error(path, links, error)),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile(kind_of(metadata.file_type())));
    }
    if metadata.len() > limit {
        return Err(ReadError::TooLarge { size: metadata.len(), limit });
    }
    Ok((file, metadata))
}

/// Reads a whole text file of at most `limit` bytes. Never blocks on a FIFO or a device, never reads more than
/// the limit, drops a leading byte-order mark.
pub fn read_text(path: &Path, limit: u64, links: Links) -> Result<String, ReadError> {
    let (file, metadata) = open_regular(path, limit, links)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    // The file may grow while it is read.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { size: bytes.len() as u64, limit });
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| ReadError::NotText { offset: error.utf8_error().valid_up_to() })
}

fn explain_open_error(path: &Path, links: Links, error: io::Error) -> ReadError {
    if links == Links::Refuse && path.is_symlink() {
        return ReadError::NotAFile("symbolic link");
    }
    match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing,
        // Opening a socket gives ENXIO, which has no `ErrorKind`.
        _ => match path.metadata() {
            Ok(metadata) if !metadata.is_file() => ReadError::NotAFile(kind_of(metadata.file_type())),
            _ => ReadError::Io(error),
        },
    }
}

/// Names a type of directory entry.
pub fn kind_of(file_type: std::fs::FileType) -> &'static str {
    if file_type.is_dir() {
        "directory"
    } else if file_type.is_file() {
        "regular file"
    } else if file_type.is_symlink() {
        "symbolic link"
    } else if file_type.is_fifo() {
        "named pipe"
    } else if file_type.is_socket() {
        "socket"
    } else {
        "device"
    }
}

/// Writes a file so that a reader sees the old content or the new one, also after a crash: a temporary file in
/// the same directory, synced, then renamed over the target. Parent directories are created.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let begin = |parent: &Path| tempfile::Builder::new().prefix(".aec-bench-").tempfile_in(parent);
    write_through(path, begin, |file| file.write_all(bytes))
}

/// [`write_atomic`] for content that is made while it is written, which may take long. If `write` fails, the target
/// stays as it was; if this process is killed, the next one that writes here removes what is left.
pub fn write_atomic_with<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    write_through(path, partial_file, write)
}

fn write_through<T, E: From<io::Error>>(
    path: &Path,
    begin: impl FnOnce(&Path) -> io::Result<NamedTempFile>,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let name_path = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    // Renaming would put a file in the place of `/dev/null` for the whole machine.
    if let Some(kind) = path.metadata().ok().map(|found| found.file_type()).filter(|kind| !kind.is_file()) {
        let what = format!("it is a {}, and only a regular file can be replaced", kind_of(kind));
        return Err(name_path(io::Error::new(io::ErrorKind::InvalidInput, what)).into());
    }
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    fs_err::create_dir_all(&parent)?;
    let mut temporary = begin(&parent).map_err(name_path)?;
    let made = write(temporary.as_file_mut())?;
    // A temporary file is private (0600); the published one gets the mode of what it replaces.
    let mode = match path.metadata() {
        Ok(metadata) => metadata.permissions(),
        Err(_) => std::os::unix::fs::PermissionsExt::from_mode(0o644),
    };
    temporary.as_file().set_permissions(mode).map_err(name_path)?;
    temporary.as_file().sync_all().map_err(name_path)?;
    temporary.persist(path).map_err(|error| name_path(error.error))?;
    File::open(&parent).and_then(|directory| directory.sync_all()).map_err(name_path)?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As root, a report to `/dev/full` took the device's place for the whole machine.
    #[test]
    fn only_regular_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink("/dev/null", dir.path().join("link")).unwrap();
        std::fs::create_dir(dir.path().join("directory")).unwrap();
        for (name, kind) in [("socket", "a socket"), ("link", "a device"), ("directory", "a directory")] {
            let error = write_atomic(&dir.path().join(name), b"x").unwrap_err().to_string();
            assert!(error.contains(kind) && error.contains(name), "{error}");
        }
        write_atomic(&dir.path().join("file"), b"x").unwrap();
        write_atomic(&dir.path().join("file"), b"y").unwrap();
        assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"y");
    }

    #[test]
    fn reads_only_bounded_regular_text() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let read = |name: &str| read_text(&at(name), 8, Links::Refuse);

        assert!(matches!(read("none"), Err(ReadError::Missing)));
        assert!(matches!(read("."), Err(ReadError::NotAFile("directory"))));
        fs_err::write(at("bom"), "\u{feff}hi").unwrap();
        assert_eq!(read("bom").unwrap(), "hi");
        fs_err::write(at("big"), "123456789").unwrap();
        assert!(matches!(read("big"), Err(ReadError::TooLarge { size: 9, limit: 8 })));
        fs_err::write(at("binary"), b"ab\xff").unwrap();
        assert!(matches!(read("binary"), Err(ReadError::NotText { offset: 2 })));
        std::os::unix::fs::symlink(at("bom"), at("link")).unwrap();
        assert!(matches!(read("link"), Err(ReadError::NotAFile("symbolic link"))));
        assert_eq!(read_text(&at("link"), 8, Links::Follow).unwrap(), "hi");
        std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
        assert!(matches!(read_text(&at("loop"), 8, Links::Follow), Err(ReadError::Io(_))));
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert!(matches!(read("socket"), Err(ReadError::NotAFile("socket"))));
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        assert!(matches!(read("fifo"), Err(ReadError::NotAFile("named pipe"))));
    }

    #[test]
    fn atomic_write_replaces_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/file.json");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs_err::read(&path).unwrap(), b"two");
        assert_eq!(fs_err::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
