//! Rollouts of a native environment: the conversation with the model, then the verdict, as a row.

use std::sync::Arc;
use std::time::Duration;

use aec_base::digest::Hasher;
use aec_judge::settle::freeze::{Frozen, Unfrozen};
use aec_judge::settle::order::{Handed, Submitted, last_word};
use aec_judge::settle::outcome::{Ending, RoomFault};
use aec_ledger::transcript::chat::{Message as Said, Role as Speaker};
use aec_model::client::{Called, Model, Scope};
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Message, Reply, Request, Role, Sampling, Stop, ToolCall};
use aec_model::meter::Account;
use aec_package::interaction::Interaction;
use aec_run::harness::tools::Ran;
use aec_run::harness::turns::{self, Bounds, Host, Toolbox};
use aec_run::harness::{self, End, Limit, model_end, room_end};
use aec_run::room::MAX_PIDS;
use aec_run::trial::ending;
use aec_run::workspace::Workspace;
use aec_sandbox::Limits;
use futures_util::future::join_all;
use serde_json::value::RawValue;

use super::driven::{Driver, Keeping};
use super::environment::{Example, NativeEnvironment, Ready};
use super::measure::{Clock, Tokens, finite};
use super::tools::{EnvironmentTools, NONE};
use super::verdict::RolloutVerdict;
use super::workspace::WorkspaceSetup;
use crate::engine::{Environment, Finished, Group, Trouble};
use crate::results::payers::Payers;
use crate::results::row::example_column;
use crate::results::{Finite, RolloutRow, RowError, RowFacts, Span, Timing};

#[derive(Debug)]
pub struct NativeExecutor {
    pub environment: NativeEnvironment,
    pub model: Model,
    pub sampling: Sampling,
    /// Base of the seeds of rollouts; absent for rollouts without a seed.
    pub seed: Option<i64>,
    pub payers: Payers,
    /// Tells this evaluation apart from others of the same run, on cassettes.
    pub label: String,
    pub columns: Vec<Arc<str>>,
}

impl NativeExecutor {
    fn generation(&self, example: usize, rollout_number: u32, attempt: u32) -> Generation {
        let example = self.environment.examples.get(example);
        let task = example.map_or("", |example| &example.task.task_id);
        let example_id =
            example.and_then(|example| i64::try_from(example.example_id).ok()).unwrap_or(i64::MAX);
        let mut sampling = self.sampling.clone();
        if let Some(seed) = self.seed
            && sampling.seed.is_none()
        {
            sampling.seed = Some(rollout_seed(seed, task, rollout_number));
        }
        Generation {
            model: self.model.clone(),
            sampling,
            account: self.payers.begin(example_id, rollout_number),
            rollout_number,
            attempt,
            label: format!("{}/{task}#{rollout_number}", self.label),
        }
    }
}

/// Rollouts of one example must differ from each other, and repeat in the next run.
fn rollout_seed(seed: i64, task: &str, rollout_number: u32) -> i64 {
    let mut hasher = Hasher::default();
    hasher.part(b"aec-bench rollout");
    hasher.part(&seed.to_le_bytes());
    hasher.part(task.as_bytes());
    hasher.part(&rollout_number.to_le_bytes());
    let digest = hasher.finish();
    // Providers accept seeds of 31 bits.
    i64::from_str_radix(&digest.hex()[..8], 16).unwrap_or_default() & 0x7fff_ffff
}

impl Environment for NativeExecutor {
    type Generated = Vec<Generated>;

    async fn generate(&self, group: Group) -> Vec<Generated> {
        let Some(example) = self.environment.examples.get(group.example) else { return Vec::new() };
        if let [(number, attempt)] = group.rollouts[..] {
            let how = self.generation(group.example, number, attempt);
            return vec![self.environment.generate(example, &how).await];
        }
        let rollouts = group.rollouts.iter().map(|(number, attempt)| async {
            let how = self.generation(group.example, *number, *attempt);
            self.environment.generate(example, &how).await
        });
        join_all(rollouts).await
    }

