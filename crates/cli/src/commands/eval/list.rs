//! `aec-bench eval list`.

use std::path::PathBuf;

use aec_base::decimal::rounded;
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_eval::results::directory::{FoundRun, list as list_runs};
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::eval::all;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench eval list\n  \
                        aec-bench eval list --env aec-cables --limit 5")]
pub(crate) struct EvalListArguments {
    /// Directories to search [default: the environments and outputs of this project]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directories: Vec<PathBuf>,
    /// Only evaluations of this environment
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Option<String>,
    /// Only evaluations of this model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const COLUMNS: [&str; 6] = ["ID", "ENVIRONMENT", "MODEL", "DATE", "ROLLOUTS", "REWARD"];

#[derive(Serialize)]
struct Data {
    evaluations: Vec<Row>,
    total: usize,
}

#[derive(Serialize)]
struct Row {
    id: String,
    env_id: String,
    model: String,
    date: String,
    rollouts: Option<u64>,
    planned: i64,
    complete: Option<bool>,
    reward: Option<f64>,
    reward_std: Option<f64>,
    path: PathBuf,
}

pub(crate) fn list(context: &Context, arguments: &EvalListArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let project = context.project(Vec::new())?;
    let (runs, mut problems) = if arguments.directories.is_empty() {
        all(context, &project)?
    } else {
        let directories: Result<Vec<PathBuf>, Failure> =
            arguments.directories.iter().map(|directory| context.absolute(directory)).collect();
        list_runs(&directories?)
    };
    let mut rows = Vec::new();
    for run in runs {
        match row(&run) {
            Ok(row) => rows.push(Row { path: project.shown(&run.path).to_path_buf(), ..row }),
            Err(problem) => problems.push(problem),
        }
    }
    let fits = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    rows.retain(|row| fits(&arguments.env, &row.env_id) && fits(&arguments.model, &row.model));
    let total = rows.len();
    rows.truncate(arguments.limit);
    let data = Data { evaluations: rows, total };
    let outcome = Outcome::new(context.format, &data, || table(&data))?.problems(problems);
    Ok(if total == 0 {
        outcome.remark("No saved evaluation; `aec-bench eval run ENV -s` saves one.")
    } else {
        outcome
    })
}

fn row(run: &FoundRun) -> Result<Row, Problem> {
    let metadata = run.metadata.as_ref().map_err(Clone::clone)?;
    let date = metadata.date.clone().unwrap_or_else(|| {
        Timestamp::from_seconds(u64::try_from(run.milliseconds / 1000).unwrap_or_default())
            .as_str()
            .to_owned()
    });
    Ok(Row {
        id: run.id.clone(),
        env_id: metadata.name.clone().unwrap_or_else(|| metadata.env_id.clone()),
        model: metadata.model.clone(),
        date,
        rollouts: metadata.rollouts,
        planned: metadata.num_examples.saturating_mul(metadata.rollouts_per_example),
        complete: metadata.complete,
        reward: metadata.reward,
        reward_std: metadata.reward_std,
        path: run.path.clone(),
    })
}

fn table(data: &Data) -> String {
    let mut table = Table::new(COLUMNS).spare(["DATE"]).cut(["ENVIRONMENT", "MODEL"]);
    for row in &data.evaluations {
        let rollouts = row.rollouts.map_or_else(|| "?".to_owned(), |rollouts| rollouts.to_string());
        let reward = match (row.reward, row.reward_std) {
            // `verifiers` writes the mean of no rollouts as 0.
            _ if row.rollouts == Some(0) => "none".to_owned(),
            (Some(reward), Some(deviation)) => format!("{} ± {}", rounded(reward, 3), rounded(deviation, 3)),
            (Some(reward), None) => rounded(reward, 3),
            _ => "-".to_owned(),
        };
        table.row([
            row.id.clone(),
            row.env_id.clone(),
            row.model.clone(),
            row.date.clone(),
            format!("{rollouts}/{}", row.planned),
            reward,
        ]);
    }
    table.render()
}
