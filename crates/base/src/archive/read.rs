//! Reads archives that may be hostile: every member is checked before the caller gets it, and no more is unpacked
//! than the limits allow, whatever sizes the archive claims.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use tar::{EntryType, Header};

use super::{ArchiveError, paths};
use crate::digest::{self, Digest};
use crate::text::printable;

/// How much an archive may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of the whole archive, unpacked.
    pub total: u64,
    /// Most bytes of one file.
    pub file: u64,
}

/// A member that passed the checks: a plain file or directory with a plain name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name, without the slash of a directory.
    pub name: String,
    pub is_directory: bool,
    pub executable: bool,
    pub size: u64,
}

/// The bytes of a member.
pub struct Content<'a> {
    from: &'a mut dyn Read,
    size: u64,
    exceeded: &'a Cell<bool>,
    total: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("{0}")]
    Write(io::Error),
}

impl Content<'_> {
    /// Hands every piece to `piece` and returns the digest of the whole content.
    pub fn copy(&mut self, mut piece: impl FnMut(&[u8]) -> io::Result<()>) -> Result<Digest, CopyError> {
        let mut unwritten = None;
        let copied = digest::copy(&mut self.from, self.size, |some| {
            piece(some).map_err(|error| {
                let kind = error.kind();
                unwritten = Some(error);
                kind.into()
            })
        });
        match (copied, unwritten) {
            (_, Some(error)) => Err(CopyError::Write(error)),
            (Ok((digest, length)), None) if length == self.size => Ok(digest),
            (Ok(_), None) => Err(self.broken(io::ErrorKind::UnexpectedEof.into()).into()),
            (Err(error), None) => Err(self.broken(error).into()),
        }
    }

    /// Reads the whole content into memory.
    pub fn bytes(&mut self) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        let keep = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        match self.copy(keep) {
            Ok(_) => Ok(bytes),
            Err(CopyError::Archive(error)) => Err(error),
            Err(CopyError::Write(error)) => Err(ArchiveError::Broken(error)),
        }
    }

    fn broken(&self, error: io::Error) -> ArchiveError {
        broken(self.exceeded, self.total, error)
    }
}

/// The archive is too large if the limit was exceeded; otherwise it is broken.
fn broken(exceeded: &Cell<bool>, total: u64, error: io::Error) -> ArchiveError {
    if exceeded.get() {
        ArchiveError::TooLarge(format!("the archive unpacks to more than {total} bytes"))
    } else {
        ArchiveError::Broken(error)
    }
}

/// Reads an archive from beginning to end, passes each member to `visit`, and returns the reader.
pub fn unpack<R: Read, E: From<ArchiveError>>(
    from: R,
    limits: Limits,
    mut visit: impl FnMut(Member, &mut Content<'_>) -> Result<(), E>,
) -> Result<R, E> {
    let exceeded = Rc::new(Cell::new(false));
    let broken = |error| broken(&exceeded, limits.total, error);
    let mut decoder = zstd::Decoder::new(from).map_err(broken)?.single_frame();
    // No archive of ours needs a larger window; a hostile frame may ask for gigabytes.
    decoder.window_log_max(27).map_err(broken)?;
    let mut tar =
        tar::Archive::new(Capped { from: decoder, left: limits.total, exceeded: Rc::clone(&exceeded) });
    // Raw entries: names and sizes come from the headers alone, so no extension record can change them.
    for entry in tar.entries().map_err(broken)?.raw(true) {
        let mut entry = entry.map_err(broken)?;
        let member = admit(entry.header(), limits.file)?;
        let size = member.size;
        visit(member, &mut Content { from: &mut entry, size, exceeded: &exceeded, total: limits.total })?;
    }
    let mut rest = tar.into_inner();
    if !ends_here(&mut rest).map_err(broken)? {
        return Err(trailing().into());
    }
    let Capped { from: mut decoder, .. } = rest;
    // The checksum follows the last byte of the frame.
    decoder.finish_frame().map_err(broken)?;
    let mut behind: BufReader<R> = decoder.finish();
    match behind.read(&mut [0]) {
        Ok(0) => Ok(behind.into_inner()),
        _ => Err(trailing().into()),
    }
}

/// A reader that fails after a given number of bytes.
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

/// Checks a header; admits only plain files and directories with plain names.
fn admit(header: &Header, longest: u64) -> Result<Member, ArchiveError> {
    let bytes = header.as_bytes();
    let (name_field, prefix_field) = (&bytes[..100], &bytes[345..500]);
    let name = header.path_bytes();
    let shown = printable(&String::from_utf8_lossy(&name)).into_owned();
    let form = |what: String| ArchiveError::Form(format!("`{shown}`{what}"));
    let not_a_file = |what: String| ArchiveError::NotAFile(format!("`{shown}` {what}"));
    if header.as_ustar().is_none() {
        return Err(form(" is not stored in the ustar format".into()));
    }
    let kind = header.entry_type();
    if !matches!(kind, EntryType::Regular | EntryType::Directory) {
        return Err(not_a_file(format!("is {}, not a file", kind_name(kind))));
    }
    if header.link_name_bytes().is_some_and(|link| !link.is_empty()) {
        return Err(not_a_file("is a file with the target of a link".into()));
    }
    let refuse = |why: String| ArchiveError::BadName(format!("`{shown}` is not a name for a file: {why}"));
    // The name ends at the first NUL; the rest of the field must be empty.
    for field in [name_field, prefix_field] {
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        if field[end..].iter().any(|byte| *byte != 0) {
            return Err(refuse("it has a NUL character".into()));
        }
    }
    let is_directory = kind == EntryType::Directory;
    let name = std::str::from_utf8(&name).map_err(|_| refuse("it is not UTF-8 text".into()))?;
    let name = if is_directory { name.strip_suffix('/').unwrap_or(name) } else { name };
    paths::check(name).map_err(|error| refuse(error.to_string()))?;
    let mode = header.mode().map_err(|error| form(format!(": {error}")))?;
    let size = header.entry_size().map_err(|error| form(format!(": {error}")))?;
    if !matches!(mode, 0o644 | 0o755) {
        return Err(not_a_file(format!("has the mode {mode:o}, not 644 or 755")));
    }
    if is_directory && size > 0 {
        return Err(not_a_file("is a directory with content".into()));
    }
    if size > longest {
        return Err(ArchiveError::TooLarge(format!("`{shown}` is {size} bytes long, more than {longest}")));
    }
    Ok(Member { name: name.to_owned(), is_directory, executable: mode == 0o755, size })
}

fn trailing() -> ArchiveError {
    ArchiveError::Form("there is data after the end of the archive".into())
}

/// Whether only a little padding follows the last member.
fn ends_here(rest: &mut impl Read) -> io::Result<bool> {
    const MOST: u64 = 1024 * 1024;
    let mut length = 0;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = rest.read(&mut buffer)?;
        if count == 0 {
            return Ok(true);
        }
        length += count as u64;
        if length > MOST || buffer[..count].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
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
