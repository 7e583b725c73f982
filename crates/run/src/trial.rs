//! One attempt at one trial: staged, running, frozen, judged, recorded. This is the only place where a failure becomes
//! data, on exactly one side of the line and with a word on whether another attempt may go better.

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
use aec_judge::verdict::{OUT_OF_MEMORY, Outcome, Verdict};
use aec_ledger::jobs::LIVE;
use aec_ledger::record::{AgentStatus, Boundary, Completeness, Fault, Timing, TrialRecord};
use aec_model::client::Scope;
use aec_model::failure::{Failure, FailureKind};
use aec_model::gateway::Gateway;
use aec_model::meter::{Account, Budget, Meter};
use aec_sandbox::{Limits, SandboxError};
use aec_task::task::Task;
use tokio::time::Instant;

use crate::answer::{self, AnswerError, Frozen};
use crate::control::{Control, Wish};
use crate::event::Stage;
use crate::harness::{self, End, Limit, PreparedAgent, Rollout, RoomFault, TrialContext, TrialSetup};
use crate::parameters::Parameters;
use crate::plan::{Conditions, Plan, PlannedTrial};
use crate::recording::{self, Known, live_name};
use crate::room::{MAX_PIDS, RoomOpener, lifetime};
use crate::task::PreparedTask;
use crate::trajectory::{Listener, Trajectory};
use crate::workspace::{Workspace, blocking};

/// How long after its deadline a harness may take to end by itself.
const GRACE: Duration = Duration::from_secs(15);
const TOO_MUCH_MEMORY: &str = "the agent's commands took more memory than the room has";

/// The name of a trial's account, which tells its own budget from that of the run.
const ACCOUNT: &str = "the trial";

/// What all attempts of a run share.
#[derive(Clone)]
pub struct Shared {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The agents of the plan, ready to work.
    pub agents: Vec<Arc<PreparedAgent>>,
    /// The judge.
    pub judge: Judge,
    /// The gateway for agents that call models themselves.
    pub gateway: Gateway,
    /// Who pays.
    pub meter: Meter,
    /// The account of the run.
    pub account: Account,
    /// The budget of one trial.
    pub trial_budget: Budget,
    /// Contents of the ledger.
    pub contents: ContentStore,
    /// The experiment's directory of `jobs`.
    pub jobs: PathBuf,
    /// Keeps secrets out of what is written.
    pub redactor: Arc<Redactor>,
    /// Versions that records tell.
    pub tool_versions: BTreeMap<String, String>,
    /// Stops the run.
    pub control: Control,
}

/// An attempt to be made.
pub(crate) struct Attempt {
    pub(crate) trial: PlannedTrial,
    pub(crate) number: u32,
    /// Which try that has its chance: on cassettes, one that follows an attempt that was cut off stands in its place.
    pub(crate) chance: u32,
    pub(crate) task: Arc<PreparedTask>,
}

/// Hears where an attempt is.
pub(crate) type StageListener = Box<dyn Fn(Stage) + Send + Sync>;

/// What became of the agent's part.
struct Ended {
    left: Left,
    cancelled: bool,
    system_prompt: Option<String>,
    setup_seconds: f64,
    agent_seconds: f64,
}

/// What the agent left.
struct Left {
    rollout: Rollout,
    room: Option<(aec_sandbox::Level, aec_sandbox::Held)>,
    /// Whether its commands took more memory than the room has.
    out_of_memory: bool,
    frozen: Option<Result<Frozen, AnswerError>>,
}

