//! One attempt at one trial: staged, running, frozen, judged, recorded. Only here does a failure become data: exactly
//! one side is to blame, and the fault says whether another attempt may succeed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aec_base::content::ContentStore;
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_container::Purpose;
use aec_judge::judge::{Judge, JudgeLimits, image_of};
use aec_judge::settle::freeze::{AgentFiles, Frozen, TOO_MUCH_MEMORY, Unfrozen};
use aec_judge::settle::outcome::{Boundary, Ending, Fault, REFUSED, RoomFault, Settled};
use aec_judge::verdict::{OUT_OF_MEMORY, Outcome, Verdict};
use aec_ledger::jobs::LIVE;
use aec_ledger::record::{Completeness, Timing, TrialRecord};
use aec_model::client::Scope;
use aec_model::failure::FailureKind;
use aec_model::gateway::Gateway;
use aec_model::meter::{Account, AccountKind, Budget, Meter};
use aec_sandbox::{Limits, SandboxError};
use aec_task::task::Task;
use tokio::time::Instant;

use crate::campaign::faults::{Meaning, meaning};
use crate::control::{Control, Wish};
use crate::event::Stage;
use crate::harness::{self, End, GRACE, Limit, PreparedAgent, Rollout, TrialContext, TrialState};
use crate::parameters::Parameters;
use crate::plan::{Conditions, Plan, PlannedTrial};
use crate::recording::{self, Known, live_name};
use crate::room::{MAX_PIDS, RoomOpener, lifetime};
use crate::task::PreparedTask;
use crate::trajectory::{Listener, Trajectory};
use crate::workspace::{Workspace, blocking};

/// How long freezing the files of a room may take. Containers on other machines send them over a network.
const FREEZING: Duration = Duration::from_mins(10);

/// How long freezing may take if the room had to be ended by force, or the user no longer waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// The fault of an agent whose room cannot be reached any more.
const STUCK: &str = "the agent's room did not end with its time, and its files could not be read";

#[derive(Clone)]
pub struct Shared {
    pub plan: Arc<Plan>,
    pub agents: Vec<Arc<PreparedAgent>>,
    pub judge: Judge,
    pub gateway: Gateway,
    pub meter: Meter,
    pub account: Account,
    pub trial_budget: Budget,
    pub contents: ContentStore,
    /// The experiment's directory of `jobs`.
    pub jobs: PathBuf,
    pub redactor: Arc<Redactor>,
    /// Versions to put into records.
    pub tool_versions: BTreeMap<String, String>,
    pub control: Control,
}

pub(crate) struct Attempt {
    pub(crate) trial: PlannedTrial,
    pub(crate) number: u32,
    /// The number used on cassettes, where a retry replaces an attempt that was cut off.
    pub(crate) chance: u32,
    pub(crate) task: Arc<PreparedTask>,
}

/// Receives the stages of an attempt.
pub(crate) type StageListener = Box<dyn Fn(Stage) + Send + Sync>;

/// The result of the agent's part.
struct Ended {
    left: Left,
    system_prompt: Option<String>,
    setup_seconds: f64,
    agent_seconds: f64,
}

/// The agent's results.
struct Left {
    rollout: Rollout,
    room: Option<(aec_sandbox::Level, aec_sandbox::Held)>,
    /// The frozen files and what ended the work; or the outcome of a trial that is not judged.
    frozen: Result<(Frozen, Option<Fault>), Settled>,
}

