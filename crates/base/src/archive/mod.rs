//! Many files as one: a tar archive (ustar) compressed with Zstandard. The same files give the same bytes on every
//! machine, and an archive is read as if it came from an enemy.
//!
//! What the members mean is for others to say.

pub mod paths;
mod read;
mod write;

use std::io;

pub use read::{Content, CopyError, Limits, Member, unpack};
pub use write::{Writer, fits};

/// Why an archive cannot be read.
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
