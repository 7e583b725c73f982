//! `aec-bench evolve resume`.

use aec_base::decimal::rounded;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::{Candidate as Override, Origin, Setting};
use aec_evolve::FAMILY;
use aec_evolve::event::{Ending, Event, Kind, Phase, Roots};
use aec_evolve::evolution::phase_of;
use aec_evolve::log::{self, Log};
use aec_evolve::run::{RunDirectory, Settings};
use aec_evolve::state::State;
use aec_evolve::workspace::Workspace;
use aec_run::terms::Caps;
use clap::Args;

use crate::commands::evolve::begin::{Opened, find_template, open_project, with_flags};
use crate::commands::evolve::carry::{Told, carry_out};
use crate::commands::evolve::{CarryArguments, git, run as find_run};
use crate::commands::models::{self};
use crate::commands::planning::VERSION;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evolve resume cables-2 --max-total-tokens 500000")]
pub(crate) struct EvolveResumeArguments {
    /// Run, or the unique beginning of its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) carry: CarryArguments,
}

pub(crate) fn resume_evolution(
    context: &Context,
    arguments: &EvolveResumeArguments,
) -> Result<Outcome, Failure> {
    resume(context, Kind::Evolution, arguments)
}

/// The project with the directories that the run began with. Flags may repeat these directories, but not change them.
pub(crate) fn project_of_run(
    context: &Context,
    project: Project,
    roots: Option<&Roots>,
    arguments: &CarryArguments,
) -> Result<Project, Failure> {
    let Some(roots) = roots else { return Ok(project) };
    let mut overrides = Vec::new();
    for (setting, flag, is_given, kept) in [
        (Setting::Tasks, "--tasks-root", arguments.tasks_root.tasks_root.is_some(), &roots.tasks),
        (Setting::Ledger, "--ledger-root", arguments.ledger_root.ledger_root.is_some(), &roots.ledger),
    ] {
        let kept = project.root.join(kept);
        if is_given && project.settings.path(setting) != kept {
            let what = format!("the run began with {}", project.shown(&kept).display());
            let problem = Problem::error(what).id(FAMILY.number(39));
            let why = "all sessions of a run must read and record in the same directories";
            return Err(problem.why(why).fix(format!("leave {flag} out")).into());
        }
        let value = kept.to_string_lossy().into_owned();
        overrides.push(Override { setting, value, origin: Origin::Flag { flag } });
    }
    models::project_with(context, &arguments.endpoints, &Caps::default(), overrides)
}

/// Refuses a run that is over. A run that ended because its budget was used up may continue with a higher budget,
/// unless the tasks kept for the end have already been used.
pub(crate) fn refuse_if_over(
    directory: &RunDirectory,
    state: &State,
    settings: &Settings,
) -> Result<(), Failure> {
    let Some(ending) = state.ending else { return Ok(()) };
    let what = format!("{} is over: {}", directory.run, ending.words());
    let problem = Problem::error(what).id(FAMILY.number(37));
    let begin = "begin a new run; it goes on from the best";
    if ending != Ending::Budget {
        return Err(problem.fix(begin).into());
    }
    if state.holdout_rewards.is_some() {
        let why =
            "the tasks that were kept for the end have been used, so they cannot measure further changes";
        return Err(problem.why(why).fix(begin).into());
    }
    let spent = state.spend().usd;
    if phase_of(settings, directory.kind, spent) < Phase::Final {
        return Ok(());
    }
    let least = spent / settings.final_threshold;
    Err(problem.fix(format!("go on with --max-cost above {}", rounded(least, 4))).into())
}

pub(crate) fn resume(
    context: &Context,
    kind: Kind,
    arguments: &EvolveResumeArguments,
) -> Result<Outcome, Failure> {
    let project = open_project(context, &arguments.carry)?;
    let directory = find_run(&project, kind, &arguments.run)?;
    let carried = directory.carry()?;
    let broken =
        || Problem::error("the run has no beginning").id(FAMILY.number(32)).in_file(directory.path());
    let before = State::replay(&log::entries(directory.path())?).ok_or_else(broken)?;
    let settings: Settings = serde_json::from_value(before.started.settings.clone()).map_err(|error| {
        Problem::error(format!("the settings of the run cannot be read: {error}")).id(FAMILY.number(32))
    })?;
    if settings.tasks.is_some() && before.started.division.is_none() {
        let what = format!("{} was begun by an earlier version of this program", directory.run);
        let problem = Problem::error(what).id(FAMILY.number(38));
        let why = "its log does not say which tasks are learned from, which are for tests and which are kept for the end";
        return Err(problem.why(why).fix("begin a new run; it goes on from the best").into());
    }
    let settings = settings.with_budget(before.budget);
    let budget = settings.budget();
    let settings = with_flags(settings, kind, &arguments.carry)?;
    refuse_if_over(&directory, &before, &settings)?;
    let project = project_of_run(context, project, before.started.roots.as_ref(), &arguments.carry)?;
    let workspace = Workspace::open(git(context)?, &project.root.join(&before.started.workspace))?;
    // Only the process that holds the workspace may write to the log: the user can remove the run's own lock by hand.
    let held = Some(workspace.hold()?);
    let (log, entries) = Log::resume(directory.path(), context.redactor())?;
    let mut state = State::replay(&entries).ok_or_else(broken)?;
    let baseline = workspace.load(state.started.baseline)?;
    let opened = Opened { project, workspace, held, settings, kind, baseline };
    let template = find_template(&opened)?;
    let mut resumed = vec![Event::Resumed { tool_version: VERSION.to_owned() }];
    if opened.settings.budget() != budget {
        resumed.push(Event::BudgetChanged(opened.settings.budget()));
    }
    for event in &resumed {
        state.apply(event);
    }
    let told = Told { log, state, resumed };
    carry_out(context, opened, template, &arguments.carry, (directory, carried), told)
}
