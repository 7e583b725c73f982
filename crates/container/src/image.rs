//! Images of tasks: built from `environment/`, found again by what they were built from.
//!
//! An image has three parts: what the task's own `Dockerfile` makes, the extensions that the task asks for, and this
//! program together with a copy of `/workspace`, which is a new directory in every room.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aec_base::digest::{Digest, Hasher};
use aec_sandbox::wire::SEED;
use aec_sandbox::{Kind, Listed, Tree, WalkLimits};

use crate::entry::Entry;

/// Where the instructions are.
pub const DOCKERFILE: &str = "Dockerfile";
/// Side containers of a task.
pub const COMPOSE_FILES: [&str; 2] = ["docker-compose.yaml", "docker-compose.yml"];
/// Changes when images are put together in another way.
const FORMAT: &str = "1";
/// What a build may be given.
const CONTEXT_LIMITS: WalkLimits = WalkLimits { entries: 50_000, depth: 32 };
const CONTEXT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// What the image of a task is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskImage {
    /// The task's `environment/`.
    pub environment: PathBuf,
    /// Names of layers on top of it.
    pub extensions: Vec<String>,
    /// How long a build may take.
    pub build_timeout: Duration,
}

impl TaskImage {
    /// The layers. One that nobody knows is an error.
    pub(crate) fn layers(&self) -> io::Result<Vec<Extension>> {
        let known = |name: &String| {
            Extension::parse(name)
                .ok_or_else(|| io::Error::other(format!("the extension `{name}` is unknown")))
        };
        self.extensions.iter().map(known).collect()
    }
}

/// How many different images some tasks need: those that are made from the same are one.
pub fn different<'a>(images: impl IntoIterator<Item = &'a TaskImage>) -> io::Result<usize> {
    let mut found = BTreeSet::new();
    for image in images {
        let layers: Vec<&str> = image.layers()?.iter().map(|layer| layer.name()).collect();
        found.insert((BuildContext::read(&image.environment)?.digest, layers));
    }
    Ok(found.len())
}

/// A layer that tasks ask for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// The Claude command line, for agents that are programs of their own.
    ClaudeCli,
    /// Python packages for pictures and PDF files.
    Multimodal,
    /// Reading text in pictures.
    Ocr,
}

impl Extension {
    /// Every extension.
    pub const ALL: [Self; 3] = [Self::ClaudeCli, Self::Multimodal, Self::Ocr];

    /// The name as written in `task.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCli => "claude-cli",
            Self::Multimodal => "multimodal",
            Self::Ocr => "ocr",
        }
    }

    /// The extension of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extension| extension.name() == name)
    }

    /// What it adds, as instructions of a build. They need an image of the Debian family and, while they run, a
    /// network.
    pub fn layer(self) -> &'static str {
        match self {
            Self::ClaudeCli => {
                "RUN apt-get update && apt-get install -y --no-install-recommends nodejs npm \
                 && npm install -g @anthropic-ai/claude-code && rm -rf /var/lib/apt/lists/*\n"
            }
            Self::Multimodal => {
                "RUN python3 -m pip install --no-cache-dir --break-system-packages pillow==12.0.0 pypdf==6.1.1\n"
            }
            Self::Ocr => {
                "RUN apt-get update && apt-get install -y --no-install-recommends tesseract-ocr poppler-utils \
                 && rm -rf /var/lib/apt/lists/*\n"
            }
        }
    }
}

/// The files that a build is given.
#[derive(Debug)]
pub(crate) struct BuildContext {
    tree: Tree,
    listed: Vec<Listed>,
    /// Changes with any file.
    pub(crate) digest: Digest,
}

impl BuildContext {
    /// Reads `environment/`. Links are left out: what they lead to is not part of the task.
    pub(crate) fn read(environment: &Path) -> io::Result<Self> {
        let tree = Tree::open(environment)?;
        let listed = tree.list(CONTEXT_LIMITS)?;
        let total: u64 = listed.iter().map(|file| file.size).sum();
        if total > CONTEXT_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!("environment/ has {total} bytes; a build takes at most {CONTEXT_BYTES}"),
            ));
        }
        if !listed.iter().any(|file| file.kind == Kind::File && file.path == Path::new(DOCKERFILE)) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no environment/Dockerfile"));
        }
        let mut hasher = Hasher::default();
        for file in &listed {
            hasher.part(std::os::unix::ffi::OsStrExt::as_bytes(file.path.as_os_str()));
            if file.kind == Kind::File {
                hasher.part(&mode(&tree, &file.path)?.to_le_bytes());
                let (digest, _) =
                    aec_base::digest::copy(tree.open_file(&file.path)?, CONTEXT_BYTES, |_| Ok(()))?;
                hasher.part(digest.bytes());
            }
        }
        Ok(Self { tree, listed, digest: hasher.finish() })
    }

    /// The files as an archive, without times or owners.
    pub(crate) fn archive(&self, to: impl Write) -> io::Result<()> {
        let mut archive = tar::Builder::new(to);
        for file in &self.listed {
            match file.kind {
                Kind::Directory => {
                    let mut header = header(0, 0o755);
                    header.set_entry_type(tar::EntryType::Directory);
                    archive.append_data(&mut header, &file.path, io::empty())?;
                }
                Kind::File => {
                    let opened = self.tree.open_file(&file.path)?;
                    let size = opened.metadata()?.len();
                    let mut header = header(size, mode(&self.tree, &file.path)?);
                    archive.append_data(&mut header, &file.path, io::Read::take(opened, size))?;
                }
                Kind::Link | Kind::Special => {}
            }
        }
        archive.finish()
    }
}

