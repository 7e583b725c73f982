//! Reads a task's files for these harnesses: the settings, and the report template that they name.

use std::path::Path;

use aec_base::problem::{Problem, Severity};

use crate::long_documents::settings::{LambdaSettings, RlmSettings, TemplateSettings};
use crate::long_documents::template::{ReportTemplate, SourceMapping};
use crate::long_documents::{FAMILY, number_of};

/// Settings of `rlm`.
pub const RLM_FILE: &str = "rlm.toml";
/// Settings of `lambda_rlm`.
pub const LAMBDA_FILE: &str = "lambda-rlm.toml";
/// The report template if the settings of `lambda_rlm` name none.
pub const REPORT_FILE: &str = "report_template.toml";
/// A file beside the report template that replaces the sources of its sections.
pub const MAPPING_FILE: &str = "source_mapping.toml";

/// The template for a task without one: a single section.
const WHOLE: &str = "[[sections]]\nid = \"report\"\ntitle = \"Report\"\n";

/// Directories of a task that agents must not see.
const HIDDEN: [&str; 2] = ["tests", "solution"];

/// The texts of a task, by their paths below it.
pub trait Texts {
    /// The text of a file; `None` if it does not exist.
    fn text(&self, path: &str) -> Result<Option<String>, Problem>;
}

/// A task's files for `rlm`.
#[derive(Clone, Debug)]
pub struct RlmFiles {
    pub settings: RlmSettings,
    /// The report to fill in, if the settings name one.
    pub report: Option<ReportTemplate>,
}

/// A task's files for `lambda_rlm`.
#[derive(Clone, Debug)]
pub struct LambdaFiles {
    pub settings: LambdaSettings,
    /// The report to write.
    pub report: ReportTemplate,
}

impl RlmFiles {
    /// Reads them; without `rlm.toml` the defaults apply. Returns all problems, including notes.
    pub fn read(texts: &dyn Texts) -> (Option<Self>, Vec<Problem>) {
        let mut problems = Vec::new();
        let written = kept(texts.text(RLM_FILE), &mut problems).unwrap_or_default();
        let (settings, found) = RlmSettings::read(Path::new(RLM_FILE), &written);
        problems.extend(found);
        let Some(settings) = settings else { return (None, problems) };
        let report = named_report(texts, RLM_FILE, &settings.template, &mut problems);
        finish(Self { settings, report }, problems)
    }

    /// The files of the task that the settings name, with the keys that name them.
    fn named_files(&self) -> impl Iterator<Item = (String, &str)> {
        let inputs = self.settings.inputs.iter();
        let inputs = inputs.map(|(name, input)| (format!("inputs.{name}.source"), input.source.as_str()));
        let subcalls = self.settings.subcalls.iter().filter_map(|(name, subcall)| {
            let (file, _) = subcall.custom_impl.as_deref()?.split_once(':')?;
            Some((format!("subcalls.{name}.custom_impl"), file))
        });
        inputs.chain(subcalls)
    }
}

impl LambdaFiles {
    /// Reads them; without `lambda-rlm.toml` the defaults apply. Returns all problems, including notes.
    pub fn read(texts: &dyn Texts) -> (Option<Self>, Vec<Problem>) {
        let mut problems = Vec::new();
        let written = kept(texts.text(LAMBDA_FILE), &mut problems).unwrap_or_default();
        let (settings, found) = LambdaSettings::read(Path::new(LAMBDA_FILE), &written);
        problems.extend(found);
        let Some(settings) = settings else { return (None, problems) };
        let report = if settings.template.definition.is_some() {
            named_report(texts, LAMBDA_FILE, &settings.template, &mut problems)
        } else {
            let written = kept(texts.text(REPORT_FILE), &mut problems).unwrap_or_else(|| WHOLE.to_owned());
            report(texts, REPORT_FILE, &written, &settings.template, &mut problems)
        };
        let Some(report) = report else { return (None, problems) };
        finish(Self { settings, report }, problems)
    }
}

/// All problems of a task's files for both harnesses. `exists` must know the paths of the task's files and
/// directories.
pub fn check(texts: &dyn Texts, exists: &dyn Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    if exists(RLM_FILE) {
        let (files, found) = RlmFiles::read(texts);
        problems.extend(found);
        for (key, path) in files.iter().flat_map(RlmFiles::named_files) {
            let fault = if HIDDEN.iter().any(|hidden| Path::new(path).starts_with(hidden)) {
                Some("must not be shown to agents")
            } else if !exists(path) && !exists(&format!("environment/{path}")) {
                Some("is not there")
            } else {
                None
            };
            problems
                .extend(fault.map(|fault| absent(RLM_FILE, &format!("{path}, which {key} names, {fault}"))));
        }
    }
    if exists(LAMBDA_FILE) || exists(REPORT_FILE) {
        // Report the problems of a template that both name only once.
        let (_, found) = LambdaFiles::read(texts);
        problems.extend(found.into_iter().filter(|problem| !problems.contains(problem)).collect::<Vec<_>>());
    }
    problems
}

fn absent(file: &str, what: &str) -> Problem {
    Problem::error(what.to_owned())
        .id(FAMILY.number(number_of::ABSENT))
        .fix("correct the path, or add the file; paths are those below the task")
        .in_file(file)
}

fn named_report(
    texts: &dyn Texts,
    file: &str,
    template: &TemplateSettings,
    problems: &mut Vec<Problem>,
) -> Option<ReportTemplate> {
    let path = template.definition.as_deref()?;
    match texts.text(path) {
        Ok(Some(written)) => report(texts, path, &written, template, problems),
        Ok(None) => {
            problems.push(absent(file, &format!("{path}, which template.definition names, is not there")));
            None
        }
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

fn report(
    texts: &dyn Texts,
    path: &str,
    written: &str,
    template: &TemplateSettings,
    problems: &mut Vec<Problem>,
) -> Option<ReportTemplate> {
    let beside = Path::new(path).with_file_name(MAPPING_FILE);
    let mapping = kept(texts.text(&beside.to_string_lossy()), problems);
    let mapping = mapping.as_deref().map(|text| SourceMapping { path: &beside, text });
    let (report, found) = ReportTemplate::read(Path::new(path), written, template.tier, mapping);
    problems.extend(found);
    report
}

fn kept(text: Result<Option<String>, Problem>, problems: &mut Vec<Problem>) -> Option<String> {
    text.unwrap_or_else(|problem| {
        problems.push(problem);
        None
    })
}

fn finish<T>(files: T, problems: Vec<Problem>) -> (Option<T>, Vec<Problem>) {
    let wrong = problems.iter().any(|problem| problem.severity == Severity::Error);
    ((!wrong).then_some(files), problems)
}
