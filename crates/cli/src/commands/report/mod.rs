//! What the reports share: selecting trials, and numbers as text.

pub(crate) mod behavioral;
pub(crate) mod classifier;
pub(crate) mod compare;
pub(crate) mod fields;
pub(crate) mod leaderboard;
pub(crate) mod summary;
pub(crate) mod traces;

use std::path::Path;

use aec_base::decimal::rounded;
use aec_base::name::Name;
use aec_base::problem::{Problem, Severity};
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_ledger::expected::Absent;
use aec_ledger::index::{Attempts, Filter, Index, IndexError, Refreshed};
use aec_ledger::layout::Ledger;
use aec_ledger::verify::{Depth, Scope, verify};
use aec_report::group::{Group, Unit};
use aec_report::selection::Selection;
use aec_report::stats::Interval;
use aec_run::absent::expected_plan;
use aec_run::plan::Plan;
use clap::{Args, Subcommand, ValueEnum};

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::{
    ask_filtered, experiments, field, index_failure, number, open, shorten, withheld,
};
use crate::commands::report::behavioral::ReportBehavioralArguments;
use crate::commands::report::compare::ReportCompareArguments;
use crate::commands::report::fields::ReportFieldsArguments;
use crate::commands::report::leaderboard::ReportLeaderboardArguments;
use crate::commands::report::summary::ReportSummaryArguments;
use crate::commands::report::traces::ReportTracesArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::progress::figures::UNPRICED;

#[derive(Debug, Subcommand)]
pub(crate) enum ReportCommand {
    /// Summarise an experiment, or the whole ledger
    Summary(ReportSummaryArguments),
    /// Rank agents, over one or more experiments
    Leaderboard(ReportLeaderboardArguments),
    /// Show for every trial how it stopped, what it called and where it failed
    Traces(ReportTracesArguments),
    /// Show how agents work: what they look at, call, check, repair and submit
    Behavioral(Box<ReportBehavioralArguments>),
    /// Compare two runs task by task, with the significance of the difference
    Compare(ReportCompareArguments),
    /// Show which fields of answers fail, for each template
    Fields(ReportFieldsArguments),
}

/// Trials of experiments that the user must name.
#[derive(Debug, Args)]
pub(crate) struct ChosenTrials {
    /// Experiment; may be repeated
    #[arg(
        long = "experiment-id",
        short = 'e',
        visible_alias = "experiment",
        value_name = "EXP",
        required = true
    )]
    pub(crate) experiments: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: ReportFilterArguments,
}

/// What a report is about. A trial must pass all filters; no filter can leave out failed trials.
#[derive(Debug, Args)]
pub(crate) struct ReportFilterArguments {
    /// Only trials of this harness
    #[arg(long, visible_alias = "adapter", value_name = "NAME")]
    pub(crate) harness: Option<String>,
    /// Only trials of this model
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only trials of this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only tasks whose ids begin with this
    #[arg(long, visible_alias = "task", value_name = "PREFIX")]
    pub(crate) task_prefix: Option<String>,
    /// Only tasks of this difficulty
    #[arg(long, value_name = "LEVEL")]
    pub(crate) difficulty: Option<String>,
    /// Only tasks of this discipline
    #[arg(long, visible_alias = "domain", value_name = "NAME")]
    pub(crate) discipline: Option<String>,
    /// Only trials whose field has this value, such as family=bolt-group-loading
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) filter: Vec<String>,
    /// Read the records instead of the index, and refuse if `ledger verify` finds anything
    #[arg(long)]
    pub(crate) verified: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

/// Which trials an interval treats as one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitArgument {
    /// Repetitions of one task: the interval generalises to other tasks like these
    #[default]
    Task,
    /// Tasks of one template: the interval generalises to other templates
    Family,
}