/// Makes one attempt and its record. An error means that this machine cannot keep evidence.
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
    let account = shared.meter.open(Some(&shared.account), ACCOUNT, shared.trial_budget);
    stage(Stage::Running);
    let ended = run_agent(shared, attempt, &trajectory, &account, stage).await;
    let judged_at = Instant::now();
    let (outcome, fault, status, verdict) = decide(shared, attempt, &ended).await;
    let verification_seconds = verdict.as_ref().map(|_| judged_at.elapsed().as_secs_f64());
    stage(Stage::Judged);
    if let Some(fault) = &fault {
        trajectory.note(fault.message.clone(), serde_json::Map::new());
    }
    let finished = trajectory.finish()?;
    let frozen = ended.left.frozen.and_then(Result::ok);
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
    let mut context = TrialContext::new(TrialSetup {
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
    });
    context.setup_seconds = preparing.as_secs_f64();
    let mut cancelled = false;
    let over = context.clock.watcher().over(GRACE);
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
    let agent_seconds = (entered.elapsed().as_secs_f64() - context.setup_seconds).max(0.0);
    stage(Stage::Frozen);
    let workspace = context.workspace.take();
    let system_prompt = context.system_prompt.take();
    let setup_seconds = context.setup_seconds;
    drop(context);
    if cancelled && let Some(workspace) = &workspace {
        workspace.stop();
    }
    let (task, run, has_room) = (Arc::clone(&attempt.task), Arc::clone(shared), workspace.is_some());
    let freeze = move || freeze(&run, &task, workspace, rollout, cancelled);
    // Without a room it is a few small files.
    let left = if has_room { blocking(freeze).await } else { Ok(freeze()) };
    let left = left.unwrap_or_else(|error| Left {
        rollout: Rollout::new(End::Room(error.to_string().into())),
        room: None,
        out_of_memory: false,
        frozen: None,
    });
    Ended { left, cancelled, system_prompt, setup_seconds, agent_seconds }
}

/// Ends everything in a room, and freezes what the agent left there.
fn freeze(
    shared: &Shared,
    task: &PreparedTask,
    workspace: Option<Workspace>,
    mut rollout: Rollout,
    cancelled: bool,
) -> Left {
    let opened = || workspace.as_ref().and_then(|workspace| workspace.lock().ok());
    let lost = || opened().and_then(|room| room.lost());
    let out_of_memory = opened().is_some_and(|room| room.out_of_memory());
    if matches!(rollout.end, End::Room(_)) && out_of_memory {
        // A room that its own commands brought down did not fail by itself.
        rollout.end = End::Agent(TOO_MUCH_MEMORY.to_owned());
    }
    if matches!(rollout.end, End::Room(RoomFault { kind: None, .. }))
        && let Some(why) = lost()
    {
        rollout.end = End::Room(why.into());
    }
    let room = opened().map(|room| (room.level(), room.held()));
    let wanted = !cancelled && is_judgeable(&rollout.end);
    // Whoever brings a room down with its own memory has nothing left to be judged. It is not an accident to be tried again.
    let brought_down = out_of_memory && lost().is_some();
    let frozen = wanted.then(|| {
        if brought_down {
            let what = format!("{TOO_MUCH_MEMORY}, and its room with everything in it was ended");
            return Err(AnswerError::Unfit(what));
        }
        answer::freeze(task, workspace.as_ref(), &rollout, &shared.contents, &shared.redactor).map_err(
            |error| match error {
                AnswerError::Machine(fault) => AnswerError::Machine(lost().map_or(fault, Into::into)),
                unfit @ AnswerError::Unfit(_) => unfit,
            },
        )
    });
    // The room is closed here: judges without rooms need its place.
    drop(workspace);
    Left { rollout, room, out_of_memory, frozen }
}

/// Makes the image of the room that the agent will work in, before its time begins and its model is paid.
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

/// What the rooms of a task are made of: its image, or the service that makes them, or this machine.
pub(crate) fn runtime_image(shared: &Shared, task: &Task) -> String {
    let Some(containers) = &shared.judge.containers else { return "local".to_owned() };
    containers.image_name(&image_of(task)).unwrap_or_else(|| containers.version().0)
}

/// What stands beside the verdict of an agent whose commands were killed for their memory.
fn out_of_memory() -> Fault {
    fault(Boundary::Harness, Some(OUT_OF_MEMORY), TOO_MUCH_MEMORY.to_owned(), false)
}

/// Whether what the agent left is its answer, however it ended.
pub(crate) fn is_judgeable(end: &End) -> bool {
    match end {
        End::Done | End::Limit(_) | End::Agent(_) => true,
        End::Model(failure) => is_agents(failure),
        End::Room(_) | End::Task(_) => false,
    }
}

/// Whether a model's failure is what this agent makes of this model: another attempt is no better.
fn is_agents(failure: &Failure) -> bool {
    let own_budget = || failure.message.starts_with(&format!("the budget of {ACCOUNT}"));
    match failure.kind {
        FailureKind::Overlong | FailureKind::ContentFilter | FailureKind::Empty => true,
        FailureKind::Truncated => !failure.retryable,
        FailureKind::Budget => own_budget(),
        _ => false,
    }
}

