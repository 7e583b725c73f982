//! `aec-bench import` of a job directory of Harbor.

use std::path::Path;

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text::count;
use aec_harbor::FAMILY;
use aec_harbor::import::{ImportError, ImportSetup, Imported, import as import_job};
use aec_harbor::result::Job;
use aec_ledger::layout::Ledger;
use serde::Serialize;

use super::import::{ImportDesk, TOLD};
use crate::arguments::ImportInto;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Serialize)]
struct Data<'a> {
    experiment_id: &'a str,
    source: String,
    harbor_version: Option<&'a str>,
    finished: bool,
    planned: Option<u64>,
    #[serde(flatten)]
    imported: &'a Imported,
}

pub(crate) fn import(context: &Context, path: &Path, into: &ImportInto) -> Result<Outcome, Failure> {
    let job = Job::open(path)?;
    let desk = ImportDesk::open(context, into)?;
    let experiment =
        desk.experiment.clone().unwrap_or_else(|| Name::nearest(&format!("harbor-{}", job.name())));
    let redactor = context.redactor();
    let setup = ImportSetup {
        ledger: Ledger::new(desk.project.settings.path(Setting::Ledger)),
        jobs: desk.project.settings.path(Setting::Jobs),
        experiment: experiment.clone(),
        tasks: &desk.tasks,
        judge: desk.judge.as_ref(),
        redactor: &redactor,
        tool_version: env!("CARGO_PKG_VERSION"),
    };
    let (imported, mut problems) = import_job(&setup, &job).map_err(|error| match error {
        ImportError::Refused(problems) => problems.into(),
        ImportError::Io(error) => Failure::from(error),
    })?;
    if job.trials.is_empty() {
        let problem = Problem::warning("the job has no trials").id(FAMILY.number(35));
        problems.push(problem.fix("name the directory of a job that ran").in_file(path));
    }
    if problems.len() > TOLD {
        let more = problems.len() - TOLD;
        problems.truncate(TOLD);
        problems.push(Problem::warning(format!("{more} more problems of this kind")));
    }
    let data = Data {
        experiment_id: experiment.as_str(),
        source: job.name(),
        harbor_version: job.version.as_deref(),
        finished: job.is_finished,
        planned: job.planned,
        imported: &imported,
    };
    let text = || {
        format!(
            "{experiment}  {} found: {} added, {} here already, {} unreadable, {} without a result\n\
             judged again: {} agree, {} disagree, {} could not be\n",
            count(imported.discovered, "trial"),
            imported.imported,
            imported.duplicate,
            imported.invalid,
            imported.missing,
            imported.verified,
            imported.disagreeing,
            imported.unverified
        )
    };
    let outcome = Outcome::new(context.format, &data, text)?.problems(problems);
    let next = format!("Next: aec-bench report traces -e {experiment}");
    Ok(if imported.imported + imported.duplicate > 0 { outcome.remark(next) } else { outcome })
}
