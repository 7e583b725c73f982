//! What the ledger commands share: opening the ledger, its experiments, filters, ids, and totals as text.

pub(crate) mod annotate;
pub(crate) mod export;
pub(crate) mod list;
pub(crate) mod reindex;
pub(crate) mod repair;
pub(crate) mod show;
pub(crate) mod verify;

use std::path::Path;

use aec_base::decimal::rounded;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_judge::verdict::Outcome as TrialOutcome;
use aec_ledger::FAMILY;
use aec_ledger::expected::Absent;
use aec_ledger::index::{Attempts, FIELDS, Filter, FindError, Index, IndexError, Refreshed, Row, Totals};
use aec_ledger::layout::Ledger;
use aec_report::withheld::fitting;
use clap::{Args, Subcommand};

use crate::arguments::{JobsRootArgument, LedgerRootArgument};
use crate::commands::ledger::annotate::LedgerAnnotateArguments;
use crate::commands::ledger::export::LedgerExportArguments;
use crate::commands::ledger::list::LedgerListArguments;
use crate::commands::ledger::reindex::LedgerReindexArguments;
use crate::commands::ledger::repair::LedgerRepairArguments;
use crate::commands::ledger::show::LedgerShowArguments;
use crate::commands::ledger::verify::LedgerVerifyArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// List records, newest first
    List(LedgerListArguments),
    /// Show one record: the outcome of the trial, and why
    Show(LedgerShowArguments),
    /// Write records for other programs: JSON lines, CSV or Parquet
    Export(LedgerExportArguments),
    /// Check that the records are unchanged since the runs wrote them
    Verify(LedgerVerifyArguments),
    /// Repair what a crash left behind; no record is deleted
    Repair(LedgerRepairArguments),
    /// Rebuild the index from the records
    Reindex(LedgerReindexArguments),
    /// Annotate a record with your judgment, or show its annotations
    Annotate(LedgerAnnotateArguments),
}

/// Filters on records. A record must pass all of them.
#[derive(Debug, Args)]
pub(crate) struct RecordFilterArguments {
    /// Only records of this experiment
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    /// Only records of tasks whose ids begin with this
    #[arg(long, value_name = "PREFIX")]
    pub(crate) task_prefix: Option<String>,
    /// Only records of this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only records of this harness
    #[arg(long, visible_alias = "adapter", value_name = "NAME")]
    pub(crate) harness: Option<String>,
    /// Only records of this model
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only records with this outcome
    #[arg(long, value_name = "OUTCOME", value_parser = ["scored", "agent_fault", "infra_fault", "verifier_fault", "cancelled", "unverified"])]
    pub(crate) outcome: Option<String>,
    /// Only records whose field has this value, such as domain=civil or difficulty=unknown
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) filter: Vec<String>,
}

impl LedgerCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::List(arguments) => list::list(context, &arguments),
            Self::Show(arguments) => show::show(context, &arguments),
            Self::Export(arguments) => export::export(context, &arguments),
            Self::Verify(arguments) => verify::verify(context, &arguments),
            Self::Repair(arguments) => repair::repair(context, &arguments),
            Self::Reindex(arguments) => reindex::reindex(context, &arguments),
            Self::Annotate(arguments) => annotate::annotate(context, &arguments),
        }
    }
}

pub(crate) fn open(context: &Context, root: &LedgerRootArgument) -> Result<(Project, Ledger), Failure> {
    let project = context.project(root.overrides(context)?)?;
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    Ok((project, ledger))
}

/// The same with the directory of raw trial outputs that the user named.
pub(crate) fn open_with_jobs(
    context: &Context,
    root: &LedgerRootArgument,
    jobs: &JobsRootArgument,
) -> Result<(Project, Ledger), Failure> {
    let mut overrides = root.overrides(context)?;
    overrides.extend(jobs.overrides(context)?);
    let project = context.project(overrides)?;
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    Ok((project, ledger))
}

/// The experiments that the user named, which must exist, or else all experiments.
pub(crate) fn experiments(ledger: &Ledger, named: &[String]) -> Result<Vec<Name>, Failure> {
    if named.is_empty() {
        return Ok(ledger.experiments()?);
    }
    let mut found = Vec::new();
    for name in named {
        let experiment = find_experiment(ledger, name)?;
        if !found.contains(&experiment) {
            found.push(experiment);
        }
    }
    Ok(found)
}