/// Makes one attempt and its record. An error means that this machine cannot store evidence.
pub(crate) async fn attempt(
    shared: &Arc<Shared>,
    attempt: &Attempt,
    stage: &StageListener,
    listener: Option<Listener>,
) -> io::Result<TrialRecord> {
    let started = (Timestamp::now_in_milliseconds(), Instant::now());
    stage(Stage::Staged);
    let live = shared.jobs.join(LIVE).join(live_name(&attempt.trial.id, attempt.number));
    fs_err::create_dir_all(&live)?;
    let trajectory = Trajectory::create(&live, Arc::clone(&shared.redactor), listener)?;
    let account = shared.meter.open(Some(&shared.account), AccountKind::Trial, shared.trial_budget);
    stage(Stage::Running);
    let ended = run_agent(shared, attempt, &trajectory, &account, stage).await;
    let judged_at = Instant::now();
    let (Settled { outcome, fault, status }, verdict) = decide(shared, attempt, &ended.left).await;
    let verification_seconds = verdict.as_ref().map(|_| judged_at.elapsed().as_secs_f64());
    stage(Stage::Judged);
    if let Some(fault) = &fault {
        trajectory.note(fault.message.clone(), serde_json::Map::new());
    }
    let finished = trajectory.finish()?;
    let frozen = ended.left.frozen.ok().map(|(frozen, _)| frozen);
    let known = Known {
        plan: &shared.plan,
        trial: &attempt.trial,
        attempt: attempt.number,
        task: &attempt.task,
        started: started.0,
        outcome,
        completeness: if outcome == Outcome::Cancelled {
            Completeness::Partial
        } else {
            Completeness::Complete
        },
        limits: limits(&shared.plan.conditions, &attempt.task.task),
        timeout_sec: timeout(shared, attempt).as_secs(),
        room: ended.left.room,
        runtime_image: runtime_image(shared, &attempt.task.task),
        tool_versions: shared.tool_versions.clone(),
        resolved_model: ended.left.rollout.resolved_model,
        system_prompt: ended.system_prompt,
        status: Some(status),
        agent_result: ended.left.rollout.result,
        source: frozen.as_ref().and_then(|frozen| frozen.source),
        submission: frozen.as_ref().map(|frozen| &frozen.submission),
        verdict,
        cost: recording::cost(&account.totals().all),
        timing: Timing {
            completed_at: Some(Timestamp::now_in_milliseconds()),
            total_seconds: started.1.elapsed().as_secs_f64(),
            setup_seconds: Some(ended.setup_seconds),
            agent_seconds: Some(ended.agent_seconds),
            verification_seconds,
            artefacts: Vec::new(),
        },
        trajectory: &finished,
        contents: &shared.contents,
        redactor: &shared.redactor,
        fault,
    };
    known.record()
}

/// The agent's part: from its first event to a frozen submission.
async fn run_agent(
    shared: &Arc<Shared>,
    attempt: &Attempt,
    trajectory: &Trajectory,
    account: &Account,
    stage: &StageListener,
) -> Ended {
    let entered = Instant::now();
    let prepared = prepare_image(shared, attempt).await;
    let preparing = entered.elapsed();
    let begun = Instant::now();
    let deadline = begun + timeout(shared, attempt);
    let agent = Arc::clone(&shared.agents[attempt.trial.agent]);
    let keeps = agent.parameters.snapshots;
    let observed = trajectory.clone();
    let mut context = TrialContext {
        task: Arc::clone(&attempt.task),
        agent,
        seed: *attempt.trial.key.bytes(),
        deadline,
        trajectory: trajectory.clone(),
        scope: Scope {
            label: label(attempt),
            account: account.clone(),
            deadline: Some(deadline),
            observer: Some(Arc::new(move |event| observed.model_call(event))),
        },
        gateway: shared.gateway.clone(),
        redactor: Arc::clone(&shared.redactor),
        snapshots: keeps.then(|| shared.contents.clone()),
        opener: opener(shared, attempt),
        state: TrialState::new(deadline),
    };
    context.state.setup_seconds = preparing.as_secs_f64();
    let mut cancelled = false;
    let over = context.state.clock.watcher().over(GRACE);
    let work = async {
        match prepared {
            Ok(()) => harness::run(&mut context).await,
            Err(error) => Rollout::new(error.into()),
        }
    };
    let rollout = tokio::select! {
        biased;
        () = shared.control.reached(Wish::GiveUp) => {
            cancelled = true;
            Rollout::new(End::Done)
        }
        rollout = work => rollout,
        () = over => Rollout::new(End::Limit(Limit::Time)),
    };
    let agent_seconds = (entered.elapsed().as_secs_f64() - context.state.setup_seconds).max(0.0);
    stage(Stage::Frozen);
    let workspace = context.state.workspace.take();
    let system_prompt = context.state.system_prompt.take();
    let setup_seconds = context.state.setup_seconds;
    drop(context);
    // The harness has ended: a tool that is still at work does not end by itself.
    let is_stuck = workspace.as_ref().is_some_and(Workspace::is_busy);
    if (cancelled || is_stuck)
        && let Some(workspace) = &workspace
    {
        workspace.stop();
    }
    let (task, run, has_room) = (Arc::clone(&attempt.task), Arc::clone(shared), workspace.is_some());
    let freeze = move || freeze(&run, &task, workspace, rollout, cancelled);
    // Without a sandbox there are only a few small files.
    let left = if has_room { frozen_in_time(shared, freeze, cancelled, is_stuck).await } else { freeze() };
    Ended { left, system_prompt, setup_seconds, agent_seconds }
}

