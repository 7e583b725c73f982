//! `aec-bench dataset verify`.

use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text;
use aec_task::dataset::manifest::Manifest;
use aec_task::dataset::reference::DatasetRef;
use aec_task::dataset::store::Store;
use aec_task::dataset::verify::{Verification, verify as verify_dataset};
use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, problem_text};
use crate::progress::steps::{Steps, Words};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench dataset verify electrical-v1@1.0.0\n  \
                        aec-bench dataset verify --all")]
pub(crate) struct DatasetVerifyArguments {
    /// Datasets to check: NAME for the highest version, or NAME@VERSION
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) references: Vec<String>,
    /// Check every version of every dataset
    #[arg(long, conflicts_with = "references")]
    pub(crate) all: bool,
}

#[derive(Serialize)]
struct Data {
    is_clean: bool,
    datasets: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    dataset: String,
    #[serde(flatten)]
    verification: Verification,
}

pub(crate) fn verify(context: &Context, arguments: &DatasetVerifyArguments) -> Result<Outcome, Failure> {
    if !arguments.all && arguments.references.is_empty() {
        let problem = Problem::error("no dataset was named").fix("name a dataset, or pass --all");
        return Err(Failure::usage(problem));
    }
    let project = context.project(Vec::new())?;
    let store = Store::new(project.settings.path(Setting::Datasets));
    let (manifests, mut problems) =
        if arguments.all { store.list() } else { (read_all(&store, &arguments.references)?, Vec::new()) };
    let mut datasets = Vec::with_capacity(manifests.len());
    let steps = Steps::begin(context, Words { done: "verified", noun: "dataset" }, manifests.len())?;
    for manifest in &manifests {
        steps.at(&manifest.reference());
        let mut verification = verify_dataset(&project.root, manifest);
        problems.append(&mut verification.problems);
        datasets.push(Row { dataset: manifest.reference(), verification });
    }
    drop(steps);
    for problem in &mut problems {
        problem.file = problem.file.take().map(|file| project.shown(&file).to_path_buf());
    }
    let data = Data { is_clean: problems.is_empty(), datasets };
    let outcome = Outcome::new(context.format, &data, || {
        let mut shown: String = problems.iter().map(problem_text).collect();
        shown.extend(data.datasets.iter().map(line));
        shown
    })?;
    let outcome = if data.datasets.is_empty() && problems.is_empty() {
        outcome.remark("There are no datasets.")
    } else {
        outcome
    };
    Ok(outcome.problems_in_text(problems))
}

fn read_all(store: &Store, references: &[String]) -> Result<Vec<Manifest>, Failure> {
    let mut manifests: Vec<Manifest> = Vec::new();
    for reference in references {
        let manifest = store.read(&DatasetRef::parse(reference)?)?;
        if !manifests.iter().any(|known| known.reference() == manifest.reference()) {
            manifests.push(manifest);
        }
    }
    Ok(manifests)
}

fn line(row: &Row) -> String {
    let Row { dataset, verification: found } = row;
    let mut parts = vec![format!("{} of {} as frozen", found.verified, text::count(found.total, "task"))];
    for (count, word) in [
        (found.drifted.len(), "drifted"),
        (found.missing.len(), "missing"),
        (found.relabelled.len(), "relabelled"),
        (found.unreadable.len(), "unreadable"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    if !found.extra.is_empty() {
        parts.push(format!("{} beside them not in the dataset", found.extra.len()));
    }
    format!("{dataset}: {}\n", parts.join(", "))
}
