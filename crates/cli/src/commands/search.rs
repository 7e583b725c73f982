//! `aec-bench search`.

use aec_author::library::Library;
use aec_base::settings::Setting;
use aec_task::catalogue::Catalogue;
use aec_task::search::{Hit, HitKind, TemplateSummary};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::arguments::TasksRootArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench search voltage drop\n  \
                        aec-bench search pipe --kind template --domain civil")]
pub(crate) struct SearchArguments {
    /// Words that must all occur
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// Only results of this discipline
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// Only tasks or only templates
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<SearchKind>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

const COLUMNS: [&str; 4] = ["KIND", "NAME", "DOMAIN", "ABOUT"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchKind {
    Task,
    Template,
}

#[derive(Serialize)]
struct Data {
    query: String,
    total: usize,
    results: Vec<Hit>,
}

pub(crate) fn search(context: &Context, arguments: &SearchArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let query = arguments.query.join(" ");
    let wanted = |kind| arguments.kind.is_none_or(|asked| asked == kind);
    let tasks = if wanted(SearchKind::Task) {
        Catalogue::load(&project.settings.path(Setting::Tasks)).tasks
    } else {
        Vec::new()
    };
    let templates = if wanted(SearchKind::Template) {
        Library::load(&[project.settings.path(Setting::Templates)])
            .templates
            .iter()
            .map(TemplateSummary::from)
            .collect()
    } else {
        Vec::new()
    };
    let mut results = aec_task::search::search(&query, &tasks, &templates);
    results.retain(|hit| arguments.domain.as_ref().is_none_or(|domain| *domain == hit.domain));
    let total = results.len();
    results.truncate(arguments.limit);
    for hit in &mut results {
        hit.path = project.shown(&hit.path).to_path_buf();
    }
    let data = Data { query, total, results };
    let outcome = Outcome::new(context.format, &data, || {
        if data.results.is_empty() {
            return String::new();
        }
        let mut table = Table::new(COLUMNS).spare(["DOMAIN"]).cut_front(["NAME"]).wrap(["ABOUT"]);
        for hit in &data.results {
            let kind = if hit.kind == HitKind::Task { "task" } else { "template" };
            table.row([kind, &hit.name, &hit.domain, &hit.summary]);
        }
        table.label_tasks("NAME");
        table.render()
    })?;
    Ok(match (data.total, data.results.len()) {
        (0, _) => outcome.remark("No task or template contains all of these words."),
        (total, shown) if shown < total => outcome.remark(format!("The best {shown} of {total} are shown.")),
        _ => outcome,
    })
}
