//! How a run of evolution begins: its workspace, tasks, settings and budget.

use std::path::{Path, PathBuf};

use aec_author::library::Library;
use aec_author::template::Template;
use aec_base::decimal::rounded;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_evolve::FAMILY;
use aec_evolve::arena::planned;
use aec_evolve::cycle::first_label;
use aec_evolve::division::{Division, selected_for};
use aec_evolve::event::{Event, Kind, LOG_VERSION, Roots, RunStarted};
use aec_evolve::gate::fewest_tasks;
use aec_evolve::log::Log;
use aec_evolve::run::{RunDirectory, Settings};
use aec_evolve::state::State;
use aec_evolve::supply::Supply;
use aec_evolve::workspace::candidate::Candidate;
use aec_evolve::workspace::{Held, Workspace};
use aec_judge::judge::Judge;
use aec_ledger::layout::Ledger;
use aec_model::meter::{AccountKind, Budget};
use aec_model::money::MicroDollars;
use aec_model::retry::RetryPolicy;
use aec_run::affordable::unpayable;
use aec_run::agents;
use aec_run::plan::Plan;
use aec_run::planning::Frame;
use aec_run::terms::{Caps, Terms, over};
use aec_task::selection::SelectionTable;
use serde::Serialize;

use crate::arguments::SandboxArgument;
use crate::commands::evolve::carry::{Told, carry_out};
use crate::commands::evolve::{CarryArguments, feedback};
use crate::commands::generate::task::engines;
use crate::commands::models::{self, Models};
use crate::commands::planning::{self, VERSION};
use crate::commands::run::judge;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;

/// A run that is about to begin or to continue.
pub(crate) struct Opened {
    pub(crate) project: Project,
    pub(crate) workspace: Workspace,
    /// Absent in a dry run, which writes nothing.
    pub(crate) held: Option<Held>,
    pub(crate) settings: Settings,
    pub(crate) kind: Kind,
    /// The candidate that the run starts from.
    pub(crate) baseline: Candidate,
}

pub(crate) fn open_project(context: &Context, arguments: &CarryArguments) -> Result<Project, Failure> {
    let mut overrides = arguments.tasks_root.overrides(context)?;
    overrides.extend(arguments.ledger_root.overrides(context)?);
    // The budget in the flags is for all sessions of the run, so it does not go through the settings.
    models::project_with(context, &arguments.endpoints, &Caps::default(), overrides)
}

/// The candidate in the workspace. A run keeps it in git; a dry run does not.
pub(crate) fn first(workspace: &Workspace, dry_run: bool) -> Result<Candidate, Failure> {
    Ok(if dry_run { workspace.here()? } else { workspace.keep_here()? })
}

/// Selects the task at a path, or the tasks below it.
pub(crate) fn below_tasks(project: &Project, path: &Path) -> Result<SelectionTable, Failure> {
    let root = project.settings.path(Setting::Tasks);
    let inside = path.strip_prefix(&root).ok().and_then(Path::to_str).filter(|inside| !inside.is_empty());
    if path == root {
        return Ok(SelectionTable::default());
    }
    let Some(inside) = inside.filter(|_| path.is_dir()) else {
        let problem = Problem::error("`task.task_path` is neither a task nor a directory of tasks")
            .id(FAMILY.number(46));
        let fix = format!("name a directory below {}", project.shown(&root).display());
        return Err(problem.fix(fix).in_file(path).into());
    };
    Ok(SelectionTable { include_patterns: vec![inside.to_owned()], ..SelectionTable::default() })
}

/// Applies the flags of this invocation, which override the file and the log.
pub(crate) fn with_flags(
    mut settings: Settings,
    kind: Kind,
    arguments: &CarryArguments,
) -> Result<Settings, Failure> {
    if let Some(limit) = &arguments.budget.max_cost {
        if kind == Kind::Swarm && limit.most().is_none() {
            let problem = Problem::error("a swarm without a limit in dollars would never wind down");
            return Err(Failure::usage(problem.fix("pass an amount with --max-cost")));
        }
        let before = settings.max_cost_usd;
        settings.max_cost_usd = limit.most().map(MicroDollars::dollars);
        // When the total budget is raised, the budget of trials grows in proportion, but never beyond the total.
        if let (Some(part), Some(before), Some(whole)) =
            (settings.eval_budget_usd, before, settings.max_cost_usd)
        {
            settings.eval_budget_usd = Some((part * (whole / before).max(1.0)).min(whole));
        }
    }
    if let Some(limit) = &arguments.budget.max_total_tokens {
        settings.max_tokens = limit.most();
    }
    settings.concurrency = arguments.concurrency.unwrap_or(settings.concurrency);
    Ok(settings)
}