impl RecordFilterArguments {
    pub(crate) fn filter(&self, ledger: &Ledger, attempts: Attempts) -> Result<Filter, Failure> {
        let fields = self.filter.iter().map(|filter| field(filter)).collect::<Result<_, _>>()?;
        let experiments = match self.experiments.as_slice() {
            [] => Vec::new(),
            named => experiments(ledger, named)?.into_iter().map(String::from).collect(),
        };
        Ok(Filter {
            experiments,
            task_prefix: self.task_prefix.clone(),
            agent: self.agent.clone(),
            adapter: self.harness.clone(),
            model: self.model.clone(),
            // The argument parser has checked the word.
            outcome: self
                .outcome
                .as_ref()
                .and_then(|word| TrialOutcome::ALL.into_iter().find(|outcome| outcome.name() == word)),
            fields,
            attempts,
            ..Filter::default()
        })
    }
}

/// Parses a filter `FIELD=VALUE`.
pub(crate) fn field(filter: &str) -> Result<(String, String), Failure> {
    let Some((field, value)) = filter.split_once('=') else {
        let problem = Problem::error(format!("`{}` is not FIELD=VALUE", text::printable(filter)));
        return Err(Failure::usage(problem.fix("write, say, --filter domain=civil")));
    };
    let names = FIELDS.map(|(name, _)| name);
    if names.contains(&field) {
        return Ok((field.to_owned(), value.to_owned()));
    }
    let problem = Problem::error(format!("records have no field `{}`", text::printable(field)))
        .why(format!("the fields are {}", names.join(", ")));
    Err(Failure::usage(problem.fix(text::near_or(field, &names, "name one of them"))))
}

/// The trials of a filter's experiments that packages withheld and that the filter would accept.
pub(crate) fn withheld(ledger: &Ledger, filter: &Filter) -> Result<Vec<Absent>, Failure> {
    let mut found = Vec::new();
    for experiment in experiments(ledger, &filter.experiments)? {
        found.extend(withheld_in(ledger, &experiment)?);
    }
    Ok(fitting(&found, filter).cloned().collect())
}

pub(crate) fn withheld_in(ledger: &Ledger, experiment: &Name) -> Result<Vec<Absent>, Failure> {
    aec_run::absent::withheld(ledger, experiment).map_err(|problem| (*problem).into())
}

/// Queries the index, and returns problems with files that could not be indexed beside the answer.
pub(crate) fn ask<T>(
    project: &Project,
    ledger: &Ledger,
    question: impl Fn(&Index) -> Result<T, IndexError>,
) -> Result<(T, Vec<Problem>), Failure> {
    let (answer, Refreshed { mut problems, .. }) = Index::ask(ledger, question).map_err(index_failure)?;
    shorten(project, &mut problems);
    Ok((answer, problems))
}

/// Queries the index with a filter. Of the problems, only those of the filter's experiments are returned.
pub(crate) fn ask_filtered<T>(
    project: &Project,
    ledger: &Ledger,
    filter: &Filter,
    question: impl Fn(&Index, &Filter) -> Result<T, IndexError>,
) -> Result<(T, Vec<Problem>), Failure> {
    let (answer, mut problems) = ask(project, ledger, |index| question(index, filter))?;
    if !filter.experiments.is_empty() {
        let inside = |path: &Path| {
            path.components()
                .any(|part| filter.experiments.iter().any(|name| part.as_os_str() == name.as_str()))
        };
        let below = project.shown(ledger.root()).to_path_buf();
        problems.retain(|problem| {
            problem.file.as_deref().and_then(|file| file.strip_prefix(&below).ok()).is_none_or(inside)
        });
    }
    Ok((answer, problems))
}

