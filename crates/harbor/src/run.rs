//! Carries out a plan through Harbor: stages jobs, runs them with Harbor's own program, judges and records every trial
//! as soon as it ends. Trials that a job leaves unfinished remain to be done.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aec_base::env::Env;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_ledger::writer::CommitError;
use aec_run::campaign::{Course, Executor, Finished, Lost, Waiting};
use aec_run::control::Wish;
use aec_run::event::{RunEvent, Stage, StopReason};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tokio::process::Child;
use tokio::task::JoinSet;

use crate::FAMILY;
use crate::agent::HarborAgent;
use crate::import::planned::{Came, record_of};
use crate::job::{HARBOR, Index, JobSetup, NotedTrial, Staged, groups};
use crate::output::{Tail, last_lines};
use crate::program::{Environment, Program, Start};
use crate::result::{Job, RESULT, Trial, TrialError};

/// Trials that are judged concurrently.
const JUDGING: usize = 4;

pub struct Harbor {
    pub program: Program,
    pub environment: Environment,
    /// In the plan's order.
    pub agents: Vec<HarborAgent>,
    pub env: Env,
    /// Additional variables for Harbor.
    pub variables: Vec<(String, String)>,
}

/// Runs the attempts of a run with Harbor's program.
pub struct HarborRun {
    harbor: Harbor,
    /// Trials of jobs that are still to be run.
    groups: VecDeque<Vec<Waiting>>,
    job: Option<RunningJob>,
    jobs_begun: usize,
    /// Directories of trials that were recorded or are being recorded.
    seen: HashSet<PathBuf>,
    /// Records in the making.
    taking: JoinSet<Taken>,
    judging: Arc<tokio::sync::Semaphore>,
    running: HashSet<Name>,
    /// Indices of trials, by their ids.
    by_id: HashMap<Name, usize>,
}

struct RunningJob {
    staged: Arc<Staged>,
    child: Child,
    pid: Option<Pid>,
    tail: Tail,
    /// The last request that was passed to the program.
    told: Wish,
    /// How the program ended, in words.
    ended: Option<String>,
}

/// A recorded trial, and a problem if our judge gives another reward; absent if it was recorded before.
type Taken = Option<(Finished, Option<Problem>)>;

impl HarborRun {
    pub fn new(harbor: Harbor) -> Self {
        Self {
            harbor,
            groups: VecDeque::new(),
            job: None,
            jobs_begun: 0,
            seen: HashSet::new(),
            taking: JoinSet::new(),
            judging: Arc::new(tokio::sync::Semaphore::new(JUDGING)),
            running: HashSet::new(),
            by_id: HashMap::new(),
        }
    }