pub(crate) fn begin(
    context: &Context,
    mut opened: Opened,
    arguments: &CarryArguments,
    dry_run: bool,
) -> Result<Outcome, Failure> {
    opened.settings = with_flags(opened.settings, opened.kind, arguments)?;
    let settings = &opened.settings;
    if !settings.solver.harness.hears_prompts() {
        let what = format!("the harness `{}` asks no model", settings.solver.harness.name());
        let problem = Problem::error(what).id(FAMILY.number(23));
        let why = "a prompt makes no difference to it, so there is nothing to improve";
        return Err(problem.why(why).fix("name another harness in `solver` or in the manifest").into());
    }
    let horizon = settings.horizon();
    let fewest = fewest_tasks(&settings.acceptance, horizon).unwrap_or(usize::MAX);
    if fewest > settings.acceptance.max_tasks as usize {
        let what = format!(
            "nothing could ever be accepted: a test has {} at most",
            text::count(settings.acceptance.max_tasks as usize, "task")
        );
        let problem = Problem::error(what)
            .id(FAMILY.number(22))
            .why(format!(
                "with {} at an error rate of {}, even a change from 0 to 1 on every task needs {fewest}",
                text::count(horizon as usize, "test"),
                settings.acceptance.error_rate
            ))
            .fix("allow more tasks, fewer cycles, or a higher error rate");
        return Err(problem.into());
    }
    let template = find_template(&opened)?;
    if dry_run {
        return preview(context, &opened, template, arguments, fewest);
    }
    // Everything is checked before the run gets a directory.
    let checked = check(context, &opened, template.clone(), arguments, fewest)?;
    let division = settings.tasks.as_ref().map(|_| checked.supply.division().clone());
    drop(checked);
    let feedback = feedback(&opened.project);
    let ledger = opened.project.settings.path(Setting::Ledger);
    let is_known = |experiment: &Name| {
        ledger.join(experiment.as_str()).symlink_metadata().is_ok()
            || opened.workspace.has_label(&first_label(experiment)).unwrap_or(false)
    };
    let name = &opened.baseline.manifest.name;
    let directory = RunDirectory::create(&feedback, opened.kind, name, is_known)?;
    let carried = directory.carry()?;
    let started = RunStarted {
        schema_version: LOG_VERSION,
        run: directory.run.clone(),
        kind: opened.kind,
        experiment: directory.experiment(),
        roots: Some(roots(&opened.project)),
        workspace: opened.project.shown(opened.workspace.path()).to_string_lossy().into_owned(),
        workspace_name: opened.baseline.manifest.name.clone(),
        baseline: opened.baseline.id,
        prompt_letters: opened.baseline.system_prompt().chars().count(),
        agents: settings.agents(opened.kind),
        horizon,
        settings: serde_json::to_value(settings).map_err(|error| {
            Failure::internal(Problem::error(format!("the settings cannot be kept: {error}")))
        })?,
        division,
        tool_version: VERSION.to_owned(),
    };
    let log =
        Log::create(directory.path(), context.redactor(), Event::RunStarted(Box::new(started.clone())))?;
    let told = Told { log, state: State::new(started), resumed: Vec::new() };
    carry_out(context, opened, template, arguments, (directory, carried), told)
}

/// The directories of a run, as its log records them.
pub(crate) fn roots(project: &Project) -> Roots {
    let shown = |setting| project.shown(&project.settings.path(setting)).to_string_lossy().into_owned();
    Roots { tasks: shown(Setting::Tasks), ledger: shown(Setting::Ledger) }
}

pub(crate) fn find_template(opened: &Opened) -> Result<Option<Template>, Failure> {
    let Some(told) = &opened.settings.generate else { return Ok(None) };
    let library = Library::load(&[opened.project.settings.path(Setting::Templates)]);
    match library.find(&told.template) {
        Ok(template) => {
            let unknown = told.difficulties.iter().find(|tier| !template.tiers.contains_key(*tier));
            if let Some(tier) = unknown {
                let known: Vec<&str> = template.tiers.keys().map(String::as_str).collect();
                let what = format!("`{}` has no tier `{}`", template.path(), text::printable(tier));
                let problem = Problem::error(what).id(FAMILY.number(47));
                return Err(problem.fix(format!("choose {}", text::one_of(&known))).into());
            }
            Ok(Some(template.clone()))
        }
        Err(problem) => {
            let mut problems = vec![*problem];
            problems.extend(library.problems.into_iter().filter(Problem::counts));
            Err(problems.into())
        }
    }
}

/// What a run needs besides its log.
pub(crate) struct PreparedEvolution {
    pub(crate) models: Models,
    pub(crate) supply: Supply,
    pub(crate) plan: Plan,
    pub(crate) frame: Frame,
    pub(crate) judge: Judge,
    /// The terms of this invocation, over those of earlier sessions.
    pub(crate) terms: Terms,
}