/// The one record with this id.
pub(crate) fn find(project: &Project, ledger: &Ledger, id: &str) -> Result<Row, Failure> {
    let shown = text::printable(id);
    let look = |index: &Index| match index.find(id) {
        Err(FindError::Index(error)) => Err(error),
        found => Ok(found),
    };
    let (found, problems) = ask(project, ledger, look)?;
    match found {
        Ok(row) => Ok(row),
        Err(FindError::Ambiguous(ids)) => {
            let problem = Problem::error(format!("`{shown}` fits several trials")).id(FAMILY.number(27));
            Err(problem.why(format!("they are {}", ids.join(", "))).fix("name one of them").into())
        }
        Err(_) => {
            // The record may exist, but be broken.
            let stem = id.rsplit('/').next().unwrap_or(id);
            let broken: Vec<Problem> = problems
                .into_iter()
                .filter(|problem| {
                    let file = problem.file.as_deref().and_then(|file| file.file_stem());
                    file.is_some_and(|file| !stem.is_empty() && file.to_string_lossy() == stem)
                })
                .collect();
            if !broken.is_empty() {
                return Err(broken.into());
            }
            let problem = Problem::error(format!("there is no record `{shown}`")).id(FAMILY.number(26));
            Err(problem.fix("`aec-bench ledger list` shows the ids").into())
        }
    }
}

/// Paths inside the project are shown relative to it.
pub(crate) fn shorten(project: &Project, problems: &mut [Problem]) {
    for problem in problems {
        problem.file = problem.file.take().map(|file| project.shown(&file).to_path_buf());
    }
}

pub(crate) fn index_failure(error: IndexError) -> Failure {
    match error {
        IndexError::Io(error) => error.into(),
        error => Failure::environment(
            Problem::error(error.to_string())
                .id(FAMILY.number(28))
                .fix("check the free space and the permissions"),
        ),
    }
}

/// `12 trials: 9 scored, 2 agent_fault, 1 infra_fault; mean reward 0.499 of 11; $0.1240`: a mean always comes with its
/// number of trials.
pub(crate) fn totals_text(totals: &Totals, noun: &str) -> String {
    let outcomes: Vec<String> =
        totals.outcomes.iter().map(|(outcome, count)| format!("{count} {}", outcome.name())).collect();
    if outcomes.is_empty() {
        return text::count(totals.count, noun);
    }
    let counted = totals.counted();
    let mark = if totals.unknown.is_some() { "*" } else { "" };
    let mean =
        totals.mean_reward.map(|mean| format!("; mean reward {}{mark} of {counted}", rounded(mean, 3)));
    let unknown = totals.unknown.map(|unknown| format!("; *{}", unknown.text(counted)));
    let mean = [mean, unknown].into_iter().flatten().collect::<String>();
    let cost = aec_base::decimal::cost(totals.cost_usd, totals.without_cost);
    let counts = format!("{}: {}", text::count(totals.count, noun), outcomes.join(", "));
    // A trial is counted by its last attempt; `runs status` shows what earlier attempts cost.
    let of = if noun == "trial" { " in last attempts" } else { "" };
    format!("{counts}{mean}; {cost}{of}")
}

/// A number, or a dash if there is no number.
pub(crate) fn number(number: Option<f64>, decimals: usize) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.decimals$}"))
}

/// An experiment of the ledger, given by its id or its unique beginning.
pub(crate) fn find_experiment(ledger: &Ledger, id: &str) -> Result<Name, Failure> {
    let all = ledger.experiments()?;
    if let Some(exact) = all.iter().find(|name| name.as_str() == id) {
        return Ok(exact.clone());
    }
    let fitting: Vec<&Name> = all.iter().filter(|name| name.as_str().starts_with(id)).collect();
    let shown = text::printable(id);
    match fitting.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let names: Vec<&str> = all.iter().map(Name::as_str).collect();
            let problem = Problem::error(format!("there is no experiment `{shown}` in the ledger"));
            let problem = problem.id(FAMILY.number(25));
            Err(problem.fix(text::near_or(id, &names, "`aec-bench runs list` shows what there is")).into())
        }
        several => {
            let names: Vec<&str> = several.iter().take(5).map(|name| name.as_str()).collect();
            let what = format!("`{shown}` fits several experiments: {}", names.join(", "));
            let problem = Problem::error(what).id(FAMILY.number(25));
            Err(problem.fix("write more of the id").into())
        }
    }
}
