//! Carrying out a plan through Harbor: jobs are staged and run by its own program, every trial that ends is judged and
//! recorded at once, and what a job leaves unfinished stays to be done.

mod take;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aec_base::env::Env;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_ledger::layout::Ledger;
use aec_ledger::writer::{Writer, WriterSetup};
use aec_model::money::MicroDollars;
use aec_run::control::Wish;
use aec_run::dispatch::{Options, index_listener, to_do};
use aec_run::event::{RunEnded, RunEvent, RunStarted, Stage, StopReason, Tick, TrialRef};
use aec_run::forecast::forecasts;
use aec_run::plan::PlannedTrial;
use aec_run::session::{Past, PastTrial, Session};
use aec_run::tally::tallies;
use aec_run::task::PreparedTask;
use aec_run::trial::Shared;
use aec_task::task::Task;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::take::Taken;
use crate::FAMILY;
use crate::agent::HarborAgent;
use crate::job::{HARBOR, JobSetup, Staged, Wanted, groups};
use crate::output::{Tail, last_lines};
use crate::program::{Environment, Program, Start};

/// Time between looks at what a job tells.
const TICK: Duration = Duration::from_millis(200);
/// Trials that are judged at once.
const JUDGING: usize = 4;

/// A plan that is about to be carried out.
pub struct Carry {
    /// What all attempts share.
    pub shared: Arc<Shared>,
    /// The tasks of the plan, in its order.
    pub tasks: Vec<Task>,
    /// The trials of this process.
    pub trials: Vec<PlannedTrial>,
    /// The ledger.
    pub ledger: Ledger,
    /// The root of `jobs`.
    pub jobs: PathBuf,
    /// The session.
    pub session: Session,
    /// What earlier sessions did.
    pub past: Past,
    /// How it is carried out.
    pub options: Options,
    /// Harbor.
    pub harbor: Harbor,
}

/// Harbor, as this run uses it.
pub struct Harbor {
    /// Its program.
    pub program: Program,
    /// What trials run in.
    pub environment: Environment,
    /// The agents of the plan, in its order.
    pub agents: Vec<HarborAgent>,
    /// The environment of the project.
    pub env: Env,
    /// Further variables for Harbor.
    pub variables: Vec<(String, String)>,
}

/// Carries out a plan to its end or until it is stopped. The problems are what else is to be told.
pub async fn execute(
    carry: Carry,
    observe: &mut (dyn FnMut(&RunEvent) + Send),
) -> Result<(RunEnded, Vec<Problem>), Vec<Problem>> {
    let storage = |error: &dyn std::fmt::Display| {
        let problem = Problem::error(format!("the run cannot go on: {error}"));
        vec![problem.fix("check the disk, then resume the run")]
    };
    let setup = WriterSetup {
        ledger: carry.ledger.clone(),
        jobs: carry.jobs.clone(),
        experiment: carry.shared.plan.experiment_id.clone(),
        session: carry.session.id.clone(),
        plan: carry.shared.plan.digest,
    };
    let writer = Writer::open(setup, index_listener(&carry.ledger)).map_err(|error| storage(&error))?;
    let mut desk = Desk::new(carry, writer);
    let left_over = desk.left_over()?;
    for job in left_over {
        desk.sweep(&job, observe).await;
    }
    desk.before = desk.carry.past.trials.clone();
    let mut wanted = desk.to_do();
    observe(&RunEvent::Started(desk.started(wanted.len())));
    desk.has_begun = true;
    while !wanted.is_empty() && desk.stop.is_none() {
        for group in groups(&desk.carry.trials, &wanted) {
            if desk.stop.is_none() {
                desk.run_job(&group, observe).await?;
            }
        }
        wanted = std::mem::take(&mut desk.again);
    }
    desk.end(observe).map_err(|error| storage(&error))
}

