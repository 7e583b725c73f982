//! The directories of a room that is a container: they are created, or taken over from the image, and filled.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::spec::ROOM_UID;
use crate::tree::{Kind, Tree, WalkLimits};
use crate::wire::SEED;

/// Limits for the files of an image's workspace.
const SEED_LIMITS: WalkLimits = WalkLimits { entries: 200_000, depth: 64 };

/// Makes a directory of the room; `theirs` if commands may write to it.
pub(super) fn make_place(place: &str, theirs: bool) -> io::Result<Tree> {
    fs_err::create_dir_all(place)?;
    let directory = File::open(place)?;
    let owner = if theirs { ROOM_UID } else { 0 };
    rustix::fs::fchmod(&directory, rustix::fs::Mode::from_raw_mode(0o755))?;
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::fchown(&directory, Some(owner), Some(owner))?;
    }
    if theirs { Ok(Tree::new(directory.into())) } else { Tree::open(Path::new(place)) }
}

/// Gives everything below a directory to the commands' user, or removes it.
pub(super) fn take_over(directory: &Path, keep: bool) -> io::Result<()> {
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        let (path, is_directory) = (entry.path(), entry.file_type()?.is_dir());
        match (keep, is_directory) {
            (false, true) => fs_err::remove_dir_all(&path)?,
            (false, false) => fs_err::remove_file(&path)?,
            (true, _) => {
                std::os::unix::fs::lchown(&path, Some(ROOM_UID), Some(ROOM_UID))?;
                if is_directory {
                    take_over(&path, true)?;
                }
            }
        }
    }
    Ok(())
}

/// Fills the workspace with the image's files.
pub(super) fn seed(workspace: &Tree) -> io::Result<()> {
    let Ok(seed) = Tree::open(Path::new(SEED)) else { return Ok(()) };
    for listed in seed.list(SEED_LIMITS)? {
        match listed.kind {
            Kind::Directory => workspace.make_directory(&listed.path)?,
            Kind::File => {
                let file = seed.open_file(&listed.path)?;
                let executable = file.metadata()?.mode() & 0o100 != 0;
                workspace.write(&listed.path, &seed.read(&listed.path, listed.size)?, executable)?;
            }
            // Links are not allowed in a room, and an image should contain no special files.
            Kind::Link | Kind::Special | Kind::Closed => {}
        }
    }
    Ok(())
}
