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
    /// Not an archive, or not all of one.
    #[error("this is not a whole archive: {0}")]
    Broken(io::Error),
    /// An archive that is not written the way ours are.
    #[error("{0}")]
    Form(String),
    /// More than the limits allow.
    #[error("{0}")]
    TooLarge(String),
    /// A member that is not a plain file or directory.
    #[error("{0}")]
    NotAFile(String),
    /// A member whose name does not mean the same everywhere, or leads out.
    #[error("{0}")]
    BadName(String),
}
