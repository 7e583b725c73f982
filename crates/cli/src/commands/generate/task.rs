//! `aec-bench generate task`, and what the other `generate` commands share.

use std::path::PathBuf;

use aec_author::engine::Engines;
use aec_author::generate::{Order, Skipped};
use aec_author::library::Library;
use aec_author::params::ToolMode;
use aec_author::produce::Production;
use aec_author::single::{self, TaskRequest};
use aec_author::template::Template;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_judge::judge::Isolation;
use aec_task::file::Visibility;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::{SandboxArgument, TasksRootArgument};
use crate::commands::generate::TemplatesArgument;
use crate::commands::verify;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench generate task voltage-drop --instances 3\n  \
                        aec-bench generate task voltage-drop --instances 20 --difficulty hard --dry-run\n  \
                        aec-bench generate task rational-method --visibility holdout --output holdout")]
pub(crate) struct GenerateTaskArguments {
    /// Name of the template, such as voltage-drop or electrical/voltage-drop
    #[arg(required_unless_present = "template", conflicts_with = "template")]
    pub(crate) name: Option<String>,
    /// Directory of the template
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) template: Option<PathBuf>,
    /// Number of instances
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) instances: u32,
    /// Tiers, used in turn [default: all tiers of the template]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) difficulty: Vec<String>,
    /// Seed of the random draws
    #[arg(long, value_name = "N", default_value_t = 42, allow_negative_numbers = true)]
    pub(crate) seed: i64,
    /// Index of the first draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) start_index: u32,
    /// Directory that gets DISCIPLINE/CATEGORY/TEMPLATE/… [default: the task catalogue]
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// With or without the calculator [default: as the template says]
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(ToolMode::NAMES))]
    pub(crate) tool_mode: Option<String>,
    /// Visibility of the tasks
    #[arg(long, value_name = "NAME", default_value = "public", value_parser = PossibleValuesParser::new(Visibility::NAMES))]
    pub(crate) visibility: String,
    /// Replace existing tasks that differ
    #[arg(long)]
    pub(crate) replace: bool,
    /// Show what would be generated, without generating it
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) templates: TemplatesArgument,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

const COLUMNS: [&str; 4] = ["INDEX", "DIFFICULTY", "TOOL MODE", "TASK"];

#[derive(Serialize)]
struct Data {
    dry_run: bool,
    template: String,
    template_version: String,
    output: PathBuf,
    seed: i64,
    start_index: u32,
    visibility: String,
    count: usize,
    published: Option<&'static str>,
    manifest_path: Option<PathBuf>,
    instances: Vec<Row>,
    skipped: Vec<Skipped>,
}

/// An instance that was generated, or would be.
#[derive(Serialize)]
struct Row {
    index: u32,
    difficulty: String,
    tool_mode: &'static str,
    /// Path of the task; absent until it is written.
    path: Option<PathBuf>,
}

