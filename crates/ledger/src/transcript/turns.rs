//! The turns of an agent: each answer of the model with its tool calls and their results.

use std::borrow::Cow;

use aec_base::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Event, EventRole, calls_of_harness};

/// The turns of a trajectory: events of one step form one turn. Step 0 (the prompt and the harness's own actions),
/// notes and progress of model calls are left out.
pub fn turns(events: Vec<Event>) -> Vec<Turn> {
    let start = events.iter().find_map(|event| event.timestamp.as_ref()).map(Timestamp::to_milliseconds);
    let not_said = calls_of_harness(&events);
    let mut turns: Vec<Turn> = Vec::new();
    for event in events {
        let is_of_turn =
            matches!(event.role, EventRole::Assistant | EventRole::ToolCall | EventRole::ToolResult);
        let is_said = !event.tool_call_id.as_ref().is_some_and(|id| not_said.contains(id));
        if event.step == 0 || !is_of_turn || !is_said {
            continue;
        }
        let now = event.timestamp.as_ref().map(Timestamp::to_milliseconds);
        let offset = now.zip(start).and_then(|(now, start)| u64::try_from(now - start).ok());
        if turns.last().is_none_or(|turn| turn.index != event.step) {
            turns.push(Turn { index: event.step, offset_ms: offset, ..Turn::default() });
        }
        let Some(turn) = turns.last_mut() else { continue };
        let is_failed = event.is_failed();
        let id = event.tool_call_id.unwrap_or_default();
        match event.role {
            EventRole::Assistant => {
                turn.text = event.content.unwrap_or_default();
                turn.reasoning = event.reasoning.unwrap_or_default();
            }
            EventRole::ToolCall => turn.calls.push(Call {
                name: event.tool_name.unwrap_or_default(),
                id,
                arguments: event.arguments.unwrap_or(Value::Null),
                command: event.command,
            }),
            _ => turn.results.push(CallResult {
                call_id: id,
                stdout: event.stdout.unwrap_or_default(),
                stderr: event.stderr.unwrap_or_default(),
                exit_code: event.exit_code,
                // A nonzero exit code already marks the failure.
                is_error: (is_failed && event.exit_code.is_none_or(|code| code == 0)).then_some(true),
                duration_ms: event.duration_ms,
            }),
        }
    }
    turns
}

/// One answer of the model with its tool calls and their results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// The number of the turn in reports.
    pub index: u32,
    pub text: String,
    /// The model's thoughts, as far as known.
    pub reasoning: String,
    pub calls: Vec<Call>,
    /// A result without a known id belongs to the first call that has no result yet.
    pub results: Vec<CallResult>,
    /// When the answer came, in milliseconds from the start.
    pub offset_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Call {
    pub name: String,
    pub id: String,
    /// An object, the text of one, or null.
    pub arguments: Value,
    /// Its command line, if known separately from the arguments.
    pub command: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallResult {
    pub call_id: String,
    /// Standard output, or everything known of the result.
    pub stdout: String,
    pub stderr: String,
    /// Must be absent if the source writes 0 for everything.
    pub exit_code: Option<i32>,
    /// Whether the source marks it as an error.
    pub is_error: Option<bool>,
    pub duration_ms: Option<u64>,
}

impl CallResult {
    /// Whether the tool failed, as far as the source shows.
    pub fn is_failed(&self) -> bool {
        self.exit_code.is_some_and(|code| code != 0) || self.is_error == Some(true)
    }
}

impl Turn {
    /// Whether the turn has neither text nor calls.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.text.trim().is_empty()
    }

    pub fn results_in_order(&self) -> Vec<Option<&CallResult>> {
        let mut found: Vec<Option<&CallResult>> = vec![None; self.calls.len()];
        let mut stray = Vec::new();
        let mut first = 0;
        for result in &self.results {
            // Results usually come in the order of their calls, so the search begins after the last match.
            let place = (first..self.calls.len())
                .chain(0..first)
                .take(MOST_SEARCHED)
                .find(|&at| found[at].is_none() && self.calls[at].id == result.call_id);
            match place {
                Some(at) if !result.call_id.is_empty() => {
                    found[at] = Some(result);
                    first = at + 1;
                }
                _ => stray.push(result),
            }
        }
        let mut stray = stray.into_iter();
        for place in found.iter_mut().filter(|place| place.is_none()) {
            *place = stray.next();
        }
        found
    }
}

/// In a turn with more calls, results that are out of order are matched by position.
const MOST_SEARCHED: usize = 4_096;

impl Call {
    /// The arguments as an object, if they are one or the text of one.
    pub fn object(&self) -> Option<Cow<'_, Map<String, Value>>> {
        match &self.arguments {
            Value::Object(object) => Some(Cow::Borrowed(object)),
            Value::String(text) => match aec_base::json::from_str(text) {
                Ok(Value::Object(object)) => Some(Cow::Owned(object)),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(calls: &[&str], results: &[&str]) -> Turn {
        Turn {
            calls: calls.iter().map(|id| Call { id: (*id).into(), ..Call::default() }).collect(),
            results: results
                .iter()
                .map(|id| CallResult {
                    call_id: (*id).into(),
                    stdout: format!("of {id}"),
                    ..CallResult::default()
                })
                .collect(),
            ..Turn::default()
        }
    }

    fn order(turn: &Turn) -> Vec<Option<&str>> {
        turn.results_in_order()
            .into_iter()
            .map(|result| result.map(|result| result.stdout.as_str()))
            .collect()
    }

    #[test]
    fn results_find_their_calls() {
        assert_eq!(order(&turn(&["a", "b"], &["b", "a"])), [Some("of a"), Some("of b")]);
        assert_eq!(order(&turn(&["a", "b", "c"], &["c"])), [None, None, Some("of c")]);
        assert_eq!(order(&turn(&["", ""], &["", ""])), [Some("of "), Some("of ")]);
        assert_eq!(order(&turn(&["a", "b"], &["x", "a"])), [Some("of a"), Some("of x")]);
        assert_eq!(order(&turn(&["a", "a"], &["a", "a"])), [Some("of a"), Some("of a")]);
        assert_eq!(order(&turn(&[], &["a"])), [] as [Option<&str>; 0]);
    }

    #[test]
    fn arguments_may_be_text() {
        let call = Call { arguments: Value::from(r#"{"path": "a"}"#), ..Call::default() };
        assert_eq!(call.object().unwrap()["path"], "a");
        assert!(Call { arguments: Value::from("{"), ..Call::default() }.object().is_none());
        assert!(Call::default().object().is_none());
    }
}
