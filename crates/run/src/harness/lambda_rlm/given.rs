//! A task's input to the harness: `lambda-rlm.toml`, the report that it names, and the sources in its workspace.

use std::path::Path;
use std::sync::Arc;

use aec_rlm::split::Form;
use aec_sandbox::Tree;
use aec_task::long_documents::files::LambdaFiles;
use aec_task::long_documents::settings::LambdaSettings;
use aec_task::long_documents::template::{ReportTemplate, Section};

use crate::harness::settings_file::{TaskDirectory, checked};
use crate::task::PreparedTask;

#[derive(Debug)]
pub(super) struct Given {
    pub(super) settings: LambdaSettings,
    pub(super) template: ReportTemplate,
    pub(super) sources: Vec<Source>,
    pub(super) notes: Vec<String>,
}

/// A text of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) label: String,
    pub(super) text: Arc<str>,
    pub(super) form: Form,
}

impl Given {
    /// Reads a task's input; without `lambda-rlm.toml` the defaults apply.
    pub(super) fn read(task: &PreparedTask) -> Result<Self, String> {
        let mut notes = Vec::new();
        let tree =
            Tree::open(&task.task.path).map_err(|error| format!("the task cannot be read: {error}"))?;
        let files = checked(LambdaFiles::read(&TaskDirectory(&tree)), &mut notes)?;
        let mut sources = Vec::new();
        for file in &task.files {
            match std::str::from_utf8(&file.content) {
                Ok(text) if !text.contains('\0') => sources.push(Source {
                    label: file.place.clone(),
                    text: Arc::from(text),
                    form: Form::of_name(&file.place),
                }),
                _ => notes.push(format!("{} is not text and is not read", file.place)),
            }
        }
        Ok(Self { settings: files.settings, template: files.report, sources, notes })
    }

    /// The sources of a section with their priorities, best first, and labels that match nothing. A section that names
    /// no source uses what it depends on, or everything.
    pub(super) fn sources_of(&self, section: &Section) -> (Vec<(&Source, i64)>, Vec<String>) {
        if section.input_mapping.sources.is_empty() {
            let all = if section.depends_on.is_empty() { self.sources.iter().collect() } else { Vec::new() };
            return (all.into_iter().map(|source| (source, 0)).collect(), Vec::new());
        }
        let mut found: Vec<(&Source, i64)> = Vec::new();
        let mut unknown = Vec::new();
        for (label, priority) in &section.input_mapping.sources {
            let mut any = false;
            for source in self.sources.iter().filter(|source| is_named(&source.label, label)) {
                any = true;
                if found.iter().all(|(known, _)| known.label != source.label) {
                    found.push((source, *priority));
                }
            }
            if !any {
                unknown.push(label.clone());
            }
        }
        (found, unknown)
    }
}

/// Whether a label matches a file: by its path, without its extension, or as a directory above it. Tasks keep the
/// workspace's files in `environment/`.
fn is_named(path: &str, label: &str) -> bool {
    let label = label.strip_prefix("environment/").unwrap_or(label).trim_end_matches(['/', '*']);
    let path = Path::new(path);
    path == Path::new(label) || path.with_extension("") == Path::new(label) || path.starts_with(label)
}