/// Freezes the agent's files on another thread. Nothing that an agent leaves in its room makes the trial wait for ever: a
/// thread that does not come back is left behind.
async fn frozen_in_time(
    shared: &Shared,
    freeze: impl FnOnce() -> Left + Send + 'static,
    cancelled: bool,
    is_stuck: bool,
) -> Left {
    let without = |settled| Left { rollout: Rollout::new(End::Done), room: None, frozen: Err(settled) };
    let given_up = async {
        shared.control.reached(Wish::GiveUp).await;
        tokio::time::sleep(PATIENCE).await;
    };
    let longest = if cancelled || is_stuck { PATIENCE } else { FREEZING };
    tokio::select! {
        biased;
        left = blocking(freeze) => left.unwrap_or_else(|error| {
            without(Settled::lost(Outcome::InfraFault, RoomFault::from(error).into()))
        }),
        () = given_up => without(Settled::stopped()),
        () = tokio::time::sleep(longest) => without(if cancelled {
            Settled::stopped()
        } else {
            // Only what runs in the room can keep it from ending, so another attempt is not free.
            Settled::unfrozen(&Unfrozen::Unfit(STUCK.to_owned()))
        }),
    }
}

/// Ends everything in a sandbox, and freezes the agent's files.
fn freeze(
    shared: &Shared,
    task: &PreparedTask,
    workspace: Option<Workspace>,
    rollout: Rollout,
    cancelled: bool,
) -> Left {
    let opened = || workspace.as_ref().and_then(|workspace| workspace.lock().ok());
    let out_of_memory = opened().is_some_and(|room| room.out_of_memory());
    let room = opened().map(|room| (room.level(), room.held()));
    let left = match ending(&rollout.end) {
        _ if cancelled => Err(Settled::stopped()),
        Ending::Lost(outcome, fault) => Err(Settled::lost(outcome, fault)),
        Ending::Judgeable(own) => {
            let (order, handed) = (shared.plan.conditions.answer_order, rollout.handed());
            let freezer = task.freezer(order, &shared.contents, &shared.redactor);
            let files = match &workspace {
                Some(workspace) => workspace.agent_files().map_err(Unfrozen::from),
                None => Ok(AgentFiles::InMemory(freezer.given_files())),
            };
            let frozen = files.and_then(|files| freezer.freeze(files, &handed));
            let memory = || Fault::lasting(Boundary::Harness, Some(OUT_OF_MEMORY), TOO_MUCH_MEMORY);
            match frozen {
                Ok(frozen) => Ok((frozen, own.or_else(|| out_of_memory.then(memory)))),
                // A sandbox in which nothing of the agent's ran failed by itself.
                Err(Unfrozen::Machine(fault)) if !workspace.as_ref().is_some_and(Workspace::has_worked) => {
                    Err(Settled::lost(Outcome::InfraFault, fault.into()))
                }
                Err(error) => Err(Settled::unfrozen(&error)),
            }
        }
    };
    // The sandbox is closed here: judges without sandboxes need its slot.
    drop(workspace);
    Left { rollout, room, frozen: left }
}