pub(crate) type Decision = (Outcome, Option<Fault>, AgentStatus, Option<Verdict>);

/// What became of the trial.
async fn decide(shared: &Arc<Shared>, attempt: &Attempt, ended: &Ended) -> Decision {
    if ended.cancelled {
        return stopped();
    }
    let (status, own) = judge_end(&ended.left.rollout.end);
    let own = own.or_else(|| ended.left.out_of_memory.then(out_of_memory));
    let submission = match &ended.left.frozen {
        Some(Ok(frozen)) => &frozen.submission,
        Some(Err(AnswerError::Unfit(reason))) => {
            let fault = fault(Boundary::Harness, None, reason.clone(), false);
            return (Outcome::AgentFault, Some(fault), AgentStatus::Failed, None);
        }
        Some(Err(AnswerError::Machine(RoomFault { kind, message, may_pass }))) => {
            let fault = fault(Boundary::Sandbox, *kind, message.clone(), *may_pass);
            return (Outcome::InfraFault, Some(fault), AgentStatus::Failed, None);
        }
        None => return not_judged(&ended.left.rollout.end),
    };
    let nothing = matches!(&ended.left.frozen, Some(Ok(frozen)) if frozen.source.is_none());
    let status = if nothing && status == AgentStatus::Completed { AgentStatus::Empty } else { status };
    if shared.plan.conditions.disable_verification {
        return (Outcome::Unverified, own, status, None);
    }
    let (run, task, submission) = (Arc::clone(shared), Arc::clone(&attempt.task), submission.clone());
    let limits = JudgeLimits { purpose: purpose(shared, attempt), ..JudgeLimits::from(&task.task) };
    let judging = blocking(move || match &task.verifier {
        Some(files) => run.judge.verdict_by(files, &limits, &submission),
        None => run.judge.verdict(&task.task, &submission),
    });
    let verdict = tokio::select! {
        biased;
        verdict = judging => verdict,
        // The judge's room ends with the program.
        () = shared.control.reached(Wish::GiveUp) => return stopped(),
    };
    match verdict {
        Ok(verdict) => {
            let fault = match verdict.outcome {
                Outcome::VerifierFault => {
                    let reason = verdict.fault.clone().unwrap_or_default();
                    let what = format!("the verifier failed: {reason}");
                    Some(fault(Boundary::Verifier, verdict.fault_kind, what, true))
                }
                Outcome::InfraFault => {
                    let (kind, reason) = (verdict.fault_kind, verdict.fault.clone().unwrap_or_default());
                    Some(fault(Boundary::Sandbox, kind, reason, verdict.may_pass))
                }
                _ => own,
            };
            (verdict.outcome, fault, status, Some(verdict))
        }
        Err(_) => {
            let fault = fault(Boundary::Internal, None, "the judge failed; this is a bug".to_owned(), true);
            (Outcome::InfraFault, Some(fault), status, None)
        }
    }
}

fn stopped() -> Decision {
    let fault = fault(Boundary::Cancelled, None, "the run was stopped".to_owned(), true);
    (Outcome::Cancelled, Some(fault), AgentStatus::Partial, None)
}

/// How the agent's own work ended, when what it left is judged.
pub(crate) fn judge_end(end: &End) -> (AgentStatus, Option<Fault>) {
    match end {
        End::Limit(limit) => {
            let message = format!("a limit ended the agent's work: {}", limit.name());
            (AgentStatus::Partial, Some(fault(Boundary::Harness, Some(limit.name()), message, false)))
        }
        End::Agent(reason) => {
            (AgentStatus::Failed, Some(fault(Boundary::Harness, Some("agent_error"), reason.clone(), false)))
        }
        End::Model(failure) => {
            let kind = Some(failure.kind.name());
            (AgentStatus::Partial, Some(fault(Boundary::Provider, kind, failure.message.clone(), false)))
        }
        End::Done | End::Room(_) | End::Task(_) => (AgentStatus::Completed, None),
    }
}

