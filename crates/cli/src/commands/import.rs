//! `aec-bench import`, and what it shares with `import-prime-eval`: results of other programs become records.

use std::path::{Path, PathBuf};

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::secret::Redactor;
use aec_base::settings::Setting;
use aec_base::text::{count, printable};
use aec_harbor::import as harbor;
use aec_harbor::result::{Job, is_job};
use aec_judge::judge::Judge;
use aec_ledger::layout::Ledger;
use aec_prime::import::{Rollouts, SAVED, refused};
use aec_prime::rollouts::reader::{Source, open};
use aec_prime::rollouts::run::Run;
use aec_run::import::{FAMILY, ImportError, ImportSetup, Imported, Importer, Origin, Rewards};
use aec_task::catalogue::Catalogue;
use aec_task::task::Task;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::{SandboxArgument, TasksRootArgument};
use crate::commands::verify::judge;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench import outputs/evals/aec-cables--openai--gpt-4.1-mini/1a2b3c4d -e mini")]
pub(crate) struct ImportArguments {
    /// Results: a Harbor job directory, a verifiers directory with results.jsonl or traces.jsonl, or such a file
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) into: ImportInto,
}

#[derive(Debug, Args)]
pub(crate) struct ImportInto {
    /// Experiment that the records belong to [default: made from the evaluation's id]
    #[arg(long = "experiment", short = 'e', visible_alias = "experiment-id", value_name = "EXP")]
    pub(crate) experiment: Option<String>,
    /// Keep the rewards as they are; do not judge answers again even if their tasks are in this project
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Let rewards count that were not given for the tasks of this project; records and reports say so
    #[arg(long)]
    pub(crate) trust_rewards: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

/// What every import reports.
#[derive(Serialize)]
struct Data<'a> {
    experiment_id: &'a str,
    harness: &'a str,
    source: &'a str,
    #[serde(flatten)]
    about: About,
    #[serde(flatten)]
    imported: &'a Imported,
}

/// What a source states about itself; null if it does not state it.
#[derive(Default, Serialize)]
pub(crate) struct About {
    model: Option<String>,
    environment: Option<String>,
    version: Option<String>,
    /// Number of trials that there should be.
    planned: Option<u64>,
    finished: Option<bool>,
}

impl About {
    pub(crate) fn run(run: &Run) -> Self {
        let planned = run.num_examples.zip(run.rollouts_per_example).map(|(examples, each)| examples * each);
        Self {
            model: run.model.clone(),
            environment: run.environment.clone(),
            version: run.versions.get("vf_version").cloned(),
            planned: run.total_samples.or(planned),
            finished: None,
        }
    }

    fn job(job: &Job) -> Self {
        Self {
            version: job.version.clone(),
            planned: job.planned,
            finished: Some(job.is_finished),
            ..Self::default()
        }
    }
}

pub(crate) fn import(context: &Context, arguments: &ImportArguments) -> Result<Outcome, Failure> {
    let path = context.absolute(&arguments.path)?;
    let redactor = context.redactor();
    if path.is_dir() && is_job(&path) {
        let job = Job::open(&path)?;
        let project = ImportProject::open(context, &arguments.into)?;
        let mut importer = project.importer(&redactor, harbor::origin(&job))?;
        harbor::take(&mut importer, &job).map_err(failed)?;
        return outcome(context, importer, About::job(&job));
    }
    let source = open_source(&path)?;
    let project = ImportProject::open(context, &arguments.into)?;
    let mut importer = project.importer(&redactor, saved(&path))?;
    let run = take(&mut importer, source)?;
    outcome(context, importer, About::run(&run))
}

/// Identifies a run saved on a user's machine: by the names of its last two directories.
pub(crate) fn saved(path: &Path) -> Origin {
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let mut names: Vec<String> = directory
        .components()
        .rev()
        .take(2)
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    names.reverse();
    let id = Name::nearest(&names.join("-")).as_str().to_owned();
    Origin { adapter: SAVED, name: id.clone(), id }
}

