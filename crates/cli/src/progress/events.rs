//! `--events`: events as JSON lines for other programs. `docs/progress.md` describes their keys.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_eval::event::{EvalEvent, EvalStarted};
use aec_model::money::MicroDollars;
use aec_run::event::{RunEvent, TrialRef};
use clap::{Args, ValueHint};
use serde_json::{Map, Value, json};

use super::outlet::Outlet;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Format, note_loss};

/// The version of the line format.
const VERSION: u32 = 1;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct EventsArguments {
    /// Append events to this file as JSON lines; `-` is standard output, together with --json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
}

/// Writes events on a separate thread.
pub(crate) struct EventLog {
    outlet: Mutex<Outlet>,
    redactor: Redactor,
}

impl EventLog {
    /// Opens the file that `--events` names, if the user passed it.
    pub(crate) fn open(
        context: &Context,
        arguments: &EventsArguments,
        command: &str,
    ) -> Result<Option<Self>, Failure> {
        let Some(path) = &arguments.events else { return Ok(None) };
        let outlet = if path.as_os_str() == "-" {
            if context.format != Format::Json {
                let problem = Problem::error("--events - needs --json: standard output is text otherwise");
                return Err(Failure::usage(problem.fix("add --json, or name a file")));
            }
            outlet(io::stdout(), "the events on standard output".to_owned())
        } else {
            let path = context.absolute(path)?;
            let what = format!("the events to {}", path.display());
            outlet(fs_err::OpenOptions::new().create(true).append(true).open(path)?, what)
        };
        let log = Self { outlet: Mutex::new(outlet?), redactor: context.redactor() };
        let version = env!("CARGO_PKG_VERSION");
        log.write(&json!({
            "event": "opened", "version": VERSION, "command": command, "tool_version": version,
        }));
        Ok(Some(log))
    }

    /// Writes an event, and adds the time if it has none.
    pub(crate) fn write(&self, event: &Value) {
        let mut line = Map::new();
        let fields = event.as_object().into_iter().flatten();
        line.extend(fields.map(|(key, value)| (key.clone(), value.clone())));
        line.entry("at").or_insert_with(|| json!(Timestamp::now_in_milliseconds()));
        let text = self.redactor.scrub_json(Value::Object(line).to_string());
        self.outlet.lock().unwrap_or_else(std::sync::PoisonError::into_inner).print(text);
    }
}

fn outlet(mut out: impl Write + Send + 'static, what: String) -> io::Result<Outlet> {
    let left_out = |lines: usize| json!({ "event": "left_out", "lines": lines }).to_string();
    Outlet::telling(left_out, move |line| {
        note_loss(&what, out.write_all(line.as_bytes()).and_then(|()| out.flush()));
    })
}

/// The JSON of an event of a run.
pub(crate) fn of_run(event: &RunEvent) -> Option<Value> {
    Some(match event {
        RunEvent::Started(started) => json!({
            "event": "run_started", "experiment_id": started.experiment_id, "session": started.session,
            "planned": started.planned, "done_before": started.done_before, "interrupted": started.interrupted,
            "to_run": started.to_run, "agents": started.agents, "concurrency": started.concurrency,
            "max_cost_usd": started.max_cost.map(MicroDollars::dollars),
        }),
        RunEvent::TrialStarted(trial) => with(json!({ "event": "trial_started" }), of_trial(trial)),
        RunEvent::Stage(trial, stage) => {
            with(json!({ "event": "trial_stage" }), with(of_trial(trial), json!({ "stage": stage })))
        }
        RunEvent::TrialEnded(ended) => with(
            with(json!({ "event": "trial_ended" }), of_trial(&ended.trial)),
            json!({
                "outcome": ended.outcome, "reward": ended.reward, "fault": ended.fault,
                "cost_usd": ended.cost.map(MicroDollars::dollars), "tokens": ended.tokens,
                "seconds": ended.duration.as_secs_f64(), "retried": ended.retried,
            }),
        ),
        RunEvent::Stopping(reason) => with(json!({ "event": "stopping" }), json!(reason)),
        RunEvent::Ended(ended) => json!({
            "event": "run_ended", "experiment_id": ended.experiment_id, "recorded": ended.recorded,
            "agents": ended.agents, "all": ended.all, "spent_usd": ended.spent.map(MicroDollars::dollars),
            "unpriced": ended.unpriced, "tokens": ended.tokens,
            "calls": ended.calls, "unsettled_calls": ended.unsettled_calls, "stopped": ended.stopped,
            "head": ended.head, "seconds": ended.duration.as_secs_f64(),
        }),
        // Trajectories already record what agents do, and ticks are no events for other programs.
        RunEvent::Trace(..) | RunEvent::Tick(_) => return None,
    })
}

/// The JSON of an event of an evaluation.
pub(crate) fn of_evaluation(event: &EvalEvent) -> Value {
    match event {
        EvalEvent::Started(started) => {
            let one = |one: &EvalStarted| {
                json!({
                    "env_id": one.env_id, "model": one.model, "num_examples": one.num_examples,
                    "rollouts_per_example": one.rollouts_per_example, "done_before": one.done_before,
                    "lane": one.lane, "directory": one.directory,
                })
            };
            json!({ "event": "eval_started", "evaluations": started.iter().map(one).collect::<Vec<_>>() })
        }
        EvalEvent::Finished(finished) => {
            let facts = &finished.facts;
            json!({
                "event": "rollout_ended", "evaluation": finished.evaluation, "example_id": facts.example_id,
                "rollout_number": facts.rollout_number, "attempt": facts.attempt, "reward": facts.reward,
                "error": facts.error.as_ref().map(|error| &error.chain), "stop_condition": facts.stop_condition.as_deref(),
                "is_truncated": facts.is_truncated, "seconds": facts.seconds.map(|seconds| seconds.total),
            })
        }
        EvalEvent::Retried { evaluation, example_id, attempt, wait, why } => json!({
            "event": "rollout_retried", "evaluation": evaluation, "example_id": example_id, "attempt": attempt,
            "wait_seconds": wait.as_secs_f64(), "message": why,
        }),
        EvalEvent::Stopping(why) => json!({ "event": "stopping", "message": why }),
        EvalEvent::Ended(evaluation) => json!({ "event": "eval_ended", "evaluation": evaluation }),
        EvalEvent::Note { evaluation, text } => {
            json!({ "event": "note", "evaluation": evaluation, "message": text })
        }
    }
}

fn of_trial(trial: &TrialRef) -> Value {
    json!({
        "trial_id": trial.trial_id, "task_id": trial.task_id, "agent": trial.agent,
        "repetition": trial.repetition, "attempt": trial.attempt,
    })
}

fn with(mut first: Value, more: Value) -> Value {
    if let (Value::Object(first), Value::Object(more)) = (&mut first, more) {
        first.extend(more);
    }
    first
}