pub(crate) fn task(context: &Context, arguments: &GenerateTaskArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let template = template(context, &project, arguments)?;
    let output = match &arguments.output {
        Some(path) => context.absolute(path)?,
        None => project.settings.path(Setting::Tasks),
    };
    let request = TaskRequest {
        difficulties: arguments.difficulty.clone(),
        instances: arguments.instances,
        seed: arguments.seed,
        start_index: arguments.start_index,
        tool_mode: arguments.tool_mode.as_deref().and_then(ToolMode::parse),
        visibility: Visibility::parse(&arguments.visibility).unwrap_or(Visibility::Public),
        output: output.clone(),
        replace: arguments.replace,
    };
    let orders = single::orders(&template, &request)?;
    let mut data = Data {
        dry_run: arguments.dry_run,
        template: template.path(),
        template_version: template.version.to_string(),
        output,
        seed: request.seed,
        start_index: request.start_index,
        visibility: arguments.visibility.clone(),
        count: orders.len(),
        published: None,
        manifest_path: None,
        instances: orders.iter().map(planned).collect(),
        skipped: Vec::new(),
    };
    if !arguments.dry_run {
        let production = single::make(&engines(context, &arguments.sandbox), &template, &request)?;
        let directory = production.manifest_path.parent().map(PathBuf::from).unwrap_or_default();
        for (row, made) in data.instances.iter_mut().zip(&production.instances) {
            row.path = Some(directory.join(&made.task));
        }
        data.published = Some(published_word(&production));
        data.manifest_path = Some(production.manifest_path);
        data.skipped = production.skipped;
    }
    let outcome = Outcome::new(context.format, &data, || {
        let mut table = Table::new(COLUMNS).spare(["TOOL MODE"]).cut_front(["TASK"]);
        for row in &data.instances {
            let path = row.path.as_ref().map(|path| project.shown(path).display().to_string());
            table.row([
                row.index.to_string(),
                row.difficulty.clone(),
                row.tool_mode.to_owned(),
                path.unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        table.label_tasks("TASK");
        table.render()
    })?;
    let count = text::count(data.count, "instance");
    Ok(match data.published {
        None => outcome.remark(format!("Nothing was written: {count} would be made of {}.", data.template)),
        Some(published) => {
            let outcome = outcome.remark(format!("{count} of {} {published}.", data.template));
            with_skipped(outcome, &data.skipped)
        }
    })
}

fn planned(order: &Order<'_>) -> Row {
    Row {
        index: order.index,
        difficulty: order.tier.name.clone(),
        tool_mode: order.tool_mode.name(),
        path: None,
    }
}

fn template(
    context: &Context,
    project: &Project,
    arguments: &GenerateTaskArguments,
) -> Result<Template, Failure> {
    if let Some(directory) = &arguments.template {
        return Ok(Template::read(&context.absolute(directory)?)?);
    }
    let mut roots = vec![project.settings.path(Setting::Templates)];
    for directory in &arguments.templates.user_dir {
        roots.push(context.absolute(directory)?);
    }
    let library = Library::load(&roots);
    let name = arguments.name.as_deref().unwrap_or_default();
    match library.find(name) {
        Ok(template) => Ok(template.clone()),
        // The requested template may be one of those that cannot be used.
        Err(problem) => {
            let mut problems = vec![*problem];
            problems.extend(library.problems.into_iter().filter(Problem::counts));
            Err(problems.into())
        }
    }
}

pub(crate) fn engines(context: &Context, sandbox: &SandboxArgument) -> Engines {
    let judge = verify::judge(context, sandbox);
    Engines::new(judge.isolation, judge.python)
}

/// Adds a remark if the engines ran without isolation.
pub(crate) fn with_isolation(outcome: Outcome, isolation: Isolation) -> Outcome {
    if isolation == Isolation::None {
        outcome.remark("Engines ran on this machine itself (--sandbox none), without isolation.")
    } else {
        outcome
    }
}

pub(crate) fn published_word(production: &Production) -> &'static str {
    use aec_author::produce::Published;
    match production.published {
        Published::Created => "created",
        Published::Unchanged => "unchanged",
        Published::Replaced => "written",
    }
}

/// Adds remarks on skipped draws, the most frequent reasons first.
pub(crate) fn with_skipped(mut outcome: Outcome, skipped: &[Skipped]) -> Outcome {
    const SHOWN: usize = 5;
    let draws: usize = skipped.iter().map(|skipped| skipped.draws).sum();
    if draws == 0 {
        return outcome;
    }
    outcome = outcome.remark(format!("{} skipped on the way:", text::count(draws, "draw")));
    let mut reasons: Vec<&Skipped> = skipped.iter().collect();
    reasons.sort_by_key(|skipped| std::cmp::Reverse(skipped.draws));
    let mut table = Table::facts();
    for Skipped { template, difficulty, reason, draws } in reasons.iter().copied().take(SHOWN) {
        table.row([draws.to_string(), format!("{template} {difficulty}: {reason}")]);
    }
    outcome = outcome.remark(table.render().trim_end());
    if reasons.len() > SHOWN {
        outcome = outcome
            .remark(format!("  and {} more; see --json", text::count(reasons.len() - SHOWN, "reason")));
    }
    outcome
}