fn mode(tree: &Tree, path: &Path) -> io::Result<u32> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&tree.open_file(path)?.metadata()?.permissions());
    Ok(if mode & 0o100 != 0 { 0o755 } else { 0o644 })
}

fn header(size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header
}

/// The names of the images of a task: what its own instructions make, and what rooms are made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Names {
    pub(crate) own: String,
    pub(crate) room: String,
}

impl Names {
    pub(crate) fn of(context: &BuildContext, extensions: &[Extension], entry: &Entry) -> Self {
        let digest = |parts: &[&[u8]]| {
            let mut hasher = Hasher::default();
            hasher.part(FORMAT.as_bytes());
            for part in parts {
                hasher.part(part);
            }
            hasher.finish().hex()[..24].to_owned()
        };
        let own = context.digest;
        let layers: String = extensions.iter().map(|extension| extension.layer()).collect();
        Self {
            own: format!("localhost/aec-bench/task:{}", digest(&[own.bytes()])),
            room: format!(
                "localhost/aec-bench/room:{}",
                digest(&[own.bytes(), layers.as_bytes(), entry.digest.bytes()])
            ),
        }
    }
}

/// The build that makes a room's image of a task's own: an archive with instructions and this program.
pub(crate) fn room_archive(
    own: &str,
    extensions: &[Extension],
    entry: &Entry,
    to: impl Write,
) -> io::Result<()> {
    let layers: String = extensions.iter().map(|extension| extension.layer()).collect();
    let place = Entry::place();
    // Copying nothing makes the directory, also in images that never heard of it.
    let instructions = format!(
        "FROM {own} AS task\nUSER 0\nCOPY nothing/ /workspace/\n{layers}FROM task\n\
         COPY --from=task /workspace/ {SEED}/\nCOPY entry/ {place}/\n"
    );
    let mut archive = tar::Builder::new(to);
    archive.append_data(
        &mut header(instructions.len() as u64, 0o644),
        DOCKERFILE,
        instructions.as_bytes(),
    )?;
    let mut nothing = header(0, 0o755);
    nothing.set_entry_type(tar::EntryType::Directory);
    archive.append_data(&mut nothing, "nothing", io::empty())?;
    for (name, path) in entry.files() {
        let file = fs_err::File::open(path)?;
        let size = file.metadata()?.len();
        archive.append_data(&mut header(size, 0o755), format!("entry/{name}"), io::Read::take(file, size))?;
    }
    archive.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs_err::write(directory.path().join(DOCKERFILE), "FROM python:3.12-slim\n").unwrap();
        fs_err::create_dir(directory.path().join("workspace")).unwrap();
        fs_err::write(directory.path().join("workspace/data.csv"), "a,b\n").unwrap();
        directory
    }

    #[test]
    fn names_change_with_whatever_images_are_made_from() {
        let directory = environment();
        let entry = Entry::find().unwrap();
        let names = |extensions: &[Extension]| {
            Names::of(&BuildContext::read(directory.path()).unwrap(), extensions, &entry)
        };
        let first = names(&[]);
        assert_eq!(names(&[]), first);
        let with_ocr = names(&[Extension::Ocr]);
        assert_eq!(with_ocr.own, first.own);
        assert_ne!(with_ocr.room, first.room);
        fs_err::write(directory.path().join("workspace/data.csv"), "a,c\n").unwrap();
        assert_ne!(names(&[]).own, first.own);
        fs_err::write(directory.path().join("workspace/data.csv"), "a,b\n").unwrap();
        assert_eq!(names(&[]), first);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(directory.path().join(DOCKERFILE), executable).unwrap();
        assert_ne!(names(&[]).own, first.own);
    }

    #[test]
    fn contexts_hold_files_and_nothing_that_links_lead_to() {
        let directory = environment();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("workspace/link")).unwrap();
        let context = BuildContext::read(directory.path()).unwrap();
        let mut bytes = Vec::new();
        context.archive(&mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["Dockerfile", "workspace", "workspace/data.csv"]);
        let empty = tempfile::tempdir().unwrap();
        assert!(BuildContext::read(empty.path()).unwrap_err().to_string().contains("Dockerfile"));
    }

    #[test]
    fn images_of_the_same_are_one() {
        let (one, two) = (environment(), environment());
        let image = |directory: &tempfile::TempDir, extensions: &[&str]| TaskImage {
            environment: directory.path().to_owned(),
            extensions: extensions.iter().map(|name| (*name).to_owned()).collect(),
            build_timeout: Duration::ZERO,
        };
        let count = |images: &[TaskImage]| different(images).unwrap();
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[image(&one, &[]), image(&two, &[]), image(&one, &["ocr"])]), 2);
        fs_err::write(two.path().join("more.txt"), "").unwrap();
        assert_eq!(count(&[image(&one, &[]), image(&two, &[])]), 2);
        assert!(different(&[image(&one, &["none"])]).is_err());
    }

    #[test]
    fn extensions_have_names_of_their_own() {
        for extension in Extension::ALL {
            assert_eq!(Extension::parse(extension.name()), Some(extension));
            assert!(extension.layer().starts_with("RUN ") && extension.layer().ends_with('\n'));
        }
        assert_eq!(Extension::parse("claude"), None);
    }
}