impl ReportCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Summary(arguments) => summary::summary(context, &arguments),
            Self::Leaderboard(arguments) => leaderboard::leaderboard(context, &arguments),
            Self::Traces(arguments) => traces::traces(context, &arguments),
            Self::Behavioral(arguments) => behavioral::behavioral(context, &arguments),
            Self::Compare(arguments) => compare::compare(context, &arguments),
            Self::Fields(arguments) => fields::fields(context, &arguments),
        }
    }
}

/// A ledger, and the filter that selects trials from it.
pub(crate) struct Source {
    pub(crate) project: Project,
    pub(crate) ledger: Ledger,
    pub(crate) filter: Filter,
    /// Present if the report must not believe the index beside the records.
    records: Option<(Index, Vec<Problem>)>,
}

impl Source {
    /// Opens the ledger. Experiments that the user names must exist.
    pub(crate) fn open(
        context: &Context,
        named: &[String],
        arguments: &ReportFilterArguments,
    ) -> Result<Self, Failure> {
        let (project, ledger) = open(context, &arguments.ledger_root)?;
        let mut fields =
            arguments.filter.iter().map(|filter| field(filter)).collect::<Result<Vec<_>, _>>()?;
        let words = [("difficulty", &arguments.difficulty)];
        fields.extend(words.into_iter().filter_map(|(name, word)| Some((name.to_owned(), word.clone()?))));
        let experiments = match named {
            [] => Vec::new(),
            named => experiments(&ledger, named)?.into_iter().map(String::from).collect(),
        };
        let filter = Filter {
            experiments,
            task_prefix: arguments.task_prefix.clone(),
            agent: arguments.agent.clone(),
            adapter: arguments.harness.clone(),
            model: arguments.model.clone(),
            domain: arguments.discipline.clone(),
            fields,
            attempts: Attempts::Latest,
            ..Filter::default()
        };
        let mut source = Self { project, ledger, filter, records: None };
        if arguments.verified {
            source.verify()?;
            source.read_records()?;
        }
        Ok(source)
    }

    /// Makes the report of the records themselves: whoever can write beside them could have changed the index.
    pub(crate) fn read_records(&mut self) -> Result<(), Failure> {
        if self.records.is_none() {
            let made = Index::of_records(&self.ledger, &self.filter.experiments);
            let (index, Refreshed { mut problems, .. }) = made.map_err(index_failure)?;
            shorten(&self.project, &mut problems);
            self.records = Some((index, problems));
        }
        Ok(())
    }

    /// Refuses if the records are not what the runs wrote.
    fn verify(&self) -> Result<(), Failure> {
        let jobs = self.project.settings.path(Setting::Jobs);
        let scope = Scope { ledger: &self.ledger, jobs: &jobs };
        let mut found = Vec::new();
        for experiment in self.experiments()? {
            found.extend(verify(&scope, None, &experiment, Depth::Quick)?.problems);
        }
        found.retain(Problem::counts);
        shorten(&self.project, &mut found);
        if found.is_empty() { Ok(()) } else { Err(Failure::input(found)) }
    }

    /// The experiments that the user named, or all.
    fn experiments(&self) -> Result<Vec<Name>, Failure> {
        experiments(&self.ledger, &self.filter.experiments)
    }

    /// Asks the index, or the records where the index must not be believed.
    pub(crate) fn ask<T>(
        &self,
        question: impl Fn(&Index, &Filter) -> Result<T, IndexError>,
    ) -> Result<(T, Vec<Problem>), Failure> {
        match &self.records {
            Some((index, problems)) => {
                Ok((question(index, &self.filter).map_err(index_failure)?, problems.clone()))
            }
            None => ask_filtered(&self.project, &self.ledger, &self.filter, question),
        }
    }

    /// Trials that packages withheld and that the filter would accept.
    pub(crate) fn withheld(&self) -> Result<Vec<Absent>, Failure> {
        withheld(&self.ledger, &self.filter)
    }

