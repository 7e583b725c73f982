//! `read_file`, `write_file`, `edit_file` and `list_files`: the workspace without a shell.

use std::io;

use aec_base::text::{count, printable};
use aec_sandbox::SandboxError;
use rustix::io::Errno;

use super::output::cut_text;
use super::{LARGEST_FILE, Ran, Trouble};
use crate::workspace::Workspace;

/// Most characters of a path that a message repeats.
const LONGEST_SHOWN: usize = 300;

pub(super) async fn read(
    workspace: &Workspace,
    path: &str,
    offset: Option<usize>,
    limit: Option<usize>,
    budget: usize,
) -> Result<Ran, Trouble> {
    let text = read_text(workspace, path).await?;
    if offset.is_none() && limit.is_none() {
        return Ok(Ran::said(cut_text(&text, budget)));
    }
    let from = offset.map_or(0, |offset| offset - 1);
    let lines = text.split_inclusive('\n').count();
    if from >= lines {
        return Err(format!("`{}` has {}", shown(path), count(lines, "line")).into());
    }
    let piece: String = text.split_inclusive('\n').skip(from).take(limit.unwrap_or(usize::MAX)).collect();
    Ok(Ran::said(cut_text(&piece, budget)))
}

pub(super) async fn write(workspace: &Workspace, path: &str, content: String) -> Result<Ran, Trouble> {
    let bytes = content.len();
    store(workspace, path, content).await?;
    Ok(Ran::said(format!("wrote {} to {}", count(bytes, "byte"), shown(path))))
}

/// Replaces a text that occurs once.
pub(super) async fn edit(workspace: &Workspace, path: &str, old: &str, new: &str) -> Result<Ran, Trouble> {
    if old.is_empty() {
        let what = "`old` is empty; write the text to be replaced, exactly as it stands in the file";
        return Err(what.to_owned().into());
    }
    let text = read_text(workspace, path).await?;
    let changed = match text.matches(old).count() {
        1 => text.replacen(old, new, 1),
        0 => return Err(format!("`old` does not occur in `{}`; it must match exactly", shown(path)).into()),
        many => {
            let what = format!(
                "`old` occurs {many} times in `{}`; take more of the text around it, so that it occurs once",
                shown(path)
            );
            return Err(what.into());
        }
    };
    store(workspace, path, changed).await?;
    Ok(Ran::said(format!("edited {}", shown(path))))
}

/// Lists files with their sizes.
pub(super) async fn list(workspace: &Workspace, path: &str, budget: usize) -> Result<Ran, Trouble> {
    let path = if path.is_empty() { "." } else { path };
    let entries = workspace.list(path).await.map_err(|error| cannot("list", path, error))?;
    let mut lines = String::new();
    for entry in &entries {
        let about = match entry.size {
            Some(size) => size.to_string(),
            None if entry.is_link => "link".to_owned(),
            None => "special".to_owned(),
        };
        lines.push_str(&format!("{about:>10} {}\n", printable(&entry.path)));
    }
    Ok(Ran::said(if lines.is_empty() { "no files\n".to_owned() } else { cut_text(&lines, budget) }))
}

/// Writes a file, if it is not larger than tools may write.
pub(super) async fn store(workspace: &Workspace, path: &str, content: String) -> Result<(), Trouble> {
    if content.len() > LARGEST_FILE {
        let what = format!("cannot write `{}`: the content is larger than {LARGEST_FILE} bytes", shown(path));
        return Err(what.into());
    }
    let written = workspace.write(path, content.into_bytes()).await;
    written.map(|_| ()).map_err(|error| cannot("write", path, error))
}

/// Writes a submitted answer. The answer counts even if it cannot be written, say because it names a directory.
pub(super) async fn hand_in(workspace: &Workspace, path: &str, content: String) -> Result<(), Trouble> {
    workspace.file(path).map_err(|error| cannot("write", path, error))?;
    match store(workspace, path, content).await {
        Err(Trouble::Told(_)) => Ok(()),
        stored => stored,
    }
}

/// The path of an existing file below the workspace.
pub(super) async fn find(workspace: &Workspace, path: &str) -> Result<String, Trouble> {
    workspace.find(path).await.map_err(|error| cannot("hand in", path, error))
}

async fn read_text(workspace: &Workspace, path: &str) -> Result<String, Trouble> {
    let bytes = workspace.read(path, LARGEST_FILE as u64).await;
    let bytes = bytes.map_err(|error| cannot("read", path, error))?;
    let size = bytes.len();
    String::from_utf8(bytes).map_err(|_| {
        format!("`{}` is not UTF-8 text ({}); look at it with bash", shown(path), count(size, "byte")).into()
    })
}

fn shown(path: &str) -> String {
    printable(path).chars().take(LONGEST_SHOWN).collect()
}

fn cannot(what: &str, path: &str, error: io::Error) -> Trouble {
    let reason = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => "no such file or directory".to_owned(),
        Some(Errno::NOTDIR) => "not a directory".to_owned(),
        Some(Errno::ISDIR) => "it is a directory".to_owned(),
        Some(Errno::LOOP) => "it is a link".to_owned(),
        Some(Errno::NAMETOOLONG) => "the path is too long".to_owned(),
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => "no space is left".to_owned(),
        Some(Errno::ACCESS | Errno::PERM) => "permission denied".to_owned(),
        _ if error.kind() == io::ErrorKind::QuotaExceeded => {
            "there are more files or deeper directories than a listing has".to_owned()
        }
        _ => match error.downcast::<SandboxError>() {
            Ok(fault) => return Trouble::Room(fault),
            Err(error) => error.to_string(),
        },
    };
    Trouble::Told(format!("cannot {what} `{}`: {reason}", shown(path)))
}
