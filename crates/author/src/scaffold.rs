//! A new template for the author to complete, small and valid.

use std::path::Path;

use aec_base::file::write_atomic;
use aec_base::problem::Problem;
use aec_task::scaffold::{Action, ScaffoldError, Written};

const FILES: [(&str, &str); 3] = [
    ("params.toml", include_str!("../scaffold/params.toml")),
    ("engine.py", include_str!("../scaffold/engine.py")),
    ("instruction.md", include_str!("../scaffold/instruction.md")),
];

/// Writes a valid template below the templates root.
pub fn new_template(root: &Path, discipline: &str, name: &str) -> Result<Vec<Written>, ScaffoldError> {
    let directory = root.join(name);
    if directory.symlink_metadata().is_ok() {
        let problem = Problem::error(format!("`{name}` exists already"))
            .fix("choose another name, or edit the template that is there")
            .in_file(&directory);
        return Err(ScaffoldError::InTheWay(Box::new(problem)));
    }
    let title = name.replace(['-', '_'], " ");
    let mut letters = title.chars();
    let title: String =
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default();
    let mut written = Vec::new();
    for (path, text) in FILES {
        let text =
            text.replace("@NAME@", name).replace("@DISCIPLINE@", discipline).replace("@TITLE@", &title);
        write_atomic(&directory.join(path), text.as_bytes())?;
        written.push(Written { action: Action::Created, path: path.to_owned() });
    }
    Ok(written)
}