    /// The same as advice, for reports that show trials one by one.
    pub(crate) fn withheld_note(&self) -> Result<Option<Problem>, Failure> {
        let count = self.withheld()?.len();
        Ok((count > 0).then(|| {
            let what = match count {
                1 => "1 trial was withheld by the package that it came with".to_owned(),
                _ => format!("{count} trials were withheld by the packages that they came with"),
            };
            Problem::note(what)
                .why("this report does not show them; `evaluate` says what they may do to the mean")
        }))
    }

    /// The selected trials, including planned trials without a record.
    pub(crate) fn selection(&self) -> Result<(Selection, Vec<Problem>), Failure> {
        let (mut selection, mut problems) = self.ask(Selection::read)?;
        selection.note_withheld(&self.withheld()?, &self.filter);
        for experiment in self.experiments()? {
            if self.ledger.is_package(&experiment).map_err(|problem| Failure::from(*problem))? {
                selection.packages.insert(experiment.to_string());
            }
        }
        let (plans, unreadable) = self.plans(&selection);
        for plan in &plans {
            selection.note_missing(&plan.expected(), &self.filter);
        }
        problems.extend(unreadable);
        if selection.trials.is_empty() {
            let problem = Problem::error("no trial fits")
                .why("nothing in the ledger fits the experiment and the filters")
                .fix("`aec-bench runs list` shows the experiments, `aec-bench ledger list` the trials");
            return Err(Failure::input([problem]));
        }
        Ok((selection, problems))
    }

    /// The plans of the experiments in a selection. An unreadable plan is reported, because without it nothing shows
    /// which trials are missing.
    fn plans(&self, selection: &Selection) -> (Vec<Plan>, Vec<Problem>) {
        let (mut plans, mut problems) = (Vec::new(), Vec::new());
        for experiment in &selection.experiments {
            let Ok(name) = Name::parse(&experiment.id) else { continue };
            match expected_plan(&self.ledger.experiment(&name)) {
                Ok(plan) => plans.extend(plan),
                Err(found) => problems.extend(
                    found.into_iter().map(|problem| Problem { severity: Severity::Warning, ..problem }),
                ),
            }
        }
        plans.dedup_by(|a, b| a.experiment_id == b.experiment_id);
        (plans, problems)
    }
}

impl From<UnitArgument> for Unit {
    fn from(unit: UnitArgument) -> Self {
        match unit {
            UnitArgument::Task => Self::Task,
            UnitArgument::Family => Self::Family,
        }
    }
}

pub(crate) fn span(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || "-".to_owned(),
        |span| format!("{} to {}", rounded(span.low, 3), rounded(span.high, 3)),
    )
}

/// Dollars as text: `+` marks a sum that leaves out unknown costs.
pub(crate) fn dollars(group: &Group) -> String {
    let took = &group.took;
    match took.without_cost {
        0 => rounded(took.cost_usd, 4),
        _ if took.cost_usd > 0.0 => format!("{}+", rounded(took.cost_usd, 4)),
        _ => UNPRICED.to_owned(),
    }
}

/// Writes a report as JSON, and replaces an existing file.
pub(crate) fn write_json(path: &Path, report: &impl serde::Serialize) -> Result<(), Failure> {
    let mut bytes = serde_json::to_vec_pretty(report)
        .map_err(|error| Failure::internal(Problem::error(format!("cannot write the report: {error}"))))?;
    bytes.push(b'\n');
    write(path, &bytes, true)
}

/// Writes a report to a file.
pub(crate) fn write(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    if !force && path.symlink_metadata().is_ok() {
        let problem = Problem::error("the file exists").in_file(path).fix("name another one, or add --force");
        return Err(Failure::input([problem]));
    }
    aec_base::file::write_atomic(path, bytes)
        .map_err(|error| Failure::environment(Problem::error(error.to_string()).in_file(path)))
}

/// The mean reward of a group; `*` marks one that is not of all trials.
pub(crate) fn mean(group: &Group) -> String {
    format!("{}{}", number(group.mean_reward, 3), group.mark())
}
