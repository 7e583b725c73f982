//! Rollouts that a harness of `run` drives: `rlm` and `lambda_rlm`, with the task's own files for them. They need the
//! directory of the task, which packages do not contain.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use aec_base::content::ContentStore;
use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_base::staging::Staging;
use aec_judge::judge::Isolation;
use aec_judge::settle::freeze::{AgentFiles, Frozen, Unfrozen};
use aec_judge::settle::order::{AnswerOrder, Handed};
use aec_ledger::transcript::chat::Message;
use aec_ledger::transcript::{messages, read};
use aec_model::client::Scope;
use aec_model::gateway::Gateway;
use aec_package::manifest::PackagedTask;
use aec_run::experiment::Harness;
use aec_run::harness::{self, End, Limit, PreparedAgent, Rollout, TrialContext, TrialState};
use aec_run::parameters::Parameters;
use aec_run::plan::Conditions;
use aec_run::room::RoomOpener;
use aec_run::task::PreparedTask;
use aec_run::trajectory::Trajectory;
use aec_sandbox::Limits;
use aec_sandbox::python::{Python, find};
use aec_task::task::Task;
use indexmap::IndexMap;
use serde_json::Value;

use super::arguments::Arguments;
use super::environment::Example;
use super::rollout::Generation;
use crate::FAMILY;

/// The interpreter for rooms; finding it takes longer than a rollout.
static PYTHON: LazyLock<Option<Python>> = LazyLock::new(|| find(std::env::var_os("PATH").as_deref()));

pub(super) struct Driver {
    harness: Harness,
    parameters: Parameters,
    tasks: BTreeMap<String, Arc<PreparedTask>>,
}

#[derive(Clone)]
pub(super) struct Keeping {
    pub(super) order: AnswerOrder,
    pub(super) contents: ContentStore,
    pub(super) redactor: Arc<Redactor>,
}

pub(super) struct Driven {
    /// The messages after the prompts, which the row already has.
    pub(super) said: Vec<Message>,
    pub(super) end: End,
    pub(super) frozen: Result<Frozen, Unfrozen>,
    pub(super) answer: Option<Vec<u8>>,
    /// Calls, tokens read and tokens written, over all planes.
    pub(super) usage: (u64, u64, u64),
    /// Calls of the main model.
    pub(super) turns: u32,
    pub(super) cells: u32,
}