/// Checks whether a run could begin, before it gets a name.
pub(crate) fn check(
    context: &Context,
    opened: &Opened,
    template: Option<Template>,
    arguments: &CarryArguments,
    fewest: usize,
) -> Result<PreparedEvolution, Failure> {
    let tasks = RunTasks { template, division: None, run: "check", directory: PathBuf::new() };
    let prepared = prepare(context, opened, arguments, tasks)?;
    enough_for_tests(&prepared.supply, &opened.settings, fewest)?;
    Ok(prepared)
}

/// A test uses each task once, so with too few tasks even the best candidate could not be accepted.
pub(crate) fn enough_for_tests(supply: &Supply, settings: &Settings, fewest: usize) -> Result<(), Failure> {
    let Some(count) = supply.tasks_of_tests().filter(|count| *count < fewest) else { return Ok(()) };
    let what = format!(
        "nothing could ever be accepted: of the selected tasks {} for tests",
        match count {
            1 => "1 is".to_owned(),
            count => format!("{count} are"),
        }
    );
    let why = format!(
        "a test has each task once; with {} at an error rate of {}, even a change from 0 to 1 on every task needs {fewest}",
        text::count(settings.horizon() as usize, "test"),
        settings.acceptance.error_rate
    );
    let fix = format!(
        "select at least {}, let fresh ones be made with `generate`, or raise the error rate",
        text::count(selected_for(fewest, settings.holdout), "task")
    );
    Err(Problem::error(what).id(FAMILY.number(22)).why(why).fix(fix).into())
}

pub(crate) struct RunTasks<'a> {
    pub(crate) template: Option<Template>,
    /// How selected tasks are divided; absent if they are not divided yet.
    pub(crate) division: Option<Division>,
    pub(crate) run: &'a str,
    /// Directory for generated tasks.
    pub(crate) directory: PathBuf,
}

/// Checks that everything that a run needs is available.
pub(crate) fn prepare(
    context: &Context,
    opened: &Opened,
    arguments: &CarryArguments,
    tasks: RunTasks<'_>,
) -> Result<PreparedEvolution, Failure> {
    let RunTasks { template, division, run, directory } = tasks;
    let Opened { project, settings, kind, baseline, .. } = opened;
    let experiment = Name::nearest(&format!("{}-{run}", kind.name()));
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let said =
        Terms { concurrency: arguments.concurrency, caps: arguments.budget.clone(), ..Terms::default() };
    let terms = over(&said, &Terms::kept(&ledger.experiment(&experiment))?);
    let unpriced = terms.caps.unpriced();
    let models = models::open(context, project, &arguments.tape, RetryPolicy::default(), unpriced)?;
    let places = planning::places(project);
    let frame = Frame {
        experiment_id: experiment,
        name: Some(format!(
            "{} of {}",
            if *kind == Kind::Swarm { "swarm" } else { "evolution" },
            baseline.manifest.name
        )),
        conditions: settings.conditions(),
        tool_version: VERSION.to_owned(),
    };
    let agent = planned(&places, &settings.solver, baseline)?;
    // A problem that would prevent every step from being planned prevents the run from beginning.
    let mut problems = frame.step(&[], Vec::new(), vec![agent.clone()], 1).err().unwrap_or_default();
    let plan = frame.opening(vec![agent]);
    let agents = agents::prepare(&plan, &project.root, &models.client).unwrap_or_else(|found| {
        problems.extend(found);
        Vec::new()
    });
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let judge = judge(context, project, &plan)?;
    let dollars =
        |limit: Option<f64>| Budget { money: limit.and_then(MicroDollars::from_dollars), tokens: None };
    let all = models.run.open(opened.kind.name(), dollars(settings.max_cost_usd));
    let trials = all.open(AccountKind::Evaluations, dollars(settings.eval_budget_usd));
    let trials = trials.open(AccountKind::Trial, planning::trial_budget(project));
    for agent in &agents {
        let model = agent.model.as_ref();
        problems.extend(model.and_then(|model| unpayable(model, Some(&agent.parameters.sampling), &trials)));
    }
    let voices = settings.evolvers.iter().chain(&settings.classifier);
    for voice in voices {
        let found = match models.client.model(&voice.model, None) {
            Ok(model) => unpayable(&model, None, &all),
            Err(error) => Some(error.into()),
        };
        if let Some(problem) = found
            && !problems.iter().any(|known| known.what == problem.what)
        {
            problems.push(problem);
        }
    }
    let supply = Supply::open(
        places,
        settings,
        division,
        // Engines are isolated in the same way as trials.
        template.map(|template| (template, engines(context, &SandboxArgument::from(settings.sandbox)))),
        run,
        directory,
    );
    let mut supply = match supply {
        Ok(supply) if problems.is_empty() => supply,
        Ok(_) => return Err(problems.into()),
        Err(found) => return Err(problems.into_iter().chain(found).collect::<Vec<_>>().into()),
    };
    // Lessons from one workspace may have been copied into another, so all runs are compared.
    let mut others = RunDirectory::of_both_kinds(&feedback(project))?;
    others.retain(|other| other.kind != opened.kind || other.run.as_str() != run);
    supply.compare_with(&others);
    Ok(PreparedEvolution { models, supply, plan, frame, judge, terms })
}

