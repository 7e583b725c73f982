//! Carries out a run of `evolve` or `swarm`: puts together everything it needs, runs it until it ends or the user stops
//! it, and reports the result.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use aec_author::template::Template;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_evolve::arena::Arena;
use aec_evolve::cycle::{Engine, Kept};
use aec_evolve::event::{Event, Kind, Taken};
use aec_evolve::evolution::{self, Unfinished};
use aec_evolve::journal::Journal;
use aec_evolve::log::Log;
use aec_evolve::run::{Carried, RunDirectory, Settings};
use aec_evolve::state::State;
use aec_evolve::view::View;
use aec_evolve::{FAMILY, swarm};
use aec_ledger::layout::Ledger;
use aec_model::meter::{Account, AccountKind, Amount, Budget};
use aec_model::money::MicroDollars;
use aec_run::campaign::{Campaign, StepRunner, StepSetup};
use aec_run::control::{Control, Wish};
use aec_run::event::StopReason;
use aec_run::resume::Past;
use aec_run::session::Beginning;
use aec_run::terms::{Caps, Terms};
use serde::Serialize;

use crate::commands::evolve::begin::{Opened, PreparedEvolution, RunTasks, prepare};
use crate::commands::evolve::words::view_text;
use crate::commands::evolve::{CarryArguments, short};
use crate::commands::models::{self, Models};
use crate::commands::planning;
use crate::commands::run::{listen, shared_with};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;
use crate::progress::events::EventLog;
use crate::progress::evolve::EvolveProgress;
use crate::signals::Signals;
use crate::table::paragraph;

/// How often the run looks for requests to stop.
const TICK: Duration = Duration::from_millis(200);
/// Most attempts at a trial whose fault is not the agent's and may be temporary.
const MAX_ATTEMPTS: u32 = 3;

/// The log of a run, and the state that it describes.
pub(crate) struct Told {
    pub(crate) log: Log,
    pub(crate) state: State,
    /// The events that record the resumption and its budget. The state includes them already. They are written to the
    /// log only once nothing can refuse the run any more, so that until then the log says why it stopped before.
    pub(crate) resumed: Vec<Event>,
}

impl Told {
    /// The journal of the run, with the new events written to the log.
    fn journal(mut self, directory: &RunDirectory, progress: &EvolveProgress) -> std::io::Result<Journal> {
        for event in self.resumed {
            self.log.add(event)?;
        }
        Ok(Journal::new(self.log, self.state, directory.path(), Some(progress.of_events())))
    }
}

/// Carries a run out, from its beginning or from where it stopped.
pub(crate) fn carry_out(
    context: &Context,
    opened: Opened,
    template: Option<Template>,
    arguments: &CarryArguments,
    (directory, carried): (RunDirectory, Carried),
    told: Told,
) -> Result<Outcome, Failure> {
    let tasks = RunTasks {
        template,
        division: told.state.started.division.clone(),
        run: directory.run.as_str(),
        directory: directory.tasks(),
    };
    let prepared = prepare(context, &opened, arguments, tasks)?;
    let PreparedEvolution { models, supply, plan, frame, judge, terms } = prepared;
    let Opened { project, workspace, held, mut settings, kind, .. } = opened;
    settings.concurrency = terms.concurrency.unwrap_or(settings.concurrency);
    let workspace_shown = project.shown(workspace.path()).to_owned();
    let runtime = models::runtime()?;
    let signals = Signals::catch_in(&runtime)?;
    let mut problems = models.problems.clone();
    problems.extend(supply.remarks.iter().cloned());
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let jobs = project.settings.path(Setting::Jobs);
    let beginning = Beginning {
        ledger: &ledger,
        jobs: &jobs,
        plan: &plan,
        shard: None,
        extend: true,
        models: arguments.tape.name(),
        terms: &kept(terms, &settings),
        named: &std::collections::BTreeSet::new(),
        own: None,
    };
    let (campaign, past) = Campaign::begin(&beginning)?;
    let (account, trial_account) = accounts(&project, &settings, &models, &past, &told.state);
    let taken_before = Taken { cost_usd: past.spent.money.dollars(), tokens: past.spent.tokens };
    let spent_before = taken_before.cost_usd + told.state.voices.usd;
    let control = Control::default();
    let command = match kind {
        Kind::Evolution => "evolve",
        Kind::Swarm => "swarm",
    };
    let mut progress = EvolveProgress::new(context, EventLog::open(context, &arguments.events, command)?)?;
    let shared = shared_with(
        context,
        &project,
        &plan,
        (models.meter.clone(), trial_account.clone()),
        (judge, Vec::new()),
        control.clone(),
    );
    let steps = Arc::new(StepRunner::new(StepSetup {
        campaign,
        shared,
        past,
        concurrency: settings.concurrency,
        max_attempts: MAX_ATTEMPTS,
        observer: Some(progress.of_trials()),
    }));
    let arena = Arena {
        steps: Arc::clone(&steps),
        places: planning::places(&project),
        frame,
        solver: settings.solver.clone(),
        client: models.client.clone(),
        account: trial_account,
        trial_budget: planning::trial_budget(&project),
        contents: ledger.contents(),
    };
    let journal = Arc::new(told.journal(&directory, &progress)?);
    let engine = Arc::new(Engine {
        settings,
        directory: directory.clone(),
        workspace,
        supply,
        arena,
        client: models.client,
        account,
        spent_before,
        taken_before,
        control: control.clone(),
        journal,
        kept: Kept::default(),
    });
    let ended = runtime.block_on(async {
        tokio::spawn(listen(signals, control.clone()));
        tokio::spawn(watch(directory.clone(), Arc::downgrade(&steps), control));
        match kind {
            Kind::Evolution => evolution::carry_out(&engine).await,
            Kind::Swarm => swarm::carry_out(&engine).await,
        }
    });
    progress.finish();
    runtime.shutdown_timeout(Duration::from_secs(5));
    let stopped = ended.as_ref().err().map(|unfinished| {
        if unfinished.asked { StopReason::Asked } else { StopReason::Faults(unfinished.reason.clone()) }
    });
    engine.workspace.prune_trees().ok();
    problems.extend(hidden_best(&engine, &workspace_shown));
    drop(engine);
    close(steps, stopped)?;
    drop((held, carried));
    conclude(context, &directory, ended, problems)
}

