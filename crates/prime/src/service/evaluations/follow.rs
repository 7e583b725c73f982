//! Watches an evaluation until it ends.

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::Value;

use super::{Evaluation, EvaluationStatus};
use crate::service::client::{ApiError, Client, segment};
use crate::service::log::LogReader;
use crate::service::watch::{Troubles, WatchOptions};

#[derive(Debug)]
pub enum FollowEvent<'a> {
    /// The status changed.
    Status(&'a EvaluationStatus),
    /// A new line of the log.
    Log(&'a str),
    /// The service did not answer; it will be asked again after the pause.
    Trouble { error: &'a ApiError, pause: Duration },
    /// The end of the log could not be read.
    LogLost(&'a ApiError),
}

#[derive(Clone, Debug, PartialEq)]
pub enum FollowEnd {
    Ended(Box<Evaluation>),
    /// The caller stopped watching. The evaluation continues.
    Left,
}

/// Watches an evaluation and reports events until it ends or the caller stops.
pub async fn follow(
    client: &Client,
    id: &str,
    options: &WatchOptions,
    mut tell: impl FnMut(FollowEvent<'_>) -> ControlFlow<()>,
) -> Result<FollowEnd, ApiError> {
    let id = segment("evaluation id", id)?;
    let call = format!("GET /api/v1/evaluations/{id}");
    let mut log = LogReader::default();
    let mut status = None;
    let mut troubles = Troubles::new(options);
    loop {
        let (evaluation, text) = match ask(client, id, &call).await {
            Ok(answer) => answer,
            Err(error) => {
                let Some(pause) = troubles.pause(&error) else { return Err(error) };
                if tell(FollowEvent::Trouble { error: &error, pause }).is_break() {
                    return Ok(FollowEnd::Left);
                }
                tokio::time::sleep(pause).await;
                continue;
            }
        };
        troubles.over();
        if status.as_ref() != Some(&evaluation.status) {
            if tell(FollowEvent::Status(&evaluation.status)).is_break() {
                return Ok(FollowEnd::Left);
            }
            status = Some(evaluation.status.clone());
        }
        let last = evaluation.status.is_final();
        let lines = if last {
            last_lines(client, id, &mut log, &mut tell).await
        } else {
            text.map(|text| log.take(&text)).unwrap_or_default()
        };
        for line in &lines {
            if tell(FollowEvent::Log(line)).is_break() {
                return Ok(FollowEnd::Left);
            }
        }
        if last {
            return Ok(FollowEnd::Ended(Box::new(evaluation)));
        }
        tokio::time::sleep(options.interval).await;
    }
}

/// Reads the status first, then the log. [`last_lines`] reads the log of an evaluation that has ended.
async fn ask(client: &Client, id: &str, call: &str) -> Result<(Evaluation, Option<String>), ApiError> {
    let evaluation = Evaluation::of(client.get_once(&["evaluations", id], &[]).await?, call)?;
    if evaluation.status.is_final() {
        return Ok((evaluation, None));
    }
    match client.get_once(&["hosted-evaluations", id, "logs"], &[]).await {
        Ok(answer) => Ok((evaluation, log_text(&answer))),
        // There is no log before a machine is assigned.
        Err(error) if error.is_not_found() => Ok((evaluation, None)),
        Err(error) => Err(error),
    }
}

async fn last_lines(
    client: &Client,
    id: &str,
    log: &mut LogReader,
    tell: &mut impl FnMut(FollowEvent<'_>) -> ControlFlow<()>,
) -> Vec<String> {
    match client.get(&["hosted-evaluations", id, "logs"], &[]).await {
        Ok(answer) => log.finish(&log_text(&answer).unwrap_or_default()),
        Err(error) => {
            // The evaluation has ended, and its result does not depend on the log, so this is not an error.
            if !error.is_not_found() {
                let _ended_anyway = tell(FollowEvent::LogLost(&error));
            }
            Vec::new()
        }
    }
}

fn log_text(answer: &Value) -> Option<String> {
    answer.get("logs").and_then(Value::as_str).map(str::to_owned)
}