/// What became of a trial whose agent did not have its chance.
pub(crate) fn not_judged(end: &End) -> Decision {
    let (outcome, fault) = match end {
        End::Model(failure) if matches!(failure.kind, FailureKind::Budget | FailureKind::Cancelled) => {
            let kind = Some(failure.kind.name());
            (Outcome::Cancelled, fault(Boundary::Cancelled, kind, failure.message.clone(), true))
        }
        End::Model(failure) => {
            let kind = Some(failure.kind.name());
            (Outcome::InfraFault, fault(Boundary::Provider, kind, failure.message.clone(), failure.retryable))
        }
        End::Room(room) => {
            (Outcome::InfraFault, fault(Boundary::Sandbox, room.kind, room.message.clone(), room.may_pass))
        }
        End::Task(reason) => (Outcome::InfraFault, fault(Boundary::Task, None, reason.clone(), false)),
        End::Done | End::Limit(_) | End::Agent(_) => {
            (Outcome::InfraFault, fault(Boundary::Internal, None, "nothing was frozen".to_owned(), true))
        }
    };
    (outcome, Some(fault), AgentStatus::Failed, None)
}

fn fault(boundary: Boundary, kind: Option<&str>, message: String, retryable: bool) -> Fault {
    Fault { boundary, kind: kind.map(str::to_owned), message, retryable }
}

/// What the calls of an attempt are found by on cassettes: the same in every experiment.
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

/// What the containers of an attempt are labelled with.
fn purpose(shared: &Shared, attempt: &Attempt) -> Purpose {
    Purpose {
        experiment: Some(shared.plan.experiment_id.as_str().to_owned()),
        trial: Some(attempt.trial.id.as_str().to_owned()),
        lifetime: lifetime(timeout(shared, attempt)),
        ..Purpose::default()
    }
}

/// What an agent may take: the task's limits, unless the experiment has its own.
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

/// How long an agent may take: the experiment's limit or else the task's, and no longer than the agent's own.
pub(crate) fn agent_time(conditions: &Conditions, task: &Task, parameters: &Parameters) -> Duration {
    let allowed = conditions.timeout_override.map_or(task.agent.timeout_sec, f64::from);
    let own = parameters.timeout_sec.map_or(allowed, f64::from);
    Duration::from_secs_f64(allowed.min(own).max(0.001))
}

#[cfg(test)]
mod tests {
    use aec_model::meter::{Refusal, Shortage};

    use super::*;

    fn refused(account: &str) -> Failure {
        let shortage = Shortage::Tokens { cap: 1, spent: 1, asked: 1 };
        Refusal::Short { account: account.to_owned(), shortage }.into()
    }

    #[test]
    fn a_trial_that_used_up_its_own_budget_is_judged_and_one_that_the_run_stopped_is_not() {
        assert!(is_judgeable(&End::Model(refused(ACCOUNT))));
        for account in ["the run", "the day", "the experiment"] {
            let end = End::Model(refused(account));
            assert!(!is_judgeable(&end));
            assert_eq!(not_judged(&end).0, Outcome::Cancelled, "{account}");
        }
    }

    #[test]
    fn every_failure_of_a_model_has_one_side() {
        use FailureKind::{
            Auth, Cancelled, ContentFilter, Empty, Network, Overlong, Protocol, Rate, Replay, Request,
            Server, Truncated,
        };
        for kind in [Overlong, ContentFilter, Empty, Truncated] {
            let end = End::Model(Failure::lasting(kind, "x"));
            assert!(is_judgeable(&end), "{kind:?}");
            assert_eq!(judge_end(&end).1.unwrap().boundary, Boundary::Provider);
        }
        for kind in [Auth, Rate, Server, Network, Protocol, Request, Replay] {
            for retryable in [false, true] {
                let end = End::Model(Failure { retryable, ..Failure::lasting(kind, "x") });
                assert!(!is_judgeable(&end), "{kind:?}");
                let (outcome, fault, _, _) = not_judged(&end);
                assert_eq!((outcome, fault.unwrap().retryable), (Outcome::InfraFault, retryable), "{kind:?}");
            }
        }
        assert!(!is_judgeable(&End::Model(Failure::passing(Truncated, "a stream that broke"))));
        assert_eq!(not_judged(&End::Model(Failure::lasting(Cancelled, "x"))).0, Outcome::Cancelled);
    }
}