#[derive(Serialize)]
pub(crate) struct Preview<'a> {
    dry_run: bool,
    kind: Kind,
    workspace: PathBuf,
    baseline: Name,
    horizon: u32,
    needed_evidence: f64,
    fewest_tasks: usize,
    /// Number of different tasks for tests; absent if tasks are generated on the fly.
    tasks_of_tests: Option<usize>,
    tasks_kept: usize,
    trials_at_most: u64,
    settings: &'a Settings,
}

pub(crate) fn preview(
    context: &Context,
    opened: &Opened,
    template: Option<Template>,
    arguments: &CarryArguments,
    fewest: usize,
) -> Result<Outcome, Failure> {
    let prepared = check(context, opened, template, arguments, fewest)?;
    let supply = &prepared.supply;
    let settings = &opened.settings;
    let horizon = settings.horizon();
    let cycles = u64::from(horizon);
    let batch = u64::from(settings.batch_size);
    let most = settings.acceptance.max_tasks as usize;
    let most = supply.tasks_of_tests().map_or(most, |count| count.min(most));
    // Both the first candidate and the best one are tried on the tasks that are kept for the end.
    let for_the_end = 2 * supply.tasks_kept() as u64;
    let data = Preview {
        dry_run: true,
        kind: opened.kind,
        workspace: opened.workspace.path().to_owned(),
        baseline: opened.baseline.name(),
        horizon,
        needed_evidence: f64::from(horizon) / settings.acceptance.error_rate,
        fewest_tasks: fewest,
        tasks_of_tests: supply.tasks_of_tests(),
        tasks_kept: supply.tasks_kept(),
        trials_at_most: cycles * 2 * (batch + most as u64) + for_the_end,
        settings,
    };
    let outcome = Outcome::new(context.format, &data, || {
        let solver = &settings.solver;
        let model = solver.model.as_deref().unwrap_or("no model");
        let mut shown = format!(
            "workspace {} at {}\n",
            opened.project.shown(opened.workspace.path()).display(),
            data.baseline
        );
        shown.push_str(&format!(
            "solver {} with {model}; evolver {}\n",
            solver.harness.name(),
            settings.evolvers.first().map_or("none", |voice| voice.model.as_str())
        ));
        shown.push_str(&format!(
            "{} of {} each, strategy {}\n",
            text::count(horizon as usize, "cycle"),
            text::count(settings.batch_size as usize, "task"),
            settings.strategy.name()
        ));
        shown.push_str(&format!(
            "accepted if better by more than {} at an error rate of {} over the run: evidence of {} within {}; {fewest} at least\n", settings.acceptance.improvement_threshold, settings.acceptance.error_rate, rounded(data.needed_evidence, 0), text::count(most, "task")));
        if let Some(count) = data.tasks_of_tests {
            shown.push_str(&tasks_text(count, data.tasks_kept, fewest));
        }
        shown.push_str(&format!("at most {} trials", data.trials_at_most));
        shown.push_str(&match (settings.max_cost_usd, settings.max_tokens) {
            (Some(dollars), Some(tokens)) => format!(", ${dollars} and {tokens} tokens\n"),
            (Some(dollars), None) => format!(" and ${dollars}\n"),
            (None, Some(tokens)) => format!(" and {tokens} tokens\n"),
            (None, None) => ", without a budget\n".to_owned(),
        });
        shown
    })?;
    let mut problems = prepared.models.problems.clone();
    problems.extend(prepared.supply.remarks.iter().cloned());
    // Warnings do not stop a run, so they do not make a dry run fail either.
    let outcome = outcome.problems(problems).exit(Exit::Success);
    Ok(outcome.remark("Nothing was run and nothing was written."))
}

/// What selected tasks are used for. Showing a gain of 0.5 needs about three times as many pairs as a gain of 1.
pub(crate) fn tasks_text(tests: usize, kept: usize, fewest: usize) -> String {
    let few = if tests < fewest.saturating_mul(3) { ": enough to show large gains only" } else { "" };
    format!("{} for tests, {kept} kept for the end{few}\n", text::count(tests, "selected task"))
}