/// Builds the image of the agent's sandbox, before its time begins and its model is paid.
async fn prepare_image(shared: &Arc<Shared>, attempt: &Attempt) -> Result<(), SandboxError> {
    let harness = shared.plan.agents[attempt.trial.agent].harness;
    let Some(containers) = shared.judge.containers.clone().filter(|_| harness.needs_room()) else {
        return Ok(());
    };
    let image = image_of(&attempt.task.task);
    tokio::select! {
        biased;
        () = shared.control.reached(Wish::GiveUp) => Ok(()),
        made = blocking(move || containers.prepare(&image)) => made?,
    }
}

/// What the sandboxes of a task consist of: its image, the service that makes them, or this machine.
pub(crate) fn runtime_image(shared: &Shared, task: &Task) -> String {
    let Some(containers) = &shared.judge.containers else { return "local".to_owned() };
    containers.image_name(&image_of(task)).unwrap_or_else(|| containers.version().0)
}

/// How an agent's work ended, in a form common to all ways of running an agent.
pub fn ending(end: &End) -> Ending {
    match end {
        End::Done => Ending::Judgeable(None),
        End::Limit(limit) => Ending::limit(limit.name()),
        End::Agent(reason) => Ending::agent_error(reason.clone()),
        End::Room(room) => Ending::Lost(Outcome::InfraFault, room.clone().into()),
        End::RoomLost(room) => Ending::Judgeable(Some(room.clone().of_agent())),
        End::Crashed(reason) => Ending::crashed(reason.clone()),
        End::Refused(reason) => {
            Ending::Judgeable(Some(Fault::lasting(Boundary::Provider, Some(REFUSED), reason.clone())))
        }
        End::Task(reason) => {
            Ending::Lost(Outcome::InfraFault, Fault::lasting(Boundary::Task, None, reason.clone()))
        }
        End::Model(failure) => {
            let fault =
                |boundary| Fault::lasting(boundary, Some(failure.kind.name()), failure.message.clone());
            match failure.kind {
                _ if meaning(failure) == Meaning::Agents => {
                    Ending::Judgeable(Some(fault(Boundary::Provider)))
                }
                FailureKind::Budget | FailureKind::Cancelled => {
                    let fault = Fault { retryable: true, ..fault(Boundary::Cancelled) };
                    Ending::Lost(Outcome::Cancelled, fault)
                }
                _ => {
                    let fault = Fault { retryable: failure.retryable, ..fault(Boundary::Provider) };
                    Ending::Lost(Outcome::InfraFault, fault)
                }
            }
        }
    }
}

/// The outcome of the trial, and the verdict if the judge was called.
async fn decide(shared: &Arc<Shared>, attempt: &Attempt, left: &Left) -> (Settled, Option<Verdict>) {
    let (frozen, own) = match &left.frozen {
        Ok((frozen, own)) => (frozen, own.clone()),
        Err(settled) => return (settled.clone(), None),
    };
    let has_answer = frozen.source.is_some();
    if shared.plan.conditions.disable_verification {
        return (Settled::judged(own, has_answer, None), None);
    }
    let (run, task, submission) = (Arc::clone(shared), Arc::clone(&attempt.task), frozen.submission.clone());
    let limits = JudgeLimits { purpose: purpose(shared, attempt), ..JudgeLimits::from(&task.task) };
    let judging = blocking(move || match &task.verifier {
        Some(files) => run.judge.verdict_by(files, &limits, &task.references, &submission),
        None => run.judge.verdict(&task.task, &submission),
    });
    let verdict = tokio::select! {
        biased;
        verdict = judging => verdict,
        // The judge's sandbox ends with the program.
        () = shared.control.reached(Wish::GiveUp) => return (Settled::stopped(), None),
    };
    match verdict {
        Ok(verdict) => (Settled::judged(own, has_answer, Some(&verdict)), Some(verdict)),
        Err(_) => (Settled::panicked("the judge failed; this is a bug"), None),
    }
}

/// Identifies the calls of an attempt on cassettes: the same in every experiment.
fn label(attempt: &Attempt) -> String {
    let key = attempt.trial.key.hex();
    if attempt.chance == 1 { key } else { format!("{key}.{}", attempt.chance) }
}