    fn scores_at_once(&self) -> bool {
        self.environment.scores_at_once()
    }

    async fn score(&self, generated: Vec<Generated>) -> Vec<Finished> {
        let mut finished = Vec::with_capacity(generated.len());
        for rollout in generated {
            finished.push(self.score_one(rollout).await);
        }
        finished
    }
}

impl NativeExecutor {
    async fn score_one(&self, rollout: Generated) -> Finished {
        let failure = rollout.failure.clone();
        let mut scored = self.environment.score(rollout).await;
        for name in &self.columns {
            let own = || RawValue::from_string(scored.column(name).to_string()).ok().map(Arc::from);
            let value = example_column(name, &scored.row.prompt, scored.row.answer.as_deref()).or_else(own);
            if let Some(value) = value {
                scored.row.columns.push((Arc::clone(name), value));
            }
        }
        let infra = scored.row.error.as_ref().map(|error| error.chain.clone());
        let trouble = failure.map(Trouble::Model).or_else(|| infra.map(Trouble::Infra));
        let mut line = Vec::with_capacity(4096);
        scored.row.write(&mut line);
        Finished { facts: RowFacts::of(&scored.row), line, trouble }
    }
}

#[derive(Clone, Debug)]
pub struct Generation {
    pub model: Model,
    pub sampling: Sampling,
    pub account: Account,
    pub rollout_number: u32,
    /// 1, or more if the rollout is run again.
    pub attempt: u32,
    /// Tells its calls apart from equal ones on cassettes.
    pub label: String,
}

/// Names of the metrics, in order: those of every rollout, then those of rollouts with tools.
pub(super) fn metric_names(tools: &EnvironmentTools, lane: Interaction, is_driven: bool) -> Vec<Arc<str>> {
    let of_all = ["aec_bench_reward"].into_iter().chain(RolloutVerdict::METRICS).chain(["num_turns"]);
    let mut names: Vec<Arc<str>> = of_all.map(Arc::from).collect();
    if lane == Interaction::Stateful {
        names.push("total_tool_calls".into());
        if !is_driven {
            names.extend(tools.names.iter().map(|name| Arc::from(format!("{name}_calls"))));
        }
    }
    names
}

pub struct Generated {
    example: Arc<Example>,
    rollout_number: u32,
    attempt: u32,
    completion: Vec<Said>,
    clock: Clock,
    setup: Span,
    generation_end: Finite,
    model_spans: Vec<Span>,
    env_spans: Vec<Span>,
    usage: Tokens,
    turns: u32,
    /// Calls of tools, including unknown ones.
    all_calls: u32,
    /// Calls of each tool of the environment.
    calls: Vec<u32>,
    stop_condition: &'static str,
    is_truncated: bool,
    error: Option<RowError>,
    workspace: Option<Workspace>,
    /// The result of freezing a driven rollout.
    frozen: Option<Result<Frozen, Unfrozen>>,
    ready: Option<Ready>,
    submitted: Option<Submitted>,
    /// The model's last message, if that may be its answer.
    said: Option<String>,
    /// Whether a failure ended the rollout that was not the model's fault, so that it is not judged.
    is_lost: bool,
    pub failure: Option<Failure>,
    pub machine_failed: bool,
}

