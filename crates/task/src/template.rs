//! Template directories, as far as finding them needs: name, discipline and description.

use std::path::{Path, PathBuf};

use aec_base::document::{Document, Family, Syntax};
use serde::{Deserialize, Serialize};

/// What a template says of itself in `[meta]` of its `params.toml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateSummary {
    /// Public name.
    pub name: String,
    /// One line.
    pub description: String,
    /// A paragraph.
    pub long_description: String,
    /// Engineering discipline.
    pub discipline: String,
    /// Kind of calculation.
    pub category: String,
    /// Standards it follows.
    pub standards: Vec<String>,
    /// Free words.
    pub tags: Vec<String>,
    /// The template's directory.
    #[serde(skip_deserializing)]
    pub path: PathBuf,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ParamsHead {
    meta: TemplateSummary,
}

/// The templates below a root, one directory each at any depth; unreadable ones are left out, since finding is
/// not checking.
pub fn summaries(root: &Path) -> Vec<TemplateSummary> {
    let mut found = Vec::new();
    collect(root, 0, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(directory: &Path, depth: usize, found: &mut Vec<TemplateSummary>) {
    const MAX_DEPTH: usize = 4;
    let params = directory.join("params.toml");
    if params.is_file() {
        if let Ok(document) = Document::read(&params, Syntax::Toml, Family('P'))
            && let Some(ParamsHead { mut meta }) = document.decode().value
        {
            meta.path = directory.to_path_buf();
            if meta.name.is_empty() {
                meta.name =
                    directory.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            }
            found.push(meta);
        }
        return;
    }
    if depth == MAX_DEPTH {
        return;
    }
    let Ok(entries) = fs_err::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), depth + 1, found);
        }
    }
}
