//! Many files in one tar archive (ustar) compressed with Zstandard. The same files give the same bytes on every
//! machine, and the reader trusts nothing in an archive.
//!
//! The callers decide what the members mean.

pub mod paths;
mod read;
mod write;

use std::io;

pub use read::{Content, CopyError, Limits, Member, unpack};
pub use write::{Writer, fits};

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("this is not a whole archive: {0}")]
    Broken(io::Error),
    #[error("{0}")]
    Form(String),
    #[error("{0}")]
    TooLarge(String),
    #[error("{0}")]
    NotAFile(String),
    #[error("{0}")]
    BadName(String),
}