impl NativeEnvironment {
    pub async fn generate(&self, example: &Arc<Example>, how: &Generation) -> Generated {
        let clock = Clock::start();
        let start = clock.now();
        let ready = self.ready(example);
        let workspace = match &ready {
            Ok(ready) if example.lane == Interaction::Stateful && self.driver.is_none() => {
                Some(ready.workspace.workspace())
            }
            _ => None,
        };
        let mut rollout = Generated {
            example: Arc::clone(example),
            rollout_number: how.rollout_number,
            attempt: how.attempt,
            completion: Vec::new(),
            setup: clock.since(start),
            generation_end: start,
            clock,
            model_spans: Vec::new(),
            env_spans: Vec::new(),
            usage: Tokens::default(),
            turns: 0,
            all_calls: 0,
            calls: vec![0; self.tools.names.len()],
            stop_condition: "has_error",
            is_truncated: false,
            error: None,
            workspace,
            frozen: None,
            ready: None,
            submitted: None,
            said: None,
            is_lost: false,
            failure: None,
            machine_failed: false,
        };
        let end = match ready {
            Ok(ready) => {
                let setup = Arc::clone(&ready.workspace);
                rollout.ready = Some(ready);
                match &self.driver {
                    Some(driver) => rollout.follow(driver, how, &self.keeping()).await,
                    None => rollout.converse(how, &self.tools, &setup).await,
                }
            }
            Err(error) => End::Task(format!("the task {} cannot be read: {error}", example.task.task_id)),
        };
        rollout.end(end);
        rollout
    }

    pub async fn score(&self, mut rollout: Generated) -> Scored {
        let is_driven = self.driver.is_some();
        let begun = rollout.clock.now();
        let verdict = match &rollout.ready {
            // The rollout's error tells why; the verifier did not fail.
            _ if rollout.is_lost => RolloutVerdict::default(),
            Some(ready) => match rollout.frozen.take() {
                Some(frozen) => self.bench.judge_frozen(&ready.terms, move |_| frozen).await,
                None => {
                    let handed = Handed { submitted: rollout.submitted.take(), said: rollout.said.take() };
                    self.bench.judge(&ready.terms, rollout.workspace.take(), handed).await
                }
            },
            None => {
                RolloutVerdict { fault: Some("there is nothing to judge".to_owned()), ..Default::default() }
            }
        };
        let scoring = rollout.clock.since(begun);
        if let Some(fault) = &verdict.fault
            && rollout.error.is_none()
        {
            let what = format!("no verdict on {}: {fault}", rollout.example.task.task_id);
            rollout.error = Some(row_error("InfraError", &what, None));
            rollout.machine_failed = true;
        }
        Scored { row: rollout.row(&verdict, scoring, &self.metrics, is_driven), verdict }
    }
}

#[derive(Debug)]
pub struct Scored {
    /// Without the additional columns that the user asked for.
    pub row: RolloutRow,
    verdict: RolloutVerdict,
}

impl Scored {
    /// The value of an additional column: the rollout state's value under this name.
    pub fn column(&self, name: &str) -> serde_json::Value {
        match name {
            "aec_bench_verdict" | "verdict" => self.verdict.record(),
            "details" => self.verdict.details.clone().unwrap_or_default(),
            _ => serde_json::Value::Null,
        }
    }
}

impl Generated {
    /// Lets the model work, with tools or in one answer.
    async fn converse(&mut self, how: &Generation, tools: &EnvironmentTools, setup: &WorkspaceSetup) -> End {
        let example = Arc::clone(&self.example);
        let deadline = tokio::time::Instant::now() + example.timeout;
        let mut scope = Scope::new(how.label.clone(), how.account.clone());
        scope.deadline = Some(deadline);
        let mut request = Request {
            messages: vec![
                Message::text(Role::System, example.system_prompt.clone()),
                Message::text(Role::User, example.task.instruction.clone()),
            ],
            sampling: how.sampling.clone(),
            ..Request::default()
        };
        let mut host =
            Conversation { rollout: self, model: &how.model, scope, deadline, tools, working_since: None };
        if example.lane == Interaction::SingleTurn {
            let end = host.answer(&request).await;
            self.stop_condition = "max_turns_reached";
            return end;
        }
        request.tools.clone_from(example.tools.set.offers());
        let bounds = Bounds {
            turns: example.max_turns,
            tool_calls: None,
            input_tokens: None,
            total_tokens: example.max_total_tokens,
        };
        let mut toolbox = Toolbox::new(&example.tools.set, setup.allowed());
        let (end, turns) = turns::take(&mut host, &mut toolbox, &mut request, &bounds).await;
        host.rest();
        let end = room_end(end, self.workspace.as_ref());
        // Conditions are tried in the order of their names, as the library does.
        self.stop_condition = match &end {
            End::Agent(_) => "out_of_memory",
            _ if turns.submitted.is_some() => "has_final_env_response",
            _ if turns.taken >= example.max_turns => "max_turns_reached",
            _ => "no_tools_called",
        };
        (self.submitted, self.said) = (turns.submitted, turns.final_text);
        end
    }

