//! `.prime/.env-metadata.json`: the note in a package directory that records where it was pushed. Prime's program
//! writes and reads it too, so other keys are kept.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::Pushed;

/// The note cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct NoteError {
    pub path: PathBuf,
    pub reason: String,
}

/// Where a package directory was pushed, as `(owner, name)`, if it ever was.
pub fn upstream(directory: &Path) -> Result<Option<(String, String)>, NoteError> {
    let note = read(&path(directory))?;
    let text = |key: &str| note.get(key).and_then(Value::as_str).map(str::to_owned);
    Ok(text("owner").zip(text("name")))
}

/// Records a push. `pushed_at` is the time as text.
pub fn record_push(directory: &Path, pushed: &Pushed, pushed_at: &str) -> Result<PathBuf, NoteError> {
    let path = path(directory);
    let fail = |reason: String| NoteError { path: path.clone(), reason };
    let mut note = read(&path)?;
    let text =
        |note: &Map<String, Value>, key: &str| note.get(key).and_then(Value::as_str).map(str::to_owned);
    let before = text(&note, "owner").zip(text(&note, "name"));
    if let Some((owner, name)) = before.filter(|(owner, name)| (owner, name) != (&pushed.owner, &pushed.name))
    {
        let mut from = json!({"owner": owner, "name": name});
        for key in ["environment_id", "version"] {
            if let Some(value) = note.get(key).filter(|value| !value.is_null()) {
                from[key] = value.clone();
            }
        }
        note.insert("forked_from".to_owned(), from);
    }
    for (key, value) in [
        ("environment_id", &pushed.environment_id),
        ("owner", &pushed.owner),
        ("name", &pushed.name),
        ("version", &pushed.version),
        ("pushed_at", &pushed_at.to_owned()),
        ("wheel_sha256", &pushed.wheel_sha256),
    ] {
        note.insert(key.to_owned(), json!(value));
    }
    let text = serde_json::to_string_pretty(&note).map_err(|error| fail(error.to_string()))?;
    write(&path, &text).map_err(|error| fail(format!("cannot write it: {error}")))?;
    Ok(path)
}

fn path(directory: &Path) -> PathBuf {
    directory.join(".prime").join(".env-metadata.json")
}

fn read(path: &Path) -> Result<Map<String, Value>, NoteError> {
    let fail = |reason: String| NoteError { path: path.to_owned(), reason };
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(fail(format!("cannot read it: {error}"))),
    };
    let bad = |error| fail(format!("not a JSON object ({error}); delete it if it is not needed"));
    aec_base::json::from_slice(&text).map_err(bad)
}

/// Writes a temporary file and renames it, so that the note is always complete.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.persist(path)?;
    Ok(())
}
