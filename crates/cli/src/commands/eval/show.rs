//! `aec-bench eval show`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use aec_base::problem::Problem;
use aec_eval::FAMILY;
use aec_eval::results::aggregate::Aggregate;
use aec_eval::results::metadata::{Metadata, PASS_THRESHOLD};
use aec_eval::results::scan::{Tail, scan};
use aec_eval::results::summary::Summary;
use aec_eval::results::{METADATA_FILE, RESULTS_FILE};
use clap::Args;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::commands::eval::find;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::progress::eval::{rollout_lines, saved_text};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench eval show 1a2b3c4d\n  \
                        aec-bench eval show 1a2b3c4d --rollouts 2")]
pub(crate) struct EvalShowArguments {
    /// Directory of the evaluation, or its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Also show the conversations of this many rollouts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rollouts: usize,
}

#[derive(Serialize)]
struct Data {
    path: PathBuf,
    metadata: Metadata,
    summary: Summary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rollouts: Vec<Box<RawValue>>,
}

pub(crate) fn show(context: &Context, arguments: &EvalShowArguments) -> Result<Outcome, Failure> {
    let project = context.project(Vec::new())?;
    let run = find(context, &project, &arguments.run)?;
    let metadata = Metadata::read(&run.join(METADATA_FILE))?;
    let threshold = metadata.pass_threshold.unwrap_or(PASS_THRESHOLD);
    let results = run.join(RESULTS_FILE);
    let scanned = scan(&results, Aggregate::new(metadata.rollouts_of_example(), threshold), |_, _| {})?;
    let mut problems = Vec::new();
    if !matches!(scanned.tail, Tail::Whole) {
        let problem = Problem::warning("the last line of the results is cut short").id(FAMILY.number(103));
        problems.push(problem.in_file(&results).fix("`eval run --resume` puts that right"));
    }
    let data = Data {
        path: project.shown(&run).to_path_buf(),
        summary: scanned.aggregate.summary(),
        rollouts: first_rows(&results, arguments.rollouts)?,
        metadata,
    };
    let text = || {
        let mut text = saved_text(&data.metadata, &data.summary);
        let redactor = context.redactor();
        for row in &data.rollouts {
            for line in rollout_lines(row.get().as_bytes(), &data.metadata.env_id, &redactor) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    };
    Ok(Outcome::new(context.format, &data, text)?.problems(problems))
}

/// The first rows of a file, unchanged.
fn first_rows(path: &Path, most: usize) -> Result<Vec<Box<RawValue>>, Failure> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for line in BufReader::new(std::fs::File::open(path)?).lines().take(most) {
        // Broken rows were reported when the whole file was read.
        if let Ok(row) = RawValue::from_string(line?) {
            rows.push(row);
        }
    }
    Ok(rows)
}
