//! `read_file`, `write_file`, `edit_file` and `list_files`: the workspace without a shell.

use aec_base::text::{count, printable};

use super::arguments::Given;
use super::output::cut_text;
use crate::workspace::Workspace;

/// A larger file is read in pieces, through the shell.
const LARGEST: u64 = 10 * 1024 * 1024;

/// Reads a file, or some lines of it.
pub(crate) async fn read(given: &Given, workspace: &Workspace, budget: usize) -> Result<String, String> {
    let path = given.text("path")?;
    let (offset, limit) = (given.optional_count("offset")?, given.optional_count("limit")?);
    let text = read_text(workspace, path).await?;
    if offset.is_none() && limit.is_none() {
        return Ok(cut_text(&text, budget));
    }
    let from = offset.map_or(0, |offset| offset - 1);
    let lines = text.split_inclusive('\n').count();
    if from >= lines {
        return Err(format!("`{}` has {}", printable(path), count(lines, "line")));
    }
    let piece: String = text.split_inclusive('\n').skip(from).take(limit.unwrap_or(usize::MAX)).collect();
    Ok(cut_text(&piece, budget))
}

/// Writes a file.
pub(crate) async fn write(given: &Given, workspace: &Workspace) -> Result<String, String> {
    let (path, content) = (given.text("path")?, given.text("content")?);
    store(workspace, path, content).await?;
    Ok(format!("wrote {} to {}", count(content.len(), "byte"), printable(path)))
}

/// Replaces a text that occurs once.
pub(crate) async fn edit(given: &Given, workspace: &Workspace) -> Result<String, String> {
    let (path, old, new) = (given.text("path")?, given.text("old")?, given.text("new")?);
    if old.is_empty() {
        return Err("`old` is empty; write the text to be replaced, exactly as it stands in the file".into());
    }
    let text = read_text(workspace, path).await?;
    let changed = match text.matches(old).count() {
        1 => text.replacen(old, new, 1),
        0 => return Err(format!("`old` does not occur in `{}`; it must match exactly", printable(path))),
        many => {
            return Err(format!(
                "`old` occurs {many} times in `{}`; take more of the text around it, so that it occurs once",
                printable(path)
            ));
        }
    };
    store(workspace, path, &changed).await?;
    Ok(format!("edited {}", printable(path)))
}

/// Lists files with their sizes.
pub(crate) async fn list(given: &Given, workspace: &Workspace, budget: usize) -> Result<String, String> {
    let path = given.optional_text("path")?.unwrap_or(".");
    let files = workspace.list(path).await.map_err(|error| cannot("list", path, &error))?;
    let mut lines = String::new();
    for (file, size) in &files {
        lines.push_str(&format!("{size:>10} {}\n", printable(file)));
    }
    Ok(if lines.is_empty() { "no files\n".to_owned() } else { cut_text(&lines, budget) })
}

async fn read_text(workspace: &Workspace, path: &str) -> Result<String, String> {
    let bytes = workspace.read(path, LARGEST).await.map_err(|error| cannot("read", path, &error))?;
    let size = bytes.len();
    String::from_utf8(bytes).map_err(|_| {
        format!("`{}` is not UTF-8 text ({}); look at it with bash", printable(path), count(size, "byte"))
    })
}

async fn store(workspace: &Workspace, path: &str, content: &str) -> Result<(), String> {
    workspace.write(path, content.as_bytes().to_vec()).await.map_err(|error| cannot("write", path, &error))
}

fn cannot(what: &str, path: &str, error: &std::io::Error) -> String {
    format!("cannot {what} `{}`: {error}", printable(path))
}