/// The accounts for everything and for trials alone, reduced by what earlier sessions spent.
fn accounts(
    project: &Project,
    settings: &Settings,
    models: &Models,
    past: &Past,
    state: &State,
) -> (Account, Account) {
    let amount = |dollars: Option<f64>| dollars.and_then(MicroDollars::from_dollars);
    let set = models::experiment_budget(project);
    let whole = Budget {
        money: least(amount(settings.max_cost_usd), set.money),
        tokens: least(settings.max_tokens, set.tokens),
    };
    let voices =
        Amount { money: amount(Some(state.voices.usd)).unwrap_or_default(), tokens: state.voices.tokens };
    models.run.limit(whole, past.spent.plus(voices));
    let trials = models.run.open(AccountKind::Evaluations, Budget::UNLIMITED);
    trials.limit(Budget { money: amount(settings.eval_budget_usd), tokens: None }, past.spent);
    (models.run.clone(), trials)
}

/// The terms that the experiment records: the log of the run decides its budget.
fn kept(terms: Terms, settings: &Settings) -> Terms {
    let caps = Caps {
        max_cost: settings.max_cost_usd.and_then(|dollars| dollars.to_string().parse().ok()),
        max_total_tokens: settings.max_tokens.and_then(|tokens| tokens.to_string().parse().ok()),
        ..terms.caps
    };
    Terms { concurrency: Some(settings.concurrency), caps, ..terms }
}

/// The smaller of two limits; an absent limit does not count.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Closes the steps. Cancelled attempts may hold them for a moment longer.
fn close(mut steps: Arc<StepRunner>, stopped: Option<StopReason>) -> Result<(), Failure> {
    for _ in 0..100 {
        match Arc::try_unwrap(steps) {
            Ok(only) => return Ok(only.close(stopped)?),
            Err(shared) => {
                steps = shared;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    // Everything recorded is safe; the next session finishes the rest.
    Ok(())
}

/// A run does not overwrite files that the user edits meanwhile, so the workspace may not hold the best candidate.
fn hidden_best(engine: &Engine, workspace: &Path) -> Option<Problem> {
    let (best, baseline) = engine.look(|state| (state.champion, state.started.baseline));
    if best == baseline || engine.workspace.here().is_ok_and(|here| here.id == best) {
        return None;
    }
    let problem = Problem::warning("the workspace does not hold the best candidate").id(FAMILY.number(19));
    let shown = workspace.display();
    Some(
        problem
            .why("it was edited while the run went on, and the edited version is untested")
            .fix(format!("take the best with `aec-bench evolve rollback {shown} {}`", short(best)))
            .in_file(workspace),
    )
}

/// Passes on requests of `stop` commands.
async fn watch(directory: RunDirectory, steps: Weak<StepRunner>, control: Control) {
    loop {
        let wish = directory.wish().max(steps.upgrade().map_or(Wish::GoOn, |steps| steps.wish()));
        if wish > Wish::GoOn {
            control.wish_for(wish);
        }
        tokio::time::sleep(TICK).await;
    }
}

#[derive(Serialize)]
struct Data<'a> {
    #[serde(flatten)]
    view: &'a View,
    directory: PathBuf,
}

fn conclude(
    context: &Context,
    directory: &RunDirectory,
    ended: Result<(), Unfinished>,
    mut problems: Vec<Problem>,
) -> Result<Outcome, Failure> {
    let view = View::read(directory)?;
    let data = Data { view: &view, directory: directory.path().to_owned() };
    let outcome = Outcome::new(context.format, &data, || paragraph(&view_text(&view)))?;
    let resume = format!("aec-bench {} resume {}", directory.kind.name(), directory.run);
    match ended {
        // Warnings about the tasks are reported, but a completed run still succeeds.
        Ok(()) => Ok(outcome.problems(problems).exit(Exit::Success)),
        Err(unfinished) => {
            let stopped =
                Problem::error(format!("the run stopped: {}", unfinished.reason)).id(FAMILY.number(60));
            problems.extend(unfinished.problems);
            problems.push(stopped.fix(if unfinished.unpaid {
                format!("go on with `{resume}` and a higher --max-cost or --max-total-tokens")
            } else {
                format!("go on with `{resume}`")
            }));
            let outcome = outcome.problems(problems);
            Ok(if unfinished.asked { outcome.exit(Exit::Interrupted) } else { outcome })
        }
    }
}