fn opener(shared: &Shared, attempt: &Attempt) -> RoomOpener {
    RoomOpener {
        isolation: shared.judge.isolation,
        containers: shared.judge.containers.clone().map(|containers| (containers, purpose(shared, attempt))),
        python: shared.judge.python.clone(),
        limits: limits(&shared.plan.conditions, &attempt.task.task),
        extra: Vec::new(),
        ourselves: false,
    }
}

/// The labels of an attempt's containers.
fn purpose(shared: &Shared, attempt: &Attempt) -> Purpose {
    Purpose {
        experiment: Some(shared.plan.experiment_id.as_str().to_owned()),
        trial: Some(attempt.trial.id.as_str().to_owned()),
        lifetime: lifetime(timeout(shared, attempt)),
        ..Purpose::default()
    }
}

/// The agent's limits: the task's, unless the experiment has its own.
pub(crate) fn limits(conditions: &Conditions, task: &Task) -> Limits {
    let environment = &task.environment;
    Limits {
        cpus: environment.cpus,
        memory_mb: conditions.memory_mb.unwrap_or(environment.memory_mb),
        storage_mb: environment.storage_mb,
        pids: MAX_PIDS,
    }
}

fn timeout(shared: &Shared, attempt: &Attempt) -> Duration {
    let parameters = &shared.agents[attempt.trial.agent].parameters;
    agent_time(&shared.plan.conditions, &attempt.task.task, parameters)
}

/// The agent's time: the experiment's limit or else the task's, but at most the agent's own.
pub(crate) fn agent_time(conditions: &Conditions, task: &Task, parameters: &Parameters) -> Duration {
    let allowed = conditions.timeout_override.map_or(task.agent.timeout_sec, f64::from);
    let own = parameters.timeout_sec.map_or(allowed, f64::from);
    Duration::from_secs_f64(allowed.min(own).max(0.001))
}

#[cfg(test)]
mod tests {
    use aec_model::failure::Failure;
    use aec_model::meter::{Refusal, Shortage};

    use super::*;

    fn refused(account: AccountKind) -> Failure {
        let shortage = Shortage::Tokens { cap: 1, spent: 1, asked: 1 };
        Refusal::Short { account, shortage }.into()
    }

    #[test]
    fn a_trial_that_used_up_its_own_budget_is_judged_and_one_that_the_run_stopped_is_not() {
        assert!(matches!(ending(&End::Model(refused(AccountKind::Trial))), Ending::Judgeable(Some(_))));
        let named = AccountKind::from("the trial");
        for account in [AccountKind::Run, AccountKind::Day, AccountKind::Experiment, named] {
            let end = ending(&End::Model(refused(account.clone())));
            assert!(matches!(end, Ending::Lost(Outcome::Cancelled, _)), "{account}");
        }
    }

    #[test]
    fn every_failure_of_a_model_has_one_side() {
        use FailureKind::{
            Auth, Cancelled, ContentFilter, Empty, Network, Overlong, Protocol, Rate, Replay, Request,
            Server, Truncated,
        };
        for kind in [Overlong, ContentFilter, Empty, Truncated] {
            let Ending::Judgeable(Some(fault)) = ending(&End::Model(Failure::lasting(kind, "x"))) else {
                panic!("{kind:?} is not judged")
            };
            assert_eq!((fault.boundary, fault.kind.as_deref()), (Boundary::Provider, Some(kind.name())));
        }
        for kind in [Auth, Rate, Server, Network, Protocol, Request, Replay] {
            for retryable in [false, true] {
                let end = End::Model(Failure { retryable, ..Failure::lasting(kind, "x") });
                let Ending::Lost(outcome, fault) = ending(&end) else { panic!("{kind:?} is judged") };
                assert_eq!((outcome, fault.retryable), (Outcome::InfraFault, retryable), "{kind:?}");
            }
        }
        let broken = End::Model(Failure::passing(Truncated, "a stream that broke"));
        assert!(matches!(ending(&broken), Ending::Lost(Outcome::InfraFault, _)));
        let stopped = End::Model(Failure::lasting(Cancelled, "x"));
        assert!(matches!(ending(&stopped), Ending::Lost(Outcome::Cancelled, _)));
    }
}