pub(crate) fn open_source(path: &Path) -> Result<Source, Failure> {
    open(path).map_err(|error| {
        Problem::error(error.to_string())
            .id(FAMILY.number(22))
            .fix("name the directory that the evaluation or Harbor's job wrote, or a file of rollouts")
            .into()
    })
}

/// Imports all rollouts of a source.
pub(crate) fn take(importer: &mut Importer<'_>, source: Source) -> Result<Run, Failure> {
    let run = source.run.unwrap_or_default();
    if let Some(problem) = &source.run_problem {
        importer.tell(refused(problem));
    }
    let mut rollouts = Rollouts::new(importer, &run);
    for row in source.rows {
        rollouts.take(row).map_err(failed)?;
    }
    rollouts.finish().map_err(failed)?;
    Ok(run)
}

pub(crate) fn outcome(context: &Context, importer: Importer<'_>, about: About) -> Result<Outcome, Failure> {
    let (origin, experiment) = (importer.origin().clone(), importer.experiment().clone());
    let (imported, problems) = importer.finish().map_err(failed)?;
    let data = Data {
        experiment_id: experiment.as_str(),
        harness: origin.adapter,
        source: &origin.name,
        about,
        imported: &imported,
    };
    let text = || {
        let Imported { found, attempts, skipped, doubled, refused, unfinished, verification, .. } = &imported;
        format!(
            "{experiment}  {found} found: {} added, {attempts} further attempts, {skipped} here already, {doubled} doubled, \
             {refused} unreadable, {unfinished} without a result\n\
             judged again: {} agree, {} disagree, {} not judged\n",
            count(imported.imported, "trial"),
            verification.agree,
            verification.disagree,
            verification.unverified
        )
    };
    let outcome = Outcome::new(context.format, &data, text)?.problems(problems);
    let next = format!("Next: aec-bench report traces -e {experiment}");
    let is_here = imported.imported + imported.attempts + imported.skipped > 0;
    Ok(if is_here { outcome.remark(next) } else { outcome })
}

/// What an import needs from the project.
pub(crate) struct ImportProject {
    project: Project,
    experiment: Option<Name>,
    tasks: Vec<Task>,
    judge: Option<Judge>,
    rewards: Rewards,
}

impl ImportProject {
    pub(crate) fn open(context: &Context, into: &ImportInto) -> Result<Self, Failure> {
        let experiment = into.experiment.as_deref().map(parse_experiment).transpose()?;
        let project = context.project(into.tasks_root.overrides(context)?)?;
        let tasks = Catalogue::load(&project.settings.path(Setting::Tasks)).tasks;
        let judge = (!into.no_verify).then(|| judge(context, &into.sandbox));
        let rewards = if into.trust_rewards { Rewards::Trusted } else { Rewards::Matching };
        Ok(Self { project, experiment, tasks, judge, rewards })
    }

    /// Starts an import into the experiment that the user named, or else into one named after the run.
    pub(crate) fn importer<'a>(
        &'a self,
        redactor: &'a Redactor,
        origin: Origin,
    ) -> Result<Importer<'a>, Failure> {
        let front = if origin.adapter == "harbor" { "harbor" } else { "prime-eval" };
        let named = || Name::nearest(&format!("{front}-{}", origin.name));
        Importer::open(ImportSetup {
            ledger: Ledger::new(self.project.settings.path(Setting::Ledger)),
            jobs: self.project.settings.path(Setting::Jobs),
            experiment: self.experiment.clone().unwrap_or_else(named),
            origin,
            tasks: &self.tasks,
            judge: self.judge.as_ref(),
            redactor,
            rewards: self.rewards,
            tool_version: env!("CARGO_PKG_VERSION"),
        })
        .map_err(failed)
    }
}

fn parse_experiment(text: &str) -> Result<Name, Failure> {
    Name::parse(text).map_err(|error| {
        let what = format!("`{}` is not a name for an experiment: it {error}", printable(text));
        Failure::usage(Problem::error(what).fix("write a name such as prime-eval-medium-stateful"))
    })
}

pub(crate) fn failed(error: ImportError) -> Failure {
    match error {
        ImportError::Refused(problems) => problems.into(),
        ImportError::Io(error) => error.into(),
    }
}