    /// Lets a harness do the work, and takes over its results.
    async fn follow(&mut self, driver: &Driver, how: &Generation, keeping: &Keeping) -> End {
        let example = Arc::clone(&self.example);
        let limits = &example.task.limits;
        let room = Limits {
            cpus: limits.cpus,
            memory_mb: limits.memory_mb,
            storage_mb: limits.storage_mb,
            pids: MAX_PIDS,
        };
        let begun = self.clock.now();
        let driven = match driver.drive(&example, how, example.isolation, room, keeping).await {
            Ok(driven) => driven,
            Err(fault) => return End::Task(fault),
        };
        self.env_spans.push(self.clock.since(begun));
        self.completion = driven.said;
        // A harness that works by plan has no conversation, so the row shows its answer.
        if let (true, Some(answer)) = (self.completion.is_empty(), &driven.answer) {
            self.completion.push(Said::text(Speaker::Assistant, String::from_utf8_lossy(answer)));
        }
        let (calls, input, output) = driven.usage;
        self.usage = Tokens { seen: calls > 0, input, output, last_total: input + output };
        (self.turns, self.all_calls) = (driven.turns, driven.cells);
        self.frozen = Some(driven.frozen);
        self.stop_condition = match &driven.end {
            End::Done => "harness_done",
            _ => "harness_gave_up",
        };
        driven.end
    }

    fn end(&mut self, end: End) {
        self.generation_end = self.clock.now();
        self.is_lost = matches!(ending(&end), Ending::Lost(..));
        match end {
            // The harness has already set the stop condition.
            End::Done | End::Agent(_) | End::Crashed(_) => {}
            End::RoomLost(_) => self.stop_condition = "room_lost",
            End::Refused(_) => self.stop_condition = "request_refused",
            End::Limit(limit) => {
                self.stop_condition = match limit {
                    Limit::Turns => "max_turns_reached",
                    Limit::Time => "timeout_reached",
                    other => other.name(),
                }
            }
            End::Model(failure) if failure.kind == FailureKind::Overlong => {
                self.stop_condition = "prompt_too_long";
                self.is_truncated = true;
            }
            End::Model(failure) => {
                let class = match failure.kind {
                    kind if kind.is_silence() => "EmptyModelResponseError",
                    FailureKind::Protocol => "InvalidModelResponseError",
                    _ => "ModelError",
                };
                let cause = (class == "ModelError").then(|| failure.kind.name());
                self.error = Some(row_error(class, &failure.message, cause));
                self.failure = Some(failure);
            }
            End::Room(RoomFault { message: fault, .. }) | End::Task(fault) => {
                self.error = Some(row_error("SandboxError", &fault, None));
                self.machine_failed = true;
            }
        }
    }

