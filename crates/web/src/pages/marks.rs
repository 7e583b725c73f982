//! What the verifier says about the parts of an answer.

use aec_ledger::record::TrialRecord;
use aec_report::html::clip;
use aec_report::selection::is_full;
use serde_json::Value;

/// One value is this long at most; a verifier quotes whatever an agent wrote.
const VALUE: usize = 400;

/// One part of an answer.
pub(super) struct Mark {
    pub(super) name: String,
    pub(super) score: Option<f64>,
    pub(super) status: String,
    pub(super) expected: String,
    pub(super) got: String,
    pub(super) message: String,
}

/// The parts, in the order of the verifier. A part may be a table of facts or a score alone.
pub(super) fn marks(record: &TrialRecord) -> Vec<Mark> {
    let breakdown = record.evaluation.as_ref().and_then(|evaluation| evaluation.breakdown.as_ref());
    let Some(Value::Object(fields)) = breakdown.and_then(|breakdown| breakdown.get("fields")) else {
        return Vec::new();
    };
    fields.iter().map(|(name, field)| mark(name, field)).collect()
}

fn mark(name: &str, field: &Value) -> Mark {
    let text = |key: &str| match field.get(key) {
        Some(Value::String(text)) => clip(text, VALUE).into_owned(),
        None | Some(Value::Null) => String::new(),
        Some(other) => clip(&other.to_string(), VALUE).into_owned(),
    };
    let met = field.get("met").and_then(Value::as_bool).map(f64::from);
    let score = field.get("score").unwrap_or(field).as_f64().or(met);
    let known = score.map_or("", |score| if is_full(score) { "correct" } else { "wrong" });
    let (status, got) = (text("status"), text("got"));
    Mark {
        name: clip(name, VALUE).into_owned(),
        score,
        status: if status.is_empty() { known.to_owned() } else { status },
        expected: text("expected"),
        got: if got.is_empty() { text("value") } else { got },
        message: text("message"),
    }
}