impl Driver {
    /// The driver that the arguments ask for. Every task's directory must be known, and every task must hand in one
    /// file.
    pub(super) fn load(
        arguments: &Arguments,
        selected: &[&PackagedTask],
        known: &BTreeMap<String, Task>,
    ) -> Result<Option<Self>, Vec<Problem>> {
        let Some(harness) = arguments.driver else { return Ok(None) };
        let mut given: IndexMap<String, Value> = IndexMap::new();
        for (name, value) in [
            ("max_turns", arguments.max_turns.map(Value::from)),
            ("token_budget", arguments.max_total_tokens.map(Value::from)),
        ] {
            given.extend(value.map(|value| (name.to_owned(), value)));
        }
        let mut parameters = Parameters::read("eval", harness, &given)?;
        if let Some(seconds) = arguments.command_timeout_sec {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds, clamped")]
            let seconds = seconds.ceil().clamp(1.0, 86_400.0) as u32;
            parameters.command_timeout = seconds;
        }
        let mut tasks = BTreeMap::new();
        let mut problems = Vec::new();
        for packaged in selected {
            let refuse = |what: &str, fix: &str| {
                let what = format!("harness `{}` cannot do {}: {what}", harness.name(), packaged.task_id);
                Problem::error(what).id(FAMILY.number(66)).about(packaged.task_id.clone()).fix(fix)
            };
            if packaged.outputs.as_ref().is_some_and(|outputs| outputs.len() > 1) {
                problems.push(refuse("its answer is several files", "use harness `stateful` for it"));
                continue;
            }
            let Some(task) = known.get(&packaged.task_id) else {
                let fix = "evaluate the tasks themselves, with --task or a dataset of this project";
                problems.push(refuse("a package has no files for this harness", fix));
                continue;
            };
            match PreparedTask::read(task.clone(), packaged.task_revision, &Conditions::default()) {
                Ok(task) => {
                    tasks.insert(packaged.task_id.clone(), Arc::new(task));
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(Some(Self { harness, parameters, tasks })) } else { Err(problems) }
    }

    pub(super) fn name(&self) -> &'static str {
        self.harness.name()
    }

    pub(super) async fn drive(
        &self,
        example: &Example,
        how: &Generation,
        isolation: Isolation,
        limits: Limits,
        keeping: &Keeping,
    ) -> Result<Driven, String> {
        let task = self.tasks.get(&example.task.task_id).ok_or("the task is gone")?;
        let directory = Staging::scratch().map_err(|error| error.to_string())?;
        let redactor = Arc::clone(&keeping.redactor);
        let trajectory = Trajectory::create(directory.path(), Arc::clone(&redactor), None)
            .map_err(|error| error.to_string())?;
        let mut scope = Scope::new(how.label.clone(), how.account.clone());
        let events = trajectory.clone();
        scope.observer = Some(Arc::new(move |event| events.model_call(event)));
        let agent = PreparedAgent {
            name: self.harness.name().to_owned(),
            harness: self.harness,
            model: Some(how.model.clone()),
            parameters: Parameters { sampling: how.sampling.clone(), ..self.parameters.clone() },
            system_prompt: None,
            api_version: String::new(),
            files: Vec::new(),
        };
        let deadline = tokio::time::Instant::now() + example.timeout;
        let mut context = TrialContext {
            task: Arc::clone(task),
            agent: Arc::new(agent),
            seed: [0; 32],
            deadline,
            trajectory: trajectory.clone(),
            scope,
            gateway: Gateway::new(),
            redactor,
            snapshots: None,
            opener: RoomOpener {
                isolation,
                containers: None,
                python: PYTHON.clone(),
                limits,
                extra: Vec::new(),
                ourselves: false,
            },
            state: TrialState::new(deadline),
        };
        let in_time = tokio::time::timeout_at(deadline + harness::GRACE, harness::run(&mut context)).await;
        let rollout = in_time.unwrap_or_else(|_| {
            // Whatever it waits for, its time is over.
            Rollout::new(End::Limit(Limit::Time))
        });
        if let Some(workspace) = context.opened()
            && workspace.is_busy()
        {
            workspace.stop();
        }
        let finished = trajectory.finish().map_err(|error| error.to_string())?;
        let mut events = read(&std::fs::read(&finished.path).map_err(|error| error.to_string())?);
        events.retain(|event| event.step > 0);
        let frozen = freeze(&context, task, rollout.handed(), keeping).await?;
        let place = task.output_place();
        let answer = frozen.as_ref().ok().and_then(|frozen| frozen.submission.read(place).ok().flatten());
        if let Some(workspace) = context.opened() {
            workspace.stop();
        }
        let count = |plane: &str, key: &str| {
            rollout.result.get("planes").and_then(|planes| planes[plane][key].as_u64()).unwrap_or(0)
        };
        let whole = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Driven {
            said: messages(&events),
            frozen,
            answer,
            usage: (count("total", "calls"), count("total", "input_tokens"), count("total", "output_tokens")),
            turns: whole(count("main", "calls")),
            cells: whole(rollout.result.get("cells").and_then(Value::as_u64).unwrap_or(0)),
            end: rollout.end,
        })
    }
}

/// Freezes the files that a harness left, as trials do.
async fn freeze(
    context: &TrialContext,
    task: &Arc<PreparedTask>,
    handed: Handed,
    keeping: &Keeping,
) -> Result<Result<Frozen, Unfrozen>, String> {
    let (workspace, task, keeping) = (context.opened().cloned(), Arc::clone(task), keeping.clone());
    let frozen = tokio::task::spawn_blocking(move || {
        let freezer = task.freezer(keeping.order, &keeping.contents, &keeping.redactor);
        let files = match &workspace {
            Some(workspace) => workspace.agent_files()?,
            None => AgentFiles::InMemory(freezer.given_files()),
        };
        freezer.freeze(files, &handed)
    });
    frozen.await.map_err(|error| error.to_string())
}
