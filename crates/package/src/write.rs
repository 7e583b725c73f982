//! Writes a package: completely or not at all, and never over anything that is not a package.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use aec_base::digest::{Digest, Hasher};
use aec_base::staging::{Staging, sync_all};

use crate::assemble::Assembled;
use crate::project::{PackageName, pyproject, readme};
use crate::runtime;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub place: PathBuf,
    /// Digest of all its files.
    pub digest: Digest,
    pub files: usize,
    pub bytes: u64,
    pub replaced: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{} exists and is not an environment package", .0.display())]
    NotAPackage(PathBuf),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The directory of a package's evaluations, beside its files.
const OUTPUTS: &str = "outputs";

/// Writes a package below a directory. Replaces an older package of the same name atomically.
pub fn write(name: &PackageName, assembled: &Assembled, below: &Path) -> Result<Written, WriteError> {
    let place = below.join(name.module());
    let there = place.symlink_metadata().is_ok();
    if there && !is_package(&place, &name.module()) {
        return Err(WriteError::NotAPackage(place));
    }
    let staging = Staging::begin(below)?;
    let made = staging.path().join(name.module());
    let files = files(name, assembled)?;
    let mut hasher = Hasher::default();
    let mut bytes = 0;
    for (path, content) in &files {
        let target = made.join(path);
        target.parent().map_or(Ok(()), fs_err::create_dir_all)?;
        fs_err::write(&target, content)?;
        hasher.part(path.as_bytes());
        hasher.part(content);
        bytes += content.len() as u64;
    }
    if there {
        // Evaluations are stored beside the package and must survive its replacement.
        link_tree(&place.join(OUTPUTS), &made.join(OUTPUTS))?;
    }
    sync_all(&made)?;
    if there {
        staging.replace(&made, &place)?;
    } else {
        staging.publish(&made, &place)?;
    }
    Ok(Written { place, digest: hasher.finish(), files: files.len(), bytes, replaced: there })
}

/// Hard-links every file of a directory into another one: a process that is writing to a file can continue, and nothing
/// is lost if this is interrupted.
fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    fs_err::create_dir_all(to)?;
    for entry in entries {
        let (entry, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if entry.symlink_metadata()?.is_dir() {
            link_tree(&entry, &target)?;
        } else {
            fs_err::hard_link(&entry, &target)?;
        }
    }
    Ok(())
}

/// Whether a directory is a package that this program wrote.
fn is_package(place: &Path, module: &str) -> bool {
    place.symlink_metadata().is_ok_and(|found| found.is_dir())
        && place.join(module).join("tasks.json").is_file()
        && place.join("pyproject.toml").is_file()
}

fn files(name: &PackageName, assembled: &Assembled) -> io::Result<Vec<(String, Vec<u8>)>> {
    let module = name.module();
    let manifest = &assembled.manifest;
    let mut tasks = serde_json::to_vec_pretty(manifest)?;
    tasks.push(b'\n');
    let mut tools = serde_json::to_vec_pretty(&aec_run::harness::tools::table())?;
    tools.push(b'\n');
    let mut filter = serde_json::to_vec_pretty(&filter_file()?)?;
    filter.push(b'\n');
    let project = pyproject(name, manifest);
    let mut files = vec![
        ("README.md".to_owned(), readme(name, manifest).into_bytes()),
        ("pyproject.toml".to_owned(), project.clone().into_bytes()),
        (format!("{module}/pyproject.toml"), project.into_bytes()),
        (format!("{module}/filter.json"), filter),
        (format!("{module}/tasks.json"), tasks),
        (format!("{module}/tools.json"), tools),
    ];
    files.extend(
        runtime::FILES.iter().map(|(path, text)| (format!("{module}/{path}"), text.as_bytes().to_vec())),
    );
    files.extend(
        assembled
            .contents
            .iter()
            .map(|(digest, content)| (format!("{module}/files/{}", digest.hex()), content.to_vec())),
    );
    files.sort();
    Ok(files)
}

/// The filter of system calls by processor, as hexadecimal text: the same that the rooms of this program have.
fn filter_file() -> io::Result<BTreeMap<&'static str, Vec<String>>> {
    let text = |bytes: Vec<u8>| -> String {
        let halves = bytes.into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
        halves.filter_map(|half| char::from_digit(half.into(), 16)).collect()
    };
    let filters = aec_sandbox::portable_filters()?.into_iter();
    Ok(filters.map(|(processor, programs)| (processor, programs.into_iter().map(text).collect())).collect())
}