    fn start_job(&mut self, course: &Course<'_>, wanted: &[Waiting]) -> Result<RunningJob, Vec<Problem>> {
        self.jobs_begun += 1;
        let label = format!("{}-{}", course.campaign.session(), self.jobs_begun);
        let directory = course.shared.jobs.join(HARBOR).join(&label);
        let name = Name::nearest(&format!("{}-{label}", course.shared.plan.experiment_id));
        let setup = JobSetup {
            plan: &course.shared.plan,
            tasks: course.tasks.tasks(),
            agents: &self.harbor.agents,
            trials: &course.trials,
            environment: &self.harbor.environment,
            concurrency: course.options.terms.concurrency(),
            model_concurrency: course.options.terms.model_concurrency(),
        };
        let staged = setup.stage(&directory, name, wanted)?;
        let Harbor { program, env, variables, .. } = &self.harbor;
        let start = Start { directory: &staged.directory, env, variables };
        let spawned = program.command(&start).and_then(|mut command| command.spawn());
        let child = spawned.map_err(|error| {
            let problem = Problem::error(format!("Harbor cannot be started: {error}")).id(FAMILY.number(20));
            vec![problem.fix("check the program on PATH").in_file(&program.path)]
        })?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            fs_err::write(staged.directory.join("pid"), format!("{}\n", pid.as_raw_nonzero())).ok();
        }
        let tail = Tail::new(staged.directory.join("progress.jsonl"));
        Ok(RunningJob { staged: Arc::new(staged), child, pid, tail, told: Wish::GoOn, ended: None })
    }

    /// Reads the plugin's messages since the last call.
    fn hear(&mut self, course: &mut Course<'_>) {
        let Some(job) = &mut self.job else { return };
        let (lines, staged) = (job.tail.lines(), Arc::clone(&job.staged));
        if lines.is_empty() {
            return;
        }
        let index = staged.index();
        for line in lines {
            let Ok(event) = aec_base::json::from_str::<Value>(&line) else { continue };
            let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
            let noted = index.find(text("task"), text("source"), text("agent"));
            let Some(waiting) = noted.and_then(|noted| self.wanted(course, noted)) else { continue };
            let trial = course.reference(waiting);
            match text("event") {
                "start" => {
                    self.running.insert(trial.trial_id.clone());
                    course.tell(&RunEvent::TrialStarted(trial));
                }
                "environment-start" => course.tell(&RunEvent::Stage(trial, Stage::Staged)),
                "agent-start" => course.tell(&RunEvent::Stage(trial, Stage::Running)),
                "agent-end" => course.tell(&RunEvent::Stage(trial, Stage::Frozen)),
                "end" | "cancel" => {
                    let name = text("trial");
                    let plain = !name.is_empty() && !name.contains('/') && name != "..";
                    let directory = staged.job_directory().join(name);
                    // Harbor is just writing the result; if it is not there yet, the sweep finds it later.
                    if plain && directory.join(RESULT).is_file() {
                        self.take(course, &index, &directory);
                    }
                }
                _ => {}
            }
        }
    }

    /// Passes requests on: Harbor can only be cancelled, and then killed.
    fn pass_on(&mut self, wish: Wish) {
        let Some(job) = self.job.as_mut().filter(|job| wish > job.told && job.ended.is_none()) else {
            return;
        };
        let Some(pid) = job.pid else { return };
        let sent = match wish {
            Wish::GiveUp => kill_process_group(pid, Signal::KILL),
            _ => kill_process(pid, Signal::INT),
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "Harbor did not receive the request to stop");
        }
        job.told = wish;
    }

    /// Reports a job that did not finish all its trials. No result is invented for them.
    fn close_job(&mut self, course: &mut Course<'_>) {
        self.running.clear();
        let Some(job) = self.job.take() else { return };
        let missing = job.staged.trials().iter().filter(|noted| self.wanted(course, noted).is_some()).count();
        if missing == 0 || course.is_stopped() {
            return;
        }
        let ended = job.ended.unwrap_or_default();
        let log = job.staged.directory.join("harbor.log");
        let what = format!("Harbor {ended} and left {} without a result", text::count(missing, "trial"));
        let said = course.shared.redactor.scrub(last_lines(&log));
        let problem = Problem::error(what.clone()).id(FAMILY.number(30)).in_file(&log);
        let problem = if said.is_empty() { problem } else { problem.why(format!("it said: {said}")) };
        course
            .problems
            .push(problem.fix("see its log; finished trials are recorded, `run --resume` does the rest"));
        course.stop_for(StopReason::Faults(what));
    }

    /// The trial of a job, if this attempt at it is still wanted.
    fn wanted(&self, course: &Course<'_>, noted: &NotedTrial) -> Option<Waiting> {
        let trial = *self.by_id.get(&noted.trial_id)?;
        let attempt = noted.attempt;
        (attempt > course.last_attempt(trial)).then_some(Waiting { trial, attempt })
    }

    /// Starts recording all finished trials of a job.
    fn sweep(&mut self, course: &mut Course<'_>, job: &Staged) {
        let directory = job.job_directory();
        if !directory.is_dir() {
            return;
        }
        match Job::open(&directory) {
            Ok(found) => {
                let index = job.index();
                found.trials.iter().for_each(|trial| self.take(course, &index, trial));
            }
            Err(error) => {
                let problem = Problem::warning(format!("a job directory cannot be read: {error}"));
                let problem = problem.id(FAMILY.number(32)).fix("check it, then resume");
                course.problems.push(problem.in_file(directory));
            }
        }
    }

    /// Starts recording one trial, if it has a result and no record.
    fn take(&mut self, course: &mut Course<'_>, index: &Index<'_>, directory: &Path) {
        if self.seen.contains(directory) {
            return;
        }
        let trial = Trial::read(directory);
        if matches!(trial, Err(TrialError::Missing)) {
            return;
        }
        self.seen.insert(directory.to_path_buf());
        let trial = match trial {
            Ok(trial) => trial,
            Err(error) => {
                let problem =
                    Problem::warning(format!("a trial of the job is lost: {error}")).id(FAMILY.number(32));
                let problem = problem.fix("resume the run to make the trial again");
                return course.problems.push(problem.in_file(directory));
            }
        };
        let Some(waiting) = index.of(&trial).and_then(|noted| self.wanted(course, noted)) else { return };
        let planned = course.trials[waiting.trial].clone();
        let record = course.campaign.directory().record(&planned.id, waiting.attempt);
        if record.symlink_metadata().is_ok() {
            return;
        }
        let came = Came {
            harness: self.harbor.agents[planned.agent].harness,
            version: self.harbor.program.version.to_string(),
        };
        let (shared, tasks) = (Arc::clone(&course.shared), Arc::clone(&course.tasks));
        let (judging, committer) = (Arc::clone(&self.judging), course.campaign.committer());
        let reference = course.reference(waiting);
        self.taking.spawn(async move {
            let _place = judging.acquire().await;
            let made = tokio::task::spawn_blocking(move || {
                let task = tasks.get(planned.task).map_err(|problem| Lost::Task(Box::new(problem)))?;
                record_of(&shared, &planned, waiting.attempt, &task, &trial, &came)
                    .map_err(|error| Lost::Storage(error.to_string()))
            });
            let gone = |_| Err(Lost::Storage("a trial ended in a bug of this program".to_owned()));
            let finished =
                |duration, result| Finished { waiting, reference: Arc::clone(&reference), duration, result };
            let (record, problem) = match made.await.unwrap_or_else(gone) {
                Ok(made) => made,
                Err(lost) => return Some((finished(Duration::ZERO, Err(lost)), None)),
            };
            let duration = Duration::try_from_secs_f64(record.timing.total_seconds).unwrap_or_default();
            let result = match committer.commit(record.clone()).await {
                Err(CommitError::Exists { .. }) => return None,
                done => done.map(|()| record).map_err(Lost::from),
            };
            Some((finished(duration, result), problem))
        });
    }

    fn took(&mut self, course: &mut Course<'_>, taken: Taken) {
        let Some((finished, problem)) = taken else { return };
        course.problems.extend(problem);
        self.running.remove(&finished.reference.trial_id);
        if let Ok(record) = &finished.result {
            course.consider(record.outcome, record.fault.as_ref());
        }
        course.finished(finished);
    }
}

