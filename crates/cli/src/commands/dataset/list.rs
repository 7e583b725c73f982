//! `aec-bench dataset list`.

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::settings::Setting;
use aec_base::timestamp::Timestamp;
use aec_task::dataset::manifest::Manifest;
use aec_task::dataset::store::Store;
use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench dataset list\n  \
                        aec-bench dataset list --json")]
pub(crate) struct DatasetListArguments {
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const COLUMNS: [&str; 6] = ["DATASET", "TASKS", "DOMAINS", "CREATED", "HASH", "ABOUT"];

#[derive(Serialize)]
struct Data<'a> {
    datasets: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a Name,
    version: String,
    task_count: usize,
    domains: &'a [String],
    created_at: &'a Timestamp,
    content_hash: Digest,
    summary: &'a str,
}

pub(crate) fn list(context: &Context, arguments: &DatasetListArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let project = context.project(Vec::new())?;
    let (manifests, mut problems) = Store::new(project.settings.path(Setting::Datasets)).list();
    for problem in &mut problems {
        problem.file = problem.file.take().map(|file| project.shown(&file).to_path_buf());
    }
    let data = Data { datasets: manifests.iter().map(row).collect() };
    let mut outcome = Outcome::new(context.format, &data, || list_text(&data))?;
    if data.datasets.is_empty() && problems.is_empty() {
        outcome =
            outcome.remark("No datasets. `aec-bench dataset create --name NAME --version 1.0.0` makes one.");
    }
    Ok(outcome.problems(problems))
}

fn row(manifest: &Manifest) -> Row<'_> {
    Row {
        name: &manifest.name,
        version: manifest.version.to_string(),
        task_count: manifest.tasks.len(),
        domains: &manifest.description.domains,
        created_at: &manifest.created_at,
        content_hash: manifest.content_hash,
        summary: &manifest.description.summary,
    }
}

fn list_text(data: &Data<'_>) -> String {
    if data.datasets.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(COLUMNS).spare(["HASH", "CREATED", "DOMAINS"]).cut(["DOMAINS"]).wrap(["ABOUT"]);
    for row in &data.datasets {
        table.row([
            format!("{}@{}", row.name, row.version),
            row.task_count.to_string(),
            row.domains.join(" "),
            row.created_at.to_string(),
            short(&row.content_hash),
            row.summary.to_owned(),
        ]);
    }
    table.render()
}

/// The beginning of a hash, long enough for people to distinguish two.
pub(crate) fn short(digest: &Digest) -> String {
    digest.hex().chars().take(12).collect()
}
