//! Files in memory that behave like those in a sandbox: the same errors, a disk that gets full.

use std::io;
use std::sync::Arc;

use aec_judge::settle::order::{Files, is_directory};
use aec_sandbox::{Sandbox, SandboxError};
use rustix::io::Errno;

use super::{Entry, Opening};

/// Most bytes in memory; larger workspaces go into a sandbox.
const MOST: usize = 4 * 1024 * 1024;
/// Disk usage of a file is a multiple of this.
const BLOCK: u64 = 4096;

/// The files of a workspace in which no command has run yet.
pub(super) struct Memory {
    pub(super) files: Files,
    disk_bytes: u64,
    open: Opening,
}

pub(super) enum Write {
    Done,
    /// The file exceeds what is kept in memory.
    TooMuch,
}

impl Memory {
    pub(super) fn new(files: Files, disk_bytes: u64, open: Opening) -> Self {
        Self { files, disk_bytes, open }
    }

    /// Opens the sandbox with these files.
    pub(super) fn open(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        (self.open)(&self.files)
    }

    pub(super) fn read(&self, place: &str, limit: u64) -> io::Result<Vec<u8>> {
        match self.files.get(place) {
            Some(content) if content.len() as u64 > limit => {
                Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes")))
            }
            Some(content) => Ok(content.to_vec()),
            None => Err(self.fits(place).err().unwrap_or_else(|| Errno::NOENT.into())),
        }
    }

    pub(super) fn write(&mut self, place: &str, bytes: &[u8]) -> io::Result<Write> {
        let mut held = 0;
        let mut taken = (bytes.len() as u64).div_ceil(BLOCK) * BLOCK;
        for content in self.files.iter().filter(|(path, _)| *path != place).map(|(_, content)| content) {
            held += content.len();
            taken += (content.len() as u64).div_ceil(BLOCK) * BLOCK;
        }
        if taken > self.disk_bytes {
            return Err(Errno::NOSPC.into());
        }
        if held + bytes.len() > MOST {
            return Ok(Write::TooMuch);
        }
        self.fits(place)?;
        self.files.insert(place.to_owned(), Arc::from(bytes));
        Ok(Write::Done)
    }

    pub(super) fn list(&self, below: &str) -> io::Result<Vec<Entry>> {
        if !below.is_empty() && !is_directory(&self.files, below) {
            let under_a_file = self.files.contains_key(below) || self.fits(below).is_err();
            return Err(if under_a_file { Errno::NOTDIR } else { Errno::NOENT }.into());
        }
        let prefix = if below.is_empty() { String::new() } else { format!("{below}/") };
        let wanted = self.files.iter().filter(|(path, _)| path.starts_with(&prefix));
        let mut entries: Vec<Entry> = wanted
            .map(|(path, content)| Entry {
                path: path.clone(),
                size: Some(content.len() as u64),
                is_link: false,
            })
            .collect();
        entries.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
        Ok(entries)
    }

    /// Whether a file system would allow a file at this path.
    fn fits(&self, place: &str) -> io::Result<()> {
        if is_directory(&self.files, place) {
            return Err(Errno::ISDIR.into());
        }
        if place.match_indices('/').any(|(at, _)| self.files.contains_key(&place[..at])) {
            return Err(Errno::NOTDIR.into());
        }
        Ok(())
    }
}
