//! The parts of a trial that pages show: the events of its trace and the parts of its answer, in the terms of the page.

use aec_ledger::record::TrialRecord;
use aec_ledger::transcript::{Event, EventRole};
use serde_json::Value;

use crate::html::{Field, TraceEntry};
use crate::selection::is_full;

/// An event as the page shows it; successful model calls are left out.
pub fn entry(event: Event, start: Option<i64>) -> Option<TraceEntry> {
    let role = match event.role {
        EventRole::System => "system",
        EventRole::User => "user",
        EventRole::Assistant => "assistant",
        EventRole::ToolCall => "tool_call",
        EventRole::ToolResult => "tool_result",
        EventRole::Note => "note",
        EventRole::ModelCall => return failed_call(&event),
    };
    let now = event.timestamp.as_ref().map(aec_base::timestamp::Timestamp::to_milliseconds);
    Some(TraceEntry {
        role: role.to_owned(),
        step: event.step,
        // For a result, the page shows its streams, which contain more than the text for the model.
        text: event.content.filter(|_| event.role != EventRole::ToolResult),
        reasoning: event.reasoning,
        tool: event.tool_name,
        arguments: event.arguments.map(|arguments| match arguments {
            Value::String(text) => text,
            other => serde_json::to_string_pretty(&other).unwrap_or_default(),
        }),
        stdout: event.stdout,
        stderr: event.stderr.filter(|text| !text.is_empty()),
        exit_code: event.exit_code,
        duration_ms: event.duration_ms,
        offset_ms: now.zip(start).and_then(|(now, start)| u64::try_from(now - start).ok()),
    })
}

fn failed_call(event: &Event) -> Option<TraceEntry> {
    let (attempt, failure, elapsed_ms) = event.failed_call()?;
    Some(TraceEntry {
        role: "model_call".to_owned(),
        step: event.step,
        text: Some(format!("model call failed at attempt {attempt}: {failure}")),
        duration_ms: Some(elapsed_ms),
        ..TraceEntry::default()
    })
}

/// The parts of an answer, in the verifier's order. A part may be a table of facts or only a score.
pub fn fields(record: &TrialRecord) -> Vec<Field> {
    let breakdown = record.evaluation.as_ref().and_then(|evaluation| evaluation.breakdown.as_ref());
    let Some(Value::Object(fields)) = breakdown.and_then(|breakdown| breakdown.get("fields")) else {
        return Vec::new();
    };
    fields.iter().map(|(name, told)| field(name, told)).collect()
}

/// What a part of an answer earned, as verifiers report it: a number, yes or no, or a table with one of these as
/// `score` or `met`. `None` if the verifier does not say.
pub fn earned(told: &Value) -> Option<f64> {
    let plain = |value: &Value| value.as_f64().or_else(|| value.as_bool().map(f64::from));
    plain(told).or_else(|| ["score", "met"].iter().find_map(|key| told.get(key).and_then(plain)))
}

fn field(name: &str, told: &Value) -> Field {
    let text = |key: &str| match told.get(key) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    let score = earned(told);
    let known = score.map_or("", |score| if is_full(score) { "correct" } else { "wrong" });
    let (status, got) = (text("status"), text("got"));
    Field {
        name: name.to_owned(),
        score,
        status: if status.is_empty() { known.to_owned() } else { status },
        expected: text("expected"),
        got: if got.is_empty() { text("value") } else { got },
        message: text("message"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_earned_what_its_verifier_says_in_any_form() {
        for (told, score) in [
            (json!({"met": true, "value": 3}), Some(1.0)),
            (json!({"met": false}), Some(0.0)),
            (json!({"score": 0.5, "met": true}), Some(0.5)),
            (json!({"score": null, "met": true}), Some(1.0)),
            (json!({"score": true}), Some(1.0)),
            (json!(0.25), Some(0.25)),
            (json!(true), Some(1.0)),
            (json!({"value": 3}), None),
            (json!("right"), None),
            (json!(null), None),
        ] {
            assert_eq!(earned(&told), score, "{told}");
        }
    }
}