struct Desk {
    carry: Carry,
    writer: Arc<Writer>,
    prepared: Arc<Mutex<HashMap<usize, Arc<PreparedTask>>>>,
    /// Directories of trials that were taken or are being taken.
    seen: HashSet<PathBuf>,
    /// Records on their way.
    taking: JoinSet<Option<Taken>>,
    places: Arc<tokio::sync::Semaphore>,
    /// What earlier sessions did.
    before: HashMap<Name, PastTrial>,
    /// Trials to be tried again.
    again: Vec<Wanted>,
    problems: Vec<Problem>,
    stop: Option<StopReason>,
    begun: Instant,
    has_begun: bool,
    jobs_begun: usize,
    running: HashSet<Name>,
    /// Places of trials, by their ids.
    by_id: HashMap<Name, usize>,
    recorded: usize,
    spent: MicroDollars,
    tokens: u64,
    calls: u64,
    faults_in_a_row: usize,
}

impl Desk {
    fn new(carry: Carry, writer: Writer) -> Self {
        Self {
            writer: Arc::new(writer),
            prepared: Arc::default(),
            seen: HashSet::new(),
            taking: JoinSet::new(),
            places: Arc::new(tokio::sync::Semaphore::new(JUDGING)),
            before: HashMap::new(),
            again: Vec::new(),
            problems: Vec::new(),
            stop: None,
            begun: Instant::now(),
            has_begun: false,
            jobs_begun: 0,
            running: HashSet::new(),
            by_id: carry.trials.iter().enumerate().map(|(at, trial)| (trial.id.clone(), at)).collect(),
            recorded: 0,
            spent: MicroDollars::ZERO,
            tokens: 0,
            calls: 0,
            faults_in_a_row: 0,
            carry,
        }
    }

    fn place(&self) -> PathBuf {
        self.carry.shared.jobs.join(HARBOR)
    }

    /// Jobs of earlier sessions that may have results which nobody recorded. One that still runs is in the way.
    fn left_over(&self) -> Result<Vec<Staged>, Vec<Problem>> {
        let Ok(entries) = fs_err::read_dir(self.place()) else { return Ok(Vec::new()) };
        let mut directories: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        directories.sort();
        let jobs: Vec<Staged> = directories.iter().filter_map(|directory| Staged::read(directory)).collect();
        if let Some((job, pid)) = jobs.iter().find_map(|job| Some((job, job.is_running()?))) {
            let what =
                format!("the Harbor job `{}` of an earlier run is still running as process {pid}", job.name);
            let problem = Problem::error(what).id(FAMILY.number(36)).why("its trials would be run twice");
            return Err(vec![
                problem.fix("wait for it, or end that process; what it finished is then recorded"),
            ]);
        }
        Ok(jobs)
    }

    fn to_do(&self) -> Vec<Wanted> {
        to_do(&self.carry.trials, &self.carry.past, &self.carry.options.rerun)
            .into_iter()
            .map(|(trial, attempt)| Wanted { trial, attempt })
            .collect()
    }

    fn started(&self, to_run: usize) -> RunStarted {
        let plan = &self.carry.shared.plan;
        let wanted = self.to_do();
        let wanted: Vec<&PlannedTrial> = wanted.iter().map(|one| &self.carry.trials[one.trial]).collect();
        RunStarted {
            experiment_id: plan.experiment_id.clone(),
            session: self.carry.session.id.clone(),
            planned: self.carry.trials.len(),
            done_before: self.carry.trials.len() - to_run,
            interrupted: 0,
            to_run,
            agents: plan.agents.iter().map(|agent| agent.name.clone()).collect(),
            concurrency: self.carry.options.terms.concurrency(),
            max_cost: None,
            forecasts: forecasts(plan, &self.carry.tasks, &self.carry.shared.agents, &wanted),
        }
    }

