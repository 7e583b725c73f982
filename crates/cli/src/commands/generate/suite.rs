//! `aec-bench generate suite`.

use std::path::{Path, PathBuf};

use aec_author::generate::Skipped;
use aec_author::library::Library;
use aec_author::produce::Destination;
use aec_author::suite::{self, Counts};
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_task::suite::SuiteFile;
use clap::{Args, ValueHint};
use indexmap::IndexMap;
use serde::Serialize;

use crate::arguments::{SandboxArgument, TasksRootArgument};
use crate::commands::generate::task::{engines, published_word, with_isolation, with_skipped};
use crate::commands::verify;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::progress::steps::{StepEvent, Steps, Words};
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench generate suite --dry-run\n  \
                        aec-bench generate suite --config suite.toml --seed 7")]
pub(crate) struct GenerateSuiteArguments {
    /// Suite file
    #[arg(long, short, value_name = "FILE", default_value = "suite.toml", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// Seed, instead of the one in the file
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<i64>,
    /// Output directory, instead of the one in the file
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing suite that differs
    #[arg(long)]
    pub(crate) replace: bool,
    /// Count what would be generated, without generating it
    #[arg(long, conflicts_with = "validate_only")]
    pub(crate) dry_run: bool,
    /// Only check the file and the templates that it selects
    #[arg(long)]
    pub(crate) validate_only: bool,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

const COLUMNS: [&str; 3] = ["BY", "", "INSTANCES"];

#[derive(Serialize)]
struct Data {
    dry_run: bool,
    suite_name: String,
    seed: i64,
    output: PathBuf,
    matched_templates: usize,
    total_templates: usize,
    total_instances: usize,
    #[serde(flatten)]
    counts: Counts,
    instances_generated: usize,
    published: Option<&'static str>,
    manifest_path: Option<PathBuf>,
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
struct Checked {
    valid: bool,
    matched_templates: usize,
    total_templates: usize,
}

pub(crate) fn suite(context: &Context, arguments: &GenerateSuiteArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let path = context.absolute(&arguments.config)?;
    let mut file = SuiteFile::read(&path)?;
    if let Some(seed) = arguments.seed {
        file.seed = Some(seed);
    }
    let mut roots = vec![project.settings.path(Setting::Templates)];
    for directory in &file.templates.user_dirs {
        let directory = project.root.join(directory);
        if !directory.is_dir() {
            let problem = Problem::error("there is no such directory of templates").in_file(&directory);
            return Err(problem
                .fix("correct templates.user_dirs; it is relative to the project root")
                .into());
        }
        roots.push(directory);
    }
    let library = Library::load(&roots);
    let plan = suite::plan(&file, &path, &library.templates)?;
    let mut problems: Vec<Problem> =
        library.problems.iter().filter(|problem| problem.counts()).cloned().collect();
    let valid = problems.is_empty();
    problems.extend(plan.notes.iter().cloned());
    if arguments.validate_only {
        let checked =
            Checked { valid, matched_templates: plan.templates, total_templates: library.templates.len() };
        let outcome = Outcome::new(context.format, &checked, String::new)?.remark(format!(
            "The suite selects {} of {}.",
            plan.templates,
            text::count(checked.total_templates, "template")
        ));
        return Ok(outcome.problems(problems));
    }
    let output = output_directory(context, &project, arguments, &file)?;
    let mut data = Data {
        dry_run: arguments.dry_run,
        suite_name: file.name.as_ref().map(ToString::to_string).unwrap_or_default(),
        seed: file.seed.unwrap_or_default(),
        output: output.clone(),
        matched_templates: plan.templates,
        total_templates: library.templates.len(),
        total_instances: plan.orders.len(),
        counts: plan.counts.clone(),
        instances_generated: 0,
        published: None,
        manifest_path: None,
        skipped: Vec::new(),
    };
    if !arguments.dry_run {
        let destination = Destination { directory: output, extend: false, replace: arguments.replace };
        let steps = Steps::begin(context, Words { done: "made", noun: "instance" }, plan.orders.len())?;
        let watcher = steps.watcher();
        let made = move || watcher.on(StepEvent::Done);
        let engines = engines(context, &arguments.sandbox);
        let production = suite::make(&engines, &file, &plan, &destination, &made)?;
        drop(steps);
        data.instances_generated = production.instances.len();
        data.published = Some(published_word(&production));
        data.manifest_path = Some(production.manifest_path);
        data.skipped = production.skipped;
    }
    let outcome = Outcome::new(context.format, &data, || counts_text(&data.counts))?;
    let shown = project.shown(&data.output).display().to_string();
    let total = text::count(data.total_instances, "instance");
    let templates = text::count(data.matched_templates, "template");
    let outcome = match data.published {
        None => outcome.remark(format!("Nothing was written: {total} of {templates} would go to {shown}.")),
        Some(published) => {
            let isolation = verify::judge(context, &arguments.sandbox).isolation;
            let outcome = outcome.remark(format!("{total} of {templates} {published} in {shown}."));
            with_isolation(with_skipped(outcome, &data.skipped), isolation)
        }
    };
    Ok(outcome.problems(problems))
}

/// The suite's directory: from the flag, else the file, else beside the other tasks. It must not hold the tasks root.
fn output_directory(
    context: &Context,
    project: &Project,
    arguments: &GenerateSuiteArguments,
    file: &SuiteFile,
) -> Result<PathBuf, Failure> {
    let directory = match (&arguments.output, &file.output.dir) {
        (Some(flag), _) => context.absolute(flag)?,
        (None, Some(dir)) => project.root.join(dir).components().collect(),
        (None, None) => {
            let name = file.name.as_ref().map(ToString::to_string).unwrap_or_default();
            project.settings.path(Setting::Tasks).join("generated").join(name)
        }
    };
    let swallows = |place: &Path| place.starts_with(&directory);
    if swallows(&project.root) || swallows(&project.settings.path(Setting::Tasks)) {
        let problem = Problem::error("a suite needs a directory of its own").in_file(&directory);
        return Err(problem.fix("name one that does not exist yet, such as tasks/generated/NAME").into());
    }
    Ok(directory)
}

fn counts_text(counts: &Counts) -> String {
    let mut table = Table::new(COLUMNS).cut([""]);
    let groups: [(&str, &IndexMap<String, usize>); 4] = [
        ("discipline", &counts.by_discipline),
        ("difficulty", &counts.by_difficulty),
        ("visibility", &counts.by_visibility),
        ("tool mode", &counts.by_tool_mode),
    ];
    for (title, group) in groups {
        for (at, (name, count)) in group.iter().enumerate() {
            let title = if at == 0 { title } else { "" };
            table.row([title.to_owned(), name.clone(), count.to_string()]);
        }
    }
    table.render()
}
