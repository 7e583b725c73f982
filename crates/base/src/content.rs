//! A store of contents addressed by their digests: each is written once, checked when it is read, and never changed.

use std::fs::Permissions;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::digest::{self, Digest};
use crate::file::{Links, open_regular};

/// A directory of contents: `sha256/ab/<64 digits>`.
#[derive(Clone, Debug)]
pub struct ContentStore {
    root: PathBuf,
}

impl ContentStore {
    /// The store in `root`; the directory is created with the first content.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a content, whether it exists or not.
    pub fn path(&self, digest: Digest) -> PathBuf {
        let hex = digest.hex();
        self.root.join("sha256").join(&hex[..2]).join(hex)
    }

    /// Whether a file for this content exists. Its bytes are checked only by [`Self::read`].
    pub fn has(&self, digest: Digest) -> bool {
        self.path(digest).is_file()
    }

    /// Stores some bytes.
    pub fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        self.put_as(digest, bytes)?;
        Ok(digest)
    }

    /// Stores bytes whose digest is known.
    pub fn put_as(&self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        if self.holds(digest, bytes.len() as u64) {
            return Ok(());
        }
        let mut file = self.begin()?;
        file.write_all(bytes)?;
        self.keep(file, digest)
    }

    /// Stores bytes again and replaces the file in their place: after a crash a file may have the right name and
    /// length but another content.
    pub fn restore(&self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.begin()?;
        file.write_all(bytes)?;
        self.keep(file, digest)
    }

    /// Stores at most `limit` bytes from a reader and returns their digest and length.
    pub fn put_from(&self, from: impl Read, limit: u64) -> io::Result<(Digest, u64)> {
        let mut file = self.begin()?;
        let (digest, size) = digest::copy(from, limit, |piece| file.write_all(piece))?;
        if !self.holds(digest, size) {
            self.keep(file, digest)?;
        }
        Ok((digest, size))
    }

    /// Stores a file as a hard link, without copying it. Nothing may write to the file afterwards.
    pub fn put_link(&self, file: &Path, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        if self.holds(digest, bytes.len() as u64) {
            return Ok(digest);
        }
        fs_err::set_permissions(file, Permissions::from_mode(0o444))?;
        let place = self.path(digest);
        let linked = match std::fs::hard_link(file, &place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                place.parent().map_or(Ok(()), fs_err::create_dir_all)?;
                std::fs::hard_link(file, &place)
            }
            linked => linked,
        };
        match linked {
            Ok(()) => Ok(digest),
            // Another file system, or one without links, or a damaged content in the way.
            Err(_) => self.restore(digest, bytes).map(|()| digest),
        }
    }

    /// Stores a file whose digest and length are known by moving it here. If an undamaged copy already exists, the
    /// file stays where it is.
    pub fn adopt(&self, file: &Path, digest: Digest, size: u64) -> io::Result<()> {
        if self.holds(digest, size) && self.is_sound(digest, size) {
            return Ok(());
        }
        fs_err::set_permissions(file, Permissions::from_mode(0o444))?;
        let place = self.path(digest);
        place.parent().map_or(Ok(()), fs_err::create_dir_all)?;
        match std::fs::rename(file, &place) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let mut copy = self.begin()?;
                io::copy(&mut fs_err::File::open(file)?, &mut copy)?;
                self.keep(copy, digest)
            }
            renamed => renamed,
        }
    }

    fn is_sound(&self, digest: Digest, size: u64) -> bool {
        open_regular(&self.path(digest), size, Links::Refuse)
            .is_ok_and(|(file, _)| digest::copy(file, size, |_| Ok(())).is_ok_and(|found| found.0 == digest))
    }

    /// Reads a content and checks it against its digest. A content of more than `limit` bytes is an error.
    pub fn read(&self, digest: Digest, limit: u64) -> io::Result<Vec<u8>> {
        let path = self.path(digest);
        let (file, metadata) = open_regular(&path, limit, Links::Refuse)
            .map_err(|error| io::Error::new(error.io_kind(), format!("{}: {error}", path.display())))?;
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if Digest::of(&bytes) != digest {
            let what = format!("the content of {} has changed", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(bytes)
    }

    /// A file of the right length counts as the content; a shorter one that a crash left does not.
    fn holds(&self, digest: Digest, size: u64) -> bool {
        self.path(digest).symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == size)
    }

    fn begin(&self) -> io::Result<tempfile::NamedTempFile> {
        let make = || {
            let mut builder = tempfile::Builder::new();
            builder.prefix(".new-").permissions(Permissions::from_mode(0o444)).tempfile_in(&self.root)
        };
        match make() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs_err::create_dir_all(&self.root)?;
                make()
            }
            made => made,
        }
    }

    fn keep(&self, file: tempfile::NamedTempFile, digest: Digest) -> io::Result<()> {
        let place = self.path(digest);
        match file.persist(&place) {
            Ok(_) => Ok(()),
            Err(failed) if failed.error.kind() == io::ErrorKind::NotFound => {
                place.parent().map_or(Ok(()), fs_err::create_dir_all)?;
                failed.file.persist(&place).map(|_| ()).map_err(|error| error.error)
            }
            Err(failed) => Err(failed.error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_kept_once_and_checked() {
        let directory = tempfile::tempdir().unwrap();
        let store = ContentStore::new(directory.path().join("store"));
        let digest = store.put(b"beam").unwrap();
        assert_eq!(store.put_from(&b"beam"[..], 10).unwrap(), (digest, 4));
        assert_eq!(store.read(digest, 10).unwrap(), b"beam");
        assert!(store.has(digest) && !store.has(Digest::of(b"column")));
        assert!(store.put_from(&b"beam"[..], 3).is_err());
        assert!(store.read(digest, 3).is_err());
        let left: Vec<_> = fs_err::read_dir(store.root()).unwrap().collect();
        assert_eq!(left.len(), 1, "no temporary file stays");
    }

    #[test]
    fn a_file_is_moved_here_unless_the_content_is() {
        let directory = tempfile::tempdir().unwrap();
        let store = ContentStore::new(directory.path().join("store"));
        let (file, digest) = (directory.path().join("file"), Digest::of(b"beam"));
        let adopt = || {
            fs_err::write(&file, "beam").unwrap();
            store.adopt(&file, digest, 4).unwrap();
            assert_eq!(store.read(digest, 10).unwrap(), b"beam");
            let moved = !file.exists();
            let _unused = fs_err::remove_file(&file);
            moved
        };
        assert!(adopt() && !adopt());
        fs_err::remove_file(store.path(digest)).unwrap();
        fs_err::write(store.path(digest), "beat").unwrap();
        assert!(adopt(), "one that was changed is replaced");
    }

    #[test]
    fn a_changed_or_torn_content_is_noticed_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let store = ContentStore::new(directory.path());
        let digest = store.put(b"beam").unwrap();
        fs_err::remove_file(store.path(digest)).unwrap();
        fs_err::write(store.path(digest), "beat").unwrap();
        assert_eq!(store.read(digest, 10).unwrap_err().kind(), io::ErrorKind::InvalidData);
        fs_err::write(store.path(digest), "").unwrap();
        store.put(b"beam").unwrap();
        assert_eq!(store.read(digest, 10).unwrap(), b"beam");
        std::os::unix::fs::symlink("/etc/passwd", store.path(Digest::of(b"x"))).ok();
        fs_err::create_dir_all(store.path(Digest::of(b"x")).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", store.path(Digest::of(b"x"))).ok();
        assert!(store.read(Digest::of(b"x"), 1 << 20).is_err());
    }
}
