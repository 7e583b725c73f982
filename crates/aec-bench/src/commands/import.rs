//! `aec-bench import`, and what it shares with `import-prime-eval`: rollouts of others become records.

use std::path::Path;

use aec_base::name::Name;
use aec_base::problem::{Place, Problem};
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text::{count, printable};
use aec_harbor::result::is_job;
use aec_judge::judge::Judge;
use aec_ledger::layout::Ledger;
use aec_prime::FAMILY;
use aec_prime::import::{ImportError, ImportSetup, Imported, Importer, Origin, Sample};
use aec_prime::rollouts::problem::{Problem as RowProblem, ProblemKind};
use aec_prime::rollouts::reader::{Source, open};
use aec_prime::rollouts::rows::Rows;
use aec_prime::rollouts::run::Run;
use aec_task::catalogue::Catalogue;
use aec_task::task::Task;
use serde::Serialize;

use crate::arguments::{ImportArguments, ImportInto};
use crate::commands::import_harbor;
use crate::commands::verify::judge;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

/// Rollouts that are brought in together.
const GROUP: usize = 256;
/// Problems of rows that are told one by one.
pub(crate) const TOLD: usize = 20;

#[derive(Serialize)]
struct Data<'a> {
    experiment_id: &'a str,
    source: &'a str,
    model: Option<&'a str>,
    environment: Option<&'a str>,
    #[serde(flatten)]
    imported: &'a Imported,
    unreadable: usize,
}

pub(crate) fn import(context: &Context, arguments: &ImportArguments) -> Result<Outcome, Failure> {
    let path = context.absolute(&arguments.path)?;
    if path.is_dir() && is_job(&path) {
        return import_harbor::import(context, &path, &arguments.into);
    }
    let source = open_source(&path)?;
    let id = run_id(&path);
    let origin = Origin { adapter: "verifiers", id };
    let desk = ImportDesk::open(context, &arguments.into)?;
    desk.bring(context, &origin, source)
}

/// What tells a run on somebody's machine from others: the names of its two last directories.
pub(crate) fn run_id(path: &Path) -> String {
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let mut names: Vec<String> = directory
        .components()
        .rev()
        .take(2)
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    names.reverse();
    Name::nearest(&names.join("-")).as_str().to_owned()
}

/// Opens saved rollouts.
pub(crate) fn open_source(path: &Path) -> Result<Source, Failure> {
    open(path).map_err(|error| {
        Problem::error(error.to_string())
            .id(FAMILY.number(22))
            .fix("name the directory that the evaluation or Harbor's job wrote, or a file of rollouts")
            .into()
    })
}

/// What was brought in.
pub(crate) struct Taken {
    run: Run,
    pub(crate) imported: Imported,
    pub(crate) problems: Vec<Problem>,
    unreadable: usize,
}

/// Everything that bringing rollouts in needs of the project.
pub(crate) struct ImportDesk {
    pub(crate) project: Project,
    pub(crate) experiment: Option<Name>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) judge: Option<Judge>,
}

impl ImportDesk {
    pub(crate) fn open(context: &Context, into: &ImportInto) -> Result<Self, Failure> {
        let experiment = into.experiment.as_deref().map(parse_experiment).transpose()?;
        let project = context.project(into.tasks_root.overrides(context)?)?;
        let tasks = Catalogue::load(&project.settings.path(Setting::Tasks)).tasks;
        let judge = (!into.no_verify).then(|| judge(context, &into.sandbox));
        Ok(Self { project, experiment, tasks, judge })
    }

    /// The experiment that was named, or one that is named after the run.
    fn experiment(&self, origin: &Origin) -> Name {
        self.experiment.clone().unwrap_or_else(|| Name::nearest(&format!("prime-eval-{}", origin.id)))
    }