impl Executor for HarborRun {
    const CALLS_ELSEWHERE: bool = true;

    /// Records what jobs of earlier sessions finished. A job that is still running is an error.
    async fn recover(&mut self, course: &mut Course<'_>) -> Result<(), Vec<Problem>> {
        self.by_id = course.trials.iter().enumerate().map(|(at, trial)| (trial.id.clone(), at)).collect();
        let Ok(entries) = fs_err::read_dir(course.shared.jobs.join(HARBOR)) else { return Ok(()) };
        let mut directories: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        directories.sort();
        let jobs: Vec<Staged> = directories.iter().filter_map(|directory| Staged::read(directory)).collect();
        if let Some((job, pid)) = jobs.iter().find_map(|job| Some((job, job.is_running()?))) {
            let what =
                format!("the Harbor job `{}` of an earlier run is still running as process {pid}", job.name);
            let problem = Problem::error(what).id(FAMILY.number(36)).why("its trials would be run twice");
            return Err(vec![
                problem.fix("wait for it, or end that process; its finished trials are then recorded"),
            ]);
        }
        for job in jobs {
            self.sweep(course, &job);
            while let Some(taken) = self.taking.join_next().await {
                self.took(course, taken.ok().flatten());
            }
        }
        Ok(())
    }

    /// Runs one job at a time. Trials to be retried wait until the jobs of their round are over.
    fn start(&mut self, course: &mut Course<'_>) -> Result<(), Vec<Problem>> {
        if self.job.is_some() || course.is_stopped() {
            return Ok(());
        }
        if self.groups.is_empty() {
            let waiting = course.take_waiting();
            self.groups = groups(&course.trials, &waiting).into();
        }
        if let Some(group) = self.groups.pop_front() {
            self.job = Some(self.start_job(course, &group)?);
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.job.is_none()
    }

    fn at_work(&self) -> usize {
        self.running.len()
    }

    async fn next(&mut self, course: &mut Course<'_>) {
        let Some(job) = &mut self.job else { return std::future::pending().await };
        let is_running = job.ended.is_none();
        tokio::select! {
            Some(taken) = self.taking.join_next() => self.took(course, taken.ok().flatten()),
            status = job.child.wait(), if is_running => {
                let code = status.ok().and_then(|status| status.code());
                let ended = code.map(|code| format!("ended with exit code {code}"));
                job.ended = Some(ended.unwrap_or_else(|| "was killed".to_owned()));
                let staged = Arc::clone(&job.staged);
                fs_err::remove_file(staged.directory.join("pid")).ok();
                self.hear(course);
                self.sweep(course, &staged);
            }
            // The program has ended, and all finished trials are recorded.
            else => self.close_job(course),
        }
    }

    fn look(&mut self, course: &mut Course<'_>) {
        self.hear(course);
        self.pass_on(course.wish());
    }
}
