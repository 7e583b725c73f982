//! A task's input to the harness: `rlm.toml`, the report that it names, inputs and functions.
//!
//! Files in the workspace are used in place. Others are put into the sandbox under `/inputs`, read-only. Files of a
//! verifier or a solution cannot be used.

use std::path::Path;
use std::sync::Arc;

use aec_rlm::report::ReportState;
use aec_sandbox::Tree;
use aec_task::long_documents::files::{RLM_FILE, RlmFiles};
use aec_task::long_documents::settings::{InputType, RlmSettings};

use super::session::{Custom, Input};
use crate::harness::settings_file::{TaskDirectory, checked};
use crate::room::ExtraFile;
use crate::task::PreparedTask;

/// The directory of files that are not part of the workspace.
const INPUTS: &str = "/inputs";

/// Bytes of one file.
const LARGEST: u64 = 256 * 1024 * 1024;

/// Directories of a task that agents must not see.
const HIDDEN: [&str; 2] = ["tests", "solution"];

#[derive(Debug)]
pub(super) struct Given {
    pub(super) settings: RlmSettings,
    pub(super) report: Option<ReportState>,
    pub(super) inputs: Vec<Input>,
    pub(super) custom: Vec<Custom>,
    /// Files to put into the sandbox.
    pub(super) files: Vec<ExtraFile>,
    /// Remarks about the files that do not prevent the work.
    pub(super) notes: Vec<String>,
}

impl Given {
    fn new(settings: RlmSettings, report: Option<ReportState>, notes: Vec<String>) -> Self {
        Self { settings, report, inputs: Vec::new(), custom: Vec::new(), files: Vec::new(), notes }
    }

    /// Reads a task's input; without `rlm.toml` the defaults apply.
    pub(super) fn read(task: &PreparedTask) -> Result<Self, String> {
        let mut notes = Vec::new();
        if task.task.path.as_os_str().is_empty() {
            let settings = checked(RlmSettings::read(Path::new(RLM_FILE), ""), &mut notes)?;
            return Ok(Self::new(settings, None, notes));
        }
        let tree =
            Tree::open(&task.task.path).map_err(|error| format!("the task cannot be read: {error}"))?;
        let files = checked(RlmFiles::read(&TaskDirectory(&tree)), &mut notes)?;
        let mut given = Self::new(files.settings, files.report.map(ReportState::new), notes);
        for (name, input) in given.settings.inputs.clone() {
            let path = given.place(task, &tree, &input.source)?;
            let kind = match input.kind {
                InputType::String => "string",
                InputType::Json => "json",
                InputType::Csv => "csv",
                InputType::Toml => "toml",
                InputType::Bytes => "bytes",
            };
            given.inputs.push(Input { name, path, kind: kind.to_owned(), pre_parse: input.pre_parse });
        }
        for (name, subcall) in given.settings.subcalls.clone() {
            let Some(custom) = subcall.custom_impl.filter(|_| subcall.enabled) else { continue };
            let Some((file, function)) = custom.split_once(':') else { continue };
            let path = given.place(task, &tree, file)?;
            let function = function.to_owned();
            given.custom.push(Custom { name, path, function, description: subcall.description });
        }
        Ok(given)
    }

    /// The path of a task's file in the sandbox.
    fn place(&mut self, task: &PreparedTask, tree: &Tree, source: &str) -> Result<String, String> {
        let is_it = |place: &str, from: Option<&str>| place == source || from == Some(source);
        let known = task.files.iter().find(|file| is_it(&file.place, file.facts.source.as_deref()));
        if let Some(file) = known {
            return Ok(format!("/workspace/{}", file.place));
        }
        // A directory, by its path in the task or in the workspace.
        let below =
            |path: &str| Path::new(path).strip_prefix(source).is_ok_and(|rest| !rest.as_os_str().is_empty());
        let inside = task
            .files
            .iter()
            .find(|file| below(&file.place) || file.facts.source.as_deref().is_some_and(below));
        if let Some(file) = inside {
            if below(&file.place) {
                return Ok(format!("/workspace/{source}"));
            }
            // Files of `environment/` are in the workspace without that part of their path.
            let from = file.facts.source.as_deref().unwrap_or_default();
            let dropped = from.len().saturating_sub(file.place.len());
            return Ok(format!("/workspace/{}", source.get(dropped..).unwrap_or_default()));
        }
        if HIDDEN.iter().any(|hidden| Path::new(source).starts_with(hidden)) {
            return Err(format!("{RLM_FILE}: {source} must not be shown to agents"));
        }
        let content = tree
            .read(Path::new(source), LARGEST)
            .map_err(|error| format!("{RLM_FILE}: {source} cannot be read: {error}"))?;
        let place = source.to_owned();
        self.files.push(ExtraFile {
            directory: INPUTS,
            place,
            content: Arc::from(content),
            executable: false,
        });
        Ok(format!("{INPUTS}/{source}"))
    }
}