    fn row(
        self,
        verdict: &RolloutVerdict,
        scoring: Span,
        metrics: &[Arc<str>],
        is_driven: bool,
    ) -> RolloutRow {
        let reward = finite(verdict.reward.unwrap_or(0.0));
        let mut values = vec![reward];
        values.extend(verdict.metrics().map(finite));
        values.push(self.turns.into());
        if self.example.lane == Interaction::Stateful {
            values.push(self.all_calls.into());
            if !is_driven {
                values.extend(self.calls.iter().copied().map(Finite::from));
            }
        }
        let metrics = metrics.iter().map(Arc::clone).zip(values).collect();
        RolloutRow {
            example_id: i64::try_from(self.example.example_id).unwrap_or(i64::MAX),
            rollout_number: self.rollout_number,
            attempt: self.attempt,
            prompt: Arc::clone(&self.example.prompt),
            completion: self.completion,
            answer: Some(Arc::clone(&self.example.answer)),
            info: Some(Arc::clone(&self.example.info)),
            reward,
            timing: Timing {
                start_time: self.clock.start_time(),
                setup: self.setup,
                generation: Span { start: self.clock.start_time(), end: self.generation_end },
                scoring,
                model: self.model_spans,
                env: self.env_spans,
            },
            is_completed: true,
            is_truncated: self.is_truncated,
            stop_condition: Some(if self.error.is_some() { "has_error" } else { self.stop_condition }.into()),
            error: self.error,
            metrics,
            tool_defs: match self.example.lane {
                Interaction::Stateful if !is_driven => self.example.tools.in_rows.clone(),
                _ => NONE.clone(),
            },
            token_usage: self.usage.row(),
            columns: Vec::new(),
        }
    }
}

struct Conversation<'a> {
    rollout: &'a mut Generated,
    model: &'a Model,
    scope: Scope,
    deadline: tokio::time::Instant,
    tools: &'a EnvironmentTools,
    /// When the tools of this turn began to work.
    working_since: Option<Finite>,
}

impl Conversation<'_> {
    /// Asks for the one answer of a rollout without tools.
    async fn answer(&mut self, request: &Request) -> End {
        match self.ask(request).await.outcome {
            Ok(reply) => {
                self.hear(&reply);
                let calls_tools = reply.tool_calls().next().is_some();
                self.rollout.said = last_word(&reply.text(), calls_tools).map(str::to_owned);
                End::Done
            }
            Err(failure) => model_end(failure, self.time_left()),
        }
    }

    /// Records that the tools of the last turn have finished.
    fn rest(&mut self) {
        if let Some(begun) = self.working_since.take() {
            self.rollout.env_spans.push(self.rollout.clock.since(begun));
        }
    }
}

impl Host for Conversation<'_> {
    async fn ask(&mut self, request: &Request) -> Called {
        self.rest();
        let begun = self.rollout.clock.now();
        let called = harness::call(self.model, request, &self.scope).await;
        self.rollout.model_spans.push(self.rollout.clock.since(begun));
        called
    }

    fn hear(&mut self, reply: &Reply) {
        let rollout = &mut *self.rollout;
        rollout.turns += 1;
        if let Some(usage) = &reply.usage {
            rollout.usage.add(usage);
        }
        rollout.is_truncated |= reply.stop == Stop::Length;
        rollout.completion.push(Said::from(reply));
        if rollout.workspace.is_some() && reply.tool_calls().next().is_some() {
            self.working_since = Some(rollout.clock.now());
        }
    }

    async fn workspace(&mut self) -> Result<Workspace, End> {
        let there = self.rollout.workspace.clone();
        there.ok_or_else(|| End::Task("there is no workspace".to_owned()))
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(tokio::time::Instant::now())
    }

    fn begin_call(&mut self, call: &ToolCall) {
        self.rollout.all_calls += 1;
        if let Some(at) = self.tools.names.iter().position(|name| *name == call.name) {
            self.rollout.calls[at] += 1;
        }
    }

    async fn end_call(&mut self, call: &ToolCall, ran: &Ran) {
        self.rollout.completion.push(Said::tool(call.id.clone(), ran.text()));
    }
}

/// An error as rows have it: the best fitting error class of the library, with the kind of failure as its cause.
fn row_error(class: &str, message: &str, cause: Option<&str>) -> RowError {
    let quoted = serde_json::to_string(message).unwrap_or_default();
    let (mut chain, mut classes) = (format!("{class}({quoted})"), class.to_owned());
    if let Some(cause) = cause {
        chain.push_str(&format!(" -> {cause}"));
        classes.push_str(&format!(" -> {cause}"));
    }
    RowError { class: class.to_owned(), chain, classes }
}
