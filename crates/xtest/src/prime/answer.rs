//! Answers of the server.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::stand_in::Answer;

/// An answer inside `data`.
pub(super) fn data(value: &Value) -> Answer {
    Answer::json(&json!({"data": value}))
}

pub(super) fn bytes(body: Bytes) -> Answer {
    Answer { status: 200, headers: Vec::new(), body }
}

pub(super) fn refusal(status: u16, detail: &str) -> Answer {
    Answer::with_status(status, &json!({"detail": detail}))
}

pub(super) fn invalid(field: &[&str], message: &str) -> Answer {
    let place: Vec<&str> = ["body"].iter().chain(field).copied().collect();
    Answer::with_status(422, &json!({"detail": [{"loc": place, "msg": message, "type": "value_error"}]}))
}