    fn setup(&self) -> JobSetup<'_> {
        JobSetup {
            plan: &self.carry.shared.plan,
            tasks: &self.carry.tasks,
            agents: &self.carry.harbor.agents,
            trials: &self.carry.trials,
            environment: &self.carry.harbor.environment,
            concurrency: self.carry.options.terms.concurrency(),
            model_concurrency: self.carry.options.terms.model_concurrency(),
        }
    }

    /// Stages one job, runs it, and records what it finishes.
    async fn run_job(
        &mut self,
        wanted: &[Wanted],
        observe: &mut (dyn FnMut(&RunEvent) + Send),
    ) -> Result<(), Vec<Problem>> {
        self.jobs_begun += 1;
        let session = &self.carry.session.id;
        let directory = self.place().join(format!("{session}-{}", self.jobs_begun));
        let name = format!("{}-{session}-{}", self.carry.shared.plan.experiment_id, self.jobs_begun);
        let job = self.setup().stage(&directory, Name::nearest(&name), wanted)?;
        let harbor = &self.carry.harbor;
        let start = Start { directory: &job.directory, env: &harbor.env, variables: &harbor.variables };
        let spawned = harbor.program.command(&start).and_then(|mut command| command.spawn());
        let mut child = spawned.map_err(|error| {
            let problem = Problem::error(format!("Harbor cannot be started: {error}")).id(FAMILY.number(20));
            vec![problem.fix("check the program on PATH").in_file(&harbor.program.path)]
        })?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            fs_err::write(job.directory.join("pid"), format!("{}\n", pid.as_raw_nonzero())).ok();
        }
        let mut tail = Tail::new(job.directory.join("progress.jsonl"));
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut told = Wish::GoOn;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status,
                Some(taken) = self.taking.join_next() => self.took(taken.ok().flatten(), observe),
                _ = ticks.tick() => {
                    self.hear(&job, &mut tail, observe);
                    observe(&RunEvent::Tick(self.tick()));
                    self.look_at_the_clock(observe);
                    told = self.pass_on(told, pid);
                }
            }
        };
        fs_err::remove_file(job.directory.join("pid")).ok();
        self.hear(&job, &mut tail, observe);
        self.sweep(&job, observe).await;
        let code = status.ok().and_then(|status| status.code());
        self.after(&job, code, observe);
        self.running.clear();
        Ok(())
    }

    /// Passes wishes on: Harbor knows only to cancel, and then to be killed.
    fn pass_on(&mut self, told: Wish, pid: Option<Pid>) -> Wish {
        let wish = match (&self.stop, self.carry.shared.control.wish()) {
            (Some(_), Wish::GoOn) => Wish::Finish,
            (_, wish) => wish,
        };
        let Some(pid) = pid.filter(|_| wish > told) else { return told };
        let sent = match wish {
            Wish::GiveUp => kill_process_group(pid, Signal::KILL),
            _ => kill_process(pid, Signal::INT),
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "Harbor did not hear that it is to stop");
        }
        wish
    }

    fn look_at_the_clock(&mut self, observe: &mut (dyn FnMut(&RunEvent) + Send)) {
        match self.carry.session.wish() {
            Wish::GoOn => {}
            wish => self.carry.shared.control.wish_for(wish),
        }
        match self.carry.shared.control.wish() {
            Wish::GoOn => {}
            Wish::Finish => self.stop_for(StopReason::Asked, observe),
            Wish::GiveUp => self.stop_for(StopReason::Insisted, observe),
        }
        if self.carry.options.terms.max_time().is_some_and(|limit| self.begun.elapsed() >= limit) {
            self.stop_for(StopReason::Time, observe);
        }
    }

    fn stop_for(&mut self, reason: StopReason, observe: &mut (dyn FnMut(&RunEvent) + Send)) {
        let insists = reason == StopReason::Insisted && self.stop != Some(StopReason::Insisted);
        if self.stop.is_none() || insists {
            if self.has_begun {
                observe(&RunEvent::Stopping(reason.clone()));
            }
            self.stop = Some(reason);
        }
    }

    /// Hears what the plugin told since the last time.
    fn hear(&mut self, job: &Staged, tail: &mut Tail, observe: &mut (dyn FnMut(&RunEvent) + Send)) {
        let lines = tail.lines();
        if lines.is_empty() {
            return;
        }
        let index = job.index();
        for line in lines {
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
            let Some(noted) = index.find(text("task"), text("source"), text("agent")) else { continue };
            let Some(wanted) = self.wanted(&noted.trial_id, noted.attempt) else { continue };
            let trial = self.reference(wanted);
            match text("event") {
                "start" => {
                    self.running.insert(trial.trial_id.clone());
                    observe(&RunEvent::TrialStarted(trial));
                }
                "environment-start" => observe(&RunEvent::Stage(trial, Stage::Staged)),
                "agent-start" => observe(&RunEvent::Stage(trial, Stage::Running)),
                "agent-end" => observe(&RunEvent::Stage(trial, Stage::Frozen)),
                "end" | "cancel" => {
                    let name = text("trial");
                    let plain = !name.is_empty() && !name.contains('/') && name != "..";
                    let directory = job.job_directory().join(name);
                    // The result is written about now; what is not there yet is found by the sweep.
                    if plain && directory.join(crate::result::RESULT).is_file() {
                        self.take(&index, &directory);
                    }
                }
                _ => {}
            }
        }
    }

    /// Tells of a job that did not do all its trials. Nothing is made up for them.
    fn after(&mut self, job: &Staged, code: Option<i32>, observe: &mut (dyn FnMut(&RunEvent) + Send)) {
        let has = |noted: &&crate::job::NotedTrial| {
            let past = self.carry.past.trials.get(&noted.trial_id);
            past.is_none_or(|past| past.attempt < noted.attempt)
        };
        let missing = job.trials().iter().filter(has).count();
        if missing == 0 || self.stop.is_some() {
            return;
        }
        let ended =
            code.map_or_else(|| "was killed".to_owned(), |code| format!("ended with exit code {code}"));
        let log = job.directory.join("harbor.log");
        let what = format!("Harbor {ended} and left {} without a result", text::count(missing, "trial"));
        let said = self.carry.shared.redactor.scrub(last_lines(&log));
        let problem = Problem::error(what.clone()).id(FAMILY.number(30)).in_file(&log);
        let problem = if said.is_empty() { problem } else { problem.why(format!("it said: {said}")) };
        self.problems
            .push(problem.fix("see its log; what finished is recorded, `run --resume` does the rest"));
        self.stop_for(StopReason::Faults(what), observe);
    }

    /// The trial of an id in this run, if the try at it is one that is wanted.
    fn wanted(&self, id: &Name, attempt: u32) -> Option<Wanted> {
        let trial = *self.by_id.get(id)?;
        let last = self.carry.past.trials.get(id).map_or(0, |past| past.attempt);
        (attempt > last).then_some(Wanted { trial, attempt })
    }

    fn reference(&self, wanted: Wanted) -> Arc<TrialRef> {
        let plan = &self.carry.shared.plan;
        let trial = &self.carry.trials[wanted.trial];
        Arc::new(TrialRef {
            trial_id: trial.id.clone(),
            task_id: plan.tasks[trial.task].task_id.clone(),
            agent: plan.agents[trial.agent].name.clone(),
            repetition: trial.repetition,
            attempt: wanted.attempt,
        })
    }

    fn tick(&self) -> Tick {
        Tick {
            spent: self.spent,
            reserved: MicroDollars::ZERO,
            tokens: self.tokens,
            open_calls: 0,
            running: self.running.len(),
        }
    }

    fn end(mut self, observe: &mut (dyn FnMut(&RunEvent) + Send)) -> io::Result<(RunEnded, Vec<Problem>)> {
        let writer =
            Arc::into_inner(self.writer).ok_or_else(|| io::Error::other("an attempt is still under way"))?;
        let closed = writer.close();
        let past = &self.carry.past.trials;
        let is_done =
            |trial: &PlannedTrial| past.get(&trial.id).is_some_and(|past| past.outcome.is_settled());
        let unfinished = !self.carry.trials.iter().all(is_done);
        let stopped =
            self.stop.take().filter(|reason| unfinished || matches!(reason, StopReason::Storage(_)));
        let recorded = closed.as_ref().map_or(self.recorded as u64, |closed| closed.records);
        self.carry.session.end(recorded, stopped.clone())?;
        if !matches!(stopped, Some(StopReason::Storage(_))) {
            closed?;
        }
        let plan = &self.carry.shared.plan;
        let directory = self.carry.ledger.experiment(&plan.experiment_id);
        let latest = |trial: &PlannedTrial| past.get(&trial.id).map(|latest| (latest.outcome, latest.reward));
        let (agents, all) = tallies(plan, self.carry.trials.iter().map(|trial| (trial, latest(trial))));
        let ended = RunEnded {
            experiment_id: plan.experiment_id.clone(),
            agents,
            all,
            recorded: self.recorded,
            spent: self.spent,
            tokens: self.tokens,
            calls: self.calls,
            unsettled_calls: 0,
            stopped,
            head: directory.head().ok().flatten(),
            duration: self.begun.elapsed(),
        };
        observe(&RunEvent::Ended(Box::new(ended.clone())));
        Ok((ended, self.problems))
    }
}