    /// Begins to bring rollouts of a run in.
    pub(crate) fn importer<'a>(
        &'a self,
        redactor: &'a aec_base::secret::Redactor,
        origin: Origin,
        run: Run,
    ) -> Result<Importer<'a>, Failure> {
        Importer::open(ImportSetup {
            ledger: Ledger::new(self.project.settings.path(Setting::Ledger)),
            jobs: self.project.settings.path(Setting::Jobs),
            experiment: self.experiment(&origin),
            origin,
            run,
            tasks: &self.tasks,
            judge: self.judge.as_ref(),
            redactor,
            tool_version: env!("CARGO_PKG_VERSION"),
        })
        .map_err(failed)
    }

    /// Brings all rollouts of a file in, and says so.
    pub(crate) fn bring(
        &self,
        context: &Context,
        origin: &Origin,
        source: Source,
    ) -> Result<Outcome, Failure> {
        let Taken { run, imported, problems, unreadable } = self.take(context, origin, source)?;
        self.outcome(context, origin, &run, &imported, problems, unreadable)
    }

    /// Brings all rollouts of a file in.
    pub(crate) fn take(&self, context: &Context, origin: &Origin, source: Source) -> Result<Taken, Failure> {
        let run = source.run.clone().unwrap_or_default();
        let redactor = context.redactor();
        let mut importer = self.importer(&redactor, origin.clone(), run.clone())?;
        let mut problems: Vec<Problem> = source.run_problem.iter().map(row_problem).collect();
        let mut unreadable = 0;
        take_rows(&mut importer, source.rows, &mut problems, &mut unreadable)?;
        let (imported, disagreements) = importer.finish().map_err(failed)?;
        problems.extend(disagreements);
        Ok(Taken { run, imported, problems, unreadable })
    }

    /// What was brought in, for people and programs.
    pub(crate) fn outcome(
        &self,
        context: &Context,
        origin: &Origin,
        run: &Run,
        imported: &Imported,
        mut problems: Vec<Problem>,
        unreadable: usize,
    ) -> Result<Outcome, Failure> {
        let experiment = self.experiment(origin);
        let taken = imported.recorded + imported.known;
        if taken + unreadable == 0 {
            let problem = Problem::warning("there is no rollout to import").id(FAMILY.number(28));
            problems.push(problem.fix("wait until the evaluation has samples, or name another file"));
        }
        if problems.len() > TOLD {
            let more = problems.len() - TOLD;
            problems.truncate(TOLD);
            problems.push(Problem::warning(format!("{more} more problems of this kind")));
        }
        let data = Data {
            experiment_id: experiment.as_str(),
            source: &origin.id,
            model: run.model.as_deref(),
            environment: run.environment.as_deref(),
            imported,
            unreadable,
        };
        let text = || {
            format!(
                "{experiment}  {} added, {} here already\njudged again: {} agree, {} disagree, {} could not be\n",
                count(imported.recorded, "record"),
                imported.known,
                imported.verified,
                imported.disagreeing,
                imported.unverified
            )
        };
        let outcome = Outcome::new(context.format, &data, text)?.problems(problems);
        let next = format!("Next: aec-bench report traces -e {experiment}");
        Ok(if taken > 0 { outcome.remark(next) } else { outcome })
    }
}

/// Takes rows group by group, so that memory does not depend on their number.
pub(crate) fn take_rows<R: std::io::BufRead>(
    importer: &mut Importer<'_>,
    rows: Rows<R>,
    problems: &mut Vec<Problem>,
    unreadable: &mut usize,
) -> Result<(), Failure> {
    let mut group = Vec::new();
    for row in rows {
        match row {
            Ok(row) => {
                let one = row.rollouts.len() == 1;
                for (at, mut rollout) in row.rollouts.into_iter().enumerate() {
                    if !one && let Some(id) = &mut rollout.sample_id {
                        id.push_str(&format!("-{at}"));
                    }
                    group.push(Sample { rollout, raw: row.raw.clone() });
                }
            }
            Err(problem) => {
                *unreadable += 1;
                problems.push(row_problem(&problem));
            }
        }
        if group.len() >= GROUP {
            importer.take(std::mem::take(&mut group)).map_err(failed)?;
        }
    }
    importer.take(group).map_err(failed)
}

fn row_problem(problem: &RowProblem) -> Problem {
    let told = Problem::warning(problem.kind.to_string()).id(FAMILY.number(23));
    let told = match problem.line {
        Some(line) => told.at(Place {
            file: problem.file.clone(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 1,
        }),
        None => told.in_file(&problem.file),
    };
    match problem.kind {
        ProblemKind::Torn => told.fix("the other rows were taken; finish the evaluation and import it again"),
        _ => told.fix("the other rows were taken"),
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
