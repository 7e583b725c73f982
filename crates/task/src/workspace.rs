//! The content of `/workspace`: the task's environment files and tools.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::compose::{COMPOSE_FILES, Compose};
use crate::task::Task;

/// Files that describe the sandbox and are not copied into it.
const NOT_STAGED: [&str; 2] = ["Dockerfile", ".dockerignore"];

/// One file to copy into the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedFile {
    /// Path below `/workspace`.
    pub place: String,
    /// The task's file.
    pub source: PathBuf,
}

impl Task {
    /// The files of `environment/` (those of `environment/workspace/` without that prefix) that are not for other
    /// containers, and the task's tools under `tools/`. Links are errors: all content must be inside the task.
    pub fn workspace_files(&self) -> io::Result<Vec<StagedFile>> {
        let mut staged = Vec::new();
        let environment = self.path.join("environment");
        collect(&environment, "", &mut staged)?;
        let of_room = |place: &str| NOT_STAGED.contains(&place) || COMPOSE_FILES.contains(&place);
        if staged.iter().any(|file| COMPOSE_FILES.contains(&file.place.as_str())) {
            let private = side_files(&environment)?;
            staged.retain(|file| !private.iter().any(|path| Path::new(&file.place).starts_with(path)));
        }
        staged.retain(|file| !of_room(&file.place));
        for file in &mut staged {
            if let Some(place) = file.place.strip_prefix("workspace/") {
                file.place = place.to_owned();
            }
        }
        for tool in self.tools() {
            if let Some(name) = tool.source.strip_prefix("tools/") {
                staged.push(StagedFile {
                    place: format!("tools/{name}"),
                    source: self.path.join(&tool.source),
                });
            }
        }
        staged.sort_by(|a, b| a.place.cmp(&b.place));
        Ok(staged)
    }
}

/// Files that belong to other containers: the agent must not read the state of a simulator, for example.
fn side_files(environment: &Path) -> io::Result<BTreeSet<PathBuf>> {
    match Compose::read(environment) {
        Ok(compose) => Ok(compose.private()),
        Err(problems) => {
            let first = problems.first().map_or("it cannot be read", |problem| problem.what.as_str());
            Err(io::Error::other(format!("the containers of environment/ are not understood: {first}")))
        }
    }
}

fn collect(directory: &Path, prefix: &str, staged: &mut Vec<StagedFile>) -> io::Result<()> {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| io::Error::other("a file name is not text"))?;
        let kind = entry.file_type()?;
        let place = format!("{prefix}{name}");
        if kind.is_dir() {
            collect(&entry.path(), &format!("{place}/"), staged)?;
        } else if kind.is_file() {
            staged.push(StagedFile { place, source: entry.path() });
        } else {
            return Err(io::Error::other(format!("{} is not a regular file", entry.path().display())));
        }
    }
    Ok(())
}
