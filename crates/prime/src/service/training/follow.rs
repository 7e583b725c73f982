//! Watches a training run until it ends.

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::Value;

use super::{Run, run_of};
use crate::service::client::{ApiError, Client, segment};
use crate::service::log::LogReader;
use crate::service::watch::{Troubles, WatchOptions};

/// Lines of the log that are requested, as by Prime's own program.
const TAIL_LINES: &str = "1000";

#[derive(Debug)]
pub enum TrainEvent<'a> {
    /// The status changed.
    Status(&'a str),
    Step {
        done: u64,
        all: Option<u64>,
    },
    Metrics(&'a Value),
    /// A new line of the log.
    Log(&'a str),
    /// The service did not answer; it will be asked again after the pause.
    Trouble {
        error: &'a ApiError,
        pause: Duration,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum TrainEnd {
    /// The run ended or was paused.
    Ended(Box<Run>),
    /// The caller stopped watching. The run continues.
    Left,
}

/// Watches a run and reports events until it ends or the caller stops.
pub async fn follow(
    client: &Client,
    run_id: &str,
    options: &WatchOptions,
    mut tell: impl FnMut(TrainEvent<'_>) -> ControlFlow<()>,
) -> Result<TrainEnd, ApiError> {
    let mut watch = Watch {
        client,
        id: segment("training run id", run_id)?,
        log: LogReader::default(),
        status: String::new(),
        step: None,
        next_metrics: 0,
    };
    let mut troubles = Troubles::new(options);
    loop {
        let pause = match watch.look(&mut tell).await {
            Ok(ControlFlow::Break(end)) => return Ok(end),
            Ok(ControlFlow::Continue(())) => {
                troubles.over();
                options.interval
            }
            Err(error) => {
                let Some(pause) = troubles.pause(&error) else { return Err(error) };
                if tell(TrainEvent::Trouble { error: &error, pause }).is_break() {
                    return Ok(TrainEnd::Left);
                }
                pause
            }
        };
        tokio::time::sleep(pause).await;
    }
}

struct Watch<'a> {
    client: &'a Client,
    id: &'a str,
    log: LogReader,
    status: String,
    step: Option<u64>,
    next_metrics: u64,
}

impl Watch<'_> {
    /// Asks once and reports what is new.
    async fn look(
        &mut self,
        tell: &mut impl FnMut(TrainEvent<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<TrainEnd>, ApiError> {
        let left = Ok(ControlFlow::Break(TrainEnd::Left));
        let answer = self.client.get_once(&["rft", "runs", self.id], &[]).await?;
        let run = run_of(answer, &format!("GET /api/v1/rft/runs/{}", self.id))?;
        if run.status != self.status {
            if tell(TrainEvent::Status(&run.status)).is_break() {
                return left;
            }
            self.status.clone_from(&run.status);
        }
        let step = self.part("progress", &[]).await?.and_then(|answer| latest_step(&answer));
        if let Some(done) = step.filter(|_| step > self.step) {
            if tell(TrainEvent::Step { done, all: run.max_steps }).is_break() {
                return left;
            }
            self.step = step;
        }
        for metrics in self.metrics().await? {
            if tell(TrainEvent::Metrics(&metrics)).is_break() {
                return left;
            }
        }
        let tail = [("tail_lines", TAIL_LINES.to_owned())];
        let answer = self.part("logs", &tail).await?.unwrap_or_default();
        let text = answer.get("logs").and_then(Value::as_str).unwrap_or_default();
        let lines = if run.has_ended() { self.log.finish(text) } else { self.log.take(text) };
        for line in &lines {
            if tell(TrainEvent::Log(line)).is_break() {
                return left;
            }
        }
        if run.has_ended() {
            return Ok(ControlFlow::Break(TrainEnd::Ended(Box::new(run))));
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn metrics(&mut self) -> Result<Vec<Value>, ApiError> {
        let from = [("min_step", self.next_metrics.to_string())];
        let answer = self.part("metrics", &from).await?.unwrap_or_default();
        let step = |row: &Value| row.get("step").and_then(Value::as_u64);
        let mut rows = answer.get("metrics").and_then(Value::as_array).cloned().unwrap_or_default();
        // A service that ignores `min_step` returns all of them.
        rows.retain(|row| step(row).is_some_and(|step| step >= self.next_metrics));
        if let Some(last) = rows.iter().filter_map(step).max() {
            self.next_metrics = last + 1;
        }
        Ok(rows)
    }

    /// A part of a run that may not exist before it has started.
    async fn part(&self, name: &str, query: &[(&str, String)]) -> Result<Option<Value>, ApiError> {
        match self.client.get_once(&["rft", "runs", self.id, name], query).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn latest_step(answer: &Value) -> Option<u64> {
    answer.get("latest_step").or_else(|| answer.get("latestStep")).and_then(Value::as_u64)
}
